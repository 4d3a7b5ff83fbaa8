"""Catalyst's filters as kernel expressions: recorded from Spark, made up, and live."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.evaluate import can_evaluate, evaluate
from delta_ds.kernel.format.expressions.tree import Expression
from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.spark.engines.classic.catalyst_filters import translate, translate_json
from delta_ds.spark.engines.classic.jvm import Jvm
from spark_tests.behaviour.spark.engines.classic import catalyst_cases as cases
from spark_tests.behaviour.spark.engines.classic.record_catalyst import RECORDED, scan_filters, written

ROWS = cases.rows()
SCHEMA = schema_from_arrow(ROWS.schema)
ENTRIES: dict[str, dict[str, Any]] = {e["condition"]: e for e in json.loads(RECORDED.read_text("utf-8"))[1:]}


def itself(path: tuple[str, ...]) -> tuple[str, ...] | None:
    return path


def translated(condition: str, timezone: str = cases.ZONE) -> list[str]:
    """The translations of a recorded condition, without the `IS NOT NULL` that Spark adds for each column."""
    filters = ENTRIES[condition]["filters"]
    found = [str(part) for nodes in filters for part in translate_json(nodes, itself, timezone)]
    return [text for text in found if not (text.endswith(" IS NOT NULL)") and text.count(" IS ") == 1)]


def kept_by(part: Expression, rows: pa.Table, timezone: str) -> set[int] | None:
    """The rows of which the expression is true; None if the kernel cannot compute it for all of them."""
    try:
        bound = bind(part, SCHEMA, timezone)
        if not can_evaluate(bound):
            return None
        return {i for i, true in enumerate(evaluate(bound, rows).to_pylist()) if true}
    except PredicateError:
        return None


# --- the law, on what Spark itself keeps


@pytest.mark.parametrize("condition", ENTRIES)
def test_every_row_that_spark_keeps_satisfies_the_translation(condition: str) -> None:
    kept = ENTRIES[condition]["kept"]
    for nodes in ENTRIES[condition]["filters"]:
        for part in translate_json(nodes, itself, cases.ZONE):
            found = kept_by(part, ROWS, cases.ZONE)
            assert found is None or kept is None or set(kept) <= found, part


@pytest.mark.parametrize("timezone", ["UTC", "Europe/Berlin", "+05:30"])
def test_another_zone_than_that_of_the_filter_loses_no_row(timezone: str) -> None:
    for condition, entry in ENTRIES.items():
        for nodes in entry["filters"]:
            for part in translate_json(nodes, itself, timezone):
                found = kept_by(part, ROWS, timezone)
                assert found is None or entry["kept"] is None or set(entry["kept"]) <= found, (
                    condition,
                    part,
                )


def test_most_conditions_say_exactly_what_spark_keeps() -> None:
    exact = 0
    for entry in ENTRIES.values():
        parts = [part for nodes in entry["filters"] for part in translate_json(nodes, itself, cases.ZONE)]
        found = [kept_by(part, ROWS, cases.ZONE) for part in parts]
        rows = set(range(len(ROWS))).intersection(*[f for f in found if f is not None])
        exact += entry["kept"] is not None and rows == set(entry["kept"])
    assert exact >= 0.7 * len(ENTRIES)


# --- what the translations look like


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("3 = i", ["(3 = i)"]),
        ("i <> 3", ["(NOT (i = 3))"]),
        ("i <=> NULL", ["(i IS NULL)"]),
        ("NOT (i <=> 3)", ["(NOT (i <=> 3))"]),
        ("i = l", ["(CAST(i AS long) = l)"]),
        ("i < st.a", ["(i < st.a)"]),
        ("f = CAST(1.1 AS FLOAT)", ["(f = 1.100000023841858F)"]),
        ("d = 'NaN'", ["(d = double('NaN'))"]),
        ("d <=> -0.0D", ["(d <=> -0.0D)"]),
        ("n = 1.5", ["(n = CAST(1.50 AS decimal(10,2)))"]),
        ("big = 1.5", ["(big = CAST(1.5000000000 AS decimal(38,10)))"]),
        ("s = 'null'", ["(s = 'null')"]),
        ("b = true", ["b"]),
        ("b <> true", ["(NOT b)"]),
        ("x = X'00FF'", ["(x = X'00FF')"]),
        ("x > X''", ["(x > X'')"]),
        ("dt = '2024-02-29'", ["(dt = DATE'2024-02-29')"]),
        ("ts = TIMESTAMP'2024-11-03 08:30:00Z'", ["(ts = TIMESTAMP'2024-11-03 08:30:00+00:00')"]),
        ("ts = TIMESTAMP'2024-11-03 09:30:00Z'", ["(ts = TIMESTAMP'2024-11-03 09:30:00+00:00')"]),
        ("ts >= '2024-03-10 02:30:00'", ["(ts >= TIMESTAMP'2024-03-10 10:30:00+00:00')"]),
        ("ntz > TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'", ["(ntz > TIMESTAMP_NTZ'1969-12-31 23:59:59.999999')"]),
        ("i IN (1, NULL)", ["(i IN (1, NULL))"]),
        ("i NOT IN (1, 3)", ["(NOT (i IN (1, 3)))"]),
        ("NOT coalesce(i = 3, true)", ["(NOT (i = 3))"]),
        ("NOT (i = 3 OR rlike(s, '^a'))", ["(NOT (i = 3))"]),
        ("NOT (i = 3 AND rlike(s, '^a'))", []),
        ("(i = 3 AND rlike(s, '^a')) OR l = 41", ["((i = 3) OR (l = 41L))"]),
        ("i = 3 OR rlike(s, '^a')", []),
        ("i = 3 AND size(arr) > 1", ["(i = 3)"]),
        ("s LIKE 'x!%_' ESCAPE '!'", ["(s LIKE 'x!%_' ESCAPE '!')"]),
        ("s LIKE 'a%c'", ["(length(s) >= 2)", "startswith(s, 'a')", "endswith(s, 'c')"]),
        ("CAST(l AS DOUBLE) > 41.5D", ["(CAST(l AS double) > 41.5D)"]),
        ("year(ts) = 2024", ["(year(CAST(ts AS date)) = 2024)"]),
        ("TRY_CAST(l AS INT) IS NULL", ["(TRY_CAST(l AS integer) IS NULL)"]),
        ("st.`In ner`.`w.d` > 1", ["(st.`In ner`.`w.d` > 1.0D)"]),
        ("p % 7 = 0", ["((p % 7) = 0)"]),
        ("dynamic pruning", ["(i = 3)"]),
        ("scalar subquery", []),
        ("renamed: s2.xx > 0", ["((st IS NOT NULL) AND (st.a > 0))"]),
        ("renamed: s3.bb.ww > 1", ["(st.`In ner`.`w.d` > 1.0D)"]),
        # Beyond Python's calendar.
        ("dt < DATE'+12000-01-01'", ["(dt < DATE'+12000-01-01')"]),
        ("dt >= DATE'-0044-03-15'", ["(dt >= DATE'-0044-03-15')"]),
        ("ts < TIMESTAMP'+10001-01-01 00:00:00Z'", ["(ts < TIMESTAMP'+10001-01-01 00:00:00+00:00')"]),
    ],
)  # fmt: skip
def test_condition_becomes(condition: str, expected: list[str]) -> None:
    assert translated(condition) == expected


@pytest.mark.parametrize(
    "condition",
    [
        # Text that is no UTF-8 reads the same as other such text.
        "s = CAST(X'FF' AS STRING)",
        "s < CAST(X'C3' AS STRING)",
        # Another order than that of bytes.
        "s COLLATE UTF8_LCASE = 'a'",
        "s COLLATE UTF8_LCASE IN ('a', 'b')",
        "contains(s COLLATE UTF8_LCASE, 'A')",
        # Wrapping around, and numbers out of text like 1.5.
        "legacy: CAST(l AS INT) = 1",
        "legacy: CAST(s AS INT) = 41",
        "arr = array(3)",
        "exists(arr, e -> e = 3)",
    ],
)
def test_what_cannot_be_told_is_left_out(condition: str) -> None:
    if condition.startswith("exists"):
        assert translated("exists(arr, e -> e = 3) AND i = 3") == ["(i = 3)"]
    else:
        assert translated(condition) == []


def test_metadata_column_is_no_column_of_the_table() -> None:
    assert translated("metadata column") == ["(i = 3)"]


def test_column_without_a_path_is_not_used() -> None:
    def without_text(path: tuple[str, ...]) -> tuple[str, ...] | None:
        return None if path[0] == "s" else ("logical", *path)

    (nodes,) = [f for f in ENTRIES["i = 3 OR s = 'a'"]["filters"]]
    assert translate_json(nodes, without_text, "UTC") == []
    (nodes,) = [f for f in ENTRIES["NOT (i <=> 3)"]["filters"]]
    assert [str(e) for e in translate_json(nodes, without_text, "UTC")] == ["(NOT (logical.i <=> 3))"]


def _between(value: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """`value BETWEEN false AND true`, as Spark plans it."""
    used = {"class": "x.CommonExpressionRef", "num-children": 0, "id": str(number)}
    bounds = [
        {"class": "x.Literal", "num-children": 0, "value": text, "dataType": "boolean"}
        for text in ("false", "true")
    ]
    return [
        {"class": "x.With", "num-children": 2},
        {"class": "x.And", "num-children": 2},
        *({"class": "x.GreaterThanOrEqual", "num-children": 2}, used, bounds[0]),
        *({"class": "x.LessThanOrEqual", "num-children": 2}, used, bounds[1]),
        {"class": "x.CommonExpressionDef", "num-children": 1, "id": str(number)},
        *value,
    ]


def test_a_value_that_is_used_twice_again_and_again_stays_with_spark() -> None:
    column = {"class": "x.AttributeReference", "num-children": 0, "name": "y", "dataType": "boolean"}
    nested = [[column]]
    for number in range(60):
        nested.append(_between(nested[-1], number))
    assert [str(e) for e in translate_json(nested[1], itself, "UTC")] == ["((y >= FALSE) AND (y <= TRUE))"]
    assert translate_json(nested[3], itself, "UTC")
    assert translate_json(nested[-1], itself, "UTC") == []  # it would be 2 to the 60th columns


def _set_of(condition: str) -> set[Any]:
    (part,) = [p for p in _parts(condition) if getattr(p, "name", None) == "in"]
    return {item.value for item in part.args[1:]}


def _parts(condition: str) -> list[Any]:
    return [p for nodes in ENTRIES[condition]["filters"] for p in translate_json(nodes, itself, cases.ZONE)]


def _long_list(start: str) -> str:
    (found,) = [c for c in ENTRIES if c.startswith(start) and len(c) > 60]
    return found


@pytest.mark.parametrize(
    ("start", "some"),
    [
        ("i IN (1, 3, 100", {1, 3, 111}),
        ("i IN (1, NULL, 100", {1, None, 111}),
        ("s IN ('a', 'null', 't0'", {"a", "null", "t11"}),
        ("s IN ('a', NULL, 't0'", {"a", None, "t11"}),
        ("s IN ('null', NULL, 't0'", {"null", None, "t11"}),
        ("x IN (X'00FF', X''", {b"\x00\xff", b"", b"\x0b\x02"}),
        ("x IN (X'01', NULL", {b"\x01", None, b"\x0b\x02"}),
    ],
)
def test_long_list_has_its_values(start: str, some: set[Any]) -> None:
    found = _set_of(_long_list(start))
    assert some <= found
    assert None in some or None not in found


@pytest.mark.parametrize("start", ["s IN (concat('a', chr(1)", "s IN (CAST(X'FF' AS STRING)"])
def test_long_list_with_a_value_that_cannot_be_told_is_left_out(start: str) -> None:
    assert translated(_long_list(start)) == []


def test_timestamp_as_text_is_read_in_the_zone_unless_the_clock_shows_it_twice() -> None:
    def equals(text: str) -> list[str]:
        nodes = [_node("EqualTo", 2), _column("ts", "timestamp"), _literal(text, "timestamp")]
        return [str(part) for part in translate_json(nodes, itself, "America/Los_Angeles")]

    assert equals("2024-02-29 04:00:00.5") == ["(ts = TIMESTAMP'2024-02-29 12:00:00.500000+00:00')"]
    assert equals("2024-11-03 01:30:00") == []
    assert equals("2024-11-03 02:30:00") == ["(ts = TIMESTAMP'2024-11-03 10:30:00+00:00')"]


def test_very_many_alternatives_are_translated() -> None:
    many = 20_000
    nodes = [_node("Or", 2) for _ in range(many)]
    nodes += [
        n
        for i in range(many + 1)
        for n in (_node("EqualTo", 2), _column("i", "integer"), _literal(str(i), "integer"))
    ]
    (found,) = translate_json(nodes, itself, "UTC")
    assert len(found.args) == many + 1  # type: ignore[union-attr]


# --- the law, on trees made up


def _node(kind: str, children: int, **fields: Any) -> dict[str, Any]:
    return {"class": f"org.apache.spark.sql.catalyst.expressions.{kind}", "num-children": children, **fields}


def _column(name: str, data_type: str) -> dict[str, Any]:
    return _node("AttributeReference", 0, name=name, dataType=data_type)


def _literal(value: str | None, data_type: str) -> dict[str, Any]:
    return _node("Literal", 0, value=value, dataType=data_type)


_A, _B = [None, -1, 0, 2, 5], [None, True, False]
GRID = [(a, b, u) for a in _A for b in _B for u in _B]
GRID_ROWS = pa.table(
    {
        "a": pa.array([row[0] for row in GRID], pa.int32()),
        "b": pa.array([row[1] for row in GRID], pa.bool_()),
        "u": pa.array([row[2] for row in GRID], pa.bool_()),
    }
)
GRID_SCHEMA = schema_from_arrow(GRID_ROWS.schema)
Tree = tuple[Any, ...]
_NUMBERS = st.sampled_from(_A)
_NUMBER = st.one_of(st.just(("a",)), _NUMBERS.map(lambda v: ("number", v)))
_LEAF = st.one_of(
    st.just(("b",)),
    st.just(("u",)),  # stands for a node that nobody knows; its value is a column of its own
    st.sampled_from(_B).map(lambda v: ("boolean", v)),
    st.tuples(
        st.sampled_from(["EqualTo", "EqualNullSafe", "LessThan", "GreaterThanOrEqual"]), _NUMBER, _NUMBER
    ),
    st.tuples(st.sampled_from(["IsNull", "IsNotNull"]), _NUMBER),
    st.tuples(st.just("In"), _NUMBER, st.lists(_NUMBERS, min_size=1, max_size=3)),
    st.tuples(st.just("InSet"), st.lists(_NUMBERS, min_size=1, max_size=3)),
)
_TREES = st.recursive(
    _LEAF,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["And", "Or", "EqualTo", "EqualNullSafe", "Coalesce"]), inner, inner),
        st.tuples(st.sampled_from(["Not", "IsNull", "IsNotNull"]), inner),
        st.tuples(st.just("If"), inner, inner, inner),
        st.tuples(st.just("CaseWhen"), inner, inner),
        st.tuples(st.just("CaseWhen"), inner, inner, inner, inner, inner),
    ),
    max_leaves=12,
)


def nodes(tree: Tree) -> list[dict[str, Any]]:
    """The tree as Catalyst lists it."""
    kind, *children = tree
    if kind in ("a", "b"):
        return [_column(kind, "integer" if kind == "a" else "boolean")]
    if kind == "u":
        return [_node("SomethingNew", 1), _column("b", "boolean")]
    if kind in ("number", "boolean"):
        text = None if children[0] is None else str(children[0]).lower()
        return [_literal(text, "integer" if kind == "number" else "boolean")]
    if kind == "In":
        items = [_literal(None if v is None else str(v), "integer") for v in children[1]]
        return [_node("In", 1 + len(items)), *nodes(children[0]), *items]
    if kind == "InSet":
        return [
            _node("InSet", 1, hset=[None if v is None else str(v) for v in children[0]]),
            _column("a", "integer"),
        ]
    return [_node(kind, len(children)), *[n for child in children for n in nodes(child)]]


def value(tree: Tree, row: tuple[Any, ...]) -> Any:
    """What Spark computes for the row, three-valued."""
    kind, *children = tree
    if kind in ("a", "b", "u"):
        return row["abu".index(kind)]
    if kind in ("number", "boolean"):
        return children[0]
    if kind in ("In", "InSet"):
        found, items = (value(children[0], row), children[1]) if kind == "In" else (row[0], children[0])
        if found is None or (found not in items and None in items):
            return None
        return found in items
    if kind in ("If", "CaseWhen"):
        for condition, result in zip(children[::2], children[1::2], strict=False):
            if value(condition, row):
                return value(result, row)
        return value(children[-1], row) if len(children) % 2 else None
    return _operator(kind, [value(child, row) for child in children])


def _operator(kind: str, args: list[Any]) -> Any:
    if kind in ("IsNull", "IsNotNull"):
        return (args[0] is None) == (kind == "IsNull")
    if kind == "EqualNullSafe":
        return args[0] == args[1] if None not in args else args == [None, None]
    if kind == "Coalesce":
        return next((arg for arg in args if arg is not None), None)
    if kind in ("And", "Or"):
        decisive = kind == "Or"
        return decisive if decisive in args else None if None in args else not decisive
    if None in args:
        return None
    if kind == "Not":
        return not args[0]
    return {"EqualTo": args[0] == args[-1], "LessThan": args[0] < args[-1]}.get(kind, args[0] >= args[-1])


@given(_TREES)
def test_rows_for_which_a_tree_is_true_satisfy_the_translation(tree: Tree) -> None:
    kept = {i for i, row in enumerate(GRID) if value(tree, row) is True}
    for part in translate_json(nodes(tree), itself, "UTC"):
        true = evaluate(bind(part, GRID_SCHEMA), GRID_ROWS).to_pylist()
        assert kept <= {i for i, found in enumerate(true) if found}


def _is_plain(tree: Tree) -> bool:
    """Without nodes that are unknown, or of which the translation may keep more rows than are true."""
    return not any(f"'{kind}'" in str(tree) for kind in ("u", "Coalesce", "CaseWhen", "If"))


@given(_TREES.filter(_is_plain))
def test_tree_of_known_nodes_keeps_no_other_rows(tree: Tree) -> None:
    kept = {i for i, row in enumerate(GRID) if value(tree, row) is True}
    rows = set(range(len(GRID)))
    for part in translate_json(nodes(tree), itself, "UTC"):
        true = evaluate(bind(part, GRID_SCHEMA), GRID_ROWS).to_pylist()
        rows &= {i for i, found in enumerate(true) if found}
    assert rows == kept


# --- live


@pytest.fixture(scope="module")
def frame(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return written(spark, str(tmp_path_factory.mktemp("catalyst") / "rows"))


def test_live_filters_are_complete(spark: SparkSession, frame: Any) -> None:
    many = ", ".join(f"'t{i}'" for i in range(12))
    condition = (
        f"x = X'00FF' AND s IN ('null', NULL, {many}) AND ts > TIMESTAMP'2024-11-03 09:30:00Z' "
        "AND CAST(l AS INT) = 1 AND s LIKE 'x_' AND (i = 3 OR TRY_CAST(l AS INT) IS NULL)"
    )
    filters = Jvm.of(spark).seq(scan_filters(frame.where(condition)))
    found = {str(part) for part in translate(filters, itself, "UTC")}
    assert {
        "(x = X'00FF')",
        "(ts > TIMESTAMP'2024-11-03 09:30:00+00:00')",
        "(CAST(l AS integer) = 1)",
        "(s LIKE 'x_' ESCAPE '\\\\')",
        "((i = 3) OR (TRY_CAST(l AS integer) IS NULL))",
    } <= found
    (long_list,) = [text for text in found if " IN (" in text]
    assert "'null'" in long_list and "NULL" in long_list and "'t11'" in long_list


def test_live_rows_satisfy_the_translation(spark: SparkSession, frame: Any) -> None:
    conditions = [
        F.col("i").isin(list(range(40))),
        ~F.col("s").isin("a", "abc"),
        F.col("d").eqNullSafe(float("nan")),
    ]
    for condition in conditions:
        kept = {row["id"] for row in frame.where(condition).select("id").collect()}
        for part in translate(Jvm.of(spark).seq(scan_filters(frame.where(condition))), itself, "UTC"):
            found = kept_by(part, ROWS, "UTC")
            assert found is not None and kept <= found


def test_filter_that_cannot_be_read_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def toJSON(self) -> str:  # noqa: N802
            return json.dumps([{"class": "a.b.Cast", "num-children": 0, "dataType": "integer"}])

        def evalMode(self) -> str:  # noqa: N802
            raise ValueError("not in this version")

    class Filters:
        def size(self) -> int:
            return 1

        def apply(self, position: int) -> Broken:
            return Broken()

    assert translate(Filters(), itself, "UTC") == []
    assert any("filter_not_translated" in record.getMessage() for record in caplog.records)
