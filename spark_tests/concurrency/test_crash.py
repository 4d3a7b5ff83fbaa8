"""Writers that are killed at any moment of a write: the table is always whole, and everybody goes on."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from delta_ds.kernel.delta_log import DeltaLog
from delta_ds.kernel.write.arrow import write_batches
from spark_tests.concurrency.append_worker import SCHEMA, append_through_handle, rows
from spark_tests.concurrency.crash_nursery import EVERY_STEP, append
from spark_tests.concurrency.faults import BEFORE, LINKED, MIDWAY, Fault, What
from spark_tests.concurrency.plain_log import PlainLog
from spark_tests.concurrency.workers import end, start

pytestmark = pytest.mark.slow

_DAYS = 86_400


class Nursery:
    """Writers of one table that may be killed."""

    def __init__(self, table: Path, hidden_names: bool, folder: Path) -> None:
        self._table = table
        self._hidden_names = hidden_names
        self._seen = folder / "seen"
        self._errors = tempfile.TemporaryFile("w+")
        self.process = start("crash_nursery", self._errors)

    def append(self, number: int, fault: Fault | None) -> bool:
        """Let a writer append a row; whether the fault killed it."""
        job = {
            "folder": str(self._table), "number": number, "hidden_names": self._hidden_names,
            "seen": str(self._seen), "fault": asdict(fault) if fault else None,
        }  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        code = self.process.stdout.readline().strip()
        if code not in ("0", str(-signal.SIGKILL)):
            self._errors.seek(0)
            pytest.fail(f"the writer ended with {code}: {self._errors.read()[-4000:]}")
        return code != "0"

    def seen(self) -> list[What]:
        """The calls of the last writer that was not killed."""
        return [(call, kind) for call, kind in json.loads(self._seen.read_text())]

    def close(self) -> None:
        end(self.process)
        self._errors.close()


class Table:
    """A table, and the rows that it has to have."""

    def __init__(self, folder: Path, properties: dict[str, str], *, aged: bool) -> None:
        self.folder = folder
        self.handle = DeltaLog(folder)
        self.numbers: list[int] = []
        self._aged = aged
        self._next = 0
        write_batches(self.handle.storage, SCHEMA, [], options=properties)

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
        assert self._read() == self.numbers, fault
        if not self._aged:
            assert len(PlainLog(self.handle.storage).commits) == len(self.numbers) + 1, fault
        number = self.next_number()
        if number % 2:
            version = append(self.folder, number)
        else:
            version = append_through_handle(self.handle, rows(0, number))
        self.numbers.append(number)
        assert version == len(self.numbers), fault
        assert self._read() == self.numbers, fault

    def _read(self) -> list[int]:
        found = DeltaLog(self.folder).snapshot().scan().to_arrow()["number"]
        return sorted(found.to_pylist())

    def check_history(self) -> None:
        """No version that can be reached is partial."""
        kept = [int(p.name[:20]) for p in (self.folder / "_delta_log").glob("*.checkpoint*.parquet")]
        first = min(kept) if self._aged else 0
        for version in range(first, len(self.numbers) + 1):
            found = self.handle.snapshot(version=version).scan().to_arrow()["number"]
            assert sorted(found.to_pylist()) == self.numbers[:version], version
        plain = PlainLog(self.handle.storage)
        plain.check_hint()
        if not self._aged:
            checkpoints, checksums = plain.check_checkpoints(), plain.check_checksums()
            assert checkpoints[-1] == checksums[-1] == len(self.numbers)


TABLES = {
    "v1": (EVERY_STEP, False, False),
    "v1, hidden names": (EVERY_STEP, True, False),
    "v2 with sidecars": ({**EVERY_STEP, "delta.checkpointPolicy": "v2"}, False, False),
    "cleaned up": (EVERY_STEP, False, True),
}

# A writer is killed in the middle of each of these at least.
STEPS = [("flush", "data"), ("write", "data"), ("write", "commit"), LINKED, ("write", "checksum"), ("write", "hint")]


@pytest.fixture(params=TABLES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Table, Nursery]]:
    properties, hidden_names, aged = TABLES[request.param]
    table = Table(tmp_path / "table", properties, aged=aged)
    nursery = Nursery(table.folder, hidden_names, tmp_path)
    yield request.param, table, nursery
    nursery.close()


def test_after_a_kill_at_any_call_of_a_write_the_table_works(place: tuple[str, Table, Nursery]) -> None:
    name, table, nursery = place
    for _ in range(2):
        number = table.next_number()
        assert not nursery.append(number, None)
        table.numbers.append(number)
    calls = nursery.seen()
    killed = [what for fault in faults(calls) if (what := kill(table, nursery, calls, fault)) is not None]
    wanted = {*STEPS, ("write", "sidecar" if name.startswith("v2") else "checkpoint"), ("replace", "hint")}
    if name == "cleaned up":
        wanted |= {("unlink", "commit"), ("unlink", "checkpoint")}
    assert wanted <= set(killed)
    assert len(killed) >= 25
    table.check_history()


def faults(calls: Sequence[What]) -> Iterator[Fault]:
    """Death before every call, and midway in every one that writes."""
    for index, (call, _) in enumerate(calls):
        yield Fault(index, BEFORE)
        if call == "write":
            yield Fault(index, MIDWAY)


def kill(table: Table, nursery: Nursery, calls: Sequence[What], fault: Fault) -> Any:
    """Kill a writer and check the table; the call at which it died, None if it did not get that far."""
    number = table.next_number()
    killed = nursery.append(number, fault)
    if fault.index > calls.index(LINKED) or not killed:
        table.numbers.append(number)
    table.check(fault)
    return calls[fault.index] if killed else None
