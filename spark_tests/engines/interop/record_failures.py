"""Write down what delta-spark raises, where it is: `python -m spark_tests.engines.interop.record_failures`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from spark_tests.engines.interop.delta_spark import start
from spark_tests.engines.interop.failures import FAILURES, Engine, Tables

RECORDED = Path(__file__).with_name("failures.json")
# The retention is checked as it is for users.
_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def record() -> dict[str, Any]:
    """By failure: the class of `pyspark.errors`, the condition, the SQLSTATE and the parameters.

    Runtime exceptions of Java have no class of their own in pyspark, which raises py4j's.
    """
    from delta.tables import DeltaTable

    spark = start()
    spark.conf.set(_CHECK, "true")
    engine = Engine(spark, "delta", DeltaTable)
    with tempfile.TemporaryDirectory() as root:
        tables = Tables(Path(root), FAILURES)
        found = {name: _described(tables.raised(engine, name), root) for name in FAILURES}
    spark.stop()
    return found


def _described(error: Exception | None, root: str) -> dict[str, Any]:
    from py4j.protocol import Py4JJavaError
    from pyspark import SparkContext, errors

    if error is None:
        return {"class": None}
    kinds = [
        kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "pyspark.errors.exceptions.base"
    ]
    java = error.java_exception if isinstance(error, Py4JJavaError) else error._origin  # type: ignore[attr-defined]
    utils = SparkContext._jvm.PythonErrorUtils  # type: ignore[union-attr]
    said: dict[str, Any] = {"class": kinds[0] if kinds else "PySparkException"}
    while java is not None:
        try:
            condition = utils.getCondition(java)
            if condition == "STREAM_FAILED" and java.getCause() is not None:
                java = java.getCause()  # what ended the stream
                continue
            said |= {"condition": condition, "sqlState": utils.getSqlState(java)}
            parameters = dict(utils.getMessageParameters(java))
        except Exception:
            java = java.getCause()
            continue
        said["parameters"] = {k: str(v).replace(root, "<root>") for k, v in sorted(parameters.items())}
        break
    else:
        said["java"] = str(error).replace(root, "<root>").strip().splitlines()[:3]
    assert errors
    return said


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(record(), indent=1, ensure_ascii=False) + "\n")
