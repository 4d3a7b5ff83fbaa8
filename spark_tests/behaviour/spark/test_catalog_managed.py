"""Catalog-managed tables in Spark, by the options of their coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import delta_ds
from delta_ds import DeltaTable
from delta_ds.exceptions import UnsupportedFeatureError, UnsupportedOperationError
from delta_ds.kernel.storage.coordination.log_store import CoordinatedLogStore
from spark_tests.behaviour.kernel.storage.coordination.helpers import Managed

pytestmark = pytest.mark.spark


@pytest.fixture
def managed(tmp_path: Path) -> Managed:
    return Managed(tmp_path)


@pytest.fixture
def unpublished(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No commit of this process is published."""
    monkeypatch.setattr(CoordinatedLogStore, "back_fill", lambda self, version, data=None: None)
    yield


def options(managed: Managed) -> dict[str, str]:
    return delta_ds.catalog("sqlite", managed.options["coordinatorUrl"]).options(managed.table.name)


def test_rows_are_written_merged_and_read_before_anything_is_published(
    spark: SparkSession, managed: Managed, unpublished: None
) -> None:
    given = options(managed)
    spark.range(4).write.format("pydelta").options(**given).mode("append").save()
    spark.range(4, 6).write.format("pydelta").options(**given).mode("append").save()
    assert managed.published() == []
    of_store = {name: text for name, text in given.items() if name != "path"}
    table = DeltaTable.forPath(spark, given["path"], of_store)
    (
        table.alias("t")
        .merge(spark.range(5, 8).alias("s"), "t.id = s.id")
        .whenMatchedDelete()
        .whenNotMatchedInsertAll()
        .execute()
    )
    table.delete("id = 0")
    read = spark.read.format("pydelta").options(**given)
    assert sorted(row.id for row in read.load().collect()) == [1, 2, 3, 4, 6, 7]
    assert read.option("versionAsOf", "0").load().count() == 4
    assert [row.version for row in table.history().collect()] == [3, 2, 1, 0]
    assert managed.published() == []


def test_rows_that_match_written_ones_are_replaced(
    spark: SparkSession, managed: Managed, unpublished: None
) -> None:
    given = options(managed)
    spark.range(4).write.format("pydelta").options(**given).mode("append").save()
    writer = spark.range(2, 6).write.format("pydelta").options(**given).option("replaceUsing", "id")
    writer.mode("overwrite").save()
    rows = spark.read.format("pydelta").options(**given).load().collect()
    assert sorted(row.id for row in rows) == list(range(6))
    assert managed.published() == []


def test_streams_go_from_one_managed_table_to_another(
    spark: SparkSession, tmp_path: Path, unpublished: None
) -> None:
    source, sink = Managed(tmp_path, name="main.s.source"), Managed(tmp_path, name="main.s.sink")
    for number in range(3):
        source.append(number)

    def run() -> None:
        frame = spark.readStream.format("pydelta").options(**options(source)).load()
        query = (
            frame.writeStream.format("pydelta")
            .options(**options(sink))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300)

    run()
    source.append(3)
    run()
    assert sink.ids() == [0, 1, 2, 3]
    assert source.published() == []


def test_two_tables_are_read_at_one_moment(spark: SparkSession, tmp_path: Path) -> None:
    debits, credits = (Managed(tmp_path, name=f"main.bank.{name}") for name in ("debits", "credits"))
    debits.append(1)
    credits.append(1)
    moment = delta_ds.catalog("sqlite", debits.options["coordinatorUrl"]).moment(
        ["main.bank.debits", "main.bank.credits"]
    )
    debits.append(2)
    with pytest.raises(UnsupportedFeatureError):
        spark.read.format("pydelta").load(str(debits.path))
    frames = [spark.read.format("pydelta").options(**moment.options(name)).load() for name in moment.versions]
    assert [frame.count() for frame in frames] == [1, 1]


def test_optimize_is_refused_until_the_catalog_permits_it(spark: SparkSession, managed: Managed) -> None:
    for number in range(3):
        managed.append(number)
    table = DeltaTable.forPath(
        spark, str(managed.path), {f"storage.{k}": v for k, v in managed.options.items()}
    )
    with pytest.raises(UnsupportedOperationError, match="does not permit optimize"):
        table.optimize().executeCompaction()
    managed.coordinator.allow(managed.table.name, ["optimize"])
    table.optimize().executeCompaction()
    assert managed.open().open_snapshot().live_files().num_rows == 1
    assert managed.ids() == [0, 1, 2]
