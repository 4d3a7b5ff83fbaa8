"""What SQL shows of a table: SHOW CREATE TABLE, SHOW PARTITIONS, and the change feed by `table_changes`.

SHOW CREATE TABLE answers a statement that makes a table like this one and can be run. Change feeds are asked for by
`table_changes('name', from[, to[, net, keys]])` and `table_changes_by_path('/path', ...)`.

Source: delta-spark, `ShowDeltaTablePartitionsCommand`; it refuses SHOW CREATE TABLE; `DeltaTableValueFunctions`,
`CDCNameBased`, `CDCPathBased`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql.types import StructType as SparkStructType

from delta_ds.conditions.catalog import (
    SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN,
    SHOW_PARTITION_IN_NON_PARTITIONED_TABLE,
    TABLE_CHANGES_ARGUMENTS,
    TABLE_CHANGES_BOUNDARY_TYPE,
    TABLE_CHANGES_NULL_BOUNDARY,
    TABLE_CHANGES_OF_OTHERS,
    TRUNCATE_TABLE_PARTITION,
)
from delta_ds.exceptions import NotADeltaTableError
from delta_ds.kernel.commands.dml.candidates import distinct_partitions
from delta_ds.kernel.format.features import CLUSTERING
from delta_ds.kernel.format.properties import FEATURE_PREFIX, PROPERTIES
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.transaction.alter.protocol import minimal_protocol, without_catalog
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.base.create_text import column_text
from delta_ds.spark.base.kinds.frames import frame, frame_of
from delta_ds.spark.base.schema import dotted, quoted, to_spark
from delta_ds.spark.base.session_conf import time_zone
from delta_ds.spark.base.sql_grammar.literals import sql_literal
from delta_ds.spark.commands.handle import missing_at_path
from delta_ds.spark.engines.classic.function import Constant, constant_argument
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.session.catalog.places import find_table, name_parts
from delta_ds.spark.session.catalog.tables import OpenTable, opened, table_held
from delta_ds.spark.session.reading import read

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from delta_ds.spark.base.kinds.java_object import JavaObject

SHOW_CREATE = "SHOW CREATE TABLE"
SHOW_CREATE_COLUMNS = "createtab_stmt string"
_OPTION_PREFIX = "option."
_ANSWER = {"createtab_stmt": "string"}
# As Spark 4.3 shows every plain string.
_DEFAULT_COLLATION = " COLLATE UTF8_BINARY"


BY_NAME, BY_PATH = "table_changes", "table_changes_by_path"
_VERSIONS = ("byte", "short", "integer", "long")
_MOMENTS = ("string", "timestamp", "timestamp_ntz", "date")


def show_create(spark: SparkSession, statement: JavaObject) -> DataFrame:
    """The statement, in one row."""
    _, jtable, _ = statement
    return frame(spark, [{"createtab_stmt": create_statement(Jvm.of(spark), opened(jtable))}], _ANSWER)


def create_statement(jvm: Jvm, table: OpenTable) -> str:
    """The statement that makes a table like one that is there."""
    snapshot = table.snapshot
    metadata = snapshot.metadata
    kinds = _types(jvm, snapshot.schema)
    columns = ",\n".join(
        f"  {column_text(field, kind)}" for field, kind in zip(snapshot.schema, kinds, strict=True)
    )
    lines = [f"CREATE TABLE {_name(table)} (\n{columns})", "USING delta"]
    if metadata.partition_columns:
        lines.append(f"PARTITIONED BY ({', '.join(map(quoted, metadata.partition_columns))})")
    if snapshot.clustering_columns:
        paths = [dotted(path) for path in snapshot.clustering_columns]
        lines.append(f"CLUSTER BY ({', '.join(paths)})")
    if metadata.description is not None:
        lines.append(f"COMMENT {sql_literal(metadata.description)}")
    if table.entry is not None and not table.entry.managed:
        lines.append(f"LOCATION {sql_literal(table.entry.location)}")
    properties = _properties(table)
    if properties:
        pairs = ",\n".join(
            f"  {sql_literal(name)} = {sql_literal(text)}" for name, text in properties.items()
        )
        lines.append(f"TBLPROPERTIES (\n{pairs})")
    return "\n".join(lines) + "\n"


def _name(table: OpenTable) -> str:
    if table.catalog_name is not None:
        return table.catalog_name
    if table.entry is None:
        return f"delta.{quoted(table.path)}"
    return ".".join(map(quoted, ("spark_catalog", table.entry.schema, table.entry.name)))


def _properties(table: OpenTable) -> dict[str, str]:
    """Those that can be given to a new table, and the features that no property stands for."""
    snapshot = table.snapshot
    configuration = snapshot.metadata.configuration
    found = {
        name: text
        for name, text in configuration.items()
        if (name not in PROPERTIES or PROPERTIES[name].settable) and not _is_option(name, configuration)
    }
    implied = minimal_protocol(snapshot.metadata, set(), None, None).supported | {CLUSTERING.name}
    found |= {
        FEATURE_PREFIX + name: "supported" for name in without_catalog(snapshot.protocol).supported - implied
    }
    return dict(sorted(found.items()))


def _is_option(name: str, configuration: Mapping[str, str]) -> bool:
    """Whether a property is one of the OPTIONS of CREATE TABLE, which may be secrets and are shown nowhere."""
    return name.startswith(_OPTION_PREFIX) or _OPTION_PREFIX + name in configuration


def _types(jvm: Jvm, schema: StructType) -> list[str]:
    """The types of columns as SQL has them, names of fields quoted."""
    fields = jvm.struct(to_spark(schema)).fields()
    return [str(field.dataType().sql()).replace(_DEFAULT_COLLATION, "") for field in fields]


SHOW_PARTITIONS, TRUNCATE_PARTITION = "SHOW PARTITIONS", "TRUNCATE PARTITION"


def refuse_truncate(table: OpenTable) -> NoReturn:
    """Say what to write in the place of TRUNCATE TABLE ... PARTITION."""
    raise TRUNCATE_TABLE_PARTITION(table=table.name)


def partition_columns(table: OpenTable) -> SparkStructType:
    """The columns of the answer.

    Raises
    ------
    UnsupportedOperationError
        The table has no partitions.
    """
    names = table.snapshot.metadata.partition_columns
    if not names:
        raise SHOW_PARTITION_IN_NON_PARTITIONED_TABLE(table=table.name)
    columns = {field.name: field for field in schemas.to_spark(table.snapshot.schema).fields}
    return SparkStructType([columns[name] for name in names])


def show_partitions(spark: SparkSession, statement: JavaObject) -> DataFrame:
    """The partitions, those that the statement names or all."""
    plan, jtable, _ = statement
    table = opened(jtable)
    columns = partition_columns(table)
    found, _ = distinct_partitions(table.snapshot, time_zone(spark))
    # Without rows, Spark could not know the types of an empty table.
    rows = frame_of(spark, found.to_pylist(), columns) if found.num_rows else frame_of(spark, [], columns)
    rows = (
        rows.select(*(quoted(name) for name in columns.names)).distinct().orderBy(*map(quoted, columns.names))
    )
    if plan.pattern().isDefined():
        for name, text in _wanted(spark, table, plan.pattern().get()).items():
            column = rows[quoted(name)]
            kind = rows.schema[name].dataType
            rows = rows.where(column.isNull() if text is None else column == _literal(text, kind))
    return rows


def _wanted(spark: SparkSession, table: OpenTable, spec: JavaObject) -> dict[str, str | None]:
    jvm = Jvm.of(spark)
    given = dict(jvm.jvm.scala.jdk.javaapi.CollectionConverters.asJava(spec.spec()))
    known = {name.lower(): name for name in table.snapshot.metadata.partition_columns}
    unknown = [name for name in given if name.lower() not in known]
    if unknown:
        raise SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN(columns=unknown, table=table.name)
    return {known[name.lower()]: text for name, text in given.items()}


def _literal(text: str, kind: DataType) -> Column:
    from pyspark.sql import functions as F

    return F.lit(text).cast(kind)


def changes_plan(spark: SparkSession, name: str, expressions: JavaObject) -> JavaObject:
    """The plan that a call of one of the functions stands for.

    Parameters
    ----------
    name
        Of the function, in any case.
    expressions
        Its arguments, a `Seq[Expression]`.
    """
    jvm, function = Jvm.of(spark), name.lower()
    arguments = [
        constant_argument(jvm, function, expressions.apply(number)) for number in range(expressions.size())
    ]
    return jvm.logical_plan(_changes(spark, function, arguments))


def feed_of_name(spark: SparkSession, table: str, options: str) -> JavaObject:
    """The plan of a read by name whose options ask for the change feed.

    Parameters
    ----------
    table
        The id by which the table is held.
    options
        Of the read, in JSON.
    """
    return Jvm.of(spark).logical_plan(read(spark, {**table_held(table).options, **json.loads(options)}))


def _changes(spark: SparkSession, function: str, arguments: Sequence[Constant]) -> DataFrame:
    needed = [*arguments[:1], *arguments[3:]]
    if len(arguments) not in (2, 3, 5) or any(one.text is None for one in needed):
        raise TABLE_CHANGES_ARGUMENTS(function=function, given=len(arguments))
    table = str(arguments[0].text)
    options = {"path": table} if function == BY_PATH else _options_of(spark, function, table)
    options["readChangeFeed"] = "true"
    options |= _boundary(function, "starting", arguments[1])
    # Without an end, net changes are of all up to the latest version.
    if len(arguments) == 3 or (len(arguments) == 5 and arguments[2].text is not None):
        options |= _boundary(function, "ending", arguments[2])
    options |= dict(zip(("net", "keys"), (str(one.text) for one in arguments[3:]), strict=False))
    try:
        return read(spark, options)
    except NotADeltaTableError as error:
        raise missing_at_path(table, error) from None


def _boundary(function: str, which: str, bound: Constant) -> dict[str, str]:
    """The option for the first or last version, or timestamp: the type tells, as the text of a number may be a year."""
    if bound.text is None:
        raise TABLE_CHANGES_NULL_BOUNDARY(function=function)
    if bound.type in _VERSIONS:
        return {f"{which}Version": bound.text}
    if bound.type.partition(" ")[0] not in _MOMENTS:
        raise TABLE_CHANGES_BOUNDARY_TYPE(
            function=function,
            causedBy=f"{which} option",
            expType=bound.type,
            supportedTypes=[*_VERSIONS, *_MOMENTS],
        )
    return {f"{which}Timestamp": bound.text}


def _options_of(spark: SparkSession, function: str, name: str) -> dict[str, str]:
    found: Any = find_table(spark, name_parts(spark, name))
    if found is None:
        spark.table(name)  # in Spark's words, where there is nothing of that name
        raise TABLE_CHANGES_OF_OTHERS(function=function, table=name)
    return {**found.store, "path": str(found.path)}
