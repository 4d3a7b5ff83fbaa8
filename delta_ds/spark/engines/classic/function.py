"""`SELECT ... FROM pydelta('/path', 'versionAsOf', 3)`: tables by their path in the SQL of classic sessions.

The first argument is the path, further ones are options of `spark.read` and their values, in pairs. Arguments are
constants or parameter markers. Spark knows the function by a registry of the session, so other sessions do not
have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from delta_ds.events.spark import NATIVE_SCAN_NOT_USED
from delta_ds.exceptions import InvalidOptionError
from delta_ds.records import dataclass
from delta_ds.spark.base.kinds.session_kind import answers_jvm
from delta_ds.spark.engines.classic.jvm import Jvm, NotNative, compile_class, java_exception
from delta_ds.spark.engines.classic.load import InsertRows, load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.spark.base.kinds.java_object import JavaObject, JavaValue

NAME = "pydelta"
_REFERENCE = "pydelta-secret:"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# The functions of each session that are from here.
_registered: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


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
    define(spark, NAME, lambda arguments: _frame(spark, _options(arguments), insert))


def unregister_function(spark: SparkSession) -> None:
    """Take the function out of a session again; nothing happens in one that does not have it."""
    undefine(spark, NAME)


def define(spark: SparkSession, name: str, body: Callable[[Sequence[str | None]], DataFrame]) -> None:
    """Make a table function known in a session; doing so again is harmless.

    Parameters
    ----------
    spark
        A classic session.
    body
        From the texts of constant arguments, None for NULL, to the rows.

    Raises
    ------
    NotNative
        A session of Spark Connect, a Spark without the registry, or a function of that name that is not ours.
    """
    from py4j.protocol import Py4JError

    jvm = Jvm.of(spark)
    ours = _registered.setdefault(spark, set())
    try:
        if name not in ours and _identifiers(jvm, name):
            raise NotNative(f"the session has another table function {name}")
        functions = compile_class(jvm.jvm, jvm.gateway, "PathFunction")
        _registry(jvm).createOrReplaceTempFunction(name, functions.of(_Body(jvm, name, body)), "scala_udf")
    except (Py4JError, TypeError) as error:
        first = str(error).partition("\n")[0]
        raise NotNative(f"Spark {spark.version} takes no table functions from Python: {first}") from error
    ours.add(name)


def undefine(spark: SparkSession, name: str) -> None:
    """Take a function out of a session again; nothing happens in one that does not have it from here."""
    ours = _registered.get(spark, set())
    if name in ours:
        jvm = Jvm.of(spark)
        for identifier in _identifiers(jvm, name):
            _registry(jvm).dropFunction(identifier)
        ours.discard(name)


def _registry(jvm: Jvm) -> JavaValue:
    return jvm.spark._jsparkSession.sessionState().tableFunctionRegistry()


def _identifiers(jvm: Jvm, name: str) -> list[JavaObject]:
    """The registry's own names for functions called like this: before 4.2 bare, since then qualified."""
    listed = _registry(jvm).listFunction()
    return [f for f in map(listed.apply, range(listed.size())) if f.funcName() == name]


@answers_jvm
class _Body:
    """From the arguments, a `Seq[Expression]`, to a `LogicalPlan`, or to the exception to throw."""

    def __init__(self, jvm: Jvm, name: str, body: Callable[[Sequence[str | None]], DataFrame]) -> None:
        self._jvm = jvm
        self._name = name
        self._body = body

    def apply(self, expressions: JavaObject) -> JavaObject:
        try:
            found = range(expressions.size())
            arguments = [
                _in_clear(self._jvm, constant_argument(self._jvm, self._name, expressions.apply(number)).text)
                for number in found
            ]
            return self._jvm.logical_plan(self._body(arguments))
        except Exception as error:
            return java_exception(self._jvm, error)

    class Java:
        implements = ["java.util.function.Function"]


def _in_clear(jvm: Jvm, argument: str | None) -> str | None:
    """An argument in the place of whose secret the parser has put a reference; see `Secrets.java`."""
    if argument is None or not argument.startswith(_REFERENCE):
        return argument
    return str(jvm.jvm.pydelta.Secrets.value(argument))


def _frame(spark: SparkSession, options: Mapping[str, str], insert: InsertRows) -> DataFrame:
    try:
        return load(spark, options, insert=insert)
    except NotNative as error:
        NATIVE_SCAN_NOT_USED.log(path=options["path"], reason=error.reason)
        return spark.read.format(NAME).options(**options).load()


# --- arguments


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant argument: its type as Spark names it (`integer`, `string`, ...), and the text of its value.

    The text is that of an option; None for NULL.
    """

    type: str
    text: str | None


def constant_argument(jvm: Jvm, function: str, expression: JavaObject) -> Constant:
    """A constant argument.

    Raises
    ------
    InvalidOptionError
        The argument is not constant.
    """
    if not expression.resolved():
        expression = _resolved(jvm, function, expression)
    return Constant(expression.dataType().typeName(), _text(jvm, function, expression))


def _text(jvm: Jvm, function: str, expression: JavaObject) -> str | None:
    if expression.dataType().typeName() == "timestamp":
        expressions = jvm.jvm.org.apache.spark.sql.catalyst.expressions
        micros = _value(jvm, function, expressions.UnixMicros(expression))
        # With its zone: a wall clock time comes twice a year.
        return None if micros is None else (_EPOCH + timedelta(microseconds=micros)).isoformat()
    value = _value(jvm, function, expression)
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _resolved(jvm: Jvm, function: str, expression: JavaObject) -> JavaValue:
    from pyspark.errors import PySparkException

    try:
        frame = jvm.spark.sql("VALUES (1)").select(jvm.column(expression).alias("argument"))
    except PySparkException as error:
        raise _not_constant(function, expression) from error
    return jvm.logical_plan(frame).projectList().head().child()


def _not_constant(function: str, expression: JavaObject) -> InvalidOptionError:
    return InvalidOptionError(
        f"the arguments of {function}() are constants, and {expression.sql()} has no value by itself"
    )


def _value(jvm: Jvm, function: str, expression: JavaObject) -> Any:
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
        raise _not_constant(function, expression) from error


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
