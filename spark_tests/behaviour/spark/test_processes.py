"""What only a process of its own can show: auto-discovery, Spark Connect, and which modules are imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_tests.full_form import FULL

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[3]


def run(program: str, *arguments: str, **environment: str) -> Any:
    """Run a program in a fresh interpreter; its last line of output is JSON."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, **environment},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


SQL_ONLY = """
import json, sys
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.driver.memory", "512m").config("spark.ui.showConsoleProgress", "false").getOrCreate())
path = sys.argv[1]
spark.sql(f"CREATE TEMPORARY VIEW latest USING pydelta OPTIONS (path '{path}')")
spark.sql(f"CREATE TEMPORARY VIEW second USING pydelta OPTIONS (path '{path}', versionAsOf '2')")
answer = {"latest": spark.sql("SELECT count(*) FROM latest").first()[0],
          "second": spark.sql("SELECT count(*) FROM second").first()[0],
          "joined": spark.sql("SELECT count(*) FROM latest JOIN second USING (order_id)").first()[0],
          "imported": "delta_ds" in sys.modules}
spark.stop()
print(json.dumps(answer))
"""


@pytest.mark.spark
@pytest.mark.slow
def test_session_that_never_heard_of_the_package_reads_in_sql(sales: str) -> None:
    from delta_ds import DeltaLog

    log = DeltaLog(sales)
    latest, second = (log.snapshot(v).scan(columns=["order_id"]).to_arrow()["order_id"] for v in (7, 2))
    joined = len(set(latest.to_pylist()) & set(second.to_pylist()))
    answer = run(SQL_ONLY, sales)
    assert answer == {"latest": len(latest), "second": 120, "joined": joined, "imported": False}


CONNECT = """
import json, sys, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local[2]").config("spark.driver.memory", "1g").getOrCreate()
import delta_ds
path = sys.argv[1]
registration = delta_ds.register(spark)
read = lambda **o: spark.read.format("pydelta").options(**o).load(path)
df = read()
table = delta_ds.DeltaTable.forPath(spark, path)
history = table.history(3).collect()
answer = {
    "session": registration.session,
    "rows": df.count(),
    "filtered": df.where("country = 'DE'").count(),
    "again": df.count(),
    "version": read(versionAsOf=1).count(),
    "columns": spark.read.format("pydelta").schema("country string, order_id long").load(path).columns,
    "changes": read(readChangeFeed="true", startingVersion=1, endingVersion=1).count(),
    "history": [[h.version, h.operation] for h in history],
    "files": table.detail().collect()[0].numFiles,
    "is_table": [delta_ds.DeltaTable.isDeltaTable(spark, p) for p in (path, "/no/such/path")],
    "alias": table.alias("t").toDF().where("t.country = 'DE'").count(),
}
try:
    read(verionAsOf=1).count()
except Exception as error:
    answer["error"] = str(error)
df.limit(5).write.format("pydelta").mode("append").option("partitionBy", "country").save(path + "_copy")
made = delta_ds.DeltaTable.create(spark).location(path + "_made").addColumn("id", "bigint").execute()
made.addConstraint("positive", "id > 0")
spark.range(1, 4).write.format("pydelta").mode("append").save(path + "_made")
answer["written"] = [spark.read.format("pydelta").load(path + "_copy").count(), made.toDF().count()]
try:
    spark.range(1).write.format("pydelta").mode("append").save(path + "_made")
except Exception as error:
    answer["refused"] = "CHECK constraint positive (id > 0) violated" in str(error)
spark.stop()
print(json.dumps(answer))
"""


@pytest.mark.connect
@pytest.mark.slow
@pytest.mark.skipif(
    not FULL,
    reason="test_connect.py shows it on a server; DELTA_DS_FULL=1 runs it on the one that Spark starts by itself",
)
def test_spark_connect_answers_as_a_classic_session_does(sales: str) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: install delta-ds[connect]")
    from delta_ds import DeltaLog

    snapshot = DeltaLog(sales).snapshot()
    german = snapshot.scan("country = 'DE'").to_arrow().num_rows
    rows = snapshot.scan().to_arrow().num_rows
    answer = run(CONNECT, sales)
    assert "did you mean 'versionAsOf'" in answer.pop("error")
    assert answer == {
        "session": "connect", "rows": rows, "filtered": german, "again": rows, "version": 60,
        "columns": ["country", "order_id"], "changes": 60, "files": 18, "is_table": [True, False], "alias": german,
        "history": [[7, "WRITE"], [6, "MERGE"], [5, "DELETE"]], "written": [5, 3], "refused": True,
    }  # fmt: skip


IMPORTS = """
import json, sys
steps = {}
def step(name):
    watched = ("pyspark", "pandas", "pyarrow", "numpy", "sqlglot", "fsspec", "pyarrow.dataset", "delta_ds.kernel")
    steps[name] = sorted(m for m in watched if m in sys.modules)
import delta_ds, pyspark_pydelta
step("package")
from delta_ds.spark.engines.portable.source import DeltaSource
before = {m for m in ("pandas", "sqlglot", "pyarrow.dataset") if m in sys.modules}
step("source")
source = DeltaSource({"path": sys.argv[1]})
schema = source.schema()
step("schema")
from pyspark.sql.datasource import EqualTo, GreaterThan
reader = source.reader(schema)
reader.accept_filters()
reader.pushFilters([EqualTo(("country",), "DE"), GreaterThan(("order_id",), 3999)])
assert reader.partitions()
step("partitions")
print(json.dumps(steps))
"""


@pytest.mark.parametrize("cache", ["on", "off"])
def test_planning_a_read_imports_nothing_heavy(sales: str, tmp_path: Path, cache: str) -> None:
    where = {"DELTA_DS_CACHE": "off"} if cache == "off" else {"XDG_CACHE_HOME": str(tmp_path)}
    steps = run(IMPORTS, sales, **where)
    assert steps["package"] == []
    assert not {"pandas", "pyarrow", "numpy", "sqlglot", "fsspec"} & set(steps["source"])
    # Not pandas: pyarrow itself imports it, where it is installed, as soon as a Python value becomes an array.
    assert not {"sqlglot", "fsspec", "pyarrow.dataset"} & set(steps["partitions"])
    assert "pandas" not in steps["schema"]


STREAM_IMPORTS = """
import json, sys
from delta_ds.spark.engines.portable.source import DeltaSource
options = {"path": sys.argv[1], "pydelta.isstream": "2", "startingVersion": "0", "ignoreChanges": "true"}
source = DeltaSource(options)
reader = source.streamReader(source.schema())
start = reader.initialOffset()
end = reader.latestOffset(start, reader.getDefaultReadLimit())
assert reader.partitions(start, end)
print(json.dumps(sorted({"pandas", "sqlglot", "pyarrow.dataset"} & set(sys.modules))))
"""


def test_planning_a_stream_imports_nothing_heavy(sales: str) -> None:
    pytest.importorskip("pyspark.sql.streaming.datasource", reason="Spark 4.1 has no limits")
    # Spark starts a new interpreter for every query, which waits for it.
    assert run(STREAM_IMPORTS, sales) == []


def test_discovery_module_never_breaks_a_session(tmp_path: Path) -> None:
    # Spark imports it in every session: without pyspark's data sources it must look empty, not fail.
    program = """
import json, sys
sys.modules["pyspark.sql.datasource"] = None
import pyspark_pydelta
print(json.dumps([hasattr(pyspark_pydelta, "DefaultSource"), hasattr(pyspark_pydelta, "other")]))
"""
    assert run(program) == [False, False]


ROW_COMMANDS = """
import json, os, shutil, sys
os.environ.pop("PYSPARK_PYTHON", None)
from pyspark.sql import SparkSession
import delta_ds
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.driver.memory", "512m").config("spark.ui.showConsoleProgress", "false").getOrCreate())
delta_ds.register(spark)
chosen = spark.sparkContext.pythonExec
path = sys.argv[1]
spark.range(20).selectExpr("id", "id AS v").write.format("pydelta").save(path)
table = delta_ds.DeltaTable.forPath(spark, path)
table.delete("id = 3")
table.update("id = 4", {"v": "-4"})
source = spark.range(18, 22).selectExpr("id", "-id AS v")
merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
rows = table.toDF().where("v < 0").orderBy("id").collect()
answer = {"rows": [row.id for row in rows], "count": table.toDF().count(),
          "same": chosen == spark.sparkContext.pythonExec,
          "foreign": shutil.which(chosen) != sys.executable}
spark.stop()
print(json.dumps(answer))
"""


@pytest.mark.spark
@pytest.mark.slow
def test_rows_change_where_the_python3_of_the_path_lacks_the_package(tmp_path: Path) -> None:
    bare = tmp_path / "bin" / "python3"
    bare.parent.mkdir()
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    bare.chmod(0o755)
    answer = run(ROW_COMMANDS, str(tmp_path / "t"), PATH=f"{bare.parent}{os.pathsep}{os.environ['PATH']}")
    assert answer == {"rows": [4, 18, 19, 20, 21], "count": 21, "same": True, "foreign": True}
