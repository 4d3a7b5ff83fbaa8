"""A condition in the kernel's terms, for choosing files and for conflict checks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.commands.dml.candidates import all_evaluable
from delta_ds.kernel.expressions.tree import (
    Call,
    Column,
    Expression,
    columns,
    conjuncts,
    map_columns,
    postorder,
)
from delta_ds.kernel.schema.types import StructField, StructType
from delta_ds.records import replace

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from delta_ds.spark.commands.dml_target import DmlTarget
    from delta_ds.spark.commands.resolution.expression_resolution import Resolved


def predicate_of(target: DmlTarget, condition: Resolved) -> Expression | None:
    """The part of a condition on the table that the kernel can express; None for no part.

    Not bound. In a session of Spark Connect only SQL text is understood.
    """
    if not target.is_connect:
        from delta_ds.spark.native.catalyst.conditions import implied_predicates

        parts = implied_predicates(target.spark, condition.column, _paths(target.schema), target.timezone)
        return target.understood(parts)
    if not isinstance(condition.source, str):
        return None
    whole = _parse(condition.source, target.handle.alias)
    return target.understood([part for each in whole for part in conjuncts(each) if not _moves(part)])


def are_functions_of_rows(target: DmlTarget, sources: Iterable[object]) -> bool:
    """Whether expressions as they were given depend on nothing but the row; False where that is not known.

    For sessions of Spark Connect, which do not show what the server makes of an expression: so each has to be one of
    the kernel's through and through, or a constant of Python. A function of SQL, say, may hold a query.
    """
    from pyspark.sql import Column

    trees = []
    for source in sources:
        if isinstance(source, Column):
            return False
        if isinstance(source, str):
            found = _parse(f"({source}) IS NULL", target.handle.alias)
            if not found or any(map(_moves, found)):
                return False
            trees += found
    return not trees or bool(target.ask(all_evaluable, trees, target.timezone))


def _moves(tree: Expression) -> bool:
    """Whether an expression depends on the current time, whose value changes with each binding."""
    moving = ("current_timestamp", "current_date")
    return any(isinstance(node, Call) and node.name in moving for node in postorder(tree))


def _paths(schema: StructType) -> Callable[[tuple[str, ...]], tuple[str, ...] | None]:
    def path(names: tuple[str, ...]) -> tuple[str, ...] | None:
        return names if schema.find(names[0]) is not None else None

    return path


def demands_on_target(target: DmlTarget, condition: Resolved, rows: DataFrame) -> list[Expression]:
    """The part of a MERGE condition on the table alone.

    Parameters
    ----------
    condition
        Of the join.
    rows
        The table's side of it.
    """
    if not target.is_connect:
        from delta_ds.spark.native.catalyst.conditions import demands_of

        return demands_of(condition.column, rows, _paths(target.schema), target.timezone)
    alias = target.handle.alias
    if not isinstance(condition.source, str) or alias is None:
        return []
    parts = (p for whole in _tree(condition.source) for p in conjuncts(whole) if not _moves(p))
    return [
        _without_qualifier(part, alias)
        for part in parts
        if all(len(c.path) > 1 and c.path[0].lower() == alias.lower() for c in columns(part))
    ]


def keys_of(
    target: DmlTarget, condition: Resolved, rows: DataFrame, source: DataFrame
) -> list[tuple[StructField, SparkColumn]]:
    """The columns of the table that must equal a source expression, with that expression."""
    if target.is_connect:
        return []
    from delta_ds.spark.native.catalyst.conditions import equal_keys

    found = equal_keys(condition.column, rows, source)
    fields = ((target.schema.find(name), value) for name, value in found)
    return [(field, value) for field, value in fields if field is not None]


def _parse(text: str, alias: str | None) -> list[Expression]:
    return [_without_qualifier(tree, alias) if alias else tree for tree in _tree(text)]


def _tree(text: str) -> list[Expression]:
    from delta_ds.kernel.expressions.sql import parse_predicate

    try:
        return [parse_predicate(text)]
    except DeltaError:
        # Spark understands more than the kernel; then no file is skipped.
        return []


def _without_qualifier(tree: Expression, alias: str) -> Expression:
    """The expression without the table's name before its columns."""

    def bare(column: Column) -> Column:
        qualified = len(column.path) > 1 and column.path[0].lower() == alias.lower()
        return replace(column, path=column.path[1:]) if qualified else column

    return map_columns(tree, bare)


def columns_of(target: DmlTarget, condition: Resolved) -> set[str] | None:
    """The names of the columns that a condition reads; None where that is not known."""
    if not target.is_connect:
        from delta_ds.spark.native.catalyst.conditions import referenced_columns

        return referenced_columns(target.spark, condition.column)
    if not isinstance(condition.source, str):
        return None
    parts = _parse(condition.source, target.handle.alias)
    return {column.path[0] for part in parts for column in columns(part)} if parts else None


def reads_only(target: DmlTarget, condition: Resolved, names: Collection[str]) -> bool:
    """Whether a condition reads some columns, and no others than these; False where that is not known."""
    found = columns_of(target, condition)
    known = {name.lower() for name in names}
    return bool(found) and {name.lower() for name in found or ()} <= known
