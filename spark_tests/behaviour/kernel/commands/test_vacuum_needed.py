"""What must stay, by paths and by hashes; and found in parts of a checkpoint, each by itself."""

from __future__ import annotations

import os
import tempfile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.kernel.commands.vacuum.references import (
    NeededHashes,
    NeededPaths,
    PathHashes,
    needed_by_commits,
    needed_in_part,
    needed_paths,
)
from delta_ds.kernel.log import parts
from delta_ds.kernel.log.parts import parts_for_tasks
from delta_ds.kernel.log.replay import ReplayHead, load_head
from delta_ds.kernel.log.segment import LogListing, list_log
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.testing import Action, TableBuilder, commit_time
from spark_tests.behaviour.kernel.files.scan.test_part_scan import KINDS, in_small_groups
from spark_tests.behaviour.kernel.log import checkpoints
from spark_tests.full_form import examples

VECTORS = {"dv1": "^-aqEH.-t@S}K{vb[*k^", "dv3": "ab^-aqEH.-t@S}K{vb[*k^"}
PATHS = st.lists(st.text(max_size=12) | st.sampled_from(["a", "aa", "p=1/a", "p=1/b", ""]), max_size=30)


def table_of(paths: list[str]) -> pa.Table:
    return pa.table({"path": pa.array(paths, pa.string())})


@given(PATHS, PATHS, st.integers(0, 1 << 32))
@settings(max_examples=examples(100))
def test_hashes_leave_what_paths_leave(listed: list[str], needed: list[str], seed: int) -> None:
    hashes = PathHashes(seed)
    chunks = pa.chunked_array([needed[:3], needed[3:]], pa.string())
    by_hashes = NeededHashes(hashes, [hashes.of(chunks), np.zeros(0, np.uint64)])
    expected = NeededPaths(chunks).without(table_of(listed))
    assert by_hashes.without(table_of(listed)).equals(expected)


def test_hashes_of_many_paths_differ_and_depend_on_nothing_but_the_text() -> None:
    paths = [f"day=2025-01-{n % 31:02d}/part-{n}.parquet" for n in range(100_000)]
    hashes = PathHashes(7)
    found = hashes.of(pa.chunked_array([paths]))
    assert len(np.unique(found)) == len(paths)
    apart = pa.chunked_array([pa.array(["x", *paths[:20_000]]).slice(1), pa.array(paths[20_000:])])
    assert (PathHashes(7).of(apart) == found).all()
    assert not (PathHashes(8).of(apart) == found).any()


def test_a_letter_further_on_than_factors_are_known_counts() -> None:
    long = "x" * 70_000
    found = PathHashes(1).of(pa.chunked_array([[long, long + "y", long + "z", ""]]))
    assert len(set(found.tolist())) == 4


@given(checkpoints.histories, st.sampled_from(KINDS), st.booleans(), st.integers(-3, 10))
@settings(max_examples=examples(60))
def test_parts_together_name_what_must_stay(
    history: list[list[Action]], kind: str, small: bool, horizon: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "TASK_ROWS", 2)
        table = TableBuilder(folder)
        table.create(
            checkpoints.SCHEMA, partition_columns=["p"], reader_features=["deletionVectors", "v2Checkpoint"]
        )
        checkpoints.commit_all(
            table, [[with_named_vector(action) for action in commit] for commit in history]
        )
        table.checkpoint(kind, version=(table.version + 1) // 2)
        if small:
            in_small_groups(table)
        for version in range(table.version + 1):
            seconds = commit_time(version) / 1000
            os.utime(table.commit_file(version), (seconds, seconds))
        # Removals are of all times, commits of `commit_time`.
        cutoff = commit_time(horizon) if horizon >= 0 else checkpoints.NOW_MS - checkpoints.WEEK_MS + horizon
        snapshot = DeltaLog(folder).open_snapshot()
        listing = list_log(snapshot.storage)
        head = load_head(snapshot.storage, snapshot.segment)
        if head.older is not None:
            expected = set(needed_paths(snapshot, listing, cutoff).to_pylist())
            assert in_parts(snapshot, listing, head, cutoff) == expected


def with_named_vector(action: Action) -> Action:
    """The action with a deletion vector that names a file, if any."""
    ((kind, body),) = action.items()
    vector = body.get("deletionVector")
    if vector is None or vector["storageType"] == "i":
        return action
    name = VECTORS[vector["pathOrInlineDv"]]
    return {kind: {**body, "deletionVector": {**vector, "pathOrInlineDv": name}}}


def in_parts(snapshot: Snapshot, listing: LogListing, head: ReplayHead, cutoff: int) -> set[str]:
    found = set(needed_by_commits(snapshot, head, listing, cutoff).to_pylist())
    assert head.older is not None
    for part in parts_for_tasks(snapshot.storage, head.older.checkpoint):
        found |= set(needed_in_part(head.older, part, cutoff).to_pylist())
    return found
