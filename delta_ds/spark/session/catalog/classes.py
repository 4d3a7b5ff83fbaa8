"""The Java classes of `java/`, compiled in the driver and found by their names from then on.

Spark loads catalogs and data sources by name, also later and in sessions that it makes itself; a class that only its
compiler knows could not be named in a setting. Nothing is sent to executors.

The Python session of a session of the JVM.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from pyspark.sql import SparkSession

from delta_ds import exceptions
from delta_ds.spark.base.session_conf import CATALOG_CLASS
from delta_ds.spark.engines.classic.class_cache import compiled
from delta_ds.spark.engines.classic.jvm import NotNative

if TYPE_CHECKING:
    from pyspark import SparkContext

    from delta_ds.spark.base.kinds.java_object import JavaObject, JavaValue
    from delta_ds.spark.engines.classic.jvm import Jvm


PACKAGE = "pydelta"
_PROVIDER = f"{PACKAGE}.Provider"
_NAMED_PROVIDER = f"{PACKAGE}.NamedProvider"
_SERVICES = Path("META-INF", "services", "org.apache.spark.sql.sources.DataSourceRegister")
_FOLDER = "pydelta-classes-"
_CONNECT_SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService"
_CONFLICTS = "io.delta.exceptions"
_HANDLE = "io/delta/tables/DeltaTable.java"
_CONFLICT = """package {package};

public class {name} extends {parent} {{
    public {name}(String message) {{
        super(message);
    }}
}}
"""
# The first of them. Clients that know nothing of this package see its condition by Spark's own means.
_CONFLICT_OF_ALL = """package {package};

public class {name} extends java.util.ConcurrentModificationException implements org.apache.spark.SparkThrowable {{
    public {name}(String message) {{
        super(message);
    }}

    public String getCondition() {{
        String text = getMessage();
        return text.substring(text.indexOf('[') + 1, text.indexOf(']'));
    }}

    public String getSqlState() {{ return "{state}"; }}
}}
"""
_publishing = threading.Lock()


def publish(jvm: Jvm, *, provider: bool) -> None:
    """Make the classes known by name in the driver's JVM; once, and cheap from then on.

    Parameters
    ----------
    provider
        Whether Spark shall find the data source `delta`, which no other source may be called then.

    Raises
    ------
    NotNative
        This Spark has no compiler, other classes than the texts speak of, or a class loader that takes no folder.
    """
    from py4j.protocol import Py4JError

    with _publishing:
        if is_published(jvm):
            return
        try:
            _publish(jvm, provider)
        except (Py4JError, TypeError) as error:
            cause = getattr(error, "java_exception", None)
            text = cause.getMessage() if cause is not None else str(error)
            raise NotNative(f"this Spark cannot compile the classes of {PACKAGE}: {text}") from error


def is_published(jvm: Jvm) -> bool:
    """Whether the JVM has the classes."""
    return _find(jvm, CATALOG_CLASS) is not None


def static(jvm: Jvm, name: str) -> JavaValue:
    """One of the classes, for its static methods."""
    return getattr(getattr(jvm.jvm, PACKAGE), name)


def _find(jvm: Jvm, name: str) -> JavaValue:
    from py4j.protocol import Py4JJavaError

    try:
        return jvm.jvm.org.apache.spark.util.Utils.classForName(name, True, False)
    except Py4JJavaError:
        return None


def _publish(jvm: Jvm, provider: bool) -> None:
    on_path = class_folder(jvm)
    folder = on_path or make_class_folder()
    for name, code in _classes(jvm).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(code)
    if provider:
        _offer(folder, _PROVIDER)
    if on_path is None:
        _add(jvm, folder)
    if not is_published(jvm):
        raise NotNative("the driver's class loader does not look into a folder that was added to it")


@contextmanager
def published_format(jvm: Jvm) -> Iterator[None]:
    """Within the block, Spark finds the source of the name `delta` by `pydelta` too, in all sessions of the JVM.

    For a server whose sessions are all registered, after `publish`.

    Raises
    ------
    NotNative
        This Spark has no class loader that takes a folder.
    """
    folder = make_class_folder()
    _offer(folder, _NAMED_PROVIDER)
    _add(jvm, folder)
    try:
        yield
    finally:
        (folder / _SERVICES).unlink(missing_ok=True)  # Spark looks there each time


def _offer(folder: Path, provider: str) -> None:
    (folder / _SERVICES).parent.mkdir(parents=True)
    (folder / _SERVICES).write_text(f"{provider}\n", "utf-8")


def make_class_folder() -> Path:
    """An empty folder for the classes, which goes when this process ends.

    On the class path of a JVM that is started later it is where that finds them, in every thread and for good.
    """
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def class_folder(jvm: Jvm) -> Path | None:
    """The folder for the classes that is on the JVM's class path; None where there is none."""
    entries = str(jvm.jvm.java.lang.System.getProperty("java.class.path")).split(os.pathsep)
    return next((Path(entry) for entry in entries if Path(entry).name.startswith(_FOLDER)), None)


def _classes(jvm: Jvm) -> dict[str, bytes]:
    """From file names to the classes' code: kept from an earlier session, or compiled."""
    base = f"{_CONFLICTS}.{exceptions.DeltaConcurrentModificationException.__name__}"
    sources = files(__package__).joinpath("java")
    texts = {}
    if _find(jvm, base) is None:
        texts = _conflict_texts() | {_HANDLE: sources.joinpath(_HANDLE).read_text("utf-8")}
    texts |= {
        f"{PACKAGE}/{entry.name}": entry.read_text("utf-8")
        for entry in sources.iterdir()
        if entry.name.endswith(".java")
    }
    return compiled(jvm.jvm, jvm.gateway, texts, lambda: _compile(jvm, texts))


def _conflict_texts() -> dict[str, str]:
    """The classes of conflicts by the names that code for delta-spark knows, where no jar of it has them."""
    base = exceptions.DeltaConcurrentModificationException
    kinds = [kind for kind in vars(exceptions).values() if isinstance(kind, type) and issubclass(kind, base)]
    state = exceptions.sql_state_of(base.default_condition)
    return {
        f"{_CONFLICTS.replace('.', '/')}/{kind.__name__}.java": (
            _CONFLICT_OF_ALL if kind is base else _CONFLICT
        ).format(package=_CONFLICTS, name=kind.__name__, parent=base.__name__, state=state)
        for kind in kinds
    }


def conflict(jvm: Jvm, error: exceptions.DeltaConcurrentModificationException, text: str) -> JavaValue:
    """A conflict as the exception of Java that delta-spark throws for it, with a text."""
    return getattr(jvm.jvm.io.delta.exceptions, type(error).__name__)(text)


def _compile(jvm: Jvm, texts: Mapping[str, str]) -> dict[str, Any]:
    """From file names to the classes' code, by the compiler of Spark's generated code."""
    janino = jvm.jvm.org.codehaus.janino
    resources = jvm.jvm.org.codehaus.commons.compiler.util.resource
    finder = resources.MapResourceFinder()
    units = jvm.gateway.new_array(resources.Resource, len(texts))
    for number, name in enumerate(sorted(texts)):
        finder.addResource(name, texts[name])
        units[number] = finder.findResource(name)
    made = jvm.jvm.java.util.HashMap()
    compiler = janino.Compiler()
    compiler.setIClassLoader(
        janino.ClassLoaderIClassLoader(jvm.jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    )
    compiler.setSourceFinder(finder)
    compiler.setClassFileFinder(resources.MapResourceFinder())
    compiler.setClassFileCreator(resources.MapResourceCreator(made))
    # Static methods of interfaces need it.
    compiler.setSourceVersion(8)
    compiler.setTargetVersion(8)
    compiler.compile(units)
    return dict(made)


def _add(jvm: Jvm, folder: Path) -> None:
    _loader(jvm).addURL(jvm.jvm.java.io.File(f"{folder}/").toURI().toURL())


def _loader(jvm: Jvm) -> JavaValue:
    """The class loader of the driver that takes further folders.

    Raises
    ------
    NotNative
        There is none.
    """
    loader = jvm.jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    while loader is not None:
        if loader.getClass().getName() == "org.apache.spark.util.MutableURLClassLoader":
            return loader
        loader = loader.getParent()
    raise NotNative("the driver has no class loader that takes further folders")


# Those that are known, by the identity of the JVM's: sessions that Spark made itself have none in Python.
_known: WeakValueDictionary[int, SparkSession] = WeakValueDictionary()


def remember(spark: SparkSession, identity: int) -> None:
    """Let callbacks find the session that its user has, by the identity that the JVM gives it."""
    _known[identity] = spark


def session_of(context: SparkContext, identity: int, jsession: JavaObject) -> SparkSession:
    """The session in Python, as its user has it or made for this once.

    Parameters
    ----------
    context
        The `SparkContext`.
    """
    found = _known.get(identity)
    if found is None or found._sc._jsc is None:
        found = _known[identity] = _bare_session(context, jsession)
    return found


def session_behind(client: SparkSession) -> SparkSession | None:
    """The classic session that a session of Spark Connect is to its server; None: that is another process.

    Server and client are one process with `SparkSession.builder.remote("local[*]")`.
    """
    # Of pyspark's client alone there is no such module.
    core = sys.modules.get("pyspark.core.context")
    context = core.SparkContext._active_spark_context if core is not None else None
    if context is None or not context._jvm.org.apache.spark.util.Utils.classIsLoadable(_CONNECT_SERVICE):
        return None
    asked: Any = client
    services = context._jvm.org.apache.spark.sql.connect.service
    manager = getattr(getattr(services, "SparkConnectService$"), "MODULE$").sessionManager()
    key = services.SessionKey(asked.client._user_id or "", asked.session_id)
    holder = manager.getIsolatedSessionIfPresent(key)
    return _bare_session(context, holder.get().session()) if holder.isDefined() else None


def _bare_session(context: SparkContext, jsession: JavaObject) -> SparkSession:
    """A session as pyspark makes it, without what its constructor does to other sessions and to RDDs."""
    from pyspark.sql.profiler import AccumulatorProfilerCollector

    session = object.__new__(SparkSession)
    session._sc = context
    session._jsc = context._jsc
    session._jvm = context._jvm
    session._jsparkSession = jsession
    session._profiler_collector = AccumulatorProfilerCollector()
    return session
