"""DELETE in one process, without Spark: threads find the rows and rewrite or mark their files.

Source: delta-spark, `DeleteCommand`; conflict-matrix section 7.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.base.arrow_buffers import integers
from delta_ds.kernel.commands.dml.candidates import CandidateFiles, candidate_files
from delta_ds.kernel.commands.dml.changed_rows import CLAUSE, FILE, ROW
from delta_ds.kernel.commands.dml.changed_rows import DELETE as ROW_GOES
from delta_ds.kernel.commands.dml.commit import DmlCommand, RowScope, commit_dml, discard_folder
from delta_ds.kernel.commands.dml.file_rewrite import FileRewrite, plan_file_rewrite, rewrite_changed_files
from delta_ds.kernel.commands.dml.plan import check_changeable, plan_dml
from delta_ds.kernel.commands.dml.rewritten import Rewritten, together
from delta_ds.kernel.files.read.ahead import threads_for
from delta_ds.kernel.files.read.matching import Matching
from delta_ds.kernel.files.read.plan import ReadPlan
from delta_ds.kernel.format import operations
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.evaluate import unevaluable
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.storage.staging import Staging
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    import numpy.typing as npt

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.transaction.table_log import TableLog

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """What a DELETE did.

    Attributes
    ----------
    version
        What was committed; None where no row matched.
    rows
        How many rows were deleted; None where whole files went whose rows the log does not count.
    """

    version: int | None
    rows: int | None


def delete(
    log: TableLog,
    predicate: str | None = None,
    *,
    timezone: str = "UTC",
    user_metadata: str | None = None,
    engine_info: str | None = None,
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
    started = time.monotonic()
    snapshot = log.start_transaction().base
    assert snapshot is not None  # a missing table is refused
    check_changeable(snapshot, operations.DELETE.name, True)
    tree = None if predicate is None else parse_predicate(predicate)
    files = candidate_files(snapshot, tree, timezone)
    change = DmlCommand(
        operation=operations.DELETE.name,
        predicate=tree,
        timezone=timezone,
        parameters={"predicate": json.dumps([predicate or "true"], ensure_ascii=False)},
        user_metadata=user_metadata,
        engine_info=engine_info,
    )
    if tree is None:
        return _remove_all(snapshot, files, change)
    return _Deletion(snapshot, _bound(snapshot, tree, timezone), files, change, started).run()


def _bound(snapshot: Snapshot, tree: Expression, timezone: str) -> Expression:
    bound = bind(tree, snapshot.schema, timezone)
    unknown = unevaluable(bound)
    if unknown is not None:
        raise PredicateError(
            f"{unknown} in a DELETE from {snapshot.storage.url} cannot be evaluated without Spark. Nothing was deleted"
        )
    return bound


def _remove_all(snapshot: Snapshot, files: CandidateFiles, change: DmlCommand) -> DeleteResult:
    if not len(files):
        return DeleteResult(None, 0)
    metrics = {"numDeletedRows": files.num_rows, "numCopiedRows": 0, "scanTimeMs": 0, "rewriteTimeMs": 0}
    whole = replace(change, removed=files.paths.to_pylist(), metrics=metrics)
    return DeleteResult(commit_dml(snapshot, whole), files.num_rows)


class _Deletion:
    """The deletion of the rows that match."""

    def __init__(
        self,
        snapshot: Snapshot,
        predicate: Expression,
        files: CandidateFiles,
        change: DmlCommand,
        started: float,
    ) -> None:
        self._snapshot = snapshot
        self._files = files
        self._change = change
        self._started = started
        self._plan = plan_dml(snapshot, timezone=change.timezone)
        self._rewrite: FileRewrite = plan_file_rewrite(snapshot, self._plan, files, [ROW_GOES])
        reading = ReadPlan.of(
            snapshot.table_state,
            schema=StructType(),
            timezone=change.timezone,
            metadata_columns=("row_index",),
            predicate=predicate,
        )
        self._matching = Matching(reading, snapshot.schema)

    def run(self) -> DeleteResult:
        snapshot, plan = self._snapshot, self._plan
        with Staging(snapshot.storage.url) as staged:
            if plan.uses_deletion_vectors:
                change, rows = self._mark()
            else:
                staged.deleted_by(lambda: discard_folder(snapshot, plan.folder))
                change, rows = self._replace()
            if not rows:
                return DeleteResult(None, 0)
            with staged.publishing():
                return DeleteResult(commit_dml(snapshot, change), rows)

    def _mark(self) -> tuple[DmlCommand, int]:
        """The rows become part of deletion vectors; readers of changes find them there."""
        found = dict(self._in_threads(self._places, list(self._rewrite.files)))
        paths = dict(zip(self._files.numbers.to_pylist(), self._files.paths.to_pylist(), strict=True))
        deleted = {paths[number]: places.astype(np.uint64) for number, places in found.items() if len(places)}
        rows = sum(map(len, deleted.values()))
        metrics = {
            "numDeletedRows": rows,
            "numCopiedRows": 0,
            "scanTimeMs": self._elapsed_ms(),
            "rewriteTimeMs": 0,
        }
        scope = RowScope(self._change.predicate)
        return replace(self._change, deleted=deleted, rows=scope, metrics=self._timed(metrics)), rows

    def _replace(self) -> tuple[DmlCommand, int]:
        """Files with such rows are written anew without them."""
        found = together(self._in_threads(self._rewritten, list(self._rewrite.files)))
        metrics = {
            "numDeletedRows": found.rows,
            "numCopiedRows": found.result.rows,
            "scanTimeMs": self._elapsed_ms() - found.milliseconds,
            "rewriteTimeMs": found.milliseconds,
        }
        removed = self._files.only(found.files).paths.to_pylist()
        change = replace(
            self._change,
            removed=removed,
            results=(found.result,),
            plan=self._plan,
            metrics=self._timed(metrics),
        )
        return change, found.rows

    def _rewritten(self, number: int) -> Rewritten:
        _, places = self._places(number)
        if not len(places):
            return Rewritten()
        columns = {FILE: np.full(len(places), number), ROW: places, CLAUSE: np.zeros(len(places), np.int64)}
        batch = pa.RecordBatch.from_arrays([integers(c) for c in columns.values()], names=list(columns))
        return rewrite_changed_files(self._rewrite, [batch], number)

    def _places(self, number: int) -> tuple[int, npt.NDArray[np.int64]]:
        """The positions of the rows of a file that match."""
        batches = self._matching.read(self._snapshot.storage, self._rewrite.files[number])
        found = [np.asarray(batch.column(0).field("row_index")) for batch in batches]
        return number, np.concatenate([np.empty(0, np.int64), *found])

    def _in_threads(self, function: Callable[[int], _Answer], numbers: Sequence[int]) -> list[_Answer]:
        """What a function answers for every file; the first error, once all threads have ended."""
        with ThreadPoolExecutor(threads_for(self._snapshot.storage)) as pool:
            work = [pool.submit(function, number) for number in numbers]
            try:
                return [future.result() for future in work]
            finally:
                pool.shutdown(cancel_futures=True)

    def _elapsed_ms(self) -> int:
        return int((time.monotonic() - self._started) * 1000)

    def _timed(self, metrics: dict[str, int]) -> dict[str, int]:
        return {**metrics, "executionTimeMs": self._elapsed_ms()}
