"""Bounds and nullability of an expression's values in each file.

Everything here is an over-approximation and says what *may* be: a file of which nothing is known may hold
anything. Comparisons follow Spark: NaN equals NaN and is the largest, -0.0 equals 0.0, strings compare by
their UTF-8 bytes.
"""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import texts
from delta_ds.kernel.format.expressions.arrays import FALSE, TRUE, scalar_of
from delta_ds.kernel.format.schema.types import (
    BINARY,
    DOUBLE,
    LONG,
    DataType,
    DecimalType,
    PrimitiveType,
    arrow_type,
)
from delta_ds.records import dataclass

DAY_US = 86_400_000_000
_INTEGER_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
_WIDEST_DECIMAL = 76
_DIGITS_OF_DOUBLES, _DIGITS_OF_TEXT = 15, 17
# Half a unit in the last place for each of some steps: an integer, by a power of ten, to a double.
_OFF_BY = 2.0**-49
_MAX_US = (1 << 63) - 3 * DAY_US


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of an expression in each of some files.

    Attributes
    ----------
    low, high
        No value of the file is below or above; an Arrow array with an entry a file (null: unknown), a scalar
        that holds for all, or None if nothing is known of any file.
    may_be_null, may_be_value
        Whether some row may be null, and some row may be not null.
    """

    low: pa.Array | pa.Scalar | None
    high: pa.Array | pa.Scalar | None
    may_be_null: pa.BooleanArray
    may_be_value: pa.BooleanArray

    def __len__(self) -> int:
        return len(self.may_be_null)


def same_for_all(answer: bool, length: int) -> pa.BooleanArray:
    """The same answer for all files."""
    return pa.repeat(TRUE if answer else FALSE, length)


def unknown_bounds(length: int) -> Bounds:
    """The bounds of an expression of which nothing is known."""
    anything = same_for_all(True, length)
    return Bounds(None, None, anything, anything)


def exact_bounds(values: pa.Array | pa.Scalar, length: int) -> Bounds:
    """The bounds of an expression that has one value a file."""
    if isinstance(values, pa.Scalar):
        known = same_for_all(values.is_valid, length)
        return Bounds(values, values, pc.invert(known), known)
    return Bounds(values, values, values.is_null(), values.is_valid())


def may_compare(operator: str, left: Bounds, right: Bounds) -> pa.BooleanArray:
    """Tell for each file whether `left operator right` may be true of some row.

    Parameters
    ----------
    operator
        One of `= <=> <> < <= > >=`, or `<!=>`, the negation of `<=>`.
    """
    if operator == "<=>":
        both_null = pc.and_(left.may_be_null, right.may_be_null)
        return pc.or_(may_compare("=", left, right), both_null)
    if operator == "<!=>":
        one_null = pc.or_(
            pc.and_(left.may_be_null, right.may_be_value), pc.and_(left.may_be_value, right.may_be_null)
        )
        return pc.or_(may_compare("<>", left, right), one_null)
    values = pc.and_(left.may_be_value, right.may_be_value)
    return pc.and_(values, _ordered(operator, left, right))


def _ordered(operator: str, left: Bounds, right: Bounds) -> pa.BooleanArray:
    n = len(left)
    if operator == "<":
        return _below(left.low, right.high, n)
    if operator == "<=":
        return _below(left.low, right.high, n, or_equal=True)
    if operator in (">", ">="):
        return _ordered("<" if operator == ">" else "<=", right, left)
    if operator == "=":
        return pc.and_(_below(left.low, right.high, n, or_equal=True),
                       _below(right.low, left.high, n, or_equal=True))  # fmt: skip
    return pc.or_(_below(left.low, right.high, n), _below(right.low, left.high, n))


def _below(
    low: pa.Array | pa.Scalar | None, high: pa.Array | pa.Scalar | None, length: int, or_equal: bool = False
) -> pa.BooleanArray:
    """Whether `low < high` (or `<=`), true where either is unknown."""
    pair = None if low is None or high is None else _comparable(low, high)
    if pair is None:
        return same_for_all(True, length)
    low, high = pair
    below = pc.less_equal(low, high) if or_equal else pc.less(low, high)
    if pa.types.is_floating(low.type):
        top = pc.is_nan(high)
        below = pc.or_(below, top if or_equal else pc.and_not(top, pc.is_nan(low)))
    if isinstance(below, pa.Scalar):
        return same_for_all(not below.is_valid or below.as_py(), length)
    return below.fill_null(TRUE)


def _comparable(
    low: pa.Array | pa.Scalar, high: pa.Array | pa.Scalar
) -> tuple[pa.Array | pa.Scalar, pa.Array | pa.Scalar] | None:
    """Both in a type that Arrow compares as Spark would; None for types that only a cast makes comparable."""
    if low.type == high.type:
        return low, high
    if pa.types.is_decimal(low.type) and pa.types.is_decimal(high.type):
        scale = max(low.type.scale, high.type.scale)
        whole = max(low.type.precision - low.type.scale, high.type.precision - high.type.scale)
        wide = pa.decimal256(_WIDEST_DECIMAL, scale)
        return (low.cast(wide), high.cast(wide)) if whole + scale <= _WIDEST_DECIMAL else None
    for family, wide in ((pa.types.is_integer, pa.int64()), (pa.types.is_floating, pa.float64())):
        if family(low.type) and family(high.type):
            return low.cast(wide), high.cast(wide)
    return None


def may_start_with(values: Bounds, prefix: str) -> pa.BooleanArray:
    """Tell for each file whether some string may start with the prefix."""
    low, high, first, after = _prefix_range(values, prefix)
    n = len(values)
    inside = pc.and_(_below(first, high, n, or_equal=True), _below(low, after, n))
    return pc.and_(values.may_be_value, inside)


def may_not_start_with(values: Bounds, prefix: str) -> pa.BooleanArray:
    """Tell for each file whether some string may not start with the prefix."""
    low, high, first, after = _prefix_range(values, prefix)
    n = len(values)
    outside = pc.or_(_below(low, first, n), _below(after, high, n, or_equal=True))
    return pc.and_(values.may_be_value, outside)


def _prefix_range(
    values: Bounds, prefix: str
) -> tuple[pa.Array | None, pa.Array | None, pa.Scalar, pa.Scalar]:
    """The values as bytes, the first text that starts with the prefix, and the first after all those."""
    start = prefix.encode()
    # UTF-8 never holds the byte 0xFF, so the last byte can always be counted up.
    after = start[:-1] + bytes([start[-1] + 1]) if start else b"\xff"
    low, high = (None if v is None else v.cast(pa.binary()) for v in (values.low, values.high))
    return low, high, scalar_of(start, BINARY), scalar_of(after, BINARY)


def cast(values: Bounds, found: DataType | None, wanted: DataType, timezone: str | None) -> Bounds | None:
    """The bounds after a cast that keeps the order and never fails; None for all others.

    Parameters
    ----------
    found, wanted
        The types before and after.
    timezone
        The session's zone. Unless it is UTC, casts that depend on it give bounds that hold in every zone.
    """
    if found == wanted:
        return values
    name = None if found is None else str(found)
    if name in _INTEGER_DIGITS or isinstance(found, DecimalType):
        fits = _keeps_numbers(found, wanted)
        return _map(values, arrow_type(wanted)) if fits else None
    if name == "float" and str(wanted) == "double":
        return _map(values, pa.float64())
    if name in ("date", "timestamp", "timestamp_ntz"):
        return _cast_time(values, name, str(wanted), timezone)
    return None


def _keeps_numbers(found: DataType | None, wanted: DataType) -> bool:
    if isinstance(found, DecimalType):
        return (
            isinstance(wanted, DecimalType)
            and wanted.scale >= found.scale
            and wanted.precision - wanted.scale >= found.precision - found.scale
        )
    digits = _INTEGER_DIGITS[str(found)]
    if isinstance(wanted, DecimalType):
        return wanted.precision - wanted.scale >= digits
    name = str(wanted)
    return name in ("float", "double") or _INTEGER_DIGITS.get(name, 0) > digits


def _map(values: Bounds, wanted: pa.DataType) -> Bounds:
    def convert(side: pa.Array | pa.Scalar | None) -> pa.Array | pa.Scalar | None:
        if side is None:
            return None
        if pa.types.is_decimal(wanted) and pa.types.is_integer(side.type):
            side = side.cast(pa.decimal128(38, 0))
        # Long to double rounds, which keeps the order.
        return pc.cast(side, wanted, safe=not pa.types.is_floating(wanted))

    return Bounds(convert(values.low), convert(values.high), values.may_be_null, values.may_be_value)


def _cast_time(values: Bounds, found: str, wanted: str, timezone: str | None) -> Bounds | None:
    """Casts among date, timestamp and timestamp_ntz: through the microseconds of a local time or instant."""
    if wanted not in ("date", "timestamp", "timestamp_ntz"):
        return None
    zoned = "timestamp" in (found, wanted)
    slack = DAY_US if zoned and timezone != "UTC" else 0
    low, high = _shift_time(values.low, wanted, -slack), _shift_time(values.high, wanted, slack)
    return Bounds(low, high, values.may_be_null, values.may_be_value)


def _shift_time(side: pa.Array | pa.Scalar | None, wanted: str, shift_us: int) -> pa.Array | pa.Scalar | None:
    if side is None:
        return None
    micros = pc.add(_micros(side), _long(shift_us))
    if wanted != "date":
        return micros.cast(arrow_type(PrimitiveType(wanted)))
    # Integer division rounds towards zero, days before 1970 go down.
    days = pc.divide(micros, _long(DAY_US))
    down = pc.less(pc.subtract(micros, pc.multiply(days, _long(DAY_US))), _long(0))
    return pc.subtract(days, down.cast(pa.int64())).cast(pa.int32()).cast(pa.date32())


def _micros(side: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    if pa.types.is_timestamp(side.type):
        return _within(side.cast(pa.int64()), _MAX_US)
    days = side.cast(pa.int32()).cast(pa.int64())
    return pc.multiply(_within(days, _MAX_US // DAY_US), _long(DAY_US))


def _within(numbers: pa.Array | pa.Scalar, limit: int) -> pa.Array | pa.Scalar:
    """The numbers that leave room for arithmetic; others are unknown."""
    inside = pc.and_(pc.less(numbers, _long(limit)), pc.greater(numbers, _long(-limit)))
    return pc.if_else(inside, numbers, _long(None))


def _long(value: int | None) -> pa.Int64Scalar:
    return scalar_of(value, LONG)


def after_truncation(high: pa.Array) -> pa.Array:
    """The greatest timestamps that statistics cut to the given milliseconds."""
    return shift_instants(high, 999)


def shift_instants(instants: pa.Array, by_us: int) -> pa.Array:
    """The timestamps moved by some microseconds."""
    return pc.add(_within(instants.cast(pa.int64()), _MAX_US), _long(by_us)).cast(instants.type)


def or_float(side: pa.Array, *, upper: bool) -> pa.Array:
    """The double bounds of a column that was float once.

    The text 3.4 stands for the double 3.4 in files written as double, and for the float nearest to it, a
    slightly other double, in files written as float.
    """
    narrow = pc.cast(pc.cast(side, pa.float32(), safe=False), pa.float64())
    choose = pc.max_element_wise if upper else pc.min_element_wise
    return choose(side, narrow, skip_nulls=False)


def or_nan(high: pa.Array, unless: pa.BooleanArray) -> pa.Array:
    """The greatest floats where some writers leave NaN, the greatest of all, out of the statistics."""
    return pc.if_else(
        unless, high, pc.if_else(high.is_valid(), scalar_of(math.nan, DOUBLE).cast(high.type), high)
    )


def or_rounded(side: pa.Array, *, upper: bool) -> pa.Array:
    """Decimal bounds that may have been doubles on their way into the statistics, moved as far as those may be off.

    A double keeps 15 digits and is written with at most 17, so a bound with fewer or with more is exact.
    """
    kind = side.type
    if kind.precision <= _DIGITS_OF_DOUBLES:
        return side
    whole = _with_scale(side, pa.decimal128(kind.precision, 0))
    digits = pc.utf8_ltrim(whole.cast(pa.string()), "-")
    many = pc.greater(pc.utf8_length(digits), _long(_DIGITS_OF_DOUBLES).cast(pa.int32()))
    few = pc.less_equal(pc.utf8_length(pc.utf8_rtrim(digits, "0")), _long(_DIGITS_OF_TEXT).cast(pa.int32()))
    doubtful = pc.and_(many, few)
    if not doubtful.true_count:
        return side
    wide = pa.decimal256(_WIDEST_DECIMAL - 2, 0)
    slack = pc.multiply(pc.abs(whole.cast(pa.float64())), scalar_of(_OFF_BY, DOUBLE)).cast(wide, safe=False)
    moved = (pc.add if upper else pc.subtract)(whole.cast(wide), slack)
    most = texts([str(10**kind.precision - 1)])[0].cast(moved.type)
    moved = pc.min_element_wise(moved, most) if upper else pc.max_element_wise(moved, pc.negate(most))
    return pc.if_else(doubtful, _with_scale(moved.cast(whole.type), kind), side)


def _with_scale(decimals: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same digits with the point elsewhere."""
    return pa.Array.from_buffers(kind, len(decimals), decimals.buffers(), offset=decimals.offset)
