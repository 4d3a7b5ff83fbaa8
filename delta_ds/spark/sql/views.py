"""Views as targets of statements: those that show a table as it is stand for it.

Source: delta-spark, `DeltaFullTable`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from delta_ds.conditions.catalog import HISTORICAL_VERSION_IS_NO_TARGET, VIEW_NOT_A_TABLE
from delta_ds.kernel.options.parsing import is_of_store
from delta_ds.spark.catalog.tables import OpenTable, open_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VERSIONS = {"versionasof": "versionAsOf", "timestampasof": "timestampAsOf"}


def open_view(spark: SparkSession, reading: str) -> OpenTable:
    """The table that is read by a view.

    Parameters
    ----------
    reading
        The options of the read, in JSON. Those that give other columns than the table's are seen by who asks.
    """
    store, said = _options(reading)
    version = {_VERSIONS[option]: text for option, text in said.items() if option in _VERSIONS}
    return open_options(spark, f"delta.`{said['path']}`", {**store, **version, "path": said["path"]})


def refuse_view(spark: SparkSession, name: str, readings: str) -> None:
    """Refuse a view that shows a part of a table, an older version of it, or more than one.

    Parameters
    ----------
    readings
        The options of the reads in it, each in a line of its own.
    """
    for reading in readings.splitlines():
        _, said = _options(reading)
        if said.keys() & _VERSIONS.keys():
            raise HISTORICAL_VERSION_IS_NO_TARGET(table=said["path"])
    raise VIEW_NOT_A_TABLE(name=name)


def _options(reading: str) -> tuple[dict[str, str], dict[str, str]]:
    """The options of a store, and the others by their names in lower case."""
    given: dict[str, str] = json.loads(reading)
    store = {option: text for option, text in given.items() if is_of_store(option)}
    return store, {option.lower(): text for option, text in given.items() if option not in store}
