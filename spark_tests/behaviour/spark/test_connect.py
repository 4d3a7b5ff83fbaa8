"""Spark Connect: the whole API against a server that has only this package; docs/connect.md cites these tests.

Functions of the tests run in the client's process, as `client(function, ...)`; only the fixture `registered` has
called `register`.
"""

from __future__ import annotations

import inspect
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.functions import col, current_timestamp

import delta_ds
from delta_ds import DeltaLog, DeltaTable, DeltaTableBuilder, IdentityGenerator, exceptions
from delta_ds.exceptions import (
    DataFileError,
    DeltaConcurrentModificationException,
    DeltaError,
    InvalidOptionError,
    InvariantViolationError,
    MetadataChangedException,
    NotADeltaTableError,
    PredicateError,
    SchemaError,
    TableExistsError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_ds.kernel.transaction.alter import create
from delta_ds.spark.session import state
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.spark.connect_server import (
    DEPENDENCIES,
    ROOT,
    Client,
    Server,
    another_session,
    closure,
    connect_client,
)
from spark_tests.full_form import FULL

pytestmark = [pytest.mark.connect, pytest.mark.slow, pytest.mark.long]

SALES = ROOT / "examples" / "data" / "sales"
# A path that each process sees in its own way, as it sees its disks and credentials.
OWN = Path("/proc/self/cwd")


@pytest.fixture(scope="module")
def client(plain_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with connect_client(plain_server, tmp_path_factory.mktemp("connect")) as started:
        yield started


def read(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    return spark.read.format("pydelta").options(**options).load(path)


def write(rows: DataFrame, path: str, mode: str = "append", **options: Any) -> None:
    rows.write.format("pydelta").mode(mode).options(**options).save(path)


def append(spark: SparkSession, path: str, start: int, end: int) -> None:
    write(spark.range(start, end), path)


def refused(command: Callable[[], object]) -> tuple[type[DeltaError], str] | None:
    """The class and condition of the error of a command."""
    try:
        command()
    except DeltaError as error:
        # Of its two classes the package's own.
        return getattr(exceptions, type(error).__name__), error.condition
    return None


def numbers(spark: SparkSession, path: str) -> list[int]:
    return sorted(row[0] for row in read(spark, path).collect())


class TestServer:
    def test_its_python_has_only_the_package_and_what_that_needs(self, client: Client) -> None:
        def distributions(spark: SparkSession) -> list[Any]:
            def names(batches: Any) -> Any:
                import importlib.metadata
                import os

                import pyarrow

                import delta_ds

                found = sorted(d.name.lower() for d in importlib.metadata.distributions())
                found.append(os.path.dirname(delta_ds.__file__))
                found.append(os.getcwd())
                yield pyarrow.RecordBatch.from_pylist([{"text": text} for text in found])

            one = spark.range(0, 1, 1, 1)
            return [row.text for row in one.mapInArrow(names, "text string").collect()]

        *found, package, folder = client(distributions)
        assert found == sorted(d.name.lower() for d in closure(DEPENDENCIES))
        assert not {"pandas", "grpcio", "pytest"} & set(found)
        assert not package.startswith(str(ROOT))
        assert folder == str(client.server_folder) != str(client.folder)

    def test_it_finds_the_source_by_itself(self, client: Client) -> None:
        def count(spark: SparkSession) -> int:
            return read(another_session(), str(SALES)).count()

        assert client(count) == DeltaLog(SALES).snapshot().scan().to_arrow().num_rows

    def test_register_says_what_is_active(self, client: Client) -> None:
        def registered(spark: SparkSession) -> Any:
            session = another_session()
            registration = delta_ds.register(session)
            assert delta_ds.register(session) == registration
            return registration, session.version, read(session, str(SALES)).count()

        registration, version, rows = client(registered)
        assert (registration.format, registration.session) == ("pydelta", "connect")
        assert registration.spark_version == version
        assert registration.source and not registration.native_scan
        assert rows == DeltaLog(SALES).snapshot().scan().to_arrow().num_rows


class TestRead:
    def test_rows_are_those_of_the_kernel(self, client: Client) -> None:
        def rows(spark: SparkSession) -> list[Any]:
            return [row.asDict() for row in read(spark, str(SALES)).collect()]

        expected = DeltaLog(SALES).snapshot().scan().to_arrow().to_pylist()
        assert sorted(client(rows), key=str) == sorted(expected, key=str)

    def test_filters_give_the_rows_that_match(self, client: Client) -> None:
        def count(spark: SparkSession) -> list[int]:
            df = read(spark, str(SALES))
            return [df.where("country = 'DE'").count(), df.count()]

        snapshot = DeltaLog(SALES).snapshot()
        german = snapshot.scan("country = 'DE'").to_arrow().num_rows
        assert client(count) == [german, snapshot.scan().to_arrow().num_rows]

    def test_versions_and_moments_are_found(self, client: Client) -> None:
        log = DeltaLog(SALES)
        moments = {v["version"]: v["timestamp"].isoformat() for v in log.history()}

        def counts(spark: SparkSession) -> list[int]:
            path = str(SALES)
            return [
                read(spark, path, versionAsOf=2).count(),
                read(spark, path, timestampAsOf=moments[2]).count(),
                read(spark, f"{path}@v2").count(),
            ]

        assert client(counts) == [log.snapshot(2).scan().to_arrow().num_rows] * 3

    def test_change_feed_is_that_of_the_kernel(self, client: Client) -> None:
        def kinds(spark: SparkSession) -> dict[str, int]:
            changes = read(spark, str(SALES), readChangeFeed=True, startingVersion=3, endingVersion=5)
            return dict(changes.groupBy("_change_type").count().collect())  # type: ignore[arg-type]

        feed = DeltaLog(SALES).changes(3, 5).to_arrow()["_change_type"]
        assert client(kinds) == {pair["values"]: pair["counts"] for pair in feed.value_counts().to_pylist()}

    def test_columns_are_chosen_by_option_and_by_schema(self, client: Client) -> None:
        def columns(spark: SparkSession) -> list[Any]:
            by_option = read(spark, str(SALES), columns="country, order_id", metadataColumns="file_name")
            by_schema = spark.read.format("pydelta").schema("country string, order_id long").load(str(SALES))
            names = by_option.select("_metadata.file_name").distinct().count()
            return [by_option.columns, by_schema.columns, names]

        chosen = ["country", "order_id"]
        assert client(columns) == [[*chosen, "_metadata"], chosen, 18]

    def test_views_are_read_and_inserted_into(self, client: Client, tmp_path: Path) -> None:
        def insert(spark: SparkSession, path: str) -> list[Any]:
            append(spark, path, 0, 3)
            spark.sql(f"CREATE TEMPORARY VIEW v USING pydelta OPTIONS (path '{path}')")
            spark.sql("INSERT INTO v SELECT 3L")
            spark.sql("INSERT INTO v (id) VALUES (4)")
            read(spark, path).createOrReplaceTempView("w")
            spark.sql("INSERT INTO w VALUES (5)")
            inserted = numbers(spark, path)
            spark.sql("INSERT OVERWRITE v SELECT id FROM w WHERE id > 3")
            # A view keeps to the version that it was made at.
            views = [spark.table(name).count() for name in "vw"]
            spark.catalog.dropTempView("v")
            return [inserted, numbers(spark, path), views]

        assert client(insert, str(tmp_path / "t")) == [[0, 1, 2, 3, 4, 5], [4], [3, 5]]

    def test_dataframe_follows_the_table_unless_a_version_is_given(
        self, client: Client, tmp_path: Path
    ) -> None:
        def counts(spark: SparkSession, path: str) -> list[int]:
            session = another_session()
            session.conf.set("spark.connect.session.planCache.enabled", "false")
            append(session, path, 0, 3)
            latest, first = read(session, path), read(session, path, versionAsOf=0)
            before = [latest.count(), first.count()]
            append(session, path, 3, 5)
            return [*before, latest.count(), first.count()]

        assert client(counts, str(tmp_path / "t")) == [3, 3, 5, 3]


class TestWrite:
    def test_modes_and_options_do_what_they_do_elsewhere(self, client: Client, tmp_path: Path) -> None:
        def program(spark: SparkSession, path: str) -> list[list[Any]]:
            def parted(start: int, end: int) -> DataFrame:
                return spark.range(start, end).selectExpr("id", "id % 3 as p")

            def rows() -> list[Any]:
                return sorted(tuple(row) for row in read(spark, path).collect())

            write(parted(0, 6), path, partitionBy="p")
            seen = [rows()]
            write(parted(6, 9), path)
            seen.append(rows())
            write(parted(10, 11), path, "overwrite", replaceWhere="p = 1")
            seen.append(rows())
            write(parted(20, 21), path, "overwrite", partitionOverwriteMode="dynamic")
            seen.append(rows())
            write(spark.range(30, 31).selectExpr("id", "0L as p", "'x' as s"), path, mergeSchema=True)
            seen.append(rows())
            write(
                spark.range(2).selectExpr("cast(id as string) as t"), path, "overwrite", overwriteSchema=True
            )
            seen.append(rows())
            return seen

        def parted(*ids: int) -> list[Any]:
            return sorted((i, i % 3) for i in ids)

        after_dynamic = [0, 3, 6, 10, 20]
        assert client(program, str(tmp_path / "t")) == [
            parted(*range(6)),
            parted(*range(9)),
            parted(0, 2, 3, 5, 6, 8, 10),
            parted(*after_dynamic),
            sorted([*((*row, None) for row in parted(*after_dynamic)), (30, 0, "x")]),
            [("0",), ("1",)],
        ]
        history = DeltaLog(tmp_path / "t").history()
        assert {commit["operation"] for commit in history} == {"WRITE"}
        assert len(history) == 6

    def test_rows_that_the_client_made_are_written(self, client: Client, tmp_path: Path) -> None:
        def made(spark: SparkSession, path: str) -> list[int]:
            write(spark.createDataFrame([(1, "a"), (2, "b")], "id long, s string"), path)
            return numbers(spark, path)

        assert client(made, str(tmp_path / "t")) == [1, 2]


# Commands on a log: what they write must not depend on where they are called. Random names of columns aside.
def make(builder: DeltaTableBuilder, path: str) -> DeltaTable:
    return (
        builder.location(path)
        .comment("about the table")
        .addColumn("id", T.LongType(), nullable=False, comment="about id")
        .addColumn("n", T.LongType(), generatedAlwaysAs=IdentityGenerator(10, 5))
        .addColumn("m", T.IntegerType(), default="7")
        .addColumn("next", T.LongType(), generatedAlwaysAs="id + 1")
        .addColumns(T.StructType([T.StructField("s", T.StringType()), T.StructField("i", T.IntegerType())]))
        .addColumn("c", T.CharType(3))
        .clusterBy("id")
        .property("delta.feature.allowColumnDefaults", "supported")
        .property("delta.columnMapping.mode", "name")
        .property("delta.enableTypeWidening", "true")
        .execute()
    )


def change(table: DeltaTable) -> None:
    struct = T.StructType([T.StructField("a", T.IntegerType())])
    about = {"comment": "about y"}
    columns = [T.StructField("x", struct), T.StructField("y", T.StringType(), metadata=about)]
    table.setProperties({"delta.appendOnly": "true", "mine": "1"})
    table.unsetProperties(["delta.appendOnly"])
    table.addColumns(T.StructType(columns), after="id")
    table.addColumns(T.StructType([T.StructField("z", T.IntegerType())]), first=True)
    table.renameColumn("x.a", "b")
    table.dropColumns(["y", "z"])
    table.alterColumn("i", dataType=T.LongType())
    table.alterColumn("s", comment="about s", after="x")
    table.alterColumn("id", nullable=True)
    table.alterColumn("m", default=None)
    table.clusterBy(["id", "s"])
    table.clusterBy([])
    table.upgradeTableProtocol(3, 7)
    table.addFeatureSupport("deletionVectors")
    table.dropFeatureSupport("deletionVectors")
    table.checkpoint()


class TestDeltaTable:
    def test_commands_commit_what_they_commit_in_this_process(self, client: Client, tmp_path: Path) -> None:
        def program(spark: SparkSession, path: str) -> None:
            make(DeltaTable.create(spark), path)
            change(DeltaTable.forPath(spark, path))

        client(program, str(tmp_path / "there"))
        no_session: Any = None
        change(make(DeltaTableBuilder(no_session, create.CREATE, DeltaTable), str(tmp_path / "here")))
        here, there = (described(tmp_path / name) for name in ("here", "there"))
        assert there == here
        assert [operation for operation, _ in here["history"]][-1] == "CREATE TABLE"
        assert len(here["history"]) > 15
        assert list(tmp_path.glob("there/_delta_log/*.checkpoint*.parquet"))

    def test_identity_goes_on_behind_values_that_rows_brought(self, client: Client, tmp_path: Path) -> None:
        def program(spark: SparkSession, path: str) -> list[int]:
            builder = DeltaTable.create(spark).location(path).addColumn("v", "string")
            generator = IdentityGenerator(10, 5)
            table = builder.addColumn("id", T.LongType(), generatedByDefaultAs=generator).execute()
            write(spark.sql("SELECT 'a' AS v, 1000L AS id"), path)
            table.syncIdentity("id")
            write(spark.sql("SELECT 'b' AS v"), path)
            return sorted(row.id for row in read(spark, path).collect())

        assert client(program, str(tmp_path / "t")) == [1000, 1005]

    def test_builders_make_replace_and_leave_alone(self, client: Client, tmp_path: Path) -> None:
        def program(spark: SparkSession, path: str) -> list[Any]:
            def built(builder: DeltaTableBuilder, column: str) -> list[str]:
                made = builder.location(path).option("fs.s3a.secret.key", "hunter2")
                made = made.addColumn(column, "string").partitionedBy(column)
                return made.addColumn("v", "variant").execute().toDF().columns

            seen = [
                built(DeltaTable.createIfNotExists(spark), "a"),
                built(DeltaTable.createIfNotExists(spark), "b"),
                built(DeltaTable.replace(spark), "a"),
                built(DeltaTable.createOrReplace(), "a"),
            ]
            history = DeltaTable.forPath(spark, path).history().select("operation").collect()
            return [seen, [row.operation for row in history]]

        columns, operations = client(program, str(tmp_path / "t"))
        assert columns == [["a", "v"]] * 4
        assert operations[-1] == "CREATE TABLE"
        assert "REPLACE TABLE" in operations

    def test_health_is_that_of_the_kernel(self, client: Client) -> None:
        def program(spark: SparkSession) -> tuple[int, list[str]]:
            found = DeltaTable.forPath(another_session(), str(SALES)).health()
            return found.num_rows, [each.command for each in found.due]

        rows = DeltaLog(SALES).snapshot().scan().count()
        assert client(program) == (rows, ["REORG"])

    def test_maintenance_does_what_is_due_and_then_nothing(self, client: Client, tmp_path: Path) -> None:
        def program(spark: SparkSession, path: str) -> list[Any]:
            table = DeltaTable.forPath(spark, path)
            return [
                [(step.command, step.outcome, step.version) for step in table.maintain().steps]
                for _ in range(2)
            ]

        table = TableBuilder(tmp_path / "t")
        table.create(pa.schema([("id", pa.int64())]), properties={"delta.checkpointInterval": "1"})
        table.commit(table.write_file(pa.table({"id": [1]}), stats=False))
        done = [("statistics", "done", 2), ("checkpoint", "done", 2)]
        assert client(program, str(table.path)) == [done, []]

    def test_history_and_detail_are_those_of_the_kernel(self, client: Client) -> None:
        def program(spark: SparkSession) -> list[Any]:
            session = another_session()
            session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
            table = DeltaTable.forPath(session, str(SALES))
            history = table.history(3).selectExpr("version", "unix_millis(timestamp)", "operation", "job")
            detail = table.detail().selectExpr(
                "unix_millis(lastModified)", "location", "numFiles", "tableFeatures", "properties"
            )
            return [*(tuple(row) for row in history.collect()), *(tuple(row) for row in detail.collect())]

        log = DeltaLog(SALES)
        detail = log.snapshot().detail()
        *history, of_table = client(program)
        assert history == [
            (commit["version"], milliseconds(commit["timestamp"]), commit["operation"], None)
            for commit in log.history(3)
        ]
        assert of_table == (
            milliseconds(detail["lastModified"]),
            f"file:{SALES}",
            detail["numFiles"],
            detail["tableFeatures"],
            detail["properties"],
        )

    def test_tables_are_found_by_path(self, client: Client) -> None:
        def program(spark: SparkSession) -> list[Any]:
            table = DeltaTable.forPath(spark, str(SALES))
            paths = (SALES, SALES / "country=PL", "/no/such/path")
            return [
                [DeltaTable.isDeltaTable(spark, str(path)) for path in paths],
                repr(table),
                table.alias("t").toDF().where("t.country = 'DE'").count()
                == table.toDF().where("country = 'DE'").count(),
            ]

        assert client(program) == [[True, True, False], f"DeltaTable({str(SALES)!r})", True]

    def test_constraints_are_checked_added_kept_and_dropped(self, client: Client, tmp_path: Path) -> None:
        path = str(tmp_path / "t")

        def program(spark: SparkSession) -> list[Any]:
            append(spark, path, 0, 3)
            table = DeltaTable.forPath(spark, path)
            table.addConstraint("positive", "id >= 0")
            return [
                refused(lambda: table.addConstraint("big", "id > 1")),
                refused(lambda: table.addConstraint("positive", "id > -9")),
                refused(lambda: table.addConstraint("none", "nothing > 1")),
            ]

        assert client(program) == [
            (InvariantViolationError, "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"),
            (SchemaError, "DELTA_CONSTRAINT_ALREADY_EXISTS"),
            (PredicateError, "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ]
        assert DeltaLog(path).snapshot().properties == {"delta.constraints.positive": "id >= 0"}
        failure = client.failure(append, path, -1, 3)
        assert isinstance(failure.recognised, InvariantViolationError)
        assert "id : -1" in failure.text

        def drop(spark: SparkSession) -> list[int]:
            DeltaTable.forPath(spark, path).dropConstraint("positive")
            append(spark, path, -1, 0)
            return numbers(spark, path)

        assert client(drop) == [-1, 0, 1, 2]

    def test_constraint_is_not_added_over_rows_that_nobody_checked(
        self, client: Client, tmp_path: Path
    ) -> None:
        def program(spark: SparkSession, path: str) -> None:
            append(spark, path, 0, 3)
            table = DeltaTable.forPath(spark, path)
            check = table._check

            def check_slowly(rows: DataFrame, name: str, expression: str) -> None:
                check(rows, name, expression)
                append(spark, path, -1, 0)

            table._check = check_slowly  # type: ignore[method-assign]
            table.addConstraint("positive", "id >= 0")

        with pytest.raises(DeltaConcurrentModificationException, match="version 1 was committed"):
            client(program, str(tmp_path / "t"))
        assert DeltaLog(tmp_path / "t").snapshot().properties == {}

    def test_blame_is_that_of_the_kernel_and_commits_tell_their_application(
        self, client: Client, tmp_path: Path
    ) -> None:
        def program(spark: SparkSession, path: str) -> list[Any]:
            spark.conf.set("spark.pydelta.commitInfo.userName", "ann")
            try:
                rows = spark.range(6).write.format("pydelta").option("delta.enableRowTracking", "true")
                rows.mode("append").save(path)
                table = DeltaTable.forPath(spark, path)
                table.update("id = 1", {"id": "10"})
            finally:
                spark.conf.unset("spark.pydelta.commitInfo.userName")
            found: list[Any] = []
            # What the kernel understands, what it does not, and a Column.
            for condition in (
                "t.id > 4",
                "id + 0 > 4 AND reverse(CAST(id AS string)) > ''",
                col("id") > 4,
                None,
            ):
                blamed = table.alias("t").blame(condition)
                shown = blamed.select("id", "_row_id", "_commit_version", "_commit_operation")
                found.append(sorted(map(tuple, shown.collect())))
            older = table.blame("id = 1", ["id"], version=0)
            return [*found, older.columns[:2], older.count(), spark.conf.get("spark.app.id")]

        path = str(tmp_path / "t")
        *found, some, count, application = client(program, path)
        log = DeltaLog(path)
        expected = log.blame().to_arrow().select(["id", "_row_id", "_commit_version", "_commit_operation"])
        rows = sorted(tuple(row.values()) for row in expected.to_pylist())
        assert found == [[row for row in rows if row[0] > 4]] * 3 + [rows]
        assert (some, count) == (["id", "_row_id"], 1)
        update = log.history(1)[0]
        assert update["userName"] == "ann" and update["application"]["id"] == application
        assert update["job"]["runId"] == application

    def test_dimensions_are_kept_and_changes_netted(self, client: Client, tmp_path: Path) -> None:
        def program(spark: SparkSession, path: str) -> list[Any]:
            def made(name: str, **columns: str) -> DeltaTable:
                builder = DeltaTable.create(spark).location(f"{path}/{name}").addColumn("id", "bigint")
                for column, kind in {"v": "string", **columns}.items():
                    builder = builder.addColumn(column, kind)
                return builder.execute()

            rows = spark.createDataFrame([(n, f"v{n}") for n in range(4)], "id long, v string")
            write(rows, f"{path}/source", **{"delta.enableChangeDataFeed": "true"})
            source = DeltaTable.forPath(spark, f"{path}/source")
            source.update("id = 1", {"v": "'new'"})
            source.delete("id = 2")
            history = made("history", valid_from="bigint", valid_to="bigint")
            for _ in range(2):
                history.applyChanges(source.changes()).keys("id").scd2().execute()
            copy = made("copy", _sequence="bigint")
            copy.applyChanges(source.changes()).keys("id").scd1().execute()
            net = source.changes(1, net="net", keys=["id"]).select("id", "v", "_change_type")
            frames = (history.toDF(), copy.toDF().drop("_sequence"), net)
            return [sorted([list(row) for row in frame.collect()], key=repr) for frame in frames]

        history, copy, net = client(program, str(tmp_path))
        assert history == [
            [0, "v0", 0, None],
            [1, "new", 1, None],
            [1, "v1", 0, 1],
            [2, "v2", 0, 2],
            [3, "v3", 0, None],
        ]
        assert copy == [[0, "v0"], [1, "new"], [3, "v3"]]
        assert net == [[1, "new", "update_postimage"], [1, "v1", "update_preimage"], [2, "v2", "delete"]]

    def test_every_method_is_called_in_this_module(self) -> None:
        module = Path(__file__).read_text(encoding="utf-8")
        for kind in (DeltaTable, DeltaTableBuilder):
            methods = [name for name, _ in inspect.getmembers(kind, callable) if not name.startswith("_")]
            assert [name for name in methods if f".{name}(" not in module] == []


def described(path: Path) -> dict[str, Any]:
    """What commands made of a table, without what is different each time."""
    log = DeltaLog(path)
    snapshot = log.snapshot()
    schema = [(f.name, f.type, f.nullable, sorted(set(f.metadata))) for f in snapshot.schema]
    # Types of structs hold the physical names of their fields.
    plain = [(name, str(kind).split("(")[0], nullable, keys) for name, kind, nullable, keys in schema]
    return {
        "schema": plain,
        "properties": {k: v for k, v in snapshot.properties.items() if "rowTracking" not in k},
        "protocol": snapshot.protocol,
        "domains": {name: len(json.loads(text)) for name, text in snapshot.domains.items()},
        "history": [(c["operation"], sorted(c["operationParameters"])) for c in log.history()],
    }


def milliseconds(moment: Any) -> int:
    return moment if isinstance(moment, int) else round(moment.timestamp() * 1000)


def report_as_spark_does(spark: SparkSession) -> None:
    state.uninstall(True)


def report_as_ours(spark: SparkSession) -> None:
    state.install(True)


class TestErrors:
    """Without `register` Spark's own exceptions hold the text; `as_delta_error` gives the class back."""

    @pytest.fixture(autouse=True)
    def unregistered(self, client: Client) -> Iterator[None]:
        # Sessions that other tests have registered are in the same process.
        client(report_as_spark_does)
        yield
        client(report_as_ours)

    def test_in_a_registered_session_are_of_both_classes(self, client: Client) -> None:
        def condition(spark: SparkSession) -> tuple[str | None, str | None, bool]:
            from pyspark.errors import AnalysisException

            state.install(True)
            try:
                read(spark, str(SALES)).where("nothing = 1").count()
            except DeltaError:
                return None, None, False
            except AnalysisException:
                pass
            try:
                spark.read.format("pydelta").option("versionAsOf", 99).load(str(SALES)).count()
            except VersionNotFoundError as error:
                assert isinstance(error, AnalysisException)
                return error.getCondition(), error.getSqlState(), "userVersion" in error.parameters
            return None, None, False

        assert client(condition) == ("DELTA_VERSION_NOT_FOUND", "22003", True)

    @pytest.mark.parametrize(
        ("options", "kind", "condition", "text"),
        [
            ({"verionAsOf": 1}, InvalidOptionError, "DELTA_ILLEGAL_OPTION", "did you mean 'versionAsOf'"),
            ({"versionAsOf": 99}, VersionNotFoundError, "DELTA_VERSION_NOT_FOUND", "99"),
            ({"path": "/no/such"}, NotADeltaTableError, "PATH_NOT_FOUND", "/no/such"),
        ],
    )
    def test_of_planning_a_read(
        self, client: Client, options: dict[str, Any], kind: type[DeltaError], condition: str, text: str
    ) -> None:
        def count(spark: SparkSession) -> int:
            return spark.read.format("pydelta").options(**{"path": str(SALES), **options}).load().count()

        failure = client.failure(count)
        # Spark 4.1 has the condition in the text only.
        assert (failure.kind, "[PYTHON_DATA_SOURCE_ERROR]" in failure.text) == ("AnalysisException", True)
        assert type(failure.recognised) is kind
        assert failure.recognised.condition == condition
        assert text in failure.recognised.text
        assert f"[{condition}] " in failure.text

    def test_of_planning_a_write(self, client: Client, tmp_path: Path) -> None:
        def misfit(spark: SparkSession, path: str) -> None:
            append(spark, path, 0, 1)
            write(spark.range(1).selectExpr("id as other"), path)

        failure = client.failure(misfit, str(tmp_path / "t"))
        # Spark 4.1 has the condition in the text only.
        assert (failure.kind, "[PYTHON_DATA_SOURCE_ERROR]" in failure.text) == ("AnalysisException", True)
        assert isinstance(failure.recognised, SchemaError)
        assert failure.recognised.condition == "DELTA_METADATA_MISMATCH"
        # To its last line, and nothing of Spark's after it.
        assert failure.recognised.text.endswith("Data schema:  struct<other:long>")

    def test_of_a_task(self, client: Client, tmp_path: Path) -> None:
        path = tmp_path / "t"
        shutil.copytree(SALES, path)
        for file in path.rglob("country=DE/*.parquet"):
            file.unlink()

        def count(spark: SparkSession) -> int:
            return read(spark, str(path)).count()

        failure = client.failure(count)
        assert failure.kind == "PythonException"
        assert isinstance(failure.recognised, DataFileError)
        assert failure.recognised.condition == "FAILED_READ_FILE.FILE_NOT_EXIST"

    def test_of_a_commit_that_lost(self, client: Client, tmp_path: Path) -> None:
        path = str(tmp_path / "t")

        def overtaken(spark: SparkSession) -> None:
            append(spark, path, 0, 3)

            def rows(batches: Any) -> Any:
                # In the task of the write, which is planned by now.
                from delta_ds import DeltaLog
                from delta_ds.kernel.transaction.alter.properties import set_properties

                set_properties(DeltaLog(path), {"mine": "1"})
                yield from batches

            write(spark.range(0, 1, 1, 1).mapInArrow(rows, "id long"), path)

        failure = client.failure(overtaken)
        assert isinstance(failure.recognised, MetadataChangedException)
        assert failure.recognised.condition.startswith("DELTA_METADATA_CHANGED")
        assert DeltaLog(path).snapshot().version == 1

    def test_of_commands_have_their_classes(self, client: Client, tmp_path: Path) -> None:
        path = str(tmp_path / "t")

        def create(spark: SparkSession, data_type: str = "bigint") -> str:
            return repr(DeltaTable.create(spark).location(path).addColumn("a", data_type).execute())

        with pytest.raises(
            SchemaError, match=r"\[UNSUPPORTED_DATATYPE\] 'bigin' is not a data type: .*BIGIN"
        ):
            client(create, "bigin")
        assert not os.path.exists(path)
        client(create)
        with pytest.raises(TableExistsError, match=r"\[TABLE_OR_VIEW_ALREADY_EXISTS\]"):
            client(create)
        with pytest.raises(SchemaError, match="nothing") as caught:
            client(lambda spark: DeltaTable.forPath(spark, path).dropColumns(["nothing"]))
        assert caught.value.condition != "DELTA_ERROR"
        with pytest.raises(
            NotADeltaTableError, match=r"\[DELTA_MISSING_DELTA_TABLE\] `/no/such` is not a Delta table"
        ):
            client(lambda spark: DeltaTable.forPath(spark, "/no/such"))
        with pytest.raises(UnsupportedOperationError, match="by the name 't'"):
            client(lambda spark: DeltaTable.create(spark).tableName("t"))
        assert client(lambda spark: DeltaTable.forPath(spark, path).history(0).count()) == 0


@pytest.mark.skipif(not OWN.is_dir(), reason="no path here is different in each process")
class TestStorageOfTheServer:
    def test_table_that_only_the_server_can_reach_takes_the_whole_api(self, client: Client) -> None:
        path = str(OWN / "far")

        def program(spark: SparkSession) -> list[Any]:
            change(make(DeltaTable.create(spark), path))
            table = DeltaTable.forPath(spark, path)
            table.addConstraint("small", "id < 100")
            rows = spark.range(3).selectExpr("id", "'abc' as c")
            write(rows, path)
            return [
                table.toDF().count(),
                table.history(1).first().operation,
                table.detail().first().location,
                DeltaTable.isDeltaTable(spark, path),
                os.path.exists(path),
            ]

        assert client(program) == [3, "WRITE", f"file:{path}", True, False]
        assert DeltaLog(client.server_folder / "far").snapshot().scan().to_arrow().num_rows == 3

    def test_table_that_only_the_client_can_reach_is_none_to_the_session(self, client: Client) -> None:
        path = str(OWN / "near")
        near = client.folder / "near"
        shutil.copytree(SALES, near)

        def program(spark: SparkSession) -> list[Any]:
            return [DeltaTable.isDeltaTable(spark, path), DeltaLog(path).snapshot().version]

        assert client(program) == [False, 7]
        with pytest.raises(NotADeltaTableError):
            client(lambda spark: DeltaTable.forPath(spark, path))
        failure = client.failure(lambda spark: read(spark, path).count())
        assert isinstance(failure.recognised, NotADeltaTableError)

    def test_relative_paths_begin_at_the_server(self, client: Client) -> None:
        def program(spark: SparkSession) -> list[Any]:
            append(spark, "relative", 0, 3)
            table = DeltaTable.forPath(spark, "relative")
            made = DeltaTable.create(spark).location("made").addColumn("id", "bigint").execute()
            return [numbers(spark, "relative"), table.toDF().count(), repr(table), repr(made)]

        folder = client.server_folder
        assert client(program) == [
            [0, 1, 2],
            3,
            f"DeltaTable({str(folder / 'relative')!r})",
            f"DeltaTable({str(folder / 'made')!r})",
        ]
        assert not (client.folder / "relative").exists()
        assert not (client.folder / "made").exists()


def test_commands_on_whole_tables_run_at_the_server(client: Client) -> None:
    path = str(OWN / "commanded")

    def program(spark: SparkSession) -> list[Any]:
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        write(spark.range(0, 2).coalesce(1), path, **{"delta.enableChangeDataFeed": "true"})
        write(spark.range(2, 4).coalesce(1), path)
        write(spark.range(9, 10).coalesce(1), path, "overwrite")
        table = DeltaTable.forPath(spark, path)
        clone = table.cloneAtVersion(0, path + "-clone", True, properties={"k": "v"})
        cloned = [clone.toDF().count(), clone.detail().first()["properties"]["k"]]
        cloned.append(table.clone(path + "-copy").toDF().count())
        restored = table.restoreToVersion(1)
        nothing = table.restoreToVersion(3)
        table.generate("symlink_format_manifest")
        text = table.history().where("version = 2").selectExpr("cast(timestamp as string) t").first().t
        table.restoreToTimestamp(text)
        inserted = table.changes(1, 2).where("_change_type = 'insert'").count()
        listed = table.vacuum(0, dryRun=True)
        inventory = spark.createDataFrame(
            [(row.path, 1, False, 1) for row in listed.collect()[:1]],
            "path string, length long, isDir boolean, modificationTime long",
        )
        left = [table.vacuum(0, True, inventory=inventory).count(), table.vacuum(0).columns]
        spark.range(3).selectExpr("id", "1 as p").write.partitionBy("p").parquet(path + "-files")
        converted = DeltaTable.convertToDelta(spark, f"parquet.`{path}-files`", "p int")
        return [
            cloned,
            [restored.columns[3], list(restored.first())[1:4], nothing.columns],
            sorted(row.id for row in table.toDF().collect()),
            inserted,
            [listed.columns, listed.count(), *left],
            [row.operation for row in table.history(2).collect()],
            [converted.toDF().where("p = 1").count(), converted.history().first().operation],
        ]

    folder = client.server_folder
    assert client(program) == [
        [2, "v", 1],
        ["num_restored_files", [2, 1, 2], []],
        [9],
        3,
        [["path"], 2, 1, []],
        ["VACUUM END", "VACUUM START"],
        [3, "CONVERT"],
    ]
    assert (folder / "commanded" / "_symlink_format_manifest" / "manifest").exists()
    assert not (client.folder / "commanded").exists()


def test_tables_are_shown_by_the_client_and_drawn_of_what_the_server_counts(client: Client) -> None:
    path = str(OWN / "pictured")

    def program(spark: SparkSession) -> list[Any]:
        write(spark.range(0, 5).coalesce(1), path)
        write(spark.range(5, 10).coalesce(1), path)
        table = DeltaTable.forPath(spark, path)
        html = table._repr_html_()
        layout = table.plot.layout("id", versions=(0, 1))
        skipping = table.plot.skipping("id > 7")
        wrong = refused(lambda: table.plot.layout("no_such"))
        return [
            [text in html for text in ("Spark Connect", "version 1", "id")],
            "WRITE" in table.history()._repr_html_(),
            table.plot.history().axes[0].lines[0].get_ydata().tolist(),
            [axes.get_title().splitlines()[0] for axes in layout.axes[:2]],
            [bar.get_width() for bar in skipping.axes[0].patches],
            None if wrong is None else wrong[0],
        ]

    assert client(program) == [
        [True] * 3,
        True,
        [1, 2],
        ["version 0", "version 1"],
        [2, 1, 1],
        exceptions.SchemaError,
    ]


def test_commands_refused_at_the_server_say_what_they_say_elsewhere(client: Client, tmp_path: Path) -> None:
    def program(spark: SparkSession, path: str) -> list[Any]:
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "true")
        append(spark, path, 0, 1)
        table = DeltaTable.forPath(spark, path)
        return [
            refused(lambda: table.restoreToVersion(9)),
            refused(lambda: table.restoreToTimestamp("soon")),
            refused(lambda: table.vacuum(0)),
            refused(lambda: table.cloneAtTimestamp("soon", path + "-clone", True)),
            refused(lambda: table.generate("manifests")),
            refused(lambda: DeltaTable.forName(spark, "catalogued")),
            refused(lambda: DeltaTable.convertToDelta(spark, f"parquet.`{path}-none`")),
        ]

    assert client(program, str(tmp_path / "t")) == [
        (VersionNotFoundError, "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
        (InvalidOptionError, "DELTA_TIMESTAMP_INVALID"),
        (InvalidOptionError, "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"),
        (InvalidOptionError, "DELTA_TIMESTAMP_INVALID"),
        (InvalidOptionError, "DELTA_MODE_NOT_SUPPORTED"),
        (UnsupportedOperationError, "DELTA_MISSING_DELTA_TABLE"),
        (DataFileError, "DELTA_FILE_NOT_FOUND"),
    ]


def rows_of(spark: SparkSession) -> DataFrame:
    return spark.range(3).selectExpr("id", "id as p")


def path_view(spark: SparkSession) -> str:
    read(spark, str(SALES)).createOrReplaceTempView("sales")
    return "sales"


FORBIDDEN: dict[str, tuple[Callable[[SparkSession, str], object], str, str]] = {
    "save without a mode": (
        lambda spark, path: rows_of(spark).write.format("pydelta").save(path),
        "AnalysisException",
        "UNSUPPORTED_DATA_SOURCE_SAVE_MODE",
    ),
    "mode ignore": (
        lambda spark, path: rows_of(spark).write.format("pydelta").mode("ignore").save(path),
        "AnalysisException",
        "UNSUPPORTED_DATA_SOURCE_SAVE_MODE",
    ),
    "partitionBy": (
        lambda spark, path: rows_of(spark).write.format("pydelta").mode("append").partitionBy("p").save(path),
        "IllegalArgumentException",
        "partitioning",
    ),
    "clusterBy": (
        lambda spark, path: rows_of(spark).write.format("pydelta").mode("append").clusterBy("p").save(path),
        "IllegalArgumentException",
        "partitioning",
    ),
    "table by path": (
        lambda spark, path: spark.table(f"pydelta.`{SALES}`").count(),
        "AnalysisException",
        "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY",
    ),
    "SQL table by path": (
        lambda spark, path: spark.sql(f"SELECT * FROM pydelta.`{SALES}`").count(),
        "AnalysisException",
        "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY",
    ),
    "SQL function": (
        lambda spark, path: spark.sql(f"SELECT * FROM pydelta('{SALES}')").count(),
        "AnalysisException",
        "UNRESOLVABLE_TABLE_VALUED_FUNCTION",
    ),
    "writeTo": (
        lambda spark, path: rows_of(spark).writeTo(f"pydelta.`{path}`").append(),
        "AnalysisException",
        "TABLE_OR_VIEW_NOT_FOUND",
    ),
    "insertInto": (
        lambda spark, path: rows_of(spark).write.insertInto(f"pydelta.`{path}`"),
        "AnalysisException",
        "TABLE_OR_VIEW_NOT_FOUND",
    ),
    "saveAsTable": (
        lambda spark, path: rows_of(spark).write.format("pydelta").mode("append").saveAsTable("named"),
        "AnalysisException",
        "PYTHON_DATA_SOURCE_ERROR",
    ),
    "CREATE TABLE": (
        lambda spark, path: spark.sql(f"CREATE TABLE named USING pydelta LOCATION '{SALES}'"),
        "AnalysisException",
        "PYTHON_DATA_SOURCE_ERROR",
    ),
    "CREATE TABLE AS SELECT": (
        lambda spark, path: spark.sql(f"CREATE TABLE n USING pydelta OPTIONS (path '{path}') AS SELECT 1 AS a"),
        "AnalysisException",
        "PYTHON_DATA_SOURCE_ERROR",
    ),
    "DELETE": (
        lambda spark, path: spark.sql(f"DELETE FROM {path_view(spark)} WHERE order_id = 1"),
        "AnalysisException",
        "does not support deletes",
    ),
    "UPDATE": (
        lambda spark, path: spark.sql(f"UPDATE {path_view(spark)} SET order_id = 1"),
        "UnsupportedOperationException",
        "UNSUPPORTED_FEATURE.TABLE_OPERATION",
    ),
    "MERGE": (
        lambda spark, path: spark.sql(
            f"MERGE INTO {path_view(spark)} t USING sales s ON t.order_id = s.order_id WHEN MATCHED THEN DELETE"
        ),
        "UnsupportedOperationException",
        "UNSUPPORTED_FEATURE.TABLE_OPERATION",
    ),
    "VERSION AS OF": (
        lambda spark, path: spark.sql(f"SELECT * FROM {path_view(spark)} VERSION AS OF 0").count(),
        "AnalysisException",
        "UNSUPPORTED_FEATURE.TIME_TRAVEL",
    ),
    "DESCRIBE HISTORY": (
        lambda spark, path: spark.sql(f"DESCRIBE HISTORY '{SALES}'"),
        "ParseException",
        "PARSE_SYNTAX_ERROR",
    ),
    "hidden _metadata": (
        lambda spark, path: read(spark, str(SALES)).select("_metadata.file_path").count(),
        "AnalysisException",
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    ),
    "the JVM": (lambda spark, path: spark._jvm, "PySparkAttributeError", "JVM_ATTRIBUTE_NOT_SUPPORTED"),
    "sparkContext": (
        lambda spark, path: spark.sparkContext,
        "PySparkAttributeError",
        "JVM_ATTRIBUTE_NOT_SUPPORTED",
    ),
    "rdd": (
        lambda spark, path: read(spark, str(SALES)).rdd,
        "PySparkNotImplementedError",
        "NOT_IMPLEMENTED",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_spark_forbids_is_refused_and_writes_nothing(client: Client, tmp_path: Path, name: str) -> None:
    attempt, kind, text = FORBIDDEN[name]
    path = str(tmp_path / "t")
    client(report_as_spark_does)
    failure = client.failure(attempt, path)
    assert failure.kind == kind
    assert text in failure.text
    assert not os.path.exists(path)
    assert DeltaLog(SALES).snapshot().version == 7


def test_input_files_are_not_known(client: Client) -> None:
    assert client(lambda spark: len(read(spark, str(SALES)).inputFiles())) == 0


def test_rows_are_changed_by_the_server_as_in_this_process(client: Client, tmp_path: Path) -> None:
    def program(spark: SparkSession, path: str) -> list[Any]:
        rows = spark.range(0, 100, 1, 2).selectExpr("id", "id % 3 as p", "cast(id as int) as v")
        features = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
        write(rows, path, partitionBy="p", **features)
        table = DeltaTable.forPath(spark, path).alias("t")
        source = spark.range(95, 105).selectExpr("id", "id % 3 as p", "-1 as v").alias("s")
        merge = (
            table.merge(source, "t.id = s.id")
            .whenMatchedUpdate("s.id < 98", {"v": "s.v"})
            .whenMatchedDelete()
            .whenNotMatchedInsert("id > 100", {"id": "id", "p": "p", "v": "v"})
            .whenNotMatchedBySourceDelete("id = 5")
        )
        return [
            table.delete("t.id % 10 = 7").first()[0],
            table.update(col("id") < 20, {"v": col("v") + 1000}).first()[0],
            list(merge.execute().first()),
            refused(lambda: table.delete("nosuch = 1")),
            refused(lambda: table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"v": "w"}).execute()),
            table.optimize().executeCompaction().first().metrics.numFilesAdded,
            sorted((row.id, row.v) for row in table.toDF().collect()),
            sorted(row._change_type for row in table.changes(3, 3).collect()),
            [row.operation for row in table.history().collect()],
        ]

    *done, rows, changed, operations = client(program, str(tmp_path / "t"))
    kept = {n: n + 1000 if n < 20 else n for n in range(100) if n % 10 != 7 and n not in (5, 98, 99)}
    assert done == [
        10, 18, [9, 2, 3, 4],
        (SchemaError, "UNRESOLVED_COLUMN.WITH_SUGGESTION"), (SchemaError, "DELTA_MERGE_UNRESOLVED_EXPRESSION"), 3,
    ]  # fmt: skip
    assert rows == sorted({**kept, 95: -1, 96: -1, **dict.fromkeys(range(101, 105), -1)}.items())
    assert changed == ["delete"] * 3 + ["insert"] * 4 + ["update_postimage"] * 2 + ["update_preimage"] * 2
    assert operations == ["OPTIMIZE", "MERGE", "UPDATE", "DELETE", "WRITE"]


def test_rows_decide_what_contradicts_a_command_where_the_client_knows_what_it_reads(
    client: Client, tmp_path: Path
) -> None:
    """Both change rows of one file; a function that only the server knows may hide a query."""

    def program(spark: SparkSession, path: str) -> list[str]:
        from delta_ds.spark.commands.dml_command import DmlExecution

        rows = spark.range(0, 40, 1, 1).selectExpr("id", "id AS v", "CAST(id AS string) AS s")
        options = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"}
        rows.write.format("pydelta").mode("append").options(**options).save(path)
        table = DeltaTable.forPath(spark, path)
        real = DmlExecution.commit
        told = []
        # The client's own course, which commits of others can come into.
        spark.conf.set("spark.pydelta.localOptimizeSize", "0")

        def after(other: Callable[[], object], change: Callable[[], object]) -> None:
            def commit(self: DmlExecution, *arguments: Any, **named: Any) -> None:
                DmlExecution.commit = real  # type: ignore[method-assign]
                other()
                real(self, *arguments, **named)

            DmlExecution.commit = commit  # type: ignore[method-assign]
            try:
                change()
                told.append("both")
            except DeltaConcurrentModificationException as error:
                told.append(type(error).__name__)
            finally:
                DmlExecution.commit = real  # type: ignore[method-assign]

        after(
            lambda: table.delete("id = 3"), lambda: table.update("id = 1", {"v": "v + 100", "s": "upper(s)"})
        )
        after(lambda: table.delete("id = 7"), lambda: table.update("id = 7", {"v": "v + 100"}))
        after(lambda: table.delete("id = 8"), lambda: table.update("id = 9", {"s": "soundex(s)"}))
        spark.conf.unset("spark.pydelta.localOptimizeSize")
        return told

    path = str(tmp_path / "t")
    assert client(program, path) == ["both", "ConcurrentDeleteReadException", "ConcurrentAppendException"]
    found = {row["id"]: row["v"] for row in DeltaLog(path).snapshot().scan().to_arrow().to_pylist()}
    assert found == {n: 101 if n == 1 else n for n in range(40) if n not in (3, 7, 8)}


def test_a_merge_asks_the_server_once_what_its_clauses_mean(client: Client, tmp_path: Path) -> None:
    def program(spark: SparkSession, path: str) -> tuple[list[int], Counter[str]]:
        from delta_ds.spark.commands.dml_target import DmlTarget
        from delta_ds.spark.engines.seam import connect_expressions

        write(spark.range(0, 100).selectExpr("id", "id AS v"), path)
        source = spark.range(95, 105).selectExpr("id", "-1L AS w").alias("s")
        merge = (
            DeltaTable.forPath(spark, path)
            .alias("t")
            .merge(source, "t.id = s.id")
            .whenMatchedUpdate("s.id < 98", {"v": "s.w"})
            .whenNotMatchedInsert("id > 100", {"id": "id", "v": "w"})
        )
        asked: Counter[str] = Counter()
        analyse, ask = connect_expressions._analysed, DmlTarget.ask

        def counted_analyse(*arguments: Any, **keywords: Any) -> DataFrame:
            asked["analyse"] += 1
            return analyse(*arguments, **keywords)

        def counted_ask(self: DmlTarget, function: Any, *arguments: Any) -> Any:
            asked[getattr(function, "func", function).__name__] += 1
            return ask(self, function, *arguments)

        connect_expressions._analysed, DmlTarget.ask = counted_analyse, counted_ask  # type: ignore[method-assign]
        spark.conf.set("spark.pydelta.localOptimizeSize", "0")  # else the kernel does it there
        try:
            return list(merge.execute().first()), asked
        finally:
            spark.conf.unset("spark.pydelta.localOptimizeSize")
            connect_expressions._analysed, DmlTarget.ask = analyse, ask  # type: ignore[method-assign]

    changed, asked = client(program, str(tmp_path / "t"))
    assert changed == [7, 3, 0, 4]
    # The search condition, and of each clause its condition and its assignments.
    assert asked["analyse"] == 5
    assert asked["plan_dml"] == 1


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_command_has_one_time_of_day_at_the_server(client: Client, tmp_path: Path, vectors: str) -> None:
    def program(spark: SparkSession, path: str) -> list[Any]:
        times = "timestamp_micros(unix_micros(now()) + (id - 50) * 300000) AS ts"
        rows = spark.range(0, 1000, 1, 2).selectExpr("id", times, "cast(null AS timestamp) AS at")
        write(rows, path, **{"delta.enableDeletionVectors": vectors})
        table = DeltaTable.forPath(spark, path).alias("t")

        def now() -> list[Any]:
            return [tuple(row) for row in table.toDF().collect()]

        updated = table.update(col("ts") > current_timestamp(), {"at": "now()"}).first()[0], now()
        merge = table.merge(spark.range(0, 200).alias("s"), "t.id = s.id")
        merge = merge.whenMatchedUpdate("t.ts > now()", {"at": "current_timestamp()"})
        merge = merge.whenNotMatchedBySourceUpdate("t.ts > current_timestamp()", {"at": "now()"})
        merged = merge.execute().first()[0], now()
        return [updated, merged, table.delete("ts > current_timestamp()").first()[0], now()]

    updated, merged, deleted, left = client(program, str(tmp_path / "t"))
    for count, rows in (updated, merged):
        assert sorted(row[0] for row in rows) == list(range(1000))
        moment = max(at for _, _, at in rows if at)
        assert {n for n, _, at in rows if at == moment} == {n for n, ts, _ in rows if ts > moment}
        assert count == sum(ts > moment for _, ts, _ in rows) > 0
    assert deleted + len(left) == 1000
    assert {n for n, _, _ in left} == set(range(1000 - deleted))


@pytest.mark.skipif(not FULL, reason="queries on a server take minutes: DELTA_DS_FULL=1")
class TestStreams:
    def test_pipeline_writes_each_row_once_with_and_without_register(
        self, client: Client, tmp_path: Path
    ) -> None:
        def program(spark: SparkSession, folder: str) -> list[Any]:
            def run(session: SparkSession, mode: str = "append") -> tuple[str, list[int]]:
                source = session.readStream.format("pydelta").option("maxFilesPerTrigger", 1)
                rows = source.load(f"{folder}/s").selectExpr("id", "id % 2 AS odd")
                writer = rows.writeStream.format("pydelta").outputMode(mode).partitionBy("odd")
                writer = writer.option("checkpointLocation", f"{folder}/c")
                query = writer.trigger(availableNow=True).start(f"{folder}/t")
                assert query.awaitTermination(180)
                return query.id, sorted(row.id for row in read(session, f"{folder}/t").collect())

            append(spark, f"{folder}/s", 0, 3)
            registered = another_session()
            delta_ds.register(registered)
            first = run(registered)
            append(spark, f"{folder}/s", 3, 6)
            return [*first, *run(spark), refused(lambda: run(registered, "update"))]

        first, rows, again, more, update = client(program, str(tmp_path))
        assert (first, rows, more) == (again, [0, 1, 2], list(range(6)))
        assert update == (UnsupportedOperationError, "DELTA_UNSUPPORTED_OUTPUT_MODE")
        snapshot = DeltaLog(tmp_path / "t").snapshot()
        assert list(snapshot.txns) == [first]
        # Spark alone passes over partitionBy without a word.
        assert snapshot.metadata.partition_columns == ("odd",)

    def test_foreach_batch_needs_a_client_in_the_python_of_the_server(
        self, client: Client, tmp_path: Path
    ) -> None:
        def program(spark: SparkSession, folder: str) -> None:
            append(spark, f"{folder}/s", 0, 3)
            rows = spark.readStream.format("pydelta").load(f"{folder}/s")
            rows.writeStream.foreachBatch(lambda batch, number: None).start()

        # Spark gives the function a session of Spark Connect, which wants pandas and grpcio; here there are none.
        assert "Python worker failed to connect back" in client.failure(program, str(tmp_path)).text

    def test_error_of_a_query_has_its_condition(self, client: Client, tmp_path: Path) -> None:
        def program(spark: SparkSession, folder: str) -> None:
            append(spark, f"{folder}/s", 0, 3)
            rows = spark.readStream.format("pydelta").load(f"{folder}/s")
            rows.writeStream.format("pydelta").option("checkpointLocation", f"{folder}/c").option(
                "mergSchema", "true"
            ).trigger(availableNow=True).start(f"{folder}/t").awaitTermination(180)

        failure = client.failure(program, str(tmp_path))
        assert isinstance(failure.recognised, InvalidOptionError)
        assert "did you mean 'mergeSchema'" in failure.text
