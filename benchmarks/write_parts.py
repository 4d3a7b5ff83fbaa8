"""The parts of the write side that need no Spark: commits one after the other, many writers, checkpoints."""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.harness import (
    HERE,
    WRITES,
    OnCopy,
    as_table,
    cost,
    expect,
    fresh_copy,
    in_turn_on_copies,
    log_table,
    made_once,
)
from benchmarks.log_tables import metadata_line
from benchmarks.measure import MARK, Measurement
from benchmarks.write_tables import added_in, commits_of, write_small_table

INTERVALS = (10, 100)
KINDS = {"commits": "one `add` each", "appends": "ten rows each"}
CHECKPOINTED = {"json": "100 JSON commits", "v1": "V1 checkpoint", "v1_tail": "V1 checkpoint + 1,000 commits"}


def _writers(options: argparse.Namespace) -> dict[str, list[str]]:
    """Whom to measure, the yardstick last."""
    found = {"delta_ds": WRITES, "delta_ds, not flushing": [*WRITES, "--no-flush"]}
    if options.peer_python:
        found["deltalake"] = [options.peer_python, str(HERE / "write_peer.py")]
    return found


def _ratio(found: Mapping[str, Measurement], m: Measurement) -> str:
    return f"{m.work_s / found.get('deltalake', found['delta_ds']).work_s:.2f}"


# ---------------------------------------------------------------- one after the other


def commits(options: argparse.Namespace, folder: Path) -> list[str]:
    """Small commits one after the other, by the kernel and by deltalake."""
    count = options.commits
    rows = []
    for interval, kind, handle in itertools.product(INTERVALS, KINDS, ("kept", "anew")):
        source = _small_table(folder, interval)
        commands = {
            name: OnCopy([*command, kind, str(count), handle], source)
            for name, command in _writers(options).items()
        }
        found = in_turn_on_copies(commands, options.rounds)
        for name, m in found.items():
            expect(m, count + 2, f"{name}: versions after {kind}")
            each = [f"{m.work_s / count * 1000:.1f} ms", f"{count / m.work_s:.0f}", f"{m.peak_mb:.0f} MiB"]
            rows.append([KINDS[kind], handle, interval, name, f"{m.work_s:.2f} s", *each, _ratio(found, m)])
    head = [
        "commits",
        "handle",
        "checkpoint every",
        "writer",
        "work",
        "each",
        "commits/s",
        "peak",
        "time ratio",
    ]
    note = (
        "By the kernel, without Spark, on a table that begins empty. Handle: *kept*, one for all commits, or opened "
        "*anew* for each. delta_ds waits until a commit is on the device, "
        "deltalake does not (see below); *not flushing* is delta_ds with `fsync` and `fdatasync` turned off, for "
        "comparison only. delta_ds also writes a checksum file for each version, deltalake none."
    )
    title = f"## {count} commits, one after the other\n"
    return [title, note, "", *as_table(head, rows), "", *_flushes(options, folder)]


def _small_table(folder: Path, interval: int) -> Path:
    root = folder / f"small-{interval}"
    return made_once(root, lambda path: write_small_table(path, interval))


def _flushes(options: argparse.Namespace, folder: Path) -> list[str]:
    """How often a commit waits for the device: counted by strace, where there is one."""
    if shutil.which("strace") is None:
        return ["Flushes were not counted: there is no strace here."]
    source = _small_table(folder, 10)
    rows = []
    writers = {name: c for name, c in _writers(options).items() if "not flushing" not in name}
    for kind, (name, command) in itertools.product(KINDS, writers.items()):
        few, many = (_traced([*command, kind, str(n), "kept"], source) for n in (1, 11))
        calls = {call: (many[call] - few[call]) / 10 for call in _CALLS}
        rows.append([KINDS[kind], name, *(f"{n:.1f}" for n in calls.values())])
    title = "Calls per commit, in ten commits with one checkpoint; one handle:"
    return [title, "", *as_table(["commits", "writer", *_CALLS], rows)]


_CALLS = ("fsync", "fdatasync", "linkat", "rename")


def _traced(command: Sequence[str], source: Path) -> Counter[str]:
    with fresh_copy(source) as copy, tempfile.NamedTemporaryFile("r") as trace:
        # renameat and renameat2 count as rename, link as linkat.
        watched = "fsync,fdatasync,link,linkat,rename,renameat,renameat2"
        traced = ["strace", "-f", "-qq", "-e", f"trace={watched}", "-o", trace.name, *command, str(copy)]
        subprocess.run(traced, check=True, capture_output=True, cwd=HERE.parent)
        found: Counter[str] = Counter()
        for line in trace.read().splitlines():
            call = line.split(None, 1)[-1].split("(")[0]
            found[{"link": "linkat", "renameat": "rename", "renameat2": "rename"}.get(call, call)] += 1
        return found


# ---------------------------------------------------------------- many writers


@dataclass(frozen=True)
class _Race:
    """A round of several writers: seconds from the start signal until the last was done, and what failed."""

    seconds: float
    committed: int
    errors: Counter[str]


def writers(options: argparse.Namespace, folder: Path) -> list[str]:
    """Several processes that append to one table at the same time."""
    rows: list[list[object]] = []
    for kind in KINDS:
        competitors = _writers(options)
        taken: dict[str, list[_Race]] = {name: [] for name in competitors}
        for _ in range(options.rounds):
            for name, command in competitors.items():
                with fresh_copy(_small_table(folder, 10)) as copy:
                    taken[name].append(_race([*command, "writer", kind], options, copy))
        speeds = {name: median(r.committed / r.seconds for r in races) for name, races in taken.items()}
        yardstick = speeds.get("deltalake", speeds["delta_ds"])
        for name, races in taken.items():
            seconds = f"{median(r.seconds for r in races):.2f} s"
            failures = [r.errors for r in races]
            shown = ", ".join(f"{n / len(races):.1f} {e}" for e, n in sum(failures, Counter()).items())
            speed = [f"{speeds[name]:.0f}", f"{speeds[name] / yardstick:.2f}"]
            rows.append([KINDS[kind], name, seconds, *speed, shown or "none"])
    head = ["appends", "writer", "time", "commits/s", "throughput ratio", "failures of a round"]
    note = (
        "Processes of their own on one local table with a checkpoint every 10 commits, released together once all "
        "are loaded. After each round the log is checked: no gap, no file twice, as many as were reported."
    )
    title = f"## {options.writers} writers x {options.appends} appends\n"
    return [title, note, "", *as_table(head, rows)]


def _race(command: Sequence[str], options: argparse.Namespace, root: Path) -> _Race:
    full = [*command, str(options.appends), str(root)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    running = [
        subprocess.Popen(full, text=True, cwd=HERE.parent, **pipes)  # type: ignore[call-overload]
        for _ in range(options.writers)
    ]
    for process in running:
        if process.stdout.readline().strip() != "READY":
            raise RuntimeError(f"{' '.join(full)} did not get ready")
    start = time.perf_counter()
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    # The processes end by themselves, so none waits for the others' answers to be read.
    lines = [process.stdout.readline() for process in running]
    seconds = time.perf_counter() - start
    for process in running:
        process.stdin.close()
        process.stdout.close()
        if process.wait():
            raise RuntimeError(f"{' '.join(full)} failed")
    errors = sum((Counter(json.loads(line[len(MARK) :])) for line in lines), Counter[str]())
    committed = options.writers * options.appends - errors.total()
    _check_log(root, committed)
    return _Race(seconds, committed, errors)


def _check_log(root: Path, committed: int) -> None:
    versions = commits_of(root)
    if versions != list(range(len(versions))) or not len(versions) - 1 == added_in(root) == committed:
        raise RuntimeError(f"{committed} appends were reported, but the log has the versions {versions}")


# ---------------------------------------------------------------- checkpoints


def checkpoint(options: argparse.Namespace, folder: Path) -> list[str]:
    """A checkpoint of a table with many files, by the kernel and by deltalake."""
    rows = []
    for layout, title in CHECKPOINTED.items():
        source = Path(log_table(folder, layout, options.files))
        # One more commit, so that there is something to do where the newest version has a checkpoint already.
        plain, text_only = (
            ['{"commitInfo":{"operation":"SET TBLPROPERTIES"}}', metadata_line(properties)]
            for properties in ({}, {"delta.checkpoint.writeStatsAsStruct": "false"})
        )
        commands = {
            "delta_ds": OnCopy([*WRITES, "checkpoint"], source, plain),
            "delta_ds, statistics as text only": OnCopy([*WRITES, "checkpoint"], source, text_only),
        }
        if options.peer_python:
            peer = [options.peer_python, str(HERE / "write_peer.py"), "checkpoint"]
            commands["deltalake"] = OnCopy(peer, source, plain)
        found = in_turn_on_copies(commands, options.rounds)
        yardstick = found.get("deltalake", found["delta_ds"])
        for name, m in found.items():
            expect(m, options.files, f"{name}: {title}")
            ratios = [f"{m.work_s / yardstick.work_s:.2f}", f"{m.peak_mb / yardstick.peak_mb:.2f}"]
            work, process, peak = cost(m)
            rows.append([title, name, work, process, f"{m.cpu_s:.2f} s", peak, *ratios])
    head = ["log before", "writer", "work", "process", "CPU", "peak", "time ratio", "memory ratio"]
    note = (
        "A checkpoint of the newest version, from a cold start. delta_ds writes statistics as text and as typed "
        "columns (`stats_parsed`), which is what the properties of a table say unless told otherwise; deltalake "
        "writes text only, as delta_ds does in the second line."
    )
    return [f"## Checkpoint, {options.files:,} files\n", note, "", *as_table(head, rows)]
