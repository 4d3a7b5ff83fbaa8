"""`pydelta serve`: its arguments and refusals, and a Thrift server that Hive's own JDBC driver and beeline ask."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from delta_ds import DeltaLog
from delta_ds.__main__ import main
from delta_ds.exceptions import InvalidOptionError
from delta_ds.spark import serve
from spark_tests.behaviour.spark.serving import SECONDS, served

# --- what the command line says


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "one of the arguments --thrift --connect is required"),
        (["--thrift", "--connect"], "not allowed with argument"),
        (["--thrift", "--port", "70000"], "a port is a number from 0 to 65535"),
        (["--thrift", "--port", "-1"], "--port"),
        (["--thrift", "--hots", "x"], "2 more arguments than serve takes"),
    ],
)
def test_a_wrong_command_line_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["serve", *arguments])
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--conf", "secret"], "--conf takes NAME=VALUE, and number 1 has no ="),
        (["--conf", "sparc.master=local"], "sparc.master is none"),
        (["--warehouse", "/a", "--conf", "spark.sql.warehouse.dir=/b"], "--warehouse and --conf"),
        (["--metastore", "http://host"], "--metastore takes thrift://HOST:PORT, jdbc:... or a folder"),
        (["--metastore", "/no/such/folder/metastore"], "there is no folder /no/such/folder"),
        (["--metastore", "a;create=true"], "has a semicolon"),
        (["--host", "192.0.2.1"], "cannot listen at 192.0.2.1, port 10000"),
    ],
)
def test_what_cannot_be_served_is_refused_before_spark_starts(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--thrift", *arguments]) == 2
    told = capsys.readouterr().err
    assert said in told and "secret" not in told


def test_a_port_in_use_is_refused_before_spark_starts(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["serve", "--connect", "--port", str(port)]) == 2
    assert f"cannot listen at 127.0.0.1, port {port}: " in capsys.readouterr().err


def test_settings_are_those_of_spark_and_hive() -> None:
    given = ["spark.master=local[2]", "hive.server2.use.SSL=true", "javax.jdo.option.ConnectionUserName=me"]
    assert serve.server_settings(given, "/w", "jdbc:postgresql://db/meta") == {
        "spark.master": "local[2]",
        "spark.hadoop.hive.server2.use.SSL": "true",
        "spark.hadoop.javax.jdo.option.ConnectionUserName": "me",
        "spark.sql.warehouse.dir": "/w",
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:postgresql://db/meta",
    }


def test_a_metastore_is_a_service_or_a_folder(tmp_path: Path) -> None:
    of_service = serve.server_settings([], metastore="thrift://meta:9083")
    assert of_service["spark.hadoop.hive.metastore.uris"] == "thrift://meta:9083"
    of_folder = serve.server_settings([], metastore=str(tmp_path / "m"))
    assert (
        of_folder["spark.hadoop.javax.jdo.option.ConnectionURL"]
        == f"jdbc:derby:;databaseName={tmp_path / 'm'};create=true"
    )
    with pytest.raises(InvalidOptionError, match="--metastore and --conf"):
        serve.server_settings(["hive.metastore.uris=thrift://a:1"], metastore="thrift://b:1")


@pytest.mark.parametrize(
    ("host", "authentication", "open_to_all"),
    [
        ("127.0.0.1", None, False), ("::1", None, False), ("localhost", "NONE", False), ("0.0.0.0", None, True),
        ("10.1.2.3", "nosasl", True), ("db.example", None, True), ("0.0.0.0", "LDAP", False),
    ],
)  # fmt: skip
def test_a_server_for_other_machines_without_passwords_is_told(
    host: str, authentication: str | None, open_to_all: bool
) -> None:
    assert serve.lets_everybody_in(host, authentication) is open_to_all


# --- a server


class Client:
    """A connection of Hive's JDBC driver, in the JVM of the tests' session."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        jvm: Any = spark._jvm
        properties = jvm.java.util.Properties()
        properties.setProperty("user", "me")
        self.connection = jvm.org.apache.hive.jdbc.HiveDriver().connect(url, properties)

    def run(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a statement, as text."""
        statement = self.connection.createStatement()
        return _rows(statement.getResultSet()) if statement.execute(text) else []

    def ask(self, what: str, *arguments: str | None) -> list[dict[str, Any]]:
        """What a method of `DatabaseMetaData` answers."""
        found = getattr(self.connection.getMetaData(), what)(*arguments)
        described = found.getMetaData()
        names = [described.getColumnName(n + 1) for n in range(described.getColumnCount())]
        return [dict(zip(names, row, strict=True)) for row in _rows(found)]


def _rows(found: Any) -> list[tuple[Any, ...]]:
    count = found.getMetaData().getColumnCount()
    rows = []
    while found.next():
        rows.append(tuple(found.getString(n + 1) for n in range(count)))
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with served(folder) as url:
        yield url


@pytest.fixture(scope="module")
def client(spark: SparkSession, url: str) -> Client:
    client = Client(spark, url)
    client.run("CREATE SCHEMA shop")
    client.run(
        "CREATE TABLE shop.orders "
        "(id BIGINT COMMENT 'the key', `größe` DECIMAL(10,2), tags ARRAY<STRING>, day DATE) USING delta "
        "PARTITIONED BY (day) COMMENT 'what was ordered'"
    )
    client.run("INSERT INTO shop.orders VALUES (1, 1.5, array('a'), date'2026-01-01'), (2, 2, null, null)")
    client.run("CREATE VIEW shop.dear AS SELECT id FROM shop.orders WHERE `größe` > 1.8")
    client.run("CREATE TABLE shop.plain (a INT) USING parquet")
    return client


@pytest.mark.slow
def test_statements_of_delta_and_names_work(client: Client, folder: Path) -> None:
    assert client.run("SELECT * FROM shop.orders ORDER BY id") == [
        ("1", "1.50", '["a"]', "2026-01-01"),
        ("2", "2.00", None, None),
    ]
    client.run("CREATE TABLE shop.work USING delta AS SELECT * FROM shop.orders")
    client.run(
        "MERGE INTO shop.work t USING (SELECT 3 AS id) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (id)"
    )
    client.run("DELETE FROM shop.work WHERE id = 1")
    assert client.run("SELECT id FROM shop.work VERSION AS OF 0 ORDER BY id") == [("1",), ("2",)]
    assert [row[4] for row in client.run("DESCRIBE HISTORY shop.work")] == [
        "DELETE", "MERGE", "CREATE TABLE AS SELECT"
    ]  # fmt: skip
    assert client.run("OPTIMIZE shop.work")
    log = DeltaLog(folder / "warehouse" / "shop.db" / "work")
    assert sorted(log.snapshot().scan(columns=["id"]).to_arrow()["id"].to_pylist()) == [2, 3]


@pytest.mark.slow
def test_a_client_begins_in_the_schema_of_its_url(spark: SparkSession, client: Client, url: str) -> None:
    other = Client(spark, f"{url}shop")
    assert other.run("SELECT count(*) FROM orders") == [("2",)]
    # Names of temporary views are the session's own.
    other.run("CREATE TEMPORARY VIEW mine AS SELECT 1 AS a")
    assert other.run("SELECT a FROM mine") == [("1",)]
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        client.run("SELECT a FROM mine")
    other.connection.close()


@pytest.mark.slow
def test_clients_come_and_go(spark: SparkSession, client: Client, url: str) -> None:
    for number in range(3):
        other = Client(spark, url)
        other.run(f"CREATE TABLE shop.of_{number} USING delta AS SELECT {number} AS id")
        other.connection.close()
    assert client.run("SELECT id FROM shop.of_2") == [("2",)]
    client.run("CREATE TABLE shop.of_3 LIKE shop.of_2")
    client.run("DROP TABLE shop.of_0")


@pytest.mark.slow
def test_tables_are_listed_with_kind_and_comment(client: Client) -> None:
    assert {row["TABLE_SCHEM"] for row in client.ask("getSchemas")} >= {"default", "shop"}
    found = client.ask("getTables", None, "shop", "%", None)
    assert {(row["TABLE_NAME"], row["TABLE_TYPE"], row["REMARKS"]) for row in found} >= {
        ("orders", "TABLE", "what was ordered"),
        ("dear", "VIEW", ""),
        ("plain", "TABLE", ""),
    }


@pytest.mark.slow
def test_columns_are_listed_with_types_and_comments(client: Client) -> None:
    columns = client.ask("getColumns", None, "shop", "orders", "%")
    told = [
        (c["COLUMN_NAME"], c["TYPE_NAME"], c["DATA_TYPE"], c["REMARKS"], c["ORDINAL_POSITION"])
        for c in columns
    ]
    assert told == [
        ("id", "BIGINT", "-5", "the key", "1"),
        ("größe", "DECIMAL(10,2)", "3", "", "2"),
        ("tags", "ARRAY<STRING>", "2003", "", "3"),
        ("day", "DATE", "91", "", "4"),
    ]
    assert [c["COLUMN_NAME"] for c in client.ask("getColumns", None, "shop", "o%", "t%")] == ["tags"]
    # Those of other sources and of views are Spark's own answer.
    others = client.ask("getColumns", None, "shop", "plain", "%") + client.ask(
        "getColumns", None, "shop", "dear", "%"
    )
    assert [(c["COLUMN_NAME"], c["TYPE_NAME"]) for c in others] == [("a", "INT"), ("id", "BIGINT")]


@pytest.mark.slow
def test_columns_are_those_of_the_newest_version_whoever_wrote_it(client: Client, folder: Path) -> None:
    client.run("CREATE TABLE shop.grown (a INT) USING delta")
    log = DeltaLog(folder / "warehouse" / "shop.db" / "grown")
    log.write(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}), options={"mergeSchema": True})
    assert [c["COLUMN_NAME"] for c in client.ask("getColumns", None, "shop", "grown", "%")] == ["a", "b"]


@pytest.mark.slow
def test_a_table_whose_log_is_gone_hides_no_other(client: Client, folder: Path) -> None:
    client.run("CREATE TABLE shop.zombie (a INT) USING delta")
    (folder / "warehouse" / "shop.db" / "zombie" / "_delta_log").rename(folder / "gone")
    names = {c["TABLE_NAME"] for c in client.ask("getColumns", None, "shop", "%", "%")}
    assert {"orders", "plain"} <= names and "zombie" not in names
    assert "zombie" in {row["TABLE_NAME"] for row in client.ask("getTables", None, "shop", "%", None)}
    assert "entry_without_columns table=spark_catalog.shop.zombie" in (folder / "server.log").read_text()
    client.run("DROP TABLE shop.zombie")


@pytest.mark.slow
def test_there_are_no_primary_keys(client: Client) -> None:
    assert client.ask("getPrimaryKeys", None, "shop", "orders") == []


@pytest.mark.slow
def test_beeline_prints_rows_and_columns(client: Client, url: str) -> None:
    done = subprocess.run(
        ["java", "-cp", f"{pyspark.__path__[0]}/jars/*", "org.apache.hive.beeline.BeeLine", "-u", f"{url}shop",
         "-n", "me", "--outputformat=csv2", "--silent=true", "-e", "SELECT id FROM orders ORDER BY id;",
         "-e", "DESCRIBE orders;"],
        capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    lines = done.stdout.split()
    assert done.returncode == 0, done.stderr[-2000:]
    assert lines[:3] == ["id", "1", "2"]
    assert any(line.startswith("id,bigint,") for line in lines)


@pytest.mark.slow
def test_a_server_with_tls_ends_by_ctrl_c(spark: SparkSession, tmp_path: Path) -> None:
    keys = str(tmp_path / "keys.p12")
    subprocess.run(
        ["keytool", "-genkeypair", "-keyalg", "RSA", "-keystore", keys, "-storetype", "PKCS12", "-storepass", "secret1",
         "-alias", "server", "-dname", "CN=127.0.0.1", "-ext", "san=ip:127.0.0.1", "-validity", "2"],
        check=True, capture_output=True, timeout=SECONDS,
    )  # fmt: skip
    settings = {
        "hive.server2.use.SSL": "true",
        "hive.server2.keystore.path": keys,
        "hive.server2.keystore.password": "secret1",
    }
    with served(tmp_path, settings=settings, end=signal.SIGINT) as url:
        assert url.endswith(";ssl=true")
        client = Client(spark, f"{url};sslTrustStore={keys};trustStorePassword=secret1")
        client.run("CREATE TABLE t USING delta AS SELECT 1 AS id")
        assert client.run("SELECT id FROM t") == [("1",)]
        with pytest.raises(Exception, match="Could not open client transport"):
            Client(spark, url.removesuffix(";ssl=true"))
    assert "secret1" not in (tmp_path / "server.log").read_text()
    log = DeltaLog(tmp_path / "warehouse" / "t")
    assert log.snapshot().version == 0


@pytest.mark.slow
@pytest.mark.connect
def test_connect_is_served_as_well(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: install delta-ds[connect]")
    with served(tmp_path, "--connect") as url:
        assert url.startswith("sc://127.0.0.1:")
        program = (
            "import sys; from pyspark.sql import SparkSession; s = SparkSession.builder.remote(sys.argv[1]).create();"
            "s.sql('CREATE TABLE t USING delta AS SELECT 1 AS id').collect(); print(s.table('t').count())"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, url], capture_output=True, text=True, timeout=SECONDS
        )
        assert done.stdout == "1\n", done.stderr[-2000:]
