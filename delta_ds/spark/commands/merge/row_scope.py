"""What the outcome of a MERGE hangs on in the table: the rows that its source could match.

Source: conflict-matrix section 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_ds.kernel.commands.dml.commit import RowScope
from delta_ds.kernel.format.expressions.tree import Call, Expression, Literal
from delta_ds.kernel.format.expressions.tree import Column as KernelColumn
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.transaction.pending import tracks_rows
from delta_ds.spark.commands.merge.sides import as_literal, as_python
from delta_ds.spark.engines.seam.choice import engine_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.kernel.format.schema.types import StructField
    from delta_ds.spark.commands.dml_target import DmlTarget
    from delta_ds.spark.commands.merge.rows import Sides

# So many source rows at most are named one by one; of more the smallest and the largest key is known.
_MOST_KEYS = 10_000


def row_scope(
    target: DmlTarget,
    given: DataFrame,
    sides: Sides,
    demands: Sequence[Expression],
    keys: Sequence[tuple[StructField, Column]],
    source_rows: int,
) -> RowScope | None:
    """The rows of the table that a MERGE could match; None where other rows count too, or that is not known.

    Parameters
    ----------
    target
        The table.
    given
        The source as the user gave it.
    sides
        The source, computed, and the clauses; none of them `WHEN NOT MATCHED BY SOURCE`.
    demands
        What every matching row meets, bounds of keys included; not bound.
    keys
        Columns of the table that equal an expression of the source, which has usable bounds.
    source_rows
        How many rows the source has.
    """
    if target.engine.reads_by_python(given) or has_subqueries(sides):
        return None
    parts = list(demands)
    plain = [(field, value) for field, value in keys if compares_by_bytes(field)]
    if plain and tracks_rows(target.state) and source_rows <= _MOST_KEYS:
        parts += _one_of(sides.source, plain)
    clauses = sides.plan.clauses
    return RowScope(target.understood(parts), misses_count=any(clause.inserts for clause in clauses))


def _one_of(source: DataFrame, keys: Sequence[tuple[StructField, Column]]) -> list[Expression]:
    from pyspark.sql import functions as F

    sets = source.agg(*(F.collect_set(as_python(field.type, value)) for field, value in keys)).collect()[0]
    found: list[Expression] = []
    for (field, _), values in zip(keys, sets, strict=True):
        literals = [as_literal(field.type, value) for value in values]
        if literals and None not in literals:
            items = (Literal(value, field.type) for value in literals)
            found.append(Call("in", (KernelColumn((field.name,)), *items)))
    return found


def has_subqueries(sides: Sides) -> bool:
    """Whether a value of a clause is the answer of a query; a condition never is."""
    values = (value for clause in sides.plan.clauses for value in clause.values or () if value is not None)
    return engine_of(sides.source.sparkSession).expressions.has_subqueries(values)
