"""`spark.read.load` of a partition's folder: the rows of that partition, as delta-spark reads it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError, NotADeltaTableError, SchemaError
from delta_ds.kernel.format.values.partition_values import NULL_DIRECTORY, escape, partition_folder, unescape
from delta_ds.spark.session.reading import partition_path
from delta_ds.testing import TableBuilder

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("path", "table", "values"),
    [
        ("/t/p=0", "/t", (("p", "0"),)),
        ("/t/p=0/", "/t", (("p", "0"),)),
        ("s3://bucket/t/a=x/b=y=z", "s3://bucket/t", (("a", "x"), ("b", "y=z"))),
        ("/t/p=a b%2Fc", "/t", (("p", "a b/c"),)),
        ("/t/p%3D=1", "/t", (("p=", "1"),)),
        ("/t/c=%C3%A9", "/t", (("c", "Ã©"),)),
        ("/t/c=a%20b%E9", "/t", (("c", "a bé"),)),
        ("/t/p=", "/t", (("p", ""),)),
        ("/t/p=__HIVE_DEFAULT_PARTITION__", "/t", (("p", None),)),
    ],
)
def test_folders_of_partitions_are_taken_apart(path: str, table: str, values: Any) -> None:
    found = partition_path(path)
    assert found is not None
    assert (found.table, found.values) == (table, values)


@pytest.mark.parametrize("path", ["/t", "/t/p", "/p=0/t", "p=0", "/p=0", "/t/=", None, ""])
def test_other_paths_are_left_alone(path: str | None) -> None:
    assert partition_path(path) is None


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("partitions") / "t"
    for start in (0, 100):
        ids = range(start, start + 12)
        qs = [None if i % 100 < 3 else f"a b/{i % 100 % 3}" for i in ids]
        rows = pa.table({"id": list(ids), "p": [i % 2 for i in ids], "q": qs})
        DeltaLog(path).write(rows, options={"partitionBy": "p, q"})
    return path


def ids(rows: DataFrame) -> list[int]:
    return sorted(row["id"] for row in rows.collect())


@pytest.mark.sampled
@pytest.mark.spark
@pytest.mark.parametrize(
    ("folder", "wanted"),
    [
        ("p=0", lambda i: i % 2 == 0),
        ("p=00/", lambda i: i % 2 == 0),
        ("q=a b%2F1", lambda i: i % 100 >= 3 and i % 100 % 3 == 1),
        ("q=a b%2F1/p=1", lambda i: i % 100 >= 3 and i % 100 % 3 == 1 and i % 2 == 1),
        ("p=1/q=__HIVE_DEFAULT_PARTITION__", lambda i: i % 100 < 3 and i % 2 == 1),
    ],
)
def test_the_rows_of_the_partition_are_read(
    session: SparkSession, table: Path, folder: str, wanted: Callable[[int], bool]
) -> None:
    everything = [*range(12), *range(100, 112)]
    read = session.read.format("pydelta")
    rows = read.load(f"{table}/{folder}")
    assert rows.columns == ["id", "p", "q"]
    assert ids(rows) == [i for i in everything if wanted(i)]


@pytest.mark.spark
def test_options_of_the_read_hold(session: SparkSession, table: Path) -> None:
    read = session.read.format("pydelta")
    assert ids(read.option("versionAsOf", 0).load(f"{table}/p=0")) == [0, 2, 4, 6, 8, 10]
    assert session.read.format("pydelta").option("columns", "id").load(f"{table}/p=0").columns == ["id"]
    assert session.read.format("pydelta").schema("id bigint").load(f"{table}/p=0").columns == ["id"]


@pytest.mark.sampled
@pytest.mark.spark
@pytest.mark.parametrize("of_session", ["UTC", "Asia/Tokyo"])
@pytest.mark.parametrize("option", [None, "UTC", "Asia/Tokyo"])
def test_local_times_in_folders_are_of_the_zone_of_those_in_the_log(
    session: SparkSession, tmp_path: Path, of_session: str, option: str | None
) -> None:
    moments = [datetime(2024, 1, 1, hour, tzinfo=timezone.utc) for hour in (1, 10)]
    table = TableBuilder(tmp_path)
    kind = pa.timestamp("us", tz="UTC")
    table.create(pa.schema([("id", pa.int64()), ("at", kind)]), partition_columns=["at"])
    for number, moment in enumerate(moments):
        rows = pa.table({"id": [number]})
        table.commit(table.write_file(rows, partition_values={"at": f"{moment:%Y-%m-%d %H:%M:%S}"}))
    session.conf.set("spark.sql.session.timeZone", of_session)
    try:
        read = session.read.format("pydelta")
        read = read if option is None else read.option("timeZone", option)
        found = read.load(f"{tmp_path}/at=2024-01-01 10%3A00%3A00")
        assert ids(found) == [1]
        zone = ZoneInfo(option or of_session)
        instant = datetime(2024, 1, 1, 10, tzinfo=zone).timestamp()
        assert [row.s for row in found.selectExpr("unix_seconds(at) AS s").collect()] == [instant]
        with pytest.raises(NotADeltaTableError):
            read.load(f"{tmp_path}/at=2024-01-01 19%3A00%3A00")
    finally:
        session.conf.unset("spark.sql.session.timeZone")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("folder", "error", "message"),
    [
        ("p=7", NotADeltaTableError, "DELTA_PATH_DOES_NOT_EXIST.*no rows in the partition p=7"),
        ("p=x", NotADeltaTableError, "DELTA_PATH_DOES_NOT_EXIST"),
        ("p=0/p=1", NotADeltaTableError, "DELTA_PATH_DOES_NOT_EXIST"),
        ("P=0", SchemaError, "DELTA_NON_PARTITION_COLUMN_SPECIFIED"),
        ("p=0/z=1", SchemaError, "DELTA_NON_PARTITION_COLUMN_SPECIFIED.*z"),
        ("foo", NotADeltaTableError, "foo"),
        ("p=0/foo", NotADeltaTableError, "foo"),
        ("_delta_log", DeltaError, "_delta_log"),
    ],
)
def test_what_is_no_partition_is_refused(
    session: SparkSession, table: Path, folder: str, error: type[DeltaError], message: str
) -> None:
    with pytest.raises(error, match=message):
        session.read.format("pydelta").load(f"{table}/{folder}")


@pytest.mark.spark
def test_folders_below_no_table_are_no_table(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "p=0").mkdir()
    with pytest.raises(NotADeltaTableError):
        session.read.format("pydelta").load(str(tmp_path / "p=0"))
    session.range(3).write.format("pydelta").save(str(tmp_path / "t" / "p=1"))
    assert ids(session.read.format("pydelta").load(str(tmp_path / "t" / "p=1"))) == [0, 1, 2]


@pytest.mark.spark
def test_spark_escapes_and_unescapes_the_same(session: SparkSession) -> None:
    of_spark = session._jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
    characters = "".join(map(chr, (*range(1, 0x250), 0x20AC, 0xFEFF, 0x1F600)))
    assert of_spark.escapePathName(characters) == escape(characters)
    for part in ("%C3%A9", "a%20b", "%e9%E9", "%", "%4", "%%41", "%4g%41", "100%25%", "%00", NULL_DIRECTORY):
        assert of_spark.unescapePathName(part) == unescape(part)
    assert of_spark.getPartitionPathString("a/b", NULL_DIRECTORY) == partition_folder([("a/b", None)])
