"""Rows completed and checked by Spark against the same by the Arrow path: equal rows, or the same error."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_ds.exceptions import (
    DeltaError,
    InvariantViolationError,
    SchemaError,
    UnsupportedFeatureError,
)
from delta_ds.kernel.files.rows.pipeline import RowPipeline
from delta_ds.kernel.files.rows.plan import plan_rows
from delta_ds.kernel.files.write.write_spec import write_spec
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.transaction.write.intent import batch_intent, find_target, newest_snapshot
from delta_ds.kernel.transaction.write.overwrite_scope import plan_overwrite
from delta_ds.kernel.transaction.write.plan import WritePlan, plan_write
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.engines.classic.jvm import Jvm, NotNative
from delta_ds.spark.engines.classic.projection import Caster
from delta_ds.spark.engines.classic.row_columns import columns_of, stored_rows
from delta_ds.spark.engines.classic.row_conditions import quoted
from delta_ds.spark.errors.row_errors import error_sql
from delta_ds.spark.errors.translation import as_delta_error

pytestmark = [pytest.mark.spark, pytest.mark.long]

FEATURES = [
    "appendOnly", "invariants", "checkConstraints", "generatedColumns", "allowColumnDefaults", "identityColumns",
    "columnMapping", "timestampNtz",
]  # fmt: skip


def column(name: str, kind: Any, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    keys = {"generated": "delta.generationExpression", "default": "CURRENT_DEFAULT"}
    keys |= {"declared": "__CHAR_VARCHAR_TYPE_STRING", "invariant": "delta.invariants"}
    found = {keys.get(key, key): text for key, text in metadata.items()}
    return {"name": name, "type": kind, "nullable": nullable, "metadata": found}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def mapping(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def make_table(path: Path, fields: Sequence[dict[str, Any]], properties: Mapping[str, str]) -> str:
    """A table without rows, straight from its schema, which need not be one that the package would make."""
    log = path / "_delta_log"
    log.mkdir(parents=True)
    mapped = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": str(100)}
    ids = iter(range(1, 100))

    def with_ids(node: Any) -> Any:
        if isinstance(node, list):
            return [with_ids(item) for item in node]
        if not isinstance(node, dict):
            return node
        found = {key: value if key == "metadata" else with_ids(value) for key, value in node.items()}
        if "metadata" in found:
            number = next(ids)
            own = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c{number}"}
            found["metadata"] = {**found["metadata"], **own}
        return found

    actions = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": FEATURES[-2:],
                "writerFeatures": FEATURES,
            }
        },
        {
            "metaData": {
                "id": "t",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(struct(*with_ids(list(fields)))),
                "partitionColumns": [],
                "configuration": {**mapped, **properties},
            }
        },
    ]
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return str(path)


def plan(df: DataFrame, path: str, *, native: bool, zone: str = "UTC", **options: str) -> WritePlan:
    overwrite = "replaceWhere" in options
    intent = batch_intent({**options, "path": path}, "overwrite" if overwrite else "append")
    storage = open_storage(path)
    reader = columns_of(df.sparkSession) if native else None
    data = schemas.from_spark(df.schema)
    snapshot = newest_snapshot(storage)
    assert snapshot is not None
    # As `plan_write`, but types that schema enforcement refuses get here: rows may change theirs under way.
    state = replace(snapshot.table_state, table="t")
    rows = plan_rows(data, state, timezone=zone, columns_of=reader)
    overwrite_scope = plan_overwrite(intent, state, zone)
    files = write_spec(state)
    return WritePlan(
        storage,
        state,
        intent,
        False,
        False,
        overwrite_scope.guard(rows),
        files,
        overwrite_scope,
    )


def by_spark(df: DataFrame, path: str, zone: str = "UTC", **options: str) -> pa.Table:
    frame = stored_rows(df, plan(df, path, native=True, zone=zone, **options))
    try:
        return frame.toArrow()
    except Exception as error:
        found = as_delta_error(error)
        if found is None or found is error:
            raise
        raise found from error


def by_arrow(df: DataFrame, path: str, zone: str = "UTC", **options: str) -> pa.Table:
    pipeline = RowPipeline(plan(df, path, native=False, zone=zone, **options).rows)
    # Of what is NOT NULL inside structs, toArrow() makes arrays that pyarrow refuses.
    casts = Caster(Jvm.of(df.sparkSession))
    types = schemas.from_spark(df.schema)
    nullable = [casts.cast(F.col(quoted(f.name)), f.type).alias(f.name) for f in types]
    rows = df.select(*nullable).toArrow()
    return pa.Table.from_batches([pipeline.process(batch) for batch in rows.to_batches()])


Outcome = tuple[str, Any, Any]


def outcome(make: Callable[[], pa.Table]) -> Outcome:
    try:
        rows = make()
    except DeltaError as error:
        return type(error).__name__, (error.condition, error.text), error.parameters
    return "rows", rows.column_names, rows.to_pylist()


def assert_alike(df: DataFrame, path: str, zone: str = "UTC", **options: str) -> Outcome:
    expected = outcome(lambda: by_arrow(df, path, zone, **options))
    found = outcome(lambda: by_spark(df, path, zone, **options))
    assert repr(found) == repr(expected)
    return found


@dataclass(frozen=True)
class Case:
    name: str
    fields: Sequence[dict[str, Any]]
    rows: str  # SQL
    properties: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    ends: str = "rows"  # or the condition of the error


def check(text: str, name: str = "c") -> dict[str, str]:
    return {f"delta.constraints.{name}": text}


INT, TEXT = column("i", "integer"), column("s", "string")
NESTED = column(
    "n", struct(column("X", "long"), column("y", struct(column("z", "string"), column("w", "date"))))
)
VIOLATED = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
OVERFLOW = "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
NO_NULL = "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
TOO_LONG = "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
UNSUPPORTED_CHECK = "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT"
UNRESOLVED = "UNRESOLVED_COLUMN.WITH_SUGGESTION"

CASES = [
    # --- columns
    Case("same columns", [INT, TEXT], "select 1 i, 'a' s"),
    Case("other order and case", [INT, TEXT], "select 'a' S, 1 I union all select null, null"),
    Case("missing column is null", [INT, TEXT], "select 1 i"),
    Case("void column is null", [INT, TEXT], "select 1 i, null s"),
    Case(
        "names with dots, backticks, spaces",
        [column("a.b", "long"), column("c`d", "string"), column("e f", struct(column("g.h", "long")))],
        "select 1 `A.B`, 'x' `c``d`, named_struct('g.h', 2) `e f`",
        check("`a.b` > 0 and `e f`.`g.h` = 2 and length(`c``d`) = 1"),
    ),
    Case(
        "dotted names in a violation",
        [column("a.b", "long")],
        "select -1L `a.b`",
        check("`A.B` > 0"),
        ends=VIOLATED,
    ),
    Case("column named like ours", [column("given 0", "byte")], "select 300 `given 0`", ends=OVERFLOW),
    # --- casts
    Case(
        "numbers widened and narrowed",
        [
            column("a", "long"),
            column("b", "byte"),
            column("c", "decimal(10,2)"),
            column("d", "float"),
            column("e", "short"),
            column("f", "double"),
            column("g", "integer"),
        ],
        "select 1Y a, 127L b, 1.005D c, 1e300D d, cast(12.9 as double) e, 16777217 f, 5.5BD g "
        "union all select null, null, null, null, null, null, null",
    ),  # fmt: skip
    Case("int too large", [column("b", "byte")], "select 1 b union all select 300", ends=OVERFLOW),
    Case("double too large", [column("b", "integer")], "select 3e9D b", ends=OVERFLOW),
    Case("nan to int", [column("b", "integer")], "select double('NaN') b", ends=OVERFLOW),
    Case("nan to decimal", [column("b", "decimal(5,1)")], "select double('NaN') b", ends=OVERFLOW),
    Case("decimal too large", [column("b", "decimal(3,1)")], "select 99.96BD b", ends=OVERFLOW),
    Case("decimal to long", [column("b", "long")], "select 99999999999999999999BD b", ends=OVERFLOW),
    Case("long to decimal", [column("b", "decimal(5,2)")], "select 1000L b", ends=OVERFLOW),
    Case(
        "two overflows in a row",
        [column("a", "byte"), column("b", "byte")],
        "select 300 b, 400 a",
        ends=OVERFLOW,
    ),
    Case(
        "overflow before a check",
        [column("a", "integer"), column("b", "byte")],
        "select -1 a, 300 b",
        check("a > 0"),
        ends=OVERFLOW,
    ),  # fmt: skip
    Case(
        "values to text",
        [column(n, "string") for n in "abcdefgh"],
        "select 1.50BD a, 1e7D b, float(0.1) c, true d, date'1600-02-29' e, timestamp'2024-01-31 12:00:00.5' f, "
        "timestamp_ntz'2024-01-31 12:00:00' g, 5Y h",
    ),
    Case(
        "dates and timestamps",
        [column("a", "date"), column("b", "timestamp"), column("c", "timestamp"), column("d", "date")],
        "select timestamp'2024-01-31 23:00:00' a, date'2024-01-31' b, timestamp'2024-07-01 00:00:00' c, null d",
    ),
    Case(
        "nested cast and missing",
        [NESTED],
        "select named_struct('x', 1Y, 'Y', named_struct('w', date'2024-01-01')) n "
        "union all select null union all select named_struct('x', null, 'Y', null)",
    ),  # fmt: skip
    Case(
        "nested renamed only",
        [NESTED],
        "select named_struct('x', 1L, 'Y', named_struct('Z', 'a', 'W', date'2024-01-01')) n union all select null",
    ),  # fmt: skip
    Case(
        "nested overflow",
        [column("n", struct(column("a", array(struct(column("b", "byte"))))))],
        "select named_struct('a', array(named_struct('b', 1), named_struct('b', 1000))) n",
        ends=OVERFLOW,
    ),  # fmt: skip
    Case(
        "arrays and maps",
        [
            column("a", array(struct(column("x", "long"), column("y", "string")))),
            column("m", mapping("string", "double")),
            column("k", mapping("long", struct(column("p", "integer"), column("q", "integer")))),
            column("e", array("short")),
        ],
        "select array(named_struct('X', 1), null, named_struct('X', null)) a, map('k', 1, 'l', null) m, "
        "map(1, named_struct('Q', 2S)) k, array(1, null) e union all select null, null, null, null "
        "union all select array(), map(), map(), array()",
    ),  # fmt: skip
    Case("array overflow", [column("a", array("byte"))], "select array(1, 1000) a", ends=OVERFLOW),
    Case(
        "map key overflow", [column("a", mapping("byte", "string"))], "select map(1000, 'x') a", ends=OVERFLOW
    ),
    Case(
        "map value overflow",
        [column("a", mapping("string", "byte"))],
        "select map('x', 1000) a",
        ends=OVERFLOW,
    ),
    # --- NOT NULL and invariants
    Case(
        "null in a NOT NULL column",
        [column("i", "integer", False), TEXT],
        "select 1 i, 'a' s union all select null, 'b'",
        ends=NO_NULL,
    ),  # fmt: skip
    Case("not nullable input", [column("id", "long", False)], "select id from range(3)"),
    Case(
        "missing NOT NULL column",
        [column("i", "integer", False), TEXT],
        "select 'a' s",
        ends="DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
    ),  # fmt: skip
    Case(
        "nested NOT NULL of a null struct",
        [column("n", struct(column("x", "integer", False)))],
        "select named_struct('x', 1) n union all select null",
        ends=NO_NULL,
    ),  # fmt: skip
    Case(
        "nested NOT NULL",
        [column("n", struct(column("x", "integer", False), column("y", "integer")))],
        "select named_struct('x', cast(null as int)) n",
        ends=NO_NULL,
    ),  # fmt: skip
    Case(
        "invariant",
        [column("i", "integer", invariant='{"expression":{"expression":"i > 3"}}')],
        "select 4 i union all select 3",
        ends=VIOLATED,
    ),  # fmt: skip
    # --- CHECK constraints
    Case("constraint met", [INT, TEXT], "select 1 i, 'a' s", check("I > 0 AND s IN ('a', 'b')")),
    Case("constraint broken", [INT, TEXT], "select 0 i, 'a' s", check("I > 0 OR S = 'b'"), ends=VIOLATED),
    Case("constraint is null", [INT, TEXT], "select null i, 'a' s", check("i > 0"), ends=VIOLATED),
    Case("constraint without columns", [INT], "select 1 i", check("1 = 2"), ends=VIOLATED),
    Case("constraint null literal", [INT], "select 1 i", check("NULL"), ends=VIOLATED),
    Case(
        "first of two constraints",
        [INT],
        "select -1 i",
        {**check("i > 5", "b"), **check("i > 0", "a")},
        ends=VIOLATED,
    ),
    Case(
        "second of two constraints",
        [INT],
        "select 3 i",
        {**check("i > 5", "b"), **check("i > 0", "a")},
        ends=VIOLATED,
    ),
    Case(
        "constraint before NOT NULL",
        [column("i", "integer", False), TEXT],
        "select cast(null as int) i, 'x' s",
        check("s = 'y'"),
        ends=VIOLATED,
    ),  # fmt: skip
    Case(
        "values of every type in a message",
        [
            column("a", "boolean"),
            column("b", "double"),
            column("c", "decimal(10,3)"),
            column("d", "date"),
            column("e", "timestamp"),
            column("f", "string"),
            column("g", "binary"),
            column("h", "timestamp_ntz"),
            column("j", "float"),
            NESTED,
        ],
        "select true a, 1e10D b, 1.5BD c, date'2024-02-29' d, timestamp'2024-01-01 00:00:00.25' e, "
        "'quote \" brace {0} ${x} <y> back\\\\slash \\n line \\u00e9 [USER_RAISED_EXCEPTION] pydelta-violation:{' f, "
        "X'4142' g, timestamp_ntz'2024-01-01 00:00:00' h, float(1.1) j, "
        "named_struct('x', 7, 'y', named_struct('z', 'deep')) n",
        check(
            "not a or b < 0 and c < 0 and d < e and f = '' and g = X'00' and h < e and j < 0 and n.x < 0 and N.Y.Z = ''"
        ),
        ends=VIOLATED,
    ),  # fmt: skip
    Case(
        "arrays in a message",
        [column("a", array("integer"))],
        "select array(1, null, 3) a",
        check("size(a) < 3"),
        ends=VIOLATED,
    ),  # fmt: skip
    Case(
        "nested values in a message",
        [
            column(
                "n",
                struct(
                    column("a", array("string")),
                    column("m", mapping("integer", "double")),
                    column("d", "date"),
                    column("t", "timestamp"),
                    column("u", "timestamp_ntz"),
                    column("b", "binary"),
                    column("p", "decimal(9,3)"),
                    column("f", "float"),
                    column("k", "boolean"),
                ),
            )
        ],
        "select named_struct('a', array('x', null, 'it''s'), 'm', map(1, double('NaN'), 2, 1e-7D), "
        "'d', date'2024-01-31', 't', timestamp'2024-01-31 12:00:00.000001', 'u', timestamp_ntz'2024-01-31 12:00:00.5', "
        "'b', X'00FF', "
        "'p', 1.5BD, 'f', float(0.1), 'k', true) n",
        check("n is null"),
        ends=VIOLATED,
    ),  # fmt: skip
    Case("ambiguous precedence", [INT, TEXT], "select 1 i, null s", check("i = 1 or s = 'x' and i = 2")),
    Case("no predicate", [INT], "select 1 i", check("i + 1"), ends="DELTA_INVALID_PREDICATE"),
    Case(
        "aggregate",
        [INT],
        "select 1 i",
        check("sum(i) > 0"),
        ends="DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT",
    ),
    Case(
        "random",
        [INT],
        "select 1 i",
        check("rand() < 2"),
        ends="DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT",
    ),
    Case("no SQL", [INT], "select 1 i", check("i >"), ends="DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT"),
    # --- char and varchar
    Case(
        "texts that fit",
        [column("s", "string", declared="varchar(3)")],
        "select 'äöü' s union all select null",
    ),
    Case(
        "text too long",
        [column("s", "string", declared="varchar(3)")],
        "select 'a' s union all select 'äöü ' s",
        ends=TOO_LONG,
    ),  # fmt: skip
    Case("char too long", [column("s", "string", declared="char(2)")], "select 'abc' s", ends=TOO_LONG),
    Case(
        "nested text too long",
        [
            column(
                "n",
                struct(column("a", array("string")), column("m", mapping("string", "string"))),
                declared="struct<a:array<varchar(2)>,m:map<varchar(3),char(4)>>",
            )
        ],
        "select named_struct('a', array('x', null, 'zzz', 'aaaaa'), 'm', map('abc', 'abcde')) n",
        ends=TOO_LONG,
    ),  # fmt: skip
    Case(
        "nested texts that fit",
        [
            column(
                "n",
                struct(column("a", array("string")), column("m", mapping("string", "string"))),
                declared="struct<a:array<varchar(2)>,m:map<varchar(3),char(4)>>",
            )
        ],
        "select named_struct('a', array('x', null), 'm', map('abc', 'abcd')) n union all select null",
    ),  # fmt: skip
    # --- defaults and generated columns
    Case(
        "defaults",
        [
            INT,
            column("d", "long", default="40 + 2"),
            column("s", "string", default="upper('x')"),
            column("t", "date", default="date'2024-01-01'"),
            column("u", "integer", default="null"),
        ],
        "select 1 i",
    ),  # fmt: skip
    Case("default is not taken for nulls", [INT, column("d", "long", default="42")], "select 1 i, null d"),
    Case(
        "default names a column",
        [INT, column("d", "integer", default="i")],
        "select 1 i",
        ends="UNRESOLVED_COLUMN.WITH_SUGGESTION",
    ),
    Case("default too large", [INT, column("d", "byte", default="1000")], "select 1 i", ends="CAST_OVERFLOW"),
    Case(
        "generated from generated and default",
        [
            column("a", "long", generated="B + 1"),
            column("b", "long", generated="c * 2"),
            column("c", "integer", default="20"),
            column("day", "date", generated="cast(ts as date)"),
            column("ts", "timestamp"),
        ],
        "select timestamp'2024-01-31 23:30:00' ts union all select null",
    ),  # fmt: skip
    Case(
        "generated from itself",
        [INT, column("g", "integer", generated="g + 1")],
        "select 1 i",
        ends="DELTA_INVALID_GENERATED_COLUMN_REFERENCES",
    ),  # fmt: skip
    Case(
        "generated given",
        [INT, column("g", "long", generated="i * 2")],
        "select 1 i, 2 g union all select null, null",
    ),
    Case(
        "generated given wrong",
        [INT, column("g", "long", generated="i * 2")],
        "select 1 i, 3 g",
        ends=VIOLATED,
    ),
    Case(
        "generated given, loose operator",
        [INT, column("g", "boolean", generated="i = 1 or i = 2")],
        "select 1 i, true g union all select 3, false",
    ),  # fmt: skip
    Case(
        "generated given, source missing",
        [INT, TEXT, column("g", "string", generated="s")],
        "select 1 i, 'x' g",
        ends=VIOLATED,
    ),  # fmt: skip
    Case(
        "generated reads what is not there",
        [INT, TEXT, column("g", "string", generated="concat(s, 'x')")],
        "select 1 i",
        ends=UNRESOLVED,
    ),  # fmt: skip
    Case(
        "constraint on a generated column",
        [INT, column("g", "long", generated="i * 2")],
        "select 1 i",
        check("g > 2"),
        ends=VIOLATED,
    ),  # fmt: skip
    # --- replaceWhere
    Case("replaceWhere met", [INT, TEXT], "select 1 i, 'a' s", options={"replaceWhere": "i = 1"}),
    Case(
        "replaceWhere of a time met",
        [column("ts", "timestamp")],
        "select timestamp'2020-01-01 00:00:00' ts",
        options={"replaceWhere": "ts < current_timestamp() and cast(ts as date) < current_date()"},
    ),
    Case(
        "replaceWhere broken",
        [INT, TEXT],
        "select 1 i, 'a' s union all select 2, 'b'",
        options={"replaceWhere": "I = 1"},
        ends="DELTA_REPLACE_WHERE_MISMATCH",
    ),  # fmt: skip
]


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name.replace(" ", "_"))
def test_case_gives_the_same_rows_or_error_as_the_arrow_path(
    spark: SparkSession, tmp_path: Path, case: Case
) -> None:
    path = make_table(tmp_path / "t", case.fields, case.properties)
    kind, what, _ = assert_alike(spark.sql(case.rows).coalesce(1), path, **case.options)
    assert (kind if kind == "rows" else what[0]) == case.ends


# --- what only Spark evaluates

FOREIGN = [
    ("exists(a, X -> x > i)", VIOLATED),
    ("aggregate(a, 0, (x, y) -> x + y) > 3", VIOLATED),
    ("map_from_arrays(array('k'), array(i))['k'] = 2", VIOLATED),
    ("forall(a, x -> x between i and 10)", "rows"),
    ("get_json_object(concat('{\"v\":', i, '}'), '$.v') = '1'", "rows"),
    ("exists(a, x -> x)", UNSUPPORTED_CHECK),
    ("transform(a, x -> x)", "DELTA_INVALID_PREDICATE"),
    ("exists(a, x -> x > rand())", UNSUPPORTED_CHECK),
    ("i in (select 1)", UNSUPPORTED_CHECK),
    ("sum(i) over () > 0", UNSUPPORTED_CHECK),
    ("explode(a) > 0", UNSUPPORTED_CHECK),
    ("my_session_function(a)", UNSUPPORTED_CHECK),
    ("exists(a, x -> )", UNSUPPORTED_CHECK),
]


@pytest.mark.parametrize(("text", "ends"), FOREIGN)
def test_constraint_outside_the_kernels_grammar_is_evaluated_by_spark(
    spark: SparkSession, tmp_path: Path, text: str, ends: str
) -> None:
    path = make_table(tmp_path / "t", [INT, column("a", array("integer"))], check(text))
    kind, what, parameters = outcome(lambda: by_spark(spark.sql("select 1 i, array(1) a"), path))
    assert (kind if kind == "rows" else what[0]) == ends
    if ends == VIOLATED:
        assert parameters["values"]["a" if "a," in text else "i"] in ("[1]", "1")
        assert what[1].startswith(f"CHECK constraint c ({text}) violated by row with values:\n")


@pytest.mark.parametrize("text", ["j > 0", "exists(a, x -> x > j)"])
def test_constraint_on_a_column_that_is_gone_is_left_to_the_plain_path(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    path = make_table(tmp_path / "t", [INT, column("a", array("integer"))], check(text))
    with pytest.raises(NotNative, match="columns that the table does not have"):
        by_spark(spark.sql("select 1 i, array(1) a"), path)


def test_foreign_generated_columns_and_defaults_are_computed_in_order(
    spark: SparkSession, tmp_path: Path
) -> None:
    fields = [
        column("last", "integer", generated="element_at(filter(doubled, x -> x is not null), -1)"),
        column("doubled", array("integer"), generated="transform(a, x -> 2 * x)"),
        column("a", array("integer"), default="array_repeat(7, 2)"),
        INT,
    ]
    path = make_table(tmp_path / "t", fields, {})
    found = by_spark(spark.sql("select 1 i"), path).to_pylist()
    assert found == [{"last": 14, "doubled": [14, 14], "a": [7, 7], "i": 1}]
    given = by_spark(spark.sql("select 1 i, array(1) a, array(2) doubled"), path).to_pylist()
    assert given == [{"last": 2, "doubled": [2], "a": [1], "i": 1}]
    wrong = outcome(lambda: by_spark(spark.sql("select 1 i, array(1) a, array(3) doubled"), path))
    assert wrong[1][0] == VIOLATED


def test_plain_path_still_refuses_what_the_kernel_cannot_evaluate(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = make_table(tmp_path / "t", [INT], check("aggregate(array(i), 0, (x, y) -> x + y) > 3"))
    with pytest.raises(UnsupportedFeatureError):
        by_arrow(spark.sql("select 1 i"), path)


def test_whole_plan_takes_what_only_spark_evaluates(spark: SparkSession, tmp_path: Path) -> None:
    fields = [INT, column("g", array("integer"), generated="array_sort(array(i + 1))")]
    path = make_table(tmp_path / "t", fields, check("array_max(array_sort(g)) > 1"))
    df = spark.sql("select 1 i union all select 2").coalesce(1)
    data, target = schemas.from_spark(df.schema), find_target(batch_intent({"path": path}, "append"))
    with pytest.raises(UnsupportedFeatureError):
        plan_write(target, data)
    planned = plan_write(target, data, columns_of=columns_of(spark))
    assert stored_rows(df, planned).toArrow().to_pylist() == [{"i": 1, "g": [2]}, {"i": 2, "g": [3]}]
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever Spark wraps around it
        stored_rows(spark.sql("select 0 i"), planned).collect()
    found = as_delta_error(caught.value)
    assert found is not None
    assert found.parameters["values"] == {"g": "[1]"}


# --- the user's session and DataFrame


@pytest.fixture
def hostile(spark: SparkSession) -> SparkSession:
    """A session in which names and settings say something else."""
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.conf.set("spark.sql.caseSensitive", "true")
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    session.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    session.conf.set("spark.sql.storeAssignmentPolicy", "LEGACY")
    session.udf.register("length", lambda text: 0, "int")
    session.sql("declare variable zone string default 'x'")
    session.range(1).createOrReplaceTempView("i")
    return session


@pytest.mark.parametrize(
    "name",
    [
        "int too large",
        "double too large",
        "array overflow",
        "names with dots, backticks, spaces",
        "constraint broken",
        "values to text",
        "generated from generated and default",
        "generated given",
        "replaceWhere broken",
    ],
)
def test_hostile_session_changes_nothing(
    spark: SparkSession, hostile: SparkSession, tmp_path: Path, name: str
) -> None:
    case = next(c for c in CASES if c.name == name)
    path = make_table(tmp_path / "t", case.fields, case.properties)
    zone = "America/New_York"
    data = spark.sql(case.rows).coalesce(1)
    # The same rows in a session that would evaluate everything else differently.
    jvm = Jvm.of(hostile)
    same = jvm.data_frame(jvm.logical_plan(data))
    expected = outcome(lambda: by_arrow(data, path, zone, **case.options))
    found = outcome(lambda: by_spark(same, path, zone, **case.options))
    assert repr(found) == repr(expected)
    assert (found[0] if found[0] == "rows" else found[1][0]) == case.ends


def test_division_by_zero_in_a_generated_column_fails_without_ansi(
    hostile: SparkSession, tmp_path: Path
) -> None:
    path = make_table(tmp_path / "t", [INT, column("g", "integer", generated="10 div i")], {})
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        by_spark(hostile.sql("select 0 i"), path)


def test_ambiguous_and_duplicate_names_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", [INT, TEXT], check("i > 0"))
    left = spark.sql("select 1 i, 'a' s").alias("t")
    joined = left.join(left.alias("u"), F.col("t.i") == F.col("u.i")).select("t.i", "u.s")
    assert by_spark(joined, path).to_pylist() == [{"i": 1, "s": "a"}]
    twice = spark.sql("select 1 i, 'a' s, 2 I")
    with pytest.raises(SchemaError, match="twice"):
        by_spark(twice, path)
    with pytest.raises(SchemaError, match="does not have"):
        by_spark(spark.sql("select 1 i, 2 j"), path)


def test_violation_is_found_in_a_failed_parquet_write_too(spark: SparkSession, tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", [column("id", "long", False), column("s", "string")], check("ID < 900"))
    df = spark.range(0, 1000, 1, 3).selectExpr("id", "uuid() s")
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever Spark wraps around it
        stored_rows(df, plan(df, path, native=True)).write.partitionBy("s").parquet(str(tmp_path / "out"))
    found = as_delta_error(caught.value)
    assert isinstance(found, InvariantViolationError)
    assert found.parameters["values"] == {"id": "900"}


def test_stored_rows_have_the_tables_types_and_no_metadata(spark: SparkSession, tmp_path: Path) -> None:
    path = make_table(
        tmp_path / "t", [column("A", "long"), NESTED, column("s", "string", declared="varchar(9)")], {}
    )
    df = spark.sql("select 'x' s, 1 a, named_struct('y', named_struct('z', 'q'), 'x', 3L) N")
    df = df.withColumn("s", F.col("s").alias("s", metadata={"EXISTS_DEFAULT": "'no'"}))
    found = stored_rows(df, plan(df, path, native=True)).schema
    assert found.simpleString() == "struct<A:bigint,n:struct<X:bigint,y:struct<z:string,w:date>>,s:string>"
    assert all(not f.metadata for f in found)


def test_current_time_is_the_same_in_all_columns(spark: SparkSession, tmp_path: Path) -> None:
    fields = [column("t", "timestamp", default="current_timestamp()"), INT,
              column("u", "timestamp", generated="t"), column("d", "date", default="current_date()")]  # fmt: skip
    path = make_table(tmp_path / "t", fields, {})
    rows = by_spark(spark.range(0, 100, 1, 4).selectExpr("cast(id as int) i"), path).to_pylist()
    assert len({row["t"] for row in rows} | {row["u"] for row in rows}) == 1
    assert rows[0]["d"] is not None


def test_identity_columns_are_left_to_the_portable_path(spark: SparkSession, tmp_path: Path) -> None:
    identity = {"delta.identity.start": 1, "delta.identity.step": 1}
    path = make_table(tmp_path / "t", [INT, column("k", "long", **identity)], {})
    df = spark.sql("select 1 i")
    with pytest.raises(NotNative, match="identity"):
        stored_rows(df, plan(df, path, native=True))


@pytest.mark.parametrize("text", [
    "boom", "[USER_RAISED_EXCEPTION] pydelta-violation:{", "[USER_RAISED_EXCEPTION] pydelta-violation:{}",
    'raise_error(pydelta-violation:{"text": ["a", "b"], "condition": "c", "parameters": {}, "names": [], "types": []})',
])  # fmt: skip
def test_error_of_something_else_is_not_ours(text: str) -> None:
    assert as_delta_error(RuntimeError(text)) is None


@pytest.mark.parametrize("name", ["constraint broken", "text too long", "nested renamed only", "defaults",
                                  "arrays in a message"])  # fmt: skip
def test_data_source_does_the_same(spark: SparkSession, tmp_path: Path, name: str) -> None:
    case = next(c for c in CASES if c.name == name)
    path = make_table(tmp_path / "t", case.fields, case.properties)
    df = spark.sql(case.rows).coalesce(1)
    found = outcome(lambda: by_spark(df, path))
    writer: Any = df._jdf.write()  # past whatever is patched into df.write
    try:
        writer.format("pydelta").mode("append").save(path)
    except Exception as error:
        assert found[1][0] == case.ends
        assert f"[{found[1][0]}] {found[1][1].split(' type=')[0]}".replace("of t ", f"of {path} ") in str(
            error
        )
    else:
        assert spark.read.format("pydelta").load(path).toArrow().to_pylist() == found[2]


@pytest.mark.parametrize(
    "text", ["it's", "a\\b\\n\\u0041", "${spark.app.name}", '$1 \n\t é 😀 `b` "c" % _ {} --']
)
def test_errors_in_sql_keep_every_letter(spark: SparkSession, text: str) -> None:
    wanted = InvariantViolationError(f'{text} "" {text}', condition="C", parameters={"value": "", "x": text})
    value = "concat(" + ", ".join(f"char({ord(letter)})" for letter in "it's \\") + ")"
    with pytest.raises(Exception, match=r"\[C\]|pydelta-violation") as raised:
        spark.sql(f"SELECT {error_sql(wanted, {'x': value})}").collect()
    found = as_delta_error(raised.value)
    assert found is not None
    assert found.text == f'{text} "it\'s \\" {text}'
    assert found.parameters == {"value": "it's \\", "x": text}
    with pytest.raises(Exception, match=r"\[C\]|pydelta-violation") as raised:
        spark.sql(f"SELECT {error_sql(wanted)}").collect()
    plain = as_delta_error(raised.value)
    assert plain is not None
    assert plain.text == wanted.text


def test_many_rules_are_told_in_the_order_of_the_arrow_path(spark: SparkSession, tmp_path: Path) -> None:
    fields = [column(f"c{n}", "string" if n % 3 else "long", n % 2 == 0) for n in range(30)]
    for n in (4, 10, 20):
        fields[n]["metadata"]["__CHAR_VARCHAR_TYPE_STRING"] = "varchar(3)"
    path = make_table(tmp_path / "t", fields, {"delta.constraints.few": "c0 < 5"})
    kinds = ["STRING" if n % 3 else "BIGINT" for n in range(30)]
    sound = [f"CAST('1' AS {kind}) AS c{n}" for n, kind in enumerate(kinds)]
    assert_alike(spark.sql("SELECT " + ", ".join(sound)), path)
    for broken in (
        {0: "7"},
        {1: "NULL"},
        {4: "'long'"},
        {20: "'long'", 29: "NULL"},
        {0: "7", 1: "NULL", 4: "'long'"},
    ):
        row = [f"CAST({broken.get(n, repr('1'))} AS {kind}) AS c{n}" for n, kind in enumerate(kinds)]
        assert_alike(spark.sql("SELECT " + ", ".join(row)), path)
