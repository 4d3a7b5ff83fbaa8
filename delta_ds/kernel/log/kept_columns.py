"""Columns that took long to find, kept beside a snapshot for the next filter, compressed and within a bound.

What it may hold: `environment.KEPT_STATISTICS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING

from delta_ds.events.log import KEPT_STATISTICS_IGNORED
from delta_ds.kernel.base import environment

if TYPE_CHECKING:
    import pyarrow as pa


class KeptColumns:
    """Arrow columns by name and place; a place is a set of files that are looked at together.

    Beyond the bound the names go that were not asked for longest. What is kept now never gives way to more of
    itself: a filter that goes through places in order would else find none of them again. Threads may share it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._names: dict[str, dict[str, pa.Buffer]] = {}  # the name asked for last comes last
        self._size = 0

    def __reduce__(self) -> tuple[type[KeptColumns], tuple[()]]:
        """Another process starts with nothing."""
        return KeptColumns, ()

    def get(self, place: str, names: Sequence[str]) -> dict[str, pa.Array] | None:
        """The columns of a place; None unless all of them are there."""
        with self._lock:
            found = [self._names.get(name, {}).get(place) for name in names]
            for name in names:
                if name in self._names:
                    self._names[name] = self._names.pop(name)
        packed = [buffer for buffer in found if buffer is not None]
        if len(packed) < len(names):
            return None
        return dict(zip(names, map(_unpacked, packed), strict=True))

    def put(self, place: str, columns: Mapping[str, pa.Array]) -> None:
        """Keep the columns of a place, where there is room for all of them."""
        limit = _limit()
        if not limit:
            return
        packed = {name: _packed(column) for name, column in columns.items()}
        wanted = sum(buffer.size for buffer in packed.values())
        with self._lock:
            older = [name for name in self._names if name not in packed]
            while self._size + wanted > limit and older:
                gone = self._names.pop(older.pop(0))
                self._size -= sum(buffer.size for buffer in gone.values())
            if self._size + wanted > limit:
                return
            for name, buffer in packed.items():
                self._names.setdefault(name, {})[place] = buffer
            self._size += wanted


def _limit() -> int:
    try:
        return int(environment.KEPT_STATISTICS.text())
    except ValueError:
        KEPT_STATISTICS_IGNORED.log(value=environment.KEPT_STATISTICS.text())
        return int(environment.KEPT_STATISTICS.default)


def _packed(column: pa.Array) -> pa.Buffer:
    import pyarrow as pa
    import pyarrow.ipc as ipc

    batch = pa.RecordBatch.from_arrays([column], names=[""])
    sink = pa.BufferOutputStream()
    compression = "lz4" if pa.Codec.is_available("lz4_frame") else None
    with ipc.new_stream(
        sink, batch.schema, options=ipc.IpcWriteOptions(compression=compression, use_threads=False)
    ) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _unpacked(buffer: pa.Buffer) -> pa.Array:
    import pyarrow.ipc as ipc

    with ipc.open_stream(buffer) as reader:
        return reader.read_next_batch().column(0)
