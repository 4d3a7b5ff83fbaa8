"""The metadata changes of a winning commit that a transaction can adopt.

Everything else means that the transaction was planned for another table than there is now.

Source: conflict-matrix section 4.
"""

from __future__ import annotations

from collections.abc import Callable

from delta_ds.kernel.format.features import (
    CATALOG_MANAGED,
    DELETION_VECTORS,
    IN_COMMIT_TIMESTAMP,
    ROW_TRACKING,
    V2_CHECKPOINT,
    TableFeature,
)
from delta_ds.kernel.format.properties import (
    CHECKPOINT_POLICY,
    COLUMN_MAPPING_MAX_ID,
    COLUMN_MAPPING_MODE,
    ENABLE_DELETION_VECTORS,
    ENABLE_IN_COMMIT_TIMESTAMPS,
    ENABLE_ROW_TRACKING,
    ICT_ENABLEMENT_TIMESTAMP,
    ICT_ENABLEMENT_VERSION,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
)
from delta_ds.kernel.format.schema.field_metadata import FIELD_ID, NESTED_IDS, PHYSICAL_NAME
from delta_ds.kernel.format.schema.types import StructField
from delta_ds.kernel.format.table_state import TableState

# Set on commits that only moved the marks of identity columns.
IDENTITY_TAG = "delta.identity.schemaUpdate"

_MAPPING_KEYS = frozenset(
    [FIELD_ID, PHYSICAL_NAME, NESTED_IDS, "parquet.field.id", "parquet.field.nested.ids"]
)


def incompatible_difference(before: TableState, after: TableState) -> str | None:
    """The part of a metadata change that cannot be adopted, in words; None if all of it can.

    Parameters
    ----------
    before
        What the transaction goes by.
    after
        What holds after the other commit.
    """
    for name in ("id", "name", "description", "provider", "partition_columns", "created_time"):
        if getattr(before.metadata, name) != getattr(after.metadata, name):
            return f"its {name.replace('_', ' ')} changed"
    found = _property_difference(before, after)
    if found is None and before.metadata.schema_string != after.metadata.schema_string:
        found = _schema_difference(before, after)
    return found


def enables_row_tracking(before: TableState, after: TableState) -> bool:
    """Whether the other commit turned row tracking on."""
    return after.enabled(ROW_TRACKING) and not before.enabled(ROW_TRACKING)


def _property_difference(before: TableState, after: TableState) -> str | None:
    old, new = before.properties, after.properties
    removed = sorted(old.keys() - new.keys())
    if removed:
        return f"property {removed[0]} was unset"
    for name in sorted(new):
        if old.get(name) == new[name]:
            continue
        allowed = _ADOPTED.get(name)
        if allowed is None or not allowed(_MetadataChange(name, before, after)):
            return f"property {name} was set to {new[name]!r}"
    return None


class _MetadataChange:
    """One property that was added or changed."""

    def __init__(self, name: str, before: TableState, after: TableState) -> None:
        self.before, self.after = before, after
        self.is_new = name not in before.properties


def _is_turned_on(feature: TableFeature) -> Callable[[_MetadataChange], bool]:
    return lambda change: change.after.enabled(feature)


def _to_mapping_by_name(change: _MetadataChange) -> bool:
    return _maps_by_name_now(change.before, change.after)


def _maps_by_name_now(before: TableState, after: TableState) -> bool:
    return (before.mapping_mode, after.mapping_mode) == ("none", "name")


def _names_row_tracking_column(change: _MetadataChange) -> bool:
    return change.after.enabled(ROW_TRACKING)


def _is_new(change: _MetadataChange) -> bool:
    return change.is_new


def _catalog_id(change: _MetadataChange) -> bool:
    return change.is_new or not change.after.supports(CATALOG_MANAGED)


_ADOPTED: dict[str, Callable[[_MetadataChange], bool]] = {
    ENABLE_ROW_TRACKING.name: _is_turned_on(ROW_TRACKING),
    ROW_ID_COLUMN.name: _names_row_tracking_column,
    ROW_COMMIT_VERSION_COLUMN.name: _names_row_tracking_column,
    COLUMN_MAPPING_MODE.name: _to_mapping_by_name,
    COLUMN_MAPPING_MAX_ID.name: lambda change: True,
    ENABLE_DELETION_VECTORS.name: _is_turned_on(DELETION_VECTORS),
    CHECKPOINT_POLICY.name: _is_turned_on(V2_CHECKPOINT),
    ENABLE_IN_COMMIT_TIMESTAMPS.name: _is_turned_on(IN_COMMIT_TIMESTAMP),
    ICT_ENABLEMENT_VERSION.name: _is_new,
    ICT_ENABLEMENT_TIMESTAMP.name: _is_new,
    "io.unitycatalog.tableId": _catalog_id,
}


def _schema_difference(before: TableState, after: TableState) -> str | None:
    """Only what switching column mapping on writes into top-level fields can be adopted."""
    old, new = before.schema.fields, after.schema.fields
    if not _maps_by_name_now(before, after):
        return "its schema changed"
    if len(old) != len(new):
        return "its columns changed"
    for was, now in zip(old, new, strict=True):
        if (was.name, was.type, was.nullable) != (now.name, now.type, now.nullable):
            return f"column {was.name} changed"
        if _changed_keys(was, now) - _MAPPING_KEYS:
            return f"the metadata of column {was.name} changed"
    return None


def _changed_keys(was: StructField, now: StructField) -> set[str]:
    keys = was.metadata.keys() | now.metadata.keys()
    missing = object()
    return {key for key in keys if was.metadata.get(key, missing) != now.metadata.get(key, missing)}
