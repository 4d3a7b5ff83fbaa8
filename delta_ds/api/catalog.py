"""`Catalog`: tables whose commits a coordinator ratifies, by their names; several of them at one moment."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from delta_ds.api.delta_log import DeltaLog
from delta_ds.api.snapshot import Snapshot
from delta_ds.conditions.coordination import (
    COORDINATOR_KEEPS_NO_SECRETS,
    NOT_CATALOG_MANAGED,
    UNMANAGED_TABLE_THERE,
)
from delta_ds.exceptions import NotADeltaTableError
from delta_ds.kernel.base.arguments import checked
from delta_ds.kernel.format.features import CATALOG_MANAGED
from delta_ds.kernel.log.replay import load_table_state
from delta_ds.kernel.log.segment import find_segment, list_log
from delta_ds.kernel.log.snapshot import open_snapshot
from delta_ds.kernel.storage.coordination.coordinator import ManagedTable, RatifiedCommits, coordinator_for
from delta_ds.kernel.storage.coordination.storage import CoordinatedStorage
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.store_options import (
    CATALOG_TABLE,
    COMMIT_COORDINATOR,
    COORDINATOR_URL,
    SecretOptions,
    may_be_secret,
    without_coordinator,
)

_OF_STORE = "storage."


def catalog(
    coordinator: str, url: str | None = None, storage_options: Mapping[str, Any] | None = None
) -> Catalog:
    """The tables of a commit coordinator.

    Parameters
    ----------
    coordinator
        As the storage option `commitCoordinator`: `sqlite`, or your own `package.module:Class`.
    url
        Its address, as `coordinatorUrl`; for `sqlite` the path of its database.
    storage_options
        Other options of the coordinator and of the stores of its tables. Never logged or shown.

    Raises
    ------
    InvalidOptionError
        The coordinator does not exist, or its options are invalid.

    Examples
    --------
    >>> import delta_ds, pyarrow as pa
    >>> tables = delta_ds.catalog("sqlite", "/data/catalog.db")
    >>> log = tables.create("main.sales.refunds", "/data/refunds")
    >>> log.write(pa.table({"id": [1, 2]}))
    0
    >>> tables.log("main.sales.refunds").snapshot().scan().count()
    2
    """
    return Catalog(coordinator, url, storage_options)


@checked
class Catalog:
    """The tables of a commit coordinator; made by `delta_ds.catalog`, which describes the parameters.

    Examples
    --------
    >>> import delta_ds
    >>> delta_ds.catalog("sqlite", "/data/catalog.db")
    Catalog('the coordinator sqlite at .../catalog.db')
    """

    def __init__(
        self, coordinator: str, url: str | None = None, storage_options: Mapping[str, Any] | None = None
    ) -> None:
        named = {COMMIT_COORDINATOR: coordinator, COORDINATOR_URL: url}
        given = {name: value for name, value in named.items() if value is not None}
        self._options = SecretOptions({**(storage_options or {}), **given})
        self._coordinator = coordinator_for(self._options)

    def create(
        self,
        name: str,
        location: str | None = None,
        *,
        allows: Collection[str] = (),
        storage_options: Mapping[str, Any] | None = None,
    ) -> DeltaLog:
        """Make an entry for a new table. The first commit creates it: of the result, or of Spark by `options`.

        Parameters
        ----------
        name
            Its full name.
        location
            A path or URL without a table; None if the coordinator chooses it.
        allows
            The maintenance that writers may do: `optimize`, `vacuum`, `logCleanup`. The protocol forbids it unless
            the catalog permits it.
        storage_options
            Options of its store for everybody, such as an endpoint. The coordinator stores them, so secrets are
            refused.

        Raises
        ------
        InvalidOptionError
            The name or location is taken, an operation is not known, or an option may be secret.
        StorageError
            The location already holds a table, or the coordinator does not answer.

        Examples
        --------
        >>> import delta_ds
        >>> tables = delta_ds.catalog("sqlite", "/data/catalog.db")
        >>> tables.create("main.sales.refunds", "/data/refunds", allows=["optimize"])
        DeltaLog('/data/refunds')
        """
        self._check_no_secrets(name, storage_options or {})
        if location is not None:
            self._check_free(location, storage_options or {})
        table = self._coordinator.create(name, location, storage_options=storage_options, allows=allows)
        return self._log(table)

    def _check_no_secrets(self, table: str, storage_options: Mapping[str, Any]) -> None:
        for option, value in storage_options.items():
            if may_be_secret(option, value):
                raise COORDINATOR_KEEPS_NO_SECRETS(
                    option=option, coordinator=self._coordinator.describe(), table=table
                )

    def _check_free(self, location: str, storage_options: Mapping[str, Any]) -> None:
        plain = open_storage(location, {**storage_options, **without_coordinator(self._options)})
        try:
            found = list_log(plain).latest
        except NotADeltaTableError:
            return
        if found >= 0:
            raise UNMANAGED_TABLE_THERE(table=plain.url, coordinator=self._coordinator.describe())

    def register(self, name: str, location: str, *, allows: Collection[str] = ()) -> DeltaLog:
        """Register an existing catalog-managed table that no other catalog manages any more.

        Only published versions count: a commit that another catalog ratified and did not publish would be lost.

        Parameters
        ----------
        name, location, allows
            As of `create`.

        Raises
        ------
        NotADeltaTableError
            There is no table.
        UnsupportedFeatureError
            The table is not managed by a catalog.
        InvalidOptionError, StorageError
            As `create`.

        Examples
        --------
        >>> import delta_ds, pyarrow as pa
        >>> old = delta_ds.catalog("sqlite", "/data/old.db")
        >>> old.create("main.sales.refunds", "/data/refunds").write(pa.table({"id": [1]}))
        0
        >>> old.drop("main.sales.refunds")
        >>> new = delta_ds.catalog("sqlite", "/data/new.db")
        >>> new.register("main.sales.refunds", "/data/refunds").snapshot().version
        0
        """
        plain = open_storage(location, without_coordinator(self._options))
        segment = find_segment(plain)
        if not load_table_state(plain, segment).supports(CATALOG_MANAGED):
            raise NOT_CATALOG_MANAGED(table=plain.url, coordinator=self._coordinator.describe())
        return self._log(self._coordinator.create(name, location, allows=allows, latest=segment.version))

    def names(self) -> list[str]:
        """The names of all tables.

        Raises
        ------
        UnsupportedOperationError
            The coordinator does not list them.
        StorageError
            It does not answer.

        Examples
        --------
        >>> import delta_ds
        >>> tables = delta_ds.catalog("sqlite", "/data/catalog.db")
        >>> log = tables.create("main.sales.refunds", "/data/refunds")
        >>> tables.names()
        ['main.sales.refunds']
        """
        return [table.name for table in self._coordinator.all_tables()]

    def log(self, name: str) -> DeltaLog:
        """The log of a table: snapshots, history, changes, writes.

        Parameters
        ----------
        name
            Its full name, in any case.

        Raises
        ------
        StorageError
            The table does not exist, or the coordinator does not answer.

        Examples
        --------
        >>> import delta_ds
        >>> tables = delta_ds.catalog("sqlite", "/data/catalog.db")
        >>> log = tables.create("main.sales.refunds", "/data/refunds")
        >>> tables.log("main.sales.refunds")
        DeltaLog('/data/refunds')
        """
        return self._log(self._coordinator.resolve(name))

    def _log(self, table: ManagedTable) -> DeltaLog:
        return DeltaLog(table.location, {**self._options, CATALOG_TABLE: table.name, **table.open_with})

    def options(self, name: str) -> dict[str, str]:
        """The options by which Spark reads and writes a table, path included; their values are not shown.

        Parameters
        ----------
        name
            Its full name.

        Raises
        ------
        StorageError
            As `log`.

        Examples
        --------
        >>> import delta_ds
        >>> tables = delta_ds.catalog("sqlite", "/data/catalog.db")
        >>> log = tables.create("main.sales.refunds", "/data/refunds")
        >>> sorted(tables.options("main.sales.refunds"))
        ['path', 'storage.catalogTable', 'storage.commitCoordinator', 'storage.coordinatorUrl']
        """
        table = self._coordinator.resolve(name)
        named = {**self._options, CATALOG_TABLE: table.name}
        texts = {_OF_STORE + key: str(value) for key, value in named.items()}
        return SecretOptions({"path": table.location, **texts})

    def allow(self, name: str, operations: Collection[str]) -> None:
        """Permit some maintenance of a table to its writers, and no other.

        Parameters
        ----------
        name
            Its full name.
        operations
            Of `optimize`, `vacuum` and `logCleanup`.

        Raises
        ------
        InvalidOptionError
            One is not known.
        UnsupportedOperationError
            The coordinator does not support this.
        StorageError
            As `log`.

        Examples
        --------
        >>> import delta_ds
        >>> tables = delta_ds.catalog("sqlite", "/data/catalog.db")
        >>> log = tables.create("main.sales.refunds", "/data/refunds")
        >>> tables.allow("main.sales.refunds", ["optimize", "vacuum"])
        """
        self._coordinator.allow(name, operations)

    def publish(self, name: str) -> int:
        """Publish ratified commits that an interrupted writer has left; every commit does so too.

        Parameters
        ----------
        name
            Its full name.

        Returns
        -------
        int
            The newest version, now published; -1 for a table without versions.

        Raises
        ------
        StorageError
            As `log`; or a commit cannot be put in its place.

        Examples
        --------
        >>> import delta_ds, pyarrow as pa
        >>> tables = delta_ds.catalog("sqlite", "/data/catalog.db")
        >>> tables.create("main.sales.refunds", "/data/refunds").write(pa.table({"id": [1]}))
        0
        >>> tables.publish("main.sales.refunds")
        0
        """
        storage = self._storage(self._coordinator.resolve(name))
        latest = storage.ask().latest
        storage.publish_up_to(latest)
        return latest

    def drop(self, name: str) -> None:
        """Remove the entry of a table, after publishing its commits; its files stay.

        Parameters
        ----------
        name
            Its full name.

        Raises
        ------
        StorageError
            As `publish`.

        Examples
        --------
        >>> import delta_ds
        >>> tables = delta_ds.catalog("sqlite", "/data/catalog.db")
        >>> log = tables.create("main.sales.refunds", "/data/refunds")
        >>> tables.drop("main.sales.refunds")
        >>> tables.names()
        []
        """
        self.publish(name)
        self._coordinator.drop(name)

    def moment(self, names: Sequence[str]) -> Moment:
        """Read several tables at one moment: no commit lies between the versions that are read.

        If somebody commits to one table and then to another, the second commit is never visible without the first.

        Parameters
        ----------
        names
            Their full names.

        Raises
        ------
        UnsupportedOperationError
            The coordinator does not support this.
        StorageError
            As `log`.

        Examples
        --------
        >>> import delta_ds, pyarrow as pa
        >>> tables = delta_ds.catalog("sqlite", "/data/catalog.db")
        >>> for name in ("debits", "credits"):
        ...     version = tables.create(f"main.bank.{name}", f"/data/{name}").write(pa.table({"amount": [1]}))
        >>> tables.moment(["main.bank.debits", "main.bank.credits"]).versions
        {'main.bank.debits': 0, 'main.bank.credits': 0}
        """
        tables = [self._coordinator.resolve(name) for name in names]
        answers = self._coordinator.moment(tables)
        found = {
            name: (self._storage(table), answer)
            for name, table, answer in zip(names, tables, answers, strict=True)
        }
        return Moment(found, {name: self.options(name) for name in names})

    def _storage(self, table: ManagedTable) -> CoordinatedStorage:
        storage = self._log(table).storage
        assert isinstance(storage, CoordinatedStorage)
        return storage

    def __repr__(self) -> str:
        return f"Catalog({self._coordinator.describe()!r})"


@checked
class Moment:
    """Several tables of a catalog at one moment; made by `Catalog.moment`.

    Attributes
    ----------
    versions
        The version of each table, by its name; -1 of a table without any.

    Examples
    --------
    >>> import delta_ds, pyarrow as pa
    >>> tables = delta_ds.catalog("sqlite", "/data/catalog.db")
    >>> tables.create("main.sales.refunds", "/data/refunds").write(pa.table({"id": [1]}))
    0
    >>> moment = tables.moment(["main.sales.refunds"])
    >>> tables.log("main.sales.refunds").write(pa.table({"id": [2]}))
    1
    >>> moment.snapshot("main.sales.refunds").scan().count()
    1
    """

    def __init__(
        self,
        tables: Mapping[str, tuple[CoordinatedStorage, RatifiedCommits]],
        options: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self._tables = tables
        self._options = options
        self.versions = {name: answer.latest for name, (_, answer) in tables.items()}

    def snapshot(self, name: str) -> Snapshot:
        """One of the tables as it was at the moment.

        Parameters
        ----------
        name
            As it was given to `Catalog.moment`.

        Raises
        ------
        KeyError
            It was not.
        DeltaError
            As `DeltaLog.snapshot`.

        Examples
        --------
        >>> import delta_ds, pyarrow as pa
        >>> tables = delta_ds.catalog("sqlite", "/data/catalog.db")
        >>> tables.create("main.sales.refunds", "/data/refunds").write(pa.table({"id": [1]}))
        0
        >>> tables.moment(["main.sales.refunds"]).snapshot("main.sales.refunds").version
        0
        """
        storage, answer = self._tables[name]
        return Snapshot(open_snapshot(storage.at(answer)))

    def options(self, name: str) -> dict[str, str]:
        """The options by which Spark reads one of the tables as it was at the moment; their values are not shown.

        Parameters
        ----------
        name
            As it was given to `Catalog.moment`.

        Raises
        ------
        KeyError
            It was not.

        Examples
        --------
        >>> import delta_ds, pyarrow as pa
        >>> tables = delta_ds.catalog("sqlite", "/data/catalog.db")
        >>> tables.create("main.sales.refunds", "/data/refunds").write(pa.table({"id": [1]}))
        0
        >>> tables.moment(["main.sales.refunds"]).options("main.sales.refunds")["versionAsOf"]
        '0'
        """
        return SecretOptions({**self._options[name], "versionAsOf": str(self.versions[name])})

    def __repr__(self) -> str:
        return f"Moment({self.versions!r})"
