"""`Handle`: a table in a session as commands hold it, opened by path or by name."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from delta_ds.conditions.session import (
    MISSING_DELTA_TABLE_AT_PATH,
    MISSING_DELTA_TABLE_NAME,
    MISSING_DELTA_TABLE_OF_OTHERS,
)
from delta_ds.exceptions import NotADeltaTableError, SchemaError, UnsupportedFeatureError
from delta_ds.kernel.log.snapshot import open_table_state
from delta_ds.records import dataclass, field, replace
from delta_ds.spark.base.kinds import session_facts
from delta_ds.spark.base.kinds.session_kind import knows_names, server_knows_names
from delta_ds.spark.base.table_names import DELTA, FORMAT, format_and_path
from delta_ds.spark.engines.connect.connect_bridge import ask, open_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.api.delta_log import DeltaLog
    from delta_ds.kernel.base.card import Card
    from delta_ds.spark.engines.connect.connect_bridge import Log


@dataclass(frozen=True)
class Handle:
    """A table as `DeltaTable` holds it.

    Attributes
    ----------
    spark
        The session, classic or of Spark Connect.
    log
        The table's log: of this process, or of the server.
    where
        The table as messages name it: a full path or URL without secrets.
    options
        Read options: `path`, and `storage.*` and `fs.*` settings.
    alias
        The name by which expressions may call the table.
    name
        Its full name in the catalog; None for a table that only its path names.
    opened
        What a notebook shows of it, as it was then.
    given
        The newest of the DataFrames of the table that its user was given: expressions may hold columns of them. On a
        server the qualifier of the columns of its client's.
    """

    spark: SparkSession
    log: Log
    where: str
    options: Mapping[str, str] = field(repr=False)
    alias: str | None = None
    name: str | None = None
    opened: Card | None = field(default=None, repr=False, compare=False)
    given: deque[DataFrame | str] = field(
        default_factory=partial(deque, maxlen=16), repr=False, compare=False
    )


_OURS = (FORMAT, DELTA)


def open_handle(
    spark: SparkSession, path: str, options: Mapping[str, str], alias: str | None = None
) -> Handle:
    """The table at a path.

    Parameters
    ----------
    spark
        A classic session or one of Spark Connect.
    path
        A local path or URL.
    options
        `storage.*` and `fs.*` settings.
    alias
        The name by which expressions may call it.

    Raises
    ------
    NotADeltaTableError
        There is no table.
    """
    session_facts.session_settings(spark)  # tells of those without effect
    log = open_log(spark, path, options)
    where, card = ask(log, _opened)
    given = {**options, "path": where if where.startswith("/") else str(path)}
    return Handle(spark, log, where, given, alias, opened=card)


def _opened(log: DeltaLog) -> tuple[str, Card | None]:
    """The full path or URL of an existing table, without secrets, and what a notebook shows of its latest version.

    Raises
    ------
    NotADeltaTableError
        There is no table.
    UnsupportedFeatureError
        It needs something of readers that is not supported.
    """
    try:
        card = log.snapshot()._card()
    except NotADeltaTableError as error:
        raise missing_at_path(log.storage.url, error) from error
    except (SchemaError, UnsupportedFeatureError):
        # Its history needs no columns. What does need them says what is wrong with them.
        open_table_state(log.storage)
        card = None
    return log.storage.url, card


def missing_at_path(path: str, error: NotADeltaTableError) -> NotADeltaTableError:
    """The error of a command on a path, of which `error` says that there is no table."""
    return MISSING_DELTA_TABLE_AT_PATH({"tableName": f"`{path}`"}, table=path, reason=error.text)


def open_name(spark: SparkSession, name: str) -> Handle:
    """The table that a name stands for: one of the catalog, ``pydelta.`/path` `` or ``delta.`/path` ``.

    Expressions may call one of the catalog by its name, as those of queries do.

    Raises
    ------
    UnsupportedOperationError
        The catalog has no such table, or cannot know it.
    NotADeltaTableError
        There is no table at the path.
    """
    source, path = format_and_path(name)
    if source in _OURS:
        return open_handle(spark, path, {})
    if knows_names(spark):
        from delta_ds.spark.session.catalog.places import find_entry, find_table, is_view, name_parts

        parts = name_parts(spark, name)
        found = find_table(spark, parts)
        if found is None and (is_view(spark, parts) or find_entry(spark, parts) is not None):
            raise MISSING_DELTA_TABLE_OF_OTHERS(tableName=name)
        if found is not None:
            handle = open_handle(spark, found.path, found.store, alias=parts[-1])
            shown = found.entry.full_name if found.entry is not None else found.catalog_name
            return handle if shown is None else replace(handle, name=shown)
    if server_knows_names(spark):
        from delta_ds.spark.base.sql_grammar.tokens import Tokens

        # The server knows its names.
        (table,) = spark.sql(f"DESCRIBE DETAIL {name}").collect()
        if table.format == DELTA:
            return open_handle(spark, table.location, {}, alias=Tokens(name).name()[-1])
    raise MISSING_DELTA_TABLE_NAME(tableName=name)
