"""What Spark says about an error of this package, and which error that was."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_ds import exceptions
from delta_ds.exceptions import (
    DeltaError,
    InvalidOptionError,
    InvariantViolationError,
    NotADeltaTableError,
    SchemaError,
)
from delta_ds.spark.errors import as_delta_error, delta_errors

TRACEBACK = """Traceback (most recent call last):
  File "/x/delta_ds/spark/source.py", line 68, in schema
    reading = open_reading(options, None)
              ^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
PLANNING = (
    "[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: "
    + TRACEBACK
    + "delta_ds.exceptions.SchemaError: [DELTA_METADATA_MISMATCH] two\nlines\n SQLSTATE: 38000\n\n"
    "JVM stacktrace:\norg.apache.spark.sql.AnalysisException\n\tat org.apache.spark.sql.X.y(X.scala:1)"
)
TASK = (
    "Job aborted due to stage failure: Task 0 in stage 5.0 failed 1 times, most recent failure: Lost task 0.0: "
    "org.apache.spark.api.python.PythonException: "
    + TRACEBACK
    + "delta_ds.exceptions.SchemaError: [DELTA_METADATA_MISMATCH] two\nlines\n\n"
    "\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:581)\n\nDriver stacktrace:"
)
CLASSIC_TASK = (
    "An exception was thrown from the Python worker:\n"
    + TRACEBACK
    + "delta_ds.exceptions.SchemaError: [DELTA_METADATA_MISMATCH] two\nlines\n\n"
)
CONNECT_TASK = (
    "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n"
    "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: "
    + TRACEBACK
    + "delta_ds.exceptions.SchemaError: [DELTA_METADATA_MISMATCH] two\nlines\n SQLSTATE: 38000\n"
)
STREAM = (
    "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: "
    + PLANNING.partition("\n\nJVM")[0]
    + " SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: [id = 1]"
)


@pytest.mark.parametrize("text", [PLANNING, TASK, CLASSIC_TASK, CONNECT_TASK, STREAM])
def test_class_condition_and_whole_text_are_found(text: str) -> None:
    error = as_delta_error(RuntimeError(text))
    assert type(error) is SchemaError
    assert (error.condition, error.text) == ("DELTA_METADATA_MISMATCH", "two\nlines")
    assert isinstance(error, ValueError)


def test_every_class_is_found_by_its_name() -> None:
    kinds = [
        kind for kind in vars(exceptions).values() if isinstance(kind, type) and issubclass(kind, DeltaError)
    ]
    for kind in kinds:
        raised = kind("what\nhappened", condition="DELTA_X.Y_2")
        error = as_delta_error(RuntimeError(f"{TRACEBACK}delta_ds.exceptions.{kind.__name__}: {raised}\n"))
        assert (type(error), str(error)) == (kind, str(raised))
    assert len(kinds) > 25


def test_class_that_only_the_server_knows_is_still_one_of_ours() -> None:
    error = as_delta_error(RuntimeError(f"{TRACEBACK}delta_ds.exceptions.NewError: [DELTA_NEW] what\n"))
    assert (type(error), str(error)) == (DeltaError, "[DELTA_NEW] what")


def test_error_that_led_to_another_one_does_not_count() -> None:
    first = f"{TRACEBACK}delta_ds.exceptions.SchemaError: [DELTA_A] first\n\n"
    between = "The above exception was the direct cause of the following exception:\n\n"
    last = f"{TRACEBACK}delta_ds.exceptions.NotADeltaTableError: [DELTA_B] last\n"
    error = as_delta_error(RuntimeError(first + between + last))
    assert (type(error), str(error)) == (NotADeltaTableError, "[DELTA_B] last")
    assert as_delta_error(RuntimeError(f"{first}{between}{TRACEBACK}KeyError: 'x'\n")) is None


@pytest.mark.parametrize(
    "text", ["", "[TABLE_OR_VIEW_NOT_FOUND] no such thing", f"{TRACEBACK}KeyError: 'x'\n"]
)
def test_other_errors_are_left_alone(text: str) -> None:
    error = RuntimeError(text)
    assert as_delta_error(error) is None
    with pytest.raises(RuntimeError) as caught, delta_errors():
        raise error
    assert caught.value is error


def test_what_spark_said_stays_the_cause() -> None:
    said = RuntimeError(PLANNING)
    with pytest.raises(SchemaError) as caught, delta_errors():
        raise said
    assert caught.value.__cause__ is said


def test_error_of_ours_passes_as_it_is() -> None:
    ours = SchemaError("what", parameters={"a": 1})
    assert as_delta_error(ours) is ours
    with pytest.raises(SchemaError) as caught, delta_errors():
        raise ours
    assert caught.value is ours
    assert caught.value.__cause__ is None


@pytest.mark.spark
class TestClassicSession:
    def test_error_of_planning_a_read_has_its_class(self, spark: SparkSession) -> None:
        with pytest.raises(NotADeltaTableError, match="/no/such"), delta_errors():
            spark.read.format("pydelta").option("path", "/no/such").schema("a int").load().count()

    def test_error_of_planning_a_write_has_its_class(self, spark: SparkSession, tmp_path: Path) -> None:
        rows = spark.range(1).write.format("pydelta").mode("append").option("nope", "1")
        with pytest.raises(InvalidOptionError, match="unknown write option 'nope'"), delta_errors():
            rows.save(str(tmp_path / "t"))

    def test_error_of_a_task_has_its_class(self, spark: SparkSession, tmp_path: Path) -> None:
        from delta_ds import DeltaTable

        path = str(tmp_path / "t")
        spark.range(2).write.format("pydelta").mode("append").save(path)
        DeltaTable.forPath(spark, path).addConstraint("positive", "id >= 0")
        with pytest.raises(InvariantViolationError) as caught, delta_errors():
            spark.range(-1, 1).write.format("pydelta").mode("append").save(path)
        assert caught.value.condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
        assert caught.value.text.endswith("positive (id >= 0) violated by row with values:\n - id : -1")
