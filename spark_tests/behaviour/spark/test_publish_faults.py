"""What Spark wrote for a version when publishing it fails: files that a version may name stay, others are deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import InvalidOptionError, StorageError, UncertainWriteError
from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.storage.log_store import ConditionalLogStore
from delta_ds.kernel.transaction.write.intent import WriteTarget, batch_intent
from delta_ds.kernel.transaction.write.plan import plan_write
from delta_ds.kernel.transaction.write.task import write_rows
from delta_ds.spark.engines.portable.writer import DeltaWriter, TaskMessage

REFUSED, LOST, INTERRUPTED, UNFORESEEN = "refused", "lost", "interrupted", "unforeseen"
FAULTS = {
    REFUSED: StorageError("503 SlowDown; nothing was written"),
    LOST: UncertainWriteError("it is not known whether version 2 was committed"),
    INTERRUPTED: KeyboardInterrupt(),
    UNFORESEEN: RuntimeError("a defect"),
}
CHANGES = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([i * 10 for i in ids], pa.int64())})


def write(spark: SparkSession, path: str) -> None:
    spark.sql("select 5L id, 50L v").write.format("pydelta").mode("append").save(path)


def update(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).update("id = 2", {"v": "v + 1"})


def merge(spark: SparkSession, path: str) -> None:
    source = spark.sql("select 2L id, 7L v union all select 9L, 9L")
    merging = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    merging.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def optimize(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).optimize().executeCompaction()


CASES: dict[str, tuple[Callable[[SparkSession, str], None], dict[str, str]]] = {
    "native write": (write, {}),
    "update by Arrow tasks": (update, CHANGES),
    "merge with vectors": (merge, VECTORS),
    "optimize": (optimize, {}),
}


def files(path: Path) -> set[Path]:
    return {file for file in path.rglob("*") if file.is_file() and "_delta_log" not in file.parts}


def found(path: Path) -> list[tuple[int, int]]:
    """The rows, read from every file that the newest version names."""
    data = DeltaLog(path).snapshot().scan().to_arrow()
    return sorted(zip(data["id"].to_pylist(), data["v"].to_pylist(), strict=True))


def failing(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    publish = ConditionalLogStore.publish

    def fail(self: ConditionalLogStore, version: int, data: bytes) -> None:
        if fault != REFUSED:
            publish(self, version, data)
        raise FAULTS[fault]

    monkeypatch.setattr(ConditionalLogStore, "publish", fail)


def table(path: Path, properties: dict[str, str]) -> None:
    log = DeltaLog(path)
    log.write(rows(1, 2), options=properties)
    log.write(rows(3, 4))


@pytest.mark.spark
@pytest.mark.parametrize("name", CASES)
def test_only_files_that_no_version_can_name_are_deleted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    command, properties = CASES[name]
    for fault, error in FAULTS.items():
        if fault == UNFORESEEN and command is not write:
            continue  # as an interrupt
        path = tmp_path / fault
        table(path, properties)
        before, there = found(path), files(path)
        with monkeypatch.context() as patched, pytest.raises(type(error)):
            failing(patched, fault)
            command(spark, str(path))
        published = DeltaLog(path).snapshot().version == 2
        assert published == (fault != REFUSED)
        assert there <= files(path)
        if published:
            assert (found(path) != before) == (command is not optimize)
            if properties == CHANGES:
                assert DeltaLog(path).changes(2, 2).to_arrow().num_rows == 2
        else:
            assert (found(path), files(path)) == (before, there)


@pytest.mark.spark
def test_a_setting_that_is_wrong_is_told_before_anything_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    table(tmp_path, {})
    before = files(tmp_path)
    spark.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "many")
    try:
        with pytest.raises(InvalidOptionError, match="autoCompact"):
            write(spark, str(tmp_path))
    finally:
        spark.conf.unset("spark.databricks.delta.autoCompact.minNumFiles")
    assert DeltaLog(tmp_path).snapshot().version == 1
    assert files(tmp_path) == before


@pytest.mark.parametrize("fault", FAULTS)
def test_a_driver_that_aborts_after_the_commit_leaves_what_a_version_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    table(tmp_path, {})
    before, log = files(tmp_path), DeltaLog(tmp_path)
    target = WriteTarget(batch_intent({"path": str(tmp_path)}, "append"), log.storage, log.open_snapshot())
    plan = plan_write(target, schema_from_arrow(rows().schema))
    messages = [TaskMessage(write_rows(plan, rows(n).to_batches(), n)) for n in (5, 6)]
    writer = DeltaWriter(plan)
    failing(monkeypatch, fault)
    with pytest.raises(type(FAULTS[fault])):
        writer.commit(messages)
    writer.abort(messages)
    ids = [number for number, _ in found(tmp_path)]
    assert ids == ([1, 2, 3, 4] if fault == REFUSED else [1, 2, 3, 4, 5, 6])
    assert (files(tmp_path) == before) == (fault == REFUSED)
