"""The statistics of files, read when they are asked for: JSON text at hand, or by rows of a checkpoint.

Source: PROTOCOL.md, "Per-file Statistics".

The engines that wrote the statistics of a version, and whether they count NaN in bounds.

Spark's NaN is the greatest of floats, and delta-spark says so in `maxValues`. Engines that take their statistics from
Parquet's leave NaN out, and nothing in the statistics tells which is which. The log does, where commits and
checkpoints name their writers; what names none is taken for the latter kind.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.base.arrow_buffers import integers, numbers
from delta_ds.kernel.format.operations import operation_named
from delta_ds.kernel.log.checkpoint_adds import CheckpointPart
from delta_ds.kernel.log.checkpoint_files import CheckpointFiles, CheckpointReplacedError
from delta_ds.kernel.log.json_actions import find_actions
from delta_ds.kernel.log.parts import Part, parts_of
from delta_ds.kernel.storage.filesystem import Storage

if TYPE_CHECKING:
    from delta_ds.kernel.log.filenames import LogFile
    from delta_ds.kernel.log.segment import Checkpoint, LogSegment
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
    def _parts(self) -> list[Part]:
        assert self.checkpoint is not None
        with ThreadPoolExecutor(os.cpu_count()) as workers:
            parts = parts_of(self._storage, self.checkpoint, workers.map)
        return [part for part in parts if "add" in part.actions]

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
        if self.checkpoint is None or not self._has_rows:
            self._leaves |= dict.fromkeys(missing)
            return
        checked = [] if self.checkpoint.are_certain else ["path"]
        columns = self._read_leaves([*missing, *checked])
        if checked:
            self._check_paths(columns.pop("path"))
        self._leaves |= columns

    def _read_leaves(self, names: Sequence[str]) -> dict[str, pa.ChunkedArray | None]:
        """Columns inside `add`, named by dotted paths, by the rows of the checkpoint; None for what no part has.

        Parts that lack one have nulls, and so have rows that are in no part.
        """

        def leaves(part: Part) -> dict[str, pa.Array]:
            with CheckpointPart(self._storage, part, ()) as opened:
                return opened.leaves(names)

        with ThreadPoolExecutor(os.cpu_count()) as workers:
            pieces = list(workers.map(leaves, self._parts))
        return {name: self._joined([piece.get(name) for piece in pieces]) for name in names}

    def _joined(self, columns: Sequence[pa.Array | None]) -> pa.ChunkedArray | None:
        import pyarrow as pa

        kind = next((column.type for column in columns if column is not None), None)
        if kind is None:
            return None
        chunks = []
        row = 0
        for part, column in zip(self._parts, columns, strict=True):
            if part.first_row > row:
                chunks.append(pa.nulls(part.first_row - row, kind))
            chunks.append(pa.nulls(part.num_rows, kind) if column is None else _cast_or_null(column, kind))
            row = part.first_row + part.num_rows
        return pa.chunked_array(chunks, type=kind)

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


def _cast_or_null(column: pa.Array, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # Parts written under different schemas: without a common type there are no bounds to use.
        return pa.nulls(len(column), kind)


def _take(column: pa.ChunkedArray, rows: pa.ChunkedArray) -> pa.ChunkedArray:
    """The rows of a column; a run of consecutive ones, as after a fresh checkpoint, without copying."""
    import numpy as np

    if len(rows) and rows.null_count == 0:
        wanted = numbers(rows)
        if (np.diff(wanted) == 1).all():
            return column.slice(int(wanted[0]), len(wanted))
    return column.take(rows)


# Put into the footers of checkpoints whose statistics all come from such engines.
COUNTS_NAN = {"delta_ds.statistics": "NaN counted"}

_ENGINES = re.compile(r"(^|\s)(Delta-Lake|delta_ds|Databricks-Runtime)/")
_SPARK = b"org.apache.spark.version"
_HEAD = 16 << 10  # nearly always all of `commitInfo`, which these engines write first
_AT_ONCE = 16


def statistics_count_nan(storage: Storage, segment: LogSegment) -> bool:
    """Tell whether the bounds of floats in a version's statistics hold for NaN, too.

    Looks at the head of each commit after the checkpoint and at the footer of the checkpoint. Of a checkpoint by
    delta-spark its statistics are believed, as delta-spark itself believes them.

    Parameters
    ----------
    segment
        Of the version.

    Source: PROTOCOL.md, "Per-file Statistics", "Commit Provenance Information".
    """
    if segment.checkpoint is not None and not _checkpoint_counts(storage, segment.checkpoint):
        return False
    if not segment.commits:
        return True
    with ThreadPoolExecutor(min(_AT_ONCE, len(segment.commits))) as readers:
        return all(readers.map(lambda file: _commit_counts(storage, file), segment.commits))


def _commit_counts(storage: Storage, file: LogFile) -> bool:
    try:
        head = storage.read_range(file.path, 0, _HEAD)
        if b"\n" not in head and len(head) == _HEAD:
            head = storage.read(file.path)
        found = find_actions(head.partition(b"\n")[0], ("commitInfo",), file.path)
    except (DeltaError, FileNotFoundError):
        return False
    info = found[0]["commitInfo"] if found else {}
    if operation_named(str(info.get("operation"))).copies_files:
        return False
    return _ENGINES.search(str(info.get("engineInfo") or "")) is not None


def _checkpoint_counts(storage: Storage, checkpoint: Checkpoint) -> bool:
    from delta_ds.kernel.log.checkpoint import locate_files
    from delta_ds.kernel.log.checkpoint_files import footer_of

    try:
        files = locate_files(storage, checkpoint)
        if files is None:
            return False
        stored = footer_of(storage, files, files.paths[0]).metadata or {}
    except (DeltaError, FileNotFoundError):
        return False
    ours = all(stored.get(key.encode()) == value.encode() for key, value in COUNTS_NAN.items())
    return ours or _SPARK in stored
