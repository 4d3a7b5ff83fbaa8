"""The examples of streams do what they say; all in one session, so that none waits for a JVM of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_tests.product.examples.test_command_examples import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_tail_shows_each_commit_as_a_batch(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run("tail_table.py", spark, tmp_path, capsys)
    # What the console shows is printed by the JVM.
    assert [f"batch {number}: 3 rows" in output for number in range(3)] == [True] * 3


def test_pipeline_reads_what_is_new_and_nothing_twice(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run("stream_table_to_table.py", spark, tmp_path, capsys)
    first, second, third = (line.split() for line in output.splitlines() if line.startswith("read "))
    assert int(first[1]) > 0 and int(second[1]) > 0 and third[1] == "0"
    assert int(first[-1]) < int(second[-1]) == int(third[-1])
    assert output.count("STREAMING UPDATE") == 2


def test_upsert_keeps_the_copy_in_step(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run("stream_upsert.py", spark, tmp_path, capsys)
    assert "orders in the source: 241 and in its copy: 241" in output
    assert "orders that differ: 0" in output


def test_dimensions_follow_a_change_feed_and_a_second_run_has_nothing_to_do(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run("apply_changes.py", spark, tmp_path, capsys)
    first, second = (line.partition(" run ")[2][3:] for line in output.splitlines() if "after run" in line)
    assert first == second and "orders that differ: 0" in output
    assert "orders that hold: 241 of 241" in output
