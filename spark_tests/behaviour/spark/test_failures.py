"""Everyday failures end as those of delta-spark do: class, condition, SQLSTATE, and the names of the parameters.

What delta-spark raises is recorded; `spark_tests.engines.interop.record_failures` records it anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark import errors
from pyspark.errors import PySparkException

from delta_ds import DeltaError, DeltaTable
from spark_tests.engines.interop.failures import FAILURES, Engine, Tables, raised

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED = json.loads((Path(raised.__code__.co_filename).parent / "failures.json").read_text())

# What is raised instead, and why.
_NO_TABLE = "whether there is no path or no table at it, there is no table"
_NAMED = "delta-spark fails to find the text of the error that it means"
OTHERWISE = {
    "read a path that is not there": ("DELTA_TABLE_NOT_FOUND", _NO_TABLE),
    "writeTo append to nothing": ("DELTA_TABLE_NOT_FOUND", _NO_TABLE),
    "update to what is no number": ("CAST_INVALID_INPUT", "the reason, in place of the task that it ended"),
    "merge on a column that is not there": ("DELTA_MERGE_UNRESOLVED_EXPRESSION", _NAMED),
    "merge that updates by nothing": ("DELTA_MERGE_UNRESOLVED_EXPRESSION", _NAMED),
    "vacuum the future": (
        "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
        "the check of the retention was off there",
    ),
    "replace a table that is not there": (
        "DELTA_CANNOT_REPLACE_MISSING_TABLE",
        "by path there is no catalog",
    ),
    "convert what is no folder of Parquet files": (
        "DELTA_CONVERT_NON_PARQUET_TABLE",
        "before files are read",
    ),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(tmp_path_factory.mktemp("failures"))


@pytest.fixture(scope="module")
def engine(spark: SparkSession) -> Iterator[Engine]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield Engine(spark, "pydelta", DeltaTable)
    spark.conf.set("spark.sql.session.timeZone", str(before))


def test_all_failures_are_recorded() -> None:
    assert RECORDED.keys() == FAILURES.keys()
    assert OTHERWISE.keys() <= FAILURES.keys()


@pytest.mark.spark
@pytest.mark.parametrize("failure", FAILURES)
def test_ends_as_in_delta_spark(engine: Engine, tables: Tables, failure: str) -> None:
    error = raised(engine, tables, failure)
    assert isinstance(error, DeltaError)
    assert isinstance(error, PySparkException)
    assert len(str(error).splitlines()) < 15
    wanted = RECORDED[failure]
    if failure in OTHERWISE:
        assert error.getCondition() == OTHERWISE[failure][0] != wanted.get("condition")
        assert error.getSqlState() is not None
        return
    assert isinstance(error, getattr(errors, wanted["class"]))
    assert (error.getCondition(), error.getSqlState()) == (wanted["condition"], wanted["sqlState"])
    parameters = error.getMessageParameters() or {}
    assert wanted["parameters"].keys() <= parameters.keys()
