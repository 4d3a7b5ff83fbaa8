"""The conflict checker: may a transaction follow a commit that came first, and as what?

The checks of one winning commit, in delta-spark's order: where several would fire, the first one names the
exception. What can be adopted or rebased is written into the pending transaction; nothing else is.

Source: conflict-matrix sections 3 to 5 and 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from delta_ds.conditions.transaction import (
    CONCURRENT_APPEND,
    CONCURRENT_DELETE_DELETE,
    CONCURRENT_DELETE_READ,
    CONCURRENT_DOMAIN,
    CONCURRENT_TRANSACTION,
    CONCURRENT_WRITE,
    DELETED_DATA_OF_TABLE,
    FEATURE_DROP_LEFT_TRACES,
    FEATURE_DROPPED_MEANWHILE,
    METADATA_CHANGED,
    METADATA_CHANGED_BY_BOTH,
    PROTOCOL_CHANGED,
    TABLE_CREATED_BY_BOTH,
)
from delta_ds.exceptions import ConcurrentWriteException
from delta_ds.kernel.base.arrow_buffers import texts
from delta_ds.kernel.base.json_text import parse_json
from delta_ds.kernel.format.actions import CLUSTERING_DOMAIN
from delta_ds.kernel.format.features import DOMAIN_METADATA, ROW_TRACKING
from delta_ds.kernel.format.properties import CHECKPOINT_PROTECTION_BEFORE_VERSION
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.format.table_state import check_managed, check_writable
from delta_ds.kernel.storage.uri import canonical_path
from delta_ds.kernel.transaction import append_conflicts, row_ids
from delta_ds.kernel.transaction.append_conflicts import first_of_interest
from delta_ds.kernel.transaction.feature_removal import removed_features, trace_of
from delta_ds.kernel.transaction.pending import ROW_TRACKING_DOMAIN, IsolationLevel, Pending, stamp_after
from delta_ds.kernel.transaction.reads import ReadPredicate, partition_values
from delta_ds.kernel.transaction.row_level import check_and_rebase_rows, goes_by_rows
from delta_ds.kernel.transaction.winning_commit import WinningCommit, conflict, file_conflict
from delta_ds.kernel.transaction.winning_rows import WantedRows, pieces_of
from delta_ds.records import replace


def check_and_rebase(pending: Pending, winning_commit: WinningCommit) -> None:
    """Check a transaction against one commit that it has not read, and rebase it on top.

    Parameters
    ----------
    pending
        Comes out changed: to be committed as the version after the winning commit, or of the next winning commit.
    winning_commit
        The commit of the version that `pending` wanted.

    Raises
    ------
    DeltaConcurrentModificationException
        One of its children, or with the condition `DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL`.
    UnsupportedFeatureError
        The winning commit upgraded the table to what this package does not support.
    CommitFailedError
        A file lacks what row tracking needs, or row tracking is switched on and off at once.
    """
    pending.version = winning_commit.version + 1
    _check_protocol(pending, winning_commit)
    _check_metadata(pending, winning_commit)
    _check_domains(pending, winning_commit)
    _check_app_ids(pending, winning_commit)
    row_ids.resolve_backfill(pending, winning_commit)
    row_ids.rebase(pending, winning_commit)
    _move_type_changes(pending, winning_commit)
    if goes_by_rows(pending, winning_commit):
        check_and_rebase_rows(pending, winning_commit)
    else:
        _check_appends(pending, winning_commit)
        _check_deleted_reads(pending, winning_commit)
        _check_deleted_twice(pending, winning_commit)
    before = pending.snapshot.table_state if pending.snapshot is not None else None
    if before is not None:
        before = before.after(winning_commit.version, winning_commit.protocol, winning_commit.metadata)
    stamp_after(pending, winning_commit.timestamp, before)


def cannot_repeat(pending: Pending, winning_commit: WinningCommit) -> ConcurrentWriteException:
    """The error of a command that cannot be rebased and lost its version."""
    return conflict(CONCURRENT_WRITE, pending, winning_commit)


# --- protocol


def _check_protocol(pending: Pending, winning_commit: WinningCommit) -> None:
    protocol = winning_commit.protocol
    before = pending.snapshot.protocol if pending.snapshot is not None else None
    if protocol is not None:
        check_writable(protocol, {}, pending.table, StructType())
        check_managed(protocol, pending.storage)
        if pending.new_protocol is not None:
            condition = TABLE_CREATED_BY_BOTH if winning_commit.version == 0 else PROTOCOL_CHANGED
            raise conflict(condition, pending, winning_commit)
        removed = removed_features(before, protocol) if before is not None else []
        if removed:
            raise conflict(FEATURE_DROPPED_MEANWHILE, pending, winning_commit, features=removed)
        pending.protocol = protocol
    if before is not None and pending.new_protocol is not None:
        dropped = removed_features(before, pending.new_protocol)
        if dropped:
            _check_dropping(pending, winning_commit, dropped)


def _check_dropping(pending: Pending, winning_commit: WinningCommit, dropped: Sequence[str]) -> None:
    """Check that the winning commit left no trace of a feature that is being dropped."""
    if ROW_TRACKING.name in dropped:
        row_ids.strip_row_ids(pending, winning_commit)
    else:
        from delta_ds.kernel.log.snapshot import open_snapshot

        snapshot = open_snapshot(winning_commit.storage, winning_commit.version)
        for feature in dropped:
            trace = trace_of(feature, snapshot)
            if trace is not None:
                raise conflict(
                    FEATURE_DROP_LEFT_TRACES, pending, winning_commit, feature=feature, trace=trace
                )
    new = pending.new_metadata
    if new is not None and new.configuration.get(CHECKPOINT_PROTECTION_BEFORE_VERSION.name) == str(
        winning_commit.version
    ):
        moved = {**new.configuration, CHECKPOINT_PROTECTION_BEFORE_VERSION.name: str(pending.version)}
        pending.new_metadata = pending.metadata = replace(new, configuration=moved)


# --- metadata, domains, applications


def _check_metadata(pending: Pending, winning_commit: WinningCommit) -> None:
    after = winning_commit.metadata
    if after is None:
        return
    if pending.new_metadata is not None:
        raise conflict(METADATA_CHANGED_BY_BOTH, pending, winning_commit)
    if winning_commit.has_tag(append_conflicts.IDENTITY_TAG):
        pending.metadata = after
        return
    now = replace(pending.state, metadata=after)
    problem = append_conflicts.incompatible_difference(pending.state, now)
    if problem is not None:
        raise conflict(METADATA_CHANGED, pending, winning_commit, difference=problem)
    if append_conflicts.enables_row_tracking(pending.state, now):
        pending.tag(row_ids.NOT_PRESERVED_TAG, "false")
    pending.metadata = after


def _check_domains(pending: Pending, winning_commit: WinningCommit) -> None:
    if not pending.protocol.supports(DOMAIN_METADATA):
        return
    for domain in pending.domains:
        if domain in winning_commit.domains and domain != ROW_TRACKING_DOMAIN:
            raise conflict(CONCURRENT_DOMAIN, pending, winning_commit, domain=domain)
    body = winning_commit.domains.get(CLUSTERING_DOMAIN)
    if body is not None and pending.operation.replaces_table:
        pending.domains = {CLUSTERING_DOMAIN: {**body, "removed": True}, **pending.domains}


def _check_app_ids(pending: Pending, winning_commit: WinningCommit) -> None:
    both = sorted(pending.reads.app_ids & winning_commit.app_ids)
    if both:
        raise conflict(CONCURRENT_TRANSACTION, pending, winning_commit, appId=both[0])


def _move_type_changes(pending: Pending, winning_commit: WinningCommit) -> None:
    """`tableVersion` in type changes of this commit names the version it will be (preview tables only)."""
    new = pending.new_metadata
    if new is None or '"tableVersion"' not in new.schema_string:
        return
    import json

    def moved(node: Any) -> Any:
        if isinstance(node, list):
            return [moved(item) for item in node]
        if not isinstance(node, dict):
            return node
        if node.get("tableVersion") == winning_commit.version and "toType" in node:
            return {**node, "tableVersion": pending.version}
        return {key: moved(value) for key, value in node.items()}

    text = json.dumps(moved(parse_json(new.schema_string)), separators=(",", ":"), ensure_ascii=False)
    pending.new_metadata = pending.metadata = replace(new, schema_string=text)


# --- files


def _check_appends(pending: Pending, winning_commit: WinningCommit) -> None:
    checked = pending.operation.checked_for_appends and winning_commit.checked_for_appends
    if pending.snapshot is None or pending.blind or not checked:
        return
    if pending.level is IsolationLevel.SNAPSHOT:
        return
    tolerated = pending.level is IsolationLevel.WRITE_SERIALIZABLE and pending.new_metadata is None
    if tolerated and winning_commit.is_blind_append:
        return
    # The rows of a table whose description changes too are not looked into.
    look = pending.looks_into_files and pending.new_metadata is None
    row = first_of_interest(
        winning_commit.adds,
        pending.reads,
        pending.snapshot,
        use_statistics=pending.use_statistics,
        first_with_rows=partial(_first_with_rows, pending, winning_commit) if look else None,
    )
    if row is None:
        return
    table = winning_commit.adds.table
    values = table["partitionValues"][row].as_py() if "partitionValues" in table.column_names else None
    raise file_conflict(CONCURRENT_APPEND, pending, winning_commit, table["path"][row].as_py(), values)


def _first_with_rows(
    pending: Pending, winning_commit: WinningCommit, predicate: ReadPredicate, rows: Sequence[int]
) -> int | None:
    """The first of some added files that holds rows of a predicate, or may."""
    assert pending.snapshot is not None
    files, partitions = winning_commit.adds, pending.snapshot.physical_partition_columns
    pieces = pieces_of(files, rows, partitions)
    hit = WantedRows(pending, predicate).first(pieces)
    if hit is None:
        return None
    return next(row for row, piece in zip(rows, pieces, strict=True) if piece.path == hit[0])


def _check_deleted_reads(pending: Pending, winning_commit: WinningCommit) -> None:
    snapshot = pending.snapshot
    if snapshot is None or pending.reads.nothing or not winning_commit.removed_paths:
        return
    path = pending.reads.first_read(_contested_files(pending, winning_commit))
    if path is not None:
        values = partition_values(snapshot, path)
        raise file_conflict(CONCURRENT_DELETE_READ, pending, winning_commit, path, values)
    if pending.reads.whole_table:
        path = winning_commit.removed_paths[0]
        raise file_conflict(DELETED_DATA_OF_TABLE, pending, winning_commit, path, None)


def _contested_files(pending: Pending, winning_commit: WinningCommit) -> list[str]:
    """The files that the winning commit removed and this transaction must have left alone, by canonical path.

    delta-spark compares the texts of the log, so that a file removed under another spelling is no conflict there.
    It is one here as soon as its rows could come back or be reported twice: not where this transaction, too,
    does nothing but remove.
    """
    paths, spellings = winning_commit.removed_paths, winning_commit.removed_spellings
    if paths == spellings or pending.adds or pending.changes or pending.snapshot is None:
        return paths
    import pyarrow.compute as pc

    live = pending.snapshot.live_files()
    is_removed = pc.is_in(live.canonical_paths, value_set=texts(paths))
    spelled = dict(
        zip(
            live.canonical_paths.filter(is_removed).to_pylist(),
            live.table["path"].filter(is_removed).to_pylist(),
            strict=True,
        )
    )
    return [path for path, text in zip(paths, spellings, strict=True) if spelled.get(path, text) == text]


def _check_deleted_twice(pending: Pending, winning_commit: WinningCommit) -> None:
    if pending.only_adds or not winning_commit.removed_paths:
        return
    import pyarrow.compute as pc

    contested = _contested_files(pending, winning_commit)
    own: dict[str, Any] = {
        canonical_path(str(body.get("path")), pending.storage): body.get("partitionValues")
        for body in pending.removes
    }
    for removes in pending.live_removes:
        paths = removes.canonical_paths
        for path in paths.filter(pc.is_in(paths, value_set=texts(contested))).to_pylist():
            own.setdefault(path, partition_values(removes.snapshot, path))
    path = next((path for path in contested if path in own), None)
    if path is not None:
        raise file_conflict(CONCURRENT_DELETE_DELETE, pending, winning_commit, path, own[path])
