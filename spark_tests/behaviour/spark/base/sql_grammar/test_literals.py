"""Python values as SQL literals."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.exceptions import InvalidArgumentError
from delta_ds.spark.base.sql_grammar.literals import sql_literal, sql_parameters
from delta_ds.spark.base.sql_grammar.tokens import Tokens

VALUES: list[tuple[Any, str]] = [
    (None, "NULL"),
    (True, "TRUE"),
    (7, "7"),
    (-(1 << 31), "-2147483648"),
    (1 << 31, "2147483648L"),
    (1.5, "1.5D"),
    (1e300, "1e+300D"),
    (float("-inf"), "DOUBLE('-inf')"),
    (float("nan"), "DOUBLE('nan')"),
    (Decimal("1E+3"), "1000BD"),
    (Decimal("-0.10"), "-0.10BD"),
    ("it's \\n", "'it\\'s \\\\n'"),
    (b"\x00\xff", "X'00ff'"),
    (date(2024, 2, 29), "DATE'2024-02-29'"),
    (datetime(2024, 2, 29, 1, 2, 3, 4), "TIMESTAMP'2024-02-29 01:02:03.000004'"),
    (datetime(2024, 2, 29, 1, tzinfo=timezone(timedelta(hours=2))), "TIMESTAMP'2024-02-28 23:00:00Z'"),
    (timedelta(days=-1, hours=2, microseconds=5), "INTERVAL '-0 21:59:59.999995' DAY TO SECOND"),
    ([1, "a"], "ARRAY(1, 'a')"),
    ({"a": None}, "MAP('a', NULL)"),
]


@pytest.mark.parametrize(("value", "text"), VALUES)
def test_a_value_has_its_literal(value: Any, text: str) -> None:
    assert sql_literal(value) == text


@pytest.mark.parametrize("value", [object(), {1, 2}, Decimal("NaN")])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match="has no literal in SQL"):
        sql_parameters([value])


@given(st.text())
def test_a_text_is_read_back(text: str) -> None:
    tokens = Tokens(sql_literal(text))
    assert tokens.string() == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    tokens.end()


def test_parameters_are_by_name_or_in_order() -> None:
    assert sql_parameters(None) is None
    assert sql_parameters({"a": 1}) == {"a": "1"}
    assert sql_parameters([1, "b"]) == ["1", "'b'"]
