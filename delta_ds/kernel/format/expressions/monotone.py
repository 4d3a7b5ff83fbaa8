"""Bounds of what an expression gives for a column, from a bound of the column.

An expression is *monotone* if a greater column never gives a lesser result. The wall clock of a zone is not quite:
it is put back and forth. So a bound passes through a time zone by the least or the greatest offset from UTC that the
zone has near it. What lies farther off is farther off than clocks are put back.
"""

from __future__ import annotations

import re

from delta_ds.kernel.format.expressions.coercion import INTEGER_BITS, INTEGRAL, TEMPORAL
from delta_ds.kernel.format.expressions.moments import (
    DAY_US,
    date_of,
    days_from_civil,
    days_of,
    first_day,
    micros_of,
    timestamp_of,
)
from delta_ds.kernel.format.expressions.tree import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    fold,
    parts_of,
    with_parts,
)
from delta_ds.kernel.format.expressions.zones import offsets_around, zone_of
from delta_ds.kernel.format.schema.types import DATE, DOUBLE, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType

_BIG_ENDIAN = re.compile("yyyy(?:~MM(?:~dd(?:~HH(?:~mm(?:~ss)?)?)?)?)?".replace("~", "[^A-Za-z']*"))


def widens(source: DataType | None, target: DataType) -> bool:
    """Whether a cast of numbers keeps their order, and never fails."""
    if source in INTEGER_BITS and target in INTEGER_BITS:
        return INTEGER_BITS[target] >= INTEGER_BITS[source]
    return source in INTEGRAL and target == DOUBLE


def is_monotone(node: Expression) -> bool:
    """Whether a greater column never gives a lesser result, but for clocks that are put back."""
    while not isinstance(node, Column):
        below = _moving(node)
        if below is None or not _keeps_order(node, below):
            return False
        node = below
    return True


def _moving(node: Expression) -> Expression | None:
    """The one part that is no constant."""
    moving = [part for part in parts_of(node) if not isinstance(part, Literal)]
    return moving[0] if len(moving) == 1 else None


def _keeps_order(node: Expression, below: Expression) -> bool:
    if isinstance(node, Cast):
        return widens(below.type, node.type) or (below.type in TEMPORAL and node.type in TEMPORAL)
    if not isinstance(node, Call):
        return False
    constants = [part.value for part in node.args if isinstance(part, Literal)]
    if None in constants:
        return False
    if node.name == "substring":
        return below is node.args[0] and constants[0] in (0, 1)
    if node.name == "date_format":
        return below is node.args[0] and _BIG_ENDIAN.fullmatch(str(constants[0])) is not None
    if node.name == "date_trunc":
        return below is node.args[1]
    return node.name in ("year", "last_day", "trunc", "left") and below is node.args[0]


def bound_of(expression: Expression, value: Literal, side: int, timezone: str | None) -> Literal | None:
    """What a monotone expression gives at least, or at most, for columns from a value on, or up to it.

    Parameters
    ----------
    expression
        Of one column, and monotone.
    value
        Of the column.
    side
        -1: the columns are at least the value, and so is the result; 1: at most.
    timezone
        The zone in which the expression is computed; None if that may be any.

    Returns
    -------
    Literal or None
        None where nothing can be said.

    Raises
    ------
    OverflowError, PredicateError
        It cannot be computed for the value.
    """
    steps: list[Expression] = []
    node: Expression | None = expression
    while node is not None and not isinstance(node, Column):
        steps.append(node)
        node = _moving(node)
    found: Literal | None = value
    for step in reversed(steps):
        if found is None:
            return None
        found = _step(step, found, side, timezone)
    return found


def _step(node: Expression, value: Literal, side: int, timezone: str | None) -> Literal | None:
    if isinstance(node, Cast) and TIMESTAMP in (value.type, node.type) and value.type != node.type:
        if value.type == TIMESTAMP:
            return _wall_clock(_local(micros_of(value.value), side, timezone), node.type)
        local = days_of(value.value) * DAY_US if value.type == DATE else micros_of(value.value)
        return _instant(local, side, timezone)
    if isinstance(node, Call) and node.name == "date_trunc":
        return _truncated(node, micros_of(value.value), side, timezone)
    if isinstance(node, Call) and node.name == "date_format":
        return _written(node, _local(micros_of(value.value), side, timezone))
    return computed(with_parts(node, [p if isinstance(p, Literal) else value for p in parts_of(node)]))


def substituted(expression: Expression, value: Literal) -> Literal | None:
    """What an expression of one column gives for a value of it; None for null, and where it cannot be evaluated."""
    return computed(
        fold(
            expression,
            lambda node, parts: value if isinstance(node, Column) else with_parts(node, parts),
        )
    )


def computed(expression: Expression) -> Literal | None:
    """The value of an expression of constants; None for null, and where it cannot be evaluated."""
    from delta_ds.kernel.format.expressions.evaluate import can_evaluate, constant

    found = constant(expression) if can_evaluate(expression) else None
    return None if found is None else Literal(found, expression.type)


# --- through a time zone


def _local(instant: int, side: int, timezone: str | None) -> int:
    """A bound of the wall clock times of instants from one on, or up to it."""
    least, greatest = _offsets(instant, timezone)
    return instant + (least if side < 0 else greatest)


def _instant(local: int, side: int, timezone: str | None) -> Literal:
    """A bound of the instants of wall clock times from one on, or up to it."""
    least, greatest = _offsets(local, timezone)
    return Literal(timestamp_of(local - (greatest if side < 0 else least), True), TIMESTAMP)


def _offsets(moment: int, timezone: str | None) -> tuple[int, int]:
    return (-DAY_US, DAY_US) if timezone is None else offsets_around(moment, zone_of(timezone))


def _wall_clock(local: int, data_type: DataType) -> Literal:
    if data_type == DATE:
        return Literal(date_of(local // DAY_US), DATE)
    return Literal(timestamp_of(local, False), TIMESTAMP_NTZ)


def _written(node: Call, local: int) -> Literal | None:
    from delta_ds.kernel.format.expressions.temporal import formatter

    # Years of other than four digits are not in order as texts.
    return Literal(formatter(str(_value(node.args[1])))(local), STRING) if _FIRST <= local < _END else None


def _value(node: Expression) -> object:
    return node.value if isinstance(node, Literal) else None


def _truncated(node: Call, instant: int, side: int, timezone: str | None) -> Literal | None:
    from delta_ds.kernel.format.expressions.functions_time import CLOCK_UNITS, DATE_UNITS

    unit = str(_value(node.args[0])).lower()
    local = _local(instant, side, timezone)
    if unit in DATE_UNITS:
        return _instant(first_day(local // DAY_US, DATE_UNITS[unit]) * DAY_US, side, timezone)
    size = CLOCK_UNITS.get(unit)
    if size is None:
        return None
    if size <= 1_000_000:
        return Literal(timestamp_of(instant // size * size, True), TIMESTAMP)
    return _instant(local // size * size, side, timezone)


_FIRST, _END = (days_from_civil(year, 1, 1) * DAY_US for year in (0, 10_000))
