"""Writing data files: what is read back is what was written, names, sizes, failures."""

from __future__ import annotations

import datetime as dt
import errno
import io
import json
import os
import pickle
import re
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.exceptions import InvalidOptionError, SchemaError, StorageError
from delta_ds.kernel.files.write.writer import FileWriter, PartitionBuffer
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
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
    PRIMITIVES,
    UTC,
    batch_of,
    commit,
    mapped,
    plan_of,
    present,
    round_trip,
    struct,
    tables,
    types,
    values,
    write,
)
from spark_tests.full_form import examples

X = struct(x=LONG)
XP = struct(x=LONG, p=STRING)
FEW = settings(deadline=None, max_examples=examples(60))


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and "_delta_log" not in path.parts)


def parquet(folder: Path, add: dict[str, Any]) -> pq.ParquetFile:
    path = open_storage(str(folder)).resolve(add["path"])
    return pq.ParquetFile(folder / path)


@given(table=tables(types()), mode=st.sampled_from(["none", "name", "id"]))
@FEW
def test_rows_of_any_type_come_back_as_they_were(
    table: tuple[StructType, list[dict[str, Any]]], mode: str
) -> None:
    schema, rows = table
    schema = schema if mode == "none" else mapped(schema)
    batch = batch_of(schema, rows)
    with tempfile.TemporaryDirectory() as name:
        found = round_trip(Path(name), batch, plan_of(Path(name), schema, mapping_mode=mode))
    assert repr(found.to_pylist()) == repr(batch.to_pylist())


@given(kind=st.sampled_from(PRIMITIVES), data=st.data(), mapped_names=st.booleans())
@FEW
def test_partition_values_of_any_type_come_back_as_they_were(
    kind: DataType, data: st.DataObject, mapped_names: bool
) -> None:
    # The empty text is null in a log, and binary has to be text.
    allowed = present(STRING).filter(bool) if kind == STRING else present(kind)
    if kind == BINARY:
        allowed = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).map(str.encode)
    rows = data.draw(
        st.lists(st.fixed_dictionaries({"p": st.none() | allowed, "x": values(LONG)}), max_size=9)
    )
    schema = mapped(struct(p=kind, x=LONG)) if mapped_names else struct(p=kind, x=LONG)
    batch = batch_of(schema, rows)
    with tempfile.TemporaryDirectory() as name:
        mode = "name" if mapped_names else "none"
        plan = plan_of(Path(name), schema, ["p"], mapping_mode=mode, timezone="America/New_York")
        found = round_trip(Path(name), batch, plan)
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, batch.to_pylist()))


@pytest.mark.parametrize(
    ("kind", "value", "text", "directory"),
    [
        (STRING, "a b/c=d%e:f#g+hé", "a b/c=d%e:f#g+hé", "p=a b%2Fc%3Dd%25e%3Af%23g+hé"),
        (STRING, "\x01[{^'\"*?\\\x7f", "\x01[{^'\"*?\\\x7f", "p=%01%5B%7B%5E%27%22%2A%3F%5C%7F"),
        (STRING, "", None, "p=__HIVE_DEFAULT_PARTITION__"),
        (STRING, None, None, "p=__HIVE_DEFAULT_PARTITION__"),
        (BINARY, b"\x01\x02\x03", "\x01\x02\x03", "p=%01%02%03"),
        (BINARY, b"", None, "p=__HIVE_DEFAULT_PARTITION__"),
        (BOOLEAN, True, "true", "p=true"),
        (BYTE, -7, "-7", "p=-7"),
        (LONG, 2**63 - 1, "9223372036854775807", "p=9223372036854775807"),
        (FLOAT, 0.10000000149011612, "0.1", "p=0.1"),
        (DOUBLE, 1e20, "1.0E20", "p=1.0E20"),
        (DOUBLE, float("nan"), "NaN", "p=NaN"),
        (DOUBLE, -0.0, "-0.0", "p=-0.0"),
        (DOUBLE, float("-inf"), "-Infinity", "p=-Infinity"),
        (DecimalType(10, 3), Decimal("1.5"), "1.500", "p=1.500"),
        (DecimalType(38, 10), Decimal(0), "0.0000000000", "p=0.0000000000"),
        (DATE, dt.date(2024, 2, 29), "2024-02-29", "p=2024-02-29"),
        (DATE, dt.date(1, 1, 1), "0001-01-01", "p=0001-01-01"),
        (TIMESTAMP, dt.datetime(2024, 1, 2, 8, 4, 5, 120000, UTC), "2024-01-02T08:04:05.120000Z",
         "p=2024-01-02 03%3A04%3A05.12"),
        (TIMESTAMP, dt.datetime(2024, 7, 2, 8, 4, 5, 0, UTC), "2024-07-02T08:04:05.000000Z",
         "p=2024-07-02 04%3A04%3A05"),
        (TIMESTAMP_NTZ, dt.datetime(2024, 1, 2, 3, 4, 5, 120000), "2024-01-02 03:04:05.12",
         "p=2024-01-02 03%3A04%3A05.12"),
    ],
)  # fmt: skip
def test_partition_values_are_text_in_the_log_and_escaped_in_directories(
    tmp_path: Path, kind: DataType, value: Any, text: str | None, directory: str
) -> None:
    schema = struct(x=LONG, p=kind)
    (add,) = write(
        tmp_path, schema, [{"x": 1, "p": value}], partition_columns=["p"], timezone="America/New_York"
    )
    assert add["partitionValues"] == {"p": text}
    (file,) = files_of(tmp_path)
    assert file.parent.relative_to(tmp_path).as_posix() == directory


def test_paths_in_the_log_are_uris_of_the_escaped_directories(tmp_path: Path) -> None:
    (add,) = write(tmp_path, XP, [{"x": 1, "p": "a b/c=d%e:f#g+hé"}], partition_columns=["p"])
    assert add["path"].startswith("p=a%20b%252Fc%253Dd%2525e%253Af%2523g+h%C3%A9/part-00000-")
    assert (tmp_path / open_storage(str(tmp_path)).resolve(add["path"])).stat().st_size == add["size"]


def test_nan_is_one_partition_and_negative_zero_another_than_zero(tmp_path: Path) -> None:
    odd_nan = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    schema = struct(x=LONG, p=DOUBLE)
    columns = [pa.array([1, 2, 3, 4]), pa.array([*odd_nan, 0.0, -0.0])]
    writer = FileWriter(open_storage(str(tmp_path)), plan_of(tmp_path, schema, ["p"]))
    writer.write(pa.RecordBatch.from_arrays(columns, schema=arrow_schema(schema)))
    adds = writer.close()
    assert sorted(add["partitionValues"]["p"] for add in adds) == ["-0.0", "0.0", "NaN"]


def test_a_binary_partition_value_that_is_no_text_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    schema = struct(x=LONG, p=BINARY)
    writer = FileWriter(open_storage(str(tmp_path)), plan_of(tmp_path, schema, ["p"]))
    with pytest.raises(SchemaError, match="X'FF'"):
        writer.write(batch_of(schema, [{"x": 1, "p": b"\xff"}]))
    writer.abort()
    assert files_of(tmp_path) == []


@given(
    keys=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", "", None]), st.none() | st.booleans()),
        max_size=60,
    ),
    batch_rows=st.integers(1, 30),
)
@FEW
def test_every_row_lands_in_the_file_of_its_partition_in_order(
    keys: list[tuple[Any, ...]], batch_rows: int
) -> None:
    schema = struct(p=INTEGER, x=LONG, q=STRING, r=BOOLEAN)
    rows = [{"p": p, "q": q, "r": r, "x": i} for i, (p, q, r) in enumerate(keys)]
    batches = [rows[i : i + batch_rows] for i in range(0, len(rows), batch_rows)]
    with tempfile.TemporaryDirectory() as name:
        adds = write(Path(name), schema, *batches, partition_columns=["q", "p", "r"])
        found = {
            tuple(add["partitionValues"].values()): parquet(Path(name), add).read()["x"].to_pylist()
            for add in adds
        }
    wanted: dict[tuple[Any, ...], list[int]] = {}
    for i, (p, q, r) in enumerate(keys):
        text = None if r is None else str(r).lower()
        wanted.setdefault((q or None, str(p), text), []).append(i)
    assert found == wanted
    assert len(adds) == len(wanted)


@given(
    batches=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=200), max_size=12),
    budget=st.integers(100, 5000),
    run=st.integers(50, 2000),
    open_files=st.integers(0, 3),
)
@FEW
def test_a_partition_buffer_gives_back_every_row_once_whatever_is_spilled(
    batches: list[list[int]], budget: int, run: int, open_files: int
) -> None:
    schema = pa.schema([("x", pa.int64()), ("s", pa.string())])
    buffer = PartitionBuffer(schema, budget, run, open_files)
    found: dict[int, list[int]] = {}
    opened: set[int] = set()
    wanted: dict[int, list[int]] = {}
    first = 0
    for numbers in batches:
        xs = list(range(first, first + len(numbers)))
        first += len(numbers)
        for x, number in zip(xs, numbers, strict=True):
            wanted.setdefault(number, []).append(x)
        batch = pa.RecordBatch.from_pydict({"x": xs, "s": [str(x) for x in xs]}, schema=schema)
        buffer.add(batch, np.array(numbers, np.int32))
        if buffer.full:
            for number, pieces in buffer.release(opened):
                opened.add(number)
                for piece in pieces:
                    found.setdefault(number, []).extend(piece["x"].to_pylist())
            assert not buffer.full or len(numbers) * 12 > budget
    for number, rest in buffer.drain():
        for piece in rest:
            assert piece["s"].to_pylist() == [str(x) for x in piece["x"].to_pylist()]
            found.setdefault(number, []).extend(piece["x"].to_pylist())
    assert len(opened) <= max(open_files, 0)
    assert {number: sorted(xs) for number, xs in found.items()} == wanted


class CountingStorage(LocalStorage):
    """Keeps files in memory, and counts how many are open at once."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Address("file", "", str(folder)))
        self.files: dict[str, bytes] = {}
        self.open_now: set[int] = set()
        self.most_open = 0

    def open_output(self, path: str) -> BinaryIO:
        storage = self

        class Output(io.BytesIO):
            def close(self) -> None:
                if not self.closed:
                    storage.files[path] = self.getvalue()
                    storage.open_now.discard(id(self))
                super().close()

        stream = Output()
        self.open_now.add(id(stream))
        self.most_open = max(self.most_open, len(self.open_now))
        return stream

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.files.pop(path, None)


@pytest.mark.parametrize("partitions", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_partitions_make_one_file_each_and_few_are_open_at_once(
    tmp_path: Path, partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delta_ds.kernel.files.write.writer.BUDGET_BYTES", 1 << 20)
    storage = CountingStorage(tmp_path)
    schema = struct(x=LONG, p=LONG)
    writer = FileWriter(storage, plan_of(tmp_path, schema, ["p"]))
    writer._buffer = PartitionBuffer(writer._columns.schema, 1 << 18, 1 << 14, 4)
    for start in range(0, partitions * 10, partitions):
        xs = np.arange(start, start + partitions)
        columns = [pa.array(xs), pa.array(xs % partitions)]
        writer.write(pa.RecordBatch.from_arrays(columns, schema=arrow_schema(schema)))
    adds = writer.close()
    assert len(adds) == len(storage.files) == partitions
    assert sum(json.loads(add["stats"])["numRecords"] for add in adds) == partitions * 10
    assert storage.most_open <= 32


def test_skewed_partitions_stream_and_small_ones_wait(tmp_path: Path) -> None:
    storage = CountingStorage(tmp_path)
    schema = struct(x=LONG, p=LONG)
    writer = FileWriter(storage, plan_of(tmp_path, schema, ["p"]))
    writer._buffer = PartitionBuffer(writer._columns.schema, 1 << 16, 1 << 13, 2)
    rng = np.random.default_rng(1)
    p = np.where(rng.random(50_000) < 0.9, 0, rng.integers(1, 40, 50_000))
    for at in range(0, 50_000, 5000):
        columns = [pa.array(np.arange(at, at + 5000)), pa.array(p[at : at + 5000])]
        writer.write(pa.RecordBatch.from_arrays(columns, schema=arrow_schema(schema)))
    assert storage.most_open == 1
    adds = writer.close()
    assert len(adds) == 40
    total = sum(pq.read_table(io.BytesIO(data))["x"].to_numpy().sum() for data in storage.files.values())
    assert total == 50_000 * 49_999 // 2


@given(sizes=st.lists(st.integers(0, 50), max_size=8), most=st.integers(1, 40))
@FEW
def test_no_file_has_more_rows_than_max_records_per_file(sizes: list[int], most: int) -> None:
    first, batches = 0, []
    for size in sizes:
        batches.append([{"x": x} for x in range(first, first + size)])
        first += size
    with tempfile.TemporaryDirectory() as name:
        adds = write(Path(name), X, *batches, max_records_per_file=most)
        found = [parquet(Path(name), add).read()["x"].to_pylist() for add in adds]
    assert [x for xs in found for x in xs] == list(range(first))
    assert all(len(xs) == most for xs in found[:-1])
    assert all(0 < len(xs) <= most for xs in found)
    assert [json.loads(add["stats"])["numRecords"] for add in adds] == [len(xs) for xs in found]


def test_a_file_that_passes_the_target_size_is_followed_by_another(tmp_path: Path) -> None:
    writer = FileWriter(
        open_storage(str(tmp_path)), plan_of(tmp_path, X, target_file_size=100_000, compression="none")
    )
    for start in range(0, 200_000, 5000):
        columns = [pa.array(np.random.default_rng(start).integers(0, 1 << 62, 5000))]
        writer.write(pa.RecordBatch.from_arrays(columns, schema=arrow_schema(X)))
    adds = writer.close()
    assert 10 <= len(adds) <= 20
    assert all(100_000 <= add["size"] <= 250_000 for add in adds[:-1])
    assert writer.rows == 200_000
    assert writer.bytes == sum(add["size"] for add in adds)
    names = [file.name for file in files_of(tmp_path)]
    assert {name.split(".")[1] for name in names} == {f"c{n:03d}" for n in range(len(adds))}


@pytest.mark.parametrize(
    ("compression", "properties", "codec", "extension"),
    [
        (None, {}, "ZSTD", ".zstd.parquet"),
        (None, {"delta.parquet.compression.codec": "SNAPPY"}, "SNAPPY", ".snappy.parquet"),
        ("gzip", {"delta.parquet.compression.codec": "snappy"}, "GZIP", ".gz.parquet"),
        ("uncompressed", {}, "UNCOMPRESSED", ".c000.parquet"),
        ("lz4_raw", {}, "LZ4", ".lz4raw.parquet"),
    ],
)
def test_compression_is_the_option_else_the_property_else_zstd(
    tmp_path: Path, compression: str | None, properties: dict[str, str], codec: str, extension: str
) -> None:
    (add,) = write(tmp_path, X, [{"x": 1}], compression=compression, properties=properties)
    assert parquet(tmp_path, add).metadata.row_group(0).column(0).compression == codec
    assert add["path"].endswith(extension)


def test_an_unknown_compression_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="lzo"):
        write(tmp_path, X, [{"x": 1}], compression="lzo")
    assert files_of(tmp_path) == []


@pytest.mark.parametrize(("version", "expected"), [("1.0.0", "1.0"), ("2.12.0", "2.6")])
def test_the_parquet_version_is_the_tables(tmp_path: Path, version: str, expected: str) -> None:
    properties = {"delta.parquet.format.version": version}
    (add,) = write(tmp_path, X, [{"x": 1}], properties=properties)
    assert parquet(tmp_path, add).metadata.format_version == expected


def test_names_tell_task_file_and_codec_and_never_repeat(tmp_path: Path) -> None:
    names = set()
    for _ in range(2):
        storage = open_storage(str(tmp_path))
        writer = FileWriter(storage, plan_of(tmp_path, X), task=42, folder="_change_data", prefix="cdc")
        writer.write(batch_of(X, [{"x": 1}]))
        names.add(writer.close()[0]["path"])
    assert len(names) == 2
    for name in names:
        assert re.fullmatch(
            r"_change_data/cdc-00042-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.c000\.zstd\.parquet", name
        )


@pytest.mark.parametrize(
    "how", [{"mapping_mode": "name"}, {"properties": {"delta.randomizeFilePrefixes": "true"}}]
)
def test_random_folders_replace_partition_folders(tmp_path: Path, how: dict[str, Any]) -> None:
    how = {**how, "properties": {**how.get("properties", {}), "delta.randomPrefixLength": "5"}}
    adds = write(
        tmp_path, mapped(XP), [{"x": i, "p": str(i)} for i in range(20)], partition_columns=["p"], **how
    )
    folders = {add["path"].split("/")[0] for add in adds}
    assert all(len(folder) == 5 and folder.isalnum() for folder in folders)
    assert len(folders) > 10


@pytest.mark.parametrize("mode", ["name", "id"])
def test_files_of_mapped_tables_have_physical_names_and_ids_at_every_depth(tmp_path: Path, mode: str) -> None:
    inner = struct(a=LONG, b=STRING)
    schema = mapped(struct(s=inner, l=ArrayType(inner), m=MapType(inner, inner), p=LONG))
    row = {"s": {"a": 1, "b": "x"}, "l": [None], "m": [({"a": 1, "b": "k"}, None)], "p": 3}
    (add,) = write(tmp_path, schema, [row], mapping_mode=mode, partition_columns=["p"])
    assert add["partitionValues"] == {"col-12 x": "3"}
    text = str(parquet(tmp_path, add).schema)
    for number in range(1, 13):
        assert f"field_id={number} col-{number} x" in text
    assert list(json.loads(add["stats"])["minValues"]) == ["col-1 x"]


def test_files_look_as_spark_writes_them(tmp_path: Path) -> None:
    schema = struct(
        StructField("n", LONG, False), l=ArrayType(INTEGER, False), m=MapType(STRING, DATE, False),
        t=TIMESTAMP, u=TIMESTAMP_NTZ, d=DecimalType(9, 2), e=DecimalType(18, 2), f=DecimalType(20, 2), b=BYTE,
    )  # fmt: skip
    (add,) = write(tmp_path, schema, [{"n": 1}])
    text = " ".join(str(parquet(tmp_path, add).schema).split())
    for part in (
        "optional int64 field_id=-1 n;",
        "optional group field_id=-1 l (List) { repeated group field_id=-1 list { optional int32 field_id=-1 element",
        "optional group field_id=-1 m (Map) { repeated group field_id=-1 key_value "
        "{ required binary field_id=-1 key (String); optional int32 field_id=-1 value (Date)",
        "int64 field_id=-1 t (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds",
        "int64 field_id=-1 u (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds",
        "int32 field_id=-1 d (Decimal(precision=9, scale=2))",
        "int64 field_id=-1 e (Decimal(precision=18, scale=2))",
        "fixed_len_byte_array(9) field_id=-1 f (Decimal(precision=20, scale=2))",
        "int32 field_id=-1 b (Int(bitWidth=8, isSigned=true))",
    ):
        assert part in text


@pytest.mark.parametrize("kind", [DATE, TIMESTAMP, TIMESTAMP_NTZ, MapType(STRING, ArrayType(DATE))])
def test_files_with_days_say_that_they_are_of_todays_calendar(tmp_path: Path, kind: DataType) -> None:
    """Else a reader by Spark goes by its session, and may shift days before 1582."""
    (add,) = write(tmp_path, struct(n=LONG, t=kind), [{"n": 1}])
    assert parquet(tmp_path, add).metadata.metadata == {b"org.apache.spark.version": b"3.1.0"}
    (other,) = write(tmp_path, struct(n=LONG), [{"n": 1}])
    assert parquet(tmp_path, other).metadata.metadata is None


def test_variants_come_back(tmp_path: Path) -> None:
    schema = struct(v=VARIANT, l=ArrayType(VARIANT))
    one = {"value": b"\x0c\x05", "metadata": b"\x01\x00\x00"}
    batch = batch_of(schema, [{"v": one, "l": [one, None]}, {}])
    plan = plan_of(tmp_path, schema)
    found = round_trip(tmp_path, batch, plan)
    assert found.to_pylist() == batch.to_pylist()
    file = pq.ParquetFile(files_of(tmp_path)[0])
    assert "required binary field_id=-1 value" in str(file.schema)


_VARIANT = {"value": b"\x0c\x05", "metadata": b"\x01\x00\x00"}
_VARIANTS = struct(
    v=VARIANT,
    s=struct(a=LONG, v=VARIANT, t=struct(v=VARIANT)),
    l=ArrayType(VARIANT),
    n=ArrayType(struct(v=VARIANT)),
    m=MapType(STRING, MapType(STRING, VARIANT)),
)


def as_spark_sends(schema: StructType, rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    """The rows with nulls inside every variant that is null, although its type allows none there."""

    def nullable(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(kind):
            return pa.struct([pa.field(f.name, nullable(f.type)) for f in kind])
        if pa.types.is_list(kind):
            return pa.list_(pa.field("element", nullable(kind.value_type)))
        return pa.map_(kind.key_type, nullable(kind.item_type)) if pa.types.is_map(kind) else kind

    def emptied(array: pa.Array, gone: pa.Array | None = None) -> pa.Array:
        """Arrow itself leaves empty values where a struct is null."""
        kind = array.type
        if pa.types.is_struct(kind):
            gone = array.is_null() if gone is None else pc.or_(gone, array.is_null())
            # Before Arrow 26 entries and keys of maps may not even have a mask.
            gone = gone if pc.any(gone).as_py() else None
            children = [emptied(array.field(i), gone) for i in range(kind.num_fields)]
            return pa.StructArray.from_arrays(children, fields=list(kind), mask=gone)
        if pa.types.is_list(kind) or pa.types.is_map(kind):
            buffers = array.buffers()[:2]
            return pa.Array.from_buffers(
                kind, len(array), buffers, array.null_count, children=[emptied(array.values)]
            )
        return array if gone is None else pc.if_else(gone, pa.scalar(None, kind), array)

    declared = arrow_schema(schema)
    loose = [pa.field(f.name, nullable(f.type)) for f in declared]
    arrays = [emptied(pa.array([row.get(f.name) for row in rows], f.type)) for f in loose]
    _, data = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(loose)).__arrow_c_array__()
    return pa.record_batch(Relabelled(declared, data))


class Relabelled:
    def __init__(self, schema: pa.Schema, data: Any) -> None:
        self._both = schema.__arrow_c_schema__(), data

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        return self._both


def variant_values(kind: DataType) -> st.SearchStrategy[Any]:
    """As `values`, where a variant is null or one constant."""
    if kind == VARIANT:
        return st.sampled_from([None, _VARIANT])
    if isinstance(kind, StructType):
        return st.none() | st.fixed_dictionaries({f.name: variant_values(f.type) for f in kind})
    if isinstance(kind, ArrayType):
        return st.none() | st.lists(variant_values(kind.element), max_size=2)
    if isinstance(kind, MapType):
        return st.none() | st.dictionaries(st.sampled_from("ab"), variant_values(kind.value)).map(
            lambda value: list(value.items())
        )
    return values(kind)


@FEW
@given(st.lists(variant_values(_VARIANTS).filter(bool), max_size=6), st.integers(0, 2))
def test_null_variants_come_back_wherever_they_are(rows: list[dict[str, Any]], start: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        batch = as_spark_sends(_VARIANTS, rows).slice(start)
        found = round_trip(Path(name), batch, plan_of(Path(name), _VARIANTS))
        assert found.to_pylist() == rows[start:]


def test_variant_without_a_value_is_refused(tmp_path: Path) -> None:
    schema = struct(v=VARIANT)
    damaged = as_spark_sends(schema, [{"v": _VARIANT}, {"v": {**_VARIANT, "value": None}}])
    writer = FileWriter(open_storage(str(tmp_path)), plan_of(tmp_path, schema))
    with pytest.raises(StorageError, match="'value' is declared non-nullable"):
        writer.write(damaged)
        writer.close()


def test_void_columns_are_in_no_file_and_read_as_null(tmp_path: Path) -> None:
    schema = struct(v=VOID, x=LONG, s=struct(v=VOID, a=LONG, t=struct(b=STRING, v=VOID)))
    rows = [{"x": 1, "s": {"a": 2, "t": {"b": "x"}}}, {"s": None}, {"s": {"t": None}}]
    batch = batch_of(schema, rows)
    found = round_trip(tmp_path, batch, plan_of(tmp_path, schema))
    assert found.to_pylist() == batch.to_pylist()
    assert pq.read_schema(files_of(tmp_path)[0]).names == ["x", "s"]
    assert "v" not in str(pq.ParquetFile(files_of(tmp_path)[0]).schema).split()


@pytest.mark.parametrize(
    "schema",
    [
        struct(v=VOID),
        struct(x=LONG, l=ArrayType(VOID)),
        struct(x=LONG, m=MapType(STRING, struct(v=VOID, a=LONG))),
        struct(x=LONG, s=struct(v=VOID)),
        struct(x=LONG, s=struct(t=struct())),
    ],
)
def test_void_where_no_file_can_hold_it_is_refused(tmp_path: Path, schema: StructType) -> None:
    with pytest.raises(SchemaError):
        FileWriter(open_storage(str(tmp_path)), plan_of(tmp_path, schema))


def test_a_table_of_partition_columns_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="partition columns"):
        FileWriter(open_storage(str(tmp_path)), plan_of(tmp_path, XP, ["p", "x"]))


@pytest.mark.parametrize(
    "how",
    [
        {"features": frozenset(["materializePartitionColumns"])},
        {"properties": {"delta.writePartitionColumnsToParquet": "true"}},
        {"properties": {"delta.randomizeFilePrefixes": "true"}},
    ],
)
def test_partition_columns_are_in_the_files_where_the_table_wants_them(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    schema = struct(p=STRING, x=LONG)
    batch = batch_of(schema, [{"p": "a", "x": 1}, {"p": "", "x": 2}])
    plan = plan_of(tmp_path, schema, ["p"], **how)
    found = round_trip(tmp_path, batch, plan)
    assert sorted(map(repr, found.to_pylist())) == ["{'p': 'a', 'x': 1}", "{'p': None, 'x': 2}"]
    for file in files_of(tmp_path):
        assert pq.read_schema(file).names == ["x", "p"]


@pytest.mark.parametrize(
    "how",
    [
        {
            "properties": {
                "delta.randomizeFilePrefixes": "true",
                "delta.writePartitionColumnsToParquet": "false",
            }
        },
        {"mapping_mode": "name", "properties": {"delta.writePartitionColumnsToParquet": "false"}},
    ],
)
def test_partition_columns_are_not_in_the_files_of_tables_that_say_so(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    adds = write(tmp_path, mapped(XP), [{"x": 1, "p": "a"}], partition_columns=["p"], **how)
    assert len(parquet(tmp_path, adds[0]).schema_arrow.names) == 1


def test_extra_columns_come_last_and_have_no_statistics(tmp_path: Path) -> None:
    extra = StructField("_row-id-col-1", LONG)
    plan = plan_of(tmp_path, mapped(X), mapping_mode="name", extra_columns=(extra,))
    writer = FileWriter(open_storage(str(tmp_path)), plan)
    writer.write(batch_of(struct(extra, x=LONG), [{"x": 1}]).select(["x", "_row-id-col-1"]))
    (add,) = writer.close()
    assert parquet(tmp_path, add).schema_arrow.names == ["col-1 x", "_row-id-col-1"]
    assert list(json.loads(add["stats"])["nullCount"]) == ["col-1 x"]


def test_rows_of_another_schema_are_refused(tmp_path: Path) -> None:
    writer = FileWriter(open_storage(str(tmp_path)), plan_of(tmp_path, X))
    with pytest.raises(SchemaError, match="x string, not x int64"):
        writer.write(pa.RecordBatch.from_pydict({"x": ["a"]}))


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    assert write(tmp_path, XP, [], partition_columns=["p"]) == []
    assert write(tmp_path, X, []) == []
    assert files_of(tmp_path) == []


def test_large_files_have_large_row_groups_and_dictionaries_where_they_pay(tmp_path: Path) -> None:
    schema = struct(unique=LONG, few=STRING, l=ArrayType(LONG))
    writer = FileWriter(open_storage(str(tmp_path)), plan_of(tmp_path, schema))
    for start in range(0, 1_200_000, 100_000):
        xs = np.arange(start, start + 100_000)
        few = pa.array(["a", "b"] * 50_000)
        columns = [pa.array(xs), few, pa.nulls(100_000, pa.list_(pa.field("element", pa.int64())))]
        writer.write(pa.RecordBatch.from_arrays(columns, schema=arrow_schema(schema)))
    (add,) = writer.close()
    metadata = parquet(tmp_path, add).metadata
    assert metadata.num_row_groups == 2
    group = metadata.row_group(0)
    assert [group.column(i).has_dictionary_page for i in range(3)] == [False, True, True]


@pytest.mark.parametrize("partition_columns", [(), ("p",)])
def test_abort_leaves_no_file(tmp_path: Path, partition_columns: tuple[str, ...]) -> None:
    plan = plan_of(tmp_path, XP, partition_columns, max_records_per_file=2)
    writer = FileWriter(open_storage(str(tmp_path)), plan)
    writer._buffer = writer._buffer and PartitionBuffer(writer._columns.schema, 1, 1)
    writer.write(batch_of(XP, [{"x": i, "p": str(i % 2)} for i in range(11)]))
    assert len(files_of(tmp_path)) > 2
    writer.abort()
    assert files_of(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
def test_a_full_temporary_folder_is_told_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path, XP, ("p",), max_records_per_file=2)
    writer = FileWriter(open_storage(str(tmp_path)), plan)
    writer._buffer = PartitionBuffer(writer._columns.schema, 1, 1, 1)
    full = open("/dev/full", "w+b", buffering=1 << 20)  # noqa: SIM115 (closed by the writer)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full)
    with pytest.raises(StorageError, match="temporary file.*No space left.*nothing was committed") as caught:
        writer.write(batch_of(XP, [{"x": i, "p": str(i % 5)} for i in range(50)]))
    assert isinstance(caught.value.__cause__, OSError)
    writer.abort()
    assert files_of(tmp_path) == []


def test_abort_after_close_deletes_what_no_commit_refers_to(tmp_path: Path) -> None:
    writer = FileWriter(open_storage(str(tmp_path)), plan_of(tmp_path, X))
    writer.write(batch_of(X, [{"x": 1}]))
    assert len(writer.close()) == len(files_of(tmp_path)) == 1
    writer.abort()
    assert files_of(tmp_path) == []


class BrokenStorage(LocalStorage):
    """Fails when the third file is closed, as a full device does."""

    def __init__(self, folder: Path, where: str) -> None:
        super().__init__(Address("file", "", str(folder)))
        self.where = where
        self.opened = 0

    def open_output(self, path: str) -> BinaryIO:
        self.opened += 1
        stream = super().open_output(path)
        if self.opened < 3:
            return stream
        real = stream.close

        def fail(*_: Any) -> Any:
            real()
            raise StorageError("No space left on device")

        setattr(stream, self.where, fail)
        return stream


@pytest.mark.parametrize("where", ["close", "write"])
def test_a_failure_in_close_deletes_what_was_written(tmp_path: Path, where: str) -> None:
    writer = FileWriter(BrokenStorage(tmp_path, where), plan_of(tmp_path, XP, ["p"]))
    writer.write(batch_of(XP, [{"x": i, "p": str(i)} for i in range(9)]))
    with pytest.raises(StorageError, match="No space left"):
        writer.close()
    assert files_of(tmp_path) == []


class FullStorage(LocalStorage):
    """The device has no room for the last bytes of one of the files."""

    def __init__(self, folder: Path, number: int) -> None:
        super().__init__(Address("file", "", str(folder)))
        self.left = number
        self.full = ""

    def open_output(self, path: str) -> BinaryIO:
        stream = super().open_output(path)
        self.left -= 1
        if self.left == 0:
            self.full = self.describe(path)
            real = stream.close

            def fail() -> None:
                real()
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            stream.close = fail  # type: ignore[method-assign]
        return stream


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_file_that_cannot_be_closed_is_named(tmp_path: Path, number: int) -> None:
    storage = FullStorage(tmp_path, number)
    writer = FileWriter(storage, plan_of(tmp_path, XP, ["p"]))
    writer.write(batch_of(XP, [{"x": i, "p": str(i)} for i in range(3)]))
    with pytest.raises(StorageError, match="No space left on device; nothing was committed; free") as caught:
        writer.close()
    assert caught.value.parameters == {"path": storage.full, "errno": errno.ENOSPC}
    assert storage.full.startswith(f"{tmp_path}/p=") and storage.full in str(caught.value)
    assert files_of(tmp_path) == []


def test_plans_travel_to_tasks(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, mapped(XP), ["p"], mapping_mode="id", properties={"a": "b"})
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_times_are_of_now_and_sizes_of_the_files(tmp_path: Path) -> None:
    (add,) = write(tmp_path, X, [{"x": 1}])
    (file,) = files_of(tmp_path)
    assert add["size"] == file.stat().st_size
    assert abs(add["modificationTime"] - file.stat().st_mtime * 1000) < 60_000
    assert add["dataChange"] is True
    assert commit(tmp_path, plan_of(tmp_path, X), [add]).snapshot().scan().to_arrow().to_pylist() == [
        {"x": 1}
    ]
    assert os.listdir(tmp_path / "_delta_log")
