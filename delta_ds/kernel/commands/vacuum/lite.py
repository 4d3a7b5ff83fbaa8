"""VACUUM LITE: candidates from the log's tombstones instead of a listing, and the `_last_vacuum_info` file.

Files that no version ever referred to, left by writers that failed, are found by a full VACUUM only.
Source: protocol-checklist VAC-W-05; delta-spark, `_delta_log/_last_vacuum_info`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.maintenance import CANNOT_VACUUM_LITE
from delta_ds.events.commands import LAST_VACUUM_INFO_NOT_WRITTEN, LAST_VACUUM_INFO_UNREADABLE
from delta_ds.exceptions import StorageError
from delta_ds.kernel.base.arrow_buffers import integers
from delta_ds.kernel.base.json_text import parse_json
from delta_ds.kernel.commands.vacuum.candidates import Candidates, checksums_beside, no_files
from delta_ds.kernel.commands.vacuum.needed import Needed
from delta_ds.kernel.commands.vacuum.paths import Hidden, actual_paths, links_on_the_way
from delta_ds.kernel.commands.vacuum.references import first_within, is_young, read_log_rows, vector_paths
from delta_ds.kernel.log.filenames import LOG_DIRECTORY, LogFile
from delta_ds.kernel.log.last_checkpoint import forget_hadoop_checksum
from delta_ds.kernel.log.segment import LogListing, first_missing
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import DATA_FILES, behind
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.uri import unambiguous

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
