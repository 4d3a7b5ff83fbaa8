"""Declarative Pipelines on a server of ours: the pipeline of the page, and what runs make of tables."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from spark_tests.behaviour.spark.connect_server import Client, client_of, server_of_ours
from spark_tests.full_form import FULL
from spark_tests.product.docs.blocks import DOCS, blocks

pytestmark = [
    pytest.mark.connect,
    pytest.mark.slow,
    pytest.mark.long,
]
captures_changes = pytest.mark.skipif(
    pyspark.__version__ < "4.3", reason="pipelines change data capture from Spark 4.3 on"
)
PAGE = blocks(DOCS / "guide" / "pipelines.md")
ADDRESS = "sc://localhost:15002"  # of the page
# Spark 4.1 gives definitions no session.
OF_SESSION = "from pyspark.sql import SparkSession\nspark = SparkSession.active()"
IMPORTS = f"from pyspark import pipelines as dp\n{OF_SESSION if pyspark.__version__ < '4.2' else ''}"
LONGEST = 300  # seconds of a run, on a machine that is busy
NO_RETRIES = {"spark.sql.pipelines.maxFlowRetryAttempts": "0"}


@dataclass(frozen=True)
class Server:
    url: str
    client: Client

    def sql(self, *texts: str) -> list[tuple[Any, ...]]:
        """The rows of the last statement, sorted."""

        def program(spark: SparkSession, texts: Sequence[str]) -> list[tuple[Any, ...]]:
            return sorted([[tuple(row) for row in spark.sql(text).collect()] for text in texts][-1])

        return self.client(program, texts)

    def detail(self, table: str) -> dict[str, Any]:
        def program(spark: SparkSession) -> dict[str, Any]:
            return spark.sql(f"DESCRIBE DETAIL {table}").collect()[0].asDict()

        return self.client(program)

    def operations(self, table: str) -> list[str]:
        """Of the commits of a table, in order; without those of properties, which Spark 4.2 sets in each run."""

        def program(spark: SparkSession) -> list[str]:
            commits = spark.sql(f"DESCRIBE HISTORY {table}").select("version", "operation").collect()
            told = [operation for _, operation in sorted(map(tuple, commits))]
            return [operation for operation in told if operation != "SET TBLPROPERTIES"]

        return self.client(program)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: install delta-ds[connect]")
    pytest.importorskip("yaml", reason="Spark reads the file of a pipeline by it")
    folder = tmp_path_factory.mktemp("pipelines")
    (folder / "client").mkdir()
    with server_of_ours(folder) as url, client_of(url, folder, folder / "client") as client:
        yield Server(url, client)


@dataclass(frozen=True)
class Pipeline:
    """A pipeline in a folder, with a schema of its own."""

    folder: Path
    server: Server
    schema: str

    def define(self, python: str) -> None:
        spec = {
            "name": self.schema,
            "storage": f"file://{self.folder}/storage",
            "database": self.schema,
            "configuration": NO_RETRIES,
            "libraries": [{"glob": {"include": "definitions.py"}}],
        }
        (self.folder / "spark-pipeline.yml").write_text(json.dumps(spec))
        (self.folder / "definitions.py").write_text(f"{IMPORTS}\n{python}")

    def run(self, *arguments: str) -> None:
        succeed(cli(["spark-pipelines", "run", *arguments, "--remote", self.server.url]), self.folder)

    def failure(self) -> str:
        done = ended(cli(["spark-pipelines", "run", "--remote", self.server.url]), self.folder)
        assert done.returncode != 0, done.stdout
        return done.stdout + done.stderr


def cli(command: Sequence[str]) -> list[str]:
    """What `spark-pipelines` starts for a server, without the JVM that it starts it from."""
    _, *arguments, option, url = command
    assert option == "--remote"
    return ["env", f"SPARK_REMOTE={url}", sys.executable, "-m", "pyspark.pipelines.cli", *arguments]


def succeed(command: Sequence[str], folder: Path) -> None:
    done = ended(command, folder)
    assert done.returncode == 0, done.stdout + done.stderr


def ended(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if name != "SPARK_CONNECT_AUTHENTICATE_TOKEN"}
    return subprocess.run(
        command, cwd=folder, env={**kept, "PYSPARK_PYTHON": sys.executable},
        capture_output=True, text=True, timeout=LONGEST,
    )  # fmt: skip


@pytest.fixture
def pipeline(server: Server, tmp_path: Path) -> Pipeline:
    schema = tmp_path.name.rstrip("0123456789")
    server.sql(
        f"CREATE SCHEMA {schema}",
        f"CREATE TABLE {schema}.source (id BIGINT, v STRING) USING delta",
        f"INSERT INTO {schema}.source VALUES (1, 'one'), (2, '2')",
    )
    return Pipeline(tmp_path, server, schema)


@captures_changes
def test_the_pipeline_of_the_page_runs_twice(server: Server, tmp_path: Path) -> None:
    def text_of(language: str) -> list[str]:
        texts = [block.text for block in PAGE if block.language == language]
        return [text.replace("/data/", f"{tmp_path}/").replace(ADDRESS, server.url) for text in texts]

    (specification,), (python,), (sql,), (_, commands) = map(text_of, ("yaml", "python", "sql", "bash"))
    (tmp_path / "transformations").mkdir()
    (tmp_path / "spark-pipeline.yml").write_text(specification)
    (tmp_path / "transformations" / "orders.py").write_text(python)
    (tmp_path / "transformations" / "countries.sql").write_text(sql)
    server.sql(
        "CREATE TABLE orders (id BIGINT, country STRING, amount DOUBLE) USING delta",
        "CREATE TABLE customer_events (id BIGINT, name STRING, number BIGINT, deleted BOOLEAN) USING delta",
        "CREATE TABLE names (country STRING, name STRING) USING delta",
        "INSERT INTO orders VALUES (1, 'DE', 10), (2, 'FR', 0), (3, 'FR', 5)",
        "INSERT INTO customer_events VALUES (1, 'a', 1, false), (2, 'b', 1, false)",
        "INSERT INTO names VALUES ('DE', 'Germany'), ('FR', 'France')",
    )
    dry_run, run = (shlex.split(line) for line in commands.splitlines())
    tables = server.sql("SHOW TABLES")
    for command in ([str(Path(sys.executable).parent / dry_run[0]), *dry_run[1:]], cli(run)):
        assert server.sql("SHOW TABLES") == tables
        succeed(command, tmp_path)
    server.sql(
        "INSERT INTO orders VALUES (4, 'FR', 7)",
        "INSERT INTO customer_events VALUES (1, 'late', 0, false), (2, 'b', 2, true), (3, 'c', 1, false)",
    )
    succeed(cli(run), tmp_path)

    kept = [(1, "DE", 10.0), (3, "FR", 5.0), (4, "FR", 7.0)]
    assert server.sql("SELECT id, country, amount FROM clean_orders") == kept
    assert server.sql("SELECT * FROM totals") == [("DE", 10.0), ("FR", 12.0)]
    assert server.sql("SELECT * FROM report") == [("France", 12.0), ("Germany", 10.0)]
    exported = f"SELECT * FROM delta.`{tmp_path}/export`"
    assert server.sql(exported) == [(number, amount) for number, _, amount in kept]
    assert server.sql("SELECT id, name FROM customers") == [(1, "a"), (3, "c")]
    clean = server.detail("clean_orders")
    assert (clean["partitionColumns"], clean["description"]) == (["country"], "orders with an amount")
    assert clean["properties"]["delta.enableChangeDataFeed"] == "true"
    assert server.detail("totals")["clusteringColumns"] == ["country"]
    assert server.detail("countries")["properties"]["delta.appendOnly"] == "true"
    assert server.operations("clean_orders") == ["CREATE TABLE", "STREAMING UPDATE", "STREAMING UPDATE"]
    assert server.operations("customers") == ["CREATE TABLE", "MERGE", "MERGE"]
    assert server.operations("totals") == ["CREATE TABLE", "WRITE", "TRUNCATE", "WRITE"]


def test_a_refresh_is_of_some_tables_or_from_the_beginning(pipeline: Pipeline) -> None:
    sql, schema = pipeline.server.sql, pipeline.schema
    pipeline.define("""
for name in ("first", "second"):
    @dp.table(name=name, format="delta")
    def rows():
        return spark.readStream.table("source")
""")

    def counts() -> list[int]:
        return [sql(f"SELECT count(*) FROM {schema}.{name}")[0][0] for name in ("first", "second")]

    pipeline.run()
    assert counts() == [2, 2]
    sql(f"INSERT INTO {schema}.source VALUES (3, '3')")
    pipeline.run("--refresh", "first")
    assert counts() == [3, 2]
    pipeline.run("--full-refresh-all")
    assert counts() == [3, 3]
    assert pipeline.server.operations(f"{schema}.second")[-2:] == ["TRUNCATE", "STREAMING UPDATE"]


def test_a_view_gets_the_columns_of_its_query_whatever_it_had(pipeline: Pipeline) -> None:
    sql, view = pipeline.server.sql, f"{pipeline.schema}.view"

    def define(query: str) -> None:
        pipeline.define(f"""
@dp.materialized_view(format="delta", table_properties={{"mine": "x"}})
def view():
    return spark.sql("SELECT {query} FROM source")
""")

    define("*, 'p' AS gone")
    pipeline.run()
    define("string(id) AS id, 1.5D AS w")
    pipeline.run()
    assert sql(f"SELECT id, w FROM {view}") == [("1", 1.5), ("2", 1.5)]
    assert len(sql(f"DESCRIBE {view}")) == 2
    assert pipeline.server.detail(view)["properties"]["mine"] == "x"
    assert pipeline.server.operations(view)[-3:] == ["TRUNCATE", "REPLACE COLUMNS", "WRITE"]

    sql(f"ALTER TABLE {view} ADD CONSTRAINT positive CHECK (w > 0)")
    define("id")
    assert "positive: w > 0" in pipeline.failure()
    assert (
        "DELTA_UNSUPPORTED_DROP_COLUMN"
        in pipeline.server.client.failure(lambda spark: spark.sql(f"ALTER TABLE {view} DROP COLUMN id")).text
    )


def test_a_run_after_a_failure_goes_on_with_each_row_once(pipeline: Pipeline) -> None:
    sql, schema = pipeline.server.sql, pipeline.schema

    def define(number: str) -> None:
        pipeline.define(f"""
@dp.table(format="delta")
def good():
    return spark.readStream.table("source")

@dp.table(format="delta")
def bad():
    return spark.readStream.table("good").selectExpr("id", "{number} AS n")

@dp.materialized_view(format="delta")
def seen():
    return spark.table("bad").groupBy().count()
""")

    define("cast(v AS INT)")
    assert "CAST_INVALID_INPUT" in pipeline.failure()
    assert len(sql(f"SELECT * FROM {schema}.good")) == 2
    assert sql(f"SELECT * FROM {schema}.bad") == sql(f"SELECT * FROM {schema}.seen") == []
    sql(f"INSERT INTO {schema}.source VALUES (3, '3')")
    define("length(v)")
    pipeline.run()
    if pyspark.__version__ < "4.2":
        pipeline.run()  # one ends with the batch that it repeats there
    assert len(sql(f"SELECT * FROM {schema}.good")) == 3
    assert sql(f"SELECT * FROM {schema}.bad") == [(1, 3), (2, 1), (3, 1)]
    assert sql(f"SELECT * FROM {schema}.seen") == [(3,)]


@captures_changes
@pytest.mark.skipif(not FULL, reason="more of the same: DELTA_DS_FULL=1")
def test_keys_keep_their_history(pipeline: Pipeline) -> None:
    sql, schema = pipeline.server.sql, pipeline.schema
    pipeline.define("""
dp.create_streaming_table("history", format="delta")
dp.create_auto_cdc_flow(
    target="history", source="source", keys=["v"], sequence_by="id", stored_as_scd_type=2,
)
""")
    sql(f"INSERT INTO {schema}.source VALUES (5, 'one')", f"INSERT INTO {schema}.source VALUES (3, 'one')")
    pipeline.run()
    assert sql(f"SELECT v, __START_AT, __END_AT FROM {schema}.history WHERE v = 'one'") == [
        ("one", 1, 3),
        ("one", 3, 5),
        ("one", 5, None),
    ]
