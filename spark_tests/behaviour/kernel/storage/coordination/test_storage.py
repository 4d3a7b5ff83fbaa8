"""The log of a catalog-managed table as its coordinator tells it, whatever lies in its folder."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import (
    InvalidOptionError,
    StorageError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from delta_ds.kernel.storage.coordination.coordinator import ProposedCommit
from delta_ds.kernel.storage.coordination.storage import CoordinatedStorage
from delta_ds.kernel.storage.filesystem import FileStatus
from delta_ds.kernel.storage.local import LocalStorage
from spark_tests.behaviour.kernel.storage.coordination.helpers import FAULTY, NAME, FaultyCoordinator, Managed


@pytest.fixture
def managed(tmp_path: Path) -> Iterator[Managed]:
    FaultyCoordinator.reset()
    yield Managed(tmp_path, FAULTY)
    FaultyCoordinator.reset()


def unpublish(managed: Managed, first: int) -> None:
    """Put the table back to when the commits from a version on were ratified and not published."""
    latest = managed.coordinator.ratified(managed.table).latest
    staged = {int(name[:20]): name for name in managed.staged()}
    with managed.coordinator._transaction("test", NAME, writes=True) as run:
        for version in range(first, latest + 1):
            log = managed.path / "_delta_log"
            (log / f"{version:020}.json").unlink()
            size = (log / "_staged_commits" / staged[version]).stat().st_size
            run.change(
                "INSERT INTO delta_commits VALUES (?, ?, ?, NULL, ?, ?, ?)",
                managed.table.id, version, staged[version], size, 1_700_000_000_000 + version, 0,
            )  # fmt: skip
        run.change("UPDATE delta_tables SET published = ? WHERE id = ?", first - 1, managed.table.id)


def test_the_example_of_the_protocol(managed: Managed) -> None:
    """Commit 7 is published and still known, 8 is staged, 9 is inline; of 10 there are proposals only."""
    for number in range(10):
        managed.append(number)
    log = managed.path / "_delta_log"
    unpublish(managed, 7)
    staged = log / "_staged_commits"
    (log / f"{7:020}.json").write_text("not what was ratified")
    inline = next(staged.glob(f"{9:020}.*"))
    with managed.coordinator._transaction("test", NAME, writes=True) as run:
        run.change(
            "UPDATE delta_commits SET file_name = NULL, content = ? WHERE version = 9", inline.read_bytes()
        )
    inline.unlink()
    (staged / f"{8:020}.b91807ba-fe18-488c-a15e-c4807dbd2174.json").write_text("rejected")
    (staged / f"{10:020}.0f707846-cd18-4e01-b40e-84ee0ae987b0.json").write_text("not yet ratified")
    (log / f"{10:020}.json").write_text("published by somebody, and not ratified")
    assert managed.ids() == list(range(10))
    assert managed.ids(7) == list(range(8))
    assert [commit["version"] for commit in managed.open().history()] == list(range(9, -1, -1))
    with pytest.raises(VersionNotFoundError):
        managed.open().snapshot(10)


def test_a_snapshot_asks_once(managed: Managed) -> None:
    for number in range(4):
        managed.append(number)
    unpublish(managed, 1)
    FaultyCoordinator.reset()
    snapshot = managed.open().snapshot()
    assert sorted(snapshot.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3]
    assert FaultyCoordinator.asked == ["ratified"]


def test_a_copy_in_another_process_reads_what_was_listed_without_asking(managed: Managed) -> None:
    for number in range(3):
        managed.append(number)
    unpublish(managed, 1)
    storage = managed.open().storage
    paths = [status.path for status in storage.list_from("_delta_log") if status.path.endswith(".json")]
    contents = storage.read_many(paths)
    FaultyCoordinator.reset()
    copy = pickle.loads(pickle.dumps(storage))
    assert copy.read_many(paths) == contents == [copy.read(path) for path in paths]
    assert [copy.open(path).read() for path in paths] == contents
    assert copy.read_range(paths[2], 2, 10) == contents[2][2:12]
    assert [copy.status(path).size for path in paths] == [len(content) for content in contents]
    assert all(copy.exists(path) for path in paths)
    assert FaultyCoordinator.asked == []


def test_who_only_reads_and_writes_data_files_needs_no_coordinator(managed: Managed) -> None:
    """As executors on other machines, which cannot open its database."""
    managed.append(0)
    storage = managed.open().open_snapshot().storage
    copy = pickle.loads(pickle.dumps(storage))
    os.rename(managed.options["coordinatorUrl"], f"{managed.options['coordinatorUrl']}.away")
    with copy.open_output("part-1.parquet") as stream:
        stream.write(b"rows")
    assert copy.read("part-1.parquet") == b"rows"
    with pytest.raises(StorageError, match="no such database"):
        copy.list_from("_delta_log")


def test_a_staged_file_that_is_gone_is_read_where_it_was_published(managed: Managed) -> None:
    managed.append(0)
    managed.append(1)
    unpublish(managed, 1)
    reader = managed.open()
    assert reader.snapshot().version == 1
    managed.append(2)  # publishes version 1
    for name in managed.staged():
        (managed.path / "_delta_log/_staged_commits" / name).unlink()
    assert reader.snapshot(1).scan().count() == 2


def test_a_listing_that_lags_behind_makes_no_older_table(
    managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        managed.append(number)
    listed = LocalStorage.list_from

    def lagging(self: LocalStorage, directory: str, start: str = "") -> list[FileStatus]:
        return [
            s for s in listed(self, directory, start) if f"{2:020}" not in s.path and f"{3:020}" not in s.path
        ]

    monkeypatch.setattr(LocalStorage, "list_from", lagging)
    assert managed.open().snapshot().version == 3
    assert managed.ids() == [0, 1, 2, 3]


def test_a_published_commit_that_is_gone_is_named(managed: Managed) -> None:
    managed.append(0)
    managed.append(1)
    (managed.path / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(StorageError) as caught:
        managed.open().snapshot()
    assert caught.value.condition == "DELTA_PUBLISHED_COMMIT_MISSING"


def test_a_handle_that_stays_open_sees_new_commits(managed: Managed) -> None:
    log = managed.open()
    managed.append(0)
    assert log.snapshot().version == 0
    managed.append(1)
    unpublish(managed, 1)
    assert log.snapshot().version == 1
    assert log.storage.exists(f"_delta_log/{1:020}.json")
    assert not log.storage.exists(f"_delta_log/{2:020}.json")


def test_a_commit_looks_the_same_before_and_after_it_is_published(managed: Managed) -> None:
    managed.append(0)
    log = managed.open()
    transaction = log.start_transaction()
    assert transaction.base is not None
    managed.append(1)
    unpublish(managed, 1)
    before = log.start_transaction().base
    managed.append(2)
    after = log.start_transaction().base
    assert before is not None and after is not None
    path = f"_delta_log/{1:020}.json"
    assert after.version == 2
    assert [f.status for f in after.segment.commits if f.path == path] == [before.segment.last_commit.status]


def test_a_handle_that_stays_open_does_not_show_what_clean_up_deleted(tmp_path: Path) -> None:
    from delta_ds.kernel.log.cleanup import clean_up

    managed = Managed(tmp_path, allows=["logCleanup"])
    log = managed.open()
    for number in range(4):
        log.write(pa.table({"id": [number]}))
    log.checkpoint()
    log.write(pa.table({"id": [4]}))
    clean_up(log.storage, log.snapshot().timestamp + 366 * 86_400_000)
    assert [commit["version"] for commit in log.history()] == [4, 3]
    assert log.snapshot().scan().count() == 5
    assert not log.storage.exists(f"_delta_log/{1:020}.json")


def test_commits_cannot_be_written_past_the_coordinator(managed: Managed) -> None:
    managed.append(0)
    storage = managed.open().storage
    path = f"_delta_log/{1:020}.json"
    with pytest.raises(StorageError, match="ratified by a coordinator"):
        storage.write(path, b"{}")
    with pytest.raises(StorageError, match="ratified by a coordinator"):
        storage.open_output(path)
    with pytest.raises(StorageError, match="ratified by a coordinator"):
        storage.replace_file(path)
    storage.create(path, b'{"commitInfo":{"inCommitTimestamp":1}}\n')
    assert managed.coordinator.ratified(managed.table).latest == 1


# --- which table it is


def test_by_its_path_alone_the_table_is_refused_by_name(managed: Managed) -> None:
    managed.append(0)
    with pytest.raises(UnsupportedFeatureError) as caught:
        DeltaLog(managed.path).snapshot()
    assert caught.value.condition == "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"


def test_the_table_is_found_by_its_location_where_no_name_is_given(managed: Managed, tmp_path: Path) -> None:
    managed.append(0)
    options = {name: value for name, value in managed.options.items() if name != "catalogTable"}
    assert DeltaLog(managed.path, options).snapshot().version == 0
    os.symlink(managed.path, tmp_path / "link")
    assert DeltaLog(tmp_path / "link", options).snapshot().version == 0
    with pytest.raises(StorageError) as caught:
        DeltaLog(tmp_path / "other", options).snapshot()
    assert caught.value.condition == "DELTA_COORDINATOR_TABLE_NOT_FOUND"


def test_a_name_that_belongs_to_another_location_is_refused(managed: Managed, tmp_path: Path) -> None:
    managed.append(0)
    with pytest.raises(InvalidOptionError) as caught:
        DeltaLog(tmp_path / "other", managed.options).snapshot()
    assert caught.value.condition == "DELTA_COORDINATOR_LOCATION_MISMATCH"
    with pytest.raises(StorageError) as missing:
        DeltaLog(managed.path, {**managed.options, "catalogTable": "main.sales.missing"}).snapshot()
    assert missing.value.condition == "DELTA_COORDINATOR_TABLE_NOT_FOUND"


def test_a_coordinator_that_is_not_there_is_told_by_its_address(managed: Managed) -> None:
    managed.append(0)
    with pytest.raises(StorageError) as caught:
        DeltaLog(managed.path, {**managed.options, "coordinatorUrl": "/nowhere/c.db"}).snapshot()
    assert caught.value.condition == "DELTA_COORDINATOR_UNAVAILABLE"
    assert "/nowhere/c.db" in str(caught.value)


def test_a_plain_table_that_a_coordinator_manages_is_refused(managed: Managed) -> None:
    DeltaLog(managed.path).write(pa.table({"id": [1]}))
    with managed.coordinator._transaction("test", NAME, writes=True) as run:
        run.change("UPDATE delta_tables SET latest = 0, published = 0")
    with pytest.raises(UnsupportedFeatureError) as caught:
        managed.open().snapshot()
    assert caught.value.condition == "DELTA_CATALOG_MANAGED_MISMATCH"


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"commitCoordinator": "sqlit"}, "DELTA_UNKNOWN_COMMIT_COORDINATOR"),
        ({"commitCoordinator": "sqlite"}, "DELTA_COORDINATOR_OPTION_MISSING"),
        ({"commitCoordinator": "json:loads"}, "DELTA_UNKNOWN_COMMIT_COORDINATOR"),
        ({"catalogTable": "main.sales.orders"}, "DELTA_COORDINATOR_OPTION_MISSING"),
        (
            {"commitCoordinator": "sqlite", "coordinatorUrl": "/c.db", "logStore": "dynamodb"},
            "DELTA_UNKNOWN_COMMIT_COORDINATOR",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused_at_once(
    tmp_path: Path, options: dict[str, str], condition: str
) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        DeltaLog(tmp_path, options)
    assert caught.value.condition == condition


def test_what_is_shown_holds_no_token(managed: Managed) -> None:
    log = DeltaLog(managed.path, {**managed.options, "coordinatorToken": "s3cr3t-token"})
    storage = log.storage
    assert isinstance(storage, CoordinatedStorage)
    shown = f"{log!r} {storage!r} {storage.options!r} {storage.table!r} {storage.coordinator!r}"
    assert "s3cr3t-token" not in shown


def test_inline_content_is_not_shown() -> None:
    assert "secret row" not in repr(ProposedCommit(1, None, 10, 0, 0, b"secret row"))
