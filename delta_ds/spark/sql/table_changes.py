"""`table_changes('name', from[, to[, net, keys]])` and `table_changes_by_path('/path', ...)`: change feeds in SQL.

Source: delta-spark, `DeltaTableValueFunctions`, `CDCNameBased`, `CDCPathBased`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.catalog import (
    TABLE_CHANGES_ARGUMENTS,
    TABLE_CHANGES_BOUNDARY_TYPE,
    TABLE_CHANGES_NULL_BOUNDARY,
    TABLE_CHANGES_OF_OTHERS,
)
from delta_ds.exceptions import NotADeltaTableError
from delta_ds.spark.commands.handle import missing_at_path
from delta_ds.spark.engines.classic.function import Constant, constant_argument
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.session.catalog.places import find_table, name_parts
from delta_ds.spark.session.catalog.tables import table_held
from delta_ds.spark.session.reading import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.spark.base.kinds.java_object import JavaObject

BY_NAME, BY_PATH = "table_changes", "table_changes_by_path"
_VERSIONS = ("byte", "short", "integer", "long")
_MOMENTS = ("string", "timestamp", "timestamp_ntz", "date")


def changes_plan(spark: SparkSession, name: str, expressions: JavaObject) -> JavaObject:
    """The plan that a call of one of the functions stands for.

    Parameters
    ----------
    name
        Of the function, in any case.
    expressions
        Its arguments, a `Seq[Expression]`.
    """
    jvm, function = Jvm.of(spark), name.lower()
    arguments = [
        constant_argument(jvm, function, expressions.apply(number)) for number in range(expressions.size())
    ]
    return jvm.logical_plan(_changes(spark, function, arguments))


def feed_of_name(spark: SparkSession, table: str, options: str) -> JavaObject:
    """The plan of a read by name whose options ask for the change feed.

    Parameters
    ----------
    table
        The id by which the table is held.
    options
        Of the read, in JSON.
    """
    return Jvm.of(spark).logical_plan(read(spark, {**table_held(table).options, **json.loads(options)}))


def _changes(spark: SparkSession, function: str, arguments: Sequence[Constant]) -> DataFrame:
    needed = [*arguments[:1], *arguments[3:]]
    if len(arguments) not in (2, 3, 5) or any(one.text is None for one in needed):
        raise TABLE_CHANGES_ARGUMENTS(function=function, given=len(arguments))
    table = str(arguments[0].text)
    options = {"path": table} if function == BY_PATH else _options_of(spark, function, table)
    options["readChangeFeed"] = "true"
    options |= _boundary(function, "starting", arguments[1])
    # Without an end, net changes are of all up to the latest version.
    if len(arguments) == 3 or (len(arguments) == 5 and arguments[2].text is not None):
        options |= _boundary(function, "ending", arguments[2])
    options |= dict(zip(("net", "keys"), (str(one.text) for one in arguments[3:]), strict=False))
    try:
        return read(spark, options)
    except NotADeltaTableError as error:
        raise missing_at_path(table, error) from None


def _boundary(function: str, which: str, bound: Constant) -> dict[str, str]:
    """The option for the first or last version, or timestamp: the type tells, as the text of a number may be a year."""
    if bound.text is None:
        raise TABLE_CHANGES_NULL_BOUNDARY(function=function)
    if bound.type in _VERSIONS:
        return {f"{which}Version": bound.text}
    if bound.type.partition(" ")[0] not in _MOMENTS:
        raise TABLE_CHANGES_BOUNDARY_TYPE(
            function=function,
            causedBy=f"{which} option",
            expType=bound.type,
            supportedTypes=[*_VERSIONS, *_MOMENTS],
        )
    return {f"{which}Timestamp": bound.text}


def _options_of(spark: SparkSession, function: str, name: str) -> dict[str, str]:
    found: Any = find_table(spark, name_parts(spark, name))
    if found is None:
        spark.table(name)  # in Spark's words, where there is nothing of that name
        raise TABLE_CHANGES_OF_OTHERS(function=function, table=name)
    return {**found.store, "path": str(found.path)}
