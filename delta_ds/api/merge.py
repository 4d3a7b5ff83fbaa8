"""`TableMerger`: a MERGE without Spark, its clauses given one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from delta_ds.kernel.base.arguments import checked
from delta_ds.records import replace

if TYPE_CHECKING:
    from delta_ds.kernel.commands.merge.clauses import (
        Clause,
        Do,
        MergeRequest,
        MergeResult,
        MergeSource,
        When,
    )
    from delta_ds.kernel.transaction.table_log import TableLog
    from delta_ds.kernel.transaction.write.arrow import Rows


@checked
class TableMerger:
    """A merge of rows into a table: clauses are added one by one, `execute` runs it; made by `DeltaLog.merge`.

    Of the clauses for the same rows the first counts whose condition holds. Every method but `execute` gives the merger
    itself. Names and arguments are those of `deltalake.table.TableMerger`, conditions and values are Spark SQL.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from delta_ds import DeltaLog
    >>> new = pa.table({"id": [1, 5], "country": ["DE", "FR"], "amount": [15.0, 50.0]})
    >>> merger = DeltaLog("/data/orders").merge(new, "t.id = s.id", "s", "t")
    >>> result = merger.when_matched_update_all().when_not_matched_insert_all().execute()
    >>> result.num_target_rows_updated, result.num_target_rows_inserted
    (1, 1)
    """

    def __init__(self, log: TableLog, source: Rows, request: MergeRequest) -> None:
        self._log = log
        self._source = source
        self._request = request
        self._read: MergeSource | None = None

    def when_matched_update(self, updates: Mapping[str, str], predicate: str | None = None) -> TableMerger:
        """Update rows of the table that a row of the source matches.

        Parameters
        ----------
        updates
            By column of the table an expression over both sides.
        predicate
            Over both sides; None: all of them.

        Examples
        --------
        >>> import pyarrow as pa
        >>> log = DeltaLog("/data/orders")
        >>> new = pa.table({"id": [1], "amount": [5.0]})
        >>> merger = log.merge(new, "t.id = s.id", "s", "t")
        >>> merger.when_matched_update({"amount": "t.amount + s.amount"}).execute().version
        2
        >>> log.snapshot().scan("id = 1").to_arrow()["amount"].to_pylist()
        [15.0]
        """
        return self._with("matched", "update", predicate, updates)

    def when_matched_update_all(
        self, predicate: str | None = None, except_cols: Sequence[str] | None = None
    ) -> TableMerger:
        """Update all columns of matched rows with the columns of the same name in the source.

        Parameters
        ----------
        predicate
            Over both sides; None: all of them.
        except_cols
            Columns that stay as they are.

        Examples
        --------
        >>> import pyarrow as pa
        >>> log = DeltaLog("/data/orders")
        >>> new = pa.table({"id": [1], "amount": [5.0]})
        >>> merger = log.merge(new, "t.id = s.id", "s", "t")
        >>> merger.when_matched_update_all(except_cols=["country"]).execute().num_target_rows_updated
        1
        """
        return self._with("matched", "update", predicate, None, except_cols)

    def when_matched_delete(self, predicate: str | None = None) -> TableMerger:
        """Delete matched rows.

        Parameters
        ----------
        predicate
            Over both sides; None: all of them.

        Examples
        --------
        >>> import pyarrow as pa
        >>> merger = DeltaLog("/data/orders").merge(pa.table({"id": [1, 3]}), "target.id = source.id")
        >>> merger.when_matched_delete().execute().num_target_rows_deleted
        2
        """
        return self._with("matched", "delete", predicate, None)

    def when_not_matched_insert(
        self, updates: Mapping[str, str], predicate: str | None = None
    ) -> TableMerger:
        """Insert rows of the source that match none of the table.

        Parameters
        ----------
        updates
            By column of the table an expression over the source; other columns get their default, or null.
        predicate
            Over the source; None: all of them.

        Examples
        --------
        >>> import pyarrow as pa
        >>> log = DeltaLog("/data/orders")
        >>> merger = log.merge(pa.table({"id": [9], "price": [2.0]}), "t.id = s.id", "s", "t")
        >>> result = merger.when_not_matched_insert({"id": "s.id", "amount": "s.price * 2"}).execute()
        >>> log.snapshot().scan("id = 9").to_arrow().to_pylist()
        [{'id': 9, 'country': None, 'amount': 4.0}]
        """
        return self._with("not_matched", "insert", predicate, updates)

    def when_not_matched_insert_all(
        self, predicate: str | None = None, except_cols: Sequence[str] | None = None
    ) -> TableMerger:
        """Insert unmatched rows of the source, by the names of their columns.

        Parameters
        ----------
        predicate
            Over the source; None: all of them.
        except_cols
            Columns that get their default, or null.

        Examples
        --------
        >>> import pyarrow as pa
        >>> new = pa.table({"id": [1, 9], "country": ["DE", "FR"], "amount": [1.0, 2.0]})
        >>> merger = DeltaLog("/data/orders").merge(new, "t.id = s.id", "s", "t")
        >>> merger.when_not_matched_insert_all("s.amount > 1").execute().num_target_rows_inserted
        1
        """
        return self._with("not_matched", "insert", predicate, None, except_cols)

    def when_not_matched_by_source_update(
        self, updates: Mapping[str, str], predicate: str | None = None
    ) -> TableMerger:
        """Update rows of the table that no row of the source matches.

        Parameters
        ----------
        updates
            By column of the table an expression over the table.
        predicate
            Over the table; None: all of them.

        Examples
        --------
        >>> import pyarrow as pa
        >>> merger = DeltaLog("/data/orders").merge(pa.table({"id": [1]}), "t.id = s.id", "s", "t")
        >>> merger.when_not_matched_by_source_update({"amount": "0"}).execute().num_target_rows_updated
        3
        """
        return self._with("not_matched_by_source", "update", predicate, updates)

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> TableMerger:
        """Delete rows of the table that no row of the source matches.

        Parameters
        ----------
        predicate
            Over the table; None: all of them.

        Examples
        --------
        >>> import pyarrow as pa
        >>> merger = DeltaLog("/data/orders").merge(pa.table({"id": [1]}), "t.id = s.id", "s", "t")
        >>> merger.when_not_matched_by_source_delete("t.country = 'DE'").execute().num_target_rows_deleted
        1
        """
        return self._with("not_matched_by_source", "delete", predicate, None)

    def execute(self) -> MergeResult:
        """Run the merge.

        Raises
        ------
        DeltaError
            A clause does not fit, or holds what only Spark evaluates; several rows of the source match one row of the
            table; a row breaks a constraint, or another commit contradicts the merge. Nothing was changed.

        Examples
        --------
        >>> import pyarrow as pa
        >>> merger = DeltaLog("/data/orders").merge(pa.table({"id": [1, 3]}), "target.id = source.id")
        >>> merger.when_matched_delete().execute().version
        2
        """
        from delta_ds.kernel.commands.merge.clauses import effective_clauses, read_source
        from delta_ds.kernel.commands.merge.command import merge

        # What is wrong with the clauses is told before the source is read.
        effective_clauses(self._request.clauses, self._log.storage.url)
        if self._read is None:  # a stream gives its rows once
            self._read = read_source(self._source, self._request.settings.timezone)
        return merge(self._log, self._read, self._request)

    def __repr__(self) -> str:
        count = len(self._request.clauses)
        return f"<MERGE into {self._log.storage.url} of {count} clauses: nothing happens before execute()>"

    def _with(
        self,
        when: When,
        do: Do,
        condition: str | None,
        assignments: Mapping[str, str] | None,
        leaves_out: Sequence[str] | None = None,
    ) -> TableMerger:
        from delta_ds.kernel.commands.merge.clauses import Clause

        given = None if assignments is None else dict(assignments)
        clause: Clause = Clause(when, do, condition, given, tuple(leaves_out or ()))
        self._request = replace(self._request, clauses=(*self._request.clauses, clause))
        return self
