"""Writes whose rows say which rows of the table they take the place of: `replaceUsing` and `replaceOn`.

One commit: the rows of the table that match a written one go, as in a DELETE, and all written ones come.

Source: delta-spark 4.4, `DeltaInsertReplaceOnOrUsingCommand` and `WriteIntoDeltaLike.getReplaceOnOrUsingExprOpt`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from delta_ds.conditions.options import (
    REPLACE_ON_AMBIGUOUS,
    REPLACE_ON_UNRESOLVED,
    REPLACE_USING_MISALIGNED,
    REPLACE_USING_UNRESOLVED,
)
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.commands.dml.candidates import CandidateFiles, replacement_metrics, with_row_counts
from delta_ds.kernel.commands.dml.changed_rows import CLAUSE, DELETE, FILE, ROW
from delta_ds.kernel.commands.dml.plan import check_names
from delta_ds.kernel.format.operations import WRITE
from delta_ds.kernel.format.schema.char_varchar import schema_of
from delta_ds.kernel.format.schema.types import BOOLEAN
from delta_ds.kernel.transaction.write.finish import write_parameters
from delta_ds.records import dataclass, replace
from delta_ds.spark.base.schema import from_spark, quoted
from delta_ds.spark.commands.dml_command import DmlExecution
from delta_ds.spark.commands.expression_resolution import Scope, demands_on_target, keys_of
from delta_ds.spark.commands.handle import open_handle
from delta_ds.spark.commands.merge.plan import Clause, MergePlan, ResolvedClause
from delta_ds.spark.commands.merge.rows import Sides, row_scope
from delta_ds.spark.commands.merge.sides import (
    Side,
    SourceStats,
    between,
    has_usable_bounds,
    materialize_source,
    source_stats,
)
from delta_ds.spark.engines.seam.expressions import Resolved

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.kernel.commands.dml.candidates import Rewritten
    from delta_ds.kernel.commands.dml.commit import RowScope
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.schema.types import StructField
    from delta_ds.kernel.transaction.write.intent import WriteIntent

_CONDITION = "condition of replaceOn"
# The rows that match go; nothing else of a MERGE happens.
_DELETES = Clause("matched", "delete")


def run_replacement(
    source: DataFrame,
    intent: WriteIntent,
    aligned: Callable[[DataFrame], DataFrame],
    store: Mapping[str, str],
    *,
    by_place: bool = False,
) -> None:
    """Write rows in the place of those rows of a table that match them.

    Parameters
    ----------
    source
        The rows as they were given, by whose names and aliases `replaceOn` and `replaceUsing` know them.
    intent
        What the write is asked to do; its options give one of the two.
    aligned
        From the rows as they were given to rows under the names and types of the table's columns.
    store
        What the filesystem needs, as options of reads.
    by_place
        Columns of rows and table are matched by their places.

    Raises
    ------
    SchemaError
        The rows do not fit the table, or a column of one of the two options is not there, or is there twice.
    DeltaError
        The table cannot be written, a row breaks a constraint, or another commit contradicts the write. Nothing was
        written.
    """
    options = intent.options
    alias = options.target_alias if options.replace_on is not None else None
    handle = open_handle(source.sparkSession, options.path, store, alias)
    with DmlExecution(handle, WRITE.name, txn=options.txn) as change:
        if not change.done:
            check_names(source.columns, "source", handle.where, WRITE.name)
            _Replacement(change, source, intent, aligned, by_place=by_place).run()


@dataclass(frozen=True)
class _Match:
    """Which rows of some files match rows of the write.

    Attributes
    ----------
    on
        The condition, in the join of the two.
    keys
        Columns of the table that equal an expression of the rows where it holds.
    sides
        The rows, and those of the files.
    """

    on: Resolved
    keys: Sequence[tuple[StructField, Column]]
    sides: Sides


class _Replacement:
    def __init__(
        self,
        change: DmlExecution,
        source: DataFrame,
        intent: WriteIntent,
        aligned: Callable[[DataFrame], DataFrame],
        *,
        by_place: bool,
    ) -> None:
        self._change, self._target = change, change.target
        self._given = self._source = source
        self._intent, self._options = intent, intent.options
        self._aligned = aligned
        self._by_place = by_place
        self._known: _Match | None = None

    def run(self) -> None:
        change = self._change
        # What does not fit is told before the rows are computed.
        change.plan_replacement(self._intent, schema_of(self._aligned(self._given).schema.jsonValue()))
        sample = self._match(self._target.no_files)
        self._source = materialize_source(self._given)
        if not self._target.engine.frames.has_same_columns(self._given, self._source):
            self._known = None
            sample = self._match(self._target.no_files)
        else:
            sample = replace(sample, sides=replace(sample.sides, source=self._source))
        read, files, stats, scope = self._candidates(sample)
        found = self._remove(files, stats)
        self._written = change.insert(self._aligned(self._source))
        self._commit(read, files, found, scope)

    # --- what matches

    def _match(self, files: CandidateFiles) -> _Match:
        rows = self._target.frame(files)
        if self._known is not None:
            return replace(self._known, sides=replace(self._known.sides, source=self._source, target=rows))
        joined = self._source.join(rows, how="cross")
        self._target.engine.frames.check_join(joined, self._source, rows)
        on, keys = self._by_condition(joined, rows) if self._options.replace_on else self._by_keys(rows)
        clause = ResolvedClause("matched", "delete", None, None, frozenset(), _DELETES)
        plan = MergePlan(self._target.schema, on, (clause,), evolved=False)
        found = _Match(on, keys, Sides(plan, self._source, rows))
        if self._target.engine.fixes_values:
            # What is resolved once means the same for all files; on Spark Connect it belongs to these very frames.
            self._known = found
        return found

    def _by_condition(
        self, joined: DataFrame, rows: DataFrame
    ) -> tuple[Resolved, Sequence[tuple[StructField, Column]]]:
        target, text = self._target, self._options.replace_on
        scope = Scope(joined, target.handle.where, WRITE.name, context=target.context)
        try:
            on = scope.predicate(text, _CONDITION)
        except SchemaError as error:
            raise self._condition_error(error) from error
        return on, keys_of(target, on, rows, self._source)

    def _condition_error(self, error: SchemaError) -> SchemaError:
        values = error.parameters
        name = values.get("objectName") or values.get("name")
        if name is None:
            return error
        table = self._target.handle.where
        if error.condition.startswith("AMBIGUOUS"):
            return REPLACE_ON_AMBIGUOUS(text=self._options.replace_on, table=table, columnNames=name)
        return REPLACE_ON_UNRESOLVED(
            text=self._options.replace_on,
            table=table,
            columnNames=name,
            table_columns=self._target.schema.names[:50],
            row_columns=self._source.columns[:50],
        )

    def _by_keys(self, rows: DataFrame) -> tuple[Resolved, Sequence[tuple[StructField, Column]]]:
        """As `JOIN ... USING`: null equals nothing."""
        here, there = Side(rows, self._target.schema), Side.of(self._source)
        names = self._options.key_columns
        for name in names:
            self._check_there(name, "table", here)
            self._check_there(name, "query", there)
        if self._by_place:
            self._check_places(here.schema.names, there.schema.names)
        pairs = [(self._target.schema.find(name), name) for name in names]
        equal = [here.column(name) == there.column(name) for name in names]
        text = " AND ".join(map(quoted, names))
        on = Resolved(reduce(lambda one, other: one & other, equal), BOOLEAN, text, text)
        given = from_spark(self._source.schema)
        same = {f.name.lower(): f.type for f in given}
        keys = [
            (field, there.column(name))
            for field, name in pairs
            if field is not None and same.get(name.lower()) == field.type
        ]
        return on, keys

    def _check_there(self, name: str, kind: str, side: Side) -> None:
        if side.schema.find(name) is None:
            raise REPLACE_USING_UNRESOLVED(
                colName=quoted(name),
                relationType=kind,
                table=self._target.handle.where,
                suggestion=sorted(map(quoted, side.schema.names))[:50],
            )
        side.position(name, self._target.handle.where, "replaceUsing")

    def _check_places(self, table: Sequence[str], query: Sequence[str]) -> None:
        lower = [[name.lower() for name in names] for names in (table, query)]
        names = self._options.key_columns
        moved = [name for name in names if lower[0].index(name.lower()) != lower[1].index(name.lower())]
        if moved:
            raise REPLACE_USING_MISALIGNED(
                misalignedReplaceUsingCols=list(map(quoted, moved)), table=self._target.handle.where
            )

    # --- which rows

    def _candidates(
        self, sample: _Match
    ) -> tuple[Expression | None, CandidateFiles, SourceStats, RowScope | None]:
        """What is read of the table as commits of others see it, the files to look at, what the rows of the write hold,
        and which rows of the table count; as of a MERGE.
        """
        target, demands = self._target, []
        if self._options.replace_on is not None:
            demands = demands_on_target(target, sample.on, sample.sides.target)
        read = target.understood(demands)
        usable = [(field, value) for field, value in sample.keys if has_usable_bounds(field.type)]
        stats = source_stats(self._source, [(field.type, value) for field, value in usable])
        for (field, _), (low, high) in zip(usable, stats.bounds, strict=True):
            demands += between(field.name, field.type, low, high)
        files = target.files(target.understood(demands)) if stats.rows else target.no_files
        scope = None
        if not self._change.is_checked_by_files:
            scope = row_scope(target, self._given, sample.sides, demands, usable, stats.rows)
        return read, files, stats, scope

    # --- what is written

    def _remove(self, files: CandidateFiles, stats: SourceStats) -> Rewritten:
        """One join finds the rows that go; tasks rewrite their files, or mark the rows."""
        from pyspark.sql import functions as F

        engine = self._target.engine
        broadcast = engine.frames.fits_executors(self._source, stats.rows, stats.variable_bytes)

        def places(chosen: CandidateFiles) -> DataFrame:
            match = self._match(chosen)
            source = F.broadcast(match.sides.source) if broadcast else match.sides.source
            rows = match.sides.target.join(source, match.on.column, "left_semi")
            return rows.select(rows[FILE], rows[ROW], F.lit(0).alias(CLAUSE))

        return self._change.rewrite(places, files, [DELETE])

    def _commit(
        self,
        read: Expression | None,
        files: CandidateFiles,
        found: Rewritten,
        scope: RowScope | None,
    ) -> None:
        change = self._change
        rows_before = self._rows_before(files.only(found.files))
        # As delta-spark, it makes a version of no rows too.
        change.commit(
            None if change.reads_more else read,
            removed=change.plan.replaced_files(files, found),
            deleted=files.by_path(found.positions),
            rows=scope,
            parameters=write_parameters(change.plan.write),
            metrics=replacement_metrics(found, self._written, rows_before),
            user_metadata=self._options.user_metadata,
        )

    def _rows_before(self, touched: CandidateFiles) -> int | None:
        """How many rows the files had in which rows were marked; None where files were rewritten."""
        if not len(touched) or not self._change.plan.uses_deletion_vectors:
            return None
        counted = touched if touched.num_rows is not None else self._target.ask(with_row_counts, touched)
        return int(counted.num_rows or 0)
