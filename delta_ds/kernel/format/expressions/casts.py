"""`CAST` and `TRY_CAST` between primitive types on Arrow, as Spark's ANSI mode has them.

A cast that cannot hold a value raises; with `safe` it gives null. Conversions from and to text run once per
distinct value. Dates and timestamps are numbers throughout: days and microseconds since 1970.

Source: Spark's `Cast`, `UTF8String.toLongExact`, `Double.toString`, `SparkDateTimeUtils`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, InvalidOperation, localcontext
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.expressions import CAST_INVALID_INPUT_VALUE
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.arrays import map_numbers, map_unique, scalar_of
from delta_ds.kernel.format.expressions.coercion import (
    FRACTIONAL,
    INTEGER_BITS,
    INTEGRAL,
    in_range,
    is_numeric,
)
from delta_ds.kernel.format.expressions.moments import DAY_US, date_text, local_text
from delta_ds.kernel.format.expressions.temporal import (
    BLANKS,
    instants_at,
    local_of,
    parse_date,
    parse_timestamp,
)
from delta_ds.kernel.format.expressions.zones import local_micros, zone_of
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
    arrow_type,
)

# How Scala computes with decimals, where it is not told otherwise.
SCALA = Context(prec=34, rounding=ROUND_HALF_EVEN)

Value: TypeAlias = "pa.Array | pa.Scalar"
_SECOND = 1_000_000


def cast_value(value: Value, source: DataType, target: DataType, safe: bool, timezone: str | None) -> Value:
    """Cast Arrow values from one Delta type to another.

    Raises
    ------
    PredicateError
        A value does not fit or cannot be read and `safe` is false, or the cast needs a time zone.
    """
    if source == target:
        return value
    if source == VOID:
        kind = arrow_type(target)
        return pa.scalar(None, kind) if isinstance(value, pa.Scalar) else pa.nulls(len(value), kind)
    if source == STRING:
        return _convert_distinct(value, STRING, target, _reader(target, timezone), safe)
    if target == STRING:
        return map_unique(_writer(source, timezone), value, source, STRING)
    if target == BOOLEAN:
        return pc.not_equal(value, scalar_of(Decimal(0) if isinstance(source, DecimalType) else 0, source))
    if source in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return _from_time(value, source, target, safe, timezone)
    if target == TIMESTAMP:
        return _convert_distinct(value, source, TIMESTAMP, _from_seconds, safe)
    return _number(value, source, target, safe)


def needs_zone(timezone: str | None) -> str:
    """The time zone, where an expression cannot do without."""
    if timezone is None:
        raise PredicateError(
            "the expression depends on the session time zone but was not bound; call bind() first"
        )
    return timezone


def _convert_distinct(
    value: Value, source: DataType, target: DataType, convert: Callable[[Any], Any], safe: bool
) -> Value:
    """Convert distinct values in Python; None means that the value has no counterpart."""

    def checked(item: Any) -> Any:
        result = convert(item)
        if result is None and not safe:
            raise CAST_INVALID_INPUT_VALUE(item=item, source=source, target=target)
        return result

    return map_unique(checked, value, source, target)


# --- text to values


def _reader(target: DataType, timezone: str | None) -> Callable[[str], Any]:
    if target in INTEGRAL:
        return lambda text: _read_whole(text, target)
    if isinstance(target, DecimalType):
        return lambda text: _read_decimal(text, target)
    if target in FRACTIONAL:
        return lambda text: _read_double(text, target)
    if target == TIMESTAMP:
        zone = zone_of(needs_zone(timezone))
        return lambda text: parse_timestamp(text, zone)
    readers: dict[DataType, Callable[[str], Any]] = {
        BOOLEAN: lambda text: _BOOLEANS.get(text.strip(BLANKS).lower()),
        DATE: parse_date,
        TIMESTAMP_NTZ: lambda text: parse_timestamp(text, None),
        BINARY: lambda text: text.encode(),
    }
    return readers[target]


_BOOLEANS = {
    **dict.fromkeys(["t", "true", "y", "yes", "1"], True),
    **dict.fromkeys(["f", "false", "n", "no", "0"], False),
}


_MOST_DIGITS = 1000  # Python reads no more than some thousands, and no type holds a hundred


def _read_whole(text: str, target: DataType) -> int | None:
    digits = re.fullmatch(r"([+-]?)0*([0-9]+)", text.strip(BLANKS))
    if digits is None or len(digits[2]) > _MOST_DIGITS:
        return None
    number = int(digits[1] + digits[2])
    return number if in_range(number, target) else None


_SPACES = "".join(map(chr, range(33)))


_INFINITIES = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE](?P<exponent>[+-]?[0-9]+))?", re.ASCII)
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")


# Of a number that Java's BigDecimal holds.
_MOST_EXPONENT = 2**31 - 1


def _read_decimal(text: str, target: DecimalType) -> Decimal | None:
    number = _NUMBER.fullmatch(text.strip(_SPACES))
    exponent = number and number["exponent"]
    if number is None or (exponent and (len(exponent) > 12 or abs(int(exponent)) > _MOST_EXPONENT)):
        return None
    try:
        return to_decimal(Decimal(number[0]), target)
    except InvalidOperation:
        return None


def _read_double(text: str, target: DataType) -> float | None:
    text = text.strip(_SPACES)
    infinite = _INFINITIES.fullmatch(text)
    if infinite:
        return -math.inf if infinite[1] == "-" else math.inf
    if text.lower() == "nan" or text in ("+NaN", "-NaN"):
        return math.nan
    number = text[:-1] if text[-1:] in ("d", "D", "f", "F") else text
    if _NUMBER.fullmatch(number):
        double = float(number)
        return nearest(Decimal(number), target) if target == FLOAT and 0 < abs(double) < math.inf else double
    if not _HEXADECIMAL.fullmatch(text):
        return None
    try:
        return narrow(float.fromhex(text), target)
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf


# --- values to text


def _writer(source: DataType, timezone: str | None) -> Callable[[Any], str]:
    if source in FRACTIONAL:
        from delta_ds.kernel.format.expressions.plain_sql import double_text, float_text

        return float_text if source == FLOAT else double_text
    if isinstance(source, DecimalType):
        return lambda number: f"{number:f}"
    if source == TIMESTAMP:
        zone = zone_of(needs_zone(timezone))
        return lambda instant: local_text(local_micros(instant, zone))
    writers: dict[DataType, Callable[[Any], str]] = {
        BOOLEAN: lambda flag: "true" if flag else "false",
        DATE: date_text,
        TIMESTAMP_NTZ: local_text,
        BINARY: _text_of_bytes,
    }
    return writers.get(source, str)


def _text_of_bytes(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise PredicateError(f"the bytes {data.hex().upper()} are no text in UTF-8") from error


# --- numbers to numbers


def narrow(number: float, target: DataType) -> float:
    """The nearest value of the type: a float is rounded to 32 bits, infinite if it is too large."""
    if target != FLOAT or not math.isfinite(number):
        return number
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def nearest(number: Decimal, target: DataType) -> float:
    """The value of the type that is nearest to a decimal, of two the even one."""
    double = float(number)
    if target != FLOAT or not math.isfinite(double) or not number.is_finite():
        return double
    rounded = narrow(double, FLOAT)
    beside = 2 * double - rounded  # if `double` lies in the middle between two floats, the other of them
    if rounded == double or not math.isfinite(rounded) or narrow(beside, FLOAT) != beside:
        return rounded
    exact = Decimal(double)
    if number == exact or (number > exact) == (rounded > beside):
        return rounded
    return beside


def to_decimal(number: Decimal, target: DecimalType) -> Decimal | None:
    """The number at the type's scale, rounded half up; None if it has too many digits or is not finite."""
    if not number.is_finite():
        return None
    with localcontext() as context:
        context.prec = 400
        if number.adjusted() > 100:
            return None
        rounded = number.quantize(Decimal(1).scaleb(-target.scale), rounding=ROUND_HALF_UP)
        return rounded if abs(rounded) < Decimal(10) ** (target.precision - target.scale) else None


def _number(value: Value, source: DataType, target: DataType, safe: bool) -> Value:
    arrow = arrow_type(target)
    if source == BOOLEAN:
        value, source = value.cast(pa.int32()), LONG
        if not isinstance(target, DecimalType):
            return value.cast(arrow)
    if isinstance(target, DecimalType):
        if source in INTEGRAL or isinstance(source, DecimalType):
            widened = _widened_decimal(value, source, target)
            if widened is not None:
                return widened
        if source in FRACTIONAL:
            value = pc.if_else(pc.is_finite(value), value, scalar_of(None, source))
        as_number = Decimal if source not in FRACTIONAL else lambda x: Decimal(repr(x))
        return _convert_distinct(value, source, target, lambda x: to_decimal(as_number(x), target), safe)
    if isinstance(source, DecimalType):
        # Arrow's own conversion of decimals to doubles is not correctly rounded.
        convert = _truncation(target) if target in INTEGRAL else lambda x: nearest(x, target)
        return _convert_distinct(value, source, target, convert, safe)
    if target in FRACTIONAL:
        return pc.cast(value, arrow, safe=False)
    if source in FRACTIONAL:
        return _convert_distinct(value, source, target, _truncation(target), safe)
    if INTEGER_BITS[target] < INTEGER_BITS[source]:
        return (
            _convert_distinct(value, source, target, _truncation(target), safe)
            if safe
            else pc.cast(value, arrow)
        )
    return value.cast(arrow)


def _widened_decimal(value: Value, source: DataType, target: DecimalType) -> Value | None:
    """The values in a decimal type that holds all of them; None if it does not."""
    digits = {8: 3, 16: 5, 32: 10, 64: 19}
    whole = digits[INTEGER_BITS[source]] if source in INTEGER_BITS else source.precision - source.scale  # type: ignore[union-attr]
    scale = 0 if source in INTEGER_BITS else source.scale  # type: ignore[union-attr]
    if target.precision - target.scale < whole or target.scale < scale:
        return None
    return value.cast(arrow_type(target))


def _truncation(target: DataType) -> Callable[[Any], int | None]:
    def convert(number: Any) -> int | None:
        if isinstance(number, float):
            if not math.isfinite(number):
                return None
            if number == 2.0**63 and target == LONG:
                return (1 << 63) - 1  # as Java has it: the greatest long is this double
        whole = int(number)
        return whole if in_range(whole, target) else None

    return convert


# --- dates and timestamps


def _from_time(value: Value, source: DataType, target: DataType, safe: bool, timezone: str | None) -> Value:
    if is_numeric(target):
        if isinstance(target, DecimalType):
            exact = DecimalType(38, 6)
            parts = map_unique(lambda micros: Decimal(micros).scaleb(-6), value, TIMESTAMP, exact)
            return _number(parts, exact, target, safe)
        if target in FRACTIONAL:
            seconds = map_unique(lambda micros: float(micros) / _SECOND, value, TIMESTAMP, DOUBLE)
            return _number(seconds, DOUBLE, target, safe) if target != DOUBLE else seconds
        whole = map_numbers(lambda micros: micros // _SECOND, value, pa.int64())
        return _number(whole, LONG, target, safe)
    if source == TIMESTAMP:
        local = local_of(value, needs_zone(timezone))
        return local if target == TIMESTAMP_NTZ else _day(local)
    if source == TIMESTAMP_NTZ and target == DATE:
        return _day(value)
    local = value if source == TIMESTAMP_NTZ else midnight(value)
    return instants_at(local, needs_zone(timezone)) if target == TIMESTAMP else local


def _day(local: Value) -> Value:
    return map_numbers(lambda micros: micros // DAY_US, local, pa.date32())


def midnight(days: Value) -> Value:
    """The wall clock time (`timestamp[us]`) at which a day begins.

    Raises
    ------
    OverflowError
        64 bits do not hold its microseconds since 1970.
    """
    if isinstance(days, pa.Scalar):
        return midnight(pa.repeat(days, 1))[0]
    micros = pc.multiply_checked(days.view(pa.int32()).cast(pa.int64()), scalar_of(DAY_US, LONG))
    return micros.view(pa.timestamp("us"))


def _from_seconds(number: Any) -> int | None:
    """Microseconds of seconds since 1970: the lowest 64 bits of a decimal, the last moment for a long beyond it."""
    least, most = -(1 << 63), (1 << 63) - 1
    if isinstance(number, Decimal):
        low = int(SCALA.multiply(number, Decimal(_SECOND))) & ((1 << 64) - 1)
        return low - (1 << 64) if low >> 63 else low
    micros = number * _SECOND
    if isinstance(micros, float):
        if not math.isfinite(micros):
            return None
        whole = int(micros)
        return min(whole, most) if least <= whole <= most + 1 else None
    return int(max(least, min(most, micros)))


# --- comparison of values as Spark orders them: NaN equals NaN and is above every number, -0.0 equals 0.0
