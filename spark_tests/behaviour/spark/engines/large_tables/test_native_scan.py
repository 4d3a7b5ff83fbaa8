"""The native scan of large tables: the tests of the native scan, with the same rows and files, and what differs."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.transaction.post_commit import write_checkpoint
from delta_ds.spark.base.session_conf import LARGE_TABLE_CONF
from delta_ds.spark.engines import large_tables
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.spark.engines.classic.test_scan import *  # noqa: F403
from spark_tests.behaviour.spark.engines.classic.test_scan import index_of, listed, read

pytestmark = pytest.mark.long

# Both look at all files before any is read.
del test_rows_are_counted_for_the_cost_based_optimiser  # noqa: F821
del test_file_name_with_a_colon_is_read_portably  # noqa: F821


def test_size_of_a_large_table_is_that_of_its_checksum_file(spark: SparkSession, tmp_path: Path) -> None:
    def size() -> int:
        return int(read(spark, tmp_path / "t")._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())

    log = DeltaLog(str(tmp_path / "t"))
    log.write(pa.table({"id": [1]}))
    assert size() == log.snapshot().detail()["sizeInBytes"]
    (tmp_path / "t" / "_delta_log" / f"{0:020d}.crc").unlink()
    assert size() > 1 << 60


def test_file_name_with_a_colon_is_refused_once_it_is_found(spark: SparkSession, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t")
    builder.create(pa.schema([("id", pa.int64())]))
    builder.append(pa.table({"id": [7]}), path="a:b.parquet")
    builder.append(pa.table({"id": [8]}))
    frame = read(spark, tmp_path / "t")
    assert frame.where("id = 8").count() == 1
    with pytest.raises(DeltaError, match=r"colons.*spark\.pydelta\.nativeScan=false"):
        frame.collect()


def test_files_are_found_by_tasks_and_commits_after_the_checkpoint_count(
    spark: SparkSession, tmp_path: Path, every_table_is_large: list[int]
) -> None:
    builder = TableBuilder(tmp_path / "t")
    builder.create(pa.schema([("id", pa.int64())]))
    for n in range(4):
        builder.append(pa.table({"id": [n]}), path=f"{n}.parquet")
    log = DeltaLog(str(tmp_path / "t"))
    write_checkpoint(log.storage, log.open_snapshot().segment)
    builder.commit({"remove": {"path": "1.parquet", "dataChange": True, "deletionTimestamp": 1}})
    builder.append(pa.table({"id": [4]}), path="4.parquet")
    frame = read(spark, tmp_path / "t")
    assert sorted(row.id for row in frame.collect()) == [0, 2, 3, 4]
    assert listed(frame.where("id >= 3")) == 2
    assert every_table_is_large == [1, 1]
    assert not index_of(frame).snapshot.is_loaded


def test_a_table_below_the_bound_is_planned_by_the_driver(
    spark: SparkSession, partitioned: Path, every_table_is_large: list[int]
) -> None:
    log = DeltaLog(str(partitioned))
    write_checkpoint(log.storage, log.open_snapshot().segment)
    spark.conf.set(LARGE_TABLE_CONF, "1000")
    assert listed(read(spark, partitioned).where("id = 5")) == 1
    assert every_table_is_large == []


def test_a_bound_that_is_no_number_is_refused(spark: SparkSession, partitioned: Path) -> None:
    spark.conf.set(LARGE_TABLE_CONF, "many")
    with pytest.raises(DeltaError, match=r"spark\.pydelta\.largeTableFiles"):
        read(spark, partitioned).collect()


def test_tasks_without_the_package_leave_it_to_the_driver(
    spark: SparkSession,
    partitioned: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object) -> list[bytes]:
        raise RuntimeError("... ModuleNotFoundError: No module named 'delta_ds' ...")

    monkeypatch.setattr(large_tables, "map_in_tasks", fail)
    with caplog.at_level(logging.WARNING, "delta_ds"):
        assert listed(read(spark, partitioned).where("id = 5")) == 1
    (line,) = [r.getMessage() for r in caplog.records if r.getMessage().startswith("distributed_planning")]
    assert str(partitioned) in line


def test_a_failure_of_another_kind_is_the_users(
    spark: SparkSession, partitioned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> list[bytes]:
        raise DeltaError("the store does not answer")

    monkeypatch.setattr(large_tables, "map_in_tasks", fail)
    with pytest.raises(Exception, match="the store does not answer"):
        read(spark, partitioned).collect()


def test_a_damaged_checkpoint_is_passed_over_by_the_driver(
    spark: SparkSession, partitioned: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = DeltaLog(str(partitioned))
    write_checkpoint(log.storage, log.open_snapshot().segment)
    frame = read(spark, partitioned)
    (checkpoint,) = (partitioned / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    with caplog.at_level(logging.WARNING, "delta_ds"):
        assert frame.count() == 100
    assert any(r.getMessage().startswith("checkpoint_passed_over") for r in caplog.records)


def test_input_files_are_all_live_files(spark: SparkSession, partitioned: Path) -> None:
    frame = read(spark, partitioned)
    live = DeltaLog(str(partitioned)).snapshot().files()["path"].to_pylist()
    assert sorted(frame.inputFiles()) == sorted(f"file:{partitioned}/{path}" for path in live)
