"""The names of the two sides of a MERGE: which column an expression means, and the expression bound to both.

Source: Spark, `AttributeSeq.resolve`: a qualified name goes before a field of a struct.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection
from functools import cached_property
from typing import Literal

from delta_ds.conditions.dml import (
    AMBIGUOUS_REFERENCE_OF_BOTH,
    MERGE_NEEDS_SPARK,
    MERGE_UNRESOLVED_NAME,
)
from delta_ds.exceptions import InvalidOptionError, PredicateError
from delta_ds.kernel.files.rows.expressions import at_timestamp
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.evaluate import unevaluable
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.expressions.tree import Column, Expression, columns, map_columns
from delta_ds.kernel.format.schema.column_paths import nearest_name, show
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.records import dataclass, replace

Name = Literal["source", "target"]
SOURCE: Name = "source"
TARGET: Name = "target"
BOTH = (SOURCE, TARGET)


@dataclass(frozen=True)
class Sides:
    """The columns of source and table, as expressions of a MERGE name them.

    Attributes
    ----------
    source, target
        Their schemas.
    source_alias, target_alias
        By which their columns may be qualified.
    table
        For messages.
    timezone
        The session time zone.
    now
        What `current_timestamp()` means, aware.
    """

    source: StructType
    target: StructType
    source_alias: str
    target_alias: str
    table: str
    timezone: str
    now: datetime.datetime

    def check_names(self) -> None:
        """Refuse names that tell no columns apart.

        Raises
        ------
        InvalidOptionError
            The aliases are one, or none; the source has two columns whose names differ in case only.
        """
        aliases = [self.source_alias.lower(), self.target_alias.lower()]
        if not all(aliases) or aliases[0] == aliases[1] or any("." in alias for alias in aliases):
            raise InvalidOptionError(
                f"source_alias={self.source_alias!r} and target_alias={self.target_alias!r} of the MERGE into "
                f"{self.table} do not tell the two sides apart: give two different words. Nothing was written",
                parameters={"source_alias": self.source_alias, "target_alias": self.target_alias},
            )
        names = [name.lower() for name in self.source.names]
        twice = next((name for name in self.source.names if names.count(name.lower()) > 1), None)
        if twice is not None:
            raise InvalidOptionError(
                f"the source of the MERGE into {self.table} has two columns {twice!r}; names are the same in any "
                "case. Nothing was written",
                parameters={"column": twice},
            )

    @cached_property
    def schema(self) -> StructType:
        """All columns of both under the names that bound expressions have."""
        return StructType(
            tuple(
                replace(field, name=self.name_of(side, field.name))
                for side in BOTH
                for field in self.schema_of(side)
            )
        )

    def schema_of(self, side: Name) -> StructType:
        return self.source if side == SOURCE else self.target

    def name_of(self, side: Name, column: str) -> str:
        """The name of a column in bound expressions."""
        return f"{self.source_alias if side == SOURCE else self.target_alias}.{column}"

    @cached_property
    def _origins(self) -> dict[str, tuple[Name, str]]:
        return {
            self.name_of(side, name): (side, name) for side in BOTH for name in self.schema_of(side).names
        }

    def column_names(self, side: Name, expressions: Collection[Expression | None]) -> set[str]:
        """The columns of a side that bound expressions read, by their own names."""
        read = {c.path[0] for e in expressions if e is not None for c in columns(e)}
        found = (self._origins[name] for name in read)
        return {name for where, name in found if where == side}

    def read_by(self, expression: Expression) -> set[Name]:
        """The sides whose columns a bound expression reads."""
        return {self._origins[c.path[0]][0] for c in columns(expression)}

    def of_target(self, expression: Expression) -> Expression:
        """A bound expression on the table alone, by the table's own names."""
        return map_columns(
            expression,
            lambda column: replace(column, path=(self._origins[column.path[0]][1], *column.path[1:])),
        )

    # --- expressions

    def expression(
        self, text: str, what: str, seen: Collection[Name] = BOTH, *, predicate: bool = False
    ) -> Expression:
        """An expression as it was written, bound.

        Parameters
        ----------
        text
            In Spark SQL.
        what
            What it is, for messages: `the condition`.
        seen
            The sides whose columns it may read.
        predicate
            Whether it has to be boolean.

        Raises
        ------
        PredicateError
            It is no SQL, is of another type, or holds what only Spark evaluates, which is named.
        SchemaError
            It names a column that is not there, or on both sides.
        """
        try:
            tree = parse_predicate(text)
        except PredicateError as error:
            raise self._about(error, what) from error
        return self.bound(
            map_columns(tree, lambda column: self._qualified(column, what, seen)), what, predicate=predicate
        )

    def bound(self, tree: Expression, what: str, *, predicate: bool = False) -> Expression:
        """An expression whose columns are named as in `schema`, bound."""
        try:
            bound = bind(at_timestamp(tree, self.now), self.schema, self.timezone, predicate=predicate)
        except PredicateError as error:
            raise self._about(error, what) from error
        unknown = unevaluable(bound)
        if unknown is not None:
            raise MERGE_NEEDS_SPARK(what=what, table=self.table, expression=str(unknown))
        return bound

    def _about(self, error: PredicateError, what: str) -> PredicateError:
        text = error.text.removesuffix(". Nothing was written")
        return PredicateError(
            f"{what} of the MERGE into {self.table}: {text}. Nothing was written",
            condition=error.condition,
            parameters=error.parameters,
        )

    def _qualified(self, column: Column, what: str, seen: Collection[Name]) -> Column:
        path = column.path
        aliases = {SOURCE: self.source_alias.lower(), TARGET: self.target_alias.lower()}
        of_alias = [side for side in seen if len(path) > 1 and path[0].lower() == aliases[side]]
        found = self._columns(path[1:], of_alias) or self._columns(path, seen)
        if len(found) == 1:
            return found[0]
        if found:
            raise AMBIGUOUS_REFERENCE_OF_BOTH(
                name=path[0],
                clause=what,
                table=self.table,
                source=f"{self.source_alias}.{show(path)}",
                target=f"{self.target_alias}.{show(path)}",
            )
        raise self._not_there(path, of_alias, what, seen)

    def _columns(self, path: tuple[str, ...], sides: Collection[Name]) -> list[Column]:
        fields = ((side, self.schema_of(side).find(path[0])) for side in sides)
        return [
            Column((self.name_of(side, field.name), *path[1:])) for side, field in fields if field is not None
        ]

    def _not_there(
        self, path: tuple[str, ...], of_alias: Collection[Name], what: str, seen: Collection[Name]
    ) -> Exception:
        sides = of_alias or seen
        wanted = path[1] if of_alias else path[0]
        names = [name for side in sides for name in self.schema_of(side).names]
        near = nearest_name(wanted, names)
        where = "either side" if len(sides) > 1 else "the source" if SOURCE in sides else "the table"
        hint = f"did you mean {near!r}?" if near else f"its columns are {', '.join(names[:20])}"
        return MERGE_UNRESOLVED_NAME(clause=what, table=self.table, column=show(path), where=where, hint=hint)
