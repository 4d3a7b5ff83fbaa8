"""Batches of several streams in the order of the streams, made ahead by threads within a bound of memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from threading import Condition, Thread, main_thread
from typing import TYPE_CHECKING

from delta_ds.kernel.files.read.data_file import is_remote

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.files.read.data_file import Batches
    from delta_ds.kernel.storage.filesystem import Storage

_STORE_THREADS = 4
_LOOK_UP_S = 1.0


def threads_for(storage: Storage, cores: int | None = None) -> int:
    """How many threads read files of a table: one a CPU, and more where they mostly wait for a store.

    Parameters
    ----------
    cores
        The CPUs to use; None: all there are.
    """
    cores = cores or os.cpu_count() or 1
    return max(cores, _STORE_THREADS) if is_remote(storage) else cores


def in_order(
    streams: Sequence[Callable[[], Batches]], workers: int, max_bytes: float
) -> Generator[pa.RecordBatch, None, None]:
    """The batches of all streams, one stream after the other, while threads work ahead.

    Parameters
    ----------
    streams
        Each makes one stream; called and drained in a thread.
    workers
        How many threads, and so streams, at a time.
    max_bytes
        A thread whose turn is yet to come makes no further batch while so many bytes wait to be taken.

    Raises
    ------
    Exception
        What a stream raises, when its turn comes; the threads end, as they do where the caller stops early.
    """
    if workers < 2 or len(streams) < 2:
        for stream in streams:
            with closing(stream()) as batches:
                yield from batches
        return
    ahead = _Ahead(streams, max_bytes)
    threads = [
        Thread(target=ahead.work, name=f"delta_ds-read-{n}") for n in range(min(workers, len(streams)))
    ]
    try:
        for thread in threads:
            thread.start()
        for number in range(len(streams)):
            while (batch := ahead.take(number)) is not None:
                yield batch
    finally:
        ahead.stop()
        for thread in threads:
            if thread.ident is not None:
                thread.join()


class _Ahead:
    """What the threads have made and the caller has not taken yet.

    Streams are begun in order, so the one whose turn it is has ended or has a thread, and that never waits
    with nothing to take: the others may fill all room there is.
    """

    def __init__(self, streams: Sequence[Callable[[], Batches]], max_bytes: float) -> None:
        self._streams = streams
        self._max_bytes = max_bytes
        self._made: list[deque[pa.RecordBatch]] = [deque() for _ in streams]
        self._ended = [False] * len(streams)
        self._errors: dict[int, BaseException] = {}
        self._begun = 0
        self._held = 0
        self._turn = 0
        self._stopped = False
        self._changed = Condition()

    def work(self) -> None:
        """Drain streams until none is left; runs in each of the threads."""
        while (number := self._begin()) is not None:
            self._drain(number)

    def _begin(self) -> int | None:
        with self._changed:
            if self._stopped or self._begun == len(self._streams):
                return None
            self._begun += 1
            return self._begun - 1

    def _drain(self, number: int) -> None:
        """Make the batches of a stream; what it raises is kept for its turn."""
        try:
            with closing(self._streams[number]()) as batches:
                for batch in batches:
                    if not self._put(number, batch):
                        return
        except BaseException as error:  # noqa: BLE001 - raised again by `take`
            self._errors[number] = error
        finally:
            with self._changed:
                self._ended[number] = True
                self._changed.notify_all()

    def _put(self, number: int, batch: pa.RecordBatch) -> bool:
        """Hand a batch over, then wait until there is room for another; False: no more is wanted."""
        with self._changed:
            self._made[number].append(batch)
            self._held += batch.nbytes
            self._changed.notify_all()
            # A program may end while its batches are not all taken: nobody will say so.
            while not self._changed.wait_for(lambda: self._stopped or self._may_go_on(number), _LOOK_UP_S):
                if not main_thread().is_alive():
                    return False
            return not self._stopped

    def _may_go_on(self, number: int) -> bool:
        return self._held < self._max_bytes or (number == self._turn and not self._made[number])

    def take(self, number: int) -> pa.RecordBatch | None:
        """The next batch of the stream whose turn it is; None at its end."""
        with self._changed:
            self._turn = number
            self._changed.notify_all()
            self._changed.wait_for(lambda: bool(self._made[number]) or self._ended[number])
            if self._made[number]:
                batch = self._made[number].popleft()
                self._held -= batch.nbytes
                self._changed.notify_all()
                return batch
        if number in self._errors:
            raise self._errors[number]
        return None

    def stop(self) -> None:
        """No more is wanted: threads end after the batch they are at."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
