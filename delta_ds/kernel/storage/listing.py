"""Recursive listings in Arrow columns: names, sizes and times of millions of files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from delta_ds.kernel.base.arrow_buffers import integers, mask, texts

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
        columns = [texts(paths), integers(sizes), integers(times), mask(folders)]
        yield pa.RecordBatch.from_arrays(columns, schema=listing_schema())
