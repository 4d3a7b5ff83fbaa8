"""Schema enforcement: whether the data of a write fits the table, and the schema afterwards.

Source: delta-spark, `ImplicitMetadataOperation.updateMetadata` and `TransactionalWrite.normalizeSchema`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence

from delta_ds.conditions.schema import (
    ALL_COLUMNS_VOID,
    DUPLICATE_COLUMNS_FOUND_DATA,
    DUPLICATE_COLUMNS_FOUND_METADATA_UPDATE,
    EMPTY_DATA,
    METADATA_MISMATCH,
    NON_PARTITION_COLUMN_ABSENT_IN_DATA,
    TABLE_NO_COLUMNS,
)
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.format.expressions.dependents import check_generated_type, check_unused
from delta_ds.kernel.format.features import TYPE_WIDENING_PREVIEW
from delta_ds.kernel.format.schema import column_mapping
from delta_ds.kernel.format.schema.column_paths import Path, find, show
from delta_ds.kernel.format.schema.evolution import (
    as_nullable,
    check_duplicates,
    merge_schemas,
    reuse_column_ids,
)
from delta_ds.kernel.format.schema.field_metadata import OWN_VALUES
from delta_ds.kernel.format.schema.types import (
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    walk,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.transaction.alter.table_metadata import (
    check_names,
    check_new_schema,
    check_partitioning,
    check_reserved,
    check_void,
    partition_column_not_found,
    partition_columns_of,
)

__all__ = ["check_first_write", "check_new_schema", "check_write", "data_schema", "partition_columns_of"]


def check_write(
    state: TableState,
    data: StructType,
    *,
    partition_by: Sequence[str] = (),
    merge_schema: bool = False,
    replaces_schema: bool = False,
    overwrite: bool = False,
    whole_rows: bool = True,
) -> StructType:
    """The table's schema after a write of this data.

    Columns may come in any order and case; those that are missing are null (or their default) in the new
    rows. Nullability of the data is not looked at: rows are checked when they are written.

    Parameters
    ----------
    state
        The table before the write.
    data
        The schema of the rows.
    partition_by
        Those that the write names (`partitionBy`); empty where it names none.
    merge_schema
        New columns are added to the table's.
    replaces_schema, overwrite
        See `WriteIntent`.
    whole_rows
        Whether the rows are stored as they come: they then have a value for every partition column.

    Returns
    -------
    StructType
        Equal to `table` where nothing changes. New fields have no column mapping id yet
        (`column_mapping.assign`). With `replaces_schema` it is the data's schema, all nullable, columns that
        stay with the ids they have; the table's partition columns become
        `partition_columns_of(data, partition_by)`.

    Raises
    ------
    SchemaError
        `DELTA_METADATA_MISMATCH` (columns or partitioning that only an option lets change),
        `DELTA_FAILED_TO_MERGE_FIELDS` (types), `DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_NO_COLUMNS`, and what
        `merge_schemas` and `check_new_schema` refuse.

    Source: delta-spark, `ImplicitMetadataOperation.updateMetadata`.
    """
    table, table_name = state.schema, state.table
    incoming = data_schema(data)
    if not incoming.fields and (replaces_schema or not table.fields):
        raise TABLE_NO_COLUMNS(table=table_name)
    if replaces_schema:
        return _overwrite_schema(state, incoming, partition_by)
    _check_dependents(state, incoming)
    merged = merge_schemas(
        table,
        incoming,
        widening=state.widens_types,
        table_version=state.version + 1 if state.protocol.supports(TYPE_WIDENING_PREVIEW) else None,
    )
    partitioning = partition_columns_of(incoming, partition_by, table_name)
    check_partitioning(merged, partitioning, table_name)
    repartitioned = bool(partitioning) and list(partitioning) != list(state.partition_columns)
    if repartitioned or (merged != table and not merge_schema):
        raise _mismatch(state, incoming, merged, partitioning, overwrite)
    if merged != table:
        _check_generated(table, merged, table_name)
        _check_changed(merged, state)
    _check_data(table, incoming, state.partition_columns if whole_rows else (), table_name)
    return merged


def check_first_write(
    data: StructType,
    *,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    table_name: str,
) -> StructType:
    """The schema of the table that a write of this data makes: its columns, all nullable.

    Parameters
    ----------
    partition_by
        The partition columns that the write names; the table's are `partition_columns_of(data, partition_by)`.
    properties
        Those the table gets; column mapping allows any name.
    table_name
        For messages.

    Raises
    ------
    SchemaError
        `DELTA_EMPTY_DATA`, `DELTA_CANNOT_WRITE_EMPTY_SCHEMA`, `DELTA_DUPLICATE_COLUMNS_FOUND.DATA`, and what
        `check_new_schema` refuses.
    """
    properties = properties or {}
    incoming = data_schema(data)
    if not len(incoming):
        raise EMPTY_DATA(table=table_name)
    _check_not_all_void(incoming, table_name)
    check_duplicates(incoming, DUPLICATE_COLUMNS_FOUND_DATA, "the data that is written")
    partitioning = partition_columns_of(incoming, partition_by, table_name)
    mode = column_mapping.mapping_mode(properties, True)
    check_new_schema(incoming, partitioning, mode, table_name, properties=properties)
    check_void(incoming, table_name)
    return incoming


def _check_not_all_void(schema: StructType, table_name: str) -> None:
    if len(schema) and all(f.type == VOID for f in schema):
        raise ALL_COLUMNS_VOID(table=table_name, columns=schema.names)


def data_schema(data: StructType) -> StructType:
    """The part of a schema of data that counts: names, types and comments."""
    schema = as_nullable(data)
    assert isinstance(schema, StructType)

    def bare(field: StructField) -> StructField:
        metadata = {
            k: v
            for k, v in field.metadata.items()
            if not k.startswith("delta.") and not k.endswith("_DEFAULT")
        }
        return StructField(field.name, field.type, field.nullable, metadata)

    return column_mapping.transform_fields(schema, bare)


def _overwrite_schema(state: TableState, data: StructType, partition_by: Sequence[str]) -> StructType:
    partitioning = partition_columns_of(data, partition_by, state.table)
    mode = state.mapping_mode
    check_duplicates(data, DUPLICATE_COLUMNS_FOUND_METADATA_UPDATE, "the data that is written")
    check_new_schema(data, partitioning, mode, state.table, properties=state.properties)
    _check_not_all_void(data, state.table)
    check_void(data, state.table)
    if column_mapping.strip(state.schema) == data and partitioning == state.partition_columns:
        return state.schema
    return data if mode == "none" else reuse_column_ids(data, state.schema)


def _check_changed(schema: StructType, state: TableState) -> None:
    check_duplicates(schema, DUPLICATE_COLUMNS_FOUND_METADATA_UPDATE, f"the schema of {state.table}")
    if state.mapping_mode == "none":
        check_names(schema, state.table)
    check_reserved(schema, state.properties, state.table)


def _check_generated(table: StructType, merged: StructType, table_name: str) -> None:
    for path, field in walk(table):
        found = find(merged, path)
        if found is not None and found[1].type != field.type:
            check_generated_type(path, field, found[1].type, table_name)


def _check_dependents(state: TableState, data: StructType) -> None:
    """Refuse other types for columns that constraints or generated columns are computed from."""
    for path, column_type, data_type in _retyped_columns(state.schema, data, ()):
        check_unused(
            state.schema,
            state.properties,
            path,
            state.table,
            retyped=(column_type, data_type),
            change="written with another type",
        )


def _retyped_columns(
    table: DataType, data: DataType, path: Path
) -> Iterator[tuple[Path, DataType, DataType]]:
    # Fields of structs are compared by their exact name, as delta-spark does here.
    if isinstance(table, StructType) and isinstance(data, StructType):
        incoming = {f.name: f for f in data}
        for field in table:
            if field.name in incoming:
                yield from _retyped_columns(field.type, incoming[field.name].type, (*path, field.name))
    elif isinstance(table, ArrayType) and isinstance(data, ArrayType):
        yield from _retyped_columns(table.element, data.element, (*path, "element"))
    elif isinstance(table, MapType) and isinstance(data, MapType):
        yield from _retyped_columns(table.key, data.key, (*path, "key"))
        yield from _retyped_columns(table.value, data.value, (*path, "value"))
    elif table != data:
        yield path, table, data


def _check_data(
    table: StructType, data: StructType, partition_columns: Sequence[str], table_name: str
) -> None:
    """Refuse rows without partition values, and rows of partition values alone, unless the table has the others."""
    check_void(data, table_name)
    data = StructType(tuple(f for f in data if f.type != VOID))  # such columns are not written
    own = {field.name for field in table if not OWN_VALUES.isdisjoint(field.metadata)}
    filled = 0
    for name in partition_columns:
        field = table.find(name)
        if data.find(name) is None and (field is None or field.name not in own):
            raise partition_column_not_found(name, data, table_name)
        filled += data.find(name) is not None
    if partition_columns and filled == len(data) and own.issubset(partition_columns):
        raise NON_PARTITION_COLUMN_ABSENT_IN_DATA(table=table_name, partition_columns=partition_columns)


def _mismatch(
    state: TableState, data: StructType, merged: StructType, wanted: Sequence[str], overwrite: bool
) -> SchemaError:
    table, table_name, partition_columns = state.schema, state.table, state.partition_columns
    lines = [f"{table_name}. Nothing was written."]
    differences = list(_differences(table, data))
    if merged != table:
        lines.append("A schema mismatch detected when writing to the Delta table:")
        lines += (f"  {line}" for line in differences)
        lines.append("To change the schema with the write, set .option('mergeSchema', 'true').")
        lines += [f"Table schema: {table}", f"Data schema:  {data}"]
    if wanted and list(wanted) != list(partition_columns):
        layout = ", ".join(partition_columns) or "nothing"
        lines.append(f"The write is partitioned by {', '.join(wanted)}, the table by {layout}.")
    if overwrite:
        lines.append(
            "To replace schema or partitioning, set .option('overwriteSchema', 'true'); not together with replaceWhere."
        )
    return METADATA_MISMATCH(lines="\n".join(lines), differences=differences)


def _differences(table: StructType, data: StructType) -> Iterator[str]:
    """One line for each column of the data that the table does not have, or has with another type."""
    for path, field in walk(data):
        found = find(table, path)
        if found is not None:
            if _is_plain(field.type) and found[1].type != field.type:
                yield f"{show(found[0])}: {found[1].type} in the table, {field.type} in the data"
            continue
        if len(path) > 1 and find(table, path[:-1]) is None:
            continue  # the line of the parent says it
        near = difflib.get_close_matches(path[-1], [p[-1] for p, _ in walk(table) if p[:-1] == path[:-1]], 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        yield f"{show(path)}: {field.type}, not in the table{hint}"


def _is_plain(data_type: DataType) -> bool:
    return not isinstance(data_type, StructType | ArrayType | MapType)
