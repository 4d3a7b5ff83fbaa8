"""The law of skipping: a file that holds a row for which the predicate is true is never skipped."""

from __future__ import annotations

import datetime as dt
import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from delta_ds.kernel.files.scan.skipping import prune
from delta_ds.kernel.files.write.checkpoint_columns import CheckpointColumns
from delta_ds.kernel.format.expressions.tree import Call, Cast, Column, Expression, Literal
from delta_ds.kernel.format.schema.types import (
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
    StructType,
)  # fmt: skip
from delta_ds.kernel.format.values.statistics import StatisticsLeaf
from delta_ds.kernel.format.values.statistics_json import has_bounds
from spark_tests.behaviour.kernel.files.scan.tables import (
    MemoryFiles,
    foreign_statistics,
    kept,
    struct,
    to_json,
    write_statistics,
)
from spark_tests.full_form import examples

_ROOMY = Context(prec=80)

UTC = dt.timezone.utc
WIDE, WHOLE = DecimalType(38, 18), DecimalType(38, 0)
NESTED = struct(("x", INTEGER), ("y", STRING))
DATA = struct(
    ("i", INTEGER), ("l", LONG), ("f", FLOAT), ("d", DOUBLE), ("s", STRING), ("dt", DATE), ("ts", TIMESTAMP),
    ("ntz", TIMESTAMP_NTZ), ("dec", DecimalType(10, 2)), ("b", BOOLEAN), ("st", NESTED),
    ("wide", WIDE), ("whole", WHOLE),
)  # fmt: skip
PARTITION = struct(("p", INTEGER), ("q", STRING))

_times = st.sampled_from([0, 1, 999, 1000, 1001, 500_000, -1, -1001, 86_400_000_000]).map(
    lambda us: dt.datetime(2024, 1, 1) + dt.timedelta(microseconds=us)
)
_floats = st.sampled_from([0.0, -0.0, 1.5, -2.5, 1e300, math.inf, -math.inf, math.nan])
_digits = st.builds(
    lambda start, step, sign: sign * min(start + step, 10**38 - 1),
    st.sampled_from([0, 10**15, 10**17, 12345678901234567890123456789012345678, 10**38 - 3]),
    st.integers(0, 2),
    st.sampled_from([1, -1]),
)
_VALUES: dict[DataType, st.SearchStrategy[Any]] = {
    INTEGER: st.integers(-3, 3),
    LONG: st.sampled_from([-(1 << 63), -1, 0, (1 << 53) + 1, (1 << 53) + 2, (1 << 63) - 1]),
    FLOAT: _floats.map(lambda v: math.inf if v == 1e300 else v),
    DOUBLE: _floats,
    STRING: st.text(st.sampled_from("ab\x7f\ufffd\U0001f600\U0010ffff"), max_size=3),
    DATE: st.integers(-2, 2).map(lambda days: dt.date(1970, 1, 1) + dt.timedelta(days=days)),
    TIMESTAMP: _times.map(lambda t: t.replace(tzinfo=UTC)),
    TIMESTAMP_NTZ: _times,
    DecimalType(10, 2): st.integers(-3, 3).map(lambda n: Decimal(n).scaleb(-2)),
    # Neighbours that doubles do not tell apart, and the least and the greatest.
    WIDE: _digits.map(lambda n: Decimal(n).scaleb(-18, _ROOMY)),
    WHOLE: _digits.map(Decimal),
    BOOLEAN: st.booleans(),
}


@dataclass(frozen=True)
class Table:
    """Some columns, what is in each file, and a question.

    Few columns at a time: then predicates meet the edges of bounds often enough.
    """

    schema: StructType
    live: list[list[dict[str, Any]]]
    statistics: list[str | None]
    partitions: list[dict[str, Any]]
    predicate: Expression


@st.composite
def _tables(draw: st.DrawFn, data: StructType, most_leaves: int) -> Table:
    live, statistics, partitions = [], [], []
    for _ in range(draw(st.integers(1, 3))):
        rows, text = draw(_file(data))
        values = {f.name: draw(st.none() | _partition_value(f.type)) for f in PARTITION}
        live.append([{**values, **row} for row in rows])
        statistics.append(text)
        partitions.append({name: None if value is None else str(value) for name, value in values.items()})
    schema = StructType((*PARTITION.fields, *data.fields))
    asked = list(_columns(schema if most_leaves > 1 else data))
    predicate = draw(st.recursive(_leaf(asked), _join, max_leaves=most_leaves))
    return Table(schema, live, statistics, partitions, predicate)


def _columns(schema: StructType, path: tuple[str, ...] = ()) -> Iterator[Column]:
    for f in schema:
        if isinstance(f.type, StructType):
            yield from _columns(f.type, (*path, f.name))
        else:
            yield Column((*path, f.name), f.type)


@st.composite
def _file(draw: st.DrawFn, data: StructType) -> tuple[list[dict[str, Any]], str | None]:
    """Live rows, and the statistics text."""
    live = draw(st.lists(_row(data), max_size=3))
    deleted = draw(st.lists(_row(data), max_size=2)) if draw(st.integers(0, 3)) == 0 else []
    form = draw(st.integers(0, 9))
    if form == 0:
        return live, draw(st.sampled_from([None, "", "null", "{", "[1]", '{"numRecords":"x"}']))
    tight = False if deleted else draw(st.sampled_from([None, True]))
    prefix = draw(st.sampled_from([1, 2, 32]))
    if draw(st.integers(0, 2)) == 0:
        statistics = foreign_statistics([*live, *deleted], data, prefix=prefix)
        statistics |= {"tightBounds": False} if deleted else {}
    else:
        statistics = write_statistics([*live, *deleted], data, prefix=prefix, tight=tight)
    for part in ("minValues", "maxValues", "nullCount") if form == 1 else ():
        for name in draw(st.sets(st.sampled_from(data.names), max_size=2)):
            statistics[part].pop(name, None)
    return live, to_json(statistics, indent=1 if form == 2 else None)


def _row(data: StructType) -> st.SearchStrategy[dict[str, Any]]:
    def value(data_type: DataType) -> st.SearchStrategy[Any]:
        return _row(data_type) if isinstance(data_type, StructType) else _VALUES[data_type]

    return st.fixed_dictionaries({f.name: st.none() | value(f.type) for f in data})


def _partition_value(data_type: DataType) -> st.SearchStrategy[Any]:
    # The empty text is no partition value: it would be read back as null.
    return _VALUES[data_type].map(lambda v: "a" if v == "" else v)


@st.composite
def _comparison(draw: st.DrawFn, columns: list[Column]) -> Expression:
    column = draw(st.sampled_from(columns))
    assert column.type is not None
    left, kind = _widen(column) if draw(st.integers(0, 5)) == 0 else (column, column.type)
    same = [c for c in columns if c.type == kind]
    right: Expression = Literal(draw(_literal_value(kind)), kind)
    chance = draw(st.integers(0, 9))
    if chance == 0:
        right = Literal(None, kind)
    elif same and chance == 1:
        right = draw(st.sampled_from(same))
    operator = draw(st.sampled_from(["=", "<=>", "<>", "<", "<=", ">", ">="]))
    return Call(operator, (right, left) if draw(st.booleans()) else (left, right), BOOLEAN)


def _literal_value(kind: DataType) -> st.SearchStrategy[Any]:
    if kind == DecimalType(12, 1):
        return st.integers(-30, 30).map(lambda n: Decimal(n).scaleb(-1))
    if kind == DecimalType(14, 4):
        return st.integers(-3, 3).map(lambda n: Decimal(n * 100).scaleb(-4))
    return _VALUES[kind]


def _widen(column: Column) -> tuple[Expression, DataType]:
    wider: dict[DataType | None, DataType] = {
        INTEGER: DecimalType(12, 1), FLOAT: DOUBLE, LONG: DOUBLE, DecimalType(10, 2): DecimalType(14, 4),
        DATE: TIMESTAMP, TIMESTAMP: DATE, TIMESTAMP_NTZ: DATE,
    }  # fmt: skip
    target = wider.get(column.type)
    if target is None:
        assert column.type is not None
        return column, column.type
    zoned = TIMESTAMP in (column.type, target)
    return Cast(column, target, timezone="UTC" if zoned else None), target


@st.composite
def _leaf(draw: st.DrawFn, columns: list[Column]) -> Expression:
    which = draw(st.integers(0, 10))
    column = draw(st.sampled_from(columns))
    assert column.type is not None
    texts = [c for c in columns if c.type == STRING]
    flags = [c for c in columns if c.type == BOOLEAN]
    if which == 0:
        return Literal(draw(st.sampled_from([True, False, None])), BOOLEAN)
    if which == 1:
        return Call(draw(st.sampled_from(["isnull", "isnotnull"])), (column,), BOOLEAN)
    if which == 2:
        items = draw(st.lists(st.none() | _VALUES[column.type], min_size=1, max_size=3))
        return Call("in", (column, *(Literal(v, column.type) for v in items)), BOOLEAN)
    if which in (3, 4) and texts:
        text, prefix = draw(st.sampled_from(texts)), draw(_VALUES[STRING])
        if which == 3:
            return Call("startswith", (text, Literal(prefix, STRING)), BOOLEAN)
        tail = draw(st.sampled_from(["", "%", "%a", "_"]))
        return Call("like", (text, Literal(prefix + tail, STRING)), BOOLEAN)
    if which == 5 and flags:
        return draw(st.sampled_from(flags))
    return draw(_comparison(columns))


def _join(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    both = st.tuples(children, children)
    return (
        both.map(lambda args: Call("and", args, BOOLEAN))
        | both.map(lambda args: Call("or", args, BOOLEAN))
        | children.map(lambda arg: Call("not", (arg,), BOOLEAN))
    )


_SOME_COLUMNS = st.lists(st.sampled_from(DATA.fields), min_size=1, max_size=2, unique=True).map(
    lambda fields: StructType(tuple(fields))
)
_RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("name", DATA.names)
@settings(_RELAXED, max_examples=examples(60))
@given(st.data())
def test_file_with_a_row_that_matches_a_condition_is_never_skipped(name: str, data: st.DataObject) -> None:
    only = StructType(tuple(f for f in DATA if f.name == name))
    _check(data.draw(_tables(only, most_leaves=1)), "UTC")


@settings(_RELAXED, max_examples=examples(200))
@given(
    _SOME_COLUMNS.flatmap(lambda data: _tables(data, most_leaves=4)),
    st.sampled_from(["UTC", "Asia/Tokyo", None]),
)
def test_file_with_a_row_that_matches_a_predicate_is_never_skipped(
    table: Table, timezone: str | None
) -> None:
    _check(table, timezone)


def _check(table: Table, timezone: str | None) -> None:
    _check_files(table, timezone, MemoryFiles(table.statistics, table.partitions))
    # The same statistics from a checkpoint that has them as columns only, and as text again from there.
    leaves = _typed_leaves(table.schema)
    columns = CheckpointColumns(tuple(leaves), {})
    typed = columns.parse_statistics(pa.array(table.statistics, pa.string()))
    nothing = [None] * len(table.statistics)
    inside = {leaf.dotted: functools.reduce(pc.struct_field, leaf.path, typed) for leaf in leaves}
    _check_files(table, timezone, MemoryFiles(nothing, table.partitions, inside))
    again = columns.statistics_text(typed).to_pylist()
    assert repr(columns.parse_statistics(pa.array(again, pa.string())).to_pylist()) == repr(typed.to_pylist())
    _check_files(table, timezone, MemoryFiles(again, table.partitions))


def _typed_leaves(schema: StructType) -> list[StatisticsLeaf]:
    columns = [c for c in _columns(schema) if c.path[0] not in PARTITION.names]
    bounded = [c for c in columns if has_bounds(c.type)]
    sides = [StatisticsLeaf((side, *c.path), c.type) for side in ("minValues", "maxValues") for c in bounded]
    nulls = [StatisticsLeaf(("nullCount", *c.path), LONG) for c in columns]
    return [StatisticsLeaf(("numRecords",), LONG), *sides, *nulls, StatisticsLeaf(("tightBounds",), BOOLEAN)]


def _check_files(table: Table, timezone: str | None, files: MemoryFiles) -> None:
    pruning = prune(
        files,  # type: ignore[arg-type]
        table.predicate,
        schema=table.schema,
        partition_columns=PARTITION.names,
        mapping_mode="none",
        timezone=timezone,
    )
    note(f"{table.predicate}; kept {kept(pruning)}; {pruning.reasons}")
    matching = [
        number
        for number, rows in enumerate(table.live)
        if any(truth(table.predicate, row) is True for row in rows)
    ]
    assert set(matching) <= set(kept(pruning))
    dropped = [row for reason in pruning.reasons for row in reason.rows.to_pylist()]
    assert sorted(dropped + kept(pruning)) == list(range(len(table.live)))


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
    assert wanted == TIMESTAMP  # with the session in UTC, where the rows live; other zones only ask for more
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
