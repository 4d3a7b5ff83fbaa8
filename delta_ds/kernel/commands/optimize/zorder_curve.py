"""Z-order and Hilbert curves: keys that keep points near each other which are near in every column.

A key has at most 63 bits, so that it is an int64 that is not negative.

Source: J. Skilling, "Programming the Hilbert curve" (AIP Conference Proceedings 707, 2004); delta-spark,
`MultiDimClustering` (`ZOrderClustering`, `HilbertClustering`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

HILBERT = "hilbert"
ZORDER = "zorder"

KEY_BITS = 63
_AT_ONCE = 1 << 14

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


def bits_for(dimensions: int, most: int) -> int:
    """How many bits of each dimension fit into a key: at least one, at most `most`."""
    return max(1, min(most, KEY_BITS // max(1, dimensions)))


def curve_keys(curve: str, ranks: Sequence[Numbers], bits: int) -> Numbers:
    """The position of points along a curve.

    Parameters
    ----------
    curve
        `hilbert` or `zorder`.
    ranks
        One int64 array a dimension, all of one length, with values of `bits` bits. Where there are more than 63
        dimensions, the first 63 count.
    bits
        Of each rank that count; from `bits_for`.

    Returns
    -------
    numpy.ndarray
        int64 keys below 2 ** (dimensions * bits). With one dimension a point is its own key.
    """
    counted = ranks[: KEY_BITS // bits]
    if len(counted) == 1:
        return counted[0]
    keys = np.empty(len(counted[0]), np.int64)
    # Piece by piece: the many steps work on what a processor's cache holds.
    for start in range(0, len(keys), _AT_ONCE):
        part = [values[start : start + _AT_ONCE] for values in counted]
        keys[start : start + _AT_ONCE] = interleave_bits(
            hilbert_index_axes(part, bits) if curve == HILBERT else part, bits
        )
    return keys


def interleave_bits(ranks: Sequence[Numbers], bits: int) -> Numbers:
    """The bits of all dimensions by turns, the highest bit of the first dimension first."""
    keys = np.zeros(len(ranks[0]), np.int64)
    for bit in range(bits - 1, -1, -1):
        for values in ranks:
            keys <<= 1
            keys |= (values >> bit) & 1
    return keys


def hilbert_index_axes(ranks: Sequence[Numbers], bits: int) -> list[Numbers]:
    """Points turned and mirrored such that their interleaved bits count along the Hilbert curve."""
    axes = [values.copy() for values in ranks]
    _undo_excess_work(axes, bits)
    for number in range(1, len(axes)):
        axes[number] ^= axes[number - 1]
    flips = np.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        flips ^= np.where(axes[-1] >> bit & 1, (1 << bit) - 1, 0)
    for values in axes:
        values ^= flips
    return axes


def _undo_excess_work(axes: list[Numbers], bits: int) -> None:
    first = axes[0]
    for bit in range(bits - 1, 0, -1):
        below = (1 << bit) - 1
        for values in axes:
            is_set = (values >> bit & 1).astype(bool)
            # Where the bit is set the lower bits of the first axis are mirrored, else exchanged with this one's.
            exchanged = np.where(is_set, 0, (first ^ values) & below)
            first ^= np.where(is_set, below, exchanged)
            values ^= exchanged
