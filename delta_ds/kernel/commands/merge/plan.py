"""Resolve the clauses of a MERGE: conditions and new values, bound to both sides, before any row is read.

What a clause sees: `WHEN MATCHED` both sides, `WHEN NOT MATCHED` the source, `WHEN NOT MATCHED BY SOURCE` the table.

Source: delta-spark, `DeltaMergeInto`, `ResolveDeltaMergeInto`, `PreprocessTableMerge`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from delta_ds.conditions.dml import (
    CONFLICT_SET_COLUMN,
    DATATYPE_MISMATCH_CAST_WITHOUT_SUGGESTION,
    MERGE_UNRESOLVED_EXPRESSION,
    UNSUPPORTED_NESTED_FIELD_IN_OPERATION,
    UPDATE_SCHEMA_MISMATCH_EXPRESSION,
)
from delta_ds.kernel.commands.dml.plan import SpecialColumns, special_columns
from delta_ds.kernel.commands.dml.target_paths import check_identities, inside_structs, not_there
from delta_ds.kernel.commands.merge.clauses import Clause, When
from delta_ds.kernel.commands.merge.evolution import evolved_schema
from delta_ds.kernel.commands.merge.sides import BOTH, SOURCE, TARGET, Name, Sides
from delta_ds.kernel.files.rows.casts import can_store
from delta_ds.kernel.format.expressions.tree import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    conjuncts,
    map_columns,
)
from delta_ds.kernel.format.schema.column_paths import nearest_name, parse_path, show
from delta_ds.kernel.format.schema.types import ArrayType, DataType, MapType, StructField, StructType
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.records import dataclass

_SEEN: Mapping[When, tuple[Name, ...]] = {
    "matched": BOTH,
    "not_matched": (SOURCE,),
    "not_matched_by_source": (TARGET,),
}


@dataclass(frozen=True, slots=True)
class ResolvedClause:
    """A clause whose expressions can be evaluated.

    Attributes
    ----------
    clause
        As it was given.
    condition
        Bound; None: for all rows.
    values
        Bound, by the name of a column of `MergePlan.schema`. Of an insert all columns but those that the table finds
        by itself, of an update those that change.
    assigned
        The columns that were named.
    """

    clause: Clause
    condition: Expression | None
    values: Mapping[str, Expression]
    assigned: frozenset[str]


@dataclass(frozen=True, slots=True)
class Key:
    """What of the source a row of the table must equal.

    Attributes
    ----------
    target, source
        Bound, of one type.
    null_safe
        Whether null equals null.
    condition
        The part of the search condition that says so.
    """

    target: Expression
    source: Expression
    null_safe: bool
    condition: Expression


@dataclass(frozen=True, slots=True)
class MergePlan:
    """A MERGE whose expressions can be evaluated.

    Attributes
    ----------
    sides
        Both of them.
    schema
        The table's after the merge; new columns have no column mapping id yet.
    keys
        What is found by hashes.
    conditions
        All parts of the search condition, `keys` among them.
    clauses
        In the order they were given; of those for the same rows the first whose condition holds counts.
    computed
        Generated columns that no clause gives a value for.
    generates
        Identity columns that an insert leaves to the table.
    """

    sides: Sides
    schema: StructType
    keys: tuple[Key, ...]
    conditions: tuple[Expression, ...]
    clauses: tuple[ResolvedClause, ...]
    computed: tuple[str, ...]
    generates: tuple[str, ...]

    def of(self, when: When) -> list[tuple[int, ResolvedClause]]:
        """The clauses for some rows, with their numbers."""
        return [(n, c) for n, c in enumerate(self.clauses) if c.clause.when == when]

    @property
    def updates(self) -> list[tuple[int, ResolvedClause]]:
        """The clauses that update rows, with their numbers."""
        return [(n, c) for n, c in enumerate(self.clauses) if c.clause.do == "update"]


def plan_merge(
    snapshot: Snapshot, sides: Sides, predicate: str, clauses: Sequence[Clause], evolve: bool
) -> MergePlan:
    """Resolve a MERGE.

    Parameters
    ----------
    snapshot
        The version that is changed.
    sides
        Source and table.
    predicate
        The search condition.
    clauses
        Of `effective_clauses`.
    evolve
        Whether the table takes columns of the source that it does not have.

    Raises
    ------
    DeltaError
        A clause is wrong or holds what only Spark evaluates; nothing was done.
    """
    sides.check_names()
    on = sides.expression(predicate, "the search condition", predicate=True)
    conditions = tuple(conjuncts(on))
    special = special_columns(snapshot)
    resolver = _Resolver(sides, special, evolve)
    given = [resolver.given(clause) for clause in clauses]
    after = sides.target
    if evolve:
        assigned = {n.lower() for c, g in zip(clauses, given, strict=True) if not c.is_by_source for n in g}
        after = evolved_schema(snapshot.table_state, sides.source, assigned)
    named = [frozenset(f.name for f in after if f.name.lower() in {n.lower() for n in g}) for g in given]
    changing = [n for c, n in zip(clauses, named, strict=True) if c.do != "delete"]
    inserts = [n for c, n in zip(clauses, named, strict=True) if c.inserts]
    computed = tuple(name for name in special.generated if not any(name in n for n in changing))
    resolved = [resolver.clause(after, clause, g, computed) for clause, g in zip(clauses, given, strict=True)]
    return MergePlan(
        sides,
        after,
        tuple(key for part in conditions if (key := _key(sides, part)) is not None),
        conditions,
        tuple(resolved),
        computed,
        tuple(name for name in special.identities if any(name not in n for n in inserts)),
    )


def _key(sides: Sides, part: Expression) -> Key | None:
    if not isinstance(part, Call) or part.name not in ("=", "<=>"):
        return None
    from delta_ds.kernel.commands.changes.key_codes import is_key_type

    left, right = part.args
    if sides.read_by(left) == {SOURCE} and sides.read_by(right) == {TARGET}:
        left, right = right, left
    if sides.read_by(left) != {TARGET} or sides.read_by(right) != {SOURCE}:
        return None
    if left.type is None or left.type != right.type or not is_key_type(left.type):
        return None
    return Key(left, right, part.name == "<=>", part)


# --- clauses


@dataclass(frozen=True, slots=True)
class _Resolver:
    sides: Sides
    special: SpecialColumns
    evolve: bool

    def given(self, clause: Clause) -> dict[str, Expression]:
        """The values that a clause names, bound, by the column's name in the table or, where it is new, the source."""
        if clause.do == "delete":
            return {}
        if clause.assignments is None:
            return self._all(clause)
        found: dict[str, Expression] = {}
        for name, text in clause.assignments.items():
            column = self._column(name, clause)
            if column.lower() in {n.lower() for n in found}:
                raise CONFLICT_SET_COLUMN(
                    operation=clause.label,
                    table=self.sides.table,
                    column=column,
                    columns=list(clause.assignments),
                )
            what = f"the value of {column} in {clause.label}"
            found[column] = self._default(column, text) or self.sides.expression(
                text, what, _SEEN[clause.when]
            )
        return found

    def _default(self, column: str, text: str) -> Expression | None:
        """What the word `DEFAULT` stands for."""
        if text.strip().upper() != "DEFAULT":
            return None
        return self.sides.expression(
            self.special.defaults.get(column, "NULL"), f"the default of {column}", ()
        )

    def _all(self, clause: Clause) -> dict[str, Expression]:
        """`*`: with evolution every column of the source, else every column of the table."""
        sides = self.sides
        left_out = {self._column(name, clause).lower() for name in clause.leaves_out}
        wanted = sides.source if self.evolve else sides.target
        found: dict[str, Expression] = {}
        for field in wanted:
            if field.name.lower() in left_out:
                continue
            source = sides.source.find(field.name)
            if source is None:
                near = nearest_name(field.name, sides.source.names)
                hint = f"did you mean {near!r}?" if near else f"it has {', '.join(sides.source.names[:20])}"
                raise MERGE_UNRESOLVED_EXPRESSION(
                    clause=f"{clause.label} *", table=sides.table, column=field.name, hint=hint
                )
            there = sides.target.find(field.name)
            name = field.name if there is None else there.name
            found[name] = Column((sides.name_of(SOURCE, source.name),), source.type)
        return found

    def _column(self, name: str, clause: Clause) -> str:
        """The column that is assigned to, as the table spells it."""
        sides = self.sides
        path = parse_path(name)
        if len(path) > 1 and path[0].lower() == sides.target_alias.lower():
            path = path[1:]
        found = inside_structs(sides.target, path)
        if found is None and self.evolve and not clause.is_by_source:
            found = inside_structs(sides.source, path)
        if found is None:
            raise not_there(sides.target, path, sides.table, clause.label)
        if len(found) > 1:
            raise UNSUPPORTED_NESTED_FIELD_IN_OPERATION(
                operation=clause.label, table=sides.table, column=show(found)
            )
        return found[0]

    def clause(
        self, after: StructType, clause: Clause, given: Mapping[str, Expression], computed: Sequence[str]
    ) -> ResolvedClause:
        """A clause over the table as it is afterwards."""
        condition = None
        if clause.condition is not None:
            what = f"the condition of {clause.label}"
            condition = self.sides.expression(clause.condition, what, _SEEN[clause.when], predicate=True)
        if clause.do == "delete":
            return ResolvedClause(clause, condition, {}, frozenset())
        by_name = {name.lower(): value for name, value in given.items()}
        values: dict[str, Expression] = {}
        for field in after:
            value = by_name.get(field.name.lower())
            if value is not None:
                self._check_value(field, value, clause)
                values[field.name] = value
        assigned = frozenset(values)
        if clause.inserts:
            values.update(self._supplied(after, assigned, computed))
        for name, text in self.special.generated.items():
            if name not in assigned and name not in computed:
                values[name] = self._generated(after, name, text, clause, values)
        return ResolvedClause(clause, condition, values, assigned)

    def _check_value(self, field: StructField, value: Expression, clause: Clause) -> None:
        """Refuse a value that its column cannot store."""
        sides = self.sides
        check_identities(sides.target, [(field.name,)], sides.table, insert=clause.inserts)
        assert value.type is not None
        keeps = self.evolve and clause.do == "update" and clause.assignments is None
        self._check_fields(field.name, value.type, field.type, keeps)
        if not can_store(value.type, field.type, implicit=True):
            raise DATATYPE_MISMATCH_CAST_WITHOUT_SUGGESTION(
                column=field.name, table=sides.table, targetType=str(field.type), sourceType=str(value.type)
            )

    def _check_fields(self, path: str, value: DataType, column: DataType, keeps: bool) -> None:
        """Refuse structs with other fields than the column's; those that are missing are null where it evolves."""
        if isinstance(value, ArrayType) and isinstance(column, ArrayType):
            return self._check_fields(f"{path}.element", value.element, column.element, keeps)
        if isinstance(value, MapType) and isinstance(column, MapType):
            return self._check_fields(f"{path}.value", value.value, column.value, keeps)
        if not isinstance(value, StructType) or not isinstance(column, StructType):
            return None
        missing = [f.name for f in column if value.find(f.name) is None]
        if missing and (keeps or not self.evolve):
            wrong = f"{', '.join(missing)} is not given"
            raise UPDATE_SCHEMA_MISMATCH_EXPRESSION(
                sourceType=str(value),
                column=path,
                table=self.sides.table,
                targetType=str(column),
                wrong=wrong,
            )
        for field in column:
            given = value.find(field.name)
            if given is not None:
                self._check_fields(f"{path}.{field.name}", given.type, field.type, keeps)
        return None

    def _supplied(
        self, after: StructType, assigned: frozenset[str], computed: Sequence[str]
    ) -> dict[str, Expression]:
        """The columns of an inserted row that nobody names: their defaults, or null."""
        found: dict[str, Expression] = {}
        for field in after:
            if field.name in assigned or field.name in computed:
                continue
            text = self.special.defaults.get(field.name, "NULL")
            found[field.name] = self.sides.expression(text, f"the default of {field.name}", ())
        return found

    def _generated(
        self, after: StructType, name: str, text: str, clause: Clause, values: Mapping[str, Expression]
    ) -> Expression:
        """A generated column that this clause does not name and others do, over the columns of the new row."""
        from delta_ds.kernel.format.expressions.sql import parse_definition

        sides = self.sides

        def of_new_row(column: Column) -> Expression:
            field = after.find(column.path[0])
            if field is None:
                return column  # binding names it
            value = values.get(field.name)
            if value is None and not clause.inserts and sides.target.find(field.name) is not None:
                value = Column((sides.name_of(TARGET, field.name),))
            if value is None:
                value = Cast(Literal(None), field.type)
            elif value.type not in (None, field.type) and not isinstance(field.type, StructType):
                value = Cast(value, field.type)
            for part in column.path[1:]:
                value = Call("getfield", (value, Literal(part)))
            return value

        tree = map_columns(parse_definition(text), of_new_row)
        return sides.bound(tree, f"the generated column {name}")
