"""`SELECT ... FROM pydelta('/path', 'versionAsOf', 3)`: tables by their path in the SQL of classic sessions.

The first argument is the path, further ones are options of `spark.read` and their values, in pairs. Arguments are
constants or parameter markers. Spark knows the function by a registry of the session, so other sessions do not
have it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from delta_ds.exceptions import InvalidOptionError
from delta_ds.spark.native.jvm import Jvm, NotNative, compile_class, java_exception
from delta_ds.spark.native.latest_version import InsertRows
from delta_ds.spark.native.load import load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "pydelta"
_LOGGER = logging.getLogger("delta_ds")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_registered: WeakSet[SparkSession] = WeakSet()


def register_function(spark: SparkSession, insert: InsertRows) -> None:
    """Make the table function `pydelta` known in a session; doing so again is harmless.

    Parameters
    ----------
    spark
        A classic session.
    insert
        See `load`.

    Raises
    ------
    NotNative
        A session of Spark Connect, a Spark without the registry, or a function of that name that is not ours.
    """
    from py4j.protocol import Py4JError

    jvm = Jvm.of(spark)
    try:
        if spark not in _registered and _identifiers(jvm):
            raise NotNative(f"the session has another table function {NAME}")
        functions = compile_class(jvm.jvm, jvm.gateway, "PathFunction")
        _registry(jvm).createOrReplaceTempFunction(NAME, functions.of(_Body(jvm, insert)), "scala_udf")
    except (Py4JError, TypeError) as error:
        first = str(error).partition("\n")[0]
        raise NotNative(f"Spark {spark.version} takes no table functions from Python: {first}") from error
    _registered.add(spark)


def unregister_function(spark: SparkSession) -> None:
    """Take the function out of a session again; nothing happens in one that does not have it."""
    if spark in _registered:
        jvm = Jvm.of(spark)
        for identifier in _identifiers(jvm):
            _registry(jvm).dropFunction(identifier)
        _registered.discard(spark)


def _registry(jvm: Jvm) -> Any:
    return jvm.spark._jsparkSession.sessionState().tableFunctionRegistry()


def _identifiers(jvm: Jvm) -> list[Any]:
    """The registry's own names for functions called like ours: before 4.2 bare, since then qualified."""
    listed = _registry(jvm).listFunction()
    return [f for f in map(listed.apply, range(listed.size())) if f.funcName() == NAME]


class _Body:
    """From the arguments, a `Seq[Expression]`, to a `LogicalPlan`, or to the exception to throw."""

    def __init__(self, jvm: Jvm, insert: InsertRows) -> None:
        self._jvm = jvm
        self._insert = insert

    def apply(self, expressions: Any) -> Any:
        try:
            arguments = [_argument(self._jvm, expressions.apply(i)) for i in range(expressions.size())]
            return self._jvm.logical_plan(_frame(self._jvm.spark, _options(arguments), self._insert))
        except Exception as error:
            return java_exception(self._jvm, error)

    class Java:
        implements = ["java.util.function.Function"]


def _frame(spark: SparkSession, options: Mapping[str, str], insert: InsertRows) -> DataFrame:
    try:
        return load(spark, options, insert=insert)
    except NotNative as error:
        _LOGGER.warning("native_scan_not_used path=%s reason=%s", options["path"], error.reason)
        return spark.read.format(NAME).options(**options).load()


# --- arguments


def _argument(jvm: Jvm, expression: Any) -> str | None:
    """A constant argument as the text of an option.

    Raises
    ------
    InvalidOptionError
        The argument is not constant.
    """
    if expression.dataType().typeName() == "timestamp":
        expressions = jvm.jvm.org.apache.spark.sql.catalyst.expressions
        micros = _value(jvm, expressions.UnixMicros(expression))
        # With its zone: a wall clock time comes twice a year.
        return None if micros is None else (_EPOCH + timedelta(microseconds=micros)).isoformat()
    value = _value(jvm, expression)
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(jvm: Jvm, expression: Any) -> Any:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    if expression.getClass().getSimpleName() == "Literal":
        if expression.dataType().typeName() == "string":
            return None if expression.value() is None else expression.value().toString()
        if expression.dataType().typeName() in ("integer", "long", "boolean"):
            return expression.value()
    try:
        # Not `eval`: expressions like `current_date() - 1` have a value only once Spark has optimized them.
        return jvm.spark.sql("VALUES (1)").select(jvm.column(expression)).collect()[0][0]
    except (PySparkException, Py4JJavaError) as error:
        raise InvalidOptionError(
            f"the arguments of {NAME}() are constants, and {expression.sql()} has no value by itself"
        ) from error


def _options(arguments: Sequence[str | None]) -> dict[str, str]:
    """The arguments as options of a read, `path` among them."""
    usage = f"write {NAME}('/path'[, 'option', value]...)"
    if not arguments or not arguments[0]:
        raise InvalidOptionError(f"{NAME}() needs the path of a table; {usage}")
    path, *rest = arguments
    if len(rest) % 2:
        raise InvalidOptionError(f"{NAME}() has an option without a value: {rest[-1]!r}; {usage}")
    options: dict[str, str] = {}
    for name, value in zip(rest[::2], rest[1::2], strict=True):
        if name is None or value is None:
            raise InvalidOptionError(f"{NAME}() was given NULL as an option or its value ({name!r}); {usage}")
        if name.lower() in ("path", *map(str.lower, options)):
            raise InvalidOptionError(f"{NAME}() was given the option {name!r} twice")
        options[name] = value
    return {"path": str(path), **options}
