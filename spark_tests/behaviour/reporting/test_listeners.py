"""Listeners get reports of what was done, and can neither break nor slow it."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_ds
from delta_ds import (
    CommandReport,
    CommitReport,
    DeltaLog,
    ProgressReport,
    ScanReport,
    SnapshotReport,
    add_listener,
    remove_listener,
)
from delta_ds.exceptions import ConcurrentDeleteReadException, InvalidArgumentError
from delta_ds.kernel.commands.dml.delete import delete
from delta_ds.kernel.commands.maintain import maintain
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.vacuum import vacuum
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.reporting import listeners
from delta_ds.reporting.listeners import leave_reports, take_reports


class Heard:
    """Keeps reports by class."""

    def __init__(self) -> None:
        self.reports: list[Any] = []

    def __call__(self, report: Any) -> None:
        self.reports.append(report)

    def of(self, kind: type) -> list[Any]:
        return [report for report in self.reports if isinstance(report, kind)]


def test_a_commit_is_reported_with_what_it_brought(tmp_path: Path) -> None:
    heard = Heard()
    log = DeltaLog(tmp_path)
    with add_listener(heard):
        log.write(pa.table({"id": [1, 2, 3]}), options={"maxRecordsPerFile": 2})
        log.write(pa.table({"id": [4]}), "overwrite")
    first, second = heard.of(CommitReport)
    assert (first.table, first.operation, first.version, first.read_version) == (
        str(tmp_path),
        "WRITE",
        0,
        -1,
    )
    assert (first.files_added, first.rows_added, first.files_removed) == (2, 3, 0)
    assert (
        first.bytes_added
        == sum(file.stat().st_size for file in tmp_path.glob("*.parquet")) - second.bytes_added
    )
    assert first.commit_bytes == (tmp_path / "_delta_log" / f"{0:020}.json").stat().st_size
    assert first.metrics["numOutputRows"] == "3"
    assert (second.version, second.files_removed, second.bytes_removed) == (1, 2, first.bytes_added)
    assert (second.attempts, second.rebased_on, second.error) == (1, (), None)
    parts = (
        second.prepare_seconds,
        second.publish_seconds,
        second.conflict_seconds,
        second.post_commit_seconds,
    )
    assert 0 < sum(parts) <= second.seconds and second.conflict_seconds == 0


def test_a_commit_that_others_came_before_tells_them(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1]}))
    late = log.start_transaction()
    log.write(pa.table({"id": [2]}))
    log.write(pa.table({"id": [3]}))
    heard = Heard()
    with add_listener(heard):
        late.commit("mine")
    (report,) = heard.of(CommitReport)
    assert (report.version, report.read_version, report.attempts) == (3, 0, 2)
    assert report.rebased_on == ((1, "WRITE"), (2, "WRITE"))
    assert report.conflict_seconds > 0


def test_a_commit_that_is_contradicted_tells_the_condition(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1]}))
    late = log.start_transaction()
    late.scan()
    late.remove_live()
    delete(log)
    heard = Heard()
    with add_listener(heard), pytest.raises(ConcurrentDeleteReadException):
        late.commit("mine")
    (report,) = heard.of(CommitReport)
    assert (report.version, report.error) == (None, "DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT")


def test_deleted_rows_are_not_counted(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": range(10)}), options={"delta.enableDeletionVectors": "true"})
    heard = Heard()
    with add_listener(heard):
        delete(log, "id < 4")
    (report,) = heard.of(CommitReport)
    assert (report.operation, report.files_added, report.rows_added) == ("DELETE", 1, 6)


def test_opening_and_planning_are_reported(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    rows = pa.table({"p": ["a", "a", "b"], "id": [1, 2, 3]})
    log.write(rows, options={"partitionBy": "p", "maxRecordsPerFile": 1, "delta.checkpointInterval": "100"})
    log.write(rows)
    log.checkpoint()
    log.write(rows)
    heard = Heard()
    with add_listener(heard):
        snapshot = log.open_snapshot()
        assert Scan(snapshot, "p = 'a' and id = 2").num_files == 3
        assert snapshot.live_files().num_rows == 7
        assert Scan(snapshot, "p = 'a' and id = 2").num_files == 3
    opened, replayed = heard.of(SnapshotReport)
    assert (opened.version, opened.files, replayed.files) == (2, None, 7)
    assert opened.checkpoint_version == (None if opened.from_cache else 1)
    streamed, whole = heard.of(ScanReport)
    for report in (streamed, whole):
        assert (report.table, report.version, report.files, report.files_kept) == (str(tmp_path), 2, 7, 3)
        assert report.skipped == {"partition values": 3, "statistics": 1}
    assert streamed.bytes_kept == whole.bytes_kept > 0


def test_commands_are_reported_with_their_phases(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    options = {"maxRecordsPerFile": 1, "delta.deletedFileRetentionDuration": "interval 0 seconds"}
    log.write(pa.table({"id": range(20)}), options=options)
    heard = Heard()
    with add_listener(heard):
        optimize(log)
        time.sleep(0.01)
        vacuum(log)
        maintain(log)
        with pytest.raises(delta_ds.NotADeltaTableError):
            optimize(DeltaLog(tmp_path / "no"))
    found = [(report.command, list(report.phases), report.error) for report in heard.of(CommandReport)]
    assert found == [
        ("OPTIMIZE", ["planning", "rewriting", "committing"], None),
        ("VACUUM", ["listing", "deleting"], None),
        ("MAINTAIN", [], None),
        ("OPTIMIZE", ["planning"], "DELTA_TABLE_NOT_FOUND"),
    ]
    last = {(r.command, r.phase): r for r in heard.of(ProgressReport) if r.finished}
    assert (last["VACUUM", "deleting"].done, last["VACUUM", "deleting"].total) == (20, 20)
    assert last["OPTIMIZE", "rewriting"].total == 1
    assert sum(heard.of(CommandReport)[0].phases.values()) <= heard.of(CommandReport)[0].seconds


def test_an_object_gets_what_it_has_methods_for(tmp_path: Path) -> None:
    class Commits:
        def __init__(self) -> None:
            self.versions: list[int | None] = []

        def on_commit(self, report: CommitReport) -> None:
            self.versions.append(report.version)

    commits = Commits()
    with add_listener(commits):
        assert not listeners.is_wanted(ScanReport)
        DeltaLog(tmp_path).write(pa.table({"id": [1]}))
    assert commits.versions == [0]


def test_a_listener_that_raises_is_told_once_and_breaks_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()

    def broken(report: Any) -> None:
        raise SystemExit("no")

    log = DeltaLog(tmp_path)
    with caplog.at_level(logging.WARNING, "delta_ds"), add_listener(broken), add_listener(heard):
        for number in range(3):
            assert log.write(pa.table({"id": [number]})) == number
    told = [record for record in caplog.records if getattr(record, "event", None) == "listener_failed"]
    assert len(told) == 1 and told[0].exc_info is not None
    assert len(heard.of(CommitReport)) == 3


def test_a_listener_that_hangs_slows_nothing(tmp_path: Path) -> None:
    go_on = threading.Event()
    listening = add_listener(lambda report: go_on.wait(30))
    try:
        log = DeltaLog(tmp_path)
        started = time.monotonic()
        for number in range(3):
            log.write(pa.table({"id": [number]}))
        assert time.monotonic() - started < 20
        assert not listening.wait(0.05)
    finally:
        go_on.set()
        listening.remove()
    assert listening.wait(10)


def test_more_reports_than_wait_are_dropped_and_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    go_on, heard = threading.Event(), Heard()

    def slow(report: Any) -> None:
        go_on.wait(30)
        heard(report)

    report = CommitReport("/data/t", "WRITE", 1, 0)
    with caplog.at_level(logging.WARNING, "delta_ds"), add_listener(slow):
        for _ in range(listeners._MOST_WAITING + 50):
            listeners.report(report)
        go_on.set()
    assert [getattr(record, "event", None) for record in caplog.records] == ["listener_behind"]
    assert len(heard.reports) >= listeners._MOST_WAITING


def test_what_a_listener_does_is_not_reported(tmp_path: Path) -> None:
    DeltaLog(tmp_path).write(pa.table({"id": [1]}))
    heard = Heard()

    def reads(report: Any) -> None:
        heard(report)
        DeltaLog(tmp_path).snapshot()

    with add_listener(reads):
        DeltaLog(tmp_path).snapshot()
    assert len(heard.reports) == 1


def test_removed_listeners_hear_nothing_more() -> None:
    heard = Heard()
    listening = add_listener(heard)
    remove_listener(heard)
    assert not listeners.is_wanted(CommitReport)
    listening.remove()
    with pytest.raises(InvalidArgumentError, match="is no listener"):
        remove_listener(heard)
    for wrong in (3, object()):
        with pytest.raises(InvalidArgumentError, match="on_commit"):
            add_listener(wrong)


def test_many_threads_report_to_one_listener() -> None:
    heard = Heard()
    with add_listener(heard):
        threads = [
            threading.Thread(
                target=lambda: [listeners.report(CommitReport("/t", "WRITE", n, 0)) for n in range(200)]
            )
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(heard.reports) == 800


def test_reports_are_values() -> None:
    report = ProgressReport("/t", "VACUUM", "deleting", 50, 200, "files", 5.0)
    assert pickle.loads(pickle.dumps(report)) == report
    assert (report.rate, report.remaining_seconds) == (10.0, 15.0)
    with pytest.raises(AttributeError):
        report.done = 3  # type: ignore[misc]


def test_reports_of_another_process_reach_the_listeners_of_this_one(tmp_path: Path) -> None:
    heard = Heard()
    program = (
        "import sys, pyarrow as pa\n"
        "from delta_ds import DeltaLog\n"
        "DeltaLog(sys.argv[1]).write(pa.table({'id': [1]}), options={'reportFolder': sys.argv[2]})\n"
    )
    with take_reports() as folder:
        assert folder is None, "nobody listens"
    with add_listener(heard), take_reports() as folder:
        assert folder is not None and os.stat(folder).st_mode & 0o077 == 0
        subprocess.run([sys.executable, "-c", program, str(tmp_path), folder], check=True)
    (report,) = heard.of(CommitReport)
    assert (report.version, report.table) == (0, str(tmp_path))
    assert not os.path.exists(folder)
    with leave_reports(str(tmp_path / "gone")):
        assert not listeners.is_wanted(CommitReport)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_processes_have_no_listeners(tmp_path: Path) -> None:
    program = (
        "import os, delta_ds\n"
        "from delta_ds.reporting import listeners\n"
        "from delta_ds.reporting.reports import CommitReport\n"
        "delta_ds.add_listener(print)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os._exit(listeners.is_wanted(CommitReport))\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)


def test_what_waits_at_the_end_of_a_program_is_delivered(tmp_path: Path) -> None:
    program = (
        "import sys, pyarrow as pa, delta_ds\n"
        "delta_ds.add_listener(lambda report: print(type(report).__name__, flush=True))\n"
        "delta_ds.DeltaLog(sys.argv[1]).write(pa.table({'id': [1]}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], check=True, capture_output=True, text=True
    )
    assert "CommitReport" in done.stdout


def test_who_follows_commits_is_told_before_the_call_returns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[tuple[int, str, int | None]] = []
    log = DeltaLog(tmp_path)

    def note(report: CommitReport) -> None:
        told.append((threading.get_ident(), report.operation, report.version))
        assert log.snapshot().version == report.version
        raise ValueError("its own matter")

    with listeners.follow_commits(note):
        for version in range(2):
            log.write(pa.table({"id": [version]}))
            assert told[-1] == (threading.get_ident(), "WRITE", version)
    log.write(pa.table({"id": [2]}))
    assert len(told) == 2 and caplog.text.count("listener_failed") == 1
