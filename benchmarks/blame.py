"""What it costs to know who wrote each row: `blame` beside a plain read of the same rows, in this process.

    python -m benchmarks.blame --commits 200 --rows 5000000

The table was written by many commits and compacted, so that files hold the commit of each row. Prints Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from delta_ds import DeltaLog
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.optimize.request import OptimizeRequest


def make(path: str, commits: int, rows: int) -> DeltaLog:
    """A table of `rows` rows and four columns, ids ascending by commit, in few files."""
    log, each = DeltaLog(path), rows // commits
    random = np.random.default_rng(7)
    for number in range(commits):
        ids = np.arange(number * each, (number + 1) * each)
        columns: dict[str, Any] = {
            "id": ids,
            "key": random.integers(0, 1000, each),
            "amount": random.random(each),
            "text": pa.array(ids % 997).cast(pa.string()),
        }
        options = {"delta.enableRowTracking": "true"} if not number else {}
        log.write(pa.table(columns), options={**options, "userMetadata": f"load {number}"})
    optimize(log, OptimizeRequest())
    return log


def drained(batches: Iterable[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--commits", type=int, default=200)
    arguments.add_argument("--rows", type=int, default=5_000_000)
    arguments.add_argument("--rounds", type=int, default=5)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = make(folder, given.commits, given.rows)
        snapshot = log.snapshot()
        middle, few = given.rows // 2, given.rows // 100
        cases: dict[str, tuple[str | None, list[str] | None]] = {
            "all rows, all columns": (None, None),
            "all rows, `id`": (None, ["id"]),
            "1 % of the rows": (f"id BETWEEN {middle} AND {middle + few - 1}", None),
            "one row": (f"id = {middle}", None),
        }
        print("| rows | read, s | blame, s | ratio |\n|---|---|---|---|")
        for name, (predicate, columns) in cases.items():
            runs: list[Callable[[], int]] = [
                lambda p=predicate, c=columns: drained(snapshot.scan(p, c).to_batches()),  # type: ignore[misc]
                lambda p=predicate, c=columns: drained(snapshot.blame(p, c).to_batches()),  # type: ignore[misc]
            ]
            assert runs[0]() == runs[1]()  # and a round that does not count
            seconds: list[list[float]] = [[], []]
            for _ in range(given.rounds):
                for side, run in enumerate(runs):
                    started = time.perf_counter()
                    run()
                    seconds[side].append(time.perf_counter() - started)
            read, blame = map(statistics.median, seconds)
            print(f"| {name} | {read:.3f} | {blame:.3f} | {blame / read:.1f} |")


if __name__ == "__main__":
    main()
