"""For any history, any limits and restarts at any point: every row once."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.commands.streaming.offsets import ALL_AVAILABLE, ReadLimits
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.log.snapshot import open_snapshot
from delta_ds.kernel.storage.open import open_storage
from delta_ds.testing import Action, TableBuilder, remove_action
from spark_tests.behaviour.kernel.commands.streaming.streams import again, open_source, read, rows, table
from spark_tests.full_form import examples

SETTINGS = settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))

# A step of a table's life: how many files it adds, whether it takes the oldest one away, and whether rows only move.
STEPS = st.lists(
    st.tuples(st.integers(0, 4), st.booleans(), st.sampled_from(["append", "compact", "empty"])), max_size=6
)
LIMITS = st.builds(
    ReadLimits, st.none() | st.integers(1, 5), st.none() | st.sampled_from([1, 700, 2000, 100_000])
)


class History:
    """A table, and the ids that a stream has to give."""

    def __init__(self, path: Path, change_feed: bool = False) -> None:
        feed = {"delta.enableChangeDataFeed": "true"} if change_feed else {}
        self.builder: TableBuilder = table(path, properties=feed)
        self.live: list[tuple[int, Action]] = []
        self.next = 0

    def step(self, files: int, takes: bool, kind: str) -> tuple[list[int], list[int]]:
        """Commit a step; the ids that it adds and takes away."""
        if kind == "empty":
            self.builder.commit(operation="SET TBLPROPERTIES")
            return [], []
        if kind == "compact":
            self._rewrite()
            return [], []
        actions: list[Action] = []
        gone: list[int] = []
        if takes and self.live:
            number, add = self.live.pop(0)
            actions.append(remove_action(add))
            gone.append(number)
        added = [self._new(self.next + n) for n in range(files)]
        self.next += files
        self.builder.commit(*actions, *(add for _, add in added))
        self.live += added
        return [number for number, _ in added], gone

    def _new(self, number: int) -> tuple[int, Action]:
        return number, self.builder.write_file(rows(number))

    def _rewrite(self) -> None:
        moved = []
        for number, add in self.live[:2]:
            gone, new = remove_action(add), self._new(number)[1]
            gone["remove"]["dataChange"] = new["add"]["dataChange"] = False
            moved.append((number, new))
            self.builder.commit(gone, new, operation="OPTIMIZE")
        self.live = self.live[2:] + moved


def drained(
    source: Any, at: Any, limits: ReadLimits, restarts: st.DataObject
) -> tuple[Any, list[dict[str, Any]]]:
    found = []
    while True:
        if restarts.draw(st.booleans()):
            source = again(source)
        end = source.latest_offset(at, limits)
        if end == at:
            return at, found
        assert end.key > at.key
        plan, slices = source.tasks(at, end)
        for one in read_slices(source.storage, plan, slices):
            found += one.to_pylist()
        if restarts.draw(st.booleans()):
            # A crash after the batch was read: the same batch again, from a checkpoint, in a process of its own.
            fresh = again(source)
            assert fresh.tasks(fresh.offset(at.to_json()), fresh.offset(end.to_json())) == (plan, slices)
        at = source.offset(end.to_json())


@SETTINGS
@given(before=STEPS, after=STEPS, limits=LIMITS, data=st.data())
def test_every_live_row_and_then_every_added_row_comes_once(
    before: Any, after: Any, limits: ReadLimits, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder))
        for step in before:
            history.step(*step)
        expected = [number for number, _ in history.live]
        source = open_source(Path(folder), ignoreChanges="true")
        at, found = drained(source, source.initial_offset(), limits, data)
        for step in after:
            expected += history.step(*step)[0]
        if data.draw(st.booleans()):
            source = open_source(Path(folder), ignoreChanges="true")
            at = source.offset(at.to_dict())
        _, more = drained(source, at, limits, data)
        assert sorted(row["id"] for row in found + more) == sorted(expected)


@SETTINGS
@given(steps=STEPS, limits=LIMITS, data=st.data())
def test_a_stream_from_a_version_gives_every_added_row_once(
    steps: Any, limits: ReadLimits, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder))
        added = {0: []}
        for step in steps:
            numbers = history.step(*step)[0]
            added[history.builder.version] = numbers
        first = data.draw(st.integers(0, history.builder.version))
        source = open_source(Path(folder), ignoreChanges="true", startingVersion=first)
        _, found = drained(source, source.initial_offset(), limits, data)
        assert [row["id"] for row in found] == [n for v in sorted(added) if v >= first for n in added[v]]


@SETTINGS
@given(before=STEPS, after=STEPS, limits=LIMITS, data=st.data())
def test_the_changes_add_up_to_the_table(
    before: Any, after: Any, limits: ReadLimits, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder), change_feed=True)
        for step in before:
            history.step(*step)
        source = open_source(Path(folder), readChangeFeed="true")
        at, found = drained(source, source.initial_offset(), limits, data)
        for step in after:
            history.step(*step)
        _, more = drained(source, at, limits, data)
        state: list[int] = []
        for row in sorted(found + more, key=lambda row: (row["_commit_version"], row["_change_type"])):
            if row["_change_type"] == "insert":
                state.append(row["id"])
            else:
                assert row["_change_type"] == "delete"
                state.remove(row["id"])
        live = Scan(open_snapshot(open_storage(folder))).to_arrow()["id"].to_pylist()
        assert sorted(state) == sorted(live)


# What a commit may do to rows, in the ways in which logs say so.
COMMITS = st.lists(
    st.lists(st.sampled_from(["add", "move", "remove", "vector", "restore", "change file"]), max_size=4),
    min_size=1,
    max_size=6,
)


class MixedHistory:
    """A table whose commits mix file actions of all kinds, each row of it in a file of its own but one."""

    def __init__(self, path: Path) -> None:
        features = {"reader_features": ["deletionVectors"], "writer_features": ["changeDataFeed"]}
        self.builder = table(path, properties={"delta.enableChangeDataFeed": "true"}, **features)
        self.live: list[Action] = []
        self.next = 0

    def commit(self, kinds: list[str]) -> None:
        actions: list[Action] = []
        untouched, self.live = self.live, []
        for kind in kinds:
            actions += self._actions(kind, untouched)
        self.live += untouched
        self.builder.commit(*actions)

    def _actions(self, kind: str, untouched: list[Action]) -> list[Action]:
        if kind == "add":
            return [self._added(self._new())]
        if kind == "change file":
            data = self._rows().append_column("_change_type", pa.array(["insert", "delete"]))
            body = self.builder.write_file(data, path=f"_change_data/{self.next}.parquet")["add"]
            kept = {name: body[name] for name in ("path", "partitionValues", "size")}
            return [{"cdc": {**kept, "dataChange": False}}]
        if not untouched:
            return []
        old = untouched.pop()
        gone = remove_action(old)
        if kind == "remove":
            return [gone]
        if kind == "move":
            new = self._new()
            gone["remove"]["dataChange"] = new["add"]["dataChange"] = False
            return [gone, self._added(new)]
        body = {**old["add"], "dataChange": True}
        body.pop("deletionVector", None)
        if kind == "vector":
            body["deletionVector"] = self.builder.deletion_vector([0])
        return [gone, self._added({"add": body})]

    def _added(self, add: Action) -> Action:
        self.live.append(add)
        return add

    def _new(self) -> Action:
        return self.builder.write_file(self._rows())

    def _rows(self) -> Any:
        self.next += 2
        return rows(self.next, self.next + 1)


@SETTINGS
@given(commits=COMMITS, limits=LIMITS, data=st.data())
def test_a_stream_of_changes_gives_what_the_batch_feed_gives(
    commits: Any, limits: ReadLimits, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        history = MixedHistory(Path(folder))
        for kinds in commits:
            history.commit(kinds)
        first = data.draw(st.integers(0, history.builder.version))
        source = open_source(Path(folder), readChangeFeed="true", startingVersion=first)
        _, found = drained(source, source.initial_offset(), limits, data)
        assert found == DeltaLog(folder).changes(first).to_arrow().to_pylist()


@SETTINGS
@given(commits=COMMITS, limits=LIMITS, data=st.data())
def test_a_stream_of_rows_gives_every_file_once_that_a_commit_adds_with_new_rows(
    commits: Any, limits: ReadLimits, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        history = MixedHistory(Path(folder))
        for kinds in commits:
            history.commit(kinds)
        source = open_source(Path(folder), ignoreChanges="true", startingVersion=0)
        _, found = drained(source, source.initial_offset(), limits, data)
        once = open_source(Path(folder), ignoreChanges="true", startingVersion=0)
        start = once.initial_offset()
        assert found == read(once, start, once.latest_offset(start, ALL_AVAILABLE))
        lines = [line for v in range(history.builder.version + 1) for line in _actions_of(history, v)]
        added = [line["add"] for line in lines if "add" in line]
        expected = [2 - bool(add.get("deletionVector")) for add in added if add["dataChange"]]
        assert len(found) == sum(expected)


def _actions_of(history: MixedHistory, version: int) -> list[Action]:
    return [json.loads(line) for line in history.builder.commit_file(version).read_text().splitlines()]
