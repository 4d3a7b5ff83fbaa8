"""`CommitCoordinator`: what a catalog has to do for tables whose commits it ratifies.

Source: PROTOCOL.md, "Catalog Responsibilities", "Commit Protocol", "Getting Ratified Commits from the Catalog",
"Publishing Commits", "Maintenance Operations on Catalog-managed Tables".

What a commit coordinator is told and tells: tables and commits.

Source: PROTOCOL.md, "Catalog-managed tables", "Terminology: Commits".

From storage options to the coordinator that they name.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

from delta_ds.conditions.coordination import (
    COORDINATOR_CANNOT,
    COORDINATOR_NEEDS_NAME,
    UNKNOWN_COMMIT_COORDINATOR,
)
from delta_ds.kernel.storage.maintenance import Maintenance
from delta_ds.kernel.storage.store_options import (
    CATALOG_TABLE,
    COMMIT_COORDINATOR,
    SecretOptions,
    store_options,
)
from delta_ds.records import dataclass, field


@dataclass(frozen=True, slots=True)
class ManagedTable:
    """A table as its coordinator knows it.

    Attributes
    ----------
    name
        Its full name, such as `main.sales.orders`; the id where it has none.
    id
        What the coordinator tells its tables apart by.
    location
        Its address, as `open_storage` takes it.
    managed
        Whether its commits are ratified by the coordinator. False: a table that the coordinator knows and that is
        committed to on its file system.
    storage_options
        What its store is opened with besides what the user gave, such as temporary credentials; never shown.
    expires_ms
        When these end, in ms since 1970, and the table is to be resolved anew; None: never.
    properties
        What version 0 of a new table must have: properties, and features as properties that turn them on.
    open_with
        Storage options that a new table is opened with until it has a version 0; of no meaning to others.
    """

    name: str
    id: str
    location: str
    managed: bool = True
    storage_options: Mapping[str, Any] = field(default_factory=SecretOptions, repr=False, compare=False)
    expires_ms: int | None = field(default=None, compare=False)
    properties: Mapping[str, str] = field(default_factory=dict, compare=False)
    open_with: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class ProposedCommit:
    """A commit that is proposed for a version, staged or inline.

    Attributes
    ----------
    version
        The version that it would have.
    file_name
        Of its file in `_delta_log/_staged_commits`, without the folder; None for an inline commit.
    size
        In bytes.
    modified_ms
        When the file was written, ms since 1970; of an inline commit its time of proposal.
    timestamp
        Its in-commit timestamp, ms since 1970.
    content
        Of an inline commit its bytes; None for a staged one.
    """

    version: int
    file_name: str | None
    size: int
    modified_ms: int
    timestamp: int
    content: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class RatifiedCommits:
    """What a coordinator answers to who reads a table.

    Attributes
    ----------
    latest
        The newest ratified version, published or not; -1 of a table without any.
    commits
        Those it still stores, of the versions asked for: ascending, without gaps. All before the first one are
        published; where it stores none, all up to `latest` are.
    """

    latest: int
    commits: tuple[ProposedCommit, ...] = ()


class CommitCoordinator(ABC):
    """The client of a catalog that decides which commits of its tables are ratified.

    Made of storage options, in every process that needs one: `commitCoordinator` names the class, the others are its
    own matter. It connects when first asked, may be asked by several threads, and what is pickled are its options.

    Parameters
    ----------
    options
        The storage options of the table, those for its store included.

    Attributes
    ----------
    kind
        The value of the option `commitCoordinator`.
    publishes_version_0
        Whether version 0 is written to its place in the log first, by put-if-absent, before `ratify` is told of it
        with the name of the published file: for catalogs whose tables come to be by registering one that exists.
    keeps_namespaces
        Whether it knows namespaces without tables: `namespaces`, `create_namespace` and `drop_namespace` are its own.
    """

    kind: ClassVar[str]
    publishes_version_0: ClassVar[bool] = False
    keeps_namespaces: ClassVar[bool] = False

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = SecretOptions(options)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.options,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.describe()!r})"

    @abstractmethod
    def describe(self) -> str:
        """Which one it is, for messages: its kind and address, without secrets."""

    @abstractmethod
    def resolve(self, name: str) -> ManagedTable:
        """The table of a full name, as `catalogTable` gives it.

        Raises
        ------
        StorageError
            `COORDINATOR_TABLE_NOT_FOUND`: there is none. `COORDINATOR_UNAVAILABLE`: the coordinator does not answer,
            or refuses.
        """

    def resolve_location(self, location: str) -> ManagedTable:
        """The table that lies at an address, for who gives a path and no `catalogTable`.

        Parameters
        ----------
        location
            As `Storage.url` is.

        Raises
        ------
        InvalidOptionError
            `COORDINATOR_NEEDS_NAME`: it cannot look tables up by address.
        StorageError
            As `resolve`.
        """
        raise COORDINATOR_NEEDS_NAME(option=CATALOG_TABLE, coordinator=self.describe(), location=location)

    @abstractmethod
    def ratified(
        self, table: ManagedTable, start: int | None = None, end: int | None = None
    ) -> RatifiedCommits:
        """The newest ratified version, and the commits that are still stored.

        Parameters
        ----------
        start, end
            Only commits of these versions, both inclusive; None for no bound. `latest` does not depend on them.

        Raises
        ------
        StorageError
            As `resolve`.
        """

    @abstractmethod
    def ratify(
        self,
        table: ManagedTable,
        commit: ProposedCommit,
        *,
        protocol: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        domains: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Decide that a commit is the one of its version: at most once, and only right after the version before.

        Asked again with the commit that was ratified, as after a lost answer, it may say yes or `FileExistsError`.

        Parameters
        ----------
        commit
            Staged, durable and whole; or inline.
        protocol, metadata
            The bodies of the `protocol` and `metaData` actions in it; None where it has none.
        domains
            The bodies of its `domainMetadata` actions.

        Raises
        ------
        FileExistsError
            Its version is ratified already. Nothing changed.
        UncertainWriteError
            Sent, and no answer: it may be ratified, or become so.
        StorageError
            Certainly not ratified: refused, out of order, or not reached. `COORDINATOR_FULL`: it stores as many commits
            as it can, and takes more once some are published.
        """

    @abstractmethod
    def published(self, table: ManagedTable, version: int) -> None:
        """Take note that all commits up to a version are in the log: they need not be stored any more.

        Raises
        ------
        StorageError
            As `resolve`; the note may be lost, it is repeated with the next one.
        """

    @abstractmethod
    def create(
        self,
        name: str,
        location: str | None = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
        allows: Collection[str] = (),
        latest: int = -1,
    ) -> ManagedTable:
        """Take a new managed table, without any version yet: its first commit is version 0.

        Parameters
        ----------
        location
            Where it is to lie; None: where the coordinator says.
        storage_options
            What its store is opened with by everybody; none of them secret.
        allows
            The maintenance that writers may do: values of `Maintenance`.
        latest
            The newest version of a table that is there, and whose commits are all published; -1: it is new.

        Raises
        ------
        InvalidOptionError
            `COORDINATOR_TABLE_EXISTS`: the name or the location is taken; or a value that it cannot honour.
        UnsupportedOperationError
            `COORDINATOR_CANNOT`: it takes no table that is there already.
        StorageError
            As `resolve`.
        """

    @abstractmethod
    def drop(self, name: str) -> None:
        """Forget a table; its files stay. Raises as `resolve`."""

    def moment(self, tables: Sequence[ManagedTable]) -> list[RatifiedCommits]:
        """What `ratified` says of several tables at one and the same moment, in their order.

        Raises
        ------
        UnsupportedOperationError
            `COORDINATOR_CANNOT`: it has no such answer.
        StorageError
            As `resolve`.
        """
        raise COORDINATOR_CANNOT(
            coordinator=self.describe(), what="say what is ratified of several tables at one moment"
        )

    def keeps(self, configuration: Mapping[str, str]) -> Mapping[str, str]:
        """The properties of a table that must stay as they are, whatever replaces its metadata."""
        return {}

    def all_tables(self) -> list[ManagedTable]:
        """All tables, in order of name.

        Raises
        ------
        UnsupportedOperationError
            `COORDINATOR_CANNOT`: it has no such answer.
        StorageError
            As `resolve`.
        """
        raise COORDINATOR_CANNOT(coordinator=self.describe(), what="list its tables")

    def namespaces(self) -> list[str]:
        """The full names of the namespaces that it keeps; those of its tables need not be among them."""
        return []

    def create_namespace(self, name: str) -> None:
        """Keep a namespace from now on. Raises as `drop_namespace`."""
        raise COORDINATOR_CANNOT(coordinator=self.describe(), what="keep namespaces")

    def drop_namespace(self, name: str) -> None:
        """Forget a namespace, which has no tables; one that it does not keep is fine.

        Raises
        ------
        UnsupportedOperationError
            `COORDINATOR_CANNOT`: it keeps none.
        StorageError
            As `resolve`.
        """
        raise COORDINATOR_CANNOT(coordinator=self.describe(), what="keep namespaces")

    def allow(self, name: str, operations: Collection[str]) -> None:
        """Permit some maintenance of a table to its writers, and no other.

        Raises
        ------
        InvalidOptionError
            One is no value of `Maintenance`.
        UnsupportedOperationError
            `COORDINATOR_CANNOT`: it is permitted elsewhere.
        StorageError
            As `resolve`.
        """
        raise COORDINATOR_CANNOT(coordinator=self.describe(), what="be told what maintenance it permits")

    @abstractmethod
    def allows(self, table: ManagedTable) -> frozenset[Maintenance]:
        """What maintenance writers may do on a table; all other is refused. Raises as `resolve`."""


# The value of `commitCoordinator` -> the module and class; imported when it is named.
COORDINATORS = {
    "unity": "delta_ds.kernel.transaction.unity.coordinator:UnityCatalog",
    "sqlite": "delta_ds.kernel.storage.coordination.sqlite:SQLiteCoordinator",
}


def coordinator_for(options: Mapping[str, Any]) -> CommitCoordinator:
    """The coordinator that storage options name, by `commitCoordinator`: a kind, or `package.module:Class` of your own.

    Raises
    ------
    InvalidOptionError
        There is none of that name, or its other options do not fit.
    """
    named = store_options(options).get(COMMIT_COORDINATOR, "").strip()
    place = COORDINATORS.get(named.lower(), named)
    module, _, name = place.partition(":")
    try:
        found = getattr(import_module(module), name) if module and name else None
    except (ImportError, AttributeError):
        found = None
    if not (isinstance(found, type) and issubclass(found, CommitCoordinator)):
        near = difflib.get_close_matches(named.lower(), COORDINATORS, n=1)
        raise UNKNOWN_COMMIT_COORDINATOR(
            value=named,
            known=[*COORDINATORS, "package.module:Class"],
            hint=f"; did you mean {near[0]!r}?" if near else "",
        )
    return found(options)
