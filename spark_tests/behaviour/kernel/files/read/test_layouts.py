"""Rows in every layout that Arrow has are written as the same rows in the plain one."""

from __future__ import annotations

import tempfile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.kernel.files.rows.casts import Casting, compile_column
from delta_ds.kernel.format.schema.types import INTEGER, ArrayType, StructField, StructType
from spark_tests.full_form import examples

TEXT = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view()]
LISTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]
MONEY = [pa.decimal128(9, 2), pa.decimal256(9, 2), pa.decimal32(9, 2), pa.decimal64(9, 2)]

# Columns of a table: type, and values of a row.
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "numbers": (pa.list_(pa.int64()), st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=3)),
    "texts": (pa.list_(pa.string()), st.lists(st.one_of(st.none(), st.text("ab", max_size=2)), max_size=3)),
    "bytes": (pa.binary(), st.binary(max_size=3)),
    "deep": (
        pa.list_(pa.struct([("a", pa.list_(pa.string())), ("b", pa.int32())])),
        st.lists(
            st.one_of(
                st.none(),
                st.fixed_dictionaries(
                    {
                        "a": st.one_of(st.none(), st.lists(st.text("xy", max_size=2), max_size=2)),
                        "b": st.one_of(st.none(), st.integers(0, 9)),
                    }
                ),
            ),
            max_size=3,
        ),
    ),
    "map": (
        pa.map_(pa.string(), pa.list_(pa.int64())),
        st.dictionaries(st.text("kl", max_size=2), st.lists(st.integers(0, 9), max_size=2), max_size=2).map(
            lambda found: list(found.items())
        ),
    ),
    "text": (pa.string(), st.text("ab", max_size=2)),
}
ROW = st.fixed_dictionaries({name: st.one_of(st.none(), values) for name, (_, values) in COLUMNS.items()})


def retyped(kind: pa.DataType, draw: st.DrawFn) -> pa.DataType:
    """The type in other layouts, at every depth."""
    if pa.types.is_string(kind):
        return draw(st.sampled_from(TEXT))
    if pa.types.is_binary(kind):
        return draw(st.sampled_from(BYTES))
    if pa.types.is_list(kind):
        return draw(st.sampled_from(LISTS))(retyped(kind.value_type, draw))
    if pa.types.is_map(kind):
        return pa.map_(retyped(kind.key_type, draw), retyped(kind.item_type, draw))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, retyped(field.type, draw)) for field in kind])
    return kind


def encoded(array: pa.Array, draw: st.DrawFn) -> pa.Array:
    """Texts as they are, as a dictionary, or run-end encoded."""
    form = draw(st.integers(0, 2)) if array.type in (pa.string(), pa.large_string()) else 0
    return [lambda a: a, lambda a: a.dictionary_encode(), pc.run_end_encode][form](array)


@st.composite
def columns(draw: st.DrawFn) -> tuple[list[dict[str, Any]], pa.Table]:
    """Rows, and a table that says the same: in other layouts, each column a slice, some of its chunks empty."""
    rows = draw(st.lists(ROW, max_size=5))
    before, after = draw(st.lists(ROW, max_size=3)), draw(st.lists(ROW, max_size=3))
    cut = draw(st.integers(0, len(rows)))
    found = {}
    for name, (kind, _) in COLUMNS.items():
        other = retyped(kind, draw)
        whole = encoded(pa.array([row[name] for row in (*before, *rows, *after)], other), draw)
        own = whole.slice(len(before), len(rows))
        found[name] = pa.chunked_array([own.slice(0, cut), own.slice(0, 0), own.slice(cut)], type=whole.type)
    return rows, pa.table({"row": pa.array(range(len(rows)), pa.int64()), **found})


@settings(
    max_examples=examples(60), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(columns(), st.booleans())
def test_rows_in_any_layout_are_written_as_they_are(
    given_: tuple[list[dict[str, Any]], pa.Table], new: bool
) -> None:
    rows, table = given_
    with tempfile.TemporaryDirectory() as folder:
        log = DeltaLog(folder)
        if not new:
            plain = {"row": pa.int64(), **{name: kind for name, (kind, _) in COLUMNS.items()}}
            log.write(pa.schema(list(plain.items())).empty_table(), options={"partitionBy": "text"})
        log.write(table)
        written = log.snapshot().scan().to_arrow().sort_by("row").drop_columns(["row"])
        for name in COLUMNS:
            wanted = [None if name == "text" and not new and row[name] == "" else row[name] for row in rows]
            assert written[name].to_pylist() == wanted


@pytest.mark.parametrize("kind", MONEY, ids=str)
def test_decimals_of_every_width_are_stored(tmp_path: Any, kind: pa.DataType) -> None:
    values = pa.array(["1.25", None, "-3.50"]).cast(pa.decimal128(9, 2)).cast(kind)
    log = DeltaLog(tmp_path)
    log.write(pa.table({"m": values}).slice(1))
    assert [str(v) for v in log.snapshot().scan().to_arrow()["m"].to_pylist()] == ["None", "-3.50"]


@pytest.mark.parametrize("make", [pa.list_, pa.large_list], ids=["list", "large_list"])
def test_values_under_a_null_list_do_not_count(tmp_path: Any, make: Any) -> None:
    of = pa.ListArray if make is pa.list_ else pa.LargeListArray
    width = pa.int32() if make is pa.list_ else pa.int64()
    values = pa.array(["a", "b", "c", "d"], pa.large_string())
    lists = of.from_arrays(pa.array([0, 1, 3, 4], width), values, mask=pa.array([False, True, False]))
    log = DeltaLog(tmp_path)
    log.write(pa.table({"p": [1, 1, 2], "c": lists}), options={"partitionBy": "p"})
    log.write(pa.table({"p": [1, 1, 2], "c": lists}).slice(1))
    found = log.snapshot().scan().to_arrow()["c"].to_pylist()
    assert sorted(found, key=str) == [None, None, ["a"], ["d"], ["d"]]


def test_rows_of_lists_of_fixed_size_are_stored(tmp_path: Any) -> None:
    pairs = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2))
    log = DeltaLog(tmp_path)
    log.write(pa.table({"c": pairs}))
    log.write(pa.table({"c": pairs}).slice(1))
    assert sorted(log.snapshot().scan().to_arrow()["c"].to_pylist(), key=str) == [
        None, None, [1, 2], [3, 4], [3, 4],
    ]  # fmt: skip


def test_values_that_nulls_hide_need_not_fit() -> None:
    numbers = pa.array([1, 1 << 40, 3])
    hidden = pa.array([False, True, False])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), numbers, mask=hidden)
    structs = pa.StructArray.from_arrays([numbers], ["n"], mask=hidden)
    for array, kind in (
        (lists, ArrayType(INTEGER, True)),
        (structs, StructType((StructField("n", INTEGER),))),
    ):
        convert = compile_column(array.type, StructField("c", kind), Casting("UTC"), "c")
        assert convert is not None
        assert convert(array).to_pylist() == array.to_pylist()
        assert convert(array.slice(1)).to_pylist() == array.slice(1).to_pylist()
