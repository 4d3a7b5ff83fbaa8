"""A user's session is the same after every operation as it was before."""

from __future__ import annotations

import logging
import os
import sys
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.rdd import RDD
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from delta_ds import DeltaTable, register, unregister
from delta_ds.exceptions import DeltaError
from delta_ds.spark.base.kinds.session_facts import with_session_settings
from delta_ds.spark.base.query_needs import PUSHDOWN_CONF

pytestmark = pytest.mark.long

Operation = Callable[[SparkSession, Path], Any]


def state(spark: SparkSession) -> dict[str, Any]:
    """All that a user can see of a session and of the process around it."""
    jvm, session, context = spark._jvm, spark._jsparkSession, spark.sparkContext
    assert jvm is not None
    xml = jvm.java.io.StringWriter()
    context._jsc.hadoopConfiguration().writeXml(xml)
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    catalog = session.sessionState().catalog()
    return {
        "settings": spark.conf.getAll,
        "settings of Hadoop": xml.toString(),
        "local properties": sorted(context._jsc.sc().getLocalProperties().toString().strip("{}").split(", ")),
        "active": sessions.getActiveSession().toString(),
        "default": sessions.getDefaultSession().toString(),
        "session of Python": (SparkSession._instantiatedSession, SparkSession._activeSession),
        "RDD.toDF": RDD.__dict__["toDF"],
        "builder": dict(SparkSession.builder._options),
        "current": (spark.catalog.currentCatalog(), spark.catalog.currentDatabase()),
        "views": session.catalog().listTables().toJSON().collectAsList().toString(),
        "functions": catalog.listTemporaryFunctions().mkString(",")
        + session.sessionState().tableFunctionRegistry().listFunction().mkString(","),
        "listeners": len(session.listenerManager().listListeners()),
        "rules": session.experimental().extraOptimizations().mkString(","),
        "cached": session.sharedState().cacheManager().isEmpty(),
        "streams": len(spark.streams.active),
        "warnings": list(warnings.filters),
        "logging": [(log.level, list(log.handlers), log.propagate) for log in map(logging.getLogger, _LOGS)],
        "process": (dict(os.environ), os.getcwd(), sys.excepthook),
    }


_LOGS = ("", "py4j", "pyspark", "delta_ds")


def rows(spark: SparkSession, count: int = 4) -> DataFrame:
    return spark.range(count).selectExpr("id", "id % 2 AS p", "timestamp_seconds(id) AS t")


def written(spark: SparkSession, folder: Path, **options: str) -> str:
    path = str(folder / uuid.uuid4().hex)
    rows(spark).write.format("pydelta").options(**options).save(path)
    return path


def table(spark: SparkSession, folder: Path, **options: str) -> DeltaTable:
    return DeltaTable.forPath(spark, written(spark, folder, **options))


def _change(spark: SparkSession, folder: Path, **options: str) -> None:
    found = table(spark, folder, **options)
    found.delete("id = 0")
    found.update("id = 1", {"p": "9"})
    merge = found.alias("t").merge(rows(spark, 6).alias("s"), "s.id = t.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def _maintain(spark: SparkSession, folder: Path) -> None:
    found = table(spark, folder)
    found.optimize().executeZOrderBy("id")
    found.vacuum()
    found.restoreToVersion(0)
    found.addConstraint("positive", "id >= 0")
    found.detail().collect()
    found.history().collect()


def _read(spark: SparkSession, folder: Path) -> None:
    for mode in ("none", "id"):
        path = written(spark, folder, **{"delta.columnMapping.mode": mode, "partitionBy": "p"})
        spark.read.format("pydelta").option("versionAsOf", 0).load(path).where("p = 1").collect()
        spark.read.format("pydelta").load(path).agg(F.count("id")).collect()
    spark.sql(f"SELECT * FROM pydelta('{path}')").collect()


def _write(spark: SparkSession, folder: Path) -> None:
    path = written(spark, folder, **{"partitionBy": "p"})
    DeltaTable.forPath(spark, path).addConstraint("positive", "id >= 0")
    rows(spark).write.format("pydelta").mode("overwrite").save(path)
    rows(spark).writeTo(f"pydelta.`{path}`").append()


def _write_portably(spark: SparkSession, folder: Path) -> None:
    written(spark, folder, **{"delta.targetFileSize": "1mb"})


def _stream(spark: SparkSession, folder: Path) -> None:
    stream = spark.readStream.format("pydelta").load(written(spark, folder))
    writer = stream.writeStream.format("pydelta").option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(str(folder / "sink")).awaitTermination()


def _fail(spark: SparkSession, folder: Path) -> None:
    path = written(spark, folder)
    found = DeltaTable.forPath(spark, path)
    found.addConstraint("small", "id < 100")
    for call in (
        lambda: spark.range(1000).write.format("pydelta").mode("append").save(path),
        lambda: spark.read.format("pydelta").load(str(folder / "nothing")).collect(),
        lambda: spark.read.format("pydelta").option("versionAsOf", 99).load(path).collect(),
        lambda: rows(spark).write.format("pydelta").option("mergeShema", "true").mode("append").save(path),
        lambda: found.update("id = 1", {"id": "1000"}),
    ):
        with pytest.raises(DeltaError):
            call()


def _at_once(spark: SparkSession, folder: Path) -> None:
    threads = [threading.Thread(target=_write, args=(spark, folder)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


OPERATIONS: dict[str, Operation] = {
    "read": _read,
    "write": _write,
    "write through Python": _write_portably,
    "change": _change,
    "change with a change feed": lambda s, f: _change(s, f, **{"delta.enableChangeDataFeed": "true"}),
    "maintain": _maintain,
    "stream": _stream,
    "fail": _fail,
    "at once": _at_once,
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", list(OPERATIONS))
def test_session_is_after_an_operation_as_it_was_before(
    spark: SparkSession, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    init = SparkSession.__init__
    monkeypatch.setattr(SparkSession, "__init__", lambda *a, **k: made.append(a) or init(*a, **k))
    spark.sparkContext.setJobGroup("the user's", "the user's job")
    try:
        before = state(spark)
        OPERATIONS[name](spark, tmp_path)
        after = state(spark)
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        spark.sparkContext.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
    assert not made
    changed = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
    assert not changed


def test_work_of_one_session_leaves_the_active_one_active(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The constructor of pyspark takes `RDD.toDF` over.
    monkeypatch.setattr(RDD, "toDF", RDD.__dict__["toDF"])
    other = spark.newSession()
    register(other)
    before = state(spark), state(other)
    path = written(other, tmp_path, partitionBy="p")
    other.read.format("pydelta").load(path).where("p = 1").collect()
    DeltaTable.forPath(other, path).delete("id = 0")
    DeltaTable.forPath(other, path).history().collect()
    assert (state(spark), state(other)) == before
    unregister(other)


@pytest.fixture(params=[None, "false"], ids=["as Spark has it", "set by the user"])
def pushdown_setting(request: pytest.FixtureRequest, plain: SparkSession) -> Iterator[None]:
    """Filters are not pushed to Python data sources: nobody has set it, or the user has."""
    before = plain.conf.getAll.get(PUSHDOWN_CONF)
    _set(plain, request.param)
    yield
    _set(plain, before)


def _set(spark: SparkSession, value: str | None) -> None:
    if value is None:
        spark.conf.unset(PUSHDOWN_CONF)
    else:
        spark.conf.set(PUSHDOWN_CONF, value)


@pytest.mark.usefixtures("pushdown_setting")
def test_session_is_after_unregister_as_it_was_before_register(plain: SparkSession) -> None:
    owners = (
        DataFrameReader,
        DataFrameWriter,
        DataStreamReader,
        DataStreamWriter,
        SparkSession,
        ClassicFrame,
    )
    before, methods = state(plain), [dict(vars(owner)) for owner in owners]
    register(plain, pushdown=True)
    assert state(plain) != before
    unregister(plain)
    assert state(plain) == before
    assert [dict(vars(owner)) for owner in owners] == methods


def _observed(spark: SparkSession, df: DataFrame, path: Path) -> dict[str, Any]:
    observation = Observation()
    df.observe(observation, F.count(F.lit(1)).alias("n")).write.format("pydelta").mode("append").save(
        str(path)
    )
    found: list[dict[str, Any]] = []
    # Spark waits for ever for what does not come.
    thread = threading.Thread(target=lambda: found.append(observation.get), daemon=True)
    thread.start()
    thread.join(30)
    return found[0] if found else {}


def test_observation_of_written_rows_ends_whatever_settings_the_files_need(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.writeLegacyFormat": "true",
    }
    old = spark.sql(
        "SELECT 1L AS id, DATE'1500-01-01' AS d, TIMESTAMP'1500-01-01' AS t, CAST(1 AS decimal(5, 2)) AS n"
    )
    before = spark.sparkContext.getLocalProperty("spark.sql.parquet.datetimeRebaseModeInWrite")
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        assert _observed(spark, rows(spark), tmp_path / "rows") == {"n": 4}
        assert _observed(spark, old, tmp_path / "old") == {"n": 1}
        assert spark.sparkContext.getLocalProperty("spark.sql.parquet.datetimeRebaseModeInWrite") == before
    finally:
        for name in settings:
            spark.conf.unset(name)
    import pyarrow.parquet as pq

    (file,) = (tmp_path / "old").glob("*/*.parquet")
    assert str(pq.read_schema(file).field("t").type) == "timestamp[us, tz=UTC]"
    assert str(pq.ParquetFile(file).schema.column(3).physical_type) == "INT32"
    assert str(pq.read_table(file)["d"][0]) == "1500-01-01"
    assert str(pq.read_table(file)["t"].cast("int64")[0]) == str(old.selectExpr("unix_micros(t)").first()[0])


def test_store_is_opened_with_what_the_session_says_now(spark: SparkSession) -> None:
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    path = {"path": "s3a://bucket/table"}
    told = [with_session_settings(spark, path)]
    hadoop.set("fs.s3a.access.key", "first")
    try:
        told.append(with_session_settings(spark, path))
        spark.conf.set("fs.s3a.access.key", "second")
        spark.conf.set("fs.s3a.bucket.other.access.key", "other")
        told.append(with_session_settings(spark, path))
        told.append(with_session_settings(spark, {**path, "fs.s3.access.key": "given"}))
        told.append(with_session_settings(spark, {**path, "storage.anon": "true"}))
        told.append(with_session_settings(spark, {"path": "s3://other/table"}))
        told.append(with_session_settings(spark, {"path": "gs://bucket/table"}))
        told.append(with_session_settings(spark, {"path": "/bucket/table"}))
    finally:
        hadoop.unset("fs.s3a.access.key")
        spark.conf.unset("fs.s3a.access.key")
        spark.conf.unset("fs.s3a.bucket.other.access.key")
    keys = [{v for k, v in one.items() if k != "path"} for one in told]
    assert keys == [set(), {"first"}, {"second"}, {"given"}, {"true"}, {"other"}, set(), set()]
    assert with_session_settings(spark, path) == path


def test_scan_follows_the_settings_of_the_session_in_every_mapping_mode(
    spark: SparkSession, tmp_path: Path
) -> None:
    partitions = {}
    for mode in ("none", "name", "id"):
        path = str(tmp_path / mode)
        rows_ = spark.range(0, 50_000, 1, 1)
        rows_.write.format("pydelta").option("delta.columnMapping.mode", mode).save(path)
        frame = spark.read.format("pydelta").load(path)
        spark.conf.set("spark.sql.files.maxPartitionBytes", "50000")
        spark.conf.set("spark.sql.files.openCostInBytes", "1")
        try:
            partitions[mode] = frame._jdf.queryExecution().executedPlan().execute().getNumPartitions()
        finally:
            spark.conf.unset("spark.sql.files.maxPartitionBytes")
            spark.conf.unset("spark.sql.files.openCostInBytes")
        # What the session says of ids in files changes nothing.
        spark.conf.set("spark.sql.parquet.fieldId.read.enabled", str(mode != "id").lower())
        try:
            assert spark.read.format("pydelta").load(path).where("id < 10").count() == 10
        finally:
            spark.conf.unset("spark.sql.parquet.fieldId.read.enabled")
    assert len(set(partitions.values())) == 1 and partitions["id"] > 1
