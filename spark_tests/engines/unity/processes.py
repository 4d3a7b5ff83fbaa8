"""Writers as processes that are killed, and what must hold of their table."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from delta_ds import DeltaLog
from spark_tests.engines.unity.contract import Place, folder, ids, published, staged


class Writer:
    """A writer of rows from `first` on, and what it says."""

    def __init__(self, place: Place, name: str, first: int, count: int, log: Path) -> None:
        self._log = log
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "spark_tests.engines.unity.worker", place.url, name, str(first), str(count)],
                stdout=output, stderr=subprocess.DEVNULL, cwd=Path(__file__).parents[3],
            )  # fmt: skip

    def said(self) -> dict[str, list[int]]:
        """Rows by `begun`, `done`, `lost` and `failed`."""
        found: dict[str, list[int]] = {"begun": [], "done": [], "lost": [], "failed": []}
        lines = self._log.read_text().splitlines(keepends=True)
        for line in lines:
            word, _, rest = line.partition(" ")
            assert word in found, "".join(lines)[-3000:]
            if line.endswith("\n"):
                found[word].append(int(rest.split()[0]))
        return found

    def reach(self, done: int) -> None:
        """Wait until it has confirmed so many rows, or ended."""
        deadline = time.monotonic() + 120
        while len(self.said()["done"]) < done and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)

    def end(self, *, kill: bool = False) -> dict[str, list[int]]:
        """Wait for its end, or make one; what it has said."""
        if kill:
            self.process.kill()
        self.process.wait(180)
        return self.said()


def check(place: Place, name: str, told: list[dict[str, list[int]]], before: list[int]) -> DeltaLog:
    """What must hold of a table whatever was killed: what was confirmed is there once, what was refused is not."""
    log = place.log(name)
    rows = Counter(ids(log))
    assert not [row for row, times in rows.items() if times > 1]
    done = {row for one in told for row in one["done"]}
    failed = {row for one in told for row in one["failed"]}
    open_ = {row for one in told for row in one["begun"]} - done - failed
    assert done <= set(rows)
    assert not failed & set(rows)
    assert set(rows) <= {*before, *done, *open_}
    # Each version is one commit: those in their places are what was ratified, byte by byte, without a gap.
    version = log.snapshot().version
    assert version == len(rows) - len(before)
    places, waiting = published(log), staged(log)
    numbers = sorted(int(name[:20]) for name in places)
    assert numbers == list(range(len(numbers)))
    for file, data in places.items():
        if int(file[:20]):
            assert data in [other for one, other in waiting.items() if one.startswith(file[:20])]
    assert all(json.loads(line) for data in places.values() for line in data.splitlines())
    assert (folder(log) / "_delta_log").is_dir()
    return log
