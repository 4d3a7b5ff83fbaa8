"""The adds of a part of a checkpoint: live files, and column by column what a filter needs to decide about them.

Source: PROTOCOL.md, "Checkpoints", "V2 Spec", "Sidecar Files".
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from delta_ds.events.log import KEPT_STATISTICS_IGNORED
from delta_ds.kernel.base import environment
from delta_ds.kernel.base.arrow_buffers import flags, integers, map_values, numbers
from delta_ds.kernel.log.checkpoint import add_leaves, conform_adds, descend, has_leaf
from delta_ds.kernel.log.checkpoint_files import open_file
from delta_ds.kernel.log.file_actions import files_schema
from delta_ds.kernel.log.parts import PART_ROWS, Part, column_number, nulls
from delta_ds.kernel.storage.filesystem import Storage

if TYPE_CHECKING:
    import pyarrow as pa

# --- columns that took long to find, kept beside a snapshot for the next filter, compressed and within a bound
# What it may hold: `environment.KEPT_STATISTICS`.


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


# --- the adds of a part of a checkpoint: live files, and column by column what a filter needs to decide about them

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

# Of one text column so many rows are in memory at once.
_TEXT_ROWS = 1 << 12
# The name under which it is kept which rows are adds: that of no statistics.
_ADDS = "add"


class CheckpointPart:
    """The adds of a part: what pruning asks of them, and the live files that a filter keeps.

    Rows are numbered through the adds of the part. A context manager.
    """

    def __init__(
        self,
        storage: Storage,
        part: Part,
        partition_columns: Sequence[str],
        kept: KeptColumns | None = None,
    ) -> None:
        self._kept = kept
        assert part.groups is not None  # see `pieces`
        self._part = part
        self._groups = part.groups
        self._partition_columns = partition_columns
        self._opened = open_file(storage, part.files, part.path, part.footer)
        self._schema = self._opened.schema
        self._values: pa.MapArray | None = None

    def __enter__(self) -> CheckpointPart:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def num_rows(self) -> int:
        """How many adds there are."""
        return self._part.num_rows if self._adds is None else len(self._adds)

    @functools.cached_property
    def _adds(self) -> pa.Int64Array | None:
        """The rows that are adds, as numbers within the part; None: all of them."""
        import numpy as np
        import pyarrow.compute as pc

        footer, column = self._opened.metadata, column_number(self._opened.metadata, "add.path")
        assert column is not None  # else it is no part of the adds
        if all(nulls(footer.row_group(group), column) == 0 for group in self._groups):
            return None
        kept = self.kept([_ADDS])
        if kept is None:
            there = pc.is_valid(pc.binary_length(self._read(["path"])["path"]))
            self.keep({_ADDS: there})
        else:
            there = kept[_ADDS]
        return integers(np.flatnonzero(flags(there)))

    def leaves(self, names: Sequence[str]) -> dict[str, pa.Array]:
        """Those of some columns inside `add` that there are, of all rows of the part, adds or not.

        Parameters
        ----------
        names
            Dotted paths; what is a struct, list or map counts as not there.
        """
        return self._read([name for name in names if has_leaf(self._schema, name)])

    def _read(self, names: Sequence[str]) -> dict[str, pa.Array]:
        if not names:
            return {}
        table = self._opened.read([f"add.{name}" for name in names], self._groups, threads=False)
        return {name: descend(table["add"], name.split(".")).combine_chunks() for name in names}

    def _of_adds(self, column: pa.Array, rows: pa.Int64Array | None = None) -> pa.Array:
        if self._adds is not None:
            rows = self._adds if rows is None else self._adds.take(rows)
        return column if rows is None or len(rows) == len(column) else column.take(rows)

    def partition_texts(self, physical: str) -> pa.Array:
        """See `FilesToPrune`."""
        import pyarrow as pa

        names = {field.name for field in self._schema.field("add").type}
        if physical in self._partition_columns:
            if "partitionValues" in names:
                if self._values is None:
                    self._values = self._of_adds(self._read(["partitionValues"])["partitionValues"])
                return map_values(self._values, physical)
            typed = [*self.leaves([f"partitionValues_parsed.{physical}"]).values()]
            if typed:
                return self._opened.translated(lambda: self._of_adds(typed[0]).cast(pa.string()))
        return pa.nulls(self.num_rows, pa.string())

    def stats_parsed(self, leaves: Sequence[str], rows: pa.Int64Array) -> pa.Table | None:
        """See `FilesToPrune`."""
        import pyarrow as pa

        typed = self.leaves([f"stats_parsed.{leaf}" for leaf in leaves])
        columns = {
            name.removeprefix("stats_parsed."): self._of_adds(column, rows) for name, column in typed.items()
        }
        return pa.table(columns) if columns else None

    def stats_texts(self, rows: pa.Int64Array) -> Iterator[pa.Array]:
        """See `FilesToPrune`."""
        return self.texts_at(numbers(rows if self._adds is None else self._adds.take(rows)))

    def texts_at(self, rows: Numbers, paths: pa.Array | None = None) -> Iterator[pa.Array]:
        """The JSON text of statistics.

        Parameters
        ----------
        rows
            Ascending int64 numbers through all rows of the part, adds or not.
        paths
            Those that the rows must have, for stores that cannot tell a file that takes the place of another one.

        Raises
        ------
        CheckpointReplacedError
            They have others.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = ["stats"] if has_leaf(self._schema, "stats") else []
        if paths is not None:
            wanted.append("path")
        if not wanted:
            yield pa.nulls(len(rows), pa.string())
            return
        done = 0
        for within, adds in self._batches([f"add.{name}" for name in wanted], rows, _TEXT_ROWS):
            chosen = adds if len(within) == len(adds) else adds.take(integers(within))
            if paths is not None:
                self._check_paths(pc.struct_field(chosen, "path"), paths.slice(done, len(within)))
            done += len(within)
            yield (
                pc.struct_field(chosen, "stats") if "stats" in wanted else pa.nulls(len(within), pa.string())
            )

    def _check_paths(self, found: pa.Array, expected: pa.Array) -> None:
        if not self._opened.translated(lambda: found.cast(expected.type)).equals(expected):
            raise self._opened.replaced()

    def _batches(
        self, columns: Sequence[str], rows: Numbers, size: int
    ) -> Iterator[tuple[Numbers, pa.StructArray]]:
        """Some columns of all rows, batch by batch, every text checked to be text, and which rows in it are wanted.

        Parameters
        ----------
        rows
            Ascending numbers of those wanted; batches without any are left out.
        """
        import numpy as np

        start = 0
        for batch in self._opened.batches(size, columns, self._groups, threads=False):
            end = start + batch.num_rows
            within = rows[np.searchsorted(rows, start) : np.searchsorted(rows, end)]
            if len(within):
                yield within - start, batch["add"]
            start = end
            if not len(rows) or rows[-1] < end:
                return

    def kept(self, names: Sequence[str]) -> dict[str, pa.Array] | None:
        """See `FilesToPrune`."""
        place = self._part.place
        return None if self._kept is None or place is None else self._kept.get(place, names)

    def keep(self, columns: Mapping[str, pa.Array]) -> None:
        """See `FilesToPrune`."""
        place = self._part.place
        if self._kept is not None and place is not None:
            self._kept.put(place, columns)

    def live_files(self, rows: pa.Int64Array | None = None) -> pa.Table:
        """Some of the adds as live files; None: all.

        Returns
        -------
        pyarrow.Table
            The columns of `files_schema`; `row` counts through all files of the checkpoint.
        """
        import numpy as np
        import pyarrow as pa

        if rows is None:
            chosen = np.arange(self._part.num_rows)  # what is no add falls out by itself
        else:
            chosen = numbers(rows if self._adds is None else self._adds.take(rows))
        tables = []
        done = 0
        columns = add_leaves(self._schema.field("add").type)
        for within, adds in self._batches(columns, chosen, PART_ROWS) if len(chosen) else ():
            table = pa.table({"add": adds if len(within) == len(adds) else adds.take(integers(within))})
            number = integers(chosen[done : done + len(within)] + self._part.first_row)
            conform = functools.partial(conform_adds, table, self._partition_columns, number)
            tables.append(self._opened.translated(conform))
            done += len(within)
        return pa.concat_tables([pa.Table.from_batches([], files_schema(self._partition_columns)), *tables])

    def statistics(self, rows: Numbers) -> dict[str, pa.ChunkedArray]:
        """The statistics of some files, to be handed on: `stats`, and where that is not all, `stats_parsed`.

        Parameters
        ----------
        rows
            As in `texts_at`.
        """
        import pyarrow as pa

        text = pa.chunked_array([piece.cast(pa.string()) for piece in self.texts_at(rows)], pa.string())
        if not text.null_count or self._schema.field("add").type.get_field_index("stats_parsed") < 0:
            return {"stats": text}
        typed = self._read(["stats_parsed"])["stats_parsed"]
        return {"stats": text, "stats_parsed": pa.chunked_array([typed.take(integers(rows))])}
