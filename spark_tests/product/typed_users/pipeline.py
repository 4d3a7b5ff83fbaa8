"""What a user writes with a Spark session. Type checkers read this file, nothing runs it."""

from __future__ import annotations

from datetime import datetime, timezone

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType
from typing_extensions import assert_type

import delta_ds
from delta_ds import (
    Capability,
    ConcurrentAppendException,
    DeltaConcurrentModificationException,
    DeltaError,
    DeltaMergeBuilder,
    DeltaOptimizeBuilder,
    DeltaTable,
    Health,
    IdentityGenerator,
    Registration,
)


def session(spark: SparkSession) -> None:
    registered = delta_ds.register(spark, pushdown=None)
    assert_type(registered, Registration)
    assert_type(registered.native_scan, Capability)
    assert_type(registered.native_scan.reason, str)
    assert_type(registered.spark_version, str)
    assert_type(registered.settings_without_effect.get("spark.x"), "str | None")
    if not registered.workers:
        assert_type(delta_ds.ship(spark), Capability)
    delta_ds.unregister(spark)
    assert_type(delta_ds.install_as_delta(), "str | None")
    assert_type(delta_ds.__version__, str)


def open_and_read(spark: SparkSession, path: str) -> DataFrame:
    assert_type(DeltaTable.isDeltaTable(spark, path), bool)
    table = DeltaTable.forPath(spark, path, {"fs.s3a.endpoint": "http://localhost"})
    assert_type(table, DeltaTable)
    assert_type(DeltaTable.forName(spark, "sales"), DeltaTable)
    assert_type(DeltaTable.convertToDelta(spark, f"parquet.`{path}`", "year int"), DeltaTable)
    assert_type(table.changes(0, datetime.now(timezone.utc)), DataFrame)
    assert_type(table.history(10).select("version"), DataFrame)
    assert_type(table.detail(), DataFrame)
    assert_type(table.health(), Health)
    assert_type(table.health().num_rows, "int | None")
    assert_type([due.command for due in table.health().due], "list[str]")
    return table.alias("t").toDF()


def create(spark: SparkSession, path: str) -> DeltaTable:
    builder = DeltaTable.create(spark).tableName("sales").location(path).comment("sales")
    assert_type(builder, delta_ds.DeltaTableBuilder[DeltaTable])
    made = (
        builder.addColumn(
            "id", LongType(), nullable=False, generatedAlwaysAs=IdentityGenerator(start=1, step=2)
        )
        .addColumn("day", "date", comment="of the sale", default="current_date()")
        .addColumn("year", "int", generatedAlwaysAs="year(day)")
        .addColumn("n", "long", generatedByDefaultAs=IdentityGenerator())
        .addColumns(StructType([StructField("name", StringType())]))
        .partitionedBy("year", "day")
        .partitionedBy(["year"])
        .clusterBy("id")
        .property("delta.enableChangeDataFeed", "true")
        .option("fs.s3a.endpoint", "http://localhost")
        .execute()
    )
    assert_type(made, DeltaTable)
    assert_type(IdentityGenerator().step, int)
    assert_type(DeltaTable.createIfNotExists().execute(), DeltaTable)
    assert_type(DeltaTable.replace(spark).execute(), DeltaTable)
    assert_type(DeltaTable.createOrReplace(spark).execute(), DeltaTable)
    return made


def change_rows(table: DeltaTable, source: DataFrame) -> None:
    assert_type(table.delete(), DataFrame)
    assert_type(table.delete("id = 1"), DataFrame)
    assert_type(table.delete(F.col("id") == 1), DataFrame)
    assert_type(table.update("id = 1", {"name": "'x'"}), DataFrame)
    assert_type(table.update(set={"name": F.lit("x"), "id": "id + 1"}), DataFrame)
    assert_type(table.update(F.col("id") > 1, {"name": F.upper("name")}), DataFrame)
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    assert_type(merge, DeltaMergeBuilder)
    done = (
        merge.whenMatchedUpdate("s.id > 1", {"name": "s.name"})
        .whenMatchedUpdate(set={"name": F.col("s.name")})
        .whenMatchedUpdateAll()
        .whenMatchedDelete(F.col("s.gone"))
        .whenNotMatchedInsert("s.id > 1", {"id": "s.id"})
        .whenNotMatchedInsert(values={"id": F.col("s.id")})
        .whenNotMatchedInsertAll("s.id > 1")
        .whenNotMatchedBySourceUpdate("t.id > 1", {"name": "'gone'"})
        .whenNotMatchedBySourceUpdate(set={"name": F.lit("gone")})
        .whenNotMatchedBySourceDelete()
        .withSchemaEvolution()
        .execute()
    )
    assert_type(done, DataFrame)


def look_after(spark: SparkSession, table: DeltaTable) -> None:
    optimize = table.optimize().where("year = 2024")
    assert_type(optimize, DeltaOptimizeBuilder)
    assert_type(optimize.executeCompaction(), DataFrame)
    assert_type(table.optimize().executeZOrderBy("id", "name"), DataFrame)
    assert_type(table.optimize().executeZOrderBy(["id"]), DataFrame)
    assert_type(table.optimize().executePurge(), DataFrame)
    assert_type(table.optimize().executeFull(), DataFrame)
    assert_type(table.vacuum(), DataFrame)
    assert_type(table.vacuum(168, dryRun=True, mode="LITE", inventory=spark.range(1).toDF("path")), DataFrame)
    table.generate("symlink_format_manifest")
    table.checkpoint()
    assert_type(table.restoreToVersion(3), DataFrame)
    assert_type(table.restoreToTimestamp("2024-01-31"), DataFrame)
    assert_type(table.restoreToTimestamp(datetime.now(timezone.utc)), DataFrame)
    assert_type(table.clone("/to", isShallow=True, replace=True, properties={"a": "b"}), DeltaTable)
    assert_type(table.cloneAtVersion(3, "/to", isShallow=True), DeltaTable)
    assert_type(table.cloneAtTimestamp("2024-01-31", "/to", isShallow=True), DeltaTable)


def describe(table: DeltaTable) -> None:
    table.setProperties({"delta.appendOnly": "true"})
    table.unsetProperties(["delta.appendOnly"])
    table.upgradeTableProtocol(1, 4)
    table.addFeatureSupport("deletionVectors")
    table.dropFeatureSupport("deletionVectors", truncateHistory=True)
    table.addColumns(StructType([StructField("new", StringType())]), after="id")
    table.renameColumn("new", "newer")
    table.dropColumns(["newer"])
    table.alterColumn("name", comment="of the customer", default=None, first=True)
    table.alterColumn("id", dataType=LongType(), nullable=True)
    table.alterColumn("id", dataType="long", after="name")
    table.syncIdentity("id")
    table.addConstraint("positive", "id > 0")
    table.dropConstraint("positive", ifExists=True)
    table.clusterBy(["id"])


def fail(table: DeltaTable) -> str | None:
    try:
        table.delete()
    except ConcurrentAppendException as conflict:
        assert_type(conflict.winning_version, "int | None")
        assert_type(conflict.winning_operation, "str | None")
    except DeltaConcurrentModificationException as conflict:
        assert_type(conflict.condition, str)
    except delta_ds.exceptions.JobFailedError as error:
        return error.sql_state
    except DeltaError as error:
        assert_type(error.sql_state, "str | None")
        assert_type(error.text, str)
    return None
