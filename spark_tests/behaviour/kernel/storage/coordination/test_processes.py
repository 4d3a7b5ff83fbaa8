"""Real processes on one coordinator: killed between the steps of a commit, racing, and read at one moment."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import delta_ds
from spark_tests.behaviour.kernel.storage.coordination.helpers import Managed
from spark_tests.faults.concurrency.workers import end, start
from spark_tests.full_form import FULL

STEPS = [
    "before _stage",
    "after _stage",
    "after _ratify",
    "before back_fill",
    "before _put",
    "after _put",
    "after back_fill",
]
RATIFIED = STEPS[2:]
COMMITS = 40 if FULL else 3


@contextmanager
def running(jobs: list[list[object]]) -> Iterator[subprocess.Popen[str]]:
    """A process for each job, all at once; `ended` tells how they ended."""
    with tempfile.TemporaryFile("w+") as errors:
        process = start("coordinated_worker", errors)
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps([[str(part) for part in job] for job in jobs]))
            process.stdin.close()
            yield process
        finally:
            end(process)


def ended(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    statuses: list[int] = json.loads(process.stdout.read())
    return statuses


def of(managed: Managed) -> tuple[str, Path]:
    return managed.table.name, managed.path


def test_writers_that_are_killed_leave_tables_that_go_on(tmp_path: Path) -> None:
    jobs: list[list[object]] = []
    for step in STEPS:
        managed = Managed(tmp_path, name=f"main.crash.{step.replace(' ', '_')}")
        managed.append(0)
        jobs.append(["killed", managed.options["coordinatorUrl"], *of(managed), step])
    with running(jobs) as process:
        assert ended(process) == [-signal.SIGKILL] * len(STEPS)
    for step in STEPS:
        check_after_crash(Managed.known(tmp_path, f"main.crash.{step.replace(' ', '_')}"), step)


def check_after_crash(managed: Managed, step: str) -> None:
    there = [0, 1] if step in RATIFIED else [0]
    assert managed.ids() == there, step
    assert managed.append(2) == len(there)
    assert managed.ids() == [*there, 2]
    assert managed.published() == list(range(len(there) + 1))
    assert managed.coordinator.ratified(managed.table).commits == ()
    published = [(managed.path / "_delta_log" / f"{v:020}.json").read_bytes() for v in managed.published()]
    staged = [(managed.path / "_delta_log/_staged_commits" / name).read_bytes() for name in managed.staged()]
    assert set(published) <= set(staged)


def test_four_processes_make_one_history(tmp_path: Path) -> None:
    managed = Managed(tmp_path)
    managed.append(-1)
    url, seen = managed.options["coordinatorUrl"], 0
    with running([["many", url, *of(managed), 1000 * n, COMMITS] for n in range(4)]) as process:
        while process.poll() is None:
            version = managed.open().snapshot().version
            assert version >= seen  # no reader goes back
            seen = version
        assert ended(process) == [0, 0, 0, 0]
    wanted = sorted([-1, *(1000 * n + i for n in range(4) for i in range(COMMITS))])
    assert managed.ids() == wanted
    assert managed.published() == list(range(4 * COMMITS + 1))
    log = managed.path / "_delta_log"
    infos = [
        json.loads((log / f"{v:020}.json").read_text().splitlines()[0])["commitInfo"]
        for v in managed.published()
    ]
    times = [info["inCommitTimestamp"] for info in infos]
    assert times == sorted(set(times))
    assert len({info["txnId"] for info in infos}) == len(infos)
    # As by one writer after the other: each version has what the one before has, and one number more.
    rows = [set(managed.ids(version)) for version in range(0, 4 * COMMITS + 1, 4)]
    assert all(before < after for before, after in zip(rows, rows[1:], strict=False))
    assert len(managed.staged()) == 4 * COMMITS + 1  # those of who lost a version are gone


def test_what_is_read_at_one_moment_has_no_second_commit_without_the_first(tmp_path: Path) -> None:
    debits, credits = (Managed(tmp_path, name=f"main.bank.{name}") for name in ("debits", "credits"))
    debits.append(-1)
    credits.append(-1)
    url = debits.options["coordinatorUrl"]
    names = [debits.table.name, credits.table.name]
    tables, looks = delta_ds.catalog("sqlite", url), 0
    with running([["transfers", url, *of(debits), *of(credits), 5 * COMMITS]]) as process:
        while process.poll() is None:
            moment = tables.moment(names)
            taken, given = (set(moment.snapshot(name).scan().to_arrow()["id"].to_pylist()) for name in names)
            assert given <= taken and len(taken - given) <= 1
            looks += 1
        assert ended(process) == [0]
    assert looks > 0
    assert tables.moment(names).versions == {name: 5 * COMMITS for name in names}


def test_a_moment_stays_as_it_was(tmp_path: Path) -> None:
    managed = Managed(tmp_path)
    managed.append(0)
    tables = delta_ds.catalog("sqlite", managed.options["coordinatorUrl"])
    moment = tables.moment([managed.table.name])
    managed.append(1)
    snapshot = moment.snapshot(managed.table.name)
    assert snapshot.version == 0 and snapshot.scan().count() == 1
    assert moment.options(managed.table.name)["versionAsOf"] == "0"
