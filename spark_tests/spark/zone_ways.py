"""Every way in which a local time without a zone comes in, asked of a table whose commits lie hours apart.

The functions here run in sessions of any kind, in whatever process.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from delta_ds import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The instants of versions 0 to 2. The zones are hours away from UTC: a wrong one names another version, or none.
COMMITS = [dt.datetime(2024, 1, 15, hour, tzinfo=dt.timezone.utc) for hour in (12, 13, 14)]
ZONES = ["America/New_York", "Asia/Kolkata"]
_BETWEEN = dt.timedelta(minutes=30)


def make(spark: SparkSession, folder: Path) -> str:
    """A table of three versions, each with one more row."""
    path = str(folder / "t")
    options = {"delta.enableChangeDataFeed": "true"}
    for number, instant in enumerate(COMMITS):
        rows = spark.range(number, number + 1).coalesce(1)
        rows.write.format("pydelta").mode("append").options(**(options if not number else {})).save(path)
        seconds = instant.timestamp()
        os.utime(Path(path, "_delta_log", f"{number:020}.json"), (seconds, seconds))
    return path


def ids_by_way(spark: SparkSession, path: str, folder: str, zone: str, sql: bool) -> dict[str, list[int]]:
    """The ids that each way of asking gives, in a session of a zone.

    Parameters
    ----------
    folder
        Where copies and clones go, and checkpoints of streams.
    sql
        Whether the session knows all statements and functions, which plain servers of Spark Connect do not.
    """
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        ways = {**_reads(spark, path, zone), **_commands(spark, path, folder, zone)}
        if sql:
            ways |= _statements(spark, path, folder, zone)
        return {way: _ids(rows()) for way, rows in ways.items()}
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


def expected(way: str) -> list[int]:
    """The ids of the rows that a way gives: up to the time between versions 1 and 2, or from then on."""
    return [2] if way.startswith("from") else [0, 1]


def _at(zone: str, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return (COMMITS[1] + _BETWEEN).astimezone(ZoneInfo(zone)).strftime(form)


def _ids(rows: DataFrame) -> list[int]:
    return sorted(row["id"] for row in rows.select("id").collect())


def _reads(spark: SparkSession, path: str, zone: str) -> dict[str, Callable[[], DataFrame]]:
    at = _at(zone)

    def read(**options: Any) -> DataFrame:
        return spark.read.format("pydelta").options(**options).load(path)

    return {
        "timestampAsOf": lambda: read(timestampAsOf=at),
        "path@timestamp": lambda: spark.read.format("pydelta").load(f"{path}@{_at(zone, '%Y%m%d%H%M%S')}000"),
        "from startingTimestamp": lambda: read(readChangeFeed="true", startingTimestamp=at),
        "endingTimestamp": lambda: read(readChangeFeed="true", startingVersion="0", endingTimestamp=at),
    }


def _commands(spark: SparkSession, path: str, folder: str, zone: str) -> dict[str, Callable[[], DataFrame]]:
    at = _at(zone)
    table = DeltaTable.forPath(spark, path)

    def restored() -> DataFrame:
        copy = _copy(path, f"{folder}/restored")
        DeltaTable.forPath(spark, copy).restoreToTimestamp(at)
        return spark.read.format("pydelta").load(copy)

    def cloned() -> DataFrame:
        return table.cloneAtTimestamp(at, f"{folder}/cloned", True).toDF()

    def streamed(**options: str) -> Callable[[], DataFrame]:
        def run() -> DataFrame:
            name = "feed" if options else "rows"
            reader = spark.readStream.format("pydelta").option("startingTimestamp", at).options(**options)
            target = f"{folder}/stream {name}"
            writer = reader.load(path).select("id").writeStream.format("pydelta")
            writer = writer.option("checkpointLocation", f"{target} c").trigger(availableNow=True)
            assert writer.start(target).awaitTermination(120)
            return spark.read.format("pydelta").load(target)

        return run

    return {
        "DeltaTable.restoreToTimestamp": restored,
        "DeltaTable.cloneAtTimestamp": cloned,
        "DeltaTable.changes up to": lambda: table.changes(0, at),
        "from DeltaTable.changes": lambda: table.changes(at),
        "from a stream's startingTimestamp": streamed(),
        "from a feed's startingTimestamp": streamed(readChangeFeed="true"),
    }


def _statements(spark: SparkSession, path: str, folder: str, zone: str) -> dict[str, Callable[[], DataFrame]]:
    at = _at(zone)

    def restored() -> DataFrame:
        copy = _copy(path, f"{folder}/restored by SQL")
        spark.sql(f"RESTORE TABLE delta.`{copy}` TO TIMESTAMP AS OF '{at}'")
        return spark.table(f"delta.`{copy}`")

    def cloned() -> DataFrame:
        target = f"delta.`{folder}/cloned by SQL`"
        spark.sql(f"CREATE TABLE {target} SHALLOW CLONE delta.`{path}` TIMESTAMP AS OF '{at}'")
        return spark.table(target)

    return {
        "TIMESTAMP AS OF": lambda: spark.sql(f"SELECT * FROM delta.`{path}` TIMESTAMP AS OF '{at}'"),
        "pydelta()": lambda: spark.sql(f"SELECT * FROM pydelta('{path}', 'timestampAsOf', '{at}')"),
        "from table_changes_by_path": lambda: spark.sql(
            f"SELECT * FROM table_changes_by_path('{path}', '{at}')"
        ),
        "table_changes_by_path up to": lambda: spark.sql(
            f"SELECT * FROM table_changes_by_path('{path}', 0, '{at}')"
        ),
        "RESTORE": restored,
        "CLONE": cloned,
    }


def _copy(path: str, target: str) -> str:
    shutil.copytree(path, target)  # with the times of its files
    return target


def days_by_way(spark: SparkSession, folder: str, zone: str) -> dict[str, Any]:
    """What generated columns and constraints make of an instant that is another day in the zone than in UTC."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        path = f"{folder}/days"
        builder = DeltaTable.create(spark).location(path).addColumn("at", "TIMESTAMP")
        builder.addColumn("day", "DATE", generatedAlwaysAs="CAST(at AS DATE)").execute()
        local = dt.datetime(2024, 1, 15, 0, 30)
        found: dict[str, Any] = {}
        rows = spark.sql(f"SELECT TIMESTAMP'{local}' AS at")
        rows.write.format("pydelta").mode("append").save(path)
        DeltaTable.forPath(spark, path).addConstraint("early", "hour(at) < 1")
        rows.write.format("pydelta").mode("append").save(path)
        DeltaTable.forPath(spark, path).update(set={"at": f"TIMESTAMP'{local + dt.timedelta(minutes=9)}'"})
        for row in spark.read.format("pydelta").load(path).selectExpr("CAST(day AS STRING) AS day").collect():
            found[row["day"]] = found.get(row["day"], 0) + 1
        return found
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
