"""Run worker scripts as processes of their own that start at the same moment.

A worker script is a module of this folder that calls `serve`. One process imports all it needs, and forks one
worker a job: Python and Arrow are loaded once, and by a process without threads.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar

import pytest

if TYPE_CHECKING:
    from spark_tests.faults.concurrency.faults import Fault, What

ROOT = Path(__file__).resolve().parents[3]

_LONGEST_SECONDS = 300

Job = Mapping[str, Any]
_Nursery = TypeVar("_Nursery", bound="Nursery")
Work = Callable[[dict[str, Any]], Callable[[], Any]]


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
        One of them failed; their jobs, and the end of what they wrote to standard error.
    """
    with tempfile.TemporaryFile("w+") as errors:
        process = start(script, errors)
        try:
            output, _ = process.communicate(json.dumps(list(jobs)), timeout=_LONGEST_SECONDS)
        finally:
            end(process)
        if process.returncode:
            errors.seek(0)
            raise AssertionError(f"workers failed, jobs {jobs}:\n{errors.read()[-4000:]}")
    answers: list[Any] = json.loads(output)
    return answers


def start(script: str, errors: IO[str]) -> subprocess.Popen[str]:
    """A process that runs a module of this folder, with pipes to talk to it; `end` ends it and all it forked."""
    if not hasattr(os, "fork"):
        pytest.skip("this system cannot fork")
    return subprocess.Popen(
        [sys.executable, "-m", f"spark_tests.faults.concurrency.{script}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        cwd=ROOT,
        env={**os.environ, "DELTA_DS_CACHE": "off"},
        start_new_session=True,
    )


def end(process: subprocess.Popen[str]) -> None:
    """End a process with all that it has forked, and close what it was talked to with."""
    with suppress(ProcessLookupError):  # it and all of its children are gone
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


class Nursery:
    """Workers that may be killed, of a module that calls `fork_each`; as a context, in which its process runs.

    Parameters
    ----------
    script
        The module, by its name in this folder.
    folder
        For what they note.
    """

    def __init__(self, script: str, folder: Path) -> None:
        self._script = script
        self._seen = folder / "seen"
        self._errors = (folder / "errors").open("w+")
        self.process = start(script, self._errors)

    def live(self, job: Job, fault: Fault | None) -> bool:
        """Let a worker do a job; whether the fault killed it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        told = {**job, "seen": str(self._seen), "fault": asdict(fault) if fault else None}
        self.process.stdin.write(json.dumps(told) + "\n")
        self.process.stdin.flush()
        code = self.process.stdout.readline().strip()
        if code not in ("0", str(-signal.SIGKILL)):
            self._errors.seek(0)
            pytest.fail(f"{self._script}: a worker ended with {code}: {self._errors.read()[-4000:]}")
        return code != "0"

    def seen(self) -> list[What]:
        """The calls of the last worker that was not killed."""
        return [(call, kind) for call, kind in json.loads(self._seen.read_text())]

    def __enter__(self: _Nursery) -> _Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        end(self.process)
        self._errors.close()


# ---------------------------------------------------------------- inside the processes


def fork_each(rehearse: Callable[[Path], None], live: Callable[[dict[str, Any]], None]) -> None:
    """The main function of a worker script whose workers may be killed: each job has one, and how it ended is told."""
    load_modules(rehearse)
    for line in sys.stdin:
        job = json.loads(line)
        _, status = os.waitpid(fork(lambda: live(job)), 0)  # noqa: B023 - it is over before the next one
        print(os.waitstatus_to_exitcode(status), flush=True)


def serve(
    work: Work, rehearse: Callable[[Path], None], last: Callable[[dict[str, Any]], None] | None = None
) -> None:
    """The main function of a worker script.

    Parameters
    ----------
    work
        Takes a job and gets ready; what it returns is called when all workers are, and returns the answer. A job
        may name further `modules` that it takes.
    rehearse
        Does the same things in an empty folder, so that it is known which modules they take.
    last
        What a worker whose job says that it `dies` does after its answer, and is killed by.
    """
    jobs: list[dict[str, Any]] = json.loads(sys.stdin.read())
    load_modules(rehearse)
    for name in {name for job in jobs for name in job.get("modules", ())}:
        import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        ready, go = os.pipe(), os.pipe()
        workers = [_fork(work, job, Path(folder, str(n)), ready, go, last) for n, job in enumerate(jobs)]
        os.close(ready[1])
        for _ in workers:
            os.read(ready[0], 1)  # a byte of each, or the end of the pipe if one has failed
        os.close(go[1])
        codes = [os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) for worker in workers]
        if codes != [-signal.SIGKILL if "dies" in job else 0 for job in jobs]:
            sys.exit(f"exit codes {codes}")
        json.dump([json.loads(Path(folder, str(n)).read_text()) for n in range(len(jobs))], sys.stdout)


def _fork(
    work: Work,
    job: dict[str, Any],
    answer: Path,
    ready: tuple[int, int],
    go: tuple[int, int],
    last: Callable[[dict[str, Any]], None] | None,
) -> int:
    def act() -> None:
        os.close(go[1])
        run = work(job)
        os.write(ready[1], b".")
        os.close(ready[1])
        os.read(go[0], 1)  # ends when everybody is ready
        answer.write_text(json.dumps(run()))
        if last is not None and "dies" in job:
            last(job)

    return fork(act)


def fork(act: Callable[[], None]) -> int:
    """Run a function in a process of its own, whose id is returned; it ends with 1 if the function raises."""
    sys.stdout.flush()
    child = os.fork()
    return child or _run(act)


def _run(act: Callable[[], None]) -> NoReturn:
    code = 1
    try:
        act()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def load_modules(rehearse: Callable[[Path], None]) -> None:
    """Import what a function imports, without running it here: it may start threads, and forks have to come first."""
    with tempfile.TemporaryDirectory() as folder:
        names = Path(folder, "modules")

        def act() -> None:
            rehearse(Path(folder, "table"))
            names.write_text(json.dumps(sorted(sys.modules)))

        _, status = os.waitpid(fork(act), 0)
        if status:
            sys.exit("the rehearsal failed")
        for name in json.loads(names.read_text()):
            if name.partition(".")[0] in ("delta_ds", "pandas", "pyarrow", "numpy", "sqlglot"):
                import_module(name)
