"""Stores in a session: whose credentials count, and errors that say which store does what not."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from delta_ds import DeltaTable
from delta_ds.exceptions import InvalidOptionError, StorageError
from spark_tests.engines.stores.signed_requests import SignedRequests

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

PROVIDER = "fs.s3a.aws.credentials.provider"


@pytest.fixture(scope="module")
def server() -> Iterator[SignedRequests]:
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    pytest.importorskip("moto.server", reason="moto[server] is not installed")
    server = SignedRequests()
    yield server
    server.stop()


@pytest.fixture
def lake(server: SignedRequests, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    bucket = f"lake-{uuid.uuid4()}"
    server.make_bucket(bucket)
    return f"s3a://{bucket}/t"


@pytest.fixture
def session(spark: SparkSession, server: SignedRequests) -> Iterator[dict[str, str]]:
    """Settings of the session for the emulated S3; what a test adds is taken back too."""
    settings = {
        "fs.s3a.endpoint": server.url, "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "key-of-session", "fs.s3a.secret.key": "s",
    }  # fmt: skip
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield settings
    for name in (*settings, PROVIDER):
        spark.conf.unset(name)


def signers(server: SignedRequests, spark: SparkSession, path: str, **options: str) -> set[str | None]:
    return server.of(lambda: spark.read.format("pydelta").options(**options).load(path).count())[0]


def characters(spark: SparkSession, text: str) -> Any:
    gateway: Any = spark.sparkContext._gateway
    array = gateway.new_array(gateway.jvm.char, len(text))
    for at, character in enumerate(text):
        array[at] = character
    return array


def test_options_go_before_the_session_and_this_before_the_environment(
    spark: SparkSession,
    server: SignedRequests,
    session: dict[str, str],
    lake: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-of-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    wrote, _ = server.of(lambda: spark.range(5).write.format("pydelta").save(lake))
    assert wrote == {"key-of-session"}
    assert signers(server, spark, lake) == {"key-of-session"}
    mine = {"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": "s"}
    for options in (mine, {"fs.s3a.access.key": "mine", "storage.secret": "s"}):
        assert signers(server, spark, lake, **options) == {"mine"}
    table = DeltaTable.forPath(spark, lake, mine)
    assert server.of(lambda: table.history().count())[0] == {"mine"}
    for name in ("fs.s3a.access.key", "fs.s3a.secret.key"):
        spark.conf.unset(name)
    by_driver, _ = server.of(lambda: DeltaTable.forPath(spark, lake).history().count())
    assert by_driver == {"key-of-environment"}


def test_a_missing_bucket_is_no_empty_folder_and_is_not_made(
    spark: SparkSession, server: SignedRequests, session: dict[str, str], lake: str
) -> None:
    path = lake.replace("lake-", "no-lake-")
    calls: list[Any] = [
        lambda: spark.read.format("pydelta").load(path),
        lambda: spark.range(1).write.format("pydelta").save(path),
        lambda: spark.range(1).write.format("pydelta").mode("overwrite").save(path),
        lambda: DeltaTable.forPath(spark, path),
        lambda: DeltaTable.createIfNotExists(spark).location(path).addColumn("id", "long").execute(),
        lambda: spark.sql(f"SELECT * FROM pydelta.`{path}`"),
    ]
    for call in calls:
        with pytest.raises(StorageError, match="there is no bucket 'no-lake-.*at http://127.0.0.1") as caught:
            call()
        assert caught.value.condition == "DELTA_STORAGE_ERROR.BUCKET_NOT_FOUND"
    with pytest.raises(StorageError, match="no bucket"):  # the writes have not made it
        calls[0]()


def test_names_that_do_not_exist_and_contradictions_are_refused_before_anything_is_read(
    spark: SparkSession, session: dict[str, str], lake: str
) -> None:
    spark.range(1).write.format("pydelta").save(lake)
    wrong = {
        "AWS_ACESS_KEY_ID": "AWS_ACCESS_KEY_ID",
        "fs.s3a.acces.key": "fs.s3a.access.key",
        "storage.secrt": "secret",
    }
    for name, near in wrong.items():
        calls: list[Any] = [
            lambda name=name: spark.read.format("pydelta").option(name, "x").load(lake),
            lambda name=name: (
                spark.range(1).write.format("pydelta").mode("append").option(name, "x").save(lake)
            ),
            lambda name=name: DeltaTable.forPath(spark, lake, {name: "x"}),
        ]
        for call in calls:
            with pytest.raises(InvalidOptionError, match=f"(?i)did you mean '{near}'"):
                call()
    reader = spark.read.format("pydelta").option("AWS_REGION", "a").option("fs.s3a.endpoint.region", "b")
    with pytest.raises(
        InvalidOptionError, match="(?i)'AWS_REGION' and 'fs.s3a.endpoint.region'|endpoint.region.*AWS_REGION"
    ):
        reader.load(lake)
    assert DeltaTable.forPath(spark, lake).history().count() == 1


def test_a_provider_of_the_session_without_counterpart_is_refused_unless_options_say_who_asks(
    spark: SparkSession, server: SignedRequests, session: dict[str, str], lake: str
) -> None:
    spark.range(1).write.format("pydelta").save(lake)
    spark.conf.set(PROVIDER, "com.example.Mine")
    with pytest.raises(InvalidOptionError, match="'com.example.Mine'.*no counterpart"):
        spark.read.format("pydelta").load(lake)
    mine = {"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": "s"}
    assert signers(server, spark, lake, **mine) == {"mine"}


def test_keys_in_a_key_store_of_hadoop_count_as_the_sessions(
    spark: SparkSession, server: SignedRequests, session: dict[str, str], lake: str, tmp_path: Path
) -> None:
    spark.range(3).write.format("pydelta").save(lake)
    for name in ("fs.s3a.access.key", "fs.s3a.secret.key"):
        spark.conf.unset(name)
    setting = "hadoop.security.credential.provider.path"
    jvm = spark._jvm
    assert jvm is not None
    conf = jvm.org.apache.hadoop.conf.Configuration()
    conf.set(setting, f"localjceks://file{tmp_path}/keys.jceks")
    store = jvm.org.apache.hadoop.security.alias.CredentialProviderFactory.getProviders(conf)[0]
    for name, value in {"fs.s3a.access.key": "key-of-store", "fs.s3a.secret.key": "s"}.items():
        store.createCredentialEntry(name, characters(spark, value))
    store.flush()
    spark.conf.set(setting, conf.get(setting))
    try:
        assert signers(server, spark, lake) == {"key-of-store"}
        bucket = lake.split("/")[2]
        store.createCredentialEntry(f"fs.s3a.bucket.{bucket}.access.key", characters(spark, "key-of-bucket"))
        store.flush()
        assert signers(server, spark, lake) == {"key-of-bucket"}
    finally:
        spark.conf.unset(setting)
