"""Rows that Arrow finds in place of a query of Spark: the same ones, for all values, with Spark's errors."""

from __future__ import annotations

import datetime
import math
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from delta_ds import DeltaLog, DeltaTable, IdentityGenerator
from delta_ds.exceptions import DeltaError
from delta_ds.spark.base.session_conf import LOCAL_OPTIMIZE_CONF, MERGE_SOURCE_CONF
from delta_ds.spark.commands import delete, dml_command
from spark_tests.behaviour.spark.commands.row_changes import COMMANDS, LAYOUTS, make_table, state_of
from spark_tests.full_form import part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

_NOON = datetime.datetime(2024, 3, 31, 1, 30, tzinfo=datetime.timezone.utc)
_DAY = datetime.date(2024, 3, 31)
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "p": (pa.string(), ["a", "b", None]),
    "d": (pa.float64(), [None, math.nan, -0.0, 0.0, 1.5, math.inf, -math.inf]),
    "f": (pa.float32(), [None, math.nan, -0.0, 0.1, 2.5]),
    "n": (
        pa.decimal128(9, 2),
        [None, Decimal("0.00"), Decimal("1.10"), Decimal("-7.99"), Decimal("9999999.99")],
    ),
    "s": (pa.string(), [None, "", "a", "A", "ä", "𝄞", "a ", "%", "a_b", "12", "x1"]),
    "b": (pa.binary(), [None, b"", b"\xff", b"a"]),
    "i": (pa.int32(), [None, 0, 1, -1, 2**31 - 1]),
    "y": (pa.bool_(), [None, True, False]),
    "day": (pa.date32(), [None, _DAY, datetime.date(1582, 10, 15), datetime.date(1, 1, 1)]),
    "t": (
        pa.timestamp("us", "UTC"),
        [None, _NOON, _NOON + datetime.timedelta(hours=1), _NOON.replace(year=1900)],
    ),
    "u": (pa.timestamp("us"), [None, _NOON.replace(tzinfo=None), datetime.datetime(2024, 10, 27, 2, 30)]),
}
# Which the kernel evaluates itself.
TRANSLATED = [
    "d = 0", "d + 1 > 2", "f * 3 - f < d",
    "d = -0.0", "d > 1", "d = double('NaN')", "NOT d < 1", "d <=> NULL", "d IN (0, double('NaN'))", "isnan(d)",
    "f = 0.1", "f > d", "n = 1.1", "n > 1.095", "n < i", "s = 'a'", "s > 'a'", "s LIKE 'a%'",
    "s LIKE 'a\\\\_b'", "s LIKE '%'", "s IN ('a', 'ä', NULL)", "length(s) = 1", "s || p = 'aa'",
    "substring(s, 1, 1) = 'a'", "startswith(s, 'a')", "b = X'FF'", "i % 9 + 1 > 1 AND i < 5", "i % 2 = 0", "y", "NOT y",
    "y IS NULL OR i = 1", "day = DATE'2024-03-31'", "year(day) < 1600", "date_add(day, 1) = DATE'2024-04-01'",
    "t = TIMESTAMP'2024-03-31 01:30:00'", "hour(t) = 3", "CAST(t AS DATE) = DATE'2024-03-31'", "t > u",
    "u = TIMESTAMP_NTZ'2024-10-27 02:30:00'", "x.a = 1", "x IS NULL", "x.b = 'a' OR p = 'b'",
    "id IN (1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21)",
    "CASE WHEN i > 0 THEN s ELSE p END = 'a'", "if(y, i, id) > 0", "coalesce(i, id) = 1", "id % 7 = 3 AND p = 'a'",
    "(s = 'a') = y", "(i = 1) <=> y", "CAST(i AS STRING) = '1'", "CAST(id AS DECIMAL(20,3)) = 3",
    "i < CAST(2147483648 AS BIGINT)",
    "id BETWEEN 20 AND 40", "i + 0L BETWEEN -1 AND i", "NOT s BETWEEN 'A' AND 'a'",
    "(CASE WHEN d BETWEEN 0 AND 1 THEN i BETWEEN 0 AND 1 END) AND "
    "id BETWEEN (CASE WHEN y BETWEEN false AND true THEN 1 END) AND 99",
    "nvl(i, 1) = 1", "nvl2(s, 1, 2) = 2", "equal_null(i, id)",
    "d / 2 > 0.5D", "d / 3D <=> d", "f / 3 < d / 7", "-d <=> 0.0D", "abs(d) = 1.5",
    "n + 0.015 > 1", "n - n = 0", "n * n > 1.2", "n * 1.5 + i * 0.25 < n", "n + n + n > 3.2", "-i < 0", "abs(i) = 1",
    "i & 1 = 1", "(i | 4) ^ 1 > 3", "~i = -1", "greatest(d, f) > 1", "least(s, p) = 'a'", "greatest(i, -1) < 1",
    "upper(p) = 'A'", "lower(p) || 'x' = 'ax'", "rtrim(s) = 'a'", "trim(s) = ''", "ltrim(' ' || s) = 'a '",
    "trim(BOTH 'ax' FROM s) = '1'", "replace(s, 'a', 'aa') = 'aa'", "instr(s, '_') = 2", "octet_length(s) = 4",
    "nvl(s, p) = 'a'", "nvl2(s, i, id) = 1", "ifnull(i, id) = 1",
    "CASE WHEN n > 1 THEN n * 2 WHEN d > 1 THEN 7.5 END > 2", "coalesce(upper(p), 'B') = 'B'",
]  # fmt: skip
# Every second pair of a command and a layout by threads, few by tasks.
CASES = [
    *((layout, command, "threads") for n, layout in enumerate(LAYOUTS) for m, command in enumerate(COMMANDS)
      if not (n + m) % 2),
    ("partitioned", "update a column", "tasks"), ("marked, feed and ids", "upsert", "tasks"),
    ("feed", "delete", "tasks"),
]  # fmt: skip
# Left to Spark.
FOREIGN = [
    "soundex(s) = 'A000'", "CAST(d AS STRING) = '1.5'", "upper(s) = 'A'", "x = named_struct('a', 1L, 'b', 'a')",
    "f = float('0.1')", "s COLLATE UTF8_LCASE = 'a'", "n / 3 > 0.3", "n * CAST(1 AS DECIMAL(30, 8)) > 1", "n % 2 = 1",
    "left(s, 1) = 'a'", "right(s, 1) = ' '",
]  # fmt: skip


def _rows(count: int, step: int) -> pa.Table:
    columns: dict[str, Any] = {"id": pa.array(range(step * count, (step + 1) * count), pa.int64())}
    for place, (name, (kind, values)) in enumerate(VALUES.items()):
        columns[name] = pa.array(
            [values[(n * (place + 1) + n // 7 + step) % len(values)] for n in range(count)], kind
        )
    inner = [None, {"a": 1, "b": "a"}, {"a": None, "b": None}, {"a": 2, "b": "A"}]
    columns["x"] = pa.array(
        [inner[n % 4] for n in range(count)], pa.struct({"a": pa.int64(), "b": pa.string()})
    )
    return pa.table(columns)


def table_of_values(path: str) -> str:
    """A table of three files with all values; the first commit enables deletion vectors."""
    for step in range(3):
        DeltaLog(path).write(
            _rows(77, step), options={"delta.enableDeletionVectors": "true"} if not step else {}
        )
    return path


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return table_of_values(str(tmp_path_factory.mktemp("values") / "t"))


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each DELETE, whether Arrow has found its rows."""
    asked: list[bool] = []
    real = dml_command.DmlExecution.by_arrow

    def noted(self: Any, *arguments: Any, **options: Any) -> Any:
        answer = real(self, *arguments, **options)
        asked.append(answer is not None)
        return answer

    monkeypatch.setattr(dml_command.DmlExecution, "by_arrow", noted)
    return asked


@pytest.fixture(params=["Europe/Berlin", "UTC"])
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", str(before))


def test_every_condition_finds_the_rows_that_spark_finds(
    spark: SparkSession, base: str, found: list[bool], zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = spark.read.format("pydelta").load(base)
    translated, foreign = part(TRANSLATED, every=4), part(FOREIGN, every=4)
    conditions = [*translated, *foreign]
    counts = wanted.agg(
        *(F.expr(f"sum(int(({c}) <=> true))").alias(f"c{n}") for n, c in enumerate(conditions))
    ).first()
    assert counts is not None
    by_spark, places = {}, {}

    def instead(change: Any, files: Any, answer: Any, predicate: Any, text: str) -> int:
        places[condition] = {number: rows.tolist() for number, rows in answer.positions.items()}
        return int(answer.rows)

    def marked(change: Any, files: Any, hits: Any, predicate: Any, text: str) -> int:
        by_spark[condition] = hits.count()
        return int(by_spark[condition])

    monkeypatch.setattr(delete, "_commit_found", instead)
    monkeypatch.setattr(delete, "_mark", marked)
    table = DeltaTable.forPath(spark, base)
    for condition, count in zip(conditions, counts, strict=True):
        answer = table.delete(condition).first()
        assert answer is not None and answer[0] == count, condition
    assert sorted(by_spark) == sorted(foreign)
    assert sorted(places) == sorted(translated)
    assert all(
        sum(map(len, places[c].values())) == n for c, n in zip(conditions, counts, strict=True) if c in places
    )


@pytest.mark.sampled
@pytest.mark.parametrize(("layout", "command", "how"), CASES)
def test_all_that_a_command_leaves_is_the_same_whoever_finds_its_rows(
    spark: SparkSession,
    tmp_path: Path,
    found: list[bool],
    layout: str,
    how: str,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_arrow, by_spark = (make_table(tmp_path / name, LAYOUTS[layout]) for name in ("arrow", "spark"))
    spark.conf.set(LOCAL_OPTIMIZE_CONF, "0" if how == "tasks" else "1g")
    try:
        COMMANDS[command](DeltaTable.forPath(spark, by_arrow))
        assert found == [True]
        monkeypatch.setattr(dml_command.DmlExecution, "by_arrow", lambda *_, **__: found.append(False))
        COMMANDS[command](DeltaTable.forPath(spark, by_spark))
        assert found == [True, False]
    finally:
        spark.conf.unset(LOCAL_OPTIMIZE_CONF)
    assert state_of(by_arrow) == state_of(by_spark)


@pytest.mark.parametrize("how", ["threads", "tasks"])
def test_what_fails_on_a_row_is_spark_s_error_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path, found: list[bool], how: str
) -> None:
    path = str(tmp_path / "t")
    for step in range(3):
        DeltaLog(path).write(
            pa.table({"id": [step * 2, step * 2 + 1], "v": pa.array([1, 2**31 - 1], pa.int32())})
        )
    files = sorted(p for p in tmp_path.rglob("*") if p.is_file())
    spark.conf.set(LOCAL_OPTIMIZE_CONF, "0" if how == "tasks" else "1g")
    try:
        with pytest.raises(Exception, match="(?i)overflow") as told:
            DeltaTable.forPath(spark, path).delete("v + 1 > 1")
        with pytest.raises(Exception, match="(?i)overflow") as also:
            DeltaTable.forPath(spark, path).update("id > 0", {"v": "v + 1"})
    finally:
        spark.conf.unset(LOCAL_OPTIMIZE_CONF)
    assert not isinstance(told.value, DeltaError) and not isinstance(also.value, DeltaError)
    assert found == [False, False]
    assert sorted(p for p in tmp_path.rglob("*") if p.is_file()) == files


def test_columns_of_padded_text_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, found: list[bool]
) -> None:
    path = str(tmp_path / "t")
    DeltaTable.create(spark).location(path).addColumn("id", "int").addColumn("c", "char(4)").execute()
    spark.sql("SELECT 1 AS id, 'a' AS c UNION ALL SELECT 2, 'b'").write.format("pydelta").mode("append").save(
        path
    )
    table = DeltaTable.forPath(spark, path)
    assert table.delete("c = 'a'").first() == (1,)
    assert table.update("id = 2", {"c": "'b'"}).first() == (1,)
    assert found == [False, False]
    assert table.delete("id = 2").first() == (1,)
    assert found == [False, False, True]


KEYS = [
    "t.d = s.d", "t.d <=> s.d", "t.f = s.d", "t.n = s.i", "t.n <=> s.n AND t.p = s.p", "t.s = s.s AND t.i > s.i",
    "t.b = s.b", "t.day = s.day AND t.id % 2 = s.id % 2", "t.t = s.t", "t.u = s.u", "t.t = s.u", "t.y = s.y",
    "t.x.a = s.x.a AND t.s <=> s.s", "t.id = s.id - 3 AND s.d > 1", "CAST(t.i AS STRING) = s.s",
    "t.i = s.id AND t.d IS NULL",
]  # fmt: skip


@pytest.mark.parametrize("zone_of_session", ["Europe/Berlin"])
def test_a_merge_matches_the_rows_that_spark_joins(
    spark: SparkSession, base: str, tmp_path: Path, found: list[bool], zone_of_session: str
) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone_of_session)
    try:
        source = spark.read.format("pydelta").load(base).where("id >= 40 AND id < 90")
        source.write.parquet(str(tmp_path / "source"))
        rows, table = spark.read.parquet(str(tmp_path / "source")), spark.read.format("pydelta").load(base)
        keys = part(KEYS, every=2)
        joined = [table.alias("t").join(rows.alias("s"), F.expr(on)) for on in keys]
        wanted = [frame.select("t.id").distinct().count() for frame in joined]
        target = str(tmp_path / "t")
        for on, count in zip(keys, wanted, strict=True):
            shutil.copytree(base, target)
            merge = DeltaTable.forPath(spark, target).alias("t").merge(rows.alias("s"), on)
            answer = merge.whenMatchedDelete().execute().first()
            assert answer is not None and answer.num_deleted_rows == count, on
            assert found.pop() is True, on
            shutil.rmtree(target)
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


def test_sources_beyond_the_bound_are_joined_by_spark_and_it_is_told(
    spark: SparkSession, tmp_path: Path, found: list[bool], caplog: pytest.LogCaptureFixture
) -> None:
    path = make_table(tmp_path / "t", {})
    table = DeltaTable.forPath(spark, path)

    def merge(source: str, on: str = "t.id = s.id") -> int:
        rows = spark.sql(source).alias("s")
        answer = table.alias("t").merge(rows, on).whenMatchedUpdate(set={"v": "s.id"}).execute().first()
        assert answer is not None
        return int(answer.num_updated_rows)

    assert merge("SELECT id FROM range(5)") == 5
    spark.conf.set(MERGE_SOURCE_CONF, "1k")
    try:
        with caplog.at_level("INFO", logger="delta_ds"):
            assert merge("SELECT id FROM range(0, 1000)") == 60
    finally:
        spark.conf.unset(MERGE_SOURCE_CONF)
    assert "rows_found_by_spark" in caplog.text and MERGE_SOURCE_CONF in caplog.text
    with caplog.at_level("INFO", logger="delta_ds"):
        assert merge("SELECT id FROM range(5)", "soundex(t.p) = soundex(CAST(s.id AS STRING))") == 0
    assert found == [True, False, False]
    assert "SoundEx" in caplog.text


@pytest.mark.parametrize(("bound", "by_arrow"), [("256m", True), ("1k", False)])
def test_files_in_which_no_clause_changes_rows_that_match_are_not_read(
    spark: SparkSession, tmp_path: Path, found: list[bool], bound: str, by_arrow: bool
) -> None:
    path = tmp_path / "t"
    for value in range(3):
        DeltaLog(path).write(pa.table({"id": range(1000), "v": [value] * 1000}))
        if not value:
            (gone,) = path.glob("*.parquet")
    gone.unlink()
    merging = (
        DeltaTable.forPath(spark, str(path)).alias("t").merge(spark.range(1000).alias("s"), "t.id = s.id")
    )
    merging = merging.whenMatchedUpdate("t.v = 1 AND s.id < 10", {"v": "7"}).whenMatchedDelete("t.v > 1")
    spark.conf.set(MERGE_SOURCE_CONF, bound)
    try:
        answer = merging.execute().first()
    finally:
        spark.conf.unset(MERGE_SOURCE_CONF)
    assert answer is not None and (answer.num_updated_rows, answer.num_deleted_rows) == (10, 1000)
    assert found == [by_arrow]


def test_a_source_that_becomes_larger_than_spark_expects_is_joined_by_spark(
    spark: SparkSession, tmp_path: Path, found: list[bool]
) -> None:
    table = DeltaTable.forPath(spark, make_table(tmp_path / "t", {}))
    spark.range(1).write.parquet(str(tmp_path / "source"))
    source = spark.read.parquet(str(tmp_path / "source")).selectExpr("explode(sequence(id, id + 9999)) AS id")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"v": "s.id"})
    kept_before = spark.sparkContext._jsc.getPersistentRDDs().size()  # type: ignore[union-attr]
    spark.conf.set(MERGE_SOURCE_CONF, "64k")
    try:
        answer = merge.execute().first()
    finally:
        spark.conf.unset(MERGE_SOURCE_CONF)
    assert answer is not None and answer.num_updated_rows == 60
    assert merge.execute().first() == answer
    assert found == [False, True]
    # What Spark joins is materialized; nothing else is left.
    assert spark.sparkContext._jsc.getPersistentRDDs().size() <= kept_before + 1  # type: ignore[union-attr]


def test_a_merge_asks_spark_for_the_rows_of_its_source_and_for_nothing_else(
    spark: SparkSession, tmp_path: Path, found: list[bool]
) -> None:
    table = DeltaTable.forPath(spark, make_table(tmp_path / "t", {}))
    spark.range(20).write.parquet(str(tmp_path / "source"))
    source = spark.read.parquet(str(tmp_path / "source")).where("id < 30").alias("s")
    context = spark.sparkContext
    context.setJobGroup("a merge of few rows", "")
    try:
        merge = table.alias("t").merge(source, "t.id = s.id")
        merge.whenMatchedUpdate(set={"v": "s.id"}).whenNotMatchedInsert(values={"id": "s.id"}).execute()
        known = context.statusTracker()
        jobs = [known.getJobInfo(job) for job in known.getJobIdsForGroup("a merge of few rows")]
    finally:
        context.setJobGroup("", "")
    assert found == [True]
    # One computes the rows, one brings them; asking for their types makes one without tasks.
    assert len([job for job in jobs if job is not None and len(job.stageIds)]) == 2


def test_null_is_in_an_empty_list_as_the_session_says(
    spark: SparkSession, tmp_path: Path, found: list[bool]
) -> None:
    path = str(tmp_path / "t")
    for setting, kept in (("false", 0), ("true", 1)):
        DeltaLog(path).write(pa.table({"s": ["a", None]}), mode="overwrite")
        spark.conf.set("spark.sql.legacy.nullInEmptyListBehavior", setting)
        try:
            DeltaTable.forPath(spark, path).delete(~F.col("s").isin([]))
        finally:
            spark.conf.unset("spark.sql.legacy.nullInEmptyListBehavior")
        assert DeltaLog(path).to_arrow().num_rows == kept
    assert found == [False, False]


def test_text_that_is_no_number_of_java_is_spark_s_error(
    spark: SparkSession, tmp_path: Path, found: list[bool]
) -> None:
    path = str(tmp_path / "t")
    DeltaLog(path).write(pa.table({"v": ["\u00a01.5", "1.5"]}))
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        DeltaTable.forPath(spark, path).delete("CAST(v AS DECIMAL(10,2)) = 1.5")
    assert found == [False]
    assert DeltaLog(path).to_arrow().num_rows == 2


@pytest.mark.parametrize(
    "column", ["named_struct('a', 1, 'a', 2)", "named_struct('a', 1, 'A', 2)", "array()"]
)
def test_a_source_of_types_that_arrow_lacks_is_joined_by_spark(
    spark: SparkSession,
    tmp_path: Path,
    found: list[bool],
    caplog: pytest.LogCaptureFixture,
    column: str,
) -> None:
    path = str(tmp_path / "t")
    DeltaLog(path).write(pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["a", "b"]}))
    source = spark.sql(f"SELECT 1 AS id, {column} AS y, 'n' AS v").alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
    with caplog.at_level("INFO", logger="delta_ds"):
        assert merge.whenMatchedUpdate(set={"v": "s.v"}).execute().collect()[0].num_updated_rows == 1
    assert found == [False] and "types of the source" in caplog.text
    assert sorted(DeltaLog(path).to_arrow().column("v").to_pylist()) == ["b", "n"]


def test_a_condition_without_a_type_is_refused_as_by_spark(
    spark: SparkSession, tmp_path: Path, found: list[bool]
) -> None:
    path = str(tmp_path / "t")
    DeltaLog(path).write(pa.table({"id": [1, 2]}))
    source = spark.range(3).alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "NULL")
    with pytest.raises(Exception, match="JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE|DATATYPE_MISMATCH|boolean"):
        merge.whenNotMatchedInsertAll().execute()
    assert found in ([False], [])
    assert DeltaLog(path).open_snapshot().version == 0


def test_after_an_error_on_a_row_spark_looks_at_all_files_and_the_same_source(
    spark: SparkSession, tmp_path: Path, found: list[bool]
) -> None:
    path, calls = str(tmp_path / "t"), tmp_path / "calls"
    for number, value in ((1, 2**31 - 1), (2, 0), (3, 0)):
        rows = {"id": pa.array([number], pa.int32()), "n": pa.array([value], pa.int32())}
        DeltaLog(path).write(pa.table(rows))
    DeltaLog(path).checkpoint()
    calls.touch()
    place = str(calls)

    def key(_: int) -> int:
        known = Path(place).read_text()
        Path(place).write_text(f"{known}x")
        return len(known) + 1

    keys = F.udf(key, "int").asNondeterministic()
    source = spark.range(1).select(keys("id").alias("id"), F.lit(1).alias("x")).alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
    merge = merge.whenMatchedUpdate(set={"n": "t.n + s.x"}).whenNotMatchedInsert(
        values={"id": "s.id", "n": "-5"}
    )
    settings = {"spark.sql.ansi.enabled": "false", "spark.pydelta.largeTableFiles": "0"}
    for name, text in settings.items():
        spark.conf.set(name, text)
    try:
        merge.execute()
    finally:
        for name in settings:
            spark.conf.unset(name)
    assert found == [False]
    rows_after = DeltaLog(path).to_arrow().to_pylist()
    assert sorted((row["id"], row["n"]) for row in rows_after) == [(1, -(2**31)), (2, 0), (3, 0)]
    assert calls.read_text() == "x"


# Conditions on partitions, and whether the kernel evaluates them.
PARTITION_CONDITIONS = {
    "p BETWEEN 'a' AND 'b'": True, "p IS NULL": True, "day > DATE'2024-01-01' OR p = 'b'": True, "p <=> NULL": True,
    "NOT (p = 'a')": True, "year(day) = 2024 AND p LIKE '%'": True, "soundex(p) = 'B000'": False,
    "t < TIMESTAMP'2024-03-31 02:30:00'": True, "n / 2 > 0": False,
}  # fmt: skip


def test_partitions_are_chosen_as_spark_chooses_them_without_a_query(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    base, table = str(tmp_path / "base"), str(tmp_path / "t")
    names = ["p", "day", "t", "n"]
    DeltaLog(base).write(_rows(77, 0).select(["id", *names]), options={"partitionBy": names})
    rows = spark.read.format("pydelta").load(base)
    for condition, known in PARTITION_CONDITIONS.items():
        shutil.copytree(base, table)
        caplog.clear()
        with caplog.at_level("INFO", logger="delta_ds"):
            answer = DeltaTable.forPath(spark, table).delete(condition).first()
        assert answer is not None
        assert answer.num_affected_rows == rows.where(condition).count(), condition
        assert ("rows_found_by_spark" in caplog.text) is not known, condition
        left = spark.read.format("pydelta").load(table)
        assert left.where(condition).count() == 0
        assert left.count() == rows.count() - answer.num_affected_rows
        shutil.rmtree(table)


def _table_that_gives_values(spark: SparkSession, path: Path) -> str:
    """With an identity column and defaults, and one row."""
    defaults = {
        "v": (T.IntegerType(), "2 + 3"),
        "w": (T.StringType(), "concat('a', 'b')"),
        "day": (T.DateType(), "DATE'2024-01-01'"),
        "price": (T.DecimalType(9, 2), "1"),
    }
    builder = DeltaTable.create(spark).location(str(path)).addColumn("id", T.LongType())
    builder = builder.addColumn("n", T.LongType(), generatedAlwaysAs=IdentityGenerator(10, 5))
    for name, (kind, text) in defaults.items():
        field = T.StructField(name, kind, True, {"CURRENT_DEFAULT": text})
        builder = builder.addColumns(T.StructType([field]))
    builder.property("delta.feature.allowColumnDefaults", "supported").execute()
    spark.sql("SELECT 1L AS id, 7 AS v").write.format("pydelta").mode("append").save(str(path))
    return str(path)


def test_a_merge_by_arrow_gives_new_rows_what_the_table_gives_them(
    spark: SparkSession, tmp_path: Path, found: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = []
    for name in ("arrow", "spark"):
        path = _table_that_gives_values(spark, tmp_path / name)
        source = spark.sql("SELECT id, CAST(id AS INT) * 100 AS v FROM range(1, 9)").alias("s")
        merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
        merge = merge.whenMatchedUpdate(set={"v": "s.v", "w": "'x'"})
        merge = merge.whenNotMatchedInsert("s.id < 5", {"id": "s.id"})
        merge.whenNotMatchedInsert(values={"id": "s.id", "v": "s.v", "day": "NULL"}).execute()
        spark.sql("SELECT 99L AS id").write.format("pydelta").mode("append").save(path)
        table = DeltaLog(path).to_arrow()
        given = table["n"].to_pylist()
        assert len(set(given)) == 9 and all(n >= 10 and n % 5 == 0 for n in given)
        rows.append(table.drop_columns(["n"]).sort_by("id").to_pylist())
        monkeypatch.setattr(dml_command.DmlExecution, "by_arrow", lambda *_, **__: found.append(False))
    assert found == [True, False]
    assert rows[0] == rows[1]
    assert [row["v"] for row in rows[0]] == [100, 5, 5, 5, 500, 600, 700, 800, 5]
