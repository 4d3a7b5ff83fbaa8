"""The files of one partition: batches gathered to row groups, row groups to files of bounded size.

Source: PROTOCOL.md, "Data Files" and "Add File and Remove File".
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from delta_ds.exceptions import StorageError
from delta_ds.kernel.files.write import write_spec
from delta_ds.kernel.files.write.columns import FileColumns, leaves
from delta_ds.kernel.files.write.statistics import FileStatistics, StatisticsColumn
from delta_ds.kernel.files.write.write_spec import WriteSpec
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.format.expressions.zones import TODAYS_CALENDAR
from delta_ds.kernel.format.features import DELETION_VECTORS
from delta_ds.kernel.format.properties import DATA_SKIPPING_STRING_PREFIX_LENGTH, RANDOM_PREFIX_LENGTH
from delta_ds.kernel.storage.store_errors import NOTHING_COMMITTED, cannot_write
from delta_ds.records import dataclass, field

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from delta_ds.kernel.storage.filesystem import Storage

GROUP_ROWS = 1 << 20
GROUP_BYTES = 128 << 20  # of Arrow data, before encoding and compression
_CLOSING_FILES = 8
_SAMPLED_ROWS = 1 << 14  # fewer rows get dictionaries in any case
_SAMPLE_ROWS = 1 << 13
# The share of distinct values in the sample from which a dictionary would not pay: of values that come at random it is
# 0.9 in the rows that are sampled.
_MOSTLY_DISTINCT = 0.9875


class Closing:
    """Closes streams in the background, as closing waits for a device or a store; the last one where it is waited for.

    So a write of one file starts no thread.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[None]] = deque()
        self._last: tuple[BinaryIO, str] | None = None

    def submit(self, stream: BinaryIO, address: str) -> None:
        """Close a stream to an address soon; raises the error of an earlier one."""
        before, self._last = self._last, (stream, address)
        if before is None:
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_CLOSING_FILES)
        self._waiting.append(self._pool.submit(_close, *before))
        while len(self._waiting) > _CLOSING_FILES:
            self._waiting.popleft().result()

    def wait(self) -> None:
        """Wait until all streams are closed; raises `StorageError` if one cannot be."""
        if self._last is not None:
            last, self._last = self._last, None
            _close(*last)
        while self._waiting:
            self._waiting.popleft().result()
        self.wait_for_all()

    def wait_for_all(self) -> None:
        """Wait until nothing is under way any more, whatever its outcome; a stream still open is given up."""
        self._waiting.clear()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        if self._last is not None:
            (stream, _), self._last = self._last, None
            _discard(stream)


def _close(stream: BinaryIO, address: str) -> None:
    """Close a stream; what the operating system says becomes a StorageError that names the address."""
    try:
        stream.close()
    except OSError as error:
        raise cannot_write(address, error, NOTHING_COMMITTED) from error


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: text by physical column name, and its directory (not URI-encoded)."""

    values: dict[str, str | None]
    directory: str


@dataclass(slots=True)
class Output:
    """What the files of one task share.

    Attributes
    ----------
    folder, prefix, task
        Parts of the names of files.
    tight_bounds
        Whether statistics say that their bounds are tight.
    written
        Paths of all files begun, not encoded; grows.
    closing
        Where finished streams are closed.
    check
        Raises where no file is wanted any more; called before each.
    """

    storage: Storage
    plan: WriteSpec
    columns: FileColumns
    statistics: tuple[StatisticsColumn, ...]
    task: int = 0
    folder: str = ""
    prefix: str = "part"
    written: list[str] = field(default_factory=list)
    closing: Closing = field(default_factory=Closing)
    check: Callable[[], None] | None = None

    @contextmanager
    def naming(self, path: str) -> Iterator[None]:
        """Errors of Arrow as a StorageError that names the file and the table."""
        try:
            yield
        except pa.ArrowException as error:
            raise StorageError(
                f"data file {path} of table {self.plan.table} cannot be written: {error}; nothing was committed",
                parameters={"path": path, "table": self.plan.table},
            ) from error


class PartitionFiles:
    """Writes the rows of one partition, in order, to one file after the other."""

    def __init__(self, output: Output, partition: Partition) -> None:
        plan = output.plan
        self._output = output
        self._partition = partition
        self._codec = plan.codec
        self._most_rows = plan.max_records_per_file or 0
        self._target = plan.target_file_size or 0
        self._group_bytes = min(GROUP_BYTES, self._target) if self._target else GROUP_BYTES
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._pending_bytes = 0
        self._file: _File | None = None
        self._number = 0
        self._adds: list[AddFile] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Take in rows, which are written once they fill a row group."""
        while self._most_rows and self._rows_of_file + batch.num_rows > self._most_rows:
            room = self._most_rows - self._rows_of_file
            self._gather(batch.slice(0, room))
            batch = batch.slice(room)
            self.flush()
            self._finish()
        self._gather(batch)

    @property
    def _rows_of_file(self) -> int:
        return self._pending_rows + (0 if self._file is None else self._file.statistics.rows)

    def _gather(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        if self._pending_rows + batch.num_rows > GROUP_ROWS:
            self.flush()
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self._pending_bytes += batch.nbytes
        if self._pending_bytes >= self._group_bytes:
            self.flush()

    def flush(self) -> None:
        """Write what was taken in as a row group."""
        if not self._pending:
            return
        group = pa.Table.from_batches(self._pending)
        self._pending, self._pending_rows, self._pending_bytes = [], 0, 0
        if self._file is None:
            self._file = _File(self._output, self._new_path(), self._codec, group)
        self._file.write(group)
        if self._target and self._file.size >= self._target:
            self._finish()

    def _new_path(self) -> str:
        output, plan = self._output, self._output.plan
        folder = self._partition.directory
        if plan.random_prefixes:
            folder = write_spec.random_prefix(RANDOM_PREFIX_LENGTH.of(plan.properties))
        name = write_spec.file_name(output.prefix, output.task, self._number, self._codec)
        self._number += 1
        return "/".join(part for part in (output.folder, folder, name) if part)

    def _finish(self) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            statistics = file.close()
        except BaseException:
            file.discard()
            raise
        tags = self._output.plan.tags
        self._adds.append(
            {
                "path": write_spec.encode(file.path),
                "partitionValues": dict(self._partition.values),
                "size": file.size,
                "modificationTime": time.time_ns() // 1_000_000,
                "dataChange": True,
                "stats": statistics,
                **({"tags": dict(tags)} if tags else {}),
            }
        )

    def close(self) -> list[AddFile]:
        """Write the rest and return the bodies of the `add` actions."""
        self.flush()
        self._finish()
        return self._adds

    def discard(self) -> None:
        """Drop the open file."""
        if self._file is not None:
            self._file.discard()
            self._file = None


class _File:
    """One Parquet file that is being written."""

    def __init__(self, output: Output, path: str, codec: str, first: pa.Table) -> None:
        plan = output.plan
        self.path = path
        self.size = 0
        self.statistics = FileStatistics(
            output.statistics,
            DATA_SKIPPING_STRING_PREFIX_LENGTH.of(plan.properties),
            DELETION_VECTORS.name in plan.features,
        )
        self._output = output
        if output.check is not None:
            output.check()
        output.written.append(path)
        self._stream: BinaryIO = output.storage.open_output(path)
        try:
            with output.naming(path):
                self._writer = parquet_writer(self._stream, output.columns.schema, codec, plan, first)
        except BaseException:
            _discard(self._stream)
            raise

    def write(self, group: pa.Table) -> None:
        with self._output.naming(self.path):
            self._writer.write_table(group, row_group_size=GROUP_ROWS)
            self.statistics.add(group)
        self.size = self._stream.tell()

    def close(self) -> str:
        """Finish the file and return its statistics."""
        with self._output.naming(self.path):
            self._writer.close()
            self.size = self._stream.tell()
            self._output.closing.submit(self._stream, self._output.storage.describe(self.path))
            return self.statistics.text(self._writer.writer.metadata)

    def discard(self) -> None:
        _discard(self._stream)
        self._writer.is_open = False  # else it would write its footer when it is collected


def _discard(stream: BinaryIO) -> None:
    """Close a stream without finishing what it writes, where it can do so."""
    getattr(stream, "discard", stream.close)()


def parquet_writer(
    stream: BinaryIO | pa.NativeFile, schema: pa.Schema, codec: str, plan: WriteSpec, first: pa.Table
) -> pq.ParquetWriter:
    """A writer of files in the form that all data files of a table have.

    Parameters
    ----------
    first
        The first rows: they tell for which columns a dictionary pays.
    """
    import pyarrow.parquet as pq

    v2 = plan.data_pages_v2
    writer = pq.ParquetWriter(
        stream,
        schema,
        version="2.6" if v2 else "1.0",
        data_page_version="2.0" if v2 else "1.0",
        compression="none" if codec == "uncompressed" else codec,
        use_dictionary=_dictionaries(first),
        write_statistics=_bounded(schema),
        store_schema=False,
        store_decimal_as_integer=True,
    )
    if any(pa.types.is_date(kind) or pa.types.is_timestamp(kind) for f in schema for _, kind in leaves(f)):
        writer.add_key_value_metadata(TODAYS_CALENDAR)
    return writer


def _bounded(schema: pa.Schema) -> bool | list[str]:
    """The Parquet columns that footers have bounds of: not floats.

    Arrow leaves NaN out of bounds. parquet-java, which Spark reads by, takes NaN for the greatest value, and would pass
    over the row groups that hold it.
    """
    found = [leaf for f in schema for leaf in leaves(f)]
    told = [path for path, kind in found if not pa.types.is_floating(kind)]
    return told if len(told) < len(found) else True


def _dictionaries(first: pa.Table) -> bool | list[str]:
    """For which columns dictionaries are tried: not where a sample of the first rows is mostly distinct.

    A dictionary of distinct values is built, found too large and thrown away, at a third of the time of the
    whole write.
    """
    if first.num_rows < _SAMPLED_ROWS:
        return True
    sample = first.slice(0, _SAMPLE_ROWS)
    distinct = {column.name for column in first.schema if _is_mostly_distinct(sample[column.name])}
    if not distinct:
        return True
    return [leaf for f in first.schema if f.name not in distinct for leaf, _ in leaves(f)]


def _is_mostly_distinct(values: pa.ChunkedArray) -> bool:
    if pa.types.is_nested(values.type) or pa.types.is_boolean(values.type):
        return False
    there = len(values) - values.null_count
    return bool(there and len(values.unique()) > _MOSTLY_DISTINCT * there)
