"""Numpy to Arrow by buffers.

pyarrow's own conversions (`pa.array`, `pa.scalar`) import pandas wherever it is installed, a quarter of a
second that opening a table must not pay.
"""

from __future__ import annotations

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


def mask(values: Any) -> pa.Array:
    """A boolean Arrow array of a numpy boolean array."""
    import numpy as np
    import pyarrow as pa

    bits = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])


def texts(values: list[str]) -> pa.Array:
    """A string Arrow array of Python strings."""
    import numpy as np
    import pyarrow as pa

    encoded = [value.encode() for value in values]
    offsets = np.zeros(len(values) + 1, dtype=np.int32)
    np.cumsum([len(value) for value in encoded], out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def flags(column: pa.ChunkedArray | pa.Array) -> Any:
    """A numpy boolean array of a boolean Arrow column without nulls."""
    import numpy as np
    import pyarrow as pa

    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not len(values):
        return np.empty(0, bool)
    bits = np.frombuffer(values.buffers()[1], dtype=np.uint8)
    return np.unpackbits(bits, bitorder="little")[values.offset : values.offset + len(values)].view(bool)


def fields_of(values: pa.StructArray, wanted: pa.StructType) -> list[pa.Array]:
    """The fields of a wanted struct type out of another one's values: cast where there, else nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    present = {f.name for f in values.type}
    return [
        pc.struct_field(values, f.name).cast(f.type) if f.name in present else pa.nulls(len(values), f.type)
        for f in wanted
    ]
