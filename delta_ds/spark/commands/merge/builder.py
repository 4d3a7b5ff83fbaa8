"""`DeltaMergeBuilder`, and the start of a MERGE.

Source: delta-spark, `DeltaMergeBuilder`, `MergeIntoCommand`; conflict-matrix section 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.commands.merge.clauses import Do, When
from delta_ds.records import dataclass, field, replace
from delta_ds.spark.commands.handle import Handle
from delta_ds.spark.commands.merge.plan import Clause
from delta_ds.spark.commands.merge.run import run_merge
from delta_ds.spark.engines.arguments import NotExecuted, missing_attribute, public_methods

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@public_methods
@dataclass(frozen=True)
class DeltaMergeBuilder:
    """A merge of a source into a table: clauses are added one by one, `execute` runs it.

    Of the clauses for the same rows the first counts whose condition holds. Made by `DeltaTable.merge`. Every method
    but `execute` answers a new builder.

    Examples
    --------
    >>> table = DeltaTable.forPath(spark, "/data/orders").alias("t")
    >>> new = spark.createDataFrame([(1, "DE", 15.0), (5, "FR", 50.0)], "id long, country string, amount double")
    >>> merge = table.merge(new.alias("s"), "t.id = s.id")
    >>> merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().show()
    +-----------------+----------------+----------------+-----------------+
    |num_affected_rows|num_updated_rows|num_deleted_rows|num_inserted_rows|
    +-----------------+----------------+----------------+-----------------+
    |                2|               1|               0|                1|
    +-----------------+----------------+----------------+-----------------+
    """

    _handle: Handle
    _source: DataFrame
    _condition: str | Column
    _clauses: tuple[Clause, ...] = ()
    _evolve: bool = False
    _unfinished: NotExecuted = field(default_factory=lambda: NotExecuted("a MERGE"), compare=False)

    def whenMatchedUpdate(
        self, condition: str | Column | None = None, set: Mapping[str, str | Column] | None = None
    ) -> DeltaMergeBuilder:
        """Update rows of the table that a row of the source matches.

        Parameters
        ----------
        condition
            Over both sides; None: all of them.
        set
            By column of the table (`s.a` for a field) an expression over both sides. It has to be given.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders").alias("t")
        >>> new = spark.createDataFrame([(1, "DE", 15.0), (5, "FR", 50.0)], "id long, country string, amount double")
        >>> merge = table.merge(new.alias("s"), "t.id = s.id")
        >>> done = merge.whenMatchedUpdate("s.amount > t.amount", {"amount": "s.amount + t.amount"}).execute()
        >>> table.toDF().where("id = 1").first().amount
        25.0
        """
        return self._with("matched", "update", condition, _require_assignments("set", set))

    def whenMatchedUpdateAll(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Update all columns of matched rows with the columns of the same name in the source.

        Parameters
        ----------
        condition
            SQL text or a Column over both sides; None: all of them.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders").alias("t")
        >>> new = spark.createDataFrame([(1, "DE", 15.0), (5, "FR", 50.0)], "id long, country string, amount double")
        >>> merge = table.merge(new.alias("s"), "t.id = s.id")
        >>> done = merge.whenMatchedUpdateAll("s.country = t.country").execute()
        >>> table.toDF().where("id = 1").first().amount
        15.0
        """
        return self._with("matched", "update", condition, None)

    def whenMatchedDelete(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Delete matched rows.

        Parameters
        ----------
        condition
            SQL text or a Column over both sides; None: all of them.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders").alias("t")
        >>> new = spark.createDataFrame([(1, "DE", 15.0), (5, "FR", 50.0)], "id long, country string, amount double")
        >>> merge = table.merge(new.alias("s"), "t.id = s.id")
        >>> done = merge.whenMatchedDelete().execute()
        >>> sorted(row.id for row in table.toDF().collect())
        [2, 3, 4]
        """
        return self._with("matched", "delete", condition, None)

    def whenNotMatchedInsert(
        self, condition: str | Column | None = None, values: Mapping[str, str | Column] | None = None
    ) -> DeltaMergeBuilder:
        """Insert rows of the source that match none of the table.

        Parameters
        ----------
        condition
            Over the source; None: all of them.
        values
            By column of the table an expression over the source; other columns get their default, or null.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders").alias("t")
        >>> new = spark.createDataFrame([(1, "DE", 15.0), (5, "FR", 50.0)], "id long, country string, amount double")
        >>> merge = table.merge(new.alias("s"), "t.id = s.id")
        >>> done = merge.whenNotMatchedInsert(values={"id": "s.id", "amount": "s.amount * 2"}).execute()
        >>> table.toDF().where("id = 5").first()
        Row(id=5, country=None, amount=100.0)
        """
        return self._with("not_matched", "insert", condition, _require_assignments("values", values))

    def whenNotMatchedInsertAll(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Insert unmatched rows of the source, by the names of their columns.

        Parameters
        ----------
        condition
            SQL text or a Column over the source; None: all of them.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders").alias("t")
        >>> new = spark.createDataFrame([(1, "DE", 15.0), (5, "FR", 50.0)], "id long, country string, amount double")
        >>> merge = table.merge(new.alias("s"), "t.id = s.id")
        >>> done = merge.whenNotMatchedInsertAll("s.amount > 20").execute()
        >>> table.toDF().where("id = 5").first()
        Row(id=5, country='FR', amount=50.0)
        """
        return self._with("not_matched", "insert", condition, None)

    def whenNotMatchedBySourceUpdate(
        self, condition: str | Column | None = None, set: Mapping[str, str | Column] | None = None
    ) -> DeltaMergeBuilder:
        """Update rows of the table that no row of the source matches.

        Parameters
        ----------
        condition
            SQL text or a Column over the table; None: all of them.
        set
            By column of the table an expression over the table. It has to be given.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders").alias("t")
        >>> new = spark.createDataFrame([(1, "DE", 15.0), (5, "FR", 50.0)], "id long, country string, amount double")
        >>> merge = table.merge(new.alias("s"), "t.id = s.id")
        >>> done = merge.whenNotMatchedBySourceUpdate(set={"amount": "0"}).execute()
        >>> sorted(row.amount for row in table.toDF().collect())
        [0.0, 0.0, 0.0, 10.0]
        """
        return self._with("not_matched_by_source", "update", condition, _require_assignments("set", set))

    def whenNotMatchedBySourceDelete(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Delete rows of the table that no row of the source matches.

        Parameters
        ----------
        condition
            SQL text or a Column over the table; None: all of them.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders").alias("t")
        >>> new = spark.createDataFrame([(1, "DE", 15.0), (5, "FR", 50.0)], "id long, country string, amount double")
        >>> merge = table.merge(new.alias("s"), "t.id = s.id")
        >>> done = merge.whenNotMatchedBySourceDelete("t.country = 'DE'").execute()
        >>> sorted(row.id for row in table.toDF().collect())
        [1, 2, 4]
        """
        return self._with("not_matched_by_source", "delete", condition, None)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Let the table take columns of the source that it does not have, and wider types.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders").alias("t")
        >>> new = spark.createDataFrame([(5, "FR", "Lyon")], "id long, country string, city string")
        >>> merge = table.merge(new.alias("s"), "t.id = s.id").withSchemaEvolution()
        >>> done = merge.whenNotMatchedInsertAll().execute()
        >>> table.toDF().columns
        ['id', 'country', 'amount', 'city']
        """
        return replace(self, _evolve=True)

    def execute(self) -> DataFrame:
        """Run the merge.

        Returns
        -------
        DataFrame
            One row of bigint: `num_affected_rows`, `num_updated_rows`, `num_deleted_rows`, `num_inserted_rows`.

        Raises
        ------
        DeltaError
            A clause does not fit, several rows of the source match one row of the table, a row breaks a
            constraint, or another commit contradicts the merge. Nothing was changed.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders").alias("t")
        >>> gone = spark.createDataFrame([(1,), (3,)], "id long")
        >>> merge = table.merge(gone.alias("s"), "t.id = s.id AND t.country = 'DE'")
        >>> merge.whenMatchedDelete().execute().first().num_deleted_rows
        2
        """
        self._unfinished.done()
        return run_merge(self._handle, self._source, self._condition, self._clauses, self._evolve)

    def __repr__(self) -> str:
        return f"<MERGE into {self._handle.where} of {len(self._clauses)} clauses: nothing happens before execute()>"

    if not TYPE_CHECKING:  # which would let every name pass

        def __getattr__(self, name):
            if not name.startswith("_"):
                self._unfinished.done()  # this error says enough
            raise missing_attribute(self, name, "first call execute(), whose answer is a DataFrame")

    def _with(
        self,
        when: When,
        do: Do,
        condition: str | Column | None,
        assignments: Mapping[str, str | Column] | None,
    ) -> DeltaMergeBuilder:
        clause = Clause(when, do, condition, assignments)
        return replace(self, _clauses=(*self._clauses, clause))


def _require_assignments(
    name: str, assignments: Mapping[str, str | Column] | None
) -> dict[str, str | Column]:
    if assignments is None:
        raise InvalidOptionError(
            f"{name!r} of a clause of a merge cannot be None: give columns and what they get, as in "
            f"{name}={{'column': 'expression'}}; for all columns of the source there is a method ...All()"
        )
    return dict(assignments)
