"""Partition values: from the text of `partitionValues` to typed Arrow arrays, and typed values to text and to folders.

Text is read as Spark's non-ANSI `CAST(text AS type)` reads it; what it cannot read is null. It is written as
`CAST(value AS STRING)` writes it; the log has timestamps in UTC with six decimals, directories in local time.

`name=value`, the folders of partitions, are escaped as Hive and Spark do it, character by character. The log alone has
the values; what the folders say counts where there is no log yet, or a user names one.

Source: PROTOCOL.md, "Partition Value Serialization", "Data Files" (protocol-checklist section 38, PV-RW-01 to 04);
Spark, `ExternalCatalogUtils`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from delta_ds.conditions.schema import INVALID_PARTITION_COLUMN_TYPE, PARTITION_VALUE_NOT_TEXT
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.format.expressions.arrays import plain_array
from delta_ds.kernel.format.expressions.moments import DAY_US, clock_text, date_text, local_text
from delta_ds.kernel.format.expressions.temporal import parse_date, parse_timestamp
from delta_ds.kernel.format.expressions.zones import local_micros, zone
from delta_ds.kernel.format.schema.types import (
    BINARY,
    STRING,
    DataType,
    DecimalType,
    PrimitiveType,
)

_INTEGER = re.compile(r"([+-]?\d+)(?:\.\d*)?")
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?")
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
    return plain_array(parsed, data_type).take(encoded.indices)


def comparable_values(values: pa.Array) -> list[Any]:
    """What `parse` gave as Python values that compare as Spark's do: dates and timestamps as numbers.

    Python's own dates end with the year 9999.
    """
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        values = values.view(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    found: list[Any] = values.to_pylist()
    return found


def _reader_of(data_type: DataType, timezone: str) -> Callable[[str], Any]:
    if isinstance(data_type, DecimalType):
        return lambda text: _decimal(text, data_type.precision, data_type.scale)
    name = data_type.name if isinstance(data_type, PrimitiveType) else ""
    if name in _INTEGER_BITS:
        return lambda text: _integer(text, _INTEGER_BITS[name])
    if name == "timestamp":
        return lambda text: parse_timestamp(text, zone(timezone))
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


_READERS: dict[str, Callable[[str], Any]] = {
    "boolean": _boolean,
    "float": _float,
    "double": _double,
    "date": parse_date,
    "timestamp_ntz": lambda text: parse_timestamp(text, None),
    "binary": lambda text: text.encode(),
    "void": lambda text: None,
}


# --- typed values as text, in the log and in directory names

# The directory of null; as the text of a value it reads back as null everywhere, so it is stored as null.
NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"

_BITS: dict[str, pa.DataType] = {
    **dict.fromkeys(("float", "date"), pa.int32()),
    **dict.fromkeys(("double", "timestamp", "timestamp_ntz"), pa.int64()),
    "string": pa.binary(),
}

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


def text_in_log(
    text: str | None, data_type: DataType, refused: Callable[[], DeltaError], timezone: str = "UTC"
) -> str | None:
    """The text of a folder as the log has its value: read and written anew, so that texts of a value are one partition.

    Parameters
    ----------
    refused
        The error for a text that is no value of the type.
    """
    if not text or data_type in (STRING, BINARY):
        return text or None
    value = parse(plain_array([text], STRING), data_type, timezone)
    if value.null_count:
        raise refused()
    return log_text(data_type)(distinct_form(value, data_type)[0].as_py())


def directory_text(data_type: DataType, timezone_name: str) -> Text | None:
    """The function that writes a value for a directory, where it is another text than in the log."""
    if str(data_type) != "timestamp":
        return None
    where = zone(timezone_name)
    return lambda micros: local_text(local_micros(micros, where))


def _utc_text(micros: int) -> str:
    days, rest = divmod(micros, DAY_US)
    return f"{date_text(days)}T{clock_text(rest)}.{rest % 1_000_000:06d}Z"


def _utf8(data: bytes) -> str | None:
    try:
        text = data.decode()
        return None if text in ("", NULL_DIRECTORY) else text
    except UnicodeDecodeError as error:
        raise PARTITION_VALUE_NOT_TEXT(value=data.hex().upper()) from error


def _float_text(bits: int) -> str:
    from delta_ds.kernel.format.expressions.plain_sql import float_text

    return float_text(struct.unpack("<f", struct.pack("<i", bits))[0])


def _double_text(bits: int) -> str:
    from delta_ds.kernel.format.expressions.plain_sql import double_text

    return double_text(struct.unpack("<d", struct.pack("<q", bits))[0])


_LOG_TEXT: dict[str, Text] = {
    "boolean": lambda value: "true" if value else "false",
    "byte": str,
    "short": str,
    "integer": str,
    "long": str,
    "float": _float_text,
    "double": _double_text,
    "date": date_text,
    "timestamp": _utc_text,
    "timestamp_ntz": local_text,
    "string": _utf8,
    "binary": _utf8,
    "void": lambda value: None,
}


# Those of Spark, and the character 0, which no store takes in a name.
_TO_ESCAPE = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")


def escape(text: str) -> str:
    """A name or value as a part of a folder's name.

    >>> escape("a/b é")
    'a%2Fb é'
    """
    return _TO_ESCAPE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def unescape(text: str) -> str:
    """A name or value from a part of a folder's name: two digits are a character, not a byte of UTF-8.

    >>> unescape("a%2Fb %E9 %C3%A9 50%")
    'a/b é Ã© 50%'
    """
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def partition_folder(values: Iterable[tuple[str, str | None]]) -> str:
    """The folders of a partition below its table, by names and texts of values; null and the empty text are one.

    >>> partition_folder([("day", "2024-01-01"), ("country", None)])
    'day=2024-01-01/country=__HIVE_DEFAULT_PARTITION__'
    """
    return "/".join(f"{escape(name)}={escape(value or NULL_DIRECTORY)}" for name, value in values)


def parse_partition_folders(folders: Iterable[str]) -> list[tuple[str, str | None]]:
    """Names and texts of values of some folders, one by one; None stands for null.

    A folder without `=` is a name whose value has the empty text.

    >>> parse_partition_folders(["day=2024-01-01", "country=__HIVE_DEFAULT_PARTITION__"])
    [('day', '2024-01-01'), ('country', None)]
    """
    parts = [folder.partition("=") for folder in folders]
    values = [(unescape(name), unescape(value)) for name, _, value in parts]
    return [(name, None if value == NULL_DIRECTORY else value) for name, value in values]
