"""The hash join of a MERGE: every pair of equal keys is found, and in exact joins no other."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.kernel.commands.merge import pairs
from delta_ds.kernel.commands.merge.pairs import SourceKeys
from spark_tests.full_form import examples

KINDS: dict[pa.DataType, list[Any]] = {
    pa.int64(): [None, 0, -1, 1, 2**63 - 1, -(2**63), 1 << 40],
    pa.int32(): [None, 0, -1, 7],
    pa.int16(): [None, 0, -1, 7],
    pa.float64(): [None, 0.0, -0.0, 1.5, math.nan, math.inf, -math.inf],
    pa.float32(): [None, 0.0, -0.0, 1.5, math.nan],
    pa.string(): [None, "", "a", "ab", "ba", "\0"],
    pa.binary(): [None, b"", b"\0", b"\0\0", b"a"],
    pa.bool_(): [None, True, False],
    pa.date32(): [None, datetime.date(1, 1, 1), datetime.date(2024, 2, 29)],
    pa.timestamp("us", "UTC"): [None, datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)],
    pa.timestamp("us"): [None, datetime.datetime(1969, 12, 31, 23), datetime.datetime(2024, 1, 1)],
    pa.decimal128(38, 3): [None, Decimal("0.000"), Decimal("-1.500"), Decimal(10**34)],
}


def _equal(left: Any, right: Any, null_safe: bool) -> bool:
    if left is None or right is None:
        return null_safe and left is right
    if isinstance(left, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right)


@st.composite
def _sides(
    draw: Callable[..., Any],
) -> tuple[list[pa.DataType], list[bool], list[tuple[Any, ...]], list[Any]]:
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=3))
    null_safe = [draw(st.booleans()) for _ in kinds]
    row = st.tuples(*(st.sampled_from(KINDS[kind]) for kind in kinds))
    return kinds, null_safe, draw(st.lists(row, max_size=12)), draw(st.lists(row, max_size=12))


def _arrays(kinds: list[pa.DataType], rows: list[tuple[Any, ...]], offset: int = 0) -> list[pa.Array]:
    return [
        pa.array([None] * offset + [row[n] for row in rows], kind).slice(offset)
        for n, kind in enumerate(kinds)
    ]


def _pairs(keys: SourceKeys, values: list[pa.Array], most: int = 5) -> list[tuple[int, int]]:
    parts = list(keys.pairs(values, most))
    return [pair for rows, found in parts for pair in zip(rows.tolist(), found.tolist(), strict=True)]


@given(sides=_sides(), offset=st.integers(0, 3))
@settings(max_examples=examples(200), deadline=None)
def test_every_pair_of_equal_keys_is_found(sides: Any, offset: int) -> None:
    kinds, null_safe, source, target = sides
    keys = SourceKeys(_arrays(kinds, source), null_safe)
    pairs = _pairs(keys, _arrays(kinds, target, offset))
    wanted = {
        (t, s)
        for t, left in enumerate(target)
        for s, right in enumerate(source)
        if all(map(_equal, left, right, null_safe))
    }
    assert len(pairs) == len(set(pairs))
    assert wanted <= set(pairs)
    assert [row for row, _ in pairs] == sorted(row for row, _ in pairs)
    if keys.exact:
        assert wanted == set(pairs)


def test_rows_with_equal_hashes_are_all_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "_mixed", lambda values: values % np.uint64(3))
    keys = SourceKeys([pa.array([0, 3, 1, 6])], [False])
    assert _pairs(keys, [pa.array([9, 2, 1])]) == [(0, 0), (0, 1), (0, 3), (2, 2)]


def test_many_keys_are_found_wherever_their_hashes_fall() -> None:
    numbers = np.random.default_rng(0).choice(1 << 62, 50_000, replace=False)
    keys = SourceKeys([pa.array(numbers[:25_000])], [False])
    assert _pairs(keys, [pa.array(numbers)], 1000) == [(n, n) for n in range(25_000)]


def test_the_greatest_hash_is_told_from_the_end_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "_mixed", lambda values: values)
    keys = SourceKeys([pa.array([-1, 5])], [False])
    assert _pairs(keys, [pa.array([-1, 4])]) == [(0, 0)]
    without = SourceKeys([pa.array([5, -2])], [False])
    assert _pairs(without, [pa.array([-1, -2])]) == [(1, 1)]


def test_pairs_of_keys_that_are_often_there_come_some_at_a_time() -> None:
    keys = SourceKeys([pa.array([1] * 100 + [2])], [False])
    parts = list(keys.pairs([pa.array([2, 1, 1, 2, 1])], 150))
    assert [len(rows) for rows, _ in parts] == [201, 101]
    assert [row for rows, _ in parts for row in dict.fromkeys(rows.tolist())] == [0, 1, 2, 3, 4]
