"""Run worker scripts as processes of their own that start at the same moment.

A worker is a module of this folder that calls `serve`. It gets its job as JSON, says when it is ready, waits for
the others, and prints what came of it as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
READY, GO = "ready", "go"

_LONGEST_SECONDS = 300

Job = Mapping[str, Any]


def run_together(script: str, jobs: Sequence[Job]) -> list[Any]:
    """Run one process a job, all at once; what each of them answered.

    Parameters
    ----------
    script
        The worker's module, by its name in this folder.
    jobs
        What each of them is to do.

    Raises
    ------
    AssertionError
        One of them failed; its job, and the end of what it wrote to standard error.
    """
    with ExitStack() as stack:
        workers = [_Worker(script, job, stack) for job in jobs]
        for worker in workers:
            worker.wait_until_ready()
        for worker in workers:
            worker.release()
        return [worker.answer() for worker in workers]


class _Worker:
    def __init__(self, script: str, job: Job, stack: ExitStack) -> None:
        self._job = job
        self._errors: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())
        self._process = start(script, self._errors)
        stack.callback(end, self._process)

    def wait_until_ready(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(self._job) + "\n")
        self._process.stdin.flush()
        if self._process.stdout.readline().strip() != READY:
            self._fail()

    def release(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(GO + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        output, _ = self._process.communicate(timeout=_LONGEST_SECONDS)
        if self._process.returncode:
            self._fail()
        return json.loads(output)

    def _fail(self) -> None:
        self._process.kill()
        self._process.wait()
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace")
        raise AssertionError(
            f"a worker failed ({self._process.returncode}), job {self._job}:\n{text[-4000:]}"
        )


def start(script: str, errors: IO[bytes] | None = None) -> subprocess.Popen[str]:
    """A process that runs a module of this folder, with pipes to talk to it."""
    return subprocess.Popen(
        [sys.executable, "-m", f"spark_tests.concurrency.{script}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        cwd=ROOT,
        env={**os.environ, "DELTA_DS_CACHE": "off"},
    )


def end(process: subprocess.Popen[str]) -> None:
    """End a process and close what it was talked to with."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def serve(work: Callable[[dict[str, Any]], Callable[[], Any]]) -> None:
    """The main function of a worker.

    Parameters
    ----------
    work
        Takes the job and gets ready; what it returns is called when all are, and returns the answer.
    """
    run = work(json.loads(sys.stdin.readline()))
    print(READY, flush=True)
    if sys.stdin.readline().strip() == GO:
        json.dump(run(), sys.stdout)
