"""A MERGE by Arrow: Spark resolves it and computes the source once; the kernel joins files with it.

Source: Spark, `Cast`; conflict-matrix section 11.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from delta_ds.exceptions import DeltaError, PredicateError
from delta_ds.kernel.commands.dml.commit import RowScope
from delta_ds.kernel.commands.dml.plan import SpecialColumns
from delta_ds.kernel.commands.merge import clauses as kernel_clauses
from delta_ds.kernel.commands.merge import plan as kernel_plan
from delta_ds.kernel.commands.merge import sides as kernel_sides
from delta_ds.kernel.commands.merge.clauses import MergeSource, is_relevant, read_source
from delta_ds.kernel.commands.merge.command import demands_of_keys, task_of
from delta_ds.kernel.commands.merge.resolver import FieldValue
from delta_ds.kernel.commands.merge.resolver import ResolvedClause as KernelClause
from delta_ds.kernel.commands.merge.rows import MergeRows
from delta_ds.kernel.commands.merge.sides import SOURCE, TARGET
from delta_ds.kernel.format.expressions.arrays import values_of
from delta_ds.kernel.format.expressions.tree import Call, Column, Expression, Literal, conjuncts
from delta_ds.kernel.format.operations import MERGE
from delta_ds.kernel.format.options.settings import ANSI_POLICY
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.column_paths import HIDDEN, find
from delta_ds.kernel.format.schema.types import BOOLEAN, DataType, StructField, StructType, without_metadata
from delta_ds.kernel.transaction.pending import tracks_rows
from delta_ds.records import dataclass
from delta_ds.spark.base.session_conf import MERGE_SOURCE_CONF, RESULTS_BOUND
from delta_ds.spark.commands.expression_resolution import Scope, bound_alike
from delta_ds.spark.commands.merge.plan import ResolvedClause, demands_on_table
from delta_ds.spark.commands.merge.rows import Outcome, Sides, several_match
from delta_ds.spark.commands.merge.sides import Side, has_usable_bounds
from delta_ds.spark.engines.classic.catalyst_values import OnlySpark, cast_alike

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from delta_ds.spark.commands.assignments import Assignment
    from delta_ds.spark.commands.by_arrow import ByArrow
    from delta_ds.spark.commands.dml_command import DmlExecution
    from delta_ds.spark.commands.dml_target import DmlTarget

# Of so many source rows at most the keys are named one by one for checks of conflicts.
_MOST_KEYS = 10_000


# --- the source


def computed_source(
    target: DmlTarget, rows: Callable[[], pa.Table], source: DataFrame, most: int
) -> MergeSource:
    """The rows of a source, computed once.

    Parameters
    ----------
    rows
        Computes them.
    source
        The source.
    most
        Of how many bytes they may be, as `MERGE_SOURCE_CONF` says.

    Raises
    ------
    OnlySpark
        They are more, or of types that Arrow holds in another form.
    """
    from pyspark.errors import UnsupportedOperationException

    refusals = (ValueError, TypeError, NotImplementedError, DeltaError, UnsupportedOperationException)
    try:
        computed = read_source(rows(), target.timezone)
    except refusals as error:
        raise OnlySpark(f"types of the source, which Arrow does not take: {error}") from error
    except Exception as error:
        if RESULTS_BOUND not in str(error):
            raise
        raise OnlySpark(f"the source is larger than {RESULTS_BOUND} says") from error
    if computed.rows.nbytes > most:
        raise OnlySpark(f"the source is of {computed.rows.nbytes} bytes, more than {MERGE_SOURCE_CONF} says")
    if _types(computed.schema) != _types(Side.of(source).schema):
        raise OnlySpark("types of the source, which Arrow holds in another form")
    return computed


def _types(schema: StructType) -> list[tuple[str, DataType]]:
    return [(field.name, without_metadata(field.type)) for field in schema]


# --- clauses and conditions


def kernel_merge(target: DmlTarget, sides: Sides, special: SpecialColumns) -> kernel_plan.MergePlan:
    """A resolved MERGE in the kernel's terms.

    Raises
    ------
    OnlySpark
        It holds what only Spark evaluates, or what the kernel may do otherwise.
    """
    if target.facts.command_assignment != ANSI_POLICY:
        raise OnlySpark(f"values are stored by the policy {target.facts.command_assignment}")
    translation = _Translation(target, sides, special)
    plan = sides.plan
    for field in target.schema:
        after = plan.schema.find(field.name)
        if after is None or after.type != field.type:
            raise OnlySpark(f"the column {field.name}, which gets another type")
    if plan.on.type != BOOLEAN:
        raise OnlySpark(f"a search condition of type {plan.on.type}")
    conditions = tuple(conjuncts(translation.value(plan.on.column)))
    keys_of_parts = (kernel_plan.key_of(translation.sides, part) for part in conditions)
    keys = tuple(key for key in keys_of_parts if key is not None)
    if not keys and not any(isinstance(part, Literal) for part in conditions):
        raise OnlySpark("a search condition without a key: Spark tries all pairs of rows faster")
    return kernel_plan.MergePlan(
        translation.sides,
        plan.schema,
        keys,
        conditions,
        tuple(translation.clause(clause) for clause in plan.clauses),
        translation.computed,
        translation.generates,
    )


class _Translation:
    """Translates what one MERGE holds."""

    def __init__(self, target: DmlTarget, sides: Sides, special: SpecialColumns) -> None:
        self._target, self._special, self._source = target, special, sides.source
        self._after = sides.plan.schema
        source = Side.of(sides.source).schema
        self.sides = kernel_sides.Sides(
            source,
            target.schema,
            SOURCE,
            TARGET,
            target.handle.where,
            target.timezone,
            datetime.datetime.now(datetime.timezone.utc),  # the present is a constant already
        )
        self._names: dict[int, str] = {}
        for side, frame in ((SOURCE, sides.source), (TARGET, sides.target)):
            ids = target.engine.expressions.column_ids(frame)
            named = zip(ids, frame.columns, strict=True) if ids else ()
            self._names |= {i: self.sides.name_of(side, n) for i, n in named if not n.startswith(HIDDEN)}
        assigned = {name for c in sides.plan.clauses for name in c.assigned}
        if assigned & set(special.generated):
            raise OnlySpark("values for generated columns")
        self.computed = tuple(special.generated)
        inserts = [c for c in sides.plan.clauses if c.inserts]
        self.generates = tuple(
            name for name in special.identities if any(name not in c.assigned for c in inserts)
        )
        if any(name in c.assigned for name in self.generates for c in inserts):
            raise OnlySpark("values for an identity column in some inserts and not in others")

    def value(self, column: SparkColumn, source: DataType | None = None) -> Expression:
        """A resolved expression, bound."""
        target = self._target
        schema = self.sides.schema
        tree = target.engine.expressions.evaluable(column, schema, target.timezone, self._names)
        bound = bound_alike(tree, schema, target.timezone)
        assert bound.type is not None  # what has no type cannot be evaluated
        if source is not None and without_metadata(bound.type) != without_metadata(source):
            raise OnlySpark(f"a value of type {source}, which would be {bound.type}")
        return bound

    def clause(self, clause: ResolvedClause) -> KernelClause:
        kind = kernel_clauses.Clause(clause.when, clause.do, None, {})
        condition = None if clause.condition is None else self.value(clause.condition.column)
        if clause.deletes:
            return KernelClause(kind, condition, {}, frozenset(), {})
        values: dict[str, Expression] = {}
        fields: dict[str, tuple[FieldValue, ...]] = {}
        for field in self._after:
            assignments = [a for a in clause.given if a.path[0].lower() == field.name.lower()]
            if not assignments:
                continue
            if not compares_by_bytes(field):
                raise OnlySpark(f"a value for {field.name}, whose texts have a form of their own")
            if any(len(a.path) == 1 for a in assignments):
                values[field.name] = self._stored(assignments[0].value, assignments[0].type, field)
            else:
                values[field.name] = self._as_it_is(field)
                fields[field.name] = tuple(self._inside(a) for a in assignments)
        if clause.inserts:
            for field in self._after:
                if field.name not in values and field.name not in self.computed:
                    values[field.name] = self._nothing(field)
        return KernelClause(kind, condition, values, clause.assigned, fields)

    def _stored(self, given: SparkColumn, kind: DataType, field: StructField) -> Expression:
        value = self.value(given, kind)
        if without_metadata(kind) == without_metadata(field.type):
            return value
        cast = cast_alike(value, kind, field.type)
        return bound_alike(cast, self.sides.schema, self._target.timezone)

    def _inside(self, given: Assignment) -> FieldValue:
        found = find(self._after, given.path)
        assert found is not None  # assignments were resolved
        path, field = found
        return FieldValue(path[1:], field, self._stored(given.value, given.type, field))

    def _as_it_is(self, field: StructField) -> Expression:
        column = Column((self.sides.name_of(TARGET, field.name),))
        return bound_alike(column, self.sides.schema, self._target.timezone)

    def _nothing(self, field: StructField) -> Expression:
        """The value of a column that an insert does not name: its default; the table gives identities later."""
        text = self._special.defaults.get(field.name)
        if text is not None:
            target = self._target
            scope = Scope(self._source, target.handle.where, MERGE.name, context=target.context)
            default = scope.resolve(text, "default")
            return self._stored(default.column, default.type, field)
        return bound_alike(Literal(None), self.sides.schema, self._target.timezone)


# --- what it does


@dataclass(frozen=True)
class Matches:
    """What a MERGE joins with the table.

    Attributes
    ----------
    plan
        Of `kernel_merge`.
    source
        Of `computed_source`.
    sees_all
        Whether all tables that the source reads are known, see `Frames.reads_by_python`.
    """

    plan: kernel_plan.MergePlan
    source: MergeSource
    sees_all: bool


def merge_by_arrow(
    change: DmlExecution, attempt: ByArrow, sample: Sides, matches: Matches, *, repeated: bool
) -> Outcome:
    """Join files of the table with the source, rewrite them or mark their rows, and write new rows.

    Parameters
    ----------
    repeated
        Whether several rows of the source may match one of the table.

    Raises
    ------
    OnlySpark
        An expression fails on some row, or a new row breaks a constraint.
    UnsupportedOperationError
        Several rows of the source match one of the table.
    """
    target, plan = change.target, matches.plan
    materialized = change.elapsed_ms()
    rows = _rows_of(plan, matches.source)
    inserts = any(clause.clause.inserts for clause in plan.clauses)
    by_source = any(clause.clause.is_by_source for clause in plan.clauses)
    changes = any(not clause.clause.inserts for clause in plan.clauses)
    demands = [] if by_source else demands_on_table(target, sample.plan, sample.target)
    read = target.understood(demands)
    if not by_source:
        demands += demands_of_keys(plan, rows)
    demand = target.understood(demands)
    files = target.files(demand)
    scope = None
    if matches.sees_all and not by_source and not change.is_checked_by_files:
        named = _named_keys(plan, rows) if tracks_rows(target.state) else []
        scope = RowScope(target.understood([*demands, *named]), misses_count=inserts)
    task = task_of(plan, rows, target.state, demand, attempt.plan.uses_deletion_vectors)
    rewritten = attempt.rewrite(task, files, [c.clause.code for c in plan.clauses], repeated=repeated)
    if rewritten.ambiguous:
        raise several_match(target.handle.where)
    scanned = change.elapsed_ms() - rewritten.milliseconds
    inserted = attempt.insert(rows.insertions(rewritten.sources)) if inserts else 0
    return Outcome(
        rewritten,
        changes and is_relevant(sample.plan.clauses, rewritten, len(files)),
        files.only(rewritten.files) if changes else target.no_files,
        rewritten.result.rows + inserted,
        scanned,
        read,
        files,
        scope,
        matches.source.rows.num_rows,
        materialized,
    )


def _named_keys(plan: kernel_plan.MergePlan, rows: MergeRows) -> list[Expression]:
    """What matching rows meet by keys that are named one by one; none of keys that are many."""
    if rows.num_source_rows > _MOST_KEYS:
        return []
    sets: list[Expression] = []
    for key, values in rows.pairs.key_values:
        column, kind = plan.sides.of_target(key.target), key.target.type
        if key.null_safe or kind is None or not has_usable_bounds(kind) or not isinstance(column, Column):
            continue
        try:
            items: Sequence[object] = values_of(pc.unique(values.drop_null()), kind)
        except (UnicodeDecodeError, OverflowError, PredicateError):
            continue  # there are no literals of such values
        if items:
            sets.append(Call("in", (column, *(Literal(item, kind) for item in items))))
    return sets


def _rows_of(plan: kernel_plan.MergePlan, source: MergeSource) -> MergeRows:
    """What finds and makes the rows of a MERGE; `OnlySpark` where the condition fails on a row of the source."""
    try:
        return MergeRows(plan, source.rows)
    except DeltaError as error:
        raise OnlySpark(f"an error on a row of the source: {error.text}") from error
