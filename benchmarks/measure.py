"""One measurement is one process: its own time and peak memory, told as a line of JSON on standard output.

Only the standard library, so that the peers' environments can run it too.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

MARK = "MEASURED "


@dataclass(frozen=True)
class Measurement:
    """Medians over the rounds of one case.

    `work_s`: the work alone, in seconds. `process_s`: the whole process, Python's start and all imports
    included. `cpu_s`: what all its threads computed. `peak_mb`: the most memory the process held at once, in
    MiB. `answer`: what the work found, to see that all did the same.
    """

    work_s: float
    process_s: float
    cpu_s: float
    peak_mb: float
    answer: Any


def cpu_seconds() -> float:
    """What all threads of this process have computed so far, and the kernel for them."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def report(work_s: float, answer: Any, cpu_s: float | None = None) -> None:
    """Print what `run` reads; the last thing a measured process does.

    `cpu_s`: of the work alone; left out: of the whole process.
    """
    cpu = cpu_seconds() if cpu_s is None else cpu_s
    found = {"work_s": work_s, "cpu_s": cpu, "peak_mb": _peak_mb(), "answer": answer}
    print(MARK + json.dumps(found))


def failures(step: Callable[[], object], count: int) -> Counter[str]:
    """Do something several times, whatever comes of it; how often which exception was raised, by name."""
    found = [_failure(step) for _ in range(count)]
    return Counter(name for name in found if name is not None)


def _failure(step: Callable[[], object]) -> str | None:
    try:
        step()
    except Exception as error:  # noqa: BLE001 - every failure is counted and shown
        return type(error).__name__
    return None


def _peak_mb() -> float:
    # On Linux ru_maxrss starts from what the parent process held; VmHWM is this process' own peak.
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except FileNotFoundError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def run_once(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Measurement:
    """Run one measured process.

    Raises
    ------
    RuntimeError
        The process failed; the message ends with what it printed.
    """
    start = time.perf_counter()
    done = subprocess.run(
        list(command), capture_output=True, text=True, env={**os.environ, **(environment or {})}
    )
    seconds = time.perf_counter() - start
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not lines:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    found = json.loads(lines[-1][len(MARK) :])
    return Measurement(found["work_s"], seconds, found["cpu_s"], found["peak_mb"], found["answer"])


def middle(rounds: Sequence[Measurement]) -> Measurement:
    """The medians of several rounds.

    Raises
    ------
    RuntimeError
        The rounds did not find the same.
    """
    answers = {json.dumps(m.answer) for m in rounds}
    if len(answers) != 1:
        raise RuntimeError(f"rounds of one case disagree: {sorted(answers)}")
    return Measurement(
        median(m.work_s for m in rounds),
        median(m.process_s for m in rounds),
        median(m.cpu_s for m in rounds),
        median(m.peak_mb for m in rounds),
        rounds[0].answer,
    )
