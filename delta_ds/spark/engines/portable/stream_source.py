"""The stream source that the options of `spark.readStream` describe, at the version pinned by `load`.

Options of `readStream` look like those of `read`, and a reader does not learn how many tasks run at once: Spark does
not tell. So the session integration adds an option that says both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType as SparkStructType

from delta_ds.kernel.commands.streaming.schema_log import check_locations, state_to_read
from delta_ds.kernel.commands.streaming.source import StreamSource
from delta_ds.kernel.format.options.read import READ_OPTIONS
from delta_ds.kernel.format.options.stream_read import STREAM_READ_OPTIONS, parse_stream_read_options
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.log.snapshot import open_snapshot
from delta_ds.kernel.storage.open import open_storage
from delta_ds.records import replace
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.base.processes import machine_time_zone
from delta_ds.spark.base.schema import metadata_field

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamReader

    from delta_ds.api.delta_log import DeltaLog
    from delta_ds.kernel.format.options.stream_read import StreamReadOptions
    from delta_ds.spark.engines.portable.stream_reader import DeltaStreamReader

_BATCH = {name.lower() for option in READ_OPTIONS for name in (option.name, *option.aliases)}
_START = ("startingversion", "startingtimestamp")
_TRACKING = ("schematrackinglocation", "schemalocation")
_STREAM_ONLY = {name.lower() for o in STREAM_READ_OPTIONS for name in (o.name, *o.aliases)} - _BATCH


def names_a_stream(options: Mapping[str, Any]) -> bool:
    """Whether there is an option that only a stream takes."""
    return any(name.lower() in _STREAM_ONLY for name in options)


def may_be_a_stream(options: Mapping[str, Any]) -> bool:
    """Whether options that make no sense for a batch read may do so for a stream."""
    return any(name.lower() in _START for name in options)


def open_source(options: Mapping[str, Any], version: int | None = None) -> StreamSource:
    """The source that options ask for.

    Parameters
    ----------
    options
        As of `spark.readStream`, `path` among them.
    version
        The version whose schema the stream reads with; None for the newest.

    Raises
    ------
    DeltaError
        No table there, an option that is not known, columns that do not exist.
    """
    zone = machine_time_zone()
    parsed = parse_stream_read_options(without_mark(options), zone)
    storage = open_storage(parsed.path, parsed.storage_options)
    if version is None:
        return StreamSource.open(storage, parsed, zone)
    return StreamSource(storage, parsed, state_to_read(open_snapshot(storage, version)), zone)


def columns_of(source: StreamSource) -> StructType:
    """The columns of a stream, `_metadata` included where the options ask for it."""
    options: StreamReadOptions = source.options
    return StructType((*source.schema.fields, *metadata_field(options.metadata_columns)))


def stream_reader(
    options: Mapping[str, Any], schema: SparkStructType, source: StreamSource | None, version: int | None
) -> DataSourceStreamReader:
    """The reader for the version of Spark that runs here.

    Parameters
    ----------
    options
        As of `spark.readStream`.
    schema
        The columns that Spark expects.
    source, version
        What `load` settled on: the source, or the version whose schema counts. Neither: the user gave the schema.
    """

    def begin() -> StreamSource:
        opened = open_source(options, version) if source is None else source
        return _select_columns(opened, schema).renewed()

    reader: type[DeltaStreamReader]
    try:
        from delta_ds.spark.engines.portable.stream_reader_spark42 import Spark42StreamReader as reader
    except ImportError:
        from delta_ds.spark.engines.portable.stream_reader import Spark41StreamReader as reader
    return reader(begin, schema, tasks_of(options))


def find_columns(source: StreamSource, schema: SparkStructType) -> list[str]:
    """The names of the columns of a stream that a user-given schema asks for.

    Raises
    ------
    SchemaError
        A column does not exist, or has another type.
    """
    return schemas.find_columns(schema, columns_of(source), f"the stream from {source.storage.url}")


def check_given_schema(log: DeltaLog, options: Mapping[str, Any], schema: str) -> None:
    """Refuse a schema that was given to a reader of a stream, where the stream has not what it asks for.

    Spark asks a source nothing then until the query runs, where users look for errors of their tables.

    Parameters
    ----------
    log
        Of the table.
    options
        As of `spark.readStream`; those of the store count for nothing.
    schema
        In JSON.

    Raises
    ------
    DeltaError
        As `open_source` and `find_columns`.
    """
    zone = machine_time_zone()
    source = StreamSource.open(log.storage, parse_stream_read_options(without_mark(options), zone), zone)
    find_columns(source, SparkStructType.fromJson(json.loads(schema)))


def is_tracked(options: Mapping[str, Any]) -> bool:
    """Whether the options of a stream say where its schema log is."""
    return any(name.lower() in _TRACKING for name in options)


def check_tracked(
    log: DeltaLog | None, sources: Sequence[Mapping[str, Any]], checkpoint: str | None, anywhere: bool
) -> None:
    """See `check_locations`, of sources by their options.

    Parameters
    ----------
    log
        Of the table of one of them, by whose address a server is called.
    """
    zone = machine_time_zone()
    parsed = [parse_stream_read_options(without_mark(options), zone) for options in sources]
    check_locations(parsed, checkpoint, anywhere=anywhere)


def _select_columns(source: StreamSource, schema: SparkStructType) -> StreamSource:
    """The same source, reading no more columns than a schema has; errors as of `find_columns`."""
    names = find_columns(source, schema)
    wanted = tuple(name for name in names if source.schema.find(name) is not None)
    if len(wanted) == len(source.schema.fields):
        return source
    options = replace(source.options, columns=wanted)
    return StreamSource(source.storage, options, source.read_state, source.timezone)


STREAM_MARK = "pydelta.isstream"
# How many tasks a batch is cut into at least, if it is large enough, where nobody says how many run at once.
_TASKS = 8


def mark(parallelism: int | None) -> str:
    """The value of the option for a session that runs so many tasks at once; None where that is not known."""
    return "true" if parallelism is None else str(max(1, parallelism))


def is_marked(options: Mapping[str, Any]) -> bool:
    """Whether the session integration has said that the options are those of a stream."""
    return _mark(options) is not None


def without_mark(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the user gave them."""
    return {name: value for name, value in options.items() if name.lower() != STREAM_MARK}


def tasks_of(options: Mapping[str, Any]) -> int:
    """How many tasks a batch of a stream with these options is cut into at least, if it is large enough."""
    text = _mark(options)
    return int(text) if text is not None and text.isdigit() else _TASKS


def _mark(options: Mapping[str, Any]) -> str | None:
    return next((str(value) for name, value in options.items() if name.lower() == STREAM_MARK), None)
