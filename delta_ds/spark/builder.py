"""`DeltaTableBuilder`: create and replace tables, with the methods of `delta.tables.DeltaTableBuilder`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import DataType as SparkDataType
from pyspark.sql.types import StructField as SparkStructField
from pyspark.sql.types import StructType as SparkStructType

from delta_ds.conditions.classes import CREATE_BY_NAME_NOT_ALLOWED
from delta_ds.conditions.schema import NOT_A_DATA_TYPE, NOT_ONE_DATA_TYPE, UNSUPPORTED_COLLATION
from delta_ds.conditions.session import CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION
from delta_ds.kernel.alter import create
from delta_ds.kernel.options.session_settings import default_properties
from delta_ds.kernel.schema.char_varchar import schema_of
from delta_ds.kernel.schema.types import StructField, StructType
from delta_ds.spark import settings
from delta_ds.spark.arguments import public_methods
from delta_ds.spark.connect_bridge import open_log, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds.spark.table import DeltaTable

_COLLATIONS = "__COLLATIONS"
_LONGS = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True)
class IdentityGenerator:
    """Numbers for an identity column: `start`, `start + step`, ...; gaps are possible.

    >>> IdentityGenerator(start=10, step=5)
    IdentityGenerator(start=10, step=5)
    """

    start: int = 1
    step: int = 1


@public_methods
class DeltaTableBuilder:
    """A table to be made; `execute` makes it.

    Begin with `DeltaTable.create`, `createIfNotExists`, `replace` or `createOrReplace`.
    """

    def __init__(self, spark: SparkSession, mode: str = create.CREATE) -> None:
        self._spark = spark
        self._mode = mode
        self._location: str | None = None
        self._comment: str | None = None
        self._fields: list[StructField] = []
        self._partitioning: tuple[str, ...] = ()
        self._clustering: tuple[str, ...] = ()
        self._properties: dict[str, str] = {}
        self._options: dict[str, str] = {}

    def tableName(self, identifier: str) -> DeltaTableBuilder:
        """Refused: a table of this package is known by its path.

        Raises
        ------
        UnsupportedOperationError
            Always.
        """
        raise CREATE_BY_NAME_NOT_ALLOWED(identifier=identifier)

    def location(self, location: str) -> DeltaTableBuilder:
        """Where the table shall be: a local path or URL."""
        self._location = _text("Location", location)
        return self

    def option(self, key: str, value: str) -> DeltaTableBuilder:
        """A setting of the filesystem: Hadoop's `fs.*`, or `storage.*`. Not in delta-spark."""
        self._options[_text("Option", key)] = value
        return self

    def comment(self, comment: str) -> DeltaTableBuilder:
        """The description of the table."""
        self._comment = _text("Table comment", comment)
        return self

    def addColumn(
        self,
        colName: str,
        dataType: str | SparkDataType,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
        default: str | None = None,
    ) -> DeltaTableBuilder:
        """Add a column.

        Parameters
        ----------
        colName
            As it is, without backticks.
        dataType
            A Spark type, or its DDL text.
        nullable
            Whether rows may lack a value.
        generatedAlwaysAs
            SQL text that computes the column from others, or an `IdentityGenerator`.
        generatedByDefaultAs
            An `IdentityGenerator` for rows that do not bring a value.
        comment
            About the column.
        default
            SQL text of a constant for rows that lack the column. Not in delta-spark's builder. The table needs
            the property `delta.feature.allowColumnDefaults` = `supported`.

        Raises
        ------
        TypeError, ValueError
            An argument of the wrong type; generated in two ways; a step of 0.
        """
        name = _text("Column name", colName)
        if not isinstance(nullable, bool):
            raise TypeError(f"Column nullable must be bool, not {nullable!r}")
        metadata: dict[str, Any] = {}
        if comment is not None:
            metadata["comment"] = _text("Column comment", comment)
        metadata |= _generation(generatedAlwaysAs, generatedByDefaultAs)
        if default is not None:
            metadata["CURRENT_DEFAULT"] = _text("Column default", default)
        (field,) = to_kernel([SparkStructField(name, spark_type(dataType), nullable)])
        self._fields.append(replace(field, metadata={**metadata, **field.metadata}))
        return self

    def addColumns(self, cols: SparkStructType | Sequence[SparkStructField]) -> DeltaTableBuilder:
        """Add the columns of a schema."""
        fields = cols.fields if isinstance(cols, SparkStructType) else cols
        if not isinstance(fields, (list, tuple)) or not all(isinstance(f, SparkStructField) for f in fields):
            raise TypeError(f"Schema must be StructType or a list of StructField, not {cols!r}")
        self._fields.extend(to_kernel(fields))
        return self

    def partitionedBy(self, *cols: str | Sequence[str]) -> DeltaTableBuilder:
        """The columns that split the table into folders."""
        self._partitioning = _names("Partitioning", cols)
        return self

    def clusterBy(self, *cols: str | Sequence[str]) -> DeltaTableBuilder:
        """The columns by which rows are arranged; fields of structs as `s.a`."""
        self._clustering = _names("Clustering", cols)
        return self

    def property(self, key: str, value: str) -> DeltaTableBuilder:
        """A table property."""
        self._properties[_text("Key of property", key)] = _text("Value of property", value)
        return self

    def execute(self) -> DeltaTable:
        """Make the table.

        Returns
        -------
        DeltaTable
            The new table, or the one that was there already (`createIfNotExists`).

        Raises
        ------
        TableExistsError
            There is a table already (`create`).
        NotADeltaTableError
            There is none to be replaced (`replace`).
        DeltaError
            What was asked for is not possible; the message names the column or property.
        """
        from delta_ds.spark.commands.resolve_table import open_handle
        from delta_ds.spark.table import DeltaTable

        if self._location is None:
            raise CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION()
        run(
            open_log(self._spark, self._location, self._options),
            create.create_table,
            StructType(tuple(self._fields)),
            self._partitioning,
            self._properties,
            mode=self._mode,
            description=self._comment,
            cluster_by=self._clustering,
            defaults=default_properties(settings.given(self._spark)),
        )
        return DeltaTable(open_handle(self._spark, self._location, self._options))


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
    collated = _collated(schema)
    if collated is not None:
        raise UNSUPPORTED_COLLATION(column=collated)
    return schema_of(schema)


def _collated(node: Any, name: str = "") -> str | None:
    """The first field whose values are compared by other rules than their bytes."""
    if isinstance(node, str):
        return name if node.startswith("string collate") else None
    if not isinstance(node, dict):
        return None
    if _COLLATIONS in (node.get("metadata") or {}):
        return str(node["name"])
    parts = [*node.get("fields", ())]
    parts += [node[key] for key in ("type", "elementType", "keyType", "valueType") if key in node]
    for part in parts:
        inner = part.get("name", name) if isinstance(part, dict) else node.get("name", name)
        found = _collated(part, inner)
        if found is not None:
            return found
    return None


def _generation(
    always: str | IdentityGenerator | None, by_default: IdentityGenerator | None
) -> dict[str, Any]:
    if always is not None and by_default is not None:
        raise ValueError("generatedByDefaultAs and generatedAlwaysAs cannot both be set.")
    if isinstance(always, str):
        return {"delta.generationExpression": always}
    generator = always if always is not None else by_default
    if generator is None:
        return {}
    if not isinstance(generator, IdentityGenerator):
        raise TypeError(f"a column is generated by SQL text or an IdentityGenerator, not {generator!r}")
    if generator.step == 0:
        raise ValueError("Column identity generation requires step to be non-zero.")
    if generator.start not in _LONGS or generator.step not in _LONGS:
        raise ValueError(
            f"start and step of an identity column are whole numbers of 64 bits, not {generator}"
        )
    return {
        "delta.identity.start": generator.start,
        "delta.identity.step": generator.step,
        "delta.identity.allowExplicitInsert": by_default is not None,
    }


def _names(what: str, cols: Sequence[str | Sequence[str]]) -> tuple[str, ...]:
    flat = cols[0] if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else cols
    return tuple(_text(f"{what} column", name) for name in flat)


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be str, not {value!r} of type {type(value).__name__}")
    return value
