"""Public methods: check arguments by annotations, raise errors of pyspark's classes.

Most of what users write is used much later, by Spark or in another process, where a wrong type would come up as an
error about something else, or not at all.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar, Union, cast

from delta_ds.exceptions import InvalidArgumentError
from delta_ds.kernel.format.options.parsing import is_of_store
from delta_ds.redaction import redacted
from delta_ds.spark.base.kinds.origin import of_session
from delta_ds.spark.base.kinds.session_kind import kind_of
from delta_ds.spark.errors.job_failures import failed_jobs
from delta_ds.spark.errors.translation import delta_errors, each_method

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
                meant = [other for other in hints if other not in bound and _fits(one, hints[other])]
                misfit = f"it is {type(one).__name__}" if _may_be_secret(name, one) else _misfit(one, hint)
                raise InvalidArgumentError(
                    f"{name!r} of {function.__name__} needs to be {_type_label(hint)}, and {misfit}"
                    + (f"; it is one for {meant[0]!r}: {meant[0]}=..." if meant else ""),
                    parameters={
                        "arg_name": name,
                        "expected_type": _type_label(hint),
                        "arg_type": type(one).__name__,
                    },
                )


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
        keys, values = inner
        return isinstance(value, Mapping) and all(
            _fits(k, keys) and _fits(v, values) for k, v in value.items()
        )
    if origin is not None and issubclass(origin, Sequence):
        return isinstance(value, (list, tuple)) and all(_fits(one, inner[0]) for one in value)
    return _is(value, origin or hint)


def _may_be_secret(name: str, value: Any) -> bool:
    """Whether a value stands where options of a store belong, and is none of their dictionaries."""
    return name.lower().endswith(("conf", "options")) and not isinstance(value, Mapping)


def _misfit(value: Any, hint: Any) -> str:
    """What of a value is of another type than its annotation says."""
    for one in typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,):
        origin, inner = typing.get_origin(one), typing.get_args(one)
        if origin is not None and issubclass(origin, Mapping) and isinstance(value, Mapping):
            for key, found in value.items():
                if not _fits(key, inner[0]):
                    return f"its key {key!r} is {type(key).__name__}"
                if not _fits(found, inner[1]):
                    shown = "" if isinstance(key, str) and is_of_store(key) else f"{redacted(repr(found))}, "
                    return f"its {key!r} is {shown}{type(found).__name__}"
    return f"{redacted(repr(value))} is {type(value).__name__}"


def _is(value: Any, kind: Any) -> bool:
    from pyspark.sql import SparkSession

    if kind is SparkSession:
        return _is_session(value)
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    return isinstance(value, kind)


def _type_label(hint: Any) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_type_label(one) for one in inner)
    if origin is not None and issubclass(origin, Mapping):
        return f"a dict of {_type_label(inner[0])} to {_type_label(inner[1])}"
    if origin is not None and issubclass(origin, Sequence):
        return f"a list of {_type_label(inner[0])}"
    if hint is type(None):
        return "None"
    return "anything" if hint is Any else getattr(origin or hint, "__name__", str(hint))
