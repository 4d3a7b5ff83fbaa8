"""Run a dbt project over and over in one process, and print what came of it as JSON.

    python -m delta_ds run -- steps.py FOLDER
    steps.py FOLDER HOST PORT

FOLDER holds a copy of `project`, whose seeds are changed in between. With an address it is run by the Thrift method, by
the server there. Imports nothing but dbt, pyspark and pyhive, as delta-spark's jar can run it as well.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner

TABLES = (
    "customer_view", "daily", "appended", "merged", "overwritten", "by_batch", "contracted", "counter",
    "customer_history", "renamed", "travelled",
)  # fmt: skip
HIDDEN = ("dbt_scd_id", "dbt_updated_at", "dbt_valid_from")


class Steps:
    """The commands of dbt that were run, each with what it said of every node."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.report: dict[str, Any] = {}
        self._notes: list[str] = []
        self._dbt = dbtRunner(callbacks=[self._hear])

    def _hear(self, event: Any) -> None:
        message = str(event.info.msg)
        if message.startswith("NOTE "):
            self._notes.append(message.removeprefix("NOTE "))

    def run(self, name: str, *arguments: str) -> None:
        """Run a command of dbt."""
        self._notes = []
        result = self._dbt.invoke(list(arguments))
        found = [one for one in getattr(result.result, "results", []) if hasattr(one, "node")]
        failed = {
            one.node.name: str(one.message) for one in found if str(one.status) not in ("success", "pass")
        }
        said = str(result.exception) if result.exception is not None else None
        self.report[name] = {"success": result.success, "nodes": len(found), "failed": failed, "error": said}
        if self._notes:
            self.report[name]["notes"] = self._notes

    def rows(self, name: str, schema: str) -> None:
        """Note what is in the tables."""
        tables = _tables_of_session if "SHOP_PORT" not in os.environ else _tables_of_server
        self.report[name] = {
            table: sorted(
                ", ".join(f"{column}={value}" for column, value in row.items() if column not in HIDDEN)
                for row in rows
            )
            for table, rows in tables(schema)
        }


_Rows = Iterator[tuple[str, list[dict[str, Any]]]]


def _tables_of_session(schema: str) -> _Rows:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    for table in TABLES:
        if spark.catalog.tableExists(f"{schema}.{table}"):
            yield table, [row.asDict() for row in spark.table(f"{schema}.{table}").collect()]


def _tables_of_server(schema: str) -> _Rows:
    from pyhive import hive

    connection = hive.connect(os.environ["SHOP_HOST"], int(os.environ["SHOP_PORT"]), username="me")
    cursor = connection.cursor()
    cursor.execute(f"SHOW TABLES IN {schema}")
    there = {name for _, name, _ in cursor.fetchall()}
    for table in TABLES:
        if table in there:
            cursor.execute(f"SELECT * FROM {schema}.{table}")
            columns = [column.rpartition(".")[2] for column, *_ in cursor.description]
            yield table, [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    connection.close()


def main(folder: Path, *address: str) -> None:
    if address:
        os.environ["SHOP_HOST"], os.environ["SHOP_PORT"] = address
        os.environ["SHOP_TARGET"] = "thrift"
    os.environ["SHOP_FOLDER"] = str(folder)
    os.environ["DBT_PROFILES_DIR"] = os.environ["DBT_PROJECT_DIR"] = str(folder / "project")
    os.environ["DBT_TARGET_PATH"], os.environ["DBT_LOG_PATH"] = str(folder / "target"), str(folder / "logs")
    steps = Steps(folder)
    steps.run("debug", "debug")
    steps.run("first", "build")
    steps.rows("rows of the first", "shop")
    seeds = folder / "project" / "seeds"
    (seeds / "customers.csv").write_text("id,name,country\n1,Ada,DE\n2,Bob,FR\n4,Di,DE\n")
    (seeds / "orders.csv").write_text((seeds / "orders.csv").read_text() + "5,2,2026-01-04,8.0\n")
    steps.run("second", "build", "--vars", "{rise: 1}")
    steps.rows("rows of the second", "shop")
    steps.run("docs", "docs", "generate")
    steps.run("freshness", "source", "freshness")
    steps.run("show", "show", "--select", "daily", "--limit", "2")
    shutil.copytree(folder / "target", folder / "state")
    copy = "thrift_copy" if address else "copy"
    steps.run("clone", "clone", "--target", copy, "--state", str(folder / "state"))
    steps.rows("rows of the clones", "shop_copy")
    steps.run("operations", "run-operation", "look", "--args", "{schema: shop}")
    steps.run("full refresh", "build", "--full-refresh")
    steps.rows("rows of the full refresh", "shop")
    catalog = json.loads((folder / "target" / "catalog.json").read_text())["nodes"]
    steps.report["catalog"] = {
        name.split(".")[-1]: [column["name"] for column in node["columns"].values()]
        for name, node in sorted(catalog.items())
    }
    print("REPORT " + json.dumps(steps.report))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *sys.argv[2:])
