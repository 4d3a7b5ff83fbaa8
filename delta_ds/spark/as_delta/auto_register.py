"""`install_as_delta()`: code written for delta-spark runs, and every session that is made is registered.

No call of the program that makes it is needed for that.

Tools such as dbt and pyspark's shell make a session of their own. So the few places of pyspark where a session comes
into being are wrapped, as soon as pyspark is imported: nothing of it is imported here. A session that has the package
is left as it is, so asking for it again costs nothing.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from delta_ds.events.spark import SESSION_REGISTERED
from delta_ds.spark.as_delta.import_hooks import after_import
from delta_ds.spark.as_delta.settings import (
    EXTENSIONS,
    SESSION_CATALOG,
    install_package,
    other_package,
    remaining_settings,
    remaining_submit_arguments,
)

_CONTEXTS = "pyspark.core.context"
_SESSIONS = "pyspark.sql.session"

_lock = threading.Lock()
_installed = False
# Registering makes objects for the session that is being registered.
_registering = threading.local()


def install_auto_register() -> None:
    """Have every session of this process registered that is made from now on, and the one that there is.

    Settings that ask for delta-spark's jar are left out of what sessions are made with, where there is no such jar.
    Doing so again is harmless.
    """
    global _installed
    with _lock:
        if not _installed:
            _installed = True
            after_import(_CONTEXTS, _wrap_context)
            after_import(_SESSIONS, _wrap_sessions)
            after_import("pyspark.sql.connect.session", _wrap_connect_sessions)
    present = sys.modules[_SESSIONS].SparkSession.getActiveSession() if _SESSIONS in sys.modules else None
    if present is not None:
        _register(present)


def _register(spark: Any) -> None:
    """Register a session that is not."""
    from delta_ds.spark import session
    from delta_ds.spark.register import register

    if getattr(_registering, "now", False) or session.is_installed(spark):
        return
    _registering.now = True
    try:
        registration = register(spark)
        SESSION_REGISTERED.log(kind=registration.session, version=registration.spark_version)
    finally:
        _registering.now = False


# --- classic sessions


def _wrap_context(module: ModuleType) -> None:
    """What starts the JVM gets settings of programs alone; what makes the context, those of files too."""
    launch, initialize = module.launch_gateway, module.SparkContext._initialize_context

    @functools.wraps(launch)
    def launch_gateway(conf: Any = None, *arguments: Any, **keywords: Any) -> Any:
        remaining_submit_arguments()
        if conf is not None and conf._conf is not None:
            conf._conf = remaining_settings(conf._conf, _nothing_known)
        return launch(conf, *arguments, **keywords)

    @functools.wraps(initialize)
    def initialize_context(self: Any, jconf: Any) -> Any:
        given = {name: jconf.get(name) for name in (EXTENSIONS, SESSION_CATALOG) if jconf.contains(name)}
        kept = remaining_settings(given, _loadable(self._jvm))
        for name in given:
            jconf.set(name, kept[name]) if name in kept else jconf.remove(name)
        return initialize(self, jconf)

    module.launch_gateway = launch_gateway  # type: ignore[attr-defined]
    module.SparkContext._initialize_context = initialize_context


def _wrap_sessions(module: ModuleType) -> None:
    session = module.SparkSession
    make = session.__init__

    @functools.wraps(make)
    def made(self: Any, sparkContext: Any, jsparkSession: Any = None, options: Any = None) -> None:
        options = remaining_settings(options or {}, _loadable(sparkContext._jvm))
        make(self, sparkContext, jsparkSession, options)
        _register(self)

    session.__init__ = made
    _wrap_builder(session.Builder, _of_context)


def _of_context() -> Callable[[str], bool]:
    # Not of pyspark itself: where only its client is installed, it has none.
    core = sys.modules.get(_CONTEXTS)
    jvm = core.SparkContext._jvm if core is not None else None
    # Where there is no JVM yet, the session that is made asks again.
    return _loadable(jvm) if jvm is not None else _nothing_known


def _loadable(jvm: Any) -> Callable[[str], bool]:
    return lambda name: bool(jvm.org.apache.spark.util.Utils.classIsLoadable(name))


def _nothing_known(name: str) -> bool:
    return True


# --- Spark Connect


def _wrap_connect_sessions(module: ModuleType) -> None:
    builder = module.SparkSession.Builder
    # The extension is a matter of the server, which has its catalog set if it has the jar.
    _wrap_builder(builder, lambda: lambda name: False)
    builder.create = _then_registered(builder.create)
    # What else makes a session depends on the version of Spark.
    for name in ("newSession", "cloneSession"):
        if hasattr(module.SparkSession, name):
            setattr(module.SparkSession, name, _then_registered(getattr(module.SparkSession, name)))


def _then_registered(method: Any) -> Any:
    @functools.wraps(method)
    def called(*arguments: Any, **keywords: Any) -> Any:
        spark = method(*arguments, **keywords)
        _register(spark)
        return spark

    return called


def _wrap_builder(builder: Any, loadable: Callable[[], Callable[[str], bool]]) -> None:
    """Leave settings out of what a builder makes a session with, or gives to the one that there is."""
    for name in ("getOrCreate", "create"):
        setattr(builder, name, _with_remaining_options(getattr(builder, name), loadable))


def _with_remaining_options(method: Any, loadable: Callable[[], Callable[[str], bool]]) -> Any:
    @functools.wraps(method)
    def called(self: Any) -> Any:
        self._options = remaining_settings(self._options, loadable())
        return method(self)

    return called


def install_as_delta() -> str | None:
    """Let code written for delta-spark run in this process as it is.

    `from delta.tables import DeltaTable` and the other imports of delta-spark give what this package has. Every session
    that is made from now on is registered, and the one that there is. Settings by which programs ask for delta-spark's
    jar are left out where there is no such jar. Doing so again is harmless.

    Returns
    -------
    str or None
        Why imports of `delta` go elsewhere: there is another package of that name, such as delta-spark's. It stays,
        and so do packages with its jar that a program asks for. None: they come here.

    Examples
    --------
    >>> import delta_ds
    >>> delta_ds.install_as_delta()
    >>> from delta.tables import DeltaTable
    >>> DeltaTable is delta_ds.DeltaTable
    True
    """
    install_package()
    install_auto_register()
    other = other_package()
    return None if other is None else f"there is a package 'delta' at {other}, which stays"
