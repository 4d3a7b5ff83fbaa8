"""What rows meet that can equal a key of the source: true of all such rows, and of few others."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.kernel.commands.merge import plan
from delta_ds.kernel.commands.merge.plan import may_equal
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.evaluate import evaluate
from delta_ds.kernel.format.expressions.tree import Call, Column, Literal, conjunction
from delta_ds.kernel.format.schema.types import (
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructField,
    StructType,
    arrow_type,
)
from spark_tests.full_form import examples

UTC = datetime.timezone.utc
VALUES: dict[DataType, Any] = {
    LONG: st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 300)),
    INTEGER: st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(-5, 5)),
    DATE: st.dates(),
    TIMESTAMP: st.datetimes(timezones=st.just(UTC)),
    TIMESTAMP_NTZ: st.datetimes(),
    STRING: st.text(max_size=3),
    DecimalType(10, 2): st.integers(-1000, 1000).map(lambda n: Decimal(n).scaleb(-2)),
}
COLUMN = Column(("k",))


def _holds(keys: list[Any], kind: DataType, values: list[Any]) -> list[bool]:
    found = conjunction(may_equal(COLUMN, pa.array(keys, arrow_type(kind)), kind))
    assert found is not None
    bound = bind(found, StructType((StructField("k", kind),)))
    batch = pa.RecordBatch.from_arrays([pa.array(values, arrow_type(kind))], names=["k"])
    return [value is True for value in evaluate(bound, batch).to_pylist()]


@given(
    data=st.data(),
    kind=st.sampled_from(list(VALUES)),
    most=st.sampled_from([1, 3, 100]),
    cells=st.sampled_from([1, 8, 1 << 16]),
)
@settings(max_examples=examples(200), deadline=None)
def test_every_key_meets_it(data: st.DataObject, kind: DataType, most: int, cells: int) -> None:
    keys = data.draw(st.lists(VALUES[kind], min_size=1, max_size=20))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "_MOST_NAMED", most)
        patch.setattr(plan, "_MOST_RANGES", most)
        patch.setattr(plan, "_CELLS", cells)
        patch.setattr(plan, "_MOST_SORTED", data.draw(st.sampled_from([2, 1000])))
        assert all(_holds([*keys, None], kind, keys))
        below, above = min(keys), max(keys)
        others = [v for v in data.draw(st.lists(VALUES[kind], max_size=5)) if not below <= v <= above]
        assert not any(_holds(keys, kind, others))


def test_few_keys_are_named() -> None:
    (found,) = may_equal(COLUMN, pa.array([5, 1, 5, None]), LONG)
    assert found == Call("in", (COLUMN, Literal(1, LONG), Literal(5, LONG)))


def test_wide_gaps_between_many_keys_are_left_out() -> None:
    keys = [*range(1000), *range(10**6, 10**6 + 1000)]
    assert _holds(keys, LONG, [0, 999, 5000, 500_000, 999_000, 10**6, 10**6 + 999]) == [
        True, True, False, False, False, True, True,
    ]  # fmt: skip


def test_no_key_is_met_by_no_row() -> None:
    assert may_equal(COLUMN, pa.array([None], pa.int64()), LONG) == [Literal(False)]


def test_keys_without_one_order_tell_nothing() -> None:
    assert may_equal(COLUMN, pa.array([1.0]), DOUBLE) == []
