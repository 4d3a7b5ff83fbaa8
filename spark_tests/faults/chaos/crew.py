"""Forks the processes of a load, kills some of them at random moments, and puts others in their place.

    python -m spark_tests.faults.chaos.crew < job.json

The job: what `worker` takes, but for `writer`, `role` and `skew_hours`; `roles`, how many of each; `skews`, the clocks
of the writers by turns; `seconds`; `kill_every`, seconds on average (0: never); `modules` to import. It answers how
many were killed, and which did not come to an end.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from spark_tests.faults.chaos import worker
from spark_tests.faults.concurrency.workers import fork, load_modules

# What the last step of a process may take, with all the repetitions that clients make.
GRACE_SECONDS = 150.0
_HUNG = 2  # seconds that a process gets to write where it is


@dataclass
class Crew:
    """The processes.

    Attributes
    ----------
    job
        Of all of them.
    """

    job: dict[str, Any]

    def __post_init__(self) -> None:
        self._random = random.Random(f"crew {self.job['seed']}")
        self._roles: dict[int, str] = {}
        self._writer = 0
        self.killed = 0

    def _start(self, role: str) -> None:
        skews = self.job["skews"] if role == "writer" else [0]
        number, self._writer = self._writer, self._writer + 1
        job = {**self.job, "writer": number, "role": role, "skew_hours": skews[number % len(skews)]}
        self._roles[fork(lambda: worker.work(job))] = role

    def run(self) -> dict[str, Any]:
        ends = time.monotonic() + self.job["seconds"]
        self.job["ends"] = ends
        for role, count in self.job["roles"].items():
            for _ in range(count):
                self._start(role)
        kills = self._kills(ends)
        due = next(kills)
        while self._roles and time.monotonic() < ends + GRACE_SECONDS:
            self._reap(ends)
            if self._roles and time.monotonic() >= due:
                self._kill()
                due = next(kills)
            time.sleep(0.05)
        return {"killed": self.killed, "hung": self._hung()}

    def _kills(self, ends: float) -> Iterator[float]:
        every, due = self.job["kill_every"], time.monotonic()
        while every:
            due += self._random.expovariate(1 / every)
            if due >= ends:
                break
            yield due
        while True:
            yield float("inf")

    def _kill(self) -> None:
        victim = self._random.choice(sorted(self._roles))
        role = self._roles.pop(victim)
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        self.killed += 1
        self._start(role)

    def _reap(self, ends: float) -> None:
        while self._roles:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                return
            role = self._roles.pop(child)
            if status or time.monotonic() < ends:
                sys.exit(f"a {role} ended with {status} before its time")

    def _hung(self) -> list[str]:
        for child in self._roles:
            os.kill(child, signal.SIGUSR1)
        time.sleep(_HUNG if self._roles else 0)
        for child in self._roles:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        return list(self._roles.values())


if __name__ == "__main__":
    given = json.loads(sys.stdin.read())
    load_modules(worker.rehearse)
    for name in given["modules"]:
        import_module(name)
    json.dump(Crew(given).run(), sys.stdout)
