"""Spark's string literals: escapes, raw strings, doubled quotes, and neighbours that are joined.

Source: Spark's `SparkParserUtils.unescapeSQLString` and the lexer's `STRING_LITERAL`.
"""

from __future__ import annotations

import re

_TOKENS = re.compile(
    r"""(?P<skip>`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|\b[xX]'[0-9a-fA-F]*'|\b[xX]"[0-9a-fA-F]*")
    |(?P<strings>(?:\b[rR])?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      (?:\s*(?:\b[rR])?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))*)""",
    re.DOTALL | re.VERBOSE,
)
_STRING = re.compile(r"""([rR])?('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def normalise_strings(text: str) -> str:
    """Write every string literal of a text in the one form all dialects read alike: only ' and \\ escaped."""

    def literal(match: re.Match[str]) -> str:
        if match["skip"]:
            return match["skip"]
        parts: list[str] = []
        end, quote_before = None, ""
        for part in _STRING.finditer(match["strings"]):
            raw, quoted = part.groups()
            value = quoted[1:-1] if raw else _ESCAPE.sub(_unescape, quoted[1:-1])
            # A doubled quote, as in 'it''s', stands for one quote; literals further apart are joined.
            if end == part.start() and quoted[0] == quote_before and not raw:
                value = quoted[0] + value
            parts.append(value)
            end, quote_before = part.end(), quoted[0]
        return "'" + "".join(parts).replace("\\", "\\\\").replace("'", "\\'") + "'"

    return _TOKENS.sub(literal, text)


def _unescape(match: re.Match[str]) -> str:
    short, long, octal, char = match.groups()
    if short or long:
        return chr(int(short or long, 16))
    return chr(int(octal, 8)) if octal else _ESCAPED.get(char, char)
