"""CREATE, REPLACE and CREATE OR REPLACE TABLE, with rows or without: one commit, then the entry in the catalog.

Source: delta-spark, `CreateDeltaTableCommand`, `DeltaCatalog`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from delta_ds.conditions.catalog import AMBIGUOUS_PATHS_IN_CREATE_TABLE
from delta_ds.conditions.record import PARTITION_BY_EXPRESSION_NOT_ALLOWED
from delta_ds.conditions.schema import (
    ALL_PARTITION_COLUMNS,
    CLUSTERING_COLUMN_NOT_IN_NEW_TABLE,
    DUPLICATE_CLUSTER_BY,
)
from delta_ds.conditions.session import BUCKETS_NOT_ALLOWED, TABLE_NAME_ALREADY_EXISTS
from delta_ds.kernel.format.features import CLUSTERING, FEATURES
from delta_ds.kernel.format.options.parsing import is_of_store
from delta_ds.kernel.format.properties import CONSTRAINT_PREFIX, FEATURE_PREFIX, PROPERTIES
from delta_ds.kernel.format.schema.column_paths import find, parse_path, show
from delta_ds.kernel.format.schema.field_metadata import (
    EXISTS_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_START,
    IDENTITY_STEP,
    SPARK_GENERATION_EXPRESSION,
)
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.records import dataclass, replace
from delta_ds.spark.base.schema import from_spark, quoted, to_kernel
from delta_ds.spark.base.table_names import is_ours, without_path
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.session.catalog.entries import RESERVED, Metastore, check_address, stated_path
from delta_ds.spark.session.catalog.named import check_provider, named_catalog
from delta_ds.spark.session.catalog.places import (
    CREATE,
    Place,
    create_empty,
    find_entry,
    place_in_catalog,
    place_named,
    place_of,
)
from delta_ds.spark.session.catalog.tables import opened
from delta_ds.spark.session.writes.write import NewTable, as_new_table, write
from delta_ds.spark.session.writing import as_existing_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.spark.base.kinds.java_object import JavaObject

# --- cREATE TABLE ... LIKE: a table without rows with the description of another one
# Source: delta-spark, `DeltaCatalog`, `CreateTableLikeCommand`.


def create_like(spark: SparkSession, statement: JavaObject) -> None:
    """Create a table like one of ours, with its properties and constraints, or like any other or a view.

    Comment and properties of an entry come along, but for what Spark and Hive note there for themselves.

    Parameters
    ----------
    statement
        As `UnresolvedCommands.java` gives it: the names of the table and of its model, the model if it is one of ours,
        the location, properties, and whether a table that is there stays.
    """
    name, model, jtable, location, properties, if_not_exists = statement
    place = place_of(spark, _dotted(name), location, CREATE)
    if place.entry is not None or place.is_there:
        if if_not_exists:
            return
        raise TABLE_NAME_ALREADY_EXISTS(relationName=place.shown)
    if jtable is None:
        like = spark.table(_dotted(model))
        own, comment = _of_entry(spark, model)
        table = NewTable(
            mode=CREATE,
            schema=to_kernel(like.schema.fields),
            partitioning=_partitioning(spark, model),
            properties={**own, **dict(properties)},
            comment=comment,
        )
    else:
        like_ours = opened(jtable).snapshot
        metadata = like_ours.metadata
        table = NewTable(
            mode=CREATE,
            schema=metadata.schema,
            partitioning=tuple(metadata.partition_columns),
            properties={
                **_features(like_ours.protocol.supported),
                **_own(metadata.configuration),
                **dict(properties),
            },
            comment=metadata.description,
        )
    create_empty(spark, place, table)
    place.register(spark, table.comment)


def _own(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties but for those that only the table itself can have, such as the highest column id."""
    return {
        name: text for name, text in properties.items() if name not in PROPERTIES or PROPERTIES[name].settable
    }


def _features(supported: Iterable[str]) -> dict[str, str]:
    """The properties that ask for what the model supports; the copy is not clustered, and no catalog manages it."""
    copied = (feature for name in supported if (feature := FEATURES.get(name)) is not None and feature.write)
    return {
        FEATURE_PREFIX + feature.name: "supported"
        for feature in copied
        if feature is not CLUSTERING and not feature.by_catalog
    }


def _of_entry(spark: SparkSession, name: JavaObject) -> tuple[dict[str, str], str | None]:
    """Properties and comment that users gave to a table or view of the session catalog; none of a temporary view."""
    parts = [name.apply(number) for number in range(name.size())]
    entry = None if spark.catalog.getTable(_dotted(name)).isTemporary else find_entry(spark, parts)
    return ({}, None) if entry is None else Metastore(Jvm.of(spark)).description([entry.schema], entry.name)


def _partitioning(spark: SparkSession, name: JavaObject) -> tuple[str, ...]:
    columns = spark.catalog.listColumns(_dotted(name))
    return tuple(column.name for column in columns if column.isPartition)


def _dotted(parts: JavaObject) -> str:
    return ".".join(quoted(parts.apply(number)) for number in range(parts.size()))


# --- cREATE, REPLACE and CREATE OR REPLACE TABLE, with rows or without: one commit, then the entry in the catalog

_OPTION_PREFIX = "option."
# See `partitions` in `Definition.java`.
_NO_COLUMN = "\0"
_BUCKETS = re.compile(r"(sorted_)?bucket\(")


@dataclass(frozen=True)
class _Definition:
    """What `Definition.java` says; see `text` there."""

    mode: str
    catalog: str | None
    path: str | None
    namespace: list[str]
    name: str
    schema: str
    properties: dict[str, str]
    partitions: list[str]
    clustering: list[str] | None
    generated: list[tuple[str, str]]
    identities: list[tuple[str, str, str, str]]
    checks: list[tuple[str, str]]
    is_save_as_table: bool


def create_table(
    spark: SparkSession,
    described: JavaObject,
    rows: DataFrame | None,
    options: Mapping[str, str] | None = None,
) -> None:
    """Create or replace a table; nothing is left of it when that fails.

    Parameters
    ----------
    described
        A `Definition` of the JVM.
    rows
        Of ... AS SELECT; None without.
    options
        Of the writer whose rows they are.

    Raises
    ------
    DeltaError
        What was asked for is not possible; the message names the column or property.
    """
    definition = _Definition(**json.loads(str(described.text())))
    # The options of a table with rows are those of the write.
    table = _new_table(definition, stores_options=rows is None and definition.mode == CREATE)
    place = _place(spark, definition)
    by_path = place.name is None and table.mode == CREATE
    with as_existing_name(place.path) if by_path else nullcontext():
        if rows is None:
            create_empty(spark, place, table)
        else:
            _create_with_rows(definition, place, table, rows, options or {})
    place.register(spark, table.comment)


def _place(spark: SparkSession, definition: _Definition) -> Place:
    location = definition.properties.get("location")
    if definition.path is not None:
        check_address(definition.path)
        if location is not None and stated_path(location).rstrip("/") != stated_path(definition.path).rstrip(
            "/"
        ):
            raise AMBIGUOUS_PATHS_IN_CREATE_TABLE(identifier=definition.path, location=location)
        return Place(definition.path)
    if definition.catalog is not None:
        return _place_in_catalog(spark, definition, location)
    return place_named(spark, definition.namespace, definition.name, location, definition.mode)


def _place_in_catalog(spark: SparkSession, definition: _Definition, location: str | None) -> Place:
    assert definition.catalog is not None
    catalog = named_catalog(spark, definition.catalog)
    namespace, name = definition.namespace, definition.name
    provider = definition.properties.get("provider")
    check_provider(catalog, provider, provider is None or is_ours(provider), catalog.shown(namespace, name))
    place = place_in_catalog(catalog, namespace, name, location, definition.mode)
    if place.is_there and definition.mode == CREATE:
        raise TABLE_NAME_ALREADY_EXISTS(relationName=place.shown)
    return place


def _create_with_rows(
    definition: _Definition, place: Place, table: NewTable, rows: DataFrame, options: Mapping[str, str]
) -> None:
    request = as_new_table(
        rows,
        table,
        {**without_path(options), **place.store, "path": place.path},
        managed=place.managed,
        name=None if place.name is None else place.shown,
        is_save_as_table=definition.is_save_as_table,
    )
    write(request)


# --- what the JVM says


def _new_table(definition: _Definition, *, stores_options: bool = False) -> NewTable:
    """The table that a definition asks for.

    Parameters
    ----------
    stores_options
        Whether OPTIONS become properties, as delta-spark has it; never those of a store, which may be secrets.
    """
    stated = definition.properties
    properties, options = _split(stated)
    if stores_options:
        for name in [name for name in options if not is_of_store(name)]:
            properties[name] = properties[f"{_OPTION_PREFIX}{name}"] = options.pop(name)
    for name, predicate in definition.checks:
        properties[f"{CONSTRAINT_PREFIX}{name}"] = predicate
    return NewTable(
        mode=definition.mode,
        schema=_schema(definition),
        partitioning=tuple(_partition_columns(definition.partitions)),
        clustering=None if definition.clustering is None else tuple(definition.clustering),
        properties=properties,
        options=options,
        comment=stated.get("comment"),
    )


def _split(stated: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """TBLPROPERTIES and OPTIONS, which Spark hands over together."""
    options = {k[len(_OPTION_PREFIX) :]: v for k, v in stated.items() if k.startswith(_OPTION_PREFIX)}
    option_names = {name.lower() for name in options}
    properties = {
        name: text
        for name, text in stated.items()
        if name not in RESERVED and not name.startswith(_OPTION_PREFIX) and name.lower() not in option_names
    }
    return properties, {name: text for name, text in options.items() if name.lower() != "path"}


def _schema(definition: _Definition) -> StructType:
    from pyspark.sql.types import StructType as SparkStructType

    schema = to_kernel(SparkStructType.fromJson(json.loads(definition.schema)).fields)
    generated = dict(definition.generated)
    identities = {column[0]: column[1:] for column in definition.identities}
    fields = []
    for field in schema:
        # Rows from before a column had a default are those of ADD COLUMN, which has none with one.
        if EXISTS_DEFAULT in field.metadata:
            kept = {key: value for key, value in field.metadata.items() if key != EXISTS_DEFAULT}
            field = replace(field, metadata=kept)
        if field.name in generated:
            kept = {key: value for key, value in field.metadata.items() if key != SPARK_GENERATION_EXPRESSION}
            field = replace(field, metadata={**kept, GENERATION_EXPRESSION: generated[field.name]})
        if field.name in identities:
            start, step, explicit = identities[field.name]
            metadata = {
                IDENTITY_START: int(start),
                IDENTITY_STEP: int(step),
                IDENTITY_ALLOW_EXPLICIT_INSERT: explicit == "true",
            }
            field = replace(field, metadata={**field.metadata, **metadata})
        fields.append(field)
    return StructType(tuple(fields))


def _partition_columns(described: Sequence[str]) -> list[str]:
    for text in described:
        if text.startswith(_NO_COLUMN):
            what = text.removeprefix(_NO_COLUMN)
            if _BUCKETS.match(what):
                raise BUCKETS_NOT_ALLOWED(buckets=what)
            raise PARTITION_BY_EXPRESSION_NOT_ALLOWED(column=what)
    paths = [(text, parse_path(text)) for text in described]
    for text, path in paths:
        if len(path) > 1:  # of a struct, or it would be quoted
            raise PARTITION_BY_EXPRESSION_NOT_ALLOWED(column=text)
    return [path[0] for _, path in paths]


def check_layout(
    spark: SparkSession, table: str, schema: str, clustering: Sequence[str], partitions: Sequence[str]
) -> None:
    """Refuse clustering columns that are not there, or are named twice, and all columns as partition columns.

    Spark's versions differ in what they say: 4.3 has no name for a column that is not there. These are the conditions
    of 4.2, which users of delta-spark know.

    Parameters
    ----------
    table
        Its name, for messages.
    schema
        Of the new table, as Spark's JSON.
    clustering, partitions
        Columns as SQL spells them.

    Raises
    ------
    SchemaError
        As above; nothing was written.
    """
    from pyspark.sql.types import StructType as SparkStructType

    columns = from_spark(SparkStructType.fromJson(json.loads(schema)))
    paths = []
    for column in clustering:
        found = find(columns, parse_path(column))
        if found is None:
            raise CLUSTERING_COLUMN_NOT_IN_NEW_TABLE(table=table, column=column, columns=columns.names)
        if found[0] in paths:
            raise DUPLICATE_CLUSTER_BY(table=table, duplicateCols=show(found[0]))
        paths.append(found[0])
    names = {name.strip("`").lower() for name in partitions}
    if names and names >= {field.name.lower() for field in columns}:
        raise ALL_PARTITION_COLUMNS(table=table, columns=columns.names)
