"""Aggregates that Spark answers from the log: the same values as the scan gives, and every other plan untouched."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_ds import DeltaLog
from delta_ds.kernel.format.schema.types import LONG, StructField, StructType
from delta_ds.spark.engines.classic import log_aggregates
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.engines.classic.scan import scan
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.kernel.files.scan.tables import struct, to_json, write_statistics

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session of its own with the rule, and with Spark's checks of what rules do to plans."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.planChangeValidation", "true")
    log_aggregates.install(session)
    yield session
    log_aggregates.uninstall(session)


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().optimizedPlan().toString())  # type: ignore[operator]


def is_from_log(frame: DataFrame) -> bool:
    text = plan(frame)
    return "LocalRelation" in text and "Relation pydelta" not in text


@pytest.fixture
def same(session: SparkSession) -> Callable[[DataFrame], list[Any]]:
    """The rows of a query, after they were found to be those that the scan gives."""

    def check(frame: DataFrame) -> list[Any]:
        found = frame.collect()
        log_aggregates.uninstall(session)
        try:
            again = frame.select("*")
            assert not is_from_log(again)
            assert repr(again.collect()) == repr(found)
        finally:
            log_aggregates.install(session)
        return found

    return check


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Two files: `id` 1 to 5, `v` with a null, strings, partitioned by `p`."""
    builder = TableBuilder(tmp_path / "t")
    builder.create(
        pa.schema([("id", pa.int64()), ("v", pa.int32()), ("s", pa.string()), ("p", pa.string())]),
        partition_columns=["p"],
        reader_features=["deletionVectors"],
    )
    first = {"id": [1, 2, 3], "v": pa.array([5, None, 7], pa.int32()), "s": ["a", "b", "c"]}
    second = {"id": [4, 5], "v": pa.array([1, 2], pa.int32()), "s": ["d", "e"]}
    builder.append(pa.table(first), partition_values={"p": "x"})
    builder.append(pa.table(second), partition_values={"p": "y"})
    return builder


@pytest.fixture
def frame(session: SparkSession, table: TableBuilder) -> DataFrame:
    return scan(session, DeltaLog(table.path).open_snapshot())


def jobs_of(session: SparkSession, name: str, run: Callable[[], Any]) -> int:
    context = session.sparkContext
    context.setJobGroup(name, name)
    try:
        run()
        return len(context.statusTracker().getJobIdsForGroup(name))
    finally:
        context._jsc.clearJobGroup()


class TestAnswers:
    def test_count_runs_no_job(self, session: SparkSession, frame: DataFrame, table: TableBuilder) -> None:
        for file in table.path.rglob("*.parquet"):
            file.unlink()
        assert jobs_of(session, "count from the log", lambda: frame.groupBy().count().collect()) == 0
        assert frame.count() == 5

    def test_counts_and_extremes_come_together(self, frame: DataFrame, same: Any) -> None:
        asked = frame.agg(F.count("*"), F.count("v"), F.min("id"), F.max("v"), F.min("p"), F.max("p"))
        assert is_from_log(asked)
        assert [tuple(row) for row in same(asked)] == [(5, 4, 1, 7, "x", "y")]

    def test_expressions_over_aggregates_are_kept(self, frame: DataFrame, same: Any) -> None:
        asked = frame.agg((F.max("v") - F.min("v") + F.count("*")).alias("z"), F.count("id").alias("n"))
        assert is_from_log(asked)
        assert [row.asDict() for row in same(asked)] == [{"z": 11, "n": 5}]

    def test_renamed_columns_are_found(self, frame: DataFrame, same: Any) -> None:
        asked = frame.select(F.col("v").alias("w"), F.col("id").alias("v")).agg(F.max("v"), F.max("w"))
        assert is_from_log(asked)
        assert [tuple(row) for row in same(asked)] == [(5, 7)]

    def test_each_part_of_a_larger_plan_is_answered(self, frame: DataFrame, same: Any) -> None:
        asked = frame.groupBy().count().union(frame.agg(F.max("id"))).where("count > 0")
        assert is_from_log(asked)
        assert sorted(row[0] for row in same(asked)) == [5, 5]

    def test_scalar_subqueries_are_answered(self, session: SparkSession, frame: DataFrame) -> None:
        frame.createOrReplaceTempView("aggregates_t")
        asked = session.sql(
            "select (select count(*) from aggregates_t) c, id from aggregates_t "
            "where id = (select max(id) from aggregates_t)"
        )
        assert plan(asked).count("LocalRelation") >= 2
        assert [tuple(row) for row in asked.collect()] == [(5, 5)]

    def test_empty_table_is_counted(self, session: SparkSession, tmp_path: Path, same: Any) -> None:
        builder = TableBuilder(tmp_path / "empty")
        builder.create(pa.schema([("id", pa.int64())]))
        asked = scan(session, DeltaLog(builder.path).open_snapshot()).agg(F.count("*"), F.max("id"))
        assert is_from_log(asked)
        assert [tuple(row) for row in same(asked)] == [(0, None)]


class TestTypes:
    ROWS = (
        {"b": -128, "h": -1, "i": 1 << 30, "l": -(1 << 63), "f": 0.1, "d": 1e-300, "n": Decimal("-0.07"),
         "day": dt.date(1, 1, 1), "s": {"x": 4}},
        {"b": 127, "h": 1, "i": 7, "l": (1 << 63) - 1, "f": 2.5, "d": 1.5, "n": Decimal("12345678.90"),
         "day": dt.date(9999, 12, 31), "s": {"x": None}},
    )  # fmt: skip
    SCHEMA = pa.schema(
        [("b", pa.int8()), ("h", pa.int16()), ("i", pa.int32()), ("l", pa.int64()), ("f", pa.float32()),
         ("d", pa.float64()), ("n", pa.decimal128(10, 2)), ("day", pa.date32()),
         ("s", pa.struct([("x", pa.int32())]))]
    )  # fmt: skip
    PARTITIONS = (
        ("pb", pa.bool_(), "true", "false"), ("pi", pa.int32(), "-5", "12"), ("ps", pa.string(), "ä", "z"),
        ("pd", pa.date32(), "1969-12-31", "2024-02-29"), ("pn", pa.decimal128(20, 3), "1.500", "-2.250"),
        ("pt", pa.timestamp("us", "UTC"), "2024-01-01T00:00:00.000001Z", "1960-01-01T00:00:00.000000Z"),
        ("pz", pa.timestamp("us"), "2024-01-01 00:00:00.000001", "2025-01-01 00:00:00"),
        ("pf", pa.float64(), "0.1", "Infinity"),
    )  # fmt: skip

    def test_values_of_every_exact_type_are_those_of_the_scan(
        self, session: SparkSession, tmp_path: Path, same: Any
    ) -> None:
        builder = TableBuilder(tmp_path / "types")
        names = [name for name, *_ in self.PARTITIONS]
        schema = pa.schema([*self.SCHEMA, *((name, kind) for name, kind, *_ in self.PARTITIONS)])
        builder.create(schema, partition_columns=names, reader_features=["timestampNtz"])
        stored = DeltaLog(builder.path).snapshot().schema
        data = StructType(tuple(f for f in stored if f.name not in names))
        for number, row in enumerate(self.ROWS):
            values = {name: texts[number] for name, _, *texts in self.PARTITIONS}
            action = builder.write_file(
                pa.Table.from_pylist([row], self.SCHEMA),
                path=f"{number}.parquet",
                partition_values=values,
                stats=False,
            )
            action["add"]["stats"] = to_json(write_statistics([row], data))
            builder.commit(action)
        frame = scan(session, DeltaLog(builder.path).open_snapshot())
        columns = [*(n for n in self.SCHEMA.names if n != "s"), "s.x", *names]
        asked = [F.min(n) for n in columns] + [F.max(n) for n in columns if n not in {"f", "d"}]
        asked += [F.count(n) for n in columns]
        assert is_from_log(frame.agg(*asked))
        same(frame.agg(*asked))

    def test_mapped_columns_are_found_under_their_physical_names(
        self, session: SparkSession, tmp_path: Path, same: Any
    ) -> None:
        # Renamed in a circle: each logical name is the physical one of the other column.
        def mapped(name: str, physical: str, number: int) -> StructField:
            ids = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
            return StructField(name, LONG, True, ids)

        for mode in ("name", "id"):
            builder = TableBuilder(tmp_path / mode)
            properties = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "2"}
            schema = StructType((mapped("a", "b", 1), mapped("b", "a", 2)))
            builder.create(schema, properties=properties, reader_features=["columnMapping"])
            fields = [
                pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)})
                for name, number in (("b", 1), ("a", 2))
            ]
            builder.append(pa.table([[1, 2], [30, 40]], schema=pa.schema(fields)))
            asked = scan(session, DeltaLog(builder.path).open_snapshot()).agg(F.max("a"), F.min("b"))
            assert is_from_log(asked)
            assert [tuple(row) for row in same(asked)] == [(2, 30)]


class TestDeletedRows:
    @pytest.fixture
    def deleted(self, session: SparkSession, tmp_path: Path) -> DataFrame:
        """Rows 1 and 3 of a file and 4 of another; 1 is deleted."""
        builder = TableBuilder(tmp_path / "deleted")
        schema = struct(("id", LONG))
        builder.create(schema, reader_features=["deletionVectors"])
        adds = []
        for number, values in enumerate(([1, 3], [4])):
            adds.append(builder.write_file(pa.table({"id": values}), path=f"{number}.parquet", stats=False))
            adds[-1]["add"]["stats"] = to_json(write_statistics([{"id": v} for v in values], schema))
        builder.commit(*adds)
        adds[0]["add"]["stats"] = json.dumps(json.loads(adds[0]["add"]["stats"]) | {"tightBounds": False})
        builder.delete_rows(adds[0], [0])
        return scan(session, DeltaLog(builder.path).open_snapshot())

    def test_deleted_rows_are_not_counted(self, deleted: DataFrame, same: Any) -> None:
        asked = deleted.agg(F.count("*"), F.count("id"), F.max("id"))
        assert is_from_log(asked)
        assert [tuple(row) for row in same(asked)] == [(2, 2, 4)]

    def test_extreme_that_may_be_deleted_is_looked_up(self, deleted: DataFrame) -> None:
        asked = deleted.agg(F.min("id"))
        assert not is_from_log(asked)
        assert [tuple(row) for row in asked.collect()] == [(3,)]

    def test_filter_beside_that_of_deleted_rows_is_scanned(self, deleted: DataFrame) -> None:
        asked = deleted.where("id < 4").groupBy().count()
        assert not is_from_log(asked)
        assert [tuple(row) for row in asked.collect()] == [(1,)]


class TestOtherPlans:
    @pytest.mark.parametrize(
        "ask",
        [
            lambda t: t.where("id > 1").groupBy().count(),
            lambda t: t.where("p = 'x'").groupBy().count(),
            lambda t: t.groupBy("p").count(),
            lambda t: t.limit(2).groupBy().count(),
            lambda t: t.sample(0.5, seed=1).groupBy().count(),
            lambda t: t.distinct().groupBy().count(),
            lambda t: t.crossJoin(t.select(F.col("id").alias("other"))).groupBy().count(),
            lambda t: t.agg(F.count_distinct("p")),
            lambda t: t.agg(F.expr("count(v, id)")),
            lambda t: t.agg(F.max(F.col("id") + 1)),
            lambda t: t.agg(F.sum("id"), F.count("*")),
            lambda t: t.agg(F.expr("count(*) filter (where id > 1)")),
            lambda t: t.agg(F.min("s")),
            lambda t: t.agg(F.max("_metadata.file_size")),
            lambda t: t.agg(F.count("*"), F.rand()),
        ],
    )
    def test_is_scanned(self, ask: Callable[[DataFrame], DataFrame], frame: DataFrame) -> None:
        asked = ask(frame)
        assert "Relation pydelta" in plan(asked)
        assert asked.collect()

    def test_some_files_of_a_table_are_not_the_table(
        self, session: SparkSession, table: TableBuilder
    ) -> None:
        some = scan(session, DeltaLog(table.path).open_snapshot(), rows=pa.array([1], pa.int64()))
        asked = some.groupBy().count()
        assert not is_from_log(asked)
        assert asked.collect()[0][0] in (2, 3)

    def test_relation_of_another_format_is_not_asked_about(
        self, session: SparkSession, table: TableBuilder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[str] = []
        monkeypatch.setattr(log_aggregates, "answer", lambda question: asked.append(question))
        assert session.read.parquet(str(table.path)).count() == 5
        assert session.range(3).agg(F.max("id")).collect()[0][0] == 2
        assert asked == []

    def test_streaming_plans_are_left_alone(self, session: SparkSession, frame: DataFrame) -> None:
        rule = log_aggregates._probe_rule(Jvm.of(session))
        alone = frame.groupBy().count()
        streaming = session.readStream.format("rate").load().crossJoin(alone)
        for asked, changed in ((alone, True), (streaming, False)):
            analyzed = asked._jdf.queryExecution().analyzed()  # type: ignore[operator]
            assert (not rule.apply(analyzed).fastEquals(analyzed)) == changed

    def test_cached_rows_are_counted_in_the_cache(self, session: SparkSession, frame: DataFrame) -> None:
        before = frame.groupBy().count()
        assert is_from_log(before)
        frame.cache()
        try:
            after = frame.groupBy().count()
            # `df.cache(); df.count()` has to fill the cache.
            assert "InMemoryRelation" in plan(after)
            assert (before.collect(), after.collect()) == ([(5,)], [(5,)])
        finally:
            frame.unpersist(blocking=True)
        assert is_from_log(frame.groupBy().count())

    def test_cached_answer_serves_the_same_question_again(self, frame: DataFrame) -> None:
        answer = frame.agg(F.count("*").alias("n")).cache()
        try:
            assert answer.collect() == [(5,)]
            assert "InMemoryRelation" in plan(frame.agg(F.count("*").alias("n")))
        finally:
            answer.unpersist(blocking=True)


class TestInstallation:
    def test_failure_of_the_answer_leaves_the_plan(
        self, frame: DataFrame, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail(question: str) -> str:
            raise RuntimeError("no answer today")

        monkeypatch.setattr(log_aggregates, "answer", fail)
        assert frame.count() == 5
        assert 'aggregates_not_answered reason="RuntimeError: no answer today"' in caplog.text

    @pytest.mark.parametrize("reply", ["{", '["x"]', '["1", "2"]', "[]"])
    def test_reply_that_makes_no_sense_leaves_the_plan(
        self, frame: DataFrame, monkeypatch: pytest.MonkeyPatch, reply: str
    ) -> None:
        monkeypatch.setattr(log_aggregates, "answer", lambda question: reply)
        assert frame.count() == 5

    def test_rules_of_others_stay(self, spark: SparkSession) -> None:
        session = spark.newSession()
        jvm = Jvm.of(session)
        other = jvm.module("org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation$")
        log_aggregates._set_rules(jvm, [other])
        log_aggregates.install(session)
        log_aggregates.install(session)
        names = [rule.ruleName() for rule in log_aggregates._rules(jvm)]
        assert names == [other.ruleName(), "LogAggregates"]
        log_aggregates.uninstall(session)
        log_aggregates.uninstall(session)
        assert [rule.ruleName() for rule in log_aggregates._rules(jvm)] == [other.ruleName()]

    def test_other_sessions_are_not_touched(self, spark: SparkSession, session: SparkSession) -> None:
        fresh = spark.newSession()
        log_aggregates.uninstall(fresh)
        log_aggregates.probe(fresh)
        assert log_aggregates.is_installed(session)
        assert not log_aggregates.is_installed(fresh)
