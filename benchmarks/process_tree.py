"""What a process and all that descend from it use, by /proc: processor time and memory. Standard library only."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_EVERY_S = 0.1


@dataclass(frozen=True)
class Process:
    """One process.

    `cpu_s`: its processor time and that of its children that ended. `rss_mb`: MiB of memory, pages that it shares
    with others included.
    """

    parent: int
    name: str
    cpu_s: float
    rss_mb: float


@dataclass(frozen=True)
class Used:
    """What something cost. NaN where there is no /proc.

    `cpu_s`: of all processes together. `jvm_mb`, `python_mb`: the most memory that the JVM, or all processes of
    Python together, held at one moment, looked at ten times a second. `peak_mb`: the same of both together.
    """

    seconds: float
    cpu_s: float
    peak_mb: float
    jvm_mb: float
    python_mb: float


class Watch:
    """Measures what this process and its descendants use while the block runs; `used` is there afterwards."""

    used: Used

    def __enter__(self) -> Watch:
        self._peaks = [0.0, 0.0, 0.0]
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._cpu = self._sample()
        self._thread.start()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        seconds = time.perf_counter() - self._start
        self._end.set()
        self._thread.join()
        cpu = self._sample() - self._cpu
        if self._peaks[0]:
            self.used = Used(seconds, cpu, *self._peaks)
        else:
            self.used = Used(seconds, *[float("nan")] * 4)

    def _look(self) -> None:
        while not self._end.wait(_EVERY_S):
            self._sample()

    def _sample(self) -> float:
        """Take the memory into account; the processor time so far."""
        found = tree(processes(), os.getpid())
        jvm, python = memory(found)
        seen = (jvm + python, jvm, python)
        self._peaks = [max(peak, now) for peak, now in zip(self._peaks, seen, strict=True)]
        return sum(process.cpu_s for process in found.values())


def memory(found: Mapping[int, Process]) -> tuple[float, float]:
    """MiB of the JVM and of Python.

    What the JVM starts shares all of its memory for a moment, under the name of a thread: it does not count.
    """
    java = {number for number, process in found.items() if process.name == "java"}
    jvm = sum(found[number].rss_mb for number in java if found[number].parent not in java)
    return jvm, sum(process.rss_mb for process in found.values() if process.name.startswith("python"))


def tree(running: Mapping[int, Process], root: int) -> dict[int, Process]:
    """A process and its descendants, by number."""
    children: dict[int, list[int]] = {}
    for number, process in running.items():
        children.setdefault(process.parent, []).append(number)
    found: dict[int, Process] = {}
    todo = [root] if root in running else []
    while todo:
        number = todo.pop()
        found[number] = running[number]
        todo += children.get(number, [])
    return found


def processes() -> dict[int, Process]:
    """All processes, by number; none where there is no /proc."""
    found = {}
    for entry in os.listdir(_PROC) if _PROC.is_dir() else []:
        if entry.isdigit():
            try:
                found[int(entry)] = parse((_PROC / entry / "stat").read_text())
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended meanwhile
    return found


def parse(stat: str) -> Process:
    """One process of the text of its /proc/PID/stat. Source: proc_pid_stat(5)."""
    head, _, tail = stat.rpartition(")")
    fields = tail.split()
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    cpu = sum(map(int, fields[11:15])) / ticks
    return Process(int(fields[1]), head.partition("(")[2], cpu, int(fields[21]) * page / (1 << 20))
