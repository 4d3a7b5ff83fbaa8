"""Maintenance of catalog-managed tables: refused by name unless the coordinator permits it."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import (
    InvalidOptionError,
    StorageError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_ds.kernel.commands.maintain import maintain
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.vacuum.command import vacuum
from delta_ds.kernel.log.cleanup import clean_up
from delta_ds.kernel.log.segment import list_log
from delta_ds.kernel.storage.log_store import relative_commit_path
from spark_tests.behaviour.kernel.storage.coordination.helpers import FAULTY, NAME, FaultyCoordinator, Managed

LATER = (int(time.time()) + 40 * 86_400) * 1000  # ms: by then the log has expired
BLOCKED = "DELTA_CATALOG_MANAGED_MAINTENANCE_BLOCKED"


@pytest.fixture
def managed(tmp_path: Path) -> Managed:
    found = Managed(tmp_path)
    for number in range(3):
        found.append(number)
    return found


@pytest.mark.parametrize(
    ("run", "needed"), [(optimize, "optimize"), (vacuum, "vacuum"), (clean_up, "logCleanup")]
)
def test_what_is_not_permitted_is_refused_by_name(managed: Managed, run: object, needed: str) -> None:
    log = managed.open()
    target = log.storage if run is clean_up else log
    with pytest.raises(UnsupportedOperationError, match=needed) as caught:
        run(target)  # type: ignore[operator]
    assert caught.value.condition == BLOCKED
    managed.coordinator.allow(NAME, [needed])
    run(target)  # type: ignore[operator]


def test_a_dry_run_of_vacuum_needs_no_permission(managed: Managed) -> None:
    assert vacuum(managed.open(), dry_run=True).num_files == 0


def test_maintain_tells_what_is_not_allowed(managed: Managed) -> None:
    for number in range(27):
        managed.append(number)
    found = maintain(managed.open())
    assert [(step.command, step.outcome) for step in found.steps] == [("OPTIMIZE", "not allowed")]
    assert BLOCKED in str(found)
    managed.coordinator.allow(NAME, ["optimize"])
    assert [(step.command, step.outcome) for step in maintain(managed.open()).steps] == [("OPTIMIZE", "done")]


def test_vacuum_leaves_staged_commits_and_clean_up_deletes_published_ones(managed: Managed) -> None:
    managed.coordinator.allow(NAME, ["vacuum", "logCleanup"])
    before = managed.staged()
    vacuum(managed.open(), 0, retention_check=False)  # two commits for the history
    assert managed.staged()[:3] == before
    managed.open().checkpoint()
    year = 366 * 86_400_000
    snapshot = managed.open().snapshot()
    clean_up(managed.open().storage, snapshot.timestamp + year)
    assert managed.ids() == [0, 1, 2]
    assert managed.staged() == []


def test_an_operation_that_there_is_not_cannot_be_permitted(managed: Managed) -> None:
    with pytest.raises(InvalidOptionError, match="logCleanup, vacuum, optimize"):
        managed.coordinator.allow(NAME, ["reorg"])


def test_who_does_not_ask_the_coordinator_neither_sums_up_nor_cleans_up_the_log(tmp_path: Path) -> None:
    managed = Managed(tmp_path)
    written(managed, 3)
    before = sorted((managed.path / "_delta_log").iterdir())
    plain = DeltaLog(managed.path)
    for attempt in (plain.checkpoint, lambda: clean_up(plain.storage, LATER)):
        with pytest.raises(UnsupportedFeatureError):
            attempt()
    assert sorted((managed.path / "_delta_log").iterdir()) == before


def test_a_handle_that_made_the_commits_sees_that_they_were_cleaned_up(tmp_path: Path) -> None:
    managed = Managed(tmp_path, allows=["logCleanup"])
    log = written(managed, 5)
    assert clean_up(managed.open().storage, LATER)
    assert sorted(list_log(log.storage).commits) == managed.published() == [4, 5]
    assert [entry["version"] for entry in log.history()] == [5, 4]
    with pytest.raises(VersionNotFoundError):
        log.snapshot(1)
    assert not log.storage.exists(relative_commit_path(1))


def test_clean_up_repeats_a_note_that_was_lost(tmp_path: Path) -> None:
    FaultyCoordinator.reset()
    managed = Managed(tmp_path, FAULTY, allows=["logCleanup"])
    FaultyCoordinator.before["published"] = away
    log = written(managed, 5)
    assert len(managed.coordinator.ratified(managed.table).commits) == 6
    with pytest.raises(StorageError):
        clean_up(log.storage, LATER)
    assert managed.published() == [0, 1, 2, 3, 4, 5]
    FaultyCoordinator.reset()
    assert clean_up(log.storage, LATER)
    assert managed.append(6) == 6
    assert managed.published() == [4, 5, 6]
    assert managed.coordinator.ratified(managed.table).commits == ()


def away() -> None:
    raise StorageError("the coordinator is away")


def written(managed: Managed, newest: int) -> DeltaLog:
    """Commits up to a version, with a checkpoint of the one before; and who made them."""
    log = managed.open()
    for number in range(newest):
        log.write(pa.table({"id": pa.array([number], pa.int64())}))
    log.checkpoint()
    log.write(pa.table({"id": pa.array([newest], pa.int64())}))
    return log
