"""Writers that are killed at any moment of a write: the table is always whole, and everybody goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.log.segment import list_log
from spark_tests.faults.concurrency.append_worker import NO_ROWS, WAYS, append, row
from spark_tests.faults.concurrency.crash_fork_server import EVERY_STEP
from spark_tests.faults.concurrency.faults import BEFORE, LINKED, MIDWAY, Fault, What
from spark_tests.faults.concurrency.plain_log import PlainLog
from spark_tests.faults.concurrency.workers import Nursery

pytestmark = pytest.mark.slow

_DAYS = 86_400


class Writers(Nursery):
    """Writers of one table that may be killed."""

    def __init__(self, table: Path, hidden_names: bool, folder: Path) -> None:
        super().__init__("crash_fork_server", folder)
        self._table = table
        self._hidden_names = hidden_names

    def append(self, number: int, fault: Fault | None) -> bool:
        """Let a writer append a row; whether the fault killed it."""
        job = {"folder": str(self._table), "number": number, "hidden_names": self._hidden_names}
        return self.live(job, fault)


class Table:
    """A table, and the rows that it has to have."""

    def __init__(self, folder: Path, properties: dict[str, str], *, aged: bool) -> None:
        self.folder = folder
        self.handle = DeltaLog(folder)
        self.numbers: list[int] = []
        self._aged = aged
        self._next = 0
        self.handle.write(NO_ROWS, options=properties)

    def next_number(self) -> int:
        """The number of the next row; where the log shall be cleaned up, all of it gets old first."""
        if self._aged:
            for file in (self.folder / "_delta_log").glob("0*"):
                moment = file.stat().st_mtime - 10 * _DAYS
                os.utime(file, (moment, moment))
        self._next += 1
        return self._next

    def check(self, fault: Fault | None) -> None:
        """Everybody who comes now finds the rows of the commits, and can add one."""
        found = DeltaLog(self.folder).snapshot().scan().to_arrow()["number"]
        assert sorted(found.to_pylist()) == self.numbers, fault
        number = self.next_number()
        version = append(self.handle, WAYS[number // 2 % len(WAYS)], row(0, number))
        self.numbers.append(number)
        assert version == len(self.numbers), fault

    def check_history(self) -> None:
        """No version that can be reached is partial, and what followed the commits is right."""
        first = min(c.version for c in list_log(self.handle.storage).checkpoints) if self._aged else 0
        for version in (*range(first, len(self.numbers), 4), len(self.numbers)):
            assert self.handle.open_snapshot(version=version).live_files().num_rows == version
        self.check(None)
        plain = PlainLog(self.handle.storage, max(first - 1, 0) if self._aged else 0)
        plain.check_hint()
        if not self._aged:
            checkpoints, checksums = plain.check_checkpoints(), plain.check_checksums()
            assert checkpoints[-1] == checksums[-1] == len(self.numbers)


@dataclass(frozen=True)
class Case:
    """A table, and at which calls of a write to it writers are killed.

    Attributes
    ----------
    kinds
        Of the files that the calls are for; empty: all.
    """

    properties: dict[str, str]
    kinds: frozenset[str] = frozenset()
    hidden_names: bool = False
    aged: bool = False
    rounds: int = 1

    def faults(self, calls: Sequence[What]) -> Iterator[Fault]:
        """Death before every call, and midway in every one that writes."""
        for index, (call, kind) in enumerate(calls):
            if not self.kinds or kind in self.kinds:
                yield Fault(index, BEFORE)
                if call == "write":
                    yield Fault(index, MIDWAY)


CASES = {
    "every step": Case(EVERY_STEP, rounds=2),
    "hidden names": Case(EVERY_STEP, frozenset(["commit", "checksum"]), hidden_names=True),
    "checkpoint with sidecars": Case(
        {**EVERY_STEP, "delta.checkpointPolicy": "v2"}, frozenset(["sidecar", "checkpoint", "hint"])
    ),
    "clean-up": Case(EVERY_STEP, frozenset(["hint", "commit", "checksum", "checkpoint"]), aged=True),
}

# In the middle of, or right before each of these a writer is killed at least.
STEPS = {
    "every step": [
        ("write", "data"), ("create", "commit"), ("write", "commit"), LINKED, ("flush", "folder"),
        ("write", "checksum"), ("write", "checkpoint"), ("write", "hint"), ("replace", "hint"),
    ],
    "hidden names": [("write", "commit"), LINKED, ("unlink", "commit"), ("write", "checksum")],
    "checkpoint with sidecars": [("write", "sidecar"), ("create", "checkpoint"), ("write", "hint")],
    "clean-up": [("unlink", "checksum"), ("unlink", "commit"), ("unlink", "checkpoint")],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_after_a_kill_at_any_call_of_a_write_the_table_works(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    table = Table(tmp_path / "table", case.properties, aged=case.aged)
    with Writers(table.folder, case.hidden_names, tmp_path) as nursery:
        for _ in range(2):
            number = table.next_number()
            assert not nursery.append(number, None)
            table.numbers.append(number)
        calls = nursery.seen()
        faults = [*case.faults(calls)] * case.rounds
        killed = [kill(table, nursery, calls, fault) for fault in faults]
    assert not set(STEPS[name]) - set(killed), calls
    table.check_history()


def kill(table: Table, nursery: Writers, calls: Sequence[What], fault: Fault) -> What:
    """Kill a writer at a call, and check the table."""
    number = table.next_number()
    assert nursery.append(number, fault), fault
    if fault.index > calls.index(LINKED):
        table.numbers.append(number)
    table.check(fault)
    return calls[fault.index]
