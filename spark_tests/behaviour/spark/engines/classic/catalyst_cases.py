"""What the tests of `catalyst` ask Spark: rows of every type, and conditions of every kind of node over them."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa

ZONE = "America/Los_Angeles"
_ROWS = 36


def _at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text + "+00:00")


def _naive(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


# Both instants that read 01:30 on the wall in Los Angeles on the day the clock goes back.
_INSTANTS = [_at(t) for t in ("2024-11-03 08:30:00", "2024-11-03 09:30:00", "2024-02-29 12:00:00.123456",
                              "1969-12-31 23:59:59.999999", "2024-03-10 10:00:00", "2024-02-29 07:59:59")]  # fmt: skip
_LOCALS = [
    _naive(t) for t in ("2024-02-29 12:00:00.123456", "1969-12-31 23:59:59.999999", "2024-11-03 01:30:00")
]
_DAYS = [
    datetime.date.fromisoformat(t)
    for t in ("2024-02-29", "1969-12-31", "2024-11-03", "0001-01-01", "9999-12-31")
]

_VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [1, 3, -7, 2147483647, None, -2147483648, 0, 41]),
    "l": (pa.int64(), [1, 3000000000, None, -5, 41, 9223372036854775807, 0]),
    "sh": (pa.int16(), [1, None, -3, 32767, 12]),
    "by": (pa.int8(), [1, -128, None, 127]),
    "f": (pa.float32(), [1.5, math.nan, -0.0, None, 0.0, math.inf, 1.100000023841858, -3.25, -math.inf]),
    "d": (pa.float64(), [1.5, -0.0, math.nan, 0.0, None, -math.inf, 1.1, 1e300, math.inf]),
    "n": (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-99999999.99"), None, Decimal("0.00"), Decimal("41.00")]),
    "big": (pa.decimal128(38, 10), [Decimal("1.5"), None, Decimal("1234567890123456789012345678.0123456789")]),
    "s": (pa.string(), ["a", "", "abc", None, "A", "null", "é€𝄞", "2024-02-29", "41", " 3 ", "x%y", "'\\\"\n"]),
    "b": (pa.bool_(), [True, False, None]),
    "x": (pa.binary(), [b"\x00\xff", b"", None, b"abc", b"\x01"]),
    "dt": (pa.date32(), [*_DAYS[:3], None, *_DAYS[3:]]),
    "ts": (pa.timestamp("us", "UTC"), [*_INSTANTS, None]),
    "ntz": (pa.timestamp("us"), [*_LOCALS, None]),
    "p": (pa.int32(), [1, 2, None, 14]),
    "ps": (pa.string(), ["a", "B b", None, "2024-02-29", "é/%"]),
    "pd": (pa.date32(), [_DAYS[0], _DAYS[2], None]),
}  # fmt: skip
PARTITIONED_BY = ["p", "ps", "pd"]


def rows() -> pa.Table:
    """Rows whose columns hold every value of their list, in many combinations, and structs of some of them."""
    arrays: dict[str, pa.Array] = {"id": pa.array(range(_ROWS), pa.int32())}
    for step, (name, (data_type, values)) in enumerate(_VALUES.items()):
        picked = [
            values[(row * (1 + step % 3) + step + row // len(values)) % len(values)] for row in range(_ROWS)
        ]
        arrays[name] = pa.array(picked, data_type)
    structs = [
        None if row % 9 == 4 else {
            "a": arrays["i"][row].as_py(),
            "In ner": None if row % 7 == 3 else {"q": arrays["s"][row].as_py(), "w.d": arrays["d"][row].as_py()},
        }
        for row in range(_ROWS)
    ]  # fmt: skip
    inner = pa.struct([("q", pa.string()), ("w.d", pa.float64())])
    arrays["st"] = pa.array(structs, pa.struct([("a", pa.int32()), ("In ner", inner)]))
    arrays["arr"] = pa.array(
        [None if row % 5 == 0 else [row, None] for row in range(_ROWS)], pa.list_(pa.int32())
    )
    maps = [None if row % 6 == 0 else [("k", row)] for row in range(_ROWS)]
    arrays["m"] = pa.array(maps, pa.map_(pa.string(), pa.int32()))
    partitions = {name: arrays.pop(name) for name in PARTITIONED_BY}
    return pa.table({**arrays, **partitions})


def _many(items: str) -> str:
    """So long a list that Spark makes an `InSet` of it."""
    return items + "".join(f", {i}" for i in range(100, 112))


_TEXTS = ", ".join(f"'t{i}'" for i in range(12))
_DATES = ", ".join(f"DATE'2001-01-{i:02d}'" for i in range(1, 13))
_STAMPS = ", ".join(f"TIMESTAMP'2001-01-{i:02d} 10:00:00'" for i in range(1, 13))
_STAMPS_NTZ = ", ".join(f"TIMESTAMP_NTZ'2001-01-{i:02d} 10:00:00'" for i in range(1, 13))
_BYTES = ", ".join(f"X'{i:02X}02'" for i in range(12))
_DECIMALS = ", ".join(f"CAST({i}.25 AS DECIMAL(10,2))" for i in range(12))
_DOUBLES = ", ".join(f"{i}.25D" for i in range(12))

CONDITIONS: list[str] = [
    # comparisons
    "i = 3", "3 = i", "i <> 3", "i < 3", "i <= 3", "i > 3", "i >= 3", "3 > i", "i <=> 3", "i <=> NULL",
    "NOT (i <=> 3)", "NOT (i <=> NULL)", "i = l", "i < st.a", "i BETWEEN 1 AND 41", "i NOT BETWEEN 1 AND 41",
    "i = NULL", "NOT (i = 3 AND l > 0)", "i <=> st.a", "i != l OR i IS NULL",
    # literals of every type
    "by = 1Y", "sh = 12S", "l = 3000000000", "l > 41", "i > 3000000000", "by < 1000", "f = 1.5",
    "f = CAST(1.1 AS FLOAT)", "f = 1.1D", "f > 1.1F", "d = 1.1", "d = 1.1D", "d = 'NaN'",
    "d = CAST('NaN' AS DOUBLE)", "d < CAST('NaN' AS DOUBLE)", "d >= CAST('NaN' AS DOUBLE)",
    "f = CAST('NaN' AS FLOAT)", "d = 0.0D", "d = -0.0D", "d < 0.0D", "d <=> -0.0D", "f >= -0.0F",
    "d > CAST('Infinity' AS DOUBLE)", "d = CAST('-Infinity' AS DOUBLE)", "d = 1e300",
    "f <> CAST('Infinity' AS FLOAT)", "n = 1.5", "n = 1.50BD", "n > 1", "n >= 0.005", "n < 41.5D",
    "n = -99999999.99", "big = 1.5", "big > 1234567890123456789012345678.0123456788", "s = 'a'", "s > 'a'",
    "s = ''", "s = 'null'", "s >= 'é€𝄞'", "s = '\\'\\\\\"\\n'", "s = CAST(X'FF' AS STRING)",
    "s < CAST(X'C3' AS STRING)", "b", "NOT b", "b = true", "b = false", "b <=> true", "b <> true",
    "b > false", "x = X'00FF'", "x > X''", "x = X''", "x <> X'616263'", "x <=> X'01'",
    "dt = DATE'2024-02-29'", "dt < DATE'1970-01-01'", "dt > DATE'0001-01-01'", "dt <= DATE'9999-12-31'",
    "dt = '2024-02-29'", "dt >= DATE'-0044-03-15'", "dt < DATE'+12000-01-01'",
    "ts = TIMESTAMP'2024-11-03 08:30:00Z'", "ts = TIMESTAMP'2024-11-03 09:30:00Z'",
    "ts > TIMESTAMP'2024-11-03 08:30:00Z'", "ts < TIMESTAMP'2024-11-03 09:30:00Z'",
    "ts = TIMESTAMP'2024-02-29 04:00:00.123456'", "ts <= TIMESTAMP'1969-12-31 23:59:59.999999Z'",
    "ts >= '2024-03-10 02:30:00'", "ts = '2024-02-29 12:00:00.123456Z'",
    "ts < TIMESTAMP'+10001-01-01 00:00:00Z'", "ts > TIMESTAMP'-0044-03-15 00:00:00Z'",
    "ts > DATE'2024-02-29'", "ts = ntz", "ts > TIMESTAMP_NTZ'2024-02-29 04:00:00'",
    "ntz = TIMESTAMP_NTZ'2024-02-29 12:00:00.123456'", "ntz > TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'",
    "ntz = dt", "ntz >= DATE'2024-02-29'",
    # nulls
    "i IS NULL", "i IS NOT NULL", "st IS NULL", "st IS NOT NULL", "st.`In ner` IS NULL",
    "st.`In ner`.q IS NOT NULL", "arr IS NULL", "m IS NOT NULL", "isnan(d)", "NOT isnan(f)",
    "coalesce(i, 3) = 3", "coalesce(b, false)", "nvl(s, 'a') = 'a'", "NOT coalesce(i = 3, true)",
    "nullif(i, 3) IS NULL", "(i IS NULL) = b", "(i = 3) IS NULL", "(i > 3 AND b) IS NOT NULL",
    "NOT ((i > 3) <=> b)",
    # lists
    "i IN (1, 3)", "i IN (1, NULL)", "i NOT IN (1, NULL)", "i NOT IN (1, 3)", "i IN (3)", "i IN (l, 3)",
    "s IN ('a', 'null', NULL)", "d IN (1.5D, CAST('NaN' AS DOUBLE), 0.0D)", "dt IN (DATE'2024-02-29', NULL)",
    "x IN (X'01', X'')", "ts IN (TIMESTAMP'2024-11-03 08:30:00Z', TIMESTAMP'2024-11-03 09:30:00Z')",
    "b IN (true, NULL)", "n IN (1.5, 41)", "l IN (1, 3000000000)", "i IN (3000000000, 41)",
    f"i IN ({_many('1, 3')})", f"i IN ({_many('1, NULL')})", f"i NOT IN ({_many('1, NULL')})",
    f"i NOT IN ({_many('1, 3')})", f"l IN ({_many('41')})", f"sh IN ({_many('12')})",
    f"by NOT IN ({_many('1')})", f"s IN ('a', 'null', {_TEXTS})", f"s IN ('a', NULL, {_TEXTS})",
    f"s IN ('null', NULL, {_TEXTS})", f"s NOT IN ('null', '', {_TEXTS})",
    f"s IN (concat('a', chr(1), 'b'), 'abc', {_TEXTS})", f"s IN (CAST(X'FF' AS STRING), 'abc', {_TEXTS})",
    f"coalesce(s IN ('null', NULL, {_TEXTS}), true)", f"coalesce(s IN ('a', NULL, {_TEXTS}), true)",
    f"dt IN (DATE'2024-02-29', DATE'0001-01-01', {_DATES})",
    f"ts IN (TIMESTAMP'2024-11-03 09:30:00Z', {_STAMPS})",
    f"ntz IN (TIMESTAMP_NTZ'2024-02-29 12:00:00.123456', {_STAMPS_NTZ})", f"x IN (X'00FF', X'', {_BYTES})",
    f"x NOT IN (X'00FF', {_BYTES})", f"x IN (X'01', NULL, {_BYTES})",
    f"n IN (CAST(1.5 AS DECIMAL(10,2)), {_DECIMALS})", f"d IN (CAST('NaN' AS DOUBLE), 0.0D, {_DOUBLES})",
    f"d NOT IN (CAST('NaN' AS DOUBLE), -0.0D, {_DOUBLES})", f"f IN ({_many('1.5')})",
    f"ts IN (TIMESTAMP'+10001-01-01 00:00:00Z', {_STAMPS})",
    f"i IN ({_many('1')}) OR dt IN (DATE'2024-02-29', {_DATES})", f"p IN ({_many('1, 2')})",
    f"st.a IN ({_many('3')})",
    # logic, with parts that cannot be known
    "i = 3 OR s = 'a'", "i = 3 AND (s = 'a' OR d > 1)", "i = 3 OR rlike(s, '^a')",
    "NOT (i = 3 OR rlike(s, '^a'))", "NOT (i = 3 AND rlike(s, '^a'))",
    "(i = 3 AND rlike(s, '^a')) OR l = 41", "NOT (rlike(s, '^a') <=> (i = 3))", "(i = 3) = (l > 0)",
    "(i = 3) = rlike(s, 'a')", "NOT (NOT (i = 3 OR NOT b))", "i = 3 AND size(arr) > 1",
    "m['k'] = 3 OR i = 3", "exists(arr, e -> e = 3) AND i = 3", "rand(7) >= 0 AND i = 3", "arr[0] = 3",
    "NOT (i = 3 AND l > 0 AND rlike(s, 'b'))",
    # text
    "s LIKE 'a%'", "s LIKE '%c'", "s LIKE '%b%'", "s LIKE 'a%c'", "s LIKE 'abc'", "s LIKE 'a_c'",
    "s LIKE 'x\\\\%y'", "s LIKE 'x!%_' ESCAPE '!'", "s NOT LIKE 'a%'", "s LIKE ANY ('a%', '4_')",
    "s LIKE ALL ('a%', '%c')", "s NOT LIKE ALL ('a%', '4_')", "s LIKE s", "s LIKE NULL",
    "startswith(s, 'a')", "endswith(s, 'c')", "contains(s, '')", "NOT startswith(s, 'a')",
    "startswith('abc', s)", "startswith(x, X'00')", "s ILIKE 'A%'", "upper(s) = 'A'",
    "s COLLATE UTF8_LCASE = 'a'", "s COLLATE UTF8_LCASE IN ('a', 'b')",
    "contains(s COLLATE UTF8_LCASE, 'A')", "length(s) = 1", "substring(s, 1, 4) = '2024'",
    "concat(s, 'x') = 'ax'", "length(x) = 2", "left(s, 1) = 'a'", "trim(s) = '3'",
    # casts
    "CAST(i AS BIGINT) = 3", "CAST(l AS DOUBLE) > 41.5D", "CAST(i AS STRING) = '3'",
    "CAST(i AS DECIMAL(12,1)) > 40.9", "CAST(f AS DOUBLE) > 1.1D", "CAST(n AS DOUBLE) = 41",
    "CAST(dt AS TIMESTAMP) > TIMESTAMP'2024-02-29 12:00:00'", "CAST(ts AS DATE) = DATE'2024-11-03'",
    "CAST(ts AS DATE) >= DATE'2024-02-29'", "CAST(ntz AS DATE) = DATE'1969-12-31'",
    "CAST(ts AS STRING) = '2024-11-03 01:30:00'", "CAST(dt AS STRING) LIKE '2024%'",
    "TRY_CAST(s AS INT) = 41", "TRY_CAST(s AS INT) IS NULL", "TRY_CAST(l AS INT) IS NULL",
    "TRY_CAST(s AS DATE) = DATE'2024-02-29'", "CAST(b AS INT) = 1", "CAST(by AS BOOLEAN)",
    "CAST(ts AS BIGINT) = 0", "CAST(ts AS DOUBLE) < 0",
    "CAST(ts AS TIMESTAMP_NTZ) = TIMESTAMP_NTZ'2024-11-03 01:30:00'",
    "CAST(ntz AS TIMESTAMP) = TIMESTAMP'2024-11-03 08:30:00Z'", "CAST(x AS STRING) = 'abc'",
    "CAST(s AS BINARY) = X'61'", "TRY_CAST(ps AS DATE) = DATE'2024-02-29'",
    "CAST(st AS STRUCT<aa: BIGINT, bb: STRUCT<q: STRING, w: DOUBLE>>).aa = 3",
    "CAST(st AS STRUCT<aa: INT, bb: STRUCT<qq: STRING, w: DOUBLE>>).bb.qq = 'a'",
    # dates
    "year(dt) = 2024", "month(dt) = 2", "day(dt) = 29", "quarter(dt) = 1", "dayofweek(dt) = 5",
    "weekday(dt) = 3", "dayofyear(dt) = 60", "weekofyear(dt) = 9", "year(ts) = 2024", "year(ntz) >= 2024",
    "hour(ts) = 1", "minute(ts) = 30", "second(ntz) = 59", "hour(ntz) = 1",
    "date_add(dt, 1) = DATE'2024-03-01'", "date_sub(dt, 1) < DATE'2024-01-01'",
    "datediff(dt, DATE'2024-02-28') = 1", "last_day(dt) = DATE'2024-02-29'",
    "add_months(dt, -1) = DATE'2024-01-29'", "trunc(dt, 'MM') = DATE'2024-02-01'",
    "date_trunc('DAY', ts) = TIMESTAMP'2024-11-03 00:00:00'",
    "date_trunc('HOUR', ts) = TIMESTAMP'2024-11-03 08:00:00Z'", "date_format(ts, 'yyyy-MM') = '2024-11'",
    "unix_timestamp(ts) > 0", "to_date(ts) = DATE'2024-02-28'",
    "ts + INTERVAL 1 DAY > TIMESTAMP'2024-11-04 01:00:00'", "dt + INTERVAL 1 MONTH = DATE'2024-03-29'",
    "ts - TIMESTAMP'2024-02-29 00:00:00' > INTERVAL '1' DAY", "unix_micros(ts) = -1", "unix_date(dt) = -1",
    "make_date(2024, 2, 29) = dt",
    # arithmetic and choice
    "l + 0 = 41", "CAST(i AS BIGINT) * 2 > 5", "CAST(sh AS BIGINT) - by < 5", "sh % 2 = 1", "i % 2 = -1",
    "pmod(sh, 2) = 1", "n * 2 = 3", "n + n > 1", "d / 2 = 0.75", "try_divide(d, 0.0D) IS NULL",
    "by + 1S = 2", "by + 1Y > 0", "-sh = 3", "abs(d) = 1.1D", "try_add(i, 1) IS NULL", "sh div 2 = 6",
    "sh & 1 = 1", "sh | 1 = 13", "~sh = 2", "CASE WHEN i = 3 THEN true WHEN l = 41 THEN b ELSE false END",
    "if(b, i, CAST(sh AS INT)) = 3", "CASE WHEN b THEN 'x' END = 'x'", "greatest(i, 3) = 3",
    "least(i, 3) = 3", "round(d, 0) = 2", "floor(d) = 1 AND d < 100", "hash(i) = 3", "nanvl(d, 1.0D) = 1.0D",
    "sqrt(d) > 1 AND d > 0",
    # structs and partition columns
    "st.a = 3", "st.`In ner`.q = 'a'", "st.`In ner`.`w.d` > 1", "st.a > 3 AND st.`In ner` IS NOT NULL",
    "st = named_struct('a', 3, 'In ner', named_struct('q', 'a', 'w.d', 1.5D))", "arr = array(3)",
    "st IN (named_struct('a', 3, 'In ner', named_struct('q', 'a', 'w.d', 1.5D)))", "p = 1",
    "p > 1 AND ps = 'a'", "p IS NULL", "ps LIKE 'B%'", "upper(ps) = 'A'", "pd = DATE'2024-02-29'",
    "p % 7 = 0", "p = 1 OR i = 3", "p = i", "ps = 'é/%' AND s > ''", "year(pd) = 2024 OR i = 3",
    "p IN (1, 2) AND i = 3", "ps IS NULL OR ps <> 'a'",
]  # fmt: skip

# Under settings other than the defaults.
LEGACY_CONDITIONS: list[str] = [
    "CAST(s AS INT) = 41", "CAST(l AS INT) = 1", "l + 1 = 42", "s = 41", "CAST(d AS INT) = 1",
    "CAST(dt AS INT) IS NULL", "CAST(l AS INT) = 2147483647", "CAST(l AS INT) = -1 OR i = 3",
    "CAST(n AS DOUBLE) = 41", "by / 0 IS NULL", "i + 1 < 0",
]  # fmt: skip
