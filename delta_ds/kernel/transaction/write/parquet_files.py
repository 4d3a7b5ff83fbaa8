"""Parquet files of other writers: their rows, read by Arrow as Spark's reader does, or not at all; and `add` actions.

Only files are read in which nothing is left to a reader's choice: flat columns that are stored by the very types that
are wanted, in today's calendar, under exactly their names. Everything else is `NotPlainError`, and somebody else's.

Spark's own Parquet writer leaves `<folder>/<partition column>=<text>/part-....parquet`. Sizes and times come from
the listing, partition values from the names of folders, statistics from the footers.
Source: Spark, `ParquetReadSupport`, `DataSourceUtils.datetimeRebaseSpec`; Apache Parquet, LogicalTypes.md; PROTOCOL.md,
"Add File and Remove File" and "Partition Value Serialization".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_ds.exceptions import DataFileError, DeltaError
from delta_ds.kernel.files.read.column_conversion import first_leaves
from delta_ds.kernel.files.read.row_groups import in_range
from delta_ds.kernel.files.write.footer_statistics import FooterStatistics
from delta_ds.kernel.files.write.write_spec import WriteSpec, encode, list_written_files
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.format.expressions.zones import rebase_of
from delta_ds.kernel.format.schema.column_mapping import physical_name
from delta_ds.kernel.format.schema.types import TIMESTAMP, StructField, StructType, arrow_schema
from delta_ds.kernel.format.values.partition_values import parse_partition_folders, text_in_log
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from delta_ds.kernel.storage.filesystem import Storage

_BATCH_ROWS = 1 << 16
_SAME_VALUES = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}

# Of each file the rows that were taken, and those that it has.
Read = dict[str, tuple[int, int]]


class NotPlainError(Exception):
    """A file cannot be read this way; its text says why."""


@dataclass(frozen=True, slots=True)
class Split:
    """The row groups of a file whose middle byte lies in a range.

    Attributes
    ----------
    path
        As `Storage.resolve` gives it.
    start, length, size
        Bytes; `size` of the whole file. The splits of a file tile it.
    """

    path: str
    start: int
    length: int
    size: int


@dataclass(frozen=True, slots=True)
class ParquetColumns:
    """The columns of rows from Parquet files. Can be pickled.

    Attributes
    ----------
    schema
        The rows: flat columns of distinct names.
    sources
        The name in the files of each.
    """

    schema: StructType
    sources: tuple[str, ...]

    @property
    def arrow(self) -> pa.Schema:
        """The types of the rows."""
        return pa.schema([field.with_nullable(True) for field in arrow_schema(self.schema)])

    def check(self, file: pq.ParquetFile) -> list[int | None]:
        """Where the columns are among those of a file; None where it lacks one, whose values then are null.

        Raises
        ------
        NotPlainError
            Another reader has to read the file.
        """
        rebase = rebase_of(file.metadata.metadata, "UTC")
        if rebase.datetimes or rebase.int96:
            raise NotPlainError("it was written in an old calendar")
        found, leaves = file.schema_arrow, first_leaves(list(file.schema_arrow))
        names: dict[str, list[int]] = {}
        for at, name in enumerate(found.names):
            names.setdefault(name.lower(), []).append(at)
        places: list[int | None] = []
        for name, wanted in zip(self.sources, arrow_schema(self.schema), strict=True):
            alike = names.get(name.lower(), [])
            if len(alike) > 1 or any(found.names[at] != name for at in alike):
                raise NotPlainError(f"column {name} is one of several, or spelled otherwise")
            for at in alike:
                leaf = file.metadata.schema.column(leaves[at])
                if _stored_type(found.field(at).type, leaf) != wanted.type:
                    raise NotPlainError(f"column {name} is stored as {found.field(at).type}")
            places.append(alike[0] if alike else None)
        return places


def _stored_type(there: pa.DataType, leaf: Any) -> pa.DataType:
    """The type of the same values as Spark has them: a zone and the width of offsets are Arrow's own."""
    if pa.types.is_timestamp(there) and (there.tz is not None or leaf.physical_type == "INT96"):
        return pa.timestamp(there.unit, "UTC")
    return _SAME_VALUES.get(there, there)


class SplitRows:
    """Reads the rows of some splits.

    Parameters
    ----------
    storage
        Opens the files.
    columns
        Of the rows.
    splits
        In order.
    batch_rows
        How many rows a batch has at most: few where texts may be repeated, of which files say little.

    Attributes
    ----------
    rows
        How many rows of each file were read so far, and how many it has, by path.
    """

    def __init__(
        self,
        storage: Storage,
        columns: ParquetColumns,
        splits: Sequence[Split],
        batch_rows: int = _BATCH_ROWS,
    ) -> None:
        self._storage, self._batch_rows = storage, batch_rows
        self._columns = columns
        self._splits = splits
        self._schema = columns.arrow
        self.rows: Read = {}

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch.

        Raises
        ------
        NotPlainError
            A file cannot be read, or not by Arrow.
        """
        for split in self._splits:
            batches = self._read(split)
            while True:
                # What the consumer raises is no matter of the files.
                try:
                    batch = next(batches, None)
                except (NotPlainError, pa.ArrowException, OSError, DeltaError) as error:
                    raise NotPlainError(f"{split.path}: {error}") from error
                if batch is None:
                    break
                yield batch

    def _read(self, split: Split) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        remote = ":/" in self._storage.url
        with (
            closing(self._storage.open(split.path)) as source,
            pq.ParquetFile(source, pre_buffer=remote, coerce_int96_timestamp_unit="us") as file,
        ):
            places = self._columns.check(file)
            groups = in_range(file.metadata, split.start, split.length, split.size)
            read, _ = self.rows.get(split.path, (0, 0))
            read += sum(file.metadata.row_group(g).num_rows for g in groups)
            self.rows[split.path] = (read, file.metadata.num_rows)
            starts = first_leaves(list(file.schema_arrow))
            leaves = {place: starts[place] for place in places if place is not None}
            order = {place: n for n, place in enumerate(sorted(leaves))}
            if not leaves:
                raise NotPlainError("it has none of the columns")
            for batch in file.reader.iter_batches(
                self._batch_rows, row_groups=groups, column_indices=sorted(leaves.values()), use_threads=False
            ):
                arrays = [None if place is None else batch.column(order[place]) for place in places]
                yield self._batch(arrays, batch.num_rows)

    def _batch(self, arrays: Sequence[pa.Array | None], rows: int) -> pa.RecordBatch:
        types = self._schema.types
        columns = [
            pa.nulls(rows, kind) if array is None else array if array.type == kind else array.cast(kind)
            for array, kind in zip(arrays, types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def check_whole(reads: Iterable[Read]) -> None:
    """Check that splits were read which are all of their files.

    Raises
    ------
    NotPlainError
        A file has changed between two of its splits.
    """
    read: Counter[str] = Counter()
    there: dict[str, set[int]] = {}
    for rows in reads:
        for path, (taken, of) in rows.items():
            read[path] += taken
            there.setdefault(path, set()).add(of)
    if any(sizes != {read[path]} for path, sizes in there.items()):
        raise NotPlainError("a file has changed meanwhile")


_FILES_AT_ONCE = 16
_ZONED = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """The files that another writer left in a folder, as `add` actions.

    Attributes
    ----------
    adds
        The bodies of the `add` actions, in order of path.
    rows
        Of all files together.
    unwanted
        Files without rows, and those that do not count, relative to the table and not encoded: to be deleted, not to
        be added.
    """

    adds: list[AddFile]
    rows: int
    unwanted: list[str]


def read_parquet_files(
    storage: Storage,
    plan: WriteSpec,
    folder: str,
    *,
    paths: Sequence[str] | None = None,
    counts: Callable[[str], bool] = bool,
) -> ParquetFiles:
    """Make `add` actions, statistics included, of files that another writer put into a folder.

    Only footers are read where they say enough; see `footer_statistics`. Nothing is made durable: call
    `storage.fsync` with the paths before the commit, as `FileWriter.close` does.

    Parameters
    ----------
    storage
        Of the table.
    plan
        As for a `FileWriter` of the same rows.
    folder
        Relative to the table. Below it are folders named after the partition columns, in order, by physical name.
    paths
        The files, relative to the table and not encoded; by default all that `list_written_files` finds.
    counts
        Whether the file of a path counts; by default all do. Others are not even opened.

    Raises
    ------
    DataFileError
        A file is damaged, has other columns than the table's files, or its folder is no partition.
    FileNotFoundError
        A file of `paths` is missing.
    """
    statistics = FooterStatistics(storage, plan)
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        if paths is None:
            written = list_written_files(storage, folder)
        else:
            found = pool.map(storage.status, sorted(paths))
            written = [(status.path, status.size, status.modified_ms) for status in found]
        unwanted = [path for path, _, _ in written if not counts(path)]
        written = [file for file in written if counts(file[0])]
        partitions = _Partitions(plan, folder)
        values = [partitions.values(path) for path, _, _ in written]
        texts = list(pool.map(lambda file: statistics.of(file[0], file[1]), written))
    adds: list[AddFile] = []
    for (path, size, time_ms), partition, (rows, text) in zip(written, values, texts, strict=True):
        if not rows:
            unwanted.append(path)
            continue
        adds.append(
            {
                "path": encode(path),
                "partitionValues": dict(partition),
                "size": size,
                "modificationTime": time_ms,
                "dataChange": True,
                "stats": text,
                **({"tags": dict(plan.tags)} if plan.tags else {}),
            }
        )
    return ParquetFiles(adds, sum(rows for rows, _ in texts), unwanted)


class _Partitions:
    """Reads partition values from folder names, each folder once."""

    def __init__(self, plan: WriteSpec, folder: str) -> None:
        fields = {field.name: field for field in plan.schema}
        self._plan = plan
        self._folder = folder.strip("/")
        self._fields = [fields[name] for name in plan.partition_columns]
        self._columns = [physical_name(field, plan.mapping_mode) for field in self._fields]
        self._known: dict[str, dict[str, str | None]] = {}

    def values(self, path: str) -> dict[str, str | None]:
        """The partition values of a file, by physical name, as the log has them."""
        directory = path.rpartition("/")[0]
        if directory not in self._known:
            try:
                self._known[directory] = self._values(directory)
            except DataFileError as error:
                raise DataFileError(
                    f"data file {path}, just written for table {self._plan.table}, cannot become part of it: "
                    f"{error.text}; nothing was committed",
                    parameters={"path": path, "table": self._plan.table},
                ) from error
        return self._known[directory]

    def _values(self, directory: str) -> dict[str, str | None]:
        below = directory.removeprefix(self._folder).strip("/")
        values = parse_partition_folders(below.split("/")) if below else []
        names = [name for name, _ in values]
        if names != self._columns:
            raise DataFileError(
                f"it lies in a folder of {names} instead of the partition columns {self._columns}"
            )
        return {
            name: _text(field, text)
            for name, field, (_, text) in zip(self._columns, self._fields, values, strict=True)
        }


def _text(field: StructField, text: str | None) -> str | None:
    """A value as the log has it, from its text in a folder's name, which has the zone of an instant."""
    refused = partial(
        DataFileError, f"the folder of partition column {field.name} says {text!r}, which is no {field.type}"
    )
    if text and field.type == TIMESTAMP and not _ZONED.search(text):
        raise refused()
    return text_in_log(text, field.type, refused)
