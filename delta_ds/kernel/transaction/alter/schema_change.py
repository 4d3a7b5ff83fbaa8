"""The steps every change of columns shares, from the new schema to the commit.

Source: delta-spark, `AlterDeltaTableCommand` and `OptimisticTransaction.updateMetadata`.

REPLACE COLUMNS: all columns of a table given anew; those of a name that is there stay the same columns.

Source: delta-spark, `AlterTableReplaceColumnsDeltaCommand`, `SchemaUtils.canChangeDataType` and `changeDataType`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.columns import (
    IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED,
    UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP,
    UNSUPPORTED_DROP_CLUSTERING_COLUMN,
    WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED,
)
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.format.actions import Metadata
from delta_ds.kernel.format.expressions.dependents import check_generated_type, check_unused
from delta_ds.kernel.format.features import TYPE_WIDENING_PREVIEW
from delta_ds.kernel.format.operations import REPLACE_COLUMNS, Operation
from delta_ds.kernel.format.properties import DATA_SKIPPING_STATS_COLUMNS
from delta_ds.kernel.format.schema.char_varchar import declared_lengths, declared_type, with_declared_type
from delta_ds.kernel.format.schema.column_paths import Path, parse_path_list, quote, show
from delta_ds.kernel.format.schema.evolution import can_widen, record_changes, without_changes
from delta_ds.kernel.format.schema.field_metadata import CURRENT_DEFAULT, EXISTS_DEFAULT, IDENTITY_PREFIX
from delta_ds.kernel.format.schema.types import (
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    schema_to_json,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.transaction.alter.clustering import resolve_columns
from delta_ds.kernel.transaction.alter.table_metadata import check_new_schema, with_metadata
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from delta_ds.kernel.transaction.table_log import TableLog
    from delta_ds.kernel.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """The metadata after a change, and how history shows it.

    Attributes
    ----------
    tags
        Of the commit.
    reads_rows
        Whether it was found out by all rows of the table, which may not change meanwhile.
    """

    metadata: Metadata
    operation: Operation
    parameters: Mapping[str, Any]
    tags: Mapping[str, str] | None = None
    reads_rows: bool = False


# A change of columns: what it makes of a table; None where there is nothing to commit.
ChangeOf = Callable[[TableState], "SchemaChange | None"]


def commit(log: TableLog, change: Callable[[TableState], SchemaChange]) -> int:
    """Compute a change on the newest version and commit it.

    Returns
    -------
    int
        The version committed.

    Raises
    ------
    DeltaError
        What `change` refuses; a schema no table may have; a feature that has to be asked for by name; the
        conflicts of `Transaction.commit`.
    """
    txn = log.start_transaction()
    return _commit(txn, change(_state(txn)))


def commit_if_needed(log: TableLog, change: ChangeOf) -> int | None:
    """As `commit`, for changes that may find nothing to do; None then."""
    txn = log.start_transaction()
    wanted = change(_state(txn))
    return None if wanted is None else _commit(txn, wanted)


def _commit(txn: Transaction, change: SchemaChange) -> int:
    txn.set_table_state(_finalize(_state(txn), change))
    if change.reads_rows:
        txn.read_whole_table()
    return txn.commit(change.operation, change.parameters, tags=change.tags)


def dry_run(log: TableLog, changes: Sequence[ChangeOf]) -> None:
    """Compute changes one after the other without committing any.

    Raises
    ------
    DeltaError
        What `commit` would raise for the first one that is refused.
    """
    state = _state(log.start_transaction())
    for change in changes:
        wanted = change(state)
        if wanted is not None:
            state = _finalize(state, wanted)


def _state(txn: Transaction) -> TableState:
    domains = txn.base.domains if txn.base is not None else {}
    return replace(txn.table_state, domains=domains)


def _finalize(state: TableState, change: SchemaChange) -> TableState:
    """The table after a change: checked, with the ids of new columns and the protocol it needs."""
    new = change.metadata
    check_new_schema(
        new.schema,
        new.partition_columns,
        state.mapping_mode,
        state.table,
        properties=new.configuration,
        is_new=False,
    )
    return with_metadata(state, new, keep_names=False)


def with_schema(metadata: Metadata, schema: StructType) -> Metadata:
    """The metadata with another schema."""
    return replace(metadata, schema_string=schema_to_json(schema))


def with_statistics_columns(
    metadata: Metadata, change: Callable[[Sequence[Path]], Sequence[Path]]
) -> Metadata:
    """The metadata with the paths in `delta.dataSkippingStatsColumns` changed, where it is set."""
    text = metadata.configuration.get(DATA_SKIPPING_STATS_COLUMNS.name)
    if text is None:
        return metadata
    paths = parse_path_list(text)
    changed = change(paths)
    if list(changed) == paths:
        return metadata
    columns = ",".join(quote(p) for p in changed)
    return replace(
        metadata, configuration={**metadata.configuration, DATA_SKIPPING_STATS_COLUMNS.name: columns}
    )


def is_within(path: Path, ancestor: Path) -> bool:
    """Whether a path is another one or inside of it; case does not count."""
    return len(path) >= len(ancestor) and all(
        a.lower() == b.lower() for a, b in zip(path, ancestor, strict=False)
    )


def field_in_history(path: Path, field: StructField) -> dict[str, Any]:
    """A field as the history of delta-spark shows it; of nested types it has the kind only."""
    if isinstance(field.type, StructType):
        kind = "struct"
    elif isinstance(field.type, ArrayType):
        kind = "array"
    elif isinstance(field.type, MapType):
        kind = "map"
    else:
        kind = str(field.type)
    return {
        "name": show(path),
        "type": kind,
        "nullable": field.nullable,
        "metadata": {key: value for key, value in field.metadata.items() if key != EXISTS_DEFAULT},
    }


_Refusal = Callable[[str], UnsupportedOperationError]


def replace_columns(log: TableLog, columns: StructType) -> int:
    """Give a table other columns: in another order, with other comments, more of them, nullable ones.

    Without column mapping none can be left out. What a column has beside its type, comment and nullability stays, the
    length of a string among it, where the new columns say none.

    Parameters
    ----------
    log
        The table.
    columns
        All columns it shall have, with plain names; comments are in the metadata.

    Returns
    -------
    int
        The version committed.

    Raises
    ------
    UnsupportedOperationError
        A column would be lost, become NOT NULL, or get another length or a type that it cannot be widened to; a new
        column is NOT NULL or has a default; the table has identity columns, or is clustered by a column that is left
        out.
    SchemaError
        Names no table may have; an expression of the table uses a column that is left out.
    """
    return commit(log, lambda state: plan_replaced_columns(state, columns))


def replace_columns_of_empty(log: TableLog, columns: StructType) -> int:
    """Give a table without files other columns, whatever it had before: there is no row to lose or to read anew.

    What a column has beside its type, comment and nullability stays. A table with files is changed as by
    `replace_columns`.

    Parameters
    ----------
    log
        The table.
    columns
        All columns it shall have, with plain names; comments are in the metadata.

    Returns
    -------
    int
        The version committed.

    Raises
    ------
    UnsupportedOperationError
        The table has identity columns, or cannot be clustered as it is any more; what `replace_columns` refuses.
    SchemaError
        Names no table may have; an expression of the table uses or makes a column that is left out or retyped.
    DeltaConcurrentModificationException
        Rows were added meanwhile.
    """
    txn = log.start_transaction()
    plan = plan_replaced_columns if txn.recorded_scan().num_files else plan_columns_of_empty
    return _commit(txn, plan(_state(txn), columns))


def plan_columns_of_empty(state: TableState, columns: StructType) -> SchemaChange:
    """The change that `replace_columns_of_empty` commits."""
    _check_no_identity(state)
    changed = _changed(state.schema, columns, lengths=True)
    assert isinstance(changed, StructType)
    # No file has a name or a type from before.
    named = zip(changed, columns, strict=True)
    schema = without_changes(StructType(tuple(replace(field, name=new.name) for field, new in named)))
    for field in state.schema:
        new = schema.find(field.name)
        if new is not None and new.type == field.type:
            continue
        check_unused(state.schema, state.properties, (field.name,), state.table, change="dropped or retyped")
        if new is not None:
            check_generated_type((field.name,), field, new.type, state.table)
    clustering = [quote(column) for column in state.clustering_columns]
    resolve_columns(schema, clustering, state.properties, state.table)
    shown = [field_in_history((field.name,), field) for field in columns]
    return SchemaChange(with_schema(state.metadata, schema), REPLACE_COLUMNS, {"columns": shown})


def _check_no_identity(state: TableState) -> None:
    if any(key.startswith(IDENTITY_PREFIX) for field in state.schema for key in field.metadata):
        raise IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED(table=state.table)


def plan_replaced_columns(state: TableState, columns: StructType) -> SchemaChange:
    """The change that `replace_columns` commits."""
    old = state.schema
    _check_no_identity(state)

    def refused(details: str) -> UnsupportedOperationError:
        return UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP(
            table=state.table, details=details, oldSchema=old, newSchema=columns
        )

    _check_type(state, old, columns, (), refused)
    _check_lengths(old, columns, refused)
    schema = _changed(old, columns)
    assert isinstance(schema, StructType)
    if state.widens_types:
        preview = state.version + 1 if state.protocol.supports(TYPE_WIDENING_PREVIEW) else None
        schema = record_changes(schema, old, table_version=preview)
    shown = [field_in_history((field.name,), field) for field in columns]
    return SchemaChange(with_schema(state.metadata, schema), REPLACE_COLUMNS, {"columns": shown})


def _check_type(state: TableState, old: DataType, new: DataType, path: Path, refused: _Refusal) -> None:
    if isinstance(old, StructType) and isinstance(new, StructType):
        _check_fields(state, old, new, path, refused)
    elif isinstance(old, ArrayType) and isinstance(new, ArrayType):
        _check_nulls(old.contains_null, new.contains_null, path, refused)
        _check_type(state, old.element, new.element, (*path, "element"), refused)
    elif isinstance(old, MapType) and isinstance(new, MapType):
        _check_nulls(old.value_contains_null, new.value_contains_null, path, refused)
        _check_type(state, old.key, new.key, (*path, "key"), refused)
        _check_type(state, old.value, new.value, (*path, "value"), refused)
    elif old not in (VOID, new):
        if not (state.widens_types and can_widen(old, new)):
            raise refused(f"{show(path)} cannot be changed from {old} to {new}")
        check_unused(state.schema, state.properties, path, state.table, change="changed to another type")


def _check_fields(state: TableState, old: StructType, new: StructType, path: Path, refused: _Refusal) -> None:
    added = [field for field in new if old.find(field.name) is None]
    lost = [field for field in old if new.find(field.name) is None]
    for field in new:
        before = old.find(field.name)
        if before is not None:
            _check_nulls(before.nullable, field.nullable, (*path, before.name), refused)
            _check_type(state, before.type, field.type, (*path, before.name), refused)
    for field in added:
        _check_added(state, field, path, refused)
    if not lost:
        return
    names = ", ".join(show((*path, field.name)) for field in lost)
    if added:
        raise refused(
            f"{names} would be dropped while others are added, which may be meant as a change of names"
        )
    if state.mapping_mode == "none":
        raise refused(f"{names} would be dropped, which needs column mapping")
    for field in lost:
        _check_droppable(state, (*path, field.name))


def _check_lengths(old: StructType, new: StructType, refused: _Refusal) -> None:
    """Refuse another length of a string; where none is said, the column keeps its own."""
    before = {path: limit for field in old for path, limit in declared_lengths(field).items()}
    for path, limit in ((p, at) for field in new for p, at in declared_lengths(field).items()):
        if limit is not None and before.get(path, limit) != limit:
            words = ["string" if at is None else f"{at[0]}({at[1]})" for at in (before[path], limit)]
            raise refused(f"{show(path)} cannot be changed from {words[0]} to {words[1]}: use ALTER COLUMN")


def _check_nulls(before: bool, after: bool, path: Path, refused: _Refusal) -> None:
    if before and not after:
        raise refused(f"{show(path)} would become NOT NULL, and its rows may have nulls")


def _check_added(state: TableState, field: StructField, path: Path, refused: _Refusal) -> None:
    if not field.nullable:
        raise refused(f"{show((*path, field.name))} would be added as NOT NULL")
    if CURRENT_DEFAULT in field.metadata:
        raise WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED(
            column=field.name, table=state.table
        )


def _check_droppable(state: TableState, path: Path) -> None:
    check_unused(state.schema, state.properties, path, state.table, change="dropped")
    if any(is_within(column, path) for column in state.clustering_columns):
        raise UNSUPPORTED_DROP_CLUSTERING_COLUMN(
            table=state.table, columns=[show(column) for column in state.clustering_columns]
        )


def _changed(old: DataType, new: DataType, lengths: bool = False) -> DataType:
    """The new type, with all that the old one has beside types, comments and nullability of fields.

    Lengths of strings stay too, unless `lengths` says that those of the new type count.
    """
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return replace(old, element=_changed(old.element, new.element, lengths))
    if isinstance(old, MapType) and isinstance(new, MapType):
        key, value = _changed(old.key, new.key, lengths), _changed(old.value, new.value, lengths)
        return replace(old, key=key, value=value)
    if isinstance(old, StructType) and isinstance(new, StructType):
        return StructType(tuple(_changed_field(old.find(field.name), field, lengths) for field in new))
    return new


def _changed_field(old: StructField | None, new: StructField, lengths: bool) -> StructField:
    if old is None:
        return new
    comment = {"comment": new.metadata["comment"]} if "comment" in new.metadata else {}
    kind, metadata = _changed(old.type, new.type, lengths), {**old.metadata, **comment}
    changed = replace(old, type=kind, nullable=new.nullable, metadata=metadata)
    return with_declared_type(changed, declared_type(new)) if lengths else changed
