"""Fields of structs that the rows of a write do not have: data files leave them out, and readers take null for them.

As with delta-spark, whose files hold what the rows hold: nobody writes columns of nulls.
Source: delta-spark, `TransactionalWrite.normalizeData`.
"""

from __future__ import annotations

from collections.abc import Collection

from delta_ds.kernel.data.rows.checks import Condition
from delta_ds.kernel.data.rows.plan import RowPlan
from delta_ds.kernel.expressions.tree import columns
from delta_ds.kernel.schema.types import ArrayType, DataType, MapType, StructType
from delta_ds.kernel.write.overwrite_scope import OverwriteScope
from delta_ds.records import replace


def without_absent(table: StructType, data: StructType, rows: RowPlan, scope: OverwriteScope) -> StructType:
    """The columns of a table with the fields that rows bring, and those that something asks for.

    Parameters
    ----------
    table
        The table's schema.
    data
        The schema of the rows, whose columns and fields are found ignoring case.
    rows, scope
        The plan of the same write for whole rows. Columns that its expressions read stay as they are.
    """
    read = _read_columns(rows, scope)
    fields = []
    for field in table:
        given = data.find(field.name)
        if given is not None and field.name.lower() not in read:
            field = replace(field, type=_narrowed(field.type, given.type))
        fields.append(field)
    return StructType(tuple(fields))


def _read_columns(rows: RowPlan, scope: OverwriteScope) -> Collection[str]:
    clauses = [check.clause for check in rows.checks if isinstance(check, Condition)]
    clauses += [generated.clause for generated in rows.generated]
    if scope.condition is not None:
        clauses.append(scope.condition.clause)
    return {column.path[0].lower() for clause in clauses for column in columns(clause.tree)}


def _narrowed(table: DataType, data: DataType) -> DataType:
    if isinstance(table, StructType) and isinstance(data, StructType):
        kept = []
        for field in table:
            given = data.find(field.name)
            if given is not None:
                kept.append(replace(field, type=_narrowed(field.type, given.type)))
            elif not field.nullable:
                kept.append(field)
        # A struct without fields cannot be written.
        return StructType(tuple(kept)) if kept else table
    if isinstance(table, ArrayType) and isinstance(data, ArrayType):
        return replace(table, element=_narrowed(table.element, data.element))
    if isinstance(table, MapType) and isinstance(data, MapType):
        key, value = _narrowed(table.key, data.key), _narrowed(table.value, data.value)
        return replace(table, key=key, value=value)
    return table
