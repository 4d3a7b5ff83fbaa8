"""How many conflicts are left where rows decide instead of files: four writers change few rows of the same four files.

    python -m benchmarks.row_conflicts --commands 60

Each writer runs its commands until they are committed, and counts how often it was refused. Once on a table with
deletion vectors, where files decide as in delta-spark, and once with row tracking too, where rows do. Prints Markdown.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaConcurrentModificationException
from spark_tests.faults.concurrency import row_commands
from spark_tests.faults.concurrency.row_model import (
    APPEND,
    DELETE,
    MERGE,
    OPTIMIZE,
    UPDATE,
    Command,
    Row,
    row_of,
)

FILES = {"delta.enableDeletionVectors": "true"}
ROWS = {**FILES, "delta.enableRowTracking": "true"}
LEVELS = ("Serializable", "WriteSerializable")
WRITERS, IDS, ONE_IN = 4, 20_000, 499
KINDS = (UPDATE,) * 4 + (MERGE,) * 3 + (DELETE,) * 2 + (APPEND,)


def command(chance: random.Random, writer: int, number: int) -> Command:
    """One of a writer's commands; the first writer compacts the table now and then."""
    if writer == 0 and number % 20 == 19:
        return Command(OPTIMIZE)
    kind = chance.choice(KINDS)
    fresh = IDS * (2 + writer) + number * 10
    if kind == APPEND:
        return Command(APPEND, tuple(row_of(fresh + n, n) for n in range(10)))
    if kind == MERGE:
        known: list[Row] = [row_of(chance.randrange(IDS), 1) for _ in range(5)]
        return Command(MERGE, (*dict.fromkeys(known), *(row_of(fresh + n, n) for n in range(5))))
    return Command(kind, modulus=ONE_IN, rest=chance.randrange(ONE_IN))


def write(path: str, writer: int, commands: int, answers: multiprocessing.Queue[Counter[str]]) -> None:
    """Run a writer's commands, each until it is committed."""
    chance, counts = random.Random(f"row conflicts {writer}"), Counter[str]()
    log = DeltaLog(path)
    for number in range(commands):
        wanted = command(chance, writer, number)
        while True:
            try:
                row_commands.run(log, wanted, f"{writer}-{number}")
                break
            except DeltaConcurrentModificationException as error:
                counts[type(error).__name__] += 1
    answers.put(counts)


def race(folder: Path, properties: Mapping[str, str], commands: int) -> tuple[Counter[str], float]:
    """What the writers were refused by, and the seconds that they took in all."""
    log = DeltaLog(folder)
    for part in range(4):
        rows = row_commands.batch(row_of(n, n) for n in range(part, IDS, 4))
        log.write(rows, "append", dict(properties) if part == 0 else {})
    context = multiprocessing.get_context("spawn")
    answers: multiprocessing.Queue[Counter[str]] = context.Queue()
    started = time.monotonic()
    writers = [
        context.Process(target=write, args=(str(folder), number, commands, answers))
        for number in range(WRITERS)
    ]
    for process in writers:
        process.start()
    total = sum((answers.get() for _ in writers), Counter[str]())
    for process in writers:
        process.join()
    return total, time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--commands", type=int, default=60, help="of each writer")
    commands = parser.parse_args().commands
    print("| level | decided by | committed | refused | seconds |\n|---|---|---|---|---|")
    for level in LEVELS:
        for name, properties in (("files", FILES), ("rows", ROWS)):
            with tempfile.TemporaryDirectory() as folder:
                refused, seconds = race(
                    Path(folder, "table"), {**properties, "delta.isolationLevel": level}, commands
                )
            told = ", ".join(f"{count} {kind}" for kind, count in sorted(refused.items())) or "none"
            print(
                f"| {level} | {name} | {commands * WRITERS} | {refused.total()} ({told}) | {seconds:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
