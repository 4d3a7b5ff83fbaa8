"""Settings of delta-storage's log stores, as users of delta-spark pass them."""

from __future__ import annotations

import pytest

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.storage.dynamodb import DynamoDBSettings, dynamodb_settings
from delta_ds.kernel.storage.hadoop_options import is_hadoop_setting, settings_of_store, to_storage_options
from delta_ds.kernel.storage.store_options import uses_dynamodb

BROKER = "io.delta.storage.S3DynamoDBLogStore"


@pytest.mark.parametrize("prefix", ["", "spark."])
def test_settings_of_the_dynamodb_log_store_are_understood(prefix: str) -> None:
    settings = {
        f"{prefix}delta.logStore.s3a.impl": BROKER,
        f"{prefix}{BROKER}.ddb.tableName": "commits",
        f"{prefix}{BROKER}.ddb.region": "eu-central-1",
        f"{prefix}{BROKER}.ddb.ttl": "60",
    }
    assert all(is_hadoop_setting(name) for name in settings)
    options = to_storage_options(settings)
    assert uses_dynamodb(options)
    assert dynamodb_settings(options) == DynamoDBSettings(table="commits", region="eu-central-1", ttl=60)


def test_naming_a_dynamodb_table_is_enough() -> None:
    assert uses_dynamodb(to_storage_options({f"{BROKER}.ddb.tableName": "commits"}))
    assert not uses_dynamodb({"key": "x"})


@pytest.mark.parametrize(
    "settings",
    [
        {f"{BROKER}.credentials.provider": "com.example.Provider"},
        {"delta.logStore.s3a.impl": "io.delta.storage.S3SingleDriverLogStore"},
        {f"{BROKER}.ddb.tableName": "a", f"spark.{BROKER}.ddb.tableName": "b"},
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(settings: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError, match=r"(?i)logstore"):
        to_storage_options(settings)


@pytest.mark.parametrize(
    "name", ["spark.fs.s3a.access.key", "delta.appendOnly", "io.delta.other", "storage.key"]
)
def test_other_settings_are_not_hadoops(name: str) -> None:
    assert not is_hadoop_setting(name)


@pytest.mark.parametrize("options", [{"ddbTtlSeconds": "-1"}, {"ddbScheme": "gs"}, {"ddbCreateTable": "yes"}])
def test_broker_options_with_impossible_values_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError, match=next(iter(options))):
        dynamodb_settings(options)


def test_settings_of_a_store_are_those_that_say_how_it_is_opened() -> None:
    properties = {
        "fs.s3n.access.key": "all",
        "fs.s3a.bucket.mine.access.key": "mine",
        "fs.s3a.bucket.other.secret.key": "other",
        "fs.s3a.endpoint": " ",
        "fs.s3a.connection.maximum": "500",
        "spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore",
        "delta.logStore.s3.impl": "org.example.Store",
        "spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName": "log",
        "fs.gs.project.id": "project",
        "fs.azure.account.key.one.dfs.core.windows.net": "key",
        "spark.sql.shuffle.partitions": "2",
    }
    assert settings_of_store(properties, "s3", "mine") == {
        "fs.s3a.access.key": "mine",
        "delta.logstore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore",
        "io.delta.storage.s3dynamodblogstore.ddb.tablename": "log",
    }
    del properties["spark.delta.logStore.s3a.impl"]
    assert settings_of_store(properties, "s3", "mine") == {"fs.s3a.access.key": "mine"}
    assert settings_of_store(properties, "gs", "mine") == {"fs.gs.project.id": "project"}
    assert set(settings_of_store(properties, "abfs", "mine").values()) == {"key"}
    assert settings_of_store(properties, "hdfs", "host") == {}
    for scheme in ("s3", "gs", "abfs"):
        # Whatever is found is known: no setting of a session makes a table unreadable.
        to_storage_options(settings_of_store(properties, scheme, "mine"))
