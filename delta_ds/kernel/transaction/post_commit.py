"""What follows a commit: its checksum file, now and then a checkpoint and log clean-up, manifests where asked for.

The commit stands whatever happens here. A step that fails is logged, and the next commits make up for it; but for
manifests, which other engines read as they are: those the caller has to hear of.

Source: PROTOCOL.md, "Version Checksum File", "Checkpoints", "Metadata Cleanup"; checklist CRC-W-01, CKP-W-15,
MCL-W-04; delta-spark, `GenerateSymlinkManifest` (when, and what its failure does).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delta_ds.exceptions import DeltaError, UncertainWriteError, UnsupportedOperationError
from delta_ds.kernel.log import checksum
from delta_ds.kernel.log.actions import Metadata, Protocol
from delta_ds.kernel.log.checksum import EMPTY, Summary
from delta_ds.kernel.properties import value_of
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.transaction import symlink_manifest

if TYPE_CHECKING:
    from delta_ds.kernel.snapshot import Snapshot

logger = logging.getLogger("delta_ds")

_HOOK_FAILED = "DELTA_POST_COMMIT_HOOK_FAILED"


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that was published.

    Attributes
    ----------
    version
        Its version.
    protocol, metadata
        In force since.
    actions
        All of its actions as `{name: body}`, `commitInfo` included; but for the removes counted below.
    previous
        The snapshot that was read; other commits may lie between it and this one. None for a new table.
    in_commit_timestamp
        ms since 1970; None where they are not enabled.
    removed_files, removed_bytes
        Live files removed by actions that are not in `actions`, where there are too many to list; bytes None
        if the size of one is not known.
    """

    version: int
    protocol: Protocol
    metadata: Metadata
    actions: Sequence[Mapping[str, Any]]
    previous: Snapshot | None
    in_commit_timestamp: int | None
    removed_files: int = 0
    removed_bytes: int | None = 0

    @property
    def operation(self) -> str | None:
        """What the commit did, as its `commitInfo` says."""
        infos = (action["commitInfo"] for action in self.actions if "commitInfo" in action)
        return next((info.get("operation") for info in infos), None)


def run(storage: Storage, committed: Committed) -> None:
    """Do what is due after a commit.

    Parameters
    ----------
    storage
        The table's.
    committed
        The commit.

    Raises
    ------
    UncertainWriteError
        The symlink manifests could not be brought up to date; the commit stands, its files are part of the table.
        Whatever else fails is logged.
    """
    _attempt("checksum", storage, committed, _write_checksum)
    if _attempt("checkpoint_interval", storage, committed, _is_checkpoint_due) and _attempt(
        "checkpoint", storage, committed, _write_checkpoint
    ):
        _attempt("clean_up", storage, committed, _clean_up)
    if value_of(committed.metadata.configuration, symlink_manifest.ENABLED):
        _update_manifests(storage, committed)


_Step = Callable[[Storage, Committed], bool]


def _attempt(step: str, storage: Storage, committed: Committed, action: _Step) -> bool:
    try:
        return action(storage, committed)
    except Exception as error:  # noqa: BLE001 - whatever it is, the commit is published and stays
        reason = error.text if isinstance(error, DeltaError) else repr(error)
        logger.warning(
            "post_commit_failed table=%s version=%s step=%s reason=%s",
            storage.url,
            committed.version,
            step,
            reason,
        )
        return False


# ---------------------------------------------------------------- checksum


def _write_checksum(storage: Storage, committed: Committed) -> bool:
    summary = _summary(storage, committed)
    if summary is None:
        logger.debug("checksum_skipped table=%s version=%s", storage.url, committed.version)
        return False
    return _put_checksum(storage, committed, summary)


def _put_checksum(storage: Storage, committed: Committed, summary: Summary) -> bool:
    infos = [action["commitInfo"] for action in committed.actions if "commitInfo" in action]
    return checksum.write_checksum(
        storage,
        committed.version,
        summary,
        committed.protocol,
        committed.metadata,
        txn_id=infos[0].get("txnId") if infos else None,
        in_commit_timestamp=committed.in_commit_timestamp,
    )


def _summary(storage: Storage, committed: Committed) -> Summary | None:
    """The summary of the version; None where it would take a look at the whole log."""
    if committed.removed_bytes is None:
        return None
    if not committed.removed_files and not checksum.counts_up(committed.actions):
        return None
    before = _before(storage, committed)
    after = None if before is None else checksum.following(before, committed.actions)
    if after is None:
        return None
    files = after.num_files - committed.removed_files
    size = after.size_bytes - committed.removed_bytes
    return None if files < 0 or size < 0 else Summary(files, size, after.txns, after.domains)


def _before(storage: Storage, committed: Committed) -> Summary | None:
    """The summary of the version before: from its file, or from a snapshot that is loaded anyway."""
    if committed.version == 0:
        return EMPTY
    found = checksum.read_summary(storage, committed.version - 1)
    if found is not None:
        return found
    previous = committed.previous
    if previous is None or previous.version != committed.version - 1 or "state" not in vars(previous):
        return None
    import pyarrow.compute as pc

    files = previous.live_files()
    domains = {
        name: {"domain": name, "configuration": text, "removed": False}
        for name, text in previous.domains.items()
    }
    # When each transaction was last seen is not part of the snapshot, so they are left unknown if there are any.
    return Summary(
        files.num_rows, pc.sum(files.table["size"]).as_py() or 0, None if previous.txns else {}, domains
    )


# ---------------------------------------------------------------- checkpoint and clean-up


def _is_checkpoint_due(storage: Storage, committed: Committed) -> bool:
    if committed.operation == "CONVERT":
        return True  # its commit is as long as a checkpoint, and slower to read
    interval = value_of(committed.metadata.configuration, "delta.checkpointInterval")
    return committed.version > 0 and committed.version % int(interval) == 0


def _write_checkpoint(storage: Storage, committed: Committed) -> bool:
    from delta_ds.kernel.log.segment import find_segment
    from delta_ds.kernel.transaction.checkpoint import write_checkpoint

    segment = find_segment(storage, committed.version)
    if segment.checkpoint is not None and segment.checkpoint.version == committed.version:
        return True
    info = write_checkpoint(storage, segment)
    if segment.checksum is None:
        # A commit without a checksum file left those after it without; from here on they can count again.
        _put_checksum(storage, committed, info.summary)
    return True


def _clean_up(storage: Storage, committed: Committed) -> bool:
    from delta_ds.kernel.log.cleanup import clean_up

    clean_up(storage)
    return True


# ---------------------------------------------------------------- manifests


def _update_manifests(storage: Storage, committed: Committed) -> None:
    from delta_ds.kernel.snapshot import open_snapshot

    names = {name for action in committed.actions for name in action}
    if not (committed.removed_files or names & {"add", "remove"}):
        return
    everything = committed.version == 0 or bool(committed.removed_files) or "metaData" in names
    try:
        # As it is now: another commit may have followed, whose manifests must not be undone.
        snapshot = open_snapshot(storage)
        symlink_manifest.update_after(snapshot, committed.actions, everything=everything)
    except Exception as error:
        reason = error.text if isinstance(error, DeltaError) else repr(error)
        raise UncertainWriteError(
            f"version {committed.version} of {storage.url} is committed, but its symlink manifests are not up to date: "
            f"{reason}. Call generate('symlink_format_manifest') once the cause is gone, or set "
            f"{symlink_manifest.ENABLED} to false",
            condition=error.condition if isinstance(error, UnsupportedOperationError) else _HOOK_FAILED,
            parameters={"version": committed.version},
        ) from error
