"""The steps every change of columns shares, from the new schema to the commit.

Source: delta-spark, `AlterDeltaTableCommand` and `OptimisticTransaction.updateMetadata`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.format.actions import Metadata
from delta_ds.kernel.format.features import TYPE_WIDENING
from delta_ds.kernel.format.operations import Operation
from delta_ds.kernel.format.properties import DATA_SKIPPING_STATS_COLUMNS, ENABLE_TYPE_WIDENING
from delta_ds.kernel.format.schema.column_paths import Path, parse_path_list, quote, show
from delta_ds.kernel.format.schema.field_metadata import EXISTS_DEFAULT
from delta_ds.kernel.format.schema.new_schema import check_new_schema
from delta_ds.kernel.format.schema.types import (
    ArrayType,
    MapType,
    StructField,
    StructType,
    schema_to_json,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.transaction.alter.table_metadata import with_metadata
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
        new.schema, new.partition_columns, state.mapping_mode, state.table, properties=new.configuration
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


def is_widening_enabled(state: TableState) -> bool:
    """Whether types of this table may be widened now.

    Raises
    ------
    UnsupportedOperationError
        The property is set and the protocol lacks the feature: the table is not consistent.
    """
    if ENABLE_TYPE_WIDENING.of(state.properties) and not state.supports(TYPE_WIDENING):
        raise UnsupportedOperationError(
            f"{state.table} has {ENABLE_TYPE_WIDENING}=true but its protocol does not list the feature typeWidening; "
            "add the feature or unset the property. Nothing was written"
        )
    return state.enabled(TYPE_WIDENING)
