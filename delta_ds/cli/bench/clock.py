"""What an action takes: seconds, the processor's share, and the calls to the store with their time."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass, field

# Of a storage, by what they are called here.
_CALLS = {
    "list_from": "list", "read": "read", "read_range": "read", "read_many": "read", "open": "open", "status": "status",
    "exists": "status", "create": "put-if-absent", "write": "write", "open_output": "write", "fsync": "sync",
}  # fmt: skip
_MOSTLY = 0.5


@dataclass(slots=True)
class Call:
    """Calls of one kind to a store.

    Attributes
    ----------
    count
        How many.
    seconds
        How long they took together; of those at the same time each counts.
    """

    count: int = 0
    seconds: float = 0.0


class WatchedStorage:
    """Counts the calls to a storage, and their time; calls that a call makes are part of it."""

    def __init__(self, storage: Storage) -> None:
        self.calls: dict[str, Call] = {}
        self._lock = threading.Lock()
        self._inside = threading.local()
        for method, name in _CALLS.items():
            setattr(storage, method, self._watched(getattr(storage, method), name))

    def _watched(self, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        def called(*arguments: Any, **keywords: Any) -> Any:
            if getattr(self._inside, "a_call", False):
                return method(*arguments, **keywords)
            self._inside.a_call = True
            began = time.perf_counter()
            try:
                return method(*arguments, **keywords)
            finally:
                self._inside.a_call = False
                self._count(name, time.perf_counter() - began)

        return called

    def _count(self, name: str, seconds: float) -> None:
        with self._lock:
            call = self.calls.setdefault(name, Call())
            call.count += 1
            call.seconds += seconds

    def taken(self) -> dict[str, Call]:
        """The calls since this was asked last."""
        with self._lock:
            found, self.calls = self.calls, {}
        return found


@dataclass(slots=True)
class Measurement:
    """Rounds of one action.

    Attributes
    ----------
    name
        Which, as in JSON.
    what
        The same for people.
    seconds
        Of each round.
    processor
        Seconds of all processors, in all rounds.
    calls
        To the store, in all rounds.
    rows, bytes
        Of each round, for rates, bytes as they are in memory; empty: it has no such.
    """

    name: str
    what: str
    seconds: list[float] = field(default_factory=list)
    processor: float = 0.0
    calls: dict[str, Call] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)

    @contextmanager
    def round(self, watched: WatchedStorage) -> Iterator[None]:
        """Measure what the block does; one that fails counts for nothing."""
        watched.taken()
        processor, began = time.process_time(), time.perf_counter()
        yield
        self.seconds.append(time.perf_counter() - began)
        self.processor += time.process_time() - processor
        for name, call in watched.taken().items():
            known = self.calls.setdefault(name, Call())
            known.count += call.count
            known.seconds += call.seconds

    def dominated_by(self) -> str:
        """What most of the time goes into: a kind of call to the store, `processor`, or `waiting`.

        That is for bytes of data files, which Arrow reads by itself, or for other programs.
        """
        whole = sum(self.seconds)
        shares = {name: call.seconds / whole for name, call in self.calls.items()} if whole else {}
        most = max(shares, key=shares.__getitem__, default="")
        in_calls = sum(shares.values())
        if most and in_calls >= _MOSTLY:
            return most
        return "processor" if whole and self.processor / whole >= _MOSTLY else "waiting"

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        rounds = len(self.seconds)
        rates = {"rowsPerSecond": self.rows, "bytesPerSecond": self.bytes}
        return {
            "name": self.name,
            "rounds": rounds,
            "seconds": {
                "p50": quantile(self.seconds, 0.5),
                "p95": quantile(self.seconds, 0.95),
                "max": max(self.seconds),
            },
            **{name: round(self._rate(counts)) for name, counts in rates.items() if counts},
            "processorSeconds": self.processor / rounds,
            "calls": {
                name: {"count": call.count / rounds, "seconds": call.seconds / rounds}
                for name, call in sorted(self.calls.items())
            },
            "dominatedBy": self.dominated_by(),
        }

    def _rate(self, counts: Sequence[int]) -> float:
        """The median of a round's count in a second."""
        return quantile([count / taken for count, taken in zip(counts, self.seconds, strict=True)], 0.5)


def quantile(values: Sequence[float], part: float) -> float:
    """The smallest value that a part of all does not exceed.

    >>> quantile([3.0, 1.0, 2.0], 0.5), quantile([1.0], 0.95)
    (2.0, 1.0)
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]
