"""Values of all types to ranks."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.kernel.commands.optimize.zorder_curve import (
    HILBERT,
    ZORDER,
    ClusteringCurve,
    column_at,
    range_boundaries,
    range_ids,
    ranges_of,
    scale_to_bits,
)
from spark_tests.full_form import examples

_DAY = datetime.date(2024, 1, 1)
_TYPES = [
    (pa.int8(), [-3, 0, 7]),
    (pa.int64(), [-(2**62), 1, 2**62]),
    (pa.float32(), [-1.5, 0.0, float("nan")]),
    (pa.float64(), [float("-inf"), 2.5, float("nan")]),
    (pa.string(), ["", "a", "\u00e9", "\U0001f600"]),
    (pa.binary(), [b"", b"\x00", b"\xff"]),
    (pa.bool_(), [False, True]),
    (pa.date32(), [_DAY, _DAY + datetime.timedelta(1)]),
    (pa.timestamp("us", "UTC"), [datetime.datetime(2024, 1, 1), datetime.datetime(2025, 1, 1)]),
    (pa.timestamp("us"), [datetime.datetime(1, 1, 1), datetime.datetime(9999, 1, 1)]),
    (pa.decimal128(38, 10), [Decimal("-1e20"), Decimal("0.5"), Decimal("1e20")]),
]


@pytest.mark.parametrize(("kind", "values"), _TYPES, ids=[str(kind) for kind, _ in _TYPES])
def test_values_of_every_type_are_ranked_in_order_with_nulls_first(kind: pa.DataType, values: list) -> None:
    column = pa.array([*values[::-1], None], kind)
    ranks = range_ids(column, range_boundaries(pa.chunked_array([column]), 100))
    assert ranks[-1] == 0
    assert (np.diff(ranks[:-1][::-1]) > 0).all()


@given(st.lists(st.one_of(st.none(), st.text(max_size=4)), max_size=60), st.integers(1, 10))
def test_ranks_of_texts_count_the_limits_at_or_below_them(values: list[str | None], most: int) -> None:
    column = pa.array(values, pa.string())
    limits = range_boundaries(pa.chunked_array([column]), most)
    encoded = [limit.encode() for limit in limits.to_pylist()]
    assert encoded == sorted(set(encoded))
    assert len(encoded) <= most
    wanted = [0 if v is None else 1 + sum(limit <= v.encode() for limit in encoded) for v in values]
    assert range_ids(column, limits).tolist() == wanted


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=200), st.integers(1, 20))
def test_boundaries_split_a_sample_evenly(values: list[int], most: int) -> None:
    column = pa.array(values, pa.int64())
    limits = range_boundaries(pa.chunked_array([column]), most)
    ranks = range_ids(column, limits)
    order = np.argsort(values, kind="stable")
    assert (np.diff(ranks[order]) >= 0).all()
    commonest = max(map(values.count, values))
    assert np.bincount(ranks).max() <= -(-len(values) // most) + commonest


_ATOMS: list[tuple[pa.DataType, st.SearchStrategy]] = [
    (pa.int32(), st.integers(-3, 3)),
    (pa.float64(), st.sampled_from([float("-inf"), -1.5, -0.0, 0.0, 2.0, float("nan")])),
    (pa.string(), st.text("\x00\x01aé", max_size=3)),
    (pa.binary(), st.binary(max_size=3)),
    (pa.bool_(), st.booleans()),
    (pa.date32(), st.dates(_DAY, _DAY + datetime.timedelta(3))),
]


def _nested(
    inner: st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy]],
) -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy]]:
    def struct(parts: list[tuple[pa.DataType, st.SearchStrategy]]) -> tuple[pa.DataType, st.SearchStrategy]:
        names = [f"f{number}" for number in range(len(parts))]
        kind = pa.struct([(name, part) for name, (part, _) in zip(names, parts, strict=True)])
        values = {name: st.one_of(st.none(), value) for name, (_, value) in zip(names, parts, strict=True)}
        return kind, st.fixed_dictionaries(values)

    lists = inner.map(lambda one: (pa.list_(one[0]), st.lists(st.one_of(st.none(), one[1]), max_size=3)))
    return lists | st.lists(inner, min_size=1, max_size=3).map(struct)


def _spark_key(value: object) -> object:
    """A key that sorts as Spark does: nulls first, NaN above all numbers, texts by their bytes."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, tuple(_spark_key(part) for part in value.values()))
    if isinstance(value, list):
        return (1, tuple(_spark_key(part) for part in value))
    if isinstance(value, float):
        return (1, (math.isnan(value), 0.0 if math.isnan(value) else value + 0.0))
    return (1, value.encode() if isinstance(value, str) else value)


@given(st.data())
@settings(max_examples=examples(100))
def test_structs_and_arrays_are_ranked_as_spark_orders_them(data: st.DataObject) -> None:
    kind, values = data.draw(_nested(st.sampled_from(_ATOMS) | _nested(st.sampled_from(_ATOMS))))
    found = data.draw(st.lists(st.one_of(st.none(), values), min_size=1, max_size=12))
    column = pa.array(found, kind)
    for part in (column, column.slice(len(found) // 2)):
        keys = [_spark_key(value) for value in part.to_pylist()]
        ranks = range_ids(part, range_boundaries(pa.chunked_array([column]), 100)).tolist()
        assert [sorted(set(ranks)).index(rank) for rank in ranks] == [
            sorted(set(keys)).index(key) for key in keys
        ]


def test_a_column_of_few_values_has_its_say_in_the_highest_bits() -> None:
    ranks = np.array([1, 2], np.int64)
    low, high = scale_to_bits(ranks, 2, 12).tolist()
    assert high - low > 1000


def test_nested_fields_are_null_where_their_struct_is() -> None:
    rows = pa.table({"s": pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))})
    assert column_at(rows, ["s", "x"]).to_pylist() == [1, None]


def test_a_column_of_nulls_only_has_one_rank() -> None:
    for kind in (HILBERT, ZORDER):
        taken = pa.table({"0": pa.nulls(4, pa.string()), "1": pa.nulls(4, pa.int32())})
        ranges = ranges_of(ClusteringCurve(kind, (("a",), ("b",))), taken)
        rows = pa.table({"a": pa.nulls(4, pa.string()), "b": pa.nulls(4, pa.int32())})
        assert ranges.keys(rows).tolist() == [0] * 4
