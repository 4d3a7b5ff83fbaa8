"""Expressions of a command in the kernel's terms: to choose files, for conflict checks, and for rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from delta_ds.conditions.dml import CANNOT_RESOLVE_EXPRESSION
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.commands.dml.candidates import all_evaluable
from delta_ds.kernel.commands.dml.new_values import NewValue, NewValues
from delta_ds.kernel.commands.dml.row_finder import RowFinder
from delta_ds.kernel.files.rows.expressions import RowExpression
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.evaluate import unevaluable
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.column_paths import Path, find, show
from delta_ds.kernel.format.schema.types import VOID, without_metadata
from delta_ds.spark.engines.classic.catalyst.values import OnlySpark, cast_alike

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.schema.types import DataType, StructField, StructType
    from delta_ds.spark.commands.dml_target import DmlTarget
    from delta_ds.spark.engines.seam.expressions import Resolved


def predicate_of(target: DmlTarget, condition: Resolved) -> Expression | None:
    """The part of a condition on the table that the kernel can express; None for no part. Not bound."""
    expressions = target.engine.expressions
    return target.understood(
        expressions.predicates(condition, target.schema, target.timezone, target.handle.alias)
    )


def evaluable(target: DmlTarget, value: Resolved) -> Expression:
    """What a user wrote over a table, as the kernel evaluates it row by row as Spark does. Not bound.

    Raises
    ------
    OnlySpark
        Spark has to evaluate it.
    """
    tree = target.engine.expressions.evaluable(value.column, target.schema, target.timezone)
    check_type(bound_alike(tree, target.schema, target.timezone), value.type)
    return tree


def bound_alike(value: Expression, schema: StructType, timezone: str) -> Expression:
    """A translated expression, bound.

    Raises
    ------
    OnlySpark
        It cannot be evaluated.
    """
    try:
        bound = bind(value, schema, timezone, predicate=False)
    except PredicateError as error:
        raise OnlySpark(error.text) from error
    unknown = unevaluable(bound)
    if unknown is not None:
        raise OnlySpark(f"the expression {unknown}")
    return bound


def check_type(bound: Expression, kind: DataType) -> None:
    """Refuse a translated expression whose values are not of the type that Spark gives them.

    Raises
    ------
    OnlySpark
        They are not.
    """
    bound_type = bound.type
    if (
        bound_type is not None
        and bound_type != VOID
        and without_metadata(bound_type) != without_metadata(kind)
    ):
        raise OnlySpark(f"a value of type {kind}, which would be {bound.type}")


def finder_of(target: DmlTarget, condition: Expression | None, values: NewValues | None = None) -> RowFinder:
    """Finds rows of the version that a command reads by Arrow; a condition of `evaluable`, None: all rows."""
    assert target.snapshot is not None  # Arrow reads where the log is
    bound = None if condition is None else bind(condition, target.schema, target.timezone)
    return RowFinder.of(target.snapshot, bound, target.timezone, values)


def new_value_of(target: DmlTarget, path: Path, value: Resolved, operation: str) -> NewValue:
    """A value of an UPDATE as the kernel computes it.

    Raises
    ------
    OnlySpark
        Spark has to compute it.
    """
    found = find(target.schema, path)
    assert found is not None  # assignments were resolved
    field = found[1]
    top = target.schema.find(path[0])
    if top is None or not compares_by_bytes(top):
        raise OnlySpark(f"a value for {show(path)}, whose texts have a form of their own")
    tree = evaluable(target, value)
    if without_metadata(value.type) != without_metadata(field.type):
        tree = cast_alike(tree, value.type, field.type)
    owner = f"SET {show(path)} of the {operation} of {target.handle.where}"
    clause = RowExpression(owner, value.text, tree, CANNOT_RESOLVE_EXPRESSION.name, "")
    return NewValue(found[0], field, clause, bound_alike(tree, target.schema, target.timezone))


def are_functions_of_rows(target: DmlTarget, sources: Iterable[object]) -> bool:
    """Whether expressions as they were given depend on nothing but the row; False where that is not known."""
    trees = target.engine.expressions.functions_of_rows(sources, target.handle.alias)
    if trees is None:
        return False
    return not trees or bool(target.ask(all_evaluable, list(trees), target.timezone))


def demands_on_target(target: DmlTarget, condition: Resolved, rows: DataFrame) -> list[Expression]:
    """The part of a MERGE condition on the table alone.

    Parameters
    ----------
    condition
        Of the join.
    rows
        The table's side of it.
    """
    expressions = target.engine.expressions
    return expressions.predicates_of_join(
        condition, rows, target.schema, target.timezone, target.handle.alias
    )


def keys_of(
    target: DmlTarget, condition: Resolved, rows: DataFrame, source: DataFrame
) -> list[tuple[StructField, Column]]:
    """The columns of the table that must equal a source expression, with that expression."""
    pairs = target.engine.expressions.equal_keys(condition, rows, source)
    fields = ((target.schema.find(name), value) for name, value in pairs)
    return [(field, value) for field, value in fields if field is not None]


def columns_of(target: DmlTarget, condition: Resolved) -> set[str] | None:
    """The names of the columns that a condition reads; None where that is not known."""
    return target.engine.expressions.columns_read(condition, target.handle.alias)


def reads_only(target: DmlTarget, condition: Resolved, names: Collection[str]) -> bool:
    """Whether a condition reads some columns, and no others than these; False where that is not known."""
    read = columns_of(target, condition)
    lower_names = {name.lower() for name in names}
    return bool(read) and {name.lower() for name in read or ()} <= lower_names
