"""The session integration of `spark.readStream` and `df.writeStream`, and of streams that Spark itself resolves.

Spark does not tell a data source that its options are those of a stream, passes over `partitionBy` and `clusterBy` of a
stream without a word, has no streams of tables by path, and refuses output mode `update` without saying what to do. A
stream that the JVM has resolved (`SELECT * FROM STREAM t`, clients of a server that registered nothing, pipelines) is
told the same, and read and written by the data source too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql.types import StructType

from delta_ds.conditions.record import WRITTEN_BY_OTHER_FORMAT
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.format.options.parsing import is_of_store
from delta_ds.kernel.format.options.settings import SCHEMA_LOCATION_ANYWHERE
from delta_ds.kernel.transaction.write.intent import check_mode, stream_intent
from delta_ds.spark.base.kinds.frames import active
from delta_ds.spark.base.kinds.kind import is_connect
from delta_ds.spark.base.kinds.sealed import seal
from delta_ds.spark.base.kinds.session_facts import facts_of, with_facts_of_reads, with_session_settings
from delta_ds.spark.base.kinds.session_kind import knows_names
from delta_ds.spark.base.schema import to_kernel
from delta_ds.spark.base.session_conf import has_catalog, is_set, source_in_python
from delta_ds.spark.base.table_names import (
    FORMAT,
    is_ours,
    path_of,
    path_option,
    unknown_to_catalogs,
    with_path,
    without_path,
)
from delta_ds.spark.engines import monkeypatch
from delta_ds.spark.engines.connect.connect_bridge import ask, open_log
from delta_ds.spark.engines.connect.log_calls import check_sources
from delta_ds.spark.engines.portable.source import DeltaSource
from delta_ds.spark.engines.portable.stream_source import (
    STREAM_MARK,
    check_given_schema,
    check_tracked,
    columns_of,
    mark,
    open_source,
)
from delta_ds.spark.errors.translation import delta_errors
from delta_ds.spark.session import state
from delta_ds.spark.session.catalog.tables import StreamedTable, table_held
from delta_ds.spark.session.writes.request import with_facts, with_layout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Arguments of `toTable` that `start` does not have, or not here.
_OF_TABLES = ("tableName", "format")

# Whether a session has the integration installed.
_IsInstalled: TypeAlias = Callable[[Any], bool]


def patches(
    connect: bool, is_installed: _IsInstalled
) -> list[tuple[type, str, Callable[[Any, dict[str, Any]], bool], monkeypatch.Handler]]:
    """The replacements for the methods that end a streaming read or write."""
    if connect:
        from pyspark.sql.connect.streaming.readwriter import DataStreamReader as ConnectReader
        from pyspark.sql.connect.streaming.readwriter import DataStreamWriter as ConnectWriter

        reader, writer, reads_in, writes_in = ConnectReader, ConnectWriter, "_client", "_session"
    else:
        from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

        reader, writer, reads_in, writes_in = DataStreamReader, DataStreamWriter, "_spark", "_spark"  # type: ignore[assignment]

    def loads_ours(target: Any, arguments: dict[str, Any]) -> bool:
        source = arguments.get("format") or state.stream_reader_source(target)
        return is_ours(source) and is_installed(getattr(target, reads_in))

    def starts_ours(target: Any, arguments: dict[str, Any]) -> bool:
        source = arguments.get("format") or state.stream_writer_source(target)
        return is_ours(source) and is_installed(getattr(target, writes_in))

    def ends_query(
        ours: Callable[[Any, dict[str, Any]], bool], handle: monkeypatch.Handler
    ) -> tuple[Callable[[Any, dict[str, Any]], bool], monkeypatch.Handler]:
        """The same with the sources of a client's query looked at wherever it writes to."""

        def concerns(target: Any, arguments: dict[str, Any]) -> bool:
            return ours(target, arguments) or (connect and is_installed(getattr(target, writes_in)))

        def handled(original: Callable[..., Any], writer: Any, arguments: dict[str, Any]) -> Any:
            return (handle if ours(writer, arguments) else _start_elsewhere)(original, writer, arguments)

        return concerns, handled

    def makes_table(target: Any, arguments: dict[str, Any]) -> bool:
        # A server that knows names makes the table itself.
        return starts_ours(target, arguments) and not (connect and has_catalog(getattr(target, writes_in)))

    def names_path(session: str) -> Callable[[Any, dict[str, Any]], bool]:
        def concerns(target: Any, arguments: dict[str, Any]) -> bool:
            owner = getattr(target, session)
            if not is_installed(owner):
                return False
            name = arguments.get("tableName")
            return path_of(name) is not None or options_named(owner, name) is not None

        return concerns

    return [
        (reader, "load", loads_ours, _load),
        (reader, "table", names_path(reads_in), _table),
        (writer, "start", *ends_query(starts_ours, _start)),
        (writer, "toTable", *ends_query(lambda *c: names_path(writes_in)(*c) or makes_table(*c), _to_table)),
    ]


def _load(original: Callable[..., Any], reader: Any, arguments: dict[str, Any]) -> Any:
    if arguments.get("schema") is not None:
        reader.schema(arguments["schema"])
    reader.options(**arguments.get("options", {}))
    # Spark would let the argument win over the option without a word.
    given = with_path(state.stream_reader_options(reader), arguments.get("path"), "load")
    session = state.stream_reader_session(reader)
    complete = source_options(session, given)
    _check_schema(session, complete, state.stream_reader_schema(reader))
    if is_connect(session):
        complete = seal(session, complete, FORMAT)
    reader.options(**{name: text for name, text in complete.items() if text != given.get(name)})
    path = arguments.get("path")
    with delta_errors(), active(session), _by_name_of_source(reader, session):
        return monkeypatch.call_original(reader, "load", path if complete.get("path") == path else None)


def _check_schema(session: Any, options: Mapping[str, str], schema: StructType | None) -> None:
    """Refuse a schema that was given to a reader, see `check_given_schema`, wherever the table is."""
    path = path_option(options)
    if schema is None or path is None:
        return
    store = {name: text for name, text in options.items() if is_of_store(name)}
    others = {name: text for name, text in options.items() if name not in store}
    with active(session):
        ask(open_log(session, path, store), check_given_schema, others, schema.json())


@contextmanager
def _by_name_of_source(target: Any, session: Any) -> Iterator[None]:
    """Within the block, a reader or writer is one of the data source; it is one of ours again after it."""
    target.format(source_in_python(session))
    try:
        yield
    finally:
        target.format(FORMAT)


def _table(original: Callable[..., Any], reader: Any, arguments: dict[str, Any]) -> Any:
    name = arguments["tableName"]
    path = path_of(name)
    found = {"path": path} if path is not None else dict(options_named(reader._spark, name) or {})
    return _load(original, reader, {"path": found.pop("path", None), "options": found})


def _start(original: Callable[..., Any], writer: Any, arguments: dict[str, Any]) -> Any:
    writer.options(**arguments.get("options", {}))
    for name in ("outputMode", "partitionBy", "queryName"):
        if arguments.get(name) is not None:
            getattr(writer, name)(arguments[name])
    _check_sources_of_client(writer)
    spec = state.stream_writer_state(writer)
    options = with_path(spec.options, arguments.get("path"), "start")
    session = state.stream_writer_session(writer)
    complete = seal(
        session, sink_options(session, options, spec.mode, spec.partition_by, spec.cluster_by), FORMAT
    )
    for name, text in complete.items():
        if text != options.get(name):
            writer.option(name, text)
    path = arguments.get("path")
    with delta_errors(), active(session), _by_name_of_source(writer, session):
        return monkeypatch.call_original(writer, "start", path if complete.get("path") == path else None)


def _start_elsewhere(original: Callable[..., Any], writer: Any, arguments: dict[str, Any]) -> Any:
    """A stream into something else, whose sources are looked at all the same."""
    writer.options(**arguments.pop("options", {}))
    if arguments.get("queryName") is not None:
        writer.queryName(arguments["queryName"])
    _check_sources_of_client(writer)
    return original(writer, **arguments)


def _check_sources_of_client(writer: Any) -> None:
    """Have a server check the sources of a query, see `check_locations`, where it does not do so by itself.

    Nobody tells the data source where the checkpoint is.
    """
    session = state.stream_writer_session(writer)
    if not is_connect(session) or has_catalog(session):
        return
    query = writer._write_proto
    check_sources(
        session, writer._write_stream._child.plan(session.client), query.query_name, dict(query.options)
    )


def _to_table(original: Callable[..., Any], writer: Any, arguments: dict[str, Any]) -> Any:
    source = arguments.get("format")
    if source is not None and not is_ours(source):
        raise WRITTEN_BY_OTHER_FORMAT(table=arguments["tableName"], format=source)
    name = arguments["tableName"]
    path = path_of(name)
    if path is None:
        writer.options(**arguments.pop("options", {}))
        location = path_option(state.stream_writer_state(writer).options)
        found = _options_in_catalog(writer, arguments, location)
        path = found.pop("path")
        writer.options(**found)
        if location is not None:
            # That of a table which is there counts, and the location of a new one is its place.
            writer.option("path", path)
            return _start(original, writer, {k: v for k, v in arguments.items() if k not in _OF_TABLES})
    given = {key: value for key, value in arguments.items() if key not in _OF_TABLES}
    return _start(original, writer, {**given, "path": path})


def _options_in_catalog(writer: Any, arguments: dict[str, Any], location: str | None) -> dict[str, str]:
    """The `path` and the store's options of the table of a name; a new one is made empty, as Spark does it."""
    name = arguments["tableName"]
    session = state.stream_writer_session(writer)
    if not knows_names(session):
        raise unknown_to_catalogs(name)
    found = options_named(session, name)
    if found is not None:
        return found
    from delta_ds.spark.session.catalog.places import CREATE, create_empty, place_of
    from delta_ds.spark.session.writes.write import NewTable

    if arguments.get("partitionBy") is not None:
        writer.partitionBy(arguments["partitionBy"])
    spec = state.stream_writer_state(writer)
    place = place_of(session, name, location, CREATE)
    table = NewTable(
        mode=CREATE,
        schema=to_kernel(writer._df.schema.fields),
        partitioning=tuple(spec.partition_by),
        clustering=tuple(spec.cluster_by) or None,
    )
    create_empty(session, place, table)
    place.register(session)
    return {**place.store, "path": place.path}


def options_named(spark: SparkSession, name: object) -> dict[str, str] | None:
    """The `path` and the store's options of the table of a name; None where it is that of no table of ours."""
    if not isinstance(name, str) or not knows_names(spark):
        return None
    from delta_ds.spark.session.catalog.places import find_table, name_parts

    found = find_table(spark, name_parts(spark, name))
    return None if found is None else {**found.store, "path": found.path}


# --- what a stream is told, whoever starts it


def source_options(session: SparkSession, given: Mapping[str, str]) -> dict[str, str]:
    """The options of a stream that is read, completed by what the data source cannot ask.

    Parameters
    ----------
    session
        Of the query.
    given
        As its user gave them, `path` among them.
    """
    settings = with_session_settings(session, with_facts_of_reads(session, given))
    return {**settings, STREAM_MARK: mark(state.parallelism(session))}


def sink_options(
    session: SparkSession,
    given: Mapping[str, str],
    mode: str | None,
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
) -> dict[str, str]:
    """The options of a stream that is written, with what other calls and its session say.

    Parameters
    ----------
    session, given
        As above.
    mode
        The output mode; None: `append`.
    partition_by, cluster_by
        Columns of a new table; of one that is there they must be the same. Empty: not said.

    Raises
    ------
    DeltaError
        What planning the first batch would refuse, see `stream_intent`.
    """
    complete = with_layout(given, partition_by, cluster_by)
    complete = with_session_settings(session, with_facts(complete, facts_of(session), streaming=True))
    stream_intent(complete, (mode or "append").lower())
    return complete


# As Spark hands over `clusterBy`.
_CLUSTERING = "__clustering_columns"


def stream_source(spark: SparkSession, table: str | None, options: str, schema: str | None) -> str:
    """The options that the data source reads a stream with, in JSON.

    Parameters
    ----------
    table
        The table that the JVM holds; None: there is none at the path of the options.
    options
        Of the query, in JSON.
    schema
        That its reader was given, in JSON; None: none, or that of the table.

    Raises
    ------
    DeltaError
        As `check_given_schema`. What else is wrong with the options the data source says.
    """
    complete = source_options(spark, _with_place(table, json.loads(options)))
    _check_schema(spark, complete, None if schema is None else StructType.fromJson(json.loads(schema)))
    _know_source(spark)
    return json.dumps(complete)


def stream_sink(spark: SparkSession, table: str | None, options: str, partition_by: str, mode: str) -> str:
    """The options that the data source writes a stream with, in JSON.

    Parameters
    ----------
    table
        The table that the JVM holds; None: the options name one by its path.
    options, partition_by
        Of the query, in JSON.
    mode
        Its output mode.

    Raises
    ------
    DeltaError
        See `sink_options`.
    """
    given = _with_place(table, json.loads(options))
    cluster_by = json.loads(given.pop(_CLUSTERING, "[]"))
    complete = sink_options(spark, given, mode, json.loads(partition_by), cluster_by)
    _know_source(spark)
    return json.dumps(complete)


def check_stream_mode(spark: SparkSession, mode: str) -> None:
    """Refuse an output mode that a table cannot take, where nothing else of a stream is known yet."""
    check_mode(mode.lower())


def check_schema_locations(spark: SparkSession, checkpoint: str, sources: str) -> None:
    """Refuse the schema logs of a query, see `check_locations`.

    Parameters
    ----------
    checkpoint
        Its folder.
    sources
        The options of those of its sources that have one, in JSON.
    """
    check_tracked(
        None, json.loads(sources), checkpoint, is_set(spark, SCHEMA_LOCATION_ANYWHERE.full_name, False)
    )


def streamed_table(spark: SparkSession, name: str, options: Mapping[str, str]) -> StreamedTable | None:
    """A table as options of a stream describe it, which a batch read does not take; None where they describe none.

    Spark does not say what a source is asked for.
    """
    try:
        source = open_source(source_options(spark, options))
    except DeltaError:
        return None
    return StreamedTable(name, options, columns_of(source))


def _with_place(table: str | None, given: dict[str, str]) -> dict[str, str]:
    if table is None:
        return given
    return {**table_held(table).options, **without_path(given)}


def _know_source(spark: SparkSession) -> None:
    """Make the data source known to a session that Spark has made, where it does not find it by itself."""
    if not spark._jsparkSession.sessionState().dataSourceManager().dataSourceExists(FORMAT):
        spark.dataSource.register(DeltaSource)
