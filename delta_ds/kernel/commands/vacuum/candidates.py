"""Files that VACUUM may delete: listed ones that no version needs, or for LITE the log's tombstones.

Files that no version ever referred to, left by writers that failed, are found by a full VACUUM only.
Source: protocol-checklist VAC-W-05; delta-spark, `_delta_log/_last_vacuum_info`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.commands import CANNOT_VACUUM_LITE
from delta_ds.events.commands import LAST_VACUUM_INFO_NOT_WRITTEN, LAST_VACUUM_INFO_UNREADABLE
from delta_ds.exceptions import StorageError
from delta_ds.kernel.base.arrow_buffers import integers, mask, texts
from delta_ds.kernel.base.json_text import parse_json
from delta_ds.kernel.commands.vacuum.paths import (
    Hidden,
    actual_paths,
    links_on_the_way,
    parent_folders,
    with_ancestors,
)
from delta_ds.kernel.commands.vacuum.references import (
    Needed,
    first_within,
    is_young,
    read_log_rows,
    vector_paths,
)
from delta_ds.kernel.log.filenames import LOG_DIRECTORY, LogFile, forget_hadoop_checksum
from delta_ds.kernel.log.segment import LogListing, first_missing
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import DATA_FILES, behind
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.uri import unambiguous
from delta_ds.records import dataclass

_CHECKSUM = r"(^|/)\.([^/]+)\.crc$"
_INNER_LOG = f"./{LOG_DIRECTORY}(/|$)"
_ABOVE_LOG = re.compile(rf"/{LOG_DIRECTORY}(?:/|$)")


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
    inner_tables
        Folders with a log of their own, which is not the table's.
    num_inner_files
        How many files in them would be candidates.
    """

    files: pa.Table
    checksums: pa.ChunkedArray
    folders: tuple[str, ...]
    num_folders: int
    inner_tables: tuple[str, ...] = ()
    num_inner_files: int = 0


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

    What lies in a folder with a log of its own is another table's, as of a clone, and no candidate. Memory goes with
    what is needed and what is found, not with what is listed.

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
    inner: set[str] = set()

    def old_files() -> Iterator[pa.Table]:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            logs = rows["path"].filter(pc.match_substring_regex(rows["path"], _INNER_LOG))
            inner.update(_ABOVE_LOG.split(path, maxsplit=1)[0] for path in logs.to_pylist())
            folders.see_folders(rows.filter(rows["is_folder"]))
            files = rows.filter(pc.invert(rows["is_folder"]))
            folders.see_files(files)
            checksums.append(files["path"].filter(pc.match_substring_regex(files["path"], _CHECKSUM)))
            files = files.filter(is_old(files, cutoff_ms))
            files = files.filter(pc.invert(hidden.mask(files["path"])))
            yield files.select(["path", "size"])

    found = [needed.without(group) for group in _tables_of_rows(old_files(), needed.rows_at_once)]
    everywhere = pa.concat_tables(found) if found else no_files()
    files = everywhere
    if inner:
        files = everywhere.filter(mask([not _is_in(inner, path) for path in everywhere["path"].to_pylist()]))
    empty = tuple(folder for folder in folders.empty() if not _is_in(inner, folder))
    num_inner_files = everywhere.num_rows - files.num_rows
    return Candidates(
        files, _beside(checksums, files), empty, folders.count(), tuple(sorted(inner)), num_inner_files
    )


def _is_in(folders: set[str], path: str) -> bool:
    return not folders.isdisjoint(with_ancestors([path]))


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


_INFO = f"{LOG_DIRECTORY}/_last_vacuum_info"
_VERSION = "latestCommitVersionOutsideOfRetentionWindow"


def last_version_before(snapshot: Snapshot, listing: LogListing, cutoff_ms: int) -> int | None:
    """The version up to which all commits are older than the horizon; None if none is."""
    last = first_within(listing, snapshot.version, cutoff_ms) - 1
    return last if last >= min(listing.commits) else None


def read_mark(storage: Storage) -> int | None:
    """The version up to which an earlier VACUUM deleted removed files; None if it is not known."""
    try:
        data = storage.read(_INFO)
    except FileNotFoundError:
        return None
    try:
        version = parse_json(data).get(_VERSION)
    except (ValueError, AttributeError) as error:
        LAST_VACUUM_INFO_UNREADABLE.log(table=storage.url, reason=error)
        return None
    return version if isinstance(version, int) and not isinstance(version, bool) else None


def write_mark(storage: Storage, version: int | None) -> None:
    """Record the version up to which this VACUUM deleted, never lower than recorded before.

    Differs: delta-spark forgets the version after a full VACUUM. A failure is logged: the next one in lite mode
    then looks at more commits, or refuses.
    """
    if version is None:
        return
    try:
        known = read_mark(storage)
        if known is not None and known >= version:
            return
        forget_hadoop_checksum(storage, _INFO)
        storage.write(_INFO, json.dumps({_VERSION: version}, separators=(",", ":")).encode() + b"\n")
    except StorageError as error:
        LAST_VACUUM_INFO_NOT_WRITTEN.log(table=storage.url, reason=error)


def commits_to_read(storage: Storage, listing: LogListing, last: int | None) -> list[LogFile]:
    """The commits that removed what VACUUM LITE deletes: from where the last VACUUM stopped up to a version.

    Parameters
    ----------
    listing
        Of the whole log.
    last
        From `last_version_before`.

    Raises
    ------
    UnsupportedOperationError
        The log does not reach back far enough any more.
    """
    mark = read_mark(storage)
    earliest = min(listing.commits)
    start = earliest if mark is None else mark + 1
    if last is None or start > last:
        return []
    if first_missing(listing.commits, start, last) is not None or (mark is None and earliest > 0):
        since = (
            "no VACUUM has recorded how far it came"
            if mark is None
            else f"the last VACUUM came to version {mark}"
        )
        raise CANNOT_VACUUM_LITE(
            table=storage.url, earliest=earliest, since=since, last=last, lastVacuum=mark
        )
    return [listing.commits[version] for version in range(start, last + 1)]


def find_removed_files(
    storage: Storage, commits: Sequence[LogFile], needed: Needed, hidden: Hidden, cutoff_ms: int
) -> Candidates:
    """The files that commits removed before the horizon, and their change files, but for those needed.

    Some may be gone already.
    """
    tables = [no_files()]
    for rows in read_log_rows(storage, commits, "remove", "cdc"):
        old = rows.filter(pc.invert(is_young(rows, cutoff_ms)))
        tables.append(_inside(pc.struct_field(old, "path"), pc.struct_field(old, "size"), storage))
        vectors = pc.struct_field(old, "deletionVector").drop_null()
        sizes = pc.struct_field(vectors, "sizeInBytes").cast(pa.int64())
        tables.append(_inside(vector_paths(vectors), sizes, storage))
    whole = pa.concat_tables(tables).group_by("path").aggregate([("size", "max")])
    files = needed.without(pa.table({"path": whole["path"], "size": whole["size_max"]}))
    files = _not_behind_links(files.filter(pc.invert(hidden.mask(files["path"]))), storage)
    local = storage.address.scheme == "file"
    return Candidates(files, checksums_beside(files if local else files[:0]), (), 1)


def _not_behind_links(files: pa.Table, storage: Storage) -> pa.Table:
    """The files that tombstones name and that no link is on the way to: what is behind one need not be the table's."""
    links = links_on_the_way(files["path"], storage)
    linked = files.append_column("link", links).filter(pc.is_valid(links))
    for link in linked["link"].unique().to_pylist():
        named = linked.filter(pc.equal(linked["link"], link))["path"].to_pylist()
        there = [path for path in named if storage.exists(unambiguous(path))]
        if there:
            deleter.tell_refused(storage, DATA_FILES, there[0], behind(link), len(there))
    return files.filter(pc.is_null(links))


def _inside(paths: pa.Array, sizes: pa.Array, storage: Storage) -> pa.Table:
    named = pc.is_valid(paths)
    found = actual_paths(paths.filter(named), storage)
    sizes = pc.fill_null(sizes.filter(named), integers([0])[0])
    return pa.table({"path": found, "size": sizes}).filter(pc.is_valid(found))
