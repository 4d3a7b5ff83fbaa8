"""The clauses of a MERGE as users write them, and which may stand together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from delta_ds.conditions.dml import (
    MERGE_MISSING_WHEN,
    NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION,
    NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION,
    NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION,
)
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from pyspark.sql import Column

When = Literal["matched", "not_matched", "not_matched_by_source"]
Do = Literal["update", "delete", "insert"]

_LABELS = {
    "matched": "WHEN MATCHED",
    "not_matched": "WHEN NOT MATCHED",
    "not_matched_by_source": "WHEN NOT MATCHED BY SOURCE",
}
_CONDITION_OMITTED = {
    "matched": NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION,
    "not_matched": NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION,
    "not_matched_by_source": NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION,
}
_ALLOWED: Mapping[str, tuple[str, ...]] = {
    "matched": ("update", "delete"),
    "not_matched": ("insert",),
    "not_matched_by_source": ("update", "delete"),
}
# What history calls their conditions, and how many rows they changed.
PREDICATE_PARAMETERS: Mapping[When, str] = {
    "matched": "matchedPredicates",
    "not_matched": "notMatchedPredicates",
    "not_matched_by_source": "notMatchedBySourcePredicates",
}
_METRICS: Mapping[tuple[When, Do], str] = {
    ("matched", "update"): "numTargetRowsMatchedUpdated",
    ("matched", "delete"): "numTargetRowsMatchedDeleted",
    ("not_matched_by_source", "update"): "numTargetRowsNotMatchedBySourceUpdated",
    ("not_matched_by_source", "delete"): "numTargetRowsNotMatchedBySourceDeleted",
}


class ClauseKind:
    """For which rows a clause is, and what it does with them."""

    when: When
    do: Do

    @property
    def label(self) -> str:
        """The clause in words, for messages."""
        return f"{_LABELS[self.when]} {self.do.upper()}"

    @property
    def inserts(self) -> bool:
        return self.do == "insert"

    @property
    def deletes(self) -> bool:
        return self.do == "delete"

    @property
    def is_matched(self) -> bool:
        """Whether it is for rows of the table that the source matches."""
        return self.when == "matched"

    @property
    def is_by_source(self) -> bool:
        """Whether it is for rows of the table that the source does not match."""
        return self.when == "not_matched_by_source"


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
            raise ValueError(f"{_LABELS[clause.when]} cannot {clause.do}")
    effective = effective_clauses(clauses)
    if not effective:
        raise MERGE_MISSING_WHEN(table=table)
    for when, condition_omitted in _CONDITION_OMITTED.items():
        if any(c.condition is None for c in [c for c in effective if c.when == when][:-1]):
            raise condition_omitted(table=table)


def effective_clauses(clauses: Sequence[Clause]) -> list[Clause]:
    """Without updates of nothing on no condition, which delta-spark's builder leaves out too."""
    return [
        c
        for c in clauses
        if not (c.do == "update" and c.condition is None and c.assignments is not None and not c.assignments)
    ]


def changed_rows(clauses: Sequence[ClauseKind], by_clause: Mapping[int, int]) -> dict[str, int]:
    """How many rows of the table clauses have changed, under the names that history gives their kinds.

    Parameters
    ----------
    by_clause
        By the number of a clause.
    """
    found = dict.fromkeys(_METRICS.values(), 0)
    for number, clause in enumerate(clauses):
        if not clause.inserts:
            found[_METRICS[clause.when, clause.do]] += by_clause.get(number, 0)
    return found
