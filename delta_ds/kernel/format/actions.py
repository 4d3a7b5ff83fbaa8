"""The actions of the log: their bodies as typed dictionaries, protocol and metadata as frozen dataclasses.

The bodies are what JSON holds, under the names of the protocol. No key is required of them: a log is believed only
as far as it was looked at. Sets of file actions are Arrow tables instead (`log/file_actions.py`).

Source: PROTOCOL.md, "Actions".
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, TypedDict, TypeGuard, TypeVar, cast

from delta_ds.exceptions import CorruptLogFileError
from delta_ds.kernel.base.json_text import parse_json
from delta_ds.kernel.format import features
from delta_ds.kernel.format.schema.types import StructType, parse_schema
from delta_ds.records import dataclass, field

CLUSTERING_DOMAIN = "delta.clustering"
# The actions of a state that are no file actions.
SINGLE_ACTIONS = ("protocol", "metaData", "txn", "domainMetadata")


class DeletionVector(TypedDict, total=False):
    """The descriptor of a deletion vector, as actions hold it."""

    storageType: str
    pathOrInlineDv: str
    offset: int | None
    sizeInBytes: int
    cardinality: int | None


class AddFile(TypedDict, total=False):
    """The body of an `add`: a file whose rows count."""

    path: str
    partitionValues: Mapping[str, str | None]
    size: int
    modificationTime: int
    dataChange: bool
    stats: str | None
    tags: Mapping[str, str] | None
    deletionVector: DeletionVector | None
    baseRowId: int | None
    defaultRowCommitVersion: int | None
    clusteringProvider: str | None


class RemoveFile(TypedDict, total=False):
    """The body of a `remove`: a file whose rows count no longer."""

    path: str
    deletionTimestamp: int | None
    dataChange: bool
    extendedFileMetadata: bool | None
    partitionValues: Mapping[str, str | None] | None
    size: int | None
    stats: str | None
    tags: Mapping[str, str] | None
    deletionVector: DeletionVector | None
    baseRowId: int | None
    defaultRowCommitVersion: int | None


class AddCDCFile(TypedDict, total=False):
    """The body of a `cdc`: a file of changed rows."""

    path: str
    partitionValues: Mapping[str, str | None]
    size: int
    dataChange: bool
    tags: Mapping[str, str] | None


class SetTransaction(TypedDict, total=False):
    """The body of a `txn`: how far an application has come."""

    appId: str
    version: int
    lastUpdated: int | None


class DomainMetadata(TypedDict, total=False):
    """The body of a `domainMetadata`: what a named domain keeps in the table."""

    domain: str
    configuration: str
    removed: bool


class CommitInfo(TypedDict, total=False):
    """The body of a `commitInfo`: what history tells of a commit. Engines put in whatever else they want."""

    timestamp: int
    inCommitTimestamp: int
    userId: str | None
    userName: str | None
    operation: str
    operationParameters: Mapping[str, Any]
    operationMetrics: Mapping[str, Any]
    job: Mapping[str, Any]
    notebook: Mapping[str, Any]
    clusterId: str | None
    readVersion: int | None
    isolationLevel: str
    isBlindAppend: bool | None
    userMetadata: str | None
    engineInfo: str
    txnId: str
    tags: Mapping[str, Any] | None
    application: Mapping[str, Any] | None


class HistoryEntry(TypedDict):
    """A commit as the history has it: the keys of `DESCRIBE HISTORY`, then `txnId` and `application`."""

    version: int
    timestamp: datetime
    userId: str | None
    userName: str | None
    operation: str | None
    operationParameters: dict[str, str | None] | None
    job: dict[str, str | None] | None
    notebook: dict[str, str | None] | None
    clusterId: str | None
    readVersion: int | None
    isolationLevel: str | None
    isBlindAppend: bool | None
    operationMetrics: dict[str, str | None] | None
    userMetadata: str | None
    engineInfo: str | None
    txnId: str | None
    application: dict[str, str | None] | None


class ProtocolBody(TypedDict, total=False):
    """The body of a `protocol`; `Protocol` is what it says."""

    minReaderVersion: int
    minWriterVersion: int
    readerFeatures: list[str] | None
    writerFeatures: list[str] | None


class MetadataBody(TypedDict, total=False):
    """The body of a `metaData`; `Metadata` is what it says."""

    id: str
    name: str | None
    description: str | None
    format: Mapping[str, Any]
    schemaString: str
    partitionColumns: list[str]
    configuration: Mapping[str, str]
    createdTime: int | None


class Sidecar(TypedDict, total=False):
    """The body of a `sidecar`: a file of a V2 checkpoint that holds file actions."""

    path: str
    sizeInBytes: int
    modificationTime: int
    tags: Mapping[str, str] | None


class CheckpointMetadata(TypedDict, total=False):
    """The body of a `checkpointMetadata`: of a V2 checkpoint."""

    version: int
    tags: Mapping[str, str] | None


class Action(TypedDict, total=False):
    """One line of a commit, or row of a checkpoint: the name of the action with its body."""

    commitInfo: CommitInfo
    protocol: ProtocolBody
    metaData: MetadataBody
    txn: SetTransaction
    domainMetadata: DomainMetadata
    add: AddFile
    remove: RemoveFile
    cdc: AddCDCFile
    sidecar: Sidecar
    checkpointMetadata: CheckpointMetadata


B = TypeVar("B", bound=Mapping[str, object])


@dataclass(frozen=True)
class Protocol:
    """Which versions and features a client must have; feature lists are None for legacy versions."""

    min_reader: int
    min_writer: int
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None

    @classmethod
    def from_action(cls, action: Mapping[str, Any], where: str) -> Protocol:
        """The protocol of a parsed `protocol` action; `where` names its file in errors."""
        return cls(
            _integer(action, "minReaderVersion", where),
            _integer(action, "minWriterVersion", where),
            _names(action, "readerFeatures", where),
            _names(action, "writerFeatures", where),
        )

    @cached_property
    def supported(self) -> frozenset[str]:
        """Every feature that is listed or implied by a legacy version."""
        return features.supported_features(
            self.min_reader, self.min_writer, self.reader_features, self.writer_features
        )

    def supports(self, feature: features.TableFeature) -> bool:
        """Whether the feature is listed, or implied by a legacy version."""
        return feature.name in self.supported

    def to_action(self) -> ProtocolBody:
        """The body of a `protocol` action; feature lists in order of name."""
        body: ProtocolBody = {"minReaderVersion": self.min_reader, "minWriterVersion": self.min_writer}
        if self.reader_features is not None:
            body["readerFeatures"] = sorted(self.reader_features)
        if self.writer_features is not None:
            body["writerFeatures"] = sorted(self.writer_features)
        return body


@dataclass(frozen=True)
class Metadata:
    """The `metaData` action: schema, partitioning and properties of the table."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_time: int | None = None
    provider: str = "parquet"

    @classmethod
    def from_action(cls, action: Mapping[str, Any], where: str) -> Metadata:
        """The metadata of a parsed `metaData` action; `where` names its file in errors."""
        schema = action.get("schemaString")
        if schema is None:
            # The protocol requires the schema; early writers left it out for tables without columns.
            schema = '{"type":"struct","fields":[]}'
        columns = action.get("partitionColumns") or []
        configuration = action.get("configuration") or {}
        form = action.get("format") or {}
        if (
            not isinstance(schema, str)
            or not _is_text_list(columns)
            or not isinstance(configuration, Mapping)
            or not isinstance(form, Mapping)
            or not isinstance(form.get("options") or {}, (Mapping, list))
        ):
            raise CorruptLogFileError(f"the metaData action in {where} is malformed")
        created = action.get("createdTime")
        return cls(
            str(action.get("id") or ""),
            schema,
            tuple(columns),
            {str(k): str(v) for k, v in configuration.items() if v is not None},
            _text(action, "name", where),
            _text(action, "description", where),
            created if is_long(created) else None,
            str(form.get("provider") or "parquet"),
        )

    @cached_property
    def schema(self) -> StructType:
        """The schema of the table, logical names, metadata of the fields included."""
        return parse_schema(self.schema_string)

    def to_action(self) -> MetadataBody:
        """The body of a `metaData` action; optional fields that are not set are left out."""
        body: MetadataBody = {"id": self.id}
        if self.name is not None:
            body["name"] = self.name
        if self.description is not None:
            body["description"] = self.description
        body |= {
            "format": {"provider": self.provider, "options": {}},
            "schemaString": self.schema_string,
            "partitionColumns": list(self.partition_columns),
            "configuration": dict(self.configuration),
        }
        if self.created_time is not None:
            body["createdTime"] = self.created_time
        return body


def is_long(value: Any) -> TypeGuard[int]:
    """Whether a value of JSON is a whole number of 64 bits, as all numbers of actions are."""
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63


def counted_rows(stats: Any) -> int | None:
    """The rows of a file by the text of its statistics, deleted ones included; None where that does not say."""
    try:
        statistics = parse_json(stats) if stats else None
    except (ValueError, TypeError):
        return None
    count = statistics.get("numRecords") if isinstance(statistics, dict) else None
    return count if is_long(count) and count >= 0 else None


def without(body: B, *names: str) -> B:
    """A copy of the body of an action without some of its fields."""
    return cast("B", {name: value for name, value in body.items() if name not in names})


def without_nulls(body: B) -> B:
    """A copy of the body of an action without the fields that are None."""
    return cast("B", {name: value for name, value in body.items() if value is not None})


def vector_id(vector: DeletionVector | None) -> str | None:
    """What tells the deletion vectors of one file apart; None for none. Of many: `log.file_actions.vector_ids`.

    Source: PROTOCOL.md, "Deletion Vectors": derived fields, `uniqueId`.
    """
    if not vector:
        return None
    offset = vector.get("offset")
    suffix = "" if offset is None else f"@{offset}"
    return f"{vector.get('storageType')}{vector.get('pathOrInlineDv')}{suffix}"


def clustering_paths(domains: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """The physical path of each clustering column, out of the metadata domains of a table.

    Source: protocol-checklist CLU-W-01: a column is a list of name parts, or a plain name.
    """
    text = domains.get(CLUSTERING_DOMAIN)
    try:
        columns = parse_json(text).get("clusteringColumns") or [] if text else []
        paths = tuple((column,) if isinstance(column, str) else tuple(column) for column in columns)
    except (ValueError, AttributeError, TypeError):
        paths = ((0,),)
    if not all(path and all(isinstance(name, str) for name in path) for path in paths):
        raise CorruptLogFileError(
            f"the metadata domain {CLUSTERING_DOMAIN} does not name columns: {text!r:.200}. Set the clustering "
            "columns anew with ALTER TABLE ... CLUSTER BY, by an engine that still reads it"
        )
    return paths


def _integer(action: Mapping[str, Any], key: str, where: str) -> int:
    value = action.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        raise CorruptLogFileError(f"{key} of the protocol action in {where} is {value!r}, not a number")
    return value


def _text(action: Mapping[str, Any], key: str, where: str) -> str | None:
    value = action.get(key)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return str(value)
    raise CorruptLogFileError(f"{key} of the metaData action in {where} is {value!r:.80}, not a text")


def _names(action: Mapping[str, Any], key: str, where: str) -> frozenset[str] | None:
    value = action.get(key)
    if value is None:
        return None
    if not _is_text_list(value):
        raise CorruptLogFileError(f"{key} of the protocol action in {where} is not a list of names")
    return frozenset(value)


def _is_text_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value)
