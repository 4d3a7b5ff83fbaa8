"""Settings of delta-storage's log stores, as users of delta-spark pass them."""

from __future__ import annotations

import pytest

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.storage.dynamodb import BrokerSettings, broker_settings
from delta_ds.kernel.storage.hadoop_options import is_hadoop_setting, to_storage_options
from delta_ds.kernel.storage.store_options import is_brokered

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
    assert is_brokered(options)
    assert broker_settings(options) == BrokerSettings(table="commits", region="eu-central-1", ttl=60)


def test_naming_a_dynamodb_table_is_enough() -> None:
    assert is_brokered(to_storage_options({f"{BROKER}.ddb.tableName": "commits"}))
    assert not is_brokered({"key": "x"})


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
        broker_settings(options)
