"""Post-commit work: checksum file, checkpoint, log clean-up, symlink manifest, metadata of Iceberg.

The commit stands whatever happens here. A step that fails is logged, and the next commits make up for it.

Source: PROTOCOL.md, "Version Checksum File", "Checkpoints", "Metadata Cleanup"; protocol-checklist CRC-W-01, CKP-W-15,
MCL-W-04; delta-spark, `GenerateSymlinkManifest` (when, and what its failure does).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from delta_ds.events.log import CHECKPOINT_PASSED_OVER, CHECKSUM_SKIPPED, POST_COMMIT_FAILED
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.files.write.checkpoint_columns import CheckpointColumns, typed_columns
from delta_ds.kernel.format.actions import Action, DomainMetadata
from delta_ds.kernel.format.iceberg_compatibility import writes_metadata
from delta_ds.kernel.format.operations import operation_named
from delta_ds.kernel.format.properties import CHECKPOINT_INTERVAL, SYMLINK_MANIFEST_ENABLED
from delta_ds.kernel.format.table_state import TableState, check_managed
from delta_ds.kernel.log import checksum
from delta_ds.kernel.log.checkpoint_files import UnreadableCheckpointError
from delta_ds.kernel.log.checkpoint_write import writer
from delta_ds.kernel.log.checkpoint_write.writer import CheckpointInfo
from delta_ds.kernel.log.checksum import EMPTY, Summary
from delta_ds.kernel.log.filenames import commit_path
from delta_ds.kernel.log.segment import Checkpoint, LogSegment, find_segment
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.maintenance import Maintenance
from delta_ds.kernel.transaction import symlink_manifest
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.transaction.pending import Pending


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that was published.

    Attributes
    ----------
    state
        Protocol and metadata effective since, at its version.
    actions
        All of its actions as `{name: body}`, `commitInfo` included; but for the removes counted below.
    previous
        The snapshot that was read; other commits may lie between it and this one. None for a new table.
    in_commit_timestamp
        ms since 1970; None where they are not enabled.
    removed_files, removed_bytes
        Live files removed by actions that are not in `actions`, where there are too many to list; bytes None
        if the size of one is not known.
    rearranges
        Whether some of these removes change no data.
    """

    state: TableState
    actions: Sequence[Action]
    previous: Snapshot | None
    in_commit_timestamp: int | None
    removed_files: int = 0
    removed_bytes: int | None = 0
    rearranges: bool = False

    @classmethod
    def of(cls, pending: Pending, actions: Sequence[Action]) -> Committed:
        """What was pending, with all of its actions but `live_removes`."""
        removed = pending.live_removes
        return cls(
            state=replace(pending.state, version=pending.version),
            actions=actions,
            previous=pending.snapshot,
            in_commit_timestamp=pending.in_commit_timestamp,
            removed_files=sum(removes.table.num_rows for removes in removed),
            removed_bytes=sum(removes.size for removes in removed),
            rearranges=any(removes and not removes.data_change for removes in removed),
        )

    @property
    def version(self) -> int:
        return self.state.version

    @property
    def operation(self) -> str | None:
        """What the commit did, as its `commitInfo` says."""
        infos = (action["commitInfo"] for action in self.actions if "commitInfo" in action)
        return next((info.get("operation") for info in infos), None)


def run(storage: Storage, committed: Committed) -> None:
    """Write the checksum, and where due a checkpoint, clean up the log, update manifests and metadata of Iceberg.

    Parameters
    ----------
    storage
        The table's.
    committed
        The commit.

    Whatever fails is logged: the commit stands, and who is told of a failure would take its files for leftovers.
    """
    _attempt("checksum", storage, committed, _write_checksum)
    if _attempt("checkpoint_interval", storage, committed, _is_checkpoint_due) and _attempt(
        "checkpoint", storage, committed, _write_checkpoint
    ):
        _attempt("clean_up", storage, committed, _clean_up)
    _attempt("symlink_manifest", storage, committed, _update_manifests)
    _attempt("iceberg", storage, committed, _convert)


_Step = Callable[[Storage, Committed], bool]


def _attempt(step: str, storage: Storage, committed: Committed, action: _Step) -> bool:
    try:
        return action(storage, committed)
    except Exception as error:  # noqa: BLE001 - whatever it is, the commit is published and stays
        reason = error.text if isinstance(error, DeltaError) else repr(error)
        POST_COMMIT_FAILED.log(table=storage.url, version=committed.version, step=step, reason=reason)
        return False


# ---------------------------------------------------------------- checksum


def _write_checksum(storage: Storage, committed: Committed) -> bool:
    summary = _summary(storage, committed)
    if summary is None:
        CHECKSUM_SKIPPED.log(table=storage.url, version=committed.version)
        return False
    return _put_checksum(storage, committed, summary)


def _put_checksum(storage: Storage, committed: Committed, summary: Summary) -> bool:
    infos = [action["commitInfo"] for action in committed.actions if "commitInfo" in action]
    return checksum.write_checksum(
        storage,
        committed.state,
        summary,
        txn_id=infos[0].get("txnId") if infos else None,
        in_commit_timestamp=committed.in_commit_timestamp,
    )


def _summary(storage: Storage, committed: Committed) -> Summary | None:
    """The summary of the version; None where it would need to read the whole log."""
    if committed.removed_bytes is None:
        return None
    if not checksum.counts_up(committed.actions, rearranges=committed.rearranges):
        return None
    before = _before(storage, committed)
    after = None if before is None else checksum.next_summary(before, committed.actions)
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
    if previous is None or previous.version != committed.version - 1 or not previous.is_loaded:
        return None
    import pyarrow.compute as pc

    files = previous.live_files()
    domains: dict[str, DomainMetadata] = {
        name: {"domain": name, "configuration": text, "removed": False}
        for name, text in previous.domains.items()
    }
    # When each transaction was last seen is not part of the snapshot, so they are left unknown if there are any.
    return Summary(
        files.num_rows, pc.sum(files.table["size"]).as_py() or 0, None if previous.txns else {}, domains
    )


# ---------------------------------------------------------------- checkpoint and clean-up


def _is_checkpoint_due(storage: Storage, committed: Committed) -> bool:
    if operation_named(committed.operation or "").checkpoints:
        return True
    interval = CHECKPOINT_INTERVAL.of(committed.state.properties)
    return committed.version > 0 and committed.version % interval == 0


def _write_checkpoint(storage: Storage, committed: Committed) -> bool:
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

    if not storage.allows(Maintenance.LOG_CLEANUP):
        return False
    clean_up(storage)
    return True


# ---------------------------------------------------------------- manifests


def _update_manifests(storage: Storage, committed: Committed) -> bool:
    if not SYMLINK_MANIFEST_ENABLED.of(committed.state.properties):
        return False
    from delta_ds.kernel.log.snapshot import open_snapshot

    names = {name for action in committed.actions for name in action}
    if not (committed.removed_files or names & {"add", "remove"}):
        return False
    everything = committed.version == 0 or bool(committed.removed_files) or "metaData" in names
    # As it is now: another commit may have followed, whose manifests must not be undone.
    symlink_manifest.update_after(open_snapshot(storage), committed.actions, everything=everything)
    return True


def _convert(storage: Storage, committed: Committed) -> bool:
    if not writes_metadata(committed.state.properties):
        return False
    from delta_ds.kernel.transaction.iceberg.conversion import convert

    timestamp = committed.in_commit_timestamp
    if timestamp is None:
        timestamp = storage.status(commit_path(committed.version)).modified_ms
    return convert(storage, committed.state, timestamp)


def write_checkpoint(storage: Storage, segment: LogSegment, *, now_ms: int | None = None) -> CheckpointInfo:
    """Write a checkpoint of the segment's version; see `log.checkpoint_write.writer.write_checkpoint`.

    Where the checkpoint that the segment starts from cannot be read, an older one serves.

    Raises
    ------
    UnsupportedFeatureError
        The version's protocol is not supported: its state could hold more than is understood (CPR-W-01).
    StorageError
        A commit that a coordinator ratified cannot be put into the log, which comes first (CAT-W-04).
    """
    storage.publish_up_to(segment.version)

    def columns(state: TableState) -> CheckpointColumns:
        state.check_writable()
        check_managed(state.protocol, storage)
        return typed_columns(state)

    rejected: list[Checkpoint] = []
    while True:
        try:
            return writer.write_checkpoint(storage, segment, columns, now_ms=now_ms)
        except UnreadableCheckpointError as error:
            if segment.checkpoint is None:
                raise
            CHECKPOINT_PASSED_OVER.log(table=storage.url, version=segment.checkpoint.version, reason=error)
            rejected.append(segment.checkpoint)
        segment = find_segment(storage, segment.version, rejected)
