"""Partition values: from the text of `partitionValues` to typed Arrow arrays, and from typed values to text.

Text is read as Spark's non-ANSI `CAST(text AS type)` reads it; what it cannot read is null. It is written as
`CAST(value AS STRING)` writes it; the log has timestamps in UTC with six decimals, directories in local time.

Source: PROTOCOL.md, "Partition Value Serialization" (protocol-checklist section 38, PV-RW-01 to 03).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import datetime, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from delta_ds.conditions.schema import INVALID_PARTITION_COLUMN_TYPE, PARTITION_VALUE_NOT_TEXT
from delta_ds.kernel.data.values.calendars import DAY_US, civil_from_days, days_from_civil, local_to_utc, zone
from delta_ds.kernel.data.values.float_text import double_text, float_text
from delta_ds.kernel.expressions.arrays import array_of
from delta_ds.kernel.schema.types import (
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    PrimitiveType,
    arrow_type,
)

_INTEGER = re.compile(r"([+-]?\d+)(?:\.\d*)?")
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?")
_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?")
_TIMESTAMP = re.compile(
    r"([+-]?\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?\s*([A-Za-z+-].*)?)?)?)?"
)
_MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_INTEGER_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_DOUBLES = {"inf": "inf", "infinity": "inf", "nan": "nan"}
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_FLOAT_LIMIT = 3.4028235677973366e38  # what rounds to infinity as a 32-bit float
_EXACT = Context(prec=80, rounding=ROUND_HALF_UP)


def parse(values: pa.Array | pa.ChunkedArray, data_type: DataType, timezone: str = "UTC") -> pa.Array:
    """Give partition values their type; each distinct text is parsed once.

    Parameters
    ----------
    values
        Texts as the log has them; null and (for any type but string) the empty text mean null.
    data_type
        The column's type: any but array, map, struct and variant.
    timezone
        The zone of `timestamp` texts that name none. A gap moves forward, of two times the earlier counts.

    Returns
    -------
    pa.Array
        As long as `values`, of `arrow_type(data_type)`. Texts that are no value of the type are null.

    Raises
    ------
    SchemaError
        The type cannot be a partition column's.

    Source: protocol-checklist PV-RW-01 to 03.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    values = values.cast(pa.string())
    if data_type == STRING:
        return values
    encoded = values.dictionary_encode()
    read = _reader_of(data_type, timezone)
    texts: list[str | None] = encoded.dictionary.to_pylist()
    parsed = [None if not text else read(text) for text in texts]
    return _typed(parsed, data_type).take(encoded.indices)


def comparable_values(values: pa.Array) -> list[Any]:
    """What `parse` gave as Python values that compare as Spark's do: dates and timestamps as numbers.

    Python's own dates end with the year 9999.
    """
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        values = values.view(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    found: list[Any] = values.to_pylist()
    return found


def _typed(parsed: list[Any], data_type: DataType) -> pa.Array:
    wanted = arrow_type(data_type)
    if data_type == DATE:
        return array_of(parsed, INTEGER).view(wanted)
    if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        return array_of(parsed, LONG).view(wanted)
    return array_of(parsed, data_type)


def _reader_of(data_type: DataType, timezone: str) -> Callable[[str], Any]:
    if isinstance(data_type, DecimalType):
        return lambda text: _decimal(text, data_type.precision, data_type.scale)
    name = data_type.name if isinstance(data_type, PrimitiveType) else ""
    if name in _INTEGER_BITS:
        return lambda text: _integer(text, _INTEGER_BITS[name])
    if name == "timestamp":
        return lambda text: timestamp_micros(text, timezone)
    if name not in _READERS:
        raise INVALID_PARTITION_COLUMN_TYPE(data_type=data_type)
    return _READERS[name]


def _boolean(text: str) -> bool | None:
    folded = text.strip().lower()
    return True if folded in _TRUE else False if folded in _FALSE else None


def _integer(text: str, bits: int) -> int | None:
    match = _INTEGER.fullmatch(text.strip())
    if match is None:
        return None
    value = int(match[1])
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None


def _double(text: str) -> float | None:
    folded = text.strip().lower()
    sign = -1.0 if folded.startswith("-") else 1.0
    special = _DOUBLES.get(folded.lstrip("+-"))
    if special is not None:
        return sign * float(special)
    return float(folded.rstrip("df")) if _FLOAT.fullmatch(folded) else None


def _float(text: str) -> float | None:
    value = _double(text)
    beyond = value is not None and math.isfinite(value) and abs(value) >= _FLOAT_LIMIT
    return math.copysign(math.inf, value) if value is not None and beyond else value


def _decimal(text: str, precision: int, scale: int) -> Decimal | None:
    try:
        value = _EXACT.quantize(Decimal(text.strip()), Decimal(1).scaleb(-scale))
    except InvalidOperation:
        return None
    return value if value.is_finite() and value.adjusted() < precision - scale or value == 0 else None


def _date_days(text: str) -> int | None:
    match = _DATE.fullmatch(text.strip())
    return None if match is None else _days(match[1], match[2], match[3])


def _days(year: str, month: str | None, day: str | None) -> int | None:
    y, m, d = int(year), int(month or 1), int(day or 1)
    if not (1 <= m <= 12 and 1 <= d <= _MONTH_DAYS[m - 1]):
        return None
    if (m, d) == (2, 29) and not (y % 4 == 0 and (y % 100 != 0 or y % 400 == 0)):
        return None
    days: int = days_from_civil(y, m, d)
    return days if -(1 << 31) <= days < 1 << 31 else None


def _split_timestamp(text: str) -> tuple[int, str | None] | None:
    """Microseconds since 1970 of the local time, and the zone that follows it."""
    match = _TIMESTAMP.fullmatch(text.strip())
    days = None if match is None else _days(match[1], match[2], match[3])
    if match is None or days is None:
        return None
    hour, minute, second = (int(part or 0) for part in match.group(4, 5, 6))
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((match[7] or "")[:6].ljust(6, "0"))
    micros = days * DAY_US + ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
    return micros, match[8]


def timestamp_micros(text: str, timezone: str) -> int | None:
    """The instant a text names, in microseconds since 1970 UTC; in `timezone` if it names no zone."""
    split = _split_timestamp(text)
    if split is None:
        return None
    micros, named = split
    where = _zone_or_none(named) if named else zone(timezone)
    instant = None if where is None else local_to_utc(micros, where)
    return instant if instant is not None and -(1 << 63) <= instant < 1 << 63 else None


def _zone_or_none(name: str) -> tzinfo | None:
    from delta_ds.exceptions import InvalidOptionError

    try:
        return zone(name)
    except InvalidOptionError:
        return None


def _timestamp_ntz(text: str) -> int | None:
    split = _split_timestamp(text)
    return None if split is None else split[0]


_READERS: dict[str, Callable[[str], Any]] = {
    "boolean": _boolean,
    "float": _float,
    "double": _double,
    "date": _date_days,
    "timestamp_ntz": _timestamp_ntz,
    "binary": lambda text: text.encode(),
    "void": lambda text: None,
}


# --- typed values as text, in the log and in directory names

# The directory of null; as the text of a value it reads back as null everywhere, so it is stored as null.
NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_BITS: dict[str, pa.DataType] = {
    "float": pa.int32(), "double": pa.int64(), "date": pa.int32(), "timestamp": pa.int64(),
    "timestamp_ntz": pa.int64(), "string": pa.binary(),
}  # fmt: skip

Text = Callable[[Any], "str | None"]


def distinct_form(values: pa.Array, data_type: DataType) -> pa.Array:
    """The values in a form whose Python objects the functions of this module take.

    Numbers stand for dates and timestamps, bits for floats (so that -0.0 is not 0.0), bytes for strings.
    """
    bits = _BITS.get(str(data_type))
    return values if bits is None else values.view(bits)


def log_text(data_type: DataType) -> Text:
    """The function that writes a value for `partitionValues`; None stands for null, the empty string and
    the name that Hive gives to null.

    Raises
    ------
    SchemaError
        The type cannot be a partition column's. From the function: bytes that are not UTF-8, which the log
        cannot hold.
    """
    if isinstance(data_type, DecimalType):
        return lambda value: format(value, "f")
    name = data_type.name if isinstance(data_type, PrimitiveType) else ""
    if name not in _LOG_TEXT:
        raise INVALID_PARTITION_COLUMN_TYPE(data_type=data_type)
    return _LOG_TEXT[name]


def directory_text(data_type: DataType, timezone_name: str) -> Text | None:
    """The function that writes a value for a directory, where it is another text than in the log."""
    if str(data_type) != "timestamp":
        return None
    where = zone(timezone_name)

    def text(micros: int) -> str:
        try:
            offset = (_EPOCH + timedelta(microseconds=micros)).astimezone(where).utcoffset()
        except OverflowError:  # Python's years end at 9999; the name of a directory carries no meaning
            offset = None
        shift = 0 if offset is None else round(offset.total_seconds() * 1_000_000)
        return _local_text(micros + shift)

    return text


def _date(days: int) -> str:
    year, month, day = civil_from_days(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def _clock(rest_us: int) -> str:
    seconds = rest_us // 1_000_000
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def _utc_text(micros: int) -> str:
    days, rest = divmod(micros, DAY_US)
    return f"{_date(days)}T{_clock(rest)}.{rest % 1_000_000:06d}Z"


def _local_text(micros: int) -> str:
    days, rest = divmod(micros, DAY_US)
    fraction = f".{rest % 1_000_000:06d}".rstrip("0").rstrip(".")
    return f"{_date(days)} {_clock(rest)}{fraction}"


def _utf8(data: bytes) -> str | None:
    try:
        text = data.decode()
        return None if text in ("", NULL_DIRECTORY) else text
    except UnicodeDecodeError as error:
        raise PARTITION_VALUE_NOT_TEXT(value=data.hex().upper()) from error


_LOG_TEXT: dict[str, Text] = {
    "boolean": lambda value: "true" if value else "false",
    "byte": str,
    "short": str,
    "integer": str,
    "long": str,
    "float": lambda bits: float_text(struct.unpack("<f", struct.pack("<i", bits))[0]),
    "double": lambda bits: double_text(struct.unpack("<d", struct.pack("<q", bits))[0]),
    "date": _date,
    "timestamp": _utc_text,
    "timestamp_ntz": _local_text,
    "string": _utf8,
    "binary": _utf8,
    "void": lambda value: None,
}
