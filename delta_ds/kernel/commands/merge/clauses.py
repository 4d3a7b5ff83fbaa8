"""The clauses of a MERGE as they are given, and which may stand together.

Source: delta-spark, `DeltaMergeInto`: of the clauses for the same rows only the last may be without condition.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeVar

from delta_ds.conditions.dml import (
    MERGE_MISSING_WHEN,
    NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION,
    NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION,
    NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION,
)
from delta_ds.kernel.commands.dml.changed_rows import DELETE, INSERT, UPDATE
from delta_ds.records import dataclass

When = Literal["matched", "not_matched", "not_matched_by_source"]
Do = Literal["update", "delete", "insert"]

LABELS = {
    "matched": "WHEN MATCHED",
    "not_matched": "WHEN NOT MATCHED",
    "not_matched_by_source": "WHEN NOT MATCHED BY SOURCE",
}
_CONDITION_OMITTED = {
    "matched": NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION,
    "not_matched": NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION,
    "not_matched_by_source": NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION,
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
_CODES: Mapping[Do, int] = {"update": UPDATE, "insert": INSERT, "delete": DELETE}


class ClauseKind:
    """For which rows a clause is, and what it does with them."""

    when: When
    do: Do

    @property
    def label(self) -> str:
        """The clause in words, for messages."""
        return f"{LABELS[self.when]} {self.do.upper()}"

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


@dataclass(frozen=True, slots=True)
class Clause(ClauseKind):
    """A clause as it was given.

    Attributes
    ----------
    when, do
        For which rows, and what it does with them.
    condition
        Spark SQL; None: for all of them.
    assignments
        By column what it gets, in Spark SQL; None in an update or insert is `*`, all columns of the same name.
    leaves_out
        With `*`: columns of the table that are not assigned.
    """

    when: When
    do: Do
    condition: str | None = None
    assignments: Mapping[str, str] | None = None
    leaves_out: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """What it does, as `ChangedRows` has it."""
        return _CODES[self.do]


class GivenClause(Protocol):
    """What `effective_clauses` looks at, whatever conditions and values are made of."""

    @property
    def when(self) -> When: ...
    @property
    def do(self) -> Do: ...
    @property
    def condition(self) -> object: ...
    @property
    def assignments(self) -> Mapping[str, object] | None: ...


_Given = TypeVar("_Given", bound=GivenClause)


def effective_clauses(clauses: Sequence[_Given], table: str) -> tuple[_Given, ...]:
    """The clauses without updates of nothing on no condition, which delta-spark leaves out too.

    Raises
    ------
    UnsupportedOperationError
        `DELTA_MERGE_MISSING_WHEN`: there is none. `DELTA_NON_LAST_..._OMIT_CONDITION`: one that is not the last for
        its rows has no condition.
    """
    found = [c for c in clauses if c.do != "update" or c.condition is not None or c.assignments != {}]
    if not found:
        raise MERGE_MISSING_WHEN(table=table)
    for when, condition_omitted in _CONDITION_OMITTED.items():
        if any(c.condition is None for c in [c for c in found if c.when == when][:-1]):
            raise condition_omitted(table=table)
    return tuple(found)


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


def history_parameters(predicate: str, clauses: Sequence[Clause]) -> dict[str, str]:
    """The `operationParameters` of a MERGE."""
    parameters: dict[str, list[dict[str, str]]] = {name: [] for name in PREDICATE_PARAMETERS.values()}
    for clause in clauses:
        condition = {} if clause.condition is None else {"predicate": clause.condition}
        parameters[PREDICATE_PARAMETERS[clause.when]].append({**condition, "actionType": clause.do})
    return {"predicate": _text([predicate]), **{name: _text(value) for name, value in parameters.items()}}


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
