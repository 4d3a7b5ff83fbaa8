"""Filters of polars, DuckDB and pyarrow that are hard to hand down: they keep the rows that they keep in memory."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.files.scan.scan import Scan
from spark_tests.full_form import examples

duckdb = pytest.importorskip("duckdb", reason="the extra duckdb is not installed")
pl = pytest.importorskip("polars", reason="the extra polars is not installed")

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Scan]:
    """The scans that queries made."""
    found: list[Scan] = []
    narrowed = Scan.narrowed

    def noted(self: Scan, *arguments: Any) -> Scan:
        found.append(narrowed(self, *arguments))
        return found[-1]

    monkeypatch.setattr(Scan, "narrowed", noted)
    return found


# --- decimals


def _parts(digits: int, scale: int) -> Decimal:
    sign, figures, _ = Decimal(digits).as_tuple()
    return Decimal((sign, figures, -scale))


MOST = 10**38 - 1
# A column of each scale: its precision, and its values without the point.
DECIMALS: dict[str, tuple[int, int, list[int]]] = {
    "whole": (38, 0, [12345678901234567890123456789012345678, MOST, -MOST, 1, 0]),
    "fraction": (38, 38, [12345678901234567890123456789012345678, MOST, -1, 1, 0]),
    "half": (38, 20, [123456789012345678 * 10**20 + 1, 5, -1, 10**20, 0]),
    "money": (30, 2, [123456789012345678901234567891, -50, 1, 100, 0]),
}


@pytest.fixture(scope="module")
def decimals(tmp_path_factory: pytest.TempPathFactory) -> DeltaLog:
    """A file for each value, so that statistics decide too."""
    log = DeltaLog(tmp_path_factory.mktemp("decimals") / "t")
    for row in [*range(5), None]:
        log.write(
            pa.table(
                {
                    name: pa.array(
                        [None if row is None else _parts(values[row], scale)], pa.decimal128(precision, scale)
                    )
                    for name, (precision, scale, values) in DECIMALS.items()
                }
            )
        )
    return log


@st.composite
def _decimal_tests(draw: st.DrawFn) -> tuple[str, str, Decimal, bool]:
    name = draw(st.sampled_from(sorted(DECIMALS)))
    precision, scale, values = DECIMALS[name]
    most = 10**precision - 1
    stored = st.builds(operator.add, st.sampled_from(values), st.sampled_from([0, 0, 1, -1]))
    digits = draw((stored | st.integers(-most, most)).filter(lambda number: abs(number) <= most))
    return name, draw(st.sampled_from(sorted(OPERATORS))), _parts(digits, scale), draw(st.booleans())


@given(test=_decimal_tests())
@settings(max_examples=examples(80), deadline=None)
def test_decimals_of_38_digits_are_compared_exactly(
    decimals: DeltaLog, test: tuple[str, str, Decimal, bool]
) -> None:
    name, sign, value, negated = test
    precision, scale, _ = DECIMALS[name]
    held = decimals.to_arrow()

    filter_ = OPERATORS[sign](pc.field(name), pa.scalar(value, pa.decimal128(precision, scale)))
    filter_ = ~filter_ if negated else filter_
    wanted = ds.dataset(held).to_table(filter=filter_)[name].to_pylist()
    assert decimals.to_pyarrow_dataset().to_table(filter=filter_)[name].to_pylist() == wanted

    test_ = OPERATORS[sign](pl.col(name), pl.lit(value, dtype=pl.Decimal(precision, scale)))
    test_ = ~test_ if negated else test_
    assert decimals.to_polars().filter(test_).collect()[name].to_list() == wanted
    inside = pl.col(name).is_in([value])
    in_memory = pl.from_arrow(held).filter(inside)[name].to_list()
    assert decimals.to_polars().filter(inside).collect()[name].to_list() == in_memory

    with duckdb.connect() as connection:
        decimals.to_duckdb(connection=connection).create_view("lazy")
        # A number without quotes is a double to DuckDB where it has more than 38 digits.
        condition = f"{name} {sign} '{value:f}'::DECIMAL({precision}, {scale})"
        query = f"SELECT {name} FROM lazy WHERE " + (f"NOT ({condition})" if negated else condition)
        assert [row[0] for row in connection.sql(query).fetchall()] == wanted


@pytest.mark.parametrize("value", ["0", "1", "-1", "0.5", "1234567890123456789", "1E+3"])
@pytest.mark.parametrize("name", sorted(DECIMALS))
def test_constants_of_other_scales_leave_the_digits_of_a_column(
    decimals: DeltaLog, name: str, value: str
) -> None:
    whole = pl.from_arrow(decimals.to_arrow())
    for compare in OPERATORS.values():
        test = compare(pl.col(name), pl.lit(Decimal(value)))
        try:
            wanted = whole.filter(test)[name].to_list()
        except pl.exceptions.PolarsError as error:
            with pytest.raises(type(error)):
                decimals.to_polars().filter(test).collect()
        else:
            assert decimals.to_polars().filter(test).collect()[name].to_list() == wanted


def test_a_comparison_of_decimals_skips_files(decimals: DeltaLog, asked: list[Scan]) -> None:
    value = _parts(DECIMALS["whole"][2][0], 0)
    decimals.to_pyarrow_dataset().to_table(filter=pc.field("whole") == pa.scalar(value, pa.decimal128(38, 0)))
    assert asked[-1].num_files == 1


# --- lists, positions, and names


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> DeltaLog:
    log = DeltaLog(tmp_path_factory.mktemp("hard") / "t")
    for start in range(0, 12, 4):
        ids = list(range(start, start + 4))
        log.write(
            pa.table(
                {
                    "a": [None if n % 4 == 3 else n for n in ids],
                    "b": [10 * n for n in ids],
                    "s": [None if n % 4 == 2 else f"x{n}" for n in ids],
                },
                pa.schema({"a": pa.int64(), "b": pa.int64(), "s": pa.string()}),
            )
        )
    return log


LISTS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "a": (pa.int64(), [0, 5, 10, 99, None]),
    "s": (pa.string(), ["x0", "x5", "y", None]),
}


@st.composite
def _list_tests(draw: st.DrawFn) -> tuple[pc.Expression, Any]:
    """The same filter for pyarrow and for polars."""
    name = draw(st.sampled_from(sorted(LISTS)))
    kind, values = LISTS[name]
    chosen = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    arrow, polars = pc.field(name).isin(pa.array(chosen, kind)), pl.col(name).is_in(chosen)
    if draw(st.booleans()):
        arrow, polars = arrow | (pc.field("b") == 40), polars | (pl.col("b") == 40)
    return (~arrow, ~polars) if draw(st.booleans()) else (arrow, polars)


@given(test=_list_tests())
@settings(max_examples=examples(60), deadline=None)
def test_lists_and_their_negations_keep_rows_with_null(
    log: DeltaLog, test: tuple[pc.Expression, Any]
) -> None:
    arrow, polars = test
    held = log.to_arrow()
    wanted = ds.dataset(held).to_table(filter=arrow)["b"].to_pylist()
    assert log.to_pyarrow_dataset().to_table(filter=arrow)["b"].to_pylist() == wanted
    in_memory = pl.from_arrow(held).filter(polars)["b"].to_list()
    assert log.to_polars().filter(polars).collect()["b"].to_list() == in_memory


@pytest.mark.parametrize("columns", [["id"], {"key": pc.field("id")}])
def test_lists_of_long_texts_are_looked_for(tmp_path: Path, columns: Any) -> None:
    # Arrow shows such a list with each text cut off after some bytes, here within a letter.
    log, text = DeltaLog(tmp_path), "\uffff" * 40
    log.write(pa.table({"id": [1, 2], "name": [text, "a"], "other": [0, 0]}))
    dataset = log.to_pyarrow_dataset()
    among = pc.field("name").isin([text])
    assert dataset.to_table(columns, among).columns[0].to_pylist() == [1]
    assert dataset.to_table({"found": among}).to_pydict() == {"found": [True, False]}


@given(
    position=st.sampled_from([0, 1]),
    columns=st.sampled_from([["s"], ["a"], ["s", "a"], {"x": pc.field(1)}, {"x": pc.field("s")}, None]),
    plus=st.sampled_from([None, 0]),
)
@settings(max_examples=examples(40), deadline=None)
def test_columns_by_position_are_those_of_the_table(
    log: DeltaLog, position: int, columns: Any, plus: int | None
) -> None:
    value = pc.field(position) if plus is None else pc.field(position) + plus
    wanted, found = ds.dataset(log.to_arrow()), log.to_pyarrow_dataset()
    assert found.to_table(columns, filter=value > 5).equals(wanted.to_table(columns, filter=value > 5))
    assert found.count_rows(filter=value > 5) == wanted.count_rows(filter=value > 5)


@pytest.mark.parametrize("name", ["cafe\u0301", "e\u0301", "caf\u00e9", "x\u20d7"])
def test_names_may_end_in_a_combining_mark(tmp_path: Path, name: str) -> None:
    log = DeltaLog(tmp_path / "t")
    log.write(pa.table({name: [1, 2, 3], "z": [7, 8, 9]}), options={"delta.columnMapping.mode": "name"})
    dataset = log.to_pyarrow_dataset()
    assert dataset.to_table(["z"], pc.field(name) + 0 > 1)["z"].to_pylist() == [8, 9]
    assert dataset.to_table({"k": pc.field(name) * 2})["k"].to_pylist() == [2, 4, 6]


@pytest.mark.parametrize("method", ["to_polars", "to_pyarrow_dataset", "to_duckdb"])
def test_a_column_twice_is_refused_by_name(log: DeltaLog, method: str) -> None:
    with pytest.raises(SchemaError, match=r"columns has 'a' twice .*\(version 2\)"):
        getattr(log, method)(columns=["a", "b", "A"])
    assert log.to_arrow(columns=["a", "A"]).column_names == ["a", "a"]


# --- long and deep filters


def _chain(compare: Callable[[int], Any], signs: list[bool], flipped: list[bool]) -> Any:
    """A filter that has as many levels as signs: each joins what there is with one more comparison."""
    found = compare(0)
    for number, (is_or, turned) in enumerate(zip(signs, flipped, strict=True), 1):
        left, right = (compare(number), found) if turned else (found, compare(number))
        found = left | right if is_or else left & right
    return found


@given(data=st.data(), length=st.integers(1, 120))
@settings(max_examples=examples(30), deadline=None)
def test_deep_filters_find_what_they_find_in_memory(log: DeltaLog, data: st.DataObject, length: int) -> None:
    sides = st.lists(st.booleans(), min_size=length, max_size=length)
    signs, flipped = data.draw(sides), data.draw(sides)
    held = log.to_arrow()
    arrow = _chain(lambda n: pc.field("b") != n, signs, flipped)
    wanted = ds.dataset(held).to_table(filter=arrow)["b"].to_pylist()
    assert log.to_pyarrow_dataset().to_table(["b"], arrow)["b"].to_pylist() == wanted
    polars = _chain(lambda n: pl.col("b") != n, signs, flipped)
    assert log.to_polars().filter(polars).select("b").collect()["b"].to_list() == wanted


@pytest.mark.parametrize(("length", "files"), [(8, 1), (60, 3)])
def test_arrow_filters_by_itself_where_its_message_would_be_large(
    log: DeltaLog, asked: list[Scan], length: int, files: int
) -> None:
    """The message doubles with each level: that of sixty would not end."""
    for each in (
        functools.reduce(operator.or_, [pc.field("b") == n % 30 for n in range(length)]),
        functools.reduce(operator.or_, [pc.field("s") == f'x0"){n})' for n in range(length)]),
        (functools.reduce(operator.add, [pc.field("b")] * length) < length) & (pc.field("b") < 10),
    ):
        log.to_pyarrow_dataset().to_table(["a"], each)
        assert asked[-1].num_files in ((files, 0) if files == 1 else (files,))
        assert (asked[-1].predicate is None) == (length == 60)


@pytest.mark.parametrize("length", [100, 600])
def test_polars_filters_of_hundreds_of_conditions(log: DeltaLog, asked: list[Scan], length: int) -> None:
    test = functools.reduce(operator.or_, [pl.col("b") == n % 30 for n in range(length)])
    assert log.to_polars().filter(test).collect()["b"].to_list() == [0, 10, 20]
    if length == 100:
        assert asked[-1].num_files == 1
    with duckdb.connect() as connection:
        log.to_duckdb(connection=connection).create_view("lazy")
        condition = " OR ".join(f"b = {n % 30} AND a < {n + 99}" for n in range(length))
        assert connection.sql(f"SELECT count(*) FROM lazy WHERE {condition}").fetchall() == [(3,)]


def test_polars_filters_of_conditions_inside_one_another(log: DeltaLog) -> None:
    """Deeper than is looked at: what is above still holds."""
    test = pl.col("a") >= 0
    for n in range(120):
        test = (test | (pl.col("b") == 1000 + n)) & (pl.col("b") != 2000 + n)
    assert log.to_polars().filter(test).collect()["b"].to_list() == [0, 10, 20, 40, 50, 60, 80, 90, 100]
