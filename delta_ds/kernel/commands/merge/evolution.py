"""The schema of a table after a MERGE with schema evolution.

Source: delta-spark, `ResolveDeltaMergeInto.computePostEvolutionTargetSchema` and `SchemaMergingUtils.mergeSchemas` with
implicit conversions.
"""

from __future__ import annotations

from collections.abc import Sequence

from delta_ds.kernel.format.expressions.coercion import TEMPORAL, is_nested, is_numeric
from delta_ds.kernel.format.schema.column_paths import Path
from delta_ds.kernel.format.schema.type_widening import can_widen
from delta_ds.kernel.format.schema.types import (
    BINARY,
    STRING,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.transaction.alter.schema_change import is_widening_enabled
from delta_ds.kernel.transaction.write.schema_enforcement import check_write
from delta_ds.records import replace


def evolved_schema(state: TableState, source: StructType, assigned: Sequence[Path]) -> StructType:
    """The table's schema with the columns and fields of the source that clauses assign to.

    Parameters
    ----------
    state
        The table.
    source
        The schema of the rows that are merged into it.
    assigned
        The columns and fields that `WHEN MATCHED` and `WHEN NOT MATCHED` clauses assign to; `*` stands for every
        column of the source.

    Returns
    -------
    StructType
        New columns and fields come last, nullable. Types change only where the table widens types; otherwise values
        are cast to the table's. Equal to the table's where nothing changes.

    Raises
    ------
    SchemaError
        `DELTA_FAILED_TO_MERGE_FIELDS` where types have nothing in common, and what `check_write` refuses.
    """
    wanted = _assigned_part(source, (), [tuple(name.lower() for name in path) for path in assigned])
    if not wanted.fields:
        return state.schema
    data = _convert_type(state.schema, wanted, is_widening_enabled(state))
    assert isinstance(data, StructType)
    return check_write(state, data, merge_schema=True, whole_rows=False)


def _assigned_part(source: StructType, above: Path, assigned: Sequence[Path]) -> StructType:
    fields = []
    for column in source:
        path = (*above, column.name.lower())
        if path in assigned:
            fields.append(column)
        elif isinstance(column.type, StructType) and any(path == other[: len(path)] for other in assigned):
            fields.append(replace(column, type=_assigned_part(column.type, path, assigned)))
    return StructType(tuple(fields))


def _convert_type(table: DataType, data: DataType, widening: bool) -> DataType:
    """The data's type, with the table's types where values are converted to them."""
    if isinstance(table, StructType) and isinstance(data, StructType):
        return StructType(tuple(_convert_field(table, f, widening) for f in data))
    if isinstance(table, ArrayType) and isinstance(data, ArrayType):
        return replace(data, element=_convert_type(table.element, data.element, widening))
    if isinstance(table, MapType) and isinstance(data, MapType):
        key = _convert_type(table.key, data.key, widening)
        return replace(data, key=key, value=_convert_type(table.value, data.value, widening))
    if widening and can_widen(table, data):
        return data
    return table if _is_implicit(data, table) else data


def _convert_field(table: StructType, field: StructField, widening: bool) -> StructField:
    there = table.find(field.name)
    return field if there is None else replace(field, type=_convert_type(there.type, field.type, widening))


def _is_implicit(source: DataType, target: DataType) -> bool:
    """Whether Spark casts without being asked where a value of `target` is expected.

    Source: Spark, `TypeCoercion.implicitCast`, the rules without ANSI, whatever the session's setting.
    """
    if source in (target, VOID):
        return True
    if is_nested(source) or is_nested(target):
        return False
    if (is_numeric(source) and is_numeric(target)) or (source in TEMPORAL and target in TEMPORAL):
        return True
    return target == STRING or (
        source == STRING and (is_numeric(target) or target in TEMPORAL or target == BINARY)
    )
