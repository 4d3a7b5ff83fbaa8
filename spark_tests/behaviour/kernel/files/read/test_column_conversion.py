"""Columns of files as columns of the table: found, renamed, widened, filled in."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds.exceptions import DataFileError, SchemaError
from delta_ds.kernel.files.read import column_conversion
from delta_ds.kernel.files.read.plan import FileSlice
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
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)  # fmt: skip
from spark_tests.behaviour.kernel.files.parquet_files import rows, schema_of, write

UTC = dt.timezone.utc
MISMATCH = "FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH"


def mapped(name: str, data_type: DataType, physical: str, field_id: int | None = None) -> StructField:
    metadata: dict[str, Any] = {"delta.columnMapping.physicalName": physical}
    if field_id is not None:
        metadata["delta.columnMapping.id"] = field_id
    return StructField(name, data_type, metadata=metadata)


def with_id(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)})


def read_one(folder: Path, array: pa.Array, data_type: DataType, **options: Any) -> list[Any]:
    piece = write(folder, pa.table({"x": array}), **options)
    return [row["x"] for row in rows(folder, piece, schema_of(x=data_type))]


@pytest.mark.parametrize(
    ("stored", "kind", "data_type", "value"),
    [
        (5, pa.int8(), SHORT, 5),
        (5, pa.int8(), LONG, 5),
        (-5, pa.int16(), INTEGER, -5),
        (5, pa.int32(), BYTE, 5),
        (7, pa.int32(), LONG, 7),
        (7, pa.int32(), DOUBLE, 7.0),
        (0.5, pa.float32(), DOUBLE, 0.5),
        (7, pa.int32(), DecimalType(12, 2), Decimal("7.00")),
        (7, pa.int64(), DecimalType(22, 2), Decimal("7.00")),
        (Decimal("1.25"), pa.decimal128(5, 2), DecimalType(10, 4), Decimal("1.2500")),
        (Decimal("1.25"), pa.decimal128(5, 2), DecimalType(38, 2), Decimal("1.25")),
        (dt.date(2024, 2, 3), pa.date32(), TIMESTAMP_NTZ, dt.datetime(2024, 2, 3)),
        (b"caf\xc3\xa9", pa.binary(), STRING, "café"),
        ("é", pa.string(), BINARY, b"\xc3\xa9"),
        (b"abcd", pa.binary(4), BINARY, b"abcd"),
        (5, pa.uint32(), LONG, 5),
        (True, pa.bool_(), BOOLEAN, True),
        (1, pa.int64(), VOID, None),
    ],
)
def test_widening_and_equal_bytes_are_read(
    tmp_path: Path, stored: Any, kind: pa.DataType, data_type: DataType, value: Any
) -> None:
    array = pa.array([stored, None], kind)
    assert read_one(tmp_path, array, data_type) == [value, None]
    nested = read_one(tmp_path, pa.array([[stored, None], None], pa.list_(kind)), ArrayType(data_type))
    assert nested == [[value, None], None]
    in_map = pa.array([[("k", stored)], None], pa.map_(pa.string(), kind))
    assert read_one(tmp_path, in_map, MapType(STRING, data_type)) == [[("k", value)], None]


@pytest.mark.parametrize(
    ("kind", "data_type"),
    [
        (pa.int64(), INTEGER),
        (pa.float64(), FLOAT),
        (pa.int64(), DOUBLE),
        (pa.string(), LONG),
        (pa.int64(), STRING),
        (pa.timestamp("us", "UTC"), TIMESTAMP_NTZ),
        (pa.timestamp("us", "UTC"), DATE),
        (pa.date32(), TIMESTAMP),
        (pa.list_(pa.int64()), LONG),
        (pa.int64(), ArrayType(LONG)),
        (pa.struct([("a", pa.int64())]), MapType(STRING, LONG)),
        (pa.float64(), DecimalType(10, 2)),
        (pa.bool_(), LONG),
    ],
)
def test_types_that_do_not_fit_are_refused_by_column(
    tmp_path: Path, kind: pa.DataType, data_type: DataType
) -> None:
    piece = write(tmp_path, pa.table({"s": pa.nulls(1, pa.struct([("x", kind)]))}))
    schema = schema_of(s=StructType((StructField("x", data_type),)))
    with pytest.raises(DataFileError, match=r"a\.parquet .* column s\.x is ") as caught:
        rows(tmp_path, piece, schema)
    assert caught.value.condition == MISMATCH


@pytest.mark.parametrize("value", [Decimal("1.256"), Decimal("123456.78")])
def test_decimal_that_the_table_cannot_hold_is_refused(tmp_path: Path, value: Decimal) -> None:
    with pytest.raises(DataFileError, match="cannot be read"):
        read_one(tmp_path, pa.array([value], pa.decimal128(20, 5)), DecimalType(7, 2))


def test_integer_that_overflows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="cannot be read"):
        read_one(tmp_path, pa.array([200], pa.int32()), BYTE)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_timestamps_of_any_unit_and_zone_are_microseconds_utc(
    tmp_path: Path, unit: str, zone: str | None
) -> None:
    kind = pa.timestamp(unit, zone)
    stored = pa.array([-1, 0, None], pa.int64()).view(kind)
    found = read_one(tmp_path, stored, TIMESTAMP, store_schema=True, version="2.6")
    # A nanosecond before 1970 lies in the microsecond before it.
    before = dt.timedelta(milliseconds=-1) if unit == "ms" else dt.timedelta(microseconds=-1)
    epoch = dt.datetime(1970, 1, 1, tzinfo=UTC)
    assert found == [epoch + before, epoch, None]


def int96_file(folder: Path, day: int, footer: dict[str, str] | None = None) -> FileSlice:
    """A file of one INT96 midnight, `day` days since 1970: pyarrow cannot write days outside 1677 to 2262."""
    table = pa.table({"x": pa.array([dt.datetime(2000, 1, 1)])}).replace_schema_metadata(footer)
    plain = {"use_dictionary": False, "compression": "none", "write_statistics": False}
    write(folder, table, use_deprecated_int96_timestamps=True, store_schema=True, **plain)
    content = (folder / "a.parquet").read_bytes()
    stored = struct.pack("<qi", 0, 2_451_545)
    assert content.count(stored) == 1
    (folder / "a.parquet").write_bytes(content.replace(stored, struct.pack("<qi", 0, day + 2_440_588)))
    return FileSlice("a.parquet", len(content))


@pytest.mark.parametrize(
    "moment", [dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31), dt.datetime(9999, 12, 31)]
)
def test_int96_of_any_year_is_read(tmp_path: Path, moment: dt.datetime) -> None:
    piece = int96_file(tmp_path, moment.toordinal() - 719_163)
    assert rows(tmp_path, piece, schema_of(x=TIMESTAMP)) == [{"x": moment.replace(tzinfo=UTC)}]
    assert rows(tmp_path, piece, schema_of(x=TIMESTAMP_NTZ)) == [{"x": moment}]


@pytest.mark.parametrize("hint", ["legacyDateTime", "legacyINT96"])
@pytest.mark.parametrize("int96", [False, True])
def test_legacy_calendar_hint_counts_for_its_encoding(tmp_path: Path, hint: str, int96: bool) -> None:
    footer = {
        "org.apache.spark.version": "4.2.0",
        "org.apache.spark.timeZone": "UTC",
        f"org.apache.spark.{hint}": "",
    }
    if int96:
        piece = int96_file(tmp_path, -141_428, footer)
    else:
        stored = pa.array([-141_428 * 86_400_000_000], pa.timestamp("us", "UTC"))
        table = pa.table({"x": stored}).replace_schema_metadata(footer)
        piece = write(tmp_path, table, store_schema=True)
    rebased = int96 == (hint == "legacyINT96")
    day = 4 if rebased else 14
    assert rows(tmp_path, piece, schema_of(x=TIMESTAMP)) == [{"x": dt.datetime(1582, 10, day, tzinfo=UTC)}]
    if int96:  # without a zone there is no calendar to tell
        assert rows(tmp_path, piece, schema_of(x=TIMESTAMP_NTZ)) == [{"x": dt.datetime(1582, 10, 14)}]


def test_legacy_dates_are_rebased_when_widened_and_nested(tmp_path: Path) -> None:
    days = pa.array([-141_428], pa.int32()).view(pa.date32())
    table = pa.table({"d": days, "l": pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), days)})
    table = table.replace_schema_metadata({"org.apache.spark.version": "2.4.3"})
    schema = schema_of(d=TIMESTAMP_NTZ, l=ArrayType(DATE))
    found = rows(tmp_path, write(tmp_path, table, store_schema=True), schema)
    assert found == [{"d": dt.datetime(1582, 10, 4), "l": [dt.date(1582, 10, 4)]}]


def test_missing_columns_are_null_and_extra_ones_ignored(tmp_path: Path) -> None:
    piece = write(tmp_path, pa.table({"dropped": ["z"], "x": [1]}))
    schema = schema_of(x=LONG, new=STRING, deep=StructType((StructField("a", LONG, False),)))
    assert rows(tmp_path, piece, schema) == [{"x": 1, "new": None, "deep": None}]


def test_struct_with_none_of_its_fields_in_the_file_keeps_its_nulls(tmp_path: Path) -> None:
    array = pa.array([{"old": 1, "l": [1, 2]}, None, {"old": None, "l": None}])
    piece = write(tmp_path, pa.table({"s": array}))
    schema = schema_of(s=StructType((StructField("new", LONG),)))
    assert rows(tmp_path, piece, schema) == [{"s": {"new": None}}, {"s": None}, {"s": {"new": None}}]


def test_nested_fields_are_reordered_filled_and_renamed(tmp_path: Path) -> None:
    inner = pa.struct([("p2", pa.string()), ("p1", pa.int32()), ("gone", pa.int64())])
    value = {"p1": 1, "p2": "b", "gone": 5}
    table = pa.table(
        {
            "ps": pa.array([value, None], inner),
            "pl": pa.array([[value, None], []], pa.list_(inner)),
            "pm": pa.array([[("k", value)], None], pa.map_(pa.string(), inner)),
        }
    )
    struct = StructType((mapped("a", LONG, "p1"), mapped("n", DATE, "p9"), mapped("b", STRING, "p2")))
    schema = schema_of(
        s=mapped("s", struct, "ps"),
        l=mapped("l", ArrayType(struct), "pl"),
        m=mapped("m", MapType(STRING, struct), "pm"),
    )
    new = {"a": 1, "n": None, "b": "b"}
    assert rows(tmp_path, write(tmp_path, table), schema, mapping_mode="name") == [
        {"s": new, "l": [new, None], "m": [("k", new)]},
        {"s": None, "l": [], "m": None},
    ]


def test_slices_of_nested_arrays_convert_only_their_own_values(tmp_path: Path) -> None:
    lists = pa.array([[i, i + 1] for i in range(100)], pa.list_(pa.int32())).slice(10, 5)
    batch = pa.record_batch({"x": lists})
    convert = column_conversion.compile_columns(
        batch.schema, schema_of(x=ArrayType(LONG)), column_conversion.Rules()
    )
    (found,) = convert(batch)
    assert found.to_pylist() == lists.to_pylist()
    assert len(found.values) == 10


def test_arrays_that_already_fit_are_not_copied() -> None:
    lists = pa.array([[1], None], pa.list_(pa.field("element", pa.int64())))
    batch = pa.record_batch({"i": pa.array([1, 2]), "l": lists})
    convert = column_conversion.compile_columns(
        batch.schema, schema_of(l=ArrayType(LONG), i=LONG), column_conversion.Rules()
    )
    found = convert(batch)
    assert [array.buffers()[-1].address for array in found] == [
        array.buffers()[-1].address for array in (batch["l"], batch["i"])
    ]


def test_chunks_of_a_widened_map_can_be_joined(tmp_path: Path) -> None:
    # Arrow up to 25 ends the process where it does not know how many of the keys are null.
    from delta_ds import DeltaLog
    from delta_ds.kernel.transaction.alter.change_column import alter_column

    log = DeltaLog(tmp_path)
    narrow = pa.map_(pa.int8(), pa.int32())
    properties = {"delta.enableTypeWidening": "true"}
    log.write(pa.table({"m": pa.array([[(1, 2)], None], narrow)}), options=properties)
    alter_column(log, "m.key", data_type=LONG)
    log.write(pa.table({"m": pa.array([[(3, 4)]], pa.map_(pa.int64(), pa.int32()))}))
    found = log.snapshot().scan().to_arrow()["m"]
    assert found.num_chunks > 1
    assert sorted(map(repr, found.combine_chunks().to_pylist())) == ["None", "[(1, 2)]", "[(3, 4)]"]


def test_id_mode_finds_columns_by_id_at_every_level(tmp_path: Path) -> None:
    inner = pa.struct([with_id("x", pa.int64(), 4), with_id("y", pa.int64(), 3)])
    fields = [with_id("b", pa.int64(), 1), with_id("a", pa.list_(inner), 2)]
    table = pa.table(
        [pa.array([7]), pa.array([[{"x": 1, "y": 2}]], pa.list_(inner))], schema=pa.schema(fields)
    )
    struct = StructType((mapped("x", LONG, "_3", 3), mapped("y", LONG, "_4", 4), mapped("z", LONG, "x", 5)))
    schema = schema_of(a=mapped("a", LONG, "_1", 1), b=mapped("b", ArrayType(struct), "_2", 2))
    found = rows(tmp_path, write(tmp_path, table), schema, mapping_mode="id")
    assert found == [{"a": 7, "b": [{"x": 2, "y": 1, "z": None}]}]


def test_id_mode_refuses_a_file_without_ids(tmp_path: Path) -> None:
    piece = write(tmp_path, pa.table({"a": [1]}))
    with pytest.raises(DataFileError, match=r"a\.parquet .*no field ids"):
        rows(tmp_path, piece, schema_of(a=mapped("a", LONG, "a", 1)), mapping_mode="id")


def test_names_match_exactly_before_ignoring_case(tmp_path: Path) -> None:
    piece = write(tmp_path, pa.table({"ID": [1], "Name": ["up"], "name": ["low"]}))
    assert rows(tmp_path, piece, schema_of(id=LONG, name=STRING)) == [{"id": 1, "name": "low"}]


def test_ambiguous_name_is_refused(tmp_path: Path) -> None:
    piece = write(tmp_path, pa.table({"ID": [1], "Id": [2]}))
    with pytest.raises(DataFileError, match="matches several columns of the file: ID, Id"):
        rows(tmp_path, piece, schema_of(id=LONG))


def test_column_names_with_dots_are_not_paths(tmp_path: Path) -> None:
    piece = write(tmp_path, pa.table({"a": pa.array([{"b": 1}]), "a.b": ["dot"]}))
    assert rows(tmp_path, piece, schema_of(**{"a.b": STRING})) == [{"a.b": "dot"}]


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.string_view()], ids=str
)
def test_arrow_types_that_a_writer_stored_are_decoded(tmp_path: Path, kind: pa.DataType) -> None:
    stored = pa.array(["a", None, "a"]).cast(kind)
    assert read_one(tmp_path, stored, STRING, store_schema=True) == ["a", None, "a"]


# Arrow 25 and older cannot read a null in such a column of Parquet, and say so.
_FIXED_SIZE = pytest.param(
    pa.list_(pa.int64(), 2),
    marks=pytest.mark.skipif(int(pa.__version__.split(".")[0]) < 26, reason="Arrow 25 reads no such nulls"),
)


@pytest.mark.parametrize("kind", [pa.large_list(pa.int64()), _FIXED_SIZE], ids=str)
def test_arrow_lists_that_a_writer_stored_are_decoded(tmp_path: Path, kind: pa.DataType) -> None:
    stored = pa.array([[1, 2], None, [3, 4]], kind)
    assert read_one(tmp_path, stored, ArrayType(LONG), store_schema=True) == [[1, 2], None, [3, 4]]


@pytest.mark.parametrize("nested_name", ["element", "item", "array"])
def test_lists_of_any_inner_name_have_the_tables_type(tmp_path: Path, nested_name: str) -> None:
    stored = pa.array([[1], []], pa.list_(pa.field(nested_name, pa.int64(), False)))
    piece = write(tmp_path, pa.table({"x": stored}), use_compliant_nested_type=False)
    assert rows(tmp_path, piece, schema_of(x=ArrayType(LONG, True))) == [{"x": [1]}, {"x": []}]


def test_char_columns_are_padded_at_every_level(tmp_path: Path) -> None:
    struct = StructType((StructField("c", STRING), StructField("v", STRING)))
    declared = {
        "c": (STRING, "char(4)", "ab"),
        "v": (STRING, "varchar(4)", "ab"),
        "l": (ArrayType(STRING), "array<char(4)>", ["ab", None, "abcdef"]),
        "m": (MapType(STRING, STRING), "map<char(4),varchar(9)>", [("ab", "ab")]),
        "s": (struct, "struct<c:char(4),v:varchar(9)>", {"c": "é", "v": "é"}),
    }
    types = (pa.string(), pa.string(), pa.list_(pa.string()), pa.map_(pa.string(), pa.string()), None)
    table = pa.table({n: pa.array([d[2]], t) for (n, d), t in zip(declared.items(), types, strict=True)})
    schema = StructType(
        tuple(
            StructField(n, d[0], metadata={"__CHAR_VARCHAR_TYPE_STRING": d[1]}) for n, d in declared.items()
        )
    )
    assert rows(tmp_path, write(tmp_path, table), schema) == [
        {
            "c": "ab  ",
            "v": "ab",
            "l": ["ab  ", None, "abcdef"],
            "m": [("ab  ", "ab")],
            "s": {"c": "é   ", "v": "é"},
        }
    ]


@pytest.mark.parametrize(
    ("text", "data_type", "value"),
    [
        ("NULL", LONG, None),
        ("5", LONG, 5),
        ("-5L", LONG, -5),
        ("'it''s'", STRING, "it's"),
        ("''", STRING, ""),
        ("true", BOOLEAN, True),
        ("1.50BD", DecimalType(5, 2), Decimal("1.50")),
        ("1.5E2", DOUBLE, 150.0),
        ("DATE '2020-01-01'", DATE, dt.date(2020, 1, 1)),
        ("TIMESTAMP '2020-01-01 00:00:00'", TIMESTAMP, dt.datetime(2019, 12, 31, 15, tzinfo=UTC)),
        ("CAST('7' AS INT)", INTEGER, 7),
        ("X'0aFF'", BINARY, b"\n\xff"),
    ],
)
def test_exists_default_fills_columns_older_files_lack(
    tmp_path: Path, text: str, data_type: DataType, value: Any
) -> None:
    piece = write(tmp_path, pa.table({"x": [1, 2]}))
    schema = schema_of(n=StructField("n", data_type, metadata={"EXISTS_DEFAULT": text}))
    assert rows(tmp_path, piece, schema, timezone="Asia/Tokyo") == [{"n": value}] * 2


@pytest.mark.parametrize("text", ["rand()", "'x'", "("])
def test_exists_default_that_is_no_constant_of_the_type_is_refused(tmp_path: Path, text: str) -> None:
    piece = write(tmp_path, pa.table({"x": [1]}))
    schema = schema_of(n=StructField("n", LONG, metadata={"EXISTS_DEFAULT": text}))
    with pytest.raises(SchemaError, match="column n "):
        rows(tmp_path, piece, schema)


def test_only_wanted_leaves_are_selected() -> None:
    file = pa.schema(
        [
            ("m", pa.map_(pa.string(), pa.struct([("a", pa.int64()), ("b", pa.int64())]))),
            (
                "s",
                pa.struct(
                    [("a", pa.int64()), ("l", pa.list_(pa.struct([("c", pa.int64()), ("d", pa.int64())])))]
                ),
            ),
            ("z", pa.int64()),
        ]
    )
    b = StructType((StructField("b", LONG),))
    d = StructType((StructField("l", ArrayType(StructType((StructField("d", LONG),)))),))
    schema = schema_of(z=LONG, m=MapType(STRING, b), s=d, new=LONG)
    assert column_conversion.select_leaves(file, schema, "none") == [0, 2, 5, 6]
