"""ALTER TABLE: the changes that Spark has parsed, as changes of the table's description.

Source: Spark, `TableChange`; delta-spark, `DeltaCatalog.alterTable`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.catalog import SET_LOCATION_OF_PATH, SET_LOCATION_SCHEMA_MISMATCH
from delta_ds.conditions.columns import UNSUPPORTED_ALTER_TABLE
from delta_ds.exceptions import NotADeltaTableError
from delta_ds.kernel.format.schema.char_varchar import declared_type
from delta_ds.kernel.format.schema.field_metadata import CURRENT_DEFAULT
from delta_ds.kernel.format.schema.types import StructField, StructType
from delta_ds.kernel.transaction.alter import columns as alter_columns
from delta_ds.kernel.transaction.alter.change_column import change_columns
from delta_ds.kernel.transaction.alter.schema_change import replace_columns, replace_columns_of_empty
from delta_ds.spark.api.table import DeltaTable
from delta_ds.spark.base.schema import dotted, quoted, to_kernel
from delta_ds.spark.commands.handle import missing_at_path
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.engines.connect.connect_bridge import run
from delta_ds.spark.session.catalog.entries import Metastore, stated_path
from delta_ds.spark.session.catalog.tables import OpenTable, open_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType

_Change = Mapping[str, Any]
# Changes of columns that are there, which are one commit together.
_COLUMNS = "columns"


def alter_table(
    spark: SparkSession, table: OpenTable, changes: Sequence[_Change], columns: str | None = None
) -> None:
    """Make changes in their order; those of one kind that belong together are one commit.

    Parameters
    ----------
    columns
        All columns after changes that a pipeline of Spark makes, in JSON: they take the place of those of a table that
        it has emptied. None for changes of anybody else.

    Raises
    ------
    DeltaError
        A change is not possible; those before it were made.
    """
    target = DeltaTable.forPath(spark, table.path, table.store)
    if columns is not None and not table.snapshot.live_files().num_rows:
        run(target._handle.log, replace_columns_of_empty, _columns(columns))
        changes = [change for change in changes if "column" not in change]
    elif _replaces_columns(table, changes):
        added = [_new_column(change).field for change in changes if change["kind"] == "AddColumn"]
        run(target._handle.log, replace_columns, StructType(tuple(added)))
        return
    for kind, group in groupby(changes, key=_group):
        _alter(spark, table, target, kind, list(group))


def _columns(described: str) -> StructType:
    from pyspark.sql.types import StructType as SparkStructType

    return to_kernel(SparkStructType.fromJson(json.loads(described)).fields)


def _replaces_columns(table: OpenTable, changes: Sequence[_Change]) -> bool:
    """Whether changes are what Spark makes of REPLACE COLUMNS: all columns go, and others come."""
    if not any(change["kind"] == "AddColumn" for change in changes):
        return False
    dropped = [list(change["column"]) for change in changes if change["kind"] == "DeleteColumn"]
    return bool(dropped) and all([name] in dropped for name in table.snapshot.schema.names)


def _group(change: _Change) -> str:
    kind = str(change["kind"])
    return _COLUMNS if kind in _OF_COLUMNS else kind


def _alter(
    spark: SparkSession, table: OpenTable, target: DeltaTable, kind: str, changes: Sequence[_Change]
) -> None:
    if kind == "SetProperty":
        _set_properties(spark, table, target, {str(c["property"]): str(c["value"]) for c in changes})
    elif kind == "RemoveProperty":
        target.unsetProperties([str(c["property"]) for c in changes])
    elif kind == "AddColumn":
        _add_columns(target, changes)
    elif kind == "DeleteColumn":
        _drop_columns(target, changes)
    elif kind == "ClusterBy":
        target.clusterBy(list(changes[-1]["columns"]))
    elif kind == "RenameColumn":
        for change in changes:
            target.renameColumn(dotted(change["column"]), str(change["new"]))
    elif kind == _COLUMNS:
        _change_columns(target, changes)
    elif kind in _OF_CONSTRAINTS:
        for change in changes:
            _OF_CONSTRAINTS[kind](target, change)
    else:
        raise UNSUPPORTED_ALTER_TABLE(table=table.name, change=kind)


def _set_properties(
    spark: SparkSession, table: OpenTable, target: DeltaTable, properties: dict[str, str]
) -> None:
    location = properties.pop("location", None)
    if location is not None:
        _set_location(spark, table, location)
    if properties:
        target.setProperties(properties)


def _set_location(spark: SparkSession, table: OpenTable, location: str) -> None:
    """Let the entry name another table, which has to be of the same columns and partitioning."""
    if table.entry is None:
        raise SET_LOCATION_OF_PATH(table=table.name)
    location = Metastore(Jvm.of(spark)).qualified_location([table.entry.schema], location)
    path = stated_path(location)
    try:
        other = open_options(spark, table.name, {"path": path}).snapshot
    except NotADeltaTableError as error:
        raise missing_at_path(path, error) from None
    now = table.snapshot
    if (now.schema, now.partition_columns) != (other.schema, other.partition_columns):
        raise SET_LOCATION_SCHEMA_MISMATCH(table=table.name, location=location)
    Metastore(Jvm.of(spark)).move([table.entry.schema], table.entry.name, location)


def _add_columns(target: DeltaTable, changes: Sequence[_Change]) -> None:
    run(target._handle.log, alter_columns.place_columns, [_new_column(change) for change in changes])


def _new_column(change: _Change) -> alter_columns.NewColumn:
    metadata: dict[str, Any] = {}
    if change.get("comment") is not None:
        metadata["comment"] = change["comment"]
    if change.get("default") is not None:
        metadata[CURRENT_DEFAULT] = change["default"]
    path = list(change["column"])
    field = _field(path[-1], change["type"], bool(change["nullable"]), metadata)
    parent = dotted(path[:-1]) if len(path) > 1 else None
    return alter_columns.NewColumn(field, parent, bool(change.get("first")), _after(change))


def _field(name: str, data_type: str, nullable: bool, metadata: Mapping[str, Any]) -> StructField:
    from pyspark.sql.types import StructType as SparkStructType

    described = {
        "name": name,
        "type": json.loads(data_type),
        "nullable": nullable,
        "metadata": dict(metadata),
    }
    return to_kernel(SparkStructType.fromJson({"type": "struct", "fields": [described]}).fields).fields[0]


def _drop_columns(target: DeltaTable, changes: Sequence[_Change]) -> None:
    known = target.toDF().schema
    names = [
        dotted(change["column"])
        for change in changes
        if not change.get("if_exists") or _exists(known, change["column"])
    ]
    if names:
        target.dropColumns(names)


def _exists(schema: DataType, path: Sequence[str]) -> bool:
    from pyspark.sql.types import StructType as SparkStructType

    for part in path:
        if not isinstance(schema, SparkStructType):
            return True  # of an array or map: the kernel says what is there
        found = next((field for field in schema.fields if field.name.lower() == part.lower()), None)
        if found is None:
            return False
        schema = found.dataType
    return True


def _change_columns(target: DeltaTable, changes: Sequence[_Change]) -> None:
    together: dict[str, dict[str, Any]] = {}
    for change in changes:
        what = _OF_COLUMNS[str(change["kind"])](change)
        together.setdefault(dotted(change["column"]), {}).update(what)
    run(target._handle.log, change_columns, together)


def _type_change(change: _Change) -> dict[str, Any]:
    field = _field("c", change["type"], True, {})
    return {"data_type": field.type, "char_varchar": declared_type(field)}


def _position_change(change: _Change) -> dict[str, Any]:
    return {"first": bool(change.get("first")), "after": _after(change)}


def _after(change: _Change) -> str | None:
    return None if change.get("after") is None else quoted(str(change["after"]))


_OF_COLUMNS: Mapping[str, Callable[[_Change], dict[str, Any]]] = {
    "UpdateColumnType": _type_change,
    "UpdateColumnNullability": lambda change: {"nullable": bool(change["nullable"])},
    "UpdateColumnComment": lambda change: {"comment": change["comment"]},
    "UpdateColumnPosition": _position_change,
    "UpdateColumnDefaultValue": lambda change: {"default": change["default"] or None},
}


def _add_constraint(target: DeltaTable, change: _Change) -> None:
    if change["check"] is None:
        raise UNSUPPORTED_ALTER_TABLE(table=target._handle.where, change=f"ADD CONSTRAINT {change['ddl']}")
    target.addConstraint(str(change["name"]), str(change["check"]))


def _drop_constraint(target: DeltaTable, change: _Change) -> None:
    target.dropConstraint(str(change["name"]))


_OF_CONSTRAINTS: Mapping[str, Callable[[DeltaTable, _Change], None]] = {
    "AddConstraint": _add_constraint,
    "DropConstraint": _drop_constraint,
}
