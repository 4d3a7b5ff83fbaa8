"""The course of a MERGE, from matching to the commit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_ds.events.commands import MERGE_BEGINS_ANEW
from delta_ds.kernel.commands.dml.candidates import CandidateFiles, Rewritten
from delta_ds.kernel.commands.dml.changed_rows import FILE, SOURCE
from delta_ds.kernel.commands.dml.commit import RowScope
from delta_ds.kernel.commands.dml.plan import check_names, evolve_table, special_columns
from delta_ds.kernel.commands.merge.clauses import is_relevant
from delta_ds.kernel.format.expressions.tree import Expression
from delta_ds.kernel.format.operations import MERGE
from delta_ds.kernel.format.options.settings import AUTO_MERGE
from delta_ds.records import replace
from delta_ds.spark.base.kinds.frames import frame_of
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.base.session_conf import MERGE_SOURCE_CONF, MERGE_SOURCE_SIZE, is_set, size
from delta_ds.spark.commands.by_arrow import ByArrow, lost_rows
from delta_ds.spark.commands.dml_command import DmlExecution
from delta_ds.spark.commands.dml_target import DmlTarget, end_if_explained
from delta_ds.spark.commands.expression_resolution import keys_of
from delta_ds.spark.commands.handle import Handle
from delta_ds.spark.commands.merge.by_arrow import (
    Matches,
    computed_source,
    kernel_merge,
    merge_by_arrow,
)
from delta_ds.spark.commands.merge.plan import (
    Clause,
    MergePlan,
    check_clauses,
    demands_on_table,
    expressions_of,
    history_parameters,
    plan_merge,
)
from delta_ds.spark.commands.merge.rows import (
    CODES,
    Outcome,
    Sides,
    all_changes,
    counted,
    has_subqueries,
    inserted_rows,
    matched_rows,
    new_values,
    row_scope,
    several_match,
    unchanged_keys,
    without_places,
)
from delta_ds.spark.commands.merge.sides import (
    SourceStats,
    between,
    has_usable_bounds,
    materialize_source,
    source_stats,
)
from delta_ds.spark.commands.row_commands import run_at_server, run_command
from delta_ds.spark.commands.store_casts import StoreCast
from delta_ds.spark.engines.classic.catalyst_values import OnlySpark
from delta_ds.spark.engines.seam.expressions import ResolutionCache

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


# As delta-spark's `merge.materializeSource.maxAttempts`.
_ATTEMPTS = 4
_RESULT = (
    "num_affected_rows bigint, num_updated_rows bigint, num_deleted_rows bigint, num_inserted_rows bigint"
)


def run_merge(
    handle: Handle,
    source: DataFrame,
    condition: str | Column,
    clauses: Sequence[Clause],
    evolve: bool,
    txn: tuple[str, int] | None = None,
) -> DataFrame:
    """Run a merge; see `DeltaMergeBuilder.execute`.

    Parameters
    ----------
    txn
        The application and version that it counts as; None for those of the session.
    """
    check_clauses(clauses, handle.where)
    evolve = evolve or is_set(handle.spark, AUTO_MERGE.full_name, False)
    check_names(source.columns, "source", handle.where, MERGE.name)
    told = [(clause.when, clause.do, clause.condition, clause.assignments) for clause in clauses]
    counted_there = run_at_server(
        handle, MERGE.name, condition, clauses=told, evolve=evolve, txn=txn, source=source
    )
    if counted_there is not None:
        return frame_of(handle.spark, [counted_there], _RESULT)

    def merge(replicated: bool, change: DmlExecution) -> tuple[int, int, int, int]:
        return _Merge(change, source, condition, clauses, evolve, replicated=replicated).run()

    removes = any(not clause.inserts for clause in clauses)
    for attempt in range(_ATTEMPTS):
        try:
            work = partial(merge, attempt > 0)
            counts = run_command(handle, MERGE.name, work, (0, 0, 0, 0), removes=removes, txn=txn)
            break
        except Exception as error:
            if attempt + 1 == _ATTEMPTS or not lost_rows(error):
                raise
            MERGE_BEGINS_ANEW.log(table=handle.where)
    return frame_of(handle.spark, [counts], _RESULT)


class _Merge:
    def __init__(
        self,
        change: DmlExecution,
        source: DataFrame,
        condition: str | Column,
        clauses: Sequence[Clause],
        evolve: bool,
        *,
        replicated: bool,
    ) -> None:
        self._change = change
        self._target: DmlTarget = change.target
        self._given, self._source = source, _mark_source(source)
        self._condition = condition
        self._clauses = clauses
        self._evolve = evolve
        self._replicated = replicated
        self._special = self._target.ask(special_columns)
        self._inserts = any(clause.inserts for clause in clauses)
        self._changes_rows = any(not clause.inserts for clause in clauses)
        self._by_source = any(clause.is_by_source for clause in clauses)
        self._plan: MergePlan | None = None
        self._resolutions = ResolutionCache()
        self._started = 0
        self._kept: DataFrame | None = None

    def run(self) -> tuple[int, int, int, int]:
        """How many rows were affected, updated, deleted and inserted."""
        change, target = self._change, self._target
        # What does not fit is told before the source is computed.
        sample = self._sides(target.no_files)
        self._started = change.elapsed_ms()
        done: Outcome | None = None
        planned = target.snapshot is not None
        if planned:  # Arrow reads where the log is
            self._plan_rows(sample.plan)
            done = change.by_arrow(partial(self._by_arrow, sample))
        if done is not None:
            constant = target.engine.frames.is_constant(self._given)
        else:
            kept = self._kept
            if kept is None:
                kept = materialize_source(self._given, replicated=self._replicated)
            constant = kept is self._given
            columns = [self._condition, *expressions_of(self._clauses)]
            self._source = _mark_source(target.engine.frames.in_place_of(kept, [self._given], columns))
            if not target.engine.frames.has_same_columns(self._given, kept):
                self._plan = None
                self._resolutions.forget_columns()
                sample, planned = self._sides(target.no_files), False
            else:
                sample = replace(sample, source=self._source)
            if not planned:
                self._plan_rows(sample.plan)
            done = self._by_spark(sample)
        change.repeatable = constant and not has_subqueries(sample)
        return self._commit(sample.plan, done)

    def _commit(self, plan: MergePlan, done: Outcome) -> tuple[int, int, int, int]:
        change = self._change
        counts = counted(change, plan.clauses, done)
        # Where rows are marked, delta-spark makes no version of nothing; where files are rewritten, it does.
        rewrites = done.relevant and not change.plan.uses_deletion_vectors
        if rewrites or counts["numTargetRowsInserted"] or plan.evolved or len(done.touched):
            change.commit(
                done.read,
                removed=[] if change.plan.uses_deletion_vectors else done.touched.paths.to_pylist(),
                deleted={} if done.files is None else done.files.by_path(done.found.positions),
                rows=done.scope,
                parameters=history_parameters(plan),
                metrics={
                    **counts,
                    "numSourceRows": done.source_rows,
                    "numOutputRows": done.written,
                    "materializeSourceTimeMs": done.materialized_ms - self._started,
                    "scanTimeMs": done.scanned_ms - done.materialized_ms,
                    "rewriteTimeMs": change.elapsed_ms() - done.scanned_ms,
                },
            )
        changed = [counts[f"numTargetRows{kind}"] for kind in ("Updated", "Deleted", "Inserted")]
        return sum(changed), changed[0], changed[1], changed[2]

    def _by_spark(self, sample: Sides) -> Outcome:
        """Queries of Spark join the source, which is kept, with the table."""
        materialized = self._change.elapsed_ms()
        read, files, stats, scope = self._candidates(sample)
        done = self._change_rows(files, stats) if self._changes_rows else self._insert_only(files)
        return replace(
            done, read=read, files=files, scope=scope, source_rows=stats.rows, materialized_ms=materialized
        )

    def _by_arrow(self, sample: Sides, attempt: ByArrow) -> Outcome:
        """The kernel joins files with the source, which Spark computes once."""
        target = self._target
        most = size(target.spark, MERGE_SOURCE_CONF, MERGE_SOURCE_SIZE)
        if not most:
            raise OnlySpark(f"{MERGE_SOURCE_CONF} is 0")
        plan = kernel_merge(target, sample, self._special)
        if self._changes_rows and all(clause.clause.inserts for clause in plan.clauses):
            raise OnlySpark("a clause that changes nothing")
        bound = f"if the source, which Spark computes once, has at most {most} bytes"
        end_if_explained(target, f"found by Arrow, {bound}; else by a query of Spark")
        source = computed_source(target, lambda: self._source_rows(most), self._given, most)
        matches = Matches(plan, source, sees_all=not target.engine.frames.reads_by_python(self._given))
        return merge_by_arrow(self._change, attempt, sample, matches, repeated=self._may_repeat)

    def _source_rows(self, most: int) -> pa.Table:
        """The rows of the source, which are in no process before it is known that they are of at most so many bytes.

        What Spark expects of a query says little: texts may be repeated, arrays exploded, and files are compressed.
        """
        engine, given = self._target.engine, self._given
        expected = engine.frames.estimated_bytes(given)
        if expected is not None and expected <= most:
            snapshot = self._target.snapshot
            assert snapshot is not None  # Arrow reads where the log is
            constant = engine.frames.is_constant(given)
            rows = given.toArrow() if constant else engine.frames.arrow_rows(given, snapshot.storage, most)
        else:  # it may have to be computed for Spark: once is enough
            self._kept = kept = materialize_source(given, replicated=self._replicated)
            stats = source_stats(kept, [])
            small = engine.frames.measured_bytes(kept, stats.rows, stats.variable_bytes) <= most
            rows = kept.toArrow() if small else None
        if rows is None:
            raise OnlySpark(f"the source is larger than {MERGE_SOURCE_CONF} says")
        return rows

    # --- the two sides

    def _sides(self, files: CandidateFiles) -> Sides:
        """Source and some files of the table, and what the clauses mean for the two."""
        target = self._target
        source, rows = self._source, target.frame(files)
        if self._plan is not None:
            return Sides(self._plan, source, rows)
        plan = plan_merge(
            state=target.state,
            target=rows,
            source=source,
            joined=source.join(rows, how="cross"),
            on=self._condition,
            clauses=self._clauses,
            cast=StoreCast.of(target, evolve=self._evolve),
            generated=self._special.generated,
            alias=target.handle.alias,
            context=target.context,
            cache=self._resolutions,
        )
        if target.engine.fixes_values:
            # What is resolved once means the same for all files; on Spark Connect it belongs to these very frames.
            self._plan = plan
        if plan.source_values:
            source = source.withColumns(dict(plan.source_values))
        if plan.target_values:
            rows = rows.withColumns(dict(plan.target_values))
        return Sides(plan, source, rows)

    def _plan_rows(self, plan: MergePlan) -> None:
        changing = [c for c in plan.clauses if not c.deletes]
        assigned = {name for c in changing for name in c.assigned}
        inserts = [c for c in changing if c.inserts]
        after = self._target.ask(evolve_table, plan.schema) if plan.evolved else None
        self._change.plan_rows(
            computed=[name for name in self._special.generated if name not in assigned],
            generates=[
                name for name in self._special.identities if any(name not in c.assigned for c in inserts)
            ],
            after=after,
        )

    # --- which rows

    def _candidates(
        self, sample: Sides
    ) -> tuple[Expression | None, CandidateFiles, SourceStats, RowScope | None]:
        """What is read of the table as commits of others see it, the files to look at, what the source holds, and
        which rows of the table count.
        """
        target = self._target
        demands: list[Expression] = []
        if not self._by_source:
            demands = demands_on_table(target, sample.plan, sample.target)
        read = target.understood(demands)
        keys = [] if self._by_source else keys_of(target, sample.plan.on, sample.target, sample.source)
        usable = [(f, value) for f, value in keys if has_usable_bounds(f.type)]
        stats = source_stats(sample.source, [(field.type, value) for field, value in usable])
        for (field, _), (low, high) in zip(usable, stats.bounds, strict=True):
            demands += between(field.name, field.type, low, high)
        narrowed = target.understood(demands)
        scope = None
        if not (self._by_source or self._change.is_checked_by_files):
            scope = row_scope(target, self._given, sample, demands, usable, stats.rows)
        return read, target.files(narrowed), stats, scope

    @property
    def _may_repeat(self) -> bool:
        """Whether several source rows may match one row of the table: all of them delete it."""
        matched = [c for c in self._clauses if c.is_matched]
        return len(matched) == 1 and matched[0].deletes and matched[0].condition is None

    # --- what is written

    def _insert_only(self, files: CandidateFiles) -> Outcome:
        rows = all_changes(self._sides(files), self._change, self._special, by_source=False)
        scanned = self._change.elapsed_ms()
        written = self._insert(rows.where(rows[FILE].isNull()))
        return Outcome(Rewritten(), False, self._target.no_files, written, scanned)

    def _change_rows(self, files: CandidateFiles, stats: SourceStats) -> Outcome:
        """One join finds the rows that change, and their new values; tasks rewrite their files."""
        change, engine = self._change, self._target.engine
        broadcast = engine.frames.fits_executors(self._source, stats.rows, stats.variable_bytes)

        def values_of(sides: Sides, rows: DataFrame) -> DataFrame:
            return new_values(sides, change, self._special, rows, self._unchanged_keys(sides))

        def changes_of(sides: Sides) -> DataFrame:
            rows = matched_rows(sides, change, self._special, by_source=self._by_source, broadcast=broadcast)
            found = values_of(sides, rows)
            return found if self._inserts else found.drop(SOURCE)

        with ExitStack() as stack:
            sides = self._sides(files)
            cached = self._inserts and not broadcast
            whole = None
            if self._inserts and not engine.fixes_values:
                rows = all_changes(sides, change, self._special, by_source=self._by_source)
                whole = stack.enter_context(engine.frames.kept(rows))
                matched = values_of(sides, whole.where(whole[FILE].isNotNull()))
            elif cached:
                matched = stack.enter_context(engine.frames.kept(changes_of(sides)))
            else:
                matched = changes_of(sides)

            def rows_of(chosen: CandidateFiles) -> DataFrame:
                rows = matched if cached or chosen is files else changes_of(self._sides(chosen))
                return rows.drop(SOURCE) if cached else rows

            clauses = sides.plan.clauses
            found = change.rewrite(
                rows_of, files, [CODES[clause.do] for clause in clauses], repeated=self._may_repeat
            )
            if found.ambiguous:
                raise several_match(self._target.handle.where)
            scanned = change.elapsed_ms() - found.milliseconds
            written = found.result.rows
            if self._inserts:
                if whole is not None:
                    rows = whole.where(whole[FILE].isNull())
                else:
                    if not cached:
                        matched = frame_of(self._target.spark, pa.table({SOURCE: found.sources}))
                    rows = inserted_rows(sides, change, self._special, matched, broadcast=not cached)
                written += self._insert(rows)
        relevant = is_relevant(clauses, found, len(files))
        return Outcome(found, relevant, files.only(found.files), written, scanned)

    def _unchanged_keys(self, sides: Sides) -> frozenset[str]:
        if self._change.plan.uses_deletion_vectors:
            return frozenset()  # all of a new row is written: what is given need not be read
        keys = keys_of(self._target, sides.plan.on, sides.target, sides.source)
        return unchanged_keys(sides, self._change, keys)

    def _insert(self, rows: DataFrame) -> int:
        """Write new rows; how many."""
        frame = without_places(rows)
        # Generated ones come later.
        partitions = [name for name in self._target.state.partition_columns if name in frame.columns]
        if partitions and self._changes_rows:
            # A join leaves rows of every partition in every task.
            frame = frame.hint("rebalance", *map(quoted, partitions))
        return self._change.insert(frame)


def _mark_source(source: DataFrame) -> DataFrame:
    """The source with a column that tells, in a join, whether a row has one of the source, and which."""
    from pyspark.sql import functions as F

    return source.select("*", F.monotonically_increasing_id().alias(SOURCE))
