"""Tables of Unity Catalog and of the embedded coordinator by their names, in SQL and the classes of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import delta_ds
from delta_ds import DeltaTable
from delta_ds.exceptions import DeltaError
from spark_tests.engines.unity import fake_server
from spark_tests.engines.unity.fake_server import UnityServer
from spark_tests.full_form import FULL

pytestmark = pytest.mark.long

TOKEN = "dapi-secret-of-the-tests"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnityServer]:
    with fake_server.running(tmp_path_factory.mktemp("managed")) as found:
        found.schemas["theirs"] = {"sales": {}}
        found.tokens = {TOKEN}
        yield found


@pytest.fixture
def session(spark: Any, server: UnityServer, tmp_path: Path) -> Iterator[Any]:
    own = spark.newSession()
    settings = {
        "spark.pydelta.catalog.main.type": "unity",
        "spark.pydelta.catalog.main.uri": server.url,
        "spark.pydelta.catalog.main.token": TOKEN,
        "spark.sql.catalog.theirs": "io.unitycatalog.spark.UCSingleCatalog",
        "spark.sql.catalog.theirs.uri": server.url,
        "spark.sql.catalog.theirs.token": TOKEN,
        "spark.pydelta.catalog.lake.type": "sqlite",
        "spark.pydelta.catalog.lake.uri": str(tmp_path / "catalog.db"),
    }
    for name, text in settings.items():
        own.conf.set(name, text)
    delta_ds.register(own)
    yield own
    delta_ds.unregister(own)


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def refused(session: Any, statement: str, condition: str) -> str:
    with pytest.raises(Exception, match=condition) as failed:
        session.sql(statement).collect()
    return str(failed.value)


def test_statements_on_tables_of_the_catalog(session: Any, server: UnityServer) -> None:
    sql = session.sql
    sql("CREATE TABLE main.sales.t (id BIGINT, name STRING) USING delta PARTITIONED BY (name)")
    sql("INSERT INTO main.sales.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    sql("UPDATE main.sales.t SET name = 'z' WHERE id = 1")
    sql("DELETE FROM main.sales.t WHERE main.sales.t.id = 2")
    sql(
        "MERGE INTO main.sales.t USING (SELECT 5L id, 'm' name) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    assert rows(sql("SELECT id, name FROM main.sales.t")) == [(1, "z"), (3, "c"), (5, "m")]
    assert rows(sql("SELECT id FROM main.sales.t VERSION AS OF 1")) == [(1,), (2,), (3,)]
    entry = server.table("main", "sales", "t")
    assert (entry.latest, entry.partitions) == (4, ["name"])
    sql("ALTER TABLE main.sales.t ADD COLUMN k INT")
    sql("ALTER TABLE main.sales.t SET TBLPROPERTIES ('mine' = 'x')")
    assert [field["name"] for field in entry.columns["fields"]] == ["id", "name", "k"]
    assert entry.properties["mine"] == "x"
    sql("INSERT OVERWRITE main.sales.t VALUES (9, 'n', 1)")
    assert rows(session.table("main.sales.t")) == [(9, "n", 1)]
    sql("TRUNCATE TABLE main.sales.t")
    assert session.table("main.sales.t").count() == 0
    assert sql("DESCRIBE HISTORY main.sales.t").first().operation == "TRUNCATE"
    assert "main.sales.t" in sql("SHOW CREATE TABLE main.sales.t").first()[0]
    assert rows(sql("SHOW TABLES IN main.sales").select("tableName").where("tableName = 't'")) == [("t",)]
    assert ("sales",) in rows(sql("SHOW SCHEMAS IN main"))


def test_tables_are_made_with_their_rows_and_replaced_in_one_commit(
    session: Any, server: UnityServer
) -> None:
    session.sql("CREATE TABLE main.sales.c USING delta AS SELECT id, id * 2 n FROM range(5)")
    entry = server.table("main", "sales", "c")
    assert (entry.latest, session.table("main.sales.c").count()) == (0, 5)
    session.sql("CREATE OR REPLACE TABLE main.sales.c USING delta AS SELECT id x FROM range(3)")
    assert server.table("main", "sales", "c") is entry
    assert (entry.latest, rows(session.table("main.sales.c"))) == (1, [(0,), (1,), (2,)])
    refused(session, "CREATE TABLE main.sales.c (a INT) USING delta", "ALREADY_EXISTS")
    refused(session, "REPLACE TABLE main.sales.none USING delta AS SELECT 1 a", "CANNOT_REPLACE|NOT_FOUND")
    session.sql("DROP TABLE main.sales.c")
    session.sql("DROP TABLE IF EXISTS main.sales.c")
    refused(session, "SELECT * FROM main.sales.c", "TABLE_OR_VIEW_NOT_FOUND")
    refused(session, "DROP TABLE main.sales.c", "TABLE_OR_VIEW_NOT_FOUND")


def test_writers_and_readers_of_spark_take_the_names(session: Any) -> None:
    frame = session.range(3)
    frame.write.format("delta").saveAsTable("main.sales.s")
    frame.write.format("delta").mode("append").saveAsTable("main.sales.s")
    assert session.table("main.sales.s").count() == 6
    assert session.read.option("versionAsOf", "0").table("main.sales.s").count() == 3
    frame.write.format("delta").mode("overwrite").saveAsTable("main.sales.s")
    assert session.read.format("pydelta").table("main.sales.s").count() == 3
    frame.writeTo("main.sales.s").append()
    frame.write.insertInto("main.sales.s")
    frame.writeTo("main.sales.w").using("delta").create()
    assert session.table("main.sales.s").count() == 9
    assert session.catalog.tableExists("main.sales.w")
    table = DeltaTable.forName(session, "main.sales.s")
    table.delete("id = 1")
    assert table.toDF().count() == 6
    made = DeltaTable.create(session).tableName("main.sales.built").addColumn("id", "long").execute()
    assert made.toDF().columns == ["id"]


@pytest.mark.skipif(not FULL, reason="streams take long to start: DELTA_DS_FULL=1")
def test_streams_go_from_one_table_of_the_catalog_to_another(session: Any, tmp_path: Path) -> None:
    session.range(4).write.format("delta").saveAsTable("main.sales.from")
    stream = session.readStream.table("main.sales.from")
    query = (
        stream.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "check"))
        .trigger(availableNow=True).toTable("main.sales.into")
    )  # fmt: skip
    query.awaitTermination()
    assert session.table("main.sales.into").count() == 4


def test_settings_of_unity_catalog_s_own_connector_are_taken(session: Any, server: UnityServer) -> None:
    session.range(2).write.format("delta").saveAsTable("theirs.sales.s")
    assert session.sql("SELECT count(*) FROM theirs.sales.s").first()[0] == 2
    assert list(server.schemas["theirs"]["sales"]) == ["s"]


def test_names_of_the_embedded_coordinator(session: Any, tmp_path: Path) -> None:
    session.sql(f"CREATE TABLE lake.sales.t (id INT) USING delta LOCATION '{tmp_path}/t'")
    session.sql("INSERT INTO lake.sales.t VALUES (1), (2)")
    assert rows(session.table("lake.sales.t")) == [(1,), (2,)]
    assert rows(session.sql("SHOW TABLES IN lake.sales").select("tableName")) == [("t",)]
    refused(session, "CREATE TABLE lake.sales.u (id INT) USING delta", "DELTA_COORDINATOR_OPTION_MISSING")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("CREATE TABLE main.sales.p (a INT) USING parquet", "DELTA_CATALOG_FORMAT"),
        ("CREATE TABLE main.sales.p (a INT) USING delta LOCATION '/data/p'", "DELTA_UNITY_CANNOT_PLACE"),
        ("CREATE TABLE main.none.p (a INT) USING delta", "NOT_FOUND"),
        ("CREATE SCHEMA main.other", "DELTA_CATALOG_CANNOT"),
        ("DROP SCHEMA main.sales", "DELTA_CATALOG_CANNOT"),
        ("SELECT * FROM main.sales.none", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT * FROM main.none.none", "TABLE_OR_VIEW_NOT_FOUND"),
        ("OPTIMIZE main.sales.o", "MAINTENANCE_BLOCKED"),
        ("VACUUM main.sales.o", "MAINTENANCE_BLOCKED"),
        ("ALTER TABLE main.sales.o RENAME TO main.sales.q", "DELTA_CATALOG_CANNOT"),
        ("ALTER TABLE main.sales.o UNSET TBLPROPERTIES ('io.unitycatalog.tableId')", "DELTA_CATALOG_MANAGED"),
    ],
)
def test_what_the_catalog_does_not_do_is_refused(session: Any, statement: str, condition: str) -> None:
    session.sql("CREATE TABLE IF NOT EXISTS main.sales.o (a INT) USING delta")
    assert TOKEN not in refused(session, statement, condition)


def test_a_token_is_in_no_plan_and_no_error(session: Any, server: UnityServer) -> None:
    session.sql("CREATE TABLE IF NOT EXISTS main.sales.o (a INT) USING delta")
    frame = session.table("main.sales.o")
    shown = [frame._jdf.queryExecution().toString(), repr(DeltaTable.forName(session, "main.sales.o"))]
    shown += [str(session.sql("DESCRIBE EXTENDED main.sales.o").collect())]
    shown += [str(session.sql("DESCRIBE DETAIL main.sales.o").collect())]
    server.tokens = {"another"}
    try:
        with pytest.raises(Exception, match="DELTA_UNITY_TOKEN_REFUSED") as failed:
            session.table("main.sales.o").collect()
    finally:
        server.tokens = {TOKEN}
    assert not [text for text in [*shown, str(failed.value)] if TOKEN in text]


@pytest.mark.parametrize(
    ("settings", "condition"),
    [
        ({"type": "unity"}, "DELTA_CATALOG_SETTING_MISSING"),
        ({"uri": "http://localhost:1"}, "DELTA_CATALOG_SETTING_MISSING"),
        ({"type": "unite", "uri": "x"}, "DELTA_INVALID_CATALOG_SETTING"),
        ({"type": "unity", "url": "x"}, r"DELTA_UNKNOWN_CATALOG_SETTING.*did you mean .*\.uri"),
    ],
)
def test_settings_that_do_not_fit_are_refused(spark: Any, settings: dict[str, str], condition: str) -> None:
    from delta_ds.spark.session.catalog.named import named_catalogs

    own = spark.newSession()
    for name, text in settings.items():
        own.conf.set(f"spark.pydelta.catalog.odd.{name}", text)
    with pytest.raises(DeltaError, match=condition):
        named_catalogs(own)


def test_unregister_gives_the_settings_back(spark: Any, server: UnityServer) -> None:
    own = spark.newSession()
    own.conf.set("spark.sql.catalog.gone", "io.unitycatalog.spark.UCSingleCatalog")
    own.conf.set("spark.sql.catalog.gone.uri", server.url)
    delta_ds.register(own)
    assert own.conf.get("spark.sql.catalog.gone") == "pydelta.NamedTables"
    delta_ds.unregister(own)
    assert own.conf.get("spark.sql.catalog.gone") == "io.unitycatalog.spark.UCSingleCatalog"
    assert spark.newSession().conf.get("spark.sql.catalog.gone", None) is None
