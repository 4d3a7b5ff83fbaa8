"""The whole reconciled state of a version as a checkpoint holds it, tombstones and transactions included.

The files are walked newest first: what a newer commit said of a file is remembered by key, so that each batch
of an older one gives only what still holds, and neither all commits nor all files are in memory at once. The
previous checkpoint comes last, a few thousand rows at a time.

Source: PROTOCOL.md, "Action Reconciliation", "Checkpoints"; protocol-checklist REC-*, CKP-R-01, CKP-W-13, CKP-W-14.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from delta_ds.events.log import TAGS_PARSED_SLOWLY
from delta_ds.kernel.base.arrow_buffers import field_of, flags, integers, mask
from delta_ds.kernel.base.nested_arrays import map_of_struct, plain_map, split_at_changes
from delta_ds.kernel.format.actions import (
    SINGLE_ACTIONS,
    Action,
    DomainMetadata,
    Metadata,
    MetadataBody,
    Protocol,
    ProtocolBody,
    SetTransaction,
    without_nulls,
)
from delta_ds.kernel.format.properties import DELETED_FILE_RETENTION, SET_TRANSACTION_RETENTION
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.checkpoint import (
    damage_as_unreadable,
    inline_actions,
    locate_files,
    read_head,
)
from delta_ds.kernel.log.checkpoint_files import CheckpointFiles, CheckpointReplacedError
from delta_ds.kernel.log.checkpoint_write.schema import field_type, read_checkpoint_rows, text_map
from delta_ds.kernel.log.commit import Commit, full_name, in_batches, read_commits, read_in_batches
from delta_ds.kernel.log.file_actions import file_keys, keys_of_files
from delta_ds.kernel.log.json_actions import iterate_bodies, parse_file_actions
from delta_ds.kernel.log.live_files import with_known_sizes
from delta_ds.kernel.log.reconcile import join_keys, keys_at, newest_rows
from delta_ds.kernel.log.replay import SingleActions, table_state
from delta_ds.kernel.log.segment import LogSegment, with_fallback
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass, field

# Commits of this many bytes together are read once and kept; longer logs are read a second time for their files.
_KEPT_BYTES = 32 << 20
# So often a checkpoint that is written again meanwhile is begun anew.
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Expiry:
    """The times before which tombstones and application transactions expire, ms since 1970.

    `txns` is None where transactions are kept for ever.
    """

    removes: int
    txns: int | None

    @classmethod
    def of(cls, metadata: Metadata, now_ms: int) -> Expiry:
        """The expiry by the table's properties at a point in time."""
        kept = DELETED_FILE_RETENTION.of(metadata.configuration)
        txns = SET_TRANSACTION_RETENTION.of(metadata.configuration)
        return cls(_before(now_ms, kept), None if txns is None else _before(now_ms, txns))


def _before(now_ms: int, span: timedelta) -> int:
    return now_ms - span // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class FileRows:
    """Some reconciled file actions of one kind.

    Attributes
    ----------
    kind
        `add` or `remove`.
    table
        Their fields as checkpoints have them (`checkpoint_schema`); of adds also `stats` (JSON text) and, where
        the previous checkpoint has it, `stats_parsed` in that checkpoint's type.
    """

    kind: str
    table: pa.Table


@dataclass(slots=True)
class _Singles:
    """The reconciled actions that are no file actions, with all their fields."""

    reader: SingleActions = field(default_factory=SingleActions)
    protocol: ProtocolBody = field(default_factory=ProtocolBody)
    metadata: MetadataBody = field(default_factory=MetadataBody)
    txns: dict[str, SetTransaction] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)

    def apply(self, actions: Sequence[Action], where: str) -> None:
        self.reader.apply(actions, where)
        for action in actions:
            self.protocol = action.get("protocol") or self.protocol
            self.metadata = action.get("metaData") or self.metadata
            txn, domain = action.get("txn"), action.get("domainMetadata")
            if txn:
                self.txns[txn["appId"]] = txn
            if domain and domain.get("removed"):
                self.domains.pop(domain["domain"], None)
            elif domain:
                self.domains[domain["domain"]] = domain

    def partition_keys(self) -> tuple[str, ...]:
        """The keys that the partition values of files added from here on have."""
        protocol, metadata = self.reader.protocol, self.reader.metadata
        if protocol is None or metadata is None:
            return ()
        return TableState("", -1, protocol, metadata).physical_partition_columns


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys that partition values are sure to have, in the removes and in the adds of a file of the log."""

    removes: tuple[str, ...]
    adds: tuple[str, ...]


class CheckpointState:
    """The state of a version: `single_actions` at hand, the file actions streamed by `file_actions`.

    Attributes
    ----------
    version
        The version.
    table
        Its protocol, metadata and domains.
    expiry
        What was left out as too old.
    """

    def __init__(self, storage: Storage, segment: LogSegment, now_ms: int) -> None:
        """Read all but the file actions.

        Raises
        ------
        LogError
            As replay does: a damaged file, no protocol, no metadata.
        """
        self._storage = storage
        self._segment = segment
        self.version = segment.version
        self._singles = _Singles()
        self._base: CheckpointFiles | None = None
        self._manifest: bytes | None = None
        self._keys: dict[str, _Keys] = {}
        self._kept: dict[str, Commit] = {}
        self._read_base()
        self._base_keys = self._singles.partition_keys()
        self._read_commits()
        reader = self._singles.reader
        self.table = table_state(storage, segment.version, reader.protocol, reader.metadata, reader.domains)
        self.expiry = Expiry.of(self.table.metadata, now_ms)
        self._names = tuple(reader.partition_columns)

    @classmethod
    def of_version(cls, storage: Storage, segment: LogSegment, now_ms: int) -> CheckpointState:
        """The state of a version that was read before, of which some files of the log may be gone by now.

        Raises
        ------
        LogError
            As the constructor, where no other files of the log serve.
        """
        return with_fallback(storage, segment, lambda found: cls(storage, found, now_ms))[1]

    def _read_base(self) -> None:
        checkpoint = self._segment.checkpoint
        if checkpoint is None:
            return
        origin = full_name(self._storage, checkpoint.files[0])
        actions, self._base = read_head(self._storage, checkpoint)
        self._singles.apply(actions, origin)
        if self._base is None:
            self._manifest = inline_actions(self._storage, checkpoint)

    def _read_commits(self) -> None:
        total = sum(file.status.size for file in self._segment.commits)
        before = self._base_keys
        for commits in read_in_batches(self._storage, self._segment.commits):
            for commit in commits:
                commit.check_whole()
                self._singles.apply(commit.find(*SINGLE_ACTIONS), commit.where)
                after = self._singles.partition_keys()
                self._keys[commit.file.path] = _Keys(before or after, after)
                before = after
            if total <= _KEPT_BYTES:
                self._kept |= {commit.file.path: commit for commit in commits}

    def single_actions(self) -> list[Action]:
        """The actions that are no file actions, as `{name: body}`: protocol, metadata, transactions, domains.

        Transactions that expired are left out, as are removed domains.
        """
        since = self.expiry.txns
        txns = [
            txn
            for txn in self._singles.txns.values()
            if since is None or (txn.get("lastUpdated") or 0) > since
        ]
        out: list[Action] = [
            {"protocol": _protocol_row(self.table.protocol)},
            {"metaData": _metadata_row(self.table.metadata, self._singles.metadata)},
        ]
        out += [{"txn": txn} for txn in txns]
        domains = self._singles.domains.values()
        out += [
            {"domainMetadata": {"domain": d["domain"], "configuration": d.get("configuration") or "", "removed": False}}
            for d in domains
        ]  # fmt: skip
        return out

    def file_actions(self, *, parsed_statistics: bool) -> Iterator[FileRows]:
        """The live adds and the removes that have not expired, newest first.

        Parameters
        ----------
        parsed_statistics
            Whether to bring the previous checkpoint's `stats_parsed`; it comes anyway where that has no text.
        """
        seen = _Seen()
        for batch in reversed(list(in_batches(self._segment.commits))):
            kept = [self._kept[file.path] for file in batch if file.path in self._kept]
            yield from self._of_commits(kept or read_commits(self._storage, batch), seen)
        if self._manifest is not None and self._segment.checkpoint is not None:
            path = self._segment.checkpoint.files[0].path
            keys = _Keys(self._base_keys, self._base_keys)
            with damage_as_unreadable():
                yield from self._of_group([(path, self._manifest)], keys, seen)
        if self._base is not None:
            yield from self._of_base(self._base, seen, parsed_statistics)

    def _of_commits(self, commits: Sequence[Commit], seen: _Seen) -> Iterator[FileRows]:
        keys = [self._keys[commit.file.path] for commit in commits]
        files = [(commit.where, commit.data) for commit in commits]
        for start, end in reversed(split_at_changes(keys)):
            yield from self._of_group(files[start:end], keys[start], seen)

    def _of_group(self, files: list[tuple[str, bytes]], keys: _Keys, seen: _Seen) -> Iterator[FileRows]:
        """The live file actions of some consecutive log files."""
        tags = sorted({name for path, data in files for name in _tag_names(data, path)})
        tables = parse_file_actions(files, _actions_schema(self._names, tags))
        if not sum(table.num_rows for table in tables):
            return
        key = join_keys([file_keys(table, self._storage) for table in tables])
        newest = newest_rows(key) & ~seen.contains(key)
        seen.add(keys_at(key, newest))
        start = 0
        for table in tables:
            holds = newest[start : start + table.num_rows]
            start += table.num_rows
            for kind, always in (("remove", keys.removes), ("add", keys.adds)):
                rows = table[kind].combine_chunks()
                rows = rows.filter(mask(holds & flags(rows.is_valid()))) if len(rows) else rows
                yield from self._finished(kind, _log_columns(rows, kind, always))

    def _of_base(self, base: CheckpointFiles, seen: _Seen, parsed_statistics: bool) -> Iterator[FileRows]:
        touched = seen.all()
        for kind, table in self._rows_of_base(base, parsed_statistics):
            if len(touched) and table.num_rows:
                dead = pc.is_in(keys_of_files(table, self._storage), value_set=touched)
                if pc.any(dead).as_py():
                    table = table.filter(pc.invert(dead))
            yield from self._finished(kind, table)

    def _rows_of_base(
        self, base: CheckpointFiles, parsed_statistics: bool, attempt: int = 1
    ) -> Iterator[tuple[str, pa.Table]]:
        """The rows of the checkpoint; from its start where it was written again before the first of them was read."""
        begun = False
        try:
            for rows in read_checkpoint_rows(self._storage, base, self._base_keys, parsed_statistics):
                begun = True
                yield rows
            return
        except CheckpointReplacedError:
            checkpoint = self._segment.checkpoint
            again = None if begun or checkpoint is None else locate_files(self._storage, checkpoint)
            if again is None or attempt == _ATTEMPTS:
                raise
        yield from self._rows_of_base(again, parsed_statistics, attempt + 1)

    def _finished(self, kind: str, table: pa.Table) -> Iterator[FileRows]:
        if kind == "remove" and table.num_rows:
            zero = integers([0])[0]
            times = pc.fill_null(table["deletionTimestamp"], zero)
            table = table.filter(pc.greater(times, integers([self.expiry.removes])[0]))
        if table.num_rows:
            yield FileRows(kind, with_known_sizes(self._storage, table) if kind == "add" else table)


class _Seen:
    """The keys of the file actions met so far."""

    def __init__(self) -> None:
        self._keys: list[pa.StringArray] = []

    def add(self, keys: pa.StringArray) -> None:
        if len(keys):
            self._keys.append(keys)

    def all(self) -> pa.StringArray:
        if len(self._keys) > 1:
            self._keys = [pa.concat_arrays(self._keys)]
        return self._keys[0] if self._keys else pa.nulls(0, pa.string())

    def contains(self, keys: pa.StringArray) -> Any:
        """A numpy mask of the keys that were met."""
        import numpy as np

        if not self._keys or len(keys) == 0:
            return np.zeros(len(keys), dtype=bool)
        return flags(pc.is_in(keys, value_set=self.all()))


# ---------------------------------------------------------------- actions of commits


def _actions_schema(names: Sequence[str], tags: Sequence[str]) -> pa.Schema:
    """What to read of commits: all fields, maps as structs of the keys that may be there."""

    def of(fields: Sequence[str]) -> pa.StructType:
        out = [pa.field(name, field_type(name)) for name in fields]
        out.append(pa.field("partitionValues", pa.struct([(name, pa.string()) for name in names])))
        return pa.struct(out)

    common = ("path", "size", "deletionVector", "baseRowId", "defaultRowCommitVersion")
    add = [*of((*common, "modificationTime", "clusteringProvider", "stats"))]
    if tags:
        add.append(pa.field("tags", pa.struct([(name, pa.string()) for name in tags])))
    remove = of((*common, "deletionTimestamp", "extendedFileMetadata"))
    return pa.schema([("add", pa.struct(add)), ("remove", remove)])


def _log_columns(rows: pa.StructArray, kind: str, always: Sequence[str]) -> pa.Table:
    columns: dict[str, Any] = {f.name: field_of(rows, f.name) for f in rows.type}
    kept = frozenset(always)
    values = columns["partitionValues"]
    columns["partitionValues"] = map_of_struct(values, kept.__contains__, text_map())
    if kind == "add":
        tags = columns.get("tags")
        if tags is None:
            columns["tags"] = pa.nulls(len(rows), text_map())
        else:
            columns["tags"] = map_of_struct(tags, lambda name: False, text_map())
    return pa.table(columns)


_TAGS = re.compile(rb'"tags"\s*:\s*\{\s*"')
_TAGS_OBJECT = re.compile(rb'"tags"\s*:\s*(\{\s*"[^{}]*\})')


def _tag_names(data: bytes, path: str) -> set[str]:
    """The keys of all tags in a file of the log; almost always there are none."""
    if _TAGS.search(data) is None:
        return set()
    objects = _TAGS_OBJECT.findall(data)
    if len(objects) == len(_TAGS.findall(data)):
        try:
            return set(pj.read_json(pa.BufferReader(b"\n".join(objects))).column_names)
        except pa.ArrowInvalid:
            TAGS_PARSED_SLOWLY.log(path=path)
    # A tag may be any text, braces included: then only its whole line tells where its object ends.
    return {name for _, add in iterate_bodies(data, path, "add") for name in add.get("tags") or ()}


def _protocol_row(protocol: Protocol) -> ProtocolBody:
    """The protocol with lists exactly where its versions demand them (CKP-W-12)."""
    body = protocol.to_action()
    body["readerFeatures"] = body.get("readerFeatures", []) if protocol.min_reader >= 3 else None
    body["writerFeatures"] = body.get("writerFeatures", []) if protocol.min_writer >= 7 else None
    return without_nulls(body)


def _metadata_row(metadata: Metadata, raw: MetadataBody) -> MetadataBody:
    body = metadata.to_action()
    form = raw.get("format") or {}
    options = {str(k): v for k, v in plain_map(form.get("options")).items()}
    return {**body, "format": {"provider": metadata.provider, "options": options}}
