"""Generated and identity columns and defaults: values of columns that incoming rows lack.

Source: PROTOCOL.md, "Generated Columns" and "Default Columns" (protocol-checklist sections 30 and 34); delta-spark,
`ColumnWithDefaultExprUtils`.

Where the number of tasks T is known, task p gives its i-th row the number n = i * T + p, counted from the first free
value, as delta-spark does: the numbers are dealt out round robin. Elsewhere it is n = (i // B) * B * P + p * B + i % B:
every task owns blocks of B numbers, so a task 0 with fewer than B rows counts without gaps, and others begin far off.
Source: PROTOCOL.md, "Identity Columns" (protocol-checklist section 29); delta-spark, `IdentityColumn`.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.data import (
    ARITHMETIC_OVERFLOW,
    GENERATED_COLUMNS_OF_EACH_OTHER,
    IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED,
    IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE,
    UNSUPPORTED_COLUMN_DEFAULT,
    UNSUPPORTED_EXPRESSION_GENERATED_COLUMN,
)
from delta_ds.conditions.schema import UNRESOLVED_COLUMN_OF_GENERATED
from delta_ds.exceptions import (
    InvariantViolationError,
    PredicateError,
    UnsupportedOperationError,
)
from delta_ds.kernel.base.arrow_buffers import integers
from delta_ds.kernel.files.rows.expressions import RowExpression, read_row_expression
from delta_ds.kernel.format.expressions.arrays import array_of
from delta_ds.kernel.format.expressions.evaluate import constant
from delta_ds.kernel.format.expressions.tree import Call, Column, Expression, Literal, columns
from delta_ds.kernel.format.features import COLUMN_DEFAULTS, GENERATED_COLUMNS, IDENTITY_COLUMNS
from delta_ds.kernel.format.schema.field_metadata import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_HIGH_WATER_MARK,
    IDENTITY_START,
    IDENTITY_STEP,
)
from delta_ds.kernel.format.schema.types import (
    LONG,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    arrow_type,
    is_nested,
)
from delta_ds.records import dataclass, replace

_NESTED = ("array", "map", "named_struct", "struct")


@dataclass(frozen=True, slots=True)
class Generated:
    """A generated column and its expression, cast to the column's type."""

    column: str
    clause: RowExpression


@dataclass(frozen=True, slots=True)
class Default:
    """A column that takes a constant where the rows lack it."""

    column: str
    type: DataType
    clause: RowExpression

    def value(self, timezone: str) -> pa.Array:
        """The value as an array of length one.

        Raises
        ------
        PredicateError, UnsupportedFeatureError
            The expression is no constant of the column's type.
        """
        return _constant(self.clause, self.type, timezone)


def _constant(clause: RowExpression, data_type: DataType, timezone: str) -> pa.Array:
    if _is_null(clause.tree):
        return pa.nulls(1, arrow_type(data_type))
    if is_nested(data_type):
        return _nested_constant(clause, data_type, timezone)
    bound = clause.cast_to(data_type).bound(StructType(), timezone)
    try:
        value = bound.value if isinstance(bound, Literal) else constant(bound)
    except (PredicateError, OverflowError) as error:
        failure = error if isinstance(error, PredicateError) else PredicateError(str(error))
        raise clause.failure(failure) from error
    return array_of([value], data_type)


def _nested_constant(clause: RowExpression, data_type: DataType, timezone: str) -> pa.Array:
    """The value of `array(...)`, `map(...)`, `struct(...)` or `named_struct(...)`, whose parts are cast each."""
    name, parts, target = *_call(clause.tree), arrow_type(data_type)

    def column(trees: Sequence[Expression], part: DataType) -> pa.Array:
        if part == STRING and len({_kind_of(tree) for tree in trees if not _is_null(tree)}) > 1:
            # Spark makes one type of them first.
            raise clause.refusal("values of several types that become text")
        values = [_constant(replace(clause, tree=tree), part, timezone) for tree in trees]
        storage = arrow_type(part)
        return pa.concat_arrays(
            [v.cast(storage) if v.type != storage else v for v in values] or [pa.nulls(0, storage)]
        )

    if isinstance(data_type, ArrayType) and name == "array":
        offsets = pa.array([0, len(parts)], pa.int32())
        return pa.ListArray.from_arrays(offsets, column(parts, data_type.element), type=target)
    if isinstance(data_type, MapType) and name == "map" and len(parts) % 2 == 0:
        keys, values = column(parts[::2], data_type.key), column(parts[1::2], data_type.value)
        if is_nested(data_type.key):
            raise clause.refusal("a map whose keys are nested")
        # Of the two zeros Spark makes one.
        told_apart = pc.add(keys, 0.0) if pa.types.is_floating(keys.type) else keys
        if keys.null_count or len(told_apart.unique()) < len(keys):
            raise clause.refusal("a map with a key that is null or there twice")
        return pa.MapArray.from_arrays(pa.array([0, len(keys)], pa.int32()), keys, values, type=target)
    if isinstance(data_type, StructType) and name in ("struct", "named_struct"):
        parts = parts[1::2] if name == "named_struct" else parts
        if len(parts) == len(data_type.fields):
            columns_of = [column([tree], f.type) for tree, f in zip(parts, data_type, strict=True)]
            return pa.StructArray.from_arrays(columns_of, fields=list(target))
    raise clause.failure(PredicateError(f"{clause.text} is no value of type {data_type}"))


def _kind_of(tree: Expression) -> object:
    """The type of a constant as far as its text depends on it; of anything else the expression itself."""
    if not isinstance(tree, Literal):
        return tree
    exponent = tree.value.as_tuple().exponent if isinstance(tree.value, decimal.Decimal) else None
    return type(tree.value), exponent


def _is_null(tree: Expression) -> bool:
    return isinstance(tree, Literal) and tree.value is None


def _call(tree: Expression) -> tuple[str, tuple[Expression, ...]]:
    return (tree.name, tree.args) if isinstance(tree, Call) else ("", ())


def generation_expression(field: StructField, features: Collection[str]) -> str | None:
    """The SQL of a generated column; None for any other column."""
    text = field.metadata.get(GENERATION_EXPRESSION) if GENERATED_COLUMNS.name in features else None
    return text if isinstance(text, str) else None


def read_generated(field: StructField, text: str, now: datetime.datetime, table_name: str) -> Generated:
    """A generated column of the table.

    Raises
    ------
    UnsupportedFeatureError
        The expression cannot be parsed.
    """
    clause = read_row_expression(
        f"generated column {field.name} of {table_name}",
        text,
        now,
        UNSUPPORTED_EXPRESSION_GENERATED_COLUMN.name,
        "Write to this table with an engine that can compute the column.",
    )
    return Generated(field.name, clause)


def verification_condition(generated: Generated) -> RowExpression:
    """The condition that given values of a generated column must meet."""
    clause = generated.clause
    tree = Call("<=>", (Column((generated.column,)), clause.tree))
    return replace(clause, tree=tree, text=f"{generated.column} <=> {clause.text}")


def dependency_order(
    missing: Sequence[Generated], table: StructType, available: Collection[str]
) -> list[Generated]:
    """The columns to compute, each after those that its expression reads.

    Parameters
    ----------
    missing
        The generated columns that the rows do not have.
    table
        The table's columns.
    available
        The columns that rows have before any is computed, in the table's spelling.

    Raises
    ------
    PredicateError
        An expression reads a column that the rows do not have (`UNRESOLVED_COLUMN.WITH_SUGGESTION`).
    UnsupportedFeatureError
        Columns are computed from each other in a circle.
    """
    known, waiting, ordered = set(available), list(missing), list[Generated]()
    while waiting:
        ready = [g for g in waiting if _reads(g, table) <= known]
        if not ready:
            raise _stuck(waiting, table, known)
        ordered += ready
        known |= {g.column for g in ready}
        waiting = [g for g in waiting if g.column not in known]
    return ordered


def _reads(generated: Generated, table: StructType) -> set[str]:
    found = ((c.path[0], table.find(c.path[0])) for c in columns(generated.clause.tree))
    return {name if field is None else field.name for name, field in found}


def _stuck(waiting: Sequence[Generated], table: StructType, known: set[str]) -> Exception:
    generated = {g.column for g in waiting}
    for g in waiting:
        for name in sorted(_reads(g, table) - known - generated):
            return UNRESOLVED_COLUMN_OF_GENERATED(clause=g.clause, column=name, generatedColumn=g.column)
    return GENERATED_COLUMNS_OF_EACH_OTHER(generated=sorted(generated))


def read_default(
    field: StructField, features: Collection[str], now: datetime.datetime, table_name: str
) -> Default | None:
    """The default of a column that the rows do not have; None where it is null.

    Raises
    ------
    UnsupportedFeatureError
        The default is not one that can be evaluated.
    """
    text = field.metadata.get(CURRENT_DEFAULT)
    if COLUMN_DEFAULTS.name not in features or text is None:
        return None
    clause = read_row_expression(
        f"default of column {field.name} of {table_name}",
        text,
        now,
        UNSUPPORTED_COLUMN_DEFAULT.name,
        "Give values for the column, or change its default.",
    )
    if is_nested(field.type) and _call(clause.tree)[0] not in _NESTED and not _is_null(clause.tree):
        raise clause.refusal(f"a value of type {field.type} that is made by more than {', '.join(_NESTED)}")
    return Default(field.name, field.type, clause)


BLOCK = 1 << 20
TASKS = 1 << 16
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Identity:
    """One identity column whose values are generated.

    Attributes
    ----------
    base
        The first value not given out yet: `start + k * step` beyond the high water mark.
    step
        The distance of neighbouring values, not zero; its sign is the direction.
    only_missing
        Only rows in which the column is null get a value.
    tasks
        How many tasks generate values; None: not known.
    """

    column: str
    base: int
    step: int
    only_missing: bool = False
    tasks: int | None = None


def is_identity(field: StructField, features: Collection[str]) -> bool:
    """Whether the field is an identity column of a table with these supported features."""
    return (
        IDENTITY_COLUMNS.name in features
        and IDENTITY_START in field.metadata
        and IDENTITY_STEP in field.metadata
    )


def plan_identities(
    table: StructType,
    given: Collection[str],
    features: Collection[str],
    table_name: str,
    *,
    changed: bool = False,
) -> tuple[Identity, ...]:
    """The identity columns to fill, for rows that bring the columns `given` (the table's spelling).

    Rows of the table that are `changed` have values already; those that are missing are filled in.

    Raises
    ------
    UnsupportedOperationError
        The rows have values for a column that is GENERATED ALWAYS.
    SchemaError
        The column's metadata or type is not that of an identity column.

    Source: protocol-checklist ID-W-01 to ID-W-03.
    """
    found: list[Identity] = []
    for field in table:
        if not is_identity(field, features):
            continue
        identity = _identity(field, table_name)
        if field.name not in given:
            found.append(replace(identity, only_missing=changed))
        elif not changed and not field.metadata.get(IDENTITY_ALLOW_EXPLICIT_INSERT):
            raise IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED(colName=field.name, table=table_name)
    return tuple(found)


def _identity(field: StructField, table_name: str) -> Identity:
    start, step = field.metadata[IDENTITY_START], field.metadata[IDENTITY_STEP]
    mark = field.metadata.get(IDENTITY_HIGH_WATER_MARK)
    numbers = [n for n in (start, step, mark) if n is not None]
    sound = all(type(n) is int and _LOWEST <= n <= _HIGHEST for n in numbers)
    if field.type != LONG or step == 0 or not sound:
        raise IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE(
            column=field.name, table=table_name, type=field.type, start=start, step=step, mark=mark
        )
    return Identity(field.name, first_value(start, step, mark), step)


def first_value(start: int, step: int, mark: int | None) -> int:
    """The first `start + k * step` (k not negative) beyond the mark in the direction of the step."""
    return start if mark is None else start + max((mark - start) // step + 1, 0) * step


class IdentityValues:
    """The values that one task gives out for one identity column.

    Parameters
    ----------
    identity
        The column.
    task
        The number of the task, 0 to 65,535; no other task that writes the same commit may have it.
    """

    def __init__(self, identity: Identity, task: int) -> None:
        if not 0 <= task < TASKS:
            raise UnsupportedOperationError(
                f"identity values can be generated by at most {TASKS} tasks of a write, this is task {task}; "
                "coalesce() the rows into fewer partitions",
            )
        if identity.tasks is not None and task >= identity.tasks:
            raise InvariantViolationError(
                f"identity values were dealt out among {identity.tasks} tasks, and this is task {task} of them; "
                "write again",
            )
        self.identity = identity
        self.task = task
        self.rows = 0
        self._last: int | None = None

    @property
    def mark(self) -> int | None:
        """The value given out last, the furthest in the direction of the step; None before the first."""
        return self._last

    def next(self, rows: int) -> pa.Array:
        """The values of the next rows as an int64 array.

        Raises
        ------
        InvariantViolationError
            The values leave the range of a long.
        """
        import numpy as np

        tasks = self.identity.tasks
        if tasks is not None:
            first, self.rows = self.rows * tasks + self.task, self.rows + rows
            return integers(self._values(first, rows, tasks) if rows else np.empty(0, np.int64))
        parts = []
        end = self.rows + rows
        while self.rows < end:
            block, place = divmod(self.rows, BLOCK)
            count = min(BLOCK - place, end - self.rows)
            first = block * BLOCK * TASKS + self.task * BLOCK + place
            parts.append(self._values(first, count))
            self.rows += count
        return integers(np.concatenate(parts) if parts else np.empty(0, np.int64))

    def _values(self, number: int, count: int, apart: int = 1) -> Any:
        import numpy as np

        base, step = self.identity.base, self.identity.step * apart
        first = base + number * self.identity.step
        last = first + (count - 1) * step
        if not all(_LOWEST <= value <= _HIGHEST for value in (first, last)):
            raise ARITHMETIC_OVERFLOW(column=self.identity.column, first=first, step=step)
        self._last = last
        return np.arange(count, dtype=np.int64) * np.int64(step) + np.int64(first)
