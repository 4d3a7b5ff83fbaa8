"""Clients of `pydelta serve --thrift` in Python: pyhive, SQLAlchemy (`hive://`), and what BI tools send at connect."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

pytestmark = pytest.mark.clients

hive = pytest.importorskip("pyhive.hive", reason="pyhive is not installed here: run make test-clients")
sqlalchemy = pytest.importorskip(
    "sqlalchemy", reason="SQLAlchemy is not installed here: run make test-clients"
)

from TCLIService import ttypes  # noqa: E402

from spark_tests.behaviour.spark.serving import served  # noqa: E402


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    with served(tmp_path_factory.mktemp("served")) as url:
        host, _, port = url.removeprefix("jdbc:hive2://").rstrip("/").partition(":")
        connection = hive.connect(host, int(port), username="me")
        run(connection, "CREATE SCHEMA shop COMMENT 'a shop'")
        run(
            connection,
            "CREATE TABLE shop.orders (id BIGINT COMMENT 'the key', amount DECIMAL(10,2), name STRING, day DATE, "
            "at TIMESTAMP, paid BOOLEAN, weight DOUBLE) USING delta PARTITIONED BY (day) COMMENT 'orders'",
        )
        run(
            connection,
            "INSERT INTO shop.orders VALUES "
            "(1, 10.5, 'a', date'2026-01-01', timestamp'2026-01-01 10:00:00', true, 0.5), "
            "(2, 20, 'ü', date'2026-01-02', null, false, null), (3, null, null, null, null, null, null)",
        )
        run(connection, "CREATE VIEW shop.paid AS SELECT id, amount FROM shop.orders WHERE paid")
        connection.close()
        yield host, int(port)


@pytest.fixture
def connection(address: tuple[str, int]) -> Iterator[Any]:
    connection = hive.connect(*address, username="me", database="shop")
    yield connection
    connection.close()


def run(connection: Any, text: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    cursor = connection.cursor()
    cursor.execute(text, parameters)
    rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
    return rows


# --- pyhive


def test_rows_have_their_types(connection: Any) -> None:
    assert run(connection, "SELECT id, amount, name, day, paid, weight FROM orders ORDER BY id") == [
        (1, Decimal("10.50"), "a", "2026-01-01", True, 0.5),
        (2, Decimal("20.00"), "ü", "2026-01-02", False, None),
        (3, None, None, None, None, None),
    ]


def test_columns_of_an_answer_are_described(connection: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT id, amount, day FROM orders LIMIT 1")
    assert [(name, kind) for name, kind, *_ in cursor.description] == [
        ("id", "BIGINT_TYPE"), ("amount", "DECIMAL_TYPE"), ("day", "DATE_TYPE"),
    ]  # fmt: skip


def test_parameters_are_put_in(connection: Any) -> None:
    text = "SELECT id FROM orders WHERE name = %(name)s AND amount > %(least)s"
    assert run(connection, text, {"name": "a", "least": 5}) == [(1,)]


def test_tables_are_made_changed_and_asked_for_their_past(connection: Any) -> None:
    for text in (
        "CREATE TABLE work (id INT, v STRING) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        "INSERT INTO work VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "UPDATE work SET v = upper(v) WHERE id = 1",
        "DELETE FROM work WHERE id = 2",
        "MERGE INTO work t USING (SELECT 4 AS id, 'd' AS v) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        "ALTER TABLE work ADD COLUMNS (n INT COMMENT 'later')",
        "OPTIMIZE work",
    ):
        run(connection, text)
    assert run(connection, "SELECT id, v FROM work ORDER BY id") == [(1, "A"), (3, "c"), (4, "d")]
    assert run(connection, "SELECT count(*) FROM work VERSION AS OF 1") == [(3,)]
    changes = run(connection, "SELECT id, _change_type FROM table_changes('work', 3, 3)")
    assert changes == [(2, "delete")]
    assert run(connection, "DESCRIBE HISTORY work LIMIT 1")[0][4] == "OPTIMIZE"
    run(connection, "RESTORE TABLE work TO VERSION AS OF 1")
    assert run(connection, "SELECT count(*) FROM work") == [(3,)]
    run(connection, "DROP TABLE work")


def test_an_error_says_what_is_wrong_and_the_session_goes_on(connection: Any) -> None:
    cursor = connection.cursor()
    with pytest.raises(hive.OperationalError, match="TABLE_OR_VIEW_NOT_FOUND"):
        cursor.execute("SELECT * FROM nothing")
    with pytest.raises(hive.OperationalError, match="PARSE_SYNTAX_ERROR"):
        cursor.execute("VACUUM orders RETAIN many HOURS")
    assert run(connection, "SELECT 1") == [(1,)]


def test_a_statement_that_runs_can_be_cancelled(connection: Any) -> None:
    cursor = connection.cursor()
    cursor.execute(
        "SELECT count(*) FROM range(1000000000000) a JOIN orders b ON a.id % 7 > b.id", async_=True
    )
    assert cursor.poll().operationState in (
        ttypes.TOperationState.RUNNING_STATE, ttypes.TOperationState.PENDING_STATE,
        ttypes.TOperationState.INITIALIZED_STATE,
    )  # fmt: skip
    cursor.cancel()
    assert cursor.poll().operationState == ttypes.TOperationState.CANCELED_STATE
    assert run(connection, "SELECT count(*) FROM orders") == [(3,)]


# --- SQLAlchemy


@pytest.fixture
def engine(address: tuple[str, int]) -> Iterator[Any]:
    engine = sqlalchemy.create_engine("hive://me@{}:{}/shop".format(*address))
    yield engine
    engine.dispose()


def test_sqlalchemy_reflects_tables(engine: Any) -> None:
    inspector = sqlalchemy.inspect(engine)
    assert {"default", "shop"} <= set(inspector.get_schema_names())
    assert inspector.has_table("orders")
    # pyhive looks for what Hive says of a table that is not there, and Spark says it otherwise.
    with pytest.raises(sqlalchemy.exc.OperationalError, match="TABLE_OR_VIEW_NOT_FOUND"):
        inspector.has_table("nothing")
    columns = inspector.get_columns("orders")
    assert [column["name"] for column in columns] == ["id", "amount", "name", "day", "at", "paid", "weight"]
    assert inspector.get_pk_constraint("orders") in ([], {"constrained_columns": [], "name": None})
    # As Hive's partitions, which pyhive tells as an index.
    assert [found["column_names"] for found in inspector.get_indexes("orders")] == [["day"]]


def test_sqlalchemy_queries_and_changes_tables(engine: Any) -> None:
    with engine.connect() as connection:
        table = sqlalchemy.Table("orders", sqlalchemy.MetaData(), autoload_with=engine)
        total = sqlalchemy.select(sqlalchemy.func.count(), sqlalchemy.func.sum(table.c.amount))
        assert connection.execute(total).one() == (3, Decimal("30.50"))
        rows = sqlalchemy.select(table.c.id).where(table.c.name == "ü")
        assert connection.execute(rows).all() == [(2,)]
        connection.execute(sqlalchemy.text("CREATE TABLE made USING delta AS SELECT 1 AS a"))
        connection.execute(sqlalchemy.text("INSERT INTO made VALUES (2)"))
        assert connection.execute(sqlalchemy.text("SELECT a FROM made ORDER BY a")).all() == [(1,), (2,)]
        connection.execute(sqlalchemy.text("DROP TABLE made"))


# --- what BI tools ask for
# Source: Superset, `superset/db_engine_specs/hive.py`, and its issue 28743, which has what its tree of tables sends;
# DBeaver, `org.jkiss.dbeaver.ext.hive`; for Power BI, whose ODBC driver is Simba's: pull request 27897 of Spark
# (SPARK-31113), in which Simba says what its driver sends, and issue 3032 of Kyuubi.

SUPERSET = (
    "USE `shop`",
    "SHOW SCHEMAS",
    "SHOW TABLES IN shop",
    "SHOW TABLES IN shop LIKE 'orders'",
    "SHOW VIEWS IN `shop`",
    "SHOW FUNCTIONS",
    "DESCRIBE shop.orders",
    "SHOW PARTITIONS shop.orders",
    "SELECT * FROM `shop`.`orders` LIMIT 100",
    "SELECT date_format(date_sub(day, CAST(7 - dayofweek(day) AS INT)), 'yyyy-MM-dd 00:00:00') AS w, "
    "sum(amount) AS s FROM `shop`.`orders` GROUP BY 1 ORDER BY s DESC LIMIT 1000",
    "SELECT date_trunc('month', at) AS __timestamp, count(*) FROM shop.orders "
    "WHERE at >= CAST('2026-01-01 00:00:00.000000' AS TIMESTAMP) GROUP BY 1",
)
DBEAVER = (
    "SELECT 1",
    "SHOW CREATE TABLE `shop`.`orders`",
    "SHOW CREATE TABLE `shop`.`paid`",
    "SELECT * FROM shop.orders",
    "SELECT COUNT(*) FROM shop.orders",
)
POWER_BI = (
    "SHOW SCHEMAS",
    "SHOW TABLES IN `shop`",
    "SHOW VIEWS IN `shop`",
    "SET -v",
    "USE `shop`",
    "SELECT `id`, `amount` FROM `shop`.`orders` LIMIT 1000",
    "SELECT `name`, SUM(`amount`) AS `C1` FROM (SELECT `name`, `amount` FROM `shop`.`orders`) AS `ITBL` "
    "GROUP BY `name` ORDER BY `C1` DESC, `name` LIMIT 1000001",
    "SELECT COUNT(DISTINCT `id`) AS `C1`, COUNT(1) AS `C2` FROM `SHOP`.`ORDERS`",
)
# Those that may have no rows.
EMPTY = ("USE `shop`",)


@pytest.mark.parametrize("text", dict.fromkeys((*SUPERSET, *DBEAVER, *POWER_BI)))
def test_a_statement_of_a_tool_is_answered(connection: Any, text: str) -> None:
    assert run(connection, text) or text in EMPTY


def test_a_driver_is_told_that_this_is_spark(connection: Any) -> None:
    """Power BI refuses a server that is none, and leaves out what an older one cannot do."""

    def told(what: str) -> str:
        kind = getattr(ttypes.TGetInfoType, what)
        request = ttypes.TGetInfoReq(sessionHandle=connection.sessionHandle, infoType=kind)
        return str(connection.client.GetInfo(request).infoValue.stringValue)

    assert (told("CLI_DBMS_NAME"), told("CLI_SERVER_NAME")) == ("Spark SQL", "Spark SQL")
    ((version, *_),) = run(connection, "SELECT version()")
    assert version.startswith(told("CLI_DBMS_VER"))


@pytest.mark.parametrize(
    ("call", "arguments", "least"),
    [
        ("GetCatalogs", {}, 0),
        ("GetSchemas", {"schemaName": "%"}, 2),
        ("GetTableTypes", {}, 2),
        ("GetTables", {"schemaName": "shop", "tableName": "%", "tableTypes": ["TABLE", "VIEW"]}, 2),
        ("GetColumns", {"schemaName": "shop", "tableName": "orders", "columnName": "%"}, 7),
        ("GetColumns", {"schemaName": "shop", "tableName": "paid"}, 2),
        ("GetColumns", {}, 9),
        ("GetFunctions", {"functionName": "abs"}, 1),
        ("GetTypeInfo", {}, 10),
        ("GetPrimaryKeys", {"schemaName": "shop", "tableName": "orders"}, 0),
        ("GetCrossReference", {"foreignSchemaName": "shop", "foreignTableName": "orders"}, 0),
    ],
)
def test_a_driver_s_metadata_is_answered(
    connection: Any, call: str, arguments: dict[str, Any], least: int
) -> None:
    request = getattr(ttypes, f"T{call}Req")(sessionHandle=connection.sessionHandle, **arguments)
    answer = getattr(connection.client, call)(request)
    assert answer.status.statusCode == ttypes.TStatusCode.SUCCESS_STATUS
    fetched = connection.client.FetchResults(
        ttypes.TFetchResultsReq(operationHandle=answer.operationHandle, orientation=0, maxRows=10000)
    )
    columns = [hive._unwrap_column(column) for column in fetched.results.columns]
    assert (len(columns[0]) if columns else 0) >= least
