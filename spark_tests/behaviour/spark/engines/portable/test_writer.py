"""What tasks of the portable writer leave behind: nothing that no version names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import StorageError
from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.transaction.write.intent import APPEND, batch_intent, find_target
from delta_ds.kernel.transaction.write.plan import plan_write
from delta_ds.spark.engines.portable.writer import DeltaWriter

ROWS = pa.table({"id": pa.array(range(8), pa.int64()), "p": pa.array([n % 2 for n in range(8)], pa.int64())})


def writer(path: Path, by: str) -> DeltaWriter:
    options = {"path": str(path), "timeZone": "UTC", **({"partitionBy": by} if by else {})}
    return DeltaWriter(plan_write(find_target(batch_intent(options, APPEND)), schema_from_arrow(ROWS.schema)))


def files(path: Path) -> list[str]:
    return sorted(
        str(found.relative_to(path)) for found in path.rglob("*") if "_delta_log" not in found.parts
    )


@pytest.mark.parametrize("by", ["", "p"])
def test_a_task_that_a_failed_query_does_not_wait_for_leaves_nothing(tmp_path: Path, by: str) -> None:
    failed = writer(tmp_path, by)
    done = failed.write(iter(ROWS.to_batches()))

    def rows_of_a_late_task() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        failed.abort([done, None])

    with pytest.raises(StorageError, match="the write was given up"):
        failed.write(rows_of_a_late_task())
    assert files(tmp_path) == []


@pytest.mark.parametrize("by", ["", "p"])
def test_of_a_task_that_ran_twice_one_attempt_stays(tmp_path: Path, by: str) -> None:
    twice = writer(tmp_path, by)
    attempts = [twice.write(iter(ROWS.to_batches())) for _ in range(2)]

    def rows_of_a_third() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        twice.commit(attempts[:1])

    with pytest.raises(StorageError, match="the write was given up"):
        twice.write(rows_of_a_third())
    snapshot = DeltaLog(str(tmp_path)).snapshot()
    assert snapshot.scan().count() == ROWS.num_rows
    assert [file for file in files(tmp_path) if file.endswith(".parquet")] == sorted(
        snapshot.files()["path"].to_pylist()
    )


def test_a_write_of_no_rows_leaves_no_folder(tmp_path: Path) -> None:
    empty = writer(tmp_path, "")
    empty.commit([empty.write(iter(()))])
    assert files(tmp_path) == []
