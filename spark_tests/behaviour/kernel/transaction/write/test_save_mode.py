"""`ifExists`: a table where a write wanted to create one, also one that appears while it writes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import ProtocolChangedException, TableExistsError
from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.transaction.write.arrow import write_arrow
from delta_ds.kernel.transaction.write.finish import finish_write
from delta_ds.kernel.transaction.write.intent import batch_intent, find_target
from delta_ds.kernel.transaction.write.plan import WritePlan, plan_write
from delta_ds.kernel.transaction.write.task import write_rows

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


def ids(path: Path) -> list[int]:
    return sorted(DeltaLog(path).snapshot().scan().to_arrow()["id"].to_pylist())


def files(path: Path) -> int:
    return len(list(path.glob("**/*.parquet")))


def write(path: Path, **options: str) -> int | None:
    return write_arrow(DeltaLog(path).start_transaction(create=True), ROWS, "append", options)


def plan(path: Path, **options: str) -> WritePlan:
    """Of a table that is not there yet."""
    intent = batch_intent({"path": str(path), **options}, "append")
    return plan_write(find_target(intent), schema_from_arrow(ROWS.schema))


@pytest.mark.parametrize(("word", "mode"), [("error", "ErrorIfExists"), ("Ignore", "Ignore")])
def test_new_table_is_created_and_history_names_the_mode(tmp_path: Path, word: str, mode: str) -> None:
    assert write(tmp_path / "t", ifExists=word) == 0
    assert DeltaLog(tmp_path / "t").history()[0]["operationParameters"]["mode"] == mode


def test_table_that_is_there_is_an_error_or_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "t")
    before = files(tmp_path)
    with pytest.raises(TableExistsError, match="DELTA_PATH_EXISTS"):
        write(tmp_path / "t", ifExists="error")
    assert write(tmp_path / "t", ifExists="ignore") is None
    assert (ids(tmp_path / "t"), files(tmp_path)) == ([1, 2], before)


def test_table_that_appears_while_rows_are_written_counts(tmp_path: Path) -> None:
    plans = {word: plan(tmp_path / "t", ifExists=word) for word in ("error", "ignore")}
    written = {word: [write_rows(p, ROWS.to_batches())] for word, p in plans.items()}
    write(tmp_path / "t")
    with pytest.raises(TableExistsError, match="DELTA_PATH_EXISTS") as caught:
        finish_write(plans["error"], written["error"])
    assert caught.value.parameters["version"] == 0
    assert finish_write(plans["ignore"], written["ignore"]) is None
    assert (ids(tmp_path / "t"), files(tmp_path)) == ([1, 2], 1)


def test_without_it_the_conflict_is_what_happened(tmp_path: Path) -> None:
    late = plan(tmp_path / "t")
    written = [write_rows(late, ROWS.to_batches())]
    write(tmp_path / "t")
    with pytest.raises(ProtocolChangedException):
        finish_write(late, written)
    assert files(tmp_path) == 1
