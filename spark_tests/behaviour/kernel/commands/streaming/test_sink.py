from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import (
    AppendOnlyError,
    ConcurrentTransactionException,
    DeltaConcurrentModificationException,
    InvariantViolationError,
    MetadataChangedException,
    SchemaError,
    StorageError,
)
from delta_ds.kernel.commands.streaming import sink
from delta_ds.kernel.commands.streaming.sink import commit_batch
from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.transaction.write.intent import batch_intent, find_target, stream_intent
from delta_ds.kernel.transaction.write.plan import WritePlan, plan_write
from delta_ds.kernel.transaction.write.task import TaskResult, write_rows
from spark_tests.behaviour.kernel.commands.streaming.streams import rows, table
from spark_tests.behaviour.kernel.transaction.write.tables import commit as actions_of
from spark_tests.behaviour.kernel.transaction.write.tables import rows as rows_of


def planned(path: Path, data: pa.Table, mode: str = "append", **options: str) -> WritePlan:
    intent = stream_intent({"path": str(path), **options}, mode)
    return plan_write(find_target(intent), schema_from_arrow(data.schema))


def staged(plan: WritePlan, data: pa.Table) -> list[TaskResult]:
    return [write_rows(plan, data.to_batches())]


def batch(
    path: Path, data: pa.Table, number: int, mode: str = "append", query: str = "q", **options: str
) -> int | None:
    plan = planned(path, data, mode, **options)
    return commit_batch(plan, staged(plan, data), query, number)


def data_files(path: Path) -> set[str]:
    return {name for _, _, names in os.walk(path) for name in names if name.endswith(".parquet")}


def ids(path: Path) -> list[int]:
    return [row["id"] for row in rows_of(path)]


def actions(path: Path, version: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for action in actions_of(path, version):
        yield from action.items()


def test_every_batch_is_one_commit_with_its_transaction(tmp_path: Path) -> None:
    assert batch(tmp_path, rows(1, 2), 0) == 0
    assert batch(tmp_path, rows(3), 1) == 1
    assert ids(tmp_path) == [1, 2, 3]
    found = list(actions(tmp_path, 1))
    info = dict(found)["commitInfo"]
    assert [kind for kind, _ in found] == ["commitInfo", "txn", "add"]
    assert info["operation"] == "STREAMING UPDATE"
    assert info["operationParameters"] == {"outputMode": "Append", "queryId": "q", "epochId": "1"}
    size = dict(found)["add"]["size"]
    expected = {
        "numRemovedFiles": "0",
        "numAddedFiles": "1",
        "numOutputRows": "1",
        "numOutputBytes": str(size),
    }
    assert info["operationMetrics"] == expected
    assert info["isBlindAppend"] is True
    assert {k: dict(found)["txn"][k] for k in ("appId", "version")} == {"appId": "q", "version": 1}


def test_a_table_created_anew_while_a_batch_is_written_does_not_get_it(tmp_path: Path) -> None:
    batch(tmp_path, rows(1), 0)
    plan = planned(tmp_path, rows(2))
    results = staged(plan, rows(2))
    shutil.rmtree(tmp_path / "_delta_log")
    table(tmp_path)
    before = data_files(tmp_path)
    with pytest.raises(MetadataChangedException, match="another one"):
        commit_batch(plan, results, "q", 1)
    assert data_files(tmp_path) == before - {f["path"] for r in results for f in r.adds}
    assert ids(tmp_path) == []


def test_a_batch_is_added_without_a_look_at_the_files_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch(tmp_path, rows(1), 0)
    plan = planned(tmp_path, rows(2))
    results = staged(plan, rows(2))

    def refuse(*_: object) -> None:
        raise AssertionError("the table was replayed")

    with monkeypatch.context() as patched:
        patched.setattr(Snapshot, "_replay", refuse)
        assert commit_batch(plan, results, "q", 1) == 1
    assert ids(tmp_path) == [1, 2]


def test_a_batch_that_the_table_has_is_left_out_and_its_files_deleted(tmp_path: Path) -> None:
    batch(tmp_path, rows(1), 0)
    batch(tmp_path, rows(2), 1)
    files = data_files(tmp_path)
    assert batch(tmp_path, rows(2), 1) is None
    assert batch(tmp_path, rows(1), 0) is None
    assert (ids(tmp_path), data_files(tmp_path)) == ([1, 2], files)


def test_a_batch_that_lies_behind_a_checkpoint_is_found(tmp_path: Path) -> None:
    batch(tmp_path, rows(1), 0)
    log = DeltaLog(tmp_path)
    for n in range(3):
        log.write(rows(10 + n))
    log.checkpoint()
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    assert batch(tmp_path, rows(1), 0) is None
    assert batch(tmp_path, rows(2), 1) is not None


def test_two_queries_count_by_themselves(tmp_path: Path) -> None:
    for query in ("a", "b"):
        for number in (0, 1):
            batch(tmp_path, rows(number), number, query=query)
    assert ids(tmp_path) == [0, 0, 1, 1]


def test_complete_replaces_the_table_in_one_commit(tmp_path: Path) -> None:
    batch(tmp_path, rows(1, 2), 0, "complete")
    assert batch(tmp_path, rows(7), 1, "complete") == 1
    assert ids(tmp_path) == [7]
    found = list(actions(tmp_path, 1))
    info = dict(found)["commitInfo"]
    assert sorted(kind for kind, _ in found) == ["add", "commitInfo", "remove", "txn"]
    assert info["operationParameters"]["outputMode"] == "Complete"
    assert (info["operationMetrics"]["numRemovedFiles"], info["isBlindAppend"]) == ("1", False)
    assert batch(tmp_path, rows(8), 1, "complete") is None
    assert ids(tmp_path) == [7]


def test_an_empty_batch_commits_nothing_unless_the_table_changes(tmp_path: Path) -> None:
    assert batch(tmp_path, rows(), 0) == 0
    assert batch(tmp_path, rows(), 1) is None
    wide = pa.table({"id": pa.array([], pa.int64()), "more": pa.array([], pa.string())})
    assert batch(tmp_path, wide, 2, mergeSchema="true") == 1
    assert batch(tmp_path, rows(), 3, "complete") is None
    batch(tmp_path, rows(1), 4)
    assert batch(tmp_path, rows(), 5, "complete") == 3
    assert ids(tmp_path) == []


def test_the_first_batch_partitions_the_table_and_later_ones_follow(tmp_path: Path) -> None:
    data = pa.table({"id": pa.array([1], pa.int64()), "p": ["a"]})
    batch(tmp_path, data, 0, partitionBy="p")
    batch(tmp_path, data, 1, partitionBy="p")
    batch(tmp_path, data, 2)
    assert DeltaLog(tmp_path).snapshot().partition_columns == ["p"]
    assert len(rows_of(tmp_path)) == 3


def test_a_new_column_needs_merge_schema(tmp_path: Path) -> None:
    batch(tmp_path, rows(1), 0)
    wide = pa.table({"id": pa.array([2], pa.int64()), "more": ["x"]})
    with pytest.raises(SchemaError):
        batch(tmp_path, wide, 1)
    assert batch(tmp_path, wide, 1, mergeSchema="true") == 1
    assert rows_of(tmp_path) == [{"id": 1, "more": None}, {"id": 2, "more": "x"}]


@pytest.mark.parametrize(("mode", "expected"), [("append", [1, 2, 3, 9]), ("complete", [3])])
def test_a_plan_made_once_serves_every_batch_of_a_query(
    tmp_path: Path, mode: str, expected: list[int]
) -> None:
    plan = planned(tmp_path, rows(0), mode)
    for number, n in enumerate((1, 2)):
        assert commit_batch(plan, staged(plan, rows(n)), "q", number) == number
    DeltaLog(tmp_path).write(rows(9))
    assert commit_batch(plan, staged(plan, rows(3)), "q", 2) == 3
    assert ids(tmp_path) == expected


def test_a_change_of_the_table_since_the_plan_is_a_conflict(tmp_path: Path) -> None:
    batch(tmp_path, rows(1), 0)
    plan = planned(tmp_path, rows(2))
    wide = pa.table({"id": pa.array([2], pa.int64()), "more": ["x"]})
    DeltaLog(tmp_path).write(wide, options={"mergeSchema": "true"})
    files = data_files(tmp_path)
    with pytest.raises(DeltaConcurrentModificationException):
        commit_batch(plan, staged(plan, rows(2)), "q", 1)
    assert data_files(tmp_path) == files


def test_the_same_query_twice_at_once_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch(tmp_path, rows(1), 0)
    plan = planned(tmp_path, rows(2))
    results = staged(plan, rows(2))
    files = data_files(tmp_path)
    looked_up = sink.last_batch

    def overtaken(*args: Any) -> int | None:
        found = looked_up(*args)
        monkeypatch.setattr(sink, "last_batch", looked_up)
        batch(tmp_path, rows(2), 1)
        return found

    monkeypatch.setattr(sink, "last_batch", overtaken)
    with pytest.raises(ConcurrentTransactionException):
        commit_batch(plan, results, "q", 1)
    assert ids(tmp_path) == [1, 2]
    assert len(data_files(tmp_path)) == len(files)


@pytest.mark.parametrize(("step", "kept"), [("_move_to_newest", 0), ("last_batch", 1)])
def test_a_batch_that_fails_leaves_no_files_unless_an_earlier_attempt_may_have_published_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, kept: int
) -> None:
    batch(tmp_path, rows(1), 0)
    files = data_files(tmp_path)
    plan = planned(tmp_path, rows(2))
    results = staged(plan, rows(2))

    def failing(*args: Any) -> int | None:
        raise StorageError("the store is away")

    monkeypatch.setattr(sink, step, failing)
    with pytest.raises(StorageError):
        commit_batch(plan, results, "q", 1)
    assert len(data_files(tmp_path) - files) == kept


def test_the_files_of_a_batch_that_is_committed_again_stay(tmp_path: Path) -> None:
    batch(tmp_path, rows(1), 0)
    plan = planned(tmp_path, rows(2))
    results = staged(plan, rows(2))
    assert commit_batch(plan, results, "q", 1) == 1
    DeltaLog(tmp_path).write(rows(3))
    assert commit_batch(plan, results, "q", 1) is None
    assert ids(tmp_path) == [1, 2, 3]


def test_the_files_of_a_batch_whose_first_attempt_arrives_late_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch(tmp_path, rows(1), 0)
    plan = planned(tmp_path, rows(2))
    results = staged(plan, rows(2))
    based = sink._move_to_newest

    def late(*args: Any) -> Any:
        found = based(*args)
        monkeypatch.setattr(sink, "_move_to_newest", based)
        assert commit_batch(plan, results, "q", 1) == 1
        return found

    monkeypatch.setattr(sink, "_move_to_newest", late)
    with pytest.raises(ConcurrentTransactionException):
        commit_batch(plan, results, "q", 1)
    assert ids(tmp_path) == [1, 2]


def test_the_history_tells_the_batches(tmp_path: Path) -> None:
    batch(tmp_path, rows(1), 0, userMetadata="mine")
    entry = DeltaLog(tmp_path).history(1)[0]
    assert (entry["operation"], entry["userMetadata"]) == ("STREAMING UPDATE", "mine")
    assert json.loads(json.dumps(entry["operationParameters"]))["queryId"] == "q"


def test_values_are_cast_to_the_columns_of_the_table_where_they_fit(tmp_path: Path) -> None:
    path = tmp_path / "t"
    batch(path, pa.table({"id": pa.array([1], pa.int32())}), 0)
    fits, too_large = (pa.table({"id": pa.array([number], pa.int64())}) for number in (2, 2**40))
    plan = planned(path, fits)
    assert not plan.new_metadata
    commit_batch(plan, staged(plan, fits), "q", 1)
    assert sorted(ids(path)) == [1, 2]
    before = data_files(path)
    with pytest.raises(InvariantViolationError, match="CAST_OVERFLOW"):
        staged(planned(path, too_large), too_large)
    with pytest.raises(SchemaError):
        plan_write(find_target(batch_intent({"path": str(path)}, "append")), schema_from_arrow(fits.schema))
    with pytest.raises(SchemaError):
        planned(path, pa.table({"id": [True]}))
    texts = pa.table({"id": ["3"]})
    assert not planned(path, texts).new_metadata
    assert data_files(path) == before


def test_an_overwrite_of_a_table_for_appends_is_refused_even_if_it_is_empty(tmp_path: Path) -> None:
    table(tmp_path / "t", writer_features=["appendOnly"], properties={"delta.appendOnly": "true"})
    with pytest.raises(AppendOnlyError):
        planned(tmp_path / "t", rows(1), "complete")
    assert batch(tmp_path / "t", rows(1), 0) is not None


VOID_COLUMNS = {
    "void": pa.nulls(1),
    "a struct of it": pa.StructArray.from_arrays([pa.array([1]), pa.nulls(1)], ["a", "b"]),
    "an array of it": pa.array([[None]], pa.list_(pa.null())),
    "a map of it": pa.array([[("a", None)]], pa.map_(pa.string(), pa.null())),
}


@pytest.mark.parametrize("mode", ["append", "complete"])
@pytest.mark.parametrize("known", [False, True], ids=["a new table", "a table that has the column"])
@pytest.mark.parametrize("values", VOID_COLUMNS.values(), ids=VOID_COLUMNS)
def test_rows_of_a_stream_have_no_void(tmp_path: Path, values: pa.Array, known: bool, mode: str) -> None:
    if known:
        batch(tmp_path, rows(1).append_column("v", pa.array(["x"])), 0)
    before = sorted(os.walk(tmp_path))
    with pytest.raises(SchemaError, match="cannot write void values") as raised:
        planned(tmp_path, rows(2).append_column("v", values), mode, mergeSchema="true")
    assert raised.value.condition == "DELTA_NULL_SCHEMA_IN_STREAMING_WRITE"
    assert raised.value.parameters["columns"] == ["v"]
    assert sorted(os.walk(tmp_path)) == before


def test_a_batch_that_a_stream_hands_to_a_function_may_have_void(tmp_path: Path) -> None:
    batch(tmp_path, rows(1).append_column("v", pa.array(["x"])), 0)
    data = rows(2).append_column("v", pa.nulls(1))
    plan = plan_write(
        find_target(batch_intent({"path": str(tmp_path)}, "append")), schema_from_arrow(data.schema)
    )
    assert plan.state.schema.names == ["id", "v"]
