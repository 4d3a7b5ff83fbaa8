"""Exponential, logarithms and power to the last bit as Java's `StrictMath` computes them, whatever the machine.

The C library of a machine may round the last digit otherwise. What is compared with what Spark has written must not.

Source: fdlibm 5.3 (`e_exp.c`, `e_log.c`, `e_log10.c`, `e_pow.c`), which `StrictMath` is defined by; Copyright (C) 1993
by Sun Microsystems, Inc. All rights reserved. Permission to use, copy, modify, and distribute this software is freely
granted, provided that this notice is preserved.
"""

from __future__ import annotations

import math
import struct

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_INVERSE_LN2 = 1.44269504088896338700e00
_P = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
_TWO54 = 1.80143985094819840000e16


def _high(x: float) -> int:
    """The upper 32 bits of a double, signed."""
    high: int = struct.unpack("<q", struct.pack("<d", x))[0] >> 32
    return high


def _low(x: float) -> int:
    """The lower 32 bits of a double."""
    low: int = struct.unpack("<I", struct.pack("<d", x)[:4])[0]
    return low


def _double(high: int, low: int) -> float:
    x: float = struct.unpack("<d", struct.pack("<II", low, high & 0xFFFFFFFF))[0]
    return x


def _cut(x: float) -> float:
    """The double without its lower 32 bits."""
    return _double(_high(x), 0)


def _scaled(x: float, n: int) -> float:
    try:
        return math.ldexp(x, n)
    except OverflowError:
        return math.copysign(math.inf, x)


def _remez(t: float) -> float:
    p1, p2, p3, p4, p5 = _P
    return t * (p1 + t * (p2 + t * (p3 + t * (p4 + t * p5))))


def exp(x: float) -> float:
    """`e` to the power of a number."""
    if math.isnan(x) or x == math.inf:
        return x
    if x > 7.09782712893383973096e02:
        return math.inf
    if x < -7.45133219101941108420e02:
        return 0.0
    size, k, high, low = _high(x) & 0x7FFFFFFF, 0, 0.0, 0.0
    if size > 0x3FD62E42:
        sign = -1 if x < 0 else 1
        if size < 0x3FF0A2B2:
            k, high, low = sign, x - sign * _LN2_HIGH, sign * _LN2_LOW
        else:
            k = int(_INVERSE_LN2 * x + sign * 0.5)
            high, low = x - k * _LN2_HIGH, k * _LN2_LOW
        x = high - low
    elif size < 0x3E300000:
        return 1.0 + x
    c = x - _remez(x * x)
    if k == 0:
        return 1.0 - ((x * c) / (c - 2.0) - x)
    y = 1.0 - ((low - (x * c) / (2.0 - c)) - high)
    return _scaled(y, k)


_LG = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


def _normal(x: float) -> tuple[float, int, int]:
    """A number above zero, its high word and its exponent; one that is not normal is scaled up to be so."""
    high, k = _high(x), 0
    if high < 0x00100000:
        k, x = -54, x * _TWO54
        high = _high(x)
    return x, high, k + (high >> 20) - 1023


def log(x: float) -> float:
    """The natural logarithm of a number above zero."""
    if math.isnan(x) or x == math.inf:
        return x
    x, high, k = _normal(x)
    high &= 0x000FFFFF
    i = (high + 0x95F64) & 0x100000
    f = _double(high | (i ^ 0x3FF00000), _low(x)) - 1.0
    k += i >> 20
    if (0x000FFFFF & (2 + high)) < 3:
        if f == 0.0:
            return k * _LN2_HIGH + k * _LN2_LOW if k else 0.0
        r = f * f * (0.5 - 0.33333333333333333 * f)
        return f - r if k == 0 else k * _LN2_HIGH - ((r - k * _LN2_LOW) - f)
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    lg1, lg2, lg3, lg4, lg5, lg6, lg7 = _LG
    r = z * (lg1 + w * (lg3 + w * (lg5 + w * lg7))) + w * (lg2 + w * (lg4 + w * lg6))
    if ((high - 0x6147A) | (0x6B851 - high)) > 0:
        half = 0.5 * f * f
        if k == 0:
            return f - (half - s * (half + r))
        return k * _LN2_HIGH - ((half - (s * (half + r) + k * _LN2_LOW)) - f)
    return f - s * (f - r) if k == 0 else k * _LN2_HIGH - ((s * (f - r) - k * _LN2_LOW) - f)


def log10(x: float) -> float:
    """The decimal logarithm of a number above zero."""
    if math.isnan(x) or x == math.inf:
        return x
    x, high, k = _normal(x)
    i = 1 if k < 0 else 0
    mantissa = _double((high & 0x000FFFFF) | ((0x3FF - i) << 20), _low(x))
    y = float(k + i)
    z = y * 3.69423907715893078616e-13 + 4.34294481903251816668e-01 * log(mantissa)
    return z + y * 3.01029995663611771306e-01


# --- power


def pow(x: float, y: float) -> float:
    """One number to the power of another."""
    if y == 0.0:
        return 1.0
    if math.isnan(x) or math.isnan(y):
        return math.nan
    simple = _simple_power(x, y)
    if simple is not None:
        return simple
    whole, odd = y == math.floor(y), abs(y) < 2.0**53 and y % 2 == 1
    if x < 0 and not whole:
        return math.nan
    sign = -1.0 if x < 0 and odd else 1.0
    size, high_y = _high(x) & 0x7FFFFFFF, _high(y)
    if (high_y & 0x7FFFFFFF) > 0x41E00000:
        far = _far_power(size, high_y)
        if far is not None:
            return sign * far
        t1, t2 = _log2_near_one(abs(x))
    else:
        t1, t2 = _log2(abs(x))
    return sign * _exp2_of_product(y, t1, t2)


def _simple_power(x: float, y: float) -> float | None:
    if math.isinf(y):
        if abs(x) == 1.0:
            return math.nan
        return (math.inf if y > 0 else 0.0) if abs(x) > 1.0 else (0.0 if y > 0 else math.inf)
    if y == 1.0:
        return x
    if y == -1.0 and x != 0.0:
        return 1.0 / x
    if y == 2.0:
        return x * x
    if y == 0.5 and not math.isinf(x) and _high(x) >= 0:
        return math.sqrt(x)
    if x == 0.0 or math.isinf(x) or abs(x) == 1.0:
        return _power_of_special(x, y)
    return None


def _power_of_special(x: float, y: float) -> float:
    """A power of zero, one or infinity, of either sign."""
    whole, odd = y == math.floor(y), abs(y) < 2.0**53 and y % 2 == 1
    size = abs(x)
    if y < 0:
        size = math.inf if size == 0.0 else 1.0 / size
    if math.copysign(1.0, x) > 0:
        return size
    if x == -1.0 and not whole:
        return math.nan
    return -size if odd else size


def _far_power(size: int, high_y: int) -> float | None:
    """A power beyond what doubles hold, for exponents of which nearly all are."""
    above, below = (math.inf, 0.0) if high_y > 0 else (0.0, math.inf)
    if (high_y & 0x7FFFFFFF) > 0x43F00000:
        return below if size <= 0x3FEFFFFF else above
    if size < 0x3FEFFFFF:
        return below
    return above if size > 0x3FF00000 else None


def _log2_near_one(x: float) -> tuple[float, float]:
    """The binary logarithm of a number that is nearly one, in two parts."""
    t = x - 1.0
    w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25))
    u = 1.44269502162933349609e00 * t
    v = t * 1.92596299112661746887e-08 - w * _INVERSE_LN2
    t1 = _cut(u + v)
    return t1, v - (t1 - u)


_L = (
    5.99999999999994648725e-01,
    4.28571428578550184252e-01,
    3.33333329818377432918e-01,
    2.72728123808534006489e-01,
    2.30660745775561754067e-01,
    2.06975017800338417784e-01,
)
_NEAR = (1.0, 1.5)
_NEAR_HIGH, _NEAR_LOW = (0.0, 5.84962487220764160156e-01), (0.0, 1.35003920212974897128e-08)
_CP, _CP_HIGH, _CP_LOW = 9.61796693925975554329e-01, 9.61796700954437255859e-01, -7.02846165095275826516e-09


def _log2(x: float) -> tuple[float, float]:
    """The binary logarithm of a number above zero, in two parts."""
    n, size = 0, _high(x)
    if size < 0x00100000:
        n, x = -53, x * 9007199254740992.0
        size = _high(x)
    n += (size >> 20) - 0x3FF
    j = size & 0x000FFFFF
    size, k = j | 0x3FF00000, 0 if j <= 0x3988E else 1
    if j >= 0xBB67A:
        k, n, size = 0, n + 1, size - 0x00100000
    x = _double(size, _low(x))
    u, v = x - _NEAR[k], 1.0 / (x + _NEAR[k])
    ss = u * v
    s_h = _cut(ss)
    t_h = _double(((size >> 1) | 0x20000000) + 0x00080000 + (k << 18), 0)
    t_l = x - (t_h - _NEAR[k])
    s_l = v * ((u - s_h * t_h) - s_h * t_l)
    s2 = ss * ss
    l1, l2, l3, l4, l5, l6 = _L
    r = s2 * s2 * (l1 + s2 * (l2 + s2 * (l3 + s2 * (l4 + s2 * (l5 + s2 * l6)))))
    r += s_l * (s_h + ss)
    s2 = s_h * s_h
    t_h = _cut(3.0 + s2 + r)
    t_l = r - ((t_h - 3.0) - s2)
    u, v = s_h * t_h, s_l * t_h + t_l * ss
    p_h = _cut(u + v)
    p_l = v - (p_h - u)
    z_h = _CP_HIGH * p_h
    z_l = _CP_LOW * p_h + p_l * _CP + _NEAR_LOW[k]
    t = float(n)
    t1 = _cut(((z_h + z_l) + _NEAR_HIGH[k]) + t)
    return t1, z_l - (((t1 - t) - _NEAR_HIGH[k]) - z_h)


def _exp2_of_product(y: float, t1: float, t2: float) -> float:
    """Two to the power of the product of a number with one in two parts."""
    y1 = _cut(y)
    p_l = (y - y1) * t1 + y * t2
    p_h = y1 * t1
    z = p_l + p_h
    j, i = _high(z), _low(z)
    if j >= 0x40900000:
        if (j - 0x40900000) | i or p_l + 8.0085662595372944372e-17 > z - p_h:
            return math.inf
    elif (j & 0x7FFFFFFF) >= 0x4090CC00 and ((j & 0xFFFFFFFF) != 0xC090CC00 or i or p_l <= z - p_h):
        return 0.0
    i = j & 0x7FFFFFFF
    k, n = (i >> 20) - 0x3FF, 0
    if i > 0x3FE00000:
        n = (j & 0xFFFFFFFF) + (0x00100000 >> (k + 1))
        k = ((n & 0x7FFFFFFF) >> 20) - 0x3FF
        t = _double(n & ~(0x000FFFFF >> k) & 0xFFFFFFFF, 0)
        n = ((n & 0x000FFFFF) | 0x00100000) >> (20 - k)
        n = -n if j < 0 else n
        p_h -= t
    t = _cut(p_l + p_h)
    u = t * 6.93147182464599609375e-01
    v = (p_l - (t - p_h)) * 6.93147180559945286227e-01 + t * -1.90465429995776804525e-09
    z = u + v
    w = v - (z - u)
    t1 = z - _remez(z * z)
    r = (z * t1) / (t1 - 2.0) - (w + z * w)
    return _scaled(1.0 - (r - z), n)
