"""DELETE in one process, without Spark: threads find the rows and rewrite or mark their files; what was counted.

Source: delta-spark, `DeleteCommand`; conflict-matrix section 7.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from delta_ds.kernel.commands.dml.candidates import CandidateFiles, candidate_files, covered_files
from delta_ds.kernel.commands.dml.changed_rows import DELETE as ROW_GOES
from delta_ds.kernel.commands.dml.commit import Committed, RowScope
from delta_ds.kernel.commands.dml.in_process import CommandSettings, InProcessDml, run
from delta_ds.kernel.commands.dml.row_finder import RowFinder, bound_condition
from delta_ds.kernel.files.rows.expressions import at_timestamp
from delta_ds.kernel.format import operations
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.records import dataclass, field, replace

if TYPE_CHECKING:
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.transaction.table_log import TableLog

_Result = TypeVar("_Result", bound="RowChangeResult")


@dataclass(frozen=True, slots=True)
class RowChangeResult:
    """What a DELETE or UPDATE did. What is counted beside version and rows does not count for equality.

    Attributes
    ----------
    version
        What was committed; None where no row matched, unless the command counts as a transaction: that is recorded.
    rows
        How many rows were deleted or updated; None where whole files went whose rows the log does not count.
    num_copied_rows
        How many other rows were written anew, as their files were.
    num_added_files, num_removed_files, num_added_bytes, num_removed_bytes
        Data files that came and went.
    num_added_change_files
        Files for the change data feed.
    num_deletion_vectors_added, num_deletion_vectors_removed
        Marks of deleted rows; one that was extended counts as both.
    scan_time_ms, rewrite_time_ms, execution_time_ms
        What finding rows, rewriting files, and both took.
    """

    version: int | None
    rows: int | None
    num_copied_rows: int = field(default=0, compare=False)
    num_added_files: int = field(default=0, compare=False)
    num_removed_files: int = field(default=0, compare=False)
    num_added_bytes: int = field(default=0, compare=False)
    num_removed_bytes: int = field(default=0, compare=False)
    num_added_change_files: int = field(default=0, compare=False)
    num_deletion_vectors_added: int = field(default=0, compare=False)
    num_deletion_vectors_removed: int = field(default=0, compare=False)
    scan_time_ms: int = field(default=0, compare=False)
    rewrite_time_ms: int = field(default=0, compare=False)
    execution_time_ms: int = field(default=0, compare=False)


def counted(kind: type[_Result], committed: Committed, rows: int | None) -> _Result:
    """What was committed, as a result of a kind."""
    metrics: Mapping[str, Any] = committed.metrics
    found = {name: metrics.get(metric, 0) for name, metric in _METRICS.items()}
    return kind(committed.version, rows, **found)


_METRICS = {
    "num_copied_rows": "numCopiedRows",
    "num_added_files": "numAddedFiles",
    "num_removed_files": "numRemovedFiles",
    "num_added_bytes": "numAddedBytes",
    "num_removed_bytes": "numRemovedBytes",
    "num_added_change_files": "numAddedChangeFiles",
    "num_deletion_vectors_added": "numDeletionVectorsAdded",
    "num_deletion_vectors_removed": "numDeletionVectorsRemoved",
    "scan_time_ms": "scanTimeMs",
    "rewrite_time_ms": "rewriteTimeMs",
    "execution_time_ms": "executionTimeMs",
}


@dataclass(frozen=True, slots=True)
class DeleteResult(RowChangeResult):
    """What a DELETE did; see `RowChangeResult`.

    Examples
    --------
    >>> from delta_ds import DeltaLog
    >>> DeltaLog("/data/orders").delete("id = 1").num_removed_files
    1
    """

    @property
    def num_deleted_rows(self) -> int | None:
        """`rows`, by delta-rs's name.

        Examples
        --------
        >>> from delta_ds import DeltaLog
        >>> DeltaLog("/data/orders").delete("id = 1").num_deleted_rows
        1
        """
        return self.rows


@dataclass(frozen=True, slots=True)
class UpdateResult(RowChangeResult):
    """What an UPDATE did; see `RowChangeResult`.

    Examples
    --------
    >>> from delta_ds import DeltaLog
    >>> DeltaLog("/data/orders").update({"amount": "0"}, predicate="id = 1").num_added_files
    1
    """

    @property
    def num_updated_rows(self) -> int | None:
        """`rows`, by delta-rs's name.

        Examples
        --------
        >>> from delta_ds import DeltaLog
        >>> DeltaLog("/data/orders").update({"amount": "0"}, predicate="id = 1").num_updated_rows
        1
        """
        return self.rows


def delete(
    log: TableLog,
    predicate: str | Expression | None = None,
    *,
    timezone: str = "UTC",
    user_metadata: str | None = None,
    engine_info: str | None = None,
    txn: tuple[str, int] | None = None,
    retries: int = 0,
) -> DeleteResult:
    """Delete the rows for which a predicate is true, as one commit.

    Deletion vectors, change files, row ids and append-only tables are honoured as by `DeltaTable.delete`.

    Parameters
    ----------
    log
        The table.
    predicate
        In Spark SQL; None: all rows.
    timezone
        The session time zone in which the predicate is meant.
    user_metadata
        Free text for the history.
    engine_info
        Who deletes, for the history.
    txn
        Application and version that the command counts as: it is done once, however often it is tried.
    retries
        How often it is done again, on the newest version, after commits of others contradicted it.

    Raises
    ------
    PredicateError, SchemaError
        The predicate cannot be parsed, names no column, or uses what only Spark can evaluate.
    UnsupportedFeatureError
        The table needs something of writers that is not supported.
    AppendOnlyError
        Rows of the table must not be deleted.
    DeltaConcurrentModificationException
        Another commit contradicts the deletion. Nothing was deleted, nothing is left behind, as with all errors.

    >>> import tempfile, pyarrow as pa
    >>> from delta_ds import DeltaLog
    >>> log = DeltaLog(tempfile.mkdtemp())
    >>> log.write(pa.table({"id": [1, 2, 3]}))
    0
    >>> delete(log, "id > 1").rows
    2
    """
    return delete_rows(log, predicate, CommandSettings(timezone, user_metadata, engine_info, txn, retries))


def delete_rows(
    log: TableLog, predicate: str | Expression | None, settings: CommandSettings, text: str | None = None
) -> DeleteResult:
    """As `delete`.

    Parameters
    ----------
    text
        The predicate as history tells it; None: as it is.
    """
    tree = parse_predicate(predicate) if isinstance(predicate, str) else predicate
    shown = text or (None if predicate is None else str(predicate))
    work = partial(_delete, tree=tree, text=shown)
    return run(log, operations.DELETE.name, settings, work, DeleteResult(None, 0))


def _delete(change: InProcessDml, tree: Expression | None, text: str | None) -> DeleteResult:
    snapshot, timezone = change.snapshot, change.settings.timezone
    parameters = {"predicate": json.dumps([text or "true"], ensure_ascii=False)}
    change.plan_rows()
    if tree is None:
        return _remove(change, candidate_files(snapshot, None, timezone), None, parameters)
    tree = at_timestamp(tree, change.now)
    bound = bound_condition(
        tree,
        snapshot.schema,
        timezone,
        operation="a DELETE from",
        table=snapshot.storage.url,
        undone="Nothing was deleted",
    )
    files = candidate_files(snapshot, tree, timezone)
    whole = covered_files(snapshot, files, bound, timezone)
    if whole is not None:
        return _remove(change, whole, tree, parameters)
    marks = change.plan.uses_deletion_vectors
    if marks:
        # Readers of changes find the rows by the deletion vectors.
        change.plan = replace(change.plan, records_changes=False)
    finder = RowFinder.of(snapshot, bound, timezone)
    found = change.rewrite(finder.rewrite, files, [ROW_GOES])
    if not found.rows and not change.settings.txn:
        return DeleteResult(None, 0)
    committed = change.commit(
        tree,
        files=files,
        found=found,
        rows=RowScope(tree) if marks and not change.settings.reads_more else None,
        parameters=parameters,
        metrics={"numDeletedRows": found.rows, "numCopiedRows": found.result.rows, **change.times()},
    )
    return counted(DeleteResult, committed, found.rows)


def _remove(
    change: InProcessDml, files: CandidateFiles, tree: Expression | None, parameters: Mapping[str, str]
) -> DeleteResult:
    """Remove whole files, without reading them."""
    if not len(files) and not change.settings.txn:
        return DeleteResult(None, 0)
    metrics = {"numDeletedRows": files.num_rows, "numCopiedRows": 0, "scanTimeMs": 0, "rewriteTimeMs": 0}
    committed = change.commit(tree, removed=files.paths.to_pylist(), parameters=parameters, metrics=metrics)
    return counted(DeleteResult, committed, files.num_rows)
