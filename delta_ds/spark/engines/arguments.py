"""Public methods: check arguments by annotations, raise errors of pyspark's classes, and answer mistakes of newcomers.

Most of what users write is used much later, by Spark or in another process, where a wrong type would come up as an
error about something else, or not at all.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar, Union, cast

from delta_ds.exceptions import InvalidArgumentError
from delta_ds.kernel.format.options.parsing import is_of_store
from delta_ds.redaction import redacted
from delta_ds.spark.base.kinds.session_facts import of_session
from delta_ds.spark.base.kinds.session_kind import kind_of
from delta_ds.spark.errors.translation import delta_errors, each_method, failed_jobs

_C = TypeVar("_C", bound=type)
_F = TypeVar("_F", bound=Callable[..., Any])
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def public_methods(owner: _C) -> _C:
    """Make the public methods of a class check arguments and raise Spark's errors; see `delta_errors`."""
    return each_method(owner, public)


def public(function: _F) -> _F:
    """Make a function check its arguments and raise Spark's errors; see `delta_errors`."""

    @functools.wraps(function)
    def called(*arguments: Any, **keywords: Any) -> Any:
        try:
            with delta_errors():
                check_arguments(function, arguments, keywords)
            with delta_errors(), failed_jobs(_call_label(function, arguments)), _of_session(arguments):
                return function(*arguments, **keywords)
        except Exception:
            unfinished = getattr(arguments[0], "_unfinished", None) if arguments else None
            if unfinished is not None:
                unfinished.done()  # this error says enough
            raise

    return cast(_F, called)


@contextmanager
def _of_session(arguments: Sequence[Any]) -> Iterator[None]:
    """Commits are made by the session of the object that is called, where it has one, and columns are those of it."""
    owner = arguments[0] if arguments else None
    spark = getattr(getattr(owner, "_handle", None), "spark", None) or getattr(owner, "_spark", None)
    kind = spark or getattr(owner, "_df", None) or next(filter(_is_of_spark, arguments[:2]), None)
    with (
        nullcontext() if kind is None else kind_of(kind),
        nullcontext() if spark is None else of_session(spark),
    ):
        yield


def _is_of_spark(value: Any) -> bool:
    """Whether a value is a session or a DataFrame."""
    return type(value).__module__.startswith("pyspark.sql.")


def _is_session(value: Any) -> bool:
    # One of Spark Connect has no base in common with a classic one.
    return any(base.__name__ == "SparkSession" for base in type(value).__mro__)


def _call_label(function: Callable[..., Any], arguments: Sequence[Any]) -> str:
    handle = getattr(arguments[0], "_handle", None) if arguments else None
    return f"{function.__name__}()" + (f" on the table {handle.where}" if handle is not None else "")


def check_arguments(
    function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> None:
    """Refuse arguments that a public function or method does not take.

    Raises
    ------
    InvalidArgumentError
        One is of another type than its annotation says. A `bool` is no number here, and a `str` no sequence.
    TypeError
        One is missing, or not known.
    """
    signature = inspect.signature(function)
    hints = _hints(function)
    try:
        bound = signature.bind(*arguments, **keywords).arguments
    except TypeError as error:
        raise TypeError(f"{error}: {_call_form(function, signature, arguments)}") from None
    for name, value in bound.items():
        hint = hints.get(name, Any)
        if signature.parameters[name].kind in _VARIADIC:
            values = value if isinstance(value, tuple) else tuple(value.values())
        else:
            values = (value,)
        for one in values:
            if not _fits(one, hint):
                raise InvalidArgumentError(
                    _refusal(function.__name__, name, one, hint) + _meant(hints, bound, one),
                    parameters={
                        "arg_name": name,
                        "expected_type": _type_label(hint),
                        "arg_type": type(one).__name__,
                    },
                )


def _meant(hints: Mapping[str, Any], bound: Mapping[str, Any], value: Any) -> str:
    """The argument that a value fits that was given for another one, and the one that must be there and is not."""
    missing = [name for name in hints if name not in bound]
    meant = next((name for name in missing if _fits(value, hints[name])), None)
    said = f"; it is one for {meant!r}: {meant}=..." if meant is not None else ""
    needed = next((name for name in missing if _is_assignments(hints[name])), None)
    return f"; {needed!r} cannot be None{said}" if needed is not None else said


def _call_form(function: Callable[..., Any], signature: inspect.Signature, given: Sequence[Any]) -> str:
    """How a method is called: `it is DeltaTable.forPath(sparkSession, path, hadoopConf=None)`."""
    name, parameters = function.__name__, list(signature.parameters.values())
    if parameters[0].name in ("self", "cls") and given:
        owner = given[0] if isinstance(given[0], type) else type(given[0])
        name, parameters = f"{owner.__name__}.{name}", parameters[1:]
    plain = [one.replace(annotation=one.empty) for one in parameters]
    return f"it is {name}{signature.replace(parameters=plain, return_annotation=signature.empty)}"


@functools.cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    # Names that modules import for type checkers only; those of results may be left open.
    known: dict[str, type] = {kind.__name__: kind for kind in (Column, DataFrame, SparkSession)}
    known |= {f"Spark{kind.__name__}": kind for kind in (DataType, StructType)}
    parameters = {name: text for name, text in function.__annotations__.items() if name != "return"}
    carrier = types.SimpleNamespace(__annotations__=parameters)
    return typing.get_type_hints(carrier, function.__globals__, known)


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is not None and issubclass(origin, Mapping):
        keys, values = _columns_for(*inner), inner[1]
        return isinstance(value, Mapping) and all(
            _fits(k, keys) and _fits(v, values) for k, v in value.items()
        )
    if origin is not None and issubclass(origin, Sequence):
        return isinstance(value, (list, tuple)) and all(_fits(one, inner[0]) for one in value)
    return _is(value, origin or hint)


def _may_be_secret(name: str, value: Any) -> bool:
    """Whether a value stands where options of a store belong, and is none of their dictionaries."""
    return name.lower().endswith(("conf", "options")) and not isinstance(value, Mapping)


def _refusal(function: str, name: str, value: Any, hint: Any) -> str:
    """Why an argument does not fit, in the words that delta-spark's Python has for it.

    Source: delta-spark, `delta/tables.py`, whose tests match them.
    """
    kinds = _alternatives(hint)
    if value is None:
        return f"{name!r} in {function} cannot be None, it needs to be {_type_label(hint)}"
    for kind in kinds:
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if origin is not None and issubclass(origin, Mapping):
            return _refused_mapping(name, value, *inner)
    shown = f"in {function}" if _may_be_secret(name, value) else f"{redacted(repr(value))} in {function}"
    if _is_expression(hint):
        text = f"{name!r} must be a Spark SQL Column or a string (expression in SQL syntax)"
        return f"{text}, found to be of type {type(value)}: {shown}"
    if [getattr(kind, "__name__", "") for kind in kinds] == ["DataFrame"]:
        return f"Type of {name!r} in {function} must be DataFrame, found {type(value)}"
    also = f"; {' or '.join(_type_label(kind) for kind in kinds[1:])} will do too" if kinds[1:] else ""
    return f"{name} needs to be {_type_label(kinds[0])} but got '{type(value)}': {shown}{also}"


def _refused_mapping(name: str, value: Any, keys: Any, values: Any) -> str:
    assigns = _is_expression(values)
    if not isinstance(value, Mapping):
        if assigns:
            return f"{name!r} must be a dict, found to be {type(value)}"
        return f"{name} needs to be a dict but got '{type(value)}'"
    each = "property" if name == "properties" else name
    for key, found in value.items():
        if not _fits(key, _columns_for(keys, values)):
            if assigns:
                text = f"Keys of dict in {name!r} must contain only strings with column names"
                return f"{text}, found {key!r} of type '{type(key)}'"
            return f"All {each} keys including {key!r} needs to be {_type_label(keys)} but got '{type(key)}'"
        if not _fits(found, values):
            secret = isinstance(key, str) and is_of_store(key)
            shown = "that" if secret else redacted(repr(found))
            if assigns:
                text = f"Values of dict in {name!r} must contain only Spark SQL Columns or strings (expressions in SQL"
                return f"{text} syntax) as values, found {shown} of type '{type(found)}' for {key!r}"
            text = f"All {each} values including {shown} of {key!r} needs to be {_type_label(values)}"
            return f"{text} but got '{type(found)}'"
    raise AssertionError(f"{name} fits")


def _columns_for(keys: Any, values: Any) -> Any:
    """What names columns: text or a Column, where the annotation leaves it open, as keys of mappings are invariant."""
    return values if keys is Any and _is_expression(values) else keys


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """The types that may be given, without None."""
    if typing.get_origin(hint) in (Union, types.UnionType):
        return tuple(kind for kind in typing.get_args(hint) if kind is not type(None))
    return (hint,)


def _is_assignments(hint: Any) -> bool:
    """Whether columns with what they get are given."""
    inner = [typing.get_args(kind) for kind in _alternatives(hint)]
    return any(len(one) == 2 and _is_expression(one[1]) for one in inner)


def _is_expression(hint: Any) -> bool:
    """Whether SQL text or a Column may be given."""
    return {getattr(kind, "__name__", "") for kind in _alternatives(hint)} == {"str", "Column"}


def _is(value: Any, kind: Any) -> bool:
    from pyspark.sql import SparkSession

    if kind is SparkSession:
        return _is_session(value)
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    return isinstance(value, kind)


# As delta-spark calls them.
_LABELS: dict[Any, str] = {
    str: "a string",
    bool: "a boolean",
    int: "an int",
    float: "a number",
    type(...): "...",
}


def _type_label(hint: Any) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_type_label(one) for one in _alternatives(hint))
    if origin is not None and issubclass(origin, Mapping):
        return f"a dict of {_type_label(inner[0])} to {_type_label(inner[1])}"
    if origin is not None and issubclass(origin, Sequence):
        return f"a list, each one {_type_label(inner[0])}"
    if hint is Any:
        return "anything"
    return _LABELS.get(hint) or str(getattr(origin or hint, "__name__", hint))


# What other libraries call it.
_ELSEWHERE = {
    "append": 'rows are added by df.write.format("pydelta").mode("append").save(path)',
    "insert": 'rows are added by df.write.format("pydelta").mode("append").save(path)',
    "read": "its rows are the DataFrame toDF()",
    "upsert": "that is merge(source, condition), its clauses, and execute()",
    "write": 'rows are written by df.write.format("pydelta").mode("append").save(path)',
    "writeTo": 'rows are written by df.write.format("pydelta").mode("append").save(path)',
}


class NotExecuted:
    """Warns, when the last builder that has it goes away, that none was executed: nothing has happened then.

    Parameters
    ----------
    what
        What the builders would do, as `the MERGE into /data/sales`.
    """

    __slots__ = ("_waiting", "_what")

    def __init__(self, what: str) -> None:
        self._what = what
        self._waiting = True

    def done(self) -> None:
        """Say nothing: it was executed."""
        self._waiting = False

    def __del__(self) -> None:
        if self._waiting and not sys.is_finalizing():
            # It goes away in the statement in which it is made and left.
            warnings.warn(f"{self._what} was not executed: nothing happens without execute()", stacklevel=2)


def missing_attribute(owner: object, name: str, rows: str) -> AttributeError:
    """The error for an attribute that an object does not have, with what is meant as far as that can be told.

    Parameters
    ----------
    rows
        Where the DataFrame is, of which the attribute may be meant: `its rows are the DataFrame toDF()`.

    >>> missing_attribute(object(), "show", "its rows are the DataFrame toDF()")
    AttributeError("'object' object has no attribute 'show': its rows are the DataFrame toDF()")
    """
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if name.startswith("_"):
        return AttributeError(text)
    import difflib

    from pyspark.sql import DataFrame

    near = difflib.get_close_matches(name, [each for each in dir(owner) if not each.startswith("_")], n=1)
    if name in _ELSEWHERE:
        return AttributeError(f"{text}: {_ELSEWHERE[name]}")
    if hasattr(DataFrame, name):
        return AttributeError(f"{text}: {rows}")
    return AttributeError(f"{text}; did you mean {near[0]!r}?" if near else text)
