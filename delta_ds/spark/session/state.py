"""Read back the options, schema, mode and partitioning of a reader or writer of Spark.

So `.format`, `.option`, `.mode`, `.partitionBy` and the like need no replacement. A classic reader or writer keeps it
in the JVM, one of Spark Connect in its own attributes. Getters of the JVM are protected in Scala, public in bytecode.
Source: Spark, `DataFrameReader.scala` and `DataFrameWriter.scala`; the same from 4.1 to 4.3.

Raise failures that Spark reports of this package as its errors.

A DataFrame fails when it is used, long after `load`, in calls that are none of this package's. Classic sessions and
Spark Connect each have one function that every failure goes through.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pyspark.sql.types import StructType

from delta_ds.records import dataclass, field
from delta_ds.spark.base.kinds.kind import is_connect
from delta_ds.spark.errors.translation import convert_exception

_SEPARATOR = "\0"


@dataclass(frozen=True, slots=True)
class ReaderState:
    """The options and schema set on a `DataFrameReader`; `schema` is what the user gave."""

    options: dict[str, str] = field(default_factory=dict, repr=False)
    schema: StructType | None = None


@dataclass(frozen=True, slots=True)
class WriterState:
    """The options, mode and layout set on a `DataFrameWriter`."""

    mode: str | None = None
    options: dict[str, str] = field(default_factory=dict, repr=False)
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    bucket_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()


def reader_source(reader: Any) -> str | None:
    """The name of the data source that a classic reader would use."""
    return _text(reader._jreader.source())


def writer_source(writer: Any) -> str | None:
    """The name of the data source that a writer would use; None where a client does not know the default."""
    if is_connect(writer):
        return _text(writer._write.source)
    return _text(writer._jwrite.source())


def reader_state(reader: Any) -> ReaderState:
    """What is set on a classic reader."""
    schema = reader._jreader.userSpecifiedSchema()
    return ReaderState(
        options=_options(reader._jreader.extraOptions()),
        schema=StructType.fromJson(json.loads(schema.get().json())) if schema.isDefined() else None,
    )


def connect_reader_options(reader: Any) -> dict[str, str]:
    """The options of a reader of Spark Connect."""
    return {name: text for name, text in reader._options.items() if text is not None}


def connect_reader_has_schema(reader: Any) -> bool:
    """Whether the user gave a reader of Spark Connect a schema."""
    return bool(reader._schema)


def writer_state(writer: Any) -> WriterState:
    """What is set on a writer."""
    if is_connect(writer):
        inner = writer._write
        return WriterState(
            mode=inner.mode,
            options={name: text for name, text in inner.options.items() if text is not None},
            partition_by=tuple(inner.partitioning_cols),
            cluster_by=tuple(inner.clustering_cols),
            bucket_by=tuple(inner.bucket_cols),
            sort_by=tuple(inner.sort_cols),
        )
    inner = writer._jwrite
    return WriterState(
        mode=inner.curmode().name(),
        options=_options(inner.extraOptions()),
        partition_by=_names(inner.partitioningColumns()),
        cluster_by=_names(inner.clusteringColumns()),
        bucket_by=_names(inner.bucketColumnNames()),
        sort_by=_names(inner.sortColumnNames()),
    )


def stream_reader_source(reader: Any) -> str | None:
    """The name of the data source that a reader of a stream would use."""
    if is_connect(reader):
        return _text(reader._format)
    return _text(_private(reader._jreader, "source"))


def stream_reader_options(reader: Any) -> dict[str, str]:
    """The options of a reader of a stream."""
    if is_connect(reader):
        return connect_reader_options(reader)
    return _options(_private(reader._jreader, "extraOptions"))


def stream_reader_schema(reader: Any) -> StructType | None:
    """The schema that the user gave to a reader of a stream; one in SQL is parsed by the session."""
    if not is_connect(reader):
        schema = _private(reader._jreader, "userSpecifiedSchema")
        return StructType.fromJson(json.loads(schema.get().json())) if schema.isDefined() else None
    text = reader._schema
    if not text:
        return None
    try:
        return StructType.fromJson(json.loads(text))
    except ValueError:
        parsed = StructType.fromDDL(text)
        assert isinstance(parsed, StructType)  # Spark takes nothing else for a schema
        return parsed


def parallelism(session: Any) -> int | None:
    """How many tasks a session runs at once; None where only a server knows."""
    if is_connect(session):
        return None
    cores: int = session.sparkContext.defaultParallelism
    return cores


def stream_reader_session(reader: Any) -> Any:
    """The session of a reader of a stream."""
    return reader._client if is_connect(reader) else reader._spark


def stream_writer_source(writer: Any) -> str | None:
    """As `writer_source`, for a writer of a stream."""
    if is_connect(writer):
        return _text(writer._write_proto.format or None)
    return _text(_private(writer._jwrite, "source"))


def stream_writer_session(writer: Any) -> Any:
    """The session of a writer of a stream."""
    return writer._session if is_connect(writer) else writer._spark


def stream_writer_state(writer: Any) -> WriterState:
    """What is set on a writer of a stream; `mode` is its output mode."""
    if is_connect(writer):
        inner = writer._write_proto
        return WriterState(
            mode=inner.output_mode or None,
            options=dict(inner.options),
            partition_by=tuple(inner.partitioning_column_names),
            cluster_by=tuple(inner.clustering_column_names),
        )
    inner = writer._jwrite
    return WriterState(
        mode=_private(inner, "outputMode").toString(),
        options=_options(_private(inner, "extraOptions")),
        partition_by=_names(_private(inner, "partitioningColumns")),
        cluster_by=_names(_private(inner, "clusteringColumns")),
    )


def _private(target: Any, name: str) -> Any:
    """A private field of an object of the JVM: readers and writers of streams have no getters."""
    field = target.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(target)


def _options(case_insensitive_map: Any) -> dict[str, str]:
    """Names as the user wrote them to texts; up to Spark 4.2, an option set to None is there as null."""
    options: dict[str, str] = {}
    entries = case_insensitive_map.originalMap().iterator()
    while entries.hasNext():
        entry = entries.next()
        text = entry._2()
        if text is not None:
            options[entry._1()] = text
    return options


def _names(option: Any) -> tuple[str, ...]:
    """A Scala `Option[Seq[String]]`, in one call."""
    if option.isEmpty() or option.get().isEmpty():
        return ()
    return tuple(option.get().mkString(_SEPARATOR).split(_SEPARATOR))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


_NAME = "convert_exception"
_ORIGINAL = "_delta_ds_original"


def install(connect: bool) -> None:
    """Make pyspark raise this package's errors; doing so again is harmless."""
    module = _module(connect)
    original = getattr(module, _NAME)
    if hasattr(original, _ORIGINAL):
        return

    @functools.wraps(original)
    def replacement(*arguments: Any, **keywords: Any) -> BaseException:
        return convert_exception(getattr(replacement, _ORIGINAL), *arguments, **keywords)

    setattr(replacement, _ORIGINAL, original)
    setattr(module, _NAME, replacement)


def put_beneath(make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Let pyspark convert what the JVM throws by another function, which stays when sessions are given back.

    Parameters
    ----------
    make
        Makes it of the one that pyspark has. What it gives is looked at by `install`, whichever of both comes first.
    """
    module = _module(connect=False)
    top = getattr(module, _NAME)
    if hasattr(top, _ORIGINAL):
        setattr(top, _ORIGINAL, make(getattr(top, _ORIGINAL)))
    else:
        setattr(module, _NAME, make(top))


def uninstall(connect: bool) -> None:
    """Restore pyspark's function; does nothing where it is in place."""
    module = _module(connect)
    original = getattr(getattr(module, _NAME), _ORIGINAL, None)
    if original is not None:
        setattr(module, _NAME, original)


def _module(connect: bool) -> ModuleType:
    if connect:
        # It has the function under a name of its own.
        import pyspark.sql.connect.client.core as core

        return core
    from pyspark.errors.exceptions import captured

    return captured
