"""`RowPlan`: what is done to every row of a write, decided and checked once on the driver.

Whatever cannot be honoured is refused here, before anything is written; the tasks only run the plan.
Source: delta-spark, `TransactionalWrite.writeFiles` and `ColumnWithDefaultExprUtils`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from delta_ds.conditions.data import IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED, MISSING_NOT_NULL_COLUMN_VALUE
from delta_ds.conditions.schema import FAILED_TO_MERGE_FIELDS_BY_NAME
from delta_ds.exceptions import (
    PredicateError,
    UnsupportedFeatureError,
)
from delta_ds.kernel.files.rows.casts import can_store, match_names
from delta_ds.kernel.files.rows.checks import (
    CONSTRAINT_PREFIX,
    Condition,
    RowCheck,
    lengths,
    name_table,
    schema_checks,
    table_constraints,
)
from delta_ds.kernel.files.rows.expressions import RowExpression
from delta_ds.kernel.files.rows.generated import (
    Default,
    Generated,
    Identity,
    dependency_order,
    generation_expression,
    plan_identities,
    read_default,
    read_generated,
    verification_condition,
)
from delta_ds.kernel.format.expressions.tree import Call, Column, Literal, postorder
from delta_ds.kernel.format.features import COLUMN_DEFAULTS
from delta_ds.kernel.format.schema.field_metadata import CURRENT_DEFAULT
from delta_ds.kernel.format.schema.types import STRING, VOID, StructField, StructType
from delta_ds.kernel.format.table_state import TableState
from delta_ds.records import dataclass, replace

VERIFICATION = "Generated Column"  # the name of the check that given values are those generated
FOREIGN = "sql"  # the name of the call that stands for an expression which the kernel cannot read
ColumnsOf = Callable[[str], Sequence[tuple[str, ...]]]
_Owner = TypeVar("_Owner", Condition, Generated, Default)


@dataclass(frozen=True, slots=True)
class RowPlan:
    """What is done to the rows of one write. Can be pickled; small.

    Attributes
    ----------
    table_name
        The table as messages name it.
    table
        The table's schema: what the rows become.
    timezone
        The session time zone. A task that knows it better than planning did replaces it
        (`dataclasses.replace(plan, timezone=...)`) before it makes a `RowPipeline`.
    defaults, identities, generated
        The columns that the rows do not bring and how they are filled; generated ones in order.
        Any other missing column is null.
    checks
        What every row must meet, in the order in which violations of one row are told.
    implicit
        Values are cast by the rules of streams, see `can_store`.
    """

    table_name: str
    table: StructType
    timezone: str = "UTC"
    defaults: tuple[Default, ...] = ()
    identities: tuple[Identity, ...] = ()
    generated: tuple[Generated, ...] = ()
    checks: tuple[RowCheck, ...] = ()
    implicit: bool = False


def plan_rows(
    data: StructType,
    state: TableState,
    *,
    timezone: str = "UTC",
    columns_of: ColumnsOf | None = None,
    implicit: bool = False,
    table: StructType | None = None,
) -> RowPlan:
    """Decide what is done to the rows of a write.

    Parameters
    ----------
    data
        The schema of the incoming rows, reconciled with the table's: the same columns or fewer, in any order
        and any case.
    state
        The table after the write.
    timezone
        The session time zone, as far as it is known.
    columns_of
        Given where another engine than `RowPipeline` completes and checks the rows by the SQL of the clauses:
        the paths of the columns that an SQL expression reads, or a `PredicateError` for what is no expression.
        Expressions then need not be ones that the kernel can read or evaluate, and are not tried out; see
        `is_foreign`.
    implicit
        Values are cast by the rules of streams, see `can_store`.
    table
        What the rows become, with fewer fields in structs than the table has; None: its schema.

    Raises
    ------
    SchemaError
        A column of the rows is unknown, or of a type that is not stored in the table's column.
    InvariantViolationError
        A NOT NULL column has neither values nor a default (`DELTA_MISSING_NOT_NULL_COLUMN_VALUE`).
    UnsupportedOperationError
        The rows have values for a column that is GENERATED ALWAYS AS IDENTITY.
    UnsupportedFeatureError, PredicateError
        A constraint, invariant, default or generated column cannot be parsed, bound or evaluated.

    Source: protocol-checklist ID-*, GEN-*, CON-*, DEF-*.
    """
    table = state.schema if table is None else table
    table_name, features = state.table, state.protocol.supported
    now = datetime.datetime.now(datetime.timezone.utc)
    data_columns = _given_columns(data, table, implicit)
    identities = plan_identities(table, data_columns, features, table_name)
    _refuse_partitioning(identities, state.partition_columns, table_name)
    generated, verified = _plan_generated(table, data_columns, features, now, table_name, columns_of)
    filled = data_columns | {i.column for i in identities} | {g.column for g in generated}
    missing = [f for f in table if f.name not in filled]
    defaults = [d for f in missing if (d := _default(f, features, now, table_name, columns_of))]
    filled |= {d.column for d in defaults}
    _refuse_missing(data, table, filled - data_columns, table_name)
    checks: list[RowCheck] = [
        *_constraints(state.properties, table, table_name, now, columns_of),
        *schema_checks(table, table_name, now),
        *lengths(table),
        *verified,
    ]
    plan = RowPlan(
        table_name,
        table,
        timezone,
        tuple(defaults),
        identities,
        tuple(dependency_order(generated, table, filled - {g.column for g in generated})),
        tuple(checks),
        implicit,
    )
    if columns_of is None:
        _try_out(plan)
    return plan


def plan_changed_rows(
    state: TableState,
    *,
    computed: Collection[str],
    generates: Collection[str],
    timezone: str = "UTC",
    columns_of: ColumnsOf | None = None,
) -> RowPlan:
    """Decide what is done to rows of a table that a command changes, adds or only copies.

    Such rows bring all columns but the computed ones, identity values among them.

    Parameters
    ----------
    computed
        Generated columns that are computed from the other columns; given values of the others are verified.
    generates
        Identity columns whose values are generated in rows where they are null.
    state, timezone, columns_of
        As for `plan_rows`.

    Raises
    ------
    UnsupportedFeatureError, PredicateError
        A constraint, invariant or generated column cannot be parsed, bound or evaluated.
    """
    table, table_name, features = state.schema, state.table, state.protocol.supported
    now = datetime.datetime.now(datetime.timezone.utc)
    stored_columns = frozenset(f.name for f in table) - frozenset(computed)
    generated, verified = _plan_generated(table, stored_columns, features, now, table_name, columns_of)
    identities = plan_identities(
        table, stored_columns - frozenset(generates), features, table_name, changed=True
    )
    checks: list[RowCheck] = [
        *_constraints(state.properties, table, table_name, now, columns_of),
        *schema_checks(table, table_name, now),
        *lengths(table),
        *verified,
    ]
    ordered = tuple(dependency_order(generated, table, stored_columns))
    plan = RowPlan(table_name, table, timezone, (), identities, ordered, tuple(checks))
    if columns_of is None:
        _try_out(plan)
    return plan


def is_foreign(clause: RowExpression) -> bool:
    """Whether the kernel cannot evaluate the expression; its tree then only names the columns it reads."""

    return any(isinstance(node, Call) and node.name == FOREIGN for node in postorder(clause.tree))


def _read_condition(read: Callable[[str], _Owner], text: str, columns_of: ColumnsOf | None) -> _Owner:
    """What `read` makes of an SQL text, even of one that only another engine understands, where one is there."""
    try:
        return read(text)
    except UnsupportedFeatureError as error:
        if columns_of is None:
            raise
        try:
            paths: Sequence[tuple[str, ...]] = columns_of(text)
        except PredicateError:
            raise error from None
        owner = read("NULL")
        tree = Call(FOREIGN, (Literal(text, STRING), *map(Column, paths)))
        return replace(owner, clause=replace(owner.clause, text=text, tree=tree))


def _constraints(
    properties: Mapping[str, str],
    table: StructType,
    table_name: str,
    now: datetime.datetime,
    columns_of: ColumnsOf | None,
) -> Iterator[Condition]:
    for key in sorted(properties):
        if key.lower().startswith(CONSTRAINT_PREFIX):

            def read(text: str, key: str = key) -> Condition:
                (condition,) = table_constraints({key: text}, table_name, now)
                return condition

            yield name_table(_read_condition(read, properties[key], columns_of), table)


def _default(
    field: StructField,
    features: Collection[str],
    now: datetime.datetime,
    table_name: str,
    columns_of: ColumnsOf | None,
) -> Default | None:
    text = field.metadata.get(CURRENT_DEFAULT)
    if COLUMN_DEFAULTS.name not in features or not isinstance(text, str):
        return read_default(field, features, now, table_name)

    def read(text: str) -> Default:
        default = read_default(replace(field, metadata={CURRENT_DEFAULT: text}), features, now, table_name)
        assert default is not None
        return default

    return _read_condition(read, text, columns_of)


def _given_columns(data: StructType, table: StructType, implicit: bool) -> frozenset[str]:
    """The columns of the table that the incoming rows have."""
    data_columns = set[str]()
    for field, at in zip(table, match_names(data.names, table), strict=True):
        if at is None:
            continue
        source = data.fields[at]
        if not can_store(source.type, field.type, implicit):
            raise FAILED_TO_MERGE_FIELDS_BY_NAME(
                currentField=field.name, tableType=field.type, dataType=source.type, updateField=field.name
            )
        data_columns.add(field.name)
    return frozenset(data_columns)


def _plan_generated(
    table: StructType,
    data_columns: Collection[str],
    features: Collection[str],
    now: datetime.datetime,
    name: str,
    columns_of: ColumnsOf | None,
) -> tuple[list[Generated], list[Condition]]:
    """The generated columns to compute, and the conditions on those whose values are given."""
    missing: list[Generated] = []
    verified: list[Condition] = []
    for field in table:
        text = generation_expression(field, features)
        if text is None:
            continue

        def read(text: str, field: StructField = field) -> Generated:
            return read_generated(field, text, now, name)

        generated = _read_condition(read, text, columns_of)
        if field.name in data_columns:
            verified.append(Condition(VERIFICATION, verification_condition(generated)))
        else:
            missing.append(generated)
    return missing, verified


def _refuse_partitioning(
    identities: Sequence[Identity], partition_columns: Sequence[str], table_name: str
) -> None:
    """Generated identity values would make a partition of every row (protocol-checklist ID-W-05)."""
    partitions = {name.lower() for name in partition_columns}
    for identity in identities:
        if identity.column.lower() in partitions:
            raise IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED(colName=identity.column, table=table_name)


def _refuse_missing(
    data: StructType, table: StructType, filled: Collection[str], table_name: str, path: str = ""
) -> None:
    """Refuse rows that lack a NOT NULL column or field which nothing fills in."""
    for field in table:
        if field.name in filled:
            continue
        there, name = data.find(field.name), f"{path}{field.name}"
        if (there is None or there.type == VOID) and not field.nullable:
            raise MISSING_NOT_NULL_COLUMN_VALUE(columnName=name, table=table_name)
        if isinstance(field.type, StructType):
            inner = there.type if there is not None and isinstance(there.type, StructType) else StructType()
            _refuse_missing(inner, field.type, (), table_name, f"{name}.")


def _try_out(plan: RowPlan) -> None:
    """Bind and compute what is possible without rows, so that errors come before tasks start."""
    for default in plan.defaults:
        default.value(plan.timezone)
    for generated in plan.generated:
        field = plan.table.find(generated.column)
        assert field is not None
        generated.clause.cast_to(field.type).bound(plan.table, plan.timezone, stored=True)
    for check in plan.checks:
        check.finder(plan.table, plan.timezone)
