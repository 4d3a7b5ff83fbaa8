"""The output columns of one file: read and converted, the same value for all rows, or `_metadata`.

How columns are found and converted depends on a file's schema only. Files of a table mostly share one, so it is
decided once for all of them (`Layouts`).

Source: PROTOCOL.md, "Row Tracking" (protocol-checklist RT-R-09); Spark, hidden file metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.base.arrow_buffers import integers, texts
from delta_ds.kernel.files.read import column_conversion
from delta_ds.kernel.files.read.column_conversion import repeat
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.format.expressions.arrays import array_of
from delta_ds.kernel.format.schema import char_varchar
from delta_ds.kernel.format.schema.field_metadata import PHYSICAL_NAME
from delta_ds.kernel.format.schema.types import (
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    StructField,
    StructType,
    arrow_schema,
    arrow_type,
)
from delta_ds.kernel.format.values import partition_values
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

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


_OF_FILE = frozenset(["file_path", "file_name", "file_size"])


def _of_file(plan: ReadPlan, piece: FileSlice) -> dict[str, pa.Array]:
    uri = file_uri(plan.table, piece.path)
    return {
        "file_path": texts([uri]),
        "file_name": texts([uri.rpartition("/")[2]]),
        "file_size": integers([piece.size]),
    }


class RowMetadata:
    """The `_metadata` values of the rows of one file slice."""

    def __init__(self, plan: ReadPlan, piece: FileSlice) -> None:
        self._type = metadata_type(plan.metadata_columns)
        asked = _OF_FILE.intersection(plan.metadata_columns)
        self._constants = _of_file(plan, piece) if asked else {}
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


_KEPT = 16  # layouts of a plan, converters of a layout


def output_schema(plan: ReadPlan) -> pa.Schema:
    """The schema of every batch: `schema`, then `extra`, then `_metadata` if asked for."""
    schema = arrow_schema(StructType((*plan.schema.fields, *plan.extra.fields)))
    if plan.metadata_columns:
        schema = schema.append(pa.field(METADATA_COLUMN, metadata_type(plan.metadata_columns), False))
    return schema


@dataclass(frozen=True, slots=True)
class _Key:
    """What a layout depends on beside the file's schema."""

    rules: column_conversion.Rules
    partition_columns: tuple[str, ...]
    constants: tuple[str, ...]


class Layout:
    """Where the columns of a plan are in files of one schema, and how they are converted.

    Attributes
    ----------
    wanted
        The columns that come from the file: those of the table, then materialised row tracking columns.
    leaves
        The Parquet leaf columns to read for them, ascending.
    """

    def __init__(self, plan: ReadPlan, piece: FileSlice, schema: pa.Schema, key: _Key) -> None:
        self.schema = schema
        self.key = key
        from_file = list(_from_file(plan, key))
        tracking = RowMetadata(plan, piece).tracking_fields() if plan.metadata_columns else []
        self.wanted = StructType((*from_file, *tracking))
        self.tracked = len(from_file)
        if from_file:
            column_conversion.check_field_ids(schema, plan.mapping_mode)
        self.leaves = column_conversion.select_leaves(schema, self.wanted, plan.mapping_mode)
        self._converters: list[tuple[pa.Schema, Callable[[pa.RecordBatch], list[pa.Array]]]] = []

    def convert(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The wanted columns of a batch of the leaf columns."""
        # Batches of files of one schema differ in one thing only: which texts come as dictionaries.
        for schema, convert in self._converters:
            if schema.equals(batch.schema):
                return convert(batch)
        made = column_conversion.compile_columns(batch.schema, self.wanted, self.key.rules)
        self._converters = [(batch.schema, made), *self._converters[: _KEPT - 1]]
        return made(batch)


class Layouts:
    """The layouts of a plan, each made once. Threads may share it: the worst is that one is made twice."""

    def __init__(self, plan: ReadPlan) -> None:
        self.plan = plan
        self.schema = output_schema(plan)
        self._made: list[Layout] = []

    def of(self, piece: FileSlice, schema: pa.Schema, rules: column_conversion.Rules) -> Layout:
        """The layout of a file by its schema, field ids included.

        Raises
        ------
        DataFileError
            The columns cannot be found in such a file; see `column_conversion`.
        """
        constants = tuple(name for name, _ in piece.constants)
        key = _Key(rules, _partition_columns(self.plan, piece), constants)
        for made in tuple(self._made):
            if made.key == key and made.schema.equals(schema, check_metadata=True):
                return made
        made = Layout(self.plan, piece, schema, key)
        self._made = [made, *self._made[: _KEPT - 1]]
        return made


class FileColumns:
    """How the output columns of one file come about.

    Attributes
    ----------
    constants
        Per output column its value where the whole file has one, as an array of length one; None: from the file.
    """

    def __init__(self, layouts: Layouts, piece: FileSlice, layout: Layout) -> None:
        plan = layouts.plan
        self.layout = layout
        self._schema = layouts.schema
        self.constants = tuple(_constants(plan, piece, plan.timezone or "UTC"))
        self._metadata = RowMetadata(plan, piece) if plan.metadata_columns else None

    def output(self, batch: pa.RecordBatch, first: int, kept: np.ndarray[Any, Any] | None) -> pa.RecordBatch:
        """The output rows of a batch of leaf columns.

        Parameters
        ----------
        batch
            Only the rows that count.
        first
            Physical position of the first row that was read for it.
        kept
            Mask of the rows that count among those that were read; None if all do.
        """
        if not len(self._schema):
            return batch
        rows = batch.num_rows
        columns = self.layout.convert(batch)
        from_file = iter(columns)
        arrays = [next(from_file) if one is None else repeat(one, rows) for one in self.constants]
        if self._metadata is not None:
            arrays.append(self._metadata.column(rows, first, kept, columns[self.layout.tracked :]))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _partition_columns(plan: ReadPlan, piece: FileSlice) -> tuple[str, ...]:
    return plan.partition_columns if piece.partition_columns is None else piece.partition_columns


def _from_file(plan: ReadPlan, key: _Key) -> Iterator[StructField]:
    """The columns of a plan that files hold, as they are looked up in them."""
    for field in plan.schema:
        if field.name not in key.partition_columns:
            yield field
    for field in plan.extra:
        if field.name not in key.constants:
            yield replace(field, metadata={PHYSICAL_NAME: field.name})


def _constants(plan: ReadPlan, piece: FileSlice, timezone: str) -> Iterator[pa.Array | None]:
    """For the fields of `schema` and `extra` the value where it is the same for the whole file."""
    partition = dict(zip(_partition_columns(plan, piece), piece.partition_values, strict=True))
    for field in plan.schema:
        in_log = field.name in partition
        yield _partition_value(field, partition[field.name], timezone) if in_log else None
    constants = dict(piece.constants)
    for field in plan.extra:
        yield _constant(constants[field.name], field) if field.name in constants else None


def _constant(value: Any, field: StructField) -> pa.Array:
    if isinstance(value, int) and field.type in (TIMESTAMP, TIMESTAMP_NTZ):
        return array_of([value], LONG).view(arrow_type(field.type))  # microseconds
    return array_of([value], field.type)


def _partition_value(field: StructField, text: str | None, timezone: str) -> pa.Array:
    one = partition_values.parse(array_of([text], STRING), field.type, timezone)
    width = char_varchar.char_width(char_varchar.declared_char_type(field))
    return one if width is None else char_varchar.pad(width)(one)
