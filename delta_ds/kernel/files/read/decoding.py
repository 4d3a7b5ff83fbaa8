"""How many rows are decoded at a time, and which texts as dictionaries: fewer, larger steps cost less.

Neither changes a value. All is decided by the footer of a row group, whose figures only estimate what its rows
need once they are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 65_536
_MOST_ROWS = 1 << 20
_DECODED_BYTES = 16 << 20
# A dictionary of this size holds so few texts that numbers of them are read and repeated faster than texts are.
_DICTIONARY_BYTES = 64 << 10
_FEW_ROWS = 8192
_LEAST_WIDTH = 8
_ALIKE = 2
# What a text may be taken for whose column chunk is small because a dictionary holds it once.
_TEXT_WIDTH = 256


def batch_rows(groups: Sequence[Any], leaves: Sequence[int]) -> int:
    """Rows to decode at a time, of about `_DECODED_BYTES`; never fewer than `BATCH_ROWS`.

    Parameters
    ----------
    groups
        `pyarrow.parquet.RowGroupMetaData` of the row groups that are read. The first stands for all of them,
        unless the rows of another one are much larger.
    leaves
        The leaf columns that are read.
    """
    first = groups[0]
    rows = max(1, first.num_rows)
    if sum(group.num_rows for group in groups) <= BATCH_ROWS:
        return BATCH_ROWS
    if any(_row_bytes(group) > _ALIKE * (_row_bytes(first) + _LEAST_WIDTH) for group in groups):
        return BATCH_ROWS
    width = 0
    for leaf in leaves:
        column = first.column(leaf)
        text = column.physical_type == "BYTE_ARRAY"
        if "." in column.path_in_schema and (text or column.num_values > rows):
            return BATCH_ROWS  # Arrow cannot split nested texts of more than 2 GiB
        least = _TEXT_WIDTH if text and column.has_dictionary_page and not _is_small(column) else _LEAST_WIDTH
        width += max(least, column.total_uncompressed_size // rows)
    return max(BATCH_ROWS, min(_MOST_ROWS, _DECODED_BYTES // max(1, width)))


def _row_bytes(group: Any) -> int:
    size: int = group.total_byte_size // max(1, group.num_rows)
    return size


def small_dictionaries(group: Any, leaves: Sequence[int]) -> list[str]:
    """The columns of texts or bytes, by their path in the file, that a row group holds as numbers of few values."""
    if group.num_rows < _FEW_ROWS:
        return []
    columns = (group.column(leaf) for leaf in leaves)
    return [
        column.path_in_schema
        for column in columns
        if column.physical_type == "BYTE_ARRAY" and "." not in column.path_in_schema and _is_small(column)
    ]


def _is_small(column: Any) -> bool:
    """Whether a chunk is numbers of a small dictionary; texts themselves have a length of four bytes each."""
    if not column.has_dictionary_page:
        return False
    size = column.data_page_offset - column.dictionary_page_offset
    numbers = 2 * column.num_values + 2 * _DICTIONARY_BYTES
    return 0 < size <= _DICTIONARY_BYTES and bool(column.total_uncompressed_size <= numbers)


def decodable(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in pieces of which no dictionary becomes more than `_DECODED_BYTES` of texts, or one row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    longest = 1
    for column in batch.columns:
        if pa.types.is_dictionary(column.type) and len(column.dictionary):
            longest = max(longest, pc.max(pc.binary_length(column.dictionary)).as_py() or 1)
    step = max(1, _DECODED_BYTES // longest)
    for at in range(0, batch.num_rows, step):
        yield batch.slice(at, step)
