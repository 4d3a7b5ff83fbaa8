"""Check files for nulls in NOT NULL columns before Spark relies on there being none.

An engine that is told that a column has no nulls does not look for them, and answers wrongly where a file of another
writer has some. The log's statistics settle it for nearly all files, footers for the others, and the few that are left
are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.data import NOT_NULL_CONSTRAINT_VIOLATED_BY_FILE
from delta_ds.exceptions import DataFileError
from delta_ds.kernel.base.arrow_buffers import field_of
from delta_ds.kernel.files.read import column_conversion
from delta_ds.kernel.files.read.column_conversion import default_value
from delta_ds.kernel.files.read.plan import FileSlice, file_slices
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.format.expressions.arrays import FALSE, TRUE, scalar_of
from delta_ds.kernel.format.schema.column_mapping import physical_name
from delta_ds.kernel.format.schema.types import LONG, STRING, VOID, DataType, StructField, StructType
from delta_ds.kernel.format.values.statistics import Path, load_statistics

if TYPE_CHECKING:
    from delta_ds.kernel.log.snapshot import Snapshot

_FILES_AT_ONCE = 16


def check_not_null(snapshot: Snapshot, rows: pa.Int64Array) -> None:
    """Make sure that files have no nulls where the schema says that there are none.

    Parameters
    ----------
    snapshot
        The version.
    rows
        Row numbers into `snapshot.live_files().table`: the files to look at.

    Raises
    ------
    DataFileError
        A file has nulls in a NOT NULL column: it was written against the table's schema.
    """
    wanted = [f for f in snapshot.schema if not f.nullable and f.type != VOID]
    open_rows = _unproven_files(snapshot, wanted, rows)
    if not len(open_rows):
        return
    table = snapshot.live_files().table.take(open_rows)
    slices = file_slices(table, snapshot.physical_partition_columns)
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        for piece, column in zip(
            slices, pool.map(lambda s: _first_broken_column(snapshot, wanted, s), slices), strict=True
        ):
            if column is not None:
                raise _error(snapshot, piece, column)


def _unproven_files(snapshot: Snapshot, wanted: Sequence[StructField], rows: pa.Int64Array) -> pa.Int64Array:
    """The files of which the log does not say that they have no nulls."""
    partitions = {name.lower() for name in snapshot.partition_columns}
    data = [f for f in wanted if f.name.lower() not in partitions]
    keep = pa.repeat(TRUE, len(rows))
    if len(data) < len(wanted):
        keep = pc.and_(keep, _partitions_set(snapshot, [f for f in wanted if f not in data], rows))
    if data and len(rows):
        leaves = {f.name: dict(_leaves((), f, snapshot.mapping_mode)) for f in data}
        asked = [item for found in leaves.values() for item in found.items()]
        counts = load_statistics(snapshot.live_files(), rows, asked).null_count
        for found in leaves.values():
            # A struct is not null where any of its fields is not.
            none = pa.repeat(FALSE, len(rows))
            for path in found:
                none = pc.or_(none, pc.fill_null(pc.equal(counts[path], scalar_of(0, LONG)), FALSE))
            keep = pc.and_(keep, none)
    return rows.filter(pc.invert(keep))


def _leaves(above: Path, field: StructField, mode: str) -> Iterator[tuple[Path, DataType]]:
    path = (*above, physical_name(field, mode))
    if isinstance(field.type, StructType):
        for child in field.type:
            yield from _leaves(path, child, mode)
    else:
        yield path, field.type


def _partitions_set(
    snapshot: Snapshot, fields: Sequence[StructField], rows: pa.Int64Array
) -> pa.BooleanArray:
    values = snapshot.live_files().table["partitionValues"].take(rows)
    keep = pa.repeat(TRUE, len(rows))
    for field in fields:
        texts = field_of(values, physical_name(field, snapshot.mapping_mode))
        texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        keep = pc.and_(keep, pc.fill_null(pc.not_equal(texts, scalar_of("", STRING)), FALSE))
    return keep


def _first_broken_column(snapshot: Snapshot, wanted: Sequence[StructField], piece: FileSlice) -> str | None:
    """The first column with nulls in a file; None for none."""
    columns = [f for f in wanted if not _proven_by_footer(snapshot, f, piece)]
    if not columns:
        return None
    plan = Scan(snapshot, None, [f.name for f in columns]).plan
    for batch in read_slices(snapshot.storage, plan, [piece]):
        for field, column in zip(columns, batch.columns, strict=True):
            if column.null_count:
                return field.name
    return None


def _proven_by_footer(snapshot: Snapshot, field: StructField, piece: FileSlice) -> bool:
    import pyarrow.parquet as pq

    if field.name in snapshot.partition_columns:
        return False
    storage = snapshot.storage
    with closing(storage.open(storage.resolve(piece.path))) as source, pq.ParquetFile(source) as file:
        schema = file.schema_arrow
        (index,) = column_conversion.match_fields(list(schema), StructType((field,)), snapshot.mapping_mode)
        if index is None:
            return bool(default_value(field).null_count == 0)
        leaf = column_conversion.first_leaves(list(schema))[index]
        groups = [file.metadata.row_group(i).column(leaf) for i in range(file.metadata.num_row_groups)]
        known = [g.statistics for g in groups]
        return all(s is not None and s.has_null_count and s.null_count == 0 for s in known)


def _error(snapshot: Snapshot, piece: FileSlice, column: str) -> DataFileError:
    return NOT_NULL_CONSTRAINT_VIOLATED_BY_FILE(
        column=column, version=snapshot.version, table=snapshot.storage.url, path=piece.path
    )
