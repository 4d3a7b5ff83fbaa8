"""The output columns of one file: read and converted, or the same value for all its rows.

How columns are found and converted depends on a file's schema only. Files of a table mostly share one, so it is
decided once for all of them (`Layouts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_ds.kernel.files.read import char_padding, column_conversion
from delta_ds.kernel.files.read.exists_default import repeat
from delta_ds.kernel.files.read.metadata_column import METADATA_COLUMN, RowMetadata, metadata_type
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.format.expressions.arrays import array_of
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
    import numpy as np

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
    """How the output columns of one file come about."""

    def __init__(self, layouts: Layouts, piece: FileSlice, layout: Layout) -> None:
        plan = layouts.plan
        self.layout = layout
        self._schema = layouts.schema
        # Per output column its value where the whole file has one, as an array of length one; None: from the file.
        self._constants = list(_constants(plan, piece, plan.timezone or "UTC"))
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
        arrays = [next(from_file) if one is None else repeat(one, rows) for one in self._constants]
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
    width = char_padding.char_width(char_padding.declared_char_type(field))
    return one if width is None else char_padding.pad(width)(one)
