"""Commits by a coordinator: staged, ratified, published in order; and what becomes of them when something fails."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds.exceptions import (
    ProtocolChangedException,
    StorageError,
    UncertainWriteError,
    UnsupportedOperationError,
)
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.store_options import without_coordinator
from delta_ds.kernel.transaction.write.arrow import write_arrow
from spark_tests.behaviour.kernel.storage.coordination.helpers import FAULTY, FaultyCoordinator, Managed


@pytest.fixture
def managed(tmp_path: Path) -> Iterator[Managed]:
    FaultyCoordinator.reset()
    yield Managed(tmp_path, FAULTY)
    FaultyCoordinator.reset()


def fails(error: Exception) -> None:
    raise error


def unavailable() -> None:
    fails(StorageError("the coordinator is away"))


def unanswered() -> None:
    fails(UncertainWriteError("no answer"))


def once(name: str, when: dict[str, object], action: object) -> None:
    """Let something happen at the next call, and at no later one."""

    def run() -> None:
        del when[name]
        action()  # type: ignore[operator]

    when[name] = run


def test_the_first_commit_makes_a_managed_table_with_what_it_needs(managed: Managed) -> None:
    managed.append(1)
    snapshot = managed.open().snapshot()
    assert (snapshot.protocol.min_reader, snapshot.protocol.min_writer) == (3, 7)
    assert {"catalogManaged", "vacuumProtocolCheck"} <= (snapshot.protocol.reader_features or set())
    needed = {"catalogManaged", "vacuumProtocolCheck", "inCommitTimestamp", "appendOnly", "invariants"}
    assert needed <= (snapshot.protocol.writer_features or set())
    assert snapshot.properties["delta.enableInCommitTimestamps"] == "true"
    first = json.loads((managed.path / "_delta_log" / f"{0:020}.json").read_text().splitlines()[0])[
        "commitInfo"
    ]
    assert first["txnId"] and first["inCommitTimestamp"] == first["timestamp"]


def test_published_bytes_are_the_staged_ones_and_timestamps_grow(managed: Managed) -> None:
    times = []
    for number in range(4):
        managed.append(number)
    log = managed.path / "_delta_log"
    for name in managed.staged():
        published = (log / f"{name[:20]}.json").read_bytes()
        assert published == (log / "_staged_commits" / name).read_bytes()
        times.append(json.loads(published.splitlines()[0])["commitInfo"]["inCommitTimestamp"])
    assert times == sorted(set(times)) and len(times) == 4
    assert managed.coordinator.ratified(managed.table).commits == ()


def test_a_commit_that_was_ratified_and_not_published_is_read_and_published_by_the_next(
    managed: Managed,
) -> None:
    managed.append(0)
    FaultyCoordinator.after["ratify"] = lambda: fails(KeyboardInterrupt())  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        managed.append(1)
    FaultyCoordinator.reset()
    assert managed.published() == [0]
    assert managed.ids() == [0, 1]
    assert [c.version for c in managed.coordinator.ratified(managed.table).commits] == [1]
    managed.append(2)
    assert managed.published() == [0, 1, 2]
    assert managed.coordinator.ratified(managed.table).commits == ()


def test_a_failing_publication_fails_no_commit(managed: Managed, caplog: pytest.LogCaptureFixture) -> None:
    managed.append(0)
    FaultyCoordinator.before["published"] = unavailable
    assert managed.append(1) == 1
    assert "commit_left_unpublished" in caplog.text
    FaultyCoordinator.reset()
    assert managed.append(2) == 2
    assert managed.published() == [0, 1, 2]


def test_a_lost_answer_to_a_commit_that_was_ratified_is_found_out(managed: Managed) -> None:
    managed.append(0)
    once("ratify", FaultyCoordinator.after, unanswered)  # type: ignore[arg-type]
    assert managed.append(1) == 1
    assert managed.ids() == [0, 1]


def test_a_lost_request_is_sent_again(managed: Managed) -> None:
    managed.append(0)
    once("ratify", FaultyCoordinator.before, unanswered)  # type: ignore[arg-type]
    assert managed.append(1) == 1
    assert managed.ids() == [0, 1]
    assert len(managed.staged()) == 2


def test_a_commit_of_which_nothing_can_be_found_out_keeps_its_files(
    managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delta_ds.kernel.storage.coordination.log_store.pause", lambda attempt: None)
    managed.append(0)
    FaultyCoordinator.after["ratify"] = unanswered

    def from_then_on() -> None:
        FaultyCoordinator.before["ratified"] = unavailable

    FaultyCoordinator.before["ratify"] = from_then_on
    with pytest.raises(UncertainWriteError, match="not known whether version 1"):
        managed.append(1)
    FaultyCoordinator.reset()
    assert managed.ids() == [0, 1]  # it was ratified, and its files are there


def test_a_refused_commit_leaves_nothing(managed: Managed) -> None:
    managed.append(0)
    FaultyCoordinator.before["ratify"] = unavailable
    with pytest.raises(StorageError, match="the coordinator is away"):
        managed.append(1)
    FaultyCoordinator.reset()
    assert len(managed.staged()) == 1
    assert len(list(managed.path.glob("*.parquet"))) == 1
    assert managed.ids() == [0]


def test_who_loses_a_version_takes_the_next_one_and_its_staged_file_goes(managed: Managed) -> None:
    managed.append(0)
    once("ratify", FaultyCoordinator.before, lambda: managed.append(1))  # type: ignore[arg-type]
    assert managed.append(2) == 2
    assert managed.ids() == [0, 1, 2]
    assert [name[:20] for name in managed.staged()] == [f"{version:020}" for version in range(3)]


def test_a_checkpoint_is_written_of_published_versions_only(managed: Managed) -> None:
    managed.append(0)
    FaultyCoordinator.after["ratify"] = lambda: fails(KeyboardInterrupt())  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        managed.append(1)
    FaultyCoordinator.reset()
    assert managed.open().checkpoint() == 1
    assert managed.published() == [0, 1]
    blocked = managed.path / "_delta_log" / f"{2:020}.json"
    FaultyCoordinator.after["ratify"] = blocked.mkdir
    assert managed.append(2) == 2
    FaultyCoordinator.reset()
    with pytest.raises(StorageError):
        managed.open().checkpoint()
    assert not (managed.path / "_delta_log" / f"{2:020}.checkpoint.parquet").exists()


def test_a_commit_written_past_the_coordinator_is_ignored_by_readers_and_no_writer_takes_its_version(
    managed: Managed,
) -> None:
    managed.append(0)
    wrong = managed.path / "_delta_log" / f"{1:020}.json"
    wrong.write_text('{"commitInfo":{"operation":"WRITE"}}\n')
    assert managed.ids() == [0]
    with pytest.raises(StorageError, match="DELTA_CATALOG_BEHIND_LOG"):
        managed.append(1)
    assert managed.ids() == [0]
    wrong.unlink()
    managed.append(2)
    assert managed.published() == [0, 1]
    assert managed.ids() == [0, 2]


def test_a_commit_that_may_be_the_ratified_one_keeps_its_file(managed: Managed) -> None:
    managed.append(0)
    away: list[str] = []

    def answered() -> None:
        # A client that repeats requests hears of its own first one, and then nothing more.
        away.append("")
        fails(FileExistsError("the version is ratified already"))

    def lost() -> None:
        if away:
            unavailable()

    FaultyCoordinator.after["ratify"] = answered
    FaultyCoordinator.before.update(ratify=lost, ratified=lost)
    with pytest.raises(UncertainWriteError):
        managed.append(1)
    FaultyCoordinator.reset()
    assert managed.ids() == [0, 1]
    assert managed.append(2) == 2
    assert managed.published() == [0, 1, 2]


def test_of_two_writers_that_begin_a_table_one_is_told_of_the_other(managed: Managed) -> None:
    rows = pa.table({"id": pa.array([2], pa.int64())})
    late = managed.open().start_transaction(create=True)
    managed.append(1)
    with pytest.raises(ProtocolChangedException):
        write_arrow(late, rows)
    assert managed.ids() == [1]


def test_a_table_does_not_begin_upon_what_is_left_of_another(managed: Managed) -> None:
    log = managed.path / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{4:020}.checkpoint.parquet").write_bytes(b"of a table whose first commits were cleaned up")
    with pytest.raises(StorageError) as caught:
        managed.append(1)
    assert caught.value.condition == "DELTA_UNMANAGED_TABLE_AT_LOCATION"
    assert managed.coordinator.ratified(managed.table).latest == -1


def test_a_coordinator_of_an_older_state_takes_no_commits(tmp_path: Path) -> None:
    managed = Managed(tmp_path)
    managed.append(0)
    managed.append(1)
    log = managed.open()
    assert log.snapshot().version == 1
    source = sqlite3.connect(managed.options["coordinatorUrl"])
    source.execute("UPDATE delta_tables SET latest = 0, published = 0")
    source.commit()
    source.close()
    for opened in (managed.open(), log):
        with pytest.raises(StorageError) as caught:
            opened.write(pa.table({"id": pa.array([2], pa.int64())}))
        assert caught.value.condition == "DELTA_CATALOG_BEHIND_LOG"
    assert managed.published() == [0, 1]


def test_a_commit_written_past_the_coordinator_between_two_looks_is_told(
    managed: Managed, caplog: pytest.LogCaptureFixture
) -> None:
    managed.append(0)
    wrong = managed.path / "_delta_log" / f"{1:020}.json"
    FaultyCoordinator.after["ratify"] = lambda: wrong.write_text("{}") and None
    managed.append(1)
    FaultyCoordinator.reset()
    assert "past the coordinator" in caplog.text
    assert managed.ids() == [0, 1]
    wrong.unlink()
    managed.append(2)
    assert managed.published() == [0, 1, 2]
    assert managed.ids() == [0, 1, 2]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("when", ["ratified", "ratify", "after ratify", "published"])
def test_no_commit_that_was_put_past_the_coordinator_is_written_over(
    managed: Managed, when: str, version: int
) -> None:
    """Nor is one lost that the coordinator has ratified: whoever asks it reads that."""
    if version:
        managed.append(0)
    theirs = b'{"commitInfo":{"operation":"WRITE"}}\n'
    storage = open_storage(managed.path)
    put: list[bool] = []

    def meanwhile() -> None:
        if not put:
            with suppress(FileExistsError):
                put.append(False)
                storage.create(relative_commit_path(version), theirs)
                put[0] = True

    hooks = FaultyCoordinator.after if when.startswith("after") else FaultyCoordinator.before
    hooks[when.removeprefix("after ")] = meanwhile
    try:
        managed.append(version)
        acknowledged = list(range(version + 1))
    except StorageError:
        acknowledged = list(range(version))
    FaultyCoordinator.reset()
    assert put
    if put[0]:
        assert storage.read(relative_commit_path(version)) == theirs
    if acknowledged:
        assert managed.ids() == acknowledged


def test_a_staged_commit_that_is_a_link_is_not_published(
    managed: Managed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    managed.append(0)
    (tmp_path / "secret").write_bytes(b"PRIVATE KEY")
    FaultyCoordinator.before["published"] = unavailable
    real = LocalStorage.create

    def only_staged(self: LocalStorage, path: str, data: bytes, **how: bool) -> None:
        if path == relative_commit_path(1):
            raise StorageError("down")
        real(self, path, data, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStorage, "create", only_staged)
        managed.append(1)
    FaultyCoordinator.reset()
    (staged,) = (managed.path / "_delta_log" / "_staged_commits").glob(f"{1:020}.*")
    staged.unlink()
    staged.symlink_to(tmp_path / "secret")
    with pytest.raises(StorageError, match="NOT_IN_TABLE"):
        managed.open().storage.publish_up_to(1)
    assert managed.published() == [0]


def test_a_table_that_is_there_already_is_not_taken_over(tmp_path: Path) -> None:
    from delta_ds import DeltaLog

    DeltaLog(tmp_path / "orders").write(pa.table({"id": [7]}))
    managed = Managed(tmp_path)
    with pytest.raises(StorageError) as caught:
        managed.append(1)
    assert caught.value.condition == "DELTA_UNMANAGED_TABLE_AT_LOCATION"
    assert DeltaLog(managed.path, without_coordinator(managed.options)).snapshot().scan().count() == 1
    assert managed.coordinator.ratified(managed.table).latest == -1


def test_of_two_who_make_the_table_one_wins_and_the_other_follows(managed: Managed) -> None:
    from delta_ds.exceptions import DeltaConcurrentModificationException

    other = managed.open().start_transaction(create=True)
    managed.append(0)
    state = managed.open().snapshot()
    other.set_protocol(state.protocol).set_metadata(state.metadata)
    with pytest.raises(DeltaConcurrentModificationException):
        other.commit("CREATE TABLE")
    assert managed.ids() == [0]


@pytest.mark.parametrize("text", ["false", None])
def test_timestamps_cannot_be_turned_off(managed: Managed, text: str | None) -> None:
    from delta_ds.kernel.transaction.alter.properties import set_properties, unset_properties

    managed.append(0)
    name = "delta.enableInCommitTimestamps"
    with pytest.raises(UnsupportedOperationError) as caught:
        if text is None:
            unset_properties(managed.open(), [name])
        else:
            set_properties(managed.open(), {name: text})
    assert caught.value.condition == "DELTA_CATALOG_MANAGED_FEATURE_NEEDED"
    assert managed.open().snapshot().version == 0
