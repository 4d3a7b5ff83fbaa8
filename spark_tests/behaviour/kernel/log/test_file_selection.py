"""Filters over a checkpoint part by part: they keep the files that a whole replay and then pruning keeps."""

from __future__ import annotations

import json
import pickle
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.kernel.base.arrow_buffers import map_values
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.format.values import statistics
from delta_ds.kernel.log import checkpoint_adds, live_files, parts
from delta_ds.kernel.log.checkpoint_adds import KeptColumns
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.testing import Action, TableBuilder, json_lines, remove_action
from spark_tests.behaviour.kernel.log.checkpoints import checkpoint
from spark_tests.full_form import examples

SCHEMA = pa.schema(
    [("id", pa.int64()), ("s", pa.string()), ("f", pa.float64()), ("p", pa.string()), ("q", pa.int32())]
)
KINDS = ["v1", "multi-part", "v2-parquet", "v2-json", "written v1", "written v2"]
PREDICATES = [
    "id = 3", "id > 5", "id <= 1 OR id IS NULL", "s = 'b'", "s LIKE 'b%'", "f > 1.5", "f <> 2", "NOT (f < 2)",
    "p = 'a'", "p IS NULL", "p = ''", "p <> 'a b'", "q = 1", "q IS NOT NULL AND id > 3", "p = 'a' AND id = 3",
    "p = 'a' OR id = 3", "id IN (1, 5)", "length(s) = 3", "q + id > 5", "true", "false",
]  # fmt: skip

_names = st.sampled_from(
    ["a.parquet", "b%20c.parquet", "./d.parquet", "p=a/e.parquet", "p=a%2520b/g.parquet"]
)
_spellings = {"a.parquet": "./a.parquet", "b%20c.parquet": "b c.parquet", "./d.parquet": "d.parquet"}
_floats = st.sampled_from([1.0, 2.0, "NaN", "Infinity"])


@st.composite
def _statistics(draw: st.DrawFn) -> str | None:
    form = draw(st.integers(0, 11))
    if form < 3:
        return [None, "", '{"numRecords":'][form]
    low, high = sorted([draw(st.integers(0, 9)), draw(st.integers(0, 9))])
    full: dict[str, Any] = {
        "numRecords": draw(st.sampled_from([0, 5, 5, 5])),
        "minValues": {"id": low, "s": draw(st.sampled_from(["a", "b\"\\\n", "NaN"])), "f": draw(_floats)},
        "maxValues": {"id": high, "s": "bü", "f": draw(_floats)},
        "nullCount": {"id": draw(st.sampled_from([0, 5])), "s": 0, "f": 0},
    }  # fmt: skip
    if form == 3:
        del full[draw(st.sampled_from(sorted(full)))]
    if form == 4:
        full["tightBounds"] = draw(st.booleans())
    if form == 5:
        full["minValues"]["id"] = draw(st.sampled_from(["x", 1.5, None, 10**30]))
    return json.dumps(full, indent=1 if form == 6 else None)


@st.composite
def _adds(draw: st.DrawFn, name: st.SearchStrategy[str] = _names) -> Action:
    body: dict[str, Any] = {
        "path": draw(name),
        "partitionValues": {
            "p": draw(st.sampled_from(["a", "a b", "", None])), "q": draw(st.sampled_from(["1", "01", "", None])),
        },
        "size": draw(st.integers(1, 9)), "modificationTime": draw(st.integers(0, 9)), "dataChange": True,
        "stats": draw(_statistics()),
    }  # fmt: skip
    if draw(st.booleans()):
        body["partitionValues"] = dict(reversed(body["partitionValues"].items()))
    if draw(st.integers(0, 9)) == 0:
        del body["partitionValues"]["q"]
    vector = draw(st.sampled_from([None, None, "one", "two"]))
    if vector:
        body["deletionVector"] = {
            "storageType": "u", "pathOrInlineDv": vector, "offset": draw(st.sampled_from([1, 2])), "sizeInBytes": 4,
            "cardinality": 1,
        }  # fmt: skip
    return {"add": {key: value for key, value in body.items() if value is not None}}


@st.composite
def _logs(draw: st.DrawFn) -> tuple[list[list[Action]], list[list[Action]]]:
    """The commits up to a checkpoint, and those after it, which spell some paths in another way."""
    numbered = st.integers(0, 40).map(lambda n: f"p=x/{n}.parquet")
    before = [draw(st.lists(_adds(_names | numbered), min_size=1, max_size=25, unique_by=_key))]
    gone = draw(st.lists(st.sampled_from(before[0]), max_size=3, unique_by=_key))
    before.append([remove_action(add) for add in gone])
    after = []
    for _ in range(draw(st.integers(0, 2))):
        removed = draw(st.lists(st.sampled_from(before[0]), max_size=3, unique_by=_key))
        added = [
            a
            for a in draw(st.lists(_adds(), max_size=3, unique_by=_key))
            if _key(a) not in map(_key, removed)
        ]
        after.append([*map(_respelled, map(remove_action, removed)), *added])
    return before, after


def _key(action: Action) -> tuple[Any, ...]:
    body = action["add"]
    vector: Mapping[str, Any] = body.get("deletionVector", {})
    return body["path"].removeprefix("./"), vector.get("pathOrInlineDv"), vector.get("offset")


def _respelled(action: Action) -> Action:
    body = action["remove"]
    return {"remove": {**body, "path": _spellings.get(body["path"], body["path"])}}


def _in_small_row_groups(folder: Path) -> None:
    """The same checkpoint with row groups of three rows, so that some hold adds only, some removes only."""
    for file in [*folder.glob("_delta_log/*.parquet"), *folder.glob("_delta_log/_sidecars/*.parquet")]:
        pq.write_table(pq.read_table(file, partitioning=None), file, row_group_size=3)


@pytest.fixture(scope="module", autouse=True)
def small_parts():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "PART_ROWS", 6)
        patch.setattr(checkpoint_adds, "_TEXT_ROWS", 2)
        patch.setattr(live_files, "_TEXT_ROWS", 2)
        patch.setenv("DELTA_DS_CACHE", "off")
        yield


def _build(folder: str, kind: str, before: list[list[Action]], after: list[list[Action]]) -> None:
    table = TableBuilder(folder)
    properties = {"delta.checkpoint.writeStatsAsStruct": "true"}
    if kind == "written v2":
        properties["delta.checkpointPolicy"] = "v2"
    table.create(
        SCHEMA,
        partition_columns=["p", "q"],
        reader_features=["deletionVectors", "v2Checkpoint"],
        properties=properties,
    )
    for actions in before:
        table.commit(*actions)
    if kind.startswith("written"):
        checkpoint(table)
    else:
        table.checkpoint(kind)
    _in_small_row_groups(Path(folder))
    for actions in after:
        table.commit(*actions)


@given(_logs(), st.sampled_from(KINDS), st.lists(st.sampled_from(PREDICATES), min_size=1, max_size=4))
@settings(max_examples=examples(150), deadline=None)
def test_a_filter_keeps_the_files_that_a_whole_replay_and_then_pruning_keeps(logs, kind, predicates):
    with tempfile.TemporaryDirectory() as folder:
        _build(folder, kind, *logs)
        whole = DeltaLog(folder).open_snapshot()
        live = whole.live_files()
        for predicate in predicates:
            snapshot = DeltaLog(folder).open_snapshot()
            found = Scan(snapshot, predicate).files()
            assert "state" not in snapshot.__dict__
            again = Scan(snapshot, predicate).files()
            assert "state" not in snapshot.__dict__
            rows = Scan(DeltaLog(folder).open_snapshot(), predicate).pruning.rows
            expected = live.table.take(rows).append_column("stats", live.stats_json(rows))
            assert found.to_pylist() == again.to_pylist() == expected.to_pylist()
            assert found.schema == expected.schema
            assert Scan(whole, predicate).pruning.rows.equals(rows)


def _table(tmp_path: Path, kind: str = "v2-json") -> TableBuilder:
    table = TableBuilder(tmp_path)
    table.create(SCHEMA, partition_columns=["p", "q"], reader_features=["deletionVectors", "v2Checkpoint"])
    stats = [
        {"numRecords": 1, "minValues": {"id": n}, "maxValues": {"id": n}, "nullCount": {"id": 0}}
        for n in range(9)
    ]
    table.commit(*(
        {"add": {"path": f"f{n}", "partitionValues": {"p": "a", "q": str(n)}, "size": n, "modificationTime": 0,
                 "dataChange": True, "stats": json.dumps(stats[n])}}
        for n in range(9)
    ))  # fmt: skip
    table.checkpoint(kind)
    return table


def _paths(snapshot: Snapshot, predicate: str) -> list[str]:
    return Scan(snapshot, predicate).files()["path"].to_pylist()


def test_a_sidecar_that_is_named_twice_holds_its_files_once(tmp_path):
    table = _table(tmp_path)
    (manifest,) = table.log.glob("*.checkpoint.*.json")
    lines = manifest.read_bytes().splitlines(keepends=True)
    manifest.write_bytes(b"".join([*lines, lines[-1]]))
    assert sorted(_paths(DeltaLog(tmp_path).open_snapshot(), "id >= 7")) == ["f7", "f8"]
    assert DeltaLog(tmp_path).open_snapshot().live_files().num_rows == 9


def test_a_damaged_checkpoint_gives_way_to_the_commits(tmp_path, caplog):
    table = _table(tmp_path)
    for sidecar in (table.log / "_sidecars").iterdir():
        sidecar.write_bytes(b"PAR1 is no checkpoint")
    assert _paths(DeltaLog(tmp_path).open_snapshot(), "id = 3") == ["f3"]
    assert "stream_given_up" in caplog.text
    assert "checkpoint_passed_over" in caplog.text


@pytest.mark.parametrize("loaded", [False, True])
def test_the_second_filter_on_a_column_parses_nothing(tmp_path, monkeypatch, loaded):
    _table(tmp_path)
    snapshot = DeltaLog(tmp_path).open_snapshot()
    if loaded:
        snapshot.live_files()
    parsed = []
    whole = statistics.parse_lines

    def parse_lines(lines, schema):
        parsed.append(len(lines))
        return whole(lines, schema)

    monkeypatch.setattr(statistics, "parse_lines", parse_lines)
    assert _paths(snapshot, "id = 3") == ["f3"]
    assert sum(parsed) == 9
    parsed.clear()
    assert sorted(_paths(snapshot, "id > 6")) == ["f7", "f8"]
    assert parsed == []
    monkeypatch.setenv("DELTA_DS_KEPT_STATISTICS", "0")
    assert _paths(snapshot, "s = 'b' AND id = 5") == ["f5"]
    assert _paths(snapshot, "s = 'b' AND id = 5") == ["f5"]
    assert sum(parsed) == 18


def test_kept_columns_stay_within_their_bound_and_older_names_give_way(monkeypatch):
    column = pa.array(range(1000))
    one = KeptColumns()
    one.put("x", {"a": column})
    size = one._size
    monkeypatch.setenv("DELTA_DS_KEPT_STATISTICS", str(3 * size))
    kept = KeptColumns()
    for place in "wxyz":
        kept.put(place, {"a": column})
    assert [kept.get(place, ["a"]) is not None for place in "wxyz"] == [True, True, True, False]
    kept.put("w", {"b": column})
    assert kept.get("w", ["a"]) is None
    assert kept.get("w", ["a", "b"]) is None
    assert kept.get("w", ["b"])["b"].equals(column)
    assert kept._size == size
    assert pickle.loads(pickle.dumps(kept)).get("w", ["b"]) is None


def test_a_state_at_hand_is_used(tmp_path):
    _table(tmp_path)
    snapshot = DeltaLog(tmp_path).open_snapshot()
    snapshot.live_files()
    for sidecar in (tmp_path / "_delta_log" / "_sidecars").iterdir():
        sidecar.unlink()
    assert Scan(snapshot, "q = 3").slices()[0].path == "f3"


def test_a_json_manifest_with_its_files_inside_is_replayed(tmp_path):
    table = _table(tmp_path)
    (manifest,) = table.log.glob("*.checkpoint.*.json")
    header = [{"checkpointMetadata": {"version": table.version}}]
    manifest.write_bytes(json_lines([*header, *table.state()]))
    assert _paths(DeltaLog(tmp_path).open_snapshot(), "id = 3") == ["f3"]


@given(
    st.lists(
        st.none() | st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y", None])), max_size=3)
    ),
    st.integers(0, 3),
    st.booleans(),
)
@settings(max_examples=examples(100))
def test_a_value_of_maps_is_that_of_the_first_such_key(maps, skipped, uniform):
    if uniform:
        maps = [[("a", "x"), ("b", None)] for _ in maps]
    array = pa.array(maps, pa.map_(pa.string(), pa.string()))
    for some, wanted in ((array, maps), (array.slice(skipped), maps[skipped:])):
        found = map_values(some, "b").to_pylist()
        assert found == [next((v for k, v in pairs or [] if k == "b"), None) for pairs in wanted]
