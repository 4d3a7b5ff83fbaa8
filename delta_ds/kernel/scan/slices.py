"""Pack file slices into tasks: large files split, small ones together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from delta_ds.kernel.data.read.plan import FileSlice

# What opening a file costs, in bytes that could be read meanwhile: Spark's default for the same trade.
OPEN_COST_BYTES = 4 << 20


def pack(slices: Sequence[FileSlice], max_bytes: int, parallelism: int) -> list[list[FileSlice]]:
    """Tasks of at most about `max_bytes`, small enough for `parallelism` of them, largest first.

    Files larger than a task become byte ranges; a reader takes the row groups whose middle lies in its
    range. O(n log n).
    """
    total = sum(piece.size + OPEN_COST_BYTES for piece in slices)
    limit = max(1, min(max_bytes, max(OPEN_COST_BYTES, total // max(1, parallelism))))
    pieces = [part for piece in slices for part in _split(piece, limit)]
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


def _split(piece: FileSlice, limit: int) -> list[FileSlice]:
    if piece.size <= limit or piece.length is not None:
        return [piece]
    starts = range(0, piece.size, limit)
    return [replace(piece, start=start, length=min(limit, piece.size - start)) for start in starts]
