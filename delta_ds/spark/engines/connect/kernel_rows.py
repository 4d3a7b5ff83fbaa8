"""DELETE, UPDATE and MERGE of a client, run by the kernel in a process of a server of others.

Such a server runs nothing of this package but its data source. A command whose expressions the kernel reads is sent
there as a whole, and is done where the log and the files are; the rows of a MERGE come with the job that sends it. What
the kernel cannot do it refuses before anything is written, and the client lets queries of Spark find the rows.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_ds.api.delta_log import DeltaLog
from delta_ds.conditions.dml import COMMAND_NEEDS_SPARK
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.commands.dml.delete import delete_rows
from delta_ds.kernel.commands.dml.in_process import CommandSettings
from delta_ds.kernel.commands.dml.update import update_rows
from delta_ds.kernel.commands.merge.clauses import MergeRequest, read_source
from delta_ds.kernel.commands.merge.command import merge
from delta_ds.kernel.commands.optimize.auto_compact import auto_compaction_of, is_enabled
from delta_ds.kernel.format.operations import DELETE, MERGE, UPDATE
from delta_ds.kernel.format.schema.types import StructType, without_metadata
from delta_ds.spark.base.query_needs import parsed_text
from delta_ds.spark.engines.connect.expressions import path_of_name

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import SparkSession

    from delta_ds.kernel.format.expressions.tree import Expression


def delete_in_kernel(
    log: DeltaLog, predicate: Expression | None, settings: CommandSettings, text: str | None
) -> None:
    """See `kernel.commands.dml.delete.delete_rows`."""
    _check(log, settings, DELETE.name)
    delete_rows(log, predicate, settings, text)


def update_in_kernel(
    log: DeltaLog,
    updates: Mapping[str, str | Expression],
    predicate: Expression | None,
    settings: CommandSettings,
    text: str | None,
) -> None:
    """See `kernel.commands.dml.update.update_rows`."""
    _check(log, settings, UPDATE.name)
    update_rows(log, updates, predicate, settings, text)


def merge_in_kernel(log: DeltaLog, rows: pa.Table, request: MergeRequest, schema: StructType) -> None:
    """See `kernel.commands.merge.command.merge`.

    Parameters
    ----------
    rows
        The source.
    schema
        Its columns, as Spark has them.
    """
    _check(log, request.settings, MERGE.name)
    try:
        source = read_source(rows, request.settings.timezone)
    except (ValueError, TypeError, NotImplementedError, DeltaError) as error:
        raise _needs_spark(
            log, MERGE.name, f"types of the source, which Arrow does not take: {error}"
        ) from error
    given, found = (
        [(field.name, without_metadata(field.type)) for field in each] for each in (schema, source.schema)
    )
    if given != found:
        raise _needs_spark(log, MERGE.name, "types of the source, which Arrow holds in another form")
    merge(log, source, request)


def _check(log: DeltaLog, settings: CommandSettings, operation: str) -> None:
    facts = settings.facts
    compaction = auto_compaction_of({} if facts is None else facts.settings)
    if is_enabled(log.open_snapshot(settings.version).metadata.configuration, compaction):
        raise _needs_spark(log, operation, "files are compacted after it")


def _needs_spark(log: DeltaLog, operation: str, reason: str) -> DeltaError:
    return COMMAND_NEEDS_SPARK(operation=operation, table=log.storage.url, reason=reason)


# --- whole expressions, as SQL that the kernel may read

_OPERATORS = {
    "==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>", "+": "+", "-": "-", "*": "*",
    "/": "/", "%": "%", "and": "AND", "or": "OR",
}  # fmt: skip
_EPOCH = dt.date(1970, 1, 1)
# As programs write them, expressions of more levels are left to Spark.
_MOST_LEVELS = 50
_SUFFIXES = {"byte": "Y", "short": "S", "integer": "", "long": "L"}


def text_of(column: SparkColumn, spark: SparkSession) -> str | None:
    """SQL that means what an expression of a client means; None: that is not known."""
    return _sql(column.to_plan(spark.client), _MOST_LEVELS)  # type: ignore[operator]


def _sql(expression: Any, levels: int) -> str | None:
    kind = expression.WhichOneof("expr_type")
    if kind == "expression_string":
        text = expression.expression_string.expression
        return f"({text})" if parsed_text(text, None) else None
    if kind == "unresolved_attribute":
        attribute = expression.unresolved_attribute
        path = path_of_name(attribute.unparsed_identifier)
        of_a_frame = attribute.HasField("plan_id") or attribute.is_metadata_column
        if of_a_frame or not path:
            return None
        # All in backticks: words such as `null` are names here.
        return ".".join("`" + name.replace("`", "``") + "`" for name in path)
    if kind == "literal":
        return _sql_literal(expression.literal)
    function = expression.unresolved_function
    if kind != "unresolved_function" or not levels:
        return None
    if function.is_user_defined_function or function.is_distinct or function.is_internal:
        return None
    known = [_sql(argument, levels - 1) for argument in function.arguments]
    arguments = [text for text in known if text is not None]
    return _sql_call(function.function_name, arguments) if len(arguments) == len(known) else None


def _sql_call(name: str, arguments: Sequence[str]) -> str | None:
    lower = name.lower()
    if lower in _OPERATORS:
        return f"({f' {_OPERATORS[lower]} '.join(arguments)})" if len(arguments) > 1 else None
    if lower == "in":
        return f"({arguments[0]} IN ({', '.join(arguments[1:])}))" if len(arguments) > 1 else None
    if lower == "negative":
        return f"(- {arguments[0]})"
    return f"{lower}({', '.join(arguments)})" if re.fullmatch("[a-z_][a-z0-9_]*", lower) else None


def _sql_literal(literal: Any) -> str | None:
    kind = literal.WhichOneof("literal_type")
    value = getattr(literal, kind)
    if kind == "null":
        return "NULL"
    if kind == "boolean":
        return str(value).lower()
    if kind in _SUFFIXES:
        return f"{value}{_SUFFIXES[kind]}" if value >= 0 else f"({value}{_SUFFIXES[kind]})"
    if kind == "double" and abs(value) < 1e16 and "e" not in repr(value):
        return f"{value!r}D" if value >= 0 and repr(value)[0] != "-" else f"({value!r}D)"
    # What escapes characters, and what quotes texts, settings of the session say.
    if kind == "string" and value.isprintable() and not set(value) & set("'\"\\"):
        return f"'{value}'"
    return f"DATE'{_EPOCH + dt.timedelta(days=value)}'" if kind == "date" else None
