"""How many files lookups of a column's values read, by the ranges of the files alone."""

from __future__ import annotations

from typing import Any


def shares_of_rows(low: Any, high: Any, rows: Any) -> tuple[Any, Any]:
    """How much of all rows lies before the first value of each file, and up to its last one.

    The rows of a file are taken to be spread evenly between its bounds.

    Parameters
    ----------
    low, high
        float64, a value a file: see `positions`.
    rows
        float64, what each file weighs.

    Returns
    -------
    two numpy float64 arrays
        Shares between 0 and 1.
    """
    import numpy as np

    points, at = np.unique(np.concatenate([low, high]), return_inverse=True)
    if not len(points) or not rows.sum():
        return np.zeros(len(low)), np.ones(len(low))
    first, last = at[: len(low)], at[len(low) :]
    span = max(points[-1] - points[0], np.finfo(float).tiny)
    width = (high - low) / span
    # Ranges that are next to nothing beside the whole one count as points: their density would drown the others'.
    point = width <= 1e-9
    at_once, density = np.zeros(len(points)), np.zeros(len(points))
    np.add.at(at_once, first[point], rows[point])
    each = rows[~point] / width[~point]
    np.add.at(density, first[~point], each)
    np.add.at(density, last[~point], -each)
    between = np.maximum(np.cumsum(density)[:-1], 0) * np.diff(points) / span
    before = np.concatenate([[0.0], np.cumsum(at_once[:-1] + between)])
    up_to = before + at_once
    return before[first] / up_to[-1], up_to[last] / up_to[-1]


def mean_files_read(before: Any, up_to: Any, share: float) -> float:
    """How many files hold some of a range of values, on average over all ranges with that share of the rows.

    Parameters
    ----------
    before, up_to
        See `shares_of_rows`.
    share
        Of the rows, from 0 (the value of a row) up to 1 (all values).
    """
    import numpy as np

    if share >= 1:
        return float(len(before))
    # A range that begins at the share u of the rows meets a file for every u between these.
    lengths = np.minimum(up_to, 1 - share) - np.maximum(before - share, 0)
    return float(np.maximum(lengths, 0).sum() / (1 - share))


def depth(low: Any, high: Any) -> tuple[Any, Any]:
    """How many ranges hold each place, as a line to draw.

    Returns
    -------
    two numpy arrays
        Places in ascending order, each once for every height there, and the heights (int64).
    """
    import numpy as np

    points = np.unique(np.concatenate([low, high]))
    lows, highs = np.sort(low), np.sort(high)
    begun = np.searchsorted(lows, points, side="right")
    at = begun - np.searchsorted(highs, points, side="left")
    after = begun - np.searchsorted(highs, points, side="right")
    before = np.concatenate([[0], after])[:-1]
    return np.repeat(points, 3), np.stack([before, at, after], axis=1).ravel()
