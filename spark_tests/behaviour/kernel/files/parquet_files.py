"""Small Parquet files and scans of them, for the tests of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_ds.kernel.files.read.file_columns import output_schema
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.format.schema.types import StructField, StructType
from delta_ds.kernel.storage.open import open_storage


def write(folder: Path, table: pa.Table, name: str = "a.parquet", **options: Any) -> FileSlice:
    """Write a data file of the table in `folder`; the slice of all of it."""
    options.setdefault("store_schema", False)
    pq.write_table(table, folder / name, **options)
    return FileSlice(name, (folder / name).stat().st_size)


def schema_of(**types: Any) -> StructType:
    """A schema of columns by name: a type, or a whole field for more than that."""
    return StructType(
        tuple(t if isinstance(t, StructField) else StructField(name, t) for name, t in types.items())
    )


def scan(
    folder: Path, slices: list[FileSlice], schema: StructType, batch_rows: int = 65_536, **plan: Any
) -> pa.Table:
    """All rows of the slices; every batch is checked against `output_schema` and for soundness."""
    read_plan = ReadPlan(table=str(folder), version=7, schema=schema, **plan)
    wanted = output_schema(read_plan)
    batches = []
    for batch in read_slices(open_storage(str(folder)), read_plan, slices, batch_rows):
        batch.validate(full=True)
        assert batch.schema.equals(wanted, check_metadata=True)
        assert 0 < batch.num_rows <= batch_rows
        batches.append(batch)
    return pa.Table.from_batches(batches, schema=wanted)


def rows(folder: Path, piece: FileSlice, schema: StructType, **plan: Any) -> list[dict[str, Any]]:
    """The rows of one slice as dictionaries."""
    found: list[dict[str, Any]] = scan(folder, [piece], schema, **plan).to_pylist()
    return found
