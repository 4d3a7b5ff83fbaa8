"""Listed files that no version within the retention refers to: a set difference on Arrow columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import integers, texts
from delta_ds.kernel.commands.vacuum.needed import Needed
from delta_ds.kernel.commands.vacuum.paths import Hidden, parent_folders, with_ancestors
from delta_ds.records import dataclass

_CHECKSUM = r"(^|/)\.([^/]+)\.crc$"


@dataclass(frozen=True, slots=True)
class Candidates:
    """The files and folders that can be deleted.

    Attributes
    ----------
    files
        `path` string (relative to the table, decoded) and `size` int64 (bytes).
    checksums
        Paths of the checksums that Hadoop keeps beside some of them.
    folders
        Folders without a file in them, relative to the table.
    num_folders
        How many folders were looked at, the table's own included.
    """

    files: pa.Table
    checksums: pa.ChunkedArray
    folders: tuple[str, ...]
    num_folders: int


def no_files() -> pa.Table:
    return pa.table({"path": pa.nulls(0, pa.string()), "size": integers([])})


class _Folders:
    """The folders that a listing shows, by themselves or as those of files."""

    def __init__(self, hidden: Hidden, cutoff_ms: int) -> None:
        self._hidden = hidden
        self._cutoff_ms = cutoff_ms
        self._old: list[str] = []
        self._kept: list[str] = []
        self._of_files: set[str] = set()

    def see_folders(self, folders: pa.Table) -> None:
        if folders.num_rows:
            old = pc.and_(pc.invert(self._hidden.mask(folders["path"])), is_old(folders, self._cutoff_ms))
            self._old += folders.filter(old)["path"].to_pylist()
            self._kept += folders.filter(pc.invert(old))["path"].to_pylist()

    def see_files(self, files: pa.Table) -> None:
        if files.num_rows:
            self._of_files |= parent_folders(files["path"])

    def empty(self) -> tuple[str, ...]:
        """Those older than the horizon in which, at any depth, there is nothing that stays and no file."""
        occupied = self._of_files | with_ancestors(self._kept)
        return tuple(sorted(folder for folder in self._old if folder not in occupied))

    def count(self) -> int:
        """Those that are not hidden, and the table's own."""
        found = {*self._old, *self._kept, *self._of_files} - {""}
        if not found:
            return 1
        hidden = self._hidden.mask(pa.chunked_array([texts(list(found))]))
        return 1 + len(found) - (pc.sum(hidden).as_py() or 0)


def is_old(rows: pa.Table, cutoff_ms: int) -> pa.ChunkedArray:
    """Whether rows of a listing are older than the horizon; of unknown age is not."""
    times = rows["modified_ms"]
    return pc.and_(pc.less(times, integers([cutoff_ms])[0]), pc.greater(times, integers([0])[0]))


def find_candidates(
    batches: Iterable[pa.RecordBatch], needed: Needed, hidden: Hidden, cutoff_ms: int
) -> Candidates:
    """The listed files that are older than the horizon and not needed.

    Memory goes with what is needed and what is found, not with what is listed.

    Parameters
    ----------
    batches
        Of `listing_schema`.
    needed
        What must stay.
    cutoff_ms
        The horizon, ms since 1970.
    """
    folders = _Folders(hidden, cutoff_ms)
    checksums: list[pa.ChunkedArray] = []

    def old_files() -> Iterator[pa.Table]:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            folders.see_folders(rows.filter(rows["is_folder"]))
            files = rows.filter(pc.invert(rows["is_folder"]))
            folders.see_files(files)
            checksums.append(files["path"].filter(pc.match_substring_regex(files["path"], _CHECKSUM)))
            files = files.filter(is_old(files, cutoff_ms))
            files = files.filter(pc.invert(hidden.mask(files["path"])))
            yield files.select(["path", "size"])

    found = [needed.without(group) for group in _tables_of_rows(old_files(), needed.rows_at_once)]
    files = pa.concat_tables(found) if found else no_files()
    return Candidates(files, _beside(checksums, files), folders.empty(), folders.count())


def _beside(checksums: list[pa.ChunkedArray], files: pa.Table) -> pa.ChunkedArray:
    """The Hadoop checksum files of files, out of those that were listed."""
    listed = pa.chunked_array([c for part in checksums for c in part.chunks], type=pa.string())
    if not len(listed):
        return listed
    of = pc.replace_substring_regex(listed, _CHECKSUM, r"\1\2")
    return listed.filter(pc.is_in(of, value_set=files["path"]))


def checksums_beside(files: pa.Table) -> pa.ChunkedArray:
    """The paths at which Hadoop keeps checksums of files."""
    return pc.replace_substring_regex(files["path"], "(^|/)([^/]+)$", r"\1.\2.crc")


def _tables_of_rows(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """Tables joined until they have so many rows."""
    group: list[pa.Table] = []
    for table in tables:
        group.append(table)
        if sum(part.num_rows for part in group) >= rows:
            yield pa.concat_tables(group)
            group = []
    if group:
        yield pa.concat_tables(group)
