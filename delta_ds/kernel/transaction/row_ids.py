"""Row tracking at commit: fresh row ids and commit versions, reassigned after a rebase.

Source: PROTOCOL.md, "Row Tracking"; protocol-checklist RT-W-01 to 05, 11; conflict-matrix section 5.
"""

from __future__ import annotations

from typing import TypeVar, cast

from delta_ds.conditions.tables import ROW_TRACKING_ENABLED_AND_SUSPENDED
from delta_ds.conditions.transaction import (
    ROW_ID_ASSIGNMENT_WITHOUT_STATS,
    ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL,
)
from delta_ds.kernel.format.actions import AddFile, RemoveFile, counted_rows, without
from delta_ds.kernel.format.features import ROW_TRACKING
from delta_ds.kernel.format.properties import ROW_TRACKING_SUSPENDED
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.storage.uri import canonical_path
from delta_ds.kernel.transaction.pending import ROW_TRACKING_DOMAIN, Pending
from delta_ds.kernel.transaction.winning_commit import WinningCommit, parse_mark

NOT_PRESERVED_TAG = "delta.rowTracking.preserved"

_ROW_ID_FIELDS = ("baseRowId", "defaultRowCommitVersion")
_Body = TypeVar("_Body", AddFile, RemoveFile)


def is_suspended(state: TableState) -> bool:
    """Whether new files get no row ids although the feature is supported.

    Raises
    ------
    UnsupportedOperationError
        Row tracking is enabled and suspended at once, which no writer can honour (RT-W-05).
    """
    suspended = ROW_TRACKING_SUSPENDED.of(state.properties)
    if suspended and state.enabled(ROW_TRACKING):
        raise ROW_TRACKING_ENABLED_AND_SUSPENDED(table=state.table)
    return suspended


def assign(pending: Pending) -> None:
    """Give the files of the first attempt their row ids and commit version, where the protocol has row tracking.

    Files that bring theirs along keep them, and nobody else gets these: RESTORE can bring ids back of which the mark
    knows nothing, as the feature was dropped since. While row tracking is suspended none has any.

    Raises
    ------
    CommitFailedError
        A file has no `numRecords` (RT-W-11).
    """
    before = pending.state if pending.snapshot is None else pending.snapshot.table_state
    if is_suspended(before):
        pending.adds = [without(add, *_ROW_ID_FIELDS) for add in pending.adds]
        return
    recorded = _mark_read(pending)
    mark = pending.read_mark = max([recorded, *map(_last_id, pending.adds)])
    adds = []
    for add in pending.adds:
        fresh: AddFile = {}
        if add.get("baseRowId") is None:
            fresh["baseRowId"] = mark + 1
            mark += num_records(add, pending.table)
        if add.get("defaultRowCommitVersion") is None:
            fresh["defaultRowCommitVersion"] = pending.version
        adds.append({**add, **fresh} if fresh else add)
    pending.adds = adds
    if mark != recorded:
        pending.high_water_mark = mark


def _last_id(add: AddFile) -> int:
    """The highest row id that a file brings along; -1 for none."""
    first = add.get("baseRowId")
    return -1 if first is None else first + max(counted_rows(add.get("stats")) or 0, 1) - 1


def _mark_read(pending: Pending) -> int:
    if pending.snapshot is None:
        return -1
    configuration = pending.snapshot.domains.get(ROW_TRACKING_DOMAIN)
    if configuration is None:
        return -1
    mark = parse_mark(configuration, f"version {pending.snapshot.version} of {pending.table}")
    return -1 if mark is None else mark


def num_records(add: AddFile, table: str) -> int:
    """The rows of a file by its statistics, deleted ones included.

    Raises
    ------
    CommitFailedError
        The statistics do not say.
    """
    count = counted_rows(add.get("stats"))
    if count is None:
        raise ROW_ID_ASSIGNMENT_WITHOUT_STATS(path=add.get("path"), table=table)
    return count


def rebase(pending: Pending, winning_commit: WinningCommit) -> None:
    """Move the row ids and commit versions assigned here past those of the winning commit.

    The new mark is recorded even if nothing was given out.

    Raises
    ------
    CommitFailedError
        A file has no `numRecords`.
    """
    if not pending.protocol.supports(ROW_TRACKING) or is_suspended(pending.state):
        return
    won = winning_commit.high_water_mark
    mark = pending.read_mark if won is None else max(pending.read_mark, won)
    before, pending.read_mark = pending.read_mark, mark
    adds = []
    for add in pending.adds:
        changed: AddFile = {}
        first = add.get("baseRowId")
        if first is None or first > before:
            changed["baseRowId"] = mark + 1
            mark += num_records(add, pending.table)
        if add.get("defaultRowCommitVersion") in (None, winning_commit.version):
            changed["defaultRowCommitVersion"] = winning_commit.version + 1
        adds.append({**add, **changed} if changed else add)
    pending.adds = adds
    pending.high_water_mark = mark


def resolve_backfill(pending: Pending, winning_commit: WinningCommit) -> None:
    """Resolve a backfill, or the removal of row ids, against an ordinary commit.

    Raises
    ------
    CommitFailedError
        One gives row ids to all files while the other takes them away.
    """
    if not pending.protocol.supports(ROW_TRACKING):
        return
    if pending.is_unbackfill:
        if winning_commit.is_backfill:
            raise ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL(
                version=winning_commit.version, table=pending.table, operation=winning_commit.operation
            )
        strip_row_ids(pending, winning_commit)
        return
    if pending.is_backfill:
        _give_up_files(pending, {path for _, path, _ in winning_commit.file_actions()})
    if winning_commit.is_backfill:
        _copy_row_ids(pending, winning_commit)


def strip_row_ids(pending: Pending, winning_commit: WinningCommit) -> None:
    """Add files of the winning commit once more without row ids; its other files stay as they are."""
    paths: set[str] = set()
    again: list[AddFile] = []
    for name, path, body in winning_commit.file_actions():
        paths.add(path)
        ids = (body.get("baseRowId"), body.get("defaultRowCommitVersion"))
        if name == "add" and ids != (None, None):
            add = cast("AddFile", without(body, *_ROW_ID_FIELDS))
            add["dataChange"] = False
            again.append(add)
    _give_up_files(pending, paths)
    pending.adds = [*pending.adds, *again]


def _give_up_files(pending: Pending, paths: set[str]) -> None:
    pending.adds = [add for add in pending.adds if _canonical(add, pending) not in paths]
    pending.reads.excused |= paths


def _canonical(body: AddFile | RemoveFile, pending: Pending) -> str:
    return canonical_path(str(body.get("path")), pending.storage)


def _copy_row_ids(pending: Pending, winning_commit: WinningCommit) -> None:
    given = {path: body for name, path, body in winning_commit.file_actions() if name == "add"}

    def with_ids(body: _Body) -> _Body:
        source = given.get(_canonical(body, pending))
        if source is None:
            return body
        return cast("_Body", {**body, **{key: source.get(key) for key in _ROW_ID_FIELDS}})

    pending.adds = [with_ids(add) for add in pending.adds]
    if any(removes for removes in pending.live_removes):
        # One by one from here on: the columns of the snapshot do not know the new row ids.
        pending.removes = [*pending.removes, *(b for r in pending.live_removes for b in r.bodies())]
        pending.live_removes = []
    pending.removes = [with_ids(remove) for remove in pending.removes]
