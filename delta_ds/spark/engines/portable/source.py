"""The data source `pydelta`: from options and a path to schema, reader and writer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pyspark.sql.datasource import DataSource, DataSourceWriter, WriterCommitMessage

from delta_ds import _version
from delta_ds.exceptions import DeltaError, NotADeltaTableError
from delta_ds.kernel.format.options.read import ReadOptions, parse_read_options, with_path_suffix
from delta_ds.kernel.format.schema.char_varchar import schema_of
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.base.kinds.sealed import SEALED_MODULE, Sealed
from delta_ds.spark.base.processes import machine_time_zone
from delta_ds.spark.base.query_needs import in_pushdown_worker, needed_of, plans_each_scan
from delta_ds.spark.base.table_names import FORMAT, check_path
from delta_ds.spark.errors.translation import with_error_parameters

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, DataSourceStreamWriter
    from pyspark.sql.types import StructType as SparkStructType

    from delta_ds.kernel.commands.streaming.source import StreamSource
    from delta_ds.kernel.format.schema.types import StructType
    from delta_ds.spark.engines.portable.batch import Changes, Pin, Rows

# --- objects that Spark sends to Python processes on the same machine bring along where this package is imported from
# The process of a stream's source has not what `addPyFile`, `--py-files` and artifacts of Spark Connect have sent on
# its path: Spark has it look in a folder that is not there. It runs beside the process that pickles the source, on the
# driver's machine, and finds the package in the same place. Source: Spark, `PythonStreamingSourceRunner`,
# `PythonWorkerUtils.writeSparkFiles`.

_C = TypeVar("_C", bound=type)

# Text, as a function would be found by its module, which is in the package. What an object holds comes after it.
_MAKE = """
import importlib.machinery, os, sys
found = importlib.machinery.PathFinder.find_spec("delta_ds")
if "delta_ds" not in sys.modules and (found is None or os.path.dirname(found.origin or "") != package):
    sys.path.insert(0, os.path.dirname(package))
made = object.__new__(getattr(importlib.import_module(module), name))
"""


def brings_package(owner: _C) -> _C:
    """A class whose instances find this package where they are unpickled, on the machine where they were pickled."""

    def reduce(self: Any, protocol: Any) -> tuple[Any, ...]:
        # The one that carries values of options is in no module, and they are among the object's own by now.
        kind = next(one for one in type(self).__mro__ if one.__module__ != SEALED_MODULE)
        known = {
            "code": _MAKE,
            "package": str(Path(_version.__file__).parent),
            "module": kind.__module__,
            "name": kind.__qualname__,
        }
        return eval, ("exec(code) or made", known), self.__dict__

    owner.__reduce_ex__ = reduce  # type: ignore[method-assign, assignment]
    return owner


# --- the data source `pydelta`: from options and a path to schema, reader and writer


@brings_package
@with_error_parameters
class DeltaSource(DataSource, Sealed):
    """A Delta table in Spark: `spark.read.format("pydelta").load(path)`, `df.write.format("pydelta").save(path)`.

    Streams are `spark.readStream` and `df.writeStream` in their place. Spark calls `schema()`, `reader()`, `writer()`
    and so on in Python processes of their own and pickles the instance in between. Options: `READ_OPTIONS`,
    `WRITE_OPTIONS` and `STREAM_READ_OPTIONS` in `delta_ds.kernel.format.options`.
    """

    # Set by `register(spark, pushdown=True)`; see query_needs.py for why it is a choice.
    pushdown: ClassVar[bool] = False

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(self.opened(options))
        self._pin: Pin | None = None
        self._stream: StreamSource | None = None

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> SparkStructType:
        """Resolve the version to read and its schema from protocol and metadata; files are not listed.

        Spark does not say whether it is a stream that will be read.

        Raises
        ------
        DeltaError
            No table there, a version or timestamp out of reach, a feature or option that is not known.
        """
        from delta_ds.spark.engines.portable import stream_source

        if stream_source.is_marked(self.options) or stream_source.names_a_stream(self.options):
            return self._stream_schema()
        try:
            options = self._read_options()
            reading = open_read(options, None)
        except DeltaError as error:
            if not stream_source.may_be_a_stream(self.options):
                raise
            try:
                # If it is none after all, `reader` says what is wrong.
                return self._stream_schema()
            except DeltaError:
                raise error from None
        self._pin = reading.pin
        chosen = select_read_schema(reading.schema, options, reading.table)
        needed = None if options.change_feed else needed_of(options.facts.settings)[0]
        return schemas.to_spark(chosen if needed is None else needed.of(chosen))

    def _stream_schema(self) -> SparkStructType:
        from delta_ds.spark.engines.portable.stream_source import columns_of, open_source

        check_path(self.options)
        self._stream = open_source(self.options)
        return schemas.to_spark(columns_of(self._stream))

    def streamReader(self, schema: SparkStructType) -> DataSourceStreamReader:
        """A reader of the columns of a schema as a stream, with the table's schema that `schema()` settled on."""
        from delta_ds.spark.engines.portable.stream_source import stream_reader

        return stream_reader(self.options, schema, self._stream, self._pin.last if self._pin else None)

    def streamWriter(self, schema: SparkStructType, overwrite: bool) -> DataSourceStreamWriter:
        """A writer of micro-batches of a schema; `overwrite` is output mode `complete`.

        Raises
        ------
        DeltaError
            The rows do not fit the table, or it cannot be written.
        """
        from delta_ds.spark.engines.portable.writer import DeltaStreamWriter

        check_path(self.options)
        return DeltaStreamWriter(self.options, schema, complete=overwrite)

    def reader(self, schema: SparkStructType) -> DataSourceReader:
        """A reader of the columns of a schema, at the version that `schema()` settled on.

        A schema that the user gave comes here without a call of `schema()`: the version is settled now.
        """
        from delta_ds.spark.engines.portable.batch import DeltaReader

        options = self._read_options()
        reading = open_read(options, self._pin)
        columns = schemas.find_columns(schema, reading.schema, reading.table)
        reader = DeltaReader(reading, schema, columns, options)
        if not options.change_feed and (filters := needed_of(options.facts.settings)[1]):
            reader.skip_by(filters)
        if in_pushdown_worker() and (self.pushdown or plans_each_scan()):
            reader.accept_filters()
        return reader

    def writer(self, schema: SparkStructType, overwrite: bool) -> DataSourceWriter:
        """A writer of rows of a schema; the version it starts from is pinned here.

        Raises
        ------
        DeltaError
            The rows do not fit the table, or it cannot be written; nothing was.
        """
        from delta_ds.kernel.transaction.write.intent import APPEND, OVERWRITE, batch_intent, find_target
        from delta_ds.kernel.transaction.write.plan import plan_write
        from delta_ds.spark.engines.portable.writer import DeltaWriter

        check_path(self.options)
        mode = OVERWRITE if overwrite else APPEND
        target = find_target(batch_intent(self.options, mode, time_zone=machine_time_zone()))
        if target.nothing_to_do:
            return NothingWriter()
        return DeltaWriter(plan_write(target, schema_of(schema.jsonValue())))

    def _read_options(self) -> ReadOptions:
        check_path(self.options)
        return parse_read_options(self.options, machine_time_zone())


class NothingWriter(DataSourceWriter):
    """A writer for a write that has nothing to do: takes no rows, commits nothing."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return WriterCommitMessage()


class PushdownSource(DeltaSource):
    """The source of a session that asked for filter pushdown by `register(spark, pushdown=True)`."""

    pushdown: ClassVar[bool] = True


def open_read(options: ReadOptions, pin: Pin | None) -> Rows | Changes:
    """The table, or the changes, that options ask for.

    A path that is no table may end in `@v5` or `@yyyyMMddHHmmssSSS`, in the session's time zone (where it is not known:
    the machine's). A table may have no columns yet: what reads rows of it says so.

    Raises
    ------
    DeltaError
        See `DeltaLog.snapshot` and `DeltaLog.changes`.
    """
    try:
        return _open_read(options, pin)
    except NotADeltaTableError as error:
        travelling = with_path_suffix(options, machine_time_zone())
        if travelling == options:
            raise _no_rows(options, error) from None
    try:
        return _open_read(travelling, pin)
    except NotADeltaTableError as error:
        raise _no_rows(travelling, error) from None


def _no_rows(options: ReadOptions, error: NotADeltaTableError) -> NotADeltaTableError:
    from delta_ds.kernel.log.segment import no_rows
    from delta_ds.kernel.storage.open import open_storage

    return no_rows(open_storage(options.path, options.storage_options), error)


def _open_read(options: ReadOptions, pin: Pin | None) -> Rows | Changes:
    from delta_ds.kernel.storage.open import open_storage
    from delta_ds.kernel.transaction.table_log import TableLog
    from delta_ds.spark.engines.portable.batch import Changes, Pin, Rows

    storage = open_storage(options.path, options.storage_options)
    if options.change_feed:
        from delta_ds.kernel.commands.changes import open_changes

        if pin is not None:
            feed = open_changes(
                storage, pin.first, pin.last, net=options.net, keys=options.keys, newest=pin.columns_of
            )
        else:
            feed = open_changes(
                storage,
                options.starting_version,
                options.ending_version,
                options.starting_timestamp,
                options.ending_timestamp,
                net=options.net,
                keys=options.keys,
            )
        return Changes(feed, Pin(feed.start, feed.end, feed.columns_of), options.metadata_columns)
    opened = TableLog(storage)
    snapshot = (
        opened.open_snapshot(pin.last) if pin else opened.open_snapshot(options.version, options.timestamp)
    )
    return Rows(snapshot, Pin(None, snapshot.version), options)


def select_read_schema(available: StructType, options: ReadOptions, table: str) -> StructType:
    """What a read without a given schema returns: what `columns` and `metadataColumns` ask for, else all."""
    if options.columns is None:
        return available
    wanted = [*options.columns, *(["_metadata"] if options.metadata_columns else [])]
    return schemas.select_columns(wanted, available, table)
