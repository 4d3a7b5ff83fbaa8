"""The statements that Delta adds to Spark's SQL, as records.

A table is the parts of its name: ``("db", "t")`` for ``db.t``, ``("delta", "/p")`` for ``delta.`/p` `` and for a path
written as a string. Columns are the parts of their names, too.

Source: `DeltaSqlBase.g4` of delta-spark 4.4.

Spark's statements that change rows, as records: DELETE, UPDATE, MERGE and INSERT, their clauses as text.

A query in front (`WITH s AS (...)`) is kept as it was written, `WITH` included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from delta_ds.records import dataclass, field

Name: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SqlText:
    """A predicate, a query or a list of columns inside a statement, exactly as it was written, for Spark to parse."""

    text: str
    offset: int = field(default=0, compare=False)
    """Where it begins in the statement's text."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Optimize:
    """`OPTIMIZE t [FULL] [WHERE predicate] [ZORDER BY (a, b)]`."""

    table: Name
    full: bool = False
    where: SqlText | None = None
    zorder_by: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class Reorg:
    """`REORG TABLE t [WHERE predicate] APPLY (PURGE)`."""

    table: Name
    where: SqlText | None = None


@dataclass(frozen=True, slots=True)
class UpgradeUniform:
    """`REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n))`."""

    table: Name
    iceberg_compat_version: int


@dataclass(frozen=True, slots=True)
class Vacuum:
    """`VACUUM t [LITE | FULL] [USING INVENTORY ...] [RETAIN n HOURS] [DRY RUN]`, the clauses in any order."""

    table: Name
    retain_hours: float | None = None
    dry_run: bool = False
    mode: Literal["FULL", "LITE"] = "FULL"
    inventory: SqlText | None = None
    """A query; a table that was named is written as one."""


@dataclass(frozen=True, slots=True)
class DescribeHistory:
    """`DESCRIBE HISTORY t [LIMIT n]`."""

    table: Name
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class DescribeDetail:
    """`DESCRIBE DETAIL t`."""

    table: Name


@dataclass(frozen=True, slots=True)
class Restore:
    """`RESTORE TABLE t TO VERSION AS OF n`, or `TO TIMESTAMP AS OF 'text'`: one of the two is given."""

    table: Name
    version: int | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class Clone:
    """`CREATE TABLE t SHALLOW CLONE s` or `DEEP CLONE s`, with a version or a timestamp of the source or neither."""

    target: Name
    source: Name
    version: int | None = None
    timestamp: str | None = None
    mode: Literal["create", "replace", "create_or_replace"] = "create"
    if_not_exists: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    shallow: bool = True


@dataclass(frozen=True, slots=True)
class Convert:
    """``CONVERT TO DELTA parquet.`/p` [NO STATISTICS] [PARTITIONED BY (a INT, b STRING)]``."""

    table: Name
    statistics: bool = True
    partition_columns: SqlText | None = None
    """Names and types, as a schema in DDL."""


@dataclass(frozen=True, slots=True)
class Generate:
    """`GENERATE symlink_format_manifest FOR TABLE t`."""

    mode: str
    table: Name


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """`ALTER TABLE t ADD CONSTRAINT c CHECK (expression)`."""

    table: Name
    name: str
    expression: SqlText


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """`ALTER TABLE t DROP CONSTRAINT [IF EXISTS] c`."""

    table: Name
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropFeature:
    """`ALTER TABLE t DROP FEATURE f [TRUNCATE HISTORY]`."""

    table: Name
    feature: str
    truncate_history: bool = False


@dataclass(frozen=True, slots=True)
class ClusterBy:
    """`ALTER TABLE t CLUSTER BY (a, b)`; without columns `CLUSTER BY NONE`."""

    table: Name
    columns: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncIdentity:
    """`ALTER TABLE t ALTER COLUMN c SYNC IDENTITY`."""

    table: Name
    column: Name


Statement: TypeAlias = (
    Optimize
    | Reorg
    | UpgradeUniform
    | Vacuum
    | DescribeHistory
    | DescribeDetail
    | Restore
    | Clone
    | Convert
    | Generate
    | AddConstraint
    | DropConstraint
    | DropFeature
    | ClusterBy
    | SyncIdentity
)


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
    replace_using: tuple[Name, ...] = ()
    """Of `REPLACE USING (a, b)`: rows of the table with the values of a written row in these columns are replaced."""
    replace_on: SqlText | None = None
    """Of `REPLACE ON condition`: rows of the table for which it holds with a written row are replaced."""
    alias: str | None = None
    """What the condition of `REPLACE ON` calls the table."""

    @property
    def replaces_matches(self) -> bool:
        """Whether written rows say which rows of the table they take the place of."""
        return bool(self.replace_using) or self.replace_on is not None


RowStatement: TypeAlias = Delete | Update | Merge | Insert
