"""`table_changes('name', from[, to[, net, keys]])` and `table_changes_by_path('/path', ...)`: change feeds in SQL.

Source: delta-spark, `DeltaTableValueFunctions`, `CDCNameBased`, `CDCPathBased`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.catalog import TABLE_CHANGES_ARGUMENTS
from delta_ds.conditions.session import MISSING_DELTA_TABLE_NAME
from delta_ds.spark.catalog.names import find_table, name_parts
from delta_ds.spark.native.function import constant_argument
from delta_ds.spark.native.jvm import Jvm
from delta_ds.spark.session.reading import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BY_NAME, BY_PATH = "table_changes", "table_changes_by_path"


def changes_plan(spark: SparkSession, name: str, expressions: Any) -> Any:
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


def _changes(spark: SparkSession, function: str, arguments: Sequence[str | None]) -> DataFrame:
    # Without an end, net changes are of all up to the latest version.
    needed = [one for at, one in enumerate(arguments) if at != 2 or len(arguments) != 5]
    if len(arguments) not in (2, 3, 5) or any(one is None for one in needed):
        raise TABLE_CHANGES_ARGUMENTS(function=function, given=len(arguments))
    table, *bounds = map(str, [one for one in arguments[:3] if one is not None])
    options = {"path": table} if function == BY_PATH else _options_of(spark, table)
    options["readChangeFeed"] = "true"
    for which, bound in zip(("starting", "ending"), bounds, strict=False):
        is_version = bound.lstrip("-").isdigit()
        options[f"{which}{'Version' if is_version else 'Timestamp'}"] = bound
    options |= dict(zip(("net", "keys"), map(str, arguments[3:]), strict=False))
    return read(spark, options)


def _options_of(spark: SparkSession, name: str) -> dict[str, str]:
    found: Any = find_table(spark, name_parts(spark, name))
    if found is None:
        spark.table(name)  # in Spark's words, where there is nothing of that name
        raise MISSING_DELTA_TABLE_NAME(tableName=name)
    return {**found.store, "path": str(found.path)}
