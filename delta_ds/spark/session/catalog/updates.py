"""Entries of the metastore that hold what the log says, for readers that know no log: renewed by each commit.

Only in sessions that set `spark.databricks.delta.catalog.update.enabled`. What Delta itself reads is the log.

delta-spark lets properties that are gone, and comments that changed, stand until something else changes.

Source: delta-spark, `UpdateCatalog`, `CreateDeltaTableCommand.cleanupTableDefinition`.
"""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_ds.events.spark import ENTRY_NOT_RENEWED
from delta_ds.kernel.format.features import CLUSTERING
from delta_ds.kernel.format.options.settings import CATALOG_UPDATE, CATALOG_UPDATE_LONGEST
from delta_ds.kernel.transaction.alter.protocol import protocol_properties
from delta_ds.records import dataclass
from delta_ds.reporting.listeners import follow_commits
from delta_ds.spark.base.session_conf import is_set
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.engines.classic.load import open_reading
from delta_ds.spark.engines.portable.batch import Changes
from delta_ds.spark.session.catalog.entries import NO_COLUMNS, Description, Entry, Metastore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.reporting.listeners import Listening
    from delta_ds.reporting.reports import CommitReport
    from delta_ds.spark.base.kinds.java_object import JavaObject

# The property that Spark itself has for clustering columns.
_CLUSTERING = "clusteringColumns"
_PROBLEM = "delta.catalogUpdateError"
_TOO_LONG = "The schema contains a very long nested field and cannot be stored in the catalog."
_NOT_LATIN = "The schema contains non-latin encoding characters and cannot be stored in the catalog."


@dataclass(frozen=True)
class _Named:
    """A table that a session has named."""

    entry: Entry
    options: Mapping[str, str]


_lock = threading.Lock()
# By the addresses of the tables, and then by session and name. A session has one reference, which stays its own when it
# is gone; an id would be the next session's.
_named: dict[str, dict[tuple[weakref.ref[SparkSession], str], _Named]] = {}
_following: list[Listening] = []


def keeps_entries(spark: SparkSession) -> bool:
    """Whether a session wants entries to hold columns and properties."""
    return is_set(spark, CATALOG_UPDATE.full_name, False)


def follow(spark: SparkSession, entry: Entry, options: Mapping[str, str], snapshot: Snapshot) -> None:
    """Renew an entry after each commit that this process makes on its table from now on, where the session wants it.

    Parameters
    ----------
    options
        `path` and what the store of the table needs.
    """
    if not keeps_entries(spark):
        return
    with _lock:
        found = _Named(entry, dict(options))
        _named.setdefault(snapshot.storage.url, {})[weakref.ref(spark), entry.full_name] = found
        if not _following:
            _following.append(follow_commits(_renew))


def _renew(report: CommitReport) -> None:
    if report.error is not None:
        return
    with _lock:
        named = dict(_named.get(report.table, {}))
    for (session, _), found in named.items():
        spark = session()
        if spark is None or spark.sparkContext._jsc is None:
            _drop(session)
        elif keeps_entries(spark):
            renew(spark, found.entry, found.options)


def forget(spark: SparkSession) -> None:
    """Renew nothing any more for a session."""
    _drop(weakref.ref(spark))


def _drop(session: weakref.ref[SparkSession]) -> None:
    with _lock:
        for table in list(_named):
            kept = {key: found for key, found in _named[table].items() if key[0] is not session}
            if kept:
                _named[table] = kept
            else:
                del _named[table]
        if not _named:
            while _following:
                _following.pop().remove()


def renew(spark: SparkSession, entry: Entry, options: Mapping[str, str]) -> None:
    """Let an entry tell of the newest version; what goes wrong is told of, as the commit stands.

    An entry that is gone, names another place or tells of a later version by now, is left alone.
    """
    try:
        metastore = Metastore(Jvm.of(spark))
        now = metastore.find([entry.schema], entry.name)
        if now is None or now.location != entry.location:
            return
        rows = open_reading(spark, options).rows
        assert not isinstance(rows, Changes)
        description = description_of(spark, rows.snapshot)
        metastore.describe([entry.schema], entry.name, description, entry.location)
    except Exception as error:  # noqa: BLE001 - whatever it is, the commit is done
        ENTRY_NOT_RENEWED.log(table=entry.full_name, reason=error)


def description_of(spark: SparkSession, snapshot: Snapshot) -> Description:
    """What the entry of a table holds of a version."""
    metadata = snapshot.metadata
    schema, problem = metadata.schema_string, {}
    why = _not_stored(Jvm.of(spark).struct(schema), _longest(spark))
    if why is not None:
        schema, problem = NO_COLUMNS, {_PROBLEM: why}
    told = {
        **{name: text for name, text in metadata.configuration.items() if name != "path"},
        **protocol_properties(snapshot.protocol),
    }
    properties = {**told, **clustering_property(snapshot), **problem}
    # Spark stores an empty text where a comment is taken away, which some metastores do not tell from none.
    comment = metadata.description or None
    return Description(schema, properties, comment, snapshot.version, snapshot.timestamp)


def clustering_property(snapshot: Snapshot) -> dict[str, str]:
    """The clustering columns as Spark keeps them among the properties of a table; empty without the feature."""
    if not snapshot.protocol.supports(CLUSTERING):
        return {}
    return {_CLUSTERING: json.dumps(snapshot.clustering_columns, separators=(",", ":"))}


def _longest(spark: SparkSession) -> int:
    return int(str(spark.conf.get(CATALOG_UPDATE_LONGEST.full_name, CATALOG_UPDATE_LONGEST.default)))


def _not_stored(schema: JavaObject, longest: int) -> str | None:
    """Why Hive's metastore cannot hold a schema; None: it can."""
    for field in schema.fields():
        data_type = str(field.dataType().catalogString())
        if len(data_type) > longest:
            return _TOO_LONG
        if not (_is_latin(field.name()) and _is_latin(data_type)):
            return _NOT_LATIN
    return None


def _is_latin(text: str) -> bool:
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True
