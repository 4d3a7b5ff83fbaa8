"""The law of skipping: a file that holds a row for which the predicate is true is never skipped."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from delta_ds.kernel.expressions.tree import Call, Cast, Column, Expression, Literal
from delta_ds.kernel.scan.skipping import prune
from delta_ds.kernel.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)  # fmt: skip
from spark_tests.kernel.scan.tables import MemoryFiles, kept, struct, to_json, write_statistics

UTC = dt.timezone.utc
NESTED = struct(("x", INTEGER), ("y", STRING))
DATA = struct(
    ("i", INTEGER), ("l", LONG), ("f", FLOAT), ("d", DOUBLE), ("s", STRING), ("dt", DATE), ("ts", TIMESTAMP),
    ("ntz", TIMESTAMP_NTZ), ("dec", DecimalType(10, 2)), ("b", BOOLEAN), ("st", NESTED),
)  # fmt: skip
PARTITION = struct(("p", INTEGER), ("q", STRING))
SCHEMA = type(DATA)((*PARTITION.fields, *DATA.fields))

_times = st.sampled_from([0, 1, 999, 1000, 1001, 500_000, -1, -1001, 86_400_000_000]).map(
    lambda us: dt.datetime(2024, 1, 1) + dt.timedelta(microseconds=us)
)
_floats = st.sampled_from([0.0, -0.0, 1.5, -2.5, 1e300, math.inf, -math.inf, math.nan])
_VALUES: dict[DataType, st.SearchStrategy[Any]] = {
    INTEGER: st.integers(-3, 3),
    LONG: st.sampled_from([-(1 << 63), -1, 0, (1 << 53) + 1, (1 << 53) + 2, (1 << 63) - 1]),
    FLOAT: _floats.map(lambda v: math.inf if v == 1e300 else v),
    DOUBLE: _floats,
    STRING: st.text(st.sampled_from("ab\x7fé\ufffd\U0001f600\U0010ffff"), max_size=5),
    DATE: st.integers(-2, 2).map(lambda days: dt.date(1970, 1, 1) + dt.timedelta(days=days)),
    TIMESTAMP: _times.map(lambda t: t.replace(tzinfo=UTC)),
    TIMESTAMP_NTZ: _times,
    DecimalType(10, 2): st.integers(-3, 3).map(lambda n: Decimal(n).scaleb(-2)),
    BOOLEAN: st.booleans(),
}


def _values_of(data_type: DataType) -> st.SearchStrategy[Any]:
    return _VALUES[data_type]


def _row() -> st.SearchStrategy[dict[str, Any]]:
    def maybe(data_type: DataType) -> st.SearchStrategy[Any]:
        return st.none() | _values_of(data_type)

    nested = st.none() | st.fixed_dictionaries({f.name: maybe(f.type) for f in NESTED})
    flat = {f.name: maybe(f.type) for f in DATA if f.name != "st"}
    return st.fixed_dictionaries({**flat, "st": nested})


COLUMNS = [Column((f.name,), f.type) for f in SCHEMA if f.name != "st"] + [
    Column(("st", f.name), f.type) for f in NESTED
]


@st.composite
def _comparison(draw: st.DrawFn) -> Expression:
    left: Expression = draw(st.sampled_from(COLUMNS))
    kind = left.type
    assert kind is not None
    if draw(st.integers(0, 3)) == 0:
        left, kind = _widen(left, kind)
    same = [c for c in COLUMNS if c.type == kind]
    right: Expression = Literal(draw(st.none() | _literal_value(kind)), kind)
    if same and draw(st.integers(0, 4)) == 0:
        right = draw(st.sampled_from(same))
    operator = draw(st.sampled_from(["=", "<=>", "<>", "<", "<=", ">", ">="]))
    pair = (right, left) if draw(st.booleans()) else (left, right)
    return Call(operator, pair, BOOLEAN)


def _literal_value(kind: DataType) -> st.SearchStrategy[Any]:
    if kind == DecimalType(12, 1):
        return st.integers(-30, 30).map(lambda n: Decimal(n).scaleb(-1))
    if kind == DecimalType(14, 4):
        return st.integers(-300, 300).map(lambda n: Decimal(n).scaleb(-4))
    return _VALUES[kind]


def _widen(column: Expression, kind: DataType) -> tuple[Expression, DataType]:
    wider: dict[DataType, DataType] = {
        INTEGER: DecimalType(12, 1), FLOAT: DOUBLE, LONG: DOUBLE, DecimalType(10, 2): DecimalType(14, 4),
        DATE: TIMESTAMP, TIMESTAMP: DATE, TIMESTAMP_NTZ: DATE,
    }  # fmt: skip
    target = wider.get(kind)
    return (column, kind) if target is None else (Cast(column, target), target)


@st.composite
def _leaf(draw: st.DrawFn) -> Expression:
    which = draw(st.integers(0, 9))
    if which < 5:
        return draw(_comparison())
    column = draw(st.sampled_from(COLUMNS))
    assert column.type is not None
    if which == 5:
        return Call(draw(st.sampled_from(["isnull", "isnotnull"])), (column,), BOOLEAN)
    if which == 6:
        items = draw(st.lists(st.none() | _values_of(column.type), min_size=1, max_size=3))
        return Call("in", (column, *(Literal(v, column.type) for v in items)), BOOLEAN)
    if which == 7:
        text = draw(st.sampled_from([c for c in COLUMNS if c.type == STRING]))
        prefix = draw(_VALUES[STRING])
        if draw(st.booleans()):
            return Call("startswith", (text, Literal(prefix, STRING)), BOOLEAN)
        tail = draw(st.sampled_from(["", "%", "%a", "_"]))
        return Call("like", (text, Literal(prefix + tail, STRING)), BOOLEAN)
    if which == 8:
        return Column(("b",), BOOLEAN)
    return Literal(draw(st.sampled_from([True, False, None])), BOOLEAN)


def _join(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    both = st.tuples(children, children)
    return (
        both.map(lambda args: Call("and", args, BOOLEAN))
        | both.map(lambda args: Call("or", args, BOOLEAN))
        | children.map(lambda arg: Call("not", (arg,), BOOLEAN))
    )


PREDICATES = st.recursive(_leaf(), _join, max_leaves=5)


@st.composite
def _file(draw: st.DrawFn) -> tuple[list[dict[str, Any]], str | None, dict[str, Any]]:
    """Live rows, the statistics text, and the partition values."""
    live = draw(st.lists(_row(), max_size=3))
    deleted = draw(st.lists(_row(), max_size=2)) if draw(st.booleans()) else []
    partition = {f.name: draw(st.none() | _partition_value(f.type)) for f in PARTITION}
    rows = [{**partition, **row} for row in live]
    form = draw(st.integers(0, 9))
    if form == 0:
        return rows, draw(st.sampled_from([None, "", "null", "{", "[1]", '{"numRecords":"x"}'])), partition
    prefix = draw(st.sampled_from([1, 2, 32]))
    tight = False if deleted else draw(st.sampled_from([None, True]))
    statistics = write_statistics([*live, *deleted], DATA, prefix=prefix, tight=tight)
    for part in ("minValues", "maxValues", "nullCount"):
        for name in draw(st.sets(st.sampled_from(DATA.names), max_size=2)) if form == 1 else ():
            statistics[part].pop(name, None)
    return rows, to_json(statistics, indent=1 if form == 2 else None), partition


def _partition_value(data_type: DataType) -> st.SearchStrategy[Any]:
    # The empty text is no partition value: it would be read back as null.
    return _VALUES[data_type].filter(lambda v: v != "")


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_file(), min_size=1, max_size=4), PREDICATES)
def test_file_with_a_matching_row_is_never_skipped(
    written: list[tuple[list[dict[str, Any]], str | None, dict[str, Any]]], predicate: Expression
) -> None:
    files = MemoryFiles(
        [statistics for _, statistics, _ in written],
        [{k: None if v is None else str(v) for k, v in partition.items()} for _, _, partition in written],
    )
    pruning = prune(
        files,  # type: ignore[arg-type]
        predicate, schema=SCHEMA, partition_columns=PARTITION.names, mapping_mode="none", timezone="UTC",
    )  # fmt: skip
    note(f"{predicate}; kept {kept(pruning)}; {pruning.reasons}")
    matching = {n for n, (rows, _, _) in enumerate(written) if any(truth(predicate, r) is True for r in rows)}
    assert matching <= set(kept(pruning))
    dropped = [row for reason in pruning.reasons for row in reason.rows.to_pylist()]
    assert sorted(dropped + kept(pruning)) == list(range(len(written)))


def truth(expression: Expression, row: Mapping[str, Any]) -> Any:
    """Evaluate by hand, a row at a time: what `prune` is held against."""
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Column):
        value: Any = row
        for name in expression.path:
            value = None if value is None else value[name]
        return value
    if isinstance(expression, Cast):
        return _cast(truth(expression.child, row), expression.type)
    args = [truth(arg, row) for arg in expression.args]
    return _FUNCTIONS[expression.name](*args)


def _cast(value: Any, wanted: DataType) -> Any:
    if value is None:
        return None
    if isinstance(wanted, DecimalType):
        return Decimal(value)
    if wanted == DOUBLE:
        return float(value)
    if wanted == DATE:
        return value.date()
    assert wanted == TIMESTAMP
    return dt.datetime(value.year, value.month, value.day, tzinfo=UTC)


def _order(value: Any) -> Any:
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def _compare(test: Any) -> Any:
    return lambda a, b: None if a is None or b is None else test(_order(a), _order(b))


def _equal(a: Any, b: Any) -> bool | None:
    return None if a is None or b is None else _order(a) == _order(b)


def _and(*args: Any) -> bool | None:
    return False if False in args else None if None in args else True


def _or(*args: Any) -> bool | None:
    return True if True in args else None if None in args else False


def _in(value: Any, *items: Any) -> bool | None:
    return _or(*(_equal(value, item) for item in items))


def _like(value: str | None, pattern: str) -> bool | None:
    if value is None:
        return None
    if pattern.endswith("%a"):
        return value.startswith(pattern[:-2]) and value[len(pattern) - 2 :].endswith("a")
    if pattern.endswith("%"):
        return value.startswith(pattern[:-1])
    if pattern.endswith("_"):
        return len(value) == len(pattern) and value.startswith(pattern[:-1])
    return value == pattern


_FUNCTIONS: dict[str, Any] = {
    "and": _and,
    "or": _or,
    "not": lambda a: None if a is None else not a,
    "=": _equal,
    "<>": _compare(lambda a, b: a != b),
    "<": _compare(lambda a, b: a < b),
    "<=": _compare(lambda a, b: a <= b),
    ">": _compare(lambda a, b: a > b),
    ">=": _compare(lambda a, b: a >= b),
    "<=>": lambda a, b: _order(a) == _order(b) if a is not None and b is not None else a is b,
    "isnull": lambda a: a is None,
    "isnotnull": lambda a: a is not None,
    "in": _in,
    "like": _like,
    "startswith": lambda a, b: None if a is None else a.startswith(b),
}


