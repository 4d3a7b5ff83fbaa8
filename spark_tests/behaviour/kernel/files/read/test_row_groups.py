"""Row groups left out by footer statistics: never one that holds a matching row."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_ds.kernel.files.read import column_conversion, row_groups
from delta_ds.kernel.format.expressions.tree import Call, Cast, Column, Expression, Literal
from delta_ds.kernel.format.expressions.zones import Rebase
from delta_ds.kernel.format.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
    StructField,
    StructType,
    arrow_type,
)  # fmt: skip
from spark_tests.behaviour.kernel.files.parquet_files import scan, schema_of, write
from spark_tests.full_form import examples

OPERATORS = ["=", "<=>", "<", "<=", ">", ">=", "<>"]
VALUES: dict[DataType, st.SearchStrategy[Any]] = {
    LONG: st.integers(-5, 5) | st.sampled_from([-(2**63), 2**63 - 1]),
    INTEGER: st.integers(-5, 5),
    DOUBLE: st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan]),
    STRING: st.sampled_from(["", "a", "ab", "b", "é", "z", "\U0001f600"]),
    DATE: st.dates(dt.date(1960, 1, 1), dt.date(1980, 1, 1)),
    TIMESTAMP: st.datetimes(
        dt.datetime(1969, 12, 31), dt.datetime(1970, 1, 2), timezones=st.just(dt.timezone.utc)
    ),
}


def compare(operator: str, left: Any, right: Any) -> bool:
    """Spark's comparison of two values: NaN equals NaN and is above all numbers."""
    if left is None or right is None:
        return operator == "<=>" and left is right
    a, b = ((isinstance(v, float) and math.isnan(v), 0 if v != v else v) for v in (left, right))
    return {
        "=": a == b, "<=>": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b,
    }[operator]  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> tuple[DataType, list[Any], Expression, list[Any]]:
    data_type = draw(st.sampled_from(list(VALUES)))
    value = st.none() | VALUES[data_type]
    values = draw(st.lists(value, min_size=1, max_size=12))
    operator, bound = draw(st.sampled_from([*OPERATORS, "in", "isnull", "isnotnull"])), draw(value)
    column = Column(("x",), data_type)
    if operator == "in":
        listed = [bound, draw(value)]
        predicate = Call("in", (column, *(Literal(v, data_type) for v in listed)), BOOLEAN)
        return data_type, values, predicate, [v for v in values if any(compare("=", v, b) for b in listed)]
    if operator in ("isnull", "isnotnull"):
        matching = [v for v in values if (v is None) == (operator == "isnull")]
        return data_type, values, Call(operator, (column,), BOOLEAN), matching
    predicate = Call(operator, (column, Literal(bound, data_type)), BOOLEAN)
    return data_type, values, predicate, [v for v in values if compare(operator, v, bound)]


@given(cases(), st.integers(1, 5))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(300)
)
def test_no_matching_row_is_ever_left_out(
    tmp_path: Path, case: tuple[DataType, list[Any], Expression, list[Any]], group_rows: int
) -> None:
    data_type, values, predicate, matching = case
    piece = write(
        tmp_path, pa.table({"x": pa.array(values, arrow_type(data_type))}), row_group_size=group_rows
    )
    found = scan(tmp_path, [piece], schema_of(x=data_type), predicate=predicate)["x"].to_pylist()
    missing = [str(v) for v in matching]
    for v in found:
        if str(v) in missing:
            missing.remove(str(v))
    assert missing == []


def groups_read(
    folder: Path, table: pa.Table, schema: StructType, predicate: Expression, **plan: Any
) -> list[int]:
    piece = write(folder, table, row_group_size=10, store_schema="footer" in plan)
    metadata = pq.read_metadata(folder / piece.path)
    rules = column_conversion.Rules(**plan)
    file = pq.read_schema(folder / piece.path)
    chosen = row_groups.StatisticsFilter(predicate, schema, rules, file)
    return chosen.matching(metadata, range(metadata.num_row_groups))


NUMBERS = pa.table({"s": [{"x": i} for i in range(40)], "x": range(40)})
X = Column(("x",), LONG)


def test_clustered_values_leave_one_row_group(tmp_path: Path) -> None:
    schema = schema_of(x=LONG)
    low, high = Call(">=", (X, Literal(10, LONG))), Call(">", (Literal(15, LONG), X))
    assert groups_read(tmp_path, NUMBERS, schema, Call("and", (low, high))) == [1]
    assert groups_read(tmp_path, NUMBERS, schema, Call("or", (Call("=", (X, Literal(39, LONG))), high))) == [
        0,
        1,
        3,
    ]


@pytest.mark.parametrize(
    "predicate",
    [
        Call("not", (Call(">=", (X, Literal(0, LONG))),)),
        Call("=", (Cast(X, STRING), Literal("100", STRING))),
        Call("=", (Column(("s", "x"), LONG), Literal(100, LONG))),
        Call("=", (X, Literal(100.0, DOUBLE))),
        Call("=", (X, Column(("x",), LONG))),
        Call("=", (Column(("unknown",), LONG), Literal(100, LONG))),
    ],
    ids=["not", "cast", "nested", "other-type", "columns", "unknown"],
)
def test_what_statistics_cannot_decide_reads_all(tmp_path: Path, predicate: Expression) -> None:
    assert groups_read(tmp_path, NUMBERS, schema_of(x=LONG), predicate) == [0, 1, 2, 3]


def test_values_that_change_on_reading_are_not_judged(tmp_path: Path) -> None:
    dates = pa.table({"x": [dt.date(1500, 1, 1)]})
    late = Call(">", (Column(("x",), DATE), Literal(dt.date(2000, 1, 1), DATE)))
    assert groups_read(tmp_path, dates, schema_of(x=DATE), late) == []
    assert groups_read(tmp_path, dates, schema_of(x=DATE), late, rebase=Rebase(datetimes=True)) == [0]
    padded = StructField("x", STRING, metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})
    equal = Call("=", (Column(("x",), STRING), Literal("a  ", STRING)))
    assert groups_read(tmp_path, pa.table({"x": ["a"]}), schema_of(x=padded), equal) == [0]
    assert groups_read(tmp_path, pa.table({"x": ["a"]}), schema_of(x=STRING), equal) == []


def test_row_groups_without_a_wanted_position_are_left_out() -> None:
    starts = np.array([0, 10, 20, 30])
    assert row_groups.groups_of_positions([0, 1, 2], starts, np.array([9, 20, 29], np.uint64)) == [0, 2]
    assert row_groups.groups_of_positions([0, 1, 2], starts, np.array([], np.uint64)) == []
