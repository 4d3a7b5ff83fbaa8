"""What a MERGE found in the table and wrote, and how the history counts it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_ds.conditions.dml import MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.commands.dml.candidates import CandidateFiles, with_row_counts
from delta_ds.kernel.commands.dml.commit import RowScope
from delta_ds.kernel.commands.dml.rewritten import Rewritten
from delta_ds.kernel.commands.merge.clauses import ClauseKind, changed_rows
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.spark.commands.dml_command import DmlExecution


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


def is_relevant(clauses: Sequence[ClauseKind], found: Rewritten, files: int) -> bool:
    """Whether delta-spark commits, even if no row changes; `files` were looked at."""
    if all(clause.is_matched for clause in clauses):
        return bool(found.rows)
    return found.seen or (files > 0 and any(clause.is_by_source for clause in clauses))


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
