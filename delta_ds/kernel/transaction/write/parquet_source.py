"""Rows of Parquet files of other writers, read by Arrow just as Spark's Parquet reader does, or not at all.

Only files are read in which nothing is left to a reader's choice: flat columns that are stored by the very types that
are wanted, in today's calendar, under exactly their names. Everything else is `NotPlainError`, and somebody else's.
Source: Spark, `ParquetReadSupport`, `DataSourceUtils.datetimeRebaseSpec`; Apache Parquet, LogicalTypes.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.files.read.column_conversion import first_leaves
from delta_ds.kernel.files.read.row_groups import in_range
from delta_ds.kernel.format.schema.types import StructType, arrow_schema
from delta_ds.kernel.format.values.calendars import rebase_of
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
