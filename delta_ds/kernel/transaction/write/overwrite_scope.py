"""What an overwrite replaces: the whole table, the partitions written to, or the rows matching a predicate.

Source: delta-spark, `WriteIntoDelta`; conflict rules in protocol order: what is replaced counts as read.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_ds.conditions.data import FAILED_READ_FILE_FILE_NOT_EXIST, FAILED_READ_FILE_NO_HINT
from delta_ds.conditions.expressions import FAILED_RECOGNIZE_PREDICATE, FAILED_RECOGNIZE_REPLACE_WHERE
from delta_ds.conditions.options import (
    DYNAMIC_PARTITION_OVERWRITE_DISABLED,
    NON_PARTITION_COLUMN_IN_REPLACE_WHERE,
    OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE,
    REPLACE_ON_OR_USING_MISMATCH,
    REPLACE_WHERE_MISMATCH,
    REPLACE_WHERE_OF_OTHER_LAYOUT,
    REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE,
    REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET,
)
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.files.rows.checks import Condition, RowCheck
from delta_ds.kernel.files.rows.expressions import read_row_expression
from delta_ds.kernel.files.rows.plan import RowPlan
from delta_ds.kernel.format.expressions.tree import Expression, columns, without_qualifier
from delta_ds.kernel.format.features import CHANGE_DATA_FEED
from delta_ds.kernel.format.options.settings import CONSTRAINT_CHECK, DATA_COLUMNS, DYNAMIC_OVERWRITE, is_on
from delta_ds.kernel.format.options.write import WriteOptions
from delta_ds.kernel.format.properties import CONSTRAINT_PREFIX, ENABLE_ROW_TRACKING
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.column_mapping import physical_name
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.transaction.write.intent import WriteIntent
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from delta_ds.kernel.log.snapshot import Snapshot


NOTHING, EVERYTHING, PARTITIONS, MATCHING = "nothing", "everything", "partitions", "matching"
JOINED = "joined"


@dataclass(frozen=True, slots=True)
class OverwriteScope:
    """What a write replaces.

    Attributes
    ----------
    kind
        `nothing` (an append), `everything`, `partitions` (those written to), rows `matching` a predicate, or `joined`:
        rows that match written ones.
    condition
        The predicate of `replaceWhere`, its times of day settled: rows that match it are replaced.
    checked
        Every written row must match it; not where the session does not want that.
    predicate
        The same, bound to the schema after the write.
    by_partition
        The predicate names partition columns only, so whole files match or do not.
    records_changes
        Inserted rows go to change files too: the change data feed could not tell them from rows that are
        only copied.
    said
        The option that says how rows match written ones, as it was given.
    """

    kind: str
    condition: Condition | None = None
    checked: bool = True
    predicate: Expression | None = None
    by_partition: bool = False
    records_changes: bool = False
    said: str | None = None

    def guard(self, rows: RowPlan) -> RowPlan:
        """The plan of the rows with a check that all of them match the predicate, where there is one."""
        if self.said is not None:
            return replace(
                rows, checks=tuple(ReplaceCheck(check, self.said, joined=True) for check in rows.checks)
            )
        if self.condition is None or not self.checked:
            return rows
        text = self.condition.clause.text
        checks = (*rows.checks, self.condition)
        return replace(rows, checks=tuple(ReplaceCheck(check, text) for check in checks))


@dataclass(frozen=True, slots=True)
class ReplaceCheck:
    """The predicate of `replaceWhere`, or any other check of the rows of a write that replaces some rows.

    Attributes
    ----------
    check
        What every row must meet.
    predicate
        The text of `replaceWhere`, `replaceOn` or `replaceUsing`.
    joined
        It is that of one of the last two.
    """

    check: RowCheck
    predicate: str
    joined: bool = False

    def finder(self, table: StructType, timezone: str) -> Callable[[pa.RecordBatch], int] | None:
        return self.check.finder(table, timezone)

    def violation(self, batch: pa.RecordBatch, row: int, table: StructType, zone: str) -> Exception:
        inner = self.check.violation(batch, row, table, zone)
        values = inner.parameters if isinstance(inner, DeltaError) else {}
        if self.joined:
            return REPLACE_ON_OR_USING_MISMATCH(
                values, replaceExpression=self.predicate, invariantViolationMessage=str(inner)
            )
        return REPLACE_WHERE_MISMATCH(values, replaceWhere=self.predicate, message=str(inner))


def plan_overwrite(
    intent: WriteIntent, state: TableState, zone: str, *, is_new: bool = False
) -> OverwriteScope:
    """What a write replaces, by its mode and options.

    `replaceWhere` says nothing of an append, or of a table that is new: its syntax is checked there, as in delta-spark.

    Parameters
    ----------
    intent
        What the write is asked to do.
    state
        The table after it.
    zone
        The session time zone.
    is_new
        There was no table.

    Raises
    ------
    PredicateError
        The predicate of `replaceWhere` cannot be parsed, names an unknown column, or cannot be evaluated.
    InvalidOptionError
        Options that contradict each other on this table.
    """
    options, overwrite = intent.options, intent.overwrite
    _check_dynamic_is_allowed(options, state)
    if options.replace_where is not None:
        is_layout_kept = not (is_new or options.replace_table)
        if is_layout_kept and options.dynamic_partitions and state.partition_columns:
            raise REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE()
        _check_syntax(options.replace_where, state.table)
        if is_new:
            return OverwriteScope(EVERYTHING if overwrite else NOTHING)
        if overwrite:
            return _scope_of_predicate(options, options.replace_where, state, zone)
    if not overwrite:
        return OverwriteScope(NOTHING)
    if options.replaces_matches:
        said = options.replace_using if options.replace_on is None else options.replace_on
        return (
            OverwriteScope(EVERYTHING)
            if is_new
            else OverwriteScope(JOINED, records_changes=state.enabled(CHANGE_DATA_FEED), said=said)
        )
    if options.is_dynamic and state.partition_columns and not options.replace_table:
        if options.overwrite_schema:
            raise OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE(table=state.table)
        return OverwriteScope(PARTITIONS)
    return OverwriteScope(EVERYTHING)


def _check_dynamic_is_allowed(options: WriteOptions, state: TableState) -> None:
    """Refuse what a session does not allow, of appends too; only options are held against `replaceWhere`.

    Source: delta-spark, `WriteIntoDelta.writeAndReturnCommitData`.
    """
    if options.replace_table or not state.partition_columns:
        return
    asks = options.dynamic_partitions if options.replace_where is not None else options.asks_for_partitions
    if asks and not options.facts.allows_dynamic_overwrite:
        raise DYNAMIC_PARTITION_OVERWRITE_DISABLED(setting=DYNAMIC_OVERWRITE.full_name, table=state.table)


def _scope_of_predicate(
    options: WriteOptions,
    text: str,
    state: TableState,
    zone: str,
) -> OverwriteScope:
    table = state.table
    condition, predicate = _read_predicate(text, options.target_alias, state.schema, table, zone)
    _check_comparable(predicate, text, state)
    partition_columns = {name.lower() for name in state.partition_columns}
    others = [c for c in columns(predicate) if c.path[0].lower() not in partition_columns]
    by_partition = not others
    if others and not is_on(options.facts.settings, DATA_COLUMNS.full_name):
        raise NON_PARTITION_COLUMN_IN_REPLACE_WHERE(
            columnName=str(others[0]),
            table=table,
            columnList=list(state.partition_columns),
        )
    if not options.data_change and not by_partition:
        raise REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET(text=text, table=table)
    return OverwriteScope(
        MATCHING,
        condition,
        is_on(options.facts.settings, CONSTRAINT_CHECK.full_name),
        predicate,
        by_partition,
        state.enabled(CHANGE_DATA_FEED) and not by_partition and options.data_change,
    )


def _check_comparable(predicate: Expression, text: str, state: TableState) -> None:
    """Refuse columns whose values are not compared as they are stored: other rows would go than those that match."""
    for column in columns(predicate):
        field = state.schema.find(column.path[0])
        if field is not None and not compares_by_bytes(field):
            raise FAILED_RECOGNIZE_REPLACE_WHERE(
                text=text,
                table=state.table,
                reason=f"{field.name} holds char(n) or has a collation, so values are not compared as stored",
            )


def _read_predicate(
    text: str, alias: str | None, schema: StructType, table: str, zone: str
) -> tuple[Condition, Any]:
    now = datetime.datetime.now(datetime.timezone.utc)
    owner = f"replaceWhere on {table}"
    try:
        clause = read_row_expression(
            owner, text, now, FAILED_RECOGNIZE_PREDICATE.name, "Write the predicate in other words."
        )
    except DeltaError as error:
        raise FAILED_RECOGNIZE_REPLACE_WHERE(text=text, table=table, reason=error.text) from error
    if alias is not None:
        clause = replace(clause, tree=without_qualifier(clause.tree, alias))
    return Condition("replaceWhere", clause), clause.bound(schema, zone, predicate=True)


def _check_syntax(text: str, table: str) -> None:
    """Refuse what is no expression; one that cannot be evaluated is refused where it has to be."""
    from delta_ds.kernel.format.expressions.sql import check_syntax

    try:
        check_syntax(text)
    except DeltaError as error:
        raise FAILED_RECOGNIZE_REPLACE_WHERE(text=text, table=table, reason=error.text) from error


# --- files that stay while another table takes the place of theirs: what is replaced with `replaceWhere`
# Such files keep the columns and partition values that they were written with, so the new table has to read them alike.
# Source: delta-spark, `CreateDeltaTableCommand` with `replaceWhere`; its files hold the partition columns as well.

_FILES_AT_ONCE = 16


def check_kept_files(snapshot: Snapshot, state: TableState) -> None:
    """Refuse a table that would read the files of the one that it takes the place of otherwise than that one.

    Parameters
    ----------
    snapshot
        The table that is there, some of whose files stay.
    state
        The table that takes its place.

    Raises
    ------
    InvalidOptionError
        A column would be lost, of another type or elsewhere in the files, or partition values would be; rows that stay
        would have no row ids, or would not be checked.
    DataFileError
        A file that is looked into is missing or damaged.
    """
    reason = next(_differences(snapshot, state), None)
    if reason is not None:
        raise REPLACE_WHERE_OF_OTHER_LAYOUT(table=state.table, version=snapshot.version, reason=reason)


def _differences(snapshot: Snapshot, state: TableState) -> Iterator[str]:
    before = snapshot.table_state
    if before.mapping_mode != state.mapping_mode:
        yield f"its column mapping mode is {before.mapping_mode}, and would be {state.mapping_mode}"
    for field in before.schema:
        new = state.schema.find(field.name)
        if new is None:
            yield f"the new table has no column {field.name}"
        elif new.type != field.type or physical_name(new, state.mapping_mode) != physical_name(
            field, before.mapping_mode
        ):
            yield f"column {field.name} is {field.type}, and would be {new.type}, or another column of the files"
        elif field.nullable and not new.nullable:
            yield f"column {field.name} may hold nulls, and would be NOT NULL"
    if ENABLE_ROW_TRACKING.of(state.properties) and not ENABLE_ROW_TRACKING.of(before.properties):
        yield "its rows have no row ids, and the new table would track rows"
    checks = _constraints(before.properties)
    for name, text in _constraints(state.properties).items():
        if checks.get(name) != text:
            yield f"its rows were not checked against the constraint {name}, ({text})"
    old, new_names = (
        {n.lower() for n in before.partition_columns},
        {n.lower() for n in state.partition_columns},
    )
    if not new_names <= old:
        yield f"it would be partitioned by {', '.join(sorted(new_names - old))}, of which its files have no value"
    moved = [f for f in before.schema if f.name.lower() in old - new_names]
    if moved:
        names = {physical_name(field, before.mapping_mode) for field in moved}
        for path in _files_without(snapshot, names):
            columns = ", ".join(field.name for field in moved)
            yield f"it would not be partitioned by {columns} any more, which {path} does not hold"


def _constraints(properties: Mapping[str, str]) -> dict[str, str]:
    return {
        key.removeprefix(CONSTRAINT_PREFIX): text
        for key, text in properties.items()
        if key.startswith(CONSTRAINT_PREFIX)
    }


def _files_without(snapshot: Snapshot, names: Set[str]) -> Iterator[str]:
    """The paths of live files that lack columns."""
    paths = snapshot.live_files().table["path"].to_pylist()
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        for path, found in zip(paths, pool.map(lambda p: _columns(snapshot, p), paths), strict=True):
            if not names <= found:
                yield path


def _columns(snapshot: Snapshot, path: str) -> set[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = f"data file {path} of table {snapshot.storage.url} at version {snapshot.version}"
    try:
        with closing(snapshot.storage.open(snapshot.storage.resolve(path))) as source:
            return set(pq.read_schema(source).names)
    except FileNotFoundError as error:
        raise FAILED_READ_FILE_FILE_NOT_EXIST({"path": path}, place=place) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FAILED_READ_FILE_NO_HINT({"path": path}, place=place, reason=error) from error
