"""Floating-point numbers as Java's `Double.toString` and `Float.toString` write them."""

from __future__ import annotations

import math


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
