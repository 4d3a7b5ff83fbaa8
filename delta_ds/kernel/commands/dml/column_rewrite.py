"""Rewrite only the columns of a file in which rows change; the other columns are copied as they are.

Source: PROTOCOL.md, "Data Files": a file with the same rows and other values in some columns.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.files.rows.pipeline import RowPipeline
from delta_ds.kernel.files.write import write_spec
from delta_ds.kernel.files.write.column_replacement import can_replace, replace_columns
from delta_ds.kernel.files.write.columns import file_columns
from delta_ds.kernel.files.write.footer_statistics import FooterStatistics, read_footer
from delta_ds.kernel.files.write.partition_files import parquet_writer
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.format.properties import RANDOM_PREFIX_LENGTH
from delta_ds.kernel.format.schema.column_mapping import physical_name
from delta_ds.kernel.format.schema.types import VARIANT, VOID, StructType, is_nested
from delta_ds.kernel.format.values.partition_values import partition_folder
from delta_ds.kernel.storage.staging import discard
from delta_ds.records import replace

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from delta_ds.kernel.commands.dml.plan import DmlPlan


class ColumnRewrite:
    """Rewrites files of a table by new values for some of its columns.

    Parameters
    ----------
    change
        The change.
    reading
        How the files are read.
    names
        The columns that get new values.
    task
        The number of the task.
    reads
        Columns that new values are computed from.
    """

    def __init__(
        self,
        change: DmlPlan,
        reading: ReadPlan,
        names: Sequence[str],
        task: int,
        reads: Collection[str] = (),
    ) -> None:
        write = change.write
        read = tuple(f for f in write.rows.table if f.name in names or f.name in reads)
        fields = StructType(tuple(f for f in write.rows.table if f.name in names))
        self.schema = fields
        self.pipeline = RowPipeline(replace(write.rows, table=fields, identities=()), task)
        self.reading = replace(reading, schema=StructType(read))
        self._storage = write.storage
        self._spec = write.files
        self._folder = change.folder
        self._task = task
        self._all = file_columns(write.files)
        self._some = file_columns(replace(write.files, schema=fields, partition_columns=()))
        self._statistics = FooterStatistics(write.storage, write.files)
        self._written: list[str] = []

    @staticmethod
    def serves(change: DmlPlan, names: Sequence[str]) -> bool:
        """Whether new rows are just new values in some columns: no check and no other column looks at them.

        Parameters
        ----------
        names
            The columns that get new values.
        """
        rows, files = change.write.rows, change.write.files
        stored = [f for f in rows.table if f.name not in files.partition_columns]
        if rows.checks or rows.generated or change.records_changes or change.tracked:
            return False
        if files.max_records_per_file is not None:
            return False  # a file that is too long becomes several
        if not names or any(name in files.partition_columns for name in names) or len(names) >= len(stored):
            return False
        if any(f.type in (VARIANT, VOID) or is_nested(f.type) for f in stored if f.name in names):
            return False
        columns = file_columns(files)
        return not columns.variants and not columns.thinned

    def footer(self, piece: FileSlice) -> pq.FileMetaData | None:
        """The footer of a file whose other columns may stay as they are; None for another file."""
        path = self._storage.resolve(piece.path)
        if piece.deletion_vector is not None:
            return None
        found = read_footer(self._storage, path, piece.size)
        timezone = self.reading.timezone or "UTC"
        return found if can_replace(found, self._all, timezone) else None

    def batches(self, piece: FileSlice) -> Iterator[pa.RecordBatch]:
        """The rows of a file: columns that get new values or are read for them, and `_metadata` as the plan has it."""
        return read_slices(self._storage, self.reading, [piece])

    def write(
        self, piece: FileSlice, footer: pq.FileMetaData, rows: Iterator[pa.RecordBatch]
    ) -> tuple[AddFile, int]:
        """Write a file anew.

        Parameters
        ----------
        piece, footer
            The file as it is.
        rows
            The new values of all its rows, in order.

        Returns
        -------
        dict
            The body of its `add` action.
        int
            How many rows it has.

        Raises
        ------
        ValueError
            The file is damaged.
        StorageError
            A file cannot be written.
        """
        path = self._new_path(piece)
        self._written.append(path)
        source = self._storage.resolve(piece.path)
        target = self._storage.open_output(path)
        try:
            replace_columns(self._storage, source, piece.size, target, self._groups(footer, rows))
            size = target.tell()
        except BaseException:
            getattr(target, "discard", target.close)()
            raise
        target.close()
        count, statistics = self._statistics.of(path, size)
        body: AddFile = {
            "path": write_spec.encode(path),
            "partitionValues": self._partition_values(piece),
            "size": size,
            "modificationTime": time.time_ns() // 1_000_000,
            "dataChange": True,
            "stats": statistics,
            **({"tags": dict(self._spec.tags)} if self._spec.tags else {}),
        }
        return body, count

    def close(self) -> None:
        """Make what was written durable."""
        self._storage.fsync(self._written)

    def abort(self) -> None:
        """Delete all that was written."""
        discard(self._storage, [write_spec.encode(path) for path in self._written])

    def _groups(self, footer: pq.FileMetaData, rows: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        """A Parquet file in memory for each row group."""
        waiting = pa.Table.from_batches([], schema=self._some.schema)
        for group in range(footer.num_row_groups):
            wanted = footer.row_group(group).num_rows
            parts = [waiting]
            count = waiting.num_rows
            while count < wanted:
                parts.append(pa.Table.from_batches([self._some.physical(next(rows))]))
                count += parts[-1].num_rows
            table = pa.concat_tables(parts)
            waiting = table.slice(wanted)
            yield self._encoded(table.slice(0, wanted))

    def _encoded(self, table: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        with parquet_writer(sink, self._some.schema, self._spec.codec, self._spec, table) as writer:
            writer.write_table(table, row_group_size=max(table.num_rows, 1))
        return bytes(sink.getvalue())

    def _partition_values(self, piece: FileSlice) -> Mapping[str, str | None]:
        fields = [self._spec.schema.find(name) for name in self._spec.partition_columns]
        names = [physical_name(f, self._spec.mapping_mode) for f in fields if f is not None]
        return dict(zip(names, piece.partition_values, strict=True))

    def _new_path(self, piece: FileSlice) -> str:
        spec = self._spec
        if spec.random_prefixes:
            folder = write_spec.random_prefix(RANDOM_PREFIX_LENGTH.of(spec.properties))
        else:
            folder = partition_folder(zip(spec.partition_columns, piece.partition_values, strict=True))
        name = write_spec.file_name("part", self._task, 0, spec.codec)
        return "/".join(part for part in (self._folder, folder, name) if part)
