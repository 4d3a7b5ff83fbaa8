"""The Python session of a session of the JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark import SparkContext

    from delta_ds.spark.base.kinds.java_object import JavaObject

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
