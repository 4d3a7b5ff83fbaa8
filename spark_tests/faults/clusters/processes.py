"""Processes on this machine: programs that are applications, masters and workers of a standalone cluster."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark

ROOT = Path(__file__).resolve().parents[3]
SPARK_HOME = Path(pyspark.__file__).parent
# The tests' own environment says where this package is; processes that shall not know get it without.
_PYTHON = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYSPARK_SUBMIT_ARGS", "SPARK_HOME")
_START_SECONDS = 300
_RUN_SECONDS = 1500


def environment(*, package: bool = True, **more: str) -> dict[str, str]:
    """The environment of a process that Spark is started in.

    Parameters
    ----------
    package
        Whether Python finds this package there.
    more
        Added to it.
    """
    found = {name: text for name, text in os.environ.items() if name not in _PYTHON}
    found |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    if package:
        found["PYTHONPATH"] = str(ROOT)
    return {**found, **more}


@dataclass
class Finished:
    """What a program printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The lines of JSON that it printed."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]


def run(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    folder: Path | None = None,
    text: str | None = None,
    seconds: float = _RUN_SECONDS,
) -> Finished:
    """Run a program to its end; it and all that it started are killed when that takes too long."""
    started = subprocess.Popen(
        command, env=dict(env), cwd=folder, start_new_session=True, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        out, err = started.communicate(text, timeout=seconds)
    except BaseException:
        kill_group(started)
        raise
    return Finished(started.returncode, out, err)


def kill_group(process: subprocess.Popen[Any]) -> None:
    """Kill a process that has a session of its own, and what it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def application(job: Mapping[str, Any], env: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """What the scenarios of an application found, by scenario; see `spark_tests.faults.clusters.application`."""
    command = [sys.executable, "-m", "spark_tests.faults.clusters.application", json.dumps(job)]
    done = run(command, env or environment(), folder=ROOT)
    found = {answer["scenario"]: answer for answer in done.answers}
    assert list(found) == list(job["scenarios"]), (
        f"the application ended with {done.code}: {done.err[-4000:]}"
    )
    return found


@contextmanager
def started_application(job: Mapping[str, Any]) -> Iterator[subprocess.Popen[bytes]]:
    """An application during a block; at its end driver and executors are killed."""
    command = [sys.executable, "-m", "spark_tests.faults.clusters.application", json.dumps(job)]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        command, env=environment(), cwd=ROOT, start_new_session=True, stdout=quiet, stderr=quiet
    )
    try:
        yield process
    finally:
        kill_group(process)


@dataclass
class Cluster:
    """A standalone cluster.

    Attributes
    ----------
    url
        For `spark.master`.
    """

    url: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)


@contextmanager
def standalone_cluster(
    folder: Path, env: Mapping[str, str], *, workers: int = 2, memory: str = "1g"
) -> Iterator[Cluster]:
    """A master and workers with one core each, which for Spark are on hosts of their own.

    Parameters
    ----------
    folder
        For what the workers keep.
    env
        The environment of workers, and so of executors.
    """
    port = _free_port()
    cluster = Cluster(f"spark://127.0.0.1:{port}")
    deploy = "org.apache.spark.deploy"
    try:
        master = ["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        _start(cluster, folder / "master.log", env, f"{deploy}.{master[0]}", *master[1:])
        _wait_for(folder / "master.log", "I have been elected leader", cluster)
        for number in range(workers):
            log = folder / f"worker-{number}.log"
            _start(
                cluster, log, env, f"{deploy}.worker.Worker", cluster.url, "--cores", "1", "--memory", memory,
                "--host", f"127.0.0.{number + 1}", "--webui-port", "0", "--work-dir", str(folder / f"work-{number}"),
            )  # fmt: skip
        for number in range(workers):
            _wait_for(folder / f"worker-{number}.log", "Successfully registered with master", cluster)
        yield cluster
    finally:
        for process in reversed(cluster.processes):
            kill_group(process)


def _start(cluster: Cluster, log: Path, env: Mapping[str, str], *words: str) -> None:
    with log.open("wb") as output:
        cluster.processes.append(
            subprocess.Popen(
                [str(SPARK_HOME / "bin" / "spark-class"), *words],
                env={**env, "SPARK_LOG_LEVEL": "INFO"}, start_new_session=True, stdout=output, stderr=output,
            )
        )  # fmt: skip


def _wait_for(log: Path, words: str, cluster: Cluster) -> None:
    end = time.monotonic() + _START_SECONDS
    while words not in log.read_text():
        ended = [process for process in cluster.processes if process.poll() is not None]
        assert not ended and time.monotonic() < end, log.read_text()[-2000:]
        time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


# Objects name the folder that their driver has the package in; on another machine it is not there.
_ANOTHER_MACHINE = """
import sys

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "delta_ds":
            sys.path[:] = [place for place in sys.path if place != {root!r}]
        return None

sys.meta_path.insert(0, Finder)
"""


def bare_python(folder: Path, *without: str) -> Path:
    """A Python with all that this one has but this package, and but some others.

    Parameters
    ----------
    folder
        Its environment: made.
    without
        How the names of others begin.

    Returns
    -------
    Path
        The interpreter, called `python3` in a folder that can go before PATH.
    """
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    into = next(folder.glob("lib/python*/site-packages"))
    left_out = ("delta_ds", "_editable", "__editable__", "pyspark_pydelta", *without)
    for place in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(place).iterdir():
            kept = not entry.name.lower().startswith(left_out) and entry.suffix != ".pth"
            if kept and not (into / entry.name).exists():
                (into / entry.name).symlink_to(entry)
    (into / "sitecustomize.py").write_text(_ANOTHER_MACHINE.format(root=str(ROOT)))
    return folder / "bin" / "python3"


def on_path(python: Path) -> str:
    """A PATH on which `python3` is an interpreter."""
    return os.pathsep.join([str(python.parent), os.environ["PATH"]])
