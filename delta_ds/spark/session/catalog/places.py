"""Where new tables come to be: at a path, or under a name of the catalog with an entry of its own.

Tables that come to be without rows, at a path or under a name: one commit, whoever asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from delta_ds.api.delta_log import DeltaLog
from delta_ds.conditions.catalog import (
    CANNOT_WRITE_INTO_VIEW,
    CREATE_TABLE_SET_LOCATION,
    NOT_A_DELTA_TABLE_TO_REPLACE,
)
from delta_ds.conditions.tables import CANNOT_REPLACE_MISSING_TABLE
from delta_ds.kernel.format.options.parsing import is_of_store
from delta_ds.kernel.format.options.settings import default_properties
from delta_ds.kernel.transaction.alter import create
from delta_ds.records import dataclass, field
from delta_ds.spark.base.kinds import session_facts
from delta_ds.spark.base.kinds.session_kind import knows_names
from delta_ds.spark.base.table_names import is_ours
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.engines.connect.connect_bridge import open_log
from delta_ds.spark.session.catalog.classes import static
from delta_ds.spark.session.catalog.coordinated import NamedCatalog, place_options
from delta_ds.spark.session.catalog.entries import Entry, Metastore, local_path, stated_path
from delta_ds.spark.session.catalog.named import named_catalogs
from delta_ds.spark.session.catalog.tables import OpenTable, open_options, opened
from delta_ds.spark.session.catalog.updates import description_of, keeps_entries, renew
from delta_ds.spark.session.writes.write import NewTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# --- from the names of tables to the tables


def name_parts(spark: SparkSession, name: str) -> list[str]:
    """The parts of a name as Spark's parser reads it: ``a.`b.c` `` has two."""
    parts = spark._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(name)
    return [parts.apply(number) for number in range(parts.size())]


def find_entry(spark: SparkSession, parts: Sequence[str]) -> Entry | None:
    """The entry of the session catalog with a name, whatever its source; None where there is none."""
    *namespace, name = parts
    if namespace and namespace[0].lower() == "spark_catalog":
        namespace = namespace[1:]
    if len(namespace) > 1:
        return None
    return Metastore(Jvm.of(spark)).find(namespace, name)


def find_table(spark: SparkSession, parts: Sequence[str], *, views: bool = False) -> OpenTable | None:
    """The table of a name.

    Parameters
    ----------
    views
        Whether the name of a view stands for the table that it shows as it is.

    Returns
    -------
    OpenTable or None
        None where the name is that of no table, or of one of another source.
    """
    jvm = Jvm.of(spark)
    found = static(jvm, "Names").find(spark._jsparkSession, jvm.seq(parts), views)
    return None if found is None else opened(found)


def is_view(spark: SparkSession, parts: Sequence[str]) -> bool:
    """Whether a name is that of a view, temporary or of the session catalog."""
    jvm = Jvm.of(spark)
    if spark._jsparkSession.sessionState().catalog().isTempView(jvm.seq(parts)):
        return True
    found = None if len(parts) == 2 and is_ours(parts[0]) else find_entry(spark, parts)
    return found is not None and found.provider is None


def foreign_entry(spark: SparkSession, parts: Sequence[str]) -> Entry | None:
    """The entry of a table of another source; None for ours, for views, for paths and for names that are not there."""
    if not knows_names(spark):
        return None
    if len(parts) == 2 and is_ours(parts[0]):
        return None
    found = find_entry(spark, parts)
    return None if found is None or found.provider is None or is_ours(found.provider) else found


# --- where new tables come to be: at a path, or under a name of the catalog with an entry of its own

CREATE, REPLACE, CREATE_OR_REPLACE = "create", "replace", "create_or_replace"


@dataclass(frozen=True)
class Place:
    """Where a table comes to be.

    Attributes
    ----------
    path
        Its folder.
    managed
        Whether the folder belongs to the catalog.
    namespace, name
        Under which the catalog knows it; no name: it does not.
    entry
        The one that it has already.
    store
        Options of its store, and of the coordinator of its commits.
    catalog
        The catalog beside the session's that knows it, or will with its first version; None: there is none.
    is_there
        Whether that catalog has it already.
    """

    path: str
    managed: bool = False
    namespace: tuple[str, ...] = ()
    name: str | None = None
    entry: Entry | None = None
    store: Mapping[str, str] = field(default_factory=dict, repr=False)
    catalog: NamedCatalog | None = None
    is_there: bool = False

    @property
    def shown(self) -> str:
        """The table, for messages."""
        if self.catalog is not None and self.name is not None:
            return self.catalog.shown(self.namespace, self.name)
        return self.path if self.name is None else ".".join((*self.namespace, self.name))

    def register(self, spark: SparkSession, comment: str | None = None) -> None:
        """Store the entry, now that the table is there; nothing happens where it has one, or needs none.

        Parameters
        ----------
        comment
            Of the table, as its statement gives it.
        """
        if self.catalog is not None:
            return  # it learned of the table with its first version
        if self.name is None:
            return
        options = {**self.store, "path": self.path}
        if self.entry is not None:
            if keeps_entries(spark):
                renew(spark, self.entry, options)
            return
        description = None
        if keeps_entries(spark):
            description = description_of(spark, open_options(spark, self.shown, options).snapshot)
        Metastore(Jvm.of(spark)).create(
            self.namespace, self.name, self.path,
            managed=self.managed, comment=comment, description=description,
        )  # fmt: skip


def place_named(
    spark: SparkSession, namespace: Sequence[str], name: str, location: str | None, mode: str
) -> Place:
    """The place of a table of the catalog.

    Parameters
    ----------
    location
        As LOCATION gives it; None: that of its entry, or the catalog's own.
    mode
        `create`, `replace` or `create_or_replace`.

    Raises
    ------
    NotADeltaTableError
        `replace`, and there is none.
    NotADeltaTableError
        The name is that of a table of another source.
    UnsupportedOperationError
        It is that of a table at another location.
    """
    metastore = Metastore(Jvm.of(spark))
    metastore.require_schema(namespace)
    entry = metastore.find(namespace, name)
    if entry is None:
        if mode == REPLACE:
            raise CANNOT_REPLACE_MISSING_TABLE(tableName=".".join((*namespace, name)))
        if location is not None:
            path = stated_path(metastore.qualified_location(namespace, location))
            return Place(path, False, tuple(namespace), name)
        return Place(local_path(metastore.default_location(namespace, name)), True, tuple(namespace), name)
    if entry.provider is None:
        raise CANNOT_WRITE_INTO_VIEW(table=entry.full_name)
    if not is_ours(entry.provider):
        raise NOT_A_DELTA_TABLE_TO_REPLACE(tableName=entry.full_name, provider=entry.provider)
    if location is not None and stated_path(metastore.qualified_location(namespace, location)) != entry.path:
        raise CREATE_TABLE_SET_LOCATION(table=entry.full_name, location=entry.location, given=location)
    return Place(entry.path, entry.managed, tuple(namespace), name, entry)


def place_in_catalog(
    catalog: NamedCatalog, namespace: Sequence[str], name: str, location: str | None, mode: str
) -> Place:
    """The place of a table of a catalog beside the session's; arguments and errors as for `place_named`.

    A new one is begun in the catalog, which knows it when its first version is committed.
    """
    full_name = catalog.full_name(namespace, name)
    found = catalog.find(namespace, name)
    if found is None:
        if mode == REPLACE:
            raise CANNOT_REPLACE_MISSING_TABLE(tableName=catalog.shown(namespace, name))
        found, is_there = catalog.begin(namespace, name, location), False
    else:
        is_there = True
        if location is not None and stated_path(location) != found.location:
            raise CREATE_TABLE_SET_LOCATION(
                table=catalog.shown(namespace, name), location=found.location, given=location
            )
    path, store = place_options(catalog.options(full_name, found))
    return Place(path, found.managed, tuple(namespace), name, store=store, catalog=catalog, is_there=is_there)


def place_of(spark: SparkSession, identifier: str, location: str | None, mode: str) -> Place:
    """As `place_named`, from a name as users write it: `db.t`, or ``delta.`/path` ``."""
    parts = name_parts(spark, identifier)
    catalogs = named_catalogs(spark)
    if len(parts) == 2 and is_ours(parts[0]) and "/" in parts[1]:
        return Place(parts[1])
    if parts[0] not in catalogs and parts[0].lower() != "spark_catalog":
        parts = [*_current(spark, catalogs, len(parts) == 1), *parts]
    catalog = catalogs.get(parts[0]) if len(parts) > 1 else None
    if catalog is not None:
        return place_in_catalog(catalog, parts[1:-1], parts[-1], location, mode)
    if len(parts) > 1 and parts[0].lower() == "spark_catalog":
        parts = parts[1:]
    *namespace, name = parts
    if len(namespace) == 1 and is_ours(namespace[0]) and "/" in name:
        return Place(name)
    return place_named(spark, namespace, name, location, mode)


def _current(spark: SparkSession, catalogs: Mapping[str, NamedCatalog], with_schema: bool) -> list[str]:
    """What USE has put in front of names: one of our catalogs, and its namespace; nothing in the session's."""
    manager = spark._jsparkSession.sessionState().catalogManager()
    catalog = str(manager.currentCatalog().name())
    if catalog not in catalogs:
        return []
    return [catalog, *(manager.currentNamespace() if with_schema else ())]


def create_empty(spark: SparkSession, place: Place, table: NewTable) -> None:
    """Create or replace a table without rows; its entry is stored by `Place.register`.

    A new name for a table that is there takes that one as it is, which must be as described where it is described.

    Raises
    ------
    DeltaError
        What was asked for is not possible; the message names the column or property.
    """
    store = {name: text for name, text in table.options.items() if is_of_store(name)} | dict(place.store)
    log = open_log(spark, place.path, store)
    assert isinstance(log, DeltaLog)
    # A table that the catalog does not know by the name is taken over, and never replaced.
    known = place.entry is not None or place.is_there
    modes = {
        CREATE: create.CREATE if place.name is None else create.ADOPT,
        REPLACE: create.REPLACE,
        CREATE_OR_REPLACE: create.REPLACE_OR_CREATE if known else create.CREATE_OR_REPLACE,
    }
    create.create_table(
        log,
        table.schema,
        table.partitioning,
        table.properties,
        mode=modes[table.mode],
        description=table.comment,
        cluster_by=table.clustering or (),
        defaults=default_properties(session_facts.session_settings(spark)),
        managed=place.managed,
        without_columns=table.mode == CREATE,
        rules=session_facts.property_rules(spark),
    )
