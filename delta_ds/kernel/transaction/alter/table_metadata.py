"""Checks of a table's metadata as a whole, and the metadata that follows from a change of it.

`finalize_metadata` is called with the metadata a command wants and gives back what is committed.

Source: protocol-checklist sections 18, 22, 33; delta-spark, `OptimisticTransaction.updateMetadata`.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection

from delta_ds.conditions.protocol import VARIANT_SHREDDING_NOT_WRITTEN
from delta_ds.conditions.tables import (
    INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING,
    ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION,
    TABLE_ALREADY_CONTAINS_CDC_COLUMNS,
    UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE,
)
from delta_ds.kernel.files.write.statistics import check_statistics_columns
from delta_ds.kernel.format import iceberg_compatibility as compatibility
from delta_ds.kernel.format.actions import Metadata
from delta_ds.kernel.format.features import ROW_TRACKING
from delta_ds.kernel.format.properties import (
    COLUMN_MAPPING_MAX_ID,
    COLUMN_MAPPING_MODE,
    DATA_SKIPPING_STATS_COLUMNS,
    ENABLE_CHANGE_DATA_FEED,
    ENABLE_ROW_TRACKING,
    ENABLE_VARIANT_SHREDDING,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    ROW_TRACKING_SUSPENDED,
)
from delta_ds.kernel.format.schema.char_varchar import with_settled_declarations
from delta_ds.kernel.format.schema.column_mapping import assign, assign_nested, highest_id
from delta_ds.kernel.format.schema.field_metadata import FIELD_ID, PHYSICAL_NAME
from delta_ds.kernel.format.schema.new_schema import CHANGE_COLUMNS, INVALID_NAME_CHARACTERS
from delta_ds.kernel.format.schema.types import StructType, schema_to_json, walk
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.transaction.alter.protocol import upgrade_protocol
from delta_ds.records import replace


def finalize_metadata(
    new: Metadata,
    old: Metadata | None,
    table: str,
    features: Collection[str] = (),
    *,
    keep_names: bool = True,
    upgrade: bool = False,
) -> Metadata:
    """Check the new metadata of a table, and complete ids, names and what else follows from it.

    Parameters
    ----------
    new
        What is wanted.
    old
        What holds now; None for a new table.
    table
        Its address, for messages.
    features
        What the table supports already, or is asked to support.
    keep_names
        Whether columns that get a physical name keep the one they have (a table with files).
    upgrade
        Whether REORG ... UPGRADE UNIFORM asks for it, which writes the files anew afterwards.

    Returns
    -------
    Metadata
        With column mapping ids and the names of row tracking columns where they are needed.

    Raises
    ------
    DeltaError
        Naming the property or column in the way; nothing was written.
    """
    new = _with_declared_types(compatibility.settled(new, old, table), old)
    _check_change_feed(new, table)
    _check_stats_columns(new, table)
    _check_shredding(new, old, table)
    compatibility.check_description(new, features, old, table, upgrade=upgrade)
    return _with_row_tracking(_with_mapping(new, old, table, keep_names), table, features)


def with_metadata(
    state: TableState,
    new: Metadata,
    features: Collection[str] = (),
    *,
    keep_names: bool = True,
    upgrade: bool = False,
) -> TableState:
    """A version once it has other metadata, with the protocol that it then needs.

    Parameters
    ----------
    state
        What holds now.
    new
        What is wanted.
    features
        Features asked for by name.
    keep_names, upgrade
        See `finalize_metadata`.

    Raises
    ------
    DeltaError
        As `finalize_metadata` and `upgrade_protocol`; or this package could not write the table any more.
    """
    supported = state.protocol.supported | set(features)
    metadata = finalize_metadata(
        new, state.metadata, state.table, supported, keep_names=keep_names, upgrade=upgrade
    )
    after = replace(state, metadata=metadata, protocol=upgrade_protocol(state.protocol, metadata, features))
    after.check_writable()
    return after


def _with_declared_types(new: Metadata, old: Metadata | None) -> Metadata:
    if old is not None and new.schema_string == old.schema_string:
        return new
    schema = with_settled_declarations(new.schema, None if old is None else old.schema)
    return new if schema == new.schema else replace(new, schema_string=schema_to_json(schema))


def _check_change_feed(new: Metadata, table: str) -> None:
    if not ENABLE_CHANGE_DATA_FEED.of(new.configuration):
        return
    taken = [f.name for f in new.schema if f.name.lower() in CHANGE_COLUMNS]
    if taken:
        raise TABLE_ALREADY_CONTAINS_CDC_COLUMNS(table=table, columnList=taken)


def _check_stats_columns(new: Metadata, table: str) -> None:
    text = new.configuration.get(DATA_SKIPPING_STATS_COLUMNS.name)
    if text is not None:
        check_statistics_columns(new.schema, new.partition_columns, text, table)


def _check_shredding(new: Metadata, old: Metadata | None, table: str) -> None:
    before = old is not None and ENABLE_VARIANT_SHREDDING.of(old.configuration)
    if ENABLE_VARIANT_SHREDDING.of(new.configuration) and not before:
        raise VARIANT_SHREDDING_NOT_WRITTEN(table=table, property=ENABLE_VARIANT_SHREDDING.name)


# --- column mapping


def _with_mapping(new: Metadata, old: Metadata | None, table: str, keep_names: bool) -> Metadata:
    mode = COLUMN_MAPPING_MODE.of(new.configuration)
    if old is not None:
        _check_mode_change(COLUMN_MAPPING_MODE.of(old.configuration), mode, new, table)
    if mode == "none":
        return new
    max_id = COLUMN_MAPPING_MAX_ID.of(new.configuration)
    if old is not None:
        max_id = max(max_id, highest_id(old.schema))
    schema, highest = assign(new.schema, max_id, keep_names=keep_names)
    if compatibility.asked_version(new.configuration) == 2:
        schema, highest = assign_nested(schema, max(highest, max_id))
    configuration = {**new.configuration, COLUMN_MAPPING_MAX_ID.name: str(max(highest, max_id))}
    if schema == new.schema and not _lacks_ids(new.schema):
        return replace(new, configuration=configuration)
    return replace(new, schema_string=schema_to_json(schema), configuration=configuration)


def _lacks_ids(schema: StructType) -> bool:
    return any(
        FIELD_ID not in field.metadata or PHYSICAL_NAME not in field.metadata for _, field in walk(schema)
    )


def _check_mode_change(before: str, after: str, new: Metadata, table: str) -> None:
    """Source: protocol-checklist CM-W-08."""
    if before == after or (before, after) == ("none", "name"):
        return
    if after == "none":
        check_names_without_mapping(new.schema, table)
    advice = (
        "that rewrites its files, as DeltaTable.setProperties, unsetProperties and dropFeatureSupport do"
        if after == "none"
        else "only none to name is possible on an existing table; create a new one with the mode"
    )
    raise UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE(table=table, oldMode=before, newMode=after, advice=advice)


def check_names_without_mapping(schema: StructType, table: str) -> None:
    """Refuse to remove the column mapping of a table whose columns have names that need it.

    Raises
    ------
    SchemaError
        Naming them.
    """
    odd = [f.name for _, f in walk(schema) if any(c in INVALID_NAME_CHARACTERS for c in f.name)]
    if odd:
        raise INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING(
            table=table, odd=", ".join(map(repr, odd)), invalidColumnNames=odd
        )


# --- row tracking


def _with_row_tracking(new: Metadata, table: str, features: Collection[str]) -> Metadata:
    enabled = ENABLE_ROW_TRACKING.of(new.configuration)
    if enabled and ROW_TRACKING_SUSPENDED.of(new.configuration):
        raise ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION(
            table=table, property1=ENABLE_ROW_TRACKING.name, property2=ROW_TRACKING_SUSPENDED.name
        )
    if not enabled and ROW_TRACKING.name not in features:
        return new
    names = {
        ROW_ID_COLUMN.name: f"_row-id-col-{uuid.uuid4()}",
        ROW_COMMIT_VERSION_COLUMN.name: f"_row-commit-version-col-{uuid.uuid4()}",
    }
    return replace(new, configuration={**new.configuration, **(names | _properties_among(new, names))})


def _properties_among(metadata: Metadata, names: Collection[str]) -> dict[str, str]:
    return {name: metadata.configuration[name] for name in names if name in metadata.configuration}
