"""A server that `python -m delta_ds connect-server` has started: its clients have Delta's SQL and names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import delta_ds
from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import InvalidOptionError
from delta_ds.spark.connect_server import settings_of
from spark_tests.behaviour.spark.connect_server import SECONDS, Client, another_session, client_of_ours, run

pytestmark = [pytest.mark.connect, pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with client_of_ours(tmp_path_factory.mktemp("connect_server")) as client:
        yield client


def test_names_statements_and_paths_work_without_a_call_of_the_client(server: Client, tmp_path: Path) -> None:
    def program(spark: SparkSession, path: str) -> list[Any]:
        run(
            spark,
            "CREATE TABLE t (id BIGINT, v STRING) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
            "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "UPDATE t SET v = concat(v, '!') WHERE id = 1",
            "DELETE FROM t WHERE id = 3",
            "MERGE INTO t USING (SELECT 4 AS id, 'd' AS v) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
            "ALTER TABLE t ADD COLUMNS (n INT)",
            "OPTIMIZE t",
            f"CREATE TABLE delta.`{path}` SHALLOW CLONE t VERSION AS OF 1",
            "CREATE VIEW seen AS SELECT id FROM t",
        )
        return [
            sorted(run(spark, "SELECT * FROM t")[0]),
            sorted(run(spark, "SELECT id FROM t VERSION AS OF 1")[0]),
            sorted(run(spark, f"SELECT id FROM delta.`{path}`")[0]),
            run(spark, "SELECT count(*) FROM seen")[0],
            [row[4] for row in run(spark, "DESCRIBE HISTORY t LIMIT 2")[0]],
            spark.table("t").where("id > 1").count(),
        ]

    rows = [(1, "a!", None), (2, "b", None), (4, "d", None)]
    three = [(1,), (2,), (3,)]
    assert server(program, str(tmp_path / "c")) == [
        rows, three, three, [(3,)], ["OPTIMIZE", "ADD COLUMNS"], 2,
    ]  # fmt: skip


def test_every_session_of_the_server_has_them(server: Client) -> None:
    def program(spark: SparkSession) -> list[Any]:
        session = another_session()
        run(session, "CREATE TABLE other USING delta AS SELECT 1L AS id", "VACUUM other DRY RUN")
        session.range(2).write.format("delta").mode("append").saveAsTable("other")
        return [
            sorted(run(session, "SELECT id FROM other")[0]),
            run(session, "DESCRIBE DETAIL other")[0][0][0],
        ]

    assert server(program) == [[(0,), (1,), (1,)], "delta"]


_UNBOUND = (
    "SELECT * FROM unbound WHERE id = :nope",
    "INSERT INTO unbound SELECT :nope",
    "UPDATE unbound SET id = :nope",
    "DELETE FROM unbound WHERE id = :nope",
    "MERGE INTO unbound t USING (SELECT :nope AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "OPTIMIZE unbound WHERE id = :nope",
    "SELECT * FROM range(3) WHERE id = :nope",
)


def _refused_for(spark: SparkSession) -> list[str | None]:
    from pyspark.errors import AnalysisException, PySparkException

    def condition(text: str, args: dict[str, Any] | None) -> str | None:
        with pytest.raises(PySparkException) as caught:
            spark.sql(text, args).collect()
        assert isinstance(caught.value, AnalysisException), caught.value
        return caught.value.getCondition()

    spark.sql("CREATE TABLE unbound (id BIGINT) USING delta").collect()
    found = [condition(text, args) for text in _UNBOUND for args in ({"other": 1}, None)]
    spark.sql("DROP TABLE unbound").collect()
    return found


def test_a_parameter_without_a_value_has_the_condition_of_spark(server: Client, spark: SparkSession) -> None:
    """Spark's parser raises it, behind ours."""
    classic = _refused_for(spark)
    assert server(_refused_for) == classic == ["UNBOUND_SQL_PARAMETER"] * len(classic)


def test_parameters_and_change_feeds_reach_the_server_s_parser(server: Client) -> None:
    def program(spark: SparkSession) -> list[Any]:
        session = another_session()
        run(
            session,
            "CREATE TABLE fed USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true') AS SELECT 1 AS id",
            "INSERT INTO fed VALUES (2), (3)",
        )
        session.sql("DELETE FROM fed WHERE id = :x", {"x": 2}).collect()
        session.sql("VACUUM fed RETAIN ? HOURS DRY RUN", [200]).collect()
        return [
            sorted(run(session, "SELECT id, _change_type FROM table_changes('fed', 1)")[0]),
            [
                tuple(row)
                for row in session.sql("DESCRIBE HISTORY fed LIMIT :n", {"n": 1}).select("version").collect()
            ],
        ]

    assert server(program) == [[(2, "delete"), (2, "insert"), (3, "insert")], [(2,)]]


def test_a_read_by_name_whose_options_ask_for_it_is_a_change_feed(server: Client) -> None:
    """Of a client that registered nothing, so the server is asked with the options of the relation."""

    def program(spark: SparkSession) -> list[Any]:
        session = another_session()
        run(
            session,
            "CREATE TABLE feed USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true') AS SELECT 1 AS id",
            "DELETE FROM feed",
        )
        reader = session.read.option("readChangeFeed", "true").option("startingVersion", 1)
        (detail,) = session.sql("DESCRIBE DETAIL feed").collect()
        wanted = ["feed.id", "_change_type", "_commit_version"]
        return [
            list(map(tuple, reader.table("feed").select(*wanted).collect())),
            list(map(tuple, reader.table(f"delta.`{detail.location}`").select(*wanted[1:]).collect())),
            run(
                session,
                "SELECT feed._change_type FROM feed WITH (readChangeFeed = 'true', startingVersion = 1)",
            ),
            run(session, "SELECT count(*) FROM feed WITH (readChangeFeed = 'false')"),
        ]

    deleted = ("delete", 1)
    assert server(program) == [[(1, *deleted)], [deleted], [[("delete",)]], [[(0,)]]]


def test_the_function_of_paths_is_the_registered_session_s_own(server: Client) -> None:
    failure = server.failure(run, "SELECT * FROM pydelta('/p')")
    assert "UNRESOLVABLE_TABLE_VALUED_FUNCTION" in failure.text


def test_a_registered_client_leaves_the_text_to_the_server(server: Client) -> None:
    def program(spark: SparkSession) -> list[Any]:
        session = another_session()
        registration = delta_ds.register(session)
        run(session, "CREATE TABLE mine USING delta AS SELECT 1 AS id", "INSERT INTO mine VALUES (2)")
        (deleted,) = run(session, "WITH x AS (SELECT 1) DELETE FROM mine WHERE id = 1")
        session.range(3, 5).selectExpr("cast(id AS int)").write.format("delta").mode("append").saveAsTable(
            "mine"
        )
        DeltaTable.forName(session, "mine").delete("id = 4")
        return [str(registration.sql), deleted, sorted(run(session, "SELECT * FROM mine")[0])]

    said, deleted, rows = server(program)
    assert said.startswith("on: the server's")
    assert (deleted, rows) == ([(1,)], [(2,), (3,)])


def test_errors_of_statements_are_those_of_a_classic_session(server: Client) -> None:
    assert "PARSE_SYNTAX_ERROR" in server.failure(run, "VACUUM t RETAIN many HOURS").text
    assert "TABLE_OR_VIEW_NOT_FOUND" in server.failure(run, "DELETE FROM nothing").text

    def constraint(spark: SparkSession) -> None:
        run(
            spark,
            "CREATE TABLE c USING delta AS SELECT 1 AS id",
            "ALTER TABLE c ADD CONSTRAINT p CHECK (id > 0)",
        )
        run(spark, "INSERT INTO c VALUES (0)")

    assert "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES" in server.failure(constraint).text


def test_a_client_that_registered_nothing_sees_conditions(server: Client, tmp_path: Path) -> None:
    """Of conflicts, statements, reads, writes and tasks."""

    def program(spark: SparkSession, folder: str) -> list[tuple[str | None, str | None]]:
        from pyspark.errors import PySparkException

        session = another_session()
        run(
            session,
            "CREATE TABLE conditions (id BIGINT) USING delta",
            "ALTER TABLE conditions ADD CONSTRAINT p CHECK (id > 0)",
            "INSERT INTO conditions VALUES (1)",
        )

        def failed(call: Callable[[], Any]) -> tuple[str | None, str | None]:
            with pytest.raises(PySparkException) as caught:
                call()
            return caught.value.getCondition(), caught.value.getSqlState()

        def deletes_too(one: int) -> bool:
            log = DeltaLog(f"{folder}/t")
            if log.snapshot().version == 0:
                log.delete("id = 5")
            return one > 0

        session.range(9).write.format("delta").save(f"{folder}/t")
        session.udf.register("deletes_too", deletes_too, "boolean")
        rows = session.range(1).selectExpr("'x' AS other")
        return [
            failed(lambda: session.sql(f"DELETE FROM delta.`{folder}/t` WHERE deletes_too(id)").collect()),
            failed(lambda: session.sql("RESTORE TABLE conditions TO VERSION AS OF 9").collect()),
            failed(lambda: session.read.format("delta").load(f"{folder}/nothing").collect()),
            failed(lambda: rows.write.format("delta").mode("append").saveAsTable("conditions")),
            failed(lambda: session.sql("INSERT INTO conditions VALUES (-1)").collect()),
        ]

    told = [
        ("DELTA_CONCURRENT_APPEND.WITHOUT_HINT", "2D521"),
        ("DELTA_CANNOT_RESTORE_TABLE_VERSION", "22003"),
        ("PATH_NOT_FOUND", "42K03"),
        ("DELTA_METADATA_MISMATCH", "42KDG"),
        ("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "23001"),
    ]
    assert server(program, str(tmp_path)) == told


def test_a_setting_has_a_value() -> None:
    assert settings_of(["a=b=c", "d="]) == {"a": "b=c", "d": ""}
    with pytest.raises(InvalidOptionError, match="NAME=VALUE"):
        settings_of(["a"])


def test_streams_are_resolved_by_the_server(server: Client, tmp_path: Path) -> None:
    """Of a client that registered nothing: by name, by path, as a statement; into names and paths."""

    def program(spark: SparkSession, folder: str) -> list[Any]:
        session = another_session()
        run(session, "CREATE TABLE streamed (id BIGINT) USING delta", "INSERT INTO streamed VALUES (1), (2)")
        (detail,) = session.sql("DESCRIBE DETAIL streamed").collect()

        def count(stream: Any, name: str, table: str | None = None, **options: str) -> list[Any]:
            rows = stream.selectExpr("id", "id % 2 AS p")
            writer = rows.writeStream.format("delta").option("checkpointLocation", f"{folder}/c_{name}")
            writer = writer.options(**options).partitionBy("p").trigger(availableNow=True)
            query = writer.start(f"{folder}/{name}") if table is None else writer.toTable(table)
            assert query.awaitTermination(SECONDS)
            target = f"delta.`{folder}/{name}`" if table is None else table
            (made,) = session.sql(f"DESCRIBE DETAIL {target}").collect()
            return [session.table(target).count(), made.partitionColumns]

        reader = session.readStream
        return [
            count(reader.table("streamed"), "a"),
            count(session.sql("SELECT * FROM STREAM streamed"), "b"),
            count(reader.format("delta").option("maxFilesPerTrigger", 1).load(detail.location), "c"),
            count(reader.table("streamed"), "d", "streamed_into"),
            count(reader.table("streamed"), "e", "streamed_into"),
        ]

    assert server(program, str(tmp_path)) == [[2, ["p"]]] * 4 + [[4, ["p"]]]
    assert "UNSUPPORTED_OUTPUT_MODE" in server.failure(_update, str(tmp_path)).text


@pytest.mark.parametrize("registered", [False, True])
def test_the_format_is_spark_s_own_reader_and_writer(
    server: Client, tmp_path: Path, registered: bool
) -> None:
    def program(spark: SparkSession, folder: str) -> list[Any]:
        session = another_session()
        if registered:
            delta_ds.register(session)
        path = f"{folder}/t"
        rows = session.range(10).selectExpr("id", "id % 2 AS p")
        rows.write.format("pydelta").partitionBy("p").save(path)
        rows.write.format("pydelta").mode("ignore").save(path)
        rows.where("id < 3").write.format("pydelta").mode("overwrite").option("replaceWhere", "id < 4").save(
            path
        )

        def read(**options: str) -> DataFrame:
            return session.read.format("pydelta").options(**options).load(path)

        query = session.readStream.format("pydelta").load(path).writeStream.format("pydelta")
        query = query.option("checkpointLocation", f"{folder}/c").trigger(availableNow=True)
        assert query.start(f"{folder}/copied").awaitTermination(SECONDS)
        return [
            "FileScan parquet" in read()._explain_string(),  # type: ignore[operator]
            sorted(row.id for row in read().collect()),
            read(versionAsOf="0").count(),
            session.read.format("pydelta").load(f"{folder}/copied").count(),
            DeltaTable.forPath(session, path).detail().first().partitionColumns,
            _condition(lambda: read(readChangeFeed="true", startingVersion="0").count()),
            _condition(lambda: rows.write.format("pydelta").save(path)),
        ]

    expected = [
        True, [0, 1, 2, 4, 5, 6, 7, 8, 9], 10, 9, ["p"],
        "DELTA_MISSING_CHANGE_DATA", "DELTA_PATH_EXISTS",
    ]  # fmt: skip
    assert server(program, str(tmp_path)) == expected


def test_a_registered_client_s_secrets_are_not_in_plans(server: Client, tmp_path: Path) -> None:
    """What reads them is the data source in Python, whose class carries them."""

    def program(spark: SparkSession, path: str) -> list[Any]:
        session = another_session()
        delta_ds.register(session)
        secret = {"fs.s3a.secret.key": "verysecret"}
        session.range(3).write.format("pydelta").options(**secret).save(path)
        read = session.read.format("pydelta").options(**secret).load(path)
        plan = str(read._plan.to_proto(session.client))  # type: ignore[operator]
        return [read.count(), "verysecret" in plan]

    assert server(program, str(tmp_path / "t")) == [3, False]


def test_a_read_with_secrets_is_of_the_newest_version(server: Client, tmp_path: Path) -> None:
    def program(spark: SparkSession, path: str) -> list[Any]:
        session = another_session()
        delta_ds.register(session)
        secret = {"fs.s3a.secret.key": "verysecret"}
        session.range(3).write.format("pydelta").save(path)
        read = session.read.format("pydelta").options(**secret).load(path)
        counts = [read.count()]
        session.range(3, 5).write.format("pydelta").mode("append").save(path)
        counts.append(read.count())
        read.write.format("pydelta").save(f"{path}-copy")
        return [*counts, len(read.collect()), session.read.format("pydelta").load(f"{path}-copy").count()]

    assert server(program, str(tmp_path / "t")) == [3, 5, 5, 5]


def test_a_stream_writer_that_failed_is_still_one_of_ours(server: Client, tmp_path: Path) -> None:
    """Otherwise nobody would keep secrets out of what it says next."""

    def program(spark: SparkSession, folder: str) -> list[Any]:
        session = another_session()
        delta_ds.register(session)
        session.range(3).write.format("pydelta").save(f"{folder}/t")
        reader: Any = session.readStream.format("pydelta")
        writer: Any = reader.load(f"{folder}/t").writeStream.format("pydelta").trigger(availableNow=True)
        try:
            writer.start(f"{folder}/copy")
            failed = False
        except Exception:
            failed = True
        writer = writer.option("checkpointLocation", f"{folder}/c").option("fs.s3a.secret.key", "verysecret")
        assert writer.start(f"{folder}/copy").awaitTermination(SECONDS)
        return [
            failed,
            writer._write_proto.format,
            reader._options.get("format", reader._format),
            "verysecret" in str(writer._write_proto),
            session.read.format("pydelta").load(f"{folder}/copy").count(),
        ]

    assert server(program, str(tmp_path)) == [True, "pydelta", "pydelta", False, 3]


def test_values_of_row_commands_may_be_subqueries(server: Client, tmp_path: Path) -> None:
    def program(spark: SparkSession, folder: str) -> list[Any]:
        session = another_session()
        session.range(6).write.format("delta").save(f"{folder}/t")
        session.range(10).selectExpr("id AS k").write.format("delta").save(f"{folder}/other")
        other = session.read.format("delta").load(f"{folder}/other")
        table = DeltaTable.forPath(session, f"{folder}/t")
        most = other.selectExpr("max(k)").scalar()
        table.update("id = 3", {"id": most})
        source = session.range(20, 21).selectExpr("id AS s")
        merge = table.merge(source, "id = s")
        merge.whenNotMatchedInsert(values={"id": other.selectExpr("max(k) + 1").scalar()}).execute()
        rows = sorted(row.id for row in table.toDF().collect())
        table.delete(other.where("k > 8").exists())
        return [rows, table.toDF().count()]

    assert server(program, str(tmp_path)) == [[0, 1, 2, 4, 5, 9, 10], 0]


def _condition(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return getattr(error, "condition", None) or re.findall(r"\[(DELTA_\w+)\]", str(error))[0]
    return "done"


def _update(spark: SparkSession, folder: str) -> None:
    session = another_session()
    counts = session.readStream.table("streamed").groupBy().count()
    writer = counts.writeStream.format("delta").option("checkpointLocation", f"{folder}/u")
    writer.outputMode("update").trigger(availableNow=True).start(f"{folder}/updated").awaitTermination(
        SECONDS
    )
