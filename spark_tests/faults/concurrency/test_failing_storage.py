"""Storage that fails at any call of a write: a clear error, no commit, and nothing left behind."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import StorageError, UncertainWriteError
from spark_tests.faults.concurrency.append_worker import NO_ROWS, append, row
from spark_tests.faults.concurrency.crash_fork_server import EVERY_STEP
from spark_tests.faults.concurrency.faults import AFTER, BEFORE, LINKED, MIDWAY, Calls, Fault, injected
from spark_tests.faults.concurrency.workers import ROOT

FAILURES = {
    "no space": (errno.ENOSPC, True),
    "no space for a moment": (errno.ENOSPC, False),
    "not allowed": (errno.EACCES, True),
    "device error": (errno.EIO, False),
}

# Those that a write makes at least.
EVERY_CALL = {
    ("create", "data"), ("write", "data"), ("flush", "data"), ("write", "commit"), ("flush", "commit"), LINKED,
    ("flush", "folder"), ("write", "checksum"), ("write", "checkpoint"), ("write", "hint"),
}  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    log = DeltaLog(tmp_path / "table")
    log.write(NO_ROWS, options=EVERY_STEP)
    append(log, "cold", row(0, 0))
    return log


def files(log: DeltaLog) -> set[str]:
    folder = Path(log.storage.url)
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def numbers(log: DeltaLog) -> list[int]:
    return sorted(DeltaLog(log.storage.url).snapshot().scan().to_arrow()["number"].to_pylist())


def fail_everywhere(log: DeltaLog, when: str, error: int, lasting: bool, hidden: bool) -> Iterator[Calls]:
    """Append again and again with the fault at the first call, the second, ... and check what is there then."""
    wanted = numbers(log)
    for index in itertools.count():
        before, number = files(log), len(wanted)
        calls = Calls(log.storage.url, Fault(index, when, error, lasting))
        problem = None
        try:
            with injected(calls, hidden_names=hidden):
                append(log, "cold", row(0, number))
        except StorageError as raised:
            problem = raised
        where = (index, calls.seen, problem)
        # What was linked is there; it is left open only whether it stays, where a device did not confirm it.
        there = LINKED in calls.done
        if there:
            wanted.append(number)
        assert numbers(log) == wanted, where
        assert there or problem is not None, where
        if problem is not None:
            assert isinstance(problem, UncertainWriteError) == there, where
            assert os.strerror(error) in str(problem), where
            assert log.storage.url in str(problem), where
            assert there or files(log) == before, where
        if not calls.broken:
            return
        if calls.seen[index][0] != "unlink":
            assert not [name for name in files(log) - before if name.endswith(".tmp")], where
        assert problem is not None or LINKED in calls.done or not lasting, where
        yield calls
        if there and problem is not None:
            # Its version has no checksum, which the next one would count on.
            append(log, "cold", row(0, len(wanted)))
            wanted.append(len(wanted))


@pytest.mark.parametrize(("failure", "hidden"), [*((name, False) for name in FAILURES), ("no space", True)])
def test_a_write_that_fails_at_any_call_commits_all_or_nothing_and_says_so(
    log: DeltaLog, failure: str, hidden: bool, caplog: pytest.LogCaptureFixture
) -> None:
    error, lasting = FAILURES[failure]
    sweep = enumerate(fail_everywhere(log, BEFORE, error, lasting, hidden))
    broken = {calls.seen[index] for index, calls in sweep}
    assert not EVERY_CALL - broken
    logged = {r.message.split("step=")[1].split()[0] for r in caplog.records if "step=" in r.message}
    assert {"checkpoint", "checksum"} <= logged | ({"checksum"} if not lasting else set())
    append(log, "cold", row(0, 1000))


@pytest.mark.parametrize("hidden", [False, True], ids=["unnamed", "hidden names"])
def test_a_write_that_is_cut_off_midway_leaves_nothing(log: DeltaLog, hidden: bool) -> None:
    assert len(list(fail_everywhere(log, MIDWAY, errno.ENOSPC, True, hidden))) > len(EVERY_CALL)


@pytest.mark.parametrize("hidden", [False, True], ids=["unnamed", "hidden names"])
def test_an_error_after_the_deed_is_no_reason_to_take_it_for_undone(log: DeltaLog, hidden: bool) -> None:
    """link(2): over NFS the answer may get lost, and only a look at the file tells what happened."""
    assert len(list(fail_everywhere(log, AFTER, errno.EIO, False, hidden))) > len(EVERY_CALL)


# ---------------------------------------------------------------- the real thing


def run_hostile(scenario: str, folder: Path, *prefix: str) -> dict[str, Any]:
    """Run a scenario of `hostile_storage` in a process of its own; skips where this machine cannot."""
    if prefix:
        if shutil.which(prefix[0]) is None:
            pytest.skip(f"there is no {prefix[0]}")
        can = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
        if can.returncode:
            pytest.skip(f"{prefix[0]} is not allowed here: {can.stderr.strip()}")
    command = [
        *prefix,
        sys.executable,
        "-m",
        "spark_tests.faults.concurrency.hostile_storage",
        scenario,
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120)
    assert not done.returncode, done.stderr[-4000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    if "skip" in answer:
        pytest.skip(answer["skip"])
    return answer


def check(answer: dict[str, Any], error: int) -> None:
    for attempt in answer["attempts"]:
        assert attempt["error"] == "StorageError", attempt
        assert os.strerror(error) in attempt["text"], attempt
        assert attempt["left"] == [], attempt
    assert answer["attempts"]
    assert answer["rows"] == answer["rows_before"]
    assert answer["recovered"]


def test_a_full_device_refuses_the_write_and_takes_the_next_one_when_there_is_room(tmp_path: Path) -> None:
    check(run_hostile("full", tmp_path, "unshare", "--mount", "--map-root-user"), errno.ENOSPC)


def test_a_filesystem_mounted_read_only_refuses_the_write(tmp_path: Path) -> None:
    check(run_hostile("read-only", tmp_path, "unshare", "--mount", "--map-root-user"), errno.EROFS)


def test_a_limit_of_the_file_size_refuses_the_write(tmp_path: Path) -> None:
    check(run_hostile("limit", tmp_path), errno.EFBIG)


def test_folders_without_write_permission_refuse_the_write(tmp_path: Path) -> None:
    drop = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    check(run_hostile("denied", tmp_path, *drop), errno.EACCES)
