"""Error conditions: one record each, used rightly by the code."""

from __future__ import annotations

import ast
import functools
import json
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
# The fixed words of the first sentence of each condition, as delta-spark 4.4.0 has it, in order and cut off after 60
# characters. The first ones are "" where the sentence begins with a value.
WORDS = json.loads((Path(__file__).parent / "words_of_delta_spark.json").read_text())
# Texts with other words: the condition, how the text begins, and why.
OTHER_WORDS = {
    (
        "DELTA_CANNOT_RECONSTRUCT_PATH_FROM_URI",
        "unknown deletion vector",
    ): "there is no URI, and its kind is not known",
    ("DELTA_CAST_OVERFLOW_IN_TABLE_WRITE", "column {columnName}"): "the value of Arrow need not be too large",
    (
        "DELTA_CONCURRENT_TRANSACTION",
        "Transaction conflict",
    ): "a metadata domain is in conflict, no streaming query",
    ("DELTA_DUPLICATE_ACTIONS_FOUND", "Cannot change the {kind}"): "the actions are of no file",
    (
        "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
        "table feature",
    ): "no other transaction need be at work",
    ("DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE", "column {column}"): "what is wrong need not be the type",
    ("DELTA_ILLEGAL_OPTION", "give at least one column"): "arguments are missing",
    ("DELTA_ILLEGAL_OPTION", "the option 'path' is missing"): "the option has no value",
    ("DELTA_ILLEGAL_OPTION", "option {option!r}"): "its value is right, the place is not",
    ("DELTA_ILLEGAL_OPTION", "options {options}"): "their values are right, the place is not",
    (
        "DELTA_ILLEGAL_OPTION",
        "The table property",
    ): "delta-spark's words of another error, which has no condition",
    ("DELTA_ILLEGAL_OPTION", "{table} is a table of pydelta"): "the format is wrong for the table",
    ("DELTA_ILLEGAL_OPTION", "{name} of the page"): "it is a parameter of a request, not an option",
    (
        "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        "the INSERT into",
    ): "the rows do not fit the list of names, not the table",
    (
        "DELTA_INVALID_PARTITION_COLUMN_TYPE",
        "a column of type",
    ): "only the type is known there, not the column",
    ("DELTA_INVALID_PARTITION_COLUMN_TYPE", "the partition value"): "the type is right, the value is not",
    ("DELTA_INVALID_PROTOCOL_VERSION", "Couldn't find protocol"): "there is no version",
    (
        "DELTA_LOG_FILE_NOT_FOUND",
        "the checkpoint that was read",
    ): "the checkpoint is gone, no version is asked for",
    (
        "DELTA_LOG_FILE_NOT_FOUND",
        "Unable to retrieve the delta log files to construct table version {version}",
    ): ("no checkpoint is part of it"),
    (
        "DELTA_MISSING_FILES_UNEXPECTED_VERSION",
        "Not all files",
    ): "a restore misses data files, no stream commits",
    ("DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE", "table {table}"): "the protocol is read, not upgraded",
    ("DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS", "the table at"): "the table is gone, its schema did not change",
    ("DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP", "ALTER TABLE {table}"): "no column is changed",
    (
        "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
        "table feature {feature!r} cannot be asked",
    ): "the feature is known",
    (
        "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED",
        "invalid value",
    ): "where a value is read no table is known",
    (
        "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED",
        "table property",
    ): "where a value is read no table is known",
}


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


# --- the words


def test_text_begins_with_the_words_of_delta_spark() -> None:
    others = {text for text in TEXTS if text.text and not _says(text.text, WORDS.get(text.name, [""]))}
    unknown = {text for text in others if not any(_is_of(text, *key) for key in OTHER_WORDS)}
    assert [f"{text.name}: {text.text}, not {WORDS[text.name]}" for text in unknown] == []
    assert [key for key in OTHER_WORDS if not any(_is_of(text, *key) for text in others)] == []


def test_words_are_those_of_conditions_that_exist() -> None:
    assert set(WORDS) - set(all_conditions()) == set()


def _says(text: str, words: list[str]) -> bool:
    parts = string.Formatter().parse(text)
    fixed = "".join(literal + ("" if name is None else "\0") for literal, name, *_ in parts)
    at = 0
    if not fixed.startswith(words[0]):
        return False
    for part in words:
        found = fixed.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _is_of(text: ErrorCondition[Any], name: str, beginning: str) -> bool:
    return text.name == name and text.text.startswith(beginning)


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
