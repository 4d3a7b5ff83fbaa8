"""What Spark says about an error of this package, and which error that was."""

from __future__ import annotations

import copy
import json
import pickle
import re
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    IllegalArgumentException,
    ParseException,
    PySparkException,
    PySparkTypeError,
    StreamingQueryException,
    UnsupportedOperationException,
)
from pyspark.sql import SparkSession

from delta_ds import exceptions
from delta_ds.exceptions import (
    AppendOnlyError,
    DataFileError,
    DeltaError,
    InvalidArgumentError,
    InvalidOptionError,
    InvariantViolationError,
    NotADeltaTableError,
    PredicateError,
    SchemaError,
)
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.errors.translation import (
    as_delta_error,
    as_spark_error,
    delta_errors,
    report_text,
    with_error_parameters,
)
from delta_ds.spark.sql.answers import _thrown

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


KINDS = [
    kind for kind in vars(exceptions).values() if isinstance(kind, type) and issubclass(kind, DeltaError)
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_error_at_the_border_is_one_of_both(kind: type[DeltaError]) -> None:
    """With the same object, so that causes, notes and traceback stay; and again after a pickle."""
    error = kind("what happened", parameters={"version": 7, "columns": ["a", "b"]})
    assert not isinstance(error, PySparkException)
    with pytest.raises(kind) as caught, delta_errors(), delta_errors():
        raise error
    assert caught.value is error
    for one in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert isinstance(one, PySparkException)
        assert isinstance(one, kind)
        assert type(one).__name__ == kind.__name__
        assert str(one) == str(kind("what happened"))
        assert one.getCondition() == one.condition == kind.default_condition
        assert one.getSqlState() == one.sql_state
        assert re.fullmatch("[0-9A-Z]{5}", one.sql_state or "")
        assert one.getMessageParameters() == {"version": "7", "columns": "a, b"}
        assert one.getMessage() == str(one)
        assert one.getQueryContext() == []
        assert one.parameters == {"version": 7, "columns": ["a", "b"]}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (NotADeltaTableError("x"), AnalysisException),
        (InvalidOptionError("x"), IllegalArgumentException),
        (InvalidOptionError("x", condition="DELTA_TIMESTAMP_INVALID"), AnalysisException),
        (AppendOnlyError("x"), UnsupportedOperationException),
        (InvariantViolationError("x", condition="CAST_OVERFLOW"), ArithmeticException),
        (PredicateError("x", condition="PARSE_SYNTAX_ERROR"), ParseException),
        (InvalidArgumentError("x"), PySparkTypeError),
        (SchemaError("x", condition="DELTA_OF_TOMORROW"), AnalysisException),
    ],
)
def test_class_is_the_one_that_delta_spark_raises(error: DeltaError, kind: type[PySparkException]) -> None:
    assert isinstance(as_spark_error(error), kind)


@pytest.mark.parametrize("name", [kind for kind in vars(exceptions) if kind.startswith("Concurrent")])
def test_conflicts_are_no_errors_of_analysis(name: str) -> None:
    """As in `delta.exceptions`, they are plain errors of Spark."""
    error = as_spark_error(getattr(exceptions, name)("x"))
    assert isinstance(error, PySparkException)
    assert not isinstance(error, AnalysisException)


# --- conflicts that code of delta-spark throws in a JVM, here or on a server

CONFLICTS = [
    kind.__name__
    for kind in vars(exceptions).values()
    if isinstance(kind, type) and issubclass(kind, exceptions.DeltaConcurrentModificationException)
]


@pytest.mark.parametrize("name", CONFLICTS)
def test_conflict_that_a_server_with_delta_spark_reports_is_caught_by_its_class(name: str) -> None:
    error_info = pytest.importorskip("google.rpc.error_details_pb2").ErrorInfo
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException, convert_exception

    import delta_ds.spark.as_delta.delta.connect as client

    info = error_info(reason=f"io.delta.exceptions.{name}")
    info.metadata["classes"] = json.dumps([info.reason, "java.lang.Exception"])
    info.metadata["errorClass"] = "DELTA_X"
    info.metadata["messageParameters"] = json.dumps({"partition": "a=1"})
    found = convert_exception(info, "[DELTA_X] files were added", None)
    assert isinstance(found, getattr(client.exceptions, name))
    assert isinstance(found, SparkConnectGrpcException)
    assert (found.getCondition(), found.getMessage()) == ("DELTA_X", "[DELTA_X] files were added")
    for error in found, pickle.loads(pickle.dumps(found)):
        said = (error.condition, error.text, error.parameters)
        assert said == ("DELTA_X", "files were added", {"partition": "a=1"})
    assert as_delta_error(found) is found


@pytest.mark.spark
@pytest.mark.parametrize("name", CONFLICTS)
def test_conflict_that_the_jvm_throws_is_caught_by_its_class(spark: SparkSession, name: str) -> None:
    from pyspark.errors.exceptions.captured import CapturedException

    import delta_ds.spark.as_delta.delta.exceptions.captured  # noqa: F401

    java = getattr(spark.sparkContext._jvm.io.delta.exceptions, name)("[DELTA_X] files were added")
    with pytest.raises(getattr(exceptions, name)) as caught:
        spark.sparkContext._jvm.scala.util.Failure(java).get()
    found = caught.value
    assert isinstance(found, CapturedException)
    assert str(found) == "[DELTA_X] files were added"
    assert f"io.delta.exceptions.{name}" in found._stackTrace


@pytest.mark.spark
@pytest.mark.parametrize("name", CONFLICTS)
def test_conflict_goes_through_the_jvm_as_the_class_that_delta_spark_has(
    spark: SparkSession, name: str
) -> None:
    error = getattr(exceptions, name)("files were added", parameters={"version": 3})
    java = _thrown(Jvm.of(spark), "execute", error)
    assert java.getClass().getName() == f"io.delta.exceptions.{name}"
    with pytest.raises(getattr(exceptions, name)) as caught:
        spark.sparkContext._jvm.scala.util.Failure(java).get()
    assert (caught.value.text, caught.value.parameters) == ("files were added", {"version": 3})


def test_what_ends_a_stream_is_an_error_of_streams_too() -> None:
    with pytest.raises(SchemaError) as caught, delta_errors():
        raise StreamingQueryException(STREAM)
    assert isinstance(caught.value, StreamingQueryException)
    assert caught.value.getCondition() == "DELTA_METADATA_MISMATCH"


def test_parameters_travel_with_the_text() -> None:
    @with_error_parameters
    class Source:
        def read(self) -> Iterator[int]:
            yield 1
            raise SchemaError("two\nlines", condition="DELTA_X", parameters={"a": [1, 2], "b": 'c"\n\n'})

        def schema(self) -> list[int]:
            return list(self.read())

    with pytest.raises(SchemaError) as caught:
        Source().schema()
    text = "".join(traceback.format_exception(caught.value))
    for reported in (text, f"{text}\n SQLSTATE: 38000\n\nJVM stacktrace:\n\tat X", report_text(caught.value)):
        error = as_delta_error(RuntimeError(reported))
        assert type(error) is SchemaError
        assert (error.text, error.parameters) == ("two\nlines", {"a": [1, 2], "b": 'c"\n\n'})


def test_report_that_was_cut_off_within_the_parameters_still_has_the_error() -> None:
    raised = report_text(SchemaError("what", parameters={"a": "long"}))
    error = as_delta_error(RuntimeError(raised[:-4]))
    assert (type(error), str(error)) == (SchemaError, str(SchemaError("what")))


@pytest.mark.spark
class TestClassicSession:
    def test_errors_of_a_dataframe_in_use_are_ours(self, spark: SparkSession, tmp_path: Path) -> None:
        path = str(tmp_path / "t")
        spark.range(2).write.format("pydelta").save(path)
        rows = spark.read.format("pydelta").option("metadataColumns", "row_index").load(path)
        for file in (tmp_path / "t").rglob("*.parquet"):
            file.unlink()
        with pytest.raises(DataFileError) as caught:
            rows.collect()
        assert isinstance(caught.value, PySparkException)
        assert caught.value.getCondition() == "FAILED_READ_FILE.FILE_NOT_EXIST"
        assert caught.value.getMessageParameters()
        assert len(str(caught.value).splitlines()) < 5

    def test_unregistered_sessions_raise_what_spark_reports(self, plain: SparkSession) -> None:
        with pytest.raises(AnalysisException) as caught:
            plain.read.format("pydelta").load("/no/such")
        assert not isinstance(caught.value, DeltaError)

    def test_error_of_planning_a_read_has_its_class(self, spark: SparkSession) -> None:
        with pytest.raises(NotADeltaTableError, match="/no/such"), delta_errors():
            spark.read.format("pydelta").option("path", "/no/such").schema("a int").load().count()

    def test_error_of_planning_a_write_has_its_class(self, spark: SparkSession, tmp_path: Path) -> None:
        rows = spark.range(1).write.format("pydelta").mode("append").option("mergeSchem", "1")
        with pytest.raises(InvalidOptionError, match="unknown write option 'mergeSchem'"), delta_errors():
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


def test_causes_of_spark_connect_tell_no_java() -> None:
    class Reported(Exception):
        _display_stacktrace = False

        def __str__(self) -> str:
            return "no column" + ("\n\tat org.apache.spark" if self._display_stacktrace else "")

    reported = Reported()
    reported._display_stacktrace = True
    with pytest.raises(SchemaError) as caught, delta_errors():
        raise SchemaError("there is no such column") from reported
    assert str(caught.value.__cause__) == "no column"
