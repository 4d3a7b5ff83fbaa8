"""Maintenance of catalog-managed tables: refused by name unless the coordinator permits it."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_ds.exceptions import InvalidOptionError, UnsupportedOperationError
from delta_ds.kernel.commands.maintain import maintain
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.vacuum.command import vacuum
from delta_ds.kernel.log.cleanup import clean_up
from spark_tests.kernel.storage.coordination.helpers import NAME, Managed

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
