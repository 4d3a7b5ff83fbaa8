"""A condition in the kernel's terms, for choosing files and for conflict checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from delta_ds.kernel.commands.dml.candidates import all_evaluable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.schema.types import StructField
    from delta_ds.spark.commands.dml_target import DmlTarget
    from delta_ds.spark.engines.seam.engine import Resolved


def predicate_of(target: DmlTarget, condition: Resolved) -> Expression | None:
    """The part of a condition on the table that the kernel can express; None for no part. Not bound."""
    known = target.engine.expressions
    return target.understood(known.predicates(condition, target.schema, target.timezone, target.handle.alias))


def whole_predicate_of(target: DmlTarget, condition: Resolved) -> Expression | None:
    """A condition that the kernel evaluates row by row as Spark does; None for any other. Not bound."""
    found = target.engine.expressions.whole_predicate(condition, target.schema, target.timezone)
    if found is None or not target.ask(all_evaluable, [found], target.timezone):
        return None
    return found


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
    known = target.engine.expressions
    return known.predicates_of_join(condition, rows, target.schema, target.timezone, target.handle.alias)


def keys_of(
    target: DmlTarget, condition: Resolved, rows: DataFrame, source: DataFrame
) -> list[tuple[StructField, Column]]:
    """The columns of the table that must equal a source expression, with that expression."""
    found = target.engine.expressions.equal_keys(condition, rows, source)
    fields = ((target.schema.find(name), value) for name, value in found)
    return [(field, value) for field, value in fields if field is not None]


def columns_of(target: DmlTarget, condition: Resolved) -> set[str] | None:
    """The names of the columns that a condition reads; None where that is not known."""
    return target.engine.expressions.columns_read(condition, target.handle.alias)


def reads_only(target: DmlTarget, condition: Resolved, names: Collection[str]) -> bool:
    """Whether a condition reads some columns, and no others than these; False where that is not known."""
    found = columns_of(target, condition)
    known = {name.lower() for name in names}
    return bool(found) and {name.lower() for name in found or ()} <= known
