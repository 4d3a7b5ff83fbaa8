"""Where new tables come to be: at a path, or under a name of the catalog with an entry of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_ds.conditions.catalog import CANNOT_WRITE_INTO_VIEW, CREATE_TABLE_SET_LOCATION, NOT_A_DELTA_TABLE
from delta_ds.conditions.tables import CANNOT_REPLACE_MISSING_TABLE
from delta_ds.records import dataclass
from delta_ds.spark.catalog.entries import Entry, Metastore, local_path, stated_path
from delta_ds.spark.catalog.names import name_parts
from delta_ds.spark.native.jvm import Jvm
from delta_ds.spark.table_names import is_ours

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    """

    path: str
    managed: bool = False
    namespace: tuple[str, ...] = ()
    name: str | None = None
    entry: Entry | None = None

    @property
    def shown(self) -> str:
        """The table, for messages."""
        return self.path if self.name is None else ".".join((*self.namespace, self.name))

    def register(self, spark: SparkSession) -> None:
        """Store the entry, now that the table is there; nothing happens where it has one, or needs none."""
        if self.name is not None and self.entry is None:
            Metastore(Jvm.of(spark)).create(self.namespace, self.name, self.path, managed=self.managed)


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
    UnsupportedOperationError
        The name is that of a table of another source, or of one at another location.
    """
    metastore = Metastore(Jvm.of(spark))
    metastore.require_schema(namespace)
    entry = metastore.find(namespace, name)
    if entry is None:
        if mode == REPLACE:
            raise CANNOT_REPLACE_MISSING_TABLE(tableName=".".join((*namespace, name)))
        if location is not None:
            return Place(stated_path(location), False, tuple(namespace), name)
        return Place(local_path(metastore.default_location(namespace, name)), True, tuple(namespace), name)
    if entry.provider is None:
        raise CANNOT_WRITE_INTO_VIEW(table=entry.full_name)
    if not is_ours(entry.provider):
        raise NOT_A_DELTA_TABLE(table=entry.full_name, provider=entry.provider)
    if location is not None and stated_path(location) != entry.path:
        raise CREATE_TABLE_SET_LOCATION(table=entry.full_name, location=entry.location, given=location)
    return Place(entry.path, entry.managed, tuple(namespace), name, entry)


def place_of(spark: SparkSession, identifier: str, location: str | None, mode: str) -> Place:
    """As `place_named`, from a name as users write it: `db.t`, or ``delta.`/path` ``."""
    parts = name_parts(spark, identifier)
    if len(parts) > 1 and parts[0].lower() == "spark_catalog":
        parts = parts[1:]
    *namespace, name = parts
    if len(namespace) == 1 and is_ours(namespace[0]) and "/" in name:
        return Place(name)
    return place_named(spark, namespace, name, location, mode)
