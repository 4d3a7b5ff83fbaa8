"""What the JVM asks: Spark's parser, catalog and analyser, through `Python.java`.

Each question is a function of the session and what the JVM hands over; its error is given back, to be thrown there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from delta_ds.conditions.catalog import (
    CATALOG_CANNOT,
    HISTORICAL_VERSION_IS_NO_TARGET,
    NO_TABLE_AT_PATH,
    VIEW_NOT_A_TABLE,
)
from delta_ds.events.spark import ANSWER_FAILED
from delta_ds.exceptions import DeltaConcurrentModificationException, DeltaError, NotADeltaTableError
from delta_ds.kernel.format.operations import DELETE, MERGE, UPDATE
from delta_ds.kernel.format.options.parsing import is_of_store
from delta_ds.redaction import redacted
from delta_ds.spark.base.kinds.session_kind import answers_jvm
from delta_ds.spark.base.sql_grammar.grammar import parse
from delta_ds.spark.base.sql_grammar.tokens import SqlSyntaxError
from delta_ds.spark.base.table_names import path_missing, path_option
from delta_ds.spark.commands.delete import run_truncate
from delta_ds.spark.commands.dml_target import explained
from delta_ds.spark.commands.handle import missing_at_path, open_handle
from delta_ds.spark.engines.classic.jvm import Jvm, java_error, reported
from delta_ds.spark.errors.translation import as_delta_error, report_text
from delta_ds.spark.session import writing
from delta_ds.spark.session.catalog.classes import conflict, session_of
from delta_ds.spark.session.catalog.coordinated import place_options
from delta_ds.spark.session.catalog.entries import Entry, check_address
from delta_ds.spark.session.catalog.named import named_catalog
from delta_ds.spark.session.catalog.tables import (
    Held,
    OpenTable,
    described_table,
    entry_columns,
    held,
    open_options,
    open_table,
    opened,
    scanned,
    table_held,
)
from delta_ds.spark.session.streams import (
    check_schema_locations,
    check_stream_mode,
    stream_sink,
    stream_source,
    streamed_table,
)
from delta_ds.spark.sql import dml, show
from delta_ds.spark.sql.alter import alter_table
from delta_ds.spark.sql.client_calls import answer_call
from delta_ds.spark.sql.create import check_layout, create_like, create_table
from delta_ds.spark.sql.dml import insert
from delta_ds.spark.sql.show import changes_plan, feed_of_name
from delta_ds.spark.sql.statements import columns_of, execute

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from delta_ds.spark.base.kinds.java_object import JavaObject, JavaValue

# --- views as targets of statements: those that show a table as it is stand for it
# Source: delta-spark, `DeltaFullTable`.

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


# --- what the JVM asks: Spark's parser, catalog and analyser, through `Python.java`

_COUNTED = "num_affected_rows bigint"
_ROW_COUNTS = {
    DELETE.name: _COUNTED,
    UPDATE.name: _COUNTED,
    MERGE.name: f"{_COUNTED}, num_updated_rows bigint, num_deleted_rows bigint, num_inserted_rows bigint",
}
_NOTHING: Mapping[str, Any] = {"type": "struct", "fields": []}


@answers_jvm
class Answers:
    """Answers the JVM: a `scala.Function8`, see `Python.java`.

    Parameters
    ----------
    context
        The `SparkContext`, whose sessions ask.
    """

    def __init__(self, context: SparkContext) -> None:
        self._context = context

    def serve(self, context: SparkContext) -> None:
        """Answer for another context from now on: one JVM may have several, one after the other."""
        self._context = context

    def apply(self, what: str, identity: int, jsession: JavaObject, *arguments: Any) -> object:
        """The answer, or the exception to be thrown."""
        what, _, count = what.partition(":")
        spark = session_of(self._context, identity, jsession)
        try:
            return _ANSWERS[what](spark, *arguments[: int(count)])
        except Exception as error:
            return _thrown(Jvm.of(spark), what, error)

    class Java:
        implements: ClassVar[list[str]] = ["scala.Function8"]


def _thrown(jvm: Jvm, what: str, error: Exception) -> JavaValue:
    from py4j.protocol import Py4JJavaError

    ours = as_delta_error(error)
    if ours is not None:
        # In the form from which it is made again where pyspark converts failures.
        if isinstance(ours, DeltaConcurrentModificationException):
            return conflict(jvm, ours, report_text(ours))
        return reported(jvm, ours)
    origin = java_error(error)
    if isinstance(origin, Py4JJavaError):
        return origin.java_exception
    ANSWER_FAILED.log_traceback(what=what)
    return jvm.jvm.org.apache.spark.SparkException(redacted(f"{type(error).__name__}: {error}"))


# --- tables


def _open(
    spark: SparkSession,
    path: str | None,
    name: str,
    entry: str | None,
    version: str | None,
    timestamp: str | None,
) -> OpenTable:
    catalog_entry = None if entry is None else Entry(**json.loads(entry))
    shown = name if catalog_entry is None else catalog_entry.full_name
    return open_table(spark, path, shown, catalog_entry, version, timestamp)


def _open_for_command(spark: SparkSession, path: str, name: str) -> OpenTable:
    try:
        return open_table(spark, path, name, None)
    except NotADeltaTableError as error:
        raise missing_at_path(path, error) from None


def _open_in_catalog(
    spark: SparkSession, catalog: str, namespace: str, name: str, version: str | None, timestamp: str | None
) -> OpenTable | None:
    named = named_catalog(spark, catalog)
    parts = json.loads(namespace)
    managed = named.find(parts, name)
    if managed is None:
        return None
    path, store = place_options(named.options(named.full_name(parts, name), managed))
    table = open_table(spark, path, named.shown(parts, name), None, version, timestamp, store)
    table.catalog_name = table.name
    return table


def _of_catalog(answer: Callable[..., object]) -> Callable[..., object]:
    """What a catalog, which is named first, answers to the parts of a namespace and what else is asked."""

    def asked(spark: SparkSession, catalog: str, namespace: str, *arguments: Any) -> object:
        return answer(named_catalog(spark, catalog), json.loads(namespace), *arguments)

    return asked


def _names(names: Sequence[Sequence[str]] | Sequence[str]) -> str:
    return json.dumps({"names": names})


def _cannot_in_catalog(spark: SparkSession, catalog: str, what: str) -> None:
    raise CATALOG_CANNOT(what=what, catalog=catalog, coordinator=named_catalog(spark, catalog).describe())


def _open_source(spark: SparkSession, options: str) -> OpenTable | None:
    texts = json.loads(options)
    path = next((text for name, text in texts.items() if name.lower() == "path"), None)
    if path is None:
        return None
    name = f"delta.`{path}`"
    try:
        return open_options(spark, name, texts)
    except NotADeltaTableError:
        return None
    except DeltaError:
        # Spark asks for streams and writes as it does for a read, which says itself what is wrong with its options.
        with suppress(NotADeltaTableError):
            return streamed_table(spark, name, texts) or described_table(spark, name, texts)
        return None


def _no_table(spark: SparkSession, options: str) -> None:
    texts = json.loads(options)
    path = path_option(texts)
    if path is None:
        raise path_missing()
    described_table(spark, f"delta.`{path}`", texts)  # says what is missing
    raise NO_TABLE_AT_PATH(path=path)


def _exists(spark: SparkSession, path: str) -> bool:
    try:
        open_table(spark, path, path, None)
    except NotADeltaTableError:
        return False
    return True


def _scan(spark: SparkSession, table: str | None, options: str | None) -> JavaObject:
    if table is None:
        # A temporary view with columns of its own, which Spark makes of no more than the format.
        raise path_missing()
    return scanned(spark, table_held(table), {} if options is None else json.loads(options))


def _alter(spark: SparkSession, jtable: JavaObject, changes: JavaObject, columns: str | None) -> None:
    alter_table(spark, opened(jtable), [dict(change) for change in changes], columns)


def _truncate(spark: SparkSession, jtable: JavaObject) -> None:
    table = opened(jtable)
    run_truncate(open_handle(spark, table.path, table.store))


def _save(spark: SparkSession, mode: str, options: JavaObject, rows: JavaObject) -> None:
    """`df.write.format("delta").save()` of another language, or one that nobody has replaced."""
    texts = dict(options)
    partition_by = json.loads(texts.pop("__partition_columns", "[]"))
    cluster_by = json.loads(texts.pop("__clustering_columns", "[]"))
    writing.save(DataFrame(rows, spark), None, mode, texts, partition_by, cluster_by)


# --- statements


def _parse(spark: SparkSession, text: str, parameters: JavaObject | None) -> JavaValue | None:
    """The kind of a statement, what holds it, its id and the columns of its answer; or the error: null first.

    Or one text alone, which says the same in Spark's own grammar.
    """
    jvm = Jvm.of(spark)
    literals = _literals(parameters)
    try:
        statement = parse(text, literals)
    except SqlSyntaxError as error:
        parts = [None, error.condition, jvm.map(error.parameters), error.offset]
    else:
        if statement is None:
            same = dml.in_grammar_of_spark(spark, text, literals)
            if same is None:
                return None
            parts = [same]
        else:
            holder = Held(statement)
            parts = [type(statement).__name__, holder, holder.id, _json(columns_of(statement))]
    java_list = jvm.jvm.java.util.ArrayList()
    for one in parts:
        java_list.add(one)
    return java_list


def _literals(parameters: JavaObject | None) -> dict[str, str] | list[str] | None:
    """SQL literals of the parameters of `spark.sql`: by name, or in their order."""
    if parameters is None:
        return None
    if parameters.getClass().getSimpleName() == "NamedParameterContext":
        entries = parameters.params().toSeq()
        return {entries.apply(i)._1(): entries.apply(i)._2().sql() for i in range(entries.size())}
    values = parameters.params()
    return [values.apply(i).sql() for i in range(values.size())]


def _answer(spark: SparkSession, kind: str, jtable: JavaObject) -> str:
    if kind == show.SHOW_CREATE:
        return _json(show.SHOW_CREATE_COLUMNS)
    if kind == show.SHOW_PARTITIONS:
        return show.partition_columns(opened(jtable)).json()
    if kind == show.TRUNCATE_PARTITION:
        show.refuse_truncate(opened(jtable))
    return _json(_ROW_COUNTS[kind])


def _json(columns: str) -> str:
    return StructType.fromDDL(columns).json() if columns else json.dumps(_NOTHING)


def _run(spark: SparkSession, kind: str, what: JavaObject) -> JavaValue | None:
    if kind == "CALL":
        return answer_call(spark, what)
    if kind in _COMMANDS:
        answer = _COMMANDS[kind](spark, what)
    else:
        answer = execute(spark, held(what[1]).value)
    return None if answer is None else answer._jdf


def _explain(spark: SparkSession, kind: str, what: JavaObject) -> str:
    return explained(lambda: _COMMANDS[kind](spark, what))


_COMMANDS: Mapping[str, Callable[[SparkSession, JavaObject], DataFrame | None]] = {
    DELETE.name: dml.delete,
    UPDATE.name: dml.update,
    MERGE.name: dml.merge,
    "INSERT": insert,
    "INSERT OVERWRITE": insert,
    "CREATE TABLE LIKE": create_like,
    show.SHOW_PARTITIONS: show.show_partitions,
    show.SHOW_CREATE: show.show_create,
}
_ANSWERS: Mapping[str, Callable[..., object]] = {
    "open": _open,
    "open_for_command": _open_for_command,
    "open_source": _open_source,
    "no_table": _no_table,
    "open_view": open_view,
    "refuse_view": refuse_view,
    "check_address": lambda spark, address: check_address(address),
    "check_layout": check_layout,
    "catalog_open": _open_in_catalog,
    "catalog_has_table": _of_catalog(lambda catalog, parts, name: catalog.find(parts, name) is not None),
    "catalog_drop": _of_catalog(lambda catalog, parts, name: catalog.drop(parts, name)),
    "catalog_namespaces": _of_catalog(lambda catalog, above: _names(catalog.namespaces(above))),
    "catalog_has_namespace": _of_catalog(lambda catalog, parts: catalog.has_namespace(parts)),
    "catalog_create_namespace": _of_catalog(
        lambda catalog, parts, properties: catalog.create_namespace(parts, json.loads(properties))
    ),
    "catalog_drop_namespace": _of_catalog(
        lambda catalog, parts, cascade: catalog.drop_namespace(parts, cascade)
    ),
    "catalog_tables": _of_catalog(lambda catalog, parts: _names(catalog.tables(parts))),
    "catalog_cannot": _cannot_in_catalog,
    "entry_columns": entry_columns,
    "exists": _exists,
    "drop_path": _exists,  # as with delta-spark, a table that only its path names stays
    "scan": _scan,
    "create": lambda spark, definition, rows: create_table(spark, definition, None),
    "alter": _alter,
    "truncate": _truncate,
    "save": _save,
    "stream_source": stream_source,
    "stream_sink": stream_sink,
    "stream_mode": check_stream_mode,
    "stream_locations": check_schema_locations,
    "parse": _parse,
    "table_function": changes_plan,
    "feed_of_name": feed_of_name,
    "answer": _answer,
    "run": _run,
    "explain": _explain,
}
