"""Which kind a session is of: for whom pyspark makes columns, who holds its tables, whose folder relative paths are of.

pyspark goes by the process: once it has been a client of Spark Connect, `pyspark.sql.functions.col` makes columns of a
client for everybody. But a process may be client and server at once, as notebooks and tests are with
`SparkSession.builder.remote("local[*]")`, and what the server's JVM asks there is about classic sessions. Here that of
the session at hand counts.

Tables are held, and looked up by their names, by this process and its JVM, or by the server.

A relative path is of the folder in which the JVM began, as Spark has it in whatever it reads and writes by itself: the
processes that it starts are there too. This one may be elsewhere by now, and then a path must not name one table to
Spark and another one here. A server resolves those of its clients.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from delta_ds.kernel.base.environment import ask_driver, relative_to
from delta_ds.spark.base.kinds.kind import is_connect
from delta_ds.spark.base.session_conf import has_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_C = TypeVar("_C", bound=type)

_WHO_ASKS = "is_remote"
_here = threading.local()
_installing = threading.Lock()


@contextmanager
def kind_of(owner: object) -> Iterator[None]:
    """Within the block, pyspark makes what belongs to a session, or to the session of a reader or writer.

    Relative paths are those of its JVM. It counts for this thread.
    """
    connect = is_connect(owner)
    with _kind(connect), nullcontext() if connect else relative_to(_folder_of_jvm):
        yield


def answers_jvm(owner: _C) -> _C:
    """Let the public methods of a class, which the JVM calls, work for classic sessions: a client has no JVM."""
    for name, method in list(vars(owner).items()):
        if not name.startswith("_") and callable(method) and not isinstance(method, type):
            setattr(owner, name, _in_classic_kind(method))
    return owner


def _in_classic_kind(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def called(*arguments: Any, **keywords: Any) -> Any:
        with _kind(False), relative_to(_folder_of_jvm):
            return method(*arguments, **keywords)

    return called


def _folder_of_jvm() -> str:
    """Where the JVM of this process began, which is what Hadoop makes relative paths absolute by."""
    from pyspark import SparkContext

    jvm = SparkContext._jvm
    assert jvm is not None
    return str(jvm.java.lang.System.getProperty("user.dir"))


def _temporary_folder() -> str | None:
    """The folder of the session of this process in `spark.local.dir`, which goes with it."""
    # Not of pyspark itself: where only its client is installed, it has none.
    core = sys.modules.get("pyspark.core.context")
    context = core.SparkContext._active_spark_context if core is not None else None
    return None if context is None else str(context._temp_dir)


ask_driver(_temporary_folder)


def _kind(connect: bool) -> AbstractContextManager[None]:
    from pyspark.sql import utils

    return nullcontext() if utils.is_remote() == connect else _as(connect)


@contextmanager
def _as(connect: bool) -> Iterator[None]:
    _install()
    before = getattr(_here, "connect", None)
    _here.connect = connect
    try:
        yield
    finally:
        _here.connect = before


def _install() -> None:
    """Have pyspark ask here; outside the blocks above the answer is its own."""
    from pyspark.sql import utils

    with _installing:
        original = utils.is_remote
        if hasattr(original, "__wrapped__"):
            return

        @functools.wraps(original)
        def is_remote() -> bool:
            connect: bool | None = getattr(_here, "connect", None)
            return original() if connect is None else connect

        for name, module in list(sys.modules.items()):
            if name.startswith("pyspark.") and getattr(module, _WHO_ASKS, None) is original:
                setattr(module, _WHO_ASKS, is_remote)


def server_holds_tables(spark: SparkSession | None) -> bool:
    """Whether logs are read and written by a server, whose paths and files they are; None: without a session."""
    return spark is not None and is_connect(spark)


def knows_names(spark: SparkSession) -> bool:
    """Whether our tables are in a session's catalog, where this process can look them up."""
    return not is_connect(spark) and has_catalog(spark)


def server_knows_names(spark: SparkSession) -> bool:
    """Whether our tables are in the catalog of a server, which has to be asked for them."""
    return is_connect(spark) and has_catalog(spark)
