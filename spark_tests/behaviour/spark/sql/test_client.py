"""`spark.sql` of a registered session of Spark Connect, against a server that has only this package.

Functions of the tests run in the client's process, as `client(function, ...)`. docs/connect.md cites these tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import delta_ds
from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import (
    DeltaError,
    InvalidArgumentError,
    InvariantViolationError,
    NotADeltaTableError,
    PredicateError,
    UnsupportedOperationError,
)
from spark_tests.behaviour.spark.connect_server import Client, Server, connect_client

pytestmark = [pytest.mark.connect, pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def client(plain_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with connect_client(plain_server, tmp_path_factory.mktemp("connect_sql")) as started:
        started(delta_ds.register)
        yield started


@pytest.fixture
def table(client: Client, tmp_path: Path) -> str:
    """A table of three rows, partitioned: ids 0 to 2, p their parity, v the text of the id."""

    def make(spark: SparkSession, path: str) -> None:
        rows = spark.range(3).selectExpr("id", "id % 2 AS p", "cast(id AS string) AS v")
        rows.write.format("pydelta").partitionBy("p").save(path)

    client(make, str(tmp_path / "t"))
    return str(tmp_path / "t")


def run(spark: SparkSession, *texts: str) -> list[list[tuple[Any, ...]]]:
    """The rows of each statement."""
    return [[tuple(row) for row in spark.sql(text).collect()] for text in texts]


def answer(spark: SparkSession, text: str, args: Any = None) -> tuple[list[str], list[tuple[Any, ...]]]:
    frame = spark.sql(text, args)
    return frame.columns, [tuple(row) for row in frame.collect()]


def rows_of(path: str) -> list[dict[str, Any]]:
    return sorted(DeltaLog(path).snapshot().scan().to_arrow().to_pylist(), key=str)


def ids(path: str) -> list[int]:
    return sorted(row["id"] for row in rows_of(path))


def last(path: str) -> str:
    return str(DeltaLog(path).history()[0]["operation"])


class TestStatementsOfDelta:
    def test_answers_are_those_of_delta_spark(self, client: Client, table: str, tmp_path: Path) -> None:
        copy = str(tmp_path / "copy")
        counts = ["num_removed_files", "num_copied_files", "removed_files_size", "copied_files_size"]
        columns, found = client(answer, f"/* x */ OPTIMIZE delta.`{table}` WHERE p = 0;")
        assert columns == ["path", "metrics"]
        assert found[0][0] == f"file:{table}"
        columns, found = client(answer, f"VACUUM '{table}' RETAIN ? HOURS DRY RUN", [200])
        assert (columns, found) == (["path"], [])
        assert client(answer, f"VACUUM '{table}' RETAIN :h HOURS", {"h": 200}) == (
            ["path"],
            [(f"file:{table}",)],
        )
        columns, found = client(answer, f"DESCRIBE HISTORY delta.`{table}` LIMIT 1")
        assert (columns[:2], found[0][4], len(found)) == (["version", "timestamp"], "VACUUM END", 1)
        columns, found = client(answer, f"DESC DETAIL pydelta.`{table}`")
        assert (columns[0], found[0][0]) == ("format", "delta")
        columns, found = client(
            answer, f"CREATE TABLE delta.`{copy}` SHALLOW CLONE delta.`{table}` VERSION AS OF 0"
        )
        assert columns == ["source_table_size", "source_num_of_files", *counts]
        assert [value > 0 for value in found[0]] == [True, True, False, False, False, False]
        again = f"CREATE TABLE IF NOT EXISTS delta.`{copy}` SHALLOW CLONE delta.`{table}`"
        assert client(answer, again) == (columns, [])
        columns, found = client(answer, f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 0")
        assert columns[0] == "table_size_after_restore"
        assert ids(copy) == ids(table) == [0, 1, 2]

    def test_a_description_is_changed(self, client: Client, table: str) -> None:
        name = f"delta.`{table}`"
        texts = [
            f"ALTER TABLE {name} ADD CONSTRAINT 8277e0910d750195 CHECK (id >= 0 AND v <> ')')",
            f"ALTER TABLE {name} DROP CONSTRAINT IF EXISTS nothing",
            f"REORG TABLE {name} APPLY (PURGE)",
            f"GENERATE symlink_format_manifest FOR TABLE {name}",
        ]
        assert [client(answer, text)[0] for text in texts] == [[], [], ["path", "metrics"], []]
        assert (
            DeltaLog(table).snapshot().properties["delta.constraints.8277e0910d750195"].startswith("id >= 0")
        )
        assert (Path(table) / "_symlink_format_manifest").exists()
        with pytest.raises(InvariantViolationError):
            client(run, f"INSERT INTO {name} VALUES (-1, 0, 'x')")
        client(run, f"ALTER TABLE {name} DROP CONSTRAINT 8277e0910d750195")
        assert last(table) == "DROP CONSTRAINT"

    def test_a_folder_is_converted(self, client: Client, tmp_path: Path) -> None:
        def write(spark: SparkSession, path: str) -> None:
            spark.range(4).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(path)

        path = str(tmp_path / "parquet")
        client(write, path)
        client(run, f"CONVERT TO DELTA parquet.`{path}` NO STATISTICS PARTITIONED BY (p INT)")
        assert ids(path) == [0, 1, 2, 3]
        assert all(add["stats"] is None for add in DeltaLog(path).snapshot().files().to_pylist())

    def test_a_wrong_statement_says_where(self, client: Client, table: str) -> None:
        with pytest.raises(PredicateError) as caught:
            client(run, f"-- first\nVACUUM delta.`{table}` RETAIN many HOURS")
        assert caught.value.condition == "PARSE_SYNTAX_ERROR"
        assert "(line 2, pos" in caught.value.text
        assert f"\n{'-' * (len(table) + 23)}^^^" in caught.value.text

        def kind(spark: SparkSession, text: str) -> list[str]:
            try:
                spark.sql(text)
            except Exception as error:
                return [kind.__name__ for kind in type(error).__mro__]
            return []

        assert "ParseException" in client(kind, "VACUUM")
        with pytest.raises(PredicateError, match="the parameter :h has no value"):
            client(run, "VACUUM t RETAIN :h HOURS")

    def test_no_table_is_an_error(self, client: Client, tmp_path: Path) -> None:
        with pytest.raises(NotADeltaTableError):
            client(run, f"OPTIMIZE delta.`{tmp_path}/none`")


class TestRows:
    def test_delete_and_update(self, client: Client, table: str) -> None:
        name = f"delta.`{table}`"
        assert client(answer, f"DELETE FROM {name} AS t WHERE t.id < :x", {"x": 1}) == (
            ["num_affected_rows"],
            [(1,)],
        )
        set_both = f"UPDATE {name} t SET t.v = concat(t.v, ?), id = CASE WHEN t.id = 2 THEN 9 ELSE t.id END WHERE true"
        assert client(answer, set_both, ["it's"]) == (["num_affected_rows"], [(2,)])
        assert [(row["id"], row["v"]) for row in rows_of(table)] == [(1, "1it's"), (9, "2it's")]
        assert client(answer, f"DELETE FROM pydelta.`{table}`") == (["num_affected_rows"], [(2,)])

    def test_merge_with_all_clauses_and_a_query_in_front(
        self, client: Client, table: str, tmp_path: Path
    ) -> None:
        def other(spark: SparkSession, path: str) -> None:
            spark.range(1, 5).write.format("pydelta").save(path)

        client(other, str(tmp_path / "s"))
        text = f"""
            WITH src AS (SELECT id, id * 10 AS n FROM delta.`{tmp_path}/s` WHERE id < :most)
            MERGE INTO delta.`{table}` AS t USING (SELECT * FROM src) s ON t.id = s.id
            WHEN MATCHED AND t.v = '1' THEN UPDATE SET t.v = CASE WHEN s.n > 5 THEN 'new' END
            WHEN MATCHED THEN DELETE
            WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, s.id % 2, concat_ws(',', 'a', s.n))
            WHEN NOT MATCHED BY SOURCE AND t.id = 0 THEN UPDATE SET v = 'gone'
        """
        columns = ["num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows"]
        assert client(answer, text, {"most": 4}) == (columns, [(4, 2, 1, 1)])
        assert [(row["id"], row["v"]) for row in rows_of(table)] == [(0, "gone"), (1, "new"), (3, "a,30")]

    def test_merge_takes_new_columns_frames_and_paths(self, client: Client, table: str) -> None:
        def merge(spark: SparkSession, path: str) -> list[Any]:
            source = spark.createDataFrame(
                [(2, 0, "two", 2.5), (3, 1, "three", 3.5)], "id long, p long, v string, w double"
            )
            text = "MERGE WITH SCHEMA EVOLUTION INTO delta.`%s` t USING {source} s ON t.id = s.id WHEN MATCHED THEN "
            text += "UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            first = spark.sql(text % path, source=source).collect()
            second = spark.sql(
                f"MERGE INTO delta.`{path}` t USING delta.`{path}@v0` AS s ON t.id = s.id WHEN MATCHED THEN DELETE"
            )
            return [tuple(first[0]), tuple(second.collect()[0])]

        assert client(merge, table) == [(2, 1, 0, 1), (3, 0, 3, 0)]
        assert rows_of(table) == [{"id": 3, "p": 1, "v": "three", "w": 3.5}]

    def test_insert_in_all_forms(self, client: Client, table: str) -> None:
        name = f"delta.`{table}`"
        client(
            run,
            f"INSERT INTO {name} VALUES (10, 0, 'a'), (11, 1, 'b')",
            f"INSERT INTO TABLE {name} (v, id, p) SELECT 'c', 12, 0",
            f"INSERT INTO {name} BY NAME SELECT 'd' AS v, 1 AS p, 13 AS id",
            f"INSERT INTO {name} PARTITION (p = 1) SELECT 14, 'e'",
            f"WITH q AS (SELECT 15, 1, 'f') INSERT INTO {name} SELECT * FROM q",
            f"INSERT INTO {name} (SELECT id + 20, p, v FROM {name} VERSION AS OF 0)",
        )
        assert ids(table) == [0, 1, 2, 10, 11, 12, 13, 14, 15, 20, 21, 22]
        client(run, f"INSERT INTO {name} REPLACE WHERE id >= 10 SELECT 30, 0, 'g'")
        assert ids(table) == [0, 1, 2, 30]
        client(run, f"INSERT OVERWRITE {name} PARTITION (p = 1) SELECT 31, 'h'")
        assert ids(table) == [0, 2, 30, 31]
        client(run, f"INSERT WITH SCHEMA EVOLUTION INTO {name} BY NAME SELECT 32 AS id, 1 AS p, true AS flag")
        assert rows_of(table)[-1] == {"id": 32, "p": 1, "v": None, "flag": True}
        client(run, f"INSERT OVERWRITE {name} WITH (userMetadata = 'told') VALUES (1, 1, 'x', false)")
        assert (ids(table), DeltaLog(table).history()[0]["userMetadata"]) == ([1], "told")

    @pytest.mark.parametrize(
        ("form", "by_name"),
        [
            ("SELECT 1 AS id, {s} AS s, 1 AS p", True),
            ("PARTITION (p = 1) SELECT 1 AS id, {s} AS s", True),
            ("PARTITION (p) SELECT 1 AS id, {s} AS s, 1 AS p", True),
            ("BY NAME SELECT 1 AS p, {s} AS s, 1 AS id", True),
            ("PARTITION (p = 1) SELECT 1 AS other, {s} AS s", False),
            ("PARTITION (p = 1) SELECT 1L AS id, {s} AS s", False),
            ("PARTITION (p = 1) (id, s) SELECT 1 AS id, {s} AS s", False),
        ],
    )
    def test_fields_of_structs_go_by_place_where_anything_is_cast_or_columns_are_listed(
        self, client: Client, tmp_path: Path, form: str, by_name: bool
    ) -> None:
        """Recorded on delta-spark 4.4."""
        path = str(tmp_path / "t")

        def inserted(spark: SparkSession) -> Any:
            builder = DeltaTable.create(spark).location(path).addColumn("id", "int")
            builder.addColumn("s", "struct<a: int, b: string>").addColumn("p", "int").partitionedBy(
                "p"
            ).execute()
            spark.sql(
                f"INSERT INTO delta.`{path}` " + form.format(s="named_struct('b', 'x', 'a', 1)")
            ).collect()

        if by_name:
            client(inserted)
            assert rows_of(path) == [{"id": 1, "s": {"a": 1, "b": "x"}, "p": 1}]
        else:
            with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
                client(inserted)
            assert rows_of(path) == []

    def test_null_is_a_partition_like_any_other(self, client: Client, table: str) -> None:
        name = f"delta.`{table}`"
        client(
            run,
            f"INSERT INTO {name} PARTITION (p = NULL) SELECT 10, 'a'",
            f"INSERT INTO {name} PARTITION (P = null) (v, id) VALUES ('b', 11)",
        )
        assert ids(table) == [0, 1, 2, 10, 11]
        client(run, f"INSERT OVERWRITE {name} PARTITION (p = NULL) BY NAME SELECT 'c' AS v, 12 AS id")
        assert ids(table) == [0, 1, 2, 12]
        client(run, f"INSERT OVERWRITE {name} PARTITION (p = '1') SELECT 13, 'd'")
        assert sorted((row["id"], row["p"]) for row in rows_of(table)) == [
            (0, 0),
            (2, 0),
            (12, None),
            (13, 1),
        ]

    def test_defaults_and_columns_that_are_left_out(self, client: Client, tmp_path: Path) -> None:
        path = str(tmp_path / "t")

        def inserted(spark: SparkSession, *queries: str) -> list[tuple[Any, ...]]:
            def table() -> Any:
                return (
                    DeltaTable.createOrReplace(spark).location(path)
                    .addColumn("id", "int").addColumn("k", "int").addColumn("s", "string")
                    .addColumn("n", "decimal(5,2)").addColumn("g", "int", generatedAlwaysAs="k + 1")
                    .partitionedBy("k").execute()
                )  # fmt: skip

            target = table()
            target.addFeatureSupport("allowColumnDefaults")
            target.alterColumn("s", default="'it''s'")
            target.alterColumn("n", default="1")
            for query in queries:
                spark.sql(query.format(t=f"delta.`{path}`"))
            return sorted(map(tuple, target.toDF().collect()), key=str)

        one = Decimal("1.00")
        assert client(
            inserted,
            "INSERT INTO {t} (id, k, s, n) VALUES (1, DEFAULT, DEFAULT, default), (2, 5, 'x', 2)",
            "INSERT INTO {t} (n, s, id) SELECT DEFAULT, DEFAULT AS whatever, 3",
            "INSERT INTO {t} (id, s) (SELECT 4, DEFAULT FROM range(1))",
            "INSERT INTO {t} PARTITION (k = 7) (s, id) VALUES (DEFAULT, 5)",
            "INSERT INTO {t} (id, s) SELECT 6, default FROM (SELECT 'mine' AS default)",
            "INSERT INTO {t} (k) VALUES (8)",
        ) == [
            (1, None, "it's", one, None), (2, 5, "x", Decimal("2.00"), 6), (3, None, "it's", one, None),
            (4, None, "it's", one, None), (5, 7, "it's", one, 8), (6, None, "mine", one, None),
            (None, 8, "it's", one, 9),
        ]  # fmt: skip

    def test_insert_overwrites_partitions_in_dynamic_mode(self, client: Client, table: str) -> None:
        def insert(spark: SparkSession, path: str) -> None:
            spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
            try:
                spark.sql(f"INSERT OVERWRITE delta.`{path}` PARTITION (p) SELECT 7, 1, 'x'")
            finally:
                spark.conf.unset("spark.sql.sources.partitionOverwriteMode")

        client(insert, table)
        assert ids(table) == [0, 2, 7]

    @pytest.mark.parametrize(
        "statement",
        [
            "INSERT INTO {t} (id, v) SELECT 1, 0, 'x'",
            "INSERT INTO {t} SELECT 1",
            "INSERT OVERWRITE {t} PARTITION (p = 1) IF NOT EXISTS SELECT 1, 'x'",
            "INSERT INTO {t} PARTITION (id = 1) SELECT 1, 'x'",
            "INSERT INTO {t} PARTITION (nope = 1) SELECT 1, 1, 'x'",
            "INSERT INTO {t} PARTITION (p = 1) (id, p) VALUES (1, 2)",
            "INSERT INTO {t} PARTITION (p = 1) BY NAME SELECT 1 AS id, 2 AS p",
            "INSERT INTO {t} (id, ID) VALUES (1, 2)",
            "INSERT INTO {t} (id, nope) VALUES (1, 2)",
            "DELETE FROM {t} WHERE id IN (SELECT 1)",
            "UPDATE {t} SET nope = 1",
            "MERGE INTO {t} USING (SELECT 1 AS id) s ON true",
        ],
    )
    def test_what_is_refused_changes_nothing(self, client: Client, table: str, statement: str) -> None:
        with pytest.raises(DeltaError):
            client(run, statement.format(t=f"delta.`{table}`"))
        assert len(DeltaLog(table).history()) == 1

    def test_values_of_all_types_take_the_place_of_markers(self, client: Client, tmp_path: Path) -> None:
        def insert(spark: SparkSession, path: str) -> None:
            spark.sql(
                "SELECT 1 AS n, DATE'2020-01-01' AS d, 1.5BD AS m, X'00' AS b, 'x' AS s, array('') AS a"
            ).write.format("pydelta").save(path)
            values = {
                "n": 2,
                "d": date(2024, 2, 29),
                "m": Decimal("2.5"),
                "b": b"\x01",
                "s": "a'\\n",
                "a": ["y"],
            }
            spark.sql(f"UPDATE delta.`{path}` SET n = :n, d = :d, m = :m, b = :b, s = :s, a = :a", values)

        client(insert, str(tmp_path / "t"))
        (row,) = rows_of(str(tmp_path / "t"))
        assert row == {
            "n": 2,
            "d": date(2024, 2, 29),
            "m": Decimal("2.5"),
            "b": b"\x01",
            "s": "a'\\n",
            "a": ["y"],
        }


def test_a_table_by_path_is_truncated(client: Client, table: str) -> None:
    assert client(lambda spark, path: run(spark, f"TRUNCATE TABLE delta.`{path}`"), table) == [[]]
    assert (ids(table), last(table)) == ([], "TRUNCATE")
    missing = client.failure(run, f"TRUNCATE TABLE delta.`{table}_not`")
    assert isinstance(missing.recognised, NotADeltaTableError)


class TestQueries:
    def test_tables_by_path_are_read(self, client: Client, table: str) -> None:
        def program(spark: SparkSession, path: str) -> list[Any]:
            DeltaTable.forPath(spark, path).setProperties({"delta.enableChangeDataFeed": "true"})
            spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 0")
            when = DeltaLog(path).history()[-1]["timestamp"].isoformat()
            joined = spark.sql(
                f"SELECT count(*) FROM delta.`{path}` a JOIN pydelta.`{path}` VERSION AS OF 0 b USING (id) "
                "WHERE a.id > ?",
                [0],
            )
            return [
                sorted(run(spark, f"SELECT id FROM delta.`{path}`")[0]),
                sorted(
                    run(
                        spark,
                        f"SELECT t.id FROM delta.`{path}` TIMESTAMP AS OF '{when}' AS t WHERE '{{}}' = '{{}}'",
                    )[0]
                ),
                run(
                    spark,
                    f"WITH q AS (SELECT * FROM delta.`{path}@v0`) SELECT count(*) FROM q, delta.`{path}`",
                )[0],
                joined.collect()[0][0],
                run(spark, f"SELECT count(*) FROM table_changes_by_path('{path}', 2, 2)")[0],
                run(spark, f"SELECT _change_type FROM table_changes('delta.`{path}`', 2)")[0],
                len(run(spark, f"TABLE delta.`{path}`")[0]),
                [row[0] for row in run(spark, f"DESCRIBE delta.`{path}`")[0]],
            ]

        assert client(program, table) == [
            [(1,), (2,)],
            [(0,), (1,), (2,)],
            [(6,)],
            2,
            [(1,)],
            [("delete",)],
            2,
            ["id", "p", "v"],
        ]

    def test_a_timestamp_may_be_computed(self, client: Client, table: str) -> None:
        def program(spark: SparkSession, path: str) -> list[Any]:
            when = DeltaLog(path).history()[-1]["timestamp"].isoformat()
            spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 0")
            texts = [
                f"CAST('{when}' AS TIMESTAMP) t WHERE t.id >= 0",
                f"to_timestamp('{when}') + INTERVAL '0' DAY - INTERVAL 0.0 SECOND",
                "timestamp_micros(:moment) AS t",
            ]
            args = {"moment": int(DeltaLog(path).history()[-1]["timestamp"].timestamp() * 1_000_000)}
            return [
                spark.sql(f"SELECT * FROM delta.`{path}` TIMESTAMP AS OF {t}", args).count() for t in texts
            ]

        assert client(program, table) == [3, 3, 3]

    def test_a_frame_lives_on_without_its_session_s_views(self, client: Client, table: str) -> None:
        def program(spark: SparkSession, path: str) -> list[Any]:
            frame = spark.sql(f"SELECT * FROM delta.`{path}`").where("id > 0")
            views = [view.name for view in spark.catalog.listTables()]
            return [frame.count(), frame.groupBy("p").count().count(), views]

        assert client(program, table) == [2, 2, []]

    def test_views_and_tables_of_other_formats_are_made_of_them(self, client: Client, table: str) -> None:
        def program(spark: SparkSession, path: str) -> list[Any]:
            spark.sql(
                f"CREATE OR REPLACE TEMPORARY VIEW v (a, b, c) AS SELECT * FROM delta.`{path}` WHERE id > 0"
            )
            spark.sql(f"CREATE TABLE kept USING parquet AS SELECT * FROM delta.`{path}`")
            found = [spark.table("v").columns, spark.table("v").count(), spark.table("kept").count()]
            spark.sql("DROP TABLE kept")
            spark.catalog.dropTempView("v")
            return found

        assert client(program, table) == [["a", "b", "c"], 2, 3]
        with pytest.raises(UnsupportedOperationError, match="permanent view"):
            client(run, f"CREATE VIEW kept AS SELECT * FROM delta.`{table}`")

    def test_other_statements_are_spark_s(self, client: Client) -> None:
        def program(spark: SparkSession) -> list[Any]:
            spark.sql("CREATE TABLE history (t INT) USING parquet")
            described = spark.sql("DESCRIBE history").count()
            spark.sql("INSERT INTO history VALUES (1), (2)")
            spark.sql("DROP TABLE history")
            return [described, spark.sql("SELECT :x + {y}", {"x": 1}, y=2).collect()[0][0]]

        assert client(program) == [1, 3]
        assert "PARSE_SYNTAX_ERROR" in client.failure(run, "SELEC 1").text
        assert "TABLE_OR_VIEW_NOT_FOUND" in client.failure(run, "DELETE FROM nothing WHERE a = 1").text


class TestNotThere:
    """What a client cannot have while the server has no catalog for Delta tables."""

    @pytest.mark.parametrize(
        ("statement", "says"),
        [
            ("OPTIMIZE sales.orders", "DELTA_MISSING_DELTA_TABLE"),
            ("CREATE TABLE t (a INT) USING delta", "DATA_SOURCE_NOT_FOUND"),
            ("CREATE TABLE t SHALLOW CLONE delta.`{t}`", "DELTA_OPERATION_NOT_ALLOWED"),
            ("CREATE TABLE delta.`{t}_p` SHALLOW CLONE parquet.`{t}`", "DELTA_MISSING_DELTA_TABLE"),
            (
                "CREATE TABLE delta.`{t}_p` SHALLOW CLONE delta.`{t}` LOCATION '/q'",
                "DELTA_TABLE_LOCATION_MISMATCH",
            ),
            ("CREATE VIEW v AS SELECT * FROM delta.`{t}`", "permanent view"),
            ("CREATE TABLE delta.`{t}_new` (a INT) USING delta", ""),
            ("ALTER TABLE delta.`{t}` ADD COLUMNS (a INT)", ""),
            ("SHOW CREATE TABLE delta.`{t}`", ""),
            ("TRUNCATE TABLE delta.`{t}` PARTITION (p = 1)", ""),
            ("SELECT * FROM delta.`{t}` TIMESTAMP AS OF (SELECT current_timestamp())", "delta"),
        ],
    )
    def test_names_and_ddl_need_a_catalog_of_the_server(
        self, client: Client, table: str, statement: str, says: str
    ) -> None:
        failure = client.failure(run, statement.format(t=table))
        assert says in failure.text
        assert len(DeltaLog(table).history()) == 1


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("statement", "nothing", "folder"),
    [
        *(
            (statement, "PATH_NOT_FOUND", "DELTA_TABLE_NOT_FOUND")
            for statement in (
                "SELECT * FROM delta.`{}`",
                "DELETE FROM delta.`{}` WHERE id = 1",
                "UPDATE delta.`{}` SET id = 1",
                "MERGE INTO delta.`{}` t USING (SELECT 1 id) u ON t.id = u.id WHEN MATCHED THEN DELETE",
                "INSERT INTO delta.`{}` VALUES (1)",
            )
        ),
        *(
            (statement, "DELTA_MISSING_DELTA_TABLE", "DELTA_MISSING_DELTA_TABLE")
            for statement in (
                "OPTIMIZE delta.`{}`",
                "DESCRIBE DETAIL delta.`{}`",
                "TRUNCATE TABLE delta.`{}`",
            )
        ),
        ("DESCRIBE HISTORY delta.`{}`", "DELTA_TABLE_ONLY_OPERATION", "DELTA_TABLE_ONLY_OPERATION"),
        ("REORG TABLE delta.`{}` APPLY (PURGE)", "DELTA_ONLY_OPERATION", "DELTA_ONLY_OPERATION"),
    ],
)
def test_what_was_asked_decides_what_is_said_of_no_table(
    client: Client, tmp_path: Path, statement: str, nothing: str, folder: str
) -> None:
    (tmp_path / "folder").mkdir()
    for name, condition in (("nothing", nothing), ("folder", folder)):
        text = client.failure(run, statement.format(tmp_path / name)).text
        assert f"[{condition}]" in text


def test_an_argument_is_a_value(client: Client, table: str) -> None:
    def delete(spark: SparkSession, path: str) -> None:
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = :x", {"x": F.lit(1)})

    with pytest.raises(InvalidArgumentError, match="has no literal in SQL"):
        client(delete, table)
    assert ids(table) == [0, 1, 2]


def test_unregister_gives_spark_s_own_method_back(client: Client) -> None:
    def program(spark: SparkSession) -> list[bool]:
        from pyspark.sql.connect.session import SparkSession as ConnectSession

        replaced = [hasattr(ConnectSession.sql, "_delta_ds_original")]
        delta_ds.unregister(spark)
        replaced.append(hasattr(ConnectSession.sql, "_delta_ds_original"))
        delta_ds.register(spark)
        return replaced

    assert client(program) == [True, False]
