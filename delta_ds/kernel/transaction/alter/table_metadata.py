"""Checks of a new schema and of a table's metadata as a whole, and the metadata that follows from a change of it.

A schema: names, types, nesting. `finalize_metadata` is called with the metadata a command wants and gives back what is
committed.

Source: protocol-checklist sections 18, 22, 33; delta-spark, `OptimisticTransaction.updateMetadata` and
`assertMetadata`, `PartitionUtils.validatePartitionColumn`.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from delta_ds.conditions.protocol import VARIANT_SHREDDING_NOT_WRITTEN
from delta_ds.conditions.schema import (
    CANNOT_USE_ALL_COLUMNS_FOR_PARTITION,
    COMPLEX_TYPE_COLUMN_CONTAINS_VOID,
    DUPLICATE_COLUMNS_FOUND_METADATA_UPDATE,
    DUPLICATE_COLUMNS_FOUND_PARTITION_COLUMNS,
    INVALID_CHARACTERS_IN_COLUMN_NAMES,
    INVALID_PARTITION_COLUMN,
    NESTED_NOT_NULL_CONSTRAINT,
    NULL_SCHEMA_IN_STREAMING_WRITE,
    PARTITION_COLUMN_NOT_FOUND,
    RESERVED_CDC_COLUMNS_ON_WRITE,
)
from delta_ds.conditions.tables import (
    INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING,
    ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION,
    TABLE_ALREADY_CONTAINS_CDC_COLUMNS,
    UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE,
)
from delta_ds.exceptions import SchemaError
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
from delta_ds.kernel.format.schema.column_paths import show
from delta_ds.kernel.format.schema.evolution import as_nullable, check_duplicates
from delta_ds.kernel.format.schema.field_metadata import FIELD_ID, PHYSICAL_NAME
from delta_ds.kernel.format.schema.types import (
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructType,
    is_nested,
    schema_to_json,
    walk,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.transaction.alter.protocol import upgrade_protocol
from delta_ds.records import replace

# The columns of the change data feed. Differs: delta-spark lets other spellings (`_Change_Type`) pass.
CHANGE_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
INVALID_NAME_CHARACTERS = " ,;{}()\n\t="


def check_new_schema(
    schema: StructType,
    partition_columns: Sequence[str],
    mapping_mode: str,
    table_name: str,
    *,
    properties: Mapping[str, str] | None = None,
    is_new: bool = True,
) -> None:
    """Refuse a schema that no table may have.

    Parameters
    ----------
    schema
        The whole schema the table would have.
    partition_columns
        Its partition columns, top-level names.
    mapping_mode
        `none`, `name` or `id`: with column mapping names may hold any character.
    table_name
        For messages.
    properties
        The table's properties; those of the change data feed reserve names.
    is_new
        Whether it is one to write rows by. A table may drop columns until its partition columns are all there is.

    Raises
    ------
    SchemaError
        Duplicate names, invalid characters, partition columns that are missing, repeated, all there is or of
        a type without order, `NOT NULL` inside arrays and maps, reserved names.

    Source: protocol-checklist CM-W-10, SCH-RW-03, SCH-RW-05, CON-W-02.
    """
    check_duplicates(schema, DUPLICATE_COLUMNS_FOUND_METADATA_UPDATE, f"the schema of {table_name}")
    if mapping_mode == "none":
        check_names(schema, table_name)
    check_partitioning(schema, partition_columns, table_name, is_new=is_new)
    _check_collections(schema, table_name)
    check_reserved(schema, properties or {}, table_name)


def check_names(schema: StructType, table_name: str) -> None:
    """Refuse the characters that Parquet names cannot have; with column mapping all are fine."""
    invalid = [show(p) for p, _ in walk(schema) if any(c in INVALID_NAME_CHARACTERS for c in p[-1])]
    if invalid:
        raise INVALID_CHARACTERS_IN_COLUMN_NAMES(table=table_name, invalidColumnNames=invalid)


def partition_columns_of(schema: StructType, names: Sequence[str], table_name: str) -> tuple[str, ...]:
    """The partition columns a write asks for, in the case the schema of its data has.

    Raises
    ------
    SchemaError
        `DELTA_PARTITION_COLUMN_NOT_FOUND`: one is not a column of the data.
    """
    out = []
    for name in names:
        found = schema.find(name)
        if found is None:
            raise partition_column_not_found(name, schema, table_name)
        out.append(found.name)
    return tuple(out)


def partition_column_not_found(name: str, schema: StructType, table_name: str) -> SchemaError:
    """The error for data without a partition column."""
    return PARTITION_COLUMN_NOT_FOUND(
        table=table_name,
        name=name,
        names=", ".join(schema.names) or "none",
        columnName=f"`{name}`",
        schemaMap=schema.names,
    )


def check_partitioning(
    schema: StructType, partition_columns: Sequence[str], table_name: str, *, is_new: bool = True
) -> None:
    """Refuse partition columns that are repeated, missing, not sortable values, or (`is_new`) all columns there are."""
    counts = Counter(name.lower() for name in partition_columns)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise DUPLICATE_COLUMNS_FOUND_PARTITION_COLUMNS(table=table_name, columns=twice)
    for name in partition_columns:
        found = schema.find(name)
        if found is None:
            raise partition_column_not_found(name, schema, table_name)
        if is_nested(found.type) or found.type in (VARIANT, VOID):
            raise INVALID_PARTITION_COLUMN(table=table_name, column=found.name, type=str(found.type))
    if is_new and partition_columns and len(partition_columns) == len(schema):
        raise CANNOT_USE_ALL_COLUMNS_FOR_PARTITION(table=table_name, partition_columns=partition_columns)


def _check_collections(schema: StructType, table_name: str) -> None:
    for path, field in walk(schema):
        for step, inside in _inside(field.type):
            if as_nullable(inside) != inside:
                raise NESTED_NOT_NULL_CONSTRAINT(
                    column=show(path), table=table_name, nestType=step, inside=inside
                )


def _inside(data_type: DataType) -> list[tuple[str, DataType]]:
    # What is in an array itself may be NOT NULL (`containsNull`), the fields of structs in it may not.
    if isinstance(data_type, ArrayType):
        return [("element", data_type.element)]
    if isinstance(data_type, MapType):
        return [("key", data_type.key), ("value", data_type.value)]
    return []


def check_void(schema: StructType, table_name: str) -> None:
    """Refuse data with `void` where no file can hold it: in arrays and maps, or as all there is.

    A schema may have such columns, they are read as null.

    Raises
    ------
    SchemaError
        `DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE`, with the column.

    Source: PROTOCOL.md, "Void Type" (protocol-checklist SCH-RW-05).
    """
    for path, field in walk(schema):
        inside = any(_has_void(part) for _, part in _inside(field.type))
        empty = isinstance(field.type, StructType) and len(field.type) and _is_void(field.type)
        if inside or empty:
            where = "inside an array or map" if inside else "in all of its fields"
            raise COMPLEX_TYPE_COLUMN_CONTAINS_VOID(
                column=show(path), table=table_name, where=where, type=field.type
            )


def check_no_void(schema: StructType, table_name: str) -> None:
    """Refuse rows of a stream with `void` anywhere: batches of a query have one schema, which says no type for it.

    Raises
    ------
    SchemaError
        `DELTA_NULL_SCHEMA_IN_STREAMING_WRITE`, with the columns.

    Source: delta-spark, `DeltaSink.addBatch`.
    """
    found = [field.name for field in schema if _has_void(field.type)]
    if found:
        raise NULL_SCHEMA_IN_STREAMING_WRITE(table=table_name, columns=found)


def _has_void(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return any(_has_void(f.type) for f in data_type)
    return data_type == VOID or any(_has_void(inside) for _, inside in _inside(data_type))


def _is_void(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return all(_is_void(f.type) for f in data_type)
    return data_type == VOID


def check_reserved(schema: StructType, properties: Mapping[str, str], table_name: str) -> None:
    """Refuse the change data feed's own columns where the table records changes."""
    if properties.get(ENABLE_CHANGE_DATA_FEED.name, "false").lower() != "true":
        return
    used = [name for name in schema.names if name.lower() in CHANGE_COLUMNS]
    if used:
        raise RESERVED_CDC_COLUMNS_ON_WRITE(table=table_name, columns=used)


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
