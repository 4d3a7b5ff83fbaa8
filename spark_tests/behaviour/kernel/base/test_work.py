"""Progress of long work: one line on a terminal, none elsewhere, and reports for listeners."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds import DeltaLog, ProgressReport, add_listener
from delta_ds.kernel.base import work as work_module
from delta_ds.kernel.base.work import Work, line_of
from delta_ds.kernel.commands.fsck import check
from delta_ds.kernel.commands.health import health
from delta_ds.kernel.log import replay


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A terminal on which also short work is shown."""
    screen = Screen()
    # What pytest captures takes the place of `sys.stderr` itself.
    monkeypatch.setattr(work_module, "sys", SimpleNamespace(stderr=screen))
    monkeypatch.setattr(work_module, "_FROM_S", 0.0)
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
    monkeypatch.setattr(work_module, "_FROM_S", 60.0)
    do()
    assert screen.getvalue() == ""


def test_it_can_be_turned_off(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    with work_module.silence():
        do()
    monkeypatch.setenv("DELTA_DS_PROGRESS", "off")
    do()
    assert screen.getvalue() == ""


def test_what_is_no_terminal_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(work_module, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setattr(work_module, "_FROM_S", 0.0)
    do()
    assert stream.getvalue() == ""
    monkeypatch.setattr(work_module, "sys", SimpleNamespace(stderr=None))
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


FILES = 6


@pytest.fixture
def orders(tmp_path: Path) -> DeltaLog:
    """A table of several files, each with a row of its own and one that the others have, too."""
    log = DeltaLog(tmp_path / "orders")
    for number in range(FILES):
        log.write(pa.table({"id": [number], "part": [number % 2]}))
    return log


def _folder_of_parquet(log: DeltaLog) -> DeltaLog:
    folder = Path(log.storage.url).parent / "parquet"
    folder.mkdir()
    for number in range(FILES):
        pq.write_table(pa.table({"id": [number]}), folder / f"{number}.parquet")
    return DeltaLog(folder)


def _merge(log: DeltaLog) -> Any:
    source = pa.table({"id": list(range(FILES + 3)), "part": [5] * (FILES + 3)})
    merger = log.merge(source, "target.id = source.id")
    return merger.when_matched_update_all().when_not_matched_insert_all().execute()


# A command, and how its phases end: each counts all there is.
COMMANDS: dict[str, tuple[Callable[[DeltaLog], Any], list[str]]] = {
    "write": (
        lambda log: log.write(pa.table({"id": range(100), "part": [1] * 100})),
        ["WRITE .*: writing 100 of 100 rows, 100%"],
    ),
    "delete": (lambda log: log.delete("id < 3"), ["DELETE .*: rewriting 3 of 3 files, 100%"]),
    "update": (
        lambda log: log.update({"part": "9"}, predicate="id >= 2"),
        [f"UPDATE .*: rewriting {FILES - 2} of {FILES - 2} files, 100%"],
    ),
    "merge": (
        _merge,
        [f"MERGE .*: rewriting {FILES} of {FILES} files, 100%", "MERGE .*: inserting 3 of 3 rows, 100%"],
    ),
    "optimize": (lambda log: log.optimize(), ["OPTIMIZE .*: rewriting 1 of 1 bins, 100%"]),
    "zorder": (lambda log: log.zorder(["id"]), ["OPTIMIZE .*: rewriting 1 of 1 bins, 100%"]),
    "vacuum": (lambda log: log.vacuum(), ["VACUUM .*: listing"]),
    "restore": (
        lambda log: (log.delete(), log.restore(FILES - 1)),
        [f"RESTORE .*: looking for files {FILES} of {FILES} files, 100%"],
    ),
    "clone": (
        lambda log: log.clone(log.storage.url + "_copy"),
        [f"CLONE .*: copying {FILES} of {FILES} files, 100%"],
    ),
    "convert": (
        lambda log: _folder_of_parquet(log).convert(),
        [
            f"CONVERT .*: reading footers {FILES} of {FILES} files, 100%",
            f"CONVERT .*: collecting statistics {FILES} of {FILES} files, 100%",
        ],
    ),
    "checkpoint": (lambda log: log.checkpoint(), ["CHECKPOINT .*: writing"]),
    "fsck": (lambda log: list(check(log, contents=True)), [f"FSCK .*: reading rows {FILES} of {FILES} files"]),
    "health": (lambda log: health(log, files=True), ["FSCK .*: listing"]),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_how_far_it_is_and_takes_the_line_away(
    screen: Screen, orders: DeltaLog, name: str
) -> None:
    run, ends = COMMANDS[name]
    screen.truncate(0)
    run(orders)
    lines = screen.getvalue().split("\r\x1b[K")
    missing = [end for end in ends if not any(re.match(end, line) for line in lines)]
    assert missing == [], lines
    assert lines[-1] == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_shows_anything_where_nobody_looks(
    orders: DeltaLog, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(work_module, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setattr(work_module, "_FROM_S", 0.0)
    COMMANDS[name][0](orders)
    assert stream.getvalue() == ""
