"""Progress of long work: one line on a terminal, none elsewhere, and reports for listeners."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog, ProgressReport, add_listener
from delta_ds.kernel.base import terminal
from delta_ds.kernel.base.terminal import line_of
from delta_ds.kernel.base.work import Work
from delta_ds.kernel.commands.fsck.command import check
from delta_ds.kernel.log import replay


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A terminal on which also short work is shown."""
    screen = Screen()
    # What pytest captures takes the place of `sys.stderr` itself.
    monkeypatch.setattr(terminal, "sys", SimpleNamespace(stderr=screen))
    monkeypatch.setattr(terminal, "_FROM_S", 0.0)
    monkeypatch.delenv("DELTA_DS_PROGRESS", raising=False)
    return screen


def do() -> None:
    with Work("VACUUM", "/data/t") as work, work.phase("deleting", total=4) as phase:
        for _ in phase.each(range(4)):
            pass


def test_a_terminal_shows_one_line_that_goes_away(screen: Screen) -> None:
    do()
    lines = screen.getvalue().split("\r\x1b[K")
    assert lines[1].startswith("VACUUM /data/t: deleting 0 of 4 files")
    assert lines[-2].startswith("VACUUM /data/t: deleting 4 of 4 files, 100%")
    assert lines[-1] == "" and "\n" not in screen.getvalue()


def test_what_is_done_soon_is_not_shown(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_FROM_S", 60.0)
    do()
    assert screen.getvalue() == ""


def test_it_can_be_turned_off(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal.silence():
        do()
    monkeypatch.setenv("DELTA_DS_PROGRESS", "off")
    do()
    assert screen.getvalue() == ""


def test_what_is_no_terminal_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(terminal, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setattr(terminal, "_FROM_S", 0.0)
    do()
    assert stream.getvalue() == ""
    monkeypatch.setattr(terminal, "sys", SimpleNamespace(stderr=None))
    do()


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (("listing", 0, None, "files", 0.0), "C /t: listing"),
        (("listing", 1500, None, "files", 3.0), "C /t: listing 1,500 files, 500 a second"),
        (("rewriting", 1, 4, "bins", 30.0), "C /t: rewriting 1 of 4 bins, 25%, 30 s each, 01:30 left"),
        (("rewriting", 1, 200, "bins", 30.0), "C /t: rewriting 1 of 200 bins, 0%, 30 s each, 1:39:30 left"),
        (("rewriting", 0, 4, "bins", 0.0), "C /t: rewriting 0 of 4 bins, 0%"),
    ],
)
def test_the_line_tells_rate_and_rest(report: tuple[Any, ...], line: str) -> None:
    assert line_of(ProgressReport("/t", "C", *report)) == line


def test_a_long_log_is_replayed_with_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = DeltaLog(tmp_path)
    for number in range(4):
        log.write(pa.table({"id": [number]}))
    told: list[ProgressReport] = []
    monkeypatch.setenv("DELTA_DS_CACHE", "off")
    for shortest in (5, 4):
        monkeypatch.setattr(replay, "_LONG_LOG", shortest)
        with add_listener(lambda report: told.append(report) if isinstance(report, ProgressReport) else None):
            DeltaLog(tmp_path).open_snapshot().live_files()
        assert bool(told) == (shortest == 4)
    assert (told[-1].command, told[-1].done, told[-1].total, told[-1].unit) == ("REPLAY", 4, 4, "commits")


def test_fsck_tells_its_phases(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1]}))
    phases: list[str] = []
    with add_listener(lambda r: phases.append(r.phase) if getattr(r, "finished", False) else None):
        assert list(check(log, contents=True)) == []
    assert phases == ["checking the log", "listing", "reading rows"]
