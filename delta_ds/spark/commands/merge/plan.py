"""Resolve the clauses of a MERGE to conditions and one value per column of the table.

Nothing is read or written here. What a clause sees is settled before the join: `WHEN MATCHED` both sides, `WHEN NOT
MATCHED` the source, `WHEN NOT MATCHED BY SOURCE` the table.

Source: delta-spark, `DeltaMergeInto`, `ResolveDeltaMergeInto`, `PreprocessTableMerge`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.dml import MERGE_INTO_EMPTY_SCHEMA_TARGET
from delta_ds.kernel.commands.merge.clauses import (
    LABELS,
    PREDICATE_PARAMETERS,
    ClauseKind,
    Do,
    When,
    effective_clauses,
)
from delta_ds.kernel.commands.merge.plan import evolved_schema, one_of_them
from delta_ds.kernel.format.expressions.tree import Expression
from delta_ds.kernel.format.operations import MERGE
from delta_ds.kernel.format.schema.column_paths import Path
from delta_ds.kernel.format.schema.types import (
    StructType,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.records import dataclass, field
from delta_ds.spark.commands.assignments import Assignment, align, find_target, target_path
from delta_ds.spark.commands.expression_resolution import SEARCH_CONDITION, Scope, demands_on_target
from delta_ds.spark.commands.merge.sides import Side
from delta_ds.spark.commands.store_casts import StoreCast
from delta_ds.spark.engines.seam.choice import engine_of
from delta_ds.spark.engines.seam.expressions import Context, ResolutionCache, Resolved

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.spark.commands.dml_target import DmlTarget


@dataclass(frozen=True)
class ResolvedClause(ClauseKind):
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
    given
        What `values` are made of.
    """

    when: When
    do: Do
    condition: Resolved | None
    values: list[Column | None] | None
    assigned: frozenset[str]
    source: Clause
    given: Sequence[Assignment] = ()

    def applies(self, kind: Column) -> Column:
        """Whether the clause applies to a row of the join, given whether it is for rows of that kind."""
        if self.condition is None:
            return kind
        from pyspark.sql import functions as F

        return kind & F.coalesce(self.condition.column, F.lit(False))


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
    source_values, target_values
        Spark Connect only: columns that each side has to have before it is joined (`withColumns`), as the
        expressions of clauses are found there under these names.
    """

    schema: StructType
    on: Resolved
    clauses: tuple[ResolvedClause, ...]
    evolved: bool
    source_values: Mapping[str, Column] = field(default_factory=dict)
    target_values: Mapping[str, Column] = field(default_factory=dict)


def plan_merge(
    *,
    state: TableState,
    target: DataFrame,
    source: DataFrame,
    joined: DataFrame,
    on: str | Column,
    clauses: Sequence[Clause],
    cast: StoreCast,
    generated: Collection[str] = (),
    alias: str | None = None,
    context: Context | None = None,
    cache: ResolutionCache | None = None,
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
    cast
        How values become those of their columns; it evolves where the table takes columns that it does not have.
    generated
        Generated columns, which are left to the table where they are not given.
    alias
        The name by which the table's columns may be qualified where they are assigned to.
    context, cache
        See `Scope`.

    Raises
    ------
    DeltaError
        The table has no columns, or a clause is wrong, see `check_clauses`, `Scope.resolve`, `assign`,
        `evolved_schema`; nothing was done.
    """
    if not (cast.evolve or state.schema.fields):
        raise MERGE_INTO_EMPTY_SCHEMA_TARGET(table=state.table, version=state.version)
    table, evolve = cast.table, cast.evolve
    check_clauses(clauses, table)
    engine_of(joined.sparkSession).frames.check_join(joined, target, source)
    schema = state.schema
    resolver = _Resolver(
        schema,
        Side(target, schema),
        Side.of(source),
        Scope(joined, table, MERGE.name, context=context, cache=cache),
        Scope(target, table, MERGE.name, joined=joined, context=context, label="target", cache=cache),
        Scope(source, table, MERGE.name, joined=joined, context=context, label="source", cache=cache),
        table,
        evolve,
        alias,
        cast.exact_names,
    )
    condition = resolver.both.predicate(on, SEARCH_CONDITION)
    found = [(c, *resolver.clause(c)) for c in effective_clauses(clauses, table)]
    after = schema
    if evolve:
        paths = [a.path for c, _, given in found if not c.is_by_source for a in given]
        after = evolved_schema(state, resolver.source.schema, paths)
    resolved = [_resolve_clause(resolver, cast, after, c, cond, given, generated) for c, cond, given in found]
    return MergePlan(
        after,
        condition,
        tuple(resolved),
        after != schema,
        resolver.of_source.projections,
        resolver.of_target.projections,
    )


def demands_on_table(target: DmlTarget, plan: MergePlan, rows: DataFrame) -> list[Expression]:
    """What is known of the table alone of every row whose change hangs on the source.

    Where all clauses are for rows that match, their conditions count as well as the search condition.

    Parameters
    ----------
    plan
        Without a clause for rows that match nothing in the source.
    rows
        The table's side of the join.

    Source: delta-spark, `MergeIntoCommandBase.getTargetOnlyPredicates`.
    """
    demands = demands_on_target(target, plan.on, rows)
    if all(clause.is_matched for clause in plan.clauses):
        conditions = (clause.condition for clause in plan.clauses)
        demands += one_of_them([demands_on_target(target, c, rows) if c else [] for c in conditions])
    return demands


def history_parameters(plan: MergePlan) -> dict[str, str]:
    """The `operationParameters` of a MERGE, as delta-spark writes them."""
    parameters: dict[str, list[dict[str, str]]] = {name: [] for name in PREDICATE_PARAMETERS.values()}
    for clause in plan.clauses:
        predicate = {} if clause.condition is None else {"predicate": clause.condition.text}
        parameters[PREDICATE_PARAMETERS[clause.when]].append({**predicate, "actionType": clause.do})
    return {"predicate": _json([plan.on.text]), **{name: _json(value) for name, value in parameters.items()}}


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
    exact: bool

    def clause(self, clause: Clause) -> tuple[Resolved | None, list[Assignment]]:
        """The resolved condition and assignments of a clause, by the columns of the table after evolution."""
        given: list[Assignment] = []
        if not clause.deletes:
            given = (
                self._all_assignments(clause)
                if clause.assignments is None
                else self._given_assignments(clause)
            )
        condition = None
        if clause.condition is not None:
            label = f"{clause.label} condition"
            condition = self._scope(clause).predicate(clause.condition, label)
        return condition, given

    def _scope(self, clause: Clause) -> Scope:
        scopes = {"matched": self.both, "not_matched": self.of_source}
        return scopes.get(clause.when, self.of_target)

    def _given_assignments(self, clause: Clause) -> list[Assignment]:
        assignments = clause.assignments or {}
        paths = [self._path(name, clause) for name in assignments]
        label = f"{clause.label} clause"
        values = self._scope(clause).resolve_all(list(assignments.values()), label)
        return [Assignment(p, v.column, v.type) for p, v in zip(paths, values, strict=True)]

    def _path(self, name: str, clause: Clause) -> Path:
        found = find_target(self.schema, name, self.alias, self.exact)
        if found is None and self.evolve and not clause.is_by_source:
            found = self.source.find(name)
        return found or target_path(self.schema, name, self.table, clause.label, self.alias, self.exact)

    def _all_assignments(self, clause: Clause) -> list[Assignment]:
        """`*`: with evolution every column of the source, else every column of the table."""
        if self.evolve:
            keeps = clause.do == "update"
            return [
                Assignment((f.name,), value, f.type, keeps)
                for f, value in zip(self.source.schema, self.source.columns, strict=True)
            ]
        given = []
        for f in self.schema:
            at = self.source.position(f.name, self.table, f"{clause.label} *")
            given.append(Assignment((f.name,), self.source.columns[at], self.source.schema.fields[at].type))
        return given


def _resolve_clause(
    resolver: _Resolver,
    cast: StoreCast,
    after: StructType,
    clause: Clause,
    condition: Resolved | None,
    given: Sequence[Assignment],
    generated: Collection[str],
) -> ResolvedClause:
    if clause.deletes:
        return ResolvedClause(clause.when, clause.do, condition, None, frozenset(), clause)
    values = align(
        after,
        None if clause.inserts else resolver.target.column,
        given,
        cast=cast,
        operation=clause.label,
        current_schema=resolver.schema,
        generated=generated,
    )
    names = {a.path[0].lower() for a in given}
    assigned = frozenset(f.name for f in after if f.name.lower() in names)
    return ResolvedClause(clause.when, clause.do, condition, values, assigned, clause, given)


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
