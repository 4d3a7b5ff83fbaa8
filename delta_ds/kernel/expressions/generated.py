"""Partition filters derived from generated columns, such as `d = ...` from `ts >= ...` where `d` is `CAST(ts AS DATE)`.

A filter on a column that a partition column is generated from is translated into filters on the partition
column, so that whole partitions go without a look at their statistics. Two properties of the generation
expression are used: it is *monotone* in its column (a bound on the column is a bound on the result), or
merely *exact* (equal columns give equal results).

Source: PROTOCOL.md, "Generated Columns"; delta-spark's `OptimizablePartitionExpression`. Differs: where the
clock changes near a constant the bound is widened by as much; if the writer's zone is unknown, by a day.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from delta_ds.events.reading import GENERATED_COLUMN_NOT_USED_FOR_PRUNING
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.expressions.bind import bind
from delta_ds.kernel.expressions.coercion import FRACTIONAL, INTEGER_BITS, INTEGRAL
from delta_ds.kernel.expressions.sql import parse_predicate
from delta_ds.kernel.expressions.temporal import zone_of
from delta_ds.kernel.expressions.tree import Call, Cast, Column, Expression, Literal, columns, conjunction
from delta_ds.kernel.schema.field_metadata import GENERATION_EXPRESSION
from delta_ds.kernel.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    StructField,
    StructType,
)
from delta_ds.records import dataclass, replace

_DAY = datetime.timedelta(days=1)
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
        expression = bind(parse_predicate(text), schema, timezone, predicate=False)
    except PredicateError as error:
        GENERATED_COLUMN_NOT_USED_FOR_PRUNING.log(column=field.name, reason=error)
        return None
    sources = set(columns(expression))
    if len(sources) != 1:
        return None
    if expression.type != field.type:
        if not _widens(expression.type, field.type):
            return None
        expression = Cast(expression, field.type)
    source = sources.pop()
    monotone = _is_monotone(expression)
    if not monotone and (source.type in FRACTIONAL or not _is_exact(expression)):
        return None
    return _Generated(Column((field.name,), field.type), expression, source, monotone)


# --- what is known of an expression

_BIG_ENDIAN = re.compile("yyyy(?:~MM(?:~dd(?:~HH(?:~mm(?:~ss)?)?)?)?)?".replace("~", "[^A-Za-z']*"))
_EXACT = frozenset([
    "month", "dayofmonth", "dayofyear", "dayofweek", "weekday", "quarter", "weekofyear", "hour",
    "minute", "second", "substring", "left", "right", "concat", "%", "pmod", "length", "date_format",
    "year", "trunc", "date_trunc", "last_day",
])  # fmt: skip


def _widens(source: DataType | None, target: DataType) -> bool:
    if source in INTEGER_BITS and target in INTEGER_BITS:
        return INTEGER_BITS[target] >= INTEGER_BITS[source]
    return source in INTEGRAL and target == DOUBLE


def _is_monotone(node: Expression) -> bool:
    """Whether a greater column never gives a lesser result (in local time, for timestamps)."""
    if isinstance(node, Column):
        return True
    if isinstance(node, Cast):
        times = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
        same_order = _widens(node.child.type, node.type) or (node.child.type in times and node.type in times)
        return same_order and _is_monotone(node.child)
    if not isinstance(node, Call):
        return False
    constants = [a.value for a in node.args if isinstance(a, Literal)]
    moving = [a for a in node.args if not isinstance(a, Literal)]
    if len(moving) != 1 or None in constants or not _is_monotone(moving[0]):
        return False
    if node.name == "substring":
        return moving[0] is node.args[0] and constants[0] in (0, 1)
    if node.name == "date_format":
        return _BIG_ENDIAN.fullmatch(str(constants[0])) is not None
    return node.name in ("year", "last_day", "trunc", "date_trunc") or (
        node.name == "left" and moving[0] is node.args[0]
    )


def _is_exact(node: Expression) -> bool:
    """Whether the result is the writer's own, whatever engine computed it."""
    if isinstance(node, (Column, Literal)):
        return True
    if isinstance(node, Cast):
        return node.child.type not in FRACTIONAL and node.type not in FRACTIONAL and _is_exact(node.child)
    return node.name in _EXACT and all(map(_is_exact, node.args))


def _is_zoned(node: Expression) -> bool:
    if isinstance(node, Cast):
        return node.timezone is not None or _is_zoned(node.child)
    return isinstance(node, Call) and (node.timezone is not None or any(map(_is_zoned, node.args)))


def _substitute(node: Expression, value: Literal) -> Expression:
    if isinstance(node, Column):
        return value
    if isinstance(node, Cast):
        return replace(node, child=_substitute(node.child, value))
    return (
        replace(node, args=tuple(_substitute(a, value) for a in node.args))
        if isinstance(node, Call)
        else node
    )


# --- filters


class _Derivation:
    """The derivation for one predicate."""

    def __init__(self, generated: Sequence[_Generated], timezone: str | None) -> None:
        self.generated = generated
        self.timezone = timezone

    def derive(self, node: Expression) -> Expression | None:
        """A filter on partition columns that follows from the node; None if nothing does."""
        if not isinstance(node, Call):
            return None
        if node.name == "and":
            return conjunction([f for f in map(self.derive, node.args) if f is not None])
        if node.name == "or":
            return self._any([self.derive(a) for a in node.args])
        source, *values = node.args or (node,)
        if not isinstance(source, Column) or not all(isinstance(v, Literal) for v in values):
            return None
        if node.name == "in" and len(values) <= _LONGEST_IN:
            # A null in the list makes no row match.
            present = [v for v in values if isinstance(v, Literal) and v.value is not None]
            return self._any([self.derive(Call("=", (source, v), BOOLEAN)) for v in present])
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
        result = self._result(generated, value, 0)
        if result is None:
            return None
        return _or_null(Call("=", (generated.partition, result), BOOLEAN), [generated.partition])

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
            results = [self._result(g, bound, side) for g in series]
            known = [r for r in results if r is not None]
            if len(known) == len(series):
                parts.append(_lexicographic([g.partition for g in series], known, strict))
        first = series[0]
        if (
            low is not None
            and parts
            and isinstance(first.expression, Call)
            and first.expression.name == "date_format"
        ):
            # Years after 9999 are written with a sign, which sorts before digits.
            signed = Call("<", (first.partition, Literal("0", STRING)), BOOLEAN)
            parts[0] = Call("or", (parts[0], signed), BOOLEAN)
        joined = conjunction(parts)
        return None if joined is None else _or_null(joined, [g.partition for g in series])

    def _result(self, generated: _Generated, value: Literal, side: int) -> Literal | None:
        """What the expression gives for the constant, moved outwards by what local time may be off."""
        from delta_ds.kernel.expressions.evaluate import can_evaluate, constant

        if not can_evaluate(generated.expression):
            return None
        try:
            moved = replace(value, value=self._moved(generated, value.value, side))
            result = constant(_substitute(generated.expression, moved))
        except (OverflowError, PredicateError) as error:
            GENERATED_COLUMN_NOT_USED_FOR_PRUNING.log(column=generated.partition, reason=error)
            return None
        return None if result is None else Literal(result, generated.partition.type)

    def _moved(self, generated: _Generated, value: Any, side: int) -> Any:
        if not side or not isinstance(value, datetime.datetime) or not _is_zoned(generated.expression):
            return value
        if self.timezone is None:
            return value + side * _DAY
        if value.tzinfo is None:
            return value
        zone = zone_of(self.timezone)
        offsets = [
            (value + shift).astimezone(zone).utcoffset() or 0 * _DAY for shift in (-_DAY, 0 * _DAY, _DAY)
        ]
        return value + side * (max(offsets) - min(offsets))


def _is_zoned_in(generated: _Generated) -> bool:
    return _is_zoned(generated.expression)


def _neighbour(value: Literal, step: int) -> Literal:
    """The next value of types that have one; the value itself for others, which only loosens a bound."""
    try:
        if value.type in (TIMESTAMP, TIMESTAMP_NTZ):
            return replace(value, value=value.value + step * datetime.timedelta(microseconds=1))
        if value.type == DATE:
            return replace(value, value=value.value + step * _DAY)
    except OverflowError:
        pass  # the first or last moment Python knows: the bound stays the value itself
    return value


def _calendar(own: Sequence[_Generated]) -> list[_Generated]:
    """The columns for year, month, day and hour, as far as they follow each other without a gap."""
    found: list[_Generated] = []
    for name in ("year", "month", "dayofmonth", "hour"):
        part = next((g for g in own if _is_part(g.expression, name)), None)
        if part is None:
            break
        found.append(part)
    return found


def _is_part(node: Expression, name: str) -> bool:
    if isinstance(node, Cast) and node.type in INTEGRAL:
        node = node.child
    return isinstance(node, Call) and node.name == name and _is_monotone(node.args[0])


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
