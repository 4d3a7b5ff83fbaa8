"""Sort rows along a space-filling curve: in memory where they are few, else range by range.

A piece is a range of keys, so small that its rows fit into memory. Reading tasks cut their rows into pieces, as
blobs of Arrow data that anything can carry; a writing task gets all blobs of its pieces, in the order of pieces,
sorts each piece and writes it. No step holds more than a piece.

Source: delta-spark, `MultiDimClustering.cluster`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from delta_ds.kernel.base.arrow_buffers import integers, with_long_offsets
from delta_ds.kernel.commands.optimize.rewriting import (
    Bin,
    RewritePlan,
    read_rows,
    with_columns,
    write_bin,
)
from delta_ds.kernel.commands.optimize.zorder_curve import (
    ClusteringCurve,
    CurveRanges,
    Numbers,
    column_at,
    ranges_of,
)
from delta_ds.kernel.files.read.plan import FileSlice
from delta_ds.kernel.files.read.reader import in_order
from delta_ds.kernel.files.write.columns import file_columns
from delta_ds.kernel.files.write.writer import FileWriter
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.storage.staging import StagedFiles
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from delta_ds.kernel.files.read.data_file import Batches

_Blob = TypeVar("_Blob")

IN_MEMORY_BYTES = 256 << 20  # of Parquet files
PIECE_BYTES = 32 << 20
SAMPLE_ROWS = 200_000
_SAMPLED_BYTES = 1 << 30
_GATHERED_BYTES = 128 << 20
_BATCH_ROWS = 1 << 16
_AHEAD_BYTES = 64 << 20
_SHORT_OFFSETS = 1 << 30  # bytes of texts that one array holds with room to spare


def sample_slices(slices: Sequence[FileSlice], most_bytes: int = _SAMPLED_BYTES) -> list[FileSlice]:
    """Some of the files, spread evenly, of about a number of bytes."""
    total = sum(piece.size for piece in slices)
    if total <= most_bytes:
        return list(slices)
    ends = np.cumsum([piece.size for piece in slices])
    count = max(1, int(len(slices) * most_bytes / total))
    places = np.searchsorted(ends, (np.arange(count) + 0.5) * total / count)
    out = []
    for place in np.unique(places).tolist():
        piece = slices[place]
        if piece.size > most_bytes // count:
            # Of a large file its middle: a reader takes whole row groups.
            length = max(1, most_bytes // count)
            piece = replace(piece, start=(piece.size - length) // 2, length=length)
        out.append(piece)
    return out


def sample_rows(
    plan: RewritePlan,
    curve: ClusteringCurve,
    slices: Sequence[FileSlice],
    rows: int = SAMPLE_ROWS,
    threads: int = 1,
) -> pa.Table:
    """About a number of rows, spread evenly over files: the columns of a curve, numbered from 0."""
    reading = with_columns(plan, [path[0] for path in curve.columns])
    kept: list[pa.RecordBatch] = []
    count, step = 0, 1
    for batch in read_rows(reading, slices, threads):
        columns = [column_at(batch, path) for path in curve.columns]
        picked = pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])
        kept.append(_every(picked, step))
        count += kept[-1].num_rows
        if count > 2 * rows:
            kept = [_every(batch, 2) for batch in kept]
            count, step = sum(batch.num_rows for batch in kept), step * 2
    return pa.Table.from_batches(kept) if kept else _no_rows(plan, curve)


def _no_rows(plan: RewritePlan, curve: ClusteringCurve) -> pa.Table:
    empty = file_columns(plan.files).rows.empty_table()
    return pa.table({str(i): column_at(empty, path) for i, path in enumerate(curve.columns)})


def _every(batch: pa.RecordBatch, step: int) -> pa.RecordBatch:
    if step == 1:
        return batch
    return batch.take(integers(np.arange(0, batch.num_rows, step, dtype=np.int64)))


def arrange_in_memory(
    plan: RewritePlan, curve: ClusteringCurve, files: Bin, task: int = 0, threads: int = 1
) -> list[AddFile]:
    """Read the files of a bin, sort their rows along a curve, and write them; see `rewrite_files`."""
    batches = list(read_rows(plan, files.slices, threads))
    table = pa.Table.from_batches(batches, schema=file_columns(plan.files).rows).combine_chunks()
    columns = [column_at(table, path) for path in curve.columns]
    few = integers(np.arange(0, table.num_rows, max(1, table.num_rows // SAMPLE_ROWS), dtype=np.int64))
    taken = pa.Table.from_arrays([c.take(few) for c in columns], names=[str(i) for i in range(len(columns))])
    order = np.argsort(ranges_of(curve, taken).keys_of(columns))
    bounds = np.linspace(0, len(order), (files.outputs or 1) + 1).astype(np.int64)
    source = _takeable(table)
    adds: list[AddFile] = []
    with StagedFiles(plan.storage) as staged:
        for number, rows in enumerate(np.split(order, bounds[1:-1])):
            streams = _in_order_of(source, rows, table.schema)
            new = write_bin(plan, partial(_write, streams, threads), files, task + number)
            staged.add(add["path"] for add in new)
            adds += new
        staged.release()
    return adds


def _takeable(table: pa.Table) -> pa.Table:
    """A table of which rows can be taken: Arrow joins the chunks that it takes rows from."""
    if table.nbytes <= _SHORT_OFFSETS:
        return table.combine_chunks()
    long = [field.with_type(with_long_offsets(field.type)) for field in table.schema]
    return table.cast(pa.schema(long)).combine_chunks()


def _in_order_of(table: pa.Table, order: Numbers, schema: pa.Schema) -> list[Callable[[], Batches]]:
    """The rows of a takeable table in an order, of the types of a schema; each stream a part of them."""

    def part(rows: Numbers) -> Batches:
        taken = table.take(integers(rows))
        same = taken if taken.schema == schema else taken.cast(schema)
        yield from same.combine_chunks().to_batches()

    step = max(1, min(_BATCH_ROWS, _AHEAD_BYTES * table.num_rows // max(1, table.nbytes)))
    return [partial(part, order[start : start + step]) for start in range(0, len(order), step)]


def _write(streams: Sequence[Callable[[], Batches]], threads: int, writer: FileWriter) -> None:
    """Write rows, which threads make while others are encoded."""
    with closing(in_order(streams, threads, _AHEAD_BYTES)) as batches:
        for batch in batches:
            writer.write(batch)


# ---------------------------------------------------------------- in pieces


@dataclass(frozen=True, slots=True)
class Cuts:
    """How the rows of a bin are cut into pieces. Can be pickled.

    Attributes
    ----------
    ranges
        What keys rows have.
    limits
        The first key of every piece but the first.
    outputs
        How many files there shall be; every one has the same number of pieces, more or less.
    """

    ranges: CurveRanges
    limits: Numbers
    outputs: int

    @property
    def pieces(self) -> int:
        return len(self.limits) + 1

    def output_of(self, piece: int) -> int:
        """The number of the file that a piece belongs to."""
        return piece * self.outputs // self.pieces


def cuts_of(curve: ClusteringCurve, taken: pa.Table, files: Bin) -> Cuts:
    """How to cut the rows of a bin, by a sample of them."""
    ranges = ranges_of(curve, taken)
    outputs = files.outputs or 1
    wanted = max(1, -(-files.size // PIECE_BYTES))
    wanted = -(-wanted // outputs) * outputs
    if not taken.num_rows:
        return Cuts(ranges, np.empty(0, np.int64), 1)
    keys = np.sort(ranges.keys_of([column.combine_chunks() for column in taken.columns]))
    places = np.linspace(0, len(keys), wanted + 1)[1:-1].astype(np.int64)
    limits = np.unique(keys[places])
    return Cuts(ranges, limits, min(outputs, len(limits) + 1))


def distribute(plan: RewritePlan, cuts: Cuts, slices: Sequence[FileSlice]) -> Iterator[tuple[int, bytes]]:
    """The rows of files as blobs, each with the number of its piece."""
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in read_rows(plan, slices):
        gathered.append(batch)
        size += batch.nbytes
        if size >= _GATHERED_BYTES:
            yield from _blobs(cuts, gathered)
            gathered, size = [], 0
    if gathered:
        yield from _blobs(cuts, gathered)


def _blobs(cuts: Cuts, batches: list[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    table = pa.Table.from_batches(batches)
    pieces = np.searchsorted(cuts.limits, cuts.ranges.keys(table), side="right")
    order = np.argsort(pieces, kind="stable")
    found, starts = np.unique(pieces[order], return_index=True)
    for piece, start, end in zip(found.tolist(), starts, [*starts[1:], len(order)], strict=True):
        yield piece, rows_to_blob(table.take(integers(order[start:end])))


def rows_to_blob(rows: pa.Table) -> bytes:
    """Rows as a blob."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as stream:
        stream.write_table(rows.combine_chunks())
    return bytes(sink.getvalue())


def blob_to_rows(blob: bytes) -> pa.Table:
    """The rows of a blob."""
    return pa.ipc.open_stream(blob).read_all()


def write_pieces(
    plan: RewritePlan, cuts: Cuts, blobs: Iterable[tuple[int, bytes]], files: Bin, task: int = 0
) -> list[AddFile]:
    """Write the pieces of one new file.

    Parameters
    ----------
    blobs
        From `distribute`, of any number of tasks, in the order of pieces.

    Returns
    -------
    list of dict
        The bodies of the `add` actions; errors as `rewrite_files`.
    """

    def write(writer: FileWriter) -> None:
        for parts in _blobs_by_piece(blobs):
            for batch in _sorted_piece(cuts, parts):
                writer.write(batch)

    return write_bin(plan, write, files, task)


def write_piece_files(
    plan: RewritePlan, cuts: Cuts, pieces: Sequence[Path], files: Bin, task: int = 0, threads: int = 1
) -> list[AddFile]:
    """Write the pieces of one new file; result as `write_pieces`.

    Parameters
    ----------
    pieces
        Files of one blob each, in the order of pieces, which `piece_of` tells.
    threads
        How many pieces are sorted at a time, while another is written.
    """

    def sorted_rows(paths: Sequence[Path]) -> Batches:
        yield from _sorted_piece(cuts, [path.read_bytes() for path in paths])

    sized = ((piece_of(path), path, path.stat().st_size) for path in pieces)
    streams = [partial(sorted_rows, paths) for paths in _by_piece(sized)]
    return write_bin(plan, partial(_write, streams, threads), files, task)


def piece_file(piece: int, group: int, number: int) -> str:
    """The name of the file of a blob: in the order of pieces."""
    return f"{piece:08}-{group:04}-{number:08}"


def piece_of(path: Path) -> int:
    """The piece that the blob of a file is of."""
    return int(path.name.partition("-")[0])


def _sorted_piece(cuts: Cuts, parts: Sequence[bytes]) -> Batches:
    table = pa.concat_tables([blob_to_rows(blob) for blob in parts])
    for rows in _in_order_of(_takeable(table), np.argsort(cuts.ranges.keys(table)), table.schema):
        yield from rows()


def _blobs_by_piece(blobs: Iterable[tuple[int, bytes]]) -> Iterator[list[bytes]]:
    yield from _by_piece((piece, blob, len(blob)) for piece, blob in blobs)


def _by_piece(blobs: Iterable[tuple[int, _Blob, int]]) -> Iterator[list[_Blob]]:
    """The blobs of each piece, given with their bytes; one of equal keys, that no cut could make smaller, in parts."""
    current, size = -1, 0
    parts: list[_Blob] = []
    for piece, blob, length in blobs:
        if parts and (piece != current or size > _GATHERED_BYTES):
            yield parts
            parts, size = [], 0
        current = piece
        size += length
        parts.append(blob)
    if parts:
        yield parts
