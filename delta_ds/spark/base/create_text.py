"""CREATE TABLE as text of Spark SQL: columns with their types, defaults, generated values and comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, UserDefinedType

from delta_ds.kernel.format.schema import types as kernel
from delta_ds.kernel.format.schema.char_varchar import declared_type
from delta_ds.kernel.format.schema.field_metadata import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_START,
    IDENTITY_STEP,
)
from delta_ds.spark.base.schema import quoted, to_spark
from delta_ds.spark.base.sql_grammar.literals import sql_literal
from delta_ds.spark.base.table_names import DELTA


def create_text(
    begin: str,
    name: str,
    schema: kernel.StructType,
    *,
    partitioning: Sequence[str] = (),
    clustering: Sequence[str] = (),
    location: str | None = None,
    comment: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> str:
    """A statement that makes a table.

    Parameters
    ----------
    begin
        `CREATE TABLE`, `REPLACE TABLE`, ...
    name
        As SQL has it; columns of `clustering` too, those of `partitioning` as they are.

    >>> create_text("CREATE TABLE", "t", kernel.StructType(()), clustering=["a"], properties={"k": "v"})
    "CREATE TABLE t USING delta CLUSTER BY (a) TBLPROPERTIES ('k' = 'v')"
    """
    parts = [f"{begin} {name}"]
    if schema:
        parts.append(f"({', '.join(column_texts(schema))})")
    parts.append(f"USING {DELTA}")
    if partitioning:
        parts.append(f"PARTITIONED BY ({', '.join(map(quoted, partitioning))})")
    if clustering:
        parts.append(f"CLUSTER BY ({', '.join(clustering)})")
    if location is not None:
        parts.append(f"LOCATION {sql_literal(location)}")
    if comment is not None:
        parts.append(f"COMMENT {sql_literal(comment)}")
    if properties:
        pairs = (f"{sql_literal(key)} = {sql_literal(value)}" for key, value in properties.items())
        parts.append(f"TBLPROPERTIES ({', '.join(pairs)})")
    return " ".join(parts)


def column_texts(schema: kernel.StructType) -> list[str]:
    """The columns of a new table, each as CREATE TABLE has it.

    >>> column_texts(kernel.parse_schema('{"type": "struct", "fields": [{"name": "a", "type": "long", '
    ...     '"nullable": false, "metadata": {"comment": "number"}}]}'))
    ["`a` BIGINT NOT NULL COMMENT 'number'"]
    """
    public = to_spark(schema)
    return [column_text(field, type_text(public[field.name].dataType)) for field in schema]


def column_text(field: kernel.StructField, kind: str) -> str:
    """A column of a table; `kind` is its type in SQL."""
    declared = declared_type(field)
    if declared is not None and "`" not in kind:
        # Names of fields stay as they are.
        kind = declared if "<" in declared else declared.upper()
    words = [quoted(field.name), kind]
    if not field.nullable:
        words.append("NOT NULL")
    metadata = field.metadata
    if CURRENT_DEFAULT in metadata:
        words.append(f"DEFAULT {metadata[CURRENT_DEFAULT]}")
    if GENERATION_EXPRESSION in metadata:
        words.append(f"GENERATED ALWAYS AS ({metadata[GENERATION_EXPRESSION]})")
    if IDENTITY_STEP in metadata:
        how = "BY DEFAULT" if metadata.get(IDENTITY_ALLOW_EXPLICIT_INSERT) else "ALWAYS"
        start, step = metadata[IDENTITY_START], metadata[IDENTITY_STEP]
        words.append(f"GENERATED {how} AS IDENTITY (START WITH {start} INCREMENT BY {step})")
    if metadata.get("comment") is not None:
        words.append(f"COMMENT {sql_literal(metadata['comment'])}")
    return " ".join(words)


def type_text(data_type: DataType) -> str:
    """A type in SQL, names of fields quoted.

    >>> from pyspark.sql.types import LongType
    >>> type_text(ArrayType(StructType([StructField("a b", LongType(), False)])))
    'ARRAY<STRUCT<`a b`: BIGINT NOT NULL>>'
    """
    if isinstance(data_type, ArrayType):
        return f"ARRAY<{type_text(data_type.elementType)}>"
    if isinstance(data_type, MapType):
        return f"MAP<{type_text(data_type.keyType)}, {type_text(data_type.valueType)}>"
    if isinstance(data_type, StructType):
        return f"STRUCT<{', '.join(map(_nested, data_type.fields))}>"
    if isinstance(data_type, UserDefinedType):
        return type_text(data_type.sqlType())  # SQL has no name for it; Spark writes the same
    return data_type.simpleString().upper()


def _nested(field: StructField) -> str:
    words = [f"{quoted(field.name)}: {type_text(field.dataType)}"]
    if not field.nullable:
        words.append("NOT NULL")
    if (field.metadata or {}).get("comment") is not None:
        words.append(f"COMMENT {sql_literal(field.metadata['comment'])}")
    return " ".join(words)
