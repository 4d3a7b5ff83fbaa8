"""The measured processes of the parts `copies` and `columns`: writes in one Spark session, in turn.

    python -m benchmarks.copy_worker '{"format": "pydelta", "cases": [...], "rounds": 3, "folder": "...", ...}'

The format is pydelta (this package) or delta (delta-spark, whose interpreter runs this file then). Prints one JSON
object: by case and writer what each round used; the first is a warm-up. Only pyspark and the standard library are
needed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import MARK
from benchmarks.process_tree import Watch
from benchmarks.spark_writes import Writer, save, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ARROW_WRITE = "spark.pydelta.arrowWrite"
_KINDS = ("BIGINT", "DOUBLE", "STRING", "INT")


def writers(fmt: str, by_arrow: bool) -> dict[str, Writer]:
    """Who writes, by names for the table; Spark's own Parquet writer among them."""
    found = {"Parquet": Writer("parquet", "snappy"), fmt: Writer(fmt, "snappy")}
    if fmt == "pydelta" and by_arrow:
        found["pydelta, arrowWrite=false"] = found[fmt]
    return found


def wide_frame(spark: SparkSession, columns: int) -> DataFrame:
    """A thousand rows of so many columns, which are there already."""
    names = [f"CAST(id + {n} AS {_KINDS[n % 4]}) AS c{n}" for n in range(columns)]
    frame = spark.range(0, 1000, 1, 1).selectExpr(*names).cache()
    frame.count()
    return frame


def run(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The seconds, CPU seconds and MiB of every round, by case and writer."""
    spark = session(settings)
    found: dict[str, dict[str, list[list[float]]]] = {}
    for case in settings["cases"]:
        wide = "columns" in case
        frame = wide_frame(spark, case["columns"]) if wide else spark.read.parquet(case["source"])
        for _ in range(settings["rounds"] + 1):
            for name, writer in writers(settings["format"], not wide).items():
                path = Path(settings["folder"]) / "target"
                if settings["format"] == "pydelta":
                    spark.conf.set(ARROW_WRITE, str("arrowWrite" not in name).lower())
                if wide and writer.format != "parquet":
                    save(frame, writer, case["partition_by"], path)  # to an existing table
                os.sync()
                with Watch() as watch:
                    save(frame, writer, case["partition_by"], path)
                used = [watch.used.seconds, watch.used.cpu_s, watch.used.peak_mb]
                found.setdefault(case["name"], {}).setdefault(name, []).append(used)
                shutil.rmtree(path)
        frame.unpersist()
    return {"spark": spark.version, "used": found}


if __name__ == "__main__":
    print(MARK + json.dumps(run(json.loads(sys.argv[1]))), flush=True)
