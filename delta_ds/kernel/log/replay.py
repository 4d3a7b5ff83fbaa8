"""Log replay: the files of a segment to the state of a version.

Protocol and metadata alone (`load_table_state`) are found newest first, without touching files; everything
(`load_state`) is read oldest first, and can continue an older state.

Source: PROTOCOL.md, "Action Reconciliation"; protocol-checklist REC-*.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

from delta_ds.conditions.protocol import UNSUPPORTED_FORMAT
from delta_ds.exceptions import LogError
from delta_ds.kernel.format.actions import (
    SINGLE_ACTIONS,
    Action,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
)
from delta_ds.kernel.format.schema.field_metadata import PHYSICAL_NAME
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.checkpoint import (
    damage_as_unreadable,
    inline_actions,
    read_head,
    read_single_actions,
)
from delta_ds.kernel.log.checkpoint_adds import KeptColumns
from delta_ds.kernel.log.checkpoint_files import UnreadableCheckpointError
from delta_ds.kernel.log.commit import (
    Commit,
    full_name,
    in_batches,
    parse_commits,
    read_commits,
    read_in_batches,
)
from delta_ds.kernel.log.file_actions import actions_schema, working_schema
from delta_ds.kernel.log.json_actions import parse_file_actions
from delta_ds.kernel.log.live_files import FileFilter, LiveFiles
from delta_ds.kernel.log.parts import Part, parts_of
from delta_ds.kernel.log.reconcile import OlderFiles, align, files_of_tables, reconcile, select, untouched
from delta_ds.kernel.log.segment import LogSegment, find_segment, with_fallback
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass, field, replace

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.base.work import Phase
    from delta_ds.kernel.log.checkpoint_files import CheckpointFiles
    from delta_ds.kernel.log.filenames import LogFile


# Commits read at once, to look for protocol and metadata from the newest one back.
_HEADER_COMMITS = 64
# From so many commits on a replay is work that is told of.
_LONG_LOG = 500
# What commits after a checkpoint say of no more files than this is kept for the next selection.
_KEPT_FILES = 100_000


# By path: the actions of a commit that are not file actions.
FoundActions = dict[str, list[Action]]


@dataclass(frozen=True, slots=True)
class State:
    """The replayed state of a version: `table` with its metadata domains."""

    table: TableState
    txns: Mapping[str, int]
    files: LiveFiles
    partition_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Base:
    """The state of an older version (or this one) to start from."""

    version: int
    state: State


@dataclass(slots=True)
class SingleActions:
    """The reconciled actions that are not file actions, and every metadata seen on the way."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    txns: dict[str, int] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    partition_columns: list[str] = field(default_factory=list)

    def apply(self, actions: Sequence[Action], where: str) -> None:
        """Take in the actions of one file; files come in order of version."""
        for action in actions:
            protocol, metadata = action.get("protocol"), action.get("metaData")
            if protocol is not None:
                self.protocol = Protocol.from_action(protocol, where)
            if metadata is not None:
                self.metadata = Metadata.from_action(metadata, where)
                self._note_partition_columns(self.metadata)
            self._apply_txn(action.get("txn"))
            self._apply_domain(action.get("domainMetadata"))

    def _apply_txn(self, txn: SetTransaction | None) -> None:
        if txn is not None:
            self.txns[txn["appId"]] = txn["version"]

    def _apply_domain(self, domain: DomainMetadata | None) -> None:
        if domain is None:
            return
        if domain.get("removed"):
            self.domains.pop(domain["domain"], None)
        else:
            self.domains[domain["domain"]] = domain.get("configuration") or ""

    def _note_partition_columns(self, metadata: Metadata) -> None:
        if not metadata.partition_columns:
            return
        # Keys are physical under mapping; the protocol may come later in the file, so note both spellings.
        names = [*metadata.partition_columns]
        for column in metadata.partition_columns:
            found = metadata.schema.find(column)
            physical = found.metadata.get(PHYSICAL_NAME) if found else None
            if isinstance(physical, str):
                names.append(physical)
        self.partition_columns += [n for n in dict.fromkeys(names) if n not in self.partition_columns]


def load_table_state(
    storage: Storage, segment: LogSegment, base: Base | None = None, found: FoundActions | None = None
) -> TableState:
    """Protocol and metadata of a version, newest first, reading no more than needed.

    Parameters
    ----------
    base
        A state that this segment continues: only the commits after it are read.
    found
        Takes what was found on the way, for `load_state`.

    Raises
    ------
    LogError
        The log holds no protocol or no metadata (condition DELTA_STATE_RECOVER_ERROR).
    """
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    newer = [file for file in segment.commits if base is None or file.end > base.version]
    for batch in reversed(list(in_batches(newer, _HEADER_COMMITS))):
        if protocol is not None and metadata is not None:
            break
        for commit in reversed(read_commits(storage, batch)):
            commit.check_whole()
            actions = commit.find(*SINGLE_ACTIONS)
            if found is not None:
                found[commit.file.path] = actions
            for action in reversed(actions):
                if protocol is None and isinstance(action.get("protocol"), Mapping):
                    protocol = Protocol.from_action(action["protocol"], commit.where)
                if metadata is None and isinstance(action.get("metaData"), Mapping):
                    metadata = Metadata.from_action(action["metaData"], commit.where)
    if base is not None:
        protocol, metadata = protocol or base.state.table.protocol, metadata or base.state.table.metadata
    elif segment.checkpoint is not None and (protocol is None or metadata is None):
        for action in read_single_actions(storage, segment.checkpoint, ("protocol", "metaData")):
            origin = full_name(storage, segment.checkpoint.files[0])
            if protocol is None and isinstance(action.get("protocol"), Mapping):
                protocol = Protocol.from_action(action["protocol"], origin)
            if metadata is None and isinstance(action.get("metaData"), Mapping):
                metadata = Metadata.from_action(action["metaData"], origin)
    return table_state(storage, segment.version, protocol, metadata)


def table_state(
    storage: Storage,
    version: int,
    protocol: Protocol | None,
    metadata: Metadata | None,
    domains: Mapping[str, str] | None = None,
) -> TableState:
    """What was found of a version as one record, or the error that part of it is missing or not Parquet."""
    for name, action in (("protocol", protocol), ("metadata", metadata)):
        if action is None:
            raise LogError(
                f"The {name} of your Delta table could not be recovered while Reconstructing version: {version}. Did "
                f"you manually delete files in the _delta_log directory? No file of the log of {storage.url} holds it"
            )
    assert protocol is not None and metadata is not None
    if metadata.provider != "parquet":
        raise UNSUPPORTED_FORMAT(version=version, table=storage.url, provider=metadata.provider)
    return TableState(storage.url, version, protocol, metadata, domains)


def load_state(
    storage: Storage,
    segment: LogSegment,
    base: Base | None = None,
    found: FoundActions | None = None,
) -> State:
    """Replay a segment.

    Parameters
    ----------
    base
        A state that this segment continues (incremental update): only the commits after it are read.
    found
        What `load_table_state` found in the same files.

    Raises
    ------
    CorruptLogFileError, LogError
        As `load_table_state`; also for file actions that cannot be read.
    """
    if base is None:
        head = load_head(storage, segment, found)
        older = head.older
        if older is None:
            return head.state
        with closing(older.checkpoint) as opened, ThreadPoolExecutor(os.cpu_count()) as workers:
            parts = parts_of(storage, opened, workers.map, leave_open=True)
            tables = list(select(older, parts, None, workers.map))
        return with_older(head, tables, None, older.checkpoint)
    before = base.state
    single = SingleActions(
        before.table.protocol,
        before.table.metadata,
        dict(before.txns),
        dict(before.table.domains or {}),
        list(before.partition_columns),
    )
    newer = [file for file in segment.commits if file.end > base.version]
    table, adds, touched = _replay(storage, segment.version, single, newer, [], found, keys=True)
    columns = tuple(single.partition_columns)
    # In one read: rows count in this very checkpoint, and another thread may find the files in another one.
    stats, row, checkpoint = before.files.parts
    files = before.files.table.append_column("stats", stats).append_column("row", row)
    older = untouched(align(files, working_schema(columns)), touched, storage)
    return _state(storage, table, single, files_of_tables(storage, [older, *adds], checkpoint, columns))


class Selections:
    """What selections from one version have in common, kept for the next one. Another process starts with nothing."""

    def __init__(self) -> None:
        self._columns: KeptColumns | None = None
        self._head: ReplayHead | None = None
        self._parts: list[Part] | None = None

    def __reduce__(self) -> tuple[type[Selections], tuple[()]]:
        return Selections, ()

    def select_files(
        self, storage: Storage, segment: LogSegment, found: FoundActions, keep: FileFilter
    ) -> State | None:
        """The state of a segment with the live files that a filter keeps, in log order.

        Parameters
        ----------
        segment, found
            The same each time; what `load_table_state` found in the same files.
        keep
            See `select`.

        Returns
        -------
        State or None
            None where there is no checkpoint in Parquet to go through: then `load_state` is the way.

        Raises
        ------
        UnreadableCheckpointError
            A file of the checkpoint cannot be read; the next selection begins anew.
        LogError
            As `load_state`.
        """
        if segment.checkpoint is None:
            return None
        head, parts = self._head, self._parts
        try:
            if head is None:
                head = load_head(storage, segment, found)
            if head.older is None:
                return None
            with closing(head.older.checkpoint) as checkpoint, ThreadPoolExecutor(os.cpu_count()) as workers:
                parts = parts or parts_of(storage, checkpoint, workers.map, leave_open=True)
                self._columns = self._columns or KeptColumns()
                older = list(select(head.older, parts, keep, workers.map, self._columns))
        except UnreadableCheckpointError:
            self._head = self._parts = None
            raise
        if head.state.files.num_rows <= _KEPT_FILES:
            self._head, self._parts = head, parts
        return with_older(head, older, keep, head.older.checkpoint)


def with_older(
    head: ReplayHead,
    older: Iterable[pa.Table],
    keep: FileFilter | None = None,
    checkpoint: CheckpointFiles | None = None,
) -> State:
    """The state of a version with what `select` found of its older files, in log order.

    Parameters
    ----------
    keep
        The filter that `select` had, for the files of the commits.
    checkpoint
        What the rows of the older files count in, for their statistics; None where they have come with them.
    """
    recent = head.state.files
    if keep is not None and recent.num_rows:
        recent = recent.take(keep(recent))
    tables = [*older, recent.working_table()]
    files = files_of_tables(recent.storage, tables, checkpoint, head.state.partition_columns)
    files.again = recent.again
    return replace(head.state, files=files)


def files_again(storage: Storage, version: int) -> LiveFiles:
    """The live files of a version that was read before, from what the log holds of it now.

    Raises
    ------
    LogError, VersionNotFoundError
        The log does not hold it any more, or is damaged.
    """
    segment = find_segment(storage, version)
    return with_fallback(storage, segment, lambda found: load_state(storage, found))[1].files


@dataclass(frozen=True, slots=True)
class ReplayHead:
    """A version as its log has it but for the file actions in the Parquet files of its checkpoint.

    Attributes
    ----------
    state
        Its files are those of the commits after the checkpoint.
    older
        The other files; None for none.
    """

    state: State
    older: OlderFiles | None


def load_head(storage: Storage, segment: LogSegment, found: FoundActions | None = None) -> ReplayHead:
    """Replay a segment but for the file actions of its checkpoint, which `select` replays in parts.

    Parameters
    ----------
    found
        What `load_table_state` found in the same files.

    Raises
    ------
    CorruptLogFileError, LogError
        As `load_state`.
    """
    single = SingleActions()
    checkpoint, parsed = _read_checkpoint_head(storage, segment, single)
    table, adds, touched = _replay(
        storage, segment.version, single, segment.commits, parsed, found, keys=checkpoint is not None
    )
    columns = tuple(single.partition_columns)
    state = _state(storage, table, single, files_of_tables(storage, adds, None, columns))
    return ReplayHead(
        state, None if checkpoint is None else OlderFiles(storage, checkpoint, touched, columns)
    )


def _state(storage: Storage, table: TableState, single: SingleActions, files: LiveFiles) -> State:
    files.again = functools.partial(files_again, storage, table.version)
    return State(table, single.txns, files, tuple(single.partition_columns))


def _replay(
    storage: Storage,
    version: int,
    single: SingleActions,
    newer: Sequence[LogFile],
    parsed: list[pa.Table],
    found: FoundActions | None,
    *,
    keys: bool,
) -> tuple[TableState, list[pa.Table], pa.StringArray]:
    """Take in some commits, after file actions that are parsed; the table as they leave it, and see `reconcile`."""
    parsed += _read_newer(storage, newer, single, found or {})
    table = table_state(storage, version, single.protocol, single.metadata, single.domains)
    return table, *reconcile(storage, parsed, single.partition_columns, keys=keys)


def _read_checkpoint_head(
    storage: Storage, segment: LogSegment, single: SingleActions
) -> tuple[CheckpointFiles | None, list[pa.Table]]:
    """Where the file actions of the segment's checkpoint are, or the file actions where they stand in its manifest."""
    if segment.checkpoint is None:
        return None, []
    origin = full_name(storage, segment.checkpoint.files[0])
    actions, checkpoint = read_head(storage, segment.checkpoint)
    single.apply(actions, origin)
    manifest = inline_actions(storage, segment.checkpoint) if checkpoint is None else None
    if manifest is None:
        return checkpoint, []
    # Values of partition columns that only come later cannot be in it, nor in the commits.
    with damage_as_unreadable():
        return None, parse_file_actions([(origin, manifest)], actions_schema(single.partition_columns))


def _read_newer(
    storage: Storage, newer: Sequence[LogFile], single: SingleActions, found: FoundActions
) -> list[pa.Table]:
    if len(newer) < _LONG_LOG:
        return list(_parse_newer(storage, newer, single, found, None))
    from delta_ds.kernel.base.work import Work

    with (
        Work("REPLAY", storage.url) as work,
        work.phase("commits", total=len(newer), unit="commits") as phase,
    ):
        return list(_parse_newer(storage, newer, single, found, phase))


def _parse_newer(
    storage: Storage,
    newer: Sequence[LogFile],
    single: SingleActions,
    found: FoundActions,
    phase: Phase | None,
) -> Iterator[pa.Table]:
    for commits in read_in_batches(storage, newer):
        _take_in(commits, single, found)
        yield from parse_commits(commits, actions_schema(single.partition_columns))
        if phase is not None:
            phase.advance(len(commits))


def _take_in(commits: Sequence[Commit], single: SingleActions, found: FoundActions) -> None:
    """Apply the single actions of some commits; returns (name, bytes) of each for the file actions."""
    for commit in commits:
        commit.check_whole()
        known = found.get(commit.file.path)
        single.apply(commit.find(*SINGLE_ACTIONS) if known is None else known, commit.where)
