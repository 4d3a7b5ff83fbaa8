"""Replaced methods: what goes where, and that nothing is left behind."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from delta_ds.spark.engines.monkeypatch import apply, call_original, undo


class Reader:
    def load(self, path: str | None = None, format: str | None = None, **options: str) -> str:
        """Load it."""
        return f"spark {path} {format} {options}"


ORIGINAL = Reader.__dict__["load"]


def concerns(reader: Reader, arguments: dict[str, Any]) -> bool:
    return arguments.get("format") == "ours"


def handle(original: Callable[..., Any], reader: Reader, arguments: dict[str, Any]) -> str:
    return f"ours {arguments}"


@pytest.fixture(autouse=True)
def patched() -> Iterator[None]:
    apply(Reader, "load", concerns, handle)
    yield
    undo(Reader, "load")
    Reader.load = ORIGINAL  # type: ignore[method-assign]


def test_calls_that_concern_us_are_handled_with_their_named_arguments() -> None:
    assert Reader().load("/p", "ours", a="1") == (
        "ours {'path': '/p', 'format': 'ours', 'options': {'a': '1'}}"
    )


def test_every_other_call_reaches_the_original_as_it_was_made() -> None:
    assert Reader().load("/p", a="1") == "spark /p None {'a': '1'}"
    assert Reader().load(format="csv", path="/p") == "spark /p csv {}"


def test_call_that_the_original_refuses_is_refused_in_its_words() -> None:
    with pytest.raises(TypeError, match="positional argument"):
        Reader().load("/p", "ours", "too many")  # type: ignore[call-arg]


def test_replacement_looks_like_the_original() -> None:
    assert Reader.load is not ORIGINAL
    assert (Reader.load.__name__, Reader.load.__doc__) == ("load", "Load it.")
    assert inspect.signature(Reader.load) == inspect.signature(ORIGINAL)


def test_original_can_be_called_while_it_is_replaced() -> None:
    assert call_original(Reader(), "load", "/p", "ours") == "spark /p ours {}"


def test_replacing_twice_is_undone_at_once() -> None:
    apply(Reader, "load", concerns, handle)
    undo(Reader, "load")
    assert Reader.__dict__["load"] is ORIGINAL
    undo(Reader, "load")
    assert Reader.__dict__["load"] is ORIGINAL


def test_replacement_by_someone_else_stays(caplog: pytest.LogCaptureFixture) -> None:
    ours = Reader.load

    def theirs(self: Reader, *args: Any, **kwargs: Any) -> str:
        return "theirs " + ours(self, *args, **kwargs)

    Reader.load = theirs  # type: ignore[method-assign, assignment]
    with caplog.at_level(logging.WARNING, "delta_ds"):
        undo(Reader, "load")
    assert Reader().load("/p") == "theirs spark /p None {}"
    assert "patch_left_in_place method=Reader.load" in caplog.text
