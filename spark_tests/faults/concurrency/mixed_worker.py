"""A process that does one kind of thing to a table again and again, and notes what it tried and what came of it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DeltaConcurrentModificationException
from delta_ds.kernel.base.arrow_buffers import integers, texts
from delta_ds.kernel.transaction.alter.properties import set_properties
from spark_tests.faults.concurrency.append_worker import write_file
from spark_tests.faults.concurrency.serial_order import (
    APPEND,
    COUNT,
    OVERWRITE,
    PARTITIONS,
    REPLACE,
    SET,
    Operation,
    Row,
)
from spark_tests.faults.concurrency.workers import serve

READ = "read"
PARTS, VALUES = 3, 10
NAMES = ("tag", "part", "value", "counted")


def batch(rows: tuple[Row, ...]) -> pa.RecordBatch:
    tags, *numbers = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pa.record_batch([texts(list(tags)), *(integers(column) for column in numbers)], names=list(NAMES))


def found_rows(table: pa.Table) -> list[Row]:
    return list(zip(*(table[name].to_pylist() for name in NAMES), strict=True))


class Worker:
    """One process of the load.

    Parameters
    ----------
    log
        The table.
    name
        Of the process; its rows' tags start with it.
    seed
        Of its choices; the order in which processes get their turn is not chosen.
    """

    def __init__(self, log: DeltaLog, name: str, seed: int) -> None:
        self._log = log
        self._name = name
        self._random = random.Random(seed)
        self._tags = 0

    def step(self, kind: str) -> dict[str, Any]:
        """Do one thing; what it was, when it began and ended, and its outcome."""
        began = time.monotonic_ns()
        if kind == READ:
            return {"kind": READ, "began": began, **self._read(), "ended": time.monotonic_ns()}
        operation = self._choose(kind)
        outcome: dict[str, Any] = {}
        try:
            operation, outcome["version"] = self._do(operation)
        except DeltaConcurrentModificationException as error:
            outcome = {"error": type(error).__name__, "winner": error.winning_version, "text": str(error)}
        ended = time.monotonic_ns()
        return {"kind": kind, "operation": asdict(operation), "began": began, "ended": ended, **outcome}

    def _read(self) -> dict[str, Any]:
        snapshot = self._log.snapshot()
        return {"version": snapshot.version, "rows": found_rows(snapshot.scan().to_arrow())}

    def _choose(self, kind: str) -> Operation:
        """Something of a kind to do, by chance."""
        part = self._random.randrange(PARTS)
        least = self._random.choice((0, 0, VALUES // 2))
        if kind == SET:
            return Operation(SET, key="load.step", text=f"{self._name}-{self._random.randrange(1 << 30)}")
        if kind == APPEND:
            return Operation(APPEND, self._rows(range(PARTS), 0, 3))
        if kind == OVERWRITE:
            return Operation(OVERWRITE, self._rows(range(PARTS), 0, 2))
        if kind == PARTITIONS:
            return Operation(PARTITIONS, self._rows([part], 0, 2))
        if kind == REPLACE:
            parts = tuple(sorted({part, self._random.randrange(PARTS)}))
            return Operation(REPLACE, self._rows(parts, least, 2), parts, least)
        return Operation(COUNT, parts=(part,))

    def _rows(self, parts: Any, least: int, most: int) -> tuple[Row, ...]:
        count = self._random.randint(1, most)
        return tuple(
            (self._tag(), self._random.choice(list(parts)), self._random.randrange(least, VALUES), -1)
            for _ in range(count)
        )

    def _tag(self) -> str:
        self._tags += 1
        return f"{self._name}-{self._tags}"

    def _do(self, operation: Operation) -> tuple[Operation, int | None]:
        """Do it; what it came to, and the version."""
        if operation.kind == SET:
            return operation, set_properties(self._log, {operation.key: operation.text})
        if operation.kind == COUNT:
            return self._count(operation)
        options = {}
        if operation.kind == PARTITIONS:
            options["partitionOverwriteMode"] = "dynamic"
        if operation.kind == REPLACE:
            listed = f"part IN ({', '.join(map(str, operation.parts))})"
            rows = f" AND value >= {operation.least}" if operation.least else ""
            options["replaceWhere"] = listed + rows
        mode = "append" if operation.kind == APPEND else "overwrite"
        return operation, self._log.write(batch(operation.rows), mode, options)

    def _count(self, operation: Operation) -> tuple[Operation, int]:
        """Add a row that says how many rows its partition had."""
        (part,) = operation.parts
        txn = self._log.start_transaction()
        counted = txn.scan(f"part = {part}").to_arrow().num_rows
        done = replace(operation, rows=((self._tag(), part, 0, counted),))
        add = write_file(self._log.storage, batch(done.rows).drop_columns("part"), part=str(part))
        try:
            return done, txn.add(add).commit("WRITE", {"mode": "Append"})
        except DeltaConcurrentModificationException:
            self._log.storage.delete([add["path"]])
            raise


def work(job: dict[str, Any]) -> Callable[[], list[dict[str, Any]]]:
    log = DeltaLog(job["url"])
    worker = Worker(log, job["name"], job["seed"])
    chances = random.Random(job["seed"] + 1)
    log.snapshot().scan().to_arrow()
    return lambda: [worker.step(chances.choice(job["kinds"])) for _ in range(job["steps"])]


def rehearse(folder: Path) -> None:
    log = DeltaLog(folder)
    log.write(batch(()), options={"partitionBy": "part"})
    worker = Worker(log, "rehearsal", 0)
    for kind in (APPEND, COUNT, REPLACE, PARTITIONS, OVERWRITE, SET, READ) * 2:
        worker.step(kind)


if __name__ == "__main__":
    serve(work, rehearse)
