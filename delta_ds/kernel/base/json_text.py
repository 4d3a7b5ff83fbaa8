"""Parse JSON strictly: every text ends as a value or a `ValueError`."""

from __future__ import annotations

import json
import re
from typing import Any

_HALF_A_LETTER = re.compile("[\ud800-\udfff]")
# As JSON spells one; two of them may make a letter.
_SPELLED = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str | bytes, **hooks: Any) -> Any:
    """The value of a JSON text; numbers that are too long, and nesting that is too deep, are errors like any other.

    Halves of surrogate pairs, which JSON can spell and no encoding has, become U+FFFD.

    Parameters
    ----------
    hooks
        Those of `json.loads`.

    Raises
    ------
    ValueError
        The text is not JSON, not UTF-8, or not for machines of finite size.
    """
    try:
        if isinstance(text, bytes):
            text = str(text, "utf-8-sig")
        value = json.loads(text, **hooks)
        return _of_whole_letters(value) if _SPELLED.search(text) is not None else value
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _of_whole_letters(value: Any) -> Any:
    if isinstance(value, str):
        return _HALF_A_LETTER.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_of_whole_letters(key): _of_whole_letters(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_of_whole_letters(item) for item in value]
    return value


def to_json(value: Any) -> str:
    """Compact JSON, other alphabets as they are.

    Raises
    ------
    ValueError
        JSON has no word for it: NaN, an infinity, bytes, half of a surrogate pair. The message says where it is.
    """
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        if not text.isascii():
            text.encode()
        return text
    except (ValueError, TypeError, RecursionError) as error:
        place = _unspeakable(value, "") if not isinstance(error, RecursionError) else None
        where, what = place or ("it", "no JSON")
        raise ValueError(f"{where} is {what}, for which JSON has no word") from error


def _unspeakable(value: Any, path: str) -> tuple[str, str] | None:
    """Where in a value the first part is that cannot be written, and what it is."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, (list, tuple))
        else None
    )
    if inner is not None:
        places = (_unspeakable(part, f"{path}.{key}" if path else str(key)) for key, part in inner)
        return next((place for place in places if place is not None), None)
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError):
        return path or "it", f"{value!r:.80} ({type(value).__name__})"
    return None
