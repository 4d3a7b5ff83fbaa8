"""The schema log of a streaming source (`schemaTrackingLocation`).

Files are those of delta-spark: `<location>/_schema_log_<table id>[_<tracking id>]/<number>`, a line `v1` and a line
of JSON. A stream that meets a change of schema, properties or protocol notes it here and stops; started again it reads
with the newest entry.

Source: delta-spark, `DeltaSourceMetadataTrackingLog`, `SchemaTrackingLog`, `DeltaSourceMetadataEvolutionSupport`.

The version whose schema a stream reads with, in a form that every later process can use.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from delta_ds.conditions.streaming import (
    SCHEMA_CHANGED_WITH_VERSION,
    SCHEMA_LOCATION_OF_TWO_SOURCES,
    SCHEMA_NOT_SET,
    STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION,
    STREAMING_METADATA_EVOLUTION,
    STREAMING_SCHEMA_LOCATION_CONFLICT,
    STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT,
    STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED,
    STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID,
)
from delta_ds.exceptions import DeltaError, SchemaError
from delta_ds.kernel.base.environment import absolute
from delta_ds.kernel.base.json_text import parse_json
from delta_ds.kernel.format.actions import Metadata, Protocol
from delta_ds.kernel.format.options.stream_read import ALWAYS, StreamReadOptions
from delta_ds.kernel.format.schema.field_metadata import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_PREFIX,
    INVARIANTS,
)
from delta_ds.kernel.format.schema.types import StructField, StructType, parse_schema, schema_to_json
from delta_ds.kernel.format.schema.version_changes import (
    MappedChanges,
    incompatibility,
    schema_changes,
    with_physical_names,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.snapshot import Snapshot, open_snapshot
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.store_options import without_coordinator
from delta_ds.kernel.storage.uri import Address, parse_address
from delta_ds.records import dataclass, replace


def state_to_read(snapshot: Snapshot) -> TableState:
    """The protocol and metadata that a stream reads a snapshot with.

    Raises
    ------
    SchemaError
        The table has no columns yet.
    """
    if not snapshot.schema.fields:
        raise SCHEMA_NOT_SET(table=snapshot.storage.url, version=snapshot.version)
    return snapshot.table_state


def partition_schema(metadata: Metadata) -> StructType:
    """The partition columns as a schema, in their order."""
    found = (metadata.schema.find(name) for name in metadata.partition_columns)
    return StructType(tuple(field for field in found if field is not None))


def delta_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The table properties that mean something to Delta."""
    return {name: text for name, text in properties.items() if name.startswith("delta.")}


# Notes of writers in the metadata of a field, which are of no matter to readers.
_WRITERS_NOTES = (IDENTITY_PREFIX, GENERATION_EXPRESSION, INVARIANTS, CURRENT_DEFAULT)


def without_writers_notes(schema: StructType) -> tuple[StructField, ...]:
    """The top-level fields without metadata for writers only, such as identity marks."""

    def kept(metadata: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in metadata.items() if not key.startswith(_WRITERS_NOTES)}

    return tuple(StructField(f.name, f.type, f.nullable, kept(f.metadata)) for f in schema)


_VERSION_LINE = "v1"


@dataclass(frozen=True)
class SchemaLogEntry:
    """One entry of the log.

    Attributes
    ----------
    number
        Its place in the log, from 0 on.
    read_state
        Protocol and metadata, and the version from which on they hold.
    previous
        The number of the entry that was read with before, where it is not the one below.
    """

    number: int
    read_state: TableState
    previous: int | None = None


class SchemaLog:
    """The schema log of one source.

    Parameters
    ----------
    options
        With a `schema_tracking_location`; the filesystem is opened with the options of the table's.
    read_state
        The newest version of the table.
    """

    def __init__(self, options: StreamReadOptions, read_state: TableState) -> None:
        assert options.schema_tracking_location is not None
        self._options = options
        self._table = read_state
        self._folder: Storage = open_storage(
            _folder_of(options, read_state.metadata.id), without_coordinator(options.storage_options)
        )
        self.current = self._newest()

    def _newest(self) -> SchemaLogEntry | None:
        try:
            names = [status.path for status in self._folder.list_from("")]
        except FileNotFoundError:
            return None
        numbers = [int(name) for name in names if name.isdigit()]
        return self._read(max(numbers)) if numbers else None

    def _read(self, number: int) -> SchemaLogEntry:
        try:
            line, _, body = self._folder.read(str(number)).decode().partition("\n")
            if line.strip() != _VERSION_LINE:
                raise ValueError(f"it begins with {line[:20]!r}")
            return _parse(number, parse_json(body), self._table)
        except DeltaError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
            raise STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED(
                table=self._table.table, number=number, location=self._folder.url, reason=error
            ) from error

    def append(self, read_state: TableState, *, replacing: bool = False) -> SchemaLogEntry:
        """Add an entry; the next start of the stream reads with it.

        Parameters
        ----------
        replacing
            It takes the place of the newest one, which no data was read with.

        Raises
        ------
        SchemaError
            Another stream has added one: it uses the same location.
        """
        number = 0 if self.current is None else self.current.number + 1
        previous = self._before(self.current) if replacing and self.current is not None else None
        entry = SchemaLogEntry(number, read_state, previous)
        data = f"{_VERSION_LINE}\n{json.dumps(_body(entry), separators=(',', ':'))}".encode()
        try:
            self._folder.create(str(number), data)
        except FileExistsError as error:
            raise STREAMING_SCHEMA_LOCATION_CONFLICT(
                location=self._folder.url, table=read_state.table
            ) from error
        self.current = entry
        return entry

    @staticmethod
    def _before(entry: SchemaLogEntry) -> int:
        return entry.number - 1 if entry.previous is None else entry.previous

    def check_agreed(self) -> None:
        """Refuse to continue with the newest entry unless options allow its non-additive changes.

        Raises
        ------
        SchemaError
            Names the changes and the options that agree to them.
        """
        current = self.current
        if current is None:
            return
        number = self._before(current)
        if number < 0:
            return
        before = self._read(number)
        changes = schema_changes(before.read_state.schema, current.read_state.schema)
        # By physical names: a renamed column is still the same one.
        older, newer = (with_physical_names(e.read_state.schema) for e in (before, current))
        problem = incompatibility(older, newer, widening=True, missing=True)
        if problem is not None:
            raise SCHEMA_CHANGED_WITH_VERSION(
                version=current.read_state.version, table=current.read_state.table, problem=problem
            )
        missing = _not_agreed(changes, self._options, current.read_state.version)
        if missing:
            raise _not_agreed_error(changes, before.read_state.version, current.read_state, missing)


def _folder_of(options: StreamReadOptions, table_id: str) -> str:
    """Where the schema log of a source lies."""
    suffix = f"_{options.source_tracking_id}" if options.source_tracking_id else ""
    return f"{(options.schema_tracking_location or '').rstrip('/')}/_schema_log_{table_id}{suffix}"


def check_locations(
    sources: Sequence[StreamReadOptions], checkpoint: str | None, *, anywhere: bool = False
) -> None:
    """Refuse schema logs of one query that do not lie below its checkpoint, or two in one place.

    Parameters
    ----------
    sources
        All that the query reads, as often as it reads them.
    checkpoint
        The folder of the query's checkpoint; None: a temporary one, which nobody can name.
    anywhere
        Whether they may lie outside of it.

    Raises
    ------
    SchemaError
        Names the place, and what to do.

    Source: delta-spark, `DeltaAnalysis.verifyDeltaSourceSchemaLocation`. Differs: tables are told apart by their ids,
    however their paths are written.
    """
    tracking = [one for one in sources if one.schema_tracking_location is not None]
    for one in tracking:
        if not anywhere and not _lies_below(one, checkpoint):
            raise STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT(
                location=one.schema_tracking_location,
                checkpoint=checkpoint or "(a temporary folder: set the option checkpointLocation)",
                table=parse_address(one.path),
            )
    if len(tracking) < 2:
        return
    taken: set[Address] = set()
    for one in tracking:
        found = open_snapshot(open_storage(one.path, one.storage_options))
        place = _place(_folder_of(one, found.metadata.id))
        if place in taken:
            raise SCHEMA_LOCATION_OF_TWO_SOURCES(location=place, table=found.storage.url)
        taken.add(place)


def _lies_below(source: StreamReadOptions, checkpoint: str | None) -> bool:
    return checkpoint is not None and _place(checkpoint).relative(_place(_folder_of(source, ""))) is not None


def _place(path: str) -> Address:
    """An address without `.` and `..`, a local one from the root on."""
    address = parse_address(path)
    tidy = absolute(address.path) if address.scheme == "file" else posixpath.normpath(address.path or "/")
    return replace(address, path=tidy)


def differs_from(read_state: TableState, metadata: Metadata | None, protocol: Protocol | None) -> bool:
    """Whether a commit brings something else than a stream reads with; None: it does not say.

    Source: delta-spark, `hasMetadataOrProtocolChangeComparedToStreamMetadata`.
    """
    if protocol is not None and protocol != read_state.protocol:
        return True
    if metadata is None:
        return False
    now = read_state.metadata
    return (
        without_writers_notes(metadata.schema) != without_writers_notes(now.schema)
        or metadata.partition_columns != now.partition_columns
        or delta_properties(metadata.configuration) != delta_properties(now.configuration)
    )


def evolved_error(read_state: TableState) -> SchemaError:
    """The error that stops a stream once its schema log has a new entry."""
    return STREAMING_METADATA_EVOLUTION(
        table=read_state.table, version=read_state.version, schema=read_state.schema
    )


def _not_agreed(changes: MappedChanges, options: StreamReadOptions, version: int) -> list[str]:
    """The options that would allow the changes and are not set."""
    asked = (
        ("allowSourceColumnRename", bool(changes.renamed), options.allow_column_rename),
        ("allowSourceColumnDrop", bool(changes.dropped), options.allow_column_drop),
        ("allowSourceColumnTypeChange", bool(changes.widened), options.allow_type_change),
    )
    return [name for name, needed, answer in asked if needed and answer not in (ALWAYS, str(version))]


def _not_agreed_error(
    changes: MappedChanges, before: int, current: TableState, options: list[str]
) -> SchemaError:
    version = current.version
    ways = " and ".join(f".option({name!r}, '{version}')" for name in options)
    return STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION(
        opType=changes.name,
        previous=before,
        current=version,
        table=current.table,
        changes=changes.text,
        ways=ways,
        options=options,
    )


def _body(entry: SchemaLogEntry) -> dict[str, Any]:
    metadata = entry.read_state.metadata
    body = {
        "tableId": metadata.id,
        "deltaCommitVersion": entry.read_state.version,
        "dataSchemaJson": metadata.schema_string,
        "partitionSchemaJson": schema_to_json(partition_schema(metadata)),
        # The place in the checkpoint, which a Python data source does not learn.
        "sourceMetadataPath": "",
        "tableConfigurations": dict(metadata.configuration),
        "protocolJson": json.dumps(
            {"protocol": entry.read_state.protocol.to_action()}, separators=(",", ":")
        ),
    }
    if entry.previous is not None:
        body["previousMetadataSeqNum"] = entry.previous
    return body


def _parse(number: int, body: Mapping[str, Any], table: TableState) -> SchemaLogEntry:
    where = f"entry {number} of the schema log of {table.table}"
    if body["tableId"] != table.metadata.id:
        raise STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID(
            where=where, found_id=body["tableId"], table_id=table.metadata.id
        )
    parse_schema(body["dataSchemaJson"])
    configuration = body.get("tableConfigurations")
    protocol = table.protocol
    if body.get("protocolJson") is not None:
        protocol = Protocol.from_action(parse_json(body["protocolJson"])["protocol"], where)
    metadata = replace(
        table.metadata,
        schema_string=body["dataSchemaJson"],
        partition_columns=tuple(parse_schema(body["partitionSchemaJson"]).names),
        configuration=table.metadata.configuration if configuration is None else dict(configuration),
    )
    read_state = TableState(table.table, int(body["deltaCommitVersion"]), protocol, metadata)
    return SchemaLogEntry(number, read_state, body.get("previousMetadataSeqNum"))
