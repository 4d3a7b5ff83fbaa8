"""A process that writes to storage that really refuses it: full, read-only, limited, forbidden.

    python -m spark_tests.faults.concurrency.hostile_storage full /tmp/somewhere

It prints, as JSON, each refused write (its error, and the files it left) and what could be read before and after.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import StorageError
from spark_tests.faults.concurrency.append_worker import NO_ROWS, row

BIG = 1 << 20  # bytes that do not compress
Answer = dict[str, Any]


def big() -> pa.Table:
    values = random.Random(0).randbytes(BIG)
    return pa.table({"writer": pa.Array.from_buffers(pa.int64(), BIG // 8, [None, pa.py_buffer(values)])})


def rows_of(log: DeltaLog) -> int:
    return int(DeltaLog(log.storage.url).snapshot().scan().to_arrow().num_rows)


def files(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*") if path.is_file()}


def attempt(folder: Path, write: Callable[[], Any]) -> Answer:
    """A write that has to be refused."""
    before = files(folder)
    try:
        write()
    except Exception as error:
        left = sorted(files(folder) - before)
        text = error.text if isinstance(error, StorageError) else repr(error)
        return {"error": type(error).__name__, "text": text, "left": left}
    return {"error": None, "text": "", "left": []}


def new_table(folder: Path) -> DeltaLog:
    log = DeltaLog(folder / "table")
    log.write(NO_ROWS)
    log.write(row(0, 0))
    return log


def answer(log: DeltaLog, attempts: list[Answer], before: int, undo: Callable[[], Any]) -> Answer:
    found = rows_of(log)
    undo()
    log.write(row(0, 1))
    recovered = rows_of(log) == before + 1
    return {"attempts": attempts, "rows_before": before, "rows": found, "recovered": recovered}


def full(folder: Path) -> Answer:
    _mount(folder)
    log = new_table(folder)
    filler = folder / "filler"
    before = rows_of(log)
    attempts = [attempt(folder, lambda: log.write(big()))]
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(1024)):
                pass
        except OSError:
            pass  # full to the last block
    attempts.append(attempt(folder, lambda: log.write(row(0, 2))))
    attempts.append(attempt(folder, lambda: DeltaLog(folder / "other").write(row(0, 2))))
    return answer(log, attempts, before, filler.unlink)


def read_only(folder: Path) -> Answer:
    _mount(folder)
    log = new_table(folder)
    _run("mount", "-o", "remount,ro", str(folder))
    attempts = [
        attempt(folder, lambda: log.write(row(0, 2))),
        attempt(folder, lambda: DeltaLog(folder / "other").write(row(0, 2))),
    ]
    return answer(log, attempts, 1, lambda: _run("mount", "-o", "remount,rw", str(folder)))


def limit(folder: Path) -> Answer:
    import resource

    log = new_table(folder)
    resource.setrlimit(resource.RLIMIT_FSIZE, (BIG // 2, resource.RLIM_INFINITY))
    attempts = [attempt(folder, lambda: log.write(big()))]
    return answer(log, attempts, 1, lambda: None)


def denied(folder: Path) -> Answer:
    log = new_table(folder)
    folders = [folder, folder / "table", folder / "table" / "_delta_log"]

    def allow(mode: int) -> None:
        for path in folders:
            path.chmod(mode)

    if os.access(folder, os.W_OK):
        allow(0o555)
    if os.access(folder, os.W_OK):
        allow(0o755)
        return {
            "skip": "permissions do not bind this user, and the capability that says so cannot be dropped"
        }
    attempts = [
        attempt(folder, lambda: log.write(row(0, 2))),
        attempt(folder, lambda: DeltaLog(folder / "other").write(row(0, 2))),
    ]
    folders[1].chmod(0o755)
    attempts.append(attempt(folder, lambda: log.write(row(0, 2))))
    return answer(log, attempts, 1, lambda: allow(0o755))


def _mount(folder: Path) -> None:
    """A little device in memory; it is gone with the mount namespace of this process."""
    _run("mount", "-t", "tmpfs", "-o", f"size={BIG // 2}", "tmpfs", str(folder))


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


SCENARIOS = {"full": full, "read-only": read_only, "limit": limit, "denied": denied}

if __name__ == "__main__":
    json.dump(SCENARIOS[sys.argv[1]](Path(sys.argv[2])), sys.stdout)
