"""Partition values as text, in the log and in directory names.

Text is what Spark's `CAST(value AS STRING)` gives; the log has timestamps in UTC with six decimals, directories
in local time. Source: PROTOCOL.md, "Partition Value Serialization" (protocol-checklist PV-RW-01 to 03).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa

from delta_ds.conditions.schema import INVALID_PARTITION_COLUMN_TYPE, PARTITION_VALUE_NOT_TEXT
from delta_ds.kernel.data.values.calendars import DAY_US, civil_from_days, zone
from delta_ds.kernel.data.values.float_text import double_text, float_text
from delta_ds.kernel.schema.types import DataType, DecimalType, PrimitiveType

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
