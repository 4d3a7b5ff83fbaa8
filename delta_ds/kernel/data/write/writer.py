"""Write data files: Arrow batches in, Parquet files and their `add` actions out.

A table without partitions streams into one file. Rows of partitions are told apart by whole columns, gathered
under a memory bound and written one partition after the other; see `partition_buffer`.
Source: PROTOCOL.md, "Data Files", "Add File and Remove File", "Per-file Statistics".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from delta_ds.conditions.schema import METADATA_MISMATCH_OF_BATCH
from delta_ds.kernel.actions import AddFile
from delta_ds.kernel.data.write.columns import file_columns
from delta_ds.kernel.data.write.partition_buffer import PartitionBuffer
from delta_ds.kernel.data.write.partition_files import Output, PartitionFiles
from delta_ds.kernel.data.write.partition_split import PartitionIndex
from delta_ds.kernel.data.write.paths import encode
from delta_ds.kernel.data.write.statistics_columns import statistics_columns
from delta_ds.kernel.data.write.write_spec import WriteSpec
from delta_ds.kernel.storage.staging import discard, quietly

if TYPE_CHECKING:
    from delta_ds.kernel.storage.filesystem import Storage


class FileWriter:
    """Writes the rows of one task to new data files of a table.

    Parameters
    ----------
    storage
        Of the table.
    plan
        Columns, partitions, names and sizes.
    task
        A number for the names of files.
    folder, prefix
        Where files lie and how their names begin: `_change_data` and `cdc` for change files.

    Attributes
    ----------
    rows, bytes
        Rows taken in so far, and bytes of the files closed so far.

    Raises
    ------
    SchemaError
        The table has columns that data files, or its partition columns that the log, cannot hold.
    InvalidOptionError
        A property that decides how files are written has no known value.

    Source: PROTOCOL.md, "Data Files"; protocol-checklist LOG-W-08, CM-W-06, CM-W-07, PV-RW-01 to 04.
    """

    def __init__(
        self, storage: Storage, plan: WriteSpec, *, task: int = 0, folder: str = "", prefix: str = "part"
    ) -> None:
        columns = file_columns(plan)
        statistics = statistics_columns(plan, columns)
        self.rows = 0
        self.bytes = 0
        self._columns = columns
        self._output = Output(storage, plan, columns, statistics, task, folder, prefix)
        self._index = PartitionIndex(plan, columns)
        self._open: dict[int, PartitionFiles] = {}
        self._buffer = PartitionBuffer(columns.schema) if columns.partitions else None

    def write(self, batch: pa.RecordBatch) -> None:
        """Take in rows of any partitions.

        Parameters
        ----------
        batch
            The columns of `plan.schema`, then the extra ones, of exactly their Arrow types.

        Raises
        ------
        SchemaError
            The batch has other columns, or a partition value that the log cannot hold.
        StorageError
            A file cannot be written. After any error, call `abort`.
        """
        if not batch.schema.equals(self._columns.rows):
            raise METADATA_MISMATCH_OF_BATCH(
                table=self._output.plan.table,
                found=_listing(batch.schema),
                wanted=_listing(self._columns.rows),
            )
        if not batch.num_rows:
            return
        self.rows += batch.num_rows
        rows = self._columns.physical(batch)
        if self._buffer is None:
            self._files(0).write(rows)
            return
        self._buffer.add(rows, self._index.numbers(batch))
        if self._buffer.full:
            for number, pieces in self._buffer.release(self._open.keys()):
                files = self._files(number)
                for piece in pieces:
                    files.write(piece)
                files.flush()

    def _files(self, number: int) -> PartitionFiles:
        if number not in self._open:
            self._open[number] = PartitionFiles(self._output, self._index.partitions[number])
        return self._open[number]

    def close(self) -> list[AddFile]:
        """Finish all files.

        Returns
        -------
        list
            The bodies of the `add` actions, with statistics; none if there were no rows.

        Raises
        ------
        StorageError
            A file cannot be written; all files are deleted again.
        """
        adds: list[AddFile] = []
        try:
            if self._buffer is not None:
                for number, pieces in self._buffer.drain():
                    files = self._files(number)
                    for piece in pieces:
                        files.write(piece)
                    adds += files.close()
                    del self._open[number]
            while self._open:
                number, files = next(iter(self._open.items()))
                adds += files.close()
                del self._open[number]
            self._output.closing.wait()
            self._output.storage.fsync(self._output.written)
        except BaseException:
            self.abort()
            raise
        self.bytes = sum(add["size"] for add in adds)
        return adds

    def abort(self) -> None:
        """Delete all that was written; what cannot be deleted is logged and left to VACUUM."""
        if self._buffer is not None:
            self._buffer.close()
        for files in self._open.values():
            quietly(files.discard, self._output.plan.table)
        self._open = {}
        self._output.closing.wait_for_all()
        written, self._output.written = self._output.written, []
        discard(self._output.storage, [encode(path) for path in written])


def _listing(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in schema)
