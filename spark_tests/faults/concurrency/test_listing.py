"""A listing of a folder is no snapshot of it: of files made meanwhile it shows some, and not always the first ones.

POSIX leaves open whether a listing shows what appears while it is made, and ext4 lists in the order of hashes: with
two commits in that time, the second one may be shown and the first one not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.transaction.transaction import Transaction
from spark_tests.faults.concurrency.append_worker import NO_ROWS, append, row, write_file


class _Entries:
    """What `os.scandir` returns, without some names."""

    def __init__(self, found: Any, hidden: str) -> None:
        self._found = found
        self._hidden = hidden

    def __enter__(self) -> Iterator[Any]:
        return (entry for entry in self._found.__enter__() if not entry.name.startswith(self._hidden))

    def __exit__(self, *error: object) -> None:
        self._found.__exit__(*error)


@contextmanager
def one_listing_without(
    version: int, monkeypatch: pytest.MonkeyPatch, ending: str = ""
) -> Iterator[list[str]]:
    """The next listing of the log does not show a version, or its file of one kind; later ones do."""
    real, torn = os.scandir, list[str]()

    def scandir(path: Any) -> Any:
        if torn or not os.fspath(path).endswith("_delta_log"):
            return real(path)
        torn.append(os.fspath(path))
        return _Entries(real(path), f"{version:020}{ending or '.'}")

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        yield torn


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    log = DeltaLog(tmp_path / "table")
    log.write(NO_ROWS)
    for number in range(4):
        append(log, "handle", row(0, number))
    return log


def read(log: DeltaLog) -> Callable[[], int]:
    return lambda: DeltaLog(log.storage.url).snapshot().version


def write(log: DeltaLog) -> Callable[[], int]:
    return lambda: append(DeltaLog(log.storage.url), "cold", row(0, 4)) - 1


def follow(log: DeltaLog) -> Callable[[], int]:
    """A commit on top of those that came first."""
    transaction = Transaction(log.storage, log.open_snapshot(version=1))
    transaction.add(write_file(log.storage, row(0, 4)))
    return lambda: transaction.commit("WRITE") - 1


def checkpoint(log: DeltaLog) -> Callable[[], int]:
    return log.checkpoint


@pytest.mark.parametrize("use", [read, write, follow, checkpoint])
def test_a_listing_with_a_gap_is_made_again(
    log: DeltaLog, use: Callable[[DeltaLog], Callable[[], int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = use(log)
    with one_listing_without(3, monkeypatch) as torn:
        assert run() == 4
    assert torn
    found = log.snapshot().scan().to_arrow()["number"].to_pylist()
    assert sorted(found)[:4] == list(range(4))


def test_a_commit_that_is_not_listed_beside_its_checkpoint_is_looked_for(
    log: DeltaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.checkpoint()
    log.storage.delete(["_delta_log/_last_checkpoint"])  # as before it is written
    with one_listing_without(4, monkeypatch, ".json") as torn:
        assert read(log)() == 4
    assert torn
