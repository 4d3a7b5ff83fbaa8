"""Every way in which a local time without a zone comes in, asked of a table whose commits lie hours apart.

The functions here run in sessions of any kind, in whatever process.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from delta_ds import DeltaTable
from delta_ds.testing import TableBuilder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The instants of versions 0 to 2. The zones are hours away from UTC: a wrong one names another version, or none.
COMMITS = [dt.datetime(2024, 1, 15, hour, tzinfo=dt.timezone.utc) for hour in (12, 13, 14)]
ZONES = ["America/New_York", "Asia/Kolkata"]
_BETWEEN = dt.timedelta(minutes=30)
# Another day in each of the zones than in UTC.
LOCAL = dt.datetime(2024, 1, 15, 0, 30)
_ZONE = "spark.sql.session.timeZone"
_TRACKED = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version",
}


@contextmanager
def _in_zone(spark: SparkSession, zone: str) -> Iterator[None]:
    """Within the block a session has a zone; where it has none set, and its JVM is in that zone, none is set."""
    before = str(spark.conf.get(_ZONE))
    if before == zone:
        yield
        return
    spark.conf.set(_ZONE, zone)
    try:
        yield
    finally:
        spark.conf.set(_ZONE, before)


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
    with _in_zone(spark, zone):
        ways = {**_reads(spark, path, zone), **_commands(spark, path, folder, zone)}
        if sql:
            ways |= _statements(spark, path, folder, zone)
        return {way: _ids(rows()) for way, rows in ways.items()}


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
            target = f"{folder}/stream of {'feed' if options else 'rows'}"
            _stream(spark, path, target, startingTimestamp=at, **options)
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


def days_by_way(spark: SparkSession, folder: str, zone: str) -> dict[str, int]:
    """What generated columns and constraints make of an instant that is another day in the zone than in UTC.

    Returns
    -------
    dict
        How many rows, of three that were written, have a day.
    """
    with _in_zone(spark, zone):
        path = f"{folder}/days"
        builder = DeltaTable.create(spark).location(path).addColumn("at", "TIMESTAMP")
        builder.addColumn("day", "DATE", generatedAlwaysAs="CAST(at AS DATE)").execute()
        found: dict[str, int] = {}
        rows = spark.sql(f"SELECT TIMESTAMP'{LOCAL}' AS at")
        rows.write.format("pydelta").mode("append").save(path)
        DeltaTable.forPath(spark, path).addConstraint("early", "hour(at) < 1")
        rows.write.format("pydelta").mode("append").save(path)
        rows.write.format("pydelta").save(f"{folder}/rows of days")
        _stream(spark, f"{folder}/rows of days", path)
        DeltaTable.forPath(spark, path).update(set={"at": f"TIMESTAMP'{LOCAL + dt.timedelta(minutes=9)}'"})
        for row in spark.read.format("pydelta").load(path).selectExpr("CAST(day AS STRING) AS day").collect():
            found[row["day"]] = found.get(row["day"], 0) + 1
        return found


def instants_by_way(spark: SparkSession, folder: str, zone: str, folders: bool) -> dict[str, list[int]]:
    """The instants, in seconds, that each way makes of a partition value which is a local time without a zone.

    Parameters
    ----------
    folders
        Whether the session reads folders of partitions, which those of Spark Connect do not.
    """
    with _in_zone(spark, zone):
        ways = _of_local_partitions(spark, folder)
        if not folders:
            del ways["load of a folder"]
        return {way: _seconds(rows()) for way, rows in ways.items()}


def instant(zone: str) -> int:
    """The one that all ways have to make of it."""
    return int(LOCAL.replace(tzinfo=ZoneInfo(zone)).timestamp())


def _of_local_partitions(spark: SparkSession, folder: str) -> dict[str, Callable[[], DataFrame]]:
    literal = f"TIMESTAMP'{LOCAL}'"

    def read(path: str, **options: str) -> DataFrame:
        return spark.read.format("pydelta").options(**options).load(path)

    def streamed(name: str, loaded_in: str | None = None, **options: str) -> DataFrame:
        target = f"{folder}/stream {name}"
        _stream(spark, _with_local_partition(f"{folder}/{name}"), target, loaded_in, **options)
        return read(target)

    def changed(name: str, change: Callable[[DeltaTable], Any], *, tracked: bool = False) -> DataFrame:
        path = _with_local_partition(f"{folder}/{name}", tracked=tracked)
        change(DeltaTable.forPath(spark, path))
        return read(path).where(f"id = unix_seconds({literal})")

    def overwritten(name: str, **options: str) -> DataFrame:
        path = _with_local_partition(f"{folder}/{name}")
        rows = spark.sql(f"SELECT 2L AS id, {literal} AS p")
        rows.write.format("pydelta").mode("overwrite").options(**options).save(path)
        return read(path)

    def blamed() -> DataFrame:
        path = _with_local_partition(f"{folder}/blamed", tracked=True)
        return DeltaTable.forPath(spark, path).blame()

    def update(table: DeltaTable) -> None:
        table.update(set={"id": "unix_seconds(p)"})

    def merge(table: DeltaTable) -> None:
        source = spark.sql(f"SELECT {literal} AS p")
        clauses = table.alias("t").merge(source.alias("s"), "t.p = s.p")
        clauses.whenMatchedUpdate(set={"id": "unix_seconds(t.p)"}).execute()

    plain = _with_local_partition(f"{folder}/plain")
    return {
        "load": lambda: read(plain),
        "load of a folder": lambda: read(f"{plain}/p={LOCAL}"),
        "filter": lambda: read(plain).where(f"p = {literal}"),
        "feed": lambda: read(plain, readChangeFeed="true", startingVersion="0"),
        "stream": lambda: streamed("rows"),
        "stream of a feed": lambda: streamed("changes", readChangeFeed="true", startingVersion="0"),
        "UPDATE": lambda: changed("updated", update),
        "UPDATE of rows with ids": lambda: changed("updated tracked", update, tracked=True),
        "MERGE": lambda: changed("merged", merge),
        "DELETE": lambda: changed("deleted", lambda t: (update(t), t.delete(f"p <> {literal}"))),
        "blame": blamed,
        "replaceWhere": lambda: overwritten("replaced", replaceWhere=f"p = '{LOCAL}'"),
        "dynamic overwrite": lambda: overwritten("dynamic", partitionOverwriteMode="dynamic"),
        # A query has the settings that the session has at its start.
        "stream that was loaded before": lambda: streamed("early", loaded_in="Pacific/Auckland"),
    }


def _with_local_partition(path: str, *, tracked: bool = False) -> str:
    """A table of one row as other writers make it, whose partition value says no zone."""
    table = TableBuilder(path)
    table.create(
        pa.schema([("id", pa.int64()), ("p", pa.timestamp("us", "UTC"))]),
        partition_columns=["p"],
        properties={"delta.enableChangeDataFeed": "true", **(_TRACKED if tracked else {})},
        writer_features=["changeDataFeed", "appendOnly", "rowTracking", "domainMetadata"]
        if tracked
        else None,
        reader_features=[] if tracked else None,
    )
    add = table.write_file(pa.table({"id": pa.array([1], pa.int64())}), partition_values={"p": str(LOCAL)})
    if not tracked:
        table.commit(add)
        return path
    add["add"] |= {"baseRowId": 0, "defaultRowCommitVersion": 1}
    mark = {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":0}', "removed": False}
    table.commit(add, {"domainMetadata": mark})
    return path


def _seconds(rows: DataFrame) -> list[int]:
    return [row["at"] for row in rows.selectExpr("unix_seconds(p) AS at").collect()]


def _stream(
    spark: SparkSession, source: str, target: str, loaded_in: str | None = None, **options: str
) -> None:
    """Append the rows of a table, or of its changes, to another one, loaded in a zone of their own."""
    with _in_zone(spark, loaded_in or str(spark.conf.get(_ZONE))):
        read = spark.readStream.format("pydelta").options(**options).load(source)
    rows = read.drop("_change_type", "_commit_version", "_commit_timestamp")
    writer = rows.writeStream.format("pydelta").option(
        "checkpointLocation", f"{target} of {source.rpartition('/')[2]} c"
    )
    assert writer.trigger(availableNow=True).start(target).awaitTermination(300)
