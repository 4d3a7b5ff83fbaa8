"""The statistics of files, read when they are asked for: JSON text at hand, or by rows of a checkpoint.

Source: PROTOCOL.md, "Per-file Statistics".
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.arrow_buffers import integers, numbers
from delta_ds.kernel.log.checkpoint import descend, has_leaf
from delta_ds.kernel.log.checkpoint_adds import CheckpointPart, RowGroups, parts_of
from delta_ds.kernel.log.checkpoint_files import CheckpointFiles, CheckpointReplacedError, open_file
from delta_ds.kernel.storage.filesystem import Storage

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Numbers = np.ndarray[Any, np.dtype[np.int64]]


class LaterStatistics:
    """Where the statistics of some files are.

    What a checkpoint holds of them is named by rows, of the objects that they were counted in. Where the store cannot
    tell those from others, the rows must still have the paths of the files.

    Attributes
    ----------
    stats
        The JSON text of files from commits, null for the others.
    row
        Of these the rows in the checkpoint, int64.
    checkpoint
        Its files; None where no file is from one.

    Parameters
    ----------
    paths
        Of the files, as in the log.
    """

    def __init__(
        self,
        storage: Storage,
        paths: pa.ChunkedArray,
        stats: pa.ChunkedArray,
        row: pa.ChunkedArray,
        checkpoint: CheckpointFiles | None,
    ) -> None:
        self._storage = storage
        self._paths = paths
        self.stats = stats
        self.row = row
        self.checkpoint = checkpoint
        self._leaves: dict[str, pa.ChunkedArray | None] = {}

    @property
    def _has_rows(self) -> bool:
        return self.checkpoint is not None and self.row.null_count < len(self.row)

    def texts(self, wanted: Numbers, at_once: int) -> Iterator[pa.Array]:
        """The JSON text of files, piece by piece; null for none.

        Parameters
        ----------
        wanted
            Their numbers, int64, in any order.
        at_once
            How many texts of commits a piece has.

        Raises
        ------
        UnreadableCheckpointError
            The checkpoint is not what it was; the pieces so far are right.
        """
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self._has_rows:
            yield from self._own_texts(wanted, at_once)
            return
        stored = numbers(pc.fill_null(_take(self.row, integers(wanted)), integers([-1])[0]))
        of_checkpoint = stored[stored >= 0]
        if (np.diff(of_checkpoint) < 0).any():
            order = np.argsort(stored, kind="stable")
            # Offsets of 32 bits do not reach through the text of millions of files.
            sorted_ = pa.concat_arrays(
                [
                    piece.cast(pa.large_string())
                    for piece in self._ascending(wanted[order], stored[order], at_once)
                ]
            )
            back = np.argsort(order, kind="stable")
            for start in range(0, len(back), at_once):
                yield sorted_.take(integers(back[start : start + at_once])).cast(pa.string())
            return
        yield from self._ascending(wanted, stored, at_once)

    def _ascending(self, wanted: Numbers, stored: Numbers, at_once: int) -> Iterator[pa.Array]:
        """The texts of files of which those in the checkpoint have ascending rows."""
        import numpy as np
        import pyarrow as pa

        # By the part of the checkpoint that holds a row: one run each, and one for the files of commits.
        part = np.searchsorted([p.first_row for p in self._parts], stored, side="right") - 1
        ends = [*(np.flatnonzero(np.diff(part)) + 1), len(part)]
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            if start == end:
                continue
            if part[start] < 0:
                yield from self._own_texts(wanted[start:end], at_once)
                continue
            groups = self._parts[part[start]]
            paths = self._expected_paths(wanted[start:end])
            with CheckpointPart(self._storage, groups, ()) as opened:
                for texts in opened.texts_at(stored[start:end] - groups.first_row, paths):
                    yield texts.cast(pa.string())

    def _expected_paths(self, wanted: Numbers) -> pa.Array | None:
        """What the rows of some files must have; None where other rows would have been noticed before."""
        assert self.checkpoint is not None
        if self.checkpoint.are_certain:
            return None
        return _take(self._paths, integers(wanted)).combine_chunks()

    def _own_texts(self, rows: Numbers, at_once: int) -> Iterator[pa.Array]:
        for start in range(0, len(rows), at_once):
            yield _take(self.stats, integers(rows[start : start + at_once])).combine_chunks()

    @cached_property
    def _parts(self) -> list[RowGroups]:
        assert self.checkpoint is not None
        with ThreadPoolExecutor(os.cpu_count()) as workers:
            return parts_of(self._storage, self.checkpoint, workers)

    def parsed(self, leaves: Sequence[str], rows: pa.Array | None) -> pa.Table | None:
        """See `LiveFiles.stats_parsed`.

        Raises
        ------
        UnreadableCheckpointError
            The checkpoint is not what it was.
        """
        import pyarrow as pa

        names = {leaf: f"stats_parsed.{leaf}" for leaf in leaves}
        self._load([name for name in names.values() if name not in self._leaves])
        row = self.row if rows is None else self.row.take(rows)
        columns = {leaf: self._leaves[name] for leaf, name in names.items()}
        present = {leaf: _take(column, row) for leaf, column in columns.items() if column is not None}
        return pa.table(present) if present else None

    def _load(self, missing: Sequence[str]) -> None:
        if not missing:
            return
        table = None
        if self.checkpoint is not None and self._has_rows:
            checked = [] if self.checkpoint.are_certain else ["path"]
            table = _read_leaves(self._storage, self.checkpoint, [*missing, *checked])
            if checked:
                self._check_paths(None if table is None else table["path"])
        for leaf in missing:
            self._leaves[leaf] = table[leaf] if table is not None and leaf in table.column_names else None

    def structs(self) -> pa.StructArray | None:
        """See `LiveFiles.stats_structs`.

        Raises
        ------
        UnreadableCheckpointError
            The checkpoint is not what it was.
        """
        if self.checkpoint is None or not self._has_rows:
            return None
        table = _read_structs(self._storage, self.checkpoint)
        if table is None:
            return None
        if not self.checkpoint.are_certain:
            self._check_paths(table["path"])
        return table["stats_parsed"].take(self.row).combine_chunks()

    def _check_paths(self, column: pa.ChunkedArray | None) -> None:
        """Refuse rows that have other paths than the files."""
        import pyarrow as pa
        import pyarrow.compute as pc

        there = pc.is_valid(self.row)
        expected = self._paths.filter(there)
        rows = self.row.filter(there)
        enough = column is not None and (pc.max(rows).as_py() or 0) < len(column)
        if column is None or not enough or not column.take(rows).cast(pa.string()).equals(expected):
            assert self.checkpoint is not None
            raise CheckpointReplacedError(
                f"checkpoint file {self.checkpoint.paths[0]} of {self._storage.url} was written again since it was "
                "read; read the table again"
            )


def _read_leaves(storage: Storage, files: CheckpointFiles, leaves: Sequence[str]) -> pa.Table | None:
    """Columns inside `add`, named by dotted paths, for every row of the files (file order).

    Leaves that no file has are left out; files that lack one give nulls. None if no leaf was found.
    """
    import pyarrow as pa

    pieces: list[dict[str, pa.ChunkedArray | int]] = []
    types: dict[str, pa.DataType] = {}
    for path in files.paths:
        with open_file(storage, files, path) as opened:
            found = [leaf for leaf in leaves if has_leaf(opened.schema, leaf)]
            columns = [f"add.{leaf}" for leaf in found]
            piece: dict[str, Any] = {"": opened.num_rows(files.groups)}
            if columns:
                table = opened.read(columns, files.groups)
                for leaf in found:
                    piece[leaf] = descend(table["add"], leaf.split("."))
                    types.setdefault(leaf, piece[leaf].type)
            pieces.append(piece)
    if not types:
        return None
    out = {}
    for leaf, kind in types.items():
        chunks: list[pa.Array] = []
        for piece in pieces:
            if leaf in piece:
                chunks += _cast_or_null(piece[leaf], kind).chunks
            else:
                chunks.append(pa.nulls(piece[""], kind))
        out[leaf] = pa.chunked_array(chunks, type=kind)
    return pa.table(out)


def _read_structs(storage: Storage, part: CheckpointFiles) -> pa.Table | None:
    """The structs `stats_parsed` of all rows of one file, or of some of its row groups, and the `path` of each.

    None where it has none.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    (path,) = part.paths
    with open_file(storage, part, path) as opened:
        if "add" not in opened.schema.names:
            return None
        if opened.schema.field("add").type.get_field_index("stats_parsed") < 0:
            return None
        adds = opened.read(["add.path", "add.stats_parsed"], part.groups)["add"]
    return pa.table({name: pc.struct_field(adds, name) for name in ("path", "stats_parsed")})


def _cast_or_null(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    import pyarrow as pa

    if column.type == kind:
        return column
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # Parts written under different schemas: without a common type there are no bounds to use.
        return pa.chunked_array([pa.nulls(len(column), kind)])


def _take(column: pa.ChunkedArray, rows: pa.ChunkedArray) -> pa.ChunkedArray:
    """The rows of a column; a run of consecutive ones, as after a fresh checkpoint, without copying."""
    import numpy as np

    if len(rows) and rows.null_count == 0:
        wanted = numbers(rows)
        if (np.diff(wanted) == 1).all():
            return column.slice(int(wanted[0]), len(wanted))
    return column.take(rows)
