"""The embedded coordinator: a SQLite database on this machine, for any number of its processes."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from delta_ds.conditions.coordination import COORDINATOR_OPTION_MISSING, COORDINATOR_UNAVAILABLE
from delta_ds.exceptions import StorageError, UncertainWriteError
from delta_ds.kernel.base.environment import absolute
from delta_ds.kernel.storage.coordination.sql import SCHEMA, SCHEMA_VERSION, SqlCoordinator
from delta_ds.kernel.storage.store_options import COORDINATOR_URL, store_options

# Not of the schema's version: who does not know of it misses nothing.
_NAMESPACES = "CREATE TABLE IF NOT EXISTS delta_namespaces (name_key TEXT PRIMARY KEY, name TEXT NOT NULL)"
_HAS_NAMESPACES = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'delta_namespaces'"
_PATIENCE_S = 30.0  # for other transactions, each of which takes milliseconds
_connections = threading.local()
_of_another_process: list[
    sqlite3.Connection
] = []  # never closed here: that would harm the locks of the parent


class SQLiteCoordinator(SqlCoordinator):
    """Tables and their unpublished commits in one SQLite file, in write-ahead mode.

    Only for processes of one machine: SQLite's locks do not hold on file systems across a network.

    Parameters
    ----------
    options
        `coordinatorUrl`: the path of the database, which `create` makes where it is missing.
    """

    kind: ClassVar[str] = "sqlite"
    keeps_namespaces: ClassVar[bool] = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        given = store_options(options).get(COORDINATOR_URL, "")
        if not given:
            raise COORDINATOR_OPTION_MISSING(
                option=COORDINATOR_URL, what="for the coordinator sqlite it is the path of its database"
            )
        self.path = absolute(given.removeprefix("sqlite://"))

    def describe(self) -> str:
        return f"the coordinator sqlite at {self.path}"

    def namespaces(self) -> list[str]:
        with self._transaction("list", "all") as run:
            if not run.query(_HAS_NAMESPACES):
                return []
            return [name for (name,) in run.query("SELECT name FROM delta_namespaces ORDER BY name_key")]

    def create_namespace(self, name: str) -> None:
        with self._transaction("create", name, writes=True, creates=True) as run:
            run.change(_NAMESPACES)
            run.change("INSERT OR IGNORE INTO delta_namespaces VALUES (?, ?)", name.casefold(), name)

    def drop_namespace(self, name: str) -> None:
        with self._transaction("drop", name, writes=True) as run:
            if run.query(_HAS_NAMESPACES):
                run.change("DELETE FROM delta_namespaces WHERE name_key = ?", name.casefold())

    @contextmanager
    def _transaction(
        self, verb: str, table: str, *, writes: bool = False, creates: bool = False, durable: bool = True
    ) -> Iterator[_Statements]:
        connection: sqlite3.Connection | None = None
        try:
            try:
                connection = self._connection(creates)
                if connection.in_transaction:  # of one who was interrupted
                    self._roll_back(connection)
                    connection = self._connection(creates)
                if writes:
                    # A ratified commit survives a power failure: the log of the database is flushed with it.
                    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            except (sqlite3.Error, OSError) as error:
                raise self._unavailable(verb, table, error) from error
            try:
                yield _Statements(connection)
            except sqlite3.Error as error:
                raise self._unavailable(verb, table, error) from error
            self._commit(connection, verb, table, writes)
        finally:
            # Whatever ends it, an interrupt while it waits for its turn included: nobody is kept from writing.
            if connection is not None and connection.in_transaction:
                self._roll_back(connection)

    def _commit(self, connection: sqlite3.Connection, verb: str, table: str, writes: bool) -> None:
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:  # refused, and it can still be taken back
                raise self._unavailable(verb, table, error) from error
            if not writes:
                return
            self._forget()
            raise UncertainWriteError(
                f"{self.describe()} did not confirm a transaction on table {table}: {error}",
                parameters={"table": table},
            ) from error

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        try:
            connection.rollback()
        except sqlite3.Error:
            self._forget()  # its next user connects anew; what was not committed is gone with the connection

    def _unavailable(self, verb: str, table: str, error: Exception) -> StorageError:
        reason = str(error)
        if isinstance(error, FileNotFoundError):
            reason = "there is no such database; it is made when the first table is created there"
        return COORDINATOR_UNAVAILABLE(verb=verb, table=table, coordinator=self.describe(), reason=reason)

    # --- connections: one of each thread and database

    def _connection(self, creates: bool) -> sqlite3.Connection:
        known: dict[str, tuple[int, int, sqlite3.Connection]] = _connections.__dict__.setdefault("open", {})
        if not creates or os.path.exists(self.path):
            found = os.stat(self.path).st_ino
            entry = known.get(self.path)
            if entry is not None and entry[:2] == (os.getpid(), found):
                return entry[2]
            self._forget()
        else:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
        connection = self._opened(creates)
        known[self.path] = (os.getpid(), os.stat(self.path).st_ino, connection)
        return connection

    def _forget(self) -> None:
        entry = _connections.__dict__.get("open", {}).pop(self.path, None)
        if entry is None:
            return
        if entry[0] != os.getpid():
            _of_another_process.append(entry[2])
            return
        with suppress(sqlite3.Error):
            entry[2].close()

    def _opened(self, creates: bool) -> sqlite3.Connection:
        # Only `create` may make a file: an empty one in place of a database that is gone would say nothing of it.
        place = f"{Path(self.path).as_uri()}?mode={'rwc' if creates else 'rw'}"
        connection = sqlite3.connect(
            place, uri=True, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False
        )
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0 and creates:
                self._make(connection)
            elif version != SCHEMA_VERSION:
                raise sqlite3.DatabaseError(
                    "it holds no coordinator"
                    if not version
                    else f"its schema has version {version}, and this version of delta_ds knows {SCHEMA_VERSION}"
                )
        except BaseException:
            connection.close()
            raise
        return connection

    def _make(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in SCHEMA:
                connection.execute(statement.format(big="INTEGER", blob="BLOB"))
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise


class _Statements:
    """The statements of a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a SELECT."""
        return self._connection.execute(sql, values).fetchall()

    def change(self, sql: str, *values: Any) -> int:
        """How many rows a statement changed."""
        return self._connection.execute(sql, values).rowcount
