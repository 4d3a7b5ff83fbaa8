"""MERGE in one process, without Spark: threads join files with the source, rewrite or mark them; one commit.

Source: delta-spark, `MergeIntoCommand`, `ClassicMergeExecutor`; conflict-matrix section 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from delta_ds.conditions.options import REPLACE_USING_UNRESOLVED
from delta_ds.kernel.commands.dml.candidates import (
    CandidateFiles,
    Rewritten,
    candidate_files,
    replacement_metrics,
    with_row_counts,
)
from delta_ds.kernel.commands.dml.changed_rows import DELETE
from delta_ds.kernel.commands.dml.file_rewrite import rewrite_changed_files
from delta_ds.kernel.commands.dml.in_process import CommandSettings, InProcessDml, Task, run
from delta_ds.kernel.commands.dml.plan import FileRewrite, check_names, evolve_table, plan_replacement
from delta_ds.kernel.commands.merge.clauses import (
    Clause,
    MergeRequest,
    MergeResult,
    MergeSource,
    changed_rows,
    counted,
    effective_clauses,
    history_parameters,
    is_relevant,
    read_source,
)
from delta_ds.kernel.commands.merge.plan import MergePlan, may_equal, plan_merge
from delta_ds.kernel.commands.merge.rows import MergeRows
from delta_ds.kernel.commands.merge.sides import Sides
from delta_ds.kernel.files.read.data_file import BATCH_ROWS
from delta_ds.kernel.files.read.file_columns import Layouts
from delta_ds.kernel.files.read.plan import ReadPlan
from delta_ds.kernel.files.read.reader import read_slice
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.coercion import INTEGRAL
from delta_ds.kernel.format.expressions.tree import Column, conjunction, quote_name
from delta_ds.kernel.format.operations import MERGE, WRITE
from delta_ds.kernel.format.schema.types import DATE, StructType
from delta_ds.kernel.transaction.write.finish import write_parameters
from delta_ds.kernel.transaction.write.task import TaskResult, write_rows
from delta_ds.records import replace

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.table_state import TableState
    from delta_ds.kernel.transaction.table_log import TableLog
    from delta_ds.kernel.transaction.write.arrow import Rows
    from delta_ds.kernel.transaction.write.intent import WriteIntent


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
    request = replace(request, clauses=effective_clauses(request.clauses, log.storage.url))
    removes = any(not clause.inserts for clause in request.clauses)
    return run(
        log,
        MERGE.name,
        request.settings,
        lambda change: _Merge(change, source, request).run(),
        MergeResult(None),
        removes=removes,
    )


class _Merge:
    """One attempt, on one version."""

    def __init__(self, change: InProcessDml, source: MergeSource, request: MergeRequest) -> None:
        self._change, self._source, self._request = change, source, request
        self._snapshot = snapshot = change.snapshot
        check_names(source.schema.names, "source", snapshot.storage.url, MERGE.name)
        clauses = request.clauses
        self._inserts = any(clause.inserts for clause in clauses)
        self._by_source = any(clause.is_by_source for clause in clauses)
        sides = Sides(
            source.schema,
            snapshot.schema,
            request.source_alias,
            request.target_alias,
            snapshot.storage.url,
            request.settings.timezone,
            change.now,
        )
        self._plan: MergePlan = plan_merge(snapshot, sides, request.predicate, clauses, request.merge_schema)
        self._evolves = self._plan.schema != snapshot.schema
        change.plan_rows(
            computed=self._plan.computed,
            generates=self._plan.generates,
            after=evolve_table(snapshot, self._plan.schema) if self._evolves else None,
        )
        self._rows = MergeRows(self._plan, source.rows)
        self._wanted = self._wanted_rows()
        self._files: CandidateFiles = candidate_files(snapshot, self._wanted, request.settings.timezone)

    def run(self) -> MergeResult:
        """Do it."""
        actions = [clause.clause.code for clause in self._plan.clauses]
        rewritten = self._change.rewrite(self._task(), self._files, actions)
        if rewritten.ambiguous:  # rows of several batches
            raise self._rows.several_match()
        inserted = self._insert(rewritten)
        rows = self._counts(rewritten, inserted)
        committed_anyway = bool(self._request.settings.txn) or self._commits_nothing(rewritten)
        result = MergeResult(
            None,
            num_source_rows=self._source.rows.num_rows,
            num_target_files_scanned=len(self._files),
            num_target_files_skipped_during_scan=self._snapshot.live_files().num_rows - len(self._files),
        )
        if not (rewritten.rows or inserted.rows or self._evolves or committed_anyway):
            return replace(result, execution_time_ms=self._change.elapsed_ms())
        scope = None if self._by_source else self._change.scope(self._wanted, misses_count=self._inserts)
        committed = self._change.commit(
            self._of_target() if self._request.settings.reads_more else self._wanted,
            files=self._files,
            found=rewritten,
            rows=scope,
            parameters=history_parameters(self._request.predicate, self._request.clauses),
            metrics={**rows, "materializeSourceTimeMs": 0, **self._change.times()},
        )
        return counted(result, committed)

    def _commits_nothing(self, found: Rewritten) -> bool:
        """Whether a session commits, although no row changes: where files would be rewritten, delta-spark does."""
        clauses = self._request.clauses
        if self._request.settings.facts is None or self._change.plan.uses_deletion_vectors:
            return False
        return any(not c.inserts for c in clauses) and is_relevant(clauses, found, len(self._files))

    def _task(self) -> Task:
        marks = self._change.plan.uses_deletion_vectors
        return task_of(self._plan, self._rows, self._snapshot.table_state, self._wanted, marks)

    def _counts(self, found: Rewritten, inserted: TaskResult) -> dict[str, int]:
        kinds = changed_rows(self._request.clauses, found.by_clause)
        updated = sum(rows for name, rows in kinds.items() if name.endswith("Updated"))
        return {
            "numTargetRowsCopied": found.result.rows - updated,
            "numTargetRowsInserted": inserted.rows,
            "numTargetRowsUpdated": updated,
            "numTargetRowsDeleted": sum(rows for name, rows in kinds.items() if name.endswith("Deleted")),
            **kinds,
            "numSourceRows": self._source.rows.num_rows,
            "numOutputRows": found.result.rows + inserted.rows,
        }

    # --- which rows of the table

    def _wanted_rows(self) -> Expression | None:
        """What every row of the table meets whose change hangs on the source; None: all of them count."""
        if self._by_source:
            return None
        return conjunction([*self._plan.demands(), *demands_of_keys(self._plan, self._rows)])

    def _of_target(self) -> Expression | None:
        """What every row meets that some source could change."""
        return None if self._by_source else conjunction(self._plan.demands())

    # --- what is written

    def _insert(self, found: Rewritten) -> TaskResult:
        if not self._inserts:
            return TaskResult()
        plan = self._change.plan
        self._change.owns_folder()
        total = self._source.rows.num_rows - len(found.sources)
        with self._change.phase("inserting", total, "rows") as phase:
            rows = phase.rows(self._rows.insertions(found.sources))
            result = write_rows(plan.inserts_beside(found.rows), rows, folder=plan.folder)
        self._change.wrote(result)
        return result


def demands_of_keys(plan: MergePlan, rows: MergeRows) -> list[Expression]:
    """What every row of the table meets that matches one of the source, by the source's keys; not bound."""
    demands: list[Expression] = []
    for key, values in rows.pairs.key_values:
        if key.target.type is not None and not key.null_safe:
            demands += may_equal(plan.sides.of_target(key.target), values, key.target.type)
    return demands


def task_of(
    plan: MergePlan, rows: MergeRows, state: TableState, wanted: Expression | None, marks: bool
) -> Task:
    """The task that joins files with the source; it can be pickled.

    It rewrites or marks the rows that change; where no clause changes any, it only tells which source rows match.

    Parameters
    ----------
    rows
        Of the plan.
    state
        The version that is changed.
    wanted
        What every row meets whose change hangs on the source, not bound; None: all rows count.
    marks
        Whether rows are marked by deletion vectors: new rows are written as a whole.
    """
    changes = any(not clause.clause.inserts for clause in plan.clauses)
    timezone = plan.sides.timezone
    reading = ReadPlan.of(
        state,
        schema=StructType(tuple(f for f in state.schema if f.name in rows.columns)),
        timezone=timezone,
        metadata_columns=("row_index",) if changes else (),
        predicate=None if wanted is None else bind(wanted, state.schema, timezone),
    )
    if changes and not marks:
        rows.without(_unchanged_keys(plan))
    return partial(_rewrite if changes else _match, reading, rows)


# --- a write whose rows take the place of those with the same keys

_SOURCE_NAME, _TARGET_NAME = "written", "kept"


def replace_using(log: TableLog, rows: Rows, intent: WriteIntent) -> int:
    """Write rows in the place of those rows of a table that have the values of one in some columns, as one commit.

    Parameters
    ----------
    log
        The table, which is there.
    rows
        They are held in memory.
    intent
        What the write is asked to do, by `replaceUsing`.

    Returns
    -------
    int
        The version.

    Raises
    ------
    SchemaError
        The rows do not fit the table, or one of the columns is not there.
    DeltaError
        As `merge`.

    Source: delta-spark, `DeltaInsertReplaceOnOrUsingCommand`.
    """
    source = read_source(rows, intent.time_zone)
    options = intent.options
    settings = CommandSettings(intent.time_zone, options.user_metadata, txn=options.txn)

    def work(change: InProcessDml) -> int:
        return _Replacement(change, source, intent).write()

    return run(log, WRITE.name, settings, work, log.open_snapshot().version)


class _Replacement(_Merge):
    """A MERGE that deletes all rows that match, and a write of all rows of its source."""

    def __init__(self, change: InProcessDml, source: MergeSource, intent: WriteIntent) -> None:
        plan = plan_replacement(change.snapshot, intent, source.schema)
        table = change.snapshot.storage.url
        for name in intent.options.key_columns:
            for kind, schema in (("table", change.snapshot.schema), ("query", source.schema)):
                if schema.find(name) is None:
                    raise REPLACE_USING_UNRESOLVED(
                        colName=name, relationType=kind, table=table, suggestion=sorted(schema.names)[:50]
                    )
        equal = [
            f"{_TARGET_NAME}.{column} = {_SOURCE_NAME}.{column}"
            for column in map(quote_name, intent.options.key_columns)
        ]
        request = MergeRequest(
            " AND ".join(equal),
            (Clause("matched", "delete"),),
            _SOURCE_NAME,
            _TARGET_NAME,
            settings=change.settings,
        )
        super().__init__(change, source, request)
        change.plan = plan

    def write(self) -> int:
        """Do it; the version."""
        change, plan = self._change, self._change.plan
        rewritten = change.rewrite(self._task(), self._files, [DELETE], repeated=True)
        change.owns_folder()
        new_rows = plan.inserts_beside(rewritten.rows)
        written = write_rows(new_rows, self._source.rows.to_batches(), folder=plan.folder)
        change.wrote(written)
        touched, rows_before = self._files.only(rewritten.files), None
        if plan.uses_deletion_vectors and len(touched):
            rows_before = with_row_counts(self._snapshot, touched).num_rows or 0
        return change.commit(
            self._wanted,
            files=self._files,
            found=rewritten,
            rows=change.scope(self._wanted),
            parameters=write_parameters(plan.write),
            metrics=replacement_metrics(rewritten, written.rows, rows_before),
        ).version


def _rewrite(
    reading: ReadPlan, rows: MergeRows, plan: FileRewrite, numbers: Iterable[int], task: int
) -> Rewritten:
    seen = np.zeros(rows.num_source_rows, np.bool_)

    def changes() -> Iterator[pa.RecordBatch]:
        for number, batch in _batches(reading, plan, numbers):
            yield from rows.changes(batch, number, seen)

    rewritten = rewrite_changed_files(plan, changes(), task)
    return replace(rewritten, sources=np.flatnonzero(seen))


def _match(
    reading: ReadPlan, rows: MergeRows, plan: FileRewrite, numbers: Iterable[int], task: int
) -> Rewritten:
    seen = np.zeros(rows.num_source_rows, np.bool_)
    for _, batch in _batches(reading, plan, numbers):
        rows.mark_seen(batch, seen)
    return Rewritten(sources=np.flatnonzero(seen))


def _batches(
    reading: ReadPlan, plan: FileRewrite, numbers: Iterable[int]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of files, one after the other, with the numbers of the files."""
    storage, layouts = plan.change.write.storage, Layouts(reading)
    for number in numbers:
        with closing(read_slice(storage, layouts, plan.files[number], BATCH_ROWS, False)) as batches:
            for batch in batches:
                yield number, batch


def _unchanged_keys(plan: MergePlan) -> list[str]:
    """The columns that are updated to what they are: matching rows have the same value in them."""
    unchanged = []
    for key in plan.keys:
        column = plan.sides.of_target(key.target)
        if not isinstance(column, Column) or len(column.path) > 1 or key.null_safe:
            continue
        name = column.path[0]
        updates = [c for _, c in plan.updates if name in c.values]
        if key.target.type in (*INTEGRAL, DATE) and all(
            c.clause.when == "matched" and c.values[name] == key.source for c in updates
        ):
            unchanged.append(name)
    return unchanged
