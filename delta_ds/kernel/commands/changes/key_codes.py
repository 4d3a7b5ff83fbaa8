"""Keys of rows as numbers: equal ones within a table, and the part of a disk partition that a row goes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.streaming import NET_CHANGES_KEY_NOT_FOUND, NET_CHANGES_KEY_TYPE
from delta_ds.kernel.base.arrow_buffers import flags, numbers
from delta_ds.kernel.format.schema.types import StructType, is_key_type

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

# Odd, so that it has an inverse modulo 2**64.
_FACTOR = 0x9E3779B97F4A7C15
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_NULL = 0x5851F42D4C957F2D


def check_keys(keys: Sequence[str], schema: StructType, table: str) -> tuple[str, ...]:
    """The keys as the schema writes them.

    Parameters
    ----------
    keys
        Names of columns, in any case.
    schema
        Of the rows, without what describes the change.
    table
        For messages.

    Raises
    ------
    SchemaError
        A key is no column (with the nearest), or of a type whose values are not compared.
    """
    from delta_ds.kernel.format.schema.column_paths import nearest_name

    found = []
    for key in keys:
        field = schema.find(key)
        if field is None:
            nearest = nearest_name(key, schema.names)
            hint = f"did you mean {nearest!r}?" if nearest else f"its columns are {', '.join(schema.names)}"
            raise NET_CHANGES_KEY_NOT_FOUND(column=key, table=table, hint=hint)
        if not is_key_type(field.type):
            raise NET_CHANGES_KEY_TYPE(column=field.name, table=table, type=str(field.type))
        found.append(field.name)
    return tuple(found)


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as Spark compares them: there is one zero, and one NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_floating(column.type):
        return column
    plain = pc.if_else(pc.is_nan(column), _scalar(float("nan"), column.type), column)
    return pc.add(plain, _scalar(0.0, column.type))


def _scalar(value: float, kind: pa.DataType) -> pa.Scalar:
    from delta_ds.kernel.format.expressions.arrays import scalar_of
    from delta_ds.kernel.format.schema.types import DOUBLE

    return scalar_of(value, DOUBLE).cast(kind)


def key_codes(table: pa.Table, keys: Sequence[str]) -> np.ndarray[Any, Any]:
    """A number for each row, int64: the same for rows with equal keys; nulls are equal to each other.

    Parameters
    ----------
    table
        Rows with the columns `keys`.
    """
    import numpy as np
    import pyarrow.compute as pc

    codes = np.zeros(table.num_rows, np.int64)
    for at, key in enumerate(keys):
        encoded = pc.dictionary_encode(comparable(table[key]).combine_chunks(), null_encoding="encode")
        one = numbers(pc.cast(encoded.indices, "int64"))
        codes = one if at == 0 else codes * (len(encoded.dictionary) + 1) + one
        if 0 < at < len(keys) - 1:
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return codes


def key_hashes(table: pa.Table, keys: Sequence[str], seed: int = 0) -> np.ndarray[Any, Any]:
    """A hash for each row, uint64: the same for rows with equal keys, in all tables."""
    import numpy as np

    total = np.full(table.num_rows, seed + 1, np.uint64)
    with np.errstate(over="ignore"):
        for key in keys:
            total = _mixed(total * np.uint64(_FACTOR) + _hashes(comparable(table[key]).combine_chunks()))
    return total


def _mixed(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import numpy as np

    for shift, factor in zip((30, 27), _MIX, strict=True):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    mixed: np.ndarray[Any, Any] = values ^ (values >> np.uint64(31))
    return mixed


def _hashes(column: pa.Array) -> np.ndarray[Any, Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_decimal128(kind):
        return _hash_of_decimals(column)
    if pa.types.is_decimal(kind):
        column = pc.cast(column, pa.string())
    elif pa.types.is_boolean(kind):
        column = pc.cast(column, pa.int64())
    elif pa.types.is_date32(kind):
        column = pc.cast(pc.cast(column, pa.int32()), pa.int64())
    elif pa.types.is_timestamp(kind) or pa.types.is_integer(kind):
        column = pc.cast(column, pa.int64())
    elif pa.types.is_floating(kind):
        column = pc.cast(column, pa.float64())
    return _of_null(column, _hash_of_bytes(column) if _is_bytes(column.type) else _hash_of_numbers(column))


def _of_null(column: pa.Array, found: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Hashes, where a value is null that of null."""
    import numpy as np
    import pyarrow.compute as pc

    return np.where(flags(pc.is_null(column)), np.uint64(_NULL), found) if column.null_count else found


def _hash_of_decimals(column: pa.Array) -> np.ndarray[Any, Any]:
    import numpy as np

    if not len(column):
        return np.empty(0, np.uint64)
    halves = np.frombuffer(column.buffers()[1], np.uint64).reshape(-1, 2)[column.offset :][: len(column)]
    with np.errstate(over="ignore"):
        return _of_null(column, _mixed(_mixed(halves[:, 0]) * np.uint64(_FACTOR) + halves[:, 1]))


def _is_bytes(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _hash_of_numbers(column: pa.Array) -> np.ndarray[Any, Any]:
    import numpy as np

    if not len(column):
        return np.empty(0, np.uint64)
    values = np.frombuffer(column.buffers()[1], np.uint64)
    return _mixed(values[column.offset :][: len(column)])


def _hash_of_bytes(column: pa.Array) -> np.ndarray[Any, Any]:
    """Of each value its bytes, eight at a time, in steps of all values that are as long."""
    import numpy as np

    if not len(column):
        return np.empty(0, np.uint64)
    ends = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(column) + 1].astype(np.int64)
    data = column.buffers()[2]
    first, last = int(ends[0]), int(ends[-1])
    # Zeros behind the last value, and the lengths, by which zeros at the end of values count.
    padded = np.zeros(last - first + 8, np.uint8)
    if data is not None and last > first:
        padded[:-8] = np.frombuffer(data, np.uint8)[first:last]
    words = np.ndarray((last - first + 1,), "<u8", padded, strides=(1,))
    left = np.diff(ends)
    masks = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
    total = _mixed(left.astype(np.uint64))
    rows, at = np.flatnonzero(left), ends[:-1] - first
    while len(rows):
        some, others = (total[rows], left[rows]) if len(rows) < len(total) else (total, left)
        word = words[at[rows]] & masks[np.minimum(others, 8)]
        total[rows] = _mixed(some * np.uint64(_FACTOR) + word)
        at, left = at + 8, left - 8
        rows = rows[others > 8]
    return total
