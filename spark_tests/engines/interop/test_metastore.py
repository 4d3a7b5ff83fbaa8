"""Entries of a Hive metastore, both ways: what either engine registers, the other reads, writes and drops."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_tests.engines.interop import postgres
from spark_tests.engines.interop.application import Application
from spark_tests.engines.interop.delta_spark import JARS, SETTINGS, jars_at

pytestmark = pytest.mark.interop

_RUN = """
import json, sys
from pyspark.sql import SparkSession

told = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[1]").enableHiveSupport()
for name, text in told["settings"].items():
    builder = builder.config(name, text)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
if told["ours"]:
    import delta_ds

    delta_ds.register(spark)
answers = []
for text in told["statements"]:
    answers.append([[str(value) for value in row] for row in spark.sql(text).collect()])
print("ANSWERS " + json.dumps(answers))
spark.stop()
"""


def run(folder: Path, statements: list[str], *, ours: bool) -> list[list[list[str]]]:
    """What statements answer in a process of their own, with the metastore of a folder."""
    settings = {
        **({} if ours else {**SETTINGS, **jars_at(os.environ.get(JARS, ""))}),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={folder}/derby.log",
    }
    told = json.dumps({"settings": settings, "statements": statements, "ours": ours})
    done = subprocess.run(
        [sys.executable, "-c", _RUN, told],
        capture_output=True, text=True, timeout=600, cwd=folder, env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")]
    assert lines, done.stdout[-2000:] + done.stderr[-4000:]
    answers: list[list[list[str]]] = json.loads(lines[0].removeprefix("ANSWERS "))
    return answers


@pytest.mark.slow
def test_either_uses_the_entries_of_the_other(tmp_path: Path) -> None:
    pytest.importorskip("delta", reason="delta-spark is not installed here: run make test-interop")
    for ours, name in ((False, "theirs"), (True, "ours")):
        run(
            tmp_path,
            [
                f"CREATE SCHEMA {name}",
                f"CREATE TABLE {name}.managed (id INT, p STRING) USING delta PARTITIONED BY (p) COMMENT 'c'",
                f"INSERT INTO {name}.managed VALUES (1, 'a'), (2, 'b')",
                f"CREATE TABLE {name}.outside USING delta LOCATION '{tmp_path}/{name}_outside' AS SELECT 7 AS id",
                f"CREATE VIEW {name}.v AS SELECT id FROM {name}.managed WHERE id > 1",
            ],
            ours=ours,
        )
    for ours, name in ((True, "theirs"), (False, "ours")):
        answers = run(
            tmp_path,
            [
                f"SHOW TABLES IN {name}",
                f"SELECT * FROM {name}.managed ORDER BY id",
                f"SELECT * FROM {name}.v",
                f"INSERT INTO {name}.managed VALUES (3, 'c')",
                f"DELETE FROM {name}.managed WHERE id = 1",
                f"SELECT id FROM {name}.managed ORDER BY id",
                f"SELECT id FROM {name}.outside",
                f"DROP TABLE {name}.outside",
            ],
            ours=ours,
        )
        assert sorted(row[1] for row in answers[0]) == ["managed", "outside", "v"]
        assert (answers[1], answers[2]) == ([["1", "a"], ["2", "b"]], [["2"]])
        assert (answers[5], answers[6]) == ([["2"], ["3"]], [["7"]])
        assert (tmp_path / f"{name}_outside" / "_delta_log").exists()


@pytest.mark.slow
def test_applications_of_both_share_a_metastore_on_postgres(tmp_path: Path) -> None:
    pytest.importorskip("delta", reason="delta-spark is not installed here: run make test-interop")
    of_delta = {name: SETTINGS[name] for name in ("spark.sql.extensions", "spark.sql.catalog.spark_catalog")}
    of_delta |= {"spark.databricks.delta.snapshotPartitions": "1", **jars_at(os.environ.get(JARS, ""))}
    with postgres.running() as metastore:
        with Application(tmp_path, {**metastore, **postgres.MAKES_TABLES}, ours=True) as maker:
            maker.make_metastore()
        with (
            Application(tmp_path, metastore, ours=True) as ours,
            Application(tmp_path, {**metastore, **of_delta}, ours=False) as theirs,
        ):
            ours.sql("CREATE SCHEMA shop")
            ours.sql("CREATE TABLE shop.a (id INT, p STRING) USING delta PARTITIONED BY (p)")
            theirs.sql("INSERT INTO shop.a VALUES (1, 'x'), (2, 'y')")
            ours.sql("ALTER TABLE shop.a ADD COLUMN n INT")
            theirs.sql("UPDATE shop.a SET n = 7 WHERE id = 1")
            assert ours.sql("SELECT * FROM shop.a ORDER BY id") == [["1", "x", "7"], ["2", "y", "None"]]
            ours.sql("ALTER TABLE shop.a RENAME TO shop.renamed")
            assert theirs.sql("SELECT count(*) FROM shop.renamed") == [["2"]]
            theirs.sql("CREATE TABLE shop.plain USING parquet AS SELECT 1 AS id")
            theirs.sql("CREATE TABLE shop.b USING delta AS SELECT 5 AS id")
            ours.sql("INSERT INTO shop.plain VALUES (2)")
            ours.sql("INSERT INTO shop.b VALUES (6)")
            assert theirs.sql("SELECT sum(id) FROM shop.plain UNION ALL SELECT sum(id) FROM shop.b") == [
                ["3"], ["11"],
            ]  # fmt: skip
            theirs.sql("DROP TABLE shop.renamed")
            assert sorted(row[1] for row in ours.sql("SHOW TABLES IN shop")) == ["b", "plain"]
