"""`CommitCoordinator`: what a catalog has to do for tables whose commits it ratifies.

Source: PROTOCOL.md, "Catalog Responsibilities", "Commit Protocol", "Getting Ratified Commits from the Catalog",
"Publishing Commits", "Maintenance Operations on Catalog-managed Tables".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from delta_ds.conditions.coordination import COORDINATOR_CANNOT, COORDINATOR_NEEDS_NAME
from delta_ds.kernel.storage.coordination.records import (
    ManagedTable,
    ProposedCommit,
    RatifiedCommits,
)
from delta_ds.kernel.storage.maintenance import Maintenance
from delta_ds.kernel.storage.store_options import CATALOG_TABLE, SecretOptions


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
    """

    kind: ClassVar[str]
    publishes_version_0: ClassVar[bool] = False

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
