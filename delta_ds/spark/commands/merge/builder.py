"""`DeltaMergeBuilder`, and the start of a MERGE.

Source: delta-spark, `DeltaMergeBuilder`, `MergeIntoCommand`; conflict-matrix section 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_ds.exceptions import InvalidOptionError
from delta_ds.records import dataclass, replace
from delta_ds.spark.arguments import public_methods
from delta_ds.spark.commands.handle import Handle
from delta_ds.spark.commands.merge.clauses import Clause, Do, When
from delta_ds.spark.commands.merge.run import run_merge

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@public_methods
@dataclass(frozen=True)
class DeltaMergeBuilder:
    """A merge of a source into a table: clauses are added one by one, `execute` runs it.

    Of the clauses for the same rows the first counts whose condition holds. Made by `DeltaTable.merge`.
    """

    _handle: Handle
    _source: DataFrame
    _condition: str | Column
    _clauses: tuple[Clause, ...] = ()
    _evolve: bool = False

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
        """
        return self._with("matched", "update", condition, _require_assignments("set", set))

    def whenMatchedUpdateAll(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Update all columns of matched rows with the columns of the same name in the source."""
        return self._with("matched", "update", condition, None)

    def whenMatchedDelete(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Delete matched rows."""
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
        """
        return self._with("not_matched", "insert", condition, _require_assignments("values", values))

    def whenNotMatchedInsertAll(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Insert unmatched rows of the source, by the names of their columns."""
        return self._with("not_matched", "insert", condition, None)

    def whenNotMatchedBySourceUpdate(
        self, condition: str | Column | None = None, set: Mapping[str, str | Column] | None = None
    ) -> DeltaMergeBuilder:
        """Update rows of the table that no row of the source matches; expressions see the table only."""
        return self._with("not_matched_by_source", "update", condition, _require_assignments("set", set))

    def whenNotMatchedBySourceDelete(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Delete rows of the table that no row of the source matches."""
        return self._with("not_matched_by_source", "delete", condition, None)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Let the table take columns of the source that it does not have."""
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
        """
        return run_merge(self._handle, self._source, self._condition, self._clauses, self._evolve)

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
            f"{name!r} of a clause of a merge is missing: columns and what they get, as in "
            f"{name}={{'column': 'expression'}}; for all columns of the source there is a method ...All()"
        )
    return dict(assignments)
