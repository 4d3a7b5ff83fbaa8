"""Parse the JSON text of statistics of many files at once, one Arrow row a file.

Arrow's JSON reader takes all lines at once, reads only the leaves of the given schema and refuses the whole
block if one value is not of its type. What it refuses is narrowed down to few lines, which are repaired one
by one; a line that is no JSON object counts as a file without statistics.

Source: PROTOCOL.md, "Per-file Statistics" (protocol-checklist ST-R-02, ST-W-09).
"""

from __future__ import annotations

import json
import logging
import math
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from delta_ds.kernel.expressions.arrays import array_of, scalar_of
from delta_ds.kernel.json_text import parse_json
from delta_ds.kernel.schema.types import STRING

_LOGGER = logging.getLogger("delta_ds")

# Few enough lines that repairing them costs little, many enough that Arrow still does the bulk.
_LINES_PER_REPAIR = 512
_PIECES = 16
_BLOCK_BYTES = 1 << 20
_MAX_BLOCK_BYTES = (1 << 31) - 1
# Python's own context has 28 digits.
_ROOMY = Context(prec=80)
_FIRST_ROUNDED = 1 << 53


def _constant(text: str) -> pa.Scalar:
    return scalar_of(text, STRING).cast(pa.large_string())


_NO_STATISTICS = _constant("{}")
# Nothing, joined on by a line break.
_LINE_END = (_constant(""), _constant("\n"))
_QUOTED_FLOAT = r':\s*"(NaN|-?Infinity)"'


def parse_lines(lines: pa.Array | pa.ChunkedArray, schema: pa.Schema) -> pa.Table:
    """Read the leaves of `schema` from JSON objects, as many rows as there are lines.

    Parameters
    ----------
    lines
        JSON text or null. Line breaks inside a text are allowed.
    schema
        int64, float, double, decimal, string, bool and structs of them. Values of another JSON type,
        out of range, or with more decimals than the schema's scale are null.
    """
    text = lines.cast(pa.large_string())
    if isinstance(text, pa.ChunkedArray):
        text = text.combine_chunks()
    text = _objects(text)
    return _parse(text, schema)


def _objects(text: pa.LargeStringArray) -> pa.LargeStringArray:
    """Put `{}` where no object begins: Arrow skips blank lines, and crashes on a leading bare `null`."""
    text = text.fill_null(_NO_STATISTICS)
    opens = pc.starts_with(text, "{")
    if opens.true_count == len(text):
        return text
    text = pc.ascii_ltrim_whitespace(text)
    return pc.if_else(pc.starts_with(text, "{"), text, _NO_STATISTICS)


def _parse(text: pa.LargeStringArray, schema: pa.Schema) -> pa.Table:
    table = _read(text, schema)
    if table is None:
        # Infinities and NaN are strings in JSON, but Arrow takes the bare words as floats.
        table = _read(pc.replace_substring_regex(text, _QUOTED_FLOAT, r":\1"), schema)
    if table is not None:
        return table
    if len(text) <= _LINES_PER_REPAIR:
        return _repair(text, schema)
    step = max(len(text) // _PIECES + 1, _LINES_PER_REPAIR)
    return pa.concat_tables([_parse(text.slice(i, step), schema) for i in range(0, len(text), step)])


def _read(text: pa.LargeStringArray, schema: pa.Schema) -> pa.Table | None:
    """Parse all lines at once; None if Arrow refuses any of them."""
    if len(text) == 0:
        return schema.empty_table()
    joined = pc.binary_join_element_wise(text, *_LINE_END)
    size = pc.sum(pc.binary_length(joined)).as_py()
    longest = pc.max(pc.binary_length(joined)).as_py()
    block = min(max(_BLOCK_BYTES, 2 * longest), _MAX_BLOCK_BYTES)
    try:
        table = pyarrow.json.read_json(
            pa.BufferReader(joined.buffers()[2].slice(0, size)),
            read_options=pyarrow.json.ReadOptions(block_size=block),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowInvalid:
        return None
    # Text such as `{}{}` gives two rows: then rows no longer belong to lines.
    return table if table.num_rows == len(text) else None


def _repair(text: pa.LargeStringArray, schema: pa.Schema) -> pa.Table:
    root = pa.struct(list(schema))
    unreadable = 0
    repaired = []
    for line in text.to_pylist():
        try:
            node = parse_json(line, parse_float=Decimal)
        except ValueError:
            node, unreadable = {}, unreadable + 1
        repaired.append(_text(node, root) or "{}")
    if unreadable:
        _LOGGER.warning("statistics_unreadable files=%d action=read_without_skipping", unreadable)
    table = _read(array_of(repaired, STRING).cast(pa.large_string()), schema)
    if table is None:
        _LOGGER.warning("statistics_unreadable files=%d action=read_without_skipping", len(text))
        return pa.table([pa.nulls(len(text), f.type) for f in schema], schema=schema)
    return table


def _text(value: Any, kind: pa.DataType) -> str | None:
    """JSON that Arrow reads as `kind`; None where the value does not fit it."""
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            return None
        members = [(f.name, _text(value.get(f.name), f.type)) for f in kind]
        return "{" + ",".join(f"{json.dumps(k)}:{v}" for k, v in members if v is not None) + "}"
    if pa.types.is_boolean(kind):
        return json.dumps(value) if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if pa.types.is_string(kind):
        return _string(value) if isinstance(value, str) else None
    if pa.types.is_floating(kind):
        return _floating(value)
    if isinstance(value, float):  # a bare NaN: Decimal took every other fraction
        return None
    return _exact(value, kind) if isinstance(value, (int, Decimal)) else None


def _string(value: str) -> str | None:
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return None
    return json.dumps(value, ensure_ascii=False)


def _floating(value: Any) -> str | None:
    if isinstance(value, str):
        return value if value in ("NaN", "Infinity", "-Infinity") else None
    if not isinstance(value, (int, float, Decimal)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return None if math.isinf(number) else "NaN" if math.isnan(number) else str(value)


def _exact(value: int | Decimal, kind: pa.DataType) -> str | None:
    number = Decimal(value)
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    digits = kind.precision if pa.types.is_decimal(kind) else 19
    if number.adjusted() >= digits - scale:
        return None
    plain = number.quantize(Decimal(1).scaleb(-scale), context=_ROOMY)
    if number != plain:
        return None
    if pa.types.is_integer(kind):
        # An integer that is written as a fraction was a double, and may have been rounded.
        certain = isinstance(value, int) or abs(value) < _FIRST_ROUNDED
        return str(int(plain)) if certain and -(1 << 63) <= plain < 1 << 63 else None
    return f"{plain:f}"
