"""Live files as slices, and slices packed into the tasks of a read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from delta_ds.exceptions import CorruptLogFileError
from delta_ds.kernel.base.arrow_buffers import field_of
from delta_ds.kernel.files.read.plan import FileSlice
from delta_ds.kernel.format.actions import DeletionVector
from delta_ds.kernel.format.values.deletion_vector import DeletionVectorDescriptor
from delta_ds.records import replace

if TYPE_CHECKING:
    import pyarrow as pa


def file_slices(table: pa.Table, partition_columns: Sequence[str]) -> list[FileSlice]:
    """Rows of live files as slices: the only place where files become Python objects."""

    if partition_columns and "partitionValues" in table.column_names:
        values = table["partitionValues"]
        lists = [field_of(values, name).to_pylist() for name in partition_columns]
        tuples: Sequence[tuple[str | None, ...]] = list(zip(*lists, strict=True))
    else:
        tuples = [()] * table.num_rows
    vectors = table["deletionVector"]
    descriptors = (
        [None] * table.num_rows
        if vectors.null_count == table.num_rows
        else [vector_descriptor(v) for v in vectors.to_pylist()]
    )
    return [
        FileSlice(
            path=path,
            size=size,
            partition_values=tuple_,
            deletion_vector=vector,
            base_row_id=row_id,
            default_row_commit_version=version,
        )
        for path, size, tuple_, vector, row_id, version in zip(
            table["path"].to_pylist(),
            table["size"].to_pylist(),
            tuples,
            descriptors,
            table["baseRowId"].to_pylist(),
            table["defaultRowCommitVersion"].to_pylist(),
            strict=True,
        )
    ]


def vector_descriptor(value: DeletionVector | None) -> DeletionVectorDescriptor | None:
    """The deletion vector of a file action's struct; None for none.

    Raises
    ------
    CorruptLogFileError
        The struct lacks what a descriptor must have.
    """
    if value is None:
        return None
    missing = [key for key in ("storageType", "pathOrInlineDv", "sizeInBytes") if value.get(key) is None]
    if missing:
        raise CorruptLogFileError(f"a deletion vector in the log has no {' and no '.join(missing)}: {value}")
    return DeletionVectorDescriptor(
        value["storageType"],
        value["pathOrInlineDv"],
        value.get("offset"),
        value["sizeInBytes"],
        cast("int", value.get("cardinality")),  # optional in what other engines wrote
    )


# What opening a file costs, in bytes that could be read meanwhile: Spark's default for the same trade.
OPEN_COST_BYTES = 4 << 20
# Of one file; more than one of a pebibyte is cut into.
_MOST_PIECES = 1 << 16


def pack(slices: Sequence[FileSlice], max_bytes: int, parallelism: int) -> list[list[FileSlice]]:
    """Tasks of at most about `max_bytes`, small enough for `parallelism` of them, largest first.

    Files larger than a task become byte ranges; a reader takes the row groups whose middle lies in its
    range. O(n log n).
    """
    total = sum(piece.size + OPEN_COST_BYTES for piece in slices)
    limit = max(1, min(max_bytes, max(OPEN_COST_BYTES, total // max(1, parallelism))))
    pieces = [part for piece in slices for part in split(piece, limit)]
    pieces.sort(key=_length, reverse=True)
    tasks: list[list[FileSlice]] = []
    room = 0
    for piece in pieces:
        length = _length(piece) + OPEN_COST_BYTES
        if not tasks or length > room:
            tasks.append([])
            room = limit
        tasks[-1].append(piece)
        room -= length
    return tasks


def _length(piece: FileSlice) -> int:
    return piece.size if piece.length is None else piece.length


def split(piece: FileSlice, limit: int) -> list[FileSlice]:
    """A file as byte ranges of at most about so many bytes; one that fits stays as it is."""
    if piece.size <= limit or piece.length is not None:
        return [piece]
    # The log may say any size.
    limit = max(limit, piece.size // _MOST_PIECES)
    starts = range(0, piece.size, limit)
    return [replace(piece, start=start, length=min(limit, piece.size - start)) for start in starts]
