"""The Spark applications of a load, as processes of their own with a JVM each."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from spark_tests.faults.concurrency.workers import ROOT

# Numbers of applications, which no forked process has.
_FIRST = 500
_START_SECONDS = 180.0
# What the last command of an application may take, and its stream to come to the end.
PATIENCE_SECONDS = 240.0


class Application:
    """One of them; see `spark_app`."""

    def __init__(self, job: dict[str, Any], errors: IO[str]) -> None:
        self.job = job
        self._process = subprocess.Popen(
            [sys.executable, "-m", "spark_tests.faults.chaos.spark_app"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT,
            start_new_session=True,
        )  # fmt: skip
        self.say(json.dumps(job))

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # which `hears` then tells
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def hears(self, word: str, seconds: float) -> bool:
        """Whether it answers a word in time."""
        assert self._process.stdout is not None
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            readable, _, _ = select.select([self._process.stdout], [], [], left)
            line = self._process.stdout.readline() if readable else ""
            if line.strip() == word:
                return True
            if readable and not line:
                return False
        return False

    def kill(self) -> None:
        """End it at once, and its JVM."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


class Applications:
    """All of them: the first one has the stream, and the last one is killed on its way and started again.

    Parameters
    ----------
    job
        Of all of them; see `spark_app`.
    count
        How many.
    """

    def __init__(self, job: dict[str, Any], count: int, folder: Path) -> None:
        self._job = {**job, "patience": PATIENCE_SECONDS, "folder": str(folder)}
        self._folder = folder
        self._count = count
        self._running: list[Application] = []
        self._errors: IO[str] | None = None
        self.killed = 0
        self.problems: list[str] = []

    def __enter__(self) -> Applications:
        if not self._count:
            return self
        self._errors = (self._folder / "applications.log").open("w")
        for number in range(self._count):
            self._running.append(self._start(_FIRST + number, with_stream=not number))
        for application in self._running:
            if not application.hears("ready", _START_SECONDS):
                raise AssertionError(f"an application does not start: {self._log()}")
        return self

    def __exit__(self, *_: object) -> None:
        for application in self._running:
            application.kill()
        if self._errors is not None:
            self._errors.close()

    def _start(self, number: int, *, with_stream: bool) -> Application:
        assert self._errors is not None
        streams = self._job["streams"] if with_stream else None
        return Application({**self._job, "writer": number, "streams": streams}, self._errors)

    def _log(self) -> str:
        return (self._folder / "applications.log").read_text()[-4000:]

    def begin(self) -> None:
        for application in self._running:
            application.say("begin")

    def kill_one(self, seconds_left: float) -> None:
        """Kill the last one in the middle of what it does; another one goes on where there is time."""
        if len(self._running) < 2:
            return
        last = self._running.pop()
        last.kill()
        self.killed += 1
        self._job["seconds"] = seconds_left
        again = self._start(last.job["writer"] + self._count, with_stream=False)
        self._running.append(again)
        if not again.hears("ready", _START_SECONDS):
            self.problems.append(f"an application does not start: {self._log()}")
        again.say("begin")

    def over(self) -> None:
        """Wait for the end of their commands."""
        for application in self._running:
            if not application.hears("over", PATIENCE_SECONDS):
                self.problems.append(f"an application did not come to an end: {self._log()}")

    def finish(self) -> None:
        """Wait for the stream to come to the end of its source, now that there is no more trouble."""
        for application in self._running:
            application.say("finish")
        for application in self._running:
            if not application.hears("done", 2 * PATIENCE_SECONDS):
                self.problems.append(f"an application did not finish: {self._log()}")
