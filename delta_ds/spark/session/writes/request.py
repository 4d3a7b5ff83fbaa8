"""`WriteRequest`: what a write is asked to do, whichever way it came in; and the ways, one record each.

A way says what differs between the calls of users. All else is the same for all of them, and decided in one place:
options in `options.py`, columns in `columns.py`; schema, partitioning and what is replaced by the kernel.

Source: delta-spark 4.4, `DeltaAnalysis`, `DeltaCatalog` and `WriteIntoDelta`.

The options of a write, completed: by its call, by the settings of the session, by what processes need of it.

What a write needs to know of an existing table, asked of the log wherever that is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from delta_ds.conditions.options import REPLACE_WHERE_IN_OVERWRITE
from delta_ds.events.commands import OPTION_PASSED_OVER
from delta_ds.exceptions import NotADeltaTableError
from delta_ds.kernel.format.options.parsing import is_of_store
from delta_ds.kernel.format.options.settings import CONFLICT_DETECTION, SessionFacts, conflict_detection
from delta_ds.kernel.format.options.write import (
    DEFINITION_OPTION,
    ERROR,
    IGNORE,
    WRITE,
    NewTableOptions,
    with_call,
    with_settings,
)
from delta_ds.kernel.format.schema.field_metadata import OWN_VALUES
from delta_ds.kernel.log.segment import no_rows
from delta_ds.kernel.transaction.write.intent import table_exists
from delta_ds.records import dataclass
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.base.schema import quoted_list
from delta_ds.spark.base.table_names import path_option
from delta_ds.spark.engines.connect.connect_bridge import ask, open_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.api.delta_log import DeltaLog
    from delta_ds.spark.engines.connect.connect_bridge import Log


BY_NAME, BY_PLACE = "by name", "by place"


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which rows come to be written.

    Attributes
    ----------
    call
        What the user calls, for messages.
    columns
        By what columns of rows and table are matched: `BY_NAME` or `BY_PLACE`.
    fields
        The same of the fields of structs, where the rows have not all that the table has.
    casts
        Whether values are cast to the types of the table's columns, by the session's store assignment policy; else they
        have to fit.
    fills
        Whether columns that the rows lack are null before anything is checked.
    is_statement
        Whether it is one of SQL, which names what it does not give a value to.
    is_listed
        Whether it lists the columns: fields of structs then go by place, though their names would find them too.
    makes_named
        Whether it makes a table of a name: where there is one already, nothing else is looked at, as Spark itself asks
        its catalogs. By `save` options count first.
    """

    call: str
    columns: str = BY_NAME
    fields: str = BY_NAME
    casts: bool = False
    fills: bool = False
    is_statement: bool = False
    is_listed: bool = False
    makes_named: bool = False

    @property
    def is_aligned(self) -> bool:
        """Whether rows are looked at beside the table before they are written, which must be there."""
        return self.casts or self.columns == BY_PLACE


SAVE = Way("save")
MAKE_TABLE = Way("a call or statement that makes a table", makes_named=True)
APPEND_AS_TABLE = Way("saveAsTable in mode append", casts=True, fills=True)
INSERT_INTO = Way("insertInto", columns=BY_PLACE, fields=BY_PLACE, casts=True)
WRITE_TO = Way("writeTo", casts=True, fills=True)
WRITE_PARTITIONS = Way("writeTo(...).overwritePartitions", casts=True)
# Statements: of columns by their places, by their names, and of a list of columns.
INSERT = Way("INSERT", columns=BY_PLACE, fields=BY_PLACE, casts=True, is_statement=True)
INSERT_BY_NAME = Way("INSERT BY NAME", fields=BY_PLACE, casts=True, fills=True, is_statement=True)
INSERT_LISTED = Way("INSERT", fields=BY_PLACE, casts=True, fills=True, is_statement=True, is_listed=True)


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A write as it was asked for.

    Attributes
    ----------
    rows
        The rows.
    way
        How they came in.
    mode
        `append`, `overwrite`, `error` or `ignore`.
    options
        As given, names in any case; `path` and what the filesystem needs among them.
    partition_by, cluster_by
        Columns that the call names; empty: it names none.
    replaced
        The condition in SQL of the rows that the call says to replace; None: it says none.
    by_partition
        The call says to replace the partitions that are written to.
    definition
        What a statement says of the table that it makes with these rows.
    replaces_table
        The table that is there goes with its description, and not only its rows.
    """

    rows: DataFrame
    way: Way
    mode: str
    options: Mapping[str, str]
    partition_by: Sequence[str] = ()
    cluster_by: Sequence[str] = ()
    replaced: str | None = None
    by_partition: bool = False
    definition: NewTableOptions | None = None
    replaces_table: bool = False


_EVERYTHING = "true"


def complete_options(request: WriteRequest, facts: SessionFacts) -> dict[str, str]:
    """All options of a write, as the data source and the native writer take them.

    Raises
    ------
    InvalidOptionError
        An option contradicts the call, or a setting has a value that it does not take.
    """
    options = with_layout(request.options, request.partition_by, request.cluster_by)
    if request.mode in (ERROR, IGNORE):
        options = with_call(options, "ifExists", request.mode)
    if request.replaces_table:
        options = with_call(options, "replaceTable", "true")
    if request.by_partition:
        options = _with_dynamic_overwrite(options)
    elif request.replaced is not None and request.replaced != _EVERYTHING:
        if given(options, "replaceWhere") is not None:
            raise REPLACE_WHERE_IN_OVERWRITE()
        options["replaceWhere"] = request.replaced
    if request.definition is not None:
        options = with_call(options, DEFINITION_OPTION, request.definition.text())
    return with_facts(options, facts)


def with_facts(options: Mapping[str, str], facts: SessionFacts, *, streaming: bool = False) -> dict[str, str]:
    """Options completed by the session, see `with_settings`.

    Raises
    ------
    InvalidOptionError
        A value that a setting does not take.
    """
    from delta_ds.kernel.commands.optimize.auto_compact import auto_compaction_of

    # Refused here, and not after the commit.
    auto_compaction_of(facts.settings)
    conflict_detection(facts.settings.get(CONFLICT_DETECTION))
    return with_settings(options, facts, streaming=streaming)


def with_layout(
    options: Mapping[str, str], partition_by: Sequence[str], cluster_by: Sequence[str]
) -> dict[str, str]:
    """Options with the partitioning and clustering that calls have said; each may be said once."""
    complete = dict(options)
    if partition_by:
        complete = with_call(complete, "partitionBy", quoted_list(partition_by))
    if cluster_by:
        complete = with_call(complete, "clusterBy", quoted_list(cluster_by))
    return complete


def given(options: Mapping[str, str], name: str) -> str | None:
    """The text of an option, in any case of its name; None where it is not given."""
    return next((text for known, text in options.items() if known.lower() == name.lower()), None)


def _with_dynamic_overwrite(options: Mapping[str, str]) -> dict[str, str]:
    """Options of a call that replaces partitions, whatever they say of it themselves, as in delta-spark."""
    name = "partitionOverwriteMode"
    text = given(options, name)
    if text is not None and not WRITE.parse({name: text}, "UTC").values["dynamic_partitions"]:
        hint = "the call replaces the partitions that it writes to"
        OPTION_PASSED_OVER.log(option=name, kind="write", hint=hint)
    others = {known: text for known, text in options.items() if known.lower() != name.lower()}
    return {**others, name: "dynamic"}


@dataclass(frozen=True, slots=True)
class Table:
    """The latest version of a table.

    Attributes
    ----------
    address, version
        Its full path or URL, without secrets; its latest version.
    schema
        As users see it.
    properties
        Of its metadata.
    partition_columns
        Their names.
    own_values
        The columns that get a value where rows have none: generated and identity columns, and defaults.
    """

    address: str
    version: int
    schema: StructType
    properties: Mapping[str, str]
    partition_columns: Sequence[str] = ()
    own_values: frozenset[str] = frozenset()


def find_table(spark: SparkSession, options: Mapping[str, str]) -> Table | None:
    """The table at the path of a write's options; None where there is none.

    Parameters
    ----------
    spark
        The session: in one of Spark Connect, the server looks.
    options
        `path`, and what the filesystem needs; others are not looked at.
    """
    found = ask(_log_of(spark, options), describe)
    return None if found is None else _table(found)


def _log_of(spark: SparkSession, options: Mapping[str, str]) -> Log:
    return open_log(spark, path_option(options) or "", {k: v for k, v in options.items() if is_of_store(k)})


def _table(found: Mapping[str, Any]) -> Table:
    return Table(
        found["address"],
        found["version"],
        StructType.fromJson(json.loads(found["schema"])),
        found["properties"],
        tuple(found["partition_columns"]),
        frozenset(found["own_values"]),
    )


def existing_table(spark: SparkSession, options: Mapping[str, str], call: str) -> Table:
    """The table at the path of a write's options, which must be there; arguments as for `find_table`.

    Raises
    ------
    NotADeltaTableError
        It is not there; `call` says who asked.
    """
    try:
        return _table(ask(_log_of(spark, options), describe_existing))
    except NotADeltaTableError as error:
        raise NotADeltaTableError(
            f"{error.text}. {call} adds to a table that is there: create it first, with "
            "df.write.format('pydelta').save(path) or df.writeTo(...).create(). Nothing was written",
            condition=error.condition,
            parameters=error.parameters,
        ) from None


def leaves_table(spark: SparkSession, request: WriteRequest) -> bool:
    """Whether a request that makes a table finds one that it leaves as it is.

    Raises
    ------
    TableExistsError
        It finds one, and its mode is `error`.
    """
    if request.mode not in (ERROR, IGNORE) or path_option(request.options) is None:
        return False
    found = find_table(spark, request.options)
    if found is None:
        return False
    if request.mode == ERROR:
        raise table_exists(request.definition, found.version, found.address)
    return True


def describe(log: DeltaLog) -> dict[str, Any] | None:
    """What `Table` holds, in JSON's types; None where there is no table."""
    try:
        return describe_existing(log)
    except NotADeltaTableError:
        return None


def describe_existing(log: DeltaLog) -> dict[str, Any]:
    """What `Table` holds, in JSON's types, of a table that rows shall go to.

    Raises
    ------
    NotADeltaTableError
        There is none.
    """
    try:
        snapshot = log.snapshot()
    except NotADeltaTableError as error:
        raise no_rows(log.storage, error) from None
    return {
        "address": log.storage.url,
        "version": snapshot.version,
        "schema": schemas.to_spark(snapshot.schema).json(),
        "properties": dict(snapshot.metadata.configuration),
        "partition_columns": list(snapshot.metadata.partition_columns),
        "own_values": [f.name for f in snapshot.schema if not OWN_VALUES.isdisjoint(f.metadata)],
    }
