"""The measured process of the part `native`: one Spark session that does what it is asked, line by line.

    python -m benchmarks.native_worker '{"format": "pydelta", "tables": {...}, ...}'

The format is pydelta (this package) or delta (delta-spark, whose interpreter runs this file then). Says what it
runs on, then answers each line of JSON from standard input (a case and who reads or writes) with one of seconds and
what was found. So two sessions can take turns. Only pyspark and the standard library are needed here.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import MARK
from benchmarks.spark_writes import Writer, create_target, data_files, save, session, source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Settings = Mapping[str, Any]
PARQUET = "parquet"


@dataclass(frozen=True)
class Tables:
    """What one reader reads: `parquet` gets folders and files, a Delta format the tables.

    Attributes
    ----------
    reader
        parquet, pydelta or delta.
    paths
        By name: `wide`, `vectors`, `dimension`, `log` (tables) and `files`, `selected`, `dimension_files`
        (lists of data files, or of their folders).
    """

    spark: SparkSession
    reader: str
    paths: Mapping[str, Any]

    def wide(self) -> DataFrame:
        return self._read("wide", "files")

    def selected(self) -> DataFrame:
        """For a filter: a Delta format finds the files that can match by itself, Parquet is given just those."""
        return self._read("wide", "selected")

    def vectors(self) -> DataFrame:
        return self._read("vectors", "files")

    def dimension(self) -> DataFrame:
        return self._read("dimension", "dimension_files")

    def log(self) -> DataFrame:
        return self._read("log")

    def _read(self, table: str, files: str = "") -> DataFrame:
        if self.reader == PARQUET:
            return self.spark.read.parquet(*self.paths[files])
        return self.spark.read.format(self.reader).load(self.paths[table])


# ---------------------------------------------------------------- reads: each gives something to compare, or None


def _to_nowhere(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _two_columns(frame: DataFrame) -> None:
    _to_nowhere(frame.select("id", "amount"))


def _extremes(frame: DataFrame) -> str:
    found = frame.selectExpr("min(id)", "max(id)", "min(sold_on)", "max(sold_on)").collect()
    return str(tuple(found[0]))


def _joined(tables: Tables) -> DataFrame:
    joined = tables.wide().join(tables.dimension(), "sold_on")
    return joined.groupBy("season").agg({"quantity": "sum", "weight": "sum"})


def _seasons(tables: Tables) -> str:
    return str(sorted(map(tuple, _joined(tables).collect())))


def _digest(frame: DataFrame, *columns: str) -> None:
    """One number over some columns, or all: delta-spark cannot write a table with vectors to the `noop` sink.

    Parquet reads the files without their vectors, so the numbers differ.
    """
    frame.selectExpr(f"sum(hash({', '.join(columns or frame.columns)}))").collect()


Read = Callable[[Tables, Settings], object]
READS: dict[str, Read] = {
    "full scan": lambda t, s: _to_nowhere(t.wide()),
    "2 of 10 columns": lambda t, s: _two_columns(t.wide()),
    "count(*)": lambda t, s: t.wide().count(),
    "min and max of two columns": lambda t, s: _extremes(t.wide()),
    "filter, 1 % of the files": lambda t, s: _to_nowhere(t.selected().where(s["one_percent"])),
    "5 % deleted by vectors, full scan": lambda t, s: _digest(t.vectors()),
    "5 % deleted by vectors, 2 of 10 columns": lambda t, s: _digest(t.vectors(), "id", "amount"),
    "join with a dimension": lambda t, s: _seasons(t),
}
# Which rows a case is over, to see once that all readers have the same.
ROWS: dict[str, Callable[[Tables, Settings], DataFrame]] = {
    "full scan": lambda t, s: t.wide(),
    "filter, 1 % of the files": lambda t, s: t.selected().where(s["one_percent"]),
    "5 % deleted by vectors, full scan": lambda t, s: t.vectors(),
}


def read(spark: SparkSession, settings: Settings, case: str, reader: str) -> dict[str, Any]:
    """Do one read, from `load` on."""
    tables = Tables(spark, reader, settings["tables"])
    start = time.perf_counter()
    answer = READS[case](tables, settings)
    return {"seconds": time.perf_counter() - start, "answer": answer}


def check(spark: SparkSession, settings: Settings, case: str, reader: str) -> dict[str, Any]:
    """What the rows of a case come to: their number, and a hash of them that does not depend on their order."""
    frame = ROWS[case](Tables(spark, reader, settings["tables"]), settings)
    found = frame.selectExpr("count(*)", "bit_xor(xxhash64(*))").collect()
    return {"answer": str(tuple(found[0]))}


def broadcast(spark: SparkSession, settings: Settings, reader: str) -> dict[str, Any]:
    """Whether the optimizer chose to broadcast the dimension: by the sizes that it was told, before running."""
    joined = _joined(Tables(spark, reader, settings["tables"]))
    return {"answer": "BroadcastHashJoin" in joined._jdf.queryExecution().sparkPlan().toString()}


def plan(spark: SparkSession, settings: Settings, predicate: str, cold: bool) -> dict[str, Any]:
    """Plan a scan of the table with many files down to its tasks, from `load` on; nothing is read."""
    if cold and settings["format"] == "delta":
        java: Any = spark._jvm
        java.org.apache.spark.sql.delta.DeltaLog.clearCache()
    os.environ["DELTA_DS_CACHE"] = "off" if cold else settings["cache"]
    start = time.perf_counter()
    frame = Tables(spark, settings["format"], settings["tables"]).log().where(predicate)
    execution = frame._jdf.queryExecution()
    execution.toRdd().getNumPartitions()
    taken = time.perf_counter() - start
    scan = execution.executedPlan().collectLeaves().apply(0)
    return {"seconds": taken, "answer": scan.metrics().apply("numFiles").value()}


def append(spark: SparkSession, settings: Settings, rows: int, writer: str, codec: str) -> dict[str, Any]:
    """Append rows to an empty table, or write them to an empty folder."""
    path = Path(settings["folder"]) / f"append-{writer}"
    shutil.rmtree(path, ignore_errors=True)
    frame = source(spark, rows, 8)
    to = Writer(writer, codec)
    create_target(frame, to, [], path)
    os.sync()
    start = time.perf_counter()
    save(frame, to, [], path)
    taken = time.perf_counter() - start
    found = {"seconds": taken, "answer": spark.read.format(writer).load(str(path)).count()}
    size = sum(file.stat().st_size for file in data_files(path))
    found |= {"bytes": size, "statistics": _columns_with_statistics(path)}
    shutil.rmtree(path)
    return found


def _columns_with_statistics(path: Path) -> int:
    """How many columns have a lowest value in the log, in every file; 0 without a log."""
    counts = []
    for commit in (path / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
        stats = [json.loads(action["add"].get("stats") or "{}") for action in actions if "add" in action]
        counts += [len(record.get("minValues", {})) for record in stats if record.get("numRecords") != 0]
    return min(counts, default=0)


# ---------------------------------------------------------------- the session


def serve(settings: Settings) -> None:
    """Answer the lines of standard input until it ends."""
    warnings = _Warnings()
    logging.getLogger("delta_ds").addHandler(warnings)
    spark = session(settings)
    _say({"spark": spark.version, "scan": _scan_name(spark, settings)})
    answers: dict[str, Callable[..., dict[str, Any]]] = {
        "read": read, "check": check, "broadcast": broadcast, "plan": plan, "append": append,
    }  # fmt: skip
    for line in sys.stdin:
        asked = json.loads(line)
        found = answers[asked.pop("do")](spark, settings, **asked)
        _say({**found, "warnings": warnings.taken()})
    spark.stop()


class _Warnings(logging.Handler):
    """Keeps what delta_ds warns of: that it takes the portable path, above all."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kept: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._kept.append(record.getMessage())

    def taken(self) -> list[str]:
        kept, self._kept = self._kept, []
        return kept


def _scan_name(spark: SparkSession, settings: Settings) -> str:
    """What Spark calls its scan of a table of the format: `Scan parquet` for its own Parquet reader."""
    frame = Tables(spark, settings["format"], settings["tables"]).wide()
    return str(frame._jdf.queryExecution().sparkPlan().collectLeaves().apply(0).nodeName())


def first_query(settings: Settings) -> None:
    """Start a session and time its first query, what registers the format included."""
    start = time.perf_counter()
    spark = session(settings, register=False)
    started = time.perf_counter()
    if settings["reader"] == "pydelta":
        import delta_ds

        delta_ds.register(spark)
    tables = Tables(spark, settings["reader"], settings["tables"])
    found = tables.selected().where(settings["one_percent"]).selectExpr("count(*)", "sum(quantity)").collect()
    taken = time.perf_counter() - started
    _say({"session": started - start, "seconds": taken, "answer": str(tuple(found[0]))})
    spark.stop()


def _say(found: Mapping[str, Any]) -> None:
    print(MARK + json.dumps(found), flush=True)


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    if given.get("reader"):
        first_query(given)
    else:
        serve(given)
