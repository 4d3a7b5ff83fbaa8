"""Laws of the curves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.kernel.commands.optimize.zorder_curve import HILBERT, ZORDER, bits_for, curve_keys

_SHAPES = st.sampled_from([(1, 6), (2, 1), (2, 4), (3, 3), (4, 2), (5, 2)])


def _all_points(dimensions: int, bits: int) -> list[np.ndarray]:
    grid = np.indices([1 << bits] * dimensions, dtype=np.int64)
    return [axis.reshape(-1).copy() for axis in grid]


@given(_SHAPES, st.sampled_from([HILBERT, ZORDER]))
def test_every_point_has_a_key_of_its_own(shape: tuple[int, int], curve: str) -> None:
    dimensions, bits = shape
    keys = curve_keys(curve, _all_points(dimensions, bits), bits)
    assert sorted(keys.tolist()) == list(range(1 << dimensions * bits))


@given(_SHAPES)
def test_neighbours_along_the_hilbert_curve_differ_by_one_step(shape: tuple[int, int]) -> None:
    dimensions, bits = shape
    points = _all_points(dimensions, bits)
    order = np.argsort(curve_keys(HILBERT, points, bits))
    steps = sum(np.abs(np.diff(axis[order])) for axis in points)
    assert set(np.asarray(steps).tolist()) == {1}


@given(st.integers(2, 6), st.integers(0, 2**10 - 1), st.data())
def test_zorder_grows_with_every_dimension(dimensions: int, value: int, data: st.DataObject) -> None:
    bits = bits_for(dimensions, 10)
    low = [value % (1 << bits)] * dimensions
    high = list(low)
    high[data.draw(st.integers(0, dimensions - 1))] = (1 << bits) - 1
    points = [np.array([a, b], np.int64) for a, b in zip(low, high, strict=True)]
    first, second = curve_keys(ZORDER, points, bits)
    assert first <= second


@pytest.mark.parametrize("dimensions", [1, 2, 5, 31, 63, 64, 200])
def test_keys_of_any_number_of_dimensions_are_not_negative(dimensions: int) -> None:
    bits = bits_for(dimensions, 12)
    top = [np.array([(1 << bits) - 1, 0], np.int64)] * dimensions
    for curve in (HILBERT, ZORDER):
        assert (curve_keys(curve, top, bits) >= 0).all()
