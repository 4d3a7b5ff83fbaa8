"""MERGE in one process, without Spark: threads join files with the source, rewrite or mark them; one commit.

Source: delta-spark, `MergeIntoCommand`, `ClassicMergeExecutor`; conflict-matrix section 7.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from delta_ds.conditions.dml import MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE
from delta_ds.events.commands import COMMAND_REPEATED
from delta_ds.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
)
from delta_ds.kernel.commands.dml.candidates import CandidateFiles, candidate_files
from delta_ds.kernel.commands.dml.commit import DmlCommand, RowScope, commit_dml, discard_folder
from delta_ds.kernel.commands.dml.file_rewrite import FileRewrite, plan_file_rewrite, rewrite_changed_files
from delta_ds.kernel.commands.dml.plan import DmlPlan, check_changeable, evolve_table, plan_dml
from delta_ds.kernel.commands.dml.rewritten import Rewritten, together
from delta_ds.kernel.commands.merge.clauses import (
    changed_rows,
    effective_clauses,
    history_parameters,
)
from delta_ds.kernel.commands.merge.demands import may_equal
from delta_ds.kernel.commands.merge.plan import MergePlan, plan_merge
from delta_ds.kernel.commands.merge.request import MergeRequest, MergeResult
from delta_ds.kernel.commands.merge.rows import MergeRows
from delta_ds.kernel.commands.merge.sides import SOURCE, TARGET, Sides
from delta_ds.kernel.commands.merge.source import MergeSource
from delta_ds.kernel.files.read.ahead import threads_for
from delta_ds.kernel.files.read.plan import ReadPlan
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.evaluate import evaluate
from delta_ds.kernel.format.expressions.tree import conjunction
from delta_ds.kernel.format.operations import MERGE
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.storage.staging import Staging
from delta_ds.kernel.transaction.pending import tracks_rows
from delta_ds.kernel.transaction.write.task import TaskResult, write_rows
from delta_ds.records import dataclass, field, replace

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.transaction.table_log import TableLog

_Answer = TypeVar("_Answer")
_REPEATED = (ConcurrentAppendException, ConcurrentDeleteReadException, ConcurrentDeleteDeleteException)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_USAGE = "https://docs.delta.io/latest/delta-update.html"


def merge(log: TableLog, source: MergeSource, request: MergeRequest) -> MergeResult:
    """Merge rows into a table, as one commit.

    Deletion vectors, change files, row ids, constraints, generated columns and defaults are honoured as by
    `DeltaTable.merge`.

    Parameters
    ----------
    log
        The table.
    source
        The rows.
    request
        What becomes of them.

    Raises
    ------
    DeltaError
        A clause does not fit or holds what only Spark evaluates; several rows of the source match one row of the table
        (`DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE`); a row breaks a constraint; another commit
        contradicts the merge, more often than it may begin anew. Nothing was changed, nothing is left behind.
    """
    table = log.storage.url
    clauses = effective_clauses(request.clauses, table)
    for attempt in range(request.retries + 1):
        snapshot = log.start_transaction().base
        assert snapshot is not None  # a missing table is refused
        try:
            return _Merge(snapshot, source, replace(request, clauses=clauses)).run()
        except _REPEATED as error:
            if attempt == request.retries:
                raise
            COMMAND_REPEATED.log(
                table=table,
                operation=MERGE.name,
                attempt=attempt + 2,
                attempts=request.retries + 1,
                reason=error,
            )
            time.sleep(random.uniform(0, min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0**attempt)))
    raise AssertionError("the last attempt returns or raises")


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found in the files of the table, and made of them.

    Attributes
    ----------
    rewritten
        Of the rows that change.
    inserted
        New rows, as they were written.
    found_ms
        When the rows were found, since the MERGE began.
    """

    rewritten: Rewritten = field(default_factory=Rewritten)
    inserted: TaskResult = field(default_factory=TaskResult)
    found_ms: int = 0


class _Merge:
    """One attempt, on one version."""

    def __init__(self, snapshot: Snapshot, source: MergeSource, request: MergeRequest) -> None:
        self._started = time.monotonic()
        self._snapshot, self._source, self._request = snapshot, source, request
        clauses = request.clauses
        self._changes_rows = any(not clause.inserts for clause in clauses)
        self._inserts = any(clause.inserts for clause in clauses)
        self._by_source = any(clause.is_by_source for clause in clauses)
        check_changeable(snapshot, MERGE.name, self._changes_rows)
        sides = Sides(
            source.schema,
            snapshot.schema,
            request.source_alias,
            request.target_alias,
            snapshot.storage.url,
            request.timezone,
        )
        self._plan: MergePlan = plan_merge(snapshot, sides, request.predicate, clauses, request.merge_schema)
        self._evolves = self._plan.schema != snapshot.schema
        self._dml: DmlPlan = plan_dml(
            snapshot,
            after=evolve_table(snapshot, self._plan.schema) if self._evolves else None,
            computed=self._plan.computed,
            generates=self._plan.generates,
            timezone=request.timezone,
        )
        self._rows = MergeRows(self._plan, source.rows, self._inserts)
        self._wanted = self._wanted_rows()
        self._files: CandidateFiles = candidate_files(snapshot, self._wanted, request.timezone)

    def run(self) -> MergeResult:
        snapshot, dml = self._snapshot, self._dml
        with Staging(snapshot.storage.url) as staged:
            staged.deleted_by(lambda: discard_folder(snapshot, dml.folder))
            found = self._change_rows() if self._changes_rows else self._only_insert()
            result, change = self._outcome(found)
            if not (result.num_output_rows or found.rewritten.rows or self._evolves):
                return replace(result, execution_time_ms=self._elapsed_ms())
            with staged.publishing():
                version = commit_dml(snapshot, change)
            return replace(result, version=version, execution_time_ms=self._elapsed_ms())

    # --- which rows of the table

    def _wanted_rows(self) -> Expression | None:
        """What every row of the table meets whose change hangs on the source; None: all of them count."""
        if self._by_source:
            return None
        sides = self._plan.sides
        parts = [sides.of_target(part) for part in self._plan.conditions if sides.read_by(part) == {TARGET}]
        for key in self._plan.keys:
            if key.target.type is not None and not key.null_safe and sides.read_by(key.source) == {SOURCE}:
                values = evaluate(key.source, self._source_rows())
                parts += may_equal(sides.of_target(key.target), values, key.target.type)
        return conjunction(parts)

    def _source_rows(self) -> pa.Table:
        sides, rows = self._plan.sides, self._source.rows
        return rows.rename_columns([sides.name_of(SOURCE, name) for name in rows.column_names])

    def _reading(self, places: bool) -> ReadPlan:
        """How the columns of the table are read that the MERGE looks at."""
        snapshot, names = self._snapshot, self._rows.columns
        wanted = self._wanted
        return ReadPlan.of(
            snapshot.table_state,
            schema=StructType(tuple(f for f in snapshot.schema if f.name in names)),
            timezone=self._request.timezone,
            metadata_columns=("row_index",) if places else (),
            predicate=None if wanted is None else bind(wanted, snapshot.schema, self._request.timezone),
        )

    # --- what is written

    def _change_rows(self) -> _Found:
        actions = [clause.clause.code for clause in self._plan.clauses]
        rewrite = plan_file_rewrite(
            self._snapshot, self._dml, self._files, actions, repeated=self._may_repeat
        )
        if not self._dml.uses_deletion_vectors:
            self._rows.without(_unchanged_keys(self._plan))
        reading = self._reading(True)
        storage, rows = self._snapshot.storage, self._rows

        def changes(numbers: Iterator[int]) -> Iterator[pa.RecordBatch]:
            for number in numbers:
                for batch in read_slices(storage, reading, [rewrite.files[number]]):
                    yield from rows.changes(batch, number)

        parts = self._in_threads(
            rewrite, lambda numbers, task: rewrite_changed_files(rewrite, changes(numbers), task)
        )
        found = together(parts)
        if found.ambiguous:
            raise MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE(
                table=self._snapshot.storage.url, usageReference=_USAGE
            )
        found_ms = self._elapsed_ms()
        return _Found(found, self._insert(found.sources), found_ms)

    def _only_insert(self) -> _Found:
        rewrite = plan_file_rewrite(self._snapshot, self._dml, self._files, [])
        reading = self._reading(False)
        storage, rows = self._snapshot.storage, self._rows

        def matched(numbers: Iterator[int], task: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
            there = np.zeros(self._source.rows.num_rows, np.bool_)
            for number in numbers:
                for batch in read_slices(storage, reading, [rewrite.files[number]]):
                    for some in rows.matching(batch):
                        there[some] = True
            return there

        there = np.zeros(self._source.rows.num_rows, np.bool_)
        for part in self._in_threads(rewrite, matched):
            there |= part
        found_ms = self._elapsed_ms()
        return _Found(Rewritten(), self._insert(np.flatnonzero(there)), found_ms)

    def _insert(self, matched: np.ndarray[tuple[int], np.dtype[np.int64]]) -> TaskResult:
        if not self._inserts:
            return TaskResult()
        return write_rows(self._dml.inserts, self._rows.insertions(matched), folder=self._dml.folder)

    def _in_threads(
        self, rewrite: FileRewrite, work: Callable[[Iterator[int], int], _Answer]
    ) -> list[_Answer]:
        """What each thread makes of the files that it takes; the first error, once all threads have ended."""
        waiting: SimpleQueue[int] = SimpleQueue()
        for number in rewrite.files:
            waiting.put(number)

        def taken() -> Iterator[int]:
            with suppress(Empty):  # the last file is gone
                while True:
                    yield waiting.get_nowait()

        def run(task: int) -> _Answer:
            try:
                return work(taken(), task)
            except BaseException:
                for _ in taken():
                    pass
                raise

        workers = min(threads_for(self._snapshot.storage), len(rewrite.files))
        if workers < 2:
            return [run(0)] if workers else []
        with ThreadPoolExecutor(workers) as pool:
            return [future.result() for future in [pool.submit(run, task) for task in range(workers)]]

    @property
    def _may_repeat(self) -> bool:
        """Whether several source rows may match one row of the table: all of them delete it."""
        matched = [clause for _, clause in self._plan.of("matched")]
        return len(matched) == 1 and matched[0].clause.do == "delete" and matched[0].condition is None

    # --- commit

    def _outcome(self, found: _Found) -> tuple[MergeResult, DmlCommand]:
        rewritten, vectors = found.rewritten, self._dml.uses_deletion_vectors
        kinds = changed_rows(self._request.clauses, rewritten.by_clause)
        updated = sum(rows for name, rows in kinds.items() if name.endswith("Updated"))
        deleted = sum(rows for name, rows in kinds.items() if name.endswith("Deleted"))
        result = MergeResult(
            None,
            num_source_rows=self._source.rows.num_rows,
            num_target_rows_inserted=found.inserted.rows,
            num_target_rows_updated=updated,
            num_target_rows_deleted=deleted,
            num_target_rows_copied=rewritten.result.rows - updated,
            num_output_rows=rewritten.result.rows + found.inserted.rows,
            num_target_files_scanned=len(self._files),
            num_target_files_skipped_during_scan=self._snapshot.live_files().num_rows - len(self._files),
            num_target_files_added=len(rewritten.result.adds) + len(found.inserted.adds),
            num_target_files_removed=0 if vectors else len(rewritten.files),
            scan_time_ms=found.found_ms - rewritten.milliseconds,
            rewrite_time_ms=self._elapsed_ms() - found.found_ms + rewritten.milliseconds,
        )
        return result, self._command(found, result, kinds)

    def _command(self, found: _Found, result: MergeResult, kinds: Mapping[str, int]) -> DmlCommand:
        request, vectors = self._request, self._dml.uses_deletion_vectors
        touched = self._files.only(found.rewritten.files)
        paths = dict(zip(self._files.numbers.to_pylist(), self._files.paths.to_pylist(), strict=True))
        scope = None
        if tracks_rows(self._snapshot.table_state) and not self._by_source:
            scope = RowScope(self._wanted, misses_count=self._inserts)
        return DmlCommand(
            operation=MERGE.name,
            predicate=self._wanted,
            timezone=request.timezone,
            removed=() if vectors else touched.paths.to_pylist(),
            deleted={paths[number]: rows for number, rows in found.rewritten.positions.items()},
            results=(found.rewritten.result, found.inserted),
            parameters=history_parameters(request.predicate, request.clauses),
            metrics={
                "numTargetRowsCopied": result.num_target_rows_copied,
                "numTargetRowsInserted": result.num_target_rows_inserted,
                "numTargetRowsUpdated": result.num_target_rows_updated,
                "numTargetRowsDeleted": result.num_target_rows_deleted,
                **kinds,
                "numSourceRows": result.num_source_rows,
                "numOutputRows": result.num_output_rows,
                "scanTimeMs": result.scan_time_ms,
                "rewriteTimeMs": result.rewrite_time_ms,
                "executionTimeMs": self._elapsed_ms(),
            },
            plan=self._dml,
            rows=scope,
            user_metadata=request.user_metadata,
            engine_info=request.engine_info,
        )

    def _elapsed_ms(self) -> int:
        return int((time.monotonic() - self._started) * 1000)


def _unchanged_keys(plan: MergePlan) -> list[str]:
    """The columns that are updated to what they are: matching rows have the same value in them."""
    from delta_ds.kernel.format.expressions.coercion import INTEGRAL
    from delta_ds.kernel.format.expressions.tree import Column
    from delta_ds.kernel.format.schema.types import DATE

    found = []
    for key in plan.keys:
        column = plan.sides.of_target(key.target)
        if not isinstance(column, Column) or len(column.path) > 1 or key.null_safe:
            continue
        name = column.path[0]
        updates = [c for _, c in plan.updates if name in c.values]
        if key.target.type in (*INTEGRAL, DATE) and all(
            c.clause.when == "matched" and c.values[name] == key.source for c in updates
        ):
            found.append(name)
    return found
