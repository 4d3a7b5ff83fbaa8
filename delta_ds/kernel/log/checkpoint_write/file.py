"""Write one Parquet file of a checkpoint, row group by row group.

Source: PROTOCOL.md, "Checkpoint Schema"; protocol-checklist CKP-W-07 to CKP-W-09.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_ds.exceptions import CorruptLogFileError
from delta_ds.kernel.base.arrow_buffers import mask
from delta_ds.kernel.base.nested_arrays import array_of_values
from delta_ds.kernel.format.actions import Action
from delta_ds.kernel.log.checkpoint_write.schema import TypedColumns, add_type, remove_type
from delta_ds.kernel.log.checkpoint_write.state import FileRows
from delta_ds.kernel.log.filenames import forget_hadoop_checksum
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass, field

# One row group holds at most this much: what writing keeps in memory at once.
_GROUP_ROWS = 65_536
_GROUP_BYTES = 48 << 20
_COMPRESSION = "zstd"


@dataclass(frozen=True, slots=True)
class FileForm:
    """The columns that the file actions of a checkpoint have; `footer` goes into its files."""

    stats: bool
    struct: bool
    typed: TypedColumns
    footer: Mapping[str, str] = field(default_factory=dict)

    @property
    def add(self) -> pa.StructType:
        if not self.struct:
            return add_type(stats=self.stats)
        return add_type(stats=self.stats, statistics=self.typed.statistics, partitions=self.typed.partitions)


@dataclass(slots=True)
class Counts:
    """The number of actions written so far, and the bytes of the live data files."""

    adds: int = 0
    removes: int = 0
    live_bytes: int = 0

    @property
    def files(self) -> int:
        return self.adds + self.removes


def single_table(actions: Sequence[Action], schema: pa.Schema) -> pa.Table:
    """Actions that are no file actions, as columns.

    Raises
    ------
    CorruptLogFileError
        The log holds values in them that are of another type than the protocol says.
    """
    try:
        columns = [array_of_values([action.get(f.name) for action in actions], f.type) for f in schema]
        return pa.table(columns, schema=schema)
    except (ValueError, TypeError, AttributeError, OverflowError, pa.ArrowException) as error:
        kinds = sorted({name for action in actions for name in action})
        raise CorruptLogFileError(
            f"the log holds values in its {', '.join(kinds)} that a checkpoint cannot: {error}"
        ) from error


def action_rows(rows: FileRows, form: FileForm, counts: Counts) -> pa.StructArray:
    """The rows as values of the column `add` or `remove`."""
    table = rows.table
    kind = form.add if rows.kind == "add" else remove_type()
    columns = {name: _flat(table[name]) for name in table.column_names}
    columns["dataChange"] = mask(np.zeros(table.num_rows, dtype=bool))
    if rows.kind == "remove":
        counts.removes += table.num_rows
    else:
        counts.adds += table.num_rows
        counts.live_bytes += pc.sum(columns["size"]).as_py() or 0
        _add_typed(columns, form)
    return pa.StructArray.from_arrays([columns[field.name] for field in kind], fields=list(kind))


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _add_typed(columns: dict[str, pa.Array], form: FileForm) -> None:
    text, parsed = columns["stats"], columns.get("stats_parsed")
    if form.struct:
        columns["stats_parsed"] = _typed_statistics(text, parsed, form.typed)
        if form.typed.partitions is not None:
            columns["partitionValues_parsed"] = form.typed.parse_partitions(columns["partitionValues"])
    if form.stats and parsed is not None and text.null_count:
        columns["stats"] = pc.coalesce(text, form.typed.statistics_text(parsed))


def _typed_statistics(
    text: pa.StringArray, parsed: pa.StructArray | None, typed: TypedColumns
) -> pa.StructArray:
    """Typed statistics: as they were where they still have the right type, else from the text."""
    if parsed is None:
        return typed.parse_statistics(text)
    same = parsed.type == typed.statistics
    from_text = pc.and_(text.is_valid(), pc.is_null(parsed)) if same else text.is_valid()
    if from_text.true_count == len(text):
        return typed.parse_statistics(text)
    older = parsed if same else typed.fit_statistics(parsed)
    if from_text.true_count == 0:
        return older
    nothing = pa.nulls(1, pa.string())[0]
    return pc.if_else(from_text, typed.parse_statistics(pc.if_else(from_text, text, nothing)), older)


class CheckpointFile:
    """One file of a checkpoint, its rows gathered to row groups of bounded size.

    Attributes
    ----------
    size
        In bytes, once it is closed.
    """

    def __init__(self, sink: BinaryIO, schema: pa.Schema, footer: Mapping[str, str]) -> None:
        self.size = 0
        self._sink = sink
        self._schema = schema
        self._writer = pq.ParquetWriter(
            sink, schema, compression=_COMPRESSION, store_schema=False, store_decimal_as_integer=True
        )
        self._writer.add_key_value_metadata(dict(footer))
        self._pending: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def append(self, kind: str, actions: pa.StructArray) -> None:
        """Take actions of one kind."""
        rows = len(actions)
        columns = [actions if f.name == kind else pa.nulls(rows, f.type) for f in self._schema]
        self._pending.append(pa.record_batch(columns, schema=self._schema))
        self._rows += rows
        self._bytes += actions.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._flush()

    def append_table(self, table: pa.Table) -> None:
        """Take a table of the whole schema, as a row group of its own."""
        self._flush()
        self._writer.write_table(table)

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(
                pa.Table.from_batches(self._pending, self._schema), row_group_size=self._rows
            )
        self._pending, self._rows, self._bytes = [], 0, 0

    def close(self) -> None:
        """Write what is left and the footer."""
        self._flush()
        self._writer.close()
        self.size = self._sink.tell()

    def abandon(self) -> None:
        """Discard the file."""
        # Else the writer puts a footer to the closed stream when it is collected.
        self._writer.is_open = False


@contextmanager
def open_file(
    storage: Storage, path: str, schema: pa.Schema, footer: Mapping[str, str]
) -> Iterator[CheckpointFile]:
    """A checkpoint file that becomes visible when the block ends without an exception; `footer` goes into its own."""
    forget_hadoop_checksum(storage, path)
    with storage.replace_file(path) as sink:
        file = CheckpointFile(sink, schema, footer)
        try:
            yield file
            file.close()
        except BaseException:
            file.abandon()
            raise
