"""Log events are records: told by name and fields, quoted so that they can be read back, without secrets."""

from __future__ import annotations

import ast
import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog, events
from delta_ds.events import JsonFormatter
from delta_ds.events.index import EVENTS, SUBJECTS, events_of
from delta_ds.events.record import LOGGER, Event, Line, redacted
from delta_ds.exceptions import StorageError
from spark_tests.full_form import examples

PACKAGE = Path(events.__file__).resolve().parents[1]
TOLD = Event.info("something_told table reason", "something was told", "nothing")


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    found: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = found.append  # type: ignore[method-assign]
    before = LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    yield found
    LOGGER.removeHandler(handler)
    LOGGER.setLevel(before)


def _modules(word: str) -> Iterator[tuple[str, ast.Module]]:
    """The modules whose text has a word: parsing all of them takes seconds."""
    for path in sorted(PACKAGE.rglob("*.py")):
        where, text = path.relative_to(PACKAGE).as_posix(), path.read_text()
        if not where.startswith("events/") and word in text:
            yield where, ast.parse(text)


def _logging(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [getattr(node, "module", None), *(name.name for name in node.names)]
            if any(name is not None and name.split(".")[0] == "logging" for name in names):
                yield node.lineno


def _calls(tree: ast.Module) -> Iterator[tuple[str, list[str | None], int]]:
    """Name, keywords and line of each call of an event."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
            if node.func.attr in ("log", "log_traceback") and name.lower() in EVENTS and name.isupper():
                yield name.lower(), [keyword.arg for keyword in node.keywords], node.lineno


def test_nothing_but_events_is_logged() -> None:
    assert [f"{where}:{line}" for where, tree in _modules("logging") for line in _logging(tree)] == []


def test_events_are_told_with_their_fields_and_each_of_them_is_told() -> None:
    told = {"last_checkpoint_unreadable", "last_checkpoint_checksum_mismatch"}  # by their value
    for where, tree in _modules("delta_ds.events"):
        for name, keywords, line in _calls(tree):
            fields = EVENTS[name].fields
            required = set(fields[:1])
            assert required <= set(keywords) <= set(fields), f"{where}:{line}: {name} has {fields}"
            told.add(name)
    assert told == set(EVENTS)


def test_every_event_says_what_it_means_and_what_to_do() -> None:
    assert sum(len(events_of(module)) for module in SUBJECTS.values()) == len(EVENTS)
    for module in SUBJECTS.values():
        for event in events_of(module):
            assert vars(module)[event.name.upper()] is event
            assert re.fullmatch("[a-z][a-z0-9_]*", event.name)
            assert event.meaning and event.action and event.fields
            assert event.level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


def test_a_record_has_name_and_fields(records: list[logging.LogRecord]) -> None:
    TOLD.log(table="/data/t", reason=StorageError("no such bucket"))
    (record,) = records
    told: Any = record
    assert (told.event, told.fields) == ("something_told", {"table": "/data/t", "reason": "no such bucket"})
    assert record.getMessage() == 'something_told table=/data/t reason="no such bucket"'
    assert (record.levelname, record.filename) == ("INFO", "test_events.py")


def test_the_text_is_made_when_it_is_asked_for(records: list[logging.LogRecord]) -> None:
    TOLD.log(table="/data/t")
    (record,) = records
    assert isinstance(record.msg, Line) and record.args == ()


def test_below_the_level_nothing_is_made_of_the_values(records: list[logging.LogRecord]) -> None:
    class Shy:
        def __str__(self) -> str:
            raise AssertionError("nobody asks")

    LOGGER.setLevel(logging.WARNING)
    TOLD.log(table=Shy())
    assert records == []


def _read(line: str) -> tuple[str, dict[str, Any]]:
    """A line read back: bare text, or JSON."""
    name, _, rest = line.partition(" ")
    fields: dict[str, Any] = {}
    decoder = json.JSONDecoder()
    while rest:
        key, _, rest = rest.partition("=")
        bare = re.match(r"[^ ]*", rest)
        assert bare is not None
        try:
            value, end = decoder.raw_decode(rest)
            if end < len(rest) and rest[end] != " ":
                raise ValueError
        except ValueError:
            value, end = bare[0], bare.end()
        fields[key] = value
        rest = rest[end:].removeprefix(" ")
    return name, fields


_VALUES = (
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["1", "null", "a=b", "a b", '"'])
)


@settings(max_examples=examples(200), deadline=None)
@given(st.dictionaries(st.sampled_from(["table", "reason", "version"]), _VALUES))
def test_a_line_can_be_read_back(fields: dict[str, Any]) -> None:
    line = str(Line("something_told", fields))
    assert len(line.splitlines()) == 1
    assert _read(line) == ("something_told", fields)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:pa55@host/t", "https://***@host/t"),
        ("abfss://box@account.dfs.core.windows.net/t", "abfss://box@account.dfs.core.windows.net/t"),
        ("https://a.blob/t?sv=1&sig=aB%2F3&se=2", "https://a.blob/t?sv=1&sig=***&se=2"),
        ("https://b/t?X-Amz-Signature=00ff&X-Amz-Date=2", "https://b/t?X-Amz-Signature=***&X-Amz-Date=2"),
        ("AccountName=x;AccountKey=abc==;More=1", "AccountName=x;AccountKey=***;More=1"),
        ("{'fs.s3a.secret.key': 'abc', 'a': 'b'}", "{'fs.s3a.secret.key': '***', 'a': 'b'}"),
        ("no token=abc, password: xyz", "no token=***, password: ***"),
        ("no token was given for design=3", "no token was given for design=3"),
    ],
)
def test_secrets_are_taken_out(text: str, shown: str) -> None:
    assert redacted(text) == shown


def test_json_lines_need_no_parsing() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("delta_ds")
    logger.addHandler(handler)
    try:
        EVENTS["unsafe_commits"].log(table="/data/my table", reason="none")
        try:
            raise ValueError("broken")
        except ValueError:
            EVENTS["answer_failed"].log_traceback(what="a question")
        logger.warning("of %s", "somebody else")
    finally:
        logger.removeHandler(handler)
    first, second, third = map(json.loads, stream.getvalue().splitlines())
    assert (first["event"], first["level"]) == ("unsafe_commits", "WARNING")
    assert first["fields"] == {"table": "/data/my table", "reason": "none"}
    assert first["timestamp"].endswith("+00:00")
    assert second["exception"].endswith("ValueError: broken")
    assert third["message"] == "of somebody else" and "event" not in third


def test_commands_tell_events(tmp_path: Path, records: list[logging.LogRecord]) -> None:
    import pyarrow as pa

    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1]}))
    log.checkpoint()
    told: Any = records[-1]
    assert told.event == "checkpoint_written"
    assert {"table": str(tmp_path), "version": 0}.items() <= told.fields.items()
    assert set(told.fields) <= set(EVENTS["checkpoint_written"].fields)
