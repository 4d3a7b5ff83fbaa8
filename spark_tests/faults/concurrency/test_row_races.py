"""Commands that change rows, race: what wins has a serial order, and what does not says by its name why."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from delta_ds.api.delta_log import DeltaLog
from spark_tests.faults.concurrency import row_commands
from spark_tests.faults.concurrency.faults import LINKED
from spark_tests.faults.concurrency.row_history import History
from spark_tests.faults.concurrency.row_model import APPEND, DELETE, MERGE, OPTIMIZE, UPDATE, Command
from spark_tests.faults.concurrency.table_invariants import MERGED, SOME_FILES, Template, check_survivor
from spark_tests.faults.concurrency.workers import Job, end, run_together, start
from spark_tests.full_form import FULL

pytestmark = pytest.mark.long

Table = tuple[str, Mapping[str, str], bool]

SEED = 20_251_121
PROCESSES = 4
FILES: Mapping[str, str] = {"delta.enableDeletionVectors": "false"}
VECTORS = {"delta.enableDeletionVectors": "true"}
# Other rows of the same files are no conflict.
ROWS = {**VECTORS, "delta.enableRowTracking": "true"}
# Isolation level, properties, partitions.
TABLES: list[Table] = [
    ("WriteSerializable", VECTORS, True),
    ("Serializable", ROWS, False),
    ("WriteSerializable", ROWS, True),
    ("Serializable", FILES, True),
    ("Serializable", VECTORS, False),
    ("WriteSerializable", FILES, False),
]


def race(worker: str, tables: Sequence[Table], folder: Path, jobs: Sequence[Job]) -> list[History]:
    """Let processes run commands on some tables, by turns; a job a process, each completed here."""
    logs = [DeltaLog(folder / str(number)) for number in range(len(tables))]
    for log, (level, properties, partitioned) in zip(logs, tables, strict=True):
        row_commands.create(log, {"delta.isolationLevel": level, **properties}, partitioned=partitioned)
    shared = {"urls": [log.storage.url for log in logs], "seed": SEED, "folder": str(folder)}
    answers = run_together(worker, [{**job, **shared, "writer": n} for n, job in enumerate(jobs)])
    steps = [step for answer in answers for step in answer]
    return [
        History(log, level, [step for step in steps if step["table"] == log.storage.url])
        for log, (level, _, _) in zip(logs, tables, strict=True)
    ]


def check_that_it_was_a_race(histories: Sequence[History]) -> None:
    """Every kind has won, and somebody has lost."""
    kinds = tell(histories)
    assert kinds.keys() >= {APPEND, DELETE, UPDATE, MERGE, OPTIMIZE}
    assert any("error" in step for history in histories for step in history.steps)


def tell(histories: Sequence[History]) -> Counter[str]:
    """Print what has come of it; the kinds that have won."""
    kinds = Counter(winner.command.kind for history in histories for winner in history.winners)
    errors = Counter(step["error"] for history in histories for step in history.steps if "error" in step)
    print(f"seed={SEED} commits={dict(kinds)} refused={dict(errors)}")
    return kinds


@pytest.mark.slow
def test_commands_of_the_kernel_that_race_come_to_what_a_serial_replay_does(tmp_path: Path) -> None:
    jobs = [{"seconds": 60 if FULL else 10}] * PROCESSES
    histories = race("row_race_worker", TABLES, tmp_path, jobs)
    for history in histories:
        history.check(every=1 if FULL else 20)
    check_that_it_was_a_race(histories)


@dataclass(frozen=True)
class Kill:
    """The end of a process that has raced: it is killed in the middle of a command on a table of its own."""

    command: Command
    template: Template
    how: Mapping[str, Any]
    table: Path

    @property
    def job(self) -> Job:
        return {"dies": {**self.how, "url": str(self.table), "command": asdict(self.command)}}

    def check(self) -> None:
        """The table is as before the command, or as after it."""
        versions = list(self.template.versions)
        found = DeltaLog(self.table).snapshot().version
        if found == len(versions):
            versions.append(self.command.apply(versions[-1]))
        check_survivor(self.table, versions)


def kills(folder: Path, *ends: tuple[Command, Mapping[str, Any]]) -> list[Kill]:
    template = Template(folder / "killed", {"delta.enableDeletionVectors": "true"}, SOME_FILES)
    return [Kill(command, template, how, template.copy()) for command, how in ends]


@contextmanager
def connections(folder: Path) -> Iterator[list[Any]]:
    """To one JVM for all processes; in the full form to none, and each has its own."""
    if FULL:
        yield [None] * PROCESSES
        return
    with (folder / "errors").open("w+") as errors:
        host = start("spark_host", errors)
        try:
            assert host.stdin is not None
            assert host.stdout is not None
            job = {"warehouse": str(folder / "warehouse"), "connections": PROCESSES}
            host.stdin.write(json.dumps(job) + "\n")
            host.stdin.flush()
            yield json.loads(host.stdout.readline())
        finally:
            end(host)


def race_of_sessions(
    tables: Sequence[Table], folder: Path, ends: Sequence[Kill], seconds: float
) -> list[History]:
    """Let processes with sessions race, and be killed in the end."""
    with connections(folder) as found:
        jobs = [
            {**kill.job, "seconds": seconds, "connection": connection}
            for kill, connection in zip(ends, found, strict=True)
        ]
        return race("spark_race_worker", tables, folder, jobs)


@pytest.mark.spark
@pytest.mark.slow
def test_commands_of_sessions_that_race_and_are_killed_in_the_end_come_to_what_a_serial_replay_does(
    tmp_path: Path,
) -> None:
    ends = kills(
        tmp_path,
        (MERGED, {"at": ("create", "vector")}),  # its rows are written
        (MERGED, {"at": ("create", "checksum")}),  # it is committed
        (Command(OPTIMIZE), {"at": LINKED}),  # about to be committed
        (Command(OPTIMIZE), {"after_seconds": random.Random(SEED).uniform(0.1, 1)}),
    )
    seconds = float(os.environ.get("DELTA_DS_RACE_SECONDS", "120" if FULL else "12"))
    histories = race_of_sessions(TABLES if FULL else TABLES[:2], tmp_path, ends, seconds)
    for history in histories:
        history.check()
    for kill in ends:
        kill.check()
    # How many come through depends on how busy the machine is.
    assert tell(histories)
    if FULL:
        check_that_it_was_a_race(histories)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(not FULL, reason="more of the same: DELTA_DS_FULL=1")
@pytest.mark.parametrize("number", range(3))
def test_commands_of_sessions_that_are_killed_at_any_time_lose_nothing(number: int, tmp_path: Path) -> None:
    chance = random.Random(SEED + number)
    changes = [Command(kind, modulus=5, rest=1) for kind in (DELETE, UPDATE)]
    commands = (MERGED, Command(OPTIMIZE), *changes)
    ends = kills(tmp_path, *((command, {"after_seconds": chance.uniform(0.1, 6)}) for command in commands))
    race_of_sessions([], tmp_path, ends, 0)
    for kill in ends:
        kill.check()
