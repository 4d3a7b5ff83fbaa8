"""What the driver of a stream does for every batch, without Spark: does it grow with the table or its history?

As measured processes: `python -m benchmarks.stream_driver source|sink FOLDER TABLE`. FOLDER is for what they write
besides.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.harness import as_table, fresh_copy, made_once
from benchmarks.log_tables import (
    FIRST_DAY,
    PARTITION,
    FileRange,
    add_lines,
    commit_info,
    log_fields,
    metadata,
    protocol,
    write_commit,
    write_log_table,
)
from benchmarks.measure import report, run_once
from benchmarks.write_tables import commits_of

if TYPE_CHECKING:
    from delta_ds.kernel.commands.streaming.source import StreamSource

_REPEATS = 9
# Files of a batch: as many as any table has, and the default of a stream.
_SMALL, _DEFAULT = 50, 1000
_APP = "driver benchmark"


@dataclass(frozen=True)
class Shape:
    """A table: live files of its checkpoint, commits all in all, and commits after the checkpoint."""

    files: int
    commits: int
    tail: int

    @property
    def title(self) -> str:
        return f"{self.files:,} files, {self.commits:,} commits, {self.tail} after the checkpoint"


def driver(options: argparse.Namespace, folder: Path) -> list[str]:
    """The steps of a source and a sink on tables of different sizes and histories.

    Parameters
    ----------
    options
        Of `benchmarks.run`: `files`, `commits` and `rounds` count. Fifty commits of history for each of `commits`.
    folder
        Where the tables are made.
    """
    few, long = max(300, options.files // 1000), max(200, options.commits * 50)
    shapes = [
        Shape(few, 100, 9),
        Shape(options.files, 100, 9),
        Shape(few, long, 9),
        Shape(few, long, 99),
    ]
    columns = [_measured(shape, folder, options.rounds) for shape in shapes]
    steps = list(dict.fromkeys(step for column in columns for step in column))
    rows = [[step, *(_cell(column.get(step)) for column in columns)] for step in steps]
    head = ["step", *(shape.title for shape in shapes)]
    return ["## The driver of a stream\n", _NOTE, "", *as_table(head, rows)]


_NOTE = (
    "The kernel alone, in a process of its own: milliseconds, and by how many MiB memory grew meanwhile. A sink opens "
    "the table anew for every batch, as Spark's commit processes do."
)


def _cell(found: tuple[float, float] | None) -> str:
    return "" if found is None else f"{found[0] * 1000:.1f} ms, {found[1]:.0f} MiB"


def _measured(shape: Shape, folder: Path, rounds: int) -> dict[str, tuple[float, float]]:
    """Seconds and MiB of each step, the medians of some rounds."""
    name = f"driver-{shape.files}-{shape.commits}-{shape.tail}"
    table = made_once(folder / name, lambda path: _write_table(path, shape))
    taken: dict[str, list[tuple[float, float]]] = {}
    for _ in range(rounds):
        for role in ("source", "sink"):
            with fresh_copy(table) as copy, tempfile.TemporaryDirectory(dir=folder) as scratch:
                command = [sys.executable, "-m", "benchmarks.stream_driver", role, scratch, str(copy)]
                found = run_once(command, {"DELTA_DS_CACHE": f"{scratch}/cache"}).answer
            for step, (seconds, grown) in found.items():
                taken.setdefault(step, []).append((seconds, grown))
    return {step: (median(s for s, _ in all_), median(g for _, g in all_)) for step, all_ in taken.items()}


def _write_table(path: Path, shape: Shape) -> Path:
    """A table that is only a log: commits of one file each, and a checkpoint some commits before the end."""
    write_log_table(path, "v1", shape.files)
    log = path / "_delta_log"
    at = shape.commits - shape.tail
    shutil.move(log / f"{1:020d}.checkpoint.parquet", log / f"{at:020d}.checkpoint.parquet")
    hint = json.loads((log / "_last_checkpoint").read_text())
    (log / "_last_checkpoint").write_text(json.dumps({**hint, "version": at}))
    for version in range(shape.commits + 1):
        write_commit(log, version, _commit(shape.files, version))
    _write_checksum(log, shape)
    return path


def _write_checksum(log: Path, shape: Shape) -> None:
    """The checksum file that a writer leaves with every commit; of the newest version, which alone is looked at."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    checkpoint = pq.read_table(log / f"{shape.commits - shape.tail:020d}.checkpoint.parquet", columns=["add"])
    size = pc.sum(pc.struct_field(checkpoint["add"], "size")).as_py()
    for version in range(shape.commits - shape.tail + 1, shape.commits + 1):
        size += json.loads(_commit(shape.files, version)[1])["add"]["size"]
    body = {
        "tableSizeBytes": size,
        "numFiles": shape.files + shape.tail,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [],
        "domainMetadata": [],
        "metadata": metadata(log_fields(), [PARTITION]),
        "protocol": protocol([]),
    }
    (log / f"{shape.commits:020d}.crc").write_text(json.dumps(body))


def _commit(first: int, version: int) -> list[str]:
    return [commit_info(version), *add_lines(FileRange(first + version, first + version + 1))]


# ---------------------------------------------------------------- measured processes


class _Meter:
    """Takes the time and the memory of steps."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[float, float]] = {}

    def take(self, step: str, action: Callable[[], Any], repeats: int = 1) -> Any:
        """Do a step some times; what it gave last. The median counts."""
        taken = [self._once(action) for _ in range(repeats)]
        self.found[step] = (median(t[0] for t in taken), max(t[1] for t in taken))
        return taken[-1][2]

    @staticmethod
    def _once(action: Callable[[], Any]) -> tuple[float, float, Any]:
        before = _resident()
        start = time.perf_counter()
        found = action()
        seconds = time.perf_counter() - start
        return seconds, max(0.0, _peak() - before), found


def _resident() -> float:
    """The memory of the process in MiB; its peak starts anew. 0 where the system does not tell."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return 0.0
    return _status("VmRSS:")


def _peak() -> float:
    return _status("VmHWM:")


def _status(name: str) -> float:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(name)), 0.0)


def source(meter: _Meter, table: Path) -> None:
    """The steps of a stream from a table."""
    opened = meter.take("open", lambda: _open(table))
    _snapshot_batches(meter, opened, _DEFAULT)
    _snapshot_batches(meter, _open(table), _SMALL)
    tail = _open(table, startingVersion="latest")
    at = tail.initial_offset()
    tail.latest_offset(at)
    meter.take("idle poll", lambda: tail.latest_offset(at), _REPEATS)
    log = table / "_delta_log"
    number = commits_of(table)[-1]

    def batches() -> Iterator[int]:
        start = at
        for version in range(number + 1, number + 1 + _REPEATS):
            write_commit(log, version, _commit(10_000_000, version))
            end = tail.latest_offset(start)
            yield len(tail.tasks(start, end)[1])
            start = end

    one = batches()
    if meter.take("batch of one new commit", lambda: next(one), _REPEATS) != 1:
        raise RuntimeError("a batch was not one file")


def _open(table: Path, **options: str) -> StreamSource:
    from delta_ds.kernel.commands.streaming.source import StreamSource
    from delta_ds.kernel.format.options.stream_read import parse_stream_read_options
    from delta_ds.kernel.storage.open import open_storage

    return StreamSource.open(
        open_storage(str(table)), parse_stream_read_options({"path": str(table), **options})
    )


def _snapshot_batches(meter: _Meter, opened: StreamSource, files: int) -> None:
    from delta_ds.kernel.commands.streaming.offsets import ReadLimits

    at = opened.initial_offset()
    limits = ReadLimits(max_files=files)

    def batch() -> int:
        nonlocal at
        end = opened.latest_offset(at, limits)
        slices = opened.tasks(at, end)[1]
        at = end
        return len(slices)

    if files == _DEFAULT:
        meter.take("first batch of the snapshot", batch)
    else:
        batch()
    if opened.latest_offset(at, limits).is_starting_snapshot:
        # Not the last of a small table, which is smaller.
        found = meter.take(f"later batch of {files} files of the snapshot", batch, 4)
        if found != files:
            raise RuntimeError(f"a batch had {found} files, not {files}")


def sink(meter: _Meter, table: Path) -> None:
    """The steps of a stream into a table."""
    due: list[tuple[float, float]] = []
    others: list[tuple[float, float]] = []
    for number in range(_REPEATS + 4):
        with_checkpoint = (commits_of(table)[-1] + 1) % 10 == 0
        commit = _planned(table, number)
        meter.take("sink: first batch of a query", commit)
        (due if with_checkpoint else others).append(meter.found.pop("sink: first batch of a query"))
    meter.found["sink: first batch of a query"] = others.pop(0)
    for name, found in (("sink: batch", others), ("sink: batch with a checkpoint", due)):
        meter.found[name] = (median(s for s, _ in found), max(g for _, g in found))


def _planned(table: Path, number: int) -> Callable[[], int | None]:
    """What commits a batch of one row, which is written already."""
    import pyarrow as pa

    from delta_ds.kernel.commands.streaming.sink import commit_batch
    from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
    from delta_ds.kernel.transaction.write.intent import find_target, stream_intent
    from delta_ds.kernel.transaction.write.plan import plan_write
    from delta_ds.kernel.transaction.write.task import write_rows

    data = pa.table({"id": pa.array([number], pa.int64()), "day": [FIRST_DAY]})
    target = find_target(stream_intent({"path": str(table)}, "append"))
    plan = plan_write(target, schema_from_arrow(data.schema))
    results = [write_rows(plan, data.to_batches())]
    return lambda: commit_batch(plan, results, _APP, number)


def main(role: str, scratch: str, table: str) -> None:
    """Measure on a small table first, so that nothing is loaded or compiled for the first time later."""
    steps = {"source": source, "sink": sink}[role]
    small = _write_table(Path(scratch) / "small", Shape(_SMALL * 6, 20, 9))
    steps(_Meter(), small)
    meter = _Meter()
    start = time.perf_counter()
    steps(meter, Path(table))
    report(time.perf_counter() - start, meter.found)


if __name__ == "__main__":
    main(*sys.argv[1:])
