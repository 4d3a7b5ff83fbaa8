"""What the metastore holds of tables: a name and a place, and nothing that may be secret."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.session.catalog.entries import PROVIDER, Metastore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[5]
SECRET = "s3cr3t-key"


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    spark.sql("CREATE SCHEMA entries_db")
    yield "entries_db"
    spark.sql("DROP SCHEMA entries_db CASCADE")


def test_entry_holds_provider_and_place_and_no_columns(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE {database}.m USING pydelta PARTITIONED BY (p) AS SELECT 1 AS id, 2 AS p")
    spark.sql(
        f"CREATE TABLE {database}.e (id INT) USING delta LOCATION '{tmp_path}/e' TBLPROPERTIES ('k' = 'v')"
    )
    metastore = Metastore(Jvm.of(spark))
    managed, external = metastore.find([database], "m"), metastore.find([database], "e")
    assert managed is not None and external is not None
    assert (
        (managed.provider, managed.managed) == (external.provider, not external.managed) == (PROVIDER, True)
    )
    assert external.path == f"{tmp_path}/e"
    for name in ("m", "e"):
        stored = spark._jsparkSession.sessionState().catalog().getTableMetadata(
            metastore.identifier([database], name)
        )  # fmt: skip
        assert stored.schema().length() == 0 and stored.partitionColumnNames().isEmpty()
        assert stored.storage().properties().isEmpty() and stored.properties().isEmpty()


def test_external_files_stay_and_managed_ones_go(spark: SparkSession, database: str, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE {database}.m USING delta AS SELECT 1 AS id")
    spark.sql(f"CREATE TABLE {database}.e USING delta LOCATION '{tmp_path}/a b' AS SELECT 1 AS id")
    managed = Metastore(Jvm.of(spark)).find([database], "m")
    assert managed is not None and Path(managed.path).is_dir()
    spark.sql(f"DROP TABLE {database}.m")
    spark.sql(f"DROP TABLE {database}.e")
    assert not Path(managed.path).exists()
    assert (tmp_path / "a b" / "_delta_log").is_dir()
    spark.sql(f"CREATE TABLE {database}.e USING delta LOCATION '{tmp_path}/a b'")
    assert spark.table(f"{database}.e").count() == 1


def test_options_of_a_table_are_told_nowhere(spark: SparkSession, database: str, tmp_path: Path) -> None:
    name = f"{database}.guarded"
    spark.sql(
        f"CREATE TABLE {name} (id INT) USING delta OPTIONS ('fs.s3a.secret.key' = '{SECRET}') LOCATION '{tmp_path}/g'"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1)")
    for statement in (
        f"SHOW CREATE TABLE {name}",
        f"DESCRIBE EXTENDED {name}",
        f"SHOW TBLPROPERTIES {name}",
        f"DESCRIBE DETAIL {name}",
        f"DESCRIBE HISTORY {name}",
        f"SHOW TABLE EXTENDED IN {database} LIKE 'guarded'",
        f"EXPLAIN EXTENDED SELECT * FROM {name}",
        f"EXPLAIN EXTENDED INSERT INTO {name} VALUES (2)",
    ):
        said = spark.sql(statement).collect()
        assert said, statement
        assert SECRET not in str(said), statement
    stored = spark._jsparkSession.sessionState().catalog().getTableMetadata(
        Metastore(Jvm.of(spark)).identifier([database], "guarded")
    )  # fmt: skip
    assert SECRET not in stored.toLinkedHashMap().toString() and stored.storage().properties().isEmpty()
    assert all(SECRET not in path.read_text() for path in (tmp_path / "g" / "_delta_log").glob("*.json"))


def test_options_of_a_read_are_not_in_its_plan(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE TABLE {database}.plain USING delta AS SELECT 1 AS id")
    read = spark.read.option("fs.s3a.secret.key", SECRET).table(f"{database}.plain")
    assert SECRET not in read._jdf.queryExecution().toString()
    assert read.count() == 1


# --- beyond one session and one process


def in_a_process(text: str, folder: Path) -> str:
    """What a program prints that runs in a process, and a JVM, of its own."""
    done = subprocess.run(
        [sys.executable, "-c", f"folder = {str(folder)!r}\n{_START}{text}"],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


_START = """
from pyspark.sql import SparkSession
import delta_ds

def session(hive=False):
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.warehouse.dir", folder + "/warehouse")
    if hive:
        url = f"jdbc:derby:;databaseName={folder}/metastore;create=true"
        builder = builder.config("spark.hadoop.javax.jdo.option.ConnectionURL", url).enableHiveSupport()
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    assert delta_ds.register(found).sql
    return found
"""


@pytest.mark.spark
@pytest.mark.slow
def test_session_after_a_stopped_one_has_statements_and_tables(tmp_path: Path) -> None:
    printed = in_a_process(
        """
first = session()
first.sql(f"CREATE TABLE t USING delta LOCATION '{folder}/t' AS SELECT id FROM range(3)")
first.stop()
second = session()
second.sql(f"CREATE TABLE IF NOT EXISTS t USING delta LOCATION '{folder}/t'")
print("deleted", second.sql("DELETE FROM t WHERE id = 1").collect()[0][0])
print("left", second.newSession().sql("SELECT * FROM t").count(), second.sql("OPTIMIZE t").count())
second.stop()
""",
        tmp_path,
    )
    assert "deleted 1\n" in printed and "left 2 1\n" in printed


@pytest.mark.spark
@pytest.mark.slow
def test_hive_metastore_keeps_tables_from_one_process_to_the_next(tmp_path: Path) -> None:
    in_a_process(
        """
spark = session(hive=True)
spark.sql("CREATE SCHEMA kept")
spark.sql("CREATE TABLE kept.m (id BIGINT, p STRING) USING delta PARTITIONED BY (p) COMMENT 'c'")
spark.sql("INSERT INTO kept.m VALUES (1, 'a'), (2, 'b')")
spark.sql(f"CREATE TABLE kept.e USING delta LOCATION '{folder}/e' AS SELECT 7 AS id")
spark.sql("CREATE VIEW kept.v AS SELECT id FROM kept.m WHERE p = 'a'")
spark.stop()
""",
        tmp_path,
    )
    printed = in_a_process(
        """
spark = session(hive=True)
print("tables", sorted(row.tableName for row in spark.sql("SHOW TABLES IN kept").collect()))
spark.sql("UPDATE kept.m SET id = id + 10 WHERE p = 'a'")
print("rows", sorted(map(tuple, spark.table("kept.m").collect())), spark.table("kept.v").collect()[0][0])
spark.sql("ALTER TABLE kept.m RENAME TO kept.renamed")
print("versions", spark.sql("DESCRIBE HISTORY kept.renamed").count())
spark.sql("DROP SCHEMA kept CASCADE")
spark.stop()
""",
        tmp_path,
    )
    assert "tables ['e', 'm', 'v']\n" in printed
    assert "rows [(2, 'b'), (11, 'a')] 11\n" in printed
    assert "versions 3\n" in printed
    assert (tmp_path / "e" / "_delta_log").is_dir() and not (tmp_path / "warehouse" / "kept.db").exists()
