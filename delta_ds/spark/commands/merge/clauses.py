"""The clauses of a MERGE as users write them, and which may stand together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from delta_ds.kernel.commands.merge.clauses import LABELS, ClauseKind, Do, When, effective_clauses
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from pyspark.sql import Column

_ALLOWED: Mapping[str, tuple[str, ...]] = {
    "matched": ("update", "delete"),
    "not_matched": ("insert",),
    "not_matched_by_source": ("update", "delete"),
}


@dataclass(frozen=True)
class Clause(ClauseKind):
    """A clause as it was given.

    Attributes
    ----------
    when, do
        For which rows, and what.
    condition
        SQL text or a `Column`; None: for all of them.
    assignments
        Columns and what they get; None in an update or insert is `*`, all columns of the same name.
    """

    when: When
    do: Do
    condition: str | Column | None = None
    assignments: Mapping[str, str | Column] | None = None


def expressions_of(clauses: Sequence[Clause]) -> Iterator[object]:
    """The conditions of clauses, and what columns get by them."""
    for clause in clauses:
        yield clause.condition
        yield from (clause.assignments or {}).values()


def check_clauses(clauses: Sequence[Clause], table: str) -> None:
    """Refuse clauses that do nothing, and clauses after one that is always taken.

    Raises
    ------
    UnsupportedOperationError
        `DELTA_MERGE_MISSING_WHEN`: there is none, but for updates of nothing. `DELTA_NON_LAST_..._OMIT_CONDITION`: one
        that is not the last for its rows has no condition.
    ValueError
        An insert of rows that are there, or an update of rows that are not.
    """
    for clause in clauses:
        if clause.do not in _ALLOWED[clause.when]:
            raise ValueError(f"{LABELS[clause.when]} cannot {clause.do}")
    effective_clauses(clauses, table)
