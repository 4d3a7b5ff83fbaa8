"""Failures end as those of delta-spark do: class, condition and SQLSTATE; everyday ones in their parameters, too.

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
from spark_tests.engines import interop
from spark_tests.engines.interop.failures import FAILURES, Engine, Tables, everyday, places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED = json.loads(Path(interop.__file__).with_name("failures.json").read_text())

_NOT_THERE = [name for name in places.FAILURES if " not there" in name]
# What is raised instead, and why; no condition: nothing is raised.
_MISSING = "whatever a command is about, it is said first that there is no table"
_NAMED = "delta-spark fails to find the text of the error that it means"
_BETTER = "delta-spark says it without naming the property"
_BY_PATH = "by path there is no catalog"
_REFUSED = "delta-spark goes on, with what nobody meant"
_SPARK = "another class of Spark, which says it without naming what is wrong"
OTHERWISE: dict[str, tuple[str | None, str]] = {
    "update to what is no number": ("CAST_INVALID_INPUT", "the reason, in place of the task that it ended"),
    **dict.fromkeys(
        (
            "merge on a column that is not there",
            "merge that updates by nothing",
            "MERGE on a column that is not there",
            "MERGE that sets a column that is not there",
            "MERGE that sets by a column that is not there",
            "MERGE that inserts a column that is not there",
            "MERGE that inserts by a column of the table",
            "MERGE by star without a column",
            "MERGE that inserts by star without a column",
            "MERGE by source with a column of it",
        ),
        ("DELTA_MERGE_UNRESOLVED_EXPRESSION", _NAMED),
    ),
    "vacuum the future": (
        "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
        "the check of the retention was off there",
    ),
    "replace a table that is not there": ("DELTA_CANNOT_REPLACE_MISSING_TABLE", _BY_PATH),
    "writeTo replace of a path that is not there": ("DELTA_CANNOT_REPLACE_MISSING_TABLE", _BY_PATH),
    "create by writeTo what is there": ("TABLE_OR_VIEW_ALREADY_EXISTS", _BY_PATH),
    "convert what is no folder of Parquet files": (
        "DELTA_CONVERT_NON_PARQUET_TABLE",
        "before files are read",
    ),
    **{
        f"{kind} on {where}": ("DELTA_MISSING_DELTA_TABLE", _MISSING)
        for kind in ("SHALLOW CLONE", "ALTER DROP COLUMN", "ALTER RENAME COLUMN", "ALTER COLUMN COMMENT")
        for where in ("a path that is not there", "an empty folder", "a folder of Parquet files")
    },
    **{
        f"{kind} on a table of Parquet files": ("DELTA_ONLY_OPERATION", _REFUSED)
        for kind in ("ADD CONSTRAINT", "DROP CONSTRAINT", "DROP FEATURE")
    },
    "stream a path as a name": ("DELTA_SCHEMA_NOT_SET", "delta-spark knows no streams of such names"),
    "writeTo overwritePartitions of a path that is not there": ("PATH_NOT_FOUND", _REFUSED),
    "a property of a wrong value": ("DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED", _BETTER),
    "a number of a wrong value": ("DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED", _BETTER),
    "a protocol of the future": ("DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED", _BETTER),
    "a protocol that is no number": ("DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED", _BETTER),
    "an interval of months": ("DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED", _BETTER),
    "unset a constraint as a property": ("DELTA_DROP_CONSTRAINTS", _REFUSED),
    "in-commit timestamps as a property": ("DELTA_CANNOT_MODIFY_TABLE_PROPERTY", _REFUSED),
    "a constraint with an aggregate": (
        "DELTA_AGGREGATE_IN_CHECK_CONSTRAINT",
        "Delta's own condition, in place of Spark's for the query that looks for such rows",
    ),
    "write an interval": ("DELTA_UNSUPPORTED_DATA_TYPES", _SPARK),
    "buckets": ("DELTA_OPERATION_NOT_ALLOWED_DETAIL", _SPARK),
    "changes from a version below 0": ("DELTA_VERSION_INVALID", "no version, and no file of the log"),
    "changes from two starts": ("DELTA_MULTIPLE_CDC_BOUNDARY", _REFUSED),
    "changes to two ends": ("DELTA_MULTIPLE_CDC_BOUNDARY", _REFUSED),
    "table_changes without a start": ("DELTA_INVALID_TABLE_VALUE_FUNCTION", _NAMED),
    "table_changes of five arguments": ("DELTA_ILLEGAL_OPTION", "the fourth says which net changes"),
    "stream with a schema": ("DELTA_CANNOT_RESOLVE_COLUMN", "a schema chooses columns"),
    "read with a schema": ("DELTA_CANNOT_RESOLVE_COLUMN", "a schema chooses columns"),
    "CREATE a temporary table": (None, "a schema chooses columns"),
    "CREATE a table clustered and partitioned": (
        "SPECIFY_CLUSTER_BY_WITH_PARTITIONED_BY_IS_NOT_ALLOWED",
        _SPARK,
    ),
    "a builder without columns": ("DELTA_SCHEMA_NOT_PROVIDED", _REFUSED),
    "a builder partitioned by what is not there": ("DELTA_PARTITION_COLUMN_NOT_FOUND", _SPARK),
    "a builder with a generated column of nothing": (
        "DELTA_INVALID_GENERATED_COLUMN_REFERENCES",
        "as in SQL",
    ),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(tmp_path_factory.mktemp("failures"), FAILURES)


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
@pytest.mark.parametrize("failure", everyday.FAILURES)
def test_ends_as_in_delta_spark(engine: Engine, tables: Tables, failure: str) -> None:
    _ends_as_recorded(engine, tables, failure)


@pytest.mark.spark
@pytest.mark.parametrize("failure", _NOT_THERE)
def test_says_what_is_not_there_as_delta_spark_does(engine: Engine, tables: Tables, failure: str) -> None:
    _ends_as_recorded(engine, tables, failure)


@pytest.mark.sampled
@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize(
    "failure", [name for name in FAILURES if name not in (*everyday.FAILURES, *_NOT_THERE)]
)
def test_refuses_as_delta_spark_does(engine: Engine, tables: Tables, failure: str) -> None:
    _ends_as_recorded(engine, tables, failure)


def _ends_as_recorded(engine: Engine, tables: Tables, failure: str) -> None:
    error, wanted = tables.raised(engine, failure), RECORDED[failure]
    instead, _ = OTHERWISE.get(failure, (wanted.get("condition"), ""))
    if error is None:
        assert instead is None
        assert failure in OTHERWISE or wanted["class"] is None
        return
    assert isinstance(error, PySparkException)
    if isinstance(error, DeltaError):
        assert len(str(error).splitlines()) < 15
    if failure in OTHERWISE:
        assert error.getCondition() == instead != wanted.get("condition")
        assert error.getSqlState() is not None
        return
    assert wanted["class"] is not None, "delta-spark raises nothing"
    if instead is None:  # some error of Java, whose text is all that it says
        assert error.getCondition() is not None or not isinstance(error, DeltaError)
        return
    assert error.getCondition() == instead
    if wanted["class"] != "StreamingQueryException":  # which has no need to have been started here
        assert isinstance(error, getattr(errors, wanted["class"]))
    # An error that the analyser of delta-spark has put into another one has lost it.
    assert error.getSqlState() == wanted["sqlState"] or wanted["sqlState"] is None
    if failure in everyday.FAILURES:
        assert (wanted.get("parameters") or {}).keys() <= (error.getMessageParameters() or {}).keys()
