"""`DeltaLog.write(..., options={"replaceUsing": ...})`: written rows take the place of those with the same keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.exceptions import (
    AppendOnlyError,
    ConcurrentAppendException,
    InvariantViolationError,
    NotADeltaTableError,
    SchemaError,
)

Row = tuple[Any, ...]


def rows(*found: Row) -> pa.Table:
    ids, values = zip(*found, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(values, pa.string())})


def table(path: Path, *found: Row, **properties: str) -> DeltaLog:
    log = DeltaLog(path)
    options = {f"delta.{name}": text for name, text in properties.items()}
    log.write(rows(*found), options=options)
    return log


def replace(log: DeltaLog, data: pa.Table, **options: Any) -> int | None:
    return log.write(data, "overwrite", {"replaceUsing": "id", **options})


def left(log: DeltaLog) -> list[Row]:
    return _sorted(tuple(row.values()) for row in log.snapshot().scan().to_arrow().to_pylist())


def _sorted(found: Any) -> list[Row]:
    return sorted(found, key=str)


KEYS = st.none() | st.integers(0, 6)
ROWS = st.lists(st.tuples(KEYS, st.sampled_from("abc")), min_size=1, max_size=12)


@given(old=ROWS, new=ROWS, vectors=st.booleans(), tracked=st.booleans())
def test_rows_whose_key_is_written_go_and_all_written_ones_come(
    tmp_path_factory: pytest.TempPathFactory,
    old: Sequence[Row],
    new: Sequence[Row],
    vectors: bool,
    tracked: bool,
) -> None:
    properties = {"enableDeletionVectors": str(vectors).lower(), "enableRowTracking": str(tracked).lower()}
    log = table(tmp_path_factory.mktemp("law"), *old, enableChangeDataFeed="true", **properties)
    assert replace(log, rows(*new)) == 1
    keys = {row[0] for row in new} - {None}
    gone = [row for row in old if row[0] in keys]
    assert left(log) == _sorted([*(row for row in old if row[0] not in keys), *new])
    feed = log.changes(1).to_arrow().select(["_change_type", "id", "v"]).to_pylist()
    changes = [("delete", *row) for row in gone] + [("insert", *row) for row in new]
    assert _sorted(tuple(change.values()) for change in feed) == _sorted(changes)


def test_the_history_tells_it_as_delta_spark_does(tmp_path: Path) -> None:
    log = table(tmp_path, (1, "a"), (2, "b"), (3, "c"))
    replace(log, rows((2, "x"), (9, "y")), userMetadata="why")
    last = log.history()[0]
    assert (last["operation"], last["userMetadata"]) == ("WRITE", "why")
    assert last["operationParameters"] == {
        "mode": "Overwrite",
        "partitionBy": "[]",
        "replaceUsingCols": "(id)",
    }
    counts = {name: n for name, n in last["operationMetrics"].items() if "Bytes" not in name}
    assert counts == {
        "numFiles": "2", "numOutputRows": "4", "numDeletedRows": "1", "numCopiedRows": "2", "numRemovedFiles": "1",
        "numAddedChangeFiles": "0",
    }  # fmt: skip


def test_a_transaction_is_written_once(tmp_path: Path) -> None:
    log = table(tmp_path, (1, "a"))
    versions = [replace(log, rows((1, "b")), txnAppId="app", txnVersion=1) for _ in range(2)]
    assert (versions, left(log)) == ([1, 1], [(1, "b")])


def test_columns_go_by_name_and_new_ones_need_leave(tmp_path: Path) -> None:
    log = table(tmp_path, (1, "a"))
    wider = pa.table({"w": [1], "v": ["b"], "id": [1]})
    with pytest.raises(SchemaError, match="DELTA_METADATA_MISMATCH"):
        replace(log, wider)
    replace(log, wider, mergeSchema=True)
    assert left(log) == [(1, "b", 1)]


def test_what_does_not_fit_leaves_the_table_alone(tmp_path: Path) -> None:
    log = table(tmp_path / "t", (1, "a"), **{"constraints.c": "v <> 'x'"})
    with pytest.raises(SchemaError, match="UNRESOLVED_INSERT_REPLACE_USING_COLUMN.*nope"):
        replace(log, rows((1, "b")), replaceUsing="nope")
    with pytest.raises(InvariantViolationError, match="DELTA_REPLACE_ON_OR_USING_TABLE_CONSTRAINT_VIOLATION"):
        replace(log, rows((1, "x")))
    with pytest.raises(NotADeltaTableError, match="DELTA_PATH_DOES_NOT_EXIST"):
        replace(DeltaLog(tmp_path / "none"), rows((1, "b")))
    with pytest.raises(AppendOnlyError):
        replace(table(tmp_path / "a", (1, "a"), appendOnly="true"), rows((1, "b")))
    assert (left(log), log.snapshot().version) == ([(1, "a")], 0)


def test_a_reader_is_read_before_the_version_is_chosen(tmp_path: Path) -> None:
    log = table(tmp_path, (1, "a"))

    def batches() -> Any:
        DeltaLog(tmp_path).write(rows((2, "other")))
        yield from rows((2, "mine")).to_batches()

    data = rows((2, "mine"))
    log.write(pa.RecordBatchReader.from_batches(data.schema, batches()), "overwrite", {"replaceUsing": "id"})
    assert left(log) == [(1, "a"), (2, "mine")]


def test_a_commit_between_reading_and_writing_contradicts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from delta_ds.kernel.commands.merge import command

    log = table(tmp_path, (1, "a"))
    write_rows = command.write_rows

    def slow(*arguments: Any, **options: Any) -> Any:
        DeltaLog(tmp_path).write(rows((2, "other")))
        return write_rows(*arguments, **options)

    monkeypatch.setattr(command, "write_rows", slow)
    with pytest.raises(ConcurrentAppendException):
        replace(log, rows((2, "mine")))
    assert left(log) == [(1, "a"), (2, "other")]
