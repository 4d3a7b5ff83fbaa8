"""What pages have that do not make it themselves: the tables their examples begin with.

A page of the guide makes what it needs; a page that is a list of commands begins with tables that its reader has.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_tests.product.docs.blocks import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds import DeltaLog


def examples(folder: Path, spark: SparkSession | None) -> dict[str, Any]:
    """The examples, and their table."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copytree(ROOT / "examples" / "data" / "sales", folder / "sales")
    return {}


def command_line(folder: Path, spark: SparkSession | None) -> dict[str, Any]:
    shutil.copytree(ROOT / "examples" / "data" / "sales", folder / "sales")
    year = folder / "parquet_folder" / "year=2026"
    year.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), year / "part.parquet")
    return {}


def commands(folder: Path, spark: SparkSession | None) -> dict[str, Any]:
    """A table of 13 versions, the last of 2024; a source of a merge; a folder of Parquet files; an inventory."""
    from pyspark.sql.types import StructType

    from delta_ds import DeltaLog, DeltaTable

    assert spark is not None
    sales = str(folder / "sales")
    columns = (
        "id BIGINT, day STRING, v INT, s STRUCT<name: STRING>, seen DATE, stale BOOLEAN, customer STRING"
    )
    builder = DeltaTable.create(spark).location(sales).addColumns(StructType.fromDDL(columns))
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableExpiredLogCleanup": "false"}
    for name, value in properties.items():
        builder = builder.property(name, value)
    builder.partitionedBy("day").execute()
    made = pa.table(
        {
            "id": [7, 8],
            "day": ["2019-05-01", "2024-05-01"],
            "v": pa.array([1, 2], pa.int32()),
            "s": [{"name": "a"}, {"name": "b"}],
            "seen": [datetime(2020, 1, 1).date()] * 2,
            "stale": [False, False],
            "customer": ["x", "y"],
        }
    )
    DeltaLog(str(folder / "clustered")).write(made, options={"clusterBy": "customer"})
    for _ in range(12):
        DeltaLog(sales).write(made)
    for commit in (folder / "sales" / "_delta_log").glob("*.json"):
        moment = datetime(2024, 1, 31, 12, int(commit.stem), tzinfo=timezone.utc).timestamp()
        os.utime(commit, (moment, moment))
    source = spark.sql(
        "SELECT id, '2024-05-01' AS day, 3 AS v, named_struct('name', 'c') AS s, current_date() AS seen,"
        " false AS stale, 'z' AS customer, id = 100 AS deleted FROM range(100, 103)"
    )
    for year in (2023, 2024):
        month = folder / "events" / f"year={year}" / "month=1"
        month.mkdir(parents=True)
        pq.write_table(pa.table({"id": [1]}), month / "part.parquet")
    files = [file for file in (folder / "sales").rglob("*") if file.is_file()]
    pq.write_table(
        pa.table({"key": [str(file) for file in files], "size": [file.stat().st_size for file in files]}),
        folder / "inventory.parquet",
    )
    return {"source": source}


def orders(folder: Path, spark: SparkSession | None) -> dict[str, Any]:
    from delta_ds import DeltaLog

    DeltaLog(str(folder / "orders")).write(pa.table({"id": [1, 2, 3]}))
    return {}


WEEKS = 24


def weekly_orders(path: Path) -> DeltaLog:
    """Orders of some weeks, one commit a week, each with orders of all customers; then a DELETE of some."""
    from delta_ds import DeltaLog
    from delta_ds.kernel.commands.dml.delete import delete

    log, chance = DeltaLog(path), random.Random(7)
    # The commits are older than logs are kept.
    first = {"delta.targetFileSize": "24kb", "delta.enableExpiredLogCleanup": "false"}
    for week in range(WEEKS):
        log.write(_week_of_orders(chance, week), options=first if week == 0 else {})
        date_commit(log, week)
    delete(log, "customer = 500")
    date_commit(log, WEEKS)
    return log


def date_commit(log: DeltaLog, week: int) -> None:
    """Make the commit of a version one of its week."""
    moment = datetime(2026, 1, 11, 20, tzinfo=timezone.utc) + timedelta(weeks=week)
    os.utime(Path(log.storage.url) / "_delta_log" / f"{week:020}.json", (moment.timestamp(),) * 2)


def _week_of_orders(chance: random.Random, week: int) -> pa.Table:
    first, rows = date(2026, 1, 5) + timedelta(weeks=week), 900 + 40 * week
    return pa.table(
        {
            "order_id": [100_000 + week * 2000 + n for n in range(rows)],
            "day": [first + timedelta(days=chance.randrange(7)) for _ in range(rows)],
            "customer": [chance.randrange(1000) for _ in range(rows)],
            "amount": [Decimal(chance.randrange(100, 20_000)) / 100 for _ in range(rows)],
            "items": [["apples", "bread", "honey"][: chance.randrange(1, 4)] for _ in range(rows)],
        },
        schema=pa.schema(
            [
                ("order_id", pa.int64()),
                ("day", pa.date32()),
                ("customer", pa.int32()),
                ("amount", pa.decimal128(10, 2)),
                ("items", pa.list_(pa.string())),
            ]
        ),
    )


def notebooks(folder: Path, spark: SparkSession | None) -> dict[str, Any]:
    weekly_orders(folder / "orders")
    return {}


PREPARED: dict[str, Callable[[Path, Any], dict[str, Any]]] = {
    "docs/guide/notebooks.md": notebooks,
    "docs/guide/ui.md": examples,
    "README.md": examples,
    "docs/command-line.md": command_line,
    "docs/commands.md": commands,
    "docs/connect.md": orders,
    "docs/errors.md": orders,
    "docs/streaming.md": orders,
}
