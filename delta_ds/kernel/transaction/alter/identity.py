"""SYNC IDENTITY: let an identity column go on behind the values that its rows have.

Source: delta-spark, `AlterTableChangeColumnDeltaCommand`, `IdentityColumn.syncIdentity`; protocol-checklist section 29.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.conditions.columns import IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN
from delta_ds.kernel.format.operations import CHANGE_COLUMN
from delta_ds.kernel.format.schema.column_paths import parse_path, replace_fields, resolve
from delta_ds.kernel.format.schema.field_metadata import (
    IDENTITY_HIGH_WATER_MARK,
    IDENTITY_START,
    IDENTITY_STEP,
)
from delta_ds.kernel.format.schema.types import StructField
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.transaction.alter.schema_change import (
    SchemaChange,
    commit_if_needed,
    field_in_history,
    with_schema,
)
from delta_ds.kernel.transaction.append_conflicts import IDENTITY_TAG
from delta_ds.records import replace

if TYPE_CHECKING:
    from delta_ds.kernel.transaction.table_log import TableLog


def identity_step(state: TableState, column: str) -> int:
    """The distance of neighbouring values of an identity column.

    Raises
    ------
    UnsupportedOperationError
        The column is no identity column.
    """
    path, field = resolve(state.schema, parse_path(column), state.table)
    if len(path) > 1 or IDENTITY_STEP not in field.metadata:
        raise IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN(table=state.table, column=column)
    return int(field.metadata[IDENTITY_STEP])


def sync_identity(log: TableLog, column: str, furthest: int | None) -> int | None:
    """Set the high water mark of an identity column by the values that are there.

    Parameters
    ----------
    column
        As Spark SQL writes it.
    furthest
        The highest value of the column, the lowest where it counts down; None: there is none.

    Returns
    -------
    int or None
        The version committed; None where the mark is there already, or there are no values.
    """
    return commit_if_needed(log, lambda state: _plan_sync(state, column, furthest))


def _plan_sync(state: TableState, column: str, furthest: int | None) -> SchemaChange | None:
    step = identity_step(state, column)
    path, field = resolve(state.schema, parse_path(column), state.table)
    if furthest is None:
        return None
    start = int(field.metadata[IDENTITY_START])
    # The value of the sequence that is not before any that is there; none of before the start.
    steps = -((start - furthest) // step) if (furthest - start) * step > 0 else 0
    if steps < 0 or (furthest - start) * step < 0:
        return None
    mark = start + steps * step
    before = field.metadata.get(IDENTITY_HIGH_WATER_MARK)
    if before == mark or (before is not None and (int(before) - mark) * step > 0):
        return None
    synced = replace(field, metadata={**field.metadata, IDENTITY_HIGH_WATER_MARK: mark})

    def with_mark(fields: tuple[StructField, ...]) -> tuple[StructField, ...]:
        return tuple(synced if one.name == field.name else one for one in fields)

    schema = replace_fields(state.schema, (), with_mark)
    # The history of delta-spark has the column as it was before.
    return SchemaChange(
        with_schema(state.metadata, schema),
        CHANGE_COLUMN,
        {"column": field_in_history(path, field)},
        tags={IDENTITY_TAG: "true"},
        reads_rows=True,
    )
