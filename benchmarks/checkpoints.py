"""Writing a checkpoint of a table that is only a log, measured: `python -m benchmarks.checkpoints` (or `make bench`).

    --files N        live files (300,000)
    --rounds N       rounds; medians are shown (3)
    --peer-python P  interpreter of an environment with deltalake; left out: no peer rows

Every measurement is a process of its own and begins with a copy of the log without what an earlier one wrote.
Run with `ours TABLE` or `peer TABLE` it is the measured process.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

if __package__:
    from benchmarks.measure import Measurement, middle, report, run_once
else:  # run by a peer's interpreter
    from measure import Measurement, middle, report, run_once

LAYOUTS = {"json": "100 JSON commits", "v1": "V1 checkpoint", "v1_tail": "V1 checkpoint + 1,000 commits"}
POLICIES = ("", "struct statistics off")
FILE = str(Path(__file__).resolve())


def ours(table: str) -> None:
    import pyarrow.json  # noqa: F401

    from delta_ds.kernel.log.segment import find_segment
    from delta_ds.kernel.storage.filesystem import open_storage
    from delta_ds.kernel.transaction.checkpoint import write_checkpoint

    start = time.perf_counter()
    storage = open_storage(table)
    adds = write_checkpoint(storage, find_segment(storage)).num_adds
    report(time.perf_counter() - start, adds)


def peer(table: str) -> None:
    from deltalake import DeltaTable

    start = time.perf_counter()
    DeltaTable(table).create_checkpoint()
    seconds = time.perf_counter() - start
    report(seconds, _checkpointed(table))


def _checkpointed(table: str) -> int:
    import json

    hint = json.loads((Path(table) / "_delta_log" / "_last_checkpoint").read_text())
    return int(hint["numOfAddFiles"])


def main() -> None:
    from benchmarks.log_tables import write_commit, write_log_table

    options = _arguments()
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for layout, title in LAYOUTS.items():
            source = write_log_table(
                Path(folder) / layout, layout, options.files, tail=min(1000, options.files // 20)
            )
            newest = max(int(f.stem) for f in (source / "_delta_log").glob("*.json") if f.stem.isdigit())
            # So that there is something to do where the newest version has a checkpoint already.
            write_commit(
                source / "_delta_log", newest + 1, ['{"commitInfo":{"operation":"SET TBLPROPERTIES"}}']
            )
            rows += _measured(options, source, title)
    print("\n".join(rows))


def _measured(options: argparse.Namespace, source: Path, title: str) -> list[str]:
    commands = {"delta_ds": [sys.executable, "-m", "benchmarks.checkpoints", "ours"]}
    if options.peer_python:
        commands["deltalake"] = [options.peer_python, FILE, "peer"]
    taken: dict[str, list[Measurement]] = {name: [] for name in commands}
    for _ in range(options.rounds):
        for name, command in commands.items():
            copy = source.with_name(f"{source.name}-{name}")
            shutil.copytree(source, copy)
            taken[name].append(run_once([*command, str(copy)]))
            shutil.rmtree(copy)
    found = {name: middle(measured) for name, measured in taken.items()}
    yardstick = found.get("deltalake", found["delta_ds"])
    return [
        f"| {title} | {name} | {m.work_s:.2f} s | {m.process_s:.2f} s | {m.cpu_s:.2f} s | {m.peak_mb:.0f} MiB "
        f"| {m.work_s / yardstick.work_s:.2f} |"
        for name, m in found.items()
    ]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.checkpoints", description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-python")
    parser.add_argument("--folder", help="where the tables are made")
    return parser.parse_args()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["ours", table]:
            ours(table)
        case ["peer", table]:
            peer(table)
        case _:
            main()
