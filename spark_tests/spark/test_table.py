"""`DeltaTable` and `register` in a classic session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import delta_ds
from delta_ds import DeltaTable, InvalidOptionError, NotADeltaTableError
from delta_ds.spark import pushdown

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
        with pytest.raises(InvalidOptionError, match="at least 1"):
            table.history(0)

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


class TestRegister:
    def test_registration_says_what_is_active_and_why_not(self, spark: SparkSession) -> None:
        registration = delta_ds.register(spark)
        assert (registration.format, registration.session) == ("pydelta", "classic")
        assert registration.spark_version == spark.version
        assert registration.source and registration.native_scan and registration.native_write
        assert registration.session_integration and registration.log_aggregates and registration.sql_function
        assert bool(registration.pushdown) is pushdown.plans_each_scan()
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
            assert spark.conf.get(pushdown.PUSHDOWN_CONF) == "true"
        finally:
            spark.conf.unset(pushdown.PUSHDOWN_CONF)
            assert not delta_ds.register(spark, pushdown=False).pushdown.active
