"""The live files of a version as Arrow tables: the input of every scan.

Base columns are in memory; statistics come when asked for, since few queries need more than a column
of them: the JSON text of files added by commits is at hand, that of files in a checkpoint is read from
it, piece by piece and never kept, and its typed form (`stats_parsed`) leaf by leaf. Where that checkpoint was
written again or deleted since, they come from what the log holds of the version now, by the keys of the files.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from delta_ds.conditions.protocol import CHECKPOINT_NOT_FOUND_AGAIN
from delta_ds.events.log import CHECKPOINT_READ_ANEW
from delta_ds.exceptions import LogError, VersionNotFoundError
from delta_ds.kernel.base.arrow_buffers import field_of, integers, mask, numbers, true_rows
from delta_ds.kernel.format.values.statistics import FilesToPrune
from delta_ds.kernel.log.checkpoint_adds import KeptColumns
from delta_ds.kernel.log.checkpoint_files import CheckpointFiles, UnreadableCheckpointError
from delta_ds.kernel.log.file_actions import LARGEST_FILE, keys_of_files
from delta_ds.kernel.log.later_statistics import LaterStatistics
from delta_ds.kernel.storage.filesystem import FileStatus, Storage
from delta_ds.kernel.storage.uri import canonical_paths

if TYPE_CHECKING:
    import pyarrow as pa

# Of the text of commits so many files at once.
_TEXT_ROWS = 1 << 16
# So often a checkpoint is read anew in a row: one that is written again all the time is of no use.
_ATTEMPTS = 8


# Tells of some files the ascending numbers of those to keep.
FileFilter = Callable[["FilesToPrune"], "pa.Int64Array"]


class LiveFiles:
    """The live files of one version.

    Attributes
    ----------
    storage
        The table's.
    table
        One row a file: `path` string (as in the log, URI-encoded), `partitionValues` struct of strings by
        physical name (absent for unpartitioned tables), `size` and `modificationTime` int64 (bytes,
        ms), `dataChange` bool, `deletionVector` struct (null for none), `baseRowId` and
        `defaultRowCommitVersion` int64 (null for none).
    again
        Reads all live files of the version from what the log holds now; None where somebody else does that.
    """

    def __init__(
        self,
        storage: Storage,
        table: pa.Table,
        stats: pa.ChunkedArray,
        row: pa.ChunkedArray,
        checkpoint: CheckpointFiles | None,
        again: Callable[[], LiveFiles] | None = None,
    ) -> None:
        self.storage = storage
        self.table = table
        self.again = again
        self._later = LaterStatistics(storage, table["path"], stats, row, checkpoint)
        self._kept = KeptColumns()

    @property
    def num_rows(self) -> int:
        """How many files are live."""
        return int(self.table.num_rows)

    @cached_property
    def canonical_paths(self) -> pa.ChunkedArray:
        """`path` in the form by which files are compared; see `uri.canonical_path`."""
        return canonical_paths(self.table["path"], self.storage)

    def take(self, rows: pa.Int64Array) -> LiveFiles:
        """Some of the files, by their ascending row numbers."""
        import numpy as np

        wanted = np.zeros(self.num_rows, dtype=bool)
        wanted[numbers(rows)] = True
        later = self._later
        # `take` of Arrow makes one piece of a column first, all of its text.
        kept = self._with(later).filter(mask(wanted))
        base = kept.drop_columns(["stats", "row"])
        return LiveFiles(self.storage, base, kept["stats"], kept["row"], later.checkpoint, self.again)

    def partition_texts(self, physical: str) -> pa.Array:
        """See `FilesToPrune`."""
        import pyarrow as pa

        if "partitionValues" in self.table.column_names:
            column = self.table["partitionValues"]
            if column.type.get_field_index(physical) >= 0:
                return field_of(column, physical).cast(pa.string()).combine_chunks()
        return pa.nulls(self.num_rows, pa.string())

    def stats_json(self, rows: pa.Array | None = None) -> pa.ChunkedArray:
        """The `stats` JSON text of files, null where there is none.

        Parameters
        ----------
        rows
            int64 row numbers into `table`; None for all, in order.

        Raises
        ------
        LogError
            The checkpoint that holds it is gone, and the log does not hold the version any more.
        """
        import pyarrow as pa

        return pa.chunked_array(list(self.stats_texts(rows)), pa.string())

    def stats_texts(self, rows: pa.Int64Array | None = None) -> Iterator[pa.Array]:
        """See `FilesToPrune`; None for all files, and numbers may come in any order."""
        import numpy as np

        left = np.arange(self.num_rows) if rows is None else numbers(rows)
        for attempt in itertools.count(1):
            later = self._later
            try:
                for piece in later.texts(left, _TEXT_ROWS):
                    left = left[len(piece) :]
                    yield piece
                return
            except UnreadableCheckpointError as error:
                self._read_anew(later, error, attempt)

    def kept(self, names: Sequence[str]) -> dict[str, pa.Array] | None:
        """See `FilesToPrune`."""
        return self._kept.get("", names)

    def keep(self, columns: Mapping[str, pa.Array]) -> None:
        """See `FilesToPrune`."""
        self._kept.put("", columns)

    def stats_parsed(self, leaves: Sequence[str], rows: pa.Array | None = None) -> pa.Table | None:
        """Typed statistics from the struct form of a checkpoint.

        Parameters
        ----------
        leaves
            Dotted physical paths below `stats_parsed`: `numRecords`, `minValues.a.b`, ...
        rows
            int64 row numbers into `table`; None for all, in order.

        Returns
        -------
        pyarrow.Table or None
            A column a leaf that exists, named by it, null for files that are not from the checkpoint.
        """
        for attempt in itertools.count(1):
            later = self._later
            try:
                return later.parsed(leaves, rows)
            except UnreadableCheckpointError as error:
                self._read_anew(later, error, attempt)
        raise AssertionError

    def working_table(self) -> pa.Table:
        """The files with JSON statistics and checkpoint row, as replay carries them: see `working_schema`."""
        return self._with(self._later)

    @property
    def parts(self) -> tuple[pa.ChunkedArray, pa.ChunkedArray, CheckpointFiles | None]:
        """What the statistics come from (JSON of commits, checkpoint rows, checkpoint): for replay and cache."""
        later = self._later
        return later.stats, later.row, later.checkpoint

    def _with(self, later: LaterStatistics) -> pa.Table:
        return self.table.append_column("stats", later.stats).append_column("row", later.row)

    def _read_anew(self, later: LaterStatistics, error: UnreadableCheckpointError, attempt: int) -> None:
        """Look for the files where the log has them now.

        Raises
        ------
        LogError
            They are nowhere to be found.
        """
        if self._later is not later:
            return  # another thread has done so
        if self.again is None or attempt > _ATTEMPTS:
            raise error
        CHECKPOINT_READ_ANEW.log(table=self.storage.url, reason=error)
        try:
            found = self.again()
        except (LogError, VersionNotFoundError) as gone:
            raise CHECKPOINT_NOT_FOUND_AGAIN(table=self.storage.url, reason=gone.text) from error
        self._later = self._found_in(found, later)

    def _found_in(self, found: LiveFiles, later: LaterStatistics) -> LaterStatistics:
        """The statistics of these files among all of their version."""
        import pyarrow as pa
        import pyarrow.compute as pc

        known = keys_of_files(found.table, self.storage).combine_chunks()
        places = pc.index_in(keys_of_files(self.table, self.storage), value_set=known)
        there = pc.is_valid(later.row)
        if pc.any(pc.and_(there, pc.is_null(places))).as_py():
            reason = "the log names other files of this version than it did"
            raise CHECKPOINT_NOT_FOUND_AGAIN(table=self.storage.url, reason=reason)
        stats, row, checkpoint = found.parts
        places = pc.if_else(there, places, pa.scalar(None, places.type))
        texts = pc.coalesce(later.stats, stats.take(places))
        return LaterStatistics(self.storage, self.table["path"], texts, row.take(places), checkpoint)


# --- sizes of data files that the log does not tell, or not believably: as the store knows them
# Whoever reads a file by its size, as Spark does, reads nothing of one that has none.
# Source: PROTOCOL.md, "Add File and Remove File": `size` and `modificationTime` are required.

_AT_ONCE = 16


def with_known_sizes(storage: Storage, files: pa.Table) -> pa.Table:
    """Files with the sizes and times that the store knows, where the log has none: what is committed must have them.

    Parameters
    ----------
    files
        `path`, `size` and `modificationTime`, as the log has them. No file has less than a byte, or a pebibyte.

    Raises
    ------
    DataFileError
        A file is not there.
    """
    from concurrent.futures import ThreadPoolExecutor

    import pyarrow as pa
    import pyarrow.compute as pc

    none, most = integers([0, LARGEST_FILE])
    size = pc.fill_null(files["size"], none)
    known = pc.and_(pc.greater(size, none), pc.less(size, most))
    if pc.all(known, min_count=0).as_py() and not files["modificationTime"].null_count:
        return files
    unknown = pc.or_(pc.invert(known), pc.is_null(files["modificationTime"]))
    columns = {name: files[name].to_pylist() for name in ("path", "size", "modificationTime")}
    places = true_rows(unknown).to_pylist()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda place: _status(storage, columns["path"][place]), places)
        for place, status in zip(places, found, strict=True):
            if not known[place].as_py():
                columns["size"][place] = status.size
            if columns["modificationTime"][place] is None:
                columns["modificationTime"][place] = status.modified_ms
    for name in ("size", "modificationTime"):
        column = pa.chunked_array([integers(columns[name])])
        files = files.set_column(files.column_names.index(name), name, column)
    return files


def _status(storage: Storage, path: str) -> FileStatus:
    try:
        return storage.status(storage.resolve(path))
    except FileNotFoundError as error:
        from delta_ds.conditions.data import FAILED_READ_FILE_FILE_NOT_EXIST

        place = f"data file {path} of table {storage.url}"
        raise FAILED_READ_FILE_FILE_NOT_EXIST({"path": path}, place=place) from error
