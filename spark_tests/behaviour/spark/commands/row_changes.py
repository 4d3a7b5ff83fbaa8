"""Commands that change rows, layouts of tables to run them on, and all that a command leaves."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_ds import DeltaLog, DeltaTable
from delta_ds.spark.commands.dml_command import DmlExecution

LAYOUTS: dict[str, dict[str, str]] = {
    "files are replaced": {},
    "partitioned": {"partitionBy": "p"},
    "feed": {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"},
    "rows are marked": {"delta.enableDeletionVectors": "true"},
    "marked, feed and ids": {
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.enableRowTracking": "true",
    },
}


def found_by_arrow(monkeypatch: pytest.MonkeyPatch, *, wanted: bool) -> None:
    """Let Arrow find all rows of commands, or none."""
    by_arrow = DmlExecution.by_arrow

    def always(*arguments: Any, **options: Any) -> Any:
        found = by_arrow(*arguments, **options)
        assert found is not None
        return found

    monkeypatch.setattr(DmlExecution, "by_arrow", always if wanted else lambda *_, **__: None)


def told_by_spark(path: str, command: Callable[[DeltaTable], Any], spark: SparkSession) -> list[str]:
    """Why Spark found the rows of a command that a client of a server runs; none where the kernel did."""
    from delta_ds.spark.commands import kernel_command

    told: list[str] = []

    class Told:
        @staticmethod
        def log(**values: Any) -> None:
            told.append(values["reason"])

    before = kernel_command.ROWS_FOUND_BY_SPARK
    kernel_command.ROWS_FOUND_BY_SPARK = Told  # type: ignore[misc, assignment]
    try:
        command(DeltaTable.forPath(spark, path))
    finally:
        kernel_command.ROWS_FOUND_BY_SPARK = before  # type: ignore[misc]
    return told


def only_at_server(spark: SparkSession, path: str) -> DeltaTable:
    """A table, in a client that cannot run commands itself from now on."""
    from delta_ds.spark.commands import row_commands

    row_commands.DmlExecution = None  # type: ignore[misc, assignment]
    return DeltaTable.forPath(spark, path)


def make_table(path: Path, options: dict[str, str]) -> str:
    for start in (0, 20, 40):
        ids = range(start, start + 20)
        rows = {
            "id": pa.array(ids, pa.int64()),
            "p": pa.array([None if i % 5 == 0 else f"{i % 3}=ü" for i in ids], pa.string()),
            "v": pa.array([i * 10 for i in ids], pa.int64()),
            "s": pa.array([{"a": i, "b": None} for i in ids], pa.struct({"a": pa.int64(), "b": pa.string()})),
        }
        DeltaLog(path).write(pa.table(rows), options=options if not start else {})
    return str(path)


def make_ruled_table(spark: SparkSession, path: Path, options: dict[str, str], rules: tuple[str, str]) -> str:
    """The same rows in a table with a generated column `g` and a constraint, given as SQL."""
    generated, constraint = rules
    rows = spark.read.format("pydelta").load(make_table(path / "rows", {}))
    builder = DeltaTable.create(spark).location(str(path / "table")).addColumns(rows.schema)
    builder = builder.addColumn("g", "BIGINT", generatedAlwaysAs=generated)
    for name, value in options.items():
        builder = (
            builder.partitionedBy(value, "g") if name == "partitionBy" else builder.property(name, value)
        )
    table = builder.execute()
    for start in (0, 20, 40):
        some = rows.where(f"id >= {start} AND id < {start + 20}").coalesce(1)
        some.write.format("pydelta").mode("append").save(str(path / "table"))
    table.addConstraint("short", constraint)
    return str(path / "table")


def rules_of_another_engine(path: str, written: tuple[str, str], rules: tuple[str, str]) -> None:
    """Put others in the place of the rules of a table, in its log: those that this package refuses to write."""
    for file in sorted((Path(path) / "_delta_log").iterdir()):
        if file.suffix == ".crc" or file.name.startswith("."):
            file.unlink()
        elif file.suffix == ".json":
            text = file.read_text()
            for one, other in zip(written, rules, strict=True):
                text = text.replace(json.dumps(one)[1:-1], json.dumps(other)[1:-1])
            file.write_text(text)


def merge_of(table: DeltaTable, source: str) -> Any:
    rows = table._handle.spark.sql(source)
    return table.alias("t").merge(rows.alias("s"), "t.id = s.id")


def _upsert(table: DeltaTable) -> None:
    source = "SELECT id * 3 AS id, 'neu' AS p, -id AS v, NULL AS s FROM range(30)"
    merge = (
        merge_of(table, source)
        .whenMatchedDelete("t.v = 30")
        .whenMatchedUpdate("t.v > 60", {"v": "s.v + t.v"})
    )
    merge.whenNotMatchedInsert("s.id < 80", {"id": "s.id", "p": "s.p"}).execute()


def _update_all(table: DeltaTable) -> None:
    source = "SELECT id, 'x' AS p, id AS v, named_struct('a', 1L, 'b', 'y') AS s FROM range(50, 70)"
    merge_of(table, source).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def _by_source(table: DeltaTable) -> None:
    merge = merge_of(table, "SELECT id FROM range(10, 200)").whenMatchedUpdate("t.id < 15", {"p": "NULL"})
    merge = merge.whenNotMatchedBySourceDelete("t.id < 4").whenNotMatchedBySourceUpdate(
        "t.id > 7", {"v": "0"}
    )
    merge.whenNotMatchedInsert("s.id > 198", {"id": "s.id"}).execute()


def _repeated(table: DeltaTable) -> None:
    merge_of(table, "SELECT id % 7 AS id FROM range(50)").whenMatchedDelete().execute()


COMMANDS: dict[str, Callable[[DeltaTable], Any]] = {
    "delete": lambda table: table.delete("id % 4 = 1 OR id >= 40"),
    "update a column": lambda table: table.update("v % 40 = 0", {"v": "v + id"}),
    "update a partition and a field": lambda table: table.update("id IN (3, 50)", {"p": "'a b'", "S.B": "p"}),
    "upsert": _upsert,
    "update all": _update_all,
    "by source": _by_source,
    "repeated": _repeated,
}


def state_of(path: str) -> dict[str, Any]:
    log = DeltaLog(path)
    rows = sorted(map(repr, log.snapshot().scan().to_arrow().to_pylist()))
    (last,) = log.history(1)
    counts = {k: v for k, v in last["operationMetrics"].items() if "Rows" in k or "Removed" in k}
    changes: list[str] = []
    if log.snapshot().properties.get("delta.enableChangeDataFeed") == "true":
        found = log.changes(last["version"], last["version"]).to_arrow()
        changes = sorted(map(repr, found.drop_columns(["_commit_timestamp"]).to_pylist()))
    parameters = re.sub(r"#\d+L?", "", str(last["operationParameters"]))
    return {"rows": rows, "counts": counts, "changes": changes, "parameters": parameters}
