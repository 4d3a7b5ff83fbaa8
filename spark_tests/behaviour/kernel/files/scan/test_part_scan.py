"""A checkpoint that is replayed and filtered in parts gives the files that the version has, in their order."""

from __future__ import annotations

import json
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.conditions.protocol import CHECKSUM_MISMATCH
from delta_ds.exceptions import LogError
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.files.scan.skipping import part_filter
from delta_ds.kernel.files.write.live_actions import with_statistics_text
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.log import parts
from delta_ds.kernel.log.parts import Part, holds_actions, parts_for_tasks
from delta_ds.kernel.log.reconcile import select
from delta_ds.kernel.log.replay import load_head, with_older
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.records import replace
from delta_ds.testing import Action, TableBuilder
from spark_tests.behaviour.kernel.log import checkpoints
from spark_tests.full_form import examples

PREDICATES = [
    None,
    "p = 'a'",
    "p is null",
    "id > 4",
    "id > 4 and p < 'b'",
    "s >= 'ü3' or id = 0",
    "id is null",
]
KINDS = ["v1", "multi-part", "v2-parquet", "v2-json"]
PROPERTIES = {
    "delta.checkpoint.writeStatsAsJson": "false",
    "delta.checkpoint.writeStatsAsStruct": "true",
}


def in_parts(snapshot: Snapshot, predicate: str | None, *, statistics: bool = True) -> Snapshot:
    bound = None if predicate is None else bind(parse_predicate(predicate), snapshot.schema, "UTC")
    head = load_head(snapshot.storage, snapshot.segment)
    keep, older = part_filter(snapshot, bound, "UTC"), []
    if head.older is not None:
        parts = parts_for_tasks(snapshot.storage, head.older.checkpoint)
        older = [*select(head.older, parts, keep, in_another_process, statistics=statistics)]
    return snapshot.with_files(with_older(head, older, keep))


def in_another_process(files_of: Callable[[Part], pa.Table], parts: list[Part]) -> list[pa.Table]:
    files_of, parts = pickle.loads(pickle.dumps((files_of, parts)))
    return [with_statistics_text(files_of(part)) for part in parts]


def in_small_groups(table: TableBuilder) -> None:
    """Let the Parquet files of checkpoints have a row group a row, as a part takes whole groups."""
    for file in (Path(table.path) / "_delta_log").rglob("*.parquet"):
        if ".checkpoint." in file.name or file.parent.name == "_sidecars":
            pq.write_table(pq.read_table(file, partitioning=None), file, row_group_size=1)


@given(
    checkpoints.histories,
    st.sampled_from([None, *KINDS]),
    st.sampled_from(PREDICATES),
    st.booleans(),
    st.sampled_from([1, 64]),
)
@settings(max_examples=examples(50))
def test_parts_together_are_the_files_of_a_scan(
    history: list[list[Action]], kind: str | None, predicate: str | None, small: bool, many: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "TASK_ROWS", 2)
        patch.setattr(parts, "_MANY_FILES", many)
        table = TableBuilder(folder)
        table.create(
            checkpoints.SCHEMA, partition_columns=["p"], reader_features=["deletionVectors", "v2Checkpoint"]
        )
        checkpoints.commit_all(table, history)
        if kind is not None:
            table.checkpoint(kind, version=(table.version + 1) // 2)
            if small:
                in_small_groups(table)
        snapshot = DeltaLog(folder).open_snapshot()
        expected = Scan(snapshot, predicate).files()
        partial = in_parts(snapshot, predicate)
        assert (
            partial.live_files()
            .table.append_column("stats", partial.live_files().stats_json())
            .equals(expected)
        )
        assert (partial.domains, partial.txns) == (snapshot.domains, snapshot.txns)
        # Once more over what was found: nothing is lost.
        assert Scan(partial, predicate).slices() == Scan(snapshot, predicate).slices()


@pytest.fixture
def typed(tmp_path: Path) -> TableBuilder:
    """Three files in a checkpoint that has their statistics as columns only, and one after it."""
    table = TableBuilder(tmp_path)
    table.create(checkpoints.SCHEMA, partition_columns=["p"], properties=PROPERTIES)
    for number in range(4):
        if number == 3:
            checkpoints.checkpoint(table)
        stats = json.dumps(checkpoints.statistics_of(number * 10))
        table.commit({"add": {"path": f"{number}.parquet", "partitionValues": {"p": "a"}, "size": 1,
                              "modificationTime": 1, "dataChange": True, "stats": stats}})  # fmt: skip
    return table


def test_statistics_that_are_columns_come_as_text(typed: TableBuilder) -> None:
    snapshot = DeltaLog(typed.path).open_snapshot()
    assert Scan(snapshot, "id >= 20").files()["stats"].null_count == 1
    found = in_parts(snapshot, "id >= 20").live_files()
    assert found.table["path"].to_pylist() == ["2.parquet", "3.parquet"]
    texts: list[dict[str, Any]] = [json.loads(text) for text in found.stats_json().to_pylist()]
    assert texts == [checkpoints.statistics_of(20), checkpoints.statistics_of(30)]


def test_statistics_that_nobody_asks_for_stay_where_they_are(typed: TableBuilder) -> None:
    found = in_parts(DeltaLog(typed.path).open_snapshot(), "id >= 30", statistics=False).live_files()
    assert found.table["path"].to_pylist() == ["3.parquet"]
    none = in_parts(DeltaLog(typed.path).open_snapshot(), "id < 5", statistics=False).live_files()
    assert none.stats_json().to_pylist() == [None]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hint", ["last_checkpoint", "no hint", "hint of another version"])
def test_a_checkpoint_holds_the_actions_that_it_says(tmp_path: Path, kind: str, hint: str) -> None:
    table = TableBuilder(tmp_path)
    table.create(checkpoints.SCHEMA, reader_features=["v2Checkpoint"])
    for number in range(5):
        table.commit({"add": {"path": f"{number}", "partitionValues": {}, "size": 1, "modificationTime": 1,
                              "dataChange": True}})  # fmt: skip
    table.checkpoint(kind)
    if hint == "no hint":
        (Path(table.path) / "_delta_log" / "_last_checkpoint").unlink(missing_ok=True)
    else:
        table.last_checkpoint(table.version if hint == "last_checkpoint" else 2, numOfAddFiles=7)
    snapshot = DeltaLog(table.path).open_snapshot()
    assert snapshot.segment.checkpoint is not None

    def holds(actions: int) -> bool:
        return holds_actions(snapshot.storage, snapshot.segment, actions, sidecars=True)

    assert holds(0)
    assert not holds(100_000)
    if kind != "v2-json":
        assert holds(5)
        assert not holds(12)


def test_a_selection_of_files_is_no_base_for_what_counts_all_files(typed: TableBuilder) -> None:
    partial = in_parts(DeltaLog(typed.path).open_snapshot(), "id >= 30")
    assert not partial.is_loaded
    assert partial.live_files().num_rows == 1
    assert isinstance(partial.live_files().table, pa.Table)


def test_a_description_that_the_log_does_not_have_is_refused(typed: TableBuilder) -> None:
    snapshot = DeltaLog(typed.path).open_snapshot()
    head = load_head(snapshot.storage, snapshot.segment)
    other = replace(head.state.table, metadata=replace(head.state.table.metadata, name="another"))
    with pytest.raises(LogError) as caught:
        snapshot.with_files(replace(head.state, table=other))
    assert caught.value.condition == CHECKSUM_MISMATCH.name
