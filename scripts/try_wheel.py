"""Run every example and one of each command in this interpreter, into which nothing but the wheel was installed.

    make wheel

What a user gets by `pip install` must be enough: an import that only the extras bring, or a warning, is a failure here.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import io
import os
import runpy
import sys
import tempfile
import threading
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
EXTRAS = ("pandas", "grpc", "s3fs", "gcsfs", "adlfs", "typer", "rich")
# What tables are like decides the way in which a command writes.
TABLES: dict[str, dict[str, str]] = {
    "plain": {},
    "with a change feed": {"delta.enableChangeDataFeed": "true"},
    "with deletion vectors": {"delta.enableDeletionVectors": "true"},
    "with row tracking": {"delta.enableRowTracking": "true"},
    "with columns by id": {"delta.columnMapping.mode": "id"},
}


def environment() -> Iterator[str]:
    """What is wrong with the environment."""
    import delta_ds

    installed = Path(delta_ds.__file__).resolve().parent
    if installed == ROOT / "delta_ds":
        yield f"the package comes from the repository, not from the wheel: {installed}"
    if (named := importlib.metadata.version("delta-ds")) != delta_ds.__version__:
        yield f"the wheel is called {named}, the package in it {delta_ds.__version__}"
    for pattern in ("*.py", "*.java", "*.html", "*.js", "*.css", "*.svg", "py.typed"):
        for file in (ROOT / "delta_ds").rglob(pattern):
            if not (installed / file.relative_to(ROOT / "delta_ds")).is_file():
                yield f"the wheel lacks {file.relative_to(ROOT)}"
    from delta.tables import DeltaTable  # of the distribution delta-ds-names

    if DeltaTable is not delta_ds.DeltaTable:
        yield f"the package 'delta' is another's: {DeltaTable.__module__}"
    for name in EXTRAS:
        if importlib.util.find_spec(name) is not None:
            yield f"{name} is installed, which a plain install does not bring"


def examples(spark: Any, folder: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The examples, by name."""
    sales = str(EXAMPLES / "data" / "sales")
    for file in sorted(EXAMPLES.glob("*.py")):
        main = runpy.run_path(str(file))["main"]
        wanted = main.__code__.co_varnames[: main.__code__.co_argcount]
        (own := Path(folder, file.stem)).mkdir()
        given = {"spark": spark, "folder": str(own), "path": sales}
        # What takes no session makes one of its own, and stops it: it comes last.
        if wanted:
            yield file.name, lambda main=main, given=[given[n] for n in wanted]: main(*given)  # type: ignore[misc]
    yield "quickstart.py", runpy.run_path(str(EXAMPLES / "quickstart.py"))["main"]


def row_commands(spark: Any, folder: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What changes rows and files, on each kind of table."""
    from delta_ds import DeltaTable

    source = spark.range(90, 110).selectExpr("id", "1L AS k").alias("s")
    for kind, properties in TABLES.items():
        path = f"{folder}/{kind.replace(' ', '_')}"
        rows = spark.range(100).selectExpr("id", "id % 3 AS k").repartition(2)
        rows.write.format("pydelta").options(**properties).save(path)
        table = DeltaTable.forPath(spark, path)
        merge = table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
        for name, call in {
            "delete": lambda table=table: table.delete("id = 5"),
            "update": lambda table=table: table.update("id = 6", {"k": "9"}),
            "merge": merge.execute,
            "executeCompaction": lambda table=table: table.optimize().executeCompaction(),
            "executeZOrderBy": lambda table=table: table.optimize().executeZOrderBy("k"),
            "read": lambda path=path: check_rows(spark, path),
        }.items():
            yield f"{name} of a table {kind}", call
        if "delta.enableRowTracking" in properties:
            yield "blame", lambda table=table: table.blame("id = 6").collect()


def check_rows(spark: Any, path: str) -> None:
    """Ids from 0 to 109 without 5."""
    found = sorted(row.id for row in spark.read.format("pydelta").load(path).collect())
    assert found == [n for n in range(110) if n != 5], found


def commands(spark: Any, folder: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """One of each other command."""
    from delta_ds import DeltaTable

    path, parquet = f"{folder}/t", f"{folder}/parquet"
    rows = spark.range(40).selectExpr(
        "id", "id % 2 AS p", "timestamp_seconds(id) AS t", "CAST(id AS string) AS s"
    )
    yield "save", lambda: rows.write.format("pydelta").partitionBy("p").save(path)
    table = DeltaTable.forPath(spark, path)
    read = spark.read.format("pydelta").option("versionAsOf", 0)
    stream = spark.readStream.format("pydelta").load(path).writeStream.format("pydelta")
    stream = stream.option("checkpointLocation", f"{folder}/c").trigger(availableNow=True)
    spark.range(100).selectExpr("id", "id % 70 AS p").write.partitionBy("p").parquet(parquet)
    yield "through Python", lambda: through_python(spark, rows, f"{folder}/portable")
    yield "writeTo", lambda: rows.writeTo(f"pydelta.`{path}`").append()
    yield "time travel", lambda: read.load(path).count()
    yield "SQL function", lambda: spark.sql(f"SELECT max(id) FROM pydelta('{path}')").collect()
    yield "addConstraint", lambda: table.addConstraint("positive", "id >= 0")
    yield "setProperties", lambda: table.setProperties({"delta.enableChangeDataFeed": "true"})
    yield "detail, history", lambda: (table.detail().collect(), table.history().collect())
    yield "toDF", lambda: table.toDF().orderBy("id").collect()
    yield "generate", lambda: table.generate("symlink_format_manifest")
    yield "clone", lambda: table.clone(f"{folder}/clone", isShallow=True)
    yield "restoreToVersion", lambda: table.restoreToVersion(0)
    yield "vacuum", table.vacuum
    yield "checkpoint", table.checkpoint
    yield "convertToDelta", lambda: DeltaTable.convertToDelta(spark, f"parquet.`{parquet}`", "p bigint")
    yield "the page of pydelta ui", lambda: page_of_table(path)
    yield "stream", lambda: stream.start(f"{folder}/sink").awaitTermination()


def through_python(spark: Any, rows: Any, path: str) -> None:
    """What the native path leaves to Arrow."""
    spark.conf.set("spark.pydelta.nativeWrite", "false")
    spark.conf.set("spark.pydelta.nativeScan", "false")
    try:
        rows.write.format("pydelta").save(path)
        assert len(spark.read.format("pydelta").load(path).collect()) == 40
    finally:
        spark.conf.unset("spark.pydelta.nativeWrite")
        spark.conf.unset("spark.pydelta.nativeScan")


def page_of_table(path: str) -> None:
    """The page and its answers, as `pydelta ui` serves them; the command line itself needs the extra `cli`."""
    from delta_ds import DeltaLog
    from delta_ds.cli.ui.server import open_server
    from delta_ds.cli.ui.view import TableView

    with open_server(TableView(DeltaLog(path)), "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name in (
            "",
            "app.js",
            "style.css",
            "icon.svg",
            "api/table",
            "api/timeline",
            "api/rows?version=0",
        ):
            with urllib.request.urlopen(server.url + name, timeout=60) as reply:
                assert reply.read(), name
        server.shutdown()


def attempt(call: Callable[[], Any]) -> str | None:
    """What went wrong with a call, in one line."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            call()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    return None


def main() -> int:
    failed = list(environment())
    warnings.simplefilter("error")
    # py4j leaves sockets to the garbage collector.
    warnings.simplefilter("ignore", ResourceWarning)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Queries are small and many: the time goes into compiling, of which the first tier is enough.
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
    from pyspark.sql import SparkSession

    import delta_ds

    folder = tempfile.mkdtemp()
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "1")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    delta_ds.register(spark)
    for part in (row_commands, commands, examples):
        for name, call in part(spark, folder):
            began = time.monotonic()
            problem = attempt(call)
            print(f"{time.monotonic() - began:6.1f} s  {name}", flush=True)
            if problem is not None:
                failed.append(f"{name}: {problem}")
    print(f"pyspark {spark.version}:", "\n".join(failed) or "every example and command works")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
