"""`python -m delta_ds connect-server`: a server of Spark Connect whose sessions all have Delta's SQL and names.

The server is a classic session of this process, registered before the first client is served. Every session of a
client is made from it, with the parser, the rules and the catalog that `register` has put there.
"""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from delta_ds.exceptions import InvalidOptionError, UnsupportedOperationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_PORT = 15002
# How often a server looks whether its JVM is still there.
_LOOK_SECONDS = 1.0

_ADDRESS = "spark.connect.grpc.binding.address"
_PORT = "spark.connect.grpc.binding.port"


def add_command(commands: Any) -> None:
    """Add `connect-server` to the commands of `python -m delta_ds`.

    Parameters
    ----------
    commands
        What `ArgumentParser.add_subparsers` gave.
    """
    command = commands.add_parser(
        "connect-server",
        help="start a server of Spark Connect with Delta's SQL and names",
        description="Start a server of Spark Connect in this process, whose clients have Delta's statements, tables "
        "by name and the format delta without any call of their own. It ends with SIGINT or SIGTERM.",
    )
    command.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help="0 for a free one (default: %(default)s)"
    )
    command.add_argument(
        "--host", default="localhost", help="the address to listen at (default: %(default)s)"
    )
    command.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark; may be repeated",
    )
    command.set_defaults(call=_serve)


def _serve(parsed: argparse.Namespace) -> int:
    return until_ended(connect_server(parsed.port, parsed.host, settings_of(parsed.conf)))


def until_ended(server: AbstractContextManager[str]) -> int:
    """Run a server until SIGINT or SIGTERM, and tell where it listens; the exit status."""
    ended = threading.Event()
    from py4j.protocol import Py4JError

    try:
        with server as url:
            # After Spark, which has handlers of its own.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: ended.set())
            print(f"serving {url}", flush=True)
            while not ended.wait(_LOOK_SECONDS):
                if not _jvm_runs():
                    raise UnsupportedOperationError("the server's JVM has ended; what it said is above")
    except (Py4JError, OSError):
        # Whoever ended this process ended the JVM as well, as service managers do: nothing is left to stop.
        if not ended.is_set() or _jvm_runs():
            raise
    return 0


def _jvm_runs() -> bool:
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    return process is None or process.poll() is None


def settings_of(texts: Sequence[str]) -> dict[str, str]:
    """Settings as the command line gives them.

    Raises
    ------
    InvalidOptionError
        One has no value.

    >>> settings_of(["spark.master=local[2]"])
    {'spark.master': 'local[2]'}
    """
    found = {}
    for number, text in enumerate(texts, 1):
        name, equals, value = text.partition("=")
        if not equals:
            # Not shown: it may be the value without its name.
            raise InvalidOptionError(f"--conf takes NAME=VALUE, and number {number} has no =")
        found[name] = value
    return found


@contextmanager
def connect_server(
    port: int = DEFAULT_PORT, host: str = "localhost", settings: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Serve clients of Spark Connect as long as the block runs.

    Parameters
    ----------
    port
        0 for a free one.
    host
        The address to listen at.
    settings
        Of the session that the server is made of.

    Yields
    ------
    str
        What clients give to `SparkSession.builder.remote`.

    Raises
    ------
    UnsupportedOperationError
        Delta's SQL cannot be put into sessions of this Spark; the message says why.
    """
    with registered_session({**(settings or {}), _ADDRESS: host, _PORT: str(port)}) as spark:
        from delta_ds.spark.sql.client_calls import serving_clients

        jvm: Any = spark._jvm
        services, none = jvm.org.apache.spark.sql.connect.service, jvm.scala.Option.empty()
        service = getattr(getattr(services, "SparkConnectService$"), "MODULE$")
        with serving_clients(spark):
            service.start(spark.sparkContext._jsc.sc())
            try:
                yield f"sc://{host}:{service.localPort()}"
            finally:
                service.stop(none, none)


@contextmanager
def registered_session(settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session that a server is made of, with Delta's SQL in it; it ends with the block.

    Raises
    ------
    UnsupportedOperationError
        Delta's SQL cannot be put into it.
    """
    from pyspark.sql import SparkSession

    from delta_ds.spark.register import register

    builder: SparkSession.Builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        registration = register(spark)
        if not registration.sql:
            raise UnsupportedOperationError(
                f"the server has no SQL for Delta tables: {registration.sql.reason}"
            )
        yield spark
    finally:
        spark.stop()
