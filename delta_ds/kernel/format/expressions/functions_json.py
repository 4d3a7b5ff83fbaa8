"""`get_json_object` on Arrow values, by Spark's rules.

A text is read as Spark's parser reads it: names and texts may stand in single quotes, control characters may stand as
they are, what follows the value is not looked at, and what is no JSON gives null.

Source: Spark, `GetJsonObjectEvaluator` and `JsonInferSchema`; Jackson, `JsonParser`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.arrays import map_rows
from delta_ds.kernel.format.expressions.casts import Value
from delta_ds.kernel.format.expressions.plain_sql import double_text
from delta_ds.kernel.format.expressions.tree import Call
from delta_ds.kernel.format.schema.types import STRING

_DEEPEST = 1000  # Jackson's own bound
_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![\w.+-])
    |(?P<word>true|false|null)(?!\w)
    |(?P<mark>[{}\[\],:]))""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/", "'": "'"}
_STEP = re.compile(r"\.(?P<name>[^.\[\]*?()@\s']+)|\['(?P<quoted>[^'?]+)'\]|\[(?P<index>\d+)\]")


class _NoJson(Exception):
    """The text is no JSON."""


class _Number(NamedTuple):
    """A number as it is written."""

    text: str


@functools.lru_cache(maxsize=256)
def path_steps(path: str) -> tuple[str | int, ...]:
    """The names and indexes of a path such as `$.a[0]['b']`.

    Raises
    ------
    PredicateError
        It has a form that is not known here, such as `[*]`.
    """
    found: list[str | int] = []
    at = 1
    while path.startswith("$") and at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            break
        found.append(int(match["index"]) if match["index"] is not None else match["name"] or match["quoted"])
        at = match.end()
    if not path.startswith("$") or at < len(path):
        raise PredicateError(
            f"the path {path!r} into JSON is not known here; it is of names and indexes, as $.a[0]"
        )
    return tuple(found)


def _get_json_object(text: str, path: str) -> str | None:
    steps = path_steps(path)
    try:
        value = _read(text)
    except _NoJson:
        return None
    for step in steps:
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return None
            value = value[step]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list):
            raise PredicateError(f"the path {path!r} leads through an array of JSON, which is not known here")
        else:
            return None
    return None if value is None else value if isinstance(value, str) else _written(value)


def _read(text: str) -> Any:
    """The first value of a text; of names that are there twice, the first counts."""
    around: list[
        tuple[Any, str | None]
    ] = []  # containers that are open, and the name that waits for its value
    at, value, complete = 0, None, False
    while True:
        if complete:
            if not around:
                return value
            at, complete, value = _put(text, at, around, value)
            continue
        match = _TOKEN.match(text, at)
        if match is None or len(around) > _DEEPEST:
            raise _NoJson
        at, token = match.end(), match["mark"]
        if token in ("{", "["):
            at, complete, value = _opened(text, at, around, token)
        elif token is not None:
            raise _NoJson
        else:
            value, complete = _scalar(match), True


def _opened(text: str, at: int, around: list[tuple[Any, str | None]], token: str) -> tuple[int, bool, Any]:
    container: Any = {} if token == "{" else []
    ending = _TOKEN.match(text, at)
    if ending is not None and ending["mark"] == ("}" if token == "{" else "]"):
        return ending.end(), True, container
    name = None
    if token == "{":
        at, name = _name(text, at)
    around.append((container, name))
    return at, False, None


def _name(text: str, at: int) -> tuple[int, str]:
    match = _TOKEN.match(text, at)
    colon = None if match is None or match["text"] is None else _TOKEN.match(text, match.end())
    if match is None or colon is None or colon["mark"] != ":":
        raise _NoJson
    return colon.end(), _text(match["text"])


def _put(text: str, at: int, around: list[tuple[Any, str | None]], value: Any) -> tuple[int, bool, Any]:
    """Put a value into the container around it, and go on behind it."""
    container, name = around.pop()
    if isinstance(container, dict):
        container.setdefault(name, value)
    else:
        container.append(value)
    match = _TOKEN.match(text, at)
    mark = None if match is None else match["mark"]
    if match is None or mark not in (",", "}" if isinstance(container, dict) else "]"):
        raise _NoJson
    at = match.end()
    if mark != ",":
        return at, True, container
    if isinstance(container, dict):
        at, name = _name(text, at)
    around.append((container, name))
    return at, False, None


def _scalar(match: re.Match[str]) -> Any:
    if match["text"] is not None:
        return _text(match["text"])
    if match["number"] is not None:
        return _Number(match["number"])
    return {"true": True, "false": False, "null": None}[match["word"]]


def _text(token: str) -> str:
    def character(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] not in _ESCAPED:
            raise _NoJson
        return _ESCAPED[match[2]]

    found = _ESCAPE.sub(character, token[1:-1])
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _written(value: Any) -> str:
    """A value as Jackson writes it, without blanks."""
    pieces: list[str] = []
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, _Piece):
            pieces.append(item)
        elif isinstance(item, _Number):
            whole = re.fullmatch(r"-?[0-9]+", item.text)
            pieces.append(str(int(item.text)) if whole else double_text(float(item.text)))
        elif isinstance(item, str):
            pieces.append(_quoted(item))
        elif isinstance(item, list):
            inside = [part for n, one in enumerate(item) for part in ((_Piece(","), one) if n else (one,))]
            pending.extend(reversed([_Piece("["), *inside, _Piece("]")]))
        elif isinstance(item, dict):
            inside = [
                part
                for n, (name, one) in enumerate(item.items())
                for part in (_Piece(("," if n else "") + _quoted(name) + ":"), one)
            ]
            pending.extend(reversed([_Piece("{"), *inside, _Piece("}")]))
        else:
            pieces.append({True: "true", False: "false", None: "null"}[item])
    return "".join(pieces)


class _Piece(str):
    """Text that is written already."""


_QUOTED = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _quoted(text: str) -> str:
    escaped = "".join(_QUOTED.get(c) or (f"\\u{ord(c):04X}" if c < " " else c) for c in text)
    return f'"{escaped}"'


def _run(node: Call, args: list[Any]) -> Value:
    return map_rows(_get_json_object, args, [STRING, STRING], STRING)


RUN: dict[str, Callable[[Call, list[Any]], Value]] = {"get_json_object": _run}
__all__ = ["RUN", "path_steps"]
