"""What a terminal may be shown: texts of strangers, with what would steer it spelled out."""

from __future__ import annotations

import re

# What steers a terminal (C0, C1), turns the direction or the line of what is read, or has no bytes in UTF-8.
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str, pattern: str = "\\x{:02x}") -> str:
    r"""A text as a terminal may be shown it: what would steer the terminal is spelled out.

    Parameters
    ----------
    text
        One line: line feeds are spelled out as well.
    pattern
        How characters below U+0100 are spelled; others are `\uNNNN`.

    >>> print(visible("\x1b[2Jall is well\u202e"))
    \x1b[2Jall is well\u202e
    """
    if text.isascii() and text.isprintable():
        return text

    def spelled(found: re.Match[str]) -> str:
        code = ord(found[0])
        return (pattern if code < 0x100 else "\\u{:04x}").format(code)

    return _STEERING.sub(spelled, text)
