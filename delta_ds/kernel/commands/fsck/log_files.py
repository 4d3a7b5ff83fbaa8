"""Checks of the log: every commit is there and can be read, checkpoints and checksums say what the commits say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.commands.fsck.findings import (
    LONG_TAIL,
    MISSING_COMMIT,
    UNREADABLE_CHECKPOINT,
    UNREADABLE_COMMIT,
    WRONG_CHECKPOINT,
    WRONG_CHECKSUM,
    Finding,
)
from delta_ds.kernel.format.properties import CHECKPOINT_INTERVAL
from delta_ds.kernel.log.checksum import read_checksum
from delta_ds.kernel.log.commit import Commit, in_batches, read_commits
from delta_ds.kernel.log.filenames import LogFile, checksum_path
from delta_ds.kernel.log.replay import State, load_state
from delta_ds.kernel.log.segment import Checkpoint, LogListing, choose_segment, list_log
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.records import replace

# As many intervals of checkpoints without one are told.
_INTERVALS = 10
_NEWEST = 2
_ACTIONS = ("add", "remove", "cdc", "metaData", "protocol", "commitInfo", "txn", "domainMetadata")


def check_log(storage: Storage, *, every_checkpoint: bool) -> Iterator[Finding]:
    """What is wrong with the files of a log.

    Parameters
    ----------
    every_checkpoint
        Whether all of them are held against a replay without them, or the newest two.
    """
    listing = list_log(storage)
    yield from _gaps(listing)
    yield from _commits(storage, listing)
    checkpoints = listing.checkpoints if every_checkpoint else listing.checkpoints[-_NEWEST:]
    for checkpoint in checkpoints:
        yield from _checkpoint(storage, listing, checkpoint)


def _gaps(listing: LogListing) -> Iterator[Finding]:
    versions = sorted(listing.commits)
    for before, after in zip(versions, versions[1:], strict=False):
        if after > before + 1:
            missing = f"{before + 1}" if after == before + 2 else f"{before + 1} to {after - 1}"
            yield Finding(
                MISSING_COMMIT, relative_commit_path(before + 1), f"there is no commit of version {missing}"
            )


def _commits(storage: Storage, listing: LogListing) -> Iterator[Finding]:
    files = [listing.commits[version] for version in sorted(listing.commits)]
    for batch in in_batches(files):
        try:
            contents = dict(zip(batch, read_commits(storage, batch), strict=True))
        except DeltaError:
            contents = {}  # one of them is to blame, and is asked for alone
        for file in batch:
            reason = _unreadable(storage, file, contents.get(file))
            if reason:
                yield Finding(UNREADABLE_COMMIT, file.path, reason)


def _unreadable(storage: Storage, file: LogFile, commit: Commit | None) -> str:
    """Why a commit cannot be read; empty where it can."""
    try:
        if commit is None:
            (commit,) = read_commits(storage, [file])
        commit.check_whole()
        commit.find(*_ACTIONS)
    except DeltaError as error:
        return error.text
    return ""


def _checkpoint(storage: Storage, listing: LogListing, checkpoint: Checkpoint) -> Iterator[Finding]:
    path = checkpoint.files[0].path
    listing = _as_of(listing, checkpoint.version)
    above = [other for other in listing.checkpoints if other.rank > checkpoint.rank]
    try:
        found = load_state(storage, choose_segment(listing, checkpoint.version, above))
    except DeltaError as error:
        yield Finding(UNREADABLE_CHECKPOINT, path, error.text)
        return
    try:
        replayed = load_state(storage, choose_segment(listing, checkpoint.version, [*above, checkpoint]))
    except DeltaError:
        return  # There is nothing to hold it against, or what there is has a finding of its own.
    differs = [what for what, one, other in _aspects(found, replayed) if one != other]
    if differs:
        yield Finding(WRONG_CHECKPOINT, path, f"other {', '.join(differs)} than by the log without it")


def _as_of(listing: LogListing, version: int) -> LogListing:
    """The log up to a version: a checkpoint is as good as what it stands for, whatever is wrong with later versions."""
    return replace(
        listing,
        commits={number: file for number, file in listing.commits.items() if number <= version},
        checkpoints=tuple(other for other in listing.checkpoints if other.version <= version),
    )


def _aspects(found: State, replayed: State) -> list[tuple[str, Any, Any]]:
    def files(state: State) -> pa.Table:
        columns = {"path": state.files.canonical_paths, "size": state.files.table["size"]}
        return pa.table(columns).sort_by("path")

    return [
        ("protocol", found.table.protocol, replayed.table.protocol),
        ("metadata", found.table.metadata, replayed.table.metadata),
        ("domains", found.table.domains, replayed.table.domains),
        ("transactions", dict(found.txns), dict(replayed.txns)),
        ("files", files(found), files(replayed)),
    ]


def check_newest(snapshot: Snapshot) -> Iterator[Finding]:
    """What is odd about the newest version: its checksum, and how much a reader has to read."""
    checksum = read_checksum(snapshot.storage, snapshot.segment)
    files = snapshot.live_files()
    if checksum is not None:
        size = pc.sum(files.table["size"]).as_py() or 0
        if (checksum.num_files, checksum.size_bytes) != (files.num_rows, size):
            detail = (
                f"it counts {checksum.num_files} files of {checksum.size_bytes} bytes, and there are "
                f"{files.num_rows} of {size}"
            )
            yield Finding(WRONG_CHECKSUM, checksum_path(snapshot.version), detail)
    commits = len(snapshot.segment.commits)
    if commits > _INTERVALS * CHECKPOINT_INTERVAL.of(snapshot.metadata.configuration):
        yield Finding(LONG_TAIL, "", f"{commits} commits since the last checkpoint")
