"""A program that runs scenarios in one application on a cluster, and says what it found as JSON, a line a scenario.

python -m spark_tests.faults.clusters.application '{"master": "local-cluster[2,1,1024]", "folder": "/tmp/x", ...}'
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

import delta_ds
from spark_tests.faults.clusters import faults
from spark_tests.faults.clusters.invariants import check_table
from spark_tests.faults.clusters.outcome import Outcome
from spark_tests.faults.clusters.scenarios import SCENARIOS, Course, abandoned

SETTINGS = {
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "768m",
    "spark.executor.memory": "512m", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "4", "spark.task.maxFailures": "4",
    "spark.eventLog.enabled": "true", "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",
}  # fmt: skip


def session(job: dict[str, Any]) -> SparkSession:
    """The session of the application."""
    folder = Path(job["folder"])
    events = folder / "events"
    events.mkdir(parents=True)
    settings = {
        **SETTINGS,
        "spark.eventLog.dir": events.as_uri(),
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        **job.get("conf", {}),
    }
    spark = SparkSession.builder.master(job["master"]).config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    # Executors need not be able to import the tests.
    cloudpickle.register_pickle_by_value(faults)
    return spark


def main() -> None:
    """Run the scenarios of a job: `master`, `folder`, `conf`, `label`, `scenarios`, `kills`, `fails`, `slow`."""
    job = json.loads(sys.argv[1])
    spark = session(job)
    delta_ds.register(spark)
    folder = Path(job["folder"])
    courses: dict[str, Course] = {}
    failures: dict[str, str] = {}
    for name in job["scenarios"]:
        place = folder / name
        place.mkdir()
        faults.wait_for_executors(spark, job.get("executors", 2))
        spark.sparkContext.setLocalProperty(faults.SCENARIO, name)
        course = courses[name] = Course(
            spark,
            place,
            kills=job.get("kills", True),
            fails=job.get("fails", True),
            slow=job.get("slow", False),
        )
        try:
            {**SCENARIOS, abandoned.__name__: abandoned}[name](course)
        except Exception:
            failures[name] = traceback.format_exc()
    # No attempt of a task is left that could still write.
    spark.stop()
    failed = faults.failed_tasks(folder / "events")
    for name, course in courses.items():
        outcome = Outcome(
            f"{job['label']}: {name}", killed=course.killed, failed=failed[name], rows=course.rows
        )
        if name not in failures:
            try:
                for table in course.tables:
                    orphans, missing = check_table(table)
                    outcome.orphans += orphans
                    outcome.missing += missing
            except Exception:
                failures[name] = traceback.format_exc()
        said = {
            "scenario": name,
            "outcome": outcome.as_dict(),
            "failure": failures.get(name),
            "speculative": failed[f"{name}.speculative"],
        }
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
