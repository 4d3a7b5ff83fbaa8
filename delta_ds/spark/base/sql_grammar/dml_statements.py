"""Spark's statements that change rows, as records: DELETE, UPDATE, MERGE and INSERT, their clauses as text.

A query in front (`WITH s AS (...)`) is kept as it was written, `WITH` included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from delta_ds.records import dataclass, field
from delta_ds.spark.base.sql_grammar.statements import Name, SqlText

Assignments: TypeAlias = tuple[tuple[Name, SqlText], ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """`DELETE FROM t [AS a] [WHERE condition]`."""

    target: Name
    alias: str | None = None
    where: SqlText | None = None
    ctes: SqlText | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """`UPDATE t [AS a] SET c = expression, ... [WHERE condition]`."""

    target: Name
    assignments: Assignments
    alias: str | None = None
    where: SqlText | None = None
    ctes: SqlText | None = None


@dataclass(frozen=True, slots=True)
class MergeClause:
    """`WHEN ... [AND condition] THEN ...`; without assignments those of a star."""

    when: Literal["matched", "not_matched", "not_matched_by_source"]
    action: Literal["update", "delete", "insert"]
    condition: SqlText | None = None
    assignments: Assignments | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """`MERGE [WITH SCHEMA EVOLUTION] INTO t [AS a] USING source ON condition WHEN ...`."""

    target: Name
    source: SqlText
    """What stands behind USING, a table or a query in brackets, with its alias."""
    source_name: str | None
    """The alias of the source, or the last part of its name."""
    on: SqlText
    clauses: tuple[MergeClause, ...]
    alias: str | None = None
    schema_evolution: bool = False
    ctes: SqlText | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    """`INSERT INTO t ...` and `INSERT OVERWRITE t ...`."""

    target: Name
    query: SqlText
    overwrite: bool = False
    partition: tuple[tuple[Name, SqlText | None], ...] = ()
    """Of `PARTITION (p = 1, q)`: the columns, and the values of those that have one."""
    if_not_exists: bool = False
    columns: tuple[Name, ...] = ()
    by_name: bool = False
    replace_where: SqlText | None = None
    schema_evolution: bool = False
    ctes: SqlText | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    """Of the write: `WITH (name = value)`."""


RowStatement: TypeAlias = Delete | Update | Merge | Insert
