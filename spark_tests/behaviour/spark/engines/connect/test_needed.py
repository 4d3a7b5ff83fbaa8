"""What a query of a client says that it needs of our tables: the columns that it may mean, and no rows are lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.kernel.format.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    StructField,
    StructType,
)
from delta_ds.spark.base.query_needs import Needed, bound_filters, needed_of, usable_parts
from spark_tests.behaviour.spark.connect_server import Client, Server, connect_client

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = StructType(
    (StructField("id", LONG), StructField("s", STRING), StructField("and", LONG), StructField("x", STRING))
)


def _told(build: Callable[[Any], Any], columns: StructType | None = _COLUMNS) -> list[tuple[Any, list[str]]]:
    """Of each read in a query of a client without a server: which of the columns (None: the names), and conditions."""
    proto = pytest.importorskip("pyspark.sql.connect.proto", reason="Spark Connect needs grpcio")
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.plan import LogicalPlan

    from delta_ds.spark.engines.connect.needed import tell_reads

    class Read(LogicalPlan):
        def plan(self, session: Any) -> Any:
            relation = self._create_proto_relation()
            relation.read.data_source.format = "pydelta"
            relation.read.data_source.options["sessionSettings"] = "{}"
            return relation

    plan = build(DataFrame(Read(None), SimpleNamespace(session_id="1")))._plan.plan(None)
    tell_reads(plan)
    found: list[tuple[Any, list[str]]] = []

    def visit(message: Any) -> None:
        if message.DESCRIPTOR.full_name == proto.Read.DESCRIPTOR.full_name:
            needed, filters = needed_of(json.loads(message.data_source.options["sessionSettings"]))
            chosen = needed if needed is None or columns is None else needed.of(columns).names
            found.append((chosen, list(map(str, filters))))
        for field, value in message.ListFields():
            if field.message_type is not None:
                for part in [value] if hasattr(value, "ListFields") else value:
                    if hasattr(part, "ListFields"):
                        visit(part)

    visit(plan)
    return found


def _functions() -> Any:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: install delta-ds[connect]")
    from pyspark.sql.connect import functions

    return functions


def test_reads_are_told_the_columns_and_conditions_of_a_query() -> None:
    F = _functions()
    ids = [(["id"], [])]
    assert _told(lambda df: df.select("id")) == ids
    assert _told(lambda df: df.select(F.expr("id * 2 AS z")).limit(3)) == ids
    assert _told(lambda df: df.groupBy().agg(F.count("*"))) == ids
    assert _told(lambda df: df.groupBy("id").agg(F.expr("count(*)"))) == ids
    assert _told(lambda df: df.select("*", F.lit(1).alias("k")).where("k = 1").select("id")) == ids
    assert _told(lambda df: df.hint("rebalance", "s").select("id")) == [(["id", "s"], [])]
    assert _told(lambda df: df.alias("t").sort("t.x").select(F.col("t.id"))) == [(["id", "x"], [])]
    ((columns, (condition,)),) = _told(lambda df: df.where(F.col("id") > 5).select("s"))
    assert columns == ["id", "s"] and condition == "(id > 5)"
    ((columns, conditions),) = _told(
        lambda df: (
            df.alias("t").where("t.id > 5 AND rand() < 2").where(F.col("t.s").isin("a", "b")).select("t.x")
        )
    )
    assert columns == ["id", "s", "and", "x"] and len(conditions) == 3


def test_reads_of_one_frame_are_told_what_any_of_them_needs() -> None:
    F = _functions()

    def joined(df: Any) -> Any:
        one, other = df.where(F.col("id") < 3).alias("a"), df.where("id >= 7").alias("b")
        return one.join(other, "id").select("a.x", "b.s")

    first, second = _told(joined)
    assert first == second == (["id", "s", "x"], ["((id < 3) OR (id >= 7))"])
    first, second = _told(lambda df: df.where("id < 3").select("id").union(df.select("s")))
    assert first == second == (["id", "s"], [])


@pytest.mark.parametrize(
    "build",
    [
        lambda df: df,
        lambda df: df.select("*", "id"),
        lambda df: df.selectExpr("t.*"),
        lambda df: df.union(df).select("id"),
        lambda df: df.dropDuplicates().select("id"),
        lambda df: df.toDF("a", "b", "c", "d").select("a"),
        lambda df: df.withColumn("id", _functions().col("s")).select("id"),
        lambda df: df.select("nope"),
        lambda df: df.selectExpr("(SELECT max(id) FROM v)"),
        lambda df: df.selectExpr("`(id|s)?+.+`"),  # a pattern, by a setting
        lambda df: df.selectExpr('"x y"'),  # a name, by a setting
        lambda df: df.selectExpr("IDENTIFIER('i' || 'd')"),
        lambda df: df.selectExpr("struct(/* each */ *) AS a"),
        lambda df: df.agg(_functions().countDistinct("*")),
        lambda df: df.agg(_functions().expr("count(DISTINCT -- of all\n *)")),
        lambda df: df.select("x.*", "id").select("id"),
        lambda df: df.sort(_functions().lit(2)).limit(1).select("id"),
        lambda df: df.sort(_functions().expr("3")).limit(1).select("id"),
        lambda df: df.sort(_functions().expr("all")).limit(1).select("id"),
        lambda df: df.join(df, "id").sort("ALL").limit(1).select("id"),
    ],
)
def test_what_is_not_understood_reads_all_columns(build: Callable[[Any], Any]) -> None:
    _functions()
    assert {tuple(columns) if columns else None for columns, _ in _told(build)} <= {
        None,
        tuple(_COLUMNS.names),
    }


@pytest.mark.parametrize(
    "build",
    [
        lambda df: df.limit(3).where("id > 5"),
        lambda df: df.select("id").where("id > 5"),
        lambda df: df.sample(0.5).where("id > 5"),
        lambda df: df.withColumn("id", _functions().col("id") + 1).where("id > 5"),
        lambda df: df.groupBy("id").count().where("id > 5"),
        lambda df: df.join(df, "id", "left").where("id > 5"),
        lambda df: df.where("CAST(id AS INT) > current_timestamp()"),
    ],
)
def test_conditions_above_what_changes_rows_are_not_told(build: Callable[[Any], Any]) -> None:
    _functions()
    assert all(conditions == [] for _, conditions in _told(build))


def test_columns_of_hints_and_names_that_begin_with_digits_are_told() -> None:
    F = _functions()
    assert _told(lambda df: df.hint("rebalance", F.col("s")).select("id")) == [(["id", "s"], [])]
    ((needed, _),) = _told(lambda df: df.selectExpr("2021_s + t.3x"), columns=None)
    assert {"2021_s", "3x"} <= set(needed.words)


def test_conditions_of_any_depth_can_be_sent() -> None:
    F = _functions()
    deep = reduce(lambda one, i: f"({one}) {'OR' if i % 2 else 'AND'} id = {i}", range(400), "id = 7")
    either = reduce(lambda one, other: one | other, [F.col("id") == i for i in range(45)])
    many = " OR ".join(f"id = {i}" for i in range(2000))
    for condition, told in ((deep, 0), (either, 1), (many, 1)):
        ((columns, conditions),) = _told(lambda df, c=condition: df.where(c).where("id < 9").select("id"))
        assert "id" in columns and conditions[0] == "(id < 9)" and len(conditions) == 1 + told


_TYPED = StructType(
    (
        StructField("i", INTEGER), StructField("l", LONG), StructField("f", FLOAT), StructField("d", DOUBLE),
        StructField("s", STRING), StructField("day", DATE), StructField("t", TIMESTAMP), StructField("b", BOOLEAN),
        StructField("n", TIMESTAMP_NTZ),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    "condition",
    [
        "int(l) = 1",  # 4294967297 is 1 without ANSI mode
        "i + 1 < 0",
        "i <=> '3000000000'",
        "NOT i IN ('01')",
        "NOT day IN ('2024-1-1')",
        "s = 5",
        "f = 16777217",
        "i / 0 IS NULL",
        "t >= '2024-01-01'",
        "t = TIMESTAMP'2024-01-01 00:30:00'",
        "date(t) = DATE'2024-01-01'",
        "t > day",
        "n > t",
        "startswith(s, 'a')",  # which a user may have replaced
    ],
)
def test_conditions_that_depend_on_settings_of_a_session_skip_no_files(condition: str) -> None:
    assert bound_filters(usable_parts(condition), _TYPED) is None


@pytest.mark.parametrize(
    "condition",
    [
        "i > 3 AND NOT (l <=> 4) OR d <= 1.5",
        "s IN ('a', 'b') AND s LIKE 'a%'",
        "day >= '2024-01-01' AND day < DATE'2024-02-01'",
        "t >= '2024-01-01 00:00:00Z'",
        "n >= TIMESTAMP_NTZ'2024-01-01 00:00:00'",
        "b AND i IS NOT NULL",
    ],
)
def test_other_conditions_skip_files(condition: str) -> None:
    assert bound_filters(usable_parts(condition), _TYPED) is not None


@pytest.mark.parametrize("text", [r"s = 'a\\b'", '"s" = "x"'])
def test_texts_that_a_setting_reads_otherwise_tell_no_condition(text: str) -> None:
    _functions()
    assert [conditions for _, conditions in _told(lambda df: df.where(text))] == [[]]


def test_the_cheapest_column_stands_for_none() -> None:
    assert Needed().of(_COLUMNS).names == ["id"]
    assert Needed((("and",),)).of(_COLUMNS).names == ["and"]
    assert Needed((("T", "ID"),), ("X",)).of(_COLUMNS).names == ["id", "x"]


# --- on a server


@pytest.fixture(scope="module")
def client(plain_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with connect_client(plain_server, tmp_path_factory.mktemp("needed")) as started:
        yield started


def _queries(df: DataFrame) -> dict[str, Callable[[], DataFrame]]:
    from pyspark.sql import functions as F

    low, high = df.where("id < 4"), df.where(F.col("id") >= 5)
    return {
        "count": lambda: df.groupBy().count(),
        "count of a value": lambda: df.agg(F.count("s"), F.countDistinct("day")),
        "one column": lambda: df.select("s"),
        "a field": lambda: df.select("x.a", F.col("x")["b"]),
        "any case": lambda: df.select("ID", F.col("DAY").alias("q")).where("q IS NOT NULL"),
        "a condition": lambda: df.where("id = 4"),
        "a condition by column": lambda: df.where(F.col("id").isin(2, 8)).select("s"),
        "of text": lambda: df.where("s > '2' AND NOT (n <=> 2.5)").select("id"),
        "null": lambda: df.where(F.col("s").isNull() | (F.col("d") == 1.5)).select("id"),
        "days": lambda: df.where("day >= '2024-01-05' AND day < DATE'2024-01-08'").select("id"),
        "moments": lambda: df.where("t < TIMESTAMP'2024-01-05 01:00:00'").select("id"),
        "text as number": lambda: df.where("s = 3").select("id"),
        "not a number": lambda: df.where("d > 3 OR d <=> double('NaN')").select("id"),
        "minus zero": lambda: df.where(F.col("d") == 0.0).select("id"),
        "padded": lambda: df.where("c = 'a'").select("id"),
        "partition": lambda: df.where(F.col("p") == 1).select("p", "id"),
        "partition only": lambda: df.select("p"),
        "two conditions of one frame": lambda: low.union(high).select("id"),
        "joined with itself": lambda: low.alias("a").join(df.alias("b"), "id").select("a.s", "b.n"),
        "anti": lambda: df.alias("a").join(high.alias("b"), F.col("a.id") == F.col("b.id"), "left_anti").select("id"),
        "left": lambda: df.join(high.select("id", F.col("s").alias("z")), "id", "left").where("z IS NULL"),
        "columns of frames": lambda: low.join(high, low["p"] == high["p"]).select(low["id"], high["s"]),
        "window": lambda: df.selectExpr("id", "sum(n) OVER (PARTITION BY p ORDER BY id) AS r"),
        "sorted": lambda: df.sort(F.desc("s"), "id").limit(3).select("id"),
        "having": lambda: df.groupBy("p").agg(F.max("n").alias("m")).where("m > 3"),
        "function": lambda: df.select(F.udf(lambda v: (v or 0) + 1, "bigint")("id").alias("u"), "s"),
        "lambda": lambda: df.select(F.transform(F.array("id", "p"), lambda v: v + F.col("id"))),
    }  # fmt: skip


def _table(path: Path) -> str:
    import datetime

    for half in range(2):
        ids = list(range(half * 5, half * 5 + 5))
        day = datetime.date(2024, 1, 1)
        rows = {
            "id": pa.array(ids, pa.int64()),
            "s": pa.array([None if i == 6 else str(i) for i in ids]),
            "n": pa.array([float(i) / 2 for i in ids]).cast(pa.decimal128(9, 1)),
            "d": [float("nan") if i == 7 else -0.0 if i == 2 else i / 2 for i in ids],
            "day": [day + datetime.timedelta(days=i) for i in ids],
            "t": pa.array([1704067200000000 + i * 86400000000 for i in ids], pa.timestamp("us", "UTC")),
            "x": pa.array([{"a": i, "b": None} for i in ids], pa.struct({"a": pa.int64(), "b": pa.string()})),
            "c": ["a" if i % 2 else "b" for i in ids],
            "p": pa.array([i % 2 for i in ids], pa.int32()),
        }
        DeltaLog(path).write(pa.table(rows), options={} if half else {"partitionBy": "p"})
    return str(path)


@pytest.mark.connect
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_queries_find_the_same_rows_whether_reads_are_told_or_not(
    client: Client, tmp_path: Path, zone: str
) -> None:
    def program(spark: SparkSession, path: str) -> dict[str, Any]:
        import delta_ds
        from delta_ds.spark.session import integration

        delta_ds.register(spark)
        spark.conf.set("spark.sql.session.timeZone", zone)
        df = spark.read.format("pydelta").load(path)
        told = integration._read_by_source
        assert spark.session_id in told
        found: dict[str, Any] = {}
        for name, query in _queries(df).items():
            answers = []
            for tell in (True, False):
                (told.add if tell else told.discard)(spark.session_id)
                answers.append(sorted(map(str, query().collect())))
            found[name] = answers
        told.add(spark.session_id)
        return found

    found = client(program, _table(tmp_path / "t"))
    assert {name: told for name, (told, _) in found.items()} == {
        name: not_told for name, (_, not_told) in found.items()
    }
    assert [name for name, (told, _) in found.items() if not told] == []


_NOT_ANSI = {"spark.sql.ansi.enabled": "false"}


def _queries_of_settings(df: DataFrame) -> dict[str, tuple[dict[str, str], Callable[[], DataFrame]]]:
    """Queries that settings of the session, made after the frame was, give another meaning."""
    from pyspark.sql import functions as F

    patterns = {"spark.sql.parser.quotedRegexColumnNames": "true"}
    quotes = {"spark.sql.ansi.doubleQuotedIdentifiers": "true"}
    later = {"spark.sql.session.timeZone": "Pacific/Kiritimati"}
    return {
        "overflow": (_NOT_ANSI, lambda: df.where("int(l) = 1").select("l")),
        "overflow of a sum": (_NOT_ANSI, lambda: df.where("i + 1 < 0").select("i")),
        "a list of texts": (_NOT_ANSI, lambda: df.where(~F.col("l").isin("01")).select("l")),
        "no number": (_NOT_ANSI, lambda: df.where(F.col("o").eqNullSafe("3000000000")).select("l")),
        "single precision": (_NOT_ANSI, lambda: df.where(F.col("f") == 16777217).select("l")),
        "text of a partition": (_NOT_ANSI, lambda: df.where(F.col("p") == 5).select("p")),
        "no division": (_NOT_ANSI, lambda: df.where("l / 0 IS NULL").select("l")),
        "zone": (later, lambda: df.where("t >= '2024-01-01'").select("l")),
        "zone of a day": (later, lambda: df.where("date(t) = DATE'2024-01-01'").select("l")),
        "patterns": (patterns, lambda: df.selectExpr("`(l|i)?+.+`")),
        "quotes": (quotes, lambda: df.where("\"p\" = '5'").selectExpr('"2023_s"')),
        "digits": ({}, lambda: df.selectExpr("2023_s")),
        "computed": ({}, lambda: df.selectExpr("IDENTIFIER('2023' || '_s')")),
        "distinct": ({}, lambda: df.union(df).agg(F.countDistinct("*"))),
        "distinct of a frame": ({}, lambda: df.agg(F.countDistinct("*"))),
        "place": ({}, lambda: df.sort(F.lit(5).desc()).limit(1).select("l")),
        "places": ({}, lambda: df.sort(F.expr("all")).limit(1).select("t")),
        "hint": ({}, lambda: df.hint("rebalance", F.col("p")).select("l")),
    }


@pytest.mark.connect
@pytest.mark.slow
@pytest.mark.long
def test_settings_of_the_session_find_the_same_rows_too(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "t"
    for file in range(2):
        rows = {
            "l": pa.array([[4294967297], [1, 2]][file], pa.int64()),
            "i": pa.array([[2147483647], [1, 2]][file], pa.int32()),
            "o": pa.array([[None], [1, 2]][file], pa.int32()),
            "f": pa.array([[16777216.0], [1.0, 1.0]][file], pa.float32()),
            "t": pa.array([[1704042000000000], [1704063600000000] * 2][file], pa.timestamp("us", "UTC")),
            "2023_s": [["a"], ["b", "c"]][file],
            "p": [["5"], ["5.0", "x"]][file],
        }
        DeltaLog(path).write(pa.table(rows), options={} if file else {"partitionBy": "p"})

    def program(spark: SparkSession, path: str) -> dict[str, Any]:
        import delta_ds
        from delta_ds.spark.session import integration

        delta_ds.register(spark)
        df = spark.read.format("pydelta").load(path)
        told = integration._read_by_source
        found: dict[str, Any] = {}
        for name, (settings, query) in _queries_of_settings(df).items():
            for setting, value in settings.items():
                spark.conf.set(setting, value)
            answers = []
            for tell in (True, False):
                (told.add if tell else told.discard)(spark.session_id)
                answers.append(sorted(map(str, query().collect())))
            for setting in settings:
                spark.conf.unset(setting)
            found[name] = answers
        told.add(spark.session_id)
        return found

    found = client(program, str(path))
    assert {name: told for name, (told, _) in found.items()} == {
        name: not_told for name, (_, not_told) in found.items()
    }
    assert [name for name, (told, _) in found.items() if not told] == []


@pytest.mark.connect
@pytest.mark.slow
@pytest.mark.long
def test_queries_on_a_persistent_frame_find_its_rows_in_memory(client: Client, tmp_path: Path) -> None:
    def program(spark: SparkSession, path: str) -> list[Any]:
        import delta_ds

        delta_ds.register(spark)
        df = spark.read.format("pydelta").load(path)
        query = df.where("id > 5").select("id")
        found = []
        for call in (df.cache, df.unpersist):
            call()
            found.append("InMemory" in query._explain_string())  # type: ignore[operator]
        return [*found, query.count()]

    assert client(program, _table(tmp_path / "t")) == [True, False, 4]


@pytest.mark.connect
@pytest.mark.slow
@pytest.mark.long
def test_every_query_of_a_frame_reads_the_newest_version(client: Client, tmp_path: Path) -> None:
    """Whatever it needs of the frame; but for a version that is given, and for rows that the server keeps."""

    def program(spark: SparkSession, path: str) -> list[Any]:
        import delta_ds

        delta_ds.register(spark)
        reader = spark.read.format("pydelta")
        newest, first, kept = reader.load(path), reader.option("versionAsOf", 1).load(path), reader.load(path)
        kept = kept.where("id >= 0").persist()
        found = []
        for _ in range(2):
            for frame in (newest, first, kept):
                frame.schema  # noqa: B018 - which the server analyses, and keeps the plan of
                ways = [
                    len(frame.collect()),
                    frame.count(),
                    frame.where("id >= 0").count(),
                    len(frame.toPandas()),
                ]
                found.append([*ways, frame.union(frame).count() / 2])
            more = DeltaLog(path).snapshot().scan().to_arrow().slice(0, 3)
            DeltaLog(path).write(more)
        kept.unpersist()
        return [
            *found,
            newest.sameSemantics(newest),
            newest.where("id > 1").semanticHash() == newest.where("id > 1").semanticHash(),
            newest.sameSemantics(newest.where("id > 1")),
        ]

    ten, more = [10] * 5, [13] * 5
    assert client(program, _table(tmp_path / "t")) == [ten, ten, ten, more, ten, ten, True, True, False]


@pytest.mark.connect
@pytest.mark.slow
@pytest.mark.long
def test_files_that_no_row_of_a_query_lies_in_are_not_read(client: Client, tmp_path: Path) -> None:
    path = _table(tmp_path / "t")

    def program(spark: SparkSession, path: str) -> list[Any]:
        import delta_ds

        delta_ds.register(spark)
        df = spark.read.format("pydelta").load(path)
        return [
            [row.id for row in df.where("id >= 5").select("id").sort("id").collect()],
            df.where("id >= 5").count(),
        ]

    first = [file for file in Path(path).rglob("*.parquet") if _max_id(file) < 5]
    assert first
    for file in first:
        file.unlink()
    assert client(program, path) == [[5, 6, 7, 8, 9], 5]


def _max_id(file: Path) -> int:
    import pyarrow.parquet as pq

    return max(pq.read_table(file, columns=["id"], partitioning=None).column("id").to_pylist())
