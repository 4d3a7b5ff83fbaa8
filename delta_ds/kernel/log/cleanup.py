"""Clean up the log: delete files older than the retention that no kept version needs.

The newest readable checkpoint at or before the cut-off stays with everything after it; what is before it goes.

Source: PROTOCOL.md, "Metadata Cleanup"; protocol-checklist MCL-*, CPR-W-01, CKP-W-25.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta

from delta_ds.events.log import (
    CHECKPOINT_NOT_RELIED_ON,
    CHECKPOINT_PASSED_OVER,
    LOG_CLEANED,
    NO_CLASSIC_CHECKPOINT,
    SIDECARS_KEPT,
)
from delta_ds.exceptions import LogError
from delta_ds.kernel.format.features import CHECKPOINT_PROTECTION, V2_CHECKPOINT
from delta_ds.kernel.format.properties import (
    CHECKPOINT_PROTECTION_BEFORE_VERSION,
    ENABLE_EXPIRED_LOG_CLEANUP,
    LOG_RETENTION,
)
from delta_ds.kernel.format.table_state import TableState, check_managed
from delta_ds.kernel.log.checkpoint import read_single_actions, sidecar_path
from delta_ds.kernel.log.checkpoint_files import UnreadableCheckpointError, open_file
from delta_ds.kernel.log.filenames import (
    LOG_DIRECTORY,
    SIDECAR_DIRECTORY,
    Kind,
    LogFile,
    forget_hadoop_checksum,
    parse_name,
    version_prefix,
)
from delta_ds.kernel.log.history import file_times, reachable_versions
from delta_ds.kernel.log.parts import parts_of
from delta_ds.kernel.log.reconcile import select
from delta_ds.kernel.log.replay import load_head, load_table_state
from delta_ds.kernel.log.segment import Checkpoint, LogListing, LogSegment, choose_segment, list_log
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import LOG_FILES, SIDECARS, STAGED_COMMITS
from delta_ds.kernel.storage.filesystem import FileStatus, Storage
from delta_ds.kernel.storage.maintenance import Maintenance

_DAY_MS = 86_400_000
_STAGED_DIRECTORY = f"{LOG_DIRECTORY}/_staged_commits"
_HADOOP_CHECKSUM = re.compile(r"\.(?P<name>.+)\.crc")


def clean_up(storage: Storage, now_ms: int | None = None, *, retention: timedelta | None = None) -> list[str]:
    """Delete the expired files of a table's log.

    Parameters
    ----------
    now_ms
        The timestamp by which files expire, ms since 1970; None: now.
    retention
        How long the log is kept; None: what `delta.logRetentionDuration` says, and only where
        `delta.enableExpiredLogCleanup` is on.

    Returns
    -------
    list of str
        What was deleted, relative to the table. Empty where nothing has expired, where no readable checkpoint is
        old enough, or where checkpoint protection forbids it.

    Raises
    ------
    UnsupportedOperationError
        A catalog manages the table and does not permit it.
    LogError
        The log cannot be read; nothing was deleted.
    StorageError
        Deleting failed; some files may be gone, none of which a kept version needs.

    Source: PROTOCOL.md, "Metadata Cleanup".
    """
    now = int(time.time() * 1000) if now_ms is None else now_ms
    storage.check_allowed(Maintenance.LOG_CLEANUP, "log clean-up")
    listing = list_log(storage)
    if all(file.status.modified_ms > _midnight(now) for file in listing.commits.values()):
        return []  # whatever the retention is: as often as checkpoints are written, the usual case
    state = _newest(storage, listing)
    check_managed(state.protocol, storage)
    properties = state.properties
    if retention is None:
        if not ENABLE_EXPIRED_LOG_CLEANUP.of(properties):
            return []
        retention = LOG_RETENTION.of(properties)
    cut_off = _midnight(now - retention // timedelta(milliseconds=1))
    kept = _oldest_kept(storage, listing, cut_off)
    if kept is None or not _may_delete_below(state, kept.version):
        return []
    expired = _expired_files(storage, kept.version)
    if not expired:
        return []
    storage.publish_up_to(kept.version, noted=True)
    if state.supports(V2_CHECKPOINT):
        _warn_old_clients(storage, listing)
    sidecars = _old_sidecars(storage, now)
    if sidecars and not state.supports(V2_CHECKPOINT):
        # Files that checkpoints of an earlier protocol have left; what else is there is not ours.
        sidecars &= (
            _sidecars_of(storage, [c for c in listing.checkpoints if c.version < kept.version]) or set()
        )
    deleted = _delete(storage, expired, in_two_steps=state.supports(CHECKPOINT_PROTECTION))
    deleted += _delete_sidecars(storage, sidecars)
    LOG_CLEANED.log(table=storage.url, before_version=kept.version, files=len(deleted))
    return deleted


def _newest(storage: Storage, listing: LogListing) -> TableState:
    """Protocol and metadata of the latest version, from the newest checkpoint that can be read."""
    rejected: list[Checkpoint] = []
    while True:
        segment = choose_segment(listing, None, rejected, storage)
        try:
            return load_table_state(storage, segment)
        except UnreadableCheckpointError as error:
            if segment.checkpoint is None:
                raise
            CHECKPOINT_PASSED_OVER.log(table=storage.url, version=segment.checkpoint.version, reason=error)
            rejected.append(segment.checkpoint)


def _midnight(moment_ms: int) -> int:
    return moment_ms - moment_ms % _DAY_MS


# ---------------------------------------------------------------- what stays


def _oldest_kept(storage: Storage, listing: LogListing, cut_off: int) -> Checkpoint | None:
    """The newest readable checkpoint that is not newer than the newest commit at or before the cut-off.

    Its own commit must be there too: checkpoints hold no commit provenance.
    """
    times = file_times(listing, reachable_versions(listing))
    expired = [version for version, timestamp in times.items() if timestamp <= cut_off]
    if not expired:
        return None
    usable = [c for c in listing.checkpoints if c.version <= max(expired) and c.version in listing.commits]
    for checkpoint in reversed(usable):
        if checkpoint.version > min(listing.commits) and _is_readable(storage, listing, checkpoint):
            return checkpoint
    return None


def _is_readable(storage: Storage, listing: LogListing, checkpoint: Checkpoint) -> bool:
    """Whether the version of a checkpoint can be rebuilt by it alone, and all else in it can be read.

    A footer promises nothing of the rows, and without the commits before it nothing else tells what they were.
    """
    version = checkpoint.version
    segment = LogSegment(version, checkpoint, (), listing.commits[version])
    try:
        older = load_head(storage, segment).older
        if older is not None:
            for _ in select(older, parts_of(storage, older.checkpoint, map), None, map):
                pass
            for path in older.checkpoint.paths:
                with open_file(storage, older.checkpoint, path) as opened:
                    opened.check_rows()
    except (LogError, FileNotFoundError) as error:
        CHECKPOINT_NOT_RELIED_ON.log(table=storage.url, version=version, reason=error)
        return False
    return True


def _may_delete_below(state: TableState, version: int) -> bool:
    """Whether checkpoint protection lets everything below a version go.

    History below the protected version goes in one pass or stays: a checkpoint in it may be the only way for
    older clients past features that they do not know.
    """
    if not state.supports(CHECKPOINT_PROTECTION):
        return True
    return bool(version >= CHECKPOINT_PROTECTION_BEFORE_VERSION.of(state.properties))


# ---------------------------------------------------------------- what goes


def _expired_files(storage: Storage, kept: int) -> list[LogFile | FileStatus]:
    """The files of the log before a version, oldest version first, checkpoints after the commit of theirs."""
    out: list[tuple[int, int, str, LogFile | FileStatus]] = []
    for status in storage.list_from(LOG_DIRECTORY):
        name = status.path.rsplit("/", 1)[-1]
        hidden = _HADOOP_CHECKSUM.fullmatch(name)
        file = parse_name(FileStatus(hidden["name"], 0, 0) if hidden else status)
        if file is None or not status.is_file:
            continue
        gone = file.version <= kept if file.kind is Kind.COMPACTION else file.version < kept
        if gone:
            rank = 1 if file.kind is Kind.CHECKPOINT else 0
            out.append((file.version, rank, name, status if hidden else file))
    out.sort(key=lambda item: item[:3])
    return [item for *_, item in out] + _staged_commits(storage, kept)


def _staged_commits(storage: Storage, kept: int) -> list[LogFile | FileStatus]:
    """Staged commits up to the version, which were published or never will be."""
    try:
        found = storage.list_from(_STAGED_DIRECTORY)
    except FileNotFoundError:
        return []
    names = re.compile(r"\d{20}\..*")
    return [
        s for s in found if s.is_file and names.fullmatch(_name(s)) and _name(s)[:20] <= version_prefix(kept)
    ]


def _name(status: FileStatus) -> str:
    return status.path.rsplit("/", 1)[-1]


def _delete(storage: Storage, expired: Sequence[LogFile | FileStatus], *, in_two_steps: bool) -> list[str]:
    """Delete, in order; with checkpoint protection all commits before any checkpoint."""
    late = [f for f in expired if in_two_steps and isinstance(f, LogFile) and f.kind is Kind.CHECKPOINT]
    early = [f for f in expired if f not in late]
    deleted = []
    for step in (early, late):
        staged = [f.path for f in step if f.path.startswith(f"{_STAGED_DIRECTORY}/")]
        named = [f.path for f in step if not f.path.startswith(f"{_STAGED_DIRECTORY}/")]
        deleted += deleter.delete(storage, LOG_FILES, named)
        deleted += deleter.delete(storage, STAGED_COMMITS, staged)
    return deleted


def _old_sidecars(storage: Storage, now: int) -> set[str]:
    """What is in the folder of sidecars, but for files that may belong to a checkpoint that is being written."""
    try:
        found = storage.list_from(SIDECAR_DIRECTORY)
    except FileNotFoundError:
        return set()
    young = _midnight(now - _DAY_MS)
    return {status.path for status in found if status.is_file and 0 < status.modified_ms < young}


def _delete_sidecars(storage: Storage, found: Collection[str]) -> list[str]:
    """Delete those of some sidecars that no checkpoint names."""
    needed = _sidecars_of(storage, list_log(storage).checkpoints) if found else None
    return [] if needed is None else deleter.delete(storage, SIDECARS, sorted(set(found) - needed))


def _sidecars_of(storage: Storage, checkpoints: Iterable[Checkpoint]) -> set[str] | None:
    """The sidecars that checkpoints name; None where one of them cannot be read."""
    named: set[str] = set()
    try:
        for checkpoint in checkpoints:
            for action in read_single_actions(storage, checkpoint, ("sidecar",)):
                named.add(sidecar_path(storage, action["sidecar"], checkpoint))
    except UnreadableCheckpointError as error:
        SIDECARS_KEPT.log(table=storage.url, reason=error)
        return None
    return named


# ---------------------------------------------------------------- old clients


def _warn_old_clients(storage: Storage, listing: LogListing) -> None:
    """Give the newest V2 checkpoint a classic name too, if only unique ones are left.

    Clients that know no V2 checkpoints find no start of the log without one; in it they find the protocol, and
    that they must not read the table.
    """
    newest = listing.checkpoints[-1]
    file = newest.files[0]
    if not file.unique or file.is_json:
        if file.is_json:
            NO_CLASSIC_CHECKPOINT.log(table=storage.url, version=newest.version)
        return
    path = f"{LOG_DIRECTORY}/{version_prefix(newest.version)}.checkpoint.parquet"
    if any(c.version == newest.version and c.files[0].path == path for c in listing.checkpoints):
        return
    data = storage.read(file.path)
    forget_hadoop_checksum(storage, path)
    with storage.replace_file(path) as sink:
        sink.write(data)
