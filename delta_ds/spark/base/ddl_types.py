"""Types and columns as users give them (DDL text or Spark's classes), converted to the kernel's."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pyspark.sql.types import DataType as SparkDataType
from pyspark.sql.types import StructField as SparkStructField
from pyspark.sql.types import StructType as SparkStructType

from delta_ds.conditions.schema import NOT_A_DATA_TYPE, NOT_ONE_DATA_TYPE, UNSUPPORTED_COLLATION
from delta_ds.kernel.format.schema.char_varchar import schema_of
from delta_ds.kernel.format.schema.field_metadata import COLLATIONS
from delta_ds.kernel.format.schema.types import StructType


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
        raise NOT_A_DATA_TYPE(data_type=data_type, problem=problem) from error
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
