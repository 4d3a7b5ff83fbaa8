"""`NamedCatalog`: the tables that a commit coordinator knows by their names, and the namespaces they are in."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from delta_ds.conditions.catalog import CATALOG_CANNOT, CATALOG_NAMESPACE
from delta_ds.conditions.coordination import COORDINATOR_TABLE_NOT_FOUND, UNITY_NAMESPACE_NOT_FOUND
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.format.options.parsing import STORAGE_PREFIX
from delta_ds.kernel.storage.coordination.coordinator import CommitCoordinator, ManagedTable, coordinator_for
from delta_ds.kernel.storage.store_options import (
    CATALOG_TABLE,
    COMMIT_COORDINATOR,
    COORDINATOR_TOKEN,
    COORDINATOR_URL,
)
from delta_ds.records import dataclass, field
from delta_ds.spark.base.schema import quoted

UNITY, SQLITE = "unity", "sqlite"
# The parts of a coordinator's name, plain or quoted.
_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


@dataclass(frozen=True)
class NamedCatalog:
    """A catalog that settings name.

    Attributes
    ----------
    name
        Of Spark: the first part of tables' names.
    kind
        As `commitCoordinator`: `unity`, `sqlite` or a class.
    uri
        Where it is.
    token
        What it knows its user by; never shown.
    catalog
        What stands before the schema in the coordinator's own names; empty where nothing does.
    """

    name: str
    kind: str
    uri: str
    token: str = field(default="", repr=False)
    catalog: str = ""

    def full_name(self, namespace: Sequence[str], table: str) -> str:
        """A table's name as the coordinator knows it.

        Raises
        ------
        InvalidOptionError
            The name has no schema; or several, and the catalog has no schemas in schemas.
        """
        if not namespace or (len(namespace) > 1 and self.kind.lower() == UNITY):
            raise CATALOG_NAMESPACE(
                table=".".join(map(quoted, (self.name, *namespace, table))), catalog=self.name
            )
        return ".".join(_plain(part) for part in (self.catalog, *namespace, table) if part)

    def shown(self, namespace: Sequence[str], table: str) -> str:
        """A table's name as Spark shows it."""
        return ".".join(map(_plain, (self.name, *namespace, table)))

    @property
    def store(self) -> dict[str, str]:
        """Storage options that name the coordinator."""
        options = {COMMIT_COORDINATOR: self.kind, COORDINATOR_URL: self.uri}
        return {**options, COORDINATOR_TOKEN: self.token} if self.token else options

    @property
    def coordinator(self) -> CommitCoordinator:
        """Who knows the tables."""
        return coordinator_for(self.store)

    def options(self, full_name: str, table: ManagedTable) -> dict[str, str]:
        """The options of a read or write of a table."""
        store = {**self.store, CATALOG_TABLE: full_name, **table.open_with}
        return {
            "path": table.location.removeprefix("file://"),
            **{f"{STORAGE_PREFIX}{name}": text for name, text in store.items()},
        }

    def describe(self) -> str:
        """What it is, for messages, without secrets."""
        return self.coordinator.describe()

    # --- tables

    def find(self, namespace: Sequence[str], table: str) -> ManagedTable | None:
        """A table; None where there is none of the name."""
        if self._is_not_made:
            return None
        try:
            return self.coordinator.resolve(self.full_name(namespace, table))
        except DeltaError as error:
            if error.condition in (COORDINATOR_TABLE_NOT_FOUND.name, UNITY_NAMESPACE_NOT_FOUND.name):
                return None
            raise

    def begin(self, namespace: Sequence[str], table: str, location: str | None) -> ManagedTable:
        """A new table, which has no version yet; errors as for `CommitCoordinator.create`."""
        return self.coordinator.create(self.full_name(namespace, table), location)

    def drop(self, namespace: Sequence[str], table: str) -> bool:
        """Forget a table, or delete it where the catalog holds its files; whether there was one."""
        if self.find(namespace, table) is None:
            return False
        self.coordinator.drop(self.full_name(namespace, table))
        return True

    def tables(self, namespace: Sequence[str]) -> list[str]:
        """The names of the tables in a namespace, without those of namespace and catalog."""
        if self.kind.lower() == UNITY:
            from delta_ds.kernel.transaction.unity.api import Name

            coordinator: Any = self.coordinator
            return [Name.of(one.name).table for one in coordinator.tables_in(self.catalog, namespace[0])]
        return [name[-1] for name in self._names() if name[:-1] == list(namespace)]

    # --- namespaces

    def namespaces(self, above: Sequence[str]) -> list[str]:
        """The names of the namespaces directly in one, or in the catalog itself: its own, and those of its tables."""
        if self.kind.lower() == UNITY:
            coordinator: Any = self.coordinator
            return [] if above else list(coordinator.schemas(self.catalog))
        depth = len(above)
        return sorted(
            {one[depth] for one in self._namespaces() if len(one) > depth and one[:depth] == list(above)}
        )

    def has_namespace(self, namespace: Sequence[str]) -> bool:
        """Whether there is a namespace."""
        return namespace[-1] in self.namespaces(namespace[:-1])

    def create_namespace(self, namespace: Sequence[str], properties: Mapping[str, str]) -> None:
        """Make a namespace, and those that it is in.

        Raises
        ------
        UnsupportedOperationError
            `CATALOG_CANNOT`: the catalog keeps none, or nothing of the properties.
        """
        if not self.coordinator.keeps_namespaces:
            raise CATALOG_CANNOT(what="CREATE SCHEMA", catalog=self.name, coordinator=self.describe())
        self._check_properties(properties)
        self.coordinator.create_namespace(self._spelled(namespace))

    def drop_namespace(self, namespace: Sequence[str], cascade: bool) -> bool:
        """Drop a namespace.

        Parameters
        ----------
        cascade
            With all that is in it.

        Returns
        -------
        bool
            False: there is something in it that does not go with it, and nothing was done.

        Raises
        ------
        UnsupportedOperationError
            `CATALOG_CANNOT`: the catalog keeps none.
        """
        if not self._keeps_namespaces:
            raise CATALOG_CANNOT(what="DROP SCHEMA", catalog=self.name, coordinator=self.describe())
        inner, tables = self.namespaces(namespace), self.tables(namespace)
        if ((inner or tables) and not cascade) or self._hides_something(namespace):
            return False
        emptied = [self.drop_namespace([*namespace, name], True) for name in inner]
        for table in tables:
            self.drop(namespace, table)
        return all(emptied) and self._let_go(namespace)

    @property
    def _keeps_namespaces(self) -> bool:
        return self.coordinator.keeps_namespaces

    def _hides_something(self, namespace: Sequence[str]) -> bool:
        """Whether anything is in a namespace, at any depth, that is neither a table nor a namespace: it would stay."""
        return False

    def _let_go(self, namespace: Sequence[str]) -> bool:
        """Let an empty namespace go; False: something of others is in it."""
        if not self._is_not_made:
            self.coordinator.drop_namespace(self._spelled(namespace))
        return True

    def _check_properties(self, properties: Mapping[str, str]) -> None:
        if properties.keys() - {"owner"}:
            what = "CREATE SCHEMA with COMMENT, LOCATION or DBPROPERTIES"
            raise CATALOG_CANNOT(what=what, catalog=self.name, coordinator=self.describe())

    @property
    def _is_not_made(self) -> bool:
        """A database is made with its first table or namespace."""
        return self.kind.lower() == SQLITE and not os.path.exists(self.uri)

    def _spelled(self, namespace: Sequence[str]) -> str:
        return ".".join(_plain(part) for part in (self.catalog, *namespace) if part)

    def _names(self) -> list[list[str]]:
        """The parts of the tables' names, without the catalog's."""
        return [] if self._is_not_made else self._below(one.name for one in self.coordinator.all_tables())

    def _namespaces(self) -> list[list[str]]:
        if self._is_not_made:
            return []
        return [*(name[:-1] for name in self._names()), *self._below(self.coordinator.namespaces())]

    def _below(self, names: Iterable[str]) -> list[list[str]]:
        parts = [
            [quoted.replace("``", "`") or plain for quoted, plain in _PART.findall(name)] for name in names
        ]
        skipped = 1 if self.catalog else 0
        return [one[skipped:] for one in parts if not self.catalog or one[0] == self.catalog]


def place_options(options: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The path, and the options of the store, among those of a read or write."""
    store = dict(options)
    return store.pop("path"), store


def _plain(part: str) -> str:
    return part if part.isascii() and part.replace("_", "a").isalnum() else quoted(part)
