"""`_metadata` of tables with row tracking: ids of rows and versions of their last commit, as delta-spark has them.

Source: delta-spark 4.4, `RowId`, `RowCommitVersion`: asked of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.spark.errors.translation import as_delta_error

pytestmark = pytest.mark.long

FIELDS = ("row_id", "row_commit_version")
_SELECT = "SELECT id, _metadata.row_id, _metadata.row_commit_version FROM"

WAYS: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "load": lambda spark, path: _fields(spark.read.format("pydelta").load(path)),
    "SQL": lambda spark, path: spark.sql(f"{_SELECT} pydelta.`{path}`"),
    "toDF": lambda spark, path: _fields(DeltaTable.forPath(spark, path).toDF()),
    "filter": lambda spark, path: spark.sql(f"{_SELECT} pydelta.`{path}` WHERE _metadata.row_id >= 0"),
    "join": lambda spark, path: spark.sql(
        f"SELECT a.id, b._metadata.row_id, b._metadata.row_commit_version FROM pydelta.`{path}` a "
        f"JOIN pydelta.`{path}` b ON a._metadata.row_id = b._metadata.row_id"
    ),
}
LAYOUTS = {
    "plain": "",
    "partitioned": "PARTITIONED BY (p)",
    "vectors": "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "names": "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "ids": "PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = 'id', "
    "'delta.enableDeletionVectors' = 'true')",
}


def _fields(frame: DataFrame) -> DataFrame:
    return frame.select("id", *(f"_metadata.{name}" for name in FIELDS))


def _of_kernel(path: str) -> list[tuple[int, int, int]]:
    rows = DeltaLog(path).snapshot().scan(columns=["id"], metadata_columns=FIELDS).to_arrow().to_pylist()
    return sorted((row["id"], *(row["_metadata"][name] for name in FIELDS)) for row in rows)


def _found(frame: DataFrame) -> list[tuple[int, ...]]:
    return sorted(map(tuple, frame.collect()))


def _make(spark: SparkSession, path: str, layout: str) -> None:
    spark.sql(f"CREATE TABLE pydelta.`{path}` (id INT, v STRING, p INT) USING pydelta {LAYOUTS[layout]}")
    spark.sql(f"ALTER TABLE pydelta.`{path}` SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    spark.sql(f"INSERT INTO pydelta.`{path}` SELECT id, 'a', id % 2 FROM range(0, 8, 1, 1)")
    spark.sql(f"INSERT INTO pydelta.`{path}` SELECT id, 'a', id % 2 FROM range(8, 12, 1, 1)")


@pytest.mark.sampled
@pytest.mark.spark
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_have_the_ids_that_the_kernel_finds(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    path = str(tmp_path / "t")
    _make(spark, path, layout)
    before = spark.read.format("pydelta").load(path)
    for change in (
        f"UPDATE pydelta.`{path}` SET v = 'b' WHERE id IN (2, 9)",
        f"DELETE FROM pydelta.`{path}` WHERE id = 3",
        f"MERGE INTO pydelta.`{path}` t USING (SELECT 4 AS id UNION ALL SELECT 40) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        f"OPTIMIZE pydelta.`{path}`",
    ):
        spark.sql(change)
        expected = _of_kernel(path)
        assert {way: _found(read(spark, path)) for way, read in WAYS.items()} == dict.fromkeys(WAYS, expected)
        assert _found(_fields(before)) == expected
    assert len({row_id for _, row_id, _ in expected}) == len(expected) == 12


@pytest.mark.spark
def test_the_whole_column_is_delta_sparks(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    _make(spark, path, "plain")
    row = spark.sql(f"SELECT _metadata FROM pydelta.`{path}` WHERE id = 9").first()
    assert row is not None
    assert list(row["_metadata"].asDict())[-5:] == [
        "row_index", "row_id", "base_row_id", "default_row_commit_version", "row_commit_version",
    ]  # fmt: skip
    ((_, row_id, version),) = [found for found in _of_kernel(path) if found[0] == 9]
    assert tuple(row["_metadata"])[-5:] == (1, row_id, row_id - 1, version, version)


@pytest.mark.spark
def test_tables_without_row_tracking_have_no_such_fields(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(3).write.format("pydelta").save(path)
    with pytest.raises(AnalysisException, match="row_id"):
        spark.sql(f"SELECT _metadata.row_id FROM pydelta.`{path}`")


@pytest.mark.spark
def test_a_frame_has_nulls_once_the_table_gives_up_row_tracking(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    _make(spark, path, "plain")
    frame = spark.read.format("pydelta").load(path)
    assert _found(_fields(frame)) == _of_kernel(path)
    spark.sql(f"ALTER TABLE pydelta.`{path}` SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')")
    assert {row[1:] for row in _fields(frame).collect()} == {(None, None)}


@pytest.mark.spark
@pytest.mark.parametrize("layout", ["plain", "ids"])
def test_versions_have_their_own_ids(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    path = str(tmp_path / "t")
    _make(spark, path, layout)
    kept = {DeltaLog(path).open_snapshot().version: _of_kernel(path)}
    for change in ("DELETE FROM {} WHERE id < 5", "UPDATE {} SET v = 'b' WHERE id = 9"):
        spark.sql(change.format(f"pydelta.`{path}`"))
        kept[DeltaLog(path).open_snapshot().version] = _of_kernel(path)
    ways = {
        "load": lambda version: _fields(
            spark.read.format("pydelta").option("versionAsOf", version).load(path)
        ),
        "SQL": lambda version: spark.sql(f"{_SELECT} pydelta.`{path}` VERSION AS OF {version}"),
        "in the path": lambda version: _fields(spark.read.format("pydelta").load(f"{path}@v{version}")),
    }
    for version, expected in kept.items():
        assert {way: _found(read(version)) for way, read in ways.items()} == dict.fromkeys(ways, expected)
    assert [len({version for _, _, version in rows}) for rows in kept.values()] == [2, 2, 3]


@pytest.mark.spark
def test_a_query_over_two_versions_and_the_newest_reads_each(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    _make(spark, path, "vectors")
    last = DeltaLog(path).open_snapshot().version
    spark.sql(f"DELETE FROM pydelta.`{path}` WHERE id < 5")
    frames = [
        spark.read.format("pydelta").option("versionAsOf", version).load(path) for version in (last - 1, last)
    ]
    newest = spark.read.format("pydelta").load(path)
    spark.sql(f"DELETE FROM pydelta.`{path}` WHERE id = 11")
    joined = frames[1].alias("a").join(newest.alias("b"), "id", "left_anti").join(frames[0].alias("c"), "id")
    assert sorted(row["id"] for row in joined.collect()) == [0, 1, 2, 3, 4]
    counts = [frame.count() for frame in (*frames, newest)]
    assert counts == [8, 12, 6]
    assert frames[0].unionAll(newest).count() == 14


@pytest.mark.spark
def test_no_row_goes_into_a_view_of_a_version(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    _make(spark, path, "plain")
    last = DeltaLog(path).open_snapshot().version
    spark.read.format("pydelta").option("versionAsOf", last).load(path).createOrReplaceTempView("of_it")
    with pytest.raises(Exception, match="a version cannot be changed") as told:
        spark.sql("INSERT INTO of_it VALUES (1, 'x', 1)")
    assert isinstance(as_delta_error(told.value), UnsupportedOperationError)
    assert DeltaLog(path).open_snapshot().version == last
