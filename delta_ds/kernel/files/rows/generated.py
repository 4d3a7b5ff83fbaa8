"""Generated columns and defaults: values of columns that incoming rows lack.

Source: PROTOCOL.md, "Generated Columns" and "Default Columns" (protocol-checklist sections 30 and 34); delta-spark,
`ColumnWithDefaultExprUtils`.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence

import pyarrow as pa

from delta_ds.conditions.data import (
    GENERATED_COLUMNS_OF_EACH_OTHER,
    UNSUPPORTED_COLUMN_DEFAULT,
    UNSUPPORTED_EXPRESSION_GENERATED_COLUMN,
)
from delta_ds.conditions.schema import UNRESOLVED_COLUMN_OF_GENERATED
from delta_ds.exceptions import PredicateError, UnsupportedFeatureError
from delta_ds.kernel.files.rows.expressions import RowExpression, read_row_expression
from delta_ds.kernel.format.expressions.arrays import array_of
from delta_ds.kernel.format.expressions.coercion import is_nested
from delta_ds.kernel.format.expressions.evaluate import constant
from delta_ds.kernel.format.expressions.tree import Call, Column, Literal, columns
from delta_ds.kernel.format.features import COLUMN_DEFAULTS, GENERATED_COLUMNS
from delta_ds.kernel.format.schema.field_metadata import CURRENT_DEFAULT, GENERATION_EXPRESSION
from delta_ds.kernel.format.schema.types import DataType, StructField, StructType, arrow_type
from delta_ds.records import dataclass, replace


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
        if isinstance(self.clause.tree, Literal) and self.clause.tree.value is None:
            return pa.nulls(1, arrow_type(self.type))
        bound = self.clause.cast_to(self.type).bound(StructType(), timezone)
        try:
            value = bound.value if isinstance(bound, Literal) else constant(bound)
        except (PredicateError, OverflowError) as error:
            failure = error if isinstance(error, PredicateError) else PredicateError(str(error))
            raise self.clause.failure(failure) from error
        return array_of([value], self.type)


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
    default = Default(field.name, field.type, clause)
    if is_nested(field.type) and not (isinstance(clause.tree, Literal) and clause.tree.value is None):
        raise UnsupportedFeatureError(
            f"{clause} is of type {field.type}, of which only NULL can be evaluated. "
            f"{clause.remedy} Nothing was written.",
            condition=clause.condition,
        )
    return default
