"""The version whose schema a stream reads with, in a form that every later process can use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_ds.conditions.streaming import SCHEMA_NOT_SET
from delta_ds.kernel.format.actions import Metadata
from delta_ds.kernel.format.schema.field_metadata import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_PREFIX,
    INVARIANTS,
)
from delta_ds.kernel.format.schema.types import StructField, StructType
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.snapshot import Snapshot


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
