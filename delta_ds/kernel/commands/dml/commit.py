"""The commit of DELETE, UPDATE and MERGE, and the whole command again where other commits contradicted it.

Removed and added files, deletion vectors, change files. Only what is a pure function of the table is repeated: what
reads anything else might do something else the next time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.events.commands import COMMAND_REPEATED
from delta_ds.events.log import ORPHAN_FILES_LEFT
from delta_ds.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    CorruptLogFileError,
    DeltaError,
)
from delta_ds.kernel.base.arrow_buffers import texts
from delta_ds.kernel.base.nested_arrays import array_of_values
from delta_ds.kernel.commands.dml.plan import DmlPlan
from delta_ds.kernel.files.write.live_actions import add_bodies, live_adds, mark_rows
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.format.features import CLUSTERING
from delta_ds.kernel.format.operations import MERGE, WRITE
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import FOLDERS_OF_WRITES
from delta_ds.kernel.storage.staging import StagedFiles, discard
from delta_ds.kernel.transaction.pending import RowChanges
from delta_ds.kernel.transaction.reads import bound_predicate
from delta_ds.kernel.transaction.transaction import Transaction
from delta_ds.kernel.transaction.write.finish import set_table
from delta_ds.kernel.transaction.write.task import FOLDER, TaskResult
from delta_ds.records import dataclass, field

if TYPE_CHECKING:
    import numpy.typing as npt

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage

_Answer = TypeVar("_Answer")

# Rows came, went or changed. Another schema or protocol is for the user to look at.
_REPEATED = (ConcurrentAppendException, ConcurrentDeleteReadException, ConcurrentDeleteDeleteException)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0


@dataclass(frozen=True, slots=True)
class RowScope:
    """What a change of rows hangs on, where its effect on a row follows from that row and nothing else of the table.

    Attributes
    ----------
    wanted
        What every row meets that the outcome depends on; None: any row may.
    misses_count
        Whether it matters too that such a row is not there, as where a MERGE inserts.
    """

    wanted: Expression | None
    misses_count: bool = False


@dataclass(frozen=True, slots=True)
class DmlCommand:
    """A change of rows that is ready to be committed. Can be pickled.

    Attributes
    ----------
    predicate
        What of the table was looked at; None: all of it.
    timezone
        The session time zone.
    removed
        Files that go, by `path` as in the log.
    deleted
        By such a path, the uint64 positions of rows in the file that no longer count, besides those of before.
    results
        What was written.
    operation, parameters, metrics
        For the history. What is counted in files is added here.
    plan
        Where rows were written.
    txn
        Application and version that the change belongs to, for changes that count once however often they are tried.
    rows
        Which rows of others count; None: all in files that are looked at, and in new files of their partitions.
    transaction_id
        The `txnId` of the commit; a new one by default.
    """

    operation: str
    predicate: Expression | None = None
    timezone: str = "UTC"
    removed: Sequence[str] = ()
    deleted: Mapping[str, npt.NDArray[np.uint64]] = field(default_factory=dict)
    results: Sequence[TaskResult] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    plan: DmlPlan | None = None
    user_metadata: str | None = None
    engine_info: str | None = None
    txn: tuple[str, int] | None = None
    rows: RowScope | None = None
    transaction_id: str | None = None

    @property
    def staged(self) -> list[str]:
        """The files that were written, as in actions."""
        return [path for result in self.results for path in result.paths]


@dataclass(frozen=True, slots=True)
class Committed:
    """What a change of rows became.

    Attributes
    ----------
    version
        Of the table.
    metrics
        As the history has them, by delta-spark's names.
    """

    version: int
    metrics: Mapping[str, Any]


def commit_dml(snapshot: Snapshot, change: DmlCommand) -> Committed:
    """Commit a change of rows.

    Parameters
    ----------
    snapshot
        The version that was read.
    change
        What becomes of its rows.

    Raises
    ------
    DeltaConcurrentModificationException
        Another commit came first and contradicts the change. As with every other failure the files of the
        change are deleted, except where a version may name them (`UncertainWriteError`, interrupts).
    """
    with StagedFiles(snapshot.storage, change.staged) as staged:
        transaction = Transaction(
            snapshot.storage, snapshot, engine_info=change.engine_info, use_statistics=change.rows is not None
        )
        transaction.txn_id = change.transaction_id or transaction.txn_id
        read = change.predicate if change.rows is None else change.rows.wanted
        transaction.recorded_scan(read, timezone=change.timezone)
        if change.txn is not None:
            transaction.depend_on_app_id(change.txn[0])
            transaction.set_txn(*change.txn)
        marked = _mark(snapshot, change.deleted, staged)
        rewritten = _rows(snapshot, [*change.removed, *marked.emptied])
        transaction.remove_live(pa.concat_arrays([rewritten, _rows(snapshot, list(marked.bodies))]))
        files = _FileCounts(snapshot, rewritten, change, marked)
        transaction.add_all(marked.bodies.values())
        rows = transaction.rows = _row_changes(snapshot, change, staged)
        for result in change.results:
            transaction.add_all(result.adds)
            for body in result.changes:
                transaction.cdc(body)
        tags = None
        if change.plan is not None:
            tags = set_table(change.plan.write, transaction, change.results)
        metrics = {**change.metrics, **files.metrics()}
        if change.operation == WRITE.name:
            # As delta-spark, which times commands and no writes.
            metrics.pop("executionTimeMs", None)
        version = transaction.commit(
            change.operation,
            change.parameters,
            metrics,
            user_metadata=change.user_metadata,
            tags=tags,
            staged=staged,
        )
    if rows is not None:
        discard(snapshot.storage, sorted(rows.superseded))
    return Committed(version, metrics)


def _row_changes(snapshot: Snapshot, change: DmlCommand, staged: StagedFiles) -> RowChanges | None:
    scope = change.rows
    if scope is None or change.removed:
        return None
    predicate = bound_predicate(snapshot, scope.wanted, change.timezone)
    return RowChanges(change.deleted, predicate, scope.misses_count, staged)


def discard_folder(snapshot: Snapshot, folder: str) -> None:
    """Delete the files of a failed change; what cannot be deleted is logged, and left for VACUUM.

    Parameters
    ----------
    folder
        See `DmlPlan`.
    """
    for place in (folder, f"{FOLDER}/{folder}"):
        _discard_below(snapshot.storage, place)


def _discard_below(storage: Storage, folder: str) -> None:
    try:
        deleter.delete_below(storage, FOLDERS_OF_WRITES, folder)
    except (DeltaError, OSError) as error:
        ORPHAN_FILES_LEFT.log(table=storage.url, folder=folder, reason=error)


@dataclass(frozen=True, slots=True)
class _Marked:
    """Files with new deletion vectors.

    Attributes
    ----------
    bodies
        By path, the `add` with the vector.
    emptied
        Files none of whose rows are left.
    updated
        How many of the first had a vector before.
    """

    bodies: dict[str, AddFile] = field(default_factory=dict)
    emptied: list[str] = field(default_factory=list)
    updated: int = 0


def _mark(snapshot: Snapshot, deleted: Mapping[str, npt.NDArray[np.uint64]], staged: StagedFiles) -> _Marked:
    if not deleted:
        return _Marked()
    bodies = _bodies(snapshot, list(deleted))
    marked = mark_rows(snapshot.storage, bodies, deleted, staged)
    return _Marked(
        marked.adds, marked.emptied, updated=sum("deletionVector" in bodies[path] for path in marked.adds)
    )


def _rows(snapshot: Snapshot, paths: Sequence[str]) -> pa.Int64Array:
    """The rows of live files by their paths."""
    rows = pc.index_in(texts(list(paths)), value_set=snapshot.live_files().table["path"].combine_chunks())
    if rows.null_count:
        gone = paths[rows.is_null().to_pylist().index(True)]
        raise CorruptLogFileError(f"version {snapshot.version} of {snapshot.storage.url} has no file {gone}")
    return rows.cast(pa.int64())


def _bodies(snapshot: Snapshot, paths: Sequence[str]) -> dict[str, AddFile]:
    """The `add` actions of live files, by their paths."""
    tables = _describe_files(snapshot, _rows(snapshot, paths), texts(list(paths)))
    return {body["path"]: body for table in tables for body in add_bodies(table)}


def _describe_files(snapshot: Snapshot, rows: pa.Int64Array, paths: pa.StringArray) -> Iterator[pa.Table]:
    """Files with all that is known of them."""
    live = snapshot.live_files()
    stats = live.stats_json(rows)
    if snapshot.protocol.supports(CLUSTERING) or stats.null_count:
        # Only the log itself has tags, which say what files are clustered already, and all forms of statistics.
        yield from live_adds(snapshot, paths)
        return
    table = live.table.take(rows).append_column("stats", stats)
    if "partitionValues" in table.column_names:
        names = snapshot.physical_partition_columns
        values = table["partitionValues"].to_pylist()
        maps = array_of_values(
            [{name: row[name] for name in names} for row in values], pa.map_(pa.string(), pa.string())
        )
        table = table.set_column(table.column_names.index("partitionValues"), "partitionValues", maps)
    yield table.drop_columns([name for name in ("dataChange",) if name in table.column_names])


class _FileCounts:
    """What a change does to files, in delta-spark's metrics."""

    def __init__(
        self, snapshot: Snapshot, rewritten: pa.Int64Array, change: DmlCommand, marked: _Marked
    ) -> None:
        table = snapshot.live_files().table.take(rewritten)
        vectors = table["deletionVector"]
        self._operation = change.operation
        self._adds = [add for result in change.results for add in result.adds]
        self._changes = sum(len(result.changes) for result in change.results)
        self._removed = table.num_rows
        self._removed_bytes = int(pc.sum(table["size"]).as_py() or 0)
        dropped = table.num_rows - vectors.null_count
        # An updated vector is one that goes and one that comes.
        self._vectors = (len(marked.bodies), dropped + marked.updated, marked.updated)

    def metrics(self) -> dict[str, int]:
        added, removed, updated = self._vectors
        sizes = sum(int(add["size"]) for add in self._adds)
        if self._operation == WRITE.name:
            return {
                "numFiles": len(self._adds) + added,
                "numOutputBytes": sizes,
                "numRemovedFiles": self._removed,
                "numRemovedBytes": self._removed_bytes,
                "numAddedChangeFiles": self._changes,
            }
        if self._operation == MERGE.name:
            return {
                "numTargetFilesAdded": len(self._adds),
                "numTargetBytesAdded": sizes,
                "numTargetFilesRemoved": self._removed,
                "numTargetBytesRemoved": self._removed_bytes,
                "numTargetChangeFilesAdded": self._changes,
                "numTargetDeletionVectorsAdded": added,
                "numTargetDeletionVectorsRemoved": removed,
                "numTargetDeletionVectorsUpdated": updated,
            }
        return {
            "numAddedFiles": len(self._adds),
            "numAddedBytes": sizes,
            "numRemovedFiles": self._removed,
            "numRemovedBytes": self._removed_bytes,
            "numAddedChangeFiles": self._changes,
            "numDeletionVectorsAdded": added,
            "numDeletionVectorsRemoved": removed,
            "numDeletionVectorsUpdated": updated,
        }


def run_repeated(
    attempt: Callable[[], _Answer],
    retries: int,
    *,
    table: str,
    operation: str,
    repeatable: Callable[[], bool] = lambda: True,
) -> _Answer:
    """Do something, and again after a pause where others have changed rows that it reads or changes.

    Parameters
    ----------
    attempt
        Begins anew on the newest version each time.
    retries
        How often it is done again at most.
    table, operation
        For the log.
    repeatable
        Whether the attempt that failed may be repeated.

    Raises
    ------
    DeltaConcurrentModificationException
        That of the last attempt.
    """
    attempts = 1 + retries
    for number in range(1, attempts):
        pause = random.uniform(0, min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0**number))
        try:
            return attempt()
        except _REPEATED as error:
            if not repeatable():
                raise
            COMMAND_REPEATED.log(
                table=table, operation=operation, attempt=number + 1, attempts=attempts, reason=error
            )
            time.sleep(pause)
    return attempt()
