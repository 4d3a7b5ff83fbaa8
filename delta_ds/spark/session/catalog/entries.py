"""Entries of tables in the metastore of a classic session.

An entry holds the provider, the place and the comment that CREATE gave, and no columns: these are in the log. That is
what delta-spark stores, so that either reads what the other has registered. What else it can hold: `updates.py`.

Source: delta-spark, `CreateDeltaTableCommand.cleanupTableDefinition`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from delta_ds.conditions.catalog import CONVERT_MANAGED_NOT_ALLOWED, LOGIN_IN_NAME
from delta_ds.kernel.storage.uri import has_scheme, parse_address
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from delta_ds.spark.base.kinds.java_object import JavaObject, JavaValue
    from delta_ds.spark.engines.classic.jvm import Jvm

PROVIDER = "delta"
NO_COLUMNS = '{"type":"struct","fields":[]}'
# What Hive, and Spark in Hive's metastore, note among the properties of a table.
_NOTES = frozenset([
    "transient_lastddltime", "last_modified_by", "last_modified_time", "numfiles", "numrows", "rawdatasize",
    "totalsize", "column_stats_accurate", "numpartitions", "bucketing_version", "numfileserasurecoded",
])  # fmt: skip
# Of tables and of views.
_SPARK_NOTES = ("spark.sql.", "view.")
# Of which version an entry tells.
_LAST_VERSION, _LAST_TIMESTAMP = "delta.lastUpdateVersion", "delta.lastCommitTimestamp"
# What Spark keeps among the properties of a table.
_OWNER, _EXTERNAL, _MANAGED_LOCATION = "owner", "external", "is_managed_location"
RESERVED = frozenset([_OWNER, _EXTERNAL, "table_type", _MANAGED_LOCATION, "provider", "location", "comment"])


@dataclass(frozen=True)
class Entry:
    """A table in the metastore.

    Attributes
    ----------
    schema, name
        Of the table, as the metastore spells them.
    location
        The address of its folder.
    provider
        The data source, in lower case; None for a view.
    managed
        Whether the folder goes when the table is dropped.
    owner
        Who has made it, where that is known.
    partition_columns
        As the metastore has them, which is for tables of other sources only.
    """

    schema: str
    name: str
    location: str
    provider: str | None
    managed: bool
    owner: str = ""
    partition_columns: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The folder, as the kernel takes it."""
        return local_path(self.location)

    @property
    def full_name(self) -> str:
        """With its schema and catalog."""
        return f"spark_catalog.{self.schema}.{self.name}"

    @property
    def reserved(self) -> dict[str, str]:
        """What Spark's commands look for among the properties of a table."""
        properties = {_MANAGED_LOCATION if self.managed else _EXTERNAL: "true"}
        if self.owner:
            properties[_OWNER] = self.owner
        return properties


@dataclass(frozen=True)
class Description:
    """What an entry can hold of a version of the log.

    Attributes
    ----------
    schema
        The columns, in JSON.
    properties
        Those of the table, its protocol in the same form, and why columns are left out.
    comment
        Of the table.
    version, timestamp
        Of which version all this is. They alone are no reason to change an entry.
    """

    schema: str
    properties: Mapping[str, str]
    comment: str | None
    version: int
    timestamp: int

    @property
    def stored_properties(self) -> dict[str, str]:
        """All that an entry holds as properties."""
        moment = {_LAST_VERSION: str(self.version), _LAST_TIMESTAMP: str(self.timestamp)}
        return {**self.properties, **moment}

    def is_in(self, stored: Mapping[str, str]) -> bool:
        """Whether the properties of an entry are these, and no others."""
        return self.properties == {
            key: text
            for key, text in stored.items()
            if key in self.properties or not (_is_note(key) or key in (_LAST_VERSION, _LAST_TIMESTAMP))
        }

    def is_older_than(self, stored: Mapping[str, str]) -> bool:
        """Whether an entry tells of a later version; a table that was made anew begins at 0 again, but later."""
        version, timestamp = (_number(stored.get(key)) for key in (_LAST_VERSION, _LAST_TIMESTAMP))
        return version > self.version and timestamp >= self.timestamp


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else -1


def entry_of(table: JavaObject) -> Entry:
    """The entry that a `CatalogTable` of the JVM is."""
    identifier = table.identifier()
    provider = table.provider()
    is_view = table.tableType().name() == "VIEW"
    return Entry(
        schema=identifier.database().get() if identifier.database().isDefined() else "",
        name=identifier.table(),
        location="" if is_view else _address(table),
        provider=str(provider.get()).lower() if provider.isDefined() and not is_view else None,
        managed=table.tableType().name() == "MANAGED",
        owner=table.owner(),
        partition_columns=tuple(_items(table.partitionColumnNames())),
    )


def _items(sequence: JavaObject) -> list[str]:
    return [sequence.apply(number) for number in range(sequence.size())]


def _address(table: JavaObject) -> str:
    location = table.storage().locationUri()
    return address_of(location.get()) if location.isDefined() else ""


def address_of(uri: JavaObject) -> str:
    """A URI as an address, as users write it; one of this machine with the escapes of a URI."""
    text = str(uri.toString())
    return text if uri.getScheme() in (None, "file") else unquote(text)


def local_path(address: str) -> str:
    """A folder without scheme and escapes where it is of this machine.

    >>> local_path("file:/data/a%20b")
    '/data/a b'
    >>> local_path("s3a://bucket/t")
    's3a://bucket/t'
    """
    return unquote(stated_path(address)) if address.startswith("file:") else address


def stated_path(location: str) -> str:
    """A folder without scheme where it is of this machine, as LOCATION says it: without escapes.

    >>> stated_path("file:/data/a%20b")
    '/data/a%20b'

    Raises
    ------
    InvalidOptionError
        It holds a login, which the metastore would show.
    """
    check_address(location)
    if not location.startswith("file:"):
        return location
    rest = location[len("file:") :]
    return rest[2:] if rest.startswith("///") else rest


def _is_note(key: str) -> bool:
    folded = key.lower()
    return folded in _NOTES or folded in RESERVED or folded.startswith(_SPARK_NOTES)


def check_address(address: str) -> None:
    """Refuse an address with a login where it would be shown: as the name of a table, or its location.

    Raises
    ------
    InvalidOptionError
        It has one.
    """
    if "@" in address and has_scheme(address):
        parsed = parse_address(address)
        if parsed.userinfo:
            raise LOGIN_IN_NAME(address=parsed)


# The metastore writes entries whole: nobody in this process changes one between another's look at it and its write.
_writing = threading.Lock()


class Metastore:
    """The entries of the session catalog.

    Parameters
    ----------
    jvm
        Of a classic session.
    """

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._catalog = jvm.spark._jsparkSession.sessionState().catalog()

    def identifier(self, namespace: Sequence[str], name: str) -> JavaValue:
        """The JVM's identifier of a table; without a namespace it is in the current schema."""
        schema = namespace[-1] if namespace else self._catalog.getCurrentDatabase()
        return self._jvm.TableIdentifier(name, self._jvm.some(schema))

    def require_schema(self, namespace: Sequence[str]) -> None:
        """Raise Spark's own error where a schema does not exist."""
        if namespace:
            self._catalog.getDatabaseMetadata(namespace[-1])

    def find(self, namespace: Sequence[str], name: str) -> Entry | None:
        """The entry of a name; None where there is none."""
        identifier = self.identifier(namespace, name)
        if not self._catalog.tableExists(identifier):
            return None
        return entry_of(self._catalog.getTableMetadata(identifier))

    def description(self, namespace: Sequence[str], name: str) -> tuple[dict[str, str], str | None]:
        """The properties that users gave to a table, and its comment.

        What Spark and Hive note there for themselves is left out.
        """
        table = self._catalog.getTableMetadata(self.identifier(namespace, name))
        own = {key: text for key, text in self._properties(table).items() if not _is_note(key)}
        return own, table.comment().get() if table.comment().isDefined() else None

    def default_location(self, namespace: Sequence[str], name: str) -> str:
        """The address of the folder that a managed table of a name has."""
        return address_of(self._catalog.defaultTablePath(self.identifier(namespace, name)))

    def qualified_location(self, namespace: Sequence[str], location: str) -> str:
        """A location as users write it; a relative one begins at the folder of the schema, as Spark has it."""
        if self._jvm.Path(location).isAbsolute() or self._jvm.Path(location).toUri().getScheme() is not None:
            return location
        schema = namespace[-1] if namespace else self._catalog.getCurrentDatabase()
        above = address_of(self._catalog.getDatabaseMetadata(schema).locationUri())
        return f"{above.rstrip('/')}/{location}"

    def create(
        self,
        namespace: Sequence[str],
        name: str,
        location: str,
        *,
        managed: bool,
        comment: str | None = None,
        description: Description | None = None,
    ) -> None:
        """Store the entry of a table whose log is there.

        Parameters
        ----------
        location
            An address, or a path of this machine.
        comment
            As CREATE gives it, where there is no description.
        description
            What the entry is to hold of the log; None: nothing.
        """
        jvm = self._jvm
        # Without it Hive's metastore notes nothing of who knows the partitions, as no table of delta-spark has it.
        changes: dict[str, Any] = {"tracksPartitionsInCatalog": True}
        if description is not None:
            changes |= self._told(description)
        elif comment is not None:
            changes["comment"] = jvm.some(comment)
        table = self._table(self.identifier(namespace, name), location, managed)
        self._catalog.createTable(self._copy(table, changes), False, False)

    def describe(self, namespace: Sequence[str], name: str, description: Description, location: str) -> None:
        """Let an entry hold what the log says, where it does not.

        Nothing happens where there is no entry, or it names another place or tells of a later version by now.

        Parameters
        ----------
        location
            Of the table whose log says so, as its entry has it.
        """
        identifier = self.identifier(namespace, name)
        changes = self._told(description)
        with _writing:
            entry = self._entry_at(identifier, location)
            if entry is None:
                return
            stored = self._properties(entry)
            other_columns = not changes["schema"].equals(entry.schema())
            other_comment = not changes["comment"].equals(entry.comment())
            if description.is_older_than(stored) or not (
                other_columns or other_comment or not description.is_in(stored)
            ):
                return
            if other_columns:
                # The session's own would let no column go.
                self._catalog.externalCatalog().alterTableDataSchema(
                    identifier.database().get(), identifier.table(), changes["schema"]
                )
                # What another process has changed meanwhile is not to be written back.
                entry = self._entry_at(identifier, location)
            if entry is not None:
                self._catalog.alterTable(self._copy(entry, changes))

    def _entry_at(self, identifier: JavaObject, location: str) -> JavaValue | None:
        if not self._catalog.tableExists(identifier):
            return None
        entry = self._catalog.getTableMetadata(identifier)
        return entry if entry_of(entry).location == location else None

    def _told(self, description: Description) -> dict[str, Any]:
        """The fields of an entry that a description is."""
        jvm = self._jvm
        return {
            "schema": jvm.struct(description.schema),
            "properties": jvm.map(description.stored_properties),
            "comment": jvm.jvm.scala.Option.apply(description.comment),
        }

    def _properties(self, entry: JavaObject) -> dict[str, str]:
        return dict(self._jvm.jvm.scala.jdk.javaapi.CollectionConverters.asJava(entry.properties()))

    def become_ours(self, namespace: Sequence[str], name: str) -> None:
        """Let the entry of a table whose files were converted in their place be one of ours.

        Metastores do not change the provider of an entry, so it is made anew; before that a managed table is let go, as
        its files would go with its entry.

        Raises
        ------
        UnsupportedOperationError
            The metastore does not let go of the files; the entry is as it was.
        """
        identifier = self.identifier(namespace, name)
        entry = self._catalog.getTableMetadata(identifier)
        before = entry_of(entry)
        if before.managed:
            self._catalog.alterTable(self._copy(entry, {"tableType": self._jvm.CatalogTableType.EXTERNAL()}))
            if entry_of(self._catalog.getTableMetadata(identifier)).managed:
                raise CONVERT_MANAGED_NOT_ALLOWED(table=before.full_name, location=before.location)
        self._catalog.dropTable(identifier, False, False)
        self.create(namespace, name, before.location, managed=before.managed)

    def _copy(self, table: JavaObject, changes: Mapping[str, Any]) -> JavaValue:
        """An entry with other values of some of its fields; each Spark has others, in another order."""
        names = [str(table.productElementName(number)) for number in range(int(table.productArity()))]
        values = [
            changes[name] if name in changes else table.productElement(number)
            for number, name in enumerate(names)
        ]
        return table.copy(*values)

    def move(self, namespace: Sequence[str], name: str, location: str) -> None:
        """Let an entry name another folder."""
        identifier = self.identifier(namespace, name)
        with _writing:
            entry = self._catalog.getTableMetadata(identifier)
            self._catalog.alterTable(
                self._copy(entry, {"storage": self._with_location(entry.storage(), location)})
            )

    def _table(self, identifier: JavaObject, location: str, managed: bool) -> JavaValue:
        jvm = self._jvm
        kinds = jvm.CatalogTableType
        values = [
            identifier,
            kinds.MANAGED() if managed else kinds.EXTERNAL(),
            self._with_location(jvm.CatalogStorageFormat.empty(), location),
            jvm.struct(NO_COLUMNS),
            jvm.some(PROVIDER),
        ]
        defaulted = range(len(values) + 1, jvm.catalog_table_parameters + 1)
        values += [getattr(jvm.CatalogTableModule, f"apply$default${number}")() for number in defaulted]
        return jvm.CatalogTable(*values)

    def _with_location(self, storage: JavaObject, location: str) -> JavaValue:
        """A storage format with another place, and no options: these may hold secrets."""
        rest = [getattr(storage, f"copy$default${n}")() for n in range(2, int(storage.productArity()) + 1)]
        return storage.copy(self._jvm.some(self._uri(location)), *rest)

    def _uri(self, location: str) -> JavaValue:
        check_address(location)
        path = self._jvm.Path(location)
        uri = path.toUri()
        if uri.getScheme() is None:
            return self._jvm.Path(f"file:{location}").toUri()
        return uri
