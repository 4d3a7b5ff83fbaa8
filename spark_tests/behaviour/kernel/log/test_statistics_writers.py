"""Which engines' bounds of floats hold for NaN: told by the log, never guessed."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.kernel.log.later_statistics import statistics_count_nan
from delta_ds.testing import TableBuilder

DELTA_SPARK = "Apache-Spark/4.2.0 Delta-Lake/4.4.0"
FOREIGN = "delta-rs:py-1.6.6"
ROWS = pa.table({"id": [1, 2], "f": [1.0, math.nan]})
WITHOUT_NAN = {
    "numRecords": 2,
    "minValues": {"id": 1, "f": 1.0},
    "maxValues": {"id": 2, "f": 1.0},
    "nullCount": {"id": 0, "f": 0},
}


def built(folder: Path, *engines: str | None, operation: str = "WRITE") -> DeltaLog:
    """A table that began here, and a commit an engine; only files of the foreign one hold NaN beyond their bounds."""
    log = DeltaLog(str(folder))
    log.write(pa.table({"id": [0], "f": [0.0]}))
    table = TableBuilder(folder)
    for version, engine in enumerate(engines, start=1):
        rows = pa.table({"id": [1, 2], "f": [1.0, 1.0]}) if engine == DELTA_SPARK else ROWS
        add = table.write_file(rows, path=f"{version}.parquet", stats=WITHOUT_NAN)
        info = {} if engine is None else {"engineInfo": engine}
        table.commit(add, version=version, operation=operation, **info)
    return log


def counts_nan(log: DeltaLog) -> bool:
    snapshot = log.open_snapshot()
    return statistics_count_nan(snapshot.storage, snapshot.segment)


def test_files_of_engines_that_count_nan_are_skipped(tmp_path: Path) -> None:
    log = built(tmp_path, DELTA_SPARK, DELTA_SPARK)
    assert counts_nan(log)
    assert log.snapshot().scan("f > 5").num_files == 0
    assert log.snapshot().scan("f > 0.5").num_files == 2


@pytest.mark.parametrize("engine", [FOREIGN, None, "Trino/480", "Delta-Lake-like/1"])
def test_one_commit_of_another_engine_is_enough_for_doubt(tmp_path: Path, engine: str | None) -> None:
    log = built(tmp_path, DELTA_SPARK, engine, DELTA_SPARK)
    assert not counts_nan(log)
    assert log.snapshot().scan("f > 5").to_arrow()["id"].to_pylist() == [2]


@pytest.mark.parametrize("operation", ["CLONE", "RESTORE", "CONVERT"])
def test_commits_that_copy_files_say_nothing_of_their_statistics(tmp_path: Path, operation: str) -> None:
    assert not counts_nan(built(tmp_path, DELTA_SPARK, operation=operation))


@pytest.mark.parametrize("policy", ["classic", "v2"])
@pytest.mark.parametrize("engine", [DELTA_SPARK, FOREIGN])
def test_a_checkpoint_keeps_what_is_known_of_its_writers(tmp_path: Path, engine: str, policy: str) -> None:
    log = DeltaLog(str(tmp_path))
    log.write(pa.table({"id": [0], "f": [0.0]}), options={"delta.checkpointPolicy": policy})
    add = TableBuilder(tmp_path).write_file(ROWS, path="x.parquet", stats=WITHOUT_NAN)
    TableBuilder(tmp_path).commit(add, version=1, engineInfo=engine)
    log.checkpoint()
    log = DeltaLog(str(tmp_path))
    assert log.open_snapshot().segment.checkpoint is not None
    assert counts_nan(log) == (engine == DELTA_SPARK)
    assert log.snapshot().scan("f > 5").num_files == (0 if engine == DELTA_SPARK else 2)
    for _ in range(2):  # and from one checkpoint to the next
        log.write(pa.table({"id": [3], "f": [0.0]}))
        log.checkpoint()
    assert counts_nan(DeltaLog(str(tmp_path))) == (engine == DELTA_SPARK)


@pytest.mark.parametrize("kind", ["v1", "v2-parquet", "v2-json"])
def test_a_checkpoint_that_does_not_name_its_writer_is_doubted(tmp_path: Path, kind: str) -> None:
    table = TableBuilder(tmp_path)
    table.create(ROWS.schema)
    table.append(ROWS, stats=WITHOUT_NAN)
    table.checkpoint(kind)  # type: ignore[arg-type]
    log = DeltaLog(str(tmp_path))
    assert not counts_nan(log)
    assert log.snapshot().scan("f > 5").to_arrow()["id"].to_pylist() == [2]


def test_a_long_commit_info_is_read_to_its_end(tmp_path: Path) -> None:
    log = built(tmp_path)
    TableBuilder(tmp_path).commit(
        version=1, operation="DELETE", predicate="x" * 100_000, engineInfo=DELTA_SPARK
    )
    assert counts_nan(log)


def test_own_files_with_nan_are_found(tmp_path: Path) -> None:
    log = DeltaLog(str(tmp_path))
    log.write(ROWS)
    log.write(pa.table({"id": [3], "f": [1.0]}))
    assert counts_nan(log)
    for predicate in ("f > 5", "f = double('NaN')"):
        scan = log.snapshot().scan(predicate)
        assert (scan.num_files, scan.to_arrow()["id"].to_pylist()) == (1, [2])
