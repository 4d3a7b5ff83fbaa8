"""Hypothesis strategies: unbound predicates over one fixed schema, and rows for them."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from delta_ds.kernel.format.expressions.tree import Call, Column, Expression, Literal
from delta_ds.kernel.format.schema.types import (
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


def _to_float(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _edges(bits: int) -> list[int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return [0, 1, 2, -1, low, high, low + 1, high - 1]


def _decimals(digits: int, scale: int) -> list[Decimal]:
    top, one = 10**digits - 1, 10**scale
    numbers = [0, one, one + 1, one - 1, 2 * one, -one, -one - 1, top, -top, one + one // 2]
    return [Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)) for n in numbers]


_SPECIAL = [0.0, -0.0, 1.0, 1.5, -1.0, float("nan"), float("inf"), float("-inf"), _to_float(0.1)]
_DAYS = [datetime.date(2024, 1, d) for d in (1, 2, 3)] + [
    datetime.date(1, 1, 2),
    datetime.date(1969, 12, 31),
    datetime.date(9999, 12, 30),
]
_TIMES = [datetime.time(), datetime.time(0, 0, 0, 1), datetime.time(23, 59, 59, 999999)]
_NAIVE = [datetime.datetime.combine(d, t) for d in _DAYS for t in _TIMES]
_AWARE = [t.replace(tzinfo=datetime.timezone.utc) for t in _NAIVE]
_TEXTS = ["", "a", "ab", "b", "é", "😀", "\uffff", "A"]

# The values each column takes.
EDGES: dict[str, list[Any]] = {
    "y": _edges(8),
    "i": [*_edges(32), *_edges(8)],
    "l": [*_edges(64), *_edges(32), 2**53 + 1],
    "f": [*_SPECIAL, _to_float(1e30)],
    "d": [*_SPECIAL, 0.1, 2.0**53, 2.0**63, 1e308],
    "dec": _decimals(9, 2),
    "big": [*_decimals(38, 10), *_decimals(9, 2)],
    "s": _TEXTS,
    "b": [True, False],
    "day": _DAYS,
    "ts": _AWARE,
    "ntz": _NAIVE,
}
_NUMBERS = [
    *_edges(8), *_edges(16), *_edges(32), *_edges(64), *_decimals(9, 2), *_decimals(5, 4),
    *_decimals(22, 0), Decimal("0.001"), Decimal("1.005"), Decimal("-128.5"), Decimal("127.5"),
]  # fmt: skip
# The constants each column is compared with; doubles are kept away from types that Spark compares with loss.
CONSTANTS: dict[str, list[Any]] = {
    **{name: _NUMBERS for name in ("y", "i", "l", "dec", "big")},
    "y": [*_NUMBERS, *EDGES["d"], 127.5, -128.5, -129.0],
    "i": [*_NUMBERS, *EDGES["d"], 2147483647.5, -2147483649.0],
    "f": [*_edges(8), *_edges(32), *EDGES["d"], *_decimals(5, 4)],
    "d": [*_edges(8), *_edges(32), *EDGES["d"], *_decimals(5, 4)],
    "s": _TEXTS,
    "b": [True, False],
    "day": [*_DAYS, *_AWARE],
    "ts": [*_DAYS, *_AWARE],
    "ntz": _NAIVE,
}
OPERATORS = ["=", "<=>", "<>", "<", "<=", ">", ">="]

COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.sampled_from(edges) for name, edges in EDGES.items()},
    "st": st.fixed_dictionaries(
        {"Inner": st.none() | st.sampled_from(EDGES["i"]), "a b": st.none() | st.sampled_from(_TEXTS)}
    ),
}
ROWS = st.lists(
    st.fixed_dictionaries({n: st.none() | s for n, s in COLUMNS.items()}), min_size=1, max_size=12
)


@st.composite
def comparisons(draw: st.DrawFn) -> Expression:
    """One condition on one column."""
    name = draw(st.sampled_from(sorted(EDGES)))
    column: Expression = Column((name,))
    if name in ("i", "s") and draw(st.booleans()):
        column = Column(("st", "Inner" if name == "i" else "a b"))
    constant = st.sampled_from([*CONSTANTS[name], None]).map(Literal)
    kind = draw(st.sampled_from(["plain", "flip", "in", "null", "case", "coalesce", "arithmetic", "text"]))
    if kind == "in":
        return Call("in", (column, *draw(st.lists(constant, min_size=1, max_size=12))))
    if kind == "null":
        return Call(draw(st.sampled_from(["isnull", "isnotnull"])), (column,))
    if kind == "text":
        function = draw(st.sampled_from(["startswith", "contains", "like"]))
        return Call(function, (Column(("s",)), Literal(draw(st.text(alphabet="ab%_é", max_size=4)))))
    right: Expression = draw(constant)
    if kind == "arithmetic":
        column = Call(
            draw(st.sampled_from("+-*")), (Call("coalesce", (Column(("y",)), Literal(7))), Literal(3))
        )
        right = Literal(draw(st.sampled_from(_edges(8))))
    elif kind == "case":
        column = Call("case", (Call("isnull", (column,)), Literal(EDGES[name][0]), column))
    elif kind == "coalesce":
        column = Call("coalesce", (column, Literal(EDGES[name][1])))
    return Call(draw(st.sampled_from(OPERATORS)), (right, column) if kind == "flip" else (column, right))


@st.composite
def predicates(draw: st.DrawFn, depth: int = 2) -> Expression:
    """Conditions under AND, OR, NOT and IS NULL."""
    kind = draw(st.sampled_from(["and", "or", "not", "isnull", "leaf", "leaf", "leaf"])) if depth else "leaf"
    if kind == "leaf":
        flags: list[Expression] = [Column(("b",)), Literal(True), Literal(False), Literal(None)]
        return draw(st.sampled_from(flags)) if draw(st.integers(0, 9)) == 9 else draw(comparisons())
    inner = predicates(depth - 1)
    if kind in ("and", "or"):
        return Call(kind, tuple(draw(st.lists(inner, min_size=2, max_size=3))))
    return Call(kind, (draw(inner),))


PREDICATES: st.SearchStrategy[Expression] = predicates()
