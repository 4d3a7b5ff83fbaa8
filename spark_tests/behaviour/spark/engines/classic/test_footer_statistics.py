"""Files of Spark's own Parquet writer: their actions are those of `FileWriter` for the same rows."""

from __future__ import annotations

import datetime as dt
import json
from contextlib import AbstractContextManager
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType as SparkStructType

from delta_ds.exceptions import DataFileError
from delta_ds.kernel.files.write.columns import file_columns
from delta_ds.kernel.files.write.write_spec import WriteSpec
from delta_ds.kernel.files.write.writer import FileWriter
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
    StructType,
    schema_to_json,
)
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.uri import Address
from delta_ds.kernel.transaction.write.parquet_files import read_parquet_files
from spark_tests.behaviour.kernel.files.write.written_tables import UTC, batch_of, mapped, plan_of, struct
from spark_tests.behaviour.spark.session_settings import session_settings

TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
REBASE = "spark.sql.parquet.datetimeRebaseModeInWrite"
INT96_REBASE = "spark.sql.parquet.int96RebaseModeInWrite"
SHREDDING = "spark.sql.variant.writeShredding.enabled"
FORCED_SHREDDING = "spark.sql.variant.forceShreddingSchemaForTest"
NAN = float("nan")


def confs(spark: SparkSession, **values: str) -> AbstractContextManager[None]:
    """Session settings, by the names of the constants above."""
    return session_settings(spark, {globals()[name]: value for name, value in values.items()})


def frame(spark: SparkSession, rows: pa.RecordBatch | pa.Table, schema: StructType) -> DataFrame:
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    return spark.createDataFrame(table, schema=SparkStructType.fromJson(json.loads(schema_to_json(schema))))


def save(rows: DataFrame, folder: Path, *partition_columns: str, **options: Any) -> None:
    writer = rows.write.options(**{"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false", **options})
    writer.option("compression", "zstd").partitionBy(*partition_columns).parquet(str(folder / "new"))


def wanted(folder: Path, plan: WriteSpec, batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The actions of `FileWriter` for the rows, without what is each file's own."""
    writer = FileWriter(open_storage(str(folder)), plan)
    writer.write(batch)
    return [shared(add) for add in writer.close()]


def shared(add: dict[str, Any]) -> dict[str, Any]:
    return {**add, "path": "", "size": 0, "modificationTime": 0}


class FootersOnly(LocalStorage):
    """Gives ends of files, not whole ones."""

    def open(self, path: str) -> Any:
        raise AssertionError(f"{path} was opened")


ALL = struct(
    b=BYTE, h=SHORT, i=INTEGER, l=LONG, f=FLOAT, d=DOUBLE, nan=DOUBLE, zero=DOUBLE, below=FLOAT, c9=DecimalType(9, 2),
    c18=DecimalType(18, 4), c38=DecimalType(38, 10), s=STRING, long=STRING, longer=STRING, t=TIMESTAMP, n=TIMESTAMP_NTZ,
    day=DATE, bin=BINARY, blob=BINARY, flag=BOOLEAN, nothing=LONG,
    st=struct(x=STRING, y=struct(z=DOUBLE, t=TIMESTAMP, a=ArrayType(LONG))),
    a=ArrayType(LONG), full=ArrayType(struct(x=LONG)), m=MapType(STRING, LONG), v=VARIANT,
)  # fmt: skip
VALUE = {"value": b"\0", "metadata": b"\1\0\0"}
OLD, NEW = dt.datetime(1500, 3, 1, 1, 2, 3, 456789), dt.datetime(2024, 1, 2, 3, 4, 5, 678901)
ROWS: list[dict[str, Any]] = [
    {
        "b": -128, "h": -1, "i": 2**31 - 1, "l": -(2**63), "f": 0.1, "d": 1e300, "nan": NAN, "zero": 0.0,
        "below": -0.0, "c9": Decimal("-1.25"), "c18": Decimal("-12345678901234.5678"), "c38": Decimal("-1e-10"),
        "s": "b" * 31 + "😀tail", "long": "x" * 3000, "longer": "y" * 5000 + "é", "t": OLD.replace(tzinfo=UTC),
        "n": OLD, "day": OLD.date(), "bin": b"\xff", "blob": b"z" * 5000, "flag": True,
        "st": {"x": "c" * 40, "y": {"z": NAN, "t": NEW.replace(tzinfo=UTC), "a": []}},
        "a": [1, None], "full": [{"x": None}], "m": [("k", None)], "v": VALUE,
    },
    {
        "b": 127, "h": 2, "i": -5, "l": 2**63 - 1, "f": -2.5, "d": -1e-300, "nan": 1.0, "zero": 5.0, "below": -3.0,
        "c9": Decimal("3.50"), "c18": Decimal("0.0001"), "c38": Decimal("9" * 28), "s": "\U0010ffff" * 40, "long": "é",
        "longer": "", "t": NEW.replace(tzinfo=UTC), "n": NEW, "day": NEW.date(), "bin": b"", "blob": b"", "flag": False,
        "st": {"x": None, "y": None}, "a": [], "full": [{"x": 1}], "m": [], "v": None,
    },
    {"full": [{"x": 2}, {"x": 3}], "zero": 1.0},
]  # fmt: skip


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS"])
@pytest.mark.parametrize("calendar", ["CORRECTED", "LEGACY"])
def test_every_type_has_the_statistics_of_the_writer(
    spark: SparkSession, tmp_path: Path, kind: str, calendar: str
) -> None:
    plan = plan_of(tmp_path, ALL, features=frozenset(["deletionVectors"]), properties=EVERY)
    batch = batch_of(ALL, ROWS)
    rows = frame(spark, batch.drop_columns(["v"]), StructType(ALL.fields[:-1]))
    rows = rows.withColumn("v", F.expr("case when flag then parse_json('1') end")).coalesce(1)
    with confs(spark, TIMESTAMPS=kind, REBASE=calendar, INT96_REBASE=calendar, SHREDDING="false"):
        save(rows, tmp_path)
    found = [shared(add) for add in read_parquet_files(open_storage(str(tmp_path)), plan, "new").adds]
    assert found == wanted(tmp_path, plan, batch)


WITHOUT_PARTITIONS = {"delta.writePartitionColumnsToParquet": "false"}
EVERY = {"delta.dataSkippingNumIndexedCols": "-1"}
PLAIN = struct(
    k=LONG, x=DOUBLE, f=FLOAT, c=DecimalType(12, 2), s=STRING, d=DATE, t=TIMESTAMP, st=struct(y=STRING, z=DOUBLE),
    a=ArrayType(LONG),
)  # fmt: skip


def plain(count: int) -> pa.RecordBatch:
    """Rows of `PLAIN` with nulls and NaN here and there."""
    random = np.random.default_rng(7)
    x = random.normal(size=count)
    x[::97] = np.nan
    some = random.random(count) < 0.2
    words = pa.array([f"{n:x}é" * (1 + n % 11) for n in random.integers(1, 10**9, count)], mask=some)
    inner = pa.StructArray.from_arrays(
        [words, pa.array(-np.abs(x))], fields=[pa.field("y", pa.string()), pa.field("z", pa.float64())]
    )
    inner = pa.array(inner.to_pylist(), inner.type, mask=random.random(count) < 0.3)
    days = pa.array(random.integers(-150_000, 30_000, count).astype(np.int32)).view(pa.date32())
    times = pa.array(random.integers(-(10**16), 10**16, count)).view(pa.timestamp("us", "UTC"))
    cents = (
        pa.array(random.integers(-(10**9), 10**9, count))
        .cast(pa.decimal128(21, 2))
        .cast(pa.decimal128(12, 2))
    )
    lists = pa.array([[n, n] for n in range(count)])
    columns = [
        pa.array(np.arange(count)), pa.array(x), pa.array(x.astype(np.float32), mask=some), cents, words, days, times,
        inner, lists,
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, names=PLAIN.names).cast(batch_of(PLAIN, []).schema)


def test_many_files_of_many_row_groups_need_no_row_to_be_read(spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_of(tmp_path, PLAIN)
    with confs(spark, TIMESTAMPS="TIMESTAMP_MICROS"):
        rows = frame(spark, plain(6000), PLAIN).repartition(3)
        save(rows, tmp_path, **{"parquet.block.size": "4096", "parquet.page.size.row.check.min": "10"})
    storage = FootersOnly(Address("file", "", str(tmp_path)))
    found = read_parquet_files(storage, plan, "new")
    assert found.rows == 6000
    assert len(found.adds) == 3
    for add in found.adds:
        file = pq.ParquetFile(tmp_path / storage.resolve(add["path"]))
        assert file.num_row_groups > 5
        batch = file.read().cast(batch_of(PLAIN, []).schema).combine_chunks().to_batches()[0]
        assert [shared(add)] == wanted(tmp_path, plan, batch)


ODD = [
    " a/b=c%:#+é", "x\ny\x01\"'*?\\{}[]^~|<>&; \x7f", "😀", " ", ".", "..", "%20", "a=b", "NULL", "\u00a0", "é",
    "e\u0301", "__HIVE_DEFAULT_PARTITION__x",
]  # fmt: skip


def test_partitions_of_odd_values_have_the_actions_of_the_writer(spark: SparkSession, tmp_path: Path) -> None:
    schema = struct(x=LONG).fields + struct(**{"p q/r": STRING, "_z": STRING}).fields
    plan = plan_of(tmp_path, StructType(schema), ["p q/r", "_z"], properties=WITHOUT_PARTITIONS)
    values = [*ODD, None]
    rows = [{"x": i, "p q/r": p, "_z": values[-i]} for i, p in enumerate(values)]
    batch = batch_of(plan.schema, rows)
    save(frame(spark, batch, plan.schema).coalesce(1), tmp_path, *plan.partition_columns)
    found = read_parquet_files(open_storage(str(tmp_path)), plan, "new").adds
    assert sorted(map(repr, map(shared, found))) == sorted(map(repr, wanted(tmp_path, plan, batch)))
    for add in found:
        assert (tmp_path / open_storage(str(tmp_path)).resolve(add["path"])).stat().st_size == add["size"]


def test_the_empty_text_is_null_as_in_the_writer(spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_of(tmp_path, struct(x=LONG, p=STRING), ["p"], properties=WITHOUT_PARTITIONS)
    batch = batch_of(plan.schema, [{"x": 1, "p": ""}, {"x": 2, "p": None}])
    save(frame(spark, batch, plan.schema).coalesce(1), tmp_path, "p")
    found = read_parquet_files(open_storage(str(tmp_path)), plan, "new").adds
    assert [shared(add) for add in found] == wanted(tmp_path, plan, batch)


def test_texts_of_every_partition_type_come_through_folders(spark: SparkSession, tmp_path: Path) -> None:
    kinds = {
        "l": LONG, "d": DOUBLE, "c": DecimalType(38, 10), "day": DATE, "t": TIMESTAMP, "n": TIMESTAMP_NTZ,
        "flag": BOOLEAN,
    }  # fmt: skip
    schema = struct(x=INTEGER, **kinds)
    plan = plan_of(tmp_path, schema, list(kinds), properties=WITHOUT_PARTITIONS)
    row = {
        "x": 1, "l": -(2**63), "d": -0.0, "c": Decimal("1e-10"), "day": OLD.date(), "t": OLD.replace(tzinfo=UTC),
        "n": NEW, "flag": True,
    }  # fmt: skip
    batch = batch_of(schema, [row])
    (add,) = wanted(tmp_path, plan, batch)
    texts = struct(x=INTEGER, **dict.fromkeys(kinds, STRING))
    save(frame(spark, batch_of(texts, [{"x": 1, **add["partitionValues"]}]), texts), tmp_path, *kinds)
    assert [shared(found) for found in read_parquet_files(open_storage(str(tmp_path)), plan, "new").adds] == [
        add
    ]


def test_mapped_columns_are_found_by_physical_name_and_need_their_ids(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = mapped(struct(x=LONG, s=struct(y=STRING, z=ArrayType(struct(w=LONG)))))
    plan = plan_of(tmp_path, schema, mapping_mode="id")
    batch = batch_of(schema, [{"x": 1, "s": {"y": "é", "z": [{"w": 1}]}}, {"x": None, "s": None}])
    stored = StructType(file_columns(plan).fields)
    text = schema_to_json(stored).replace("delta.columnMapping.id", "parquet.field.id")
    physical = pa.Table.from_batches([file_columns(plan).physical(batch)])
    with_ids = spark.createDataFrame(physical, schema=SparkStructType.fromJson(json.loads(text)))
    save(with_ids.coalesce(1), tmp_path)
    found = [shared(add) for add in read_parquet_files(open_storage(str(tmp_path)), plan, "new").adds]
    assert found == wanted(tmp_path, plan, batch)
    without = tmp_path / "without"
    save(frame(spark, physical, stored).coalesce(1), without)
    with pytest.raises(DataFileError, match="has the field id None instead of 1"):
        read_parquet_files(open_storage(str(without)), plan, "new")


def test_a_frame_without_rows_leaves_a_file_to_delete(spark: SparkSession, tmp_path: Path) -> None:
    schema = struct(x=LONG, s=STRING)
    save(frame(spark, batch_of(schema, []), schema), tmp_path)
    found = read_parquet_files(open_storage(str(tmp_path)), plan_of(tmp_path, schema), "new")
    assert found.adds == []
    assert found.rows == 0
    assert all((tmp_path / path).exists() for path in found.unwanted)


def test_shredded_variants_are_refused_where_the_table_may_not_have_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = struct(x=LONG, v=VARIANT)
    with confs(spark, SHREDDING="true", FORCED_SHREDDING="a int"):
        rows = spark.sql("select 1L x, parse_json('{\"a\":1}') v union all select 2L x, null v")
        save(rows.coalesce(1), tmp_path)
    storage = open_storage(str(tmp_path))
    with pytest.raises(DataFileError, match="column v is a shredded variant"):
        read_parquet_files(storage, plan_of(tmp_path, schema), "new")
    (add,) = read_parquet_files(
        storage, plan_of(tmp_path, schema, features=frozenset(["variantShredding"])), "new"
    ).adds
    assert json.loads(add["stats"])["nullCount"] == {"x": 0, "v": 1}
