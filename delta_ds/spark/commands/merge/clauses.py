"""The clauses of a MERGE, resolved to conditions and one value per column.

Nothing is read or written here. What a clause sees is settled before the join: `WHEN MATCHED` both sides, `WHEN NOT
MATCHED` the source, `WHEN NOT MATCHED BY SOURCE` the table.

Source: delta-spark, `DeltaMergeInto`, `ResolveDeltaMergeInto`, `PreprocessTableMerge`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from delta_ds.conditions.dml import MERGE_MISSING_WHEN
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.schema.column_paths import Path
from delta_ds.kernel.schema.types import StructType
from delta_ds.kernel.table_state import TableState
from delta_ds.spark.commands.merge.schema_evolution import evolved_schema
from delta_ds.spark.commands.merge.sides import Side, check_join
from delta_ds.spark.commands.resolution.assignments import Assignment, aligned, find_target, target_path
from delta_ds.spark.commands.resolution.expression_resolution import SEARCH_CONDITION, Resolved, Scope

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.spark.native.settled import Settled

When = Literal["matched", "not_matched", "not_matched_by_source"]
Do = Literal["update", "delete", "insert"]

_SAID = {
    "matched": "WHEN MATCHED",
    "not_matched": "WHEN NOT MATCHED",
    "not_matched_by_source": "WHEN NOT MATCHED BY SOURCE",
}
_ALLOWED: Mapping[str, tuple[str, ...]] = {
    "matched": ("update", "delete"),
    "not_matched": ("insert",),
    "not_matched_by_source": ("update", "delete"),
}
_PREDICATES = {
    "matched": "matchedPredicates",
    "not_matched": "notMatchedPredicates",
    "not_matched_by_source": "notMatchedBySourcePredicates",
}


@dataclass(frozen=True)
class Clause:
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

    @property
    def said(self) -> str:
        """The clause in words, for messages."""
        return f"{_SAID[self.when]} {self.do.upper()}"


@dataclass(frozen=True)
class ResolvedClause:
    """A clause whose expressions can be evaluated in the join.

    Attributes
    ----------
    when, do
        As in `Clause`.
    condition
        None: for all rows.
    values
        For each column of `MergePlan.schema` what it becomes; None of a column where the table has to find it: a
        generated column that is not given, and in an insert every column that is not. None for a delete.
    assigned
        Columns of `MergePlan.schema` that the clause gives a value for, by their names there.
    source
        As it was given.
    """

    when: When
    do: Do
    condition: Resolved | None
    values: list[Column | None] | None
    assigned: frozenset[str]
    source: Clause


@dataclass(frozen=True)
class MergePlan:
    """The schema after a MERGE, and its clauses resolved in the join.

    Attributes
    ----------
    schema
        The table's after the merge; new columns have no column mapping id yet.
    on
        The search condition, in the join.
    clauses
        In the order they were given; of those for the same rows the first whose condition holds counts.
    evolved
        Whether `schema` is another one than before.
    carried
        For each column of `schema` the value of a row that no clause changes, in the join.
    source_values, target_values
        Spark Connect only: columns that each side has to have before it is joined (`withColumns`), as the
        expressions of clauses are found there under these names.
    """

    schema: StructType
    on: Resolved
    clauses: tuple[ResolvedClause, ...]
    evolved: bool
    carried: list[Column]
    source_values: Mapping[str, Column] = field(default_factory=dict)
    target_values: Mapping[str, Column] = field(default_factory=dict)


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
            raise ValueError(f"{_SAID[clause.when]} cannot {clause.do}")
    kept = _effective(clauses)
    if not kept:
        raise MERGE_MISSING_WHEN(table=table)
    for when, said in _SAID.items():
        if any(c.condition is None for c in [c for c in kept if c.when == when][:-1]):
            raise UnsupportedOperationError(
                f"the MERGE into {table} has a {said} clause without condition before another one, which would never "
                "be reached; put it last. Nothing was written",
                condition=f"DELTA_NON_LAST_{when.upper()}_CLAUSE_OMIT_CONDITION",
            )


def _effective(clauses: Sequence[Clause]) -> list[Clause]:
    """Without updates of nothing on no condition, which delta-spark's builder leaves out too."""
    return [
        c
        for c in clauses
        if not (c.do == "update" and c.condition is None and c.assignments is not None and not c.assignments)
    ]


def plan_merge(
    *,
    state: TableState,
    target: DataFrame,
    source: DataFrame,
    joined: DataFrame,
    on: str | Column,
    clauses: Sequence[Clause],
    evolve: bool,
    table: str,
    generated: Collection[str] = (),
    alias: str | None = None,
    settled: Settled | None = None,
) -> MergePlan:
    """Resolve a MERGE.

    Parameters
    ----------
    state
        The table now.
    target, source
        The two sides under the names that users gave them. Columns whose names begin with `__pydelta_` are not seen.
    joined
        The two joined, in any order; with the very columns of both.
    on
        The search condition.
    clauses
        In the order they were given.
    evolve
        Whether the table takes columns of the source that it does not have.
    table
        For messages.
    generated
        Generated columns, which are left to the table where they are not given.
    alias
        The name by which the table's columns may be qualified where they are assigned to.
    settled
        See `Scope`.

    Raises
    ------
    DeltaError
        A clause is wrong, see `check_clauses`, `Scope.resolve`, `assign`, `evolved_schema`; nothing was done.
    """
    check_clauses(clauses, table)
    check_join(joined, target, source)
    schema = state.schema
    resolver = _Resolver(
        schema,
        Side(target, schema),
        Side.of(source),
        Scope(joined, table, "MERGE", settled=settled),
        Scope(target, table, "MERGE", joined=joined, settled=settled, label="target"),
        Scope(source, table, "MERGE", joined=joined, settled=settled, label="source"),
        table,
        evolve,
        alias,
    )
    condition = resolver.both.predicate(on, SEARCH_CONDITION)
    found = [(c, *resolver.clause(c)) for c in _effective(clauses)]
    after = schema
    if evolve:
        paths = [a.path for c, _, given in found if c.when != "not_matched_by_source" for a in given]
        after = evolved_schema(state, resolver.source.schema, paths)
    resolved = [_aligned(resolver, after, c, cond, given, generated) for c, cond, given in found]
    return MergePlan(
        after,
        condition,
        tuple(resolved),
        after != schema,
        [v for v in _values(resolver, after, None, (), ()) if v is not None],
        resolver.of_source.projections,
        resolver.of_target.projections,
    )


def history_parameters(plan: MergePlan) -> dict[str, str]:
    """The `operationParameters` of a MERGE, as delta-spark writes them."""
    told: dict[str, list[dict[str, str]]] = {name: [] for name in _PREDICATES.values()}
    for clause in plan.clauses:
        predicate = {} if clause.condition is None else {"predicate": clause.condition.text}
        told[_PREDICATES[clause.when]].append({**predicate, "actionType": clause.do})
    return {"predicate": _json([plan.on.text]), **{name: _json(value) for name, value in told.items()}}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# --- resolving


@dataclass(frozen=True)
class _Resolver:
    schema: StructType
    target: Side
    source: Side
    both: Scope
    of_target: Scope
    of_source: Scope
    table: str
    evolve: bool
    alias: str | None

    def clause(self, clause: Clause) -> tuple[Resolved | None, list[Assignment]]:
        """The resolved condition and assignments of a clause, by the columns of the table after evolution."""
        given: list[Assignment] = []
        if clause.do != "delete":
            given = self._all(clause) if clause.assignments is None else self._given(clause)
        condition = None
        if clause.condition is not None:
            said = f"{clause.said} condition"
            condition = self._scope(clause).predicate(clause.condition, said)
        return condition, given

    def _scope(self, clause: Clause) -> Scope:
        scopes = {"matched": self.both, "not_matched": self.of_source}
        return scopes.get(clause.when, self.of_target)

    def _given(self, clause: Clause) -> list[Assignment]:
        assignments = clause.assignments or {}
        paths = [self._path(name, clause) for name in assignments]
        said = f"{clause.said} clause"
        values = self._scope(clause).resolve_all(list(assignments.values()), said)
        return [Assignment(p, v.column, v.type) for p, v in zip(paths, values, strict=True)]

    def _path(self, name: str, clause: Clause) -> Path:
        found = find_target(self.schema, name, self.alias)
        if found is None and self.evolve and clause.when != "not_matched_by_source":
            found = self.source.find(name)
        return found or target_path(self.schema, name, self.table, clause.said, self.alias)

    def _all(self, clause: Clause) -> list[Assignment]:
        """`*`: with evolution every column of the source, else every column of the table."""
        if self.evolve:
            keeps = clause.do == "update"
            return [
                Assignment((f.name,), value, f.type, keeps)
                for f, value in zip(self.source.schema, self.source.columns, strict=True)
            ]
        given = []
        for f in self.schema:
            at = self.source.position(f.name, self.table, f"{clause.said} *")
            given.append(Assignment((f.name,), self.source.columns[at], self.source.schema.fields[at].type))
        return given


def _values(
    resolver: _Resolver,
    after: StructType,
    clause: Clause | None,
    given: Sequence[Assignment],
    generated: Collection[str],
) -> list[Column | None]:
    return aligned(
        after,
        None if clause is not None and clause.do == "insert" else resolver.target.column,
        given,
        table=resolver.table,
        operation="MERGE" if clause is None else clause.said,
        current_schema=resolver.schema,
        evolve=resolver.evolve,
        generated=generated,
    )


def _aligned(
    resolver: _Resolver,
    after: StructType,
    clause: Clause,
    condition: Resolved | None,
    given: Sequence[Assignment],
    generated: Collection[str],
) -> ResolvedClause:
    if clause.do == "delete":
        return ResolvedClause(clause.when, clause.do, condition, None, frozenset(), clause)
    values = _values(resolver, after, clause, given, generated)
    names = {a.path[0].lower() for a in given}
    assigned = frozenset(f.name for f in after if f.name.lower() in names)
    return ResolvedClause(clause.when, clause.do, condition, values, assigned, clause)
