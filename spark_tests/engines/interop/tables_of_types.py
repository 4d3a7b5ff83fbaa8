"""Tables of every type and shape of value."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

from delta_ds.kernel.format.schema.field_metadata import CHAR_VARCHAR_TYPE
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from delta_ds.kernel.transaction.alter.properties import set_properties
from spark_tests.behaviour.kernel.files.variants import metadata_of, names_in, value_of
from spark_tests.engines.interop.written import ALL_STEPS, Row, Written, case, struct

UTC = dt.timezone.utc

FLAT = struct(
    id=LONG, flag=BOOLEAN, tiny=BYTE, small=SHORT, number=INTEGER, single=FLOAT, double=DOUBLE, text=STRING,
    data=BINARY, day=DATE, moment=TIMESTAMP, cents=DecimalType(5, 2), amount=DecimalType(18, 4),
    huge=DecimalType(38, 10),
)  # fmt: skip
FLAT_ROWS: list[Row] = [
    {
        "id": 1, "flag": True, "tiny": 127, "small": 32767, "number": 2**31 - 1, "single": 1.5,
        "double": math.pi, "text": "süß — 漢字 🎉", "data": b"\x00\xff", "day": dt.date(2024, 2, 29),
        "moment": dt.datetime(2024, 2, 29, 12, 30, 1, 234567, UTC), "cents": Decimal("-999.99"),
        "amount": Decimal("12345678901234.5678"), "huge": Decimal("9" * 28 + "." + "9" * 10),
    },
    {
        "id": 2, "flag": False, "tiny": -128, "small": -32768, "number": -(2**31), "single": math.nan,
        "double": math.inf, "text": "", "data": b"", "day": dt.date(1, 1, 1),
        "moment": dt.datetime(1, 1, 1, tzinfo=UTC), "cents": Decimal("0.01"), "amount": Decimal(0),
        "huge": Decimal("-0.0000000001"),
    },
    {
        "id": 3, "flag": None, "tiny": 0, "small": 0, "number": 0, "single": -0.0, "double": -0.0,
        "text": "a" * 40, "data": b"x" * 40, "day": dt.date(9999, 12, 31),
        "moment": dt.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), "cents": Decimal("1.00"),
        "amount": Decimal("-0.0001"), "huge": Decimal(1),
    },
    {
        "id": 4, "single": 3.4028234663852886e38, "double": 5e-324, "text": "\t\"quoted\"\n\\ ,",
        "day": dt.date(1582, 10, 10), "moment": dt.datetime(1582, 10, 10, 1, 2, 3, 4, UTC), "cents": None,
        "amount": None, "huge": None,
    },
    {"id": 5, "single": -math.inf, "double": math.nan, "day": dt.date(1969, 12, 31)},
]  # fmt: skip
for _row in FLAT_ROWS:
    for _name in FLAT.names:
        _row.setdefault(_name, None)


@case(steps=ALL_STEPS, checkpointed=True, filters={
    "id = 1": 1, "id > 2 AND id < 5": 1, "number = -2147483648": 1, "text = ''": 1, "cents = -999.99": 1,
    "day < DATE'1582-01-01'": 1, "moment > TIMESTAMP'9999-01-01 00:00:00Z'": 1, "flag IS NULL": 2,
    "double > 1e300": 2, "amount = 12345678901234.5678": 1,
})  # fmt: skip
def plain_types(table: Written) -> None:
    table.create(FLAT)
    table.append(FLAT_ROWS[:1])
    table.append(FLAT_ROWS[1:2])
    table.append(FLAT_ROWS[2:4])
    table.append(FLAT_ROWS[4:])


POINT = struct(x=INTEGER, y=struct(z=STRING, at=TIMESTAMP))
NESTED = struct(
    id=LONG,
    point=POINT,
    list=ArrayType(INTEGER),
    points=ArrayType(POINT),
    map=MapType(STRING, DecimalType(10, 2)),
    map_of_points=MapType(INTEGER, POINT),
    deep=ArrayType(MapType(STRING, ArrayType(struct(a=DOUBLE, b=ArrayType(BINARY))))),
)


def point(x: int | None) -> Row:
    return {"x": x, "y": {"z": None if x is None else str(x), "at": dt.datetime(2020, 1, 1, tzinfo=UTC)}}


NESTED_ROWS: list[Row] = [
    {
        "id": 1, "point": point(1), "list": [1, None, 3], "points": [point(1), None, point(None)],
        "map": [("a", Decimal("1.10")), ("b", None)], "map_of_points": [(1, point(7)), (2, None)],
        "deep": [[("k", [{"a": 1.5, "b": [b"x", None]}, None])], None, []],
    },
    {"id": 2, "point": None, "list": None, "points": None, "map": None, "map_of_points": None, "deep": None},
    {"id": 3, "point": {"x": None, "y": None}, "list": [], "points": [], "map": [], "map_of_points": [],
     "deep": []},
]  # fmt: skip


@case(filters={"point.x = 1": 1, "point.y.z = '5'": 1, "point.y.at < TIMESTAMP'2000-01-01 00:00:00Z'": 0})
def nested_types(table: Written) -> None:
    table.create(NESTED)
    table.append(NESTED_ROWS)
    table.append([{**NESTED_ROWS[0], "id": 4, "point": point(5)}])


@case(
    filters={
        "local < TIMESTAMP_NTZ'2000-01-01 00:00:00'": 1,
        "p = TIMESTAMP_NTZ'2024-05-06 07:08:09.123456'": 1,
    }
)
def timestamp_without_zone(table: Written) -> None:
    old, new = dt.datetime(1900, 1, 1, 0, 0, 0, 1), dt.datetime(2024, 5, 6, 7, 8, 9, 123456)
    schema = struct(id=LONG, local=TIMESTAMP_NTZ, locals=ArrayType(TIMESTAMP_NTZ), p=TIMESTAMP_NTZ)
    table.create(schema, ["p"])
    table.append([{"id": 1, "local": old, "locals": [old, None], "p": new}])
    table.append(
        [{"id": 2, "local": new, "locals": None, "p": old}, {"id": 3, "local": None, "locals": [], "p": None}]
    )


def variant(value: Any) -> Row:
    names = sorted(names_in(value))
    return {"value": value_of(value, names), "metadata": metadata_of(names)}


VARIANTS = struct(id=LONG, v=VARIANT, s=struct(v=VARIANT, n=INTEGER), l=ArrayType(VARIANT))
VARIANT_ROWS: list[Row] = [
    {"id": 1, "v": variant({"a": 1, "b": [True, None, "x"], "ü": Decimal("1.25")}), "s": {"v": variant(1), "n": 1},
     "l": [variant("x"), variant([1, 2])]},
    {"id": 2, "v": variant(None), "s": {"v": variant(2.5), "n": 2}, "l": []},
    {"id": 3, "v": None, "s": None, "l": None},
]  # fmt: skip


@case(filters={"id = 4": 1})
def variants(table: Written) -> None:
    table.create(VARIANTS)
    table.append(VARIANT_ROWS)
    table.append([{**VARIANT_ROWS[0], "id": 4, "v": variant([dt.date(2024, 1, 1), "text" * 30])}])


@case(
    deltalake_misreads="it does not pad char(n)",
    refused={
        "INSERT INTO {t} VALUES (9, 'abcdef', 'x')": "DELTA_EXCEED_CHAR_VARCHAR_LIMIT|EXCEED_LIMIT_LENGTH",
    },
)
def char_and_varchar(table: Written) -> None:
    fields = [
        StructField("id", LONG),
        StructField("v", STRING, metadata={CHAR_VARCHAR_TYPE: "varchar(5)"}),
        StructField("c", STRING, metadata={CHAR_VARCHAR_TYPE: "char(3)"}),
    ]
    table.create(StructType(tuple(fields)))
    table.append(
        [{"id": 1, "v": "abcde", "c": "x"}, {"id": 2, "v": None, "c": None}],
        becomes=[{"id": 1, "v": "abcde", "c": "x  "}, {"id": 2}],
    )


NARROW = struct(
    id=LONG, a=BYTE, b=SHORT, c=INTEGER, d=FLOAT, e=INTEGER, f=DecimalType(5, 2), g=DATE, s=struct(n=BYTE, m=DATE),
    l=ArrayType(SHORT), m=MapType(BYTE, INTEGER),
)  # fmt: skip
WIDE = struct(
    id=LONG, a=SHORT, b=INTEGER, c=LONG, d=DOUBLE, e=DOUBLE, f=DecimalType(10, 4), g=TIMESTAMP_NTZ,
    s=struct(n=LONG, m=TIMESTAMP_NTZ), l=ArrayType(LONG), m=MapType(SHORT, LONG),
)  # fmt: skip


def at_midnight(row: Row) -> Row:
    def midnight(day: Any) -> Any:
        return dt.datetime(day.year, day.month, day.day) if type(day) is dt.date else day

    inner = row["s"] and {**row["s"], "m": midnight(row["s"]["m"])}
    return {**row, "g": midnight(row["g"]), "s": inner}


@case(
    steps=ALL_STEPS,
    checkpointed=True,
    deltalake="TypeWidening",
    filters={"c > 5000000000": 2, "s.n = 7": 1, "a = 7": 1, "f = 1.25": 1},
)
def widened_types(table: Written) -> None:
    from delta_ds.kernel.transaction.alter.change_column import alter_column
    from delta_ds.kernel.transaction.alter.properties import add_feature_support

    table.create(NARROW, properties={"delta.enableTypeWidening": "true"})
    first = {
        "id": 1, "a": 7, "b": 300, "c": 70000, "d": 0.5, "e": 9, "f": Decimal("1.25"), "g": dt.date(2024, 1, 2),
        "s": {"n": 7, "m": dt.date(1999, 1, 1)}, "l": [1, None], "m": [(1, 2)],
    }  # fmt: skip
    table.append([first, {"id": 2, **dict.fromkeys(NARROW.names[1:])}])
    table.change(add_feature_support, "timestampNtz")
    table.rows = [at_midnight(row) for row in table.rows]
    wide = {
        "id": 3, "a": 300, "b": 70000, "c": 2**40, "d": 1e300, "e": 2.5, "f": Decimal("123456.0001"),
        "g": dt.datetime(2024, 1, 2, 3, 4, 5, 6), "s": {"n": 2**40, "m": dt.datetime(1999, 1, 1, 1)},
        "l": [2**40], "m": [(300, 2**40)],
    }  # fmt: skip
    table.append([wide], WIDE, mergeSchema=True)
    table.change(alter_column, "a", data_type=INTEGER)
    table.change(set_properties, {"delta.enableTypeWidening": "false"})
    table.append([{**wide, "id": 4, "a": 70000}])


@case(filters={"c31 = 1": 1, "c32 = 1": 2, "c40 = 1": 2, "id = 2": 1})
def many_columns(table: Written) -> None:
    # Statistics are of the first 32 columns.
    schema = struct(id=LONG, **{f"c{i}": INTEGER for i in range(1, 41)})
    table.create(schema)
    for number in (1, 2):
        table.append([{"id": number, **{f"c{i}": number for i in range(1, 41)}}])
    table.rows = list(table.rows)


@case(filters={"text = 'b'": 2, "text > 'zzzz'": 2, f"text = '{'z' * 40}'": 2, "bits = X'00'": 2})
def long_texts(table: Written) -> None:
    # Statistics hold the first 32 letters, and a bound that is no less than the text; for the last there is none,
    # and delta-spark keeps a file that lacks a bound it asks for.
    table.create(struct(id=LONG, text=STRING, bits=BINARY))
    for number, text in enumerate(["a" * 33 + "\U0010ffff", "b", "z" * 40, "\U0010ffff" * 40], 1):
        bits = bytes([number]) if number < 3 else None
        table.append([{"id": number, "text": text, "bits": bits}])
