"""The exists default of a column: its value in files written before it was added; `EXISTS_DEFAULT`, or null.

Source: Spark, `ResolveDefaultColumns` (the metadata key and its SQL text); PROTOCOL.md, "Default Columns".
"""

from __future__ import annotations

import re

import pyarrow as pa

from delta_ds.conditions.data import INVALID_DEFAULT_VALUE
from delta_ds.exceptions import DeltaError, SchemaError
from delta_ds.kernel.format.expressions.arrays import array_of
from delta_ds.kernel.format.schema.field_metadata import EXISTS_DEFAULT
from delta_ds.kernel.format.schema.types import BINARY, STRING, StructField, arrow_type
from delta_ds.kernel.format.values import partition_values

_QUOTED = re.compile(r"(?:(date|timestamp|timestamp_ntz|timestamp_ltz)\s*)?'((?:[^'\\]|'')*)'", re.IGNORECASE)
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?:l|s|y|d|f|bd)?", re.IGNORECASE)
_HEX = re.compile(r"x'((?:[0-9a-f]{2})*)'", re.IGNORECASE)
_CAST = re.compile(r"cast\s*\((.*)\s+as\s+([a-z_]+(?:\s*\([\d\s,]*\))?)\s*\)", re.IGNORECASE | re.DOTALL)


def default_value(field: StructField, timezone: str = "UTC") -> pa.Array:
    """The value of a column that a file does not have, as an array of length one.

    Raises
    ------
    SchemaError
        The field's `EXISTS_DEFAULT` is not a constant that can be read.
    """
    text = field.metadata.get(EXISTS_DEFAULT)
    return _value(text, field, timezone) if isinstance(text, str) else pa.nulls(1, arrow_type(field.type))


def repeat(one: pa.Array, rows: int) -> pa.Array:
    """The only value of `one`, `rows` times."""
    return pa.repeat(one[0], rows) if one.null_count == 0 else pa.nulls(rows, one.type)


def _value(text: str, field: StructField, timezone: str) -> pa.Array:
    wanted = arrow_type(field.type)
    literal = text.strip()
    while cast := _CAST.fullmatch(literal):
        literal = cast[1].strip()
    if literal.lower() == "null":
        return pa.nulls(1, wanted)
    if match := _HEX.fullmatch(literal):
        return array_of([bytes.fromhex(match[1])], BINARY).cast(wanted)
    if match := _QUOTED.fullmatch(literal):
        return _parse(match[2].replace("''", "'"), text, field, timezone)
    if match := _NUMBER.fullmatch(literal):
        return _parse(match[1], text, field, timezone)
    if literal.lower() in ("true", "false"):
        return _parse(literal.lower(), text, field, timezone)
    return _evaluate(text, field)


def _parse(value: str, text: str, field: StructField, timezone: str) -> pa.Array:
    parsed = partition_values.parse(array_of([value], STRING), field.type, timezone)
    if parsed.null_count and (value or field.type == STRING):
        raise _unreadable(text, field)
    return parsed


def _evaluate(text: str, field: StructField) -> pa.Array:
    """The value of any other constant expression."""
    from delta_ds.kernel.format.expressions import bind, evaluate, sql
    from delta_ds.kernel.format.schema.types import StructType

    try:
        bound = bind.bind(sql.parse_predicate(text), StructType())
        one = pa.Array.from_buffers(pa.struct([]), 1, [None])
        result = evaluate.evaluate(bound, pa.RecordBatch.from_struct_array(one))
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        return result.cast(arrow_type(field.type))
    except (DeltaError, pa.ArrowException) as error:
        raise _unreadable(text, field) from error


def _unreadable(text: str, field: StructField) -> SchemaError:
    return INVALID_DEFAULT_VALUE(text=text, column=field.name, type=field.type)
