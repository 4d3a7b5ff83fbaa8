"""The source of a MERGE: its rows as Arrow data, held once, in the types in which tables have values."""

from __future__ import annotations

import pyarrow as pa

from delta_ds.kernel.files.rows.casts import Casting, compile_column
from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.format.schema.types import StructType, arrow_type
from delta_ds.kernel.transaction.write.arrow import Rows, as_arrow
from delta_ds.kernel.transaction.write.schema_enforcement import data_schema
from delta_ds.records import dataclass


@dataclass(frozen=True, slots=True)
class MergeSource:
    """The rows of a source.

    Attributes
    ----------
    schema
        Its columns.
    rows
        All of them, of `arrow_type` of the schema's types; columns are of one chunk where one can hold them.
    """

    schema: StructType
    rows: pa.Table


def read_source(rows: Rows, timezone: str) -> MergeSource:
    """Read a source to its end.

    Raises
    ------
    SchemaError
        A column has a type that no table has.
    """
    table = rows if isinstance(rows, pa.Table) else _read(rows)
    schema = data_schema(schema_from_arrow(table.schema))
    casting = Casting(timezone)
    columns = []
    for field, column in zip(schema, table.columns, strict=True):
        converter = compile_column(column.type, field, casting, field.name)
        kind = arrow_type(field.type)
        chunks = column.chunks if converter is None else [converter(chunk) for chunk in column.chunks]
        columns.append(pa.chunked_array(chunks, kind))
    return MergeSource(schema, pa.table(columns, names=schema.names).combine_chunks())


def _read(rows: Rows) -> pa.Table:
    found = as_arrow(rows)
    return pa.Table.from_batches([found]) if isinstance(found, pa.RecordBatch) else found.read_all()
