"""Server and client of Spark Connect in one process, as in notebooks: each has columns of its own kind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.connect, pytest.mark.slow, pytest.mark.long]

_PROGRAM = """
import os, sys, traceback
from pyspark.sql import SparkSession
import delta_ds
from delta_ds import DeltaTable
from delta_ds.spark.connect_server import connect_server
from pyspark.sql.functions import col, expr

# A client whose server has gone tries for minutes to say goodbye.
sys.excepthook = lambda *error: (traceback.print_exception(*error), sys.stderr.flush(), os._exit(1))
folder = sys.argv[1]
settings = {
    "spark.master": "local[2]", "spark.ui.enabled": "false", "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2", "spark.sql.warehouse.dir": folder + "/warehouse",
}
with connect_server(0, settings=settings) as url:
    spark = SparkSession.builder.remote(url).create()
    for registered in (False, True):
        if registered:
            delta_ds.register(spark)
        name = f"t{int(registered)}"
        spark.sql(f"CREATE TABLE {name} (a INT NOT NULL, b INT GENERATED ALWAYS AS (a + 10), c STRING) USING delta "
                  "PARTITIONED BY (a) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
        spark.sql(f"INSERT INTO {name} (a, b, c) VALUES (1, 11, 'x')")
        spark.sql(f"INSERT INTO {name} (a) VALUES (5)")
        spark.sql(f"UPDATE {name} SET a = 2 WHERE b = 11")
        spark.sql(f"MERGE INTO {name} t USING (SELECT 5 AS a UNION ALL SELECT 7) s ON t.a = s.a "
                  "WHEN MATCHED THEN UPDATE SET c = 'm' WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a)")
        spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT positive CHECK (a > 0)")
        spark.sql(f"OPTIMIZE {name}")
        spark.range(3).selectExpr("cast(id + 20 AS INT) AS a").write.format("delta").mode("append").saveAsTable(name)
        rows = spark.table(name).where(col("a") < 21).orderBy("a").collect()
        changes = spark.sql(f"SELECT count(*) FROM table_changes('{name}', 0)").collect()
        print("ROWS", [tuple(row) for row in rows], changes[0][0] > 5, spark.table(name).count(), flush=True)
    table = DeltaTable.forName(spark, "t1")
    table.update(expr("a = 2"), {"c": expr("'u'")})
    table.delete(col("a") > 6)
    print("TABLE", sorted(map(tuple, table.toDF().collect())), flush=True)
    builder = DeltaTable.create(spark).tableName("made").comment("by name").property("own", "it's").partitionedBy("a")
    builder = builder.addColumn("a", "int", nullable=False, comment="it's a").addColumn("s", "struct<`x-y`: int>")
    made = builder.addColumn("g", "int", generatedAlwaysAs="a + 1").execute()
    spark.sql("INSERT INTO made (a, s) VALUES (1, struct(2))")
    detail = made.detail().first()
    print("MADE", [tuple(row) for row in made.toDF().collect()], made.toDF().schema["a"].metadata,
          detail.description, detail.partitionColumns, detail.properties["own"], flush=True)
    DeltaTable.createOrReplace(spark).tableName("made").addColumn("b", "string").clusterBy("b").execute()
    print("MADE", spark.table("made").columns, DeltaTable.forName(spark, "made").detail().first().clusteringColumns)
    spark.stop()
os._exit(0)
"""
_ROWS = "ROWS [(2, 12, 'x'), (5, 15, 'm'), (7, 17, None), (20, 30, None)] True 6"


_MADE = [
    """MADE [(1, Row(x-y=2), 2)] {'comment': "it's a"} by name ['a'] it's""",
    "MADE ['b'] ['b']",
]


_LOCAL = """
import os, sys, traceback
from pyspark.sql import SparkSession
import delta_ds
from delta_ds import DeltaTable

sys.excepthook = lambda *error: (traceback.print_exception(*error), sys.stderr.flush(), os._exit(1))
builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.memory", "1g").config("spark.sql.shuffle.partitions", "2")
spark = builder.config("spark.sql.warehouse.dir", sys.argv[1] + "/warehouse").getOrCreate()

def is_known():
    try:
        spark.sql("VACUUM nothing DRY RUN").collect()
    except Exception as error:
        return "PARSE_SYNTAX_ERROR" not in str(error)

print("BEFORE", is_known(), flush=True)
for turn in range(2):
    registration = delta_ds.register(spark)
    print("SQL", registration.session, registration.sql, flush=True)
    spark.sql(f"CREATE TABLE t{turn} (a INT, b STRING) USING delta PARTITIONED BY (b)")
    spark.sql(f"INSERT INTO t{turn} VALUES (1, 'x'), (2, 'y')")
    spark.range(1).selectExpr("3 AS a", "'x' AS b").write.format("delta").mode("append").saveAsTable(f"t{turn}")
    DeltaTable.forName(spark, f"t{turn}").update("a = 2", {"a": "20"})
    spark.sql(f"DELETE FROM t{turn} WHERE a = 1")
    made = DeltaTable.create(spark).tableName(f"made{turn}").addColumn("id", "BIGINT").execute()
    spark.sql(f"INSERT INTO made{turn} SELECT id FROM range(2)")
    print("ROWS", sorted(map(tuple, spark.table(f"t{turn}").collect())), made.toDF().count(),
          spark.sql(f"SELECT count(*) FROM t{turn} VERSION AS OF 1").collect()[0][0],
          [row.operation for row in spark.sql(f"DESCRIBE HISTORY t{turn}").collect()], flush=True)
    delta_ds.unregister(spark)
    print("AFTER", is_known(), flush=True)
os._exit(0)
"""


def test_register_gives_a_server_in_this_process_what_a_classic_session_gets(tmp_path: Path) -> None:
    """And `unregister` takes it away, of the server's session too; then once more."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: install delta-ds[connect]")
    done = subprocess.run(
        [sys.executable, "-c", _LOCAL, str(tmp_path)],
        # A free port: the server else takes the one that all such servers take.
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_TESTING": "1"}, cwd=tmp_path,
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    told = [line for line in done.stdout.splitlines() if line.startswith(("BEFORE", "SQL", "ROWS", "AFTER"))]
    turn = [
        "SQL connect on: the server's: all of its sessions have a catalog for Delta tables",
        "ROWS [(3, 'x'), (20, 'y')] 2 2 ['DELETE', 'UPDATE', 'WRITE', 'WRITE', 'CREATE TABLE']",
        "AFTER False",
    ]
    assert told == ["BEFORE False", *turn, *turn], done.stderr[-4000:]


def test_tables_are_changed_as_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: install delta-ds[connect]")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable}, cwd=tmp_path,
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    told = [line for line in done.stdout.splitlines() if line.startswith(("ROWS", "TABLE", "MADE"))]
    assert told == [_ROWS, _ROWS, "TABLE [(2, 12, 'u'), (5, 15, 'm')]", *_MADE], done.stderr[-4000:]
