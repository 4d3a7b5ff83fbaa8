"""Translate errors at the border to Spark: the kernel's to pyspark's classes, and Spark's reports back.

Whoever has a Spark session expects errors of `pyspark.errors`, with a condition, parameters and an SQLSTATE. So an
error that leaves this half is of two classes: its own of `delta_ds.exceptions`, and the one that delta-spark raises
for the condition. Whatever the data source raises in Python processes of Spark, or in a callback from the JVM, comes
back as text inside an exception of Spark, from which it is made again. Classic sessions and Spark Connect write the
same text.

Jobs that Spark gave up, as one short `JobFailedError`.

Py4j's own error of such a failure says it in two hundred lines of Java, without the table.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from delta_ds import exceptions
from delta_ds.conditions.index import family as family_of
from delta_ds.conditions.record import Family
from delta_ds.exceptions import DeltaError, InvalidOptionError, JobFailedError
from delta_ds.spark.base.kinds.environment import explain_failure
from delta_ds.spark.errors.java_errors import (
    chain,
    find_read_failure,
    first_line,
    shorten,
    without_logged_java,
)

if TYPE_CHECKING:
    from pyspark.errors import PySparkException


_C = TypeVar("_C", bound=type)
_S = TypeVar("_S", bound="PySparkException")
# Marks classes of errors that pyspark itself makes, of what the JVM says.
_OF_JAR = "_delta_ds_of_jar"

# What of an error's parameters travels with its text.
_PARAMETERS = "with parameters "
# The last line, or lines, of a Python traceback: `delta_ds.exceptions.SchemaError: [CONDITION] message`.
_RAISED = re.compile(r"(?:^|\s)delta_ds\.exceptions\.(?P<kind>\w+): \[(?P<condition>[A-Z_][A-Z0-9_.]*)\] ")
# What comes after the message: more of Python's report, or of Spark's.
_CHAINED = r"\n\n(?:The above exception was the direct cause|During handling of the above exception)"
_END = re.compile(
    rf"(?P<parameters>\n{_PARAMETERS})|(?P<chained>{_CHAINED})|\s+SQLSTATE: \w{{5}}\b|"
    r"\s*\n(?:(?:JVM|Driver) stacktrace:|\tat |Caused by: )|\s*\Z"
)
# Source: Spark, `pyspark.errors.exceptions.captured`, which tells these apart.
_CLASSES: dict[Family, str] = {
    "analysis": "AnalysisException",
    "argument": "IllegalArgumentException",
    "arithmetic": "ArithmeticException",
    "index": "ArrayIndexOutOfBoundsException",
    "number": "NumberFormatException",
    "operation": "UnsupportedOperationException",
    "parse": "ParseException",
    "runtime": "SparkRuntimeException",
    "state": "PySparkException",
    "type": "PySparkTypeError",
}
_STATE = (
    exceptions.LogError,
    exceptions.DataFileError,
    exceptions.StorageError,
    exceptions.CommitFailedError,
    exceptions.DeltaConcurrentModificationException,
)


# --- the classes of errors


def as_spark_error(
    error: DeltaError, also: type[PySparkException] | None = None, *, reported: object = None
) -> DeltaError:
    """The error as one of pyspark's class too; a job that failed in a classic session is py4j's error besides.

    Parameters
    ----------
    error
        Of the kernel's class. It becomes one of both classes itself, so that there is nothing to wrap.
    also
        The class of Spark; None for the one that the condition has.
    reported
        What the JVM threw where Spark gave up a job: `java_exception` of the error, by which programs ask for it.

    >>> from pyspark.errors import AnalysisException
    >>> error = as_spark_error(exceptions.SchemaError("no columns"))
    >>> isinstance(error, AnalysisException), error.getCondition()
    (True, 'DELTA_INVALID_SCHEMA')
    """
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException):
        kind = also if also is not None else _spark_class(error)
        of_java = _py4j_errors(error, reported)
        error.__class__ = _class_of_both(type(error), (kind, *of_java))
        assert isinstance(error, PySparkException)
        texts = {name: _parameter_text(value) for name, value in error.parameters.items()}
        PySparkException.__init__(error, error.text, error.condition, texts)
        for java in of_java:
            java.__init__(error, error.text, reported)
    return error


def _py4j_errors(error: DeltaError, reported: object) -> tuple[type[Exception], ...]:
    """What py4j raises where a job failed, and pyspark lets through."""
    if not isinstance(error, JobFailedError) or "py4j" not in sys.modules:
        return ()
    from py4j.java_gateway import JavaObject
    from py4j.protocol import Py4JJavaError

    return (Py4JJavaError,) if isinstance(reported, JavaObject) else ()


def _spark_class(error: DeltaError) -> type[PySparkException]:
    from pyspark import errors

    family = family_of(error.condition)
    if family is None:
        family = "analysis"
        if type(error) is DeltaError or isinstance(error, _STATE):
            family = "state"
        elif isinstance(error, InvalidOptionError):
            family = "argument"
    spark_class: type[PySparkException] = getattr(errors, _CLASSES[family])
    return spark_class


def _class_of_both(ours: type[DeltaError], spark: tuple[type[Exception], ...]) -> type[DeltaError]:
    """A class of all kinds; it has the name of ours, by which errors are found again in what Spark reports."""
    made = _made.get((ours, *spark))
    if made is not None:
        return made
    members = {
        "__module__": ours.__module__,
        "__doc__": ours.__doc__,
        # Without what only lives in the JVM.
        "__reduce__": lambda self: (_unpickle, (ours, spark[0], self.text, self.condition, self.parameters)),
        "getSqlState": lambda self: self.sql_state,
    }
    return _made.setdefault((ours, *spark), type(ours.__name__, (ours, *spark), members))


_made: dict[tuple[type[Exception], ...], type[DeltaError]] = {}


def _unpickle(
    ours: type[DeltaError],
    spark: type[PySparkException],
    text: str,
    condition: str,
    parameters: dict[str, Any],
) -> DeltaError:
    return as_spark_error(ours(text, condition=condition, parameters=parameters), spark)


def class_of_jar(ours: type[DeltaError], spark: type[_S]) -> type[_S]:
    """The class of what code of delta-spark raises in a JVM: pyspark makes it as its own, and it is one of ours too.

    Parameters
    ----------
    ours
        The class of the same name.
    spark
        What pyspark makes of errors of this kind of session. An error is made by its arguments, and says what it says.

    >>> from pyspark.errors.exceptions.connect import SparkConnectGrpcException
    >>> kind = class_of_jar(exceptions.ConcurrentAppendException, SparkConnectGrpcException)
    >>> error = kind("[DELTA_X] files were added", errorClass="DELTA_X", messageParameters={"partition": "a=1"})
    >>> isinstance(error, exceptions.ConcurrentAppendException), error.condition, error.text, error.parameters
    (True, 'DELTA_X', 'files were added', {'partition': 'a=1'})
    """

    def initialize(error: Any, *arguments: Any, **keywords: Any) -> None:
        spark.__init__(error, *arguments, **keywords)
        condition, text = error.getCondition(), spark.__str__(error)
        parameters = dict(error.getMessageParameters() or {})
        ours.__init__(error, text.removeprefix(f"[{condition}] "), condition=condition, parameters=parameters)

    members = {
        "__init__": initialize,
        "__module__": ours.__module__,
        "__doc__": ours.__doc__,
        # Without what pyspark knows of it besides, which does not travel.
        "__reduce__": lambda error: ours(
            error.text, condition=error.condition, parameters=error.parameters
        ).__reduce__(),
        _OF_JAR: True,
    }
    return type(ours.__name__, (spark, ours), members)


def _parameter_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_parameter_text, value))
    return json.dumps(value, ensure_ascii=False, default=str)


# --- what Spark reports


def as_delta_error(exception: BaseException) -> DeltaError | None:
    """The error of this package that an exception of Spark reports.

    Parameters
    ----------
    exception
        What Spark raised, in a classic session or one of Spark Connect; or an error of this package.

    Returns
    -------
    DeltaError or None
        Of the class that was raised, with its condition, text and parameters, those as JSON has them. A class that
        only the other side knows becomes a plain `DeltaError`. None: Spark reports something else.

    >>> text = "Traceback ...\\ndelta_ds.exceptions.SchemaError: [DELTA_INVALID_SCHEMA] no columns\\n SQLSTATE: 38000"
    >>> as_delta_error(RuntimeError(text))
    SchemaError('[DELTA_INVALID_SCHEMA] no columns')
    """
    if isinstance(exception, DeltaError) and not hasattr(exception, _OF_JAR):
        return exception
    text = str(exception)
    innermost: DeltaError | None = None
    for raised in _RAISED.finditer(text):
        end = _END.search(text, raised.end())
        # An error that caused another one is not what happened to the user.
        if end is None or end["chained"]:
            continue
        parameters: dict[str, Any] = {}
        if end["parameters"]:
            parameters, after = _parameters(text, end.end())
            if re.match(_CHAINED, text[after:]):
                continue
        kind = getattr(exceptions, raised["kind"], DeltaError)
        is_ours = isinstance(kind, type) and issubclass(kind, DeltaError)
        message = text[raised.end() : end.start()]
        innermost = (kind if is_ours else DeltaError)(
            message, condition=raised["condition"], parameters=parameters
        )
    if innermost is None and isinstance(exception, DeltaError):
        return exception
    return (
        innermost or _find_row_error(exception) or find_read_failure(exception) or explain_failure(exception)
    )


def _parameters(text: str, start: int) -> tuple[dict[str, Any], int]:
    try:
        parameters, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except ValueError:
        return {}, start  # cut off
    return (parameters if isinstance(parameters, dict) else {}), end


def _find_row_error(exception: BaseException) -> DeltaError | None:
    if "py4j" not in sys.modules:
        return None  # and no session in which Spark evaluates the table's rules
    from delta_ds.spark.errors.row_errors import find_row_error

    return find_row_error(exception)


def report_text(error: DeltaError) -> str:
    """The text of an error with its class and parameters, from which it can be restored."""
    return f"delta_ds.exceptions.{type(error).__name__}: {_append_parameters(error)}"


def with_error_parameters(owner: _C) -> _C:
    """Let the public methods of a class that Spark calls in a Python process of its own tell errors completely.

    Spark takes from there the text of an error and nothing else.
    """
    return each_method(owner, _with_parameters)


def _with_parameters(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def with_parameters(*arguments: Any, **keywords: Any) -> Any:
        with _appended_parameters():
            return function(*arguments, **keywords)

    @functools.wraps(function)
    def rows_with_parameters(*arguments: Any, **keywords: Any) -> Iterator[Any]:
        with _appended_parameters():
            yield from function(*arguments, **keywords)

    return rows_with_parameters if inspect.isgeneratorfunction(function) else with_parameters


@contextmanager
def _appended_parameters() -> Iterator[None]:
    try:
        yield
    except DeltaError as error:
        _append_parameters(error)
        raise


def each_method(owner: _C, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> _C:
    """A class whose public methods, those that it defines itself, are wrapped."""
    for name, member in list(vars(owner).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod):
            setattr(owner, name, classmethod(wrap(member.__func__)))
        elif inspect.isfunction(member):
            setattr(owner, name, wrap(member))
    return owner


def _append_parameters(error: DeltaError) -> DeltaError:
    note = f"\n{_PARAMETERS}{json.dumps(error.parameters, ensure_ascii=False, default=str)}"
    if error.parameters and not error.text.endswith(note):
        error.text += note
    return error


# --- where errors cross the border


@contextmanager
def delta_errors() -> Iterator[None]:
    """Raise this package's errors, also those that Spark reports, as errors of Spark; leave others alone.

    Raises
    ------
    DeltaError
        Of both classes. What Spark reported is its cause.
    """
    try:
        with without_logged_java():
            yield
    except Exception as error:
        ours = as_delta_error(error)
        if ours is None:
            raise
        if ours is error:
            as_spark_error(ours, reported=getattr(ours.__cause__, "java_exception", None))
            if ours.__cause__ is not None:
                shorten(ours.__cause__)
            raise
        shorten(error)
        reported = getattr(error, "java_exception", None)
        raise as_spark_error(ours, _stream_class(error), reported=reported) from error


def _stream_class(error: BaseException) -> type[PySparkException] | None:
    """The class of an error that ends a stream."""
    from pyspark.errors import StreamingQueryException

    return StreamingQueryException if isinstance(error, StreamingQueryException) else None


def convert_exception(
    original: Callable[..., BaseException], *arguments: Any, **keywords: Any
) -> BaseException:
    """The exception for a failure reported to pyspark, restored to this package's error if it is one."""
    found = original(*arguments, **keywords)
    ours = as_delta_error(found)
    if ours is None and type(found).__name__ == "UnknownException":
        # A job that failed for a reason of which pyspark makes an exception: ours, if it is one of ours.
        cause = getattr(found, "_cause", None)
        ours = cause if isinstance(cause, DeltaError) else None
    if ours is None:
        return found
    return as_spark_error(ours, _stream_class(found), reported=arguments[0] if arguments else None)


@contextmanager
def failed_jobs(what: str) -> Iterator[None]:
    """Raise a job failure of Spark as `JobFailedError`.

    What pyspark itself makes an exception of, such as a division by zero in the query, stays as it is.

    Parameters
    ----------
    what
        The write or command, and its table.

    Raises
    ------
    JobFailedError
        With py4j's error as its cause, which then says less of itself; `java_exception` has it all.
    """
    try:
        yield
    except Exception as error:
        causes = list(chain(getattr(error, "java_exception", None)))
        if not causes or as_delta_error(error) is not None:
            raise
        reason = first_line(causes[-1])
        shorten(error)
        raise JobFailedError(
            f"{what} failed in Spark: {reason}. Nothing was committed, and what was written has been deleted as far as "
            "that was possible; VACUUM removes the rest",
            parameters={"reason": reason},
        ) from error
