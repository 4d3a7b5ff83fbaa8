"""`DeltaTable` and `register` in a classic session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import delta_ds
from delta_ds import (
    DeltaLog,
    DeltaTable,
    InvalidOptionError,
    NotADeltaTableError,
    UnsupportedOperationError,
)
from delta_ds.spark.base import query_needs

pytestmark = pytest.mark.spark

# What delta-spark 4.4.0 prints for the schemas of the two.
HISTORY = (
    "version bigint, timestamp timestamp, userId string, userName string, operation string, "
    "operationParameters map<string,string>, job struct<jobId:string,jobName:string,jobRunId:string,runId:string,"
    "jobOwnerId:string,triggerType:string>, notebook struct<notebookId:string>, clusterId string, "
    "readVersion bigint, isolationLevel string, isBlindAppend boolean, operationMetrics map<string,string>, "
    "userMetadata string, engineInfo string"
)
DETAIL = (
    "format string, id string, name string, description string, location string, createdAt timestamp, "
    "lastModified timestamp, partitionColumns array<string>, clusteringColumns array<string>, numFiles bigint, "
    "sizeInBytes bigint, properties map<string,string>, minReaderVersion int, minWriterVersion int, "
    "tableFeatures array<string>"
)


class TestForPath:
    def test_rows_are_those_of_the_source(self, spark: SparkSession, sales: str) -> None:
        rows = DeltaTable.forPath(spark, sales).toDF()
        assert rows.count() == spark.read.format("pydelta").load(sales).count()

    def test_alias_names_the_table_in_expressions(self, spark: SparkSession, sales: str) -> None:
        table = DeltaTable.forPath(spark, sales)
        rows = table.alias("t").toDF()
        assert rows.where("t.country = 'DE'").count() == table.toDF().where("country = 'DE'").count() > 0

    @pytest.mark.parametrize("name", ["", "not-there"])
    def test_path_without_a_table_is_refused(self, spark: SparkSession, tmp_path: Path, name: str) -> None:
        with pytest.raises(
            NotADeltaTableError, match=r"\[DELTA_MISSING_DELTA_TABLE\] `.*` is not a Delta table"
        ):
            DeltaTable.forPath(spark, str(tmp_path / name))

    def test_secrets_in_hadoop_conf_are_not_shown(self, spark: SparkSession, sales: str) -> None:
        table = DeltaTable.forPath(spark, sales, {"fs.s3a.secret.key": "hunter2-hunter2"})
        assert table.toDF().count() > 0
        assert repr(table) == f"DeltaTable({sales!r})"


class TestIsDeltaTable:
    def test_table_and_folders_inside_it_are(self, spark: SparkSession, sales: str) -> None:
        assert DeltaTable.isDeltaTable(spark, sales) is True
        assert DeltaTable.isDeltaTable(spark, f"{sales}/country=PL") is True

    def test_other_paths_are_not(self, spark: SparkSession, tmp_path: Path) -> None:
        assert DeltaTable.isDeltaTable(spark, str(tmp_path)) is False
        assert DeltaTable.isDeltaTable(spark, "/no/such/path") is False


class TestHistory:
    def test_columns_are_those_of_delta_spark(self, spark: SparkSession, sales: str) -> None:
        history = DeltaTable.forPath(spark, sales).history()
        assert ", ".join(f"{n} {t}" for n, t in history.dtypes) == HISTORY

    def test_newest_version_comes_first(self, spark: SparkSession, sales: str) -> None:
        rows = DeltaTable.forPath(spark, sales).history().collect()
        assert [r.version for r in rows] == [7, 6, 5, 4, 3, 2, 1, 0]
        assert [r.operation for r in rows][:4] == ["WRITE", "MERGE", "DELETE", "UPDATE"]
        assert rows[0].operationParameters == {"mode": "Append", "partitionBy": "[]"}
        assert rows[0].operationMetrics["numOutputRows"] == "60"
        assert rows[0].isBlindAppend is True and rows[0].job is None

    def test_limit_takes_the_newest(self, spark: SparkSession, sales: str) -> None:
        table = DeltaTable.forPath(spark, sales)
        assert [r.version for r in table.history(2).collect()] == [7, 6]
        assert len(table.history(100).collect()) == 8
        assert table.history(0).collect() == table.history(-1).collect() == []
        with pytest.raises(InvalidOptionError, match="limit needs to be an int but got"):
            table.history("1")  # type: ignore[arg-type]

    def test_timestamps_are_those_of_the_commits(self, spark: SparkSession, sales: str) -> None:
        rows = (
            DeltaTable.forPath(spark, sales)
            .history()
            .selectExpr("version", "unix_millis(timestamp) ms")
            .collect()
        )
        for row in rows:
            first = Path(sales, "_delta_log", f"{row.version:020d}.json").read_text().splitlines()[0]
            assert row.ms == json.loads(first)["commitInfo"]["inCommitTimestamp"]


class TestDetail:
    def test_columns_are_those_of_delta_spark(self, spark: SparkSession, sales: str) -> None:
        detail = DeltaTable.forPath(spark, sales).detail()
        assert ", ".join(f"{n} {t}" for n, t in detail.dtypes) == DETAIL

    def test_values_are_those_of_the_table(self, spark: SparkSession, sales: str) -> None:
        row = DeltaTable.forPath(spark, sales).detail().collect()[0]
        assert (row.format, row.location) == ("delta", f"file:{sales}")
        assert (row.numFiles, row.partitionColumns, row.clusteringColumns) == (18, ["country"], [])
        assert (row.minReaderVersion, row.minWriterVersion) == (3, 7)
        assert row.properties["delta.enableChangeDataFeed"] == "true"
        assert "deletionVectors" in row.tableFeatures
        assert row.sizeInBytes == 40521


class TestForName:
    @pytest.mark.parametrize("name", ["pydelta.`{}`", "delta.`{}`", " spark_catalog . `DELTA` .`{}`"])
    def test_name_may_be_a_path(self, spark: SparkSession, sales: str, name: str) -> None:
        table = DeltaTable.forName(spark, name.format(sales))
        assert repr(table) == repr(DeltaTable.forPath(spark, sales))

    @pytest.mark.parametrize("name", ["sales", "db.sales", "parquet.`/data/sales`"])
    def test_names_of_catalogs_are_refused_with_the_way_out(self, spark: SparkSession, name: str) -> None:
        with pytest.raises(UnsupportedOperationError, match=r"DELTA_MISSING_DELTA_TABLE.*forPath"):
            DeltaTable.forName(spark, name)

    def test_path_without_a_table_is_refused(self, spark: SparkSession) -> None:
        with pytest.raises(NotADeltaTableError):
            DeltaTable.forName(spark, "delta.`/no/such/path`")


class TestChanges:
    def test_range_is_one_of_versions_or_moments(self, spark: SparkSession, sales: str) -> None:
        table = DeltaTable.forPath(spark, sales)
        kept = ("order_id", "_change_type", "_commit_version")
        read = spark.read.format("pydelta").option("readChangeFeed", "true").option("startingVersion", "3")
        expected = sorted(map(tuple, read.option("endingVersion", "5").load(sales).select(*kept).collect()))
        moments = {row["version"]: row["timestamp"] for row in DeltaLog(sales).history()}
        text = f"{moments[5]:%Y-%m-%d %H:%M:%S.%f}"
        for start, end in ((3, 5), (moments[3], text)):
            rows = table.alias("c").changes(start, end).select(*(f"c.{name}" for name in kept))
            assert sorted(map(tuple, rows.collect())) == expected != []
        everything = table.changes().selectExpr("min(_commit_version)", "max(_commit_version)")
        assert tuple(everything.collect()[0]) == (1, 7)

    def test_other_boundaries_are_refused(self, spark: SparkSession, sales: str) -> None:
        with pytest.raises(
            InvalidOptionError, match="end needs to be an int but got .* a string or datetime will do too"
        ):
            DeltaTable.forPath(spark, sales).changes(0, 1.5)  # type: ignore[arg-type]


class TestGenerate:
    def test_manifests_are_written(self, spark: SparkSession, tmp_path: Path) -> None:
        spark.range(3).coalesce(1).write.format("pydelta").save(str(tmp_path))
        DeltaTable.forPath(spark, str(tmp_path)).generate("symlink_format_manifest")
        assert len((tmp_path / "_symlink_format_manifest" / "manifest").read_text().splitlines()) == 1


class TestRegister:
    def test_registration_says_what_is_active_and_why_not(self, spark: SparkSession) -> None:
        registration = delta_ds.register(spark)
        assert (registration.format, registration.session) == ("pydelta", "classic")
        assert registration.spark_version == spark.version
        assert registration.source and registration.native_scan and registration.native_write
        assert registration.session_integration and registration.log_aggregates and registration.sql_function
        assert bool(registration.pushdown) is query_needs.plans_each_scan()
        text = str(registration)
        assert text.startswith(f"pydelta on Spark {spark.version} (classic)")
        assert "native_scan: on: Spark's own Parquet reader and writer" in text

    def test_what_is_switched_off_is_told(self, spark: SparkSession) -> None:
        spark.conf.set("spark.pydelta.nativeScan", "false")
        try:
            registration = delta_ds.register(spark)
        finally:
            spark.conf.unset("spark.pydelta.nativeScan")
        assert (bool(registration.native_scan), bool(registration.native_write)) == (False, True)
        assert registration.native_scan.reason == "spark.pydelta.nativeScan is false"

    def test_unregistering_brings_sparks_own_manners_back(self, spark: SparkSession, tmp_path: Path) -> None:
        delta_ds.unregister(spark)
        try:
            delta_ds.unregister(spark)
            with pytest.raises(Exception, match="(?i)unsupported.*mode|save mode|ErrorIfExists"):
                spark.range(1).write.format("pydelta").save(str(tmp_path / "t"))
            with pytest.raises(Exception, match="(?i)pydelta.*table-valued"):
                spark.sql(f"SELECT * FROM pydelta('{tmp_path}')")
        finally:
            delta_ds.register(spark)

    def test_pushdown_is_switched_on_when_asked_for(self, spark: SparkSession) -> None:
        try:
            assert delta_ds.register(spark, pushdown=True).pushdown.active
            assert spark.conf.get(query_needs.PUSHDOWN_CONF) == "true"
        finally:
            spark.conf.unset(query_needs.PUSHDOWN_CONF)
            assert not delta_ds.register(spark, pushdown=False).pushdown.active
