"""The changes of many keys, kept within a bound of memory: reduced, and beyond that by keys in files on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import TYPE_CHECKING

from delta_ds.kernel.base.arrow_buffers import integers, mask, numbers
from delta_ds.kernel.base.environment import scratch_folder
from delta_ds.kernel.commands.changes.commit import COMMIT_VERSION
from delta_ds.kernel.commands.changes.key_codes import key_hashes
from delta_ds.kernel.commands.changes.net import Net, is_event, marked, net_of, reduced

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_MEMORY = 512 << 20
# Files a level; each holds about so much less.
_FILES = 32
# More levels would mean that the rows of a few keys alone are larger than the bound: then they have to be.
_LEVELS = 4


class NetMemory(AbstractContextManager["NetMemory"]):
    """Takes changes, version by version, and gives them back so that all of a key are together.

    Parameters
    ----------
    schema
        Of the rows, without marks.
    keys
        Names of columns.
    where
        The table, for messages.
    memory
        Bytes of Arrow data.
    """

    def __init__(
        self, schema: pa.Schema, keys: tuple[str, ...], where: str, memory: int, level: int = 0
    ) -> None:
        self._schema = schema
        self._keys = keys
        self._where = where
        self._memory = memory
        self._level = level
        self._rows: list[pa.Table] = []
        self._bytes = 0
        self._resources = ExitStack()
        self._files: list[pa.RecordBatchFileWriter] = []
        self._paths: list[str] = []

    def add(self, rows: pa.Table) -> None:
        """Take some rows of `net.marked`."""
        if not rows.num_rows:
            return
        if self._files:
            self._spill(rows)
            return
        self._rows.append(rows)
        self._bytes += rows.nbytes
        if self._bytes > self._memory:
            self._reduce()
            # Twice the work for each doubling of the keys at most.
            if self._bytes > self._memory // 2 and self._level < _LEVELS:
                self._spill_all()

    def _reduce(self) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        whole = pa.concat_tables(self._rows)
        versions = numbers(whole[COMMIT_VERSION])
        # More of the newest version may come: a delete after the insert, from another file.
        newest = mask(is_event(whole) & (versions == versions.max()))
        complete = reduced(whole.filter(pc.invert(newest)), self._keys, self._where)
        self._rows = [part for part in (complete, whole.filter(newest)) if part.num_rows]
        self._bytes = sum(part.nbytes for part in self._rows)

    def _spill_all(self) -> None:
        import os
        import tempfile

        import pyarrow as pa

        made = tempfile.TemporaryDirectory(prefix="delta-ds-changes-", dir=scratch_folder())
        folder = self._resources.enter_context(made)
        schema = self._rows[0].schema
        for number in range(_FILES):
            path = os.path.join(folder, f"{number}.arrow")
            sink = self._resources.enter_context(pa.OSFile(path, "wb"))
            self._paths.append(path)
            self._files.append(self._resources.enter_context(pa.ipc.new_file(sink, schema)))
        rows, self._rows, self._bytes = self._rows, [], 0
        for part in rows:
            self._spill(part)

    def _spill(self, rows: pa.Table) -> None:
        import numpy as np

        places = key_hashes(rows, self._keys, self._level) % np.uint64(_FILES)
        order = np.argsort(places, kind="stable")
        counts = np.bincount(places.astype(np.int64), minlength=_FILES)
        sorted_rows, first = rows.take(integers(order)), 0
        for file, count in zip(self._files, counts.tolist(), strict=True):
            if count:
                file.write_table(sorted_rows.slice(first, count).combine_chunks())
            first += count

    def parts(self) -> Iterator[pa.Table]:
        """What is kept, in parts with all changes of their keys each."""
        import os

        import pyarrow as pa

        if not self._files:
            if self._rows:
                yield pa.concat_tables(self._rows)
            return
        for file in self._files:
            file.close()
        for path in self._paths:
            with NetMemory(self._schema, self._keys, self._where, self._memory, self._level + 1) as inner:
                with pa.OSFile(path) as source, pa.ipc.open_file(source) as reader:
                    for number in range(reader.num_record_batches):
                        inner.add(pa.Table.from_batches([reader.get_batch(number)]))
                os.unlink(path)
                yield from inner.parts()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rows = []
        self._resources.close()


def net_batches(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    keys: Sequence[str],
    net: Net,
    where: str,
    memory: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The net changes of the rows of a feed, within a bound of memory.

    Rows are kept until they are larger than the bound, then reduced to two a key. Where that is not enough they go to
    files on disk, each with some of the keys, which are reduced one after the other.

    Parameters
    ----------
    batches
        Of a feed, version by version; both columns of `keys` and those that describe the change are there.
    schema
        Theirs.
    keys, net, where
        See `net_of`.
    memory
        Bytes of Arrow data; `DEFAULT_MEMORY` by default.

    Yields
    ------
    pa.RecordBatch
        Rows of `schema`; both sides of an update stand together.

    Raises
    ------
    InvariantViolationError
        Two rows have one key.
    """
    with NetMemory(schema, tuple(keys), where, DEFAULT_MEMORY if memory is None else memory) as kept:
        for batch in batches:
            kept.add(marked(batch))
        for part in kept.parts():
            for found in net_of(part, keys, net, where).to_batches():
                if found.num_rows:
                    yield found
