"""Whatever a session commits says by which application, job and user; and nothing where that is not wanted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JNetworkError

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.transaction.origin import JOB_VARIABLES
from delta_ds.spark.base.kinds.session_facts import _address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

ORIGIN, USER = "spark.pydelta.commitInfo.origin", "spark.pydelta.commitInfo.userName"
MADE_BY = ("userName", "job", "notebook", "clusterId", "application")


@pytest.fixture(autouse=True)
def settings(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("JPY_SESSION_NAME", "DELTA_DS_USER_NAME", *(v for n in JOB_VARIABLES.values() for v in n)):
        monkeypatch.delenv(name, raising=False)
    yield
    for name in (ORIGIN, USER, "spark.pydelta.nativeWrite", "spark.databricks.job.id"):
        spark.conf.unset(name)


def commits(path: str) -> list[dict[str, Any]]:
    """The `commitInfo` of every version, in order."""
    files = sorted(Path(path, "_delta_log").glob("*.json"))
    return [json.loads(file.read_text().splitlines()[0])["commitInfo"] for file in files]


def change_in_every_way(spark: SparkSession, path: str) -> None:
    """By Spark's writer, by the data source, by commands, by SQL and by a stream."""
    rows = spark.range(4, numPartitions=1).write.format("pydelta").mode("append")
    rows.save(path)
    spark.conf.set("spark.pydelta.nativeWrite", "false")
    rows.save(path)
    spark.conf.unset("spark.pydelta.nativeWrite")
    table = DeltaTable.forPath(spark, path)
    table.delete("id = 1")
    merge = table.alias("t").merge(spark.range(9, 10).alias("s"), "t.id = s.id")
    merge.whenNotMatchedInsertAll().execute()
    table.optimize().executeCompaction()
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (7)")
    stream = spark.readStream.format("pydelta").load(path).writeStream.format("pydelta")
    stream = stream.option("checkpointLocation", f"{path}_at").trigger(availableNow=True)
    stream.start(f"{path}_copy").awaitTermination()


def test_every_commit_tells_its_application_and_what_the_session_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    spark.conf.set(USER, "ann")
    spark.conf.set("spark.databricks.job.id", "77")
    change_in_every_way(spark, path)
    context = spark.sparkContext
    found = [*commits(path), *commits(f"{path}_copy")]
    assert len(found) >= 8
    for commit in found:
        assert commit["userName"] == "ann", commit["operation"]
        assert commit["job"] == {"jobId": "77", "runId": context.applicationId}, commit["operation"]
        assert commit["application"]["id"] == context.applicationId
        assert commit["application"]["name"] == context.appName
    row = DeltaTable.forPath(spark, path).history(1).select("job.*", "userName", "notebook").first()
    assert (row.runId, row.jobId, row.userName, row.notebook) == (context.applicationId, "77", "ann", None)


def test_nothing_is_told_where_that_is_not_wanted(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.conf.set(ORIGIN, "false")
    spark.conf.set(USER, "ann")
    rows = spark.range(4, numPartitions=1).write.format("pydelta").mode("append")
    rows.save(path)
    spark.conf.set("spark.pydelta.nativeWrite", "false")
    rows.save(path)
    DeltaTable.forPath(spark, path).delete("id = 1")
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
    found = commits(path)
    assert len(found) == 4
    for commit in found:
        assert not set(MADE_BY) & set(commit), commit["operation"]


def test_a_command_is_of_the_session_that_it_is_called_in(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(3).write.format("pydelta").save(path)
    other = spark.newSession()
    other.conf.set(USER, "bob")
    spark.conf.set(USER, "ann")
    for session in (other, spark, other):
        DeltaTable.forPath(session, path).setProperties({"delta.appendOnly": "false"})
    assert [commit["userName"] for commit in commits(path)[1:]] == ["bob", "ann", "bob"]


def test_a_setting_that_is_no_truth_value_is_refused_and_nothing_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set(ORIGIN, "perhaps")
    with pytest.raises(InvalidOptionError, match=r"spark\.pydelta\.commitInfo\.origin"):
        spark.range(3).write.format("pydelta").save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def test_a_commit_without_spark_outlives_the_jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        _jvm = object()

        @property
        def applicationId(self) -> str:
            raise Py4JNetworkError("Answer from Java side is empty")

    monkeypatch.setattr("delta_ds.spark.base.kinds.session_facts._settings_of_active", lambda jvm: {})
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", Gone())
    DeltaLog(tmp_path).write(pa.table({"id": [1]}))
    assert "application" not in commits(str(tmp_path))[0]


@pytest.mark.parametrize(
    ("server", "page", "expected"),
    [
        ("history:18080", "http://driver:4040", "http://history:18080/history/app-1"),
        ("https://ann:secret@history/", None, "https://history/history/app-1"),
        ("${hadoopconf-yarn.resourcemanager.hostname}:18080", "http://driver:4040", "http://driver:4040"),
        (None, "http://driver:4040", "http://driver:4040"),
        (None, None, None),
    ],
)
def test_the_history_server_goes_before_the_page_of_a_running_application(
    server: str | None, page: str | None, expected: str | None
) -> None:
    assert _address(server, "app-1", page) == expected
