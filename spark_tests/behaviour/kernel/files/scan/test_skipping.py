"""Pruning: which files each kind of predicate drops, and that doubt keeps a file."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from delta_ds.kernel.files.scan.skipping import Pruning, prune
from delta_ds.kernel.format.expressions.tree import Call, Cast, Column, Expression, Literal
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    StructField,
    StructType,
)  # fmt: skip
from spark_tests.behaviour.kernel.files.scan.tables import MemoryFiles, kept, struct

UTC = dt.timezone.utc
Partitions = Sequence[Mapping[str, str | None]]
SCHEMA = struct(
    ("id", LONG), ("i", INTEGER), ("d", DOUBLE), ("s", STRING), ("ts", TIMESTAMP),
    ("dec", DecimalType(10, 2)), ("b", BOOLEAN), ("bin", BINARY), ("arr", ArrayType(LONG)), ("void", VOID),
    ("st", struct(("x", LONG))),
    ("p", INTEGER), ("q", STRING), ("day", DATE), ("pts", TIMESTAMP),
)  # fmt: skip
PARTITIONS = ["p", "q", "day", "pts"]


def column(*path: str) -> Column:
    kind: Any = SCHEMA
    for name in path:
        kind = kind.find(name).type
    return Column(path, kind)


def compare(operator: str, name: str | tuple[str, ...], value: Any) -> Call:
    left = column(*((name,) if isinstance(name, str) else name))
    return Call(operator, (left, Literal(value, left.type)), BOOLEAN)


def call(name: str, *args: Expression) -> Call:
    return Call(name, args, BOOLEAN)


def statistics(column_: str, low: Any, high: Any, nulls: int | None = 0, records: int | None = 10) -> str:
    out: dict[str, Any] = {"minValues": {column_: low}, "maxValues": {column_: high}}
    if records is not None:
        out["numRecords"] = records
    if nulls is not None:
        out["nullCount"] = {column_: nulls}
    return json.dumps(out)


def run(
    predicate: Expression | None,
    stats: Sequence[str | None],
    partitions: Partitions | None = None,
    *,
    schema: StructType = SCHEMA,
    timezone: str | None = "UTC",
) -> Pruning:
    return prune(
        MemoryFiles(stats, partitions),  # type: ignore[arg-type]
        predicate, schema=schema, partition_columns=PARTITIONS, mapping_mode="none", timezone=timezone,
    )  # fmt: skip


IDS = [
    statistics("id", 1, 5),
    statistics("id", 5, 5),
    statistics("id", 6, 9, nulls=2),
    statistics("id", None, None, nulls=10),
    None,
]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (None, [0, 1, 2, 3, 4]),
        (compare("=", "id", 5), [0, 1, 4]),
        (compare("=", "id", None), []),
        (compare("<=>", "id", 5), [0, 1, 4]),
        (compare("<=>", "id", None), [2, 3, 4]),
        (compare("<>", "id", 5), [0, 2, 4]),
        (compare("<", "id", 5), [0, 4]),
        (compare("<=", "id", 5), [0, 1, 4]),
        (compare(">", "id", 5), [2, 4]),
        (compare(">=", "id", 6), [2, 4]),
        (call("<", Literal(5, LONG), column("id")), [2, 4]),
        (call("not", compare("=", "id", 5)), [0, 2, 4]),
        (call("not", compare("<=>", "id", 5)), [0, 2, 3, 4]),
        (call("not", call("or", compare("<", "id", 5), compare(">", "id", 5))), [0, 1, 4]),
        (call("isnull", column("id")), [2, 3, 4]),
        (call("isnotnull", column("id")), [0, 1, 2, 4]),
        (call("not", call("isnull", column("id"))), [0, 1, 2, 4]),
        (call("in", column("id"), Literal(0, LONG), Literal(9, LONG), Literal(None, LONG)), [2, 4]),
        (call("not", call("in", column("id"), Literal(5, LONG))), [0, 2, 4]),
        (call("not", call("in", column("id"), Literal(0, LONG), Literal(None, LONG))), []),
        (call("or", compare("=", "id", 1), compare("=", "id", 9)), [0, 2, 4]),
        (call("or", compare("=", "id", 1), call("length", column("s"))), [0, 1, 2, 3, 4]),
        (call("and", compare("=", "id", 1), call("length", column("s"))), [0, 4]),
        (call("or", call("and", compare(">", "id", 7), compare("<", "id", 2)), Literal(False, BOOLEAN)), [4]),
        (Literal(True, BOOLEAN), [0, 1, 2, 3, 4]),
        (Literal(False, BOOLEAN), []),
        (Literal(None, BOOLEAN), []),
        (call("not", Literal(None, BOOLEAN)), []),
    ],
    ids=str,
)  # fmt: skip
def test_long_column(predicate: Expression | None, expected: list[int]) -> None:
    assert kept(run(predicate, IDS)) == expected


def test_long_in_list_is_as_sharp_as_its_gaps() -> None:
    items = [Literal(n, LONG) for n in range(0, 100_000, 10)]
    stats = [statistics("id", 5, 6), statistics("id", 19, 21), statistics("id", 200_000, 300_000)]
    assert kept(run(call("in", column("id"), *items), stats))[-1] == 1


def test_file_without_rows_is_dropped() -> None:
    pruning = run(call("length", column("s")), ['{"numRecords":0}', '{"numRecords":1}'])
    assert kept(pruning) == [1]
    assert pruning.reasons[0].rule == "numRecords = 0"


@pytest.mark.parametrize("text", [None, "", "{", "{}", '{"numRecords":5}', '{"minValues":{"id":null}}'])
def test_missing_statistics_keep_the_file(text: str | None) -> None:
    assert kept(run(compare("=", "id", 5), [text])) == [0]


def test_null_count_without_record_count_still_decides_not_null() -> None:
    assert kept(run(call("isnull", column("id")), [statistics("id", 1, 2, nulls=0, records=None)])) == []


def test_loose_null_count_decides_only_at_its_ends() -> None:
    def loose(nulls: int) -> str:
        return json.dumps({"numRecords": 10, "tightBounds": False, "nullCount": {"id": nulls}})

    stats = [loose(0), loose(5), loose(10)]
    assert kept(run(call("isnull", column("id")), stats)) == [1, 2]
    assert kept(run(call("isnotnull", column("id")), stats)) == [0, 1]


def test_nan_is_the_largest_double() -> None:
    bounds = [(1.0, "NaN"), (1.0, "Infinity"), ("NaN", "NaN")]
    stats = [_by_spark(statistics("d", low, high)) for low, high in bounds]
    assert kept(run(compare("=", "d", float("nan")), stats)) == [0, 2]
    assert kept(run(compare(">", "d", float("inf")), stats)) == [0, 2]
    assert kept(run(compare(">", "d", float("nan")), stats)) == []
    assert kept(run(compare("<", "d", float("nan")), stats)) == [0, 1]
    assert kept(run(compare("<>", "d", float("nan")), stats)) == [0, 1]


def _by_spark(text: str) -> str:
    """Statistics of a writer that counts NaN: no other says that bounds are tight."""
    return json.dumps(json.loads(text) | {"tightBounds": True})


def test_bounds_of_floats_may_leave_out_nan_unless_their_writer_is_known() -> None:
    stats = [text := statistics("d", 1.0, 2.0), _by_spark(text), statistics("d", 5.0, 6.0)]
    assert kept(run(compare(">", "d", 3.0), stats)) == [0, 2]
    assert kept(run(compare("<>", "d", float("nan")), stats)) == [0, 1, 2]
    # Where nothing but numbers can match, the bounds count.
    assert kept(run(compare("=", "d", 3.0), stats)) == []
    assert kept(run(call("in", column("d"), Literal(3.0, DOUBLE), Literal(4.0, DOUBLE)), stats)) == []
    between = call("and", compare(">=", "d", 3.0), compare("<", "d", 7.0))
    assert kept(run(between, stats)) == [2]
    either = call("or", compare("=", "d", 1.0), between)
    assert kept(run(either, stats)) == [0, 1, 2]
    assert kept(run(call("or", compare("=", "d", 3.0), compare("=", "d", 4.0)), stats)) == []


def test_wide_decimals_are_bounds_as_exact_as_their_digits_can_be() -> None:
    def skipped(bound: str, value: str) -> bool:
        schema = struct(("w", DecimalType(38, 18)))
        stats = f'{{"numRecords":1,"minValues":{{"w":{bound}}},"maxValues":{{"w":{bound}}},"nullCount":{{"w":0}}}}'
        equal = Call(
            "=",
            (Column(("w",), schema.fields[0].type), Literal(Decimal(value), DecimalType(38, 18))),
            BOOLEAN,
        )
        return not kept(
            prune(MemoryFiles([stats]), equal, schema=schema, partition_columns=[], mapping_mode="none")
        )

    # As delta-rs writes what delta-spark writes whole.
    assert not skipped("1.2345678901234568e+16", "12345678901234567.89")
    assert not skipped("9.999999999999998e+19", "99999999999999999999.999999999999999999")
    assert not skipped("-9.999999999999998e+19", "-99999999999999999999.999999999999999999")
    assert not skipped("1e+17", "100000000000000000.01")
    assert skipped("1.2345678901234568e+16", "12345678901234700")
    # More digits than a double has, or so few that a double keeps them, are the value.
    assert skipped("12345678901234567.890000000000000001", "12345678901234567.890000000000000002")
    assert skipped("0.000000000000000001", "0.000000000000000002")
    assert skipped("1E-18", "0.000000000000000002")


def test_negative_zero_equals_zero() -> None:
    zero = [_by_spark(statistics("d", 0.0, 0.0))]
    assert kept(run(compare("=", "d", -0.0), zero)) == [0]
    assert kept(run(compare("<>", "d", -0.0), zero)) == []


def test_strings_compare_by_utf8_bytes() -> None:
    # In UTF-16, as Java compares by default, U+1F600 would come before U+FFFD.
    assert kept(run(compare(">", "s", "\ufffd"), [statistics("s", "a", "\U0001f600")])) == [0]


def test_prefix_patterns_go_by_the_range_of_the_prefix() -> None:
    stats = [statistics("s", "aa", "ab"), statistics("s", "b", "c"), statistics("s", "abc", "abd")]

    def like(pattern: str, *escape: Literal) -> list[int]:
        return kept(run(call("like", column("s"), Literal(pattern, STRING), *escape), stats))

    assert like("ab%") == [0, 2]
    assert like("b_") == [1]
    assert like("ab") == [0]
    assert like("%b") == like("_b") == [0, 1, 2]
    assert like("a\\_%") == []
    assert like("ab#%", Literal("#", STRING)) == []
    assert kept(run(call("startswith", column("s"), Literal("abc", STRING)), stats)) == [2]
    assert kept(run(call("not", call("startswith", column("s"), Literal("ab", STRING))), stats)) == [0, 1]


def test_timestamp_maximum_reaches_to_the_end_of_its_millisecond() -> None:
    stats = [statistics("ts", "2024-01-01T00:00:00.123Z", "2024-01-01T00:00:00.123Z")]
    last = dt.datetime(2024, 1, 1, 0, 0, 0, 123999, UTC)
    assert kept(run(compare("=", "ts", last), stats)) == [0]
    assert kept(run(compare(">", "ts", last), stats)) == []


def test_decimals_compare_exactly() -> None:
    text = '{"numRecords":1,"minValues":{"dec":1.10},"maxValues":{"dec":1.10}}'
    assert kept(run(compare("=", "dec", Decimal("1.1")), [text])) == [0]
    assert kept(run(compare(">", "dec", Decimal("1.1")), [text])) == []


def test_decimals_without_a_common_type_decide_nothing() -> None:
    kind = DecimalType(60, 60)
    text = '{"numRecords":1,"minValues":{"dec":1.10},"maxValues":{"dec":1.10}}'
    schema = struct(("dec", DecimalType(38, 2)))
    predicate = call("=", Column(("dec",), DecimalType(38, 2)), Literal(Decimal("0.5"), kind))
    assert kept(run(predicate, [text], schema=schema)) == [0]


def test_table_without_files_has_nothing_to_keep() -> None:
    assert kept(run(call("and", compare("=", "id", 1), compare("=", "p", 1)), [], [])) == []


def test_nested_column_is_found_by_its_path() -> None:
    text = '{"numRecords":2,"minValues":{"st":{"x":1}},"maxValues":{"st":{"x":2}},"nullCount":{"st":{"x":1}}}'
    assert kept(run(compare("=", ("st", "x"), 3), [text])) == []
    assert kept(run(call("isnull", column("st", "x")), [text])) == [0]


@pytest.mark.parametrize("name", ["void", "st"])
def test_columns_without_statistics_of_their_own_keep_all(name: str) -> None:
    text = '{"numRecords":2,"nullCount":{"st":{"x":0}}}'
    assert kept(run(call("isnull", column(name)), [text])) == [0]


def test_array_and_binary_columns_go_by_null_count() -> None:
    text = '{"numRecords":2,"nullCount":{"arr":2,"bin":0}}'
    assert kept(run(call("isnotnull", column("arr")), [text])) == []
    assert kept(run(call("isnull", column("bin")), [text])) == []


def test_boolean_column_is_dropped_only_if_all_null() -> None:
    stats = ['{"numRecords":2,"nullCount":{"b":2}}', '{"numRecords":2,"nullCount":{"b":1}}']
    assert kept(run(column("b"), stats)) == [1]
    assert kept(run(call("not", column("b")), stats)) == [1]


@pytest.mark.parametrize(
    ("cast", "literal", "expected"),
    [
        (Cast(column("i"), LONG), Literal(7, LONG), []),
        (Cast(column("i"), DecimalType(12, 1)), Literal(Decimal("5.5"), DecimalType(12, 1)), []),
        (Cast(column("i"), DecimalType(12, 1)), Literal(Decimal("4.0"), DecimalType(12, 1)), [0]),
        (Cast(column("i"), DecimalType(3, 1)), Literal(Decimal("9.0"), DecimalType(3, 1)), [0]),
        (Cast(column("i"), DOUBLE), Literal(5.5, DOUBLE), []),
        (Cast(column("i"), STRING), Literal("9", STRING), [0]),
    ],
)
def test_cast_decides_only_if_it_keeps_the_order(cast: Cast, literal: Literal, expected: list[int]) -> None:
    assert kept(run(call("=", cast, literal), [statistics("i", 1, 5)])) == expected


def test_timestamp_before_1970_belongs_to_the_day_that_began_before_it() -> None:
    eve = "1969-12-31T23:00:00.000Z"
    day_of = Cast(column("ts"), DATE, timezone="UTC")
    for day, expected in ((dt.date(1969, 12, 31), [0]), (dt.date(1970, 1, 1), [])):
        assert kept(run(call("=", day_of, Literal(day, DATE)), [statistics("ts", eve, eve)])) == expected


def test_negated_pattern_with_more_than_a_prefix_keeps_the_file() -> None:
    pattern = call("like", column("s"), Literal("a%z", STRING))
    assert kept(run(call("not", pattern), [statistics("s", "aa", "ab")])) == [0]


def test_char_column_is_left_to_spark() -> None:
    char = StructField("s", STRING, True, {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"})
    schema = StructType((char,))
    text = statistics("s", "a", "b")
    assert kept(run(compare("=", "s", "z"), [text], schema=schema)) == [0]
    assert kept(run(call("isnull", column("s")), [text], schema=schema)) == []


def test_char_inside_a_column_is_compared_where_it_is_padded() -> None:
    inner = StructType((StructField("c", STRING), StructField("i", INTEGER)))
    char = StructField("st", inner, True, {"__CHAR_VARCHAR_TYPE_STRING": "struct<c:char(5),i:int>"})
    text = json.dumps({"numRecords": 1, "minValues": {"st": {"c": "ab"}}, "maxValues": {"st": {"c": "ab"}}})
    same = call("=", Column(("st", "c"), STRING), Literal("ab   ", STRING))
    assert kept(run(same, [text], schema=StructType((char,)))) == [0]


def test_collated_column_is_left_to_spark() -> None:
    schema = StructType((StructField("s", STRING, True, {"__COLLATIONS": {"s": "spark.UTF8_LCASE"}}),))
    assert kept(run(compare("=", "s", "A"), [statistics("s", "a", "b")], schema=schema)) == [0]


def test_double_column_that_was_float_has_room_for_rounding() -> None:
    widened = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    schema = StructType((StructField("d", DOUBLE, True, widened),))
    text = [statistics("d", 3.4, 3.4)]
    as_float = 3.4000000953674316
    assert kept(run(compare("=", "d", as_float), text, schema=schema)) == [0]
    assert kept(run(compare("=", "d", 3.4), text, schema=schema)) == [0]
    assert kept(run(compare("=", "d", as_float), text)) == []


def test_physical_names_are_used_under_column_mapping() -> None:
    physical = {"delta.columnMapping.physicalName": "col-1", "delta.columnMapping.id": 1}
    schema = StructType((replace(SCHEMA.fields[0], metadata=physical),))
    pruning = prune(
        MemoryFiles([statistics("col-1", 1, 2), statistics("id", 1, 2)]),  # type: ignore[arg-type]
        compare("=", "id", 3), schema=schema, partition_columns=[], mapping_mode="name", timezone="UTC",
    )  # fmt: skip
    assert kept(pruning) == [1]


PARTITION_FILES: Partitions = [
    {"p": "1", "q": "a"}, {"p": "2", "q": "a"}, {"p": None, "q": "b"}, {"p": "1", "q": None},
]  # fmt: skip


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (compare("=", "p", 1), [0, 3]),
        (call("isnull", column("p")), [2]),
        (call("not", compare("=", "p", 1)), [1]),
        (call("and", compare("=", "p", 1), compare("=", "q", "a")), [0]),
        (call("or", compare("=", "p", 2), compare("=", "q", "b")), [1, 2]),
        (call("or", compare("=", "p", 2), compare("=", "id", 1)), [0, 1]),
        (call("and", compare("=", "q", "a"), compare(">", "id", 1)), [1]),
        (call("=", Cast(column("p"), LONG), column("id")), [0, 1]),
    ],
    ids=str,
)
def test_partition_values_are_evaluated_exactly(predicate: Expression, expected: list[int]) -> None:
    stats = [statistics("id", n, n) for n in (1, 2, 3, 4)]
    assert kept(run(predicate, stats, PARTITION_FILES)) == expected


def test_statistics_are_read_only_for_files_left_by_partition_values() -> None:
    files = MemoryFiles([statistics("id", 1, 1)] * 4, PARTITION_FILES)
    predicate = call("and", compare("=", "p", 2), compare("=", "id", 1))
    prune(
        files,  # type: ignore[arg-type]
        predicate, schema=SCHEMA, partition_columns=PARTITIONS, mapping_mode="none", timezone="UTC",
    )  # fmt: skip
    assert files.asked_json == [1]


LOCAL: Partitions = [{"pts": "2024-01-02 00:00:00"}, {"pts": "2024-01-05 00:00:00"}, {"pts": None}]
NOON = dt.datetime(2024, 1, 2, 12, tzinfo=UTC)


def test_local_partition_timestamps_of_a_known_zone_decide_exactly() -> None:
    assert kept(run(compare("<", "pts", NOON), [None] * 3, LOCAL, timezone="UTC")) == [0]
    assert kept(run(compare(">", "pts", NOON), [None] * 3, LOCAL, timezone="UTC")) == [1]


def test_local_partition_timestamps_of_an_unknown_zone_have_a_day_of_slack() -> None:
    assert kept(run(compare(">", "pts", NOON), [None] * 3, LOCAL, timezone=None)) == [0, 1]
    assert kept(run(compare("<", "pts", NOON), [None] * 3, LOCAL, timezone=None)) == [0]
    assert kept(run(call("isnull", column("pts")), [None] * 3, LOCAL, timezone=None)) == [2]


def test_zoned_partition_timestamps_decide_in_an_unknown_zone() -> None:
    zoned: Partitions = [{"pts": "2024-01-02T00:00:00.000000Z"}, {"pts": "2024-01-05T00:00:00.000000Z"}]
    assert kept(run(compare(">", "pts", NOON), [None] * 2, zoned, timezone=None)) == [1]


def test_date_against_timestamp_in_an_unknown_zone_has_a_day_of_slack() -> None:
    days: Partitions = [{"day": f"2024-01-0{n}"} for n in range(1, 6)]
    third = Literal(dt.datetime(2024, 1, 3, tzinfo=UTC), TIMESTAMP)
    predicate = call("=", Cast(column("day"), TIMESTAMP, timezone="UTC"), third)
    assert kept(run(predicate, [None] * 5, days, timezone=None)) == [1, 2, 3]


def test_part_that_cannot_be_evaluated_does_not_disable_the_others() -> None:
    predicate = call("and", call("no_such_function", column("p")), compare("=", "p", 1))
    assert kept(run(predicate, [None] * 4, PARTITION_FILES)) == [0, 3]


def test_every_dropped_file_has_one_reason_in_order() -> None:
    predicate = call("and", compare(">", "id", 1), compare("=", "q", "a"))
    pruning = run(predicate, [statistics("id", n, n) for n in (1, 2, 3, 4)], PARTITION_FILES)
    assert [(r.rule, r.rows.to_pylist()) for r in pruning.reasons] == [
        ("(q = 'a'): partition values", [2, 3]),
        ("(id > 1L): min/max and null count", [0]),
    ]


def _literals(data_type: DataType, *values: Any) -> list[Literal]:
    return [Literal(value, data_type) for value in values]


def test_constants_of_neighbouring_types_compare_by_value() -> None:
    for literal in _literals(INTEGER, 7) + _literals(LONG, 7):
        assert kept(run(call("=", column("i"), literal), [statistics("i", 1, 5)])) == []
    for literal in _literals(FLOAT, 7.0) + _literals(DOUBLE, 7.0):
        assert kept(run(call("=", column("d"), literal), [statistics("d", 1.0, 5.0)])) == []


def test_operands_of_unlike_types_decide_nothing() -> None:
    assert kept(run(call("=", column("id"), Literal("7", STRING)), [statistics("id", 1, 5)])) == [0]


def test_hundred_thousand_files_are_pruned_in_far_less_than_a_second_each_step() -> None:
    stats = [statistics("id", n, n + 9) for n in range(100_000)]
    started = time.perf_counter()
    assert kept(run(compare("=", "id", 50_000), stats)) == list(range(49_991, 50_001))
    assert time.perf_counter() - started < 5


def test_pruning_imports_no_heavy_module() -> None:
    code = """
import sys
from delta_ds.kernel.format.expressions.arrays import array_of
from delta_ds.kernel.format.expressions.tree import Call, Column, Literal
from delta_ds.kernel.files.scan.skipping import prune
from delta_ds.kernel.format.schema.types import BOOLEAN, LONG, STRING, StructField, StructType
class Files:
    num_rows = 2
    def stats_texts(self, rows):
        text = '{"numRecords":1,"minValues":{"id":1},"maxValues":{"id":2},"nullCount":{"id":0}}'
        yield array_of([text, text], STRING)
    def stats_parsed(self, leaves, rows):
        return None
    def kept(self, names):
        return None
    def keep(self, columns):
        pass
predicate = Call("=", (Column(("id",), LONG), Literal(3, LONG)), BOOLEAN)
schema = StructType((StructField("id", LONG),))
assert len(prune(Files(), predicate, schema=schema, partition_columns=[], mapping_mode="none").rows) == 0
print([m for m in ("pandas", "sqlglot", "pyarrow.dataset", "pyarrow.acero", "fsspec") if m in sys.modules])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
