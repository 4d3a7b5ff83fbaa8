"""The examples of commands do what they say; all in one session, so that none waits for a JVM of its own."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def run(name: str, spark: SparkSession, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(EXAMPLES / name))["main"](spark, str(folder))
    return capsys.readouterr().out


def test_upsert_applies_a_batch_once_however_often_it_comes(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run("upsert_changes.py", spark, tmp_path, capsys)
    assert "delivery 1 of the batch: 3 rows changed" in output
    assert "delivery 2 of the batch: 0 rows changed" in output
    assert "|      2|     5|102|" in output and "|      9|    40|104|" in output
    assert "|      3|" not in output.partition("|version|")[0]
    assert "|      1|    MERGE|       1|      1|      1|" in output


def test_dimension_keeps_the_city_that_a_customer_had(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run("slowly_changing_dimension.py", spark, tmp_path, capsys)
    assert "|       2|Berlin|2025-01-01|2025-06-01|" in output
    assert "|       2|  Lyon|2025-06-01|      NULL|" in output
    assert "|       3| Porto|2025-01-01|      NULL|" in output and "|       4| Torun|2025-06-01|" in output
    then = output.partition("as of DATE'2025-03-01'")[2]
    assert "|       2|Berlin|" in then and "Lyon" not in then and "Torun" not in then


def test_maintenance_leaves_fewer_files_and_all_rows(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run("maintenance.py", spark, tmp_path, capsys)
    assert "before: 24 files, 3000 rows" in output
    assert "compaction of day 0: 12 files became 1" in output
    assert "order by user, id: 13 files became 2" in output
    assert "after: 2 files, 3000 rows" in output
    assert "vacuum would delete 25 files" in output
    assert len([file for file in tmp_path.rglob("*.parquet") if "_delta_log" not in file.parts]) == 2


def test_erased_person_is_in_no_file(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run("gdpr_delete.py", spark, tmp_path, capsys)
    assert "at first: readers see 200 rows of them, 200 are in the files" in output
    assert "200 rows deleted: readers see 0 rows of them, 200 are in the files" in output
    assert "purged: readers see 0 rows of them, 200 are in the files" in output
    assert "vacuumed: readers see 0 rows of them, 0 are in the files" in output
