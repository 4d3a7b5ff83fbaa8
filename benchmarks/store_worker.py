"""The measured process of the part `stores`: one Spark session on a store, which does what it is asked, line by line.

    python -m benchmarks.store_worker '{"format": "pydelta", "settings": {...}, "packages": [...], ...}'

The format is pydelta (this package) or delta (delta-spark). Only pyspark and the standard library are needed here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.measure import MARK
from benchmarks.process_tree import Watch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = (
    "id", "CAST(id % 1000 AS INT) AS k", "id * 0.5 AS amount", "concat('name ', id % 100003) AS name",
    "CAST(id % 7 = 0 AS BOOLEAN) AS flag", "timestamp_seconds(id) AS at",
)  # fmt: skip
_SHARE = 20  # of the rows, one in so many is merged


class Table:
    """A table of so many rows, and what is done to it."""

    def __init__(self, spark: SparkSession, fmt: str, path: str, rows: int, files: int) -> None:
        self.spark, self.format, self.path, self.rows, self.files = spark, fmt, path, rows, files

    def make(self) -> None:
        frame = self._rows(0, self.rows, self.files)
        frame.write.format(self.format).mode("overwrite").save(self.path)

    def scan(self, round_: int) -> None:
        """All columns of all rows, to nowhere."""
        self._read().write.format("noop").mode("overwrite").save()

    def filter(self, round_: int) -> int:
        """One column of the rows of one file in so many."""
        low = self.rows // 2
        return self._read().where(f"id BETWEEN {low} AND {low + 100}").select("k").count()

    def append(self, round_: int) -> None:
        start = self.rows * (2 + round_)
        frame = self._rows(start, start + self.rows // 5, 4)
        frame.write.format(self.format).mode("append").save(self.path)

    def merge(self, round_: int) -> None:
        """As many rows that match, spread over all files, as new ones."""
        if self.format == "delta":
            from delta.tables import DeltaTable  # type: ignore[import-not-found,unused-ignore]
        else:
            from delta_ds import DeltaTable  # type: ignore[assignment,unused-ignore]

        count = self.rows // _SHARE
        old = self.spark.range(count).selectExpr(f"id * {_SHARE} + {round_ % _SHARE} AS id")
        start = self.rows * (100 + round_)
        new = self.spark.range(start, start + count)
        source = old.union(new).selectExpr(*_COLUMNS)
        merge = DeltaTable.forPath(self.spark, self.path).alias("t").merge(source.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    def count(self) -> list[Any]:
        row = self._read().selectExpr("count(*)", "sum(id)", "count(DISTINCT name)").first()
        return [] if row is None else list(row)

    def _read(self) -> DataFrame:
        return self.spark.read.format(self.format).load(self.path)

    def _rows(self, start: int, end: int, tasks: int) -> DataFrame:
        return self.spark.range(start, end, 1, tasks).selectExpr(*_COLUMNS)


def session(settings: Mapping[str, Any]) -> SparkSession:
    """A session of two cores that knows the store, and its format."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("benchmark").config("spark.ui.enabled", "false")
    builder = builder.config("spark.jars.packages", ",".join(settings["packages"]))
    for name, value in settings["settings"].items():
        builder = builder.config(name, value)
    if settings["format"] == "delta":
        builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension").config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    if settings["format"] == "pydelta":
        import delta_ds

        delta_ds.register(made)
    return made


def serve(settings: Mapping[str, Any]) -> None:
    """Answer one line of JSON after the other, until there are no more."""
    spark = session(settings)
    _say({"spark": spark.version, "scan": ""})
    for line in sys.stdin:
        asked = json.loads(line)
        table = Table(spark, settings["format"], asked["path"], settings["rows"], settings["files"])
        if asked["do"] == "make":
            table.make()
            _say({})
        elif asked["do"] == "count":
            _say({"answer": table.count()})
        else:
            step: Callable[[int], object] = getattr(table, asked["do"])
            with Watch() as watch:
                step(asked["round"])
            _say({"seconds": watch.used.seconds, "cpu": watch.used.cpu_s})
    spark.stop()


def _say(found: Mapping[str, Any]) -> None:
    print(MARK + json.dumps(found), flush=True)


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
