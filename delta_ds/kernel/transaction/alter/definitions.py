"""Checks of generated columns, identity columns, column defaults and CHECK conditions as users define them.

Definitions are checked when they are made, so that no table is left that nobody can write to.

Source: protocol-checklist sections 29, 30, 31 and 34; delta-spark, `GeneratedColumn`, `IdentityColumn`, `Constraints`.

Add and drop CHECK constraints.

Source: PROTOCOL.md, "CHECK Constraints"; protocol-checklist CON-W-03, CON-W-04.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from delta_ds.conditions.columns import (
    AGGREGATE_IN_CHECK_CONSTRAINT,
    AGGREGATE_IN_GENERATED_COLUMN,
    CONSTRAINT_ALREADY_EXISTS,
    CONSTRAINT_DOES_NOT_EXIST,
    GENERATED_COLUMN_WITH_DEFAULT,
    IDENTITY_COLUMNS_ILLEGAL_STEP,
    IDENTITY_COLUMNS_WITH_DEFAULT,
    IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION,
    INVALID_CONSTRAINT_NAME,
    INVALID_DEFAULT_VALUE_DATA_TYPE,
    INVALID_DEFAULT_VALUE_NOT_CONSTANT,
    NON_BOOLEAN_CHECK_CONSTRAINT,
    NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT,
    NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN,
    UNSUPPORTED_GENERATED_NESTED_COLUMN,
    WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED,
)
from delta_ds.conditions.data import (
    IDENTITY_COLUMNS_AS_PARTITION,
    IDENTITY_COLUMNS_NOT_BIGINT,
    INVALID_GENERATED_COLUMN_REFERENCES,
    UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT,
    UNSUPPORTED_EXPRESSION_GENERATED_COLUMN,
)
from delta_ds.conditions.expressions import GENERATED_COLUMNS_EXPR_TYPE_MISMATCH
from delta_ds.conditions.record import ErrorCondition
from delta_ds.conditions.schema import EXPRESSION_UNREADABLE
from delta_ds.exceptions import (
    DeltaError,
    PredicateError,
    UnsupportedFeatureError,
)
from delta_ds.kernel.files.rows.expressions import RowExpression, read_row_expression
from delta_ds.kernel.files.rows.generated import read_default
from delta_ds.kernel.format.expressions.tree import Call, Expression, columns, parts_of
from delta_ds.kernel.format.features import COLUMN_DEFAULTS
from delta_ds.kernel.format.operations import ADD_CONSTRAINT, DROP_CONSTRAINT
from delta_ds.kernel.format.properties import CONSTRAINT_PREFIX
from delta_ds.kernel.format.schema.column_mapping import every_field
from delta_ds.kernel.format.schema.field_metadata import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_START,
    IDENTITY_STEP,
)
from delta_ds.kernel.format.schema.types import (
    BOOLEAN,
    LONG,
    VOID,
    DataType,
    StructField,
    StructType,
    sql_name,
)
from delta_ds.kernel.transaction.alter.protocol import upgrade_protocol
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from delta_ds.kernel.transaction.table_log import TableLog


_AGGREGATES = frozenset([
    "any", "any_value", "approx_count_distinct", "array_agg", "avg", "bool_and", "bool_or", "collect_list",
    "collect_set", "corr", "count", "count_if", "every", "first", "first_value", "grouping", "kurtosis", "last",
    "last_value", "max", "max_by", "mean", "median", "min", "min_by", "mode", "percentile", "percentile_approx",
    "skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp", "sum", "try_avg", "try_sum", "var_pop",
    "var_samp", "variance",
])  # fmt: skip
_NOT_DETERMINISTIC = frozenset([
    "current_catalog", "current_database", "current_schema", "current_user", "input_file_name",
    "monotonically_increasing_id", "rand", "randn", "random", "randstr", "session_user", "shuffle",
    "spark_partition_id", "uniform", "user", "uuid",
])  # fmt: skip
_TIMES = frozenset(
    ["current_date", "current_timestamp", "current_timezone", "localtimestamp", "now", "curdate"]
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """The error conditions of one kind of expression."""

    unsupported: ErrorCondition[UnsupportedFeatureError]
    aggregate: ErrorCondition[PredicateError]
    not_deterministic: ErrorCondition[PredicateError]
    remedy: str


_CONSTRAINT = _Kind(
    UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT,
    AGGREGATE_IN_CHECK_CONSTRAINT,
    NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT,
    "Write the condition with operators and functions that delta_ds evaluates.",
)
_GENERATED = _Kind(
    UNSUPPORTED_EXPRESSION_GENERATED_COLUMN,
    AGGREGATE_IN_GENERATED_COLUMN,
    NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN,
    "Write it with operators and functions that delta_ds evaluates.",
)


def check_constraint(name: str, expression: str, schema: StructType, table: str) -> None:
    """Refuse a CHECK constraint that could not be evaluated.

    Parameters
    ----------
    name, expression
        As given; the expression is Spark SQL.
    schema
        The table's.
    table
        Its address, for messages.

    Raises
    ------
    DeltaError
        It is no SQL, not boolean, names unknown columns, or holds what is not allowed or not evaluated.
    """
    owner = f"CHECK constraint {name} of {table}"
    bound = _bound(owner, expression, schema, _CONSTRAINT)
    if bound.type != BOOLEAN:
        raise NON_BOOLEAN_CHECK_CONSTRAINT(table=table, expr=expression, type=bound.type, name=name)


def _bound(owner: str, text: str, schema: StructType, kind: _Kind) -> Expression:
    clause = _parse_clause(owner, text, kind)
    _check_functions(clause, kind)
    return clause.bound(schema, "UTC")


def _parse_clause(owner: str, text: str, kind: _Kind) -> RowExpression:
    now = datetime.datetime.now(datetime.timezone.utc)
    try:
        return read_row_expression(owner, text, now, kind.unsupported.name, kind.remedy)
    except UnsupportedFeatureError as error:
        if _is_sql(text):
            raise  # such as a subquery, or a window
        raise EXPRESSION_UNREADABLE(error.parameters, reason=error.text) from error


def _is_sql(text: str) -> bool:
    from delta_ds.kernel.format.expressions.sql import check_syntax

    try:
        check_syntax(text)
    except PredicateError:
        return False
    return True


def _check_no_time(clause: RowExpression, kind: _Kind) -> None:
    """Refuse the current time, which stands in the expression's tree as a constant."""
    from delta_ds.kernel.format.expressions.sql import parse_definition

    for call in _calls(parse_definition(clause.text)):
        if call.name.lower() in _TIMES:
            raise kind.not_deterministic(clause=clause, expression=clause.text, function=call.name.lower())


def _check_functions(clause: RowExpression, kind: _Kind) -> None:
    for call in _calls(clause.tree):
        name = call.name.lower()
        if name in _AGGREGATES:
            raise kind.aggregate(clause=clause, expression=clause.text, function=name)
        if name in _NOT_DETERMINISTIC or name in _TIMES:
            raise kind.not_deterministic(clause=clause, expression=clause.text, function=name)


def _calls(expression: Expression) -> Iterator[Call]:
    pending = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, Call):
            yield node
        pending.extend(reversed(parts_of(node)))


def check_columns(
    schema: StructType, partition_columns: Collection[str], features: Collection[str], table: str
) -> None:
    """Refuse generated, identity and default columns that could not be filled.

    Parameters
    ----------
    schema
        The table's, with the definitions in the metadata of its fields.
    partition_columns
        Logical names.
    features
        What the table will support.
    table
        Its address, for messages.

    Raises
    ------
    DeltaError
        Naming the column and what is wrong with it; nothing was written.
    """
    for field in schema:
        if IDENTITY_START in field.metadata or IDENTITY_STEP in field.metadata:
            _check_identity(field, partition_columns, table)
        if GENERATION_EXPRESSION in field.metadata:
            _check_generated(field, schema, table)
        if CURRENT_DEFAULT in field.metadata:
            check_default(field, features, table)
    top_level = {id(field) for field in schema}
    for field in every_field(schema):
        if id(field) not in top_level and field.metadata.keys() & {
            GENERATION_EXPRESSION,
            IDENTITY_START,
            CURRENT_DEFAULT,
        }:
            raise UNSUPPORTED_GENERATED_NESTED_COLUMN(column=field.name, table=table)


def _check_identity(field: StructField, partition_columns: Collection[str], table: str) -> None:
    name = field.name
    if field.type != LONG:
        raise IDENTITY_COLUMNS_NOT_BIGINT(colName=name, table=table, type=field.type)
    if not field.metadata.get(IDENTITY_STEP):
        raise IDENTITY_COLUMNS_ILLEGAL_STEP(colName=name, table=table)
    if name.lower() in {c.lower() for c in partition_columns}:
        raise IDENTITY_COLUMNS_AS_PARTITION(colName=name, table=table)
    if GENERATION_EXPRESSION in field.metadata:
        raise IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION(colName=name, table=table)
    if CURRENT_DEFAULT in field.metadata:
        raise IDENTITY_COLUMNS_WITH_DEFAULT(colName=name, table=table)


def _check_generated(field: StructField, schema: StructType, table: str) -> None:
    owner, text = f"generated column {field.name} of {table}", str(field.metadata[GENERATION_EXPRESSION])
    clause = _parse_clause(owner, text, _GENERATED)
    _check_functions(clause, _GENERATED)
    _check_no_time(clause, _GENERATED)
    plain = StructType(tuple(f for f in schema if GENERATION_EXPRESSION not in f.metadata))
    unknown = sorted({c.path[0] for c in columns(clause.tree) if plain.find(c.path[0]) is None})
    if unknown:
        raise INVALID_GENERATED_COLUMN_REFERENCES(clause=clause, unknown=unknown, columnName=field.name)
    if CURRENT_DEFAULT in field.metadata:
        raise GENERATED_COLUMN_WITH_DEFAULT(owner=owner, columnName=field.name)
    found = clause.bound(plain, "UTC").type
    if not same_type(found, field.type):
        raise GENERATED_COLUMNS_EXPR_TYPE_MISMATCH(
            clause=clause,
            expressionType=sql_name(found or VOID),
            columnType=sql_name(field.type),
            columnName=field.name,
        )


def same_type(one: DataType | None, other: DataType) -> bool:
    """Whether types are equal but for nullability: their texts leave it out."""
    return str(one) == str(other)


def check_default(field: StructField, features: Collection[str], table: str) -> None:
    """Refuse a default that is not a constant of its column's type, or that the table does not allow.

    Raises
    ------
    InvalidOptionError
        The table does not support the feature allowColumnDefaults.
    DeltaError
        The expression is no constant that can be evaluated to the column's type.

    Source: protocol-checklist DEF-W-01, DEF-W-03.
    """
    if COLUMN_DEFAULTS.name not in features:
        raise WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED(column=field.name, table=table)
    now = datetime.datetime.now(datetime.timezone.utc)
    default = read_default(field, features, now, table)
    if default is None:
        return
    used = [".".join(c.path) for c in columns(default.clause.tree)]
    if used:
        raise INVALID_DEFAULT_VALUE_NOT_CONSTANT(
            clause=default.clause, used=used[0], column=field.name, expression=default.clause.text
        )
    try:
        default.value("UTC")
    except DeltaError as error:
        raise INVALID_DEFAULT_VALUE_DATA_TYPE(reason=error.text, column=field.name) from error


_TOKEN = re.compile(
    r"""(?P<hidden>\s+|--[^\n]*|/\*.*?\*/)|[rRxX](?:'[^']*'|"[^"]*")"""
    r"""|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`"""
    r"|(?:\d+\.\d*|\.\d+|\d+(?=[eE][+-]?\d))(?:[eE][+-]?\d+)?(?:BD|[DLSYF])?|\w+"
    r"|<=>|<>|!=|<=|>=|==|!>|!<|->|=>|::|<<|>>>|>>|\|\||.",
    re.DOTALL,
)


def add_constraint(log: TableLog, name: str, expression: str, verify: Callable[[str], None]) -> int:
    """Add a CHECK constraint that every row meets, those in the table and all to come.

    Parameters
    ----------
    log
        The table.
    name
        Of the constraint; case does not count.
    expression
        Spark SQL; TRUE for the rows that are allowed, so that NULL is not.
    verify
        Called with the expression before the commit; raises if a row of the table breaks it. Rows that others
        add meanwhile make the commit fail.

    Returns
    -------
    int
        The version committed.

    Raises
    ------
    SchemaError
        There is one of the name already, or the name is empty.
    PredicateError, UnsupportedFeatureError
        The expression is not a boolean one on the table's columns that can be evaluated.
    InvariantViolationError
        A row breaks it (from `verify`).
    """
    if not name.strip():
        raise INVALID_CONSTRAINT_NAME()
    txn = log.start_transaction()
    table = log.storage.url
    key = CONSTRAINT_PREFIX + name.lower()
    found = _find_constraint(txn.metadata.configuration, name)
    if found is not None:
        raise CONSTRAINT_ALREADY_EXISTS(
            table=table, constraintName=name, oldConstraint=txn.metadata.configuration[found]
        )
    stored = normalise_expression(expression)
    for text in (expression, stored):  # what is kept has to mean the same to whoever writes next
        check_constraint(name, text, txn.metadata.schema, table)
    new = replace(txn.metadata, configuration={**txn.metadata.configuration, key: stored})
    protocol = upgrade_protocol(txn.protocol, new)
    txn.read_whole_table()
    verify(stored)
    if protocol != txn.protocol:
        txn.set_protocol(protocol)
    txn.set_metadata(new)
    return txn.commit(ADD_CONSTRAINT, {"name": name, "expr": stored})


def normalise_expression(expression: str) -> str:
    """The expression as delta-spark keeps it: its tokens with a space between them, comments left out.

    >>> normalise_expression("length(name)<=5 /* short */ or s.a > -1.5")
    'length ( name ) <= 5 or s . a > - 1.5'

    Source: delta-spark, `DeltaSqlBase.g4` (`checkExprToken`) and `DeltaSqlAstBuilder.visitAddTableConstraint`.
    """
    return " ".join(token[0] for token in _TOKEN.finditer(expression) if token["hidden"] is None)


def drop_constraint(log: TableLog, name: str, *, if_exists: bool = False) -> int:
    """Drop a CHECK constraint.

    Parameters
    ----------
    log
        The table.
    name
        Of the constraint; case does not count.
    if_exists
        Whether it may be missing.

    Returns
    -------
    int
        The version committed, also where there was nothing to drop: the history tells, as delta-spark's does.

    Raises
    ------
    InvalidOptionError
        There is none of the name.
    """
    txn = log.start_transaction()
    configuration = dict(txn.metadata.configuration)
    key = _find_constraint(configuration, name)
    if key is None and if_exists:
        return txn.commit(DROP_CONSTRAINT, {"name": name, "existed": "false"})
    if key is None:
        there = sorted(k[len(CONSTRAINT_PREFIX) :] for k in configuration if k.startswith(CONSTRAINT_PREFIX))
        raise CONSTRAINT_DOES_NOT_EXIST(
            table=log.storage.url, constraintName=name, there=", ".join(there) or "none"
        )
    expression = configuration.pop(key)
    txn.set_metadata(replace(txn.metadata, configuration=configuration))
    return txn.commit(DROP_CONSTRAINT, {"name": name, "expr": expression, "existed": "true"})


def _find_constraint(configuration: Mapping[str, str], name: str) -> str | None:
    wanted = CONSTRAINT_PREFIX + name.lower()
    return next((key for key in configuration if key.lower() == wanted), None)
