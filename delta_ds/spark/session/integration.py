"""Install the session integration for `spark.read`, `df.write` and streams, and remove it.

Spark refuses the default save mode, `ignore`, `partitionBy` and tables by path before a Python data source is asked,
and moves every row through Python. `install` replaces the few methods that end a read or a write; a call is taken over
if its session has this installed and its format is ours, every other goes to the original. Classic sessions are marked
by a setting, which sessions made from them inherit (`foreachBatch`), those of Spark Connect by their id.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakSet

from delta_ds.conditions.record import WRITTEN_BY_OTHER_FORMAT
from delta_ds.conditions.session import (
    LEGACY_ERROR_TEMP_1189,
    OPERATION_NOT_ALLOWED_DETAIL,
    PARTITION_BY_NOT_ALLOWED_WITH_INSERT_INTO,
    SORT_BY_WITHOUT_BUCKETING,
)
from delta_ds.kernel.format.options.parsing import is_of_store
from delta_ds.spark.base.kinds.kind import is_connect
from delta_ds.spark.base.kinds.sealed import seal
from delta_ds.spark.base.kinds.session_facts import with_facts_of_reads
from delta_ds.spark.base.session_conf import has_catalog, is_served, source_in_python
from delta_ds.spark.base.table_names import (
    FORMAT,
    is_ours,
    path_of,
    unknown_to_catalogs,
    with_path,
    without_path,
)
from delta_ds.spark.engines import monkeypatch
from delta_ds.spark.session import state, streams
from delta_ds.spark.session.reading import read
from delta_ds.spark.session.writing import PathWriter, insert_into, save, save_as_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MARK = "spark.pydelta.session"
_DEFAULT_SOURCE_CONF = "spark.sql.sources.default"

_Concerns: TypeAlias = Callable[[Any, dict[str, Any]], bool]
_Patch: TypeAlias = tuple[type, str, _Concerns, monkeypatch.Handler]

_lock = threading.Lock()
_sessions: WeakSet[SparkSession] = WeakSet()
_connect_ids: set[str] = set()
# Those of them whose tables the data source reads: their server has no catalog of ours, or the options are secrets.
_read_by_source: set[str] = set()
# Those whose server is one of ours, which reads and writes by itself what holds no secret.
_served: set[str] = set()


def install(spark: SparkSession) -> None:
    """Install in a session, classic or Connect; doing so again is harmless."""
    with _lock:
        for patch in _patches(is_connect(spark)):
            monkeypatch.apply(*patch)
        state.install(is_connect(spark))
        if is_connect(spark):
            _connect_ids.add(spark.session_id)  # type: ignore[attr-defined]
            if is_served(spark):
                _served.add(spark.session_id)  # type: ignore[attr-defined]
            if not has_catalog(spark) or is_served(spark):
                _read_by_source.add(spark.session_id)  # type: ignore[attr-defined]
        else:
            spark.conf.set(MARK, "true")
        _sessions.add(spark)


def uninstall(spark: SparkSession) -> None:
    """Take it out of a session; with the last one of its kind Spark's own methods are back in place."""
    with _lock:
        connect = is_connect(spark)
        if connect:
            for ids in (_connect_ids, _read_by_source, _served):
                ids.discard(spark.session_id)  # type: ignore[attr-defined]
        else:
            spark.conf.unset(MARK)
        if not installed_sessions(connect):
            for owner, name, _, _ in _patches(connect):
                monkeypatch.undo(owner, name)
            state.uninstall(connect)


def installed_sessions(connect: bool) -> list[SparkSession]:
    """The sessions of a kind that have not ended and have this installed."""
    for session in list(_sessions):
        if _is_stopped(session) or not is_installed(session):
            _sessions.discard(session)
    return [session for session in _sessions if is_connect(session) == connect]


def is_installed(spark: SparkSession) -> bool:
    """Whether reads and writes of a session come here."""
    if is_connect(spark):
        return spark.session_id in _connect_ids  # type: ignore[attr-defined]
    return spark.conf.get(MARK, "false") == "true"


def _is_stopped(spark: SparkSession) -> bool:
    return bool(spark.is_stopped) if is_connect(spark) else spark._sc._jsc is None  # type: ignore[attr-defined]


def _patches(connect: bool) -> list[_Patch]:
    if connect:
        from pyspark.sql.connect.catalog import Catalog as ConnectCatalog
        from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
        from pyspark.sql.connect.plan import LogicalPlan
        from pyspark.sql.connect.readwriter import DataFrameReader as ConnectReader
        from pyspark.sql.connect.readwriter import DataFrameWriter as ConnectWriter
        from pyspark.sql.connect.readwriter import DataFrameWriterV2 as ConnectWriterV2

        from delta_ds.spark.engines.connect import needed

        # `SparkSession.table` goes through the reader.
        return [
            (ConnectReader, "load", _connect_loads_ours, _connect_load),
            (LogicalPlan, "to_proto", _is_told_to_source, _to_proto),
            (ConnectFrame, "persist", _is_kept_by_server, needed.persist),
            (ConnectFrame, "unpersist", _is_kept_by_server, needed.unpersist),
            (ConnectFrame, "sameSemantics", _is_kept_by_server, needed.compare),
            (ConnectFrame, "semanticHash", _is_kept_by_server, needed.compare),
            (ConnectReader, "table", _names_path("tableName", "_client"), _connect_table),
            (ConnectWriter, "mode", _names_mode_of_errors, _mode_of_errors),
            *_patches_of_writes(ConnectFrame, ConnectWriter, ConnectWriterV2, ConnectCatalog),
            *streams.patches(connect, is_installed),
        ]
    from pyspark.sql.catalog import Catalog
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
    from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter, DataFrameWriterV2
    from pyspark.sql.session import SparkSession

    return [
        (DataFrameReader, "load", _loads_ours, _load),
        (DataFrameReader, "table", _reads_table, _table),
        (
            SparkSession,
            "table",
            _names_path("tableName", None),
            lambda original, spark, arguments: _read_table(spark, {}, False, arguments["tableName"]),
        ),
        *_patches_of_writes(ClassicFrame, DataFrameWriter, DataFrameWriterV2, Catalog),
        *streams.patches(connect, is_installed),
    ]


def _patches_of_writes(frame: type, writer: type, writer_v2: type, catalog: type) -> list[_Patch]:
    return [
        (writer, "save", _saves_ours, _save),
        (writer, "saveAsTable", _saves_table, _save_as_table),
        (writer, "insertInto", _names_path("tableName", "_spark"), _insert_into),
        (frame, "writeTo", _names_path("table", "sparkSession"), _write_to),
        (writer_v2, "using", _makes_table("provider", "_spark"), _refuse_name),
        (catalog, "createTable", _makes_table("source", "_sparkSession"), _refuse_name),
    ]


# --- which calls are taken over


def _names_path(argument: str, session: str | None) -> _Concerns:
    def concerns(target: Any, arguments: dict[str, Any]) -> bool:
        if path_of(arguments.get(argument)) is None:
            return False
        return is_installed(getattr(target, session) if session else target)

    return concerns


def _reads_table(reader: Any, arguments: dict[str, Any]) -> bool:
    """A table by its path; or by its name with options, which Spark does not show to whoever analyses the query."""
    name = arguments.get("tableName")
    if path_of(name) is not None:
        return is_installed(reader._spark)
    if not is_installed(reader._spark) or not has_catalog(reader._spark):
        return False
    options = state.reader_state(reader).options
    if not options:
        return False
    return streams.options_named(reader._spark, name) is not None or _is_told_of(reader._spark, name, options)


def _is_told_of(spark: SparkSession, name: object, options: Mapping[str, str]) -> bool:
    """Whether Spark would tell that there is no table of a name, and with it the options of its store."""
    from pyspark.errors import PySparkException

    try:
        return any(map(is_of_store, options)) and not spark.catalog.tableExists(str(name))
    except PySparkException:
        return False


def _names_mode_of_errors(writer: Any, arguments: dict[str, Any]) -> bool:
    """Whether it is the default mode by the one of its names that a client of Spark does not know."""
    return str(arguments.get("saveMode")).lower() == "errorifexists" and is_installed(writer._spark)


def _loads_ours(reader: Any, arguments: dict[str, Any]) -> bool:
    return is_ours(arguments.get("format") or state.reader_source(reader)) and is_installed(reader._spark)


def _connect_loads_ours(reader: Any, arguments: dict[str, Any]) -> bool:
    return is_ours(arguments.get("format") or reader._format) and is_installed(reader._client)


def _is_told_to_source(plan: Any, arguments: dict[str, Any]) -> bool:
    return getattr(arguments.get("session"), "_session_id", None) in _read_by_source


def _is_kept_by_server(frame: Any, arguments: dict[str, Any]) -> bool:
    return frame.sparkSession.session_id in _read_by_source


def _saves_ours(writer: Any, arguments: dict[str, Any]) -> bool:
    return is_ours(arguments.get("format") or _source(writer)) and is_installed(writer._spark)


def _saves_table(writer: Any, arguments: dict[str, Any]) -> bool:
    return (
        path_of(arguments.get("name")) is not None
        and is_installed(writer._spark)
        or (_saves_ours(writer, arguments) and not has_catalog(writer._spark))
    )


def _makes_table(argument: str, session: str) -> _Concerns:
    def concerns(target: Any, arguments: dict[str, Any]) -> bool:
        owner = getattr(target, session)
        return is_ours(arguments.get(argument)) and is_installed(owner) and not has_catalog(owner)

    return concerns


def _source(writer: Any) -> str | None:
    found = state.writer_source(writer)
    if found is None and writer._spark.session_id in _connect_ids:
        return str(writer._spark.conf.get(_DEFAULT_SOURCE_CONF))
    return found


# --- what is done instead


def _mode_of_errors(original: Callable[..., Any], writer: Any, arguments: dict[str, Any]) -> Any:
    return original(writer, saveMode="error")


def _load(original: Callable[..., Any], reader: Any, arguments: dict[str, Any]) -> DataFrame:
    if arguments.get("format") is not None:
        reader.format(arguments["format"])
    if arguments.get("schema") is not None:
        reader.schema(arguments["schema"])
    reader.options(**arguments.get("options", {}))
    spec = state.reader_state(reader)
    return read(reader._spark, with_path(spec.options, arguments.get("path"), "load"), spec.schema)


def _connect_load(original: Callable[..., Any], reader: Any, arguments: dict[str, Any]) -> DataFrame:
    """What Spark does, with the session's facts, and references in the place of secrets; the reader keeps its own."""
    given = {**state.connect_reader_options(reader), **arguments.get("options", {})}
    path = arguments.get("path")
    if isinstance(path, str) and "path" not in given:
        given["path"] = path
    if _is_left_to_server(reader._client, given):
        return original(reader, **arguments)  # type: ignore[no-any-return]
    sealed = seal(reader._client, with_facts_of_reads(reader._client, given), FORMAT)
    changed = {name: text for name, text in sealed.items() if text != given.get(name)}
    other = copy.copy(reader)
    other._options = {**reader._options, **changed}
    if reader._client.session_id in _served:
        # Only the class of the data source carries what references stand for.
        other._format = source_in_python(reader._client)
        arguments["format"] = None
    arguments = {**arguments, "path": None if "path" in changed else path}
    options = {name: text for name, text in arguments.pop("options", {}).items() if name not in changed}
    return original(other, **arguments, **options)  # type: ignore[no-any-return]


def _is_left_to_server(spark: Any, options: Mapping[str, str]) -> bool:
    """Whether the server of a session reads or writes as a session of its own does, and may see the options."""
    return getattr(spark, "session_id", None) in _served and seal(spark, options, FORMAT) == dict(options)


def _to_proto(original: Callable[..., Any], plan: Any, arguments: dict[str, Any]) -> Any:
    """A query as it is sent, in which the reads of our tables are told what it needs of them."""
    from delta_ds.spark.engines.connect.needed import compares, told_plan

    return original(plan if compares() else told_plan(plan), **arguments)


def _table(original: Callable[..., Any], reader: Any, arguments: dict[str, Any]) -> DataFrame:
    spec = state.reader_state(reader)
    return _read_table(reader._spark, spec.options, spec.schema is not None, arguments["tableName"])


def _connect_table(original: Callable[..., Any], reader: Any, arguments: dict[str, Any]) -> DataFrame:
    options = state.connect_reader_options(reader)
    has_schema = state.connect_reader_has_schema(reader)
    return _read_table(reader._client, options, has_schema, arguments["tableName"])


def _read_table(spark: SparkSession, options: dict[str, str], has_schema: bool, name: str) -> DataFrame:
    if has_schema:
        raise LEGACY_ERROR_TEMP_1189(method=name)
    path = path_of(name)
    found = {"path": path} if path is not None else streams.options_named(spark, name)
    if found is None:
        # There is none: Spark says so, and has no options to show with it.
        return monkeypatch.call_original(spark.read, "table", name)  # type: ignore[no-any-return]
    return read(spark, with_path({**options, **without_path(found)}, found.get("path"), "table"))


def _save(original: Callable[..., Any], writer: Any, arguments: dict[str, Any]) -> None:
    spec = _writer_spec(writer, arguments)
    _check_layout(spec)
    df = _rows(writer)
    if _is_left_to_server(writer._spark, with_path(spec.options, arguments.get("path"), "save")):
        original(writer, arguments.get("path"))
        return
    save(df, arguments.get("path"), spec.mode, spec.options, spec.partition_by, spec.cluster_by)
    _report(writer, df)


def _save_as_table(original: Callable[..., Any], writer: Any, arguments: dict[str, Any]) -> None:
    spec = _writer_spec(writer, arguments)
    path = path_of(arguments["name"])
    if path is None:
        raise unknown_to_catalogs(arguments["name"])
    _check_layout(spec)
    _check_format(writer, arguments["name"])
    df = _rows(writer)
    save_as_table(df, path, spec.mode, spec.options, spec.partition_by, spec.cluster_by)
    _report(writer, df)


def _insert_into(original: Callable[..., Any], writer: Any, arguments: dict[str, Any]) -> None:
    overwrite = arguments.get("overwrite")
    if overwrite is not None:
        writer.mode("overwrite" if overwrite else "append")
    spec = state.writer_state(writer)
    _check_layout(spec)
    if spec.partition_by or spec.cluster_by:
        raise PARTITION_BY_NOT_ALLOWED_WITH_INSERT_INTO(table=arguments["tableName"])
    df = _rows(writer)
    insert_into(df, str(path_of(arguments["tableName"])), spec.mode, spec.options)
    _report(writer, df)


def _refuse_name(original: Callable[..., Any], target: Any, arguments: dict[str, Any]) -> None:
    raise unknown_to_catalogs(arguments.get("tableName"))


def _write_to(original: Callable[..., Any], df: Any, arguments: dict[str, Any]) -> PathWriter:
    return PathWriter(df, str(path_of(arguments["table"])))


def _writer_spec(writer: Any, arguments: dict[str, Any]) -> state.WriterState:
    """What a writer knows after the arguments of its last call, which it takes in as Spark does."""
    writer.mode(arguments.get("mode")).options(**arguments.get("options", {}))
    if arguments.get("partitionBy") is not None:
        writer.partitionBy(arguments["partitionBy"])
    if arguments.get("format") is not None:
        writer.format(arguments["format"])
    return state.writer_state(writer)


def _check_layout(spec: state.WriterState) -> None:
    if spec.bucket_by:
        raise OPERATION_NOT_ALLOWED_DETAIL(bucket_by=spec.bucket_by)
    if spec.sort_by:
        raise SORT_BY_WITHOUT_BUCKETING(sort_by=spec.sort_by)


def _check_format(writer: Any, name: str) -> None:
    """Refuse another format; one that was not given is the session's default."""
    source = state.writer_source(writer)
    if source is None or is_ours(source) or source == writer._spark.conf.get(_DEFAULT_SOURCE_CONF):
        return
    raise WRITTEN_BY_OTHER_FORMAT(table=name, format=source)


def _rows(writer: Any) -> DataFrame:
    if not is_connect(writer):
        return writer._df  # type: ignore[no-any-return]
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    return ConnectFrame(writer._df, writer._spark)


def _report(writer: Any, df: Any) -> None:
    """Report the metrics of the write to the user's DataFrame (Spark Connect)."""
    if is_connect(writer) and df.executionInfo is not None:
        writer._callback(df.executionInfo)
