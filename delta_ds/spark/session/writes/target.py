"""What a write needs to know of an existing table, asked of the log wherever that is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from delta_ds.exceptions import NotADeltaTableError
from delta_ds.kernel.format.options.parsing import is_of_store
from delta_ds.kernel.format.options.write import ERROR, IGNORE
from delta_ds.kernel.format.schema.field_metadata import OWN_VALUES
from delta_ds.kernel.transaction.write.target import table_exists
from delta_ds.records import dataclass
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.base.table_names import path_option
from delta_ds.spark.engines.connect.connect_bridge import ask, open_log
from delta_ds.spark.session.writes.request import WriteRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds.api.delta_log import DeltaLog


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
    log = open_log(spark, path_option(options) or "", {k: v for k, v in options.items() if is_of_store(k)})
    found = ask(log, describe)
    if found is None:
        return None
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
    table = find_table(spark, options)
    if table is None:
        raise NotADeltaTableError(
            f"{call} adds to a table that is there, but there is none at the path. Create it first, with "
            "df.write.format('pydelta').save(path) or df.writeTo(...).create(). Nothing was written",
            parameters={"tableName": f"`{dict(options).get('path', '')}`"},
        )
    return table


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
        snapshot = log.snapshot()
    except NotADeltaTableError:
        return None
    return {
        "address": log.storage.url,
        "version": snapshot.version,
        "schema": schemas.to_spark(snapshot.schema).json(),
        "properties": dict(snapshot.metadata.configuration),
        "partition_columns": list(snapshot.metadata.partition_columns),
        "own_values": [f.name for f in snapshot.schema if not OWN_VALUES.isdisjoint(f.metadata)],
    }
