"""Convert between Delta, Spark and Arrow schemas; what users give, DDL or classes of Spark, to those of the kernel."""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import DataType as SparkDataType
from pyspark.sql.types import StructField as SparkStructField
from pyspark.sql.types import StructType as SparkStructType
from pyspark.sql.types import UserDefinedType as SparkUserDefinedType

from delta_ds.conditions.data import NOT_NULL_CONSTRAINT_VIOLATED_BY_SOME_FILE
from delta_ds.conditions.schema import (
    DUPLICATE_COLUMNS_CHOSEN,
    FAILED_TO_MERGE_GIVEN_SCHEMA,
    NOT_A_DATA_TYPE,
    NOT_ONE_DATA_TYPE,
    UNSUPPORTED_COLLATION,
    UNSUPPORTED_DATATYPE,
    USER_DEFINED_TYPE_STORED_OTHERWISE,
    USER_DEFINED_TYPE_WITHOUT_ITS_CLASS,
)
from delta_ds.conditions.session import CANNOT_RESOLVE_CHOSEN_COLUMN, CANNOT_RESOLVE_COLUMN
from delta_ds.kernel.format.schema.char_varchar import schema_of
from delta_ds.kernel.format.schema.field_metadata import (
    COLLATIONS,
    COLUMN_MAPPING_PREFIX,
    GENERATION_EXPRESSION,
    IDENTITY_PREFIX,
    TYPE_CHANGES,
)
from delta_ds.kernel.format.schema.types import (
    LONG,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    UserDefinedType,
    parse_schema,
    schema_to_json,
    without_metadata,
)
from delta_ds.records import replace

if TYPE_CHECKING:
    import pyarrow as pa


# How a table keeps its columns, which is no business of the people who query it.
# Source: delta-spark, DeltaTableUtils.removeInternalDeltaMetadata and removeInternalWriterMetadata.
_INTERNAL_METADATA = (
    COLUMN_MAPPING_PREFIX,
    IDENTITY_PREFIX,
    GENERATION_EXPRESSION,
    TYPE_CHANGES,
)


def to_spark(schema: StructType) -> SparkStructType:
    """The Spark schema of a Delta schema, as users of delta-spark see it.

    Nullability, comments, defaults, char/varchar lengths and collations stay; what only Delta needs to know
    goes.

    Raises
    ------
    UnsupportedFeatureError
        The class of a user-defined type cannot be imported here, or stores its values as another type.
    """
    return as_it_is_to_spark(_public(schema))


def as_it_is_to_spark(schema: StructType) -> SparkStructType:
    """The Spark schema with all that the Delta schema says."""
    for field in schema:
        _check_classes(field.type, field.name)
    return SparkStructType.fromJson(json.loads(schema_to_json(schema)))


def _check_classes(kind: DataType, column: str) -> None:
    """Refuse user-defined types whose class is not there: Spark would unpickle what the table's log holds."""
    if isinstance(kind, StructType):
        for field in kind:
            _check_classes(field.type, f"{column}.{field.name}")
    elif isinstance(kind, ArrayType):
        _check_classes(kind.element, f"{column}.element")
    elif isinstance(kind, MapType):
        _check_classes(kind.key, f"{column}.key")
        _check_classes(kind.value, f"{column}.value")
    elif isinstance(kind, UserDefinedType):
        module, _, name = kind.python_class.rpartition(".")
        try:
            found = getattr(import_module(module), name, None)
        except Exception as error:  # whatever a module does while it is imported
            raise USER_DEFINED_TYPE_WITHOUT_ITS_CLASS(column=column, type=kind.python_class) from error
        if not (isinstance(found, type) and issubclass(found, SparkUserDefinedType)):
            raise USER_DEFINED_TYPE_WITHOUT_ITS_CLASS(column=column, type=kind.python_class)
        of_class = from_spark(SparkStructType([SparkStructField("v", found.sqlType())])).fields[0].type
        if without_metadata(of_class) != without_metadata(kind.stored):
            raise USER_DEFINED_TYPE_STORED_OTHERWISE(
                column=column, type=kind.python_class, stored=str(kind.stored), wanted=str(of_class)
            )


def from_spark(schema: SparkStructType) -> StructType:
    """The Delta schema of a Spark schema."""
    return parse_schema(schema.json())


def _public(schema: StructType) -> StructType:
    return StructType(tuple(public_field(f) for f in schema))


def public_field(field: StructField) -> StructField:
    """A field without what only Delta needs to know, at every level."""
    metadata = {k: v for k, v in field.metadata.items() if not k.startswith(_INTERNAL_METADATA)}
    return replace(field, type=_public_type(field.type), metadata=metadata)


def _public_type(data_type: DataType) -> DataType:
    if isinstance(data_type, StructType):
        return _public(data_type)
    if isinstance(data_type, ArrayType):
        return replace(data_type, element=_public_type(data_type.element))
    if isinstance(data_type, MapType):
        return replace(data_type, key=_public_type(data_type.key), value=_public_type(data_type.value))
    return data_type


def quoted(name: str) -> str:
    """A column's name as `col` takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def dotted(parts: Sequence[str]) -> str:
    """A name of several parts as SQL has it.

    >>> dotted(["db", "a b"])
    '`db`.`a b`'
    """
    return ".".join(map(quoted, parts))


def quoted_list(names: Sequence[str]) -> str:
    """Column names as an option's text, whatever they hold.

    >>> quoted_list(["a", "b, c"])
    '`a`, `b, c`'
    """
    return ", ".join(map(quoted, names))


def to_arrow(schema: SparkStructType) -> pa.Schema:
    """The one Arrow schema that Spark accepts for a Spark schema.

    `to_arrow_schema` takes the time zone since Spark 4.2; before, timestamps were always UTC.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    if "timezone" in inspect.signature(to_arrow_schema).parameters:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)


def find_columns(asked: SparkStructType, available: StructType, table: str) -> list[str]:
    """The table's names of the columns that a user-given schema asks for, in its order.

    Names match ignoring case. Types must be the table's; nullability and metadata may differ.

    Parameters
    ----------
    asked
        What the user gave to `.schema(...)`.
    available
        What can be read: the table's schema, or that of its change feed.
    table
        For messages.

    Raises
    ------
    SchemaError
        A column does not exist, or has another type in the table.
    """
    names = []
    for field in from_spark(asked):
        column = available.find(field.name)
        if column is None:
            raise CANNOT_RESOLVE_COLUMN(column=field.name, table=table, hint=_suggest(field.name, available))
        if _shape(column.type) != _shape(field.type):
            raise FAILED_TO_MERGE_GIVEN_SCHEMA(
                column=field.name, type=column.type, table=table, given=field.type
            )
        names.append(column.name)
    return names


def select_columns(names: list[str], available: StructType, table: str) -> StructType:
    """The part of a schema with some top-level columns, in the order of their names (any case).

    Raises
    ------
    SchemaError
        A name does not exist, or is given twice.
    """
    fields = []
    for name in names:
        field = available.find(name)
        if field is None:
            raise CANNOT_RESOLVE_CHOSEN_COLUMN(column=name, table=table, hint=_suggest(name, available))
        if field in fields:
            raise DUPLICATE_COLUMNS_CHOSEN(column=name, table=table)
        fields.append(field)
    return StructType(tuple(fields))


def _suggest(name: str, available: StructType) -> str:
    by_lower = {column.lower(): column for column in available.names}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else f"; it has {', '.join(available.names)}"


def _shape(data_type: DataType) -> Any:
    """A type without nullability, metadata and the case of field names."""
    if isinstance(data_type, StructType):
        return tuple((f.name.lower(), _shape(f.type)) for f in data_type)
    if isinstance(data_type, ArrayType):
        return "array", _shape(data_type.element)
    if isinstance(data_type, MapType):
        return "map", _shape(data_type.key), _shape(data_type.value)
    return data_type


def conform(batch: pa.RecordBatch, schema: pa.Schema, table: str) -> pa.RecordBatch:
    """The same columns, by position, under exactly the schema that Spark asked for.

    Raises
    ------
    DataFileError
        A column that may not be null holds nulls: Spark would answer wrongly or fail without a name.
    """
    import pyarrow as pa

    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        if not field.nullable and column.null_count:
            raise NOT_NULL_CONSTRAINT_VIOLATED_BY_SOME_FILE(
                column=field.name, table=table, count=column.null_count
            )
        columns.append(column if column.type == field.type else _retype(column, field.type))
    if not columns:
        return batch
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _retype(column: pa.Array, target: pa.DataType) -> pa.Array:
    """The same values under a type that differs in nested names and nullability only."""
    import pyarrow as pa

    if pa.types.is_struct(target):
        children = [_retype(column.field(i), target.field(i).type) for i in range(target.num_fields)]
        return pa.StructArray.from_arrays(
            children, fields=list(target), mask=column.is_null() if column.null_count else None
        )
    if pa.types.is_map(target) or pa.types.is_list(target):
        is_map = pa.types.is_map(target)
        entry = pa.struct([target.key_field, target.item_field]) if is_map else target.value_type
        children = [_retype(column.values, entry)]
        return pa.Array.from_buffers(
            target, len(column), column.buffers()[:2], column.null_count, column.offset, children
        )
    return column if column.type == target else column.cast(target)


METADATA = "_metadata"
_FIELDS = (
    StructField("file_path", STRING, False),
    StructField("file_name", STRING, False),
    StructField("file_size", LONG, False),
    StructField("row_index", LONG, False),
    StructField("row_id", LONG),
    StructField("row_commit_version", LONG),
)


def metadata_field(names: Sequence[str]) -> tuple[StructField, ...]:
    """The column `_metadata` with these fields; nothing for no names."""
    if not names:
        return ()
    known = {field.name: field for field in _FIELDS}
    return (StructField(METADATA, StructType(tuple(known[name] for name in names)), False),)


def spark_type(data_type: str | SparkDataType) -> SparkDataType:
    """The Spark type of a DDL text such as `decimal(10,2)` or `array<string>`; types stay as they are.

    Raises
    ------
    SchemaError
        The text is no type.
    """
    if isinstance(data_type, SparkDataType):
        return data_type
    if not isinstance(data_type, str):
        raise TypeError(f"Column data type must be str or DataType, not {data_type!r}")
    from pyspark.errors import PySparkException

    try:
        parsed = SparkDataType.fromDDL(f"c {data_type}")
    except PySparkException as error:
        problem = str(error).strip().splitlines()[0]
        unknown = error.getCondition() == UNSUPPORTED_DATATYPE.name
        wrong = UNSUPPORTED_DATATYPE if unknown else NOT_A_DATA_TYPE
        raise wrong(data_type=data_type, problem=problem) from error
    fields = parsed.fields if isinstance(parsed, SparkStructType) else []
    # More than a type: further columns, NOT NULL, or a comment.
    if len(fields) != 1 or fields != [SparkStructField("c", fields[0].dataType)]:
        raise NOT_ONE_DATA_TYPE(data_type=data_type)
    return fields[0].dataType


def to_kernel(fields: Iterable[SparkStructField]) -> StructType:
    """The Delta schema of Spark fields; char and varchar become strings that remember their length.

    Raises
    ------
    UnsupportedFeatureError
        A type that tables cannot have, or a collation.
    """
    schema: dict[str, Any] = json.loads(SparkStructType(list(fields)).json())
    collated = _find_collated(schema)
    if collated is not None:
        raise UNSUPPORTED_COLLATION(column=collated)
    return schema_of(schema)


def _find_collated(node: Any, name: str = "") -> str | None:
    """The first field whose values are compared by other rules than their bytes."""
    if isinstance(node, str):
        return name if node.startswith("string collate") else None
    if not isinstance(node, dict):
        return None
    if COLLATIONS in (node.get("metadata") or {}):
        return str(node["name"])
    parts = [*node.get("fields", ())]
    parts += [node[key] for key in ("type", "elementType", "keyType", "valueType") if key in node]
    for part in parts:
        inner = part.get("name", name) if isinstance(part, dict) else node.get("name", name)
        found = _find_collated(part, inner)
        if found is not None:
            return found
    return None
