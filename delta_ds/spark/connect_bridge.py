"""Spark Connect: run log reads and commits on the server, which holds the table.

A client of Spark Connect need not reach the table's storage, nor have the same machine, folders or credentials as the
server, where rows are read and written. So calls on the log go there too, through a data source that is nothing but a
way in: a command is the commit of a write without rows, which Spark runs once, on the driver; a question is the
planning of a read.
"""

from __future__ import annotations

import base64
import json
import pickle
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakSet

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, InputPartition

from delta_ds.kernel.delta_log import DeltaLog
from delta_ds.kernel.options.read import parse_read_options
from delta_ds.kernel.transaction.origin import ORIGIN_KEY, carried
from delta_ds.spark.engine import is_connect
from delta_ds.spark.errors import delta_errors, with_error_parameters
from delta_ds.spark.hadoop_settings import with_session_settings
from delta_ds.spark.origin import origin_of
from delta_ds.spark.timezone import machine_time_zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import WriterCommitMessage
    from pyspark.sql.types import StructType as SparkStructType

FORMAT = "pydelta_server"

_CALL = "call"
_ORIGIN = "origin"
# Spark keeps the plans of a session: without it, the same question would get the same answer again.
_NONCE = "nonce"
_MOMENT = "\0moment"

_registered: WeakSet[SparkSession] = WeakSet()


class ServerLog:
    """The log of the table at a path of the server.

    Parameters
    ----------
    spark
        A session of Spark Connect.
    path
        As the server understands it: relative paths begin at the server's working directory.
    options
        `storage.*` and `fs.*` settings.
    """

    def __init__(self, spark: SparkSession, path: str, options: Mapping[str, str]) -> None:
        self._spark = spark
        self._path = path
        self._options = dict(options)

    def ask(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """What `function(log, *arguments, **keywords)` answers on the server.

        Parameters
        ----------
        function
            Of a module of this package, without effect: Spark may call it more than once. Its answer consists of
            what JSON knows, and aware datetimes.
        arguments, keywords
            Anything that can be pickled.

        Raises
        ------
        DeltaError
            What the function raised.
        """
        options = self._call(function, arguments, keywords)
        with delta_errors():
            (row,) = self._spark.read.format(FORMAT).options(**options).load().collect()
        return json.loads(row[0], object_hook=_decode)

    def run(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> None:
        """Call `function(log, *arguments, **keywords)` on the server, once; arguments as for `ask`.

        Raises
        ------
        DeltaError
            What the function raised.
        """
        options = self._call(function, arguments, keywords)
        options[_ORIGIN] = origin_of(self._spark).to_text()
        with delta_errors():
            no_rows = self._spark.range(0, 0, 1, 1)
            no_rows.write.format(FORMAT).mode("append").options(**options).save()

    def _call(
        self, function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
    ) -> dict[str, str]:
        if self._spark not in _registered:
            self._spark.dataSource.register(ServerSource)
            _registered.add(self._spark)
        call = base64.b64encode(pickle.dumps((function, arguments, keywords))).decode()
        return {**self._options, "path": self._path, _CALL: call, _NONCE: uuid.uuid4().hex}


Log: TypeAlias = DeltaLog | ServerLog


def open_log(spark: SparkSession | None, path: str, options: Mapping[str, str]) -> Log:
    """The log of the table at a path: of this process, or of the server of a Spark Connect session.

    Parameters
    ----------
    spark
        The session; None stands for a classic one.
    path
        A local path or URL.
    options
        `storage.*` and `fs.*` settings.
    """
    if is_connect(spark):
        assert spark is not None
        return ServerLog(spark, str(path), options)
    return _open({**with_session_settings(spark, {**options, "path": str(path)}), "path": path})


def ask(log: Log, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """What `function(log, ...)` answers, wherever the log is; see `ServerLog.ask`."""
    if isinstance(log, ServerLog):
        return log.ask(function, *arguments, **keywords)
    return function(log, *arguments, **keywords)


def fetch(log: Log, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """As `ask`, for answers of any type that can be pickled."""
    if isinstance(log, ServerLog):
        text = log.ask(_pickle_answer, function, arguments, keywords)
        return pickle.loads(zlib.decompress(base64.b64decode(text)))
    return function(log, *arguments, **keywords)


def _pickle_answer(
    log: DeltaLog, function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> str:
    answer = function(log, *arguments, **keywords)
    return base64.b64encode(zlib.compress(pickle.dumps(answer), 1)).decode()


def run(log: Log, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> None:
    """Call `function(log, ...)`, wherever the log is; see `ServerLog.run`."""
    if isinstance(log, ServerLog):
        log.run(function, *arguments, **keywords)
    else:
        function(log, *arguments, **keywords)


@with_error_parameters
class ServerSource(DataSource):
    """The data source through which `ServerLog` calls the server."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return "answer string"

    def reader(self, schema: SparkStructType) -> DataSourceReader:
        return _Question(dict(self.options))

    def writer(self, schema: SparkStructType, overwrite: bool) -> DataSourceWriter:
        return _Command(dict(self.options))


class _Answer(InputPartition):
    def __init__(self, text: str) -> None:
        super().__init__(None)
        self.text = text


@with_error_parameters
class _Question(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        # Here, and not in `read`: on the driver, where commands run too.
        return [_Answer(json.dumps(_call_function(self._options), default=_encode))]

    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        assert isinstance(partition, _Answer)
        yield (partition.text,)


@with_error_parameters
class _Command(DataSourceWriter):
    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        from pyspark.sql.datasource import WriterCommitMessage

        return WriterCommitMessage()

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _call_function(self._options)


def _call_function(options: Mapping[str, str]) -> Any:
    function, arguments, keywords = pickle.loads(base64.b64decode(options[_CALL]))
    table = {name: text for name, text in options.items() if name not in (_CALL, _NONCE, _ORIGIN)}
    with carried({ORIGIN_KEY: options.get(_ORIGIN, "{}")}):
        return function(_open(table), *arguments, **keywords)


def _open(options: Mapping[str, str]) -> DeltaLog:
    parsed = parse_read_options(options, machine_time_zone())
    return DeltaLog(parsed.path, parsed.storage_options)


def _encode(value: Any) -> Any:
    if isinstance(value, datetime):
        return {_MOMENT: value.isoformat()}
    raise TypeError(f"an answer of the server holds {value!r}, which has no form in JSON")


def _decode(value: dict[str, Any]) -> Any:
    return datetime.fromisoformat(value[_MOMENT]) if _MOMENT in value else value
