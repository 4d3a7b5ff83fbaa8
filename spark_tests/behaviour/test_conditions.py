"""Error conditions: one record each, used rightly by the code."""

from __future__ import annotations

import ast
import functools
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import delta_ds
from delta_ds import exceptions
from delta_ds.conditions import index
from delta_ds.conditions.index import all_conditions, sql_state
from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import DeltaError, InvalidOptionError, SchemaError

PACKAGE = Path(delta_ds.__file__).parent
TEXTS = [text for texts in all_conditions().values() for text in texts]


# --- the records


def test_condition_has_a_state() -> None:
    states = {name: sql_state(name) for name in all_conditions()}
    assert states.pop("_LEGACY_ERROR_TEMP_1189") is None  # Spark gives that one none
    assert [name for name, state in states.items() if not re.fullmatch("[0-9A-Z]{5}", state or "")] == []


def test_class_of_errors_has_the_record_of_its_condition() -> None:
    for kind in vars(exceptions).values():
        if isinstance(kind, type) and issubclass(kind, DeltaError):
            assert issubclass(kind, all_conditions()[kind.default_condition][0].error)


def test_record_becomes_an_error_with_the_values_that_are_parameters() -> None:
    record = ErrorCondition(
        "DELTA_X", SchemaError, "42000", "{table} has {found!r}, not {wanted:list}", parameters=("found",)
    )
    error = record({"cause": 1}, table="t", found="a", wanted=["b", "c"])
    assert type(error) is SchemaError
    assert (error.condition, error.text) == ("DELTA_X", "t has 'a', not b, c")
    assert error.parameters == {"cause": 1, "found": "a"}


def test_other_text_of_a_condition_keeps_what_programs_know_it_by() -> None:
    record = ErrorCondition("DELTA_X", SchemaError, "42000", "one", parameters=("a",), family="state")
    other = record.also("two", error=InvalidOptionError)
    assert type(other()) is InvalidOptionError
    assert (other.name, other.sql_state, other.family) == ("DELTA_X", "42000", "state")
    assert (other.text, other.parameters) == ("two", ())


def test_second_record_of_a_name_is_refused() -> None:
    record = ErrorCondition("DELTA_X", SchemaError, "42000")
    texts: list[ErrorCondition[Any]] = []
    for one in (record, record.also("more"), record.also("and more").also("and another one")):
        index._add(one, texts)
    with pytest.raises(ValueError, match="DELTA_X has two records"):
        index._add(ErrorCondition("DELTA_X", SchemaError, "42000"), texts)


# --- the code


@functools.cache
def _sources() -> list[tuple[str, ast.Module]]:
    return [(str(path.relative_to(PACKAGE)), ast.parse(path.read_text())) for path in PACKAGE.rglob("*.py")]


@functools.cache
def _uses() -> list[tuple[str, ErrorCondition[Any], ast.Call | None]]:
    """Where, the record, and the call that raises it: None where the code hands the record on."""
    return list(_find_uses())


def _find_uses() -> Iterator[tuple[str, ErrorCondition[Any], ast.Call | None]]:
    for where, tree in _sources():
        if not any(isinstance(n, ast.ImportFrom) and _is_of_records(n) for n in ast.walk(tree)):
            continue
        known: dict[str, ErrorCondition[Any]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and _is_of_records(node):
                module = __import__(str(node.module), fromlist=["*"])
                for alias in node.names:
                    found = getattr(module, alias.name)
                    if isinstance(found, ErrorCondition):
                        known[alias.asname or alias.name] = found
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
        called = {
            id(name): call
            for call in calls
            for name in (ast.walk(call.func) if isinstance(call.func, ast.IfExp) else [call.func])
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in known:
                yield f"{where}:{node.lineno}", known[node.id], called.get(id(node))


def _is_of_records(node: ast.ImportFrom) -> bool:
    return (node.module or "").startswith("delta_ds.conditions.")


def _shown(text: str) -> set[str]:
    """The names of the values that a text shows."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_values_given_to_a_record_are_those_it_names() -> None:
    wrong = [
        f"{where}: {record.name} takes {sorted(needed)}, not {sorted(given)}"
        for where, record, call in _uses()
        if call is not None
        for given in [{k.arg for k in call.keywords}]
        for needed in [_shown(record.text) | set(record.parameters)]
        if None not in given and given != needed
    ]
    assert wrong == []


def test_every_text_is_used() -> None:
    used = {(record.name, record.text) for _, record, _ in _uses()}
    assert [
        (text.name, text.text) for text in TEXTS if text.text and (text.name, text.text) not in used
    ] == []


def test_conditions_that_the_code_names_have_records() -> None:
    named = {
        keyword.value.value
        for _, tree in _sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "condition" and isinstance(keyword.value, ast.Constant)
    }
    assert named - set(all_conditions()) == set()
