"""Listings of whole trees in columns: what millions of files are called, how large and how old they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

# path relative to the table, bytes, modification time in ms (0 where the store does not tell), whether it is a folder
Entry = tuple[str, int, int, bool]

_ROWS = 65_536


def listing_schema() -> pa.Schema:
    """The columns of `Storage.list_below`."""
    import pyarrow as pa

    return pa.schema(
        [("path", pa.string()), ("size", pa.int64()), ("modified_ms", pa.int64()), ("is_folder", pa.bool_())]
    )


def in_batches(entries: Iterable[Entry]) -> Iterator[pa.RecordBatch]:
    """Entries as record batches of `listing_schema`, none of them empty."""
    import pyarrow as pa

    remaining = iter(entries)
    while rows := list(islice(remaining, _ROWS)):
        paths, sizes, times, folders = zip(*rows, strict=True)
        columns = [_texts(paths), _integers(sizes), _integers(times), _flags(folders)]
        yield pa.RecordBatch.from_arrays(columns, schema=listing_schema())


# By buffers: pyarrow's own conversions import pandas wherever it is installed.


def _texts(values: Sequence[str]) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    encoded = [value.encode() for value in values]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int32)
    np.cumsum([len(value) for value in encoded], out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def _integers(values: Sequence[int]) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    data = np.array(values, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(data)])


def _flags(values: Sequence[bool]) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    bits = np.packbits(np.array(values, dtype=bool), bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
