"""The checks of every row: CHECK constraints, invariants, NOT NULL, lengths, generated values.

A check looks at the rows as they will be stored and tells the first one that breaks it. The errors carry the
row's values.
Source: PROTOCOL.md, "Column Invariants" and "CHECK Constraints" (protocol-checklist section 31); delta-spark,
`Constraints`, `DeltaInvariantCheckerExec`, `InvariantViolationException`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.data import (
    EXCEED_CHAR_VARCHAR_LIMIT,
    NOT_NULL_CONSTRAINT_VIOLATED,
    UNRECOGNIZED_INVARIANT,
    UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT,
    UNSUPPORTED_INVARIANT_NON_STRUCT,
)
from delta_ds.exceptions import InvariantViolationError
from delta_ds.kernel.base.arrow_buffers import field_of
from delta_ds.kernel.base.json_text import parse_json
from delta_ds.kernel.files.rows.expressions import RowExpression, read_row_expression
from delta_ds.kernel.format.expressions.arrays import FALSE, TRUE, scalar_of
from delta_ds.kernel.format.expressions.casts import cast_value
from delta_ds.kernel.format.expressions.tree import Column, Expression, Literal, columns, map_columns
from delta_ds.kernel.format.schema import char_varchar
from delta_ds.kernel.format.schema.field_metadata import CHAR_VARCHAR_TYPE, INVARIANTS
from delta_ds.kernel.format.schema.types import (
    INTEGER,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructType,
    is_nested,
)
from delta_ds.records import dataclass, replace

# --- `char(n)` and `varchar(n)`: refuse strings longer than declared
# The schema has a plain string; the field's metadata has the declared type, of the whole column where it is
# nested. Source: Spark, `CharVarcharUtils`; delta-spark, `CharVarcharConstraint`.

_LIMIT = re.compile(r"\s*(?:var)?char\(\s*(\d+)\s*\)\s*")
_Search = Callable[[pa.Array], "tuple[int, str] | None"]  # the first row with a text too long, and the text


@dataclass(frozen=True, slots=True)
class Length:
    """The check that texts of a column, and inside it, are not longer than declared."""

    column: str
    declared: str

    def finder(self, table: StructType, timezone: str) -> Callable[[pa.RecordBatch], int] | None:
        search = self._search(table)
        if search is None:
            return None

        def find(batch: pa.RecordBatch) -> int:
            violation = search(batch.column(self.column))
            return -1 if violation is None else violation[0]

        return find

    def violation(self, batch: pa.RecordBatch, row: int, table: StructType, zone: str) -> Exception:
        search = self._search(table)
        too_long = search(batch.column(self.column).slice(row, 1)) if search is not None else None
        text = "" if too_long is None else too_long[1]
        limit = _LIMIT.fullmatch(self.declared)
        failed = f"(({self.column} IS NULL) OR (length({self.column}) <= {limit[1]}))" if limit else None
        return EXCEED_CHAR_VARCHAR_LIMIT(
            value=text,
            failed=failed or f"{self.column} is {self.declared}",
            column=self.column,
            declared=self.declared,
        )

    def _search(self, table: StructType) -> _Search | None:
        field = table.find(self.column)
        return None if field is None else _search_in(field.type, self.declared)


def lengths(table: StructType) -> Iterator[Length]:
    """The columns that were declared with a length."""
    for field in table:
        declared = field.metadata.get(CHAR_VARCHAR_TYPE)
        if isinstance(declared, str) and "char(" in declared:
            yield Length(field.name, declared)


def _search_in(kind: DataType, declared: str | None) -> _Search | None:
    if kind == STRING:
        match = _LIMIT.fullmatch(declared or "")
        return _longer(int(match[1])) if match else None
    if isinstance(kind, StructType):
        parts = char_varchar.of_struct(declared, kind)
        inner = [
            (f.name, s) for f, p in zip(kind, parts, strict=True) if (s := _search_in(f.type, p)) is not None
        ]
        return _in_fields(inner) if inner else None
    if isinstance(kind, ArrayType):
        element = _search_in(kind.element, char_varchar.of_element(declared))
        return None if element is None else _in_lists(element)
    if isinstance(kind, MapType):
        key, value = char_varchar.of_map(declared)
        inner = [
            (name, s)
            for name, s in (("key", _search_in(kind.key, key)), ("value", _search_in(kind.value, value)))
            if s is not None
        ]
        return _in_maps(_in_fields(inner)) if inner else None
    return None


def _longer(limit: int) -> _Search:
    bound = scalar_of(limit, INTEGER)

    def search(texts: pa.Array) -> tuple[int, str] | None:
        too_long = pc.greater(pc.utf8_length(texts), bound)
        row = pc.index(too_long, TRUE).as_py()
        return None if row < 0 else (row, texts[row].as_py())

    return search


def _in_fields(fields: list[tuple[str, _Search]]) -> _Search:
    def search(structs: pa.Array) -> tuple[int, str] | None:
        violations = (s(field_of(structs, name)) for name, s in fields)
        return min((violation for violation in violations if violation is not None), default=None)

    return search


def _in_lists(element: _Search) -> _Search:
    def search(lists: pa.Array) -> tuple[int, str] | None:
        violation = element(pc.list_flatten(lists))
        return (
            None if violation is None else (pc.list_parent_indices(lists)[violation[0]].as_py(), violation[1])
        )

    return search


def _in_maps(entries: _Search) -> _Search:
    in_lists = _in_lists(entries)

    def search(maps: pa.Array) -> tuple[int, str] | None:
        kind = pa.list_(maps.values.type)
        return in_lists(
            pa.Array.from_buffers(
                kind, len(maps), maps.buffers()[:2], maps.null_count, maps.offset, children=[maps.values]
            )
        )

    return search


# --- the checks of every row: CHECK constraints, invariants, NOT NULL, lengths, generated values

CONSTRAINT_PREFIX = "delta.constraints."

Finder = Callable[[pa.RecordBatch], int]  # the first row that breaks a check, -1 for none


class RowCheck(Protocol):
    """A check of every row. Can be pickled."""

    def finder(self, table: StructType, timezone: str) -> Finder | None:
        """The search for the first row that breaks the check; None where none can."""

    def violation(self, batch: pa.RecordBatch, row: int, table: StructType, zone: str) -> Exception:
        """The error for a row that fails it."""


@dataclass(frozen=True, slots=True)
class Condition:
    """The check that an expression is TRUE for every row; FALSE and NULL fail.

    Attributes
    ----------
    name
        As messages name it.
    clause
        The expression.
    absent
        Columns that its text names and the table does not have any more; in the tree they are null.
    """

    name: str
    clause: RowExpression
    absent: tuple[tuple[str, ...], ...] = ()

    def finder(self, table: StructType, timezone: str) -> Finder | None:
        bound = self.clause.bound(table, timezone, predicate=True, stored=True)
        if isinstance(bound, Literal) and bound.value is True:
            return None

        def find(batch: pa.RecordBatch) -> int:
            passed = self.clause.evaluated(bound, batch)
            return first_false(pc.fill_null(passed, FALSE) if passed.null_count else passed)

        return find

    def violation(self, batch: pa.RecordBatch, row: int, table: StructType, zone: str) -> Exception:
        paths = dict.fromkeys(tuple(_exact(c.path, table)) for c in columns(self.clause.tree))
        values = {".".join(path): text_at(batch, path, row, table, zone) for path in sorted(paths)}
        values |= {".".join(path): "null" for path in self.absent}
        lines = "\n".join(f" - {column} : {value}" for column, value in values.items())
        return InvariantViolationError(
            f"CHECK constraint {self.name} ({self.clause.text}) violated by row with values:\n{lines}",
            parameters={"constraintName": self.name, "expression": self.clause.text, "values": values},
        )


@dataclass(frozen=True, slots=True)
class NotNull:
    """The check that a column, or a field inside structs, is not null, and the structs around it are not either."""

    path: tuple[str, ...]

    def finder(self, table: StructType, timezone: str) -> Finder | None:
        def find(batch: pa.RecordBatch) -> int:
            array = batch.column(self.path[0])
            levels = array, self.path[1:]
            if not levels[1] and not array.null_count:
                return -1
            array = value_at(*levels)
            return first_false(pc.is_valid(array)) if array.null_count else -1

        return find

    def violation(self, batch: pa.RecordBatch, row: int, table: StructType, zone: str) -> Exception:
        name = ".".join(self.path)
        return NOT_NULL_CONSTRAINT_VIOLATED(columnName=name)


Check = Condition | NotNull


def first_false(passed: pa.Array) -> int:
    """The position of the first false value of an array without nulls; -1 if there is none."""
    row: int = pc.index(passed, FALSE).as_py()
    return row


def value_at(array: pa.Array, path: tuple[str, ...]) -> pa.Array:
    """The values of a field inside structs, null where a struct around it is null."""
    for name in path:
        array = field_of(array, name)
    return array


# --- what a table asks for


def table_constraints(
    properties: Mapping[str, str], table_name: str, now: datetime.datetime
) -> Iterator[Condition]:
    """The CHECK constraints of a table, by name.

    Raises
    ------
    UnsupportedFeatureError
        One cannot be parsed.

    Source: protocol-checklist CON-W-03.
    """
    for key in sorted(properties):
        if key.lower().startswith(CONSTRAINT_PREFIX):
            name = key[len(CONSTRAINT_PREFIX) :]
            remedy = "Drop the constraint, say it in other words, or write with an engine that knows it."
            owner = f"CHECK constraint {name} of {table_name}"
            condition = UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT.name
            yield Condition(name, read_row_expression(owner, properties[key], now, condition, remedy))


def name_table(condition: Condition, table: StructType) -> Condition:
    """A constraint on the columns that a table has: those that an overwrite of the schema took away are null.

    Raises
    ------
    SchemaError
        It names a field of what is no struct any more.

    Source: delta-spark, `Constraints` and `DeltaInvariantCheckerExec.buildExtractor`.
    """
    absent = tuple(
        dict.fromkeys(c.path for c in columns(condition.clause.tree) if _is_absent(c.path, table, condition))
    )
    if not absent:
        return condition

    def known(column: Column) -> Expression:
        return Literal(None, VOID) if column.path in absent else column

    tree = map_columns(condition.clause.tree, known)
    return replace(condition, clause=replace(condition.clause, tree=tree), absent=absent)


def _is_absent(path: tuple[str, ...], table: StructType, condition: Condition) -> bool:
    level: DataType = table
    for name in path:
        if not isinstance(level, StructType):
            if is_nested(level) or level == VARIANT:
                return False
            raise UNSUPPORTED_INVARIANT_NON_STRUCT(clause=condition.clause, columnName=".".join(path))
        field = level.find(name)
        if field is None:
            return True
        level = field.type
    return False


def schema_checks(
    table: StructType, table_name: str, now: datetime.datetime, path: tuple[str, ...] = ()
) -> Iterator[Check]:
    """NOT NULL and invariants of columns and of fields inside structs, not of those in arrays and maps.

    Source: protocol-checklist CON-W-01, CON-W-02.
    """
    for field in table:
        inner = (*path, field.name)
        if not field.nullable:
            yield NotNull(inner)
        if INVARIANTS in field.metadata:
            yield _invariant(inner, field.metadata[INVARIANTS], table_name, now)
        if isinstance(field.type, StructType):
            yield from schema_checks(field.type, table_name, now, inner)


def _invariant(path: tuple[str, ...], rule: object, table_name: str, now: datetime.datetime) -> Condition:
    name = ".".join(path)
    owner = f"invariant of column {name} of {table_name}"
    try:
        text = parse_json(str(rule))["expression"]["expression"]
    except (ValueError, KeyError, TypeError) as error:
        raise UNRECOGNIZED_INVARIANT(owner=owner, rule=rule) from error
    remedy = "Remove the invariant from the schema, or write with an engine that knows it."
    clause = read_row_expression(owner, text, now, UNRECOGNIZED_INVARIANT.name, remedy)
    return Condition(f"EXPRESSION({text})", clause)


# --- values in messages


def _exact(path: tuple[str, ...], table: StructType) -> Iterator[str]:
    """The path in the table's spelling, as far as it leads through structs."""
    level: DataType = table
    for name in path:
        field = level.find(name) if isinstance(level, StructType) else None
        if field is None:
            return
        yield field.name
        level = field.type


def text_at(batch: pa.RecordBatch, path: tuple[str, ...], row: int, table: StructType, zone: str) -> str:
    """One value as Spark writes it when it is cast to text; nested values as Arrow writes them."""
    array = value_at(batch.column(path[0]).slice(row, 1), path[1:])
    if array.null_count:
        return "null"
    kind: DataType = table
    for name in path:
        field = kind.find(name) if isinstance(kind, StructType) else None
        assert field is not None
        kind = field.type
    if is_nested(kind) or kind in (VARIANT, VOID):
        return str(array[0].as_py())
    return str(cast_value(array, kind, STRING, False, zone)[0].as_py())
