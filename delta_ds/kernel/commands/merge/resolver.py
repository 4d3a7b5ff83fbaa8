"""Resolve one clause of a MERGE: its condition, and what columns and fields get, bound to both sides.

What a clause sees: `WHEN MATCHED` both sides, `WHEN NOT MATCHED` the source, `WHEN NOT MATCHED BY SOURCE` the table.

Source: delta-spark, `ResolveDeltaMergeInto`, `PreprocessTableMerge`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from delta_ds.conditions.dml import (
    CONFLICT_SET_COLUMN,
    DATATYPE_MISMATCH_CAST_WITHOUT_SUGGESTION,
    DUPLICATE_COLUMNS_ON_INSERT,
    MERGE_NEEDS_SPARK,
    MERGE_UNRESOLVED_EXPRESSION,
    UNSUPPORTED_NESTED_FIELD_IN_OPERATION,
    UPDATE_SCHEMA_MISMATCH_EXPRESSION,
)
from delta_ds.kernel.commands.dml.new_values import check_identities, inside_structs, lacking, not_there
from delta_ds.kernel.commands.dml.plan import SpecialColumns
from delta_ds.kernel.commands.merge.clauses import Clause, When
from delta_ds.kernel.commands.merge.sides import BOTH, SOURCE, TARGET, Name, Sides
from delta_ds.kernel.files.rows.casts import can_store
from delta_ds.kernel.format.expressions.tree import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    map_columns,
)
from delta_ds.kernel.format.schema.column_paths import Path, find, nearest_name, parse_path, show
from delta_ds.kernel.format.schema.types import DataType, StructField, StructType
from delta_ds.records import dataclass

_SEEN: Mapping[When, tuple[Name, ...]] = {
    "matched": BOTH,
    "not_matched": (SOURCE,),
    "not_matched_by_source": (TARGET,),
}


@dataclass(frozen=True, slots=True)
class FieldValue:
    """What a field of a struct gets.

    Attributes
    ----------
    path
        Names below the column, in the table's case.
    field
        The field.
    value
        Bound.
    """

    path: Path
    field: StructField
    value: Expression


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
    fields
        Of columns in `values` the fields that get other values: by the column, their paths inside it.
    """

    clause: Clause
    condition: Expression | None
    values: Mapping[str, Expression]
    assigned: frozenset[str]
    fields: Mapping[str, tuple[FieldValue, ...]]

    @property
    def expressions(self) -> list[Expression | None]:
        """All that is evaluated."""
        inside = [f.value for some in self.fields.values() for f in some]
        return [self.condition, *self.values.values(), *inside]


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolves clauses of one MERGE."""

    sides: Sides
    special: SpecialColumns
    evolve: bool

    def given(self, clause: Clause) -> dict[Path, Expression]:
        """The values that a clause names, bound, by paths in the table or, where a column is new, the source."""
        if clause.do == "delete":
            return {}
        if clause.assignments is None:
            return self._all(clause)
        values: dict[Path, Expression] = {}
        for name, text in clause.assignments.items():
            path = self._path(name, clause)
            self._check_once(path, list(values), clause)
            what = f"the value of {show(path)} in {clause.label}"
            values[path] = self._default(path, text) or self.sides.expression(text, what, _SEEN[clause.when])
        return values

    def _check_once(self, path: Path, others: list[Path], clause: Clause) -> None:
        for other in others:
            shorter = min(path, other, key=len)
            if all(a.lower() == b.lower() for a, b in zip(path, other, strict=False)):
                if clause.do == "insert":
                    raise DUPLICATE_COLUMNS_ON_INSERT(
                        operation=clause.label, table=self.sides.table, column=show(shorter)
                    )
                raise CONFLICT_SET_COLUMN(
                    operation=clause.label,
                    table=self.sides.table,
                    column=show(shorter),
                    columns=[show(other), show(path)],
                )

    def _default(self, path: Path, text: str) -> Expression | None:
        """What the word `DEFAULT` stands for."""
        if text.strip().upper() != "DEFAULT" or len(path) > 1:
            return None
        column = path[0]
        return self.sides.expression(
            self.special.defaults.get(column, "NULL"), f"the default of {column}", ()
        )

    def _all(self, clause: Clause) -> dict[Path, Expression]:
        """`*`: with evolution every column of the source, else every column of the table."""
        sides = self.sides
        left_out = {self._path(name, clause)[0].lower() for name in clause.leaves_out}
        columns = sides.source if self.evolve else sides.target
        values: dict[Path, Expression] = {}
        for field in columns:
            if field.name.lower() in left_out:
                continue
            source = sides.source.find(field.name)
            if source is None:
                near = nearest_name(field.name, sides.source.names)
                hint = f"did you mean {near!r}?" if near else f"it has {', '.join(sides.source.names[:20])}"
                raise MERGE_UNRESOLVED_EXPRESSION(
                    action=clause.do.upper(),
                    clause=f"{clause.label} *",
                    table=sides.table,
                    column=field.name,
                    hint=hint,
                )
            there = sides.target.find(field.name)
            name = field.name if there is None else there.name
            values[name,] = Column((sides.name_of(SOURCE, source.name),), source.type)
        return values

    def _path(self, name: str, clause: Clause) -> Path:
        """The column or field that is assigned to, as the table spells it."""
        sides = self.sides
        path = parse_path(name)
        if len(path) > 1 and path[0].lower() == sides.target_alias.lower():
            path = path[1:]
        resolved = inside_structs(sides.target, path)
        if resolved is None and self.evolve and not clause.is_by_source and len(path) == 1:
            resolved = inside_structs(sides.source, path)
        if resolved is None:
            raise not_there(sides.target, path, sides.table, clause.label)
        if len(resolved) > 1 and clause.inserts:
            raise UNSUPPORTED_NESTED_FIELD_IN_OPERATION(
                operation=clause.label, table=sides.table, column=show(resolved)
            )
        return resolved

    def clause(
        self, after: StructType, clause: Clause, given: Mapping[Path, Expression], computed: Sequence[str]
    ) -> ResolvedClause:
        """A clause over the table as it is afterwards."""
        condition = None
        if clause.condition is not None:
            what = f"the condition of {clause.label}"
            condition = self.sides.expression(clause.condition, what, _SEEN[clause.when], predicate=True)
        if clause.do == "delete":
            return ResolvedClause(clause, condition, {}, frozenset(), {})
        values: dict[str, Expression] = {}
        fields: dict[str, tuple[FieldValue, ...]] = {}
        for column in after:
            inside = {p: v for p, v in given.items() if p[0].lower() == column.name.lower()}
            whole = next((v for p, v in inside.items() if len(p) == 1), None)
            if whole is not None:
                self._check_value(column, (column.name,), whole, clause)
                values[column.name] = whole
            elif inside:
                values[column.name] = self._as_it_is(column.name)
                fields[column.name] = tuple(self._field(after, p, v, clause) for p, v in inside.items())
        assigned = frozenset(values)
        if clause.inserts:
            values.update(self._supplied(after, assigned, computed))
        for name, text in self.special.generated.items():
            if name not in assigned and name not in computed:
                values[name] = self._generated(after, name, text, clause, values, fields)
        return ResolvedClause(clause, condition, values, assigned, fields)

    def _as_it_is(self, name: str) -> Expression:
        """A column of the table, bound."""
        return self.sides.bound(Column((self.sides.name_of(TARGET, name),)), f"the column {name}")

    def _field(self, after: StructType, path: Path, value: Expression, clause: Clause) -> FieldValue:
        found = find(after, path)
        assert found is not None  # fields of the table stay
        self._check_value(found[1], found[0], value, clause)
        return FieldValue(found[0][1:], found[1], value)

    def _check_value(self, field: StructField, path: Path, value: Expression, clause: Clause) -> None:
        """Refuse a value that its column cannot store."""
        sides = self.sides
        check_identities(sides.target, [path], sides.table, insert=clause.inserts)
        assert value.type is not None
        self._check_fields(show(path), value.type, field.type, clause)
        if not can_store(value.type, field.type, implicit=True):
            raise DATATYPE_MISMATCH_CAST_WITHOUT_SUGGESTION(
                column=show(path), table=sides.table, targetType=str(field.type), sourceType=str(value.type)
            )

    def _check_fields(self, path: str, value: DataType, column: DataType, clause: Clause) -> None:
        """Refuse structs with other fields than the column's; those that are missing are null where it evolves."""
        keeps = self.evolve and clause.do == "update" and clause.assignments is None
        if self.evolve and not keeps:
            return
        for at, given, wanted, missing in lacking(value, column, path):
            if keeps:
                raise MERGE_NEEDS_SPARK(
                    what=f"{clause.label} *",
                    table=self.sides.table,
                    expression=f"a value for {at} without {', '.join(missing)}",
                )
            raise UPDATE_SCHEMA_MISMATCH_EXPRESSION(
                sourceType=str(given),
                column=at,
                table=self.sides.table,
                targetType=str(wanted),
                wrong=f"{', '.join(missing)} is not given",
            )

    def _supplied(
        self, after: StructType, assigned: frozenset[str], computed: Sequence[str]
    ) -> dict[str, Expression]:
        """The columns of an inserted row that nobody names: their defaults, or null."""
        defaults: dict[str, Expression] = {}
        for field in after:
            if field.name in assigned or field.name in computed:
                continue
            text = self.special.defaults.get(field.name, "NULL")
            defaults[field.name] = self.sides.expression(text, f"the default of {field.name}", ())
        return defaults

    def _generated(
        self,
        after: StructType,
        name: str,
        text: str,
        clause: Clause,
        values: Mapping[str, Expression],
        fields: Collection[str],
    ) -> Expression:
        """A generated column that this clause does not name and others do, over the columns of the new row."""
        from delta_ds.kernel.format.expressions.sql import parse_definition

        sides = self.sides

        def of_new_row(column: Column) -> Expression:
            field = after.find(column.path[0])
            if field is None:
                return column  # binding names it
            value = values.get(field.name)
            if field.name in fields:
                what = f"{clause.label} with single fields of {field.name}"
                raise MERGE_NEEDS_SPARK(what=what, table=sides.table, expression=f"generated column {name}")
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
