"""Statistics of written files: true bounds, delta-spark's texts, the columns the table asks for."""

from __future__ import annotations

import datetime as dt
import json
import math
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.files.write.statistics import check_statistics_columns, parse_names
from delta_ds.kernel.files.write.writer import FileWriter
from delta_ds.kernel.format.expressions.tree import Call, Column, Literal
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
    arrow_schema,
)
from delta_ds.kernel.format.values.statistics_json import truncated_max, truncated_min
from delta_ds.kernel.storage.open import open_storage
from spark_tests.behaviour.kernel.files.write.written_tables import (
    PRIMITIVES,
    UTC,
    batch_of,
    commit,
    mapped,
    plan_of,
    present,
    struct,
    tables,
    write,
)
from spark_tests.full_form import examples

FEW = settings(deadline=None, max_examples=examples(80))
NAN, INF = float("nan"), float("inf")
BOUNDED = [kind for kind in PRIMITIVES if kind not in (BOOLEAN, BINARY)]


def stats(folder: Path, schema: StructType, rows: list[dict[str, Any]], **plan: Any) -> dict[str, Any]:
    (add,) = write(folder, schema, rows, **plan)
    found: dict[str, Any] = json.loads(add["stats"], parse_float=Decimal)
    return found


def bounds(folder: Path, kind: DataType, *values: Any, **plan: Any) -> tuple[Any, Any]:
    """Minimum and maximum of a column x; Ellipsis where there is none."""
    found = stats(folder, struct(x=kind), [{"x": value} for value in values], **plan)
    return found["minValues"].get("x", ...), found["maxValues"].get("x", ...)


def order(value: Any) -> Any:
    """A key that sorts as Spark does."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value


Leaf = tuple[tuple[str, ...], DataType, list[Any]]


def leaf_values(kind: DataType, values: list[Any], path: tuple[str, ...]) -> list[Leaf]:
    """Path, type and values of each leaf below a column."""
    if not isinstance(kind, StructType):
        return [(path, kind, values)]
    return [
        leaf for f in kind for leaf in leaf_values(f.type, [v and v[f.name] for v in values], (*path, f.name))
    ]


def at(tree: dict[str, Any], path: tuple[str, ...]) -> Any:
    node: Any = tree
    for name in path:
        node = node.get(name) if isinstance(node, dict) else None
    return node


def parsed(kind: DataType, text: Any) -> Any:
    if kind == FLOAT:
        return float(np.float32(str(text)))
    if kind == DOUBLE:
        return float(text)
    if kind == DATE:
        return dt.date.fromisoformat(text)
    if kind in (TIMESTAMP, TIMESTAMP_NTZ):
        return dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return text


LEAVES = st.sampled_from(PRIMITIVES)
STRUCTS = st.lists(LEAVES, min_size=1, max_size=2).map(
    lambda kinds: struct(**dict(zip("ab", kinds, strict=False)))
)


@given(table=tables(LEAVES | STRUCTS | LEAVES.map(ArrayType) | STRUCTS.map(lambda s: struct(t=s))))
@FEW
def test_bounds_hold_every_value_and_null_counts_are_exact(
    table: tuple[StructType, list[dict[str, Any]]],
) -> None:
    schema, rows = table
    if not rows:
        return
    batch = batch_of(schema, rows)
    with tempfile.TemporaryDirectory() as name:
        found = stats(Path(name), schema, rows)
    assert found["numRecords"] == len(rows)
    for path, kind, leaf in leaf_values(schema, batch.to_pylist(), ()):
        there = [value for value in leaf if value is not None]
        low, high = at(found["minValues"], path), at(found["maxValues"], path)
        assert at(found["nullCount"], path) == len(leaf) - len(there)
        if not there or kind not in BOUNDED:
            assert low is None
            assert high is None
            continue
        assert order(parsed(kind, low)) <= min(map(order, there))
        if high is None:
            assert kind == STRING  # no text that short is above it
            continue
        slack = dt.timedelta(microseconds=999) if kind in (TIMESTAMP, TIMESTAMP_NTZ) else None
        top = parsed(kind, high) + slack if slack else parsed(kind, high)
        assert order(top) >= max(map(order, there))


@given(
    kind=st.sampled_from(BOUNDED),
    operator=st.sampled_from(["=", "<", "<=", ">", ">=", "<>", "<=>"]),
    path=st.sampled_from([("x",), ("s", "x")]),
    data=st.data(),
)
@FEW
def test_skipping_by_the_statistics_never_loses_a_row(
    kind: DataType, operator: str, path: tuple[str, ...], data: st.DataObject
) -> None:
    schema = struct(x=kind, s=struct(x=kind))
    some = data.draw(st.lists(present(kind), min_size=1, max_size=4))
    value = st.none() | st.sampled_from(some)
    inner = st.none() | st.fixed_dictionaries({"x": value})
    rows = data.draw(st.lists(st.fixed_dictionaries({"x": value, "s": inner}), min_size=1, max_size=10))
    constant = batch_of(struct(x=kind), [{"x": data.draw(st.sampled_from(some) | present(kind))}])
    predicate = Call(operator, (Column(path), Literal(constant["x"][0].as_py(), kind)))
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as other:
        found = []
        for folder, keep in ((Path(name), True), (Path(other), False)):
            adds = write(folder, schema, rows, max_records_per_file=2)
            adds = [add if keep else {k: v for k, v in add.items() if k != "stats"} for add in adds]
            log = commit(folder, plan_of(folder, schema), adds)
            found.append(log.snapshot().scan(predicate).to_arrow().to_pylist())
    assert sorted(map(repr, found[0])) == sorted(map(repr, found[1]))


def test_texts_are_as_delta_spark_writes_them(tmp_path: Path) -> None:
    schema = struct(x=LONG, c=DecimalType(10, 2), f=FLOAT, t=TIMESTAMP, s=STRING)
    row = {"x": 2**63 - 1, "c": Decimal("1.1"), "f": 0.1, "t": dt.datetime(2024, 1, 2, tzinfo=UTC), "s": 'é"'}
    (add,) = write(tmp_path, schema, [row], features=frozenset(["deletionVectors"]))
    values = '{"x":9223372036854775807,"c":1.10,"f":0.1,"t":"2024-01-02T00:00:00.000Z","s":"é\\""}'
    assert add["stats"] == (
        f'{{"numRecords":1,"minValues":{values},"maxValues":{values},'
        '"nullCount":{"x":0,"c":0,"f":0,"t":0,"s":0},"tightBounds":true}'
    )


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("a" * 40, "a" * 32, "a" * 32 + "\x7f"),
        ("b" * 32 + "é" * 3, "b" * 32, "b" * 32 + "\U0010ffff"),
        ("c" * 31 + "😀tail", "c" * 31 + "😀", "c" * 31 + "😀\x7f"),
        ("😀" * 40, "😀" * 32, "😀" * 16 + "\U0010ffff"),
        ("d" * 32, "d" * 32, "d" * 32),
        ("e" * 32 + "\x7f", "e" * 32, "e" * 32 + "\U0010ffff"),
        ("f" * 32 + "\U0010ffff" * 3 + "x", "f" * 32, "f" * 32 + "\U0010ffff" * 3 + "\x7f"),
        ("g" * 32 + "\U0010ffff" * 3, "g" * 32, "g" * 32 + "\U0010ffff" * 3),
        ("h" * 32 + "\U0010ffff" * 40, "h" * 32, None),
        ("h" * 32 + "\U0010ffff" * 16 + "zz", "h" * 32, "h" * 32 + "\U0010ffff" * 16 + "\x7f"),
        ("h" * 32 + "\U0010ffff" * 17 + "zz", "h" * 32, None),
        ("😀" * 20, "😀" * 20, "😀" * 16 + "\U0010ffff"),
        ("", "", ""),
    ],
)
def test_long_strings_are_cut_and_stay_bounds(text: str, low: str, high: str | None) -> None:
    assert truncated_min(text, 32) == low
    assert truncated_max(text, 32) == high


@given(
    text=st.text(st.characters(codec="utf-8") | st.sampled_from("a\x7f\U0010ffff😀"), max_size=40),
    length=st.integers(1, 12),
)
def test_cut_strings_bound_the_whole_in_the_order_of_their_bytes(text: str, length: int) -> None:
    assert truncated_min(text, length).encode() <= text.encode()
    high = truncated_max(text, length)
    assert high is None or high.encode() >= text.encode()
    assert len(truncated_min(text, length)) <= length


@pytest.mark.parametrize(
    ("kind", "values", "low", "high"),
    [
        (DOUBLE, [1.5, NAN, None], Decimal("1.5"), "NaN"),
        (DOUBLE, [NAN, NAN], "NaN", "NaN"),
        (FLOAT, [NAN, -INF, INF], "-Infinity", "NaN"),
        (FLOAT, [INF, -INF], "-Infinity", "Infinity"),
        (DOUBLE, [1e300, 1e-5], Decimal("1.0E-5"), Decimal("1.0E300")),
        (TIMESTAMP, [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), dt.datetime(2024, 1, 2, 3, 4, 5, 123789, UTC)],
         "1969-12-31T23:59:59.999Z", "2024-01-02T03:04:05.123Z"),
        (TIMESTAMP_NTZ, [dt.datetime(2024, 1, 2, 3, 4, 5, 1)], "2024-01-02T03:04:05.000", "2024-01-02T03:04:05.000"),
        (DATE, [dt.date(1, 1, 1), dt.date(9999, 12, 31)], "0001-01-01", "9999-12-31"),
        (DecimalType(38, 10), [Decimal("-12345678901234567890.1234567890"), Decimal(0)],
         Decimal("-12345678901234567890.1234567890"), Decimal("0E-10")),
        (STRING, ["b", "é", "\uffff", "\U00010000"], "b", "\U00010000"),
        (STRING, ["x" * 5000, "a"], "a", "x" * 32 + "\x7f"),
        (STRING, ["a", "\U0010ffff" * 5000], "a", ...),
        (BOOLEAN, [True], ..., ...),
        (BINARY, [b"x"], ..., ...),
        (LONG, [None, None], ..., ...),
    ],
)  # fmt: skip
def test_bounds_of_special_values(
    tmp_path: Path, kind: DataType, values: list[Any], low: Any, high: Any
) -> None:
    assert bounds(tmp_path, kind, *values) == (low, high)


def test_dates_beyond_the_year_9999_have_no_bounds(tmp_path: Path) -> None:
    schema = struct(d=DATE, t=TIMESTAMP)
    days, micros = pa.array([10**7, 0], pa.int32()), pa.array([-(10**17), 0], pa.int64())
    columns = [days.view(pa.date32()), micros.view(pa.timestamp("us", "UTC"))]
    writer = FileWriter(open_storage(str(tmp_path)), plan_of(tmp_path, schema))
    writer.write(pa.RecordBatch.from_arrays(columns, schema=arrow_schema(schema)))
    found = json.loads(writer.close()[0]["stats"])
    assert found["minValues"] == {"d": "1970-01-01"}
    assert found["maxValues"] == {"t": "1970-01-01T00:00:00.000Z"}


def test_strings_that_are_not_utf8_have_no_bounds(tmp_path: Path) -> None:
    writer = FileWriter(open_storage(str(tmp_path)), plan_of(tmp_path, struct(s=STRING)))
    data = pa.array([b"\xff", b"a"]).view(pa.string())
    writer.write(pa.RecordBatch.from_arrays([data], names=["s"]))
    found = json.loads(writer.close()[0]["stats"])
    assert (found["minValues"], found["maxValues"]) == ({"s": "a"}, {})


def test_bounds_span_all_row_groups_and_long_strings_among_short_ones(tmp_path: Path) -> None:
    schema = struct(s=STRING, x=LONG)
    plan = plan_of(tmp_path, schema, target_file_size=10_000_000)
    writer = FileWriter(open_storage(str(tmp_path)), plan)
    long = "m" * 4000
    for texts in (["b", "c"], ["a" * 5000], ["n"], [long + "z" * 1000, "d"], ["e"]):
        writer.write(batch_of(schema, [{"s": text, "x": i} for i, text in enumerate(texts)]))
        writer._open[0].flush()
    (add,) = writer.close()
    found = json.loads(add["stats"])
    assert found["minValues"] == {"s": "a" * 32, "x": 0}
    assert found["maxValues"] == {"s": "n", "x": 1}


def test_null_structs_count_as_nulls_of_their_fields(tmp_path: Path) -> None:
    schema = struct(
        s=struct(a=LONG, t=struct(b=STRING, l=ArrayType(LONG))), m=MapType(STRING, LONG), v=VARIANT
    )
    rows: list[dict[str, Any]] = [
        {"s": {"a": 1, "t": {"b": "x", "l": [None]}}, "m": [("k", None)]},
        {"s": {"a": None, "t": None}, "m": None},
        {"s": None},
    ]
    found = stats(tmp_path, schema, rows)
    assert found["nullCount"] == {"s": {"a": 2, "t": {"b": 2, "l": 2}}, "m": 2, "v": 3}
    assert found["minValues"] == {"s": {"a": 1, "t": {"b": "x"}}}


NESTED = struct(a=LONG, s=struct(b=LONG, c=struct(d=LONG, e=STRING)), l=ArrayType(LONG), p=LONG, g=LONG)
ROW = {"a": 1, "s": {"b": 2, "c": {"d": 3, "e": "x"}}, "l": [1], "p": 7, "g": 8}


@pytest.mark.parametrize(
    ("properties", "leaves"),
    [
        ({}, "a s.b s.c.d s.c.e l g"),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, "a s.b s.c.d s.c.e l g"),
        ({"delta.dataSkippingNumIndexedCols": "3"}, "a s.b s.c.d"),
        ({"delta.dataSkippingNumIndexedCols": "0"}, ""),
        ({"delta.dataSkippingStatsColumns": "S.c, `G`"}, "s.c.d s.c.e g"),
        ({"delta.dataSkippingStatsColumns": "s.b,gone", "delta.dataSkippingNumIndexedCols": "1"}, "s.b"),
        ({"delta.dataSkippingStatsColumns": ""}, ""),
    ],
)
@pytest.mark.parametrize("mode", ["none", "name"])
def test_properties_choose_the_columns(
    tmp_path: Path, properties: dict[str, str], leaves: str, mode: str
) -> None:
    schema = NESTED if mode == "none" else mapped(NESTED)
    plan = {"properties": properties, "partition_columns": ["p"], "mapping_mode": mode}
    found = stats(tmp_path, schema, [ROW], **plan)
    names = {f"col-{i} x": name for i, name in enumerate(["a", "s", "b", "c", "d", "e", "l", "p", "g"], 1)}

    def paths(tree: dict[str, Any], above: str = "") -> list[str]:
        out = []
        for key, node in tree.items():
            name = above + names.get(key, key)
            out += paths(node, f"{name}.") if isinstance(node, dict) else [name]
        return out

    assert paths(found.get("nullCount", {})) == leaves.split()
    assert paths(found.get("minValues", {})) == [leaf for leaf in leaves.split() if leaf != "l"]


def test_clustering_columns_have_statistics_wherever_they_stand(tmp_path: Path) -> None:
    properties = {"delta.dataSkippingNumIndexedCols": "1"}
    found = stats(
        tmp_path, NESTED, [ROW], properties=properties, clustering_columns=(("s", "c", "d"), ("g",))
    )
    assert found["minValues"] == {"a": 1, "s": {"c": {"d": 3}}, "g": 8}


def test_void_columns_count_as_leaves_that_are_all_null(tmp_path: Path) -> None:
    found = stats(
        tmp_path,
        struct(v=VOID, x=LONG, y=LONG),
        [{"x": 1}],
        properties={"delta.dataSkippingNumIndexedCols": "2"},
    )
    assert found["nullCount"] == {"v": 1, "x": 0}
    assert found["minValues"] == {"x": 1}


def test_the_prefix_length_is_the_tables(tmp_path: Path) -> None:
    properties = {"delta.dataSkippingStringPrefixLength": "3"}
    assert bounds(tmp_path, STRING, "abcdef", properties=properties) == ("abc", "abc\x7f")


@pytest.mark.parametrize(
    ("text", "names"),
    [("", []), (" a , b.c ", [("a",), ("b", "c")]), ("`x.y`.`a``b`,c", [("x.y", "a`b"), ("c",)])],
)
def test_lists_of_columns_are_read_as_sql_reads_them(text: str, names: list[tuple[str, ...]]) -> None:
    assert parse_names(text) == names


@pytest.mark.parametrize("text", ["a,", "a b", "a..b", "`a", ","])
def test_what_is_no_list_of_columns_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError):
        parse_names(text)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("p", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN"),
        ("l", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"),
        ("a,s.b,a", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS"),
        ("s,s.c.d", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS"),
        ("s.z", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    ],
)
def test_columns_without_statistics_cannot_be_asked_for(text: str, condition: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        check_statistics_columns(NESTED, ["p"], text, "/data/t")
    assert caught.value.condition == condition


@pytest.mark.parametrize("kind", [BINARY, BOOLEAN, ArrayType(LONG), MapType(STRING, LONG)])
def test_columns_of_types_without_an_order_cannot_be_asked_for(kind: DataType) -> None:
    schema = struct(c=kind, s=struct(a=LONG, c=kind))
    with pytest.raises(InvalidOptionError, match="a type without statistics"):
        check_statistics_columns(schema, [], "c", "/data/t")
    check_statistics_columns(schema, [], "s", "/data/t")
    check_statistics_columns(schema, [], "s.c, s.a", "/data/t")


def test_columns_with_statistics_can_be_asked_for() -> None:
    check_statistics_columns(NESTED, ["p"], "s, a, G", "/data/t")
    check_statistics_columns(NESTED, ["p"], "l.element, a, A", "/data/t")
    check_statistics_columns(struct(v=VARIANT), [], "v", "/data/t")
