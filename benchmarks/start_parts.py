"""What a fresh process pays: whole processes of `python -c`, imports and Python's own start included."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.harness import HERE, WORK, as_table, made_once
from benchmarks.log_tables import ROWS_PER_FILE, write_log_table

_FILES = 30_000
_COMMITS_AFTER = 5
_ROUNDS_EACH = 5  # processes are short: so many for each round that is asked for
WORK_OF_A_PROCESS = ("load", "partition filter", "statistics filter")
_DAY = "day = '2025-01-03'"


@dataclass(frozen=True)
class Process:
    """What one process took, in seconds."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True)
class _Program:
    """Code for an interpreter, with changes of the environment."""

    python: str
    code: str
    environment: Mapping[str, str]


def start(options: argparse.Namespace, folder: Path) -> list[str]:
    """Load, a partition filter and a statistics filter, each in a fresh process."""
    taken = measured(options, folder)
    rows = []
    for (what, who), process in taken.items():
        yardstick = taken.get((what, "deltalake"))
        ratios = [_ratio(process, yardstick, field) for field in ("wall_s", "cpu_s")]
        rows.append([what, who, f"{process.wall_s:.3f} s", f"{process.cpu_s:.3f} s", *ratios])
    head = ["what", "by", "process", "CPU", "time ratio", "CPU ratio"]
    note = (
        f"A checkpoint of {_FILES:,} files and {_COMMITS_AFTER} commits. Whole processes, Python's start and imports "
        f"included; medians of {_ROUNDS_EACH * options.rounds} rounds. numpy, which pyarrow loads, is most of "
        "`import pyarrow`; deltalake needs neither. Bytecode of all packages is there, as after an installation."
    )
    return ["## Fresh processes\n", note, "", *as_table(head, rows)]


def measured(
    options: argparse.Namespace, folder: Path, only: str | None = None
) -> dict[tuple[str, str], Process]:
    """What each process took, by what it did and who did it; `only` one of `WORK_OF_A_PROCESS`."""
    table = str(
        made_once(
            folder / f"start-{_FILES}",
            lambda path: write_log_table(path, "v1_tail", _FILES, tail=_COMMITS_AFTER),
        )
    )
    with tempfile.TemporaryDirectory(dir=WORK) as cache:
        programs = _programs(table, cache, options.peer_python)
        if only is not None:
            programs = {name: program for name, program in programs.items() if name[0] == only}
        return _in_turn(programs, _ROUNDS_EACH * options.rounds)


def _programs(table: str, cache: str, peer: str | None) -> dict[tuple[str, str], _Program]:
    last = ROWS_PER_FILE * (_FILES // 60) + 9 * ROWS_PER_FILE + ROWS_PER_FILE - 1
    filters = {
        "partition filter": (_DAY, 83),
        "statistics filter": (f"id BETWEEN {last - 9999} AND {last}", 10),
    }
    log = f"import delta_ds; log = delta_ds.DeltaLog({table!r})"
    snapshot = f"{log}; s = log.snapshot()"
    ours = {"load": f"{log}; assert log.open_snapshot().live_files().num_rows == {_FILES}"}
    theirs = {"import": "import deltalake", "load": f"import deltalake; deltalake.DeltaTable({table!r})"}
    for what, (predicate, files) in filters.items():
        ours[what] = f"{snapshot}; assert len(s.scan({predicate!r}).slices()) == {files}"
        theirs[what] = (
            f"import deltalake; t = deltalake.DeltaTable({table!r}); "
            f"assert len(t.file_uris(file_pruning_predicate={predicate!r})) == {files}"
        )
    programs = {
        ("Python", "nothing"): _Program(sys.executable, "pass", {}),
        ("import", "pyarrow"): _Program(sys.executable, "import pyarrow", {}),
        ("import", "delta_ds: `DeltaLog`"): _Program(
            sys.executable, "import delta_ds; delta_ds.DeltaLog", {}
        ),
    }
    for what, code in ours.items():
        programs[what, "delta_ds, no cache"] = _Program(sys.executable, code, {"DELTA_DS_CACHE": "off"})
        programs[what, "delta_ds, from cache"] = _Program(sys.executable, code, {"DELTA_DS_CACHE": cache})
    if peer:
        programs |= {(what, "deltalake"): _Program(peer, code, {}) for what, code in theirs.items()}
    return programs


def _in_turn(programs: Mapping[tuple[str, str], _Program], rounds: int) -> dict[tuple[str, str], Process]:
    """Medians; the first run of each fills caches and does not count."""
    taken: dict[tuple[str, str], list[Process]] = {name: [] for name in programs}
    with tempfile.TemporaryDirectory(dir=WORK) as bytecode:
        for counts in [False] + [True] * rounds:
            for name, program in programs.items():
                measured = _run(program, bytecode)
                if counts:
                    taken[name].append(measured)
    return {name: _middle(measured) for name, measured in taken.items()}


def _run(program: _Program, bytecode: str) -> Process:
    environment = {**os.environ, **program.environment, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPATH"] = str(HERE.parent)
    began = time.perf_counter()
    process = subprocess.Popen([program.python, "-c", program.code], env=environment, cwd=WORK)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{program.python} -c {program.code!r} failed")
    return Process(seconds, used.ru_utime + used.ru_stime)


def _middle(rounds: Sequence[Process]) -> Process:
    return Process(median(p.wall_s for p in rounds), median(p.cpu_s for p in rounds))


def _ratio(measured: Process, yardstick: Process | None, field: str) -> str:
    return f"{getattr(measured, field) / getattr(yardstick, field):.2f}" if yardstick else ""
