"""Spark's own reader and writer on `s3a://` and `hdfs://`: one setting opens both sides.

Hadoop's client of Azure has no setting for an emulator's address: it is told a proxy, and the kernel the emulator.
"""

from __future__ import annotations

import json
import logging
import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from delta_ds.kernel.storage.open import open_storage
from spark_tests.engines.stores.relay import Relay, relay
from spark_tests.engines.stores.servers import (
    FOLDER,
    free_port,
    mini_hdfs,
    missing,
    module,
    program,
    running,
)
from spark_tests.engines.stores.test_servers import (
    AZURE_ACCOUNT,
    AZURE_KEY,
    BUCKET,
    azurite_options,
    gcs_options,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.stores, pytest.mark.spark, pytest.mark.slow]

HADOOP = "3.5.0"  # the one of the tested Spark
ODD = "t 1%20x ü+&#"
AZURE_HOST = f"{AZURE_ACCOUNT}.blob.core.windows.net"
GCS = {
    "fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
    "fs.gs.project.id": "p",
    "fs.gs.auth.type": "UNAUTHENTICATED",
    # Hadoop 3.5 has defaults for its own client of the same names, in units that this one does not read.
    "fs.gs.block.size": "67108864",
    "fs.gs.inputstream.inplace.seek.limit": "8388608",
    "fs.gs.inputstream.min.range.request.size": "2097152",
    "fs.gs.outputstream.buffer.size": "8388608",
}
KEYS = {"spark.hadoop.fs.s3a.access.key": "test-user", "spark.hadoop.fs.s3a.secret.key": "test-password"}


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    module("s3fs")
    import s3fs

    server, port, folder = program("minio"), free_port(), tmp_path_factory.mktemp("minio")
    command = [server, "server", str(folder / "data"), "--address", f"127.0.0.1:{port}"]
    login = {"MINIO_ROOT_USER": "test-user", "MINIO_ROOT_PASSWORD": "test-password"}
    with running(command, port, folder / "log", **login), relay(port) as counting:
        own = s3fs.S3FileSystem(
            key="test-user", secret="test-password", endpoint_url=f"http://127.0.0.1:{counting.port}"
        )
        own.mkdir("tables")
        yield counting


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    module("hdfs_native")
    with mini_hdfs(tmp_path_factory.mktemp("hdfs")) as (port, _):
        yield port


__all__ = ["azurite_options", "gcs_options"]  # fixtures


def _gcs_connector() -> str:
    found = sorted(Path(os.environ.get(FOLDER, "")).glob("hadoop/gcs-connector*shaded.jar"))
    if not found:
        missing(f"there is no gcs-connector in the folder hadoop of {FOLDER}")
    return str(found[0])


@pytest.fixture(scope="module")
def session(
    minio: Relay,
    gcs_options: dict[str, Any],
    azurite_options: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SparkSession]:
    """A session whose tasks are tried three times, told of the stores by Hadoop's settings alone."""
    from pyspark.sql import SparkSession

    import delta_ds

    azurite = str(
        re.search(r"BlobEndpoint=(http://127.0.0.1:([0-9]+))/", azurite_options["connection_string"])[1]
    )  # type: ignore[index]
    settings = {
        "spark.jars.packages": f"org.apache.hadoop:hadoop-aws:{HADOOP},org.apache.hadoop:hadoop-azure:{HADOOP}",
        "spark.jars": _gcs_connector(),
        # Hadoop's client of S3 would ask the proxy as well.
        "spark.driver.extraJavaOptions": "-Dhttp.proxyHost=127.0.0.1 -Dhttp.nonProxyHosts=127.0.0.1 "
        f"-Dhttp.proxyPort={azurite.rpartition(':')[2]}",
        **{f"spark.hadoop.{name}": value for name, value in GCS.items()},
        "spark.hadoop.fs.gs.storage.root.url": f"{gcs_options['endpoint_url']}/",
        f"spark.hadoop.fs.azure.account.key.{AZURE_HOST}": AZURE_KEY,
        "spark.hadoop.fs.azure.always.use.https": "false",
        "spark.hadoop.fs.azure.account.hns.enabled": "false",
        "spark.hadoop.fs.azure.fns.account.service.type": "BLOB",
        "spark.hadoop.fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.hadoop.fs.s3a.endpoint": f"http://127.0.0.1:{minio.port}",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        **KEYS,
    }
    builder = SparkSession.builder.master("local[2,3]").appName("delta_ds on stores")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
        patch.setenv("AZURITE_BLOB_STORAGE_URL", azurite)
        made = builder.getOrCreate()
        made.sparkContext.setLogLevel("OFF")
        delta_ds.register(made)
        yield made
        delta_ds.unregister(made)
        made.stop()


@pytest.fixture(params=["s3a", "s3", "s3n", "hdfs"])
def base(request: pytest.FixtureRequest, session: SparkSession) -> str:
    """An empty folder of a store."""
    if request.param == "hdfs":
        return f"hdfs://127.0.0.1:{request.getfixturevalue('hdfs')}/{uuid.uuid4().hex}"
    if request.param == "abfs":
        return f"abfs://{BUCKET}@{AZURE_HOST}/{uuid.uuid4().hex}"
    return f"{request.param}://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture
def reasons(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the portable path was taken for; a list that grows."""
    caplog.set_level(logging.INFO, "delta_ds")
    return _Reasons(caplog)


class _Reasons(list[str]):
    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    def __eq__(self, other: object) -> bool:
        told = [record.getMessage() for record in self._caplog.records]
        return [text for text in told if text.startswith("portable_")] == other

    __hash__ = None  # type: ignore[assignment]


def rows(spark: SparkSession, count: int) -> DataFrame:
    """`id`, `v` and a partition column whose values have to be escaped."""
    return spark.range(count).selectExpr("id", "id * 2 AS v", "concat('a b%/ü=', id % 3) AS p")


def read(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    return spark.read.format("pydelta").options(**options).load(path)


def total(frame: DataFrame) -> tuple[int, int]:
    (row,) = frame.selectExpr("count(*)", "sum(v)").collect()
    return row[0], row[1]


def test_a_table_of_an_odd_name_lives_by_sparks_own_reader_and_writer(
    session: SparkSession, base: str, reasons: list[str]
) -> None:
    from delta_ds import DeltaTable

    path = f"{base}/{ODD}"
    rows(session, 30).write.format("pydelta").partitionBy("p").save(path)
    rows(session, 60).where("id >= 30").write.format("pydelta").mode("append").save(path)
    assert total(read(session, path)) == (60, 3540)
    assert total(read(session, path).where("p = 'a b%/ü=1' AND id > 30")) == (10, 890)
    table = DeltaTable.forPath(session, path)
    table.delete("id % 10 = 3")
    table.setProperties({"delta.enableDeletionVectors": "true"})
    table.update("id % 10 = 4", {"v": "0"})
    source = rows(session, 70).where("id >= 50").selectExpr("id", "7 AS v", "p")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    wanted = {id: (0 if id % 10 == 4 else id * 2) for id in range(60) if id % 10 != 3}
    wanted |= dict.fromkeys(range(50, 70), 7)
    assert dict(read(session, path).select("id", "v").collect()) == wanted
    table.optimize().executeCompaction()
    assert dict(read(session, path).select("id", "v").collect()) == wanted
    assert total(read(session, path, versionAsOf=0)) == (30, 870)
    rows(session, 9).write.format("pydelta").mode("overwrite").save(path)
    assert total(read(session, path)) == (9, 72)
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        table.vacuum(0)
    finally:
        session.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert total(read(session, path)) == (9, 72)
    assert reasons == []


def test_a_clone_reads_its_source_by_the_scheme_that_the_session_knows(
    session: SparkSession, base: str, reasons: list[str]
) -> None:
    from delta_ds import DeltaTable

    path, clone = f"{base}/{ODD}", f"{base}/clone"
    rows(session, 10).write.format("pydelta").partitionBy("p").save(path)
    DeltaTable.forPath(session, path).clone(clone, isShallow=True)
    assert total(read(session, clone)) == (10, 90)
    DeltaTable.forPath(session, clone).delete("id < 5")
    assert total(read(session, clone)) == (5, 70)
    scheme = base.partition(":")[0]
    log = DeltaTable.forPath(session, clone).detail().first()
    assert log is not None
    assert log["location"] == clone
    files = {one.partition(":")[0] for one in read(session, clone).inputFiles()}
    assert files == {"s3a" if scheme.startswith("s3") else scheme}
    assert reasons == []


def test_a_name_of_the_catalog_finds_a_folder_of_an_odd_name(session: SparkSession, base: str) -> None:
    path = f"{base}/{ODD}"
    rows(session, 10).write.format("pydelta").save(path)
    session.sql(f"CREATE TABLE odd USING pydelta LOCATION '{path}'")
    try:
        session.sql("INSERT INTO odd SELECT id + 10, v, p FROM odd")
        assert total(session.table("odd")) == (20, 180)
    finally:
        session.sql("DROP TABLE odd")


def test_a_stream_goes_from_table_to_table(session: SparkSession, base: str) -> None:
    rows(session, 10).write.format("pydelta").save(f"{base}/in")
    for _ in range(2):
        stream = session.readStream.format("pydelta").load(f"{base}/in").writeStream.format("pydelta")
        started = stream.option(
            "checkpointLocation", f"{base.replace('s3://', 's3a://').replace('s3n:', 's3a:')}/c"
        )
        started.trigger(availableNow=True).start(f"{base}/out").awaitTermination()
        rows(session, 20).where("id >= 10").write.format("pydelta").mode("append").save(f"{base}/in")
    assert total(read(session, f"{base}/out")) == (20, 380)


def test_a_write_and_a_merge_copy_no_object(session: SparkSession, minio: Relay) -> None:
    from delta_ds import DeltaTable

    path = f"s3a://tables/{uuid.uuid4().hex}/t"
    rows(session, 1000).repartition(4).write.format("pydelta").partitionBy("p").save(path)
    minio.seen.clear()
    rows(session, 2000).where("id >= 1000").repartition(4).write.format("pydelta").mode("append").save(path)
    source = rows(session, 1500).selectExpr("id * 2 AS id", "1 AS v", "p")
    table = DeltaTable.forPath(session, path).alias("t")
    table.merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert minio.seen["PUT"] >= 12 + 1
    assert minio.seen["COPY"] == 0


def test_files_of_attempts_that_failed_are_not_in_the_table(
    session: SparkSession, base: str, tmp_path: Path
) -> None:
    from pyspark.sql import functions as F

    mark = str(tmp_path / "failed")

    @F.udf("bigint")
    def fail_once_at_900(value: int) -> int:
        import os

        if value == 900 and not os.path.exists(mark):
            open(mark, "w").close()
            raise RuntimeError("the first attempt fails, with most of its file written")
        return value

    path = f"{base}/t"
    frame = session.range(0, 1000, 1, 1).select(
        fail_once_at_900("id").alias("id"), F.lit("x" * 200).alias("text")
    )
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "50")
    frame.write.format("pydelta").save(path)
    assert Path(mark).exists()
    assert sorted(row[0] for row in read(session, path).select("id").collect()) == list(range(1000))
    storage = open_storage(path, _options(session, base.partition(":")[0]))
    adds = [
        json.loads(line)["add"]["path"]
        for line in storage.read("_delta_log/00000000000000000000.json").splitlines()
        if b'"add"' in line
    ]
    found = [
        row["path"] for batch in storage.list_below() for row in batch.to_pylist() if not row["is_folder"]
    ]
    assert [path for path in found if path.endswith(".parquet")] == [storage.resolve(path) for path in adds]


def _options(session: SparkSession, scheme: str) -> dict[str, str]:
    """The settings of the session for a store, as options of the kernel."""
    from delta_ds.spark.base.kinds.session_facts import with_session_settings

    place = f"abfs://{BUCKET}@{AZURE_HOST}/t" if scheme == "abfs" else f"{scheme}://{BUCKET}/t"
    found = with_session_settings(session, {"path": place})
    del found["path"]
    return found
