"""DELETE, UPDATE and MERGE: the same rows by every way of reading and writing, on every kind of table."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import DeltaError, InvariantViolationError, SchemaError, UnsupportedOperationError
from delta_ds.spark.commands.merge import run
from delta_ds.spark.commands.merge.sides import SourceStats, source_stats
from spark_tests.behaviour.spark.commands.row_changes import found_by_arrow
from spark_tests.behaviour.spark.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
TRACKING = {"delta.enableRowTracking": "true"}
MAPPING = {"delta.columnMapping.mode": "name"}


def settings(spark: SparkSession, native: bool) -> AbstractContextManager[None]:
    names = ("spark.pydelta.nativeScan", "spark.pydelta.nativeWrite")
    return session_settings(spark, dict.fromkeys(names, str(native).lower()))


def make(spark: SparkSession, path: Path, properties: dict[str, str], *, partitioned: bool) -> DeltaTable:
    rows = spark.range(0, 100, 1, 2).selectExpr("id", "id % 3 as p", "cast(id * 2 as int) as v")
    writer = rows.write.format("pydelta").options(**properties)
    (writer.partitionBy("p") if partitioned else writer).save(str(path))
    return DeltaTable.forPath(spark, str(path)).alias("t")


def values(table: DeltaTable) -> dict[int, int]:
    rows = table.toDF().collect()
    found = {row.id: row.v for row in rows}
    assert len(found) == len(rows)
    return found


def changes(spark: SparkSession, path: Path, version: int) -> Counter[str]:
    options = {"readChangeFeed": "true", "startingVersion": version, "endingVersion": version}
    return Counter(
        row._change_type for row in spark.read.format("pydelta").options(**options).load(str(path)).collect()
    )


@pytest.mark.parametrize(
    ("properties", "native", "partitioned"),
    [
        pytest.param({}, True, True, id="rewritten"),
        pytest.param({**VECTORS, **MAPPING}, True, False, id="marked"),
        pytest.param({**FEED, **TRACKING}, True, True, id="rewritten-with-feed-and-ids"),
        pytest.param({**VECTORS, **FEED}, False, False, id="marked-with-feed-portable"),
    ],
)
def test_commands_change_the_rows_they_are_meant_to(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], native: bool, partitioned: bool
) -> None:
    with settings(spark, native):
        table = make(spark, tmp_path / "t", properties, partitioned=partitioned)
        want = {n: n * 2 for n in range(100)}

        assert table.delete("t.id % 10 = 7 and v >= 0").collect() == [(10,)]
        want = {n: v for n, v in want.items() if n % 10 != 7}
        assert values(table) == want

        assert table.update("id < 20", {"t.v": F.col("v") + 1000}).collect() == [(18,)]
        want = {n: v + 1000 if n < 20 else v for n, v in want.items()}
        assert values(table) == want

        source = spark.range(90, 110).selectExpr("id", "id % 3 as p", "cast(-id as int) as v", "id as extra")
        merge = table.merge(source.alias("s"), "t.id = s.id")
        merge = merge.whenMatchedDelete("s.id >= 98").whenMatchedUpdate("t.v > 0", {"v": "s.v"})
        merge = merge.whenNotMatchedInsert("id > 100", {"id": "id", "p": "p", "v": "v"})
        merge = merge.whenNotMatchedBySourceUpdate("id = 0", {"v": "-5"}).whenNotMatchedBySourceDelete(
            "id = 1"
        )
        assert merge.execute().collect() == [(20, 8, 3, 9)]
        want |= {n: -n for n in range(90, 98) if n != 97} | {n: -n for n in range(101, 110)} | {0: -5}
        want = {n: v for n, v in want.items() if n not in (1, 98, 99)}
        assert values(table) == want

        history = table.history().collect()
        assert [h.operation for h in history] == ["MERGE", "UPDATE", "DELETE", "WRITE"]
        if FEED.items() <= properties.items():
            found = [changes(spark, tmp_path / "t", version) for version in (1, 2, 3)]
            assert found[0] == {"delete": 10}
            assert found[1] == {"update_preimage": 18, "update_postimage": 18}
            assert found[2] == {"update_preimage": 8, "update_postimage": 8, "delete": 3, "insert": 9}
        for entry in history[:3]:
            files = [a for a in _adds(tmp_path / "t", entry.version) if "deletionVector" in a]
            assert bool(files) == (VECTORS.items() <= properties.items())


@pytest.mark.parametrize("finder", ["arrow", "spark"])
@pytest.mark.parametrize("clauses", ["inserts alone", "an update of no row"])
@pytest.mark.parametrize("properties", [FEED, {**FEED, **VECTORS}], ids=["rewritten", "marked"])
def test_a_merge_that_only_adds_rows_writes_no_change_files(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], clauses: str, finder: str
) -> None:
    table = make(spark, tmp_path / "t", properties, partitioned=False)
    source = spark.range(95, 110).selectExpr("id", "id % 3 as p", "1 as v")
    condition = {"arrow": "t.id = s.id", "spark": "soundex(string(t.id)) = soundex(string(s.id))"}[finder]
    merge = table.merge(source.alias("s"), condition)
    if clauses != "inserts alone":
        merge = merge.whenMatchedUpdate("t.v = -1", {"v": "s.v"})
    assert merge.whenNotMatchedInsertAll().execute().collect() == [(10, 0, 0, 10)]
    assert '"cdc":' not in (tmp_path / "t" / "_delta_log" / f"{1:020d}.json").read_text()
    assert changes(spark, tmp_path / "t", 1) == {"insert": 10}


def _adds(path: Path, version: int) -> list[dict[str, object]]:
    import json

    lines = (path / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    return [json.loads(line)["add"] for line in lines if '"add"' in line]


def test_row_ids_stay_with_their_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path, TRACKING, partitioned=False)
    reader = spark.read.format("pydelta").option("metadataColumns", "row_id,row_commit_version")

    def ids() -> dict[int, tuple[int, int]]:
        return {
            r.id: (r._metadata.row_id, r._metadata.row_commit_version)
            for r in reader.load(str(tmp_path)).collect()
        }

    before = ids()
    table.update("id = 5", {"v": "0"})
    table.delete("id = 6")
    source = spark.createDataFrame([(7, 0, 1), (200, 0, 1)], "id long, p long, v int").alias("s")
    table.merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    after = ids()
    assert {n: row for n, row in after.items() if n not in (5, 7, 200)} == {
        n: row for n, row in before.items() if n not in (5, 6, 7)
    }
    assert (after[5], after[7]) == ((before[5][0], 1), (before[7][0], 3))
    assert after[200][0] not in {row for row, _ in before.values()} and after[200][1] == 3


def test_whole_partitions_and_tables_go_without_being_read(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path, {}, partitioned=True)
    for file in tmp_path.glob("p=*/*.parquet"):
        file.write_bytes(b"not read")

    assert table.delete("upper(cast(p as string)) = '1'").collect() == [(33,)]
    assert table.delete().collect() == [(67,)]

    assert table.toDF().count() == 0
    assert [h.operationMetrics["numRemovedFiles"] for h in table.history(2).collect()] == ["4", "2"]


def test_a_command_that_fails_leaves_no_version_and_no_file(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path, {}, partitioned=False)
    table.addConstraint("small", "v < 1000")
    source = spark.createDataFrame([(1, 0, 1), (1, 0, 2), (500, 0, 5000)], "id long, p long, v int").alias(
        "s"
    )
    merge = table.merge(source, "t.id = s.id")
    before = {p for p in tmp_path.rglob("*")}

    with pytest.raises(InvariantViolationError, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        table.update("id = 50", {"v": "5000"})
    with pytest.raises(UnsupportedOperationError, match="MULTIPLE_SOURCE_ROW_MATCHING"):
        merge.whenMatchedUpdateAll().execute()
    with pytest.raises(InvariantViolationError, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        merge.whenNotMatchedInsertAll().execute()
    with pytest.raises(SchemaError, match="did you mean|suggest|Did you mean"):
        table.delete("idd = 1")

    assert {p for p in tmp_path.rglob("*")} == before
    assert values(table) == {n: n * 2 for n in range(100)}


def test_a_source_that_is_never_the_same_is_evaluated_once(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path, {}, partitioned=False)
    source = (
        spark.range(100)
        .selectExpr("cast(floor(rand() * 200) as bigint) as id", "1 as p", "uuid() as u")
        .alias("s")
    )
    once = source.groupBy("s.id").agg(F.first("u").alias("u")).alias("s")

    (result,) = (
        table.merge(once, "t.id = s.id")
        .whenMatchedUpdate(set={"v": "-1"})
        .whenNotMatchedInsert(values={"id": "s.id", "v": "-2"})
        .execute()
        .collect()
    )

    found = Counter(values(table).values())
    assert (found[-1], found[-2]) == (result.num_updated_rows, result.num_inserted_rows)
    assert result.num_updated_rows > 0 and result.num_inserted_rows > 0


def test_nan_is_found_in_files_that_were_rewritten(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.sql("select * from values (1, double('NaN')), (2, 1D), (3, 2D) as t(id, x)")
    rows.coalesce(1).write.format("pydelta").save(str(tmp_path))
    table = DeltaTable.forPath(spark, str(tmp_path))

    table.delete("id = 3")  # Spark's reader goes by the bounds in the footer of the file that comes of it

    assert [row.id for row in table.toDF().where("x > 100").collect()] == [1]


def test_a_source_of_long_values_does_not_go_to_every_executor(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(spark, tmp_path, {}, partitioned=False)
    source = spark.range(8).selectExpr("id", "map('k', repeat('x', 3000)) as m", "repeat('y', 9000) as s")
    seen = []

    def stats(*asked: Any) -> SourceStats:
        seen.append(source_stats(*asked))
        return seen[0]

    monkeypatch.setattr(run, "source_stats", stats)
    found_by_arrow(monkeypatch, wanted=False)
    table.merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"v": "length(s.s)"}).execute()

    assert (seen[0].rows, seen[0].variable_bytes) == (8, 8 * (len("{k -> }") + 3000 + 9000))
    assert Counter(values(table).values())[9000] == 8


def test_files_without_keys_of_the_source_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path, {}, partitioned=False)
    files = DeltaLog(tmp_path).snapshot().scan("id >= 50").files()["path"].to_pylist()
    (tmp_path / files[0]).write_bytes(b"not read")
    source = spark.range(10, 12).selectExpr("id", "0L as p", "0 as v").alias("s")

    table.merge(source, "t.id = s.id and t.v >= 0").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    assert table.toDF().where("id < 50 and v = 0").count() == 3


def test_a_schema_evolves_even_if_no_row_comes_with_it(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path, {}, partitioned=False)
    source = spark.range(0).selectExpr("id", "id as p", "1 as v", "'x' as extra").alias("s")

    merge = table.merge(source, "t.id = s.id").withSchemaEvolution().whenMatchedUpdateAll()

    assert merge.whenNotMatchedInsertAll().execute().collect() == [(0, 0, 0, 0)]
    assert table.toDF().columns == ["id", "p", "v", "extra"]


def test_what_a_session_says_of_its_commits_counts_for_every_command(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = make(spark, tmp_path, {}, partitioned=False)
    said = {
        "spark.databricks.delta.commitInfo.userMetadata": "nightly",
        "spark.databricks.delta.write.txnAppId": "job",
        "spark.databricks.delta.write.txnVersion": "7",
    }
    for name, text in said.items():
        spark.conf.set(name, text)
    try:
        assert table.delete("id = 1").collect() == [(1,)]
        assert table.update("id = 2", {"v": "0"}).collect() == [(0,)]
        again = spark.range(3).selectExpr("id", "0L as p", "0 as v")
        again.write.format("pydelta").mode("append").save(str(tmp_path))
        spark.conf.set("spark.databricks.delta.write.txnVersion", "8")
        again.write.format("pydelta").mode("append").save(str(tmp_path))
    finally:
        for name in said:
            spark.conf.unset(name)

    history = table.history().collect()
    assert [(h.operation, h.userMetadata) for h in history] == [
        ("WRITE", "nightly"), ("DELETE", "nightly"), ("WRITE", None),
    ]  # fmt: skip
    assert table.toDF().count() == 102


@pytest.mark.parametrize("resets", [True, False])
def test_the_transaction_of_a_session_is_used_once_if_it_asks_for_that(
    spark: SparkSession, tmp_path: Path, resets: bool
) -> None:
    path, prefix = str(tmp_path / "t"), "spark.databricks.delta.write."
    spark.range(4).write.format("pydelta").save(path)
    settings = {f"{prefix}txnAppId": "app", f"{prefix}txnVersion.autoReset.enabled": str(resets).lower()}
    steps = {
        "append": lambda: spark.range(4, 6).write.format("pydelta").mode("append").save(path),
        "DELETE": lambda: DeltaTable.forPath(spark, path).delete("id = 0"),
        "UPDATE": lambda: DeltaTable.forPath(spark, path).update("id = 1", {"id": "10"}),
    }
    try:
        for name, text in settings.items():
            spark.conf.set(name, text)
        for number, step in enumerate(steps.values()):
            spark.conf.set(f"{prefix}txnVersion", str(number))
            step()
            left = spark.conf.get(f"{prefix}txnVersion", None)
            assert left == (None if resets else str(number))
        if resets:
            # Without a version of its own nothing is written, instead of nothing being written silently.
            for step in steps.values():
                with pytest.raises(DeltaError, match="txnVersion"):
                    step()
    finally:
        for name in (*settings, f"{prefix}txnVersion"):
            spark.conf.unset(name)
    assert sorted(row.id for row in spark.read.format("pydelta").load(path).collect()) == [2, 3, 4, 5, 10]
    assert DeltaLog(path).snapshot().version == 3
