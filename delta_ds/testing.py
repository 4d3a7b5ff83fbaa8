"""Build small Delta tables, and broken ones, in tests without a JVM.

Data goes to Parquet by pyarrow and the log is written line by line, so that a test can hold exactly the
log it is about, however odd:

>>> import pyarrow as pa, tempfile
>>> table = TableBuilder(tempfile.mkdtemp())
>>> table.create(pa.schema([("id", pa.int64())]))
0
>>> table.append(pa.table({"id": [1, 2, 3]}))
1
>>> table.raw_commit(b'{"add": ')     # a torn commit
2

Actions are dicts as the log spells them (`{"add": {...}}`). This is no writer: nothing is checked.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_ds.kernel.format.operations import WRITE
from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.format.schema.types import StructType, schema_to_json
from delta_ds.kernel.format.values import deletion_vector

Action = dict[str, dict[str, Any]]
CheckpointKind = Literal["v1", "multi-part", "v2-parquet", "v2-json"]

FIRST_COMMIT_MS = 1_700_000_000_000
MINUTE_MS = 60_000


class TableBuilder:
    """Writes one table, version after version.

    Commits are a minute apart, the first at `FIRST_COMMIT_MS`, in their `commitInfo` and as file times.

    Attributes
    ----------
    path, log
        The folder of the table, and its `_delta_log`.
    version
        The newest version written; -1 before the first.

    Parameters
    ----------
    path
        The folder of the table, which is made.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = TableBuilder("/data/new")
    >>> table.create(pa.schema([("id", pa.int64())])), table.append(pa.table({"id": [1, 2]}))
    (0, 1)
    >>> from delta_ds import DeltaLog
    >>> DeltaLog("/data/new").snapshot().scan().count()
    2
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.log = self.path / "_delta_log"
        self.log.mkdir(parents=True, exist_ok=True)
        self.version = -1
        self.partition_columns: tuple[str, ...] = ()
        self._commits: dict[int, list[Action]] = {}

    def create(
        self,
        schema: pa.Schema | StructType,
        *,
        partition_columns: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        reader_features: Iterable[str] | None = None,
        writer_features: Iterable[str] | None = None,
    ) -> int:
        """Commit the protocol and the metadata; with features the protocol is 3/7, else 1/2.

        Parameters
        ----------
        schema
            Of Arrow, or a tree of the kernel.
        partition_columns
            Names of columns of the schema.
        properties
            Table properties, as text by name.
        reader_features, writer_features
            Names of table features; those of readers are those of writers too.

        Returns
        -------
        int
            The version.

        Examples
        --------
        >>> import pyarrow as pa
        >>> schema = pa.schema([("id", pa.int64()), ("day", pa.string())])
        >>> TableBuilder("/data/new").create(schema, partition_columns=["day"], reader_features=["deletionVectors"])
        0
        """
        self.partition_columns = tuple(partition_columns)
        return self.commit(
            protocol_action(reader_features, writer_features),
            metadata_action(schema, partition_columns, properties),
        )

    def append(self, data: pa.Table, **how: Any) -> int:
        """Write a file and commit it.

        Parameters
        ----------
        data
            The rows, without the partition columns.
        how
            As in `write_file`: `path`, `partition_values`, `stats`, `row_group_size`.

        Returns
        -------
        int
            The version.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = TableBuilder("/data/new")
        >>> created = table.create(pa.schema([("id", pa.int64())]))
        >>> table.append(pa.table({"id": [1, 2]}), stats=False)
        1
        """
        return self.commit(self.write_file(data, **how))

    def write_file(
        self,
        data: pa.Table,
        *,
        path: str | None = None,
        partition_values: Mapping[str, str | None] | None = None,
        stats: bool | Mapping[str, Any] = True,
        row_group_size: int | None = None,
    ) -> Action:
        """Write a data file and return its `add`.

        Parameters
        ----------
        data
            The rows, without the partition columns.
        path
            Where to put the file, relative to the table and not encoded.
        partition_values
            Text of the value of each partition column, as the log has it.
        stats
            Whether to add statistics of the columns, or the statistics to add.
        row_group_size
            At most so many rows a row group; None: as pyarrow does.

        Returns
        -------
        dict
            As `{"add": {...}}`, for `commit`.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = TableBuilder("/data/new")
        >>> created = table.create(pa.schema([("id", pa.int64())]))
        >>> add = table.write_file(pa.table({"id": [1, 2]}), path="a.parquet")
        >>> add["add"]["path"], table.commit(add)
        ('a.parquet', 1)
        """
        values = dict(partition_values or {})
        if path is None:
            folder = "".join(f"{name}={value}/" for name, value in values.items())
            path = f"{folder}part-{uuid.uuid4()}.parquet"
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(data, file, row_group_size=row_group_size)
        add: dict[str, Any] = {
            "path": quote(path, safe="/=-_.~"),
            "partitionValues": values,
            "size": file.stat().st_size,
            "modificationTime": FIRST_COMMIT_MS,
            "dataChange": True,
        }
        if stats:
            add["stats"] = json.dumps(statistics(data) if stats is True else dict(stats))
        return {"add": add}

    def delete_rows(self, add: Action, positions: Iterable[int], storage: str = "u") -> int:
        """Commit a deletion vector for a file that has none: its `remove`, and its `add` with the vector.

        Parameters
        ----------
        add
            What `write_file` gave.
        positions
            Of the deleted rows in the file, from 0.
        storage
            As in `deletion_vector`.

        Returns
        -------
        int
            The version.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = TableBuilder("/data/new")
        >>> created = table.create(pa.schema([("id", pa.int64())]), reader_features=["deletionVectors"])
        >>> add = table.write_file(pa.table({"id": [1, 2, 3]}))
        >>> table.commit(add), table.delete_rows(add, [0, 2])
        (1, 2)
        """
        with_vector = {**add["add"], "deletionVector": self.deletion_vector(positions, storage)}
        return self.commit(remove_action(add), {"add": with_vector})

    def deletion_vector(self, positions: Iterable[int], storage: str = "u") -> dict[str, str | int]:
        """Write a deletion vector.

        Parameters
        ----------
        positions
            Of the deleted rows in the file, from 0.
        storage
            `u` for a file named by a UUID, `p` for one named by its absolute path, `i` for inline.

        Returns
        -------
        dict
            Its descriptor, as in `deletionVector` of an `add`.

        Examples
        --------
        >>> TableBuilder("/data/new").deletion_vector([0, 2], "i")["cardinality"]
        2
        """
        rows = sorted(set(positions))
        payload = deletion_vector.encode(rows)
        descriptor: dict[str, str | int] = {
            "storageType": storage,
            "sizeInBytes": len(payload),
            "cardinality": len(rows),
        }
        if storage == "i":
            return {**descriptor, "pathOrInlineDv": deletion_vector.z85_encode(payload)}
        name = uuid.uuid4()
        file = self.path / f"deletion_vector_{name}.bin"
        content, (offset,) = deletion_vector.encode_file([payload])
        file.write_bytes(content)
        encoded = deletion_vector.z85_encode(name.bytes)
        where = encoded if storage == "u" else quote(str(file.resolve()))
        return {**descriptor, "pathOrInlineDv": where, "offset": offset}

    def commit(
        self, *actions: Action, version: int | None = None, operation: str | None = WRITE.name, **info: Any
    ) -> int:
        """Write a commit file.

        Parameters
        ----------
        actions
            As the log spells them, in order.
        version
            None: the next one.
        operation
            Of the `commitInfo` that comes first; None: without one.
        info
            Further fields of it.

        Returns
        -------
        int
            The version.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = TableBuilder("/data/new")
        >>> created = table.create(pa.schema([("id", pa.int64())]))
        >>> table.commit({"txn": {"appId": "load", "version": 7}}, operation="WRITE", userMetadata="monday")
        1
        """
        version = self.version + 1 if version is None else version
        lines: list[Action] = list(actions)
        if operation is not None:
            fields = {"timestamp": commit_time(version), "operation": operation, "operationParameters": {}}
            lines.insert(0, {"commitInfo": {**fields, **info}})
        self._commits[version] = list(actions)
        return self.raw_commit(json_lines(lines), version)

    def raw_commit(self, content: bytes, version: int | None = None) -> int:
        """Write any bytes as a commit file; checkpoints know nothing of it.

        Parameters
        ----------
        content
            The file, whole or torn.
        version
            None: the next one.

        Returns
        -------
        int
            The version.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = TableBuilder("/data/new")
        >>> created = table.create(pa.schema([("id", pa.int64())]))
        >>> table.raw_commit(b'{"add": ')
        1
        """
        version = self.version + 1 if version is None else version
        file = self.commit_file(version)
        file.write_bytes(content)
        os.utime(file, ns=(commit_time(version) * 1_000_000,) * 2)
        self.version = max(self.version, version)
        return version

    def commit_file(self, version: int) -> Path:
        """The file of a commit, whether it is there or not.

        Parameters
        ----------
        version
            Of the commit.

        Examples
        --------
        >>> TableBuilder("/data/new").commit_file(3).name
        '00000000000000000003.json'
        """
        return self.log / f"{version:020d}.json"

    def state(self, version: int | None = None, start: int = 0) -> list[Action]:
        """The reconciled actions of a version, as a checkpoint holds them; those of `raw_commit` are not among them.

        Parameters
        ----------
        version
            None: the newest.
        start
            The first version that counts.

        Returns
        -------
        list of dict
            As `{"add": {...}}`.

        Source: PROTOCOL.md, "Action Reconciliation"; tombstones are kept, whatever their age.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = TableBuilder("/data/new")
        >>> created = table.create(pa.schema([("id", pa.int64())]))
        >>> [kind for action in table.state() for kind in action]
        ['protocol', 'metaData']
        """
        version = self.version if version is None else version
        latest: dict[tuple[Any, ...], Action] = {}
        for number in range(start, version + 1):
            for action in self._commits.get(number, ()):
                latest[_reconciliation_key(action)] = action
        return list(latest.values())

    def checkpoint(
        self, kind: CheckpointKind = "v1", *, version: int | None = None, parts: int = 2, hint: bool = True
    ) -> list[Path]:
        """Write a checkpoint of a version.

        Parameters
        ----------
        kind
            `v1` is one classic file, `multi-part` a classic one in several files, `v2-parquet` and `v2-json` a manifest
            of that form that names sidecars.
        version
            None: the newest.
        parts
            How many files or sidecars.
        hint
            Whether to write `_last_checkpoint` too.

        Returns
        -------
        list of pathlib.Path
            Its files, the manifest first.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = TableBuilder("/data/new")
        >>> created = table.create(pa.schema([("id", pa.int64())]))
        >>> [file.name for file in table.checkpoint()]
        ['00000000000000000000.checkpoint.parquet']
        """
        version = self.version if version is None else version
        actions = self.state(version)
        stem = f"{version:020d}.checkpoint"
        if kind == "v1":
            files = [self._write_actions(self.log / f"{stem}.parquet", actions)]
        elif kind == "multi-part":
            names = [f"{stem}.{part + 1:010d}.{parts:010d}.parquet" for part in range(parts)]
            files = [self._write_actions(self.log / n, actions[i::parts]) for i, n in enumerate(names)]
        else:
            files = self._write_v2_checkpoint(stem, kind, version, actions, parts)
        if hint:
            extra = {"parts": parts} if kind == "multi-part" else {}
            self.last_checkpoint(version, size=len(actions), **extra)
        return files

    def _write_v2_checkpoint(
        self, stem: str, kind: str, version: int, actions: list[Action], parts: int
    ) -> list[Path]:
        in_sidecars = [action for action in actions if "add" in action or "remove" in action]
        manifest: list[Action] = [{"checkpointMetadata": {"version": version}}]
        manifest += [action for action in actions if action not in in_sidecars]
        files = []
        for part in range(parts):
            sidecar = self.log / "_sidecars" / f"{uuid.uuid4()}.parquet"
            files.append(self._write_actions(sidecar, in_sidecars[part::parts], ("add", "remove")))
            size = sidecar.stat().st_size
            fields = {"path": sidecar.name, "sizeInBytes": size, "modificationTime": commit_time(version)}
            manifest.append({"sidecar": fields})
        name = self.log / f"{stem}.{uuid.uuid4()}.{kind.removeprefix('v2-')}"
        if kind == "v2-parquet":
            return [self._write_actions(name, manifest), *files]
        name.write_bytes(json_lines(manifest))
        return [name, *files]

    def _write_actions(self, file: Path, actions: list[Action], kinds: Sequence[str] = ()) -> Path:
        schema = pa.schema([(kind, ACTION_TYPES[kind]) for kind in kinds or ACTION_TYPES])
        rows = [{kind: _storable(body, ACTION_TYPES[kind]) for kind, body in a.items()} for a in actions]
        file.parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema), file)
        return file

    def last_checkpoint(self, version: int, **fields: Any) -> Path:
        """Write `_last_checkpoint` with a right checksum, unless another one is given.

        Parameters
        ----------
        version
            Of the checkpoint.
        fields
            What it says besides: `size`, `parts`, `checksum`, ...

        Examples
        --------
        >>> TableBuilder("/data/new").last_checkpoint(3, size=7).name
        '_last_checkpoint'
        """
        from delta_ds.kernel.log.filenames import checksum

        hint = {"version": version, "size": 1, **fields}
        hint.setdefault("checksum", checksum(hint))
        file = self.log / "_last_checkpoint"
        file.write_text(json.dumps(hint))
        return file

    def checksum(self, version: int | None = None, **fields: Any) -> Path:
        """Write the `.crc` file of a version.

        Parameters
        ----------
        version
            None: the newest.
        fields
            Replace what it would say: `numFiles`, `tableSizeBytes`, ...

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = TableBuilder("/data/new")
        >>> created = table.create(pa.schema([("id", pa.int64())]))
        >>> table.checksum(numFiles=3).name
        '00000000000000000000.crc'
        """
        version = self.version if version is None else version
        state = self.state(version)
        adds = [action["add"] for action in state if "add" in action]
        single = {kind: body for action in state for kind, body in action.items()}
        content = {
            "tableSizeBytes": sum(add["size"] for add in adds),
            "numFiles": len(adds),
            "numMetadata": 1,
            "numProtocol": 1,
            "protocol": single.get("protocol"),
            "metadata": single.get("metaData"),
        }
        file = self.log / f"{version:020d}.crc"
        file.write_text(json.dumps({**content, **fields}))
        return file

    def compact(self, start: int, end: int) -> Path:
        """Write a compacted log file.

        Parameters
        ----------
        start, end
            The first and last version in it.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = TableBuilder("/data/new")
        >>> created = table.create(pa.schema([("id", pa.int64())]))
        >>> table.append(pa.table({"id": [1]})), table.compact(0, 1).name
        (1, '00000000000000000000.00000000000000000001.compacted.json')
        """
        file = self.log / f"{start:020d}.{end:020d}.compacted.json"
        file.write_bytes(json_lines(self.state(end, start)))
        return file


def commit_time(version: int) -> int:
    """The time of a commit of a `TableBuilder`.

    Parameters
    ----------
    version
        Of the commit.

    Returns
    -------
    int
        Ms since 1970.

    Examples
    --------
    >>> commit_time(1) - commit_time(0)
    60000
    """
    return FIRST_COMMIT_MS + version * MINUTE_MS


def json_lines(actions: Iterable[Mapping[str, Any]]) -> bytes:
    """The bytes of a commit file.

    Parameters
    ----------
    actions
        As the log spells them, in order.

    Examples
    --------
    >>> json_lines([{"txn": {"appId": "load", "version": 7}}])
    b'{"txn": {"appId": "load", "version": 7}}\\n'
    """
    return b"".join(json.dumps(a, ensure_ascii=False).encode() + b"\n" for a in actions)


def protocol_action(
    reader_features: Iterable[str] | None = None, writer_features: Iterable[str] | None = None
) -> Action:
    """A `protocol`: 3/7 with features, else 1/2.

    Parameters
    ----------
    reader_features, writer_features
        Names of table features; those of readers are those of writers too.

    Examples
    --------
    >>> protocol_action()
    {'protocol': {'minReaderVersion': 1, 'minWriterVersion': 2}}
    """
    if reader_features is None and writer_features is None:
        return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    readers = sorted(reader_features or ())
    writers = sorted({*readers, *(writer_features or ())})
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    return {"protocol": {**versions, "readerFeatures": readers, "writerFeatures": writers}}


def metadata_action(
    schema: pa.Schema | StructType,
    partition_columns: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
) -> Action:
    """A `metaData` of a schema.

    Parameters
    ----------
    schema, partition_columns, properties
        As in `TableBuilder.create`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> metadata_action(pa.schema([("id", pa.int64())]))["metaData"]["partitionColumns"]
    []
    """
    tree = schema if isinstance(schema, StructType) else schema_from_arrow(schema)
    fields = {"schemaString": schema_to_json(tree), "partitionColumns": list(partition_columns),
              "configuration": dict(properties or {}), "createdTime": FIRST_COMMIT_MS}  # fmt: skip
    return {"metaData": {"id": str(uuid.uuid4()), "format": {"provider": "parquet", "options": {}}, **fields}}


def remove_action(add: Action, time_ms: int = FIRST_COMMIT_MS) -> Action:
    """The `remove` of what an `add` added.

    Parameters
    ----------
    add
        What `TableBuilder.write_file` gave.
    time_ms
        `deletionTimestamp`, ms since 1970.

    Examples
    --------
    >>> remove_action({"add": {"path": "a.parquet", "size": 400, "stats": "{}"}})["remove"]["path"]
    'a.parquet'
    """
    keys = ("path", "partitionValues", "size", "deletionVector")
    kept = {key: value for key, value in add["add"].items() if key in keys}
    return {"remove": {**kept, "deletionTimestamp": time_ms, "dataChange": True}}


def statistics(data: pa.Table) -> dict[str, int | dict[str, int | str]]:
    """Statistics of the whole file, with bounds for integer and string columns.

    Parameters
    ----------
    data
        The rows of the file.

    Returns
    -------
    dict
        `numRecords`, `minValues`, `maxValues`, `nullCount`, as in `stats` of an `add`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> statistics(pa.table({"id": [1, None]}))
    {'numRecords': 2, 'minValues': {'id': 1}, 'maxValues': {'id': 1}, 'nullCount': {'id': 1}}
    """
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    for name, column in zip(data.column_names, data.columns, strict=True):
        ordered = pa.types.is_integer(column.type) or pa.types.is_string(column.type)
        if ordered and column.null_count < len(column):
            bounds = pc.min_max(column).as_py()
            low[name], high[name] = bounds["min"], bounds["max"]
    nulls = {name: data.column(name).null_count for name in data.column_names}
    return {"numRecords": data.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}


def _reconciliation_key(action: Action) -> tuple[Any, ...]:
    kind, body = next(iter(action.items()))
    if kind in ("add", "remove"):
        vector = body.get("deletionVector") or {}
        return ("file", body["path"], vector.get("pathOrInlineDv"), vector.get("offset"))
    return (kind, body.get("appId"), body.get("domain"))


def _storable(value: Any, kind: pa.DataType) -> Any:
    """The value with maps as pairs, which Arrow wants."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return list(value.items())
    if pa.types.is_struct(kind):
        return {field.name: _storable(value.get(field.name), field.type) for field in kind}
    return value


_TEXTS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [("storageType", pa.string()), ("pathOrInlineDv", pa.string()), ("offset", pa.int32()),
     ("sizeInBytes", pa.int32()), ("cardinality", pa.int64())]
)  # fmt: skip
_FILE = [("path", pa.string()), ("partitionValues", _TEXTS), ("size", pa.int64()), ("dataChange", pa.bool_()),
         ("deletionVector", _VECTOR), ("baseRowId", pa.int64()), ("defaultRowCommitVersion", pa.int64()),
         ("tags", _TEXTS)]  # fmt: skip
_FORMAT = pa.struct([("provider", pa.string()), ("options", _TEXTS)])

# The columns of a checkpoint. Source: PROTOCOL.md, "Checkpoint Schema".
ACTION_TYPES: dict[str, pa.StructType] = {
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    "add": pa.struct([*_FILE, ("modificationTime", pa.int64()), ("stats", pa.string())]),
    "remove": pa.struct([*_FILE, ("deletionTimestamp", pa.int64()), ("extendedFileMetadata", pa.bool_())]),
    "metaData": pa.struct(
        [("id", pa.string()), ("name", pa.string()), ("description", pa.string()), ("format", _FORMAT),
         ("schemaString", pa.string()), ("partitionColumns", pa.list_(pa.string())),
         ("configuration", _TEXTS), ("createdTime", pa.int64())]
    ),
    "protocol": pa.struct(
        [("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32()),
         ("readerFeatures", pa.list_(pa.string())), ("writerFeatures", pa.list_(pa.string()))]
    ),
    "domainMetadata": pa.struct(
        [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
    ),
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", _TEXTS)]),
    "sidecar": pa.struct(
        [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()),
         ("tags", _TEXTS)]
    ),
}  # fmt: skip
