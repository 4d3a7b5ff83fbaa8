"""The version whose schema a stream reads with, in a form that every later process can use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from delta_ds.exceptions import SchemaError
from delta_ds.kernel import features
from delta_ds.kernel.actions import Metadata, Protocol
from delta_ds.kernel.features import COLUMN_MAPPING
from delta_ds.kernel.properties import ENABLE_CHANGE_DATA_FEED
from delta_ds.kernel.schema.column_mapping import mapping_mode
from delta_ds.kernel.schema.type_widening import FEATURES as TYPE_WIDENING
from delta_ds.kernel.schema.types import StructField, StructType
from delta_ds.kernel.snapshot import Snapshot


@dataclass(frozen=True)
class Pinned:
    """Protocol and metadata of a version. Can be pickled, and needs no look at the log.

    Attributes
    ----------
    table
        The table's address, for messages.
    """

    table: str
    version: int
    protocol: Protocol
    metadata: Metadata

    @classmethod
    def of(cls, snapshot: Snapshot) -> Pinned:
        """What a snapshot says.

        Raises
        ------
        SchemaError
            The table has no columns yet.
        """
        if not snapshot.schema.fields:
            raise SchemaError(
                f"Delta table {snapshot.storage.url} has no columns at version {snapshot.version}, so there is nothing "
                "to stream from it yet. Write data with the option mergeSchema first",
                condition="DELTA_SCHEMA_NOT_SET",
            )
        return cls(snapshot.storage.url, snapshot.version, snapshot.protocol, snapshot.metadata)

    @property
    def schema(self) -> StructType:
        return self.metadata.schema

    @property
    def mapping_mode(self) -> str:
        return mapping_mode(self.metadata.configuration, self.protocol.supports(COLUMN_MAPPING))

    @cached_property
    def physical_partition_columns(self) -> tuple[str, ...]:
        """The keys of partition values in the log."""
        return self.metadata.physical_partition_columns(self.protocol)

    @property
    def widens_types(self) -> bool:
        """Whether columns of the table may have become wider."""
        return bool(self.protocol.supported & TYPE_WIDENING)

    @property
    def records_changes(self) -> bool:
        return records_changes(self.metadata)

    def check_readable(self, protocol: Protocol, metadata: Metadata) -> None:
        """Refuse a later protocol or metadata that cannot be read here.

        Raises
        ------
        UnsupportedFeatureError
            See `features.check_readable`.
        """
        # Before the schema is parsed: a feature that is not supported may bring types that are unknown.
        features.check_readable(protocol, metadata.configuration, self.table)
        features.check_readable(protocol, metadata.configuration, self.table, schema=metadata.schema)


def records_changes(metadata: Metadata) -> bool:
    """Whether commits of the table record what changes."""
    return ENABLE_CHANGE_DATA_FEED.of(metadata.configuration)


def partition_schema(metadata: Metadata) -> StructType:
    """The partition columns as a schema, in their order."""
    found = (metadata.schema.find(name) for name in metadata.partition_columns)
    return StructType(tuple(field for field in found if field is not None))


def delta_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The table properties that mean something to Delta."""
    return {name: text for name, text in properties.items() if name.startswith("delta.")}


# Notes of writers in the metadata of a field, which are of no matter to readers.
_WRITERS_NOTES = ("delta.identity.", "delta.generationExpression", "delta.invariants", "CURRENT_DEFAULT")


def without_writers_notes(schema: StructType) -> tuple[StructField, ...]:
    """The top-level fields without what only writers look at: values of identity columns run on, for one."""

    def kept(metadata: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in metadata.items() if not key.startswith(_WRITERS_NOTES)}

    return tuple(StructField(f.name, f.type, f.nullable, kept(f.metadata)) for f in schema)
