"""Functions, casts and arithmetic by example: what Spark 4 (ANSI mode) answers."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.coercion import arithmetic_type, exact_type
from delta_ds.kernel.format.expressions.evaluate import can_evaluate, constant, evaluate
from delta_ds.kernel.format.expressions.functions_time import formatter
from delta_ds.kernel.format.expressions.moments import micros_of
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.expressions.tree import Literal
from delta_ds.kernel.format.schema.types import (
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    arrow_schema,
    arrow_type,
)

NOTHING = StructType(())
UTC = datetime.timezone.utc


def value_of(sql: str, timezone: str = "UTC") -> Any:
    bound = bind(parse_predicate(sql), NOTHING, timezone, predicate=False)
    assert isinstance(bound, Literal), f"{sql} did not become a constant but {bound}"
    return bound.value


def type_of(sql: str) -> DataType | None:
    return bind(parse_predicate(sql), NOTHING, predicate=False).type


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("length('né😀')", 3),
        ("length(X'414243')", 3),
        ("octet_length('né')", 3),
        ("upper('straße')", "STRASSE"),
        ("lower('ÀB')", "àb"),
        ("trim('  a b ')", "a b"),
        ("trim(both 'x' from 'xxaxx')", "a"),
        ("ltrim('  a ')", "a "),
        ("rtrim('x', 'axx')", "a"),
        ("trim('\\ta')", "\ta"),
        ("substring('Spark SQL', 5)", "k SQL"),
        ("substring('Spark SQL', -3)", "SQL"),
        ("substring('Spark SQL', 5, 1)", "k"),
        ("substring('abc', 0, 2)", "ab"),
        ("substring('abc', -5, 3)", "a"),
        ("substring('abc', 2, -1)", ""),
        ("substring('abc' from 2 for 1)", "b"),
        ("left('abc', 2)", "ab"),
        ("right('abc', 2)", "bc"),
        ("right('abc', 0)", ""),
        ("concat('a', 1, true)", "a1true"),
        ("'a' || 'b' || 'c'", "abc"),
        ("concat('a', NULL)", None),
        ("concat_ws('-', 'a', NULL, 'b')", "a-b"),
        ("replace('ABCabc', 'abc', 'DEF')", "ABCDEF"),
        ("replace('aba', 'a')", "b"),
        ("translate('AaBbCc', 'abc', '123')", "A1B2C3"),
        ("instr('SparkSQL', 'SQL')", 6),
        ("locate('bar', 'foobarbar')", 4),
        ("locate('bar', 'foobarbar', 5)", 7),
        ("position('bar' in 'foobarbar')", 4),
        ("startswith('Spark', 'Sp')", True),
        ("endswith('Spark', 'rk')", True),
        ("contains('Spark', 'x')", False),
        ("reverse('abc')", "cba"),
        ("initcap('sPark sql')", "Spark Sql"),
        ("lpad('hi', 5, '??')", "???hi"),
        ("rpad('hi', 1, '??')", "h"),
        ("repeat('ab', 2)", "abab"),
        ("ascii('2')", 50),
        ("hex(17)", "11"),
        ("hex(-1)", "FFFFFFFFFFFFFFFF"),
        ("hex('Spark SQL')", "537061726B2053514C"),
        ("unhex('4142')", b"AB"),
        ("unhex('xy')", None),
        ("'Spark' LIKE '_park'", True),
        ("'a\nb' LIKE 'a%b'", True),
        ("'100%' LIKE '100!%' ESCAPE '!'", True),
        ("'1000' LIKE '100\\\\%'", False),
        ("'ABC' ILIKE 'a%'", True),
        ("'abc' RLIKE 'b+'", True),
        ("rlike('abc', '^b')", False),
        ("'ab\n' RLIKE 'b$'", True),
    ],
)
def test_text_functions_answer_as_spark(sql: str, expected: Any) -> None:
    assert value_of(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("abs(-5)", 5),
        ("ceil(-0.1)", Decimal("0")),
        ("ceil(5.2D)", 6),
        ("floor(-0.1D)", -1),
        ("floor(7)", 7),
        ("round(2.5)", Decimal(3)),
        ("round(-2.5D)", -3.0),
        ("round(1.2345D, 2)", 1.23),
        ("round(25, -1)", 30),
        ("sqrt(4)", 2.0),
        ("pow(2, 3)", 8.0),
        ("ln(0)", None),
        ("signum(-40)", -1.0),
        ("5 % 3", 2),
        ("-5 % 3", -2),
        ("pmod(-5, 3)", 1),
        ("-9223372036854775808 % -1", 0),
        ("7 / 2", 3.5),
        ("7 DIV 2", 3),
        ("-7 DIV 2", -3),
        ("5 & 3", 1),
        ("5 | 3", 7),
        ("5 ^ 3", 6),
        ("~0", -1),
        ("1 + 2 * 3 - 4", 3),
        ("- (5)", -5),
        (
            "- (12345678901234567890.123456789012345678BD)",
            Decimal("-12345678901234567890.123456789012345678"),
        ),
        ("0.1 + 0.2", Decimal("0.3")),
        ("1.5 * 1.5", Decimal("2.25")),
        ("1.0 / 3", Decimal("0.333333")),
        ("5.5 % 2", Decimal("1.5")),
        ("greatest(10, 9, 2, NULL)", 10),
        ("least(10, 9.5, 2)", Decimal("2.0")),
        ("coalesce(NULL, NULL, 3)", 3),
        ("nvl(NULL, 'a')", "a"),
        ("nullif(2, 2)", None),
        ("nullif(2, 3)", 2),
        ("nvl2(NULL, 1, 2)", 2),
        ("if(1 > 2, 'a', 'b')", "b"),
        ("CASE WHEN 1 > 2 THEN 1 WHEN 2 > 1 THEN 2 END", 2),
        ("CASE 5 WHEN 1 THEN 'a' ELSE 'z' END", "z"),
        ("isnan(double('NaN'))", True),
        ("isnan(CAST(NULL AS double))", False),
        ("nanvl(double('NaN'), 1)", 1.0),
    ],
)
def test_number_functions_answer_as_spark(sql: str, expected: Any) -> None:
    assert value_of(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("year(DATE'2016-07-30')", 2016),
        ("quarter(DATE'2016-08-31')", 3),
        ("month('2016-07-30')", 7),
        ("day(DATE'2009-07-30')", 30),
        ("dayofyear(DATE'2016-04-09')", 100),
        ("dayofweek(DATE'2009-07-30')", 5),
        ("weekday(DATE'2009-07-30')", 3),
        ("weekofyear(DATE'2008-02-20')", 8),
        ("hour(TIMESTAMP'2009-07-30 12:58:59')", 12),
        ("minute('2009-07-30 12:58:59')", 58),
        ("second(TIMESTAMP_NTZ'2009-07-30 12:58:59')", 59),
        ("extract(YEAR FROM DATE'2019-08-12')", 2019),
        ("date_part('doy', DATE'2019-08-12')", 224),
        ("date_add(DATE'2016-07-30', 1)", datetime.date(2016, 7, 31)),
        ("DATE'2016-07-30' - 1", datetime.date(2016, 7, 29)),
        ("datediff('2009-07-31', '2009-07-30')", 1),
        ("add_months(DATE'2016-08-31', 1)", datetime.date(2016, 9, 30)),
        ("last_day(DATE'2009-01-12')", datetime.date(2009, 1, 31)),
        ("make_date(2013, 7, 15)", datetime.date(2013, 7, 15)),
        ("trunc(DATE'2019-08-04', 'week')", datetime.date(2019, 7, 29)),
        ("trunc(DATE'2009-02-12', 'MM')", datetime.date(2009, 2, 1)),
        ("trunc(DATE'2009-02-12', 'hour')", None),
        ("date_trunc('YEAR', TIMESTAMP'2015-03-05T09:32:05.359')", datetime.datetime(2015, 1, 1, tzinfo=UTC)),
        ("date_trunc('quarter', TIMESTAMP'2015-06-05 09:00:00')", datetime.datetime(2015, 4, 1, tzinfo=UTC)),
        ("date_format(DATE'2016-04-08', 'yyyy-MM')", "2016-04"),
        ("date_format(TIMESTAMP'2016-04-08 07:00:00', 'yyyy-MM-dd-HH')", "2016-04-08-07"),
        ("to_date('2009-07-30 04:17:52')", datetime.date(2009, 7, 30)),
        ("unix_seconds(TIMESTAMP'1970-01-01 00:00:01Z')", 1),
        ("unix_timestamp(TIMESTAMP'1969-12-31 23:59:59.5Z')", 0),
        ("DATE'2024-01-31' + INTERVAL 1 MONTH", datetime.date(2024, 2, 29)),
        ("TIMESTAMP_NTZ'2024-01-31 00:00:00' - INTERVAL '90' MINUTE", datetime.datetime(2024, 1, 30, 22, 30)),
        ("INTERVAL 2 days + DATE'2024-01-31'", datetime.date(2024, 2, 2)),
    ],
)
def test_time_functions_answer_as_spark(sql: str, expected: Any) -> None:
    assert value_of(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CAST('  42 ' AS int)", 42),
        ("CAST('+7' AS tinyint)", 7),
        ("CAST(1.9 AS int)", 1),
        ("CAST(-1.9D AS bigint)", -1),
        ("CAST(true AS int)", 1),
        ("CAST('yes' AS boolean)", True),
        ("CAST(0.0D AS boolean)", False),
        ("CAST('1.25' AS decimal(4,1))", Decimal("1.3")),
        ("CAST(1.25D AS decimal(4,1))", Decimal("1.3")),
        ("CAST('1e2' AS decimal(4,1))", Decimal("100.0")),
        ("CAST(' -Infinity' AS double)", -math.inf),
        ("CAST('1.5d' AS double)", 1.5),
        ("CAST(0.1 AS float)", 0.10000000149011612),
        ("CAST(1.0D AS string)", "1.0"),
        ("CAST(1e7 AS string)", "1.0E7"),
        ("CAST(9999999.0D AS string)", "9999999.0"),
        ("CAST(1e20 AS string)", "1.0E20"),
        ("CAST(0.001D AS string)", "0.001"),
        ("CAST(0.0001D AS string)", "1.0E-4"),
        ("CAST(-0.0D AS string)", "-0.0"),
        ("CAST(0.1F AS string)", "0.1"),
        ("CAST(16777216F AS string)", "1.6777216E7"),
        ("CAST(double('NaN') AS string)", "NaN"),
        ("CAST(1.50 AS string)", "1.50"),
        ("CAST(true AS string)", "true"),
        ("CAST(X'4142' AS string)", "AB"),
        ("CAST(DATE'0099-01-02' AS string)", "0099-01-02"),
        ("CAST(TIMESTAMP'2020-01-01 00:00:00.120' AS string)", "2020-01-01 00:00:00.12"),
        ("CAST('2020' AS date)", datetime.date(2020, 1, 1)),
        ("CAST('2020-3-4 whatever' AS date)", datetime.date(2020, 3, 4)),
        (
            "CAST('2020-03-04T05:06:07.1234567' AS timestamp_ntz)",
            datetime.datetime(2020, 3, 4, 5, 6, 7, 123456),
        ),
        (
            "CAST('2020-03-04 05:06:07+02:00' AS timestamp)",
            datetime.datetime(2020, 3, 4, 3, 6, 7, tzinfo=UTC),
        ),
        ("CAST(TIMESTAMP'1970-01-01 00:00:01.5Z' AS bigint)", 1),
        ("CAST(TIMESTAMP'1970-01-01 00:00:01.5Z' AS double)", 1.5),
        ("CAST(1 AS timestamp)", datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ("TRY_CAST('x' AS int)", None),
        ("TRY_CAST(300 AS tinyint)", None),
        ("TRY_CAST('2020-13-01' AS date)", None),
        ("TRY_CAST(12345 AS decimal(3,0))", None),
    ],
)
def test_casts_answer_as_spark(sql: str, expected: Any) -> None:
    assert value_of(sql) == expected


@pytest.mark.parametrize(
    ("sql", "timezone", "expected"),
    [
        ("TIMESTAMP'2024-01-01 00:00:00'", "America/Los_Angeles", datetime.datetime(2024, 1, 1, 8, tzinfo=UTC)),
        ("TIMESTAMP'2024-01-01 00:00:00'", "+05:30", datetime.datetime(2023, 12, 31, 18, 30, tzinfo=UTC)),
        ("TIMESTAMP'2024-01-01 00:00:00'", "GMT-3", datetime.datetime(2024, 1, 1, 3, tzinfo=UTC)),
        # skipped by the clock: moved on by the hour that is missing
        ("TIMESTAMP'2024-03-10 02:30:00'", "America/Los_Angeles", datetime.datetime(2024, 3, 10, 10, 30, tzinfo=UTC)),
        ("CAST(TIMESTAMP_NTZ'2024-03-10 02:30:00' AS timestamp)", "America/Los_Angeles",
         datetime.datetime(2024, 3, 10, 10, 30, tzinfo=UTC)),
        # twice on the clock: the first
        ("CAST(TIMESTAMP_NTZ'2024-11-03 01:30:00' AS timestamp)", "America/Los_Angeles",
         datetime.datetime(2024, 11, 3, 8, 30, tzinfo=UTC)),
        ("CAST(TIMESTAMP'2024-01-01 03:00:00Z' AS date)", "America/Los_Angeles", datetime.date(2023, 12, 31)),
        ("hour(TIMESTAMP'2024-01-01 03:00:00Z')", "Asia/Kolkata", 8),
        ("CAST(DATE'2024-06-01' AS timestamp)", "Europe/Paris", datetime.datetime(2024, 5, 31, 22, tzinfo=UTC)),
        ("CAST(TIMESTAMP'1880-01-01 00:00:00Z' AS string)", "Europe/Paris", "1880-01-01 00:09:21"),
        ("date_trunc('DAY', TIMESTAMP'2024-01-01 03:00:00Z')", "America/Los_Angeles",
         datetime.datetime(2023, 12, 31, 8, tzinfo=UTC)),
        # the second 01:30 of that night stays in the second hour
        ("date_trunc('HOUR', TIMESTAMP'2024-11-03 09:30:00Z')", "America/Los_Angeles",
         datetime.datetime(2024, 11, 3, 9, tzinfo=UTC)),
        # a day later is the same time on the clock; 24 hours are a day, 23 are not
        ("TIMESTAMP'2024-03-09 12:00:00' + INTERVAL 1 DAY", "America/Los_Angeles",
         datetime.datetime(2024, 3, 10, 19, tzinfo=UTC)),
        ("TIMESTAMP'2024-03-09 12:00:00' + INTERVAL 24 HOUR", "America/Los_Angeles",
         datetime.datetime(2024, 3, 10, 19, tzinfo=UTC)),
        ("TIMESTAMP'2024-03-09 12:00:00' + INTERVAL 23 HOUR", "America/Los_Angeles",
         datetime.datetime(2024, 3, 10, 19, tzinfo=UTC)),
        ("TIMESTAMP'2024-03-10 12:00:00' - INTERVAL 1441 MINUTE", "America/Los_Angeles",
         datetime.datetime(2024, 3, 9, 19, 59, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_time_zone_decides_wall_clock_times(sql: str, timezone: str, expected: Any) -> None:
    assert value_of(sql, timezone) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("1Y + 1Y", "byte"),
        ("1 + 1L", "long"),
        ("1 / 2", "double"),
        ("1 + 1.5F", "double"),
        ("CAST(1 AS decimal(10,2)) + CAST(1 AS decimal(5,4))", "decimal(13,4)"),
        ("CAST(1 AS decimal(10,2)) * CAST(1 AS decimal(5,4))", "decimal(16,6)"),
        ("CAST(1 AS decimal(10,2)) / CAST(1 AS decimal(5,4))", "decimal(20,8)"),
        ("CAST(1 AS decimal(38,18)) * CAST(1 AS decimal(38,18))", "decimal(38,6)"),
        ("CAST(1 AS decimal(10,2)) + 1", "decimal(11,2)"),
        ("round(CAST(1 AS decimal(10,4)), 2)", "decimal(9,2)"),
        ("ceil(CAST(1 AS decimal(10,4)))", "decimal(7,0)"),
        ("coalesce(1, 2.5)", "decimal(11,1)"),
        ("1.5", "decimal(2,1)"),
        ("0.001", "decimal(3,3)"),
        ("1e3", "double"),
        ("3000000000", "long"),
        ("99999999999999999999", "decimal(20,0)"),
    ],
)
def test_results_have_the_types_spark_gives_them(sql: str, expected: str) -> None:
    assert str(type_of(sql)) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "1 / 0", "1 % 0", "1.5 / 0", "1 DIV 0", "2147483647 + 1", "127Y * 2Y", "-9223372036854775808 DIV -1",
        "abs(-2147483648)", "CAST('1.5' AS int)", "CAST(300 AS tinyint)", "CAST(double('NaN') AS int)",
        "CAST('x' AS date)", "CAST(1234.5 AS decimal(3,1))", "make_date(2023, 2, 30)",
        "'a' LIKE 'b!c' ESCAPE '!'", "'a' RLIKE '\\\\p{Lu}'", "'a' RLIKE '('",
    ],
)  # fmt: skip
def test_what_fails_in_spark_raises_predicate_error_when_evaluated(sql: str) -> None:
    bound = bind(parse_predicate(sql), NOTHING, predicate=False)
    with pytest.raises(PredicateError):
        constant(bound)


NUMBERS = StructType((StructField("i", INTEGER), StructField("s", STRING)))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("i <> 0 AND 10 / i > 2", [False, True, None]),
        ("i = 0 OR 10 / i > 2", [True, True, None]),
        ("CASE WHEN i = 0 THEN false ELSE 10 / i > 2 END", [False, True, None]),
        ("coalesce(s, CAST(1 / i AS string)) = 'x'", [True, False, None]),
    ],
)
def test_rows_that_are_decided_do_not_reach_a_failing_operand(sql: str, expected: list[bool | None]) -> None:
    data = pa.RecordBatch.from_pydict({"i": [0, 2, None], "s": ["x", None, None]}, arrow_schema(NUMBERS))
    assert evaluate(bind(parse_predicate(sql), NUMBERS), data).to_pylist() == expected


COLLECTIONS = StructType(
    (
        StructField("a", ArrayType(INTEGER)),
        StructField("m", MapType(STRING, LONG)),
        StructField("st", ArrayType(StructType((StructField("x", DOUBLE),)))),
        StructField("dec", ArrayType(DecimalType(5, 2))),
    )
)
COLLECTION_ROWS = pa.Table.from_pydict(
    {
        "a": [[1, None, 3], [], None],
        "m": [[("k", 1), ("n", None)], [], None],
        "st": [[{"x": 1.5}], [None], None],
        "dec": [[Decimal("1.50")], [], None],
    },
    arrow_schema(COLLECTIONS),
)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("size(a)", [3, 0, None]),
        ("cardinality(m)", [2, 0, None]),
        ("get(a, 2)", [3, None, None]),
        ("try_element_at(a, -1)", [3, None, None]),
        ("m['k']", [1, None, None]),
        ("m.k", [1, None, None]),
        ("element_at(m, 'n')", [None, None, None]),
        ("array_contains(a, 3)", [True, False, None]),
        ("array_contains(a, 4)", [None, False, None]),
        ("map_contains_key(m, 'n')", [True, False, None]),
        ("get(map_keys(m), 1)", ["n", None, None]),
        ("size(map_values(m))", [2, 0, None]),
        ("st[0].x", [1.5, None, None]),
        ("get(dec, 0) = 1.5", [True, None, None]),
        ("CASE WHEN size(a) > 0 THEN a[0] END", [1, None, None]),
    ],
)
@pytest.mark.parametrize("offset", [0, 1])
def test_collection_functions_answer_as_spark(sql: str, expected: list[Any], offset: int) -> None:
    bound = bind(parse_predicate(sql), COLLECTIONS, predicate=False)
    assert evaluate(bound, COLLECTION_ROWS.slice(offset)).to_pylist() == expected[offset:]


def test_index_outside_an_array_raises() -> None:
    bound = bind(parse_predicate("a[0] = 1"), COLLECTIONS)
    with pytest.raises(PredicateError, match="outside an array of 0"):
        evaluate(bound, COLLECTION_ROWS)


@pytest.mark.parametrize(
    "sql", ["frobnicate(i) = 1", "i = 1 AND soundex(s) = 'x'", "size(i) = 1", "upper(s, 1) = 'A'"]
)
def test_unknown_function_parses_and_binds_but_is_refused_by_name_when_evaluated(sql: str) -> None:
    bound = bind(parse_predicate(sql), NUMBERS)
    assert not can_evaluate(bound)
    name = next(n for n in ("frobnicate", "soundex", "size", "upper") if n in sql)
    data = pa.RecordBatch.from_pydict({"i": [1], "s": ["a"]}, arrow_schema(NUMBERS))
    with pytest.raises(PredicateError, match=name):
        evaluate(bound, data)


@pytest.mark.parametrize("pattern", ["%", "_", "a%", "%a", "_%_", "a_b", "", "%.%", "(a)", "é_", "%\n%"])
def test_like_on_a_column_agrees_with_like_on_constants(pattern: str) -> None:
    texts = ["", "a", "ab", "a\nb", "a.b", "(a)", "é😀", "😀", "\n", None]
    data = pa.RecordBatch.from_pydict({"i": [1] * len(texts), "s": texts}, arrow_schema(NUMBERS))
    expected = [
        None if t is None else value_of(f"CAST('{t}' AS string) LIKE '{pattern}' ESCAPE '!'") for t in texts
    ]
    assert evaluate(bind(parse_predicate(f"s LIKE '{pattern}'"), NUMBERS), data).to_pylist() == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("hash('Spark')", 228093765),
        ("hash(1)", -559580957),
        ("hash(42L, CAST(NULL AS INT))", 1316951768),
        ("hash('né😀x')", -1693648374),
        ("hash(X'FF80017F99')", 107434301),
        ("hash(-0.0D)", -1670924195),
        ("hash(1.5F)", -221251528),
        ("hash(CAST(-1.5 AS DECIMAL(20, 2)))", -690534446),
        ("hash(CAST(1.5 AS DECIMAL(10, 2)))", -2056712946),
        ("hash(DATE'2020-01-01')", -725858435),
        ("hash(TIMESTAMP'2020-01-01 00:00:00')", -1486022740),
        ("hash(CAST(NULL AS INT))", 42),
        ("md5('Spark')", "8cde774d6f7333752ed72cacddb05126"),
        ("sha('a')", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
        ("sha2('Spark', 256)", "529bc3b07127ecb7e53a4dcf1991d9152c24537d919178022b2c42657f79a26b"),
        ("sha2('a', 1)", None),
        ("crc32('Spark')", 1557323817),
        ("regexp_replace('100-200', '([0-9]+)', '<$1>')", "<100>-<200>"),
        (r"regexp_replace('abc', 'b', r'\$1')", "a$1c"),
        ("regexp_replace('baac', 'a*', 'X')", "XbXXcX"),
        ("regexp_extract('100-200', '([0-9]+)-([0-9]+)', 2)", "200"),
        ("regexp_extract('abc', '(x)|b', 1)", ""),
        ("substring_index('www.apache.org', '.', 2)", "www.apache"),
        ("substring_index('www.apache.org', '.', -2)", "apache.org"),
        ("substring_index('aaaa', 'aa', -2)", "a"),
        ("split_part('11.12.13', '.', -1)", "13"),
        ("split_part('a,b,c', ',', 4)", ""),
        ("timestamp_millis(-1)", datetime.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        ("date_from_unix_date(-1)", datetime.date(1969, 12, 31)),
        ("unix_date(DATE'1969-12-31')", -1),
    ],
)
def test_hashes_patterns_and_epochs_as_spark_computes_them(sql: str, expected: Any) -> None:
    assert value_of(sql) == expected


def test_hash_of_columns_chains_seeds_and_skips_nulls_row_by_row() -> None:
    schema = StructType((StructField("s", STRING), StructField("i", INTEGER)))
    data = pa.RecordBatch.from_pydict({"s": ["a", None, "a"], "i": [1, 1, None]}, arrow_schema(schema))
    values = evaluate(bind(parse_predicate("hash(s, i)"), schema, predicate=False), data).to_pylist()
    assert values == [value_of("hash('a', 1)"), value_of("hash(1)"), value_of("hash('a')")]


@pytest.mark.parametrize(
    "sql", ["regexp_extract('abc', 'b')", "regexp_replace('a', 'a', '$1')", "split_part('a', ',', 0)"]
)
def test_groups_and_parts_that_are_not_there_are_refused(sql: str) -> None:
    with pytest.raises(PredicateError):
        constant(bind(parse_predicate(sql), NOTHING, predicate=False))


@pytest.mark.parametrize(
    "pattern", ["yyyy", "yyyy-MM", "dd.MM.yyyy", "yyyyDDD", "HH", "HH:mm", "ss", "ss SSS"]
)
def test_date_format_of_many_moments_is_that_of_each(pattern: str) -> None:
    schema = StructType((StructField("t", TIMESTAMP_NTZ),))
    moments = [datetime.datetime(y, m, 28, 23, 59, 58, 123456) for y in (1, 1969, 2024) for m in (2, 12)]
    data = pa.RecordBatch.from_arrays([pa.array([*moments, None], pa.timestamp("us"))], ["t"])
    bound = bind(parse_predicate(f"date_format(t, '{pattern}')"), schema, predicate=False)
    of_one = formatter(pattern)
    assert evaluate(bound, data).to_pylist() == [*(of_one(micros_of(m)) for m in moments), None]


@given(
    kinds=st.tuples(*[st.tuples(st.integers(1, 20), st.integers(0, 9)).filter(lambda t: t[0] >= t[1])] * 2),
    numbers=st.lists(st.tuples(st.integers(), st.integers()), min_size=1, max_size=5),
    operator=st.sampled_from("+-*"),
)
def test_sums_and_products_of_decimals_are_exact_and_of_sparks_type(
    kinds: tuple[tuple[int, int], ...], numbers: list[tuple[int, int]], operator: str
) -> None:
    left, right = (DecimalType(precision, scale) for precision, scale in kinds)
    schema = StructType((StructField("a", left), StructField("b", right)))
    rows = []
    for pair in numbers:
        unscaled = (
            n % 10**k.precision * (1 if n >= 0 else -1) for n, k in zip(pair, (left, right), strict=True)
        )
        rows.append([Decimal(n).scaleb(-k.scale) for n, k in zip(unscaled, (left, right), strict=True)])
    columns = [
        pa.array([*values, None], arrow_type(k))
        for values, k in zip(zip(*rows, strict=True), (left, right), strict=True)
    ]
    data = pa.RecordBatch.from_arrays(columns, ["a", "b"])
    bound = bind(parse_predicate(f"a {operator} b"), schema, predicate=False)
    assert bound.type == arithmetic_type(operator, left, right)[2]
    with localcontext() as context:
        context.prec = 100
        exact = {"+": [a + b for a, b in rows], "-": [a - b for a, b in rows], "*": [a * b for a, b in rows]}
    if exact_type(operator, left, right) is None:
        return  # digits are given up
    assert evaluate(bound, data).to_pylist() == [*exact[operator], None]
    assert evaluate(bound, data).type == arrow_type(bound.type)


@given(st.lists(st.one_of(st.none(), st.text(" aZ\tß\u00a0", max_size=4)), min_size=1))
def test_texts_of_a_column_change_as_each_of_them(texts: list[str | None]) -> None:
    schema = StructType((StructField("s", STRING),))
    data = pa.RecordBatch.from_pydict({"s": texts}, arrow_schema(schema))
    changes = {"upper": str.upper, "lower": str.lower}
    changes |= {name: lambda t, how=how: how(t, " ") for name, how in
                (("trim", str.strip), ("ltrim", str.lstrip), ("rtrim", str.rstrip))}  # fmt: skip
    for name, change in changes.items():
        bound = bind(parse_predicate(f"{name}(s)"), schema, predicate=False)
        assert evaluate(bound, data).to_pylist() == [None if t is None else change(t) for t in texts]
    bound = bind(parse_predicate("ascii_upper(s)"), schema, predicate=False)
    if all(t is None or t.isascii() for t in texts):
        assert evaluate(bound, data).to_pylist() == [t and t.upper() for t in texts]
    else:
        with pytest.raises(PredicateError, match="ASCII"):
            evaluate(bound, data)
