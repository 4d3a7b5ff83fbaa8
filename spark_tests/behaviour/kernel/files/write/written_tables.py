"""Tables whose data files are written by `FileWriter`, and random rows for them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.kernel.files.write.writer import FileWriter, WriteSpec
from delta_ds.kernel.format.properties import COLUMN_MAPPING_MODE
from delta_ds.kernel.format.schema.field_metadata import FIELD_ID, PHYSICAL_NAME
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    arrow_schema,
)
from delta_ds.kernel.storage.open import open_storage
from delta_ds.testing import TableBuilder

UTC = dt.timezone.utc
PRIMITIVES: tuple[DataType, ...] = (
    BOOLEAN, BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ,
    DecimalType(5, 2), DecimalType(18, 0), DecimalType(38, 10),
)  # fmt: skip


def struct(*fields: StructField, **types: DataType) -> StructType:
    return StructType((*fields, *(StructField(name, kind) for name, kind in types.items())))


def batch_of(schema: StructType, rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    """The rows as `FileWriter` takes them; missing columns are null."""
    return pa.RecordBatch.from_pylist(list(rows), schema=arrow_schema(schema))


def plan_of(
    folder: Path, schema: StructType, partition_columns: Sequence[str] = (), **plan: Any
) -> WriteSpec:
    return WriteSpec(str(folder), 0, schema, tuple(partition_columns), **plan)


def write(
    folder: Path, schema: StructType, *batches: Sequence[dict[str, Any]], **plan: Any
) -> list[dict[str, Any]]:
    """Write rows by one `FileWriter` and return its `add` bodies."""
    writer = FileWriter(open_storage(str(folder)), plan_of(folder, schema, **plan))
    for rows in batches:
        writer.write(batch_of(schema, rows))
    return writer.close()


def commit(folder: Path, plan: WriteSpec, adds: Sequence[dict[str, Any]]) -> DeltaLog:
    """A table with the schema of the plan that has the files."""
    table = TableBuilder(folder)
    properties = dict(plan.properties)
    if plan.mapping_mode != "none":
        properties[COLUMN_MAPPING_MODE.name] = plan.mapping_mode
    features = ["columnMapping", "timestampNtz", "deletionVectors", "variantType"]
    table.create(
        plan.schema, partition_columns=plan.partition_columns, properties=properties, reader_features=features
    )
    table.commit(*({"add": add} for add in adds))
    return DeltaLog(str(folder))


def round_trip(folder: Path, batch: pa.RecordBatch, plan: WriteSpec) -> pa.Table:
    """Write the rows of a batch and read them back as a table of the plan."""
    writer = FileWriter(open_storage(str(folder)), plan)
    writer.write(batch)
    return commit(folder, plan, writer.close()).snapshot().scan().to_arrow()


def mapped(schema: StructType) -> StructType:
    """The schema with ids and physical names that are nothing like the logical ones."""
    counter = iter(range(1, 10_000))

    def of(kind: DataType) -> DataType:
        if isinstance(kind, StructType):
            return StructType(tuple(field(f) for f in kind))
        if isinstance(kind, ArrayType):
            return ArrayType(of(kind.element), kind.contains_null)
        if isinstance(kind, MapType):
            return MapType(of(kind.key), of(kind.value), kind.value_contains_null)
        return kind

    def field(f: StructField) -> StructField:
        number = next(counter)
        ids = {FIELD_ID: number, PHYSICAL_NAME: f"col-{number} x"}
        return StructField(f.name, of(f.type), f.nullable, ids)

    return StructType(tuple(field(f) for f in schema))


_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "byte": st.integers(-128, 127),
    "short": st.integers(-(1 << 15), (1 << 15) - 1),
    "integer": st.integers(-(1 << 31), (1 << 31) - 1),
    "long": st.integers(-(1 << 63), (1 << 63) - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "string": st.text(st.characters(codec="utf-8"), max_size=80),
    "binary": st.binary(max_size=10),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(UTC)),
    "timestamp_ntz": st.datetimes(),
}


def values(kind: DataType) -> st.SearchStrategy[Any]:
    """Values of a type, null among them."""
    return st.one_of(st.none(), present(kind))


def present(kind: DataType) -> st.SearchStrategy[Any]:
    """Values of a type that are not null; what is inside them may be."""
    if isinstance(kind, StructType):
        return st.fixed_dictionaries({f.name: values(f.type) for f in kind})
    if isinstance(kind, ArrayType):
        return st.lists(values(kind.element), max_size=3)
    if isinstance(kind, MapType):
        pairs = st.tuples(present(kind.key), values(kind.value))
        return st.lists(pairs, max_size=3, unique_by=lambda pair: repr(pair[0]))
    if isinstance(kind, DecimalType):
        limit = 10**kind.precision - 1
        return st.integers(-limit, limit).map(lambda n: Decimal(n).scaleb(-kind.scale, _CONTEXT))
    return _VALUES[str(kind)]


_CONTEXT = Context(prec=50)


def types() -> st.SearchStrategy[DataType]:
    """Types nested at will."""
    names = ("a", "b", "c d")

    def nested(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
        fields = st.lists(inner, min_size=1, max_size=3)
        structs = fields.map(lambda kinds: struct(**dict(zip(names, kinds, strict=False))))
        return st.one_of(
            structs, inner.map(ArrayType), st.sampled_from(PRIMITIVES).flatmap(
                lambda key: inner.map(lambda value: MapType(key, value))
            ),
        )  # fmt: skip

    return st.recursive(st.sampled_from(PRIMITIVES), nested, max_leaves=4)


@st.composite
def tables(draw: st.DrawFn, kinds: st.SearchStrategy[DataType]) -> tuple[StructType, list[dict[str, Any]]]:
    """A schema of a few columns and some rows of it."""
    schema = struct(**{f"c{i}": kind for i, kind in enumerate(draw(st.lists(kinds, min_size=1, max_size=3)))})
    rows = draw(st.lists(st.fixed_dictionaries({f.name: values(f.type) for f in schema}), max_size=8))
    return schema, rows
