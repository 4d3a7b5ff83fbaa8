"""Values of Python that UPDATE gives to columns: names, time zones and numbers, at any depth."""

from __future__ import annotations

import datetime
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DeltaError, InvalidOptionError, InvariantViolationError, SchemaError
from spark_tests.full_form import examples

POINT = pa.struct([("a", pa.int32()), ("At", pa.timestamp("us", "UTC"))])
NEW_YEAR = datetime.datetime(2024, 1, 1)
# Of a session in New York.
MOMENT = datetime.datetime(2024, 1, 1, 5, tzinfo=datetime.timezone.utc)
HALF = {"a": 1, "At": None}


def _stored(path: Path | str, kind: pa.DataType, value: Any) -> Any:
    log = DeltaLog(path)
    log.write(pa.table({"id": [1], "x": pa.nulls(1, kind)}))
    log.update(new_values={"x": value}, timezone="America/New_York")
    return log.snapshot().scan().to_arrow()["x"].to_pylist()[0]


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        (POINT, {"A": 1, "AT": NEW_YEAR}, {"a": 1, "At": MOMENT}),
        (POINT, {"at": MOMENT}, {"a": None, "At": MOMENT}),
        (POINT, (7, None), {"a": 7, "At": None}),
        (POINT, pa.scalar({"A": 1}), HALF),
        (POINT, {"a": "1"}, HALF),
        (POINT, None, None),
        (pa.list_(POINT), [{"A": 1}, None], [HALF, None]),
        (pa.list_(POINT), [], []),
        (pa.list_(pa.int64()), np.array([1, 2]), [1, 2]),
        (pa.list_(pa.timestamp("us", "UTC")), [NEW_YEAR, None, MOMENT], [MOMENT, None, MOMENT]),
        (pa.list_(pa.timestamp("us")), [NEW_YEAR, MOMENT], [NEW_YEAR, NEW_YEAR]),
        (pa.map_(pa.string(), POINT), {"k": {"A": 1}, "n": None}, [("k", HALF), ("n", None)]),
        (pa.map_(pa.string(), pa.int64()), [("k", 1)], [("k", 1)]),
        (pa.struct([("p", pa.list_(POINT))]), {"P": [{"AT": NEW_YEAR}]}, {"p": [{"a": None, "At": MOMENT}]}),
        (pa.float64(), 1 << 70, float(1 << 70)),
        (pa.decimal128(38, 0), 1 << 70, Decimal(1 << 70)),
        (pa.list_(pa.decimal128(38, 0)), [-(1 << 70), 1], [Decimal(-(1 << 70)), Decimal(1)]),
    ],
)
def test_values_are_stored_by_the_rules_of_columns_at_any_depth(
    tmp_path: Path, kind: pa.DataType, value: Any, stored: Any
) -> None:
    assert _stored(tmp_path, kind, value) == stored


@pytest.mark.parametrize(
    ("kind", "value", "error", "words"),
    [
        (POINT, {"typo": 1}, InvalidOptionError, "x has no field 'typo'; its fields are a, At"),
        (POINT, {"a": 1, "Att": None}, InvalidOptionError, "did you mean 'At'"),
        (pa.list_(POINT), [{"b": 1}], InvalidOptionError, "x.element has no field 'b'"),
        (POINT, {"a": 1, "A": 1}, InvalidOptionError, "given twice"),
        (POINT, (1,), InvalidOptionError, "1 values are given"),
        (POINT, 5, InvalidOptionError, "is a struct"),
        (pa.list_(pa.string()), "abc", InvalidOptionError, "is an array"),
        (pa.map_(pa.string(), pa.int64()), 5, InvalidOptionError, "is a map"),
        (POINT, {"a": 1 << 40}, InvariantViolationError, "x.a"),
        (POINT, {"a": "one"}, InvariantViolationError, "x.a"),
        (pa.list_(pa.int32()), [True], SchemaError, "x.element"),
        (pa.decimal128(10, 2), 1 << 70, InvariantViolationError, "overflow"),
        (pa.int64(), 1 << 70, InvalidOptionError, "is no value for x"),
    ],
)
def test_what_is_no_value_of_the_column_is_refused(
    tmp_path: Path, kind: pa.DataType, value: Any, error: type[DeltaError], words: str
) -> None:
    with pytest.raises(error) as raised:
        _stored(tmp_path, kind, value)
    assert words in str(raised.value)
    assert DeltaLog(tmp_path).snapshot().version == 0


_LEAVES: list[tuple[pa.DataType, Any]] = [
    (pa.int32(), st.integers(-5, 5)),
    (pa.string(), st.text(max_size=3)),
    (pa.timestamp("us", "UTC"), st.just(MOMENT)),
]


def _values(depth: int) -> Any:
    """Types with values of them."""
    leaves = st.one_of([st.tuples(st.just(kind), st.none() | values) for kind, values in _LEAVES])
    if not depth:
        return leaves
    inner = _values(depth - 1)
    structs = st.lists(inner, min_size=1, max_size=3).map(
        lambda parts: (
            pa.struct([(f"f{n}", kind) for n, (kind, _) in enumerate(parts)]),
            {f"f{n}": value for n, (_, value) in enumerate(parts)},
        )
    )
    lists = inner.map(lambda part: (pa.list_(part[0]), [part[1], None]))
    maps = inner.map(lambda part: (pa.map_(pa.string(), part[0]), [("k", part[1])]))
    return st.one_of(leaves, structs, lists, maps)


def _upper(value: Any) -> Any:
    """The same with all names of fields in upper case."""
    if isinstance(value, dict):
        return {name.upper(): _upper(inside) for name, inside in value.items()}
    return [_upper(inside) for inside in value] if isinstance(value, list) else value


@settings(max_examples=examples(15), deadline=None)
@given(_values(2))
def test_what_is_given_is_what_is_read_whatever_the_case_of_names(case: tuple[pa.DataType, Any]) -> None:
    kind, value = case
    with tempfile.TemporaryDirectory() as folder:
        assert _stored(folder, kind, _upper(value)) == value
