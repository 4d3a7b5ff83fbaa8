"""CHECK constraints: adding, dropping, and what cannot be one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import ConcurrentAppendException, DeltaError, InvariantViolationError
from delta_ds.kernel.format.expressions.sql import parse_definition
from delta_ds.kernel.transaction.alter.definitions import (
    add_constraint,
    drop_constraint,
    normalise_expression,
)
from spark_tests.behaviour.kernel.transaction.alter.tables import action, made, protocol, with_rows


def accept(expression: str) -> None:
    """Every row meets it."""


def test_a_constraint_is_stored_under_its_lower_case_name(tmp_path: Path) -> None:
    log = made(tmp_path)
    version = add_constraint(log, "Positive", "id > 0 AND v IS NOT NULL", accept)
    assert log.snapshot().properties == {"delta.constraints.positive": "id > 0 AND v IS NOT NULL"}
    assert protocol(log) == (1, 3, None, None)
    info = action(log, version, "commitInfo")
    assert info["operation"] == "ADD CONSTRAINT"
    assert info["operationParameters"] == {"name": "Positive", "expr": "id > 0 AND v IS NOT NULL"}


@pytest.mark.parametrize(
    "expression",
    [
        "exists(array(id), x->x>0)",
        "aggregate(array(id),0,(x,y)->x+y)>0",
        "id::bigint>0",
        r"v RLIKE r'^\w'",
        "v||'x' <> concat_ws(',',v) AND id<=>id",
        "cast(v AS BINARY) <> X'00'",
        "id > -1.5e1 AND `v` != 'its' /* a note */",
    ],
)
def test_what_is_kept_means_what_was_given(expression: str) -> None:
    assert parse_definition(normalise_expression(expression)) == parse_definition(expression)


def test_a_doubled_quote_is_kept_as_delta_spark_keeps_it() -> None:
    """As two texts, which mean one without the quote: to delta-spark, and to every writer of the table."""
    assert normalise_expression("v <> 'it''s'") == "v <> 'it' 's'"


def test_a_constraint_with_a_lambda_is_kept_as_one_that_writers_read(tmp_path: Path) -> None:
    log = with_rows(tmp_path)
    checked = list[str]()
    add_constraint(log, "c", "exists(array(id),x->x>0)", checked.append)
    assert checked == ["exists ( array ( id ) , x -> x > 0 )"]
    log.write(pa.table({"id": [7]}), mode="append")
    with pytest.raises(InvariantViolationError, match="exists"):
        log.write(pa.table({"id": [-7]}), mode="append")


def test_rows_are_verified_before_anything_is_written(tmp_path: Path) -> None:
    log = with_rows(tmp_path)
    seen = []

    def refuse(expression: str) -> None:
        seen.append((expression, log.snapshot().version))
        raise InvariantViolationError("no", condition="DELTA_NEW_CHECK_CONSTRAINT_VIOLATION")

    with pytest.raises(InvariantViolationError):
        add_constraint(log, "c", "id > 1", refuse)
    assert seen == [("id > 1", 1)]
    assert log.snapshot().version == 1


def test_rows_added_while_they_are_verified_are_a_conflict(tmp_path: Path) -> None:
    log = with_rows(tmp_path)

    def append_meanwhile(expression: str) -> None:
        (add,) = log.open_snapshot().live_files().table.to_pylist()
        body = {"path": "other.parquet", "partitionValues": {}, "size": add["size"],
                "modificationTime": add["modificationTime"], "dataChange": True}  # fmt: skip
        DeltaLog(tmp_path).start_transaction().add(body).commit("WRITE", {"mode": "Append"})

    with pytest.raises(ConcurrentAppendException):
        add_constraint(log, "c", "id > 0", append_meanwhile)


@pytest.mark.parametrize(
    ("expression", "condition"),
    [
        ("id + 1", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
        ("NULL", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
        ("nosuch > 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("id >", "PARSE_SYNTAX_ERROR"),
        ("sum(id) > 1", "DELTA_AGGREGATE_IN_CHECK_CONSTRAINT"),
        ("rand() < 0.5", "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT"),
        ("my_function(id)", "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT"),
    ],
)
def test_what_could_not_be_checked_is_refused(tmp_path: Path, expression: str, condition: str) -> None:
    log = made(tmp_path / "old")
    with pytest.raises(DeltaError) as caught:
        add_constraint(log, "c", expression, accept)
    assert caught.value.condition == condition
    assert log.snapshot().version == 0
    with pytest.raises(DeltaError) as caught:
        made(tmp_path / "new", properties={"delta.constraints.c": expression})
    assert caught.value.condition == condition


def test_a_name_is_taken_whatever_its_case(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.constraints.C": "id > 0"})
    with pytest.raises(DeltaError, match="id > 0") as caught:
        add_constraint(log, "c", "id > 5", accept)
    assert caught.value.condition == "DELTA_CONSTRAINT_ALREADY_EXISTS"


def test_a_dropped_constraint_is_gone(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.constraints.c": "id > 0", "delta.constraints.d": "v > 0"})
    version = drop_constraint(log, "C")
    assert log.snapshot().properties == {"delta.constraints.d": "v > 0"}
    info = action(log, version, "commitInfo")
    assert info["operation"] == "DROP CONSTRAINT"
    assert info["operationParameters"] == {"name": "C", "expr": "id > 0", "existed": "true"}


def test_a_constraint_that_is_not_there_is_named(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.constraints.d": "v > 0"})
    with pytest.raises(DeltaError, match="it has d") as caught:
        drop_constraint(log, "nosuch")
    assert caught.value.condition == "DELTA_CONSTRAINT_DOES_NOT_EXIST"
    assert log.snapshot().version == 0


def test_a_missing_constraint_that_may_be_missing_is_a_commit_that_says_so(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.constraints.d": "v > 0"})
    version = drop_constraint(log, "nosuch", if_exists=True)
    assert action(log, version, "commitInfo")["operationParameters"] == {"name": "nosuch", "existed": "false"}
    assert log.snapshot().properties == {"delta.constraints.d": "v > 0"}
