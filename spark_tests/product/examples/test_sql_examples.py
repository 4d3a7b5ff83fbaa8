"""The examples in SQL do what they say; all in one session, so that none waits for a JVM of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_tests.product.examples.test_command_examples import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_medallion_takes_a_batch_twice_and_replaces_gold_whole(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run("sql_medallion.py", spark, tmp_path, capsys)
    changed = [line for line in output.splitlines() if "arrived" in line]
    assert changed == [
        "3 lines arrived: 2 orders changed",
        "3 lines arrived: 0 orders changed",
        "2 lines arrived: 2 orders changed",
    ]
    assert "|     FR|     1|   25.00|" in output and "|     FR|     1|   20.50|" in output
    assert "|2      |CREATE OR REPLACE TABLE AS SELECT|" in output
    assert not spark.catalog.databaseExists("medallion")


def test_dimension_keeps_the_city_that_a_customer_had(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run("sql_slowly_changing_dimension.py", spark, tmp_path, capsys)
    assert "|       2|Berlin|2025-01-01|2025-06-01|" in output
    assert "|       2|  Lyon|2025-06-01|      NULL|" in output
    assert "|       3| Porto|2025-01-01|      NULL|" in output and "|       4| Torun|2025-06-01|" in output
    then = output.partition("as of DATE'2025-03-01'")[2]
    assert "|       2|Berlin|" in then and "Lyon" not in then and "Torun" not in then


def test_erased_person_is_in_no_file(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run("sql_gdpr_delete.py", spark, tmp_path, capsys)
    assert "at first: readers see 200 rows of them, 200 are in the files" in output
    assert "200 rows deleted: readers see 0 rows of them, 200 are in the files" in output
    assert "vacuumed: readers see 0 rows of them, 0 are in the files" in output
    assert not spark.catalog.tableExists("visits")


def test_maintenance_joins_files_and_takes_back_a_mistake(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run("sql_maintenance.py", spark, tmp_path, capsys)
    assert "before: events: 24 files, 3000 rows" in output and "before: clicks: 24 files, 3000 rows" in output
    assert "OPTIMIZE events WHERE day = 0: 12 files became 1" in output
    assert "OPTIMIZE events ZORDER BY (user, id): 13 files became 2" in output
    assert "OPTIMIZE clicks: 24 files became 1" in output
    assert "after: events: 2 files, 3000 rows" in output
    assert "vacuum would delete 25 files" in output
    assert "emptied: events: 0 files, 0 rows" in output and "restored: events: 2 files, 3000 rows" in output
