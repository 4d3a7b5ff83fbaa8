"""One task of OPTIMIZE: rewrite the rows of some files into new files, in bounded memory.

Rows stay what they are: deleted ones are left out, row ids and row commit versions come along.

Source: PROTOCOL.md, "Row Tracking" (RT-W-06 to 09), "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_ds.kernel.files.read.data_file import BATCH_ROWS
from delta_ds.kernel.files.read.file_columns import ROW_TRACKING_FIELDS, Layouts, row_tracking_as_columns
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.files.read.reader import in_order, read_slice, threads_for
from delta_ds.kernel.files.write.write_spec import WriteSpec, write_spec
from delta_ds.kernel.files.write.writer import FileWriter
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.format.features import CLUSTERING
from delta_ds.kernel.format.iceberg_compatibility import FILE_TAG
from delta_ds.kernel.format.schema.types import LONG, StructField
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass, field, replace

if TYPE_CHECKING:
    from delta_ds.kernel.commands.optimize.reorg import Description
    from delta_ds.kernel.files.read.data_file import Batches
    from delta_ds.kernel.log.snapshot import Snapshot

_AHEAD_BYTES = 64 << 20
# Files of so many bytes together are read one after the other, and their rows joined.
_RUN_BYTES = 4 << 20
_RUNS_EACH = 4
# Batches of so many bytes are not joined: it would cost more than it saves, and arrays of texts end at 2 GiB.
_JOINED_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Bin:
    """Files that are rewritten together. Can be pickled.

    Attributes
    ----------
    slices
        Whole files, of one partition.
    outputs
        How many files their rows are arranged into; None to keep the order of rows, in one file.
    tags, clustering_provider
        What the new files get.
    """

    slices: tuple[FileSlice, ...]
    outputs: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    clustering_provider: str | None = None

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(piece.size for piece in self.slices)


@dataclass(frozen=True, slots=True)
class RewritePlan:
    """How files of a table are read and written. Can be pickled.

    Attributes
    ----------
    tracking
        Names that files have for row ids and row commit versions; none where they are not kept.
    folder
        Where new files lie, relative to the table.
    """

    storage: Storage
    reading: ReadPlan
    files: WriteSpec
    tracking: tuple[str, ...] = ()
    folder: str = ""


def rewrite_plan(
    snapshot: Snapshot, timezone: str, after: Description | None = None, compression: str | None = None
) -> RewritePlan:
    """How the files of a version are rewritten.

    Parameters
    ----------
    timezone
        The session time zone, for partition timestamps in local form.
    after
        The metadata by which new files are written; None for that of the version.
    compression
        Their codec; None: the table's.

    Raises
    ------
    InvalidOptionError
        A property that decides how files are written has no known value.
    """
    before = snapshot.table_state
    tracking = before.row_tracking_columns
    reading = ReadPlan.of(before, timezone=timezone, metadata_columns=ROW_TRACKING_FIELDS if tracking else ())
    state, clustering = before, snapshot.clustering_paths
    if after is not None:
        state = replace(before, metadata=after.metadata, domains=after.domains)
        clustering = state.clustering_paths if state.supports(CLUSTERING) else ()
    files = write_spec(
        state,
        compression=compression,
        timezone=timezone,
        clustering_columns=clustering,
        extra_columns=tuple(StructField(name, LONG) for name in tracking),
    )
    return RewritePlan(snapshot.storage, reading, files, tracking)


def read_rows(plan: RewritePlan, slices: Sequence[FileSlice], threads: int = 1) -> Iterator[pa.RecordBatch]:
    """The live rows of files, with the columns that new files have, row tracking included.

    Parameters
    ----------
    threads
        How many files are read at a time.
    """
    layouts = Layouts(plan.reading)
    workers = threads_for(plan.storage, threads)
    # Each thread gets several runs: they end at about the same time, and those of a store do not wait for each other.
    runs = _runs(slices, max(1, len(slices) // (_RUNS_EACH * workers)))
    streams = [partial(_read_run, plan, layouts, run) for run in runs]
    with closing(in_order(streams, workers, _AHEAD_BYTES)) as batches:
        for batch in batches:
            yield row_tracking_as_columns(batch, plan.tracking)


def _runs(slices: Sequence[FileSlice], most: int) -> list[list[FileSlice]]:
    """Consecutive files that are read one after the other: a large one alone, small ones together."""
    runs: list[list[FileSlice]] = []
    size = 0
    for piece in slices:
        if not runs or size + piece.size > _RUN_BYTES or len(runs[-1]) == most:
            runs.append([])
            size = 0
        runs[-1].append(piece)
        size += piece.size
    return runs


def _read_run(plan: RewritePlan, layouts: Layouts, run: Sequence[FileSlice]) -> Batches:
    """The rows of some files; small batches are joined, as each has a cost of its own on its way into a file."""
    with closing(_one_after_the_other(plan, layouts, run)) as batches:
        # Those of one file are of the size that decoding gives them; of a store, a row group at most.
        yield from batches if len(run) == 1 else _joined(batches)


def _one_after_the_other(plan: RewritePlan, layouts: Layouts, run: Sequence[FileSlice]) -> Batches:
    for piece in run:
        with closing(read_slice(plan.storage, layouts, piece, BATCH_ROWS, False)) as batches:
            yield from batches


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order: small batches that follow each other as one, large ones as they are."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        count, nbytes = batch.num_rows, batch.nbytes
        alone = count >= BATCH_ROWS or nbytes >= _JOINED_BYTES
        if not alone:
            held.append(batch)
            rows += count
            size += nbytes
        if held and (alone or rows >= BATCH_ROWS or size >= _JOINED_BYTES):
            yield _concatenated(held)
            held, rows, size = [], 0, 0
        if alone:
            yield batch
    if held:
        yield _concatenated(held)


def _concatenated(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def rewrite_files(plan: RewritePlan, files: Bin, task: int = 0, threads: int = 1) -> list[AddFile]:
    """Join the files of a bin, in their order, into one.

    Parameters
    ----------
    task
        A number for the names of files.
    threads
        How many files are read at a time.

    Returns
    -------
    list of dict
        The bodies of the `add` actions; none where no row is left.

    Raises
    ------
    DataFileError
        A file is missing or damaged; what was written is deleted.
    StorageError
        A file cannot be written; the same.
    """
    return write_bin_rows(plan, read_rows(plan, files.slices, threads), files, task)


def write_bin_rows(
    plan: RewritePlan, batches: Iterator[pa.RecordBatch], files: Bin, task: int = 0
) -> list[AddFile]:
    """Write rows to one file; parameters, result and errors as `rewrite_files`."""
    return write_bin(plan, lambda writer: _copy(batches, writer), files, task)


def write_bin(
    plan: RewritePlan, action: Callable[[FileWriter], None], files: Bin, task: int = 0
) -> list[AddFile]:
    """What an action writes, as `add` actions of a bin; nothing is left behind where it fails."""
    writer = FileWriter(plan.storage, plan.files, task=task, folder=plan.folder)
    try:
        action(writer)
        return [optimized_add(body, files) for body in writer.close()]
    except BaseException:
        # Also when Spark kills the task: nothing refers to these files, and nothing ever will.
        writer.abort()
        raise


def _copy(batches: Iterator[pa.RecordBatch], writer: FileWriter) -> None:
    for batch in batches:
        writer.write(batch)


def optimized_add(body: AddFile, files: Bin) -> AddFile:
    """An `add` as OPTIMIZE commits it."""
    # What an older file says of how it was written does not hold for a new one.
    kept = {name: text for name, text in files.tags.items() if name != FILE_TAG}
    tags = {**kept, **(body.get("tags") or {})}
    more: AddFile = {"tags": tags} if tags else {}
    if files.clustering_provider is not None:
        more["clusteringProvider"] = files.clustering_provider
    return {**body, "dataChange": False, **more}


def with_columns(plan: RewritePlan, columns: Sequence[str]) -> RewritePlan:
    """The same reading of some top-level columns, without row tracking."""
    fields = tuple(f for f in plan.reading.schema if f.name in set(columns))
    schema = type(plan.reading.schema)(fields)
    return replace(plan, reading=replace(plan.reading, schema=schema, metadata_columns=()), tracking=())
