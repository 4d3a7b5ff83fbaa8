"""ALTER COLUMN: change the type, nullability, comment, default and position of one column.

Source: delta-spark, `AlterTableChangeColumnDeltaCommand`; Spark, `CheckAnalysis.checkAlterTableCommand`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.columns import (
    CANNOT_UPDATE_FIELD_ARRAY_TYPE,
    CANNOT_UPDATE_FIELD_MAP_TYPE,
    CANNOT_UPDATE_FIELD_STRUCT_TYPE,
    GENERATED_COLUMN_CANNOT_HAVE_DEFAULT,
    IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED,
    NOT_SUPPORTED_CHANGE_COLUMN,
    TYPE_WIDENING_NOT_ENABLED,
    UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP,
    UNSUPPORTED_COMMENT_MAP_ARRAY,
    UNSUPPORTED_TYPE_CHANGE,
)
from delta_ds.conditions.record import NESTED_DEFAULT_NOT_ALLOWED, ErrorCondition
from delta_ds.exceptions import InvalidOptionError, UnsupportedOperationError
from delta_ds.kernel.format.expressions.dependents import check_generated_type, check_unused
from delta_ds.kernel.format.features import TYPE_WIDENING_PREVIEW
from delta_ds.kernel.format.operations import CHANGE_COLUMN, CHANGE_COLUMNS
from delta_ds.kernel.format.schema.char_varchar import (
    declared_lengths,
    declared_type,
    length_limit,
    spells_its_fields,
    with_declared_type,
    with_lengths,
)
from delta_ds.kernel.format.schema.column_paths import (
    Path,
    find,
    not_a_struct,
    parse_path,
    replace_fields,
    replace_type,
    resolve,
    show,
    unresolved_column,
)
from delta_ds.kernel.format.schema.evolution import can_widen, is_wider, record_changes
from delta_ds.kernel.format.schema.field_metadata import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_PREFIX,
)
from delta_ds.kernel.format.schema.types import (
    STRING,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    sql_name,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.transaction.alter.definitions import check_default
from delta_ds.kernel.transaction.alter.schema_change import (
    ChangeOf,
    SchemaChange,
    commit,
    commit_if_needed,
    dry_run,
    field_in_history,
    with_schema,
)
from delta_ds.records import replace

if TYPE_CHECKING:
    from delta_ds.kernel.transaction.table_log import TableLog

_NESTED = {
    StructType: CANNOT_UPDATE_FIELD_STRUCT_TYPE,
    ArrayType: CANNOT_UPDATE_FIELD_ARRAY_TYPE,
    MapType: CANNOT_UPDATE_FIELD_MAP_TYPE,
}

# What happens to a column, without a change of its place.
Edit = Callable[[TableState, Path, StructField], StructField]


def alter_column(
    log: TableLog,
    name: str,
    *,
    data_type: DataType | None = None,
    char_varchar: str | None = None,
    nullable: bool | None = None,
    comment: str | None = None,
    default: str | None | EllipsisType = ...,
    first: bool = False,
    after: str | None = None,
) -> int | None:
    """Change a column or nested field; each kind of change is a commit of its own.

    All changes are checked before the first one is committed.

    Parameters
    ----------
    log
        The table.
    name
        The column as Spark SQL writes it: `s.a`, `l.element`, `m.value.k`.
    data_type
        A wider type, where the table has `delta.enableTypeWidening`.
    char_varchar
        The declared type where `data_type` is `STRING` for it: `varchar(10)`. A string with a limit can
        get a higher one, or none.
    nullable
        True for nulls from now on. False is refused for columns that have been nullable.
    comment
        The new comment; an empty text for an empty one.
    default
        SQL of a constant for rows that lack the column; None for no default; left out: as it is.
    first, after
        The new place among the fields of its level.

    Returns
    -------
    int or None
        The last version committed; None where the column has the type already.

    Raises
    ------
    SchemaError
        No such column, a default that does not fit, an expression of the table uses the column.
    UnsupportedOperationError
        A change of type that is not a widening or not enabled; NOT NULL; identity columns.

    Source: protocol-checklist TW-RW-02, TW-W-03, CON-W-04, DEF-W-01, ID-W-05.
    """
    changes = plan_column_changes(
        name, data_type, char_varchar, nullable, comment, default, first=first, after=after
    )
    if len(changes) > 1:
        dry_run(log, changes)
    versions = [commit_if_needed(log, change) for change in changes]
    return max((v for v in versions if v is not None), default=None)


def change_columns(log: TableLog, changes: Mapping[str, Mapping[str, Any]]) -> int:
    """Change columns or nested fields, all in one commit, as `ALTER TABLE ... ALTER COLUMN` does.

    Parameters
    ----------
    changes
        By column, what becomes of it: the keywords of `alter_column`. They are made in this order, which counts for
        their places.

    Returns
    -------
    int
        The version committed.

    Raises
    ------
    DeltaError
        As `alter_column`.
    """
    plans = {name: plan_column_changes(name, **what) for name, what in changes.items()}
    return commit(log, lambda state: _plan_together(state, plans))


def _plan_together(state: TableState, plans: Mapping[str, Sequence[ChangeOf]]) -> SchemaChange:
    columns: list[dict[str, Any]] = []
    for name, changes in plans.items():
        told: dict[str, Any] = {
            "column": field_in_history(*resolve(state.schema, parse_path(name), state.table))
        }
        for change in changes:
            planned = change(state)
            if planned is not None:
                state = replace(state, metadata=planned.metadata)
                told |= planned.parameters
        columns.append(told)
    if len(columns) == 1:
        return SchemaChange(state.metadata, CHANGE_COLUMN, columns[0])
    shown = [{**told.pop("column"), **told} for told in columns]
    return SchemaChange(state.metadata, CHANGE_COLUMNS, {"columns": shown})


def plan_column_changes(
    name: str,
    data_type: DataType | None = None,
    char_varchar: str | None = None,
    nullable: bool | None = None,
    comment: str | None = None,
    default: str | None | EllipsisType = ...,
    *,
    first: bool = False,
    after: str | None = None,
) -> list[ChangeOf]:
    """The changes that `alter_column` commits, in its order.

    Raises
    ------
    InvalidOptionError
        Nothing shall be changed, or the column shall go to two places.
    """
    if first and after is not None:
        raise InvalidOptionError("give first or after, not both. Nothing was changed")
    path = parse_path(name)
    changes: list[ChangeOf] = []
    if data_type is not None:
        changes.append(lambda state: plan_type_change(state, path, data_type, char_varchar))
    if nullable is not None:
        changes.append(
            lambda state: _plan_field_edit(state, path, lambda s, p, f: _with_nulls(s, p, f, nullable))
        )
    if comment is not None:
        changes.append(
            lambda state: _plan_field_edit(state, path, lambda s, p, f: _with_comment(s, p, f, comment))
        )
    if not isinstance(default, EllipsisType):
        changes.append(
            lambda state: _plan_field_edit(state, path, lambda s, p, f: _with_default(s, p, f, default))
        )
    if first or after is not None:
        changes.append(lambda state: plan_column_move(state, path, after))
    if not changes:
        raise InvalidOptionError(f"say what shall change of column {name!r}. Nothing was changed")
    return changes


# --- type


def plan_type_change(
    state: TableState, column: Path, data_type: DataType, char_varchar: str | None = None
) -> SchemaChange | None:
    """The change of a column's type; None where it has it already."""
    path, field = resolve(state.schema, column, state.table)
    _refuse_identity(state, path, field)
    if field.type == STRING == data_type:
        return _plan_length_change(state, path, field, char_varchar)
    if str(field.type) == str(data_type):
        return None
    if field.type != VOID:
        _check_widening(state, path, field, data_type)
    check_unused(state.schema, state.properties, path, state.table, change="changed to another type")
    check_generated_type(path, field, data_type, state.table)
    change = _plan_field_replacement(
        state, path, with_declared_type(replace(field, type=data_type), char_varchar)
    )
    if not state.widens_types:
        return change
    preview = state.version + 1 if state.protocol.supports(TYPE_WIDENING_PREVIEW) else None
    schema = record_changes(change.metadata.schema, state.schema, table_version=preview)
    return replace(change, metadata=with_schema(state.metadata, schema))


def _plan_length_change(
    state: TableState, path: Path, field: StructField, declared: str | None
) -> SchemaChange | None:
    """Another length of a string, which is in the declared type of its column also where it is nested there."""
    at = tuple(name.lower() for name in path)
    lengths = {at: length for f in state.schema for at, length in declared_lengths(f).items()}
    before, after = lengths.get(at), length_limit(declared)
    if before == after:
        return None
    column = state.schema.find(path[0])
    if not _allows(before, after) or (len(path) > 1 and not (column and spells_its_fields(column))):
        raise _unsupported(state, path, field, declared or "string", NOT_SUPPORTED_CHANGE_COLUMN)
    own = None if len(path) > 1 and declared_type(field) is None else declared
    change = _plan_field_replacement(state, path, with_declared_type(field, own))
    columns = (
        with_lengths(f, {**lengths, at: after}) if f.name == path[0] and len(path) > 1 else f
        for f in change.metadata.schema
    )
    return replace(change, metadata=with_schema(change.metadata, StructType(tuple(columns))))


def _check_widening(state: TableState, path: Path, field: StructField, new: DataType) -> None:
    if type(field.type) in _NESTED and type(new) is type(field.type):
        raise _NESTED[type(field.type)](
            column=show(path), table=state.table, element=show((*path, "element"))
        )
    if can_widen(field.type, new):
        if not state.widens_types:
            raise _unsupported(state, path, field, new, TYPE_WIDENING_NOT_ENABLED)
        return
    upcast = new == STRING and type(field.type) not in _NESTED or is_wider(field.type, new)
    raise _unsupported(
        state, path, field, new, UNSUPPORTED_TYPE_CHANGE if upcast else NOT_SUPPORTED_CHANGE_COLUMN
    )


def _allows(before: tuple[str, int] | None, after: tuple[str, int] | None) -> bool:
    """Whether every string within one limit is within the other."""
    if after is None:
        return True
    if before is None:
        return False
    if after[0] == "char":
        return before == after
    return before[1] <= after[1]


def _unsupported(
    state: TableState,
    path: Path,
    field: StructField,
    new: DataType | str,
    condition: ErrorCondition[UnsupportedOperationError],
) -> UnsupportedOperationError:
    old = declared_type(field) or field.type
    old_type, new_type = (one.upper() if isinstance(one, str) else sql_name(one) for one in (old, new))
    return condition(
        {"from": str(old), "to": str(new)},
        column=show(path),
        table=state.table,
        old=old,
        new=new,
        oldType=old_type,
        newType=new_type,
    )


# --- nullability, comment, default


def _plan_field_edit(state: TableState, column: Path, edit: Edit) -> SchemaChange:
    path, field = resolve(state.schema, column, state.table)
    return _plan_field_replacement(state, path, edit(state, path, field))


def _with_nulls(state: TableState, path: Path, field: StructField, nullable: bool) -> StructField:
    _refuse_identity(state, path, field)
    if field.nullable == nullable:
        return field
    if not nullable or _is_part(state, path):
        what = "nullable" if nullable else "NOT NULL, its rows may have nulls; add a CHECK constraint instead"
        raise UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP(column=show(path), table=state.table, what=what)
    return replace(field, nullable=True)


def _with_comment(state: TableState, path: Path, field: StructField, comment: str) -> StructField:
    if _is_part(state, path):
        raise UNSUPPORTED_COMMENT_MAP_ARRAY(column=show(path), table=state.table)
    return replace(field, metadata={**field.metadata, "comment": comment})


def _with_default(state: TableState, path: Path, field: StructField, default: str | None) -> StructField:
    _refuse_identity(state, path, field)
    metadata = {k: v for k, v in field.metadata.items() if k != CURRENT_DEFAULT}
    if default is None:
        return replace(field, metadata=metadata)
    changed = replace(field, metadata={**metadata, CURRENT_DEFAULT: default})
    check_default(changed, state.protocol.supported, state.table)
    if len(path) > 1 or GENERATION_EXPRESSION in metadata:
        refusal = GENERATED_COLUMN_CANNOT_HAVE_DEFAULT if len(path) == 1 else NESTED_DEFAULT_NOT_ALLOWED
        raise refusal(column=show(path), table=state.table)
    return changed


def _refuse_identity(state: TableState, path: Path, field: StructField) -> None:
    if any(key.startswith(IDENTITY_PREFIX) for key in field.metadata):
        raise IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED(column=show(path), table=state.table)


def _is_part(state: TableState, path: Path) -> bool:
    """Whether the path names the element, key or value of a collection."""
    found = find(state.schema, path[:-1])
    return found is not None and not isinstance(found[1].type, StructType)


def _plan_field_replacement(state: TableState, path: Path, field: StructField) -> SchemaChange:
    if _is_part(state, path):
        schema = replace_type(state.schema, path, lambda _: field.type)
        assert isinstance(schema, StructType)
    else:
        schema = replace_fields(
            state.schema,
            path[:-1],
            lambda fields: tuple(field if f.name == path[-1] else f for f in fields),
        )
    metadata = with_schema(state.metadata, schema)
    return SchemaChange(metadata, CHANGE_COLUMN, {"column": field_in_history(path, field)})


# --- place


def plan_column_move(state: TableState, column: Path, after: str | None) -> SchemaChange:
    """The change of a column's place: behind another of its level, or (None) before all of them."""
    path, field = resolve(state.schema, column, state.table)
    above = path[:-1]
    parent = find(state.schema, above)
    if parent is None or not isinstance(parent[1].type, StructType):
        raise not_a_struct(path, above, parent[1].type if parent else STRING, state.table)
    struct = parent[1].type
    others = [f for f in struct if f.name != field.name]
    at = 0
    if after is not None:
        name = parse_path(after)
        neighbour = struct.find(name[0]) if len(name) == 1 else None
        if neighbour is None:
            raise unresolved_column(state.schema, (*above, *name), state.table)
        at = struct.names.index(field.name) if neighbour == field else others.index(neighbour) + 1
    schema = replace_fields(state.schema, above, lambda _: (*others[:at], field, *others[at:]))
    parameters = {
        "column": field_in_history(path, field),
        "position": "FIRST" if after is None else f"AFTER {parse_path(after)[0]}",
    }
    return SchemaChange(with_schema(state.metadata, schema), CHANGE_COLUMN, parameters)
