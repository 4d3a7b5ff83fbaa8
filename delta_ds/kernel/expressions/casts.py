"""`CAST` and `TRY_CAST` between primitive types on Arrow, as Spark's ANSI mode has them.

A cast that cannot hold a value raises; with `safe` it gives null. Conversions from and to text run once per
distinct value.

Source: Spark's `Cast`, `UTF8String.toLongExact`, `Double.toString`, `SparkDateTimeUtils`.
"""

from __future__ import annotations

import datetime
import math
import re
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.expressions import CAST_INVALID_INPUT_VALUE
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.expressions.arrays import map_unique, micros, scalar_of, storage_type
from delta_ds.kernel.expressions.coercion import FRACTIONAL, INTEGER_BITS, INTEGRAL, in_range, is_numeric
from delta_ds.kernel.expressions.temporal import (
    format_timestamp,
    instants,
    local_times,
    parse_date,
    parse_timestamp,
    to_local,
    zone_of,
)
from delta_ds.kernel.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)

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
        BOOLEAN: lambda text: _BOOLEANS.get(text.strip().lower()),
        DATE: parse_date,
        TIMESTAMP_NTZ: lambda text: parse_timestamp(text, None),
        BINARY: lambda text: text.encode(),
    }
    return readers[target]


_BOOLEANS = {
    **dict.fromkeys(["t", "true", "y", "yes", "1"], True),
    **dict.fromkeys(["f", "false", "n", "no", "0"], False),
}


def _read_whole(text: str, target: DataType) -> int | None:
    if not re.fullmatch(r"[+-]?[0-9]+", text.strip()):
        return None
    number = int(text)
    return number if in_range(number, target) else None


def _read_decimal(text: str, target: DecimalType) -> Decimal | None:
    try:
        return to_decimal(Decimal(text.strip()), target) if "_" not in text else None
    except InvalidOperation:
        return None


def _read_double(text: str, target: DataType) -> float | None:
    text = text.strip().lower()
    if text.lstrip("+-") in ("inf", "infinity", "nan") and text not in ("+nan", "-nan"):
        return float(text)
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?[df]?", text):
        return None
    return narrow(float(text.rstrip("df")), target)


# --- values to text


def _writer(source: DataType, timezone: str | None) -> Callable[[Any], str]:
    if source in FRACTIONAL:
        return lambda number: format_double(number, source)
    if isinstance(source, DecimalType):
        return lambda number: f"{number:f}"
    if source == TIMESTAMP:
        zone = zone_of(needs_zone(timezone))
        return lambda instant: format_timestamp(to_local(instant, zone))
    writers: dict[DataType, Callable[[Any], str]] = {
        BOOLEAN: lambda flag: "true" if flag else "false",
        DATE: lambda day: str(day.isoformat()),
        TIMESTAMP_NTZ: format_timestamp,
        BINARY: lambda data: str(data.decode(errors="replace")),
    }
    return writers.get(source, str)


def format_double(number: float, data_type: DataType = DOUBLE) -> str:
    """Java's `Double.toString` (or `Float.toString`): the shortest digits, `1.0E7` from ten million on."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    text = repr(number)
    if data_type == FLOAT:
        text = next(t for t in (f"{number:.{p}g}" for p in range(1, 18)) if narrow(float(t), FLOAT) == number)
    sign, digits, exponent = Decimal(text).as_tuple()
    if not any(digits):
        return "-0.0" if sign else "0.0"
    figures = "".join(map(str, digits)).rstrip("0")
    power = len(digits) + int(exponent) - 1
    if -3 <= power < 7:
        plain = f"{Decimal(text):f}"
        plain = plain.rstrip("0") if "." in plain else plain + "."
        return plain + "0" if plain.endswith(".") else plain
    return f"{'-' * sign}{figures[0]}.{figures[1:] or '0'}E{power}"


# --- numbers to numbers


def narrow(number: float, target: DataType) -> float:
    """The nearest value of the type: a float is rounded to 32 bits, infinite if it is too large."""
    if target != FLOAT or not math.isfinite(number):
        return number
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


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
    arrow = storage_type(target)
    if source == BOOLEAN:
        value, source = value.cast(pa.int32()), LONG
        if not isinstance(target, DecimalType):
            return value.cast(arrow)
    if isinstance(target, DecimalType):
        if source in INTEGRAL or isinstance(source, DecimalType):
            widened = _widened_decimal(value, source, target)
            if widened is not None:
                return widened
        as_number = Decimal if source not in FRACTIONAL else lambda x: Decimal(format_double(x, source))
        return _convert_distinct(value, source, target, lambda x: to_decimal(as_number(x), target), safe)
    if isinstance(source, DecimalType):
        # Arrow's own conversion of decimals to doubles is not correctly rounded.
        convert = _truncation(target) if target in INTEGRAL else lambda x: narrow(float(x), target)
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
    return value.cast(storage_type(target))


def _truncation(target: DataType) -> Callable[[Any], int | None]:
    def convert(number: Any) -> int | None:
        if isinstance(number, float) and not math.isfinite(number):
            return None
        whole = int(number)
        return whole if in_range(whole, target) else None

    return convert


# --- dates and timestamps


def _from_time(value: Value, source: DataType, target: DataType, safe: bool, timezone: str | None) -> Value:
    if is_numeric(target):
        seconds = map_unique(lambda t: micros(t) // _SECOND, value, TIMESTAMP, LONG)
        if isinstance(target, DecimalType) or target in FRACTIONAL:
            exact = DecimalType(38, 6)
            parts = map_unique(lambda t: Decimal(micros(t)).scaleb(-6), value, TIMESTAMP, exact)
            return _number(parts, exact, target, safe)
        return _number(seconds, LONG, target, safe)
    if source == TIMESTAMP:
        local = local_times(value, needs_zone(timezone))
        return local if target == TIMESTAMP_NTZ else _day(local)
    if source == TIMESTAMP_NTZ and target == DATE:
        return _day(value)
    local = value.cast(pa.timestamp("us"))
    return instants(local, needs_zone(timezone)) if target == TIMESTAMP else local


def _day(local: Value) -> Value:
    return pc.floor_temporal(local, unit="day").cast(pa.date32())


def _from_seconds(number: Any) -> datetime.datetime | None:
    from delta_ds.kernel.expressions.arrays import from_micros

    if isinstance(number, float) and not math.isfinite(number):
        return None
    try:
        return from_micros(math.floor(number * _SECOND), True)
    except OverflowError:
        return None
