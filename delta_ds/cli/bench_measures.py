"""What `bench` measures, and what each takes: seconds, the processor's share, the calls to the store."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, cast

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.base.environment import CACHE
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage
from delta_ds.records import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Generator

    import pyarrow as pa

    from delta_ds.kernel.log.snapshot import Snapshot

# Of a storage, by what they are called here.
_CALLS = {
    "list_from": "list", "read": "read", "read_range": "read", "read_many": "read", "open": "open", "status": "status",
    "exists": "status", "create": "put-if-absent", "write": "write", "open_output": "write", "fsync": "sync",
}  # fmt: skip
_MOSTLY = 0.5


Tell = Callable[[str, int, int | None], None]
# Files of a table that is made, and rows of a commit.
_FILES = 10
_COMMIT_ROWS = 100


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


@contextmanager
def _without_cache() -> Iterator[None]:
    """No snapshot of an earlier process helps."""
    before = os.environ.get(CACHE.name)
    os.environ[CACHE.name] = "off"
    try:
        yield
    finally:
        if before is None:
            del os.environ[CACHE.name]
        else:
            os.environ[CACHE.name] = before


def reads(
    log: DeltaLog, where: str | None, zone: str, rounds: int, seconds: float, tell: Tell
) -> list[Measurement]:
    """Load, plan and read a table; nothing is written.

    Parameters
    ----------
    where
        SQL of the rows that are planned and read; None: all.
    zone
        Of timestamps in it.
    rounds
        How often each is done.
    seconds
        How long one reading of rows goes on at most.
    """
    watched = WatchedStorage(log.storage)
    found = [_load(log, watched, rounds, tell)]
    # The last one loaded is that which is planned and read.
    snapshot = log.open_snapshot()
    snapshot.live_files()
    found.append(_plan(snapshot, watched, where, zone, rounds, tell))
    found.append(_scan(snapshot, watched, where, zone, rounds, seconds, tell))
    return found


def _load(log: DeltaLog, watched: WatchedStorage, rounds: int, tell: Tell) -> Measurement:
    measured = Measurement("load", "open the newest version, with all of its files")
    with _without_cache():
        _warm(lambda: log.open_snapshot().live_files())
        for number in range(rounds):
            tell("load", number, rounds)
            with measured.round(watched):
                log.open_snapshot().live_files()
    return measured


def _warm(action: Callable[[], object]) -> None:
    """Do it once before it is measured: modules are imported, connections made."""
    action()


def _plan(
    snapshot: Snapshot, watched: WatchedStorage, where: str | None, zone: str, rounds: int, tell: Tell
) -> Measurement:
    measured = Measurement("plan", "list the files that are read" + (f" for {where}" if where else ""))
    _warm(lambda: Scan(snapshot, where, timezone=zone).tasks())
    for number in range(rounds):
        tell("plan", number, rounds)
        with measured.round(watched):
            Scan(snapshot, where, timezone=zone).tasks()
    return measured


def _scan(
    snapshot: Snapshot,
    watched: WatchedStorage,
    where: str | None,
    zone: str,
    rounds: int,
    seconds: float,
    tell: Tell,
) -> Measurement:
    measured = Measurement("scan", "read these rows to Arrow")
    for number in range(rounds):
        tell("scan", number, rounds)
        rows = size = 0
        with measured.round(watched):
            began = time.perf_counter()
            scan = Scan(snapshot, where, timezone=zone)
            with closing(cast("Generator[pa.RecordBatch]", scan.to_batches())) as batches:
                for batch in batches:
                    rows, size = rows + batch.num_rows, size + batch.nbytes
                    if time.perf_counter() - began > seconds:
                        break
        measured.rows.append(rows)
        measured.bytes.append(size)
    return measured


def make_table(log: DeltaLog, rows: int, tell: Tell) -> Measurement:
    """Fill a table with rows, file by file; a round is a file."""
    watched = WatchedStorage(log.storage)
    measured = Measurement("write", "append a file of rows")
    each = max(rows // _FILES, 1)
    for number in range(_FILES):
        tell("write", number, _FILES)
        made = _rows(number * each, each)
        with measured.round(watched):
            log.write(made)
        measured.rows.append(each)
        measured.bytes.append(made.nbytes)
    return measured


def predicate_of(rows: int) -> str:
    """What a hundredth of such rows match, all in one file."""
    return f"id < {max(rows // 100, 1)}"


def commits(log: DeltaLog, count: int, tell: Tell) -> Measurement:
    """Small appends one after the other, as a stream makes them; a round is a commit."""
    made = _rows(0, _COMMIT_ROWS)
    log.write(made)
    watched = WatchedStorage(log.storage)
    measured = Measurement("commit", f"append {_COMMIT_ROWS} rows")
    for number in range(count):
        tell("commit", number, count)
        with measured.round(watched):
            log.write(made)
    return measured


def creations(storage: Storage, count: int, tell: Tell) -> list[Measurement]:
    """Create objects where there are none, and where there is one; a round is an object.

    Raises
    ------
    StorageError
        The store cannot create an object exactly once, or overwrites one.
    """
    from delta_ds.kernel.storage.open import log_store_for

    log_store_for(storage)
    watched = WatchedStorage(storage)
    won = Measurement("create", "create an object that is not there: the heart of a commit")
    lost = Measurement("create_refused", "the same where another writer was first")
    for number in range(count):
        tell("put-if-absent", number, count)
        with won.round(watched):
            storage.create(f"{number:06}.json", b"{}\n")
        with lost.round(watched):
            _refused(storage, f"{number:06}.json")
    return [won, lost]


def _refused(storage: Storage, name: str) -> None:
    from delta_ds.exceptions import StorageError

    try:
        storage.create(name, b"{ }\n")
    except FileExistsError:
        return
    raise StorageError(
        f"{storage.describe(name)} was overwritten, though it was there: commits are not safe here"
    )


def _rows(first: int, count: int) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(first)
    ids = np.arange(first, first + count)
    return pa.table(
        {
            "id": ids,
            "amount": random.random(count).round(4) * 1000,
            "country": pa.array(["DE", "FR", "IT", "PL"]).take(pa.array(ids % 4)),
            "text": pa.array([f"{number:016x}" for number in random.integers(0, 1 << 60, count)]),
        }
    )


def open_table(path: str, options: dict[str, str]) -> DeltaLog:
    """The log of a table with a storage of its own, whose calls are counted.

    Raises
    ------
    DeltaError
        The address or an option is wrong.
    """
    return DeltaLog(open_storage(path, options))
