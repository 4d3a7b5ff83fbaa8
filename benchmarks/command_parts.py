"""The part `commands`: the commands of `DeltaTable` beside delta-spark, and what needs no Spark beside deltalake."""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.command_tables import make_tables, numbers, sizes
from benchmarks.harness import HERE, WORK, WRITES, OnCopy, as_table, cost, in_turn, in_turn_on_copies
from benchmarks.measure import MARK, Measurement

WORKER = "benchmarks.command_worker"
PEER = "benchmarks.command_peer"
SMALL = 0.002
# Command: on which tables it runs, and what else it reads.
TABLES: dict[str, tuple[list[str], list[str]]] = {
    "delete": (["plain", "vectors"], []),
    "update": (["plain", "vectors"], []),
    "merge": (["plain", "vectors"], ["source"]),
    "compaction": (["small files"], []),
    "zorder": (["to order"], []),
    "planning": (["log"], []),
    "vacuum": (["to vacuum"], []),
}
# What deltalake can do as well: on the same files, in a process without Spark.
OF_PEER = frozenset(["delete", "update", "merge", "compaction"])
ROW_CHANGES = {"plain": "copy-on-write", "vectors": "deletion vectors"}


@dataclass
class Taken:
    """What one side needed for a case, by round, or why it failed.

    `small`: on the small table, in order; the first of the first case of a session is its first command.
    """

    rounds: list[dict[str, Any]] = field(default_factory=list)
    small: list[dict[str, Any]] = field(default_factory=list)
    session: dict[str, float] = field(default_factory=dict)
    failed: str = ""

    def middle(self, what: str) -> float:
        return median(record[what] for record in self.rounds) if self.rounds else math.nan

    @property
    def answer(self) -> str:
        return " / ".join(sorted({record["answer"] for record in self.rounds}))


# By command, table and case: whose numbers they are.
Found = dict[tuple[str, str, str], dict[str, Taken]]


def commands(options: argparse.Namespace, folder: Path) -> list[str]:
    """Commands that change rows or files, through Spark and, where no row is looked at, without it."""
    chosen = options.command or list(TABLES)
    found = _through_spark(options, folder, chosen)
    lines = [f"## Commands, local[2], scale {options.scale:g}\n", _NOTE, ""]
    size = sizes(options.scale)
    lines += [
        f"{size.rows:,} rows of 10 columns in {size.files} files, {size.merged:,} rows merged; {size.joined:,} "
        f"files of 1,000 rows compacted; {size.ordered:,} rows z-ordered; {size.vacuumed:,} files in the vacuumed "
        f"folder, half of them not needed; {size.planned:,} files planned.",
        "",
        *as_table(_HEAD, [row for key, sides in found.items() for row in rows_of(key, sides)]),
        *["", "### First commands of sessions", "", _FIRST_NOTE, ""],
        *as_table(_FIRST_HEAD, first_rows(found)),
    ]
    if not options.delta_spark_python:
        lines += ["", "delta-spark was left out: --delta-spark-python and --delta-spark-jars name none."]
    return [*lines, *_without_spark(options, folder, chosen)]


_NOTE = (
    "One process for each command and side, one after the other, with the same settings (3 GB of heap, shuffles and "
    "listings in 8 tasks, all else as it comes). Each case runs on a small table before, which does not count, then "
    "on fresh copies of the same large one. *time* is that of the call alone, *CPU* what Python, the JVM and its "
    "workers computed meanwhile. "
    "*peak* is the most memory that all of them held at once, *JVM* and *Python* the most of either; shared pages "
    "count for each process. Afterwards rows are compared by number and hash, outside the time. delta_ds flushes "
    "what it writes to the device, delta-spark does not."
)
_FIRST_NOTE = (
    "The small table, where fixed costs are all there is: the session with `register`, its first command and the same "
    "again, as time and CPU. Python's modules are compiled already, as after an installation, and so are the Java "
    "texts of delta_ds but in its very first session on a machine."
)
_FIRST_HEAD = ["first command", "table", "who", "session", "first", "second", "first to second"]
_HEAD = ["case", "table", "who", "time", "CPU", "peak", "JVM", "Python", "time ratio", "CPU ratio", "found"]


# ---------------------------------------------------------------- through Spark


def _through_spark(options: argparse.Namespace, folder: Path, chosen: Sequence[str]) -> Found:
    formats = {"pydelta": sys.executable}
    if options.delta_spark_python:
        formats["delta"] = options.delta_spark_python
    found: Found = {}
    for command in chosen:
        tables, more = TABLES[command]
        for table in tables:
            settings = {**_settings(options, folder, [table, *more]), "command": command, "table": table}
            for fmt, python in formats.items():
                settings |= {"format": fmt, "jars": options.delta_spark_jars}
                _one_side(found, command, table, [python, "-m", WORKER], settings)
            if options.peer_python and command in OF_PEER and table != "vectors":
                settings |= {"format": "deltalake"}
                _one_side(found, command, table, [options.peer_python, "-m", PEER], settings)
    return found


def _settings(options: argparse.Namespace, folder: Path, tables: Sequence[str]) -> dict[str, Any]:
    both = {"large": sizes(options.scale), "small": sizes(min(SMALL, options.scale))}
    print(f"tables: {', '.join(tables)}", file=sys.stderr, flush=True)
    classes = folder / "compiled-classes"
    classes.mkdir(mode=0o700, exist_ok=True)
    return {
        "classes": str(classes),
        "rounds": options.rounds,
        # Two at least, so that the first can be held against the second.
        "warm": ["small"] * max(2, options.warmups),
        "sizes": {name: numbers(size) for name, size in both.items()},
        "tables": {name: make_tables(folder, size, tables) for name, size in both.items()},
    }


def _one_side(
    found: Found, command: str, table: str, worker: Sequence[str], settings: dict[str, Any]
) -> None:
    who, began = str(settings["format"]), {}
    try:
        for record in worker_records(worker, settings):
            print(f"{command}, {table}, {who}: {json.dumps(record)}", file=sys.stderr, flush=True)
            if "spark" in record:
                who, began = f"{settings['format']}, Spark {record['spark']}", record["session"]
            else:
                taken = _take(found.setdefault((command, table, record["case"]), {}), who, record)
                taken.session, began = taken.session or began, {}
    except RuntimeError as error:  # what the others needed is not to be lost
        print(error, file=sys.stderr, flush=True)
        _take(found.setdefault((command, table, command), {}), who, {"failed": "its process ended"})


def _take(sides: dict[str, Taken], who: str, record: dict[str, Any]) -> Taken:
    taken = sides.setdefault(who, Taken())
    if "failed" in record:
        taken.failed = record["failed"]
    else:
        (taken.rounds if record["size"] == "large" else taken.small).append(record)
    return taken


def worker_records(worker: Sequence[str], settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The records that a measured process prints, while it runs.

    Raises
    ------
    RuntimeError
        It failed; the message ends with what it printed.
    """
    with tempfile.TemporaryDirectory(dir=WORK) as scratch:
        errors = Path(scratch) / "stderr.txt"
        command = [*worker, json.dumps({**settings, "folder": scratch})]
        with errors.open("w") as log:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=HERE.parent
            )
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(MARK):
                yield json.loads(line[len(MARK) :])
        if process.wait():
            raise RuntimeError(f"{' '.join(command)} failed:\n{errors.read_text()[-3000:]}")


def rows_of(key: tuple[str, str, str], sides: Mapping[str, Taken]) -> list[list[object]]:
    """The lines of a case: this package first, ratios to delta-spark."""
    _, table, case = key
    yardstick = next((taken for who, taken in sides.items() if who.startswith("delta,")), Taken())
    # deltalake does not hash rows as Spark does.
    answers = {taken.answer for who, taken in sides.items() if not taken.failed and who != "deltalake"}
    rows: list[list[object]] = []
    for who, taken in sides.items():
        ratios = [_ratio(taken, yardstick, what) for what in ("seconds", "cpu_s")]
        said = ", ".join(filter(None, [taken.answer, taken.rounds[-1]["shown"] if taken.rounds else ""]))
        note = f"**failed**: {taken.failed}" if taken.failed else said
        note += " **not all found the same**" if len(answers) > 1 else ""
        seconds = [f"{taken.middle('seconds'):.2f} s", _shown(taken, "cpu_s", ".1f", "s")]
        memory = [_shown(taken, what, ".0f", "MiB") for what in ("peak_mb", "jvm_mb", "python_mb")]
        rows.append([case, ROW_CHANGES.get(table, table), who, *seconds, *memory, *ratios, note])
    return rows


def first_rows(found: Found) -> list[list[object]]:
    """The lines of the sessions: what each began with."""
    return [
        [
            case,
            ROW_CHANGES.get(table, table),
            who,
            *map(_both, (taken.session, *taken.small[:2])),
            _slower(taken.small),
        ]
        for (_, table, case), sides in found.items()
        for who, taken in sides.items()
        if taken.session and len(taken.small) > 1
    ]


def _both(cost: Mapping[str, float]) -> str:
    return f"{cost['seconds']:.2f} s, {cost['cpu_s']:.1f} s"


def _slower(runs: Sequence[Mapping[str, float]]) -> str:
    first, second = runs[:2]
    return ", ".join(f"{first[what] / (second[what] or math.nan):.1f}" for what in ("seconds", "cpu_s"))


def _shown(taken: Taken, what: str, spec: str, unit: str) -> str:
    value = taken.middle(what)
    return "" if math.isnan(value) else f"{value:{spec}} {unit}"


def _ratio(taken: Taken, yardstick: Taken, what: str) -> str:
    value = taken.middle(what) / (yardstick.middle(what) or math.nan)
    return "" if math.isnan(value) else f"{value:.2f}"


# ---------------------------------------------------------------- without Spark


# By command: the case, its table, what the measured process is told, and whether it changes the table.
_KERNEL_CASES = {
    "planning": [("compaction with nothing to do", "log", ["settled"], False)],
    "vacuum": [
        ("vacuum, dry run", "to vacuum", ["vacuum", "full", "dry"], False),
        ("vacuum, lite, dry run", "to vacuum", ["vacuum", "lite", "dry"], False),
        ("vacuum", "to vacuum", ["vacuum", "full", "real"], True),
        ("vacuum, lite", "to vacuum", ["vacuum", "lite", "real"], True),
    ],
}


def _without_spark(options: argparse.Namespace, folder: Path, chosen: Sequence[str]) -> list[str]:
    cases = [case for command in chosen for case in _KERNEL_CASES.get(command, [])]
    if not cases:
        return []
    sides = {"delta_ds": WRITES}
    if options.peer_python:
        sides["deltalake"] = [options.peer_python, str(HERE / "write_peer.py")]
    rows: list[list[object]] = []
    for title, table, arguments, changes in cases:
        source = make_tables(folder, sizes(options.scale), [table])[table]
        told = {name: [*command, *arguments] for name, command in sides.items()}
        if changes:
            copies = {name: OnCopy(command, Path(source)) for name, command in told.items()}
            found = in_turn_on_copies(copies, options.rounds)
        else:
            found = in_turn(
                {name: ([*c, source], {"DELTA_DS_CACHE": "off"}) for name, c in told.items()}, options.rounds
            )
        print(f"{title}, without Spark: {found}", file=sys.stderr, flush=True)
        yardstick = found.get("deltalake", found["delta_ds"])
        rows += [_kernel_row(title, name, m, yardstick) for name, m in found.items()]
    head = ["case", "who", "work", "process", "peak", "CPU", "time ratio", "memory ratio", "files"]
    note = (
        "The kernel of delta_ds, without Spark. From a cold start, no cache of logs; what deletes works on a fresh "
        "copy. *files*: how many there was something to do with."
    )
    return ["", "### Beside deltalake", "", note, "", *as_table(head, rows)]


def _kernel_row(case: str, name: str, m: Measurement, yardstick: Measurement) -> list[object]:
    ratios = [f"{m.work_s / yardstick.work_s:.2f}", f"{m.peak_mb / yardstick.peak_mb:.2f}"]
    return [case, name, *cost(m), f"{m.cpu_s:.2f} s", *ratios, m.answer]
