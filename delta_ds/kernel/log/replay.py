"""Log replay: the files of a segment to the state of a version.

Reconciliation is columnar: a file action's key is its path and deletion vector, the newest action of a
key wins, and only winning adds are live. Commits are reconciled among themselves by one dictionary
encoding, then knock out rows of the older state by one hash lookup: O(actions), no Python object per file.

Source: PROTOCOL.md, "Action Reconciliation"; checklist REC-*.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from delta_ds.exceptions import CorruptLogFileError, LogError, UnsupportedFeatureError
from delta_ds.kernel.log.actions import Metadata, Protocol
from delta_ds.kernel.log.arrays import flags, texts
from delta_ds.kernel.log.arrays import mask as as_mask
from delta_ds.kernel.log.checkpoint import (
    SINGLE_ACTIONS,
    inline_actions,
    locate_files,
    read_adds,
    read_single_actions,
)
from delta_ds.kernel.log.commit import actions_schema, file_action_fields, find_actions, parse_file_actions
from delta_ds.kernel.log.filenames import LogFile
from delta_ds.kernel.log.live_files import LiveFiles
from delta_ds.kernel.log.segment import LogSegment
from delta_ds.kernel.storage.filesystem import Storage

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.log.checkpoint import CheckpointFiles

logger = logging.getLogger("delta_ds")

# Bytes of commits read and parsed at once: bounds memory on long logs without checkpoints.
_BATCH_BYTES = 32 << 20
# Commits read at once while looking backwards for protocol and metadata.
_HEADER_BATCH = 64


@dataclass(frozen=True, slots=True)
class Header:
    """Protocol and metadata of a version: all that opening a table needs."""

    protocol: Protocol
    metadata: Metadata


@dataclass(slots=True)
class SingleActions:
    """The reconciled actions that are not file actions, and every metadata seen on the way."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    txns: dict[str, int] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    partition_columns: list[str] = field(default_factory=list)

    def apply(self, actions: Sequence[Mapping[str, Any]], where: str) -> None:
        """Take in the actions of one file; files come in order of version."""
        for action in actions:
            protocol, metadata = action.get("protocol"), action.get("metaData")
            if isinstance(protocol, Mapping):
                self.protocol = Protocol.from_action(protocol, where)
            if isinstance(metadata, Mapping):
                self.metadata = Metadata.from_action(metadata, where)
                self._note_partition_columns(self.metadata)
            self._apply_txn(action.get("txn"), where)
            self._apply_domain(action.get("domainMetadata"), where)

    def _apply_txn(self, txn: Any, where: str) -> None:
        if isinstance(txn, Mapping):
            app, version = txn.get("appId"), txn.get("version")
            if not isinstance(app, str) or not isinstance(version, int):
                raise CorruptLogFileError(f"a txn action in {where} lacks appId or version")
            self.txns[app] = version

    def _apply_domain(self, domain: Any, where: str) -> None:
        if isinstance(domain, Mapping):
            name = domain.get("domain")
            if not isinstance(name, str):
                raise CorruptLogFileError(f"a domainMetadata action in {where} has no domain")
            if domain.get("removed"):
                self.domains.pop(name, None)
            else:
                self.domains[name] = str(domain.get("configuration") or "")

    def _note_partition_columns(self, metadata: Metadata) -> None:
        if not metadata.partition_columns:
            return
        # Keys are physical under mapping; the protocol may come later in the file, so note both spellings.
        names = [*metadata.partition_columns]
        for column in metadata.partition_columns:
            found = metadata.schema.find(column)
            physical = found.metadata.get("delta.columnMapping.physicalName") if found else None
            if isinstance(physical, str):
                names.append(physical)
        self.partition_columns += [n for n in dict.fromkeys(names) if n not in self.partition_columns]


def _where(storage: Storage, path: str) -> str:
    return f"{path} of {storage.url}"


def load_header(storage: Storage, segment: LogSegment) -> Header:
    """Protocol and metadata of a version, newest first, reading no more than needed.

    Raises
    ------
    LogError
        The log holds no protocol or no metadata (condition DELTA_STATE_RECOVER_ERROR).
    """
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    commits = list(segment.commits)
    while commits and (protocol is None or metadata is None):
        batch, commits = commits[-_HEADER_BATCH:], commits[:-_HEADER_BATCH]
        contents = storage.read_many([file.path for file in batch])
        for file, data in zip(reversed(batch), reversed(contents), strict=True):
            where = _where(storage, file.path)
            _check_whole(data, where)
            for action in reversed(find_actions(data, ("protocol", "metaData"), where)):
                if protocol is None and isinstance(action.get("protocol"), Mapping):
                    protocol = Protocol.from_action(action["protocol"], where)
                if metadata is None and isinstance(action.get("metaData"), Mapping):
                    metadata = Metadata.from_action(action["metaData"], where)
    if segment.checkpoint is not None and (protocol is None or metadata is None):
        for action in read_single_actions(storage, segment.checkpoint, ("protocol", "metaData")):
            where = _where(storage, segment.checkpoint.files[0].path)
            if protocol is None and isinstance(action.get("protocol"), Mapping):
                protocol = Protocol.from_action(action["protocol"], where)
            if metadata is None and isinstance(action.get("metaData"), Mapping):
                metadata = Metadata.from_action(action["metaData"], where)
    return checked_header(storage, segment.version, protocol, metadata)


def _check_whole(data: bytes, where: str) -> None:
    """Refuse a file whose last line is cut off, without parsing it."""
    if not data[-4096:].rstrip().endswith(b"}"):
        raise CorruptLogFileError(
            f"{where} is empty or cut off: its writer crashed or the file was truncated. Restore it from a "
            "backup; if it is the newest version and was never whole, delete it"
        )


def checked_header(
    storage: Storage, version: int, protocol: Protocol | None, metadata: Metadata | None
) -> Header:
    """Protocol and metadata, or the error that one is missing or not Parquet."""
    for name, action in (("protocol", protocol), ("metadata", metadata)):
        if action is None:
            raise LogError(
                f"The {name} of Delta table {storage.url} could not be recovered while reconstructing version "
                f"{version}: no file of its log holds it. Were files of _delta_log deleted by hand?"
            )
    assert protocol is not None and metadata is not None
    if metadata.provider != "parquet":
        raise UnsupportedFeatureError(
            f"version {version} of {storage.url} stores its data as {metadata.provider!r}; only parquet is defined",
            condition="DELTA_UNSUPPORTED_FORMAT",
        )
    return Header(protocol, metadata)


@dataclass(frozen=True, slots=True)
class State:
    """Everything replay knows of a version."""

    header: Header
    txns: Mapping[str, int]
    domains: Mapping[str, str]
    files: LiveFiles
    partition_columns: tuple[str, ...] = ()


def load_state(
    storage: Storage, segment: LogSegment, base: tuple[int, State] | None = None
) -> State:
    """Replay a segment.

    Parameters
    ----------
    base
        The state of an older version that this segment continues (incremental update): only the commits
        after it are read.

    Raises
    ------
    CorruptLogFileError, LogError
        As `load_header`; also for file actions that cannot be read.
    """
    start = base[0] if base else segment.checkpoint.version if segment.checkpoint else -1
    single = SingleActions()
    checkpoint: CheckpointFiles | None = None
    manifest: bytes | None = None
    if base is not None:
        state = base[1]
        single.protocol, single.metadata = state.header.protocol, state.header.metadata
        single.txns, single.domains = dict(state.txns), dict(state.domains)
        single.partition_columns = list(state.partition_columns)
    elif segment.checkpoint is not None:
        path = segment.checkpoint.files[0].path
        single.apply(read_single_actions(storage, segment.checkpoint), _where(storage, path))
        checkpoint = locate_files(storage, segment.checkpoint)
        if checkpoint is None:
            manifest = inline_actions(storage, segment.checkpoint)
    newer = [file for file in segment.commits if file.end > start]
    parsed: list[pa.Table] = []
    if manifest is not None and segment.checkpoint is not None:
        path = segment.checkpoint.files[0].path
        parsed += _parse([(_where(storage, path), manifest)], single)
    for batch in _batches(newer):
        parsed += _parse(_read_commits(storage, batch, single), single)
    header = checked_header(storage, segment.version, single.protocol, single.metadata)
    columns = tuple(single.partition_columns)
    older = _older_parts(storage, base[1] if base else None, checkpoint, columns)
    files = _reconcile(storage, older, parsed, columns)
    return State(header, single.txns, single.domains, files, columns)


def _batches(files: Sequence[LogFile]) -> Iterator[list[LogFile]]:
    """Files in order, in batches of bounded size, so that only one batch of text is in memory."""
    batch: list[LogFile] = []
    size = 0
    for file in files:
        if batch and size + file.status.size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.status.size
    if batch:
        yield batch


def _read_commits(
    storage: Storage, batch: Sequence[LogFile], single: SingleActions
) -> list[tuple[str, bytes]]:
    commits = []
    for file, data in zip(batch, storage.read_many([f.path for f in batch]), strict=True):
        where = _where(storage, file.path)
        _check_whole(data, where)
        single.apply(find_actions(data, SINGLE_ACTIONS, where), where)
        commits.append((where, data))
    return commits


def _parse(commits: list[tuple[str, bytes]], single: SingleActions) -> list[pa.Table]:
    """The file actions of commits; values of partition columns that only come later cannot be in them."""
    return parse_file_actions(commits, actions_schema(single.partition_columns))


@dataclass(slots=True)
class _Older:
    """State before the commits: aligned chunks of files, statistics and checkpoint rows."""

    tables: list[pa.Table]
    checkpoint: CheckpointFiles | None


def _working_schema(columns: Sequence[str]) -> pa.Schema:
    import pyarrow as pa

    fields = file_action_fields(columns, stats=True)
    return pa.schema([*fields, pa.field("row", pa.int64())])


def _older_parts(
    storage: Storage, base: State | None, checkpoint: CheckpointFiles | None, columns: Sequence[str]
) -> _Older:
    import pyarrow as pa

    schema = _working_schema(columns)
    if base is not None:
        stats, row, source = base.files.parts
        table = base.files.table.append_column("stats", stats).append_column("row", row)
        return _Older([_align(table, schema)], source)
    if checkpoint is None:
        return _Older([], None)
    tables = []
    for adds in read_adds(storage, checkpoint, columns):
        stats = pa.nulls(adds.num_rows, pa.string())
        tables.append(adds.append_column("stats", stats).select(schema.names))
    return _Older(tables, checkpoint)


def _align(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the partition columns of a wider schema (a commit changed the partitioning)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if table.schema == schema:
        return table
    columns = []
    for wanted in schema:
        if wanted.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, wanted.type))
            continue
        column = table[wanted.name]
        if wanted.name == "partitionValues" and column.type != wanted.type:
            present = {f.name for f in column.type}
            fields = [
                pc.struct_field(column, f.name).combine_chunks()
                if f.name in present
                else pa.nulls(table.num_rows, pa.string())
                for f in wanted.type
            ]
            column = pa.StructArray.from_arrays(fields, fields=list(wanted.type))
        columns.append(column)
    return pa.table(columns, schema=schema)


def _reconcile(
    storage: Storage, older: _Older, parsed: list[pa.Table], columns: Sequence[str]
) -> LiveFiles:
    import pyarrow as pa
    import pyarrow.compute as pc

    schema = _working_schema(columns)
    adds: list[pa.Table] = []
    keys = [pc.coalesce(_keys(t["add"], storage), _keys(t["remove"], storage)) for t in parsed]
    touched = None
    if keys:
        key = pa.chunked_array([c for k in keys for c in k.chunks], type=pa.string())
        newest = _newest(key)
        touched = key.filter(as_mask(newest)) if older.tables else None
        offset = 0
        while parsed:
            table = parsed.pop(0)
            mask = newest[offset : offset + table.num_rows]
            offset += table.num_rows
            add = table["add"]
            live = pc.and_(as_mask(mask), pc.is_valid(add).combine_chunks())
            if not pc.all(live, min_count=0).as_py():
                add = add.filter(live)
            adds.append(_align(_flatten(add), schema))
    survivors = []
    for table in older.tables:
        if touched is not None and len(touched):
            dead = pc.is_in(_keys_of_table(table, storage), value_set=touched.combine_chunks())
            if pc.any(dead).as_py():
                table = table.filter(pc.invert(dead))
        survivors.append(table)
    whole = pa.concat_tables([*survivors, *adds]) if survivors or adds else schema.empty_table()
    for name in ("size", "modificationTime"):
        if whole[name].null_count:
            whole = whole.set_column(
                whole.schema.get_field_index(name), schema.field(name), pc.fill_null(whole[name], 0)
            )
    base = whole.drop_columns(["stats", "row"])
    return LiveFiles(storage, base, whole["stats"], whole["row"], older.checkpoint)


def _flatten(add: pa.ChunkedArray) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pa.table({f.name: pc.struct_field(add, f.name) for f in add.type})


def _newest(keys: pa.ChunkedArray) -> Any:
    """A mask of the last row of each key; rows without a key are False."""
    import numpy as np
    import pyarrow.compute as pc

    if len(keys) == 0:
        return np.zeros(0, dtype=bool)
    encoded = keys.combine_chunks().dictionary_encode()
    codes = encoded.indices
    numbers = np.frombuffer(codes.buffers()[1], dtype=np.int32)[codes.offset : codes.offset + len(codes)]
    rows = np.flatnonzero(flags(pc.is_valid(codes)))
    last = np.full(len(encoded.dictionary), -1, dtype=np.int64)
    # With repeated indices the last assignment stays, which is the newest row.
    last[numbers[rows]] = rows
    mask = np.zeros(len(keys), dtype=bool)
    mask[last] = True
    return mask


def _keys(actions: pa.ChunkedArray, storage: Storage) -> pa.ChunkedArray:
    """(path, deletion vector) of file actions as one string; null for rows of other actions."""
    import pyarrow.compute as pc

    return _key(pc.struct_field(actions, "path"), pc.struct_field(actions, "deletionVector"), storage)


def _keys_of_table(table: pa.Table, storage: Storage) -> pa.ChunkedArray:
    return _key(table["path"], table["deletionVector"], storage)


def _key(path: pa.ChunkedArray, vector: pa.ChunkedArray, storage: Storage) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    path = _canonical(path, storage)
    if vector.null_count == len(vector):
        return path
    offset = pc.struct_field(vector, "offset").cast(pa.string())
    unique = pc.binary_join_element_wise(
        pc.struct_field(vector, "storageType"), pc.struct_field(vector, "pathOrInlineDv"), ""
    )
    unique = pc.if_else(pc.is_valid(offset), pc.binary_join_element_wise(unique, offset, "@"), unique)
    # A space cannot stand in a URI-encoded path, so path and vector cannot run into each other.
    return pc.if_else(pc.is_valid(unique), pc.binary_join_element_wise(path, unique, " "), path)


def _canonical(path: pa.ChunkedArray, storage: Storage) -> pa.ChunkedArray:
    """Paths with one spelling a file: percent-encoding undone, absolute ones under the table made relative.

    Only encoded or absolute paths are looked at in Python, once per distinct value (REC-R-05).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    odd = pc.match_substring_regex(path, r"%|^/|^[A-Za-z][A-Za-z0-9+.-]*:")
    if not pc.any(odd, min_count=0).as_py():
        return path
    # Dictionary encoding would keep the order of first appearance; a mapping per distinct value is enough.
    roots = _root_spellings(storage.url)
    encoded = pc.if_else(odd, path, None).combine_chunks().dictionary_encode()
    spelled = [_spell(p, roots) for p in encoded.dictionary.to_pylist()]
    decoded = texts(spelled).take(encoded.indices)
    return pa.chunked_array([pc.coalesce(decoded, path.combine_chunks())])


def _root_spellings(url: str) -> tuple[str, ...]:
    root = url.rstrip("/") + "/"
    if root.startswith("/"):
        return (root, f"file:{root}", f"file://{root}")
    return (root,)


def _spell(path: str, roots: tuple[str, ...]) -> str:
    plain = unquote(path)
    for root in roots:
        if plain.startswith(root):
            return plain[len(root) :]
    if plain.startswith("/"):
        return f"file://{plain}"
    if plain.startswith("file:/") and not plain.startswith("file://"):
        return f"file://{plain[5:]}"
    return plain
