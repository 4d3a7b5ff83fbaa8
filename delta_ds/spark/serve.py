"""`pydelta serve`: a server for BI tools (`--thrift`) or for Spark Connect (`--connect`) over Delta tables by name.

The server is a classic session of this process, registered before the first client is served. Every session of a
client is made from it, with the parser, the rules and the catalog that `register` has put there.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delta_ds.exceptions import InvalidOptionError, UnsupportedOperationError
from delta_ds.spark.connect_server import (
    DEFAULT_PORT,
    connect_server,
    registered_session,
    settings_of,
    until_ended,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THRIFT_PORT = 10000

_HADOOP = "spark.hadoop."
_OF_HIVE = ("hive.", "javax.jdo.")
_OF_SPARK = "spark."
_CATALOG_KIND = "spark.sql.catalogImplementation"
_WAREHOUSE = "spark.sql.warehouse.dir"
_METASTORE_SERVICE = f"{_HADOOP}hive.metastore.uris"
_METASTORE_DATABASE = f"{_HADOOP}javax.jdo.option.ConnectionURL"
_HIVE_SERVER = f"{_HADOOP}hive.server2."
_HOST = f"{_HIVE_SERVER}thrift.bind.host"
_PORTS = (f"{_HIVE_SERVER}thrift.port", f"{_HIVE_SERVER}thrift.http.port")
# What follows the address in a URL of JDBC; the names are those of Hive's driver.
_AUTHENTICATION = f"{_HIVE_SERVER}authentication"
_TOKEN = "spark.connect.authenticate.token"
_TRANSPORT = f"{_HIVE_SERVER}transport.mode"
_TLS = f"{_HIVE_SERVER}use.SSL"
# What Spark adds to the class path of each JVM that it starts.
_CLASS_PATH = "SPARK_DIST_CLASSPATH"
_NO_USERS = ("NONE", "NOSASL")


def add_command(commands: Any) -> None:
    """Add `serve` to the commands of `pydelta`.

    Parameters
    ----------
    commands
        What `ArgumentParser.add_subparsers` gave.
    """
    command = commands.add_parser(
        "serve",
        help="serve tables to BI tools (--thrift) or to clients of Spark Connect (--connect)",
        description="Start a server in this process whose clients have Delta's statements and tables by name. "
        "It prints where it listens, and ends with SIGINT or SIGTERM.",
    )
    kind = command.add_mutually_exclusive_group(required=True)
    kind.add_argument(
        "--thrift",
        action="store_const",
        dest="kind",
        const=thrift_server,
        help="Spark's HiveServer2: JDBC, ODBC, beeline, pyhive, SQLAlchemy, dbt",
    )
    kind.add_argument(
        "--connect", action="store_const", dest="kind", const=connect_server, help="Spark Connect: sc://"
    )
    command.add_argument(
        "--host", default="127.0.0.1", help="the address to listen at (default: %(default)s)"
    )
    command.add_argument(
        "--port",
        type=_port,
        help=f"0 for a free one (default: {THRIFT_PORT} with --thrift, {DEFAULT_PORT} with --connect)",
    )
    command.add_argument("--warehouse", metavar="FOLDER", help=f"where managed tables lie: {_WAREHOUSE}")
    command.add_argument(
        "--metastore",
        metavar="PLACE",
        help="the Hive metastore: thrift://HOST:PORT of a service, jdbc:... of a database, or a folder of a Derby "
        "database, which one process uses at a time (default: with --thrift the folder metastore_db, with "
        "--connect none)",
    )
    command.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark (spark.*) or Hive (hive.*, javax.jdo.*); may be repeated",
    )
    command.set_defaults(call=_serve)


def _port(text: str) -> int:
    most = 65535
    if not (text.isascii() and text.isdigit() and int(text) <= most):
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to {most}")
    return int(text)


def _serve(parsed: argparse.Namespace) -> int:
    start: Callable[..., AbstractContextManager[str]] = parsed.kind
    usual = THRIFT_PORT if start is thrift_server else DEFAULT_PORT
    port = usual if parsed.port is None else parsed.port
    try:
        settings = server_settings(parsed.conf, parsed.warehouse, parsed.metastore)
        check_address(parsed.host, port)
    except InvalidOptionError as error:
        sys.stderr.write(f"pydelta serve: error: {error}\n")
        return 2
    asked_by = _AUTHENTICATION if start is thrift_server else _TOKEN
    if lets_everybody_in(parsed.host, settings.get(asked_by)):
        sys.stderr.write(
            f"warning: everybody who reaches {parsed.host} reads and changes all tables, as no user is asked for a "
            f"password: set {asked_by.removeprefix(_HADOOP)}, or listen at 127.0.0.1\n"
        )
    return until_ended(start(port, parsed.host, settings))


def server_settings(
    conf: list[str], warehouse: str | None = None, metastore: str | None = None
) -> dict[str, str]:
    """The settings of a server's session.

    Parameters
    ----------
    conf
        Settings as the command line gives them, of Spark and of Hive.
    warehouse
        Where managed tables lie.
    metastore
        A service (`thrift://`), a database (`jdbc:`) or the folder of a Derby database.

    Raises
    ------
    InvalidOptionError
        A setting has no value or is neither Spark's nor Hive's, or an option says otherwise than a setting.

    Examples
    --------
    >>> server_settings(["hive.server2.use.SSL=true"], warehouse="/data/warehouse")
    {'spark.hadoop.hive.server2.use.SSL': 'true', 'spark.sql.warehouse.dir': '/data/warehouse'}
    """
    found = {_spark_name(name): value for name, value in settings_of(conf).items()}
    if warehouse is not None:
        _add(found, "--warehouse", _WAREHOUSE, warehouse)
    if metastore is not None:
        _add(found, "--metastore", _CATALOG_KIND, "hive")
        _add(found, "--metastore", *_place_of(metastore))
    return found


def _spark_name(name: str) -> str:
    if name.startswith(_OF_SPARK):
        return name
    if name.startswith(_OF_HIVE):
        return f"{_HADOOP}{name}"
    raise InvalidOptionError(
        f"--conf takes settings of Spark (spark.*) and Hive (hive.*, javax.jdo.*), and {name} is none"
    )


def _add(settings: dict[str, str], option: str, name: str, value: str) -> None:
    if settings.get(name, value) != value:
        raise InvalidOptionError(f"{option} and --conf {name}=... say different things: give one of them")
    settings[name] = value


def _place_of(metastore: str) -> tuple[str, str]:
    if metastore.startswith("thrift://"):
        return _METASTORE_SERVICE, metastore
    if metastore.startswith("jdbc:"):
        return _METASTORE_DATABASE, metastore
    if "://" in metastore:
        raise InvalidOptionError(
            "--metastore takes thrift://HOST:PORT, jdbc:... or a folder of this machine, and was given none of them"
        )
    # Derby makes the last folder only, and parts its settings by semicolons.
    folder = Path(metastore).absolute()
    if ";" in str(folder) or not folder.parent.is_dir():
        raise InvalidOptionError(
            f"--metastore {metastore}: there is no folder {folder.parent}, or the name has a semicolon"
        )
    return _METASTORE_DATABASE, f"jdbc:derby:;databaseName={folder};create=true"


def check_address(host: str, port: int) -> None:
    """Refuse an address that cannot be listened at, before Spark starts.

    Raises
    ------
    InvalidOptionError
        The host is none of this machine, or the port is in use.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # As Java's sockets have it, to which a port that was just given up is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise InvalidOptionError(f"cannot listen at {host}, port {port}: {error.strerror}") from None


def lets_everybody_in(host: str, authentication: str | None) -> bool:
    """Whether a server serves other machines and asks nobody for a password.

    Parameters
    ----------
    authentication
        Of Hive, or the token of Spark Connect; None where nothing is set.

    >>> lets_everybody_in("127.0.0.1", None), lets_everybody_in("0.0.0.0", None)
    (False, True)
    >>> lets_everybody_in("0.0.0.0", "LDAP")
    False
    """
    if (authentication or _NO_USERS[0]).upper() not in _NO_USERS:
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


@contextmanager
def thrift_server(
    port: int = THRIFT_PORT, host: str = "127.0.0.1", settings: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Serve clients of HiveServer2 as long as the block runs.

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
        The URL that Hive's JDBC driver takes.

    Raises
    ------
    UnsupportedOperationError
        Delta's SQL cannot be put into sessions of this Spark, it cannot serve, or this process has a JVM already; the
        message says why.
    """
    from py4j.protocol import Py4JJavaError

    from delta_ds.spark.engines.classic.jvm import Jvm
    from delta_ds.spark.session.catalog.classes import class_folder, make_class_folder, static

    # Hive's server has class loaders of its own, and closes those of Spark when a client leaves: all but the JVM's.
    os.environ[_CLASS_PATH] = os.pathsep.join(
        filter(None, (os.environ.get(_CLASS_PATH), str(make_class_folder())))
    )
    given = {_CATALOG_KIND: "hive", **(settings or {}), _HOST: host, **dict.fromkeys(_PORTS, str(port))}
    with registered_session(given) as spark:
        jvm = Jvm.of(spark)
        if class_folder(jvm) is None:
            raise UnsupportedOperationError(
                "this process has a JVM already: start the server in one of its own"
            )
        static(jvm, "ServedEntries").into(spark._jsparkSession)
        server = _hive_server(spark)
        try:
            started = server.startWithContext(spark._jsparkSession.sqlContext())
        except Py4JJavaError as error:
            cause = error.java_exception
            while cause.getCause() is not None:
                cause = cause.getCause()
            raise UnsupportedOperationError(f"the server did not start: {cause.getMessage()}") from None
        try:
            yield _url(host, _listening_port(started), given)
        finally:
            started.stop()


def _hive_server(spark: SparkSession) -> Any:
    from py4j.java_gateway import JavaClass

    jvm: Any = spark._jvm
    package = jvm.org.apache.spark.sql.hive.thriftserver
    module = getattr(package, "HiveThriftServer2$")
    if not isinstance(module, JavaClass):
        raise UnsupportedOperationError(
            "this Spark has no Thrift server: spark-hive-thriftserver is not among its jars"
        )
    return getattr(module, "MODULE$")


def _listening_port(server: Any) -> int:
    for service in server.getServices():
        if service.getClass().getSimpleName().startswith("Thrift"):
            return int(service.getPortNumber())
    raise UnsupportedOperationError("the server does not say where it listens")


def _url(host: str, port: int, settings: Mapping[str, str]) -> str:
    """The address as JDBC has it.

    >>> _url("::1", 10000, {_TLS: "true", _TRANSPORT: "http"})
    'jdbc:hive2://[::1]:10000/;ssl=true;transportMode=http;httpPath=cliservice'
    """
    text = f"jdbc:hive2://{f'[{host}]' if ':' in host else host}:{port}/"
    if settings.get(_TLS, "false").lower() == "true":
        text += ";ssl=true"
    if settings.get(_TRANSPORT, "binary").lower() == "http":
        text += (
            f";transportMode=http;httpPath={settings.get(f'{_HIVE_SERVER}thrift.http.path', 'cliservice')}"
        )
    return text
