"""The law of catalog-managed tables: whatever order writers stage, ratify, publish and end in, there is one history.

Each writer goes through the steps of a commit one by one, and may end after any of them; readers look in between, with
and without a listing that lags behind. The model is the list of the commits that were ratified, in their order.
"""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.kernel.log.segment import list_log, read_log_files
from delta_ds.kernel.storage.coordination.coordinator import ProposedCommit, RatifiedCommits
from delta_ds.kernel.storage.coordination.log_store import CoordinatedLogStore, _single_actions
from delta_ds.kernel.storage.coordination.storage import CoordinatedStorage
from delta_ds.kernel.storage.filesystem import FileStatus
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.kernel.storage.uri import Address
from spark_tests.behaviour.kernel.storage.coordination.helpers import Managed
from spark_tests.full_form import FULL, examples

WRITERS = 3


class Lagging(LocalStorage):
    """A folder whose listing does not show the newest commits yet; each can be looked up by its name."""

    hidden = 0

    def list_from(self, directory: str, start: str = "") -> list[FileStatus]:
        listed = super().list_from(directory, start)
        commits = sorted(s.path for s in listed if s.path.endswith(".json"))
        gone = set(commits[len(commits) - self.hidden :])
        return [status for status in listed if status.path not in gone]


def lagging(hidden: int) -> Any:
    def opened(address: Address, options: Mapping[str, Any]) -> LocalStorage:
        storage = Lagging(address, options)
        storage.hidden = hidden
        return storage

    return opened


class Writer:
    """One that commits step by step, as `CoordinatedLogStore.publish` does."""

    def __init__(self, table: Managed) -> None:
        self.storage = CoordinatedStorage(Address("file", "", str(table.path)), table.options, lagging(0))
        self.store = CoordinatedLogStore(self.storage)
        self.commit: tuple[ProposedCommit, bytes] | None = None
        self.ratified = False

    def stage(self, inline: bool) -> None:
        version = self.storage.ask().latest + 1
        info = {
            "txnId": str(uuid.uuid4()),
            "inCommitTimestamp": 1_800_000_000_000 + version,
            "operation": "TEST",
        }
        data = json.dumps({"commitInfo": info}).encode() + b"\n"
        if inline:
            self.commit = ProposedCommit(version, None, len(data), 0, 0, data), data
        else:
            self.commit = self.store._stage(version, data, _single_actions(data)), data
        self.ratified = False

    def ratify(self) -> bytes | None:
        """Returns what was committed; None where another writer was quicker."""
        assert self.commit is not None
        commit, data = self.commit
        try:
            self.store._ratify(commit, data, {})
        except FileExistsError:
            self.commit = None
            return None
        self.storage.learn(RatifiedCommits(commit.version, (commit,)), commit.version)
        self.ratified = True
        return data

    def publish(self) -> None:
        assert self.commit is not None
        self.store.back_fill(self.commit[0].version, self.commit[1])
        self.commit, self.ratified = None, False


writer = st.integers(0, WRITERS - 1)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("step"), writer, st.booleans()),
        st.tuples(st.just("step"), writer, st.booleans()),
        st.tuples(st.just("end"), writer, st.just(False)),
        st.tuples(st.just("read"), st.integers(0, 4), st.booleans()),
        st.tuples(st.just("checkpoint"), st.just(0), st.just(False)),
    ),
    min_size=5,
    max_size=40,
)


# Two inline commits have no file by which they could be told apart.
@example(steps=[("step", 1, True), ("step", 0, True), ("step", 0, False), ("step", 1, False)])
# The listing does not show the last published commit, and the next one is not published.
@example(steps=[("checkpoint", 0, False), ("step", 0, False), ("step", 0, False), ("read", 1, False)])
@given(steps=steps)
@settings(max_examples=400 if FULL else examples(15), deadline=None, suppress_health_check=list(HealthCheck))
def test_every_reader_sees_one_history_and_it_is_published_in_order(
    steps: list[tuple[str, int, bool]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = Managed(Path(folder))
        table.append(0)
        log = table.path / "_delta_log"
        history = [(log / f"{0:020}.json").read_bytes()]
        writers = [Writer(table) for _ in range(WRITERS)]
        opened_before = CoordinatedStorage(Address("file", "", str(table.path)), table.options, lagging(0))
        for what, number, flag in steps:
            if what == "step":
                one = writers[number]
                if one.commit is None:
                    one.stage(inline=flag)
                elif not one.ratified:
                    data = one.ratify()
                    if data is not None:
                        history.append(data)
                else:
                    one.publish()
            elif what == "end":
                writers[number] = Writer(table)
            elif what == "checkpoint":
                table.open().checkpoint()
            else:
                check_reader(table, history, number)
                check_reader(table, history, 0, opened_before if flag else None)
            check_published(log, history)
        check_reader(table, history, 0, opened_before)
        DeltaLog(opened_before).checkpoint()
        check_published(log, history)
        assert len(table.published()) == len(history)
        assert table.coordinator.ratified(table.table).commits == ()


def check_reader(
    table: Managed, history: list[bytes], hidden: int, storage: CoordinatedStorage | None = None
) -> None:
    storage = storage or CoordinatedStorage(
        Address("file", "", str(table.path)), table.options, lagging(min(hidden, 3))
    )
    listing = list_log(storage)
    assert sorted(listing.commits) == list(range(len(history)))
    found = read_log_files(storage, [listing.commits[version] for version in range(len(history))])
    assert found == history
    assert max((c.version for c in listing.checkpoints), default=0) < len(history)


def check_published(log: Path, history: list[bytes]) -> None:
    """What is published is the beginning of the history, byte for byte, and checkpoints are of it."""
    names = sorted(path.name for path in log.glob("*.json") if len(path.name) == 25)
    assert names == [f"{version:020}.json" for version in range(len(names))]
    assert [(log / name).read_bytes() for name in names] == history[: len(names)]
    checkpoints = [int(path.name[:20]) for path in log.glob("*.checkpoint*.parquet")]
    assert max(checkpoints, default=-1) < len(names)
