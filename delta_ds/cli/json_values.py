"""Values and errors in JSON's types, for `--json` and the page of a table, which needs no `rich`."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from delta_ds.exceptions import DeltaError

if TYPE_CHECKING:
    import pyarrow as pa


def plain(value: Any) -> Any:
    """A value in JSON's types: times in ISO form, decimals and what JSON has no number for as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (Decimal, timedelta)):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def shown(value: Any) -> str:
    """A value as a cell of a table; empty for null."""
    if value is None:
        return ""
    value = plain(value)
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def error_body(error: DeltaError) -> dict[str, Any]:
    """An error as programs read it."""
    return {
        "error": type(error).__name__,
        "condition": error.condition,
        "message": error.text,
        "parameters": error.parameters,
    }


# --- rows of Arrow as Python's values


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows of a batch by column; where Python has no object for a value, the text that Spark shows of it.

    Python's dates are of the years 1 to 9999, and its texts hold no bytes that are none.
    """
    columns = {name: _values(batch.column(name)) for name in batch.schema.names}
    return [{name: values[row] for name, values in columns.items()} for row in range(batch.num_rows)]


def _values(column: pa.Array) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):  # one of them, which has to be looked for
        return [value_of(value) for value in column]


def value_of(value: pa.Scalar) -> Any:
    """A value as `rows_of` has it."""
    import pyarrow as pa

    kind = value.type
    if value.is_valid and pa.types.is_struct(kind):
        return {field.name: value_of(value[number]) for number, field in enumerate(kind)}
    if value.is_valid and pa.types.is_map(kind):
        return [(value_of(entry[0]), value_of(entry[1])) for entry in value.values]
    if value.is_valid and pa.types.is_list(kind):
        return [value_of(each) for each in value.values]
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return _text_of(value)


def _text_of(value: pa.Scalar) -> str:
    """A date or timestamp beyond Python's, or a text with bytes that are none."""
    import pyarrow as pa

    from delta_ds.kernel.format.expressions.moments import date_text, local_text

    if pa.types.is_date(value.type):
        return date_text(value.value)
    if pa.types.is_timestamp(value.type):
        return local_text(value.value) + ("Z" if value.type.tz else "")
    return str(value.as_buffer().to_pybytes().decode(errors="backslashreplace"))
