"""What the metadata of Iceberg costs a commit: appends and deletes on tables of few and of many files, side by side.

    .venv/bin/python -m benchmarks.iceberg_conversion --files 10 10000

Each size has a table with UniForm and one without, which take turns; commits of one small file. The seconds are the
median of the rounds. The last column describes all files anew, as after a hundred commits that were not converted.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.commands.maintain import generate
from delta_ds.kernel.files.write.live_actions import add_bodies, live_adds

COMPATIBLE = {"delta.enableIcebergCompatV2": "true", "delta.checkpointInterval": "1000"}
UNIFORM = COMPATIBLE | {"delta.universalFormat.enabledFormats": "iceberg"}
ROWS = pa.table({f"c{i}": pa.array(range(100), pa.int64()) for i in range(10)})


def table_of(folder: Path, files: int, properties: dict[str, str]) -> DeltaLog:
    """A table of so many files: entries of the log with statistics of ten columns, without data behind most of them."""
    log = DeltaLog(folder)
    log.write(ROWS, options=properties)
    body = next(add_bodies(next(live_adds(log.open_snapshot()))))
    copies = [{**body, "path": f"{i:06}.parquet"} for i in range(files - 1)]
    if copies:
        log.start_transaction().add_all(json.loads(json.dumps(copies))).commit("WRITE")
    log.checkpoint()
    return log


def median(action: Callable[[], object], rounds: int) -> float:
    """The median of the seconds that an action takes."""
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def remove_one(log: DeltaLog) -> None:
    """A commit that removes a file and adds one."""
    txn = log.start_transaction()
    body = next(add_bodies(next(live_adds(txn.snapshot)).slice(0, 1)))  # type: ignore[arg-type]
    path = str(body["path"])
    txn.remove({"path": path, "dataChange": True, "deletionTimestamp": 0})
    txn.add({**body, "path": f"again-{path}"}).commit("WRITE")


def main() -> None:
    """Measure and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[10, 10_000])
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    print("| files | append | with UniForm | replace a file | with UniForm | all files anew |")
    print("|---|---|---|---|---|---|")
    for files in asked.files:
        with tempfile.TemporaryDirectory() as folder:
            logs = [
                table_of(Path(folder, name), files, properties)
                for name, properties in (("plain", COMPATIBLE), ("uniform", UNIFORM))
            ]
            cells = []
            for action in (lambda log: log.write(ROWS), remove_one):
                for log in logs:
                    action(log)
                cells += [median(lambda log=log, run=action: run(log), asked.rounds) for log in logs]
            shutil.rmtree(Path(folder, "uniform", "metadata"))
            cells.append(median(lambda log=logs[1]: generate(log, "iceberg"), 1))
        print(f"| {files:,} | " + " | ".join(f"{1000 * cell:,.0f} ms" for cell in cells) + " |")


if __name__ == "__main__":
    main()
