"""What users call refuses arguments of other types, whatever the method and the argument, before anything is done."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from delta_ds.exceptions import DeltaError, InvalidArgumentError
from delta_ds.spark.api.builder import DeltaTableBuilder
from delta_ds.spark.api.table import DeltaTable
from delta_ds.spark.commands.merge.builder import DeltaMergeBuilder
from delta_ds.spark.commands.optimize import DeltaOptimizeBuilder
from delta_ds.spark.engines.arguments import check_arguments
from delta_ds.spark.register import register
from delta_ds.spark.session.writing import PathWriter

CLASSES = (DeltaTable, DeltaTableBuilder, DeltaMergeBuilder, DeltaOptimizeBuilder, PathWriter)
NEVER = object()


def public_methods() -> Iterator[tuple[str, Callable[..., Any], bool]]:
    """By name the function, and whether its first argument is an instance or class."""
    yield "register", register, False
    for owner in CLASSES:
        for name, member in inspect.getmembers(owner, callable):
            if not name.startswith("_"):
                yield f"{owner.__name__}.{name}", getattr(member, "__func__", member), True


METHODS = {name: (function, bound) for name, function, bound in public_methods()}
ARGUMENTS = [
    (name, parameter.name)
    for name, (function, bound) in METHODS.items()
    for parameter in list(inspect.signature(function).parameters.values())[bound:]
    if "Any" not in str(parameter.annotation).split("[")[0]
]


@pytest.mark.parametrize(("method", "argument"), ARGUMENTS)
def test_argument_of_no_known_type_is_refused(method: str, argument: str) -> None:
    function, bound = METHODS[method]
    parameters = list(inspect.signature(function).parameters.values())[bound:]
    (chosen,) = (p for p in parameters if p.name == argument)
    given: list[Any] = [object.__new__(DeltaTable)] if bound else []
    if chosen.kind is inspect.Parameter.VAR_POSITIONAL:
        arguments, keywords = [*given, *("a" for p in parameters if p is not chosen), NEVER], {}
    else:
        needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
        arguments, keywords = given, {**dict.fromkeys(needed, "a"), argument: NEVER}
    with pytest.raises(TypeError, match="needs to be|must be|must contain only") as caught:
        function(*arguments, **keywords)
    assert isinstance(caught.value, ValueError)


def test_every_method_has_arguments_of_a_type() -> None:
    assert len(METHODS) > 60
    assert len(ARGUMENTS) > 80


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.delete(1),
        lambda t: t.delete(True),
        lambda t: t.update(set={"v": 1}),
        lambda t: t.update(set=["v"]),
        lambda t: t.merge(1, "a = b"),
        lambda t: t.vacuum("x"),
        lambda t: t.vacuum(dryRun="yes"),
        lambda t: t.history("x"),
        lambda t: t.history(True),
        lambda t: t.restoreToVersion("1"),
        lambda t: t.restoreToVersion(1.0),
        lambda t: t.restoreToTimestamp(1),
        lambda t: t.addFeatureSupport(1),
        lambda t: t.upgradeTableProtocol("1", 2),
        lambda t: t.setProperties({"delta.appendOnly": True}),
        lambda t: t.unsetProperties("delta.appendOnly"),
        lambda t: t.dropColumns("a"),
        lambda t: t.clusterBy("a"),
        lambda t: t.optimize().where(1),
        lambda t: t.optimize().executeZOrderBy(1),
        lambda t: t.clone("/x", properties={"a": 1}),
    ],
)
def test_argument_of_another_type_is_refused(call: Callable[[DeltaTable], object]) -> None:
    table = object.__new__(DeltaTable)
    table._handle = SimpleNamespace(where="/x")  # type: ignore[assignment]
    with pytest.raises(InvalidArgumentError, match="needs to be|must be|must contain only"):
        call(table)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            lambda t: t.addFeatureSupport(12345),
            ValueError,
            "featureName needs to be a string but got '<class 'int'>'",
        ),
        (
            lambda t: t.addFeatureSupport(None),
            ValueError,
            "'featureName' in addFeatureSupport cannot be None",
        ),
        (
            lambda t: t.dropFeatureSupport("x", 12345),
            ValueError,
            "truncateHistory needs to be a boolean but got",
        ),
        (lambda t: t.restoreToVersion("a"), ValueError, "version needs to be an int but got '<class 'str'>'"),
        (
            lambda t: t.restoreToTimestamp(12),
            ValueError,
            "timestamp needs to be a string but got '<class 'int'>'",
        ),
        (lambda t: t.upgradeTableProtocol("1", 2), ValueError, "readerVersion needs to be"),
        (lambda t: t.clone(1), ValueError, "target needs to be a string but got"),
        (lambda t: t.clone("/x", "yes"), ValueError, "isShallow needs to be a boolean but got"),
        (lambda t: t.clone("/x", properties=1), ValueError, "properties needs to be a dict but got"),
        (
            lambda t: t.clone("/x", properties={"a": 1}),
            ValueError,
            "All property values including 1 .*needs to be a str",
        ),
        (
            lambda t: t.clone("/x", properties={1: "a"}),
            ValueError,
            "All property keys including 1 needs to be a string",
        ),
        (lambda t: t.merge(None, "a = b"), ValueError, "'source' in merge cannot be None"),
        (lambda t: t.merge(1, "a = b"), TypeError, "Type of 'source' in merge must be DataFrame"),
        (
            lambda t: t.delete(1),
            TypeError,
            r"'condition' must be a Spark SQL Column or a string \(expression in SQL",
        ),
        (lambda t: t.update({"v": "1"}), ValueError, "'set' cannot be None; it is one for 'set': set=..."),
        (lambda t: t.update(1, {"v": "1"}), TypeError, "must be a Spark SQL Column or a string"),
        (lambda t: t.update(set=1), TypeError, "'set' must be a dict, found to be <class 'int'>"),
        (
            lambda t: t.update(set={"v": 1}),
            TypeError,
            "Values of dict in 'set' must contain only Spark SQL Columns",
        ),
        (lambda t: t.update(set={1: "v"}), TypeError, "Keys of dict in 'set' must contain only strings"),
        (lambda t: t.update("a = 1"), ValueError, "'set' of update of /x cannot be None"),
        (lambda t: MERGE.whenMatchedUpdate(1), ValueError, "'set' cannot be None"),
        (lambda t: MERGE.whenNotMatchedInsert("a = 1"), ValueError, "'values' .*cannot be None"),
    ],
)
def test_an_argument_is_refused_in_the_words_of_delta_spark(
    call: Callable[[Any], object], kind: type[Exception], words: str
) -> None:
    table = object.__new__(DeltaTable)
    table._handle = SimpleNamespace(where="/x")  # type: ignore[assignment]
    with pytest.raises(kind, match=words) as caught:
        call(table)
    assert isinstance(caught.value, DeltaError)


MERGE = DeltaMergeBuilder(None, None, "a = b")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        lambda: MERGE.whenMatchedUpdate(),
        lambda: MERGE.whenMatchedUpdate("a = 1"),
        lambda: MERGE.whenNotMatchedInsert(),
        lambda: MERGE.whenNotMatchedBySourceUpdate(),
        lambda: MERGE.whenMatchedUpdate(set={"v": 1}),
        lambda: MERGE.whenMatchedUpdate(set={1: "v"}),
        lambda: MERGE.whenMatchedDelete(1),
    ],
)
def test_clause_that_says_nothing_or_no_expression_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="set|values|condition") as caught:
        call()
    assert isinstance(caught.value, DeltaError)


def test_missing_and_unknown_arguments_are_type_errors_as_ever() -> None:
    with pytest.raises(TypeError, match="condition"):
        DeltaTable.merge(object.__new__(DeltaTable), None)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="nothing"):
        DeltaTable.delete(object.__new__(DeltaTable), nothing=1)  # type: ignore[call-arg]


def test_types_are_told_in_words() -> None:
    def function(a: int | None = None, *b: str, c: dict[str, int] | None = None) -> None: ...

    check_arguments(function, (1, "x"), {"c": {"a": 1}})
    check_arguments(function, (), {})
    with pytest.raises(
        InvalidArgumentError, match="a needs to be an int but got '<class 'bool'>': True in function"
    ):
        check_arguments(function, (True,), {})
    with pytest.raises(
        InvalidArgumentError, match="b needs to be a string but got '<class 'int'>': 2 in func"
    ):
        check_arguments(function, (1, "x", 2), {})
    with pytest.raises(InvalidArgumentError, match="All c keys including 1 needs to be a string"):
        check_arguments(function, (), {"c": {1: 1}})
