"""Partition filters derived from generated columns, such as `d = ...` from `ts >= ...` where `d` is `CAST(ts AS DATE)`.

A filter on a column that a partition column is generated from is translated into filters on the partition
column, so that whole partitions go without a look at their statistics. Two properties of the generation
expression are used: it is *monotone* in its column (a bound on the column is a bound on the result), or
merely *exact* (equal columns give equal results).

Source: PROTOCOL.md, "Generated Columns"; delta-spark's `OptimizablePartitionExpression`. Differs: where the
clock changes near a constant the bound is widened by as much, see `monotone.py`; if the writer's zone is unknown, by a
day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from delta_ds.events.commands import GENERATED_COLUMN_NOT_USED_FOR_PRUNING
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.coercion import FRACTIONAL, INTEGRAL
from delta_ds.kernel.format.expressions.moments import date_of, days_of, micros_of, timestamp_of
from delta_ds.kernel.format.expressions.monotone import bound_of, computed, is_monotone, substituted, widens
from delta_ds.kernel.format.expressions.sql import parse_definition
from delta_ds.kernel.format.expressions.tree import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    columns,
    conjunction,
    fold,
    postorder,
)
from delta_ds.kernel.format.expressions.zones import offsets_around, zone_of
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.column_paths import find
from delta_ds.kernel.format.schema.field_metadata import GENERATION_EXPRESSION
from delta_ds.kernel.format.schema.types import (
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    StructField,
    StructType,
)
from delta_ds.records import dataclass, replace

_LONGEST_IN = 100


@dataclass(frozen=True, slots=True)
class _Generated:
    """A partition column and the bound expression, of one column, that generates it."""

    partition: Column
    expression: Expression
    source: Column
    monotone: bool


def derive_partition_filters(
    predicate: Expression, schema: StructType, partition_columns: Sequence[str], timezone: str | None
) -> Expression | None:
    """Filters on partition columns that every row matching the predicate satisfies.

    Parameters
    ----------
    predicate
        A bound predicate.
    schema
        The table's schema; `delta.generationExpression` in a field's metadata marks generated columns.
    partition_columns
        Their logical names.
    timezone
        The session time zone, which is taken to be the one the table was written in, as delta-spark does.
        None: the writer's zone may be any, and bounds on timestamps are widened by a day.

    Returns
    -------
    Expression or None
        A bound predicate on partition columns only, to be used beside the given one; None if nothing follows.
        It is true where a partition value is null, since an expression may give null for a value.
    """
    read = {column.path[0].lower() for column in columns(predicate)}
    generated = list(_generated_columns(schema, partition_columns, timezone or "UTC", read))
    if not generated:
        return None
    return _Derivation(generated, timezone).derive(predicate)


def _generated_columns(
    schema: StructType, partition_columns: Sequence[str], timezone: str, read: set[str]
) -> Iterator[_Generated]:
    for field in filter(None, map(schema.find, partition_columns)):
        text = field.metadata.get(GENERATION_EXPRESSION)
        # Parsing costs an import: only for expressions that may be of a column in the predicate.
        if isinstance(text, str) and any(name in text.lower() for name in read):
            found = _classify(field, text, schema, timezone)
            if found is not None:
                yield found


def _classify(field: StructField, text: str, schema: StructType, timezone: str) -> _Generated | None:
    try:
        expression = bind(parse_definition(text), schema, timezone, predicate=False)
    except PredicateError as error:
        GENERATED_COLUMN_NOT_USED_FOR_PRUNING.log(column=field.name, reason=error)
        return None
    sources = set(columns(expression))
    if len(sources) != 1:
        return None
    if expression.type != field.type:
        if not widens(expression.type, field.type):
            return None
        expression = Cast(expression, field.type)
    source = sources.pop()
    if not _compares_by_bytes(source, schema):
        return None
    monotone = is_monotone(expression)
    if not monotone and (source.type in FRACTIONAL or not _is_exact(expression)):
        return None
    return _Generated(Column((field.name,), field.type), expression, source, monotone)


def _compares_by_bytes(column: Column, schema: StructType) -> bool:
    """Whether equal values of the column are the same, also where its strings are padded or collated."""
    found = (find(schema, column.path[: length + 1]) for length in range(len(column.path)))
    return all(part is None or compares_by_bytes(part[1]) for part in found)


# --- what is known of an expression

_EXACT = frozenset([
    "month", "dayofmonth", "dayofyear", "dayofweek", "weekday", "quarter", "weekofyear", "hour",
    "minute", "second", "substring", "left", "right", "concat", "%", "pmod", "length", "date_format",
    "year", "trunc", "date_trunc", "last_day",
])  # fmt: skip


def _is_exact(expression: Expression) -> bool:
    """Whether the result is the writer's own, whatever engine computed it."""
    return all(map(_is_exact_step, postorder(expression)))


def _is_exact_step(node: Expression) -> bool:
    if isinstance(node, Cast):
        return node.child.type not in FRACTIONAL and node.type not in FRACTIONAL
    return not isinstance(node, Call) or node.name in _EXACT


def _is_zoned(expression: Expression) -> bool:
    return any(isinstance(n, (Cast, Call)) and n.timezone is not None for n in postorder(expression))


# --- filters


class _Derivation:
    """The derivation for one predicate."""

    def __init__(self, generated: Sequence[_Generated], timezone: str | None) -> None:
        self.generated = generated
        self.timezone = timezone

    def derive(self, predicate: Expression) -> Expression | None:
        """A filter on partition columns that follows from the predicate; None if nothing does."""
        return fold(predicate, self._derived, _conditions_in)

    def _derived(self, node: Expression, parts: list[Expression | None]) -> Expression | None:
        if not isinstance(node, Call):
            return None
        if node.name == "and":
            return conjunction([f for f in parts if f is not None])
        return self._any(parts) if node.name == "or" else self._condition(node)

    def _condition(self, node: Call) -> Expression | None:
        """What follows from a comparison of a column with constants."""
        source, *values = node.args or (node,)
        if not isinstance(source, Column) or not all(isinstance(v, Literal) for v in values):
            return None
        if node.name == "in" and len(values) <= _LONGEST_IN:
            # A null in the list makes no row match.
            present = [v for v in values if isinstance(v, Literal) and v.value is not None]
            return self._any([self._condition(Call("=", (source, v), BOOLEAN)) for v in present])
        if node.name == "isnull":
            return self._all(source, lambda g: Call("isnull", (g.partition,), BOOLEAN))
        value = values[0] if len(values) == 1 else None
        if not isinstance(value, Literal) or value.value is None:
            return None
        if node.name in ("=", "<=>"):
            parts = [self._all(source, lambda g: self._equal(g, value)), *self._ranges(source, value, value)]
        elif node.name in ("<", "<="):
            parts = self._ranges(source, None, value if node.name == "<=" else _neighbour(value, -1))
        elif node.name in (">", ">="):
            parts = self._ranges(source, value if node.name == ">=" else _neighbour(value, 1), None)
        else:
            return None
        return conjunction([p for p in parts if p is not None])

    def _any(self, filters: Sequence[Expression | None]) -> Expression | None:
        known = [f for f in filters if f is not None]
        if not known or len(known) < len(filters):
            return None
        return known[0] if len(known) == 1 else Call("or", tuple(known), BOOLEAN)

    def _all(self, source: Column, make: Callable[[_Generated], Expression | None]) -> Expression | None:
        filters = [make(g) for g in self.generated if g.source.path == source.path]
        return conjunction([f for f in filters if f is not None])

    def _equal(self, generated: _Generated, value: Literal) -> Expression | None:
        if self.timezone is None and _is_zoned(generated.expression):
            return None
        result = self._result(generated, lambda: substituted(generated.expression, value))
        if result is None:
            return None
        partition = generated.partition
        least = self._as_stored(result)
        same: Expression = Call("=", (partition, result), BOOLEAN)
        if least != result:
            bounds = (Call(">=", (partition, least), BOOLEAN), Call("<=", (partition, result), BOOLEAN))
            same = Call("and", bounds, BOOLEAN)
        return _or_null(same, [partition])

    def _as_stored(self, value: Literal) -> Literal:
        """What a timestamp may have become as a partition value: of two that the clock shows alike, the earlier."""
        if value.type != TIMESTAMP or self.timezone is None:
            return value
        micros = micros_of(value.value)
        least, greatest = offsets_around(micros, zone_of(self.timezone))
        return replace(value, value=timestamp_of(micros - (greatest - least), True))

    def _ranges(self, source: Column, low: Literal | None, high: Literal | None) -> list[Expression | None]:
        """Bounds on all monotone columns, and on year, month, day and hour columns taken together."""
        own = [g for g in self.generated if g.source.path == source.path]
        if low is high and low is not None and (self.timezone is not None or not any(map(_is_zoned_in, own))):
            return []  # equality says it all
        series = [[g] for g in own if g.monotone]
        calendar = _calendar(own)
        if len(calendar) > 1:
            series = [s for s in series if s[0] is not calendar[0]] + [calendar]
        return [self._bounded(s, low, high) for s in series]

    def _bounded(
        self, series: Sequence[_Generated], low: Literal | None, high: Literal | None
    ) -> Expression | None:
        parts: list[Expression] = []
        for bound, side, strict in ((low, -1, ">"), (high, 1, "<")):
            if bound is None:
                continue
            results = [self._bound(g, bound, side) for g in series]
            known = [r for r in results if r is not None]
            if len(known) == len(series):
                parts.append(_lexicographic([g.partition for g in series], known, strict))
        if low is not None and parts and _writes_years(series[0]):
            # Years after 9999 are written with a sign, which sorts before digits.
            signed = Call("<", (series[0].partition, Literal("0", STRING)), BOOLEAN)
            parts[0] = Call("or", (parts[0], signed), BOOLEAN)
        joined = conjunction(parts)
        return None if joined is None else _or_null(joined, [g.partition for g in series])

    def _bound(self, generated: _Generated, value: Literal, side: int) -> Literal | None:
        """What the partition column is at least, or at most, for values from one on, or up to it."""
        result = self._result(generated, lambda: self._computed_bound(generated, value, side))
        return result if result is None or side > 0 else self._as_stored(result)

    def _computed_bound(self, generated: _Generated, value: Literal, side: int) -> Literal | None:
        part = _part_of_date(generated.expression)
        if part is None:
            return bound_of(generated.expression, value, side, self.timezone)
        # Only what it is a part of is monotone, and several parts are compared together.
        whole = bound_of(part.args[0], value, side, self.timezone)
        found = None if whole is None else computed(replace(part, args=(whole,)))
        return None if found is None else replace(found, type=generated.partition.type)

    def _result(self, generated: _Generated, compute: Callable[[], Literal | None]) -> Literal | None:
        try:
            return compute()
        except (OverflowError, PredicateError) as error:
            GENERATED_COLUMN_NOT_USED_FOR_PRUNING.log(column=generated.partition, reason=error)
            return None


def _conditions_in(node: Expression) -> tuple[Expression, ...]:
    return node.args if isinstance(node, Call) and node.name in ("and", "or") else ()


def _is_zoned_in(generated: _Generated) -> bool:
    return _is_zoned(generated.expression)


def _writes_years(generated: _Generated) -> bool:
    return isinstance(generated.expression, Call) and generated.expression.name == "date_format"


def _neighbour(value: Literal, step: int) -> Literal:
    """The next value of types that have one; the value itself for others, which only loosens a bound."""
    if value.type in (TIMESTAMP, TIMESTAMP_NTZ):
        moved = timestamp_of(micros_of(value.value) + step, value.type == TIMESTAMP)
        return replace(value, value=moved)
    return replace(value, value=date_of(days_of(value.value) + step)) if value.type == DATE else value


_PARTS_OF_DATES = ("year", "month", "dayofmonth", "hour")


def _calendar(own: Sequence[_Generated]) -> list[_Generated]:
    """The columns for year, month, day and hour of one and the same time, as far as they follow without a gap."""
    parts = [(g, part) for g in own if (part := _part_of_date(g.expression)) is not None]
    time = next((_time_of(part) for _, part in parts if part.name == "year"), None)
    found: list[_Generated] = []
    for name in _PARTS_OF_DATES:
        same = [g for g, part in parts if part.name == name and time is not None and _time_of(part) == time]
        if not same:
            break
        found.append(same[0])
    return found


def _part_of_date(node: Expression) -> Call | None:
    """The call that an expression is which gives the year, month, day or hour of a monotone time."""
    if isinstance(node, Cast) and node.type in INTEGRAL:
        node = node.child
    is_part = isinstance(node, Call) and node.name in _PARTS_OF_DATES and is_monotone(node.args[0])
    return node if is_part and isinstance(node, Call) else None


def _time_of(part: Call) -> Expression:
    """What the wall clock time is of that a part of it is taken from."""
    node = part.args[0]
    while isinstance(node, Cast) and node.type in (DATE, TIMESTAMP_NTZ):
        node = node.child
    return node


def _lexicographic(partitions: Sequence[Column], values: Sequence[Literal], strict: str) -> Expression:
    """`(a, b, c) <= (x, y, z)` (or `>=`), part by part."""
    column, value = partitions[0], values[0]
    if len(partitions) == 1:
        return Call(strict + "=", (column, value), BOOLEAN)
    rest = _lexicographic(partitions[1:], values[1:], strict)
    same = Call("and", (Call("=", (column, value), BOOLEAN), rest), BOOLEAN)
    return Call("or", (Call(strict, (column, value), BOOLEAN), same), BOOLEAN)


def _or_null(node: Expression, partitions: Sequence[Column]) -> Expression:
    return Call("or", (node, *(Call("isnull", (p,), BOOLEAN) for p in partitions)), BOOLEAN)
