"""Delta's own statements, run by the methods of `DeltaTable`: two faces of one function each.

Source: delta-spark 4.4, `DeltaSqlParser` and the commands behind it; the columns of answers are its.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from delta_ds.conditions.catalog import (
    CLONE_UNSUPPORTED_SOURCE,
    CREATE_TABLE_SET_LOCATION,
    ENTRY_OF_NOTHING,
    EXPECT_TABLE_NOT_VIEW,
    NO_TABLE_TO_RESTORE,
    NOT_A_DELTA_TABLE_TO_REORGANIZE,
    ONLY_OPERATION,
    ONLY_OPERATION_AT_PATH,
    TABLE_ONLY_OPERATION_AT_PATH,
)
from delta_ds.conditions.record import CLONE_OVER_TABLE
from delta_ds.conditions.session import MISSING_DELTA_TABLE, UNSUPPORTED_DEEP_CLONE
from delta_ds.conditions.tables import CANNOT_REPLACE_MISSING_TABLE_AT_PATH
from delta_ds.events.commands import RETAIN_IGNORED
from delta_ds.exceptions import DeltaError, NotADeltaTableError, UnsupportedOperationError
from delta_ds.kernel.commands import clone as clones
from delta_ds.kernel.commands import restore as restores
from delta_ds.kernel.commands.clone import RESULT_COLUMNS
from delta_ds.kernel.commands.optimize.command import begin_upgrade, finish_upgrade
from delta_ds.kernel.commands.optimize.request import FULL, UPGRADE
from delta_ds.kernel.format.operations import OPTIMIZE, REORG, RESTORE
from delta_ds.kernel.format.options.settings import RETENTION_IGNORED
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.records import replace
from delta_ds.spark.api.table import DeltaTable
from delta_ds.spark.base.kinds.frames import frame, nothing
from delta_ds.spark.base.kinds.session_kind import knows_names, server_holds_tables
from delta_ds.spark.base.schema import dotted, to_kernel
from delta_ds.spark.base.session_conf import is_set
from delta_ds.spark.base.sql_grammar import statements as sql
from delta_ds.spark.base.sql_grammar.statements import Clone
from delta_ds.spark.base.table_names import format_and_path, path_of_parts, unknown_to_catalogs
from delta_ds.spark.commands import describe, optimize
from delta_ds.spark.commands.clone import clone_parquet, clone_table
from delta_ds.spark.commands.handle import Handle, open_name
from delta_ds.spark.engines.connect import log_calls
from delta_ds.spark.engines.connect.connect_bridge import ask, run
from delta_ds.spark.session.catalog import places as names
from delta_ds.spark.session.catalog.places import CREATE, REPLACE, Place, foreign_entry, is_view, place_of
from delta_ds.spark.session.writes.request import find_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# --- cREATE TABLE ... SHALLOW CLONE and DEEP CLONE, into a path or a name of the catalog

_PARQUET = "parquet"


def clone(spark: SparkSession, said: Clone) -> DataFrame:
    """Make a clone, and its entry in the catalog; arguments and errors as for `DeltaTable.clone`."""
    target = _target(spark, said)
    if target.name is None and (said.if_not_exists or said.mode == REPLACE):
        is_there = find_table(spark, {"path": target.path}) is not None
        if is_there and said.if_not_exists:
            return nothing(spark)
        if not is_there and said.mode == REPLACE:
            raise CANNOT_REPLACE_MISSING_TABLE_AT_PATH(table=target.path)
    if target.entry is not None and said.mode == CREATE:
        if said.if_not_exists:
            return nothing(spark)
        raise CLONE_OVER_TABLE(tableName=target.shown)
    how: dict[str, Any] = {"version": said.version, "timestamp": said.timestamp}
    parquet = _parquet_source(spark, said)
    if parquet is not None:
        if not said.shallow:
            raise UNSUPPORTED_DEEP_CLONE(table=dotted(said.source), target=target.path)
        path, partitions = parquet
        counts = clone_parquet(
            spark, path, partitions, target.path, said.mode != CREATE, said.properties, **how
        )
    else:
        if knows_names(spark) and is_view(spark, said.source):
            raise CLONE_UNSUPPORTED_SOURCE(name=dotted(said.source), format="view")
        source = _source(spark, dotted(said.source))
        counts = clone_table(source, target.path, said.shallow, said.mode != CREATE, said.properties, **how)
    target.register(spark)
    return frame(spark, [counts], dict.fromkeys(RESULT_COLUMNS, "long"))


def _source(spark: SparkSession, name: str) -> Handle:
    try:
        return open_name(spark, name)
    except UnsupportedOperationError:
        if knows_names(spark):
            spark.table(name)  # in Spark's words, where there is nothing of that name
        raise


def _target(spark: SparkSession, said: Clone) -> Place:
    path, shown = path_of_parts(said.target), dotted(said.target)
    if path is None and server_holds_tables(spark):
        raise unknown_to_catalogs(shown)
    if path is None:
        return place_of(spark, shown, said.location, said.mode)
    if said.location not in (None, path):
        raise CREATE_TABLE_SET_LOCATION(table=shown, location=path, given=said.location)
    return Place(path)


def _parquet_source(spark: SparkSession, said: Clone) -> tuple[str, StructType | None] | None:
    """The folder of a source of Parquet files and its partition columns; None for a table of ours.

    On Spark Connect there is none: the files are the server's, and are looked at in this process.
    """
    format_, path = format_and_path(dotted(said.source))
    if format_ == _PARQUET and not server_holds_tables(spark):
        return path, None
    entry = foreign_entry(spark, said.source)
    if entry is None or entry.provider != _PARQUET:
        return None
    schema = spark.table(dotted(said.source)).schema
    partitions = to_kernel([schema[name] for name in entry.partition_columns])
    return entry.path, partitions if entry.partition_columns else None


# --- delta's own statements, run by the methods of `DeltaTable`: two faces of one function each

_LONGS = "bigint"
_OfTable: TypeAlias = (
    sql.Optimize
    | sql.Reorg
    | sql.UpgradeUniform
    | sql.Vacuum
    | sql.Generate
    | sql.DescribeHistory
    | sql.DescribeDetail
    | sql.Restore
    | sql.AddConstraint
    | sql.DropConstraint
    | sql.DropFeature
    | sql.ClusterBy
    | sql.SyncIdentity
)


def columns_of(statement: sql.Statement) -> str:
    """The columns of a statement's answer, as DDL; empty for none."""
    return _COLUMNS.get(type(statement), "")


def execute(spark: SparkSession, statement: sql.Statement) -> DataFrame | None:
    """Run a statement.

    Parameters
    ----------
    spark
        A classic session or one of Spark Connect.

    Returns
    -------
    DataFrame or None
        With the columns of `columns_of`; None for no answer.

    Raises
    ------
    DeltaError
        As the method of `DeltaTable` that it stands for.
    """
    return _RUN[type(statement)](spark, statement)


def _table(spark: SparkSession, statement: _OfTable) -> DeltaTable:
    """The table that a statement is about."""
    try:
        return DeltaTable.forName(spark, dotted(statement.table))
    except NotADeltaTableError as error:
        raise _no_table(statement, error) from None
    except DeltaError as error:
        if error.condition != MISSING_DELTA_TABLE.name or not knows_names(spark):
            raise
        _refuse_others(spark, statement)
        # In Spark's words, which tools look for: a table or view of that name cannot be found.
        spark.table(dotted(statement.table))
        raise


def _no_table(statement: _OfTable, error: NotADeltaTableError) -> NotADeltaTableError:
    """The error of a statement for a path or an entry without a table; two have one of their own."""
    operation = _OPERATIONS[type(statement)]
    path = path_of_parts(statement.table)
    if isinstance(statement, sql.DescribeHistory):
        where = dotted(statement.table) if path is None else f"`{path}`"
        return TABLE_ONLY_OPERATION_AT_PATH(tableName=where, operation=operation, reason=error.text)
    if isinstance(statement, (sql.Reorg, sql.UpgradeUniform)):
        return ONLY_OPERATION_AT_PATH(operation=operation, reason=error.text)
    return error if path is not None else ENTRY_OF_NOTHING(path=dotted(statement.table), reason=error.text)


def _refuse_others(spark: SparkSession, statement: _OfTable) -> None:
    """Refuse views and tables of other sources; nothing happens for names that are not there."""
    operation, table = _OPERATIONS[type(statement)], dotted(statement.table)
    if names.is_view(spark, statement.table):
        if isinstance(statement, sql.Restore):
            raise ONLY_OPERATION(operation=operation, table=table, what="a view")
        raise EXPECT_TABLE_NOT_VIEW(operation=operation, viewName=table)
    entry = foreign_entry(spark, statement.table)
    if entry is not None:
        what = f"a table of {entry.provider}"
        if isinstance(statement, sql.Reorg):
            raise NOT_A_DELTA_TABLE_TO_REORGANIZE(tableName=table, what=what, operation=operation)
        if isinstance(statement, sql.Restore):
            raise NO_TABLE_TO_RESTORE(relationName=table, what=what, operation=operation)
        raise ONLY_OPERATION(operation=operation, table=table, what=what)


# --- files


def _optimize(spark: SparkSession, statement: sql.Optimize) -> DataFrame:
    builder = _table(spark, statement).optimize()
    if statement.where is not None:
        builder = builder.where(statement.where.text)
    if statement.full:
        # With columns to order by it is refused: FULL needs a clustered table, which has an order of its own.
        return builder._execute(FULL, list(map(dotted, statement.zorder_by)))
    if statement.zorder_by:
        return builder.executeZOrderBy(*map(dotted, statement.zorder_by))
    return builder.executeCompaction()


def _reorg(spark: SparkSession, statement: sql.Reorg) -> DataFrame:
    builder = _table(spark, statement).optimize()
    if statement.where is not None:
        builder = builder.where(statement.where.text)
    return builder.executePurge()


def _vacuum(spark: SparkSession, statement: sql.Vacuum) -> DataFrame:
    table = _table(spark, statement)
    hours = statement.retain_hours
    ignores = hours and is_set(spark, RETENTION_IGNORED.full_name, True)
    # A longer retention than the table's is never passed over: it would delete what is to be kept.
    if ignores and ask(table._handle.log, log_calls.is_shorter_retention, hours):
        RETAIN_IGNORED.log(table=table._handle.where, hours=hours)
        hours = None
    inventory = None if statement.inventory is None else spark.sql(statement.inventory.text)
    result = table.vacuum(hours, statement.dry_run, statement.mode, inventory)
    if statement.dry_run:
        return result
    where = table._handle.where
    return frame(spark, [{"path": f"file:{where}" if where.startswith("/") else where}], {"path": "string"})


def _generate(spark: SparkSession, statement: sql.Generate) -> None:
    _table(spark, statement).generate(statement.mode)


# --- versions


def _history(spark: SparkSession, statement: sql.DescribeHistory) -> DataFrame:
    return _table(spark, statement).history(statement.limit)


def _detail(spark: SparkSession, statement: sql.DescribeDetail) -> DataFrame:
    entry = foreign_entry(spark, statement.table)
    if entry is not None:
        return describe.foreign_detail(spark, entry)
    return _table(spark, statement).detail()


def _restore(spark: SparkSession, statement: sql.Restore) -> DataFrame:
    table = _table(spark, statement)
    if statement.version is not None:
        return table.restoreToVersion(statement.version)
    assert statement.timestamp is not None
    return table.restoreToTimestamp(statement.timestamp)


# --- the description


def _add_constraint(spark: SparkSession, statement: sql.AddConstraint) -> None:
    _table(spark, statement).addConstraint(statement.name, statement.expression.text)


def _drop_constraint(spark: SparkSession, statement: sql.DropConstraint) -> None:
    _table(spark, statement).dropConstraint(statement.name, ifExists=statement.if_exists)


def _drop_feature(spark: SparkSession, statement: sql.DropFeature) -> None:
    _table(spark, statement).dropFeatureSupport(statement.feature, statement.truncate_history)


def _cluster_by(spark: SparkSession, statement: sql.ClusterBy) -> None:
    _table(spark, statement).clusterBy([dotted(column) for column in statement.columns])


def _sync_identity(spark: SparkSession, statement: sql.SyncIdentity) -> None:
    _table(spark, statement).syncIdentity(dotted(statement.column))


def _upgrade_uniform(spark: SparkSession, statement: sql.UpgradeUniform) -> DataFrame:
    handle = _table(spark, statement)._handle
    run(handle.log, begin_upgrade, statement.iceberg_compat_version)
    done = optimize.run_optimize(handle, replace(optimize.session_request(spark), kind=UPGRADE))
    run(handle.log, finish_upgrade)
    return done


# --- new tables


def _convert(spark: SparkSession, statement: sql.Convert) -> None:
    columns = None if statement.partition_columns is None else statement.partition_columns.text
    DeltaTable.convertToDelta(spark, dotted(statement.table), columns, collectStatistics=statement.statistics)


_OPERATIONS: Mapping[type, str] = {
    sql.Optimize: OPTIMIZE.name,
    sql.Reorg: REORG.name,
    sql.UpgradeUniform: REORG.name,
    sql.Vacuum: "VACUUM",
    sql.Generate: "GENERATE",
    sql.DescribeHistory: "DESCRIBE HISTORY",
    sql.DescribeDetail: "DESCRIBE DETAIL",
    sql.Restore: RESTORE.name,
    sql.AddConstraint: "ALTER TABLE ... ADD CONSTRAINT",
    sql.DropConstraint: "ALTER TABLE ... DROP CONSTRAINT",
    sql.DropFeature: "ALTER TABLE ... DROP FEATURE",
    sql.ClusterBy: "ALTER TABLE ... CLUSTER BY",
    sql.SyncIdentity: "ALTER TABLE ... ALTER COLUMN",
}
_PATH = "path string"
_COLUMNS: Mapping[type, str] = {
    sql.Optimize: optimize.SCHEMA,
    sql.Reorg: optimize.SCHEMA,
    sql.UpgradeUniform: optimize.SCHEMA,
    sql.Vacuum: _PATH,
    sql.DescribeHistory: ", ".join(f"{name} {kind}" for name, kind in describe.HISTORY.items()),
    sql.DescribeDetail: ", ".join(f"{name} {kind}" for name, kind in describe.DETAIL.items()),
    sql.Restore: ", ".join(f"{name} {_LONGS}" for name in restores.RESULT_COLUMNS),
    sql.Clone: ", ".join(f"{name} {_LONGS}" for name in clones.RESULT_COLUMNS),
}
_RUN: Mapping[type, Callable[[Any, Any], DataFrame | None]] = {
    sql.Optimize: _optimize,
    sql.Reorg: _reorg,
    sql.Vacuum: _vacuum,
    sql.Generate: _generate,
    sql.DescribeHistory: _history,
    sql.DescribeDetail: _detail,
    sql.Restore: _restore,
    sql.AddConstraint: _add_constraint,
    sql.DropConstraint: _drop_constraint,
    sql.DropFeature: _drop_feature,
    sql.ClusterBy: _cluster_by,
    sql.SyncIdentity: _sync_identity,
    sql.UpgradeUniform: _upgrade_uniform,
    sql.Convert: _convert,
    sql.Clone: clone,
}
