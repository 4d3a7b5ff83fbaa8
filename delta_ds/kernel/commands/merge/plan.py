"""Resolve the clauses of a MERGE before any row is read: conditions, new values, and the schema they lead to.

What a clause sees: `WHEN MATCHED` both sides, `WHEN NOT MATCHED` the source, `WHEN NOT MATCHED BY SOURCE` the table.

What every row of the table meets that can change: by it files and row groups are skipped. Bounds of the source's keys
are more than delta-spark asks.

Source: delta-spark, `DeltaMergeInto`, `ResolveDeltaMergeInto`, `PreprocessTableMerge`, `MergeIntoCommand`,
`getTargetOnlyPredicates`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.dml import MERGE_INTO_EMPTY_SCHEMA_TARGET
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.base.arrow_buffers import integers
from delta_ds.kernel.commands.dml.candidates import distinct
from delta_ds.kernel.commands.dml.plan import special_columns
from delta_ds.kernel.commands.merge.clauses import Clause, When
from delta_ds.kernel.commands.merge.resolver import ResolvedClause, Resolver
from delta_ds.kernel.commands.merge.sides import SOURCE, TARGET, Sides
from delta_ds.kernel.format.expressions.arrays import values_of
from delta_ds.kernel.format.expressions.coercion import INTEGRAL, TEMPORAL, is_numeric
from delta_ds.kernel.format.expressions.tree import Call, Expression, Literal, conjunction, conjuncts
from delta_ds.kernel.format.schema.column_paths import Path
from delta_ds.kernel.format.schema.evolution import can_widen
from delta_ds.kernel.format.schema.types import (
    BINARY,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    arrow_type,
    is_key_type,
    is_nested,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.transaction.write.schema_enforcement import check_write
from delta_ds.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Key:
    """What of the source a row of the table must equal.

    Attributes
    ----------
    target, source
        Bound, of one type.
    null_safe
        Whether null equals null.
    condition
        The part of the search condition that says so.
    """

    target: Expression
    source: Expression
    null_safe: bool
    condition: Expression


@dataclass(frozen=True, slots=True)
class MergePlan:
    """A MERGE whose expressions can be evaluated.

    Attributes
    ----------
    sides
        Both of them.
    schema
        The table's after the merge; new columns have no column mapping id yet.
    keys
        What is found by hashes.
    conditions
        All parts of the search condition, `keys` among them.
    clauses
        In the order they were given; of those for the same rows the first whose condition holds counts.
    computed
        Generated columns that no clause gives a value for.
    generates
        Identity columns that an insert leaves to the table.
    """

    sides: Sides
    schema: StructType
    keys: tuple[Key, ...]
    conditions: tuple[Expression, ...]
    clauses: tuple[ResolvedClause, ...]
    computed: tuple[str, ...]
    generates: tuple[str, ...]

    def of(self, when: When) -> list[tuple[int, ResolvedClause]]:
        """The clauses for some rows, with their numbers."""
        return [(n, c) for n, c in enumerate(self.clauses) if c.clause.when == when]

    @property
    def updates(self) -> list[tuple[int, ResolvedClause]]:
        """The clauses that update rows, with their numbers."""
        return [(n, c) for n, c in enumerate(self.clauses) if c.clause.do == "update"]

    def demands(self) -> list[Expression]:
        """What is known of the table alone of every row whose change hangs on the source; not bound.

        Where all clauses are for rows that match, their conditions count as well as the search condition.
        """
        demands = self._on_table(self.conditions)
        if all(clause.clause.when == "matched" for clause in self.clauses):
            of_clauses = [
                self._on_table(conjuncts(clause.condition)) if clause.condition is not None else []
                for clause in self.clauses
            ]
            demands += one_of_them(of_clauses)
        return demands

    def _on_table(self, parts: Iterable[Expression]) -> list[Expression]:
        return [self.sides.of_target(part) for part in parts if self.sides.read_by(part) == {TARGET}]


def plan_merge(
    snapshot: Snapshot, sides: Sides, predicate: str, clauses: Sequence[Clause], evolve: bool
) -> MergePlan:
    """Resolve a MERGE.

    Parameters
    ----------
    snapshot
        The version that is changed.
    sides
        Source and table.
    predicate
        The search condition.
    clauses
        Of `effective_clauses`.
    evolve
        Whether the table takes columns of the source that it does not have.

    Raises
    ------
    DeltaError
        A clause is wrong or holds what only Spark evaluates, or the table has no columns; nothing was done.
    """
    if not (evolve or snapshot.schema.fields):
        raise MERGE_INTO_EMPTY_SCHEMA_TARGET(table=snapshot.storage.url, version=snapshot.version)
    sides.check_names()
    on = sides.expression(predicate, "the search condition", predicate=True)
    conditions = tuple(conjuncts(on))
    special = special_columns(snapshot)
    resolver = Resolver(sides, special, evolve)
    given = [resolver.given(clause) for clause in clauses]
    after = sides.target
    if evolve:
        of_source = [g for c, g in zip(clauses, given, strict=True) if not c.is_by_source]
        assigned = [path for g in of_source for path in g if len(path) == 1]
        after = evolved_schema(snapshot.table_state, sides.source, assigned)
    named = [{f.name for f in after if f.name.lower() in {path[0].lower() for path in g}} for g in given]
    changing = [n for c, n in zip(clauses, named, strict=True) if c.do != "delete"]
    inserts = [n for c, n in zip(clauses, named, strict=True) if c.inserts]
    computed = tuple(name for name in special.generated if not any(name in n for n in changing))
    resolved = [resolver.clause(after, clause, g, computed) for clause, g in zip(clauses, given, strict=True)]
    return MergePlan(
        sides,
        after,
        tuple(key for part in conditions if (key := key_of(sides, part)) is not None),
        conditions,
        tuple(resolved),
        computed,
        tuple(name for name in special.identities if any(name not in n for n in inserts)),
    )


def one_of_them(alternatives: Sequence[list[Expression]]) -> list[Expression]:
    """What is known of rows that meet all demands of at least one alternative; nothing where one demands nothing."""
    whole = [conjunction(demands) for demands in alternatives]
    parts = [part for part in whole if part is not None]
    if not parts or len(parts) < len(whole):
        return []
    return [parts[0] if len(parts) == 1 else Call("or", tuple(parts))]


def key_of(sides: Sides, part: Expression) -> Key | None:
    """What of both sides a part of the search condition holds equal, of types that can be found by hashes."""
    if not isinstance(part, Call) or part.name not in ("=", "<=>"):
        return None
    left, right = part.args
    if sides.read_by(left) == {SOURCE} and sides.read_by(right) == {TARGET}:
        left, right = right, left
    if sides.read_by(left) != {TARGET} or sides.read_by(right) != {SOURCE}:
        return None
    if left.type is None or left.type != right.type or not is_key_type(left.type):
        return None
    return Key(left, right, part.name == "<=>", part)


# --- the schema of a table after a MERGE with schema evolution
# Source: delta-spark, `ResolveDeltaMergeInto.computePostEvolutionTargetSchema` and `SchemaMergingUtils.mergeSchemas`
# with implicit conversions.


def evolved_schema(state: TableState, source: StructType, assigned: Sequence[Path]) -> StructType:
    """The table's schema with the columns and fields of the source that clauses assign to.

    Parameters
    ----------
    state
        The table.
    source
        The schema of the rows that are merged into it.
    assigned
        The columns and fields that `WHEN MATCHED` and `WHEN NOT MATCHED` clauses assign to; `*` stands for every
        column of the source.

    Returns
    -------
    StructType
        New columns and fields come last, nullable. Types change only where the table widens types; otherwise values
        are cast to the table's. Equal to the table's where nothing changes.

    Raises
    ------
    SchemaError
        `DELTA_FAILED_TO_MERGE_FIELDS` where types have nothing in common, and what `check_write` refuses.
    """
    wanted = _assigned_part(source, (), [tuple(name.lower() for name in path) for path in assigned])
    if not wanted.fields:
        return state.schema
    data = _convert_type(state.schema, wanted, state.widens_types)
    assert isinstance(data, StructType)
    return check_write(state, data, merge_schema=True, whole_rows=False)


def _assigned_part(source: StructType, above: Path, assigned: Sequence[Path]) -> StructType:
    fields = []
    for column in source:
        path = (*above, column.name.lower())
        if path in assigned:
            fields.append(column)
        elif isinstance(column.type, StructType) and any(path == other[: len(path)] for other in assigned):
            fields.append(replace(column, type=_assigned_part(column.type, path, assigned)))
    return StructType(tuple(fields))


def _convert_type(table: DataType, data: DataType, widening: bool) -> DataType:
    """The data's type, with the table's types where values are converted to them."""
    if isinstance(table, StructType) and isinstance(data, StructType):
        return StructType(tuple(_convert_field(table, f, widening) for f in data))
    if isinstance(table, ArrayType) and isinstance(data, ArrayType):
        return replace(data, element=_convert_type(table.element, data.element, widening))
    if isinstance(table, MapType) and isinstance(data, MapType):
        key = _convert_type(table.key, data.key, widening)
        return replace(data, key=key, value=_convert_type(table.value, data.value, widening))
    if widening and can_widen(table, data):
        return data
    return table if _is_implicit(data, table) else data


def _convert_field(table: StructType, field: StructField, widening: bool) -> StructField:
    there = table.find(field.name)
    return field if there is None else replace(field, type=_convert_type(there.type, field.type, widening))


def _is_implicit(source: DataType, target: DataType) -> bool:
    """Whether Spark casts without being asked where a value of `target` is expected.

    Source: Spark, `TypeCoercion.implicitCast`, the rules without ANSI, whatever the session's setting.
    """
    if source in (target, VOID):
        return True
    if is_nested(source) or is_nested(target):
        return False
    if (is_numeric(source) and is_numeric(target)) or (source in TEMPORAL and target in TEMPORAL):
        return True
    return target == STRING or (
        source == STRING and (is_numeric(target) or target in TEMPORAL or target == BINARY)
    )


if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]

# So many keys at most are named one by one; more are told by some ranges, each of which costs a little in every file.
_MOST_NAMED = 100
_MOST_RANGES = 32
# A gap between keys counts where it is so much of the range of all of them.
_LEAST_GAP = 1 / 1000
# The cells into which the range of numbers is cut to find gaps.
_CELLS = 1 << 16
# Of more keys than these only the first and the last is looked for, where that needs them in order.
_MOST_SORTED = 1_000_000


def may_equal(column: Expression, keys: pa.Array, data_type: DataType) -> list[Expression]:
    """What a column meets where it equals one of some keys; nothing where that cannot be told.

    Parameters
    ----------
    column
        Of the table, by its own name.
    keys
        Values of the source; null equals nothing.
    data_type
        Of both.
    """
    if not _has_order(data_type):
        return []
    present = keys.drop_null()
    if not len(present):
        return [Literal(False)]
    find = _of_texts if data_type == STRING or isinstance(data_type, DecimalType) else _of_numbers
    lows, highs = find(present, data_type)
    try:
        first, last = values_of(lows, data_type), values_of(highs, data_type)
    except (UnicodeDecodeError, OverflowError, PredicateError):
        return []  # there are no literals of such values
    if first == last:
        return [Call("in", (column, *(Literal(value, data_type) for value in first)))]
    ranges = [_between(column, low, high, data_type) for low, high in zip(first, last, strict=True)]
    whole = _between(column, first[0], last[-1], data_type)
    return [whole] if len(ranges) == 1 else [whole, Call("or", tuple(ranges))]


def _has_order(kind: DataType) -> bool:
    """Whether values are in one order for Spark, statistics and Arrow."""
    return (
        kind in INTEGRAL or kind in (STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ) or isinstance(kind, DecimalType)
    )


def _of_numbers(keys: pa.Array, data_type: DataType) -> tuple[pa.Array, pa.Array]:
    """The ends of ranges that hold all keys, in ascending order; equal where all keys are named."""
    kind = arrow_type(data_type)
    numbers = np.asarray(pc.cast(keys.view(pa.int32()) if data_type == DATE else keys, pa.int64()))
    low, high = int(numbers.min()), int(numbers.max())
    width = (high - low) // _CELLS + 1
    occupied = np.zeros(_CELLS + 1, np.bool_)
    # In 64 bits without sign the distance of any two numbers has room.
    occupied[(numbers.view(np.uint64) - np.int64(low).view(np.uint64)) // np.uint64(width)] = True
    cells = np.flatnonzero(occupied)
    if len(cells) <= _MOST_NAMED and (width == 1 or len(numbers) <= _MOST_SORTED):
        few = cells + low if width == 1 else distinct([numbers])
        if len(few) <= _MOST_NAMED:
            return _as(few, kind), _as(few, kind)
    gaps = np.diff(cells) - 1
    wide = np.sort(np.argsort(-gaps, kind="stable")[: _MOST_RANGES - 1])
    before = wide[gaps[wide] > _LEAST_GAP * cells[-1]]
    firsts = [int(cell) for cell in cells[np.concatenate([[0], before + 1])]]
    lasts = [int(cell) for cell in cells[np.concatenate([before, [len(cells) - 1]])]]
    lows = [low + cell * width for cell in firsts]
    highs = [min(high, low + (cell + 1) * width - 1) for cell in lasts]
    return _as(np.array(lows, np.int64), kind), _as(np.array(highs, np.int64), kind)


def _as(numbers: Numbers, kind: pa.DataType) -> pa.Array:
    array = integers(numbers)
    if pa.types.is_date32(kind):
        return array.cast(pa.int32()).view(kind)
    return array.view(kind) if pa.types.is_timestamp(kind) else array.cast(kind)


def _of_texts(keys: pa.Array, data_type: DataType) -> tuple[pa.Array, pa.Array]:
    """As `_of_numbers`: ranges with as many keys each."""
    if len(keys) > _MOST_SORTED:
        ends = pc.min_max(keys)
        return pa.repeat(ends["min"], 1), pa.repeat(ends["max"], 1)
    different = pc.unique(keys)
    in_order = different.take(pc.array_sort_indices(different))
    step = 1 if len(in_order) <= _MOST_NAMED else -(-len(in_order) // _MOST_RANGES)
    firsts = np.arange(0, len(in_order), step)
    lasts = np.append(firsts[1:] - 1, len(in_order) - 1)
    return in_order.take(integers(firsts)), in_order.take(integers(lasts))


def _between(column: Expression, low: Any, high: Any, data_type: DataType) -> Expression:
    bounds: Sequence[tuple[str, Any]] = ((">=", low), ("<=", high))
    parts = tuple(Call(comparison, (column, Literal(bound, data_type))) for comparison, bound in bounds)
    return Call("and", parts)
