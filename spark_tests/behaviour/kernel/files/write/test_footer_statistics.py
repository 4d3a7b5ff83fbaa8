"""Statistics from footers: the text that the writer of the same rows gives, whatever wrote the file and how."""

from __future__ import annotations

import datetime as dt
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.exceptions import DataFileError
from delta_ds.kernel.files.write.columns import file_columns
from delta_ds.kernel.files.write.footer_statistics import FooterStatistics, read_footer
from delta_ds.kernel.files.write.write_spec import WriteSpec
from delta_ds.kernel.files.write.writer import FileWriter
from delta_ds.kernel.format.schema.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
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
    StructField,
    StructType,
    arrow_schema,
)
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.uri import Address
from spark_tests.behaviour.kernel.files.write.written_tables import (
    UTC,
    batch_of,
    mapped,
    plan_of,
    struct,
    tables,
    types,
)
from spark_tests.full_form import examples

FEW = settings(deadline=None, max_examples=examples(80))
NAN, INF = float("nan"), float("inf")
DELETION_VECTORS = frozenset(["deletionVectors"])


def written(folder: Path, plan: WriteSpec, batch: pa.RecordBatch) -> str:
    """What `FileWriter` says of the rows."""
    writer = FileWriter(open_storage(str(folder)), plan)
    writer.write(batch)
    (add,) = writer.close()
    return str(add["stats"])


def foreign(folder: Path, plan: WriteSpec, batch: pa.RecordBatch, **options: Any) -> Path:
    """The rows in a file by another way."""
    rows = pa.Table.from_batches([file_columns(plan).physical(batch)])
    path = folder / "foreign.parquet"
    pq.write_table(rows, path, **{"store_schema": False, **options})
    return path


def found(path: Path, plan: WriteSpec, storage: LocalStorage | None = None) -> tuple[int, str]:
    storage = storage or LocalStorage(Address("file", "", str(path.parent)))
    return FooterStatistics(storage, plan).of(path.name, path.stat().st_size)


def texts(stats: str) -> Any:
    """Numbers as they are written; zeros of both signs are equal, and which one bounds a column is open."""
    return json.loads(stats, parse_float=lambda text: "0.0" if text == "-0.0" else text, parse_int=str)


def both(
    schema: StructType, rows: Sequence[dict[str, Any]], plan: dict[str, Any], **options: Any
) -> tuple[str, str]:
    """The statistics of `FileWriter`, and those found in a file that was written with the options."""
    batch = batch_of(schema, rows)
    with tempfile.TemporaryDirectory() as name:
        the_plan = plan_of(Path(name), schema, **plan)
        path = foreign(Path(name), the_plan, batch, **options)
        count, stats = found(path, the_plan)
        assert count == len(rows)
        return written(Path(name), the_plan, batch), stats


OPTIONS = st.fixed_dictionaries(
    {
        "row_group_size": st.integers(1, 9),
        "store_decimal_as_integer": st.booleans(),
        "use_dictionary": st.booleans(),
        "write_statistics": st.booleans() | st.just(["c0"]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "version": st.sampled_from(["1.0", "2.6"]),
        "store_schema": st.booleans(),
        "compression": st.sampled_from(["none", "zstd"]),
    }
)


@given(
    table=tables(types()),
    options=OPTIONS,
    mode=st.sampled_from(["none", "name", "id"]),
    features=st.sampled_from([frozenset[str](), DELETION_VECTORS]),
)
@FEW
def test_any_rows_in_any_file_have_the_statistics_of_the_writer(
    table: tuple[StructType, list[dict[str, Any]]],
    options: dict[str, Any],
    mode: str,
    features: frozenset[str],
) -> None:
    schema, rows = table
    if not rows:
        return
    if mode != "none":
        schema = mapped(schema)
    wanted, stats = both(schema, rows, {"mapping_mode": mode, "features": features}, **options)
    assert texts(stats) == texts(wanted)


MOMENTS = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999))


@given(
    moments=st.lists(st.none() | MOMENTS, min_size=1, max_size=8),
    options=OPTIONS,
    int96=st.booleans(),
)
@FEW
def test_times_have_the_statistics_of_the_writer_in_the_old_form_too(
    moments: list[dt.datetime | None], options: dict[str, Any], int96: bool
) -> None:
    schema = struct(t=TIMESTAMP, n=TIMESTAMP_NTZ, s=struct(t=TIMESTAMP), d=DATE)
    rows = [
        {"t": zoned, "n": m, "s": None if m and m.day % 2 else {"t": zoned}, "d": m and m.date()}
        for m in moments
        for zoned in [m and m.replace(tzinfo=UTC)]
    ]
    wanted, stats = both(schema, rows, {}, **options, use_deprecated_int96_timestamps=int96)
    assert stats == wanted


PARTS = st.text(st.characters(codec="utf-8") | st.sampled_from("a\x7f\U0010ffff😀é"), max_size=5)
LONG_TEXTS = st.builds(
    lambda head, unit, count, tail: head + unit * count + tail,
    PARTS,
    st.sampled_from(["a", "é", "😀", "\U0010ffff", "ab"]),
    st.sampled_from([0, 15, 16, 17, 30, 31, 32, 33, 64, 1023, 1024, 1025, 4095, 4096, 4097]),
    PARTS,
)


@given(
    rows=st.lists(st.none() | LONG_TEXTS, min_size=1, max_size=6), options=OPTIONS, length=st.integers(1, 40)
)
@FEW
def test_long_strings_have_the_statistics_of_the_writer(
    rows: list[str | None], options: dict[str, Any], length: int
) -> None:
    schema = struct(x=STRING, s=struct(y=STRING))
    properties = {"delta.dataSkippingStringPrefixLength": str(length)}
    wanted, stats = both(
        schema, [{"x": x, "s": {"y": x} if x else None} for x in rows], {"properties": properties}, **options
    )
    assert stats == wanted


@given(
    values=st.lists(st.none() | st.sampled_from([NAN, INF, -INF, 1.5, -2.0, 1e300]), min_size=1, max_size=9),
    options=OPTIONS,
)
@FEW
def test_floats_have_the_statistics_of_the_writer_wherever_nan_is(
    values: list[float | None], options: dict[str, Any]
) -> None:
    schema = struct(d=DOUBLE, s=struct(f=FLOAT))
    rows = [{"d": x, "s": {"f": x if x != 1e300 else 1.0}} for x in values]
    wanted, stats = both(schema, rows, {}, **options)
    assert stats == wanted


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_zero_keeps_its_sign(zero: float) -> None:
    wanted, stats = both(struct(x=DOUBLE, f=FLOAT), [{"x": zero, "f": zero}], {})
    assert stats == wanted
    assert f'"x":{zero}' in stats


def test_decimals_of_each_physical_type_keep_all_their_digits() -> None:
    schema = struct(a=DecimalType(9, 4), b=DecimalType(18, 18), c=DecimalType(38, 0), d=DecimalType(38, 38))
    rows = [
        {f.name: sign * (10**f.type.precision - 1) for f in schema if isinstance(f.type, DecimalType)}
        for sign in (1, -1, 0)
    ]
    columns = [
        pa.array([_decimal(row[f.name], f.type) for row in rows], arrow_schema(schema).field(f.name).type)
        for f in schema
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(schema))
    for integers in (False, True):
        with tempfile.TemporaryDirectory() as name:
            plan = plan_of(Path(name), schema)
            path = foreign(Path(name), plan, batch, store_decimal_as_integer=integers)
            stats = found(path, plan)[1]
            assert stats == written(Path(name), plan, batch)
            assert '"d":-0.' + "9" * 38 in stats


def _decimal(unscaled: int, kind: DataType) -> Any:
    from decimal import Context, Decimal

    assert isinstance(kind, DecimalType)
    return Decimal(unscaled).scaleb(-kind.scale, Context(prec=60))


def test_strings_that_are_no_text_have_no_bounds(tmp_path: Path) -> None:
    values = pa.array([b"\xff\xfe", b"a"]).view(pa.string())
    batch = pa.RecordBatch.from_arrays([values], names=["x"])
    plan = plan_of(tmp_path, struct(x=STRING))
    stats = found(foreign(tmp_path, plan, batch), plan)[1]
    assert stats == written(tmp_path, plan, batch)
    assert json.loads(stats)["maxValues"] == {}


NESTED_NULLS: list[dict[str, Any]] = [
    {"l": None, "m": None, "s": None},
    {"l": [], "m": [], "s": {"l": None, "v": None}},
    {
        "l": [None],
        "m": [("k", None)],
        "s": {"l": [{"a": None}], "v": {"value": b"\0", "metadata": b"\1\0\0"}},
    },
    {"l": [1], "m": [("k", [])], "s": {"l": [], "v": None}},
]


@pytest.mark.parametrize("group", [1, 2, 9])
@pytest.mark.parametrize("statistics", [True, False])
def test_nulls_of_lists_maps_and_variants_are_not_those_inside_them(group: int, statistics: bool) -> None:
    schema = struct(
        l=ArrayType(LONG),
        m=MapType(STRING, ArrayType(LONG)),
        s=struct(l=ArrayType(struct(a=LONG)), v=VARIANT),
        n=VOID,
        b=BINARY,
    )
    wanted, stats = both(schema, NESTED_NULLS, {}, row_group_size=group, write_statistics=statistics)
    assert stats == wanted
    assert json.loads(stats)["nullCount"] == {"l": 1, "m": 1, "s": {"l": 2, "v": 3}, "n": 4, "b": 4}


def test_the_columns_that_the_table_asks_for_have_statistics() -> None:
    schema = struct(a=LONG, b=struct(c=STRING, d=LONG), e=LONG, p=LONG)
    for properties in (
        {"delta.dataSkippingNumIndexedCols": "2"},
        {"delta.dataSkippingNumIndexedCols": "0"},
        {"delta.dataSkippingStatsColumns": "b.d,e"},
    ):
        plan = {"properties": properties, "clustering_columns": (("e",),)}
        wanted, stats = both(schema, [{"a": 1, "b": {"c": "x", "d": 2}, "e": 3}], plan)
        assert stats == wanted


def test_files_whose_columns_are_in_another_order_are_read_by_name(tmp_path: Path) -> None:
    schema = struct(a=LONG, s=struct(x=STRING, y=DOUBLE), l=ArrayType(LONG))
    rows = [{"a": 1, "s": {"x": "é", "y": NAN}, "l": [1, 2]}, {"a": 2, "s": None, "l": None}]
    plan = plan_of(tmp_path, schema)
    batch = batch_of(schema, rows)
    turned = batch.select(["l", "s", "a"])
    inner = pa.StructArray.from_arrays(
        [turned["s"].field("y"), turned["s"].field("x")], ["y", "x"], mask=turned["s"].is_null()
    )
    table = pa.table({"l": turned["l"], "s": inner, "a": turned["a"]})
    pq.write_table(table, tmp_path / "x.parquet")
    assert found(tmp_path / "x.parquet", plan)[1] == written(tmp_path, plan, batch)


class FootersOnly(LocalStorage):
    """Gives ends of files, not whole ones; counts how often it is asked."""

    reads = 0

    def open(self, path: str) -> Any:
        raise AssertionError(f"{path} was opened")

    def _read_range(self, path: str, offset: int, length: int) -> bytes:
        self.reads += 1
        return super()._read_range(path, offset, length)


def test_what_footers_tell_is_not_read_from_rows(tmp_path: Path) -> None:
    schema = struct(
        i=INTEGER,
        d=DecimalType(38, 2),
        s=STRING,
        t=TIMESTAMP,
        n=TIMESTAMP_NTZ,
        b=BINARY,
        e=struct(x=DATE),
        v=VARIANT,
    )
    day = dt.datetime(2024, 1, 2)
    variant = {"value": b"\0", "metadata": b"\1\0\0"}
    row = {"i": 1, "s": "x" * 4096, "t": day.replace(tzinfo=UTC), "n": day, "b": b"\xff", "v": variant}
    rows = [{**row, "e": {"x": day.date()}}, {"s": "b"}, {}]
    plan = plan_of(tmp_path, schema)
    batch = batch_of(schema, rows)
    path = foreign(tmp_path, plan, batch, row_group_size=2)
    storage = FootersOnly(Address("file", "", str(tmp_path)))
    assert found(path, plan, storage) == (3, written(tmp_path, plan, batch))
    assert storage.reads == 1


def test_floats_of_parquet_java_are_not_read_from_rows(tmp_path: Path) -> None:
    schema = struct(d=DOUBLE, f=FLOAT, l=ArrayType(LONG))
    batch = batch_of(schema, [{"d": 1.5, "f": 0.1, "l": [1]}, {"d": -2.5, "f": None, "l": [2]}])
    plan = plan_of(tmp_path, schema)
    path = foreign(tmp_path, plan, batch)
    content = path.read_bytes()
    assert content.count(b"parquet-cpp-arrow version") == 1
    path.write_bytes(content.replace(b"parquet-cpp-arrow version", b"parquet-mr-a-test version"))
    storage = FootersOnly(Address("file", "", str(tmp_path)))
    assert found(path, plan, storage)[1] == written(tmp_path, plan, batch)


def test_a_footer_larger_than_the_first_read_is_read_whole(tmp_path: Path) -> None:
    schema = struct(**{f"column_{i}": LONG for i in range(40)})
    rows = [{name: i for name in schema.names} for i in range(60)]
    plan = plan_of(tmp_path, schema)
    batch = batch_of(schema, rows)
    path = foreign(tmp_path, plan, batch, row_group_size=1)
    storage = FootersOnly(Address("file", "", str(tmp_path)))
    assert read_footer(storage, path.name, path.stat().st_size).num_row_groups == 60
    assert storage.reads == 2
    assert found(path, plan)[1] == written(tmp_path, plan, batch)


def test_files_of_the_old_calendar_have_bounds_in_the_new_one(tmp_path: Path) -> None:
    schema = struct(d=DATE, t=TIMESTAMP)
    plan = plan_of(tmp_path, schema)
    # Day -200,000 is 1422-05-25 in the old calendar, which is day -199,991 in the new one.
    old = [pa.array([-200_000, 0], pa.int32()).view(pa.date32())]
    moments = pa.array([-200_000 * 86_400_000_000, 0]).view(pa.timestamp("us", "UTC"))
    marks = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}
    table = pa.table([*old, moments], schema=arrow_schema(schema)).replace_schema_metadata(marks)
    pq.write_table(table, tmp_path / "x.parquet")
    stats = json.loads(found(tmp_path / "x.parquet", plan)[1])
    assert stats["minValues"] == {"d": "1422-05-25", "t": "1422-05-25T00:00:00.000Z"}
    assert stats["maxValues"] == {"d": "1970-01-01", "t": "1970-01-01T00:00:00.000Z"}


def test_files_of_several_schemas_can_be_mixed(tmp_path: Path) -> None:
    schema = struct(x=DecimalType(10, 2), y=LONG)
    plan = plan_of(tmp_path, schema)
    batch = batch_of(schema, [{"y": 1}, {"y": 2}])
    statistics = FooterStatistics(LocalStorage(Address("file", "", str(tmp_path))), plan)
    for i, table in enumerate([pa.table(batch), pa.table(batch).select(["y", "x"])] * 2):
        path = tmp_path / f"{i}.parquet"
        pq.write_table(table, path)
        assert statistics.of(path.name, path.stat().st_size)[1] == written(tmp_path, plan, batch)


MAPPED = mapped(struct(a=LONG, s=struct(b=LONG)))


@pytest.mark.parametrize(
    ("schema", "columns", "text"),
    [
        (struct(a=LONG, b=LONG), {"a": [1]}, r"fields \['a'\] instead of \['a', 'b'\]"),
        (struct(a=LONG), {"a": [1], "b": [1]}, "instead of"),
        (struct(a=LONG), {"A": [1]}, "instead of"),
        (struct(s=struct(a=LONG)), {"s": [{"b": 1}]}, r"column s has the fields \['b'\]"),
        (struct(l=ArrayType(struct(a=LONG))), {"l": [[{"b": 1}]]}, "column l.element"),
        (struct(a=LONG), {"a": ["x"]}, "column a is string in the file"),
        (MAPPED, {"col-1 x": [1], "col-2 x": [{"col-3 x": 1}]}, "column col-1 x has the field id"),
    ],
)
def test_files_with_other_columns_than_the_tables_are_refused(
    tmp_path: Path, schema: StructType, columns: dict[str, Any], text: str
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    plan = plan_of(tmp_path, schema, mapping_mode="name" if schema is MAPPED else "none")
    with pytest.raises(DataFileError, match=text) as caught:
        found(tmp_path / "x.parquet", plan)
    assert "x.parquet" in caught.value.text
    assert "nothing was committed" in caught.value.text


def test_shredded_variants_need_the_tables_feature(tmp_path: Path) -> None:
    schema = struct(v=VARIANT, l=ArrayType(VARIANT))
    parts = pa.struct(
        [pa.field("metadata", pa.binary(), False), ("value", pa.binary()), ("typed_value", pa.int64())]
    )
    shredded = [{"metadata": b"\1\0\0", "value": None, "typed_value": 1}, None, None]
    columns = {"v": pa.array(shredded, parts), "l": pa.array([[], None, [None]], pa.list_(parts))}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    with pytest.raises(DataFileError, match="column v is a shredded variant"):
        found(tmp_path / "x.parquet", plan_of(tmp_path, schema))
    plan = plan_of(tmp_path, schema, features=frozenset(["variantShredding"]))
    assert json.loads(found(tmp_path / "x.parquet", plan)[1])["nullCount"] == {"v": 2, "l": 1}


@pytest.mark.parametrize("cut", [0, 3, 100])
def test_damaged_files_are_refused(tmp_path: Path, cut: int) -> None:
    schema = struct(a=LONG)
    plan = plan_of(tmp_path, schema)
    path = foreign(tmp_path, plan, batch_of(schema, [{"a": 1}]))
    path.write_bytes(path.read_bytes()[:cut] if cut != 3 else b"PAR1\xff\xff\xff\x7fPAR1")
    with pytest.raises(DataFileError, match=r"foreign\.parquet"):
        found(path, plan)


def test_a_field_of_a_struct_needs_its_id_too(tmp_path: Path) -> None:
    ids = {b"PARQUET:field_id": b"1"}, {b"PARQUET:field_id": b"2"}
    fields = [
        pa.field("col-1 x", pa.int64(), metadata=ids[0]),
        pa.field("col-2 x", pa.struct([pa.field("col-3 x", pa.int64())]), metadata=ids[1]),
    ]
    pq.write_table(pa.schema(fields).empty_table(), tmp_path / "x.parquet")
    with pytest.raises(DataFileError, match=r"col-2 x\.col-3 x has the field id"):
        found(tmp_path / "x.parquet", plan_of(tmp_path, MAPPED, mapping_mode="id"))


def test_a_file_without_rows_has_none(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, StructType((StructField("a", LONG),)))
    path = foreign(tmp_path, plan, batch_of(plan.schema, []))
    assert found(path, plan)[0] == 0
