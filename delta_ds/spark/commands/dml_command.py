"""The course of DELETE, UPDATE and MERGE: pin a version, write rows, commit once, clean up on failure."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from delta_ds.events.commands import ROWS_FOUND_BY_SPARK, RULES_BY_SPARK
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.commands.dml.candidates import CandidateFiles, Rewritten
from delta_ds.kernel.commands.dml.changed_rows import CLAUSE
from delta_ds.kernel.commands.dml.commit import DmlCommand, RowScope, commit_dml, discard_folder
from delta_ds.kernel.commands.dml.plan import (
    DmlPlan,
    check_changeable,
    check_names,
    plan_dml,
    plan_replacement,
)
from delta_ds.kernel.commands.optimize.auto_compact import AutoCompaction, auto_compaction_of, compact_after
from delta_ds.kernel.format.actions import Metadata
from delta_ds.kernel.format.options.settings import (
    BY_FILES,
    BY_ROWS,
    CONFLICT_DETECTION,
    USER_METADATA,
    conflict_detection,
)
from delta_ds.kernel.format.options.write import checked_codec
from delta_ds.kernel.format.schema.column_paths import HIDDEN
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.transaction.pending import tracks_rows
from delta_ds.kernel.transaction.write.intent import has_transaction
from delta_ds.kernel.transaction.write.plan import WritePlan
from delta_ds.kernel.transaction.write.task import TaskResult, write_rows
from delta_ds.records import dataclass, replace
from delta_ds.redaction import redacted
from delta_ds.spark.base.kinds.frames import frame_of, run_tasks, tasks_counted, work_of
from delta_ds.spark.base.kinds.session_facts import engine_info, use_txn
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.commands.by_arrow import ByArrow, rewrite_files, staging
from delta_ds.spark.commands.dml_target import DmlTarget, begin_explained, end_if_explained
from delta_ds.spark.commands.handle import Handle
from delta_ds.spark.engines.classic.catalyst_values import OnlySpark
from delta_ds.spark.engines.seam.shipping import bring_package

if TYPE_CHECKING:
    import numpy.typing as npt
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.schema.types import StructType
    from delta_ds.kernel.transaction.write.intent import WriteIntent
    from delta_ds.spark.engines.seam.engine import RowRules, TablesRead

_Answer = TypeVar("_Answer")


class DmlExecution(AbstractContextManager["DmlExecution"]):
    """A command that changes rows. Used as a context: what it wrote is deleted at its end, unless it was committed.

    Parameters
    ----------
    handle
        The table.
    operation
        Its name in the history.
    removes
        Whether rows of the table may be changed or removed; an append-only table refuses that.
    txn
        The application and version that the command counts as; None for those of the session.

    Attributes
    ----------
    target
        The table at the version that is read.
    plan
        How rows are written; there once `plan_rows` was called.
    done
        Whether the table has the transaction already that the command counts as: there is nothing to do.
    is_function_of_rows
        Whether its expressions depend on nothing but the row they are computed for, as far as they tell. The command
        says so. Where queries are seen to read tables, that counts instead.
    repeatable
        Whether the command is a pure function of the table, so that it may be done again after a conflict; see
        `run_command`. The command says so.

    Raises
    ------
    DeltaError
        The table cannot be changed by this package, or not at all.
    """

    plan: DmlPlan

    def __init__(
        self, handle: Handle, operation: str, *, removes: bool = True, txn: tuple[str, int] | None = None
    ) -> None:
        self._started = time.monotonic()
        self.operation = operation
        self.target = DmlTarget(handle)
        begin_explained(self.target)
        self.target.ask(check_changeable, operation, removes)
        check_names(self.target.schema.names, "table", handle.where, operation)
        self._by_session = txn is None
        self._txn = self.target.facts.txn if txn is None else txn
        self.done = self._txn is not None and bool(self.target.ask(has_transaction, self._txn))
        self.repeatable = False
        self.is_function_of_rows = False
        self._results: list[TaskResult] = []
        self._changed_rows = 0
        self._writes = self._committed = False
        self._guard = staging(handle.where)
        self._pinned_snapshots, self._reported = ExitStack(), ExitStack()
        self._tables_read: TablesRead | None = None
        self._by_spark: _BySpark | None = None

    def plan_rows(
        self,
        *,
        computed: Collection[str] = (),
        generates: Collection[str] = (),
        after: TableState | None = None,
    ) -> None:
        """Decide how rows are written: once, before any is; parameters as of `plan_dml`."""
        target = self.target
        self._plan_by(
            partial(
                plan_dml,
                computed=tuple(computed),
                generates=tuple(generates),
                after=after,
                timezone=target.timezone,
                facts=target.facts,
            )
        )

    def plan_replacement(self, intent: WriteIntent, data: StructType) -> None:
        """The same of a write whose rows take the place of others; parameters as of the kernel's `plan_replacement`."""
        self._plan_by(partial(plan_replacement, intent=intent, data=data))

    def _plan_by(self, plan: Callable[..., DmlPlan]) -> None:
        target = self.target
        try:
            self.plan = self._task_plan = target.ask(plan)
        except DeltaError as why:
            if (rules := target.engine.row_rules()) is None:
                raise
            self.plan = target.ask(partial(plan, columns_of=rules.columns_of))
            self._task_plan = replace(self.plan, write=self.plan.write.of_stored_rows)
            self._by_spark = _BySpark(rules, why)

    def __enter__(self) -> DmlExecution:
        self._work = self._reported.enter_context(
            work_of(self.target.spark, self.operation, self.target.handle.where)
        )
        self._staged = self._guard.__enter__()
        pinned = self.target.engine.pinned(self.target.snapshot)
        self._tables_read = self._pinned_snapshots.enter_context(pinned)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        try:
            handled = self._guard.__exit__(kind, error, trace)
        finally:
            self._pinned_snapshots.close()
            self._reported.__exit__(kind, error, trace)
        if self._committed:
            self.target.engine.refresh(self.target.handle.where)
        if error is None and self._by_session:
            use_txn(self.target.handle.spark, self.target.facts)
        return handled

    # --- rows

    def insert(self, frame: DataFrame) -> int:
        """Write new rows, after `rewrite`, given by the table's columns but those that are computed; how many."""
        self._begin_to_write()
        plan, folder = self.plan.inserts_beside(self._changed_rows), self.plan.folder
        if self._results:
            # Spark's writer makes the folder that it writes to.
            folder = f"{folder}/{len(self._results)}"
        problem = None
        if self.plan.records_changes and self._changed_rows:
            problem = "rows of the change data feed are written along with the rows"
        target = self.target
        with self._work.phase("writing", unit="tasks") as phase, tasks_counted(target.spark, phase):
            native = target.engine.write(frame, plan, target.handle.options, folder, problem)
            results = [native] if native is not None else self._insert_by_tasks(frame, plan, folder)
        self._results += results
        return sum(result.rows for result in results)

    def _insert_by_tasks(self, frame: DataFrame, plan: WritePlan, folder: str) -> list[TaskResult]:
        self._bring_package()
        if self._by_spark is not None:
            frame, plan = self._by_spark.applied(frame, plan), plan.of_stored_rows
        return run_tasks(frame, partial(write_rows, plan, folder=folder))

    def rewrite(
        self,
        rows_of: Callable[[CandidateFiles], DataFrame],
        files: CandidateFiles,
        actions: Sequence[int],
        *,
        repeated: bool = False,
    ) -> Rewritten:
        """Rewrite the files in which rows change; see `by_arrow.rewrite_files`."""
        if len(files):
            self._bring_package()
            self._begin_to_write()
        with (
            self._work.phase("rewriting", unit="tasks") as phase,
            tasks_counted(self.target.spark, phase),
        ):
            found = rewrite_files(self.target, self._task_plan, rows_of, files, actions, repeated=repeated)
        self._results.append(found.result)
        self._changed_rows += found.rows
        return found

    def by_arrow(self, work: Callable[[ByArrow], _Answer], *, deletes: bool = False) -> _Answer | None:
        """Do the command by Arrow, where that gives what Spark would.

        Parameters
        ----------
        work
            Does it; raises `OnlySpark` where Spark has to. It may be done again then, by Spark.
        deletes
            Whether rows are deleted, and nothing else.

        Returns
        -------
        object
            The answer of `work`; None where Spark has to, which is told. What was written is deleted.
        """
        plan = replace(self._task_plan, folder=str(uuid.uuid4()))
        marks_only = deletes and plan.uses_deletion_vectors
        if marks_only:
            # Readers of changes find the rows by the deletion vectors.
            plan = replace(plan, records_changes=False)
        else:
            checked_codec(self.target.facts.codec)
        discard = partial(self.target.run, discard_folder, plan.folder)
        attempt = ByArrow(self.target, plan, self._work, self._bring_package)
        began = False
        try:
            if self.target.snapshot is None:
                raise OnlySpark("the log is on the server of Spark Connect")
            if self._by_spark is not None and not deletes:
                raise OnlySpark("only Spark evaluates what the table demands of rows")
            self._staged.deleted_by(discard)
            began = True
            with self.target.as_it_was_after(OnlySpark):
                answer = work(attempt)
        except OnlySpark as why:
            end_if_explained(self.target, "found by a query of Spark", reason=why.reason)
            where, reason = self.target.handle.where, redacted(why.reason)
            ROWS_FOUND_BY_SPARK.log(table=where, operation=self.operation, reason=reason)
            if began:
                discard()
            return None
        self._results += attempt.results
        return answer

    def columns_of_new_rows(self, given: Collection[str]) -> list[str]:
        """The columns of updated rows that `rows_to_update` needs: those that get new values, or all."""
        rows = self.plan.write.rows
        if self._by_spark is None:
            return [name for name in rows.table.names if name in given]
        computed = {generated.column for generated in rows.generated}
        return [name for name in rows.table.names if name not in computed]

    def rows_to_update(self, rows: DataFrame, given: Collection[str], updates: Collection[int]) -> DataFrame:
        """Rows that change, as tasks take them: places and new values.

        What tasks cannot evaluate, Spark has: a row that breaks a constraint makes the query fail.

        Parameters
        ----------
        rows
            Places, `CLAUSE`, and `columns_of_new_rows`.
        given
            The columns that get new values.
        updates
            The numbers of the clauses that update; values of other rows mean nothing.
        """
        if self._by_spark is None or not updates:
            return rows
        plan = replace(self.plan.write, rows=replace(self.plan.write.rows, identities=()))
        places = [name for name in rows.columns if name.startswith(HIDDEN)]
        others = f"{quoted(CLAUSE)} NOT IN ({', '.join(map(str, updates))})"
        found = self._by_spark.applied(rows, plan, places, others)
        new = {*given, *(generated.column for generated in plan.rows.generated)}
        return found.select(*places, *(quoted(name) for name in plan.rows.table.names if name in new))

    def _bring_package(self) -> None:
        bring_package(self.target.spark, self.operation, self.target.handle.where)

    def _begin_to_write(self) -> None:
        if not self._writes:
            checked_codec(self.target.facts.codec)
            self._writes = True
            self._staged.deleted_by(partial(self.target.run, discard_folder, self.plan.folder))

    # --- commit

    def elapsed_ms(self) -> int:
        """Milliseconds since the command began."""
        return int((time.monotonic() - self._started) * 1000)

    @property
    def is_checked_by_files(self) -> bool:
        """Whether files alone decide what contradicts the command, by the session and the table."""
        by = conflict_detection(self.target.facts.settings.get(CONFLICT_DETECTION))
        return by == BY_FILES or (by == BY_ROWS and not tracks_rows(self.target.state))

    @property
    def reads_more(self) -> bool:
        """Whether the command may have read more of the table than the rows it looks for."""
        seen, snapshot = self._tables_read, self.target.snapshot
        if seen is None or snapshot is None:
            return not self.is_function_of_rows
        return seen.reads(snapshot.storage)

    def _scope(self, rows: RowScope | None) -> RowScope | None:
        """What others must leave alone; None where that is files, or the command read more of the table."""
        if rows is None or self.reads_more:
            return None
        return None if self.is_checked_by_files else rows

    def commit(
        self,
        predicate: Expression | None,
        *,
        removed: Sequence[str] = (),
        deleted: Mapping[str, npt.NDArray[Any]] | None = None,
        parameters: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
        rows: RowScope | None = None,
        user_metadata: str | None = None,
    ) -> None:
        """Commit what was written; arguments as of `DmlCommand`. None of `user_metadata`: as the session says."""
        if removed and not self._results:
            end_if_explained(self.target, f"all of {len(removed)} files, which are not read")
        settings = self.target.facts.settings
        change = DmlCommand(
            operation=self.operation,
            predicate=predicate,
            timezone=self.target.timezone,
            removed=tuple(removed),
            deleted=dict(deleted or {}),
            results=tuple(self._results),
            parameters=dict(parameters or {}),
            metrics={**(metrics or {}), "executionTimeMs": self.elapsed_ms()},
            plan=self.plan if self._results or self.plan.write.new_metadata else None,
            txn=self._txn,
            rows=self._scope(rows),
            user_metadata=settings.get(USER_METADATA.full_name) if user_metadata is None else user_metadata,
            engine_info=engine_info(),
        )
        compaction = auto_compaction_of(settings)
        with self._work.phase("committing", unit="commits"), self._staged.publishing():
            self.target.run(_commit, change, self.plan.write.state.metadata, compaction)
        self._committed = True


def _commit(snapshot: Snapshot, change: DmlCommand, metadata: Metadata, settings: AutoCompaction) -> None:
    commit_dml(snapshot, change)
    compact_after(snapshot.storage, metadata, change.results, settings, change.timezone, engine_info())


@dataclass(frozen=True)
class _BySpark:
    """Who evaluates what a table demands of rows where tasks cannot, and why they cannot."""

    rules: RowRules
    why: DeltaError

    def applied(
        self, rows: DataFrame, plan: WritePlan, places: Sequence[str] = (), unchecked: str | None = None
    ) -> DataFrame:
        """See `RowRules.applied`."""
        RULES_BY_SPARK.log(table=plan.storage.url, reason=str(self.why))
        found = self.rules.applied(rows, plan, places, unchecked)
        if found is None:
            raise self.why
        return found


def affected_rows(spark: SparkSession, rows: int | None) -> DataFrame:
    """The result of DELETE and UPDATE: the number of affected rows."""
    return frame_of(spark, [(rows,)], "num_affected_rows bigint")
