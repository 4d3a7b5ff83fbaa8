"""Add, rename and drop columns; SYNC IDENTITY: let an identity column go on behind the values that its rows have.

Names of existing columns are written as in Spark SQL (`s.a`, `` `a.b` ``, `l.element.x`), new names are plain.

Source: delta-spark, `AlterTableAddColumnsDeltaCommand`, `AlterTableChangeColumnDeltaCommand`,
`AlterTableDropColumnsDeltaCommand` and `IdentityColumn.syncIdentity`; protocol-checklist section 29.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.columns import (
    COLUMN_ALREADY_EXISTS,
    DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA,
    FIELD_ALREADY_EXISTS,
    FIELD_NOT_FOUND,
    IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN,
    UNSUPPORTED_DROP_CLUSTERING_COLUMN,
    UNSUPPORTED_DROP_COLUMN,
    UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE,
    UNSUPPORTED_DROP_PARTITION_COLUMN,
    UNSUPPORTED_RENAME_COLUMN,
    WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED,
)
from delta_ds.conditions.record import ADD_COLUMNS_OPTIONS, ErrorCondition
from delta_ds.conditions.schema import COLUMN_DROPPED_TWICE, NOT_ONE_COLUMN
from delta_ds.exceptions import InvalidOptionError, SchemaError, UnsupportedOperationError
from delta_ds.kernel.format.expressions.dependents import check_unused
from delta_ds.kernel.format.operations import ADD_COLUMNS, CHANGE_COLUMN, DROP_COLUMNS, RENAME_COLUMN
from delta_ds.kernel.format.schema import column_mapping
from delta_ds.kernel.format.schema.char_varchar import declared_type, with_declared_type
from delta_ds.kernel.format.schema.column_paths import (
    Path,
    find,
    not_a_struct,
    parse_path,
    replace_fields,
    resolve,
    show,
)
from delta_ds.kernel.format.schema.field_metadata import (
    CURRENT_DEFAULT,
    IDENTITY_HIGH_WATER_MARK,
    IDENTITY_START,
    IDENTITY_STEP,
)
from delta_ds.kernel.format.schema.types import STRING, DataType, StructField, StructType, walk
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.transaction.alter.change_column import alter_column
from delta_ds.kernel.transaction.alter.schema_change import (
    SchemaChange,
    commit,
    commit_if_needed,
    field_in_history,
    is_within,
    with_schema,
    with_statistics_columns,
)
from delta_ds.kernel.transaction.append_conflicts import IDENTITY_TAG
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from delta_ds.kernel.transaction.table_log import TableLog

__all__ = ["NewColumn", "add_columns", "alter_column", "drop_columns", "place_columns", "rename_column"]


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column or nested field to be added.

    Attributes
    ----------
    field
        With a plain name.
    parent
        The struct that gets it (`s`, `l.element`); None: the table itself.
    first, after
        Before all others, or behind an existing one; at the end if neither is given.
    """

    field: StructField
    parent: str | None = None
    first: bool = False
    after: str | None = None


def add_columns(
    log: TableLog,
    fields: StructType,
    first: bool = False,
    after: str | None = None,
    *,
    parent: str | None = None,
) -> int:
    """Add columns to a table; existing rows read as null there.

    Parameters
    ----------
    log
        The table.
    fields
        The new columns; names are plain, comments are in the metadata.
    first, after
        Where they go: before all others, or behind an existing column; at the end if neither is given.
        Each column is placed on its own, so that several come out in reverse order.
    parent
        The struct that gets the fields (`s`, `l.element`); the table itself if left out.

    Returns
    -------
    int
        The version committed.

    Raises
    ------
    SchemaError
        `FIELD_ALREADY_EXISTS`, `FIELD_NOT_FOUND` (no such column to go behind), invalid names.
    UnsupportedOperationError
        NOT NULL columns, columns with a default.
    UnsupportedFeatureError
        A type whose table feature has to be added by name first.

    Source: protocol-checklist DEF-W-02.
    """
    return place_columns(log, [NewColumn(field, parent, first, after) for field in fields])


def place_columns(log: TableLog, columns: Sequence[NewColumn]) -> int:
    """Add columns, each in a place of its own, as one commit; returns and raises as `add_columns`."""
    return commit(log, lambda state: plan_added_columns(state, columns))


def plan_added_columns(state: TableState, wanted: Sequence[NewColumn]) -> SchemaChange:
    """The change that `place_columns` commits."""
    if not wanted or any(column.first and column.after is not None for column in wanted):
        raise ADD_COLUMNS_OPTIONS()
    _check_addable(state, wanted)
    schema = state.schema
    columns = []
    for new in wanted:
        above = resolve(schema, parse_path(new.parent), state.table)[0] if new.parent is not None else ()
        behind = parse_path(new.after) if new.after is not None else None
        if behind is not None and len(behind) != 1:
            raise NOT_ONE_COLUMN(after=new.after, struct=show(above) or state.table)
        schema = _insert(state, schema, above, new.field, new.first, behind[0] if behind else None)
        column = {"column": _in_history((*above, new.field.name), new.field)}
        position = "FIRST" if new.first else f"AFTER {behind[0]}" if behind else None
        columns.append(column if position is None else {**column, "position": position})
    return SchemaChange(with_schema(state.metadata, schema), ADD_COLUMNS, {"columns": columns})


def _in_history(path: Path, field: StructField) -> dict[str, Any]:
    # Where a column is added, history has the declared type in place of the string it is stored as.
    shown = field_in_history(path, with_declared_type(field, None))
    return shown if field.type != STRING else {**shown, "type": declared_type(field) or shown["type"]}


def _check_addable(state: TableState, wanted: Sequence[NewColumn]) -> None:
    fields = StructType(tuple(column.field for column in wanted))
    names = Counter(((column.parent or "").lower(), column.field.name.lower()) for column in wanted)
    twice = [name for (_, name), count in names.items() if count > 1]
    if twice:
        raise COLUMN_ALREADY_EXISTS(table=state.table, columns=twice)
    if any(not f.nullable for _, f in walk(fields)):
        raise UnsupportedOperationError(
            "Operation not allowed: `NOT NULL in ALTER TABLE ADD COLUMNS` is not supported for Delta tables: a column "
            f"that is added to {state.table} cannot be NOT NULL: its rows have no value for it. Nothing was changed"
        )
    for field in fields:
        if CURRENT_DEFAULT in field.metadata:
            raise WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED(
                column=field.name, table=state.table
            )


def _insert(
    state: TableState, schema: StructType, above: Path, field: StructField, first: bool, behind: str | None
) -> StructType:
    found = find(schema, above)
    struct = found[1].type if found else schema
    if not isinstance(struct, StructType):
        raise not_a_struct((*above, field.name), above, struct, state.table)
    if struct.find(field.name) is not None:
        raise already_there("add", field.name, struct, above, state.table)
    at = 0 if first else len(struct)
    if behind is not None:
        neighbour = struct.find(behind)
        if neighbour is None:
            raise FIELD_NOT_FOUND(
                added=field.name, column=behind, struct=show(above) or state.table, names=struct.names
            )
        at = struct.names.index(neighbour.name) + 1
    return replace_fields(schema, above, lambda fields: (*fields[:at], field, *fields[at:]))


def already_there(verb: str, name: str, struct: StructType, above: Path, table: str) -> SchemaError:
    """The error for a new name that another column has."""
    return FIELD_ALREADY_EXISTS(verb=verb, column=name, struct=show(above) or table, names=struct.names)


def rename_column(log: TableLog, old: str, new: str) -> int:
    """Give a column or nested field another name; its data stays where it is.

    Parameters
    ----------
    old
        The column as Spark SQL writes it.
    new
        The new last part of its name, plain.

    Returns
    -------
    int
        The version committed.

    Raises
    ------
    SchemaError
        No such column, a name that is taken, or an expression of the table uses the column.
    UnsupportedOperationError
        `DELTA_UNSUPPORTED_RENAME_COLUMN`: the table has no column mapping.

    Source: protocol-checklist CM-W-08, CON-W-04.
    """
    return commit(log, lambda state: plan_column_rename(state, old, new))


def plan_column_rename(state: TableState, old: str, new: str) -> SchemaChange:
    """The change that `rename_column` commits."""
    path, _ = resolve(state.schema, parse_path(old), state.table)
    above, name = path[:-1], path[-1]
    struct = _type_at(state.schema, above)
    if not isinstance(struct, StructType):
        raise not_a_struct(path, above, struct, state.table)
    if struct.find(new) is not None:
        raise already_there("rename", new, struct, above, state.table)
    _need_mapping(state, UNSUPPORTED_RENAME_COLUMN)
    check_unused(state.schema, state.properties, path, state.table, change="renamed")
    schema = replace_fields(
        state.schema,
        above,
        lambda fields: tuple(replace(f, name=new) if f.name == name else f for f in fields),
    )
    metadata = with_statistics_columns(
        with_schema(state.metadata, schema),
        lambda paths: [(*above, new, *p[len(path) :]) if is_within(p, path) else p for p in paths],
    )
    if not above:
        columns = tuple(new if c.lower() == name.lower() else c for c in metadata.partition_columns)
        metadata = replace(metadata, partition_columns=columns)
    parameters = {"oldColumnPath": show(path), "newColumnPath": show((*above, new))}
    return SchemaChange(metadata, RENAME_COLUMN, parameters)


def drop_columns(log: TableLog, names: Sequence[str]) -> int:
    """Take columns or nested fields out of a table; files keep the data until they are rewritten.

    Parameters
    ----------
    names
        The columns as Spark SQL writes them.

    Returns
    -------
    int
        The version committed.

    Raises
    ------
    SchemaError
        No such column, the only one of its level, or an expression of the table uses it.
    UnsupportedOperationError
        The table has no column mapping, or is partitioned or clustered by the column.

    Source: protocol-checklist CM-W-08, CON-W-04.
    """
    return commit(log, lambda state: plan_column_drop(state, names))


def plan_column_drop(state: TableState, names: Sequence[str]) -> SchemaChange:
    """The change that `drop_columns` commits."""
    if isinstance(names, str) or not names:
        raise InvalidOptionError(f"give a list of columns to drop, not {names!r}. Nothing was changed")
    paths = [resolve(state.schema, parse_path(name), state.table)[0] for name in names]
    _need_mapping(state, UNSUPPORTED_DROP_COLUMN)
    schema = state.schema
    for path in paths:
        schema = _without(schema, path, state.table)
    _check_layout(state, paths)
    for path in paths:
        check_unused(state.schema, state.properties, path, state.table, change="dropped")
    metadata = with_statistics_columns(
        with_schema(state.metadata, schema),
        lambda columns: [c for c in columns if not any(is_within(c, p) for p in paths)],
    )
    return SchemaChange(metadata, DROP_COLUMNS, {"columns": [show(p) for p in paths]})


def _without(schema: StructType, path: Path, table: str) -> StructType:
    if find(schema, path) is None:
        raise COLUMN_DROPPED_TWICE(column=show(path), table=table)
    above = path[:-1]
    struct = _type_at(schema, above)
    if not isinstance(struct, StructType):
        raise UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE(
            column=show(path), table=table, struct=show(above), structType=struct
        )
    if len(struct) == 1:
        raise DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA(column=show(path), struct=show(above) or table)
    return replace_fields(schema, above, lambda fields: tuple(f for f in fields if f.name != path[-1]))


def _type_at(schema: StructType, path: Path) -> DataType:
    found = find(schema, path)
    assert found is not None
    return found[1].type


def _check_layout(state: TableState, paths: Sequence[Path]) -> None:
    """Refuse to drop partition and clustering columns."""
    by_partition = [c for c in state.metadata.partition_columns if any(is_within((c,), p) for p in paths)]
    if by_partition:
        raise UNSUPPORTED_DROP_PARTITION_COLUMN(table=state.table, columns=by_partition)
    # Differs: delta-spark looks at the columns themselves only and lets a struct go that holds one.
    physical = [column_mapping.physical_path(state.schema, p, state.mapping_mode) for p in paths]
    clustered = [
        show(p)
        for p, inside in zip(paths, physical, strict=True)
        if inside is not None and any(c[: len(inside)] == inside for c in state.clustering_paths)
    ]
    if clustered:
        raise UNSUPPORTED_DROP_CLUSTERING_COLUMN(table=state.table, columns=clustered)


def _need_mapping(state: TableState, refusal: ErrorCondition[UnsupportedOperationError]) -> None:
    if state.mapping_mode == "none":
        raise refusal(table=state.table)


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
