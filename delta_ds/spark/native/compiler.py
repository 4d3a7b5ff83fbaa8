"""Compile small Java classes at run time with Janino, the compiler of Spark's generated code.

They exist in the driver only: an executor never sees them.
"""

from __future__ import annotations

import threading
from importlib.resources import files
from typing import Any
from weakref import WeakKeyDictionary

from delta_ds.spark.native.jvm import NotNative

# Once a JVM: py4j finds methods by the name of a class, and takes two classes of one name for the same.
_compiled: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
_lock = threading.Lock()


def compile_class(jvm: Any, gateway: Any, name: str) -> Any:
    """The one instance in the JVM of a class, compiled on first use.

    Parameters
    ----------
    jvm, gateway
        See `Jvm`.
    name
        Of the class, which stands in a file of its name beside this module. It is public, in no package, and has a
        constructor without arguments. Janino knows generics only as far as it erases them.

    Returns
    -------
    py4j.java_gateway.JavaObject
        The instance.

    Raises
    ------
    NotNative
        This Spark has no such compiler, or other classes than the text speaks of.
    """
    with _lock:
        known = _compiled.setdefault(gateway, {})
        if name not in known:
            known[name] = _compile(jvm, gateway, name)
        return known[name]


def _compile(jvm: Any, gateway: Any, name: str) -> Any:
    from py4j.protocol import Py4JError

    source = files("delta_ds.spark.native").joinpath(f"{name}.java").read_text("utf-8")
    try:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
        compiler.cook(source)
        found = compiler.getClassLoader().loadClass(name)
        none = gateway.new_array(jvm.java.lang.Object, 0)
        return found.getConstructor(gateway.new_array(jvm.java.lang.Class, 0)).newInstance(none)
    except (Py4JError, TypeError) as error:
        cause = getattr(error, "java_exception", None)
        text = cause.getMessage() if cause is not None else str(error)
        raise NotNative(f"this Spark cannot compile {name}: {text}") from error
