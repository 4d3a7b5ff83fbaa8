"""Hypothesis strategies: unbound predicates over one fixed schema, and rows for them."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from delta_ds.kernel.expressions.tree import Call, Column, Expression, Literal
from delta_ds.kernel.schema.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
    StructField,
    StructType,
)

SCHEMA = StructType(
    (
        StructField("y", BYTE),
        StructField("i", INTEGER),
        StructField("l", LONG),
        StructField("f", FLOAT),
        StructField("d", DOUBLE),
        StructField("dec", DecimalType(9, 2)),
        StructField("big", DecimalType(38, 10)),
        StructField("s", STRING),
        StructField("b", BOOLEAN),
        StructField("day", DATE),
        StructField("ts", TIMESTAMP),
        StructField("ntz", TIMESTAMP_NTZ),
        StructField("st", StructType((StructField("Inner", INTEGER), StructField("a b", STRING)))),
    )
)

# Small pools, shared by rows and constants, so that most comparisons are close ones.


def _whole(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    edges = [0, 1, 2, low, high, low + 1, high - 1]
    return st.sampled_from(edges) | st.integers(-3, 3) | st.integers(low, high)


def _to_float(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    top, one = 10**digits - 1, 10**scale
    near = st.sampled_from([0, one, one + 1, one - 1, 2 * one, -one, -one - 1, top, -top, one + one // 2])
    return (near | near | st.integers(-top, top)).map(
        lambda n: Decimal((0 if n >= 0 else 1, tuple(map(int, str(abs(n)))), -scale))
    )


_SPECIAL = [0.0, -0.0, 1.0, 1.5, -1.0, float("nan"), float("nan"), float("inf"), float("-inf")]
DOUBLES = st.sampled_from([*_SPECIAL, 0.1, _to_float(0.1), 2.0**53, 2.0**63])
FLOATS = st.sampled_from([*_SPECIAL, _to_float(0.1), _to_float(1e30)])
TEXTS = st.sampled_from(["", "a", "ab", "b", "é", "😀", "\uffff"]) | st.text(
    alphabet="ab%_\\'é😀`\n", max_size=3
)
DAYS = st.sampled_from([datetime.date(2024, 1, d) for d in (1, 2, 3)]) | st.sampled_from(
    [datetime.date(1, 1, 2), datetime.date(1969, 12, 31), datetime.date(9999, 12, 30)]
)
NAIVE = st.builds(
    datetime.datetime.combine,
    DAYS,
    st.sampled_from([datetime.time(), datetime.time(0, 0, 0, 1), datetime.time(23, 59, 59, 999999)]),
)
AWARE = NAIVE.map(lambda t: t.replace(tzinfo=datetime.timezone.utc))

COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    "y": _whole(8),
    "i": _whole(32),
    "l": _whole(64),
    "f": FLOATS,
    "d": DOUBLES,
    "dec": _decimals(9, 2),
    "big": _decimals(38, 10),
    "s": TEXTS,
    "b": st.booleans(),
    "day": DAYS,
    "ts": AWARE,
    "ntz": NAIVE,
    "st": st.fixed_dictionaries({"Inner": st.none() | _whole(32), "a b": st.none() | TEXTS}),
}
ROWS = st.lists(
    st.fixed_dictionaries({n: st.none() | s for n, s in COLUMNS.items()}), min_size=1, max_size=12
)

_FAMILIES: list[tuple[list[tuple[str, ...]], st.SearchStrategy[Any]]] = [
    (
        [("y",), ("i",), ("l",), ("dec",), ("big",), ("st", "Inner")],
        _whole(8) | _whole(32) | _whole(64) | _decimals(9, 2) | _decimals(5, 4),
    ),
    ([("y",), ("i",), ("f",), ("d",), ("dec",)], _whole(32) | DOUBLES | _decimals(9, 2)),
    ([("s",), ("st", "a b")], TEXTS),
    ([("b",)], st.booleans()),
    ([("day",), ("ts",)], DAYS | AWARE),
    ([("ntz",)], NAIVE),
]


@st.composite
def comparisons(draw: st.DrawFn) -> Expression:
    paths, constants = draw(st.sampled_from(_FAMILIES))
    column = st.sampled_from(paths).map(Column)
    constant = constants.map(Literal)
    left: Expression = draw(column)
    if paths[0] == ("y",) and draw(st.integers(0, 5)) == 0:
        left = Call(draw(st.sampled_from("+-*")), (Column(("y",)), Literal(3)))
        left = Call("coalesce", (Column(("y",)), Literal(1000))) if draw(st.booleans()) else left
    kind = draw(st.sampled_from(["op", "op", "op", "flip", "in", "null", "case", "text"]))
    if kind == "in":
        items = draw(st.lists(constant | st.just(Literal(None)), min_size=1, max_size=12))
        return Call("in", (left, *items))
    if kind == "null":
        name = draw(st.sampled_from(["isnull", "isnotnull"]))
        return Call(name, (left,))
    if kind == "text":
        name = draw(st.sampled_from(["startswith", "contains", "like"]))
        patterns = st.text(alphabet="ab%_é", max_size=4)
        return Call(name, (Column(("s",)), Literal(draw(patterns))))
    operator = draw(st.sampled_from(["=", "<=>", "<>", "<", "<=", ">", ">="]))
    right: Expression = draw(constant | constant | column)
    if kind == "case":
        left = Call("case", (Call("isnull", (left,)), right, left))
    return Call(operator, (right, left) if kind == "flip" else (left, right))


PREDICATES: st.SearchStrategy[Expression] = st.recursive(
    comparisons() | st.just(Column(("b",))) | st.sampled_from([True, False, None]).map(Literal),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda p: Call("and", tuple(p))),
        st.lists(inner, min_size=2, max_size=3).map(lambda p: Call("or", tuple(p))),
        inner.map(lambda p: Call("not", (p,))),
        inner.map(lambda p: Call("isnull", (p,))),
    ),
    max_leaves=6,
)
