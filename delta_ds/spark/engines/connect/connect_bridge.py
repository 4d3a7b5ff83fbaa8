"""Spark Connect: run log reads and commits on the server, which holds the table.

A client of Spark Connect need not reach the table's storage, nor have the same machine, folders or credentials as the
server, where rows are read and written. So calls on the log go there too, through a data source that is nothing but a
way in: a command is the commit of a write without rows, which Spark runs once, on the driver; a question is the
planning of a read. Both travel as data (`wire.py`): neither side runs code that the other has sent. A server of ours is
called without the data source: where `register` runs in the server's own process, a relation of our own brings a call
there. Spark sees in it a command, runs it once, and gives the client its answer.
"""

from __future__ import annotations

import base64
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceWriter,
    InputPartition,
    WriterCommitMessage,
)

from delta_ds.api.delta_log import DeltaLog
from delta_ds.conditions.dml import COMMAND_NEEDS_SPARK
from delta_ds.conditions.session import UNREADABLE_MESSAGE
from delta_ds.kernel.format.operations import MERGE
from delta_ds.kernel.format.options.read import parse_read_options
from delta_ds.kernel.format.options.settings import ORIGIN
from delta_ds.kernel.transaction.origin import carried
from delta_ds.records import dataclass
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.base import wire
from delta_ds.spark.base.kinds.sealed import (
    Sealed,
    is_registered,
    open_value,
    register_source,
    seal,
    seal_argument,
)
from delta_ds.spark.base.kinds.session_facts import origin_of, parse_options_of_read, with_facts_of_reads
from delta_ds.spark.base.kinds.session_kind import server_holds_tables
from delta_ds.spark.base.session_conf import is_served
from delta_ds.spark.errors.translation import delta_errors, with_error_parameters

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType as SparkStructType

FORMAT = "pydelta_server"

_CALL = "call"
_ORIGIN = "origin"
# Spark keeps the plans of a session: without it, the same question would get the same answer again.
_NONCE = "nonce"
# Of how many bytes the rows may be that come with a command.
_MOST_BYTES = "most_bytes"
# So much a task may send, as all that tasks send is in the driver before anybody can measure it. Tasks of larger
# sources have more, as Spark cuts files and shuffled rows.
_MOST_OF_TASK = 32 << 20

_answers_calls: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()


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

    @property
    def answers_calls(self) -> bool:
        """Whether the server is one of ours, see `call_server`; asked once a session."""
        if self._spark not in _answers_calls:
            _answers_calls[self._spark] = is_served(self._spark)
        return _answers_calls[self._spark]

    def change_rows(
        self, command: Mapping[str, Any], columns: Sequence[Column], rows: DataFrame | None = None
    ) -> Any:
        """Have a server that `answers_calls` run a command which changes rows, once; what it counted.

        Parameters
        ----------
        command
            As `sql/client_calls.py` takes it.
        columns, rows
            See `call_server`.
        """
        what = ("rows", origin_of(self._spark).to_text(), dict(command))
        return call_server(self._spark, what, columns, rows)

    def ask(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """What `function(log, *arguments, **keywords)` answers on the server.

        Parameters
        ----------
        function
            One that `wire.py` lists, without effect: Spark may call it more than once.
        arguments, keywords
            As the answer, anything that `wire.py` has a form for.

        Raises
        ------
        DeltaError
            What the function raised.
        """
        if self.answers_calls:
            return call_server(self._spark, ("ask", self._table(), "{}", function, arguments, keywords))
        options = self._call(function, arguments, keywords)
        with delta_errors():
            (row,) = self._spark.read.format(FORMAT).options(**options).load().collect()
        return wire.decode(row[0])

    def run(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> None:
        """Call `function(log, *arguments, **keywords)` on the server, once; arguments as for `ask`.

        Raises
        ------
        DeltaError
            What the function raised.
        """
        origin = origin_of(self._spark).to_text()
        if self.answers_calls:
            call_server(self._spark, ("run", self._table(), origin, function, arguments, keywords))
            return
        options = self._call(function, arguments, keywords)
        options[_ORIGIN] = origin
        with delta_errors():
            no_rows = self._spark.range(0, 0, 1, 1)
            no_rows.write.format(FORMAT).mode("append").options(**options).save()

    def run_on(self, rows: DataFrame, most_bytes: int, function: Callable[..., Any], *arguments: Any) -> None:
        """Call `function(log, rows, *arguments)` on a server of others, once, with the rows of a query as `pa.Table`.

        Parameters
        ----------
        rows
            Computed once.
        most_bytes
            Of how many bytes they may be as Arrow has them.

        Raises
        ------
        DeltaError
            What the function raised; `DELTA_COMMAND_NEEDS_SPARK` where the rows are too many.
        """
        options = self._call(function, arguments, {})
        options |= {_ORIGIN: origin_of(self._spark).to_text(), _MOST_BYTES: str(most_bytes)}
        with delta_errors():
            rows.write.format(FORMAT).mode("append").options(**options).save()

    def _call(
        self, function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
    ) -> dict[str, str]:
        if not is_registered(self._spark, FORMAT):
            register_source(self._spark, ServerSource)
        told = tuple(seal_argument(self._spark, one) for one in arguments)
        # Not as plain text: Spark shows options.
        call = _folded(wire.encode((function, told, dict(keywords))))
        sealed = seal(self._spark, self._table(), FORMAT)
        return {**sealed, _CALL: call, _NONCE: uuid.uuid4().hex}

    def _table(self) -> dict[str, str]:
        return {**self._options, "path": self._path}


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
    if spark is not None and server_holds_tables(spark):
        return ServerLog(spark, str(path), with_facts_of_reads(spark, options))
    parsed = parse_options_of_read(spark, {**options, "path": str(path)})
    return DeltaLog(parsed.path, parsed.storage_options)


def ask(log: Log, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """What `function(log, ...)` answers, wherever the log is; see `ServerLog.ask`."""
    if isinstance(log, ServerLog):
        return log.ask(function, *arguments, **keywords)
    return function(log, *arguments, **keywords)


def run(log: Log, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> None:
    """Call `function(log, ...)`, wherever the log is; see `ServerLog.run`."""
    if isinstance(log, ServerLog):
        log.run(function, *arguments, **keywords)
    else:
        function(log, *arguments, **keywords)


@with_error_parameters
class ServerSource(DataSource, Sealed):
    """The data source through which `ServerLog` calls the server."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(self.opened(options))

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return "answer string"

    def reader(self, schema: SparkStructType) -> DataSourceReader:
        return _Question(dict(self.options))

    def writer(self, schema: SparkStructType, overwrite: bool) -> DataSourceWriter | DataSourceArrowWriter:
        options = dict(self.options)
        return _CommandOnRows(options, schema) if _MOST_BYTES in options else _Command(options)


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
        return [_Answer(wire.encode(_call_function(self._options)))]

    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        assert isinstance(partition, _Answer)
        yield (partition.text,)


@with_error_parameters
class _Command(DataSourceWriter):
    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return WriterCommitMessage()

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _call_function(self._options)


@dataclass
class _RowsOfTask(WriterCommitMessage):
    """Rows as a stream of Arrow IPC; None: they are of more bytes than one of the tasks may send."""

    stream: bytes | None


@with_error_parameters
class _CommandOnRows(DataSourceArrowWriter):
    """Tasks send their rows to the driver, where the command gets all of them."""

    def __init__(self, options: dict[str, str], schema: SparkStructType) -> None:
        self._options, self._schema = options, schema
        self._most_bytes = int(options[_MOST_BYTES])

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _RowsOfTask:
        import pyarrow as pa

        most = min(self._most_bytes, _MOST_OF_TASK)
        batches, size = [], 0
        for batch in iterator:
            size += batch.nbytes
            if size > most:
                return _RowsOfTask(None)
            batches.append(batch)
        if not batches:
            return _RowsOfTask(b"")
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batches[0].schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
        return _RowsOfTask(sink.getvalue().to_pybytes())

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        import pyarrow as pa

        streams = [message.stream for message in messages if isinstance(message, _RowsOfTask)]
        parts = [pa.ipc.open_stream(stream).read_all() for stream in streams if stream]
        rows = pa.concat_tables(parts) if parts else schemas.to_arrow(self._schema).empty_table()
        if None in streams or rows.nbytes > self._most_bytes:
            raise COMMAND_NEEDS_SPARK(
                operation=MERGE.name,
                table=self._options["path"],
                reason=f"its source has more than {self._most_bytes} bytes",
            )
        _call_function(self._options, rows)


def _call_function(options: Mapping[str, str], *rows: pa.Table) -> Any:
    function, arguments, keywords = wire.decode(_unfolded(options[_CALL]))
    own = (_CALL, _NONCE, _ORIGIN, _MOST_BYTES)
    table = {name: text for name, text in options.items() if name not in own}
    opened = [open_value("an argument", one) for one in arguments]
    return call_function(table, options.get(_ORIGIN, "{}"), function, [*rows, *opened], keywords)


def call_function(
    options: Mapping[str, str],
    origin: str,
    function: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:
    """What `function(log, ...)` answers, in a process of the server.

    Parameters
    ----------
    options
        Read options of the table.
    origin
        Of a commit, as text.
    """
    with carried({ORIGIN: origin}):
        return function(_open(options), *arguments, **keywords)


def _open(options: Mapping[str, str]) -> DeltaLog:
    parsed = parse_read_options(options)
    return DeltaLog(parsed.path, parsed.storage_options)


def _folded(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode(), 1)).decode()


def _unfolded(text: str) -> str:
    try:
        return zlib.decompress(base64.b64decode(text, validate=True)).decode()
    except (ValueError, zlib.error) as error:
        raise UNREADABLE_MESSAGE(reason=error) from error


# See `ClientCalls.java`.
_TYPE = "type.googleapis.com/delta_ds.Call"


def call_server(
    spark: SparkSession, what: Sequence[Any], columns: Sequence[Column] = (), rows: DataFrame | None = None
) -> Any:
    """What the server answers.

    Parameters
    ----------
    spark
        A session of Spark Connect, of a server of ours.
    what
        The kind of the call and its arguments, as `sql/client_calls.py` takes them; `wire.py` has a form for them.
    columns
        Expressions that `what` speaks of, by their numbers. Queries in them do not travel.
    rows
        Of a MERGE.

    Raises
    ------
    DeltaError
        What the server raised.
    """
    from pyspark.sql.connect import proto
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
    from pyspark.sql.connect.plan import LogicalPlan

    class Call(LogicalPlan):
        def plan(self, session: Any) -> Any:
            content = proto.Project()
            content.expressions.add().literal.string = wire.encode(tuple(what))
            for column in columns:
                content.expressions.add().CopyFrom(column.to_plan(session))  # type: ignore[operator]
            if rows is not None:
                content.input.CopyFrom(rows._plan.plan(session))  # type: ignore[operator]
            relation = self._create_proto_relation()
            # As bytes, which Spark abbreviates where it shows plans.
            relation.extension.type_url = _TYPE
            relation.extension.value = content.SerializeToString()
            return relation

    with delta_errors():
        ((answer,),) = ConnectFrame(Call(None), spark).collect()  # type: ignore[arg-type]
    return wire.decode(answer)
