"""A coordinator in a SQL database: the tables, the statements and the transactions; a subclass connects.

A commit is ratified by one transaction that moves the table's latest version by one and stores the commit. Commits are
kept until they are published.

Source: PROTOCOL.md, "Commit Protocol", "Publishing Commits".
"""

from __future__ import annotations

import json
import os
import time
import uuid
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from delta_ds.conditions.coordination import (
    COORDINATOR_LOCATION_MISSING,
    COORDINATOR_TABLE_EXISTS,
    COORDINATOR_TABLE_NOT_FOUND,
    COORDINATOR_UNAVAILABLE,
)
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.base.environment import absolute
from delta_ds.kernel.storage.coordination.coordinator import (
    CommitCoordinator,
    ManagedTable,
    ProposedCommit,
    RatifiedCommits,
)
from delta_ds.kernel.storage.maintenance import Maintenance, maintenance
from delta_ds.kernel.storage.uri import Address, parse_address

# --- the one spelling of a table's address by which a coordinator tells locations apart


def canonical_location(location: str) -> str:
    """An address in one spelling: a local path is absolute and without links, schemes of one store are one.

    Raises
    ------
    StorageError
        It is empty or malformed.
    """
    address = parse_address(location)
    if address.scheme == "file":
        return os.path.realpath(absolute(address.path))
    return str(Address(address.scheme, address.authority, address.path))


# --- a coordinator in a SQL database: the tables, the statements and the transactions; a subclass connects

SCHEMA_VERSION = 1
# Understood by SQLite and PostgreSQL; {blob} and {big} are their names of types.
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS delta_tables (id TEXT PRIMARY KEY, name_key TEXT NOT NULL UNIQUE, name TEXT NOT NULL, "
    "location TEXT NOT NULL UNIQUE, latest {big} NOT NULL, published {big} NOT NULL, options TEXT NOT NULL, "
    "allows TEXT NOT NULL, created_ms {big} NOT NULL)",
    "CREATE TABLE IF NOT EXISTS delta_commits (table_id TEXT NOT NULL REFERENCES delta_tables(id) ON DELETE CASCADE, "
    "version {big} NOT NULL, file_name TEXT, content {blob}, size {big} NOT NULL, modified_ms {big} NOT NULL, "
    "timestamp {big} NOT NULL, PRIMARY KEY (table_id, version))",
)
_TABLE = "SELECT id, name, location, options FROM delta_tables WHERE {} = ?"
_COMMITS = (
    "SELECT version, file_name, content, size, modified_ms, timestamp FROM delta_commits "
    "WHERE table_id = ? AND version >= ? AND version <= ? ORDER BY version"
)
_NO_END = 2**62


class Statements(Protocol):
    """What runs in a transaction."""

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a SELECT."""
        ...

    def change(self, sql: str, *values: Any) -> int:
        """How many rows a statement changed."""
        ...


class SqlCoordinator(CommitCoordinator):
    """A coordinator in a SQL database that many processes share."""

    @abstractmethod
    def _transaction(
        self, verb: str, table: str, *, writes: bool = False, creates: bool = False, durable: bool = True
    ) -> AbstractContextManager[Statements]:
        """One transaction, serializable with all others; rolled back on an exception.

        Parameters
        ----------
        verb, table
            What is done to which table, for messages.
        creates
            Whether the database may be new.
        durable
            Whether what is written must survive a power failure; False for what can be done without.

        Raises
        ------
        UncertainWriteError
            The end of a transaction that writes was not confirmed.
        StorageError
            `COORDINATOR_UNAVAILABLE`; nothing was changed.
        """

    def resolve(self, name: str) -> ManagedTable:
        return self._resolved("name_key", name.casefold(), name)

    def resolve_location(self, location: str) -> ManagedTable:
        return self._resolved("location", canonical_location(location), location)

    def _resolved(self, column: str, value: str, shown: str) -> ManagedTable:
        with self._transaction("look up", shown) as run:
            rows = run.query(_TABLE.format(column), value)
        if not rows:
            raise self._not_found(shown)
        return _table(rows[0])

    def _not_found(self, table: str) -> DeltaError:
        return COORDINATOR_TABLE_NOT_FOUND(coordinator=self.describe(), table=table)

    def all_tables(self) -> list[ManagedTable]:
        with self._transaction("list", "all") as run:
            rows = run.query("SELECT id, name, location, options FROM delta_tables ORDER BY name_key")
        return [_table(row) for row in rows]

    def ratified(
        self, table: ManagedTable, start: int | None = None, end: int | None = None
    ) -> RatifiedCommits:
        with self._transaction("read", table.name) as run:
            return self._ratified(run, table, start, end)

    def _ratified(
        self, run: Statements, table: ManagedTable, start: int | None = None, end: int | None = None
    ) -> RatifiedCommits:
        latest = run.query("SELECT latest FROM delta_tables WHERE id = ?", table.id)
        if not latest:
            raise self._not_found(table.name)
        bounds = (0 if start is None else start, _NO_END if end is None else end)
        rows = run.query(_COMMITS, table.id, *bounds)
        commits = tuple(
            ProposedCommit(
                version, file_name, size, modified, timestamp, None if content is None else bytes(content)
            )
            for version, file_name, content, size, modified, timestamp in rows
        )
        return RatifiedCommits(int(latest[0][0]), commits)

    def moment(self, tables: Sequence[ManagedTable]) -> list[RatifiedCommits]:
        with self._transaction("read", ", ".join(table.name for table in tables)) as run:
            return [self._ratified(run, table) for table in tables]

    def ratify(
        self,
        table: ManagedTable,
        commit: ProposedCommit,
        *,
        protocol: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        domains: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        with self._transaction("commit to", table.name, writes=True) as run:
            moved = run.change(
                "UPDATE delta_tables SET latest = ? WHERE id = ? AND latest = ?",
                commit.version,
                table.id,
                commit.version - 1,
            )
            if moved:
                run.change(
                    "INSERT INTO delta_commits VALUES (?, ?, ?, ?, ?, ?, ?)",
                    table.id, commit.version, commit.file_name, commit.content, commit.size, commit.modified_ms,
                    commit.timestamp,
                )  # fmt: skip
                return
            self._refuse(run, table, commit)

    def _refuse(self, run: Statements, table: ManagedTable, commit: ProposedCommit) -> None:
        found = self._ratified(run, table, commit.version, commit.version)
        if found.latest < commit.version:
            raise COORDINATOR_UNAVAILABLE(
                verb="commit to",
                table=table.name,
                coordinator=self.describe(),
                reason=f"version {commit.version} cannot be ratified after version {found.latest}; nothing was written",
            )
        known = found.commits[0] if found.commits else None
        if known is None or (known.file_name, known.content) != (commit.file_name, commit.content):
            raise FileExistsError(f"version {commit.version} of {table.name} is ratified already")

    def published(self, table: ManagedTable, version: int) -> None:
        # A note that is lost is made again: the commits are stored meanwhile, and published in vain.
        with self._transaction("note what is published of", table.name, writes=True, durable=False) as run:
            run.change(
                "UPDATE delta_tables SET published = ? WHERE id = ? AND published < ?",
                version,
                table.id,
                version,
            )
            run.change("DELETE FROM delta_commits WHERE table_id = ? AND version <= ?", table.id, version)

    def create(
        self,
        name: str,
        location: str | None = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
        allows: Collection[str] = (),
        latest: int = -1,
    ) -> ManagedTable:
        if not location:
            raise COORDINATOR_LOCATION_MISSING(coordinator=self.describe(), table=name)
        permitted = maintenance(allows)
        place = canonical_location(location)
        with self._transaction("create", name, writes=True, creates=True) as run:
            taken = run.query(
                "SELECT name, location FROM delta_tables WHERE name_key = ? OR location = ?",
                name.casefold(),
                place,
            )
            if taken:
                raise COORDINATOR_TABLE_EXISTS(
                    coordinator=self.describe(), table=taken[0][0], location=taken[0][1]
                )
            table = ManagedTable(name, str(uuid.uuid4()), place, storage_options=dict(storage_options or {}))
            run.change(
                "INSERT INTO delta_tables VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                table.id, name.casefold(), name, place, latest, latest, json.dumps(dict(storage_options or {})),
                _spelled(permitted), time.time_ns() // 1_000_000,
            )  # fmt: skip
        return table

    def drop(self, name: str) -> None:
        with self._transaction("drop", name, writes=True) as run:
            rows = run.query("SELECT id FROM delta_tables WHERE name_key = ?", name.casefold())
            if not rows:
                raise self._not_found(name)
            run.change("DELETE FROM delta_commits WHERE table_id = ?", rows[0][0])
            run.change("DELETE FROM delta_tables WHERE id = ?", rows[0][0])

    def allows(self, table: ManagedTable) -> frozenset[Maintenance]:
        with self._transaction("read", table.name) as run:
            rows = run.query("SELECT allows FROM delta_tables WHERE id = ?", table.id)
        if not rows:
            raise self._not_found(table.name)
        return maintenance(json.loads(rows[0][0]))

    def allow(self, name: str, operations: Collection[str]) -> None:
        permitted = _spelled(maintenance(operations))
        with self._transaction("change", name, writes=True) as run:
            if not run.change(
                "UPDATE delta_tables SET allows = ? WHERE name_key = ?", permitted, name.casefold()
            ):
                raise self._not_found(name)


def _spelled(permitted: Collection[Maintenance]) -> str:
    return json.dumps(sorted(operation.value for operation in permitted))


def _table(row: Sequence[Any]) -> ManagedTable:
    return ManagedTable(row[1], row[0], row[2], storage_options=json.loads(row[3]))
