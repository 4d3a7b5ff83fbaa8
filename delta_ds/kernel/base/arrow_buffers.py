"""Arrow arrays from NumPy arrays and Python values by their buffers, and back.

pyarrow's own conversions (`pa.array`, `pa.scalar`) import pandas wherever it is installed, a quarter of a
second that opening a table must not pay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


def integers(values: Any) -> pa.Array:
    """An int64 Arrow array over a numpy int64 array, without copying."""
    import numpy as np
    import pyarrow as pa

    data = np.ascontiguousarray(values, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(data), [None, pa.py_buffer(data)])


def numbers(column: pa.ChunkedArray | pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """An int64 Arrow column without nulls as numpy; without copying where it is in one piece."""
    import numpy as np
    import pyarrow as pa

    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not len(values):
        return np.empty(0, np.int64)
    return np.frombuffer(values.buffers()[1], np.int64)[values.offset :][: len(values)]


def true_rows(flags: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The places of what is true, as int64; null is not."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # Before Arrow 26 `indices_nonzero` of no chunks at all brings the process down.
    whole = flags.combine_chunks() if isinstance(flags, pa.ChunkedArray) else flags
    return pc.indices_nonzero(whole).cast(pa.int64())


def bitmap(values: Any) -> pa.Buffer:
    """Truth values, one bit each, as Arrow stores booleans and which values are valid."""
    import numpy as np
    import pyarrow as pa

    return pa.py_buffer(np.packbits(np.asarray(values, dtype=bool), bitorder="little"))


def mask(values: Any) -> pa.Array:
    """A boolean Arrow array of truth values."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bitmap(values)])


def texts(values: Sequence[str]) -> pa.Array:
    """A string Arrow array of Python strings."""
    import pyarrow as pa

    return byte_values([value.encode() for value in values], pa.string())


def byte_values(values: Sequence[bytes], kind: pa.DataType, valid: pa.Buffer | None = None) -> pa.Array:
    """An Arrow array of strings or binary values from their bytes.

    Parameters
    ----------
    values
        What stands for nulls is empty.
    kind
        string or binary.
    valid
        The bitmap of the values that are not null; None for all of them.
    """
    import pyarrow as pa

    buffers = [valid, offsets([len(value) for value in values]), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(kind, len(values), buffers)


def offsets(lengths: Any) -> pa.Buffer:
    """Where values of these lengths begin, and where the last one ends, int32: of texts, lists and maps.

    Raises
    ------
    OverflowError
        All together are longer than one Arrow array of these kinds can be.
    """
    import numpy as np
    import pyarrow as pa

    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    if ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError(f"{ends[-1]} bytes or elements are more than one Arrow array can hold")
    return pa.py_buffer(ends.astype(np.int32))


def flags(column: pa.ChunkedArray | pa.Array) -> Any:
    """A numpy boolean array of a boolean Arrow column without nulls."""
    import numpy as np
    import pyarrow as pa

    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not len(values):
        return np.empty(0, bool)
    bits = np.frombuffer(values.buffers()[1], dtype=np.uint8)
    return np.unpackbits(bits, bitorder="little")[values.offset : values.offset + len(values)].view(bool)


def field_of(structs: Any, name: str) -> Any:
    """The field of a name in structs, array or chunked array.

    Not by the name itself: Arrow takes one that begins with a dot or a bracket for a path.

    Raises
    ------
    pyarrow.ArrowInvalid
        There is no such field, or more than one.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    place = structs.type.get_field_index(name)
    if place < 0:
        raise pa.ArrowInvalid(f"no one field {name!r} in {structs.type}")
    return pc.struct_field(structs, place)


def fields_of(values: pa.StructArray, struct_type: pa.StructType) -> list[pa.Array]:
    """The fields of a wanted struct type out of another one's values: cast where there, else nulls."""
    import pyarrow as pa

    present = {f.name for f in values.type}
    return [
        field_of(values, f.name).cast(f.type) if f.name in present else pa.nulls(len(values), f.type)
        for f in struct_type
    ]


def map_values(maps: pa.MapArray, key: str) -> pa.Array:
    """The first value of a key in each map; null where there is none.

    Maps that all have the same keys in the same order, as those of partition values do, are not searched one by one.
    """
    import numpy as np
    import pyarrow.compute as pc

    if not len(maps):
        return maps.items.slice(0, 0)
    offsets = np.frombuffer(maps.buffers()[1], np.int32)[maps.offset :][: len(maps) + 1]
    width = int(offsets[1] - offsets[0])
    if width and maps.null_count == 0 and (np.diff(offsets) == width).all():
        keys = maps.keys.slice(offsets[0], len(maps) * width)
        places = range(width)
        first = [keys[place].as_py() for place in places]
        columns = [integers(np.arange(place, len(keys), width)) for place in places]
        same = all(
            pc.all(pc.equal(keys.take(column), name)).as_py()
            for column, name in zip(columns, texts(first), strict=True)
        )
        if same and key in first:
            values = maps.items.slice(offsets[0], len(maps) * width)
            return values if width == 1 else values.take(columns[first.index(key)])
    return pc.map_lookup(maps, texts([key])[0], "first")


def with_long_offsets(kind: pa.DataType) -> pa.DataType:
    """A type whose texts and bytes have offsets of 64 bits: one array holds more than 2 GiB of them."""
    import pyarrow as pa

    if pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_binary(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(with_long_offsets(field.type)) for field in kind])
    if pa.types.is_map(kind):
        item = kind.item_field
        return pa.map_(with_long_offsets(kind.key_type), item.with_type(with_long_offsets(item.type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(with_long_offsets(kind.value_type)))
    return kind
