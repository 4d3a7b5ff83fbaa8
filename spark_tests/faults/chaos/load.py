"""A load on a table of a store that makes trouble, and what came of it.

    python -m spark_tests.faults.chaos.load local minio --seconds 300 --seed 1

runs it on each of the stores by turns and prints a table. It ends with 1 where a row was lost or doubled, or anything
else was not as it was told; the same seed makes the same choices again, not the same order of processes.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from delta_ds.api.delta_log import DeltaLog
from spark_tests.faults.chaos.applications import Applications
from spark_tests.faults.chaos.checker import ChaosHistory, check_copy, read_notes
from spark_tests.faults.chaos.crew import GRACE_SECONDS
from spark_tests.faults.chaos.stores import STORES, Store, Trouble
from spark_tests.faults.chaos.worker import PROPERTIES
from spark_tests.faults.concurrency import row_commands
from spark_tests.faults.concurrency.row_history import Files
from spark_tests.faults.concurrency.workers import ROOT

# Clocks of the writers, hours ahead. None is back by more than the retention of VACUUM: it would take their files.
SKEWS = (0.0, 5.0, -3.0, 0.0, -0.5, 26.0)
# The slowest clock, and two minutes: what that process takes away is deleted two minutes later.
RETENTION_HOURS = 3 + 2 / 60


@dataclass(frozen=True)
class Load:
    """How much of everything.

    Attributes
    ----------
    seconds
        How long processes begin new steps.
    writers, appends
        How many, and how many appends each of them makes before other commands.
    rates
        Share of requests that meet trouble, and of those that write a commit.
    local_rate
        Share of calls of the operating system.
    kill_every
        Seconds on average.
    expire_every
        Seconds on average between times when nobody is let in.
    applications
        Of Spark, one of which streams; the last one is killed on its way.
    """

    seconds: float = 300
    seed: int = 1
    writers: int = 8
    appends: int = 50
    rates: tuple[float, float] = (0.03, 0.2)
    local_rate: float = 0.004
    kill_every: float = 10
    expire_every: float = 60
    applications: int = 0


@dataclass
class Result:
    """What came of a load.

    Attributes
    ----------
    told
        How many steps came to which end.
    faults
        How many of each kind.
    restarts
        How often the stream's query has failed, and was started again.
    """

    store: str
    load: Load
    told: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    killed: int = 0
    versions: int = 0
    slowest: float = 0
    restarts: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not (self.lost or self.doubled or self.problems)

    def row(self) -> str:
        told, kinds = self.told, ", ".join(f"{kind} {count}" for kind, count in self.faults.most_common())
        cells = [
            self.store, f"{self.load.seconds:.0f}", self.load.seed, self.load.applications, sum(told.values()),
            self.versions, sum(self.faults.values()), told["conflict"],
            told["refused"], told["uncertain"], self.killed, self.restarts, f"{self.slowest:.0f} s",
            len(self.lost), len(self.doubled), len(self.problems), kinds,
        ]  # fmt: skip
        return "| " + " | ".join(map(str, cells)) + " |"


MIXED, SOURCE, TARGET = TABLES = ("t 1", "events", "copy")
MARKS = "<!-- measured: chaos -->", "<!-- end: chaos -->"
_COLUMNS = (
    "store", "seconds", "seed", "Spark", "operations", "versions", "faults", "conflicts", "refused", "uncertain",
    "killed", "restarts", "slowest", "lost", "doubled", "wrong", "faults by kind",
)  # fmt: skip
HEAD = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}"


def run(name: str, load: Load, folder: Path) -> Result:
    """Run a load on a store of its own."""
    with STORES[name](folder, load.seed, load.rates) as store:
        logs = {table: DeltaLog(f"{store.url}/{table}", store.options) for table in TABLES}
        row_commands.create(logs[MIXED], PROPERTIES, partitioned=True)
        if load.applications:
            row_commands.create(logs[SOURCE], PROPERTIES, partitioned=False)
        notes = folder / "notes"
        notes.mkdir()
        job = _job(name, load, store, folder)
        with Applications(job, load.applications, folder) as applications:
            watch = Watch(logs[MIXED], store.proxy, load, applications)
            with watch:
                applications.begin()
                answer = _crew(job)
                applications.over()
            if store.proxy is not None:
                store.proxy.say("calm")
            applications.finish()
        return _result(name, load, store, logs, watch.files, notes, answer, applications)


def _job(name: str, load: Load, store: Store, folder: Path) -> dict[str, Any]:
    url = store.troubled_url or store.url
    streams = {
        "source": f"{url}/{SOURCE}", "target": f"{url}/{TARGET}", "checkpoint": str(folder / "checkpoint"),
    }  # fmt: skip
    feeders = {"feeder": 1} if load.applications else {}
    return {
        "url": f"{url}/{MIXED}", "events": streams["source"], "streams": streams, "options": store.troubled,
        "modules": store.modules, "seed": load.seed, "seconds": load.seconds, "appends": load.appends,
        "skews": SKEWS, "notes": str(folder / "notes"), "kill_every": load.kill_every,
        "roles": {"writer": load.writers, "reader": 1, "vacuum": 1, **feeders},
        "retention_hours": RETENTION_HOURS, "pause": min(8.0, load.seconds / 20),
        "fault_rate": load.local_rate if name == "local" else 0,
    }  # fmt: skip


def _crew(job: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "spark_tests.faults.chaos.crew"],
        input=json.dumps(job), stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT,
        timeout=job["seconds"] + GRACE_SECONDS + 120,
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(f"the crew ended with {done.returncode}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _result(
    name: str,
    load: Load,
    store: Store,
    logs: dict[str, DeltaLog],
    files: Files,
    notes: Path,
    answer: dict[str, Any],
    applications: Applications,
) -> Result:
    noted = read_notes(notes)
    result = Result(name, load, faults=noted.faults, killed=answer["killed"] + applications.killed)
    if store.proxy is not None:
        result.faults.update(store.proxy.counts())
    files.catch_up()
    histories = [ChaosHistory(logs[MIXED], noted.steps, files)]
    if load.applications:
        histories.append(ChaosHistory(logs[SOURCE], noted.fed, Files(logs[SOURCE])))
        result.restarts = len(noted.restarts)
        result.lost, result.doubled = check_copy(logs[SOURCE], logs[TARGET])
    for history in histories:
        history.check()
        result.versions += len(history.files.live)
        result.lost += history.lost
        result.doubled += history.doubled
        result.problems += history.problems
    for step in (*noted.steps.values(), *noted.fed.values()):
        if "ended" in step:
            result.slowest = max(result.slowest, (step["ended"] - step["began"]) / 1e9)
        result.told[step.get("told") or ("done" if "ended" in step else "killed")] += 1
    result.problems += applications.problems
    for role in answer["hung"]:
        traces = [path.read_text() for path in notes.glob("*.trace") if path.stat().st_size]
        result.problems.append(f"a {role} did not come to an end: {''.join(traces)}")
    return result


class Watch:
    """What goes on beside the load: every version is read while it is there, and at times nobody is let in."""

    def __init__(self, log: DeltaLog, proxy: Trouble | None, load: Load, applications: Applications) -> None:
        self.files = Files(log)
        self._applications = applications
        self._proxy = proxy
        self._load = load
        self._random = random.Random(f"watch {load.seed}")
        self._over = threading.Event()
        self._failed: Exception | None = None
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _watch(self) -> None:
        began = time.monotonic()
        expire = began + self._random.uniform(0.5, 1) * self._load.expire_every
        kill = began + self._random.uniform(0.3, 0.5) * self._load.seconds
        try:
            while not self._over.wait(1):
                self._read_new_versions()
                if time.monotonic() > kill:
                    kill = float("inf")
                    self._applications.kill_one(self._load.seconds / 3)
                if self._proxy is not None and time.monotonic() > expire:
                    self._proxy.say("expire", self._random.uniform(1, 4))
                    expire = time.monotonic() + self._random.uniform(0.5, 1.5) * self._load.expire_every
        except Exception as error:
            self._failed = error

    def _read_new_versions(self) -> None:
        known = len(self.files.live)
        self.files.catch_up()
        for version in range(known, len(self.files.live)):
            with suppress(FileNotFoundError):  # lost, as the checker finds too
                self.files.rows(version)


def into_page(page: Path, text: str) -> None:
    """Put a text between the marks of a page."""
    before, rest = page.read_text().split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    page.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stores", nargs="+", choices=STORES)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--applications", type=int, default=2, help="of Spark; 0: the kernel alone")
    parser.add_argument("--page", type=Path, default=None, help="a page whose table is written anew")
    parser.add_argument("--keep", type=Path, default=None, help="a folder for what processes noted")
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1 << 30)
    results = []
    for name in given.stores:
        print(f"{name}: {given.seconds:.0f} s, seed {seed}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            load = Load(seconds=given.seconds, seed=seed, applications=given.applications)
            results.append(run(name, load, Path(folder)))
            if given.keep is not None:
                shutil.copytree(Path(folder, "notes"), given.keep / name, dirs_exist_ok=True)
                if given.applications:
                    shutil.copy(Path(folder, "applications.log"), given.keep / name)
        for wrong in (*results[-1].lost, *results[-1].doubled, *results[-1].problems):
            print(f"{name}: {wrong}", file=sys.stderr, flush=True)
    table = "\n".join([HEAD, *(result.row() for result in results)])
    print(table)
    if given.page is not None:
        into_page(given.page, table)
    if not all(result.ok for result in results):
        sys.exit(f"something was lost, doubled or told wrongly; again: --seed {seed}")


if __name__ == "__main__":
    main()
