"""The ranges of a column in files, and how many files lookups by it read."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.exceptions import InvalidOptionError, SchemaError, UnsupportedOperationError
from delta_ds.kernel.commands.layout.column import (
    ColumnLayout,
    depth,
    mean_files_read,
    positions,
    shares_of_rows,
)
from delta_ds.testing import TableBuilder
from spark_tests.full_form import examples


def table_of(path: Path, kind: pa.DataType, ranges: list[Any], name: str = "x") -> DeltaLog:
    """A table of one column; a range is (low, high), or None for a file without statistics."""
    table = TableBuilder(path)
    table.create(pa.schema([(name, kind)]))
    for each in ranges:
        values = [None if v == "null" else v for v in (each or (None, None))]
        table.append(
            pa.table({name: pa.array(values, kind)}), stats=each is not None and stats_of(name, values)
        )
    return DeltaLog(path)


def stats_of(name: str, values: list[Any]) -> dict[str, Any]:
    low, high = ({name: str(v) if isinstance(v, dt.date) else v} for v in values)
    low, high = (
        {k: float(v) if isinstance(v, Decimal) else v for k, v in each.items()} for each in (low, high)
    )
    return {"numRecords": 2, "minValues": low, "maxValues": high, "nullCount": {name: values.count(None)}}


def layout_of(path: Path, kind: pa.DataType, ranges: list[Any]) -> ColumnLayout:
    return table_of(path, kind, ranges).snapshot().column_layout("x")


def test_disjoint_files_are_read_one_at_a_time(tmp_path: Path) -> None:
    found = layout_of(tmp_path, pa.int64(), [(0, 9), (10, 19), (20, 29), (30, 39)])
    assert found.files_read() == pytest.approx(1.0)
    assert found.fraction_read() == pytest.approx(0.25)
    assert found.files_read(1) == 4


def test_files_of_the_same_range_are_all_read(tmp_path: Path) -> None:
    found = layout_of(tmp_path, pa.int64(), [(0, 9)] * 4)
    assert found.files_read() == pytest.approx(4.0)


def test_files_without_bounds_are_always_read_and_those_without_values_never(tmp_path: Path) -> None:
    found = layout_of(tmp_path, pa.int64(), [(0, 9), None, ("null", "null"), (10, 19)])
    assert (found.num_files, found.num_unknown, found.num_without_values) == (4, 1, 1)
    assert found.files_read() == pytest.approx(2.0)
    assert found.known["low"].to_pylist() == [0, 10]


@pytest.mark.parametrize("ranges", [[], [None, None], [("null", "null")]])
def test_nothing_known_is_no_trouble(tmp_path: Path, ranges: list[Any]) -> None:
    found = layout_of(tmp_path, pa.string(), ranges)
    assert found.files_read() == sum(each is None for each in ranges)
    assert len(found.depth()[0]) == 0
    assert 0 <= found.fraction_read(0.5) <= 1
    assert str(found)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 5)), min_size=1, max_size=12),
    st.sampled_from([0.0, 0.1, 0.5, 0.9]),
)
def test_lookups_read_what_counting_says(files: list[tuple[int, int, int]], share: float) -> None:
    """Against a table with the rows themselves, looked up at many places."""
    low = np.array([float(min(a, b)) for a, b, _ in files])
    high = np.array([float(max(a, b)) for a, b, _ in files]) + 0.5
    rows = np.array([float(n) for *_, n in files])
    before, up_to = shares_of_rows(low, high, rows)
    places = np.concatenate(
        [np.repeat(np.linspace(a, b, 800, endpoint=False), int(n)) for a, b, n in zip(low, high, rows)]  # noqa: B905
    )
    places.sort()
    starts = np.arange(0, max(1, int(len(places) * (1 - share))), 7)
    ends = np.minimum(starts + int(len(places) * share), len(places) - 1)
    met = (low[:, None] <= places[ends]) & (high[:, None] >= places[starts])
    assert mean_files_read(before, up_to, share) == pytest.approx(
        met.sum(axis=0).mean(), abs=0.06 * len(files)
    )


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_depth_counts_the_files_at_each_place(files: list[tuple[int, int]]) -> None:
    low = np.array([float(min(each)) for each in files])
    high = np.array([float(max(each)) for each in files])
    at, heights = depth(low, high)
    for place in {*low, *high}:
        assert heights[at == place].max() == ((low <= place) & (high >= place)).sum()
    between = [p + 0.5 for p in range(9)]
    for place in between:
        drawn = np.interp(place, at, heights) if len(at) else 0
        assert drawn == ((low <= place) & (high >= place)).sum()


VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.string(): st.text(max_size=12),
    pa.binary(): st.binary(max_size=12),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(dt.timezone.utc)),
    pa.decimal128(38, 10): st.decimals(-(10**20), 10**20, places=10),
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_places_order_as_values_do(kind: pa.DataType) -> None:
    @settings(max_examples=examples(40), deadline=None)
    @given(st.lists(VALUES[kind], min_size=1, max_size=20))
    def check(values: list[Any]) -> None:
        values = sorted(values, key=lambda v: v.encode() if isinstance(v, str) else v)
        low, high = positions(pa.array(values, kind), pa.array(values, kind))
        assert np.isfinite(low).all() and (low == high).all()
        assert (np.diff(low) >= 0).all()

    check()


def test_texts_that_begin_alike_are_told_apart() -> None:
    low, _ = positions(
        pa.array(["customer-0001", "customer-0500"]), pa.array(["customer-0002", "customer-0999"])
    )
    assert low[1] - low[0] > 0.1


def test_numbers_without_end_are_put_at_the_end() -> None:
    low, high = positions(pa.array([-np.inf, 1.0, 2.0]), pa.array([0.5, np.inf, np.nan]))
    assert low.tolist() == [0.5, 1.0, 2.0] and high.tolist() == [0.5, 2.0, 2.0]


@pytest.mark.parametrize(
    "kind, ranges",
    [
        (pa.int8(), [(-3, 4), (5, 6)]),
        (pa.float32(), [(0.5, 1.5), (2.0, 3.0)]),
        (pa.decimal128(10, 2), [(Decimal("1.25"), Decimal("2.50")), (Decimal("3.00"), Decimal("4.00"))]),
        (
            pa.date32(),
            [(dt.date(2024, 1, 1), dt.date(2024, 1, 31)), (dt.date(2024, 2, 1), dt.date(2024, 2, 9))],
        ),
        (pa.string(), [("a", "f"), ("g", "z")]),
    ],
    ids=str,
)
def test_types_with_bounds(tmp_path: Path, kind: pa.DataType, ranges: list[Any]) -> None:
    found = layout_of(tmp_path, kind, ranges)
    assert [
        tuple(r) for r in zip(found.known["low"].to_pylist(), found.known["high"].to_pylist(), strict=True)
    ] == ranges
    assert found.files_read() == pytest.approx(1.0)
    assert pickle.loads(pickle.dumps(found)).files == found.files


def test_partition_columns_have_the_value_of_the_file() -> None:
    found = DeltaLog("examples/data/sales").snapshot().column_layout("COUNTRY")
    assert found.column == "country"
    assert set(found.known["low"].to_pylist()) == {"DE", "FR", "PL"} == set(found.known["high"].to_pylist())
    assert found.files_read() == pytest.approx(6.0)


def test_nulls_of_a_partition_column_are_not_looked_up(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(pa.schema([("x", pa.int64()), ("flag", pa.bool_())]), partition_columns=["flag"])
    for value in ("true", "false", None):
        table.append(pa.table({"x": [1]}), partition_values={"flag": value}, path=f"{value}.parquet")
    found = DeltaLog(tmp_path).snapshot().column_layout("flag")
    assert (found.num_without_values, found.files_read()) == (1, pytest.approx(1.0))


def test_nested_and_mapped_columns(tmp_path: Path) -> None:
    DeltaLog(tmp_path).write(
        pa.table({"s": [{"a b": 1, "d": 5}, {"a b": 2, "d": 7}]}),
        options={"delta.columnMapping.mode": "name"},
    )
    snapshot = DeltaLog(tmp_path).snapshot()
    found = snapshot.column_layout("s.`a b`")
    assert (found.column, found.known["low"].to_pylist(), found.known["high"].to_pylist()) == (
        "s.a b",
        [1],
        [2],
    )
    with pytest.raises(
        UnsupportedOperationError, match=r"s of .* is a struct.*give one of its fields: s.`a b`, s.d"
    ):
        snapshot.column_layout("s")


def test_columns_that_cannot_be_looked_at_are_refused(tmp_path: Path) -> None:
    log = table_of(tmp_path, pa.list_(pa.int64()), [], name="items")
    with pytest.raises(UnsupportedOperationError, match="array<long>: no file is ever skipped by it"):
        log.snapshot().column_layout("items")
    with pytest.raises(SchemaError, match="did you mean 'items'"):
        log.snapshot().column_layout("item")
    with pytest.raises(SchemaError):
        log.snapshot().column_layout("`")


def test_shares_are_checked(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="share must be between 0 and 1, and is 10"):
        layout_of(tmp_path, pa.int64(), [(1, 2)]).files_read(10)


def test_many_files_take_no_time(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(pa.schema([("x", pa.int64())]))
    adds = [
        {
            "add": {
                "path": f"{n}.parquet", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True,
                "stats": json.dumps(
                    {"numRecords": 5, "minValues": {"x": n}, "maxValues": {"x": n + 9}, "nullCount": {"x": 0}}
                ),
            }
        }
        for n in range(20_000)
    ]  # fmt: skip
    table.commit(*adds)
    found = DeltaLog(tmp_path).snapshot().column_layout("x")
    assert found.files_read() == pytest.approx(9, abs=0.1)
    assert len(repr(found)) < 1000
