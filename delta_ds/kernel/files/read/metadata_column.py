"""The `_metadata` column: file, row index, and row tracking ids.

Source: PROTOCOL.md, "Row Tracking" (protocol-checklist RT-R-09); Spark, hidden file metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.base.arrow_buffers import integers, texts
from delta_ds.kernel.files.read.exists_default import repeat
from delta_ds.kernel.format.schema.field_metadata import PHYSICAL_NAME
from delta_ds.kernel.format.schema.types import LONG, StructField

if TYPE_CHECKING:
    from collections.abc import Sequence

    from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan

METADATA_COLUMN = "_metadata"

_TYPES = {
    "file_path": pa.field("file_path", pa.string(), False),
    "file_name": pa.field("file_name", pa.string(), False),
    "file_size": pa.field("file_size", pa.int64(), False),
    "row_index": pa.field("row_index", pa.int64(), False),
    "row_id": pa.field("row_id", pa.int64()),
    "row_commit_version": pa.field("row_commit_version", pa.int64()),
}

# The fields that go along where rows are written anew.
ROW_TRACKING_FIELDS = ("row_id", "row_commit_version")


def row_tracking_as_columns(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Rows whose last column is a `_metadata` of `ROW_TRACKING_FIELDS`, with a column for each of them instead.

    Parameters
    ----------
    names
        What files of the table call the two, see `TableState.row_tracking_columns`; none: there is no such column.
    """
    if not names:
        return batch
    rows = batch.select(range(batch.num_columns - 1))
    for name, values in zip(names, batch.column(batch.num_columns - 1).flatten(), strict=True):
        rows = rows.append_column(pa.field(name, pa.int64()), values)
    return rows


def metadata_type(names: Sequence[str]) -> pa.StructType:
    """The type of a `_metadata` column with these fields.

    Raises
    ------
    InvalidOptionError
        A name is none of the fields there are.
    """
    unknown = [name for name in names if name not in _TYPES]
    if unknown:
        raise InvalidOptionError(f"_metadata has no field {unknown[0]!r}; it has {', '.join(_TYPES)}")
    return pa.struct([_TYPES[name] for name in names])


def file_uri(table: str, path: str) -> str:
    """The absolute, URI-encoded address of a file of a table.

    Parameters
    ----------
    table
        The table's URL, or path if it is local; not encoded.
    path
        As in the log: encoded, relative to the table or absolute.
    """
    scheme, mark, rest = table.partition(":/")
    root = f"{scheme}:/{quote(rest)}" if mark else f"file://{quote(table)}"
    if ":/" in path:
        return path
    if not path.startswith("/"):
        return f"{root.rstrip('/')}/{path}"
    authority = rest[1:].partition("/")[0] if mark and rest.startswith("/") else ""
    return f"{scheme if mark else 'file'}://{authority}{path}"


class RowMetadata:
    """The `_metadata` values of the rows of one file slice."""

    def __init__(self, plan: ReadPlan, piece: FileSlice) -> None:
        self._type = metadata_type(plan.metadata_columns)
        uri = file_uri(plan.table, piece.path)
        self._constants = {
            "file_path": texts([uri]),
            "file_name": texts([uri.rpartition("/")[2]]),
            "file_size": integers([piece.size]),
        }
        self._bases = {"row_id": piece.base_row_id, "row_commit_version": piece.default_row_commit_version}
        physical = {"row_id": plan.row_id_column, "row_commit_version": plan.row_commit_version_column}
        self._materialised = {
            name: column for name, column in physical.items() if column and name in plan.metadata_columns
        }

    def tracking_fields(self) -> list[StructField]:
        """The materialised columns to read from the file."""
        columns = self._materialised.values()
        return [StructField(column, LONG, metadata={PHYSICAL_NAME: column}) for column in columns]

    def column(
        self, rows: int, first: int, kept: np.ndarray[Any, Any] | None, tracked: Sequence[pa.Array]
    ) -> pa.Array:
        """The struct column of a batch.

        Parameters
        ----------
        rows
            How many rows of the batch are left.
        first
            Physical position of the batch's first row in the file.
        kept
            Mask of the rows left; None if all are.
        tracked
            The columns of `tracking_fields` for these rows.
        """
        index = np.arange(first, first + (rows if kept is None else len(kept)), dtype=np.int64)
        positions = integers(index if kept is None else index[kept])
        materialised = dict(zip(self._materialised, tracked, strict=True))
        children = [self._child(f.name, rows, positions, materialised) for f in self._type]
        return pa.StructArray.from_arrays(children, fields=list(self._type))

    def _child(
        self, name: str, rows: int, positions: pa.Array, materialised: dict[str, pa.Array]
    ) -> pa.Array:
        if name in self._constants:
            return repeat(self._constants[name], rows)
        if name == "row_index":
            return positions
        fresh = self._fresh(name, rows, positions)
        return pc.coalesce(materialised[name], fresh) if name in materialised else fresh

    def _fresh(self, name: str, rows: int, positions: pa.Array) -> pa.Array:
        base = self._bases[name]
        if base is None:
            return pa.nulls(rows, pa.int64())
        one = integers([base])
        return pc.add(positions, one[0]) if name == "row_id" else repeat(one, rows)
