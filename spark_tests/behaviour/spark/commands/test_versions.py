"""`restoreToVersion`, `restoreToTimestamp`, `clone...`: what one version becomes in another, or in another table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from delta_ds import (
    DataFileError,
    DeltaLog,
    DeltaTable,
    InvalidOptionError,
    TableExistsError,
    TimestampOutOfRangeError,
    UnsupportedOperationError,
    VersionNotFoundError,
)

ZONE = "spark.sql.session.timeZone"


@pytest.fixture
def berlin(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, "Europe/Berlin")
    yield spark
    spark.conf.set(ZONE, before)


def append(spark: SparkSession, path: Path, *numbers: int, mode: str = "append") -> None:
    rows = spark.createDataFrame([(n,) for n in numbers], "id long").coalesce(1)
    rows.write.format("pydelta").mode(mode).save(str(path))


def ids(table: DeltaTable) -> list[int]:
    return sorted(row.id for row in table.toDF().collect())


def test_restore_answers_and_records_what_it_did(spark: SparkSession, tmp_path: Path) -> None:
    append(spark, tmp_path, 1)
    append(spark, tmp_path, 2)
    append(spark, tmp_path, 3, mode="overwrite")
    table = DeltaTable.forPath(spark, str(tmp_path))
    result = table.restoreToVersion(1)
    assert result.dtypes == [
        ("table_size_after_restore", "bigint"), ("num_of_files_after_restore", "bigint"),
        ("num_removed_files", "bigint"), ("num_restored_files", "bigint"),
        ("removed_files_size", "bigint"), ("restored_files_size", "bigint"),
    ]  # fmt: skip
    size, *counts, gone, back = result.collect()[0]
    assert (counts, size, ids(table)) == ([2, 1, 2], back, [1, 2]) and 0 < gone < back
    (entry,) = table.history(1).collect()
    assert (entry.operation, entry.operationParameters["version"]) == ("RESTORE", "1")
    assert (entry.readVersion, entry.isolationLevel, entry.isBlindAppend) == (2, "Serializable", False)
    assert entry.operationMetrics["restoredFilesSize"] == str(back)
    again = table.restoreToVersion(3)
    assert (again.columns, again.collect(), DeltaLog(tmp_path).snapshot().version) == ([], [], 3)


def test_moments_are_meant_in_the_session_time_zone(berlin: SparkSession, tmp_path: Path) -> None:
    append(berlin, tmp_path, 1)
    append(berlin, tmp_path, 2)
    table = DeltaTable.forPath(berlin, str(tmp_path))
    text = table.history().where("version = 0").selectExpr("cast(timestamp as string) t").collect()[0].t
    clone = table.cloneAtTimestamp(text, str(tmp_path / "then"), True)
    assert ids(clone) == [1]
    table.restoreToTimestamp(text)
    assert ids(table) == [1]
    (entry,) = table.history(1).collect()
    assert entry.operationParameters["timestamp"] == text
    moment = DeltaLog(tmp_path).history()[-2]["timestamp"]
    assert moment.tzinfo is timezone.utc
    table.restoreToTimestamp(moment)
    assert ids(table) == [1, 2]


@pytest.mark.parametrize(
    ("method", "argument", "kind", "words"),
    [
        ("restoreToVersion", 99, VersionNotFoundError, "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
        ("restoreToVersion", "1", InvalidOptionError, "version needs to be an int but got"),
        ("restoreToVersion", True, InvalidOptionError, "version needs to be an int but got"),
        (
            "restoreToTimestamp",
            5,
            InvalidOptionError,
            "timestamp needs to be a string but got",
        ),
        ("restoreToTimestamp", "soon", InvalidOptionError, "DELTA_TIMESTAMP_INVALID"),
        ("restoreToTimestamp", datetime(2024, 1, 1), InvalidOptionError, "no time zone"),
        (
            "restoreToTimestamp",
            "1999-01-01",
            TimestampOutOfRangeError,
            "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER",
        ),
    ],
)
def test_what_cannot_be_restored_is_refused(
    spark: SparkSession, sales: str, method: str, argument: Any, kind: type[Exception], words: str
) -> None:
    table = DeltaTable.forPath(spark, sales)
    with pytest.raises(kind, match=words):
        getattr(table, method)(argument)
    assert DeltaLog(sales).snapshot().version == 7


def test_settings_of_the_session_allow_more(spark: SparkSession, tmp_path: Path) -> None:
    append(spark, tmp_path, 1)
    (lost,) = tmp_path.glob("**/*.parquet")
    append(spark, tmp_path, 2, mode="overwrite")
    table = DeltaTable.forPath(spark, str(tmp_path))
    table.setProperties({"delta.enableDeletionVectors": "true"})
    lost.unlink()
    with pytest.raises(DataFileError, match="spark.sql.files.ignoreMissingFiles"):
        table.restoreToVersion(0)
    settings = (
        "spark.sql.files.ignoreMissingFiles",
        "spark.databricks.delta.restore.protocolDowngradeAllowed",
    )
    for name in settings:
        spark.conf.set(name, "true")
    try:
        table.restoreToVersion(0)
    finally:
        for name in settings:
            spark.conf.unset(name)
    (detail,) = table.detail().collect()
    assert (detail.minReaderVersion, detail.numFiles) == (1, 1)


def test_shallow_clones_stand_on_the_files_of_their_source(spark: SparkSession, tmp_path: Path) -> None:
    append(spark, tmp_path / "s", 1)
    append(spark, tmp_path / "s", 2)
    source = DeltaTable.forPath(spark, str(tmp_path / "s"))
    clone = source.alias("x").clone(str(tmp_path / "c"), True, properties={"k": "v"})
    assert isinstance(clone, DeltaTable) and clone.alias("t").toDF().where("t.id > 0").count() == 2
    append(spark, tmp_path / "c", 9)
    old = source.cloneAtVersion(0, str(tmp_path / "old"), isShallow=True)
    assert (ids(clone), ids(old), ids(source)) == ([1, 2, 9], [1], [1, 2])
    entry = clone.history().collect()[-1]
    assert (entry.operation, entry.readVersion, entry.isolationLevel) == ("CLONE", -1, "Serializable")
    assert entry.operationParameters["sourceVersion"] == "1"
    assert clone.detail().collect()[0].properties["k"] == "v"
    for arguments, kind, words in (
        ((str(tmp_path / "c"), True), TableExistsError, "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"),
        ((str(tmp_path / "c"), True, True), UnsupportedOperationError, "DELTA_UNSUPPORTED_NON_EMPTY_CLONE"),
        ((1, True), InvalidOptionError, "target needs to be a string but got"),
        ((str(tmp_path / "d"), 1), InvalidOptionError, "isShallow needs to be a boolean but got"),
        (
            (str(tmp_path / "d"), True, False, {"a": 1}),
            InvalidOptionError,
            "All property values including 1 of 'a' needs to be a string",
        ),
        (
            (str(tmp_path / "d"), True, False, None, ["/x"]),
            InvalidOptionError,
            "a shallow clone copies no files",
        ),
    ):
        with pytest.raises(kind, match=words):
            source.clone(*arguments)
    assert not (tmp_path / "d").exists()


def test_deep_clones_are_brought_up_to_date_by_copying_what_is_new(
    spark: SparkSession, tmp_path: Path
) -> None:
    append(spark, tmp_path / "s", 1)
    append(spark, tmp_path / "s", 2)
    source = DeltaTable.forPath(spark, str(tmp_path / "s"))
    clone = source.clone(str(tmp_path / "c"))
    append(spark, tmp_path / "s", 3)
    source.delete("id = 1")
    again = spark.sql(
        f"CREATE OR REPLACE TABLE delta.`{tmp_path / 'c'}` DEEP CLONE delta.`{tmp_path / 's'}`"
    ).first()
    assert (again.num_copied_files, again.num_removed_files) == (1, 1)
    assert (ids(clone), ids(source)) == ([2, 3], [2, 3])
    old = spark.sql(
        f"CREATE TABLE delta.`{tmp_path / 'old'}` DEEP CLONE delta.`{tmp_path / 's'}` VERSION AS OF 0"
    )
    assert old.first().num_copied_files == 1
    assert ids(DeltaTable.forPath(spark, str(tmp_path / "old"))) == [1]


def test_deep_clones_copy_files_of_others_only_where_that_is_allowed(
    spark: SparkSession, tmp_path: Path
) -> None:
    append(spark, tmp_path / "s", 1)
    append(spark, tmp_path / "other", 7)
    (file,) = (tmp_path / "other").rglob("*.parquet")
    add = {"path": str(file), "partitionValues": {}, "size": file.stat().st_size, "modificationTime": 1}
    commit = json.dumps({"add": {**add, "dataChange": True}})
    (tmp_path / "s" / "_delta_log" / f"{1:020}.json").write_text(f"{commit}\n")
    source = DeltaTable.forPath(spark, str(tmp_path / "s"))
    assert ids(source) == [1, 7]
    with pytest.raises(UnsupportedOperationError, match="DELTA_CLONE_FILE_ELSEWHERE"):
        source.clone(str(tmp_path / "c"))
    assert not (tmp_path / "c").exists()
    assert ids(source.clone(str(tmp_path / "c"), filesFrom=[str(tmp_path / "other")])) == [1, 7]
