"""What a server of Spark Connect answers its clients in the process that its sessions are registered in."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.format.operations import DELETE, MERGE, UPDATE
from delta_ds.kernel.format.options.settings import ORIGIN
from delta_ds.kernel.transaction.origin import carried
from delta_ds.records import replace
from delta_ds.spark.base import wire
from delta_ds.spark.base.session_conf import CLIENT_CALLS, CLIENT_CALLS_CONF
from delta_ds.spark.commands.delete import run_delete
from delta_ds.spark.commands.handle import Handle, open_handle
from delta_ds.spark.commands.merge.plan import Clause
from delta_ds.spark.commands.merge.run import run_merge
from delta_ds.spark.commands.row_commands import OF_TABLE, Received
from delta_ds.spark.commands.update import run_update
from delta_ds.spark.engines.classic.jvm import Jvm, compile_class
from delta_ds.spark.engines.connect.connect_bridge import call_function
from delta_ds.spark.session.catalog.classes import published_format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.spark.base.kinds.java_object import JavaObject


@contextmanager
def serving_clients(spark: SparkSession) -> Iterator[None]:
    """Within the block, clients of this JVM's server of Spark Connect call this process, in sessions made from then on.

    The format `pydelta` then names the source that `delta` names, so that their reads and writes are those of a classic
    session. It would be the data source in Python otherwise.

    Parameters
    ----------
    spark
        A classic session, in which SQL is registered.

    Raises
    ------
    NotNative
        This Spark has other classes of its server than those that the call needs.
    """
    jvm = Jvm.of(spark)
    compile_class(jvm.jvm, jvm.gateway, "ClientCalls").serve()
    # Sessions of clients begin with the context's settings.
    spark.sparkContext._jsc.sc().conf().set(CLIENT_CALLS_CONF, CLIENT_CALLS)
    spark.conf.set(CLIENT_CALLS_CONF, CLIENT_CALLS)
    with published_format(jvm):
        yield


def answer_call(spark: SparkSession, call: JavaObject) -> str:
    """Answer a client.

    Parameters
    ----------
    call
        As `ClientCalls.java` gives it: what is called, expressions, and rows (null: none).

    Returns
    -------
    str
        As `wire.py` has it.
    """
    text, expressions, rows = call
    kind, *arguments = wire.decode(text)
    return wire.encode(_KINDS[kind](spark, expressions, rows, *arguments))


def _ask(spark: SparkSession, expressions: JavaObject, rows: JavaObject | None, *call: Any) -> Any:
    return call_function(*call)


def _run(spark: SparkSession, expressions: JavaObject, rows: JavaObject | None, *call: Any) -> None:
    call_function(*call)


def _change_rows(
    spark: SparkSession,
    expressions: JavaObject,
    rows: JavaObject | None,
    origin: str,
    command: Mapping[str, Any],
) -> tuple[int | None, ...]:
    """Run a command of `run_at_server`."""
    jvm = Jvm.of(spark)
    options = dict(command["table"])
    with carried({ORIGIN: origin}):
        handle = open_handle(spark, options.pop("path"), options, command["alias"])
        handle = replace(handle, given=deque([OF_TABLE]))
        received = Received([jvm.column(expression) for expression in expressions])
        source = None if rows is None else jvm.data_frame(rows)
        (counts,) = _COMMANDS[command["operation"]](handle, received, source, command).collect()
    return tuple(counts)


def _delete(handle: Handle, received: Received, source: Any, command: Mapping[str, Any]) -> DataFrame:
    return run_delete(handle, received.expression(command["condition"]))


def _update(handle: Handle, received: Received, source: Any, command: Mapping[str, Any]) -> DataFrame:
    condition, assignments = command["condition"], command["assignments"]
    return run_update(handle, received.expression(condition), received.assignments(assignments))


def _merge(handle: Handle, received: Received, source: Any, command: Mapping[str, Any]) -> DataFrame:
    clauses = [
        Clause(when, do, received.expression(taken), received.assignments(values))
        for when, do, taken, values in command["clauses"]
    ]
    condition = received.expression(command["condition"])
    return run_merge(handle, source, condition, clauses, command["evolve"], command["txn"])


_KINDS: Mapping[str, Callable[..., Any]] = {"ask": _ask, "run": _run, "rows": _change_rows}
_COMMANDS: Mapping[str, Callable[..., DataFrame]] = {
    DELETE.name: _delete,
    UPDATE.name: _update,
    MERGE.name: _merge,
}
