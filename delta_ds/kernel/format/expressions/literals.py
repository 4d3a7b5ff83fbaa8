"""Literals of Spark SQL: strings with escapes, raw strings, numbers.

Source: Spark's `SparkParserUtils.unescapeSQLString` and the lexer's `STRING_LITERAL`.

Floating-point numbers as Java's `Double.toString` and `Float.toString` write them.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.coercion import INTEGER_BITS, in_range
from delta_ds.kernel.format.expressions.tree import Cast, Expression, Literal
from delta_ds.kernel.format.schema.types import DOUBLE, FLOAT, INTEGER, LONG, DataType, DecimalType

_TOKENS = r"""(?P<skip>`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|\b[xX]'[0-9a-fA-F]*'|\b[xX]"[0-9a-fA-F]*")
    |(?P<strings>(?:\b[rR])?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      (?:\s*(?:\b[rR])?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))*)
    |(?<![\w.`])(?P<decimal>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[bB][dD]\b"""
_STRING = re.compile(r"""([rR])?('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def normalise_literals(text: str) -> str:
    """Write the literals that dialects read differently in a form that all read alike.

    In strings only ' and \\ stay escaped; `1.5BD` becomes a cast.
    """

    def literal(match: re.Match[str]) -> str:
        if match["skip"]:
            return match["skip"]
        if match["decimal"]:
            number = Decimal(match["decimal"])
            plain = f"{number:f}"
            scale = len(plain.partition(".")[2])
            return f"CAST({plain} AS DECIMAL({max(len(number.as_tuple().digits), scale)},{scale}))"
        value = string_value(match["strings"])
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    # Compiled when the first text comes that is no plain filter; `re` keeps it.
    return re.sub(_TOKENS, literal, text, flags=re.DOTALL | re.VERBOSE)


def string_value(literals: str) -> str:
    """What a string literal stands for, or several beside each other: without quotes and escapes.

    >>> string_value("'it''s' ' here'")
    "it's here"

    Raises
    ------
    PredicateError
        An escape names no character.
    """
    parts: list[str] = []
    end, quote_before = None, ""
    for part in _STRING.finditer(literals):
        raw, quoted = part.groups()
        value = quoted[1:-1] if raw else _ESCAPE.sub(_unescape, quoted[1:-1])
        # A doubled quote, as in 'it''s', stands for one quote; literals further apart are joined.
        if end == part.start() and quoted[0] == quote_before and not raw:
            value = quoted[0] + value
        parts.append(value)
        end, quote_before = part.end(), quoted[0]
    # Escapes may have given the two halves of a character; a half alone is none.
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescape(match: re.Match[str]) -> str:
    short, long, octal, char = match.groups()
    if short or long:
        code = int(short or long, 16)
        if code > 0x10FFFF:
            raise PredicateError(f"{match[0]!r} is not a character")
        return chr(code)
    return chr(int(octal, 8)) if octal else _ESCAPED.get(char, char)


# --- numbers


def number_literal(text: str) -> Literal:
    """A number as SQL writes it: integer or long, decimal if it has a point, double if it has an exponent."""
    if re.fullmatch(r"-?\d+", text):
        return _integer(int(text), text)
    if re.search("[eE]", text):
        if abs(float(text)) == float("inf"):
            raise PredicateError(f"the number {text} is beyond the range of a double")
        return Literal(float(text), DOUBLE)
    value = Decimal(text)
    scale = -int(value.as_tuple().exponent)
    return Literal(value, _decimal(max(len(value.as_tuple().digits), scale), scale, text))


def _integer(number: int, text: str) -> Literal:
    for data_type in (INTEGER, LONG):
        if in_range(number, data_type):
            return Literal(number, data_type)
    return Literal(Decimal(number), _decimal(len(str(abs(number))), 0, text))


def _decimal(precision: int, scale: int, text: str) -> DecimalType:
    if precision > 38 or scale > 38:
        raise PredicateError(f"the number {text} has more than the 38 digits a decimal can hold")
    return DecimalType(precision, scale)


def constant_cast(child: Expression, target: DataType, safe: bool) -> Expression:
    """`CAST(child AS target)`, or the constant itself where the number fits; so `42L` arrives, too."""
    if isinstance(child, Literal) and child.value is not None:
        value = child.value
        if isinstance(target, DecimalType) and isinstance(value, str):
            if re.fullmatch(r"-?\d+(\.\d+)?", value) and _fits(Decimal(value), target):
                return Literal(Decimal(value), target)
        elif isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            return _constant_number(value, target) or Cast(child, target, safe)
    return Cast(child, target, safe)


def _constant_number(value: int | float | Decimal, target: DataType) -> Literal | None:
    if target == DOUBLE:
        return Literal(float(value), DOUBLE)
    if target == FLOAT and abs(float(value)) < 3e38:
        return Literal(struct.unpack("<f", struct.pack("<f", float(value)))[0], FLOAT)
    if isinstance(value, float):
        return None
    if isinstance(target, DecimalType) and _fits(Decimal(value), target):
        return Literal(Decimal(value), target)
    if target in INTEGER_BITS and value == int(value) and in_range(int(value), target):
        return Literal(int(value), target)
    return None


def _fits(value: Decimal, target: DecimalType) -> bool:
    """Whether a decimal type holds the value without rounding."""
    exponent = int(value.as_tuple().exponent)
    return exponent >= -target.scale and value.adjusted() < target.precision - target.scale


def double_text(number: float) -> str:
    """Java's text of a double: `1.0`, `1.0E300`, `NaN`, `-Infinity`."""
    return _java_text(number, repr(number))


def float_text(number: float) -> str:
    """Java's text of a float held in a Python float: the shortest that reads back as the same float."""
    import numpy as np

    return _java_text(number, str(np.float32(number)))


def _java_text(number: float, shortest: str) -> str:
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    mantissa, _, power = shortest.lstrip("-").lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) + len(whole) - 1 - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0") or "0"
    if number == 0:
        return f"{sign}0.0"
    if 1e-3 <= abs(number) < 1e7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        padded = digits.ljust(exponent + 1, "0")
        return f"{sign}{padded[: exponent + 1]}.{padded[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
