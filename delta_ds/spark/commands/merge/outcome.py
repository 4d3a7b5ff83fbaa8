"""What a MERGE found in the table and wrote, which rows of the table that hangs on, and how the history counts it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_ds.conditions.dml import MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.commands.dml.candidates import CandidateFiles, Rewritten, with_row_counts
from delta_ds.kernel.commands.dml.commit import RowScope
from delta_ds.kernel.commands.merge.clauses import ClauseKind, changed_rows
from delta_ds.kernel.format.expressions.tree import Call, Expression, Literal
from delta_ds.kernel.format.expressions.tree import Column as KernelColumn
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.transaction.pending import tracks_rows
from delta_ds.records import dataclass
from delta_ds.spark.commands.merge.sides import as_literal, as_python
from delta_ds.spark.engines.seam.choice import engine_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.kernel.format.schema.types import StructField
    from delta_ds.spark.commands.dml_command import DmlExecution
    from delta_ds.spark.commands.dml_target import DmlTarget
    from delta_ds.spark.commands.merge.rows import Sides


@dataclass(frozen=True)
class Outcome:
    """What a MERGE found in the table and wrote.

    Attributes
    ----------
    found
        Which rows of the table change, and what tasks made of their files.
    relevant
        Whether there is anything to commit, even if no row changes: delta-spark then makes a version too.
    touched
        The files in which rows change.
    written
        How many rows were written.
    scanned_ms, materialized_ms
        When the rows were found, and the source was computed, in milliseconds since the command began.
    read
        What is read of the table as commits of others see it.
    files
        The files that were looked at.
    scope
        Which rows of the table count.
    source_rows
        How many rows the source has.
    """

    found: Rewritten
    relevant: bool
    touched: CandidateFiles
    written: int
    scanned_ms: int
    read: Expression | None = None
    files: CandidateFiles | None = None
    scope: RowScope | None = None
    source_rows: int = 0
    materialized_ms: int = 0


def several_match(table: str) -> UnsupportedOperationError:
    """The error of several rows of the source that would change one row of the table."""
    return MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE(
        table=table, usageReference="https://docs.delta.io/latest/delta-update.html"
    )


def counted(change: DmlExecution, clauses: Sequence[ClauseKind], outcome: Outcome) -> dict[str, int]:
    """The rows of the table that changed, as the history counts them."""
    touched = outcome.touched
    by_kind = changed_rows(clauses, outcome.found.by_clause)
    updated = sum(rows for name, rows in by_kind.items() if name.endswith("Updated"))
    deleted = sum(rows for name, rows in by_kind.items() if name.endswith("Deleted"))
    copied = 0
    if len(touched) and not change.plan.uses_deletion_vectors:
        known: CandidateFiles = (
            touched if touched.num_rows is not None else change.target.ask(with_row_counts, touched)
        )
        copied = (known.num_rows or 0) - updated - deleted
    return {
        "numTargetRowsCopied": copied,
        "numTargetRowsInserted": outcome.written - copied - updated
        if any(clause.inserts for clause in clauses)
        else 0,
        "numTargetRowsUpdated": updated,
        "numTargetRowsDeleted": deleted,
        **by_kind,
    }


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
    if target.engine.frames.reads_by_python(given) or has_subqueries(sides):
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
