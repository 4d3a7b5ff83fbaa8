"""Intervals of one number and one unit, added to dates and timestamps."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.expressions.tree import Call, Literal

_UNITS = {
    "YEAR": (12, 0, 0),
    "MONTH": (1, 0, 0),
    "WEEK": (0, 7, 0),
    "DAY": (0, 1, 0),
    "HOUR": (0, 0, 3_600_000_000),
    "MINUTE": (0, 0, 60_000_000),
    "SECOND": (0, 0, 1_000_000),
    "MILLISECOND": (0, 0, 1_000),
    "MICROSECOND": (0, 0, 1),
}


def interval_parts(interval: Call) -> tuple[int, int, int]:
    """Months, days and microseconds of `interval(number as text, unit)`.

    Raises
    ------
    PredicateError
        The unit is unknown or the number is not whole (seconds may have a fraction).
    """
    number, unit = (a.value if isinstance(a, Literal) else None for a in interval.args)
    name = str(unit).upper()
    factors = _UNITS.get(name) or _UNITS.get(name.removesuffix("S"))
    try:
        amount = Decimal(str(number).strip())
    except InvalidOperation:
        amount = Decimal("NaN")
    if factors is None or not amount.is_finite():
        raise PredicateError(f"{interval} is not an interval of a number and a unit such as DAY")
    months, days, microseconds = (amount * f for f in factors)
    if any(part != int(part) for part in (months, days, microseconds)):
        raise PredicateError(f"{interval} must be a whole number of {unit}")
    return int(months), int(days), int(microseconds)
