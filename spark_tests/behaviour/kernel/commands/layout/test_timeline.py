"""The timeline of a table: live files and bytes at each version, whatever commits do to files."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.commands.layout.timeline import Timeline
from delta_ds.testing import TableBuilder, remove_action
from spark_tests.full_form import examples

SCHEMA = pa.schema([("id", pa.int64())])


def opened_one_by_one(log: DeltaLog, found: Timeline) -> list[tuple[int, int]]:
    """The same counts the long way: by a snapshot of each version."""
    snapshots = [log.snapshot(version) for version in found.versions["version"].to_pylist()]
    return [(s.detail()["numFiles"], s.detail()["sizeInBytes"]) for s in snapshots]


def counts(found: Timeline) -> list[tuple[int, int]]:
    return list(zip(found.versions["files"].to_pylist(), found.versions["bytes"].to_pylist(), strict=True))


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 2**32), limit=st.none() | st.integers(1, 12), checkpoint=st.booleans())
def test_counts_are_those_of_each_version(
    tmp_path_factory: pytest.TempPathFactory, seed: int, limit: int | None, checkpoint: bool
) -> None:
    """Files come, go, come again, get deletion vectors, and are committed once more as they are."""
    pick = random.Random(seed)
    table = TableBuilder(tmp_path_factory.mktemp("t"))
    table.create(SCHEMA, reader_features=["deletionVectors"], writer_features=["deletionVectors"])
    known: list[dict] = []  # type: ignore[type-arg]
    for _ in range(10):
        actions = []
        for _ in range(pick.randrange(4)):
            add = {"add": {**file(pick.randrange(6)), "deletionVector": vector(pick)}}
            if add["add"]["deletionVector"] is None:
                del add["add"]["deletionVector"]
            action = remove_action(add) if pick.random() < 0.4 else add
            if all(place(action) != place(other) for other in actions):
                actions.append(action)
        known += actions
        table.commit(*actions)
        if checkpoint and table.version == 5:
            table.checkpoint()
    log = DeltaLog(table.path)
    found = log.timeline(limit)
    assert counts(found) == opened_one_by_one(log, found)
    assert found.versions["version"].to_pylist() == list(range(11))[-(limit or 11) :]
    rows = found.versions.to_pylist()
    for before, after in zip(rows, rows[1:], strict=False):
        assert after["files"] - before["files"] == after["added_files"] - after["removed_files"]


def file(number: int) -> dict:  # type: ignore[type-arg]
    return {
        "path": f"f{number}.parquet", "partitionValues": {}, "size": 10 + number, "modificationTime": 0,
        "dataChange": True,
    }  # fmt: skip


def vector(pick: random.Random) -> dict | None:  # type: ignore[type-arg]
    if pick.random() < 0.5:
        return None
    return {
        "storageType": "i", "pathOrInlineDv": f"v{pick.randrange(2)}", "sizeInBytes": 1, "cardinality": 1,
    }  # fmt: skip


def place(action: dict) -> str:  # type: ignore[type-arg]
    (body,) = action.values()
    return str(body["path"])


def test_bytes_follow_a_file_that_is_committed_again(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(SCHEMA)
    table.commit({"add": file(1)}, {"add": file(2)})
    table.commit({"add": {**file(1), "dataChange": False}})
    table.commit(remove_action({"add": file(2)}))
    assert DeltaLog(tmp_path).timeline().versions.to_pydict() | {"timestamp": 0, "operation": 0} == {
        "version": [0, 1, 2, 3],
        "timestamp": 0,
        "operation": 0,
        "files": [0, 2, 2, 1],
        "bytes": [0, 23, 23, 11],
        "added_files": [0, 2, 0, 0],
        "added_bytes": [0, 23, 0, 0],
        "removed_files": [0, 0, 0, 1],
        "removed_bytes": [0, 0, 0, 12],
    }


def test_times_and_operations_are_those_of_the_history() -> None:
    log = DeltaLog("examples/data/sales")
    ours = [(v["version"], v["timestamp"], v["operation"]) for v in log.timeline().versions.to_pylist()]
    assert ours == [(v["version"], v["timestamp"], v["operation"]) for v in reversed(log.history())]


def test_what_the_first_version_changed_is_not_known_behind_a_limit() -> None:
    found = DeltaLog("examples/data/sales").timeline(3).versions
    assert [found[name].null_count for name in ("added_files", "removed_bytes", "files")] == [1, 1, 0]


def test_limits(tmp_path: Path) -> None:
    log = DeltaLog("examples/data/sales")
    assert log.timeline(0).versions.num_rows == 0
    assert (
        log.timeline(0).versions.schema == log.timeline(1).versions.schema == log.timeline().versions.schema
    )
    assert log.snapshot(2).timeline().versions["version"].to_pylist() == [0, 1, 2]
    for timeline in (log.timeline, log.snapshot(2).timeline):
        with pytest.raises(InvalidOptionError, match="limit must not be negative"):
            timeline(-1)
    with pytest.raises(InvalidOptionError, match="limit must not be negative"):
        log.plot.history(limit=-1)


def test_text_names_the_newest_versions() -> None:
    text = str(DeltaLog("examples/data/sales").timeline())
    assert "8 versions" in text and "MERGE            15  33.1 KiB" in text
