"""Table states made of a schema, for tests of what is decided before any row is looked at."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from delta_ds.kernel.format.actions import Metadata, Protocol
from delta_ds.kernel.format.schema.types import StructType, schema_to_json
from delta_ds.kernel.format.table_state import TableState


def table_state(
    schema: StructType,
    *,
    partition_columns: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    features: Collection[str] = (),
    table: str = "T",
    version: int = 0,
) -> TableState:
    """A version with a protocol of the features alone."""
    names = frozenset(features)
    metadata = Metadata("id", schema_to_json(schema), tuple(partition_columns), dict(properties or {}))
    return TableState(table, version, Protocol(3, 7, names, names), metadata)
