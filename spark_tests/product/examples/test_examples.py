"""Every example runs, says what it promises, and stays short."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_tests.product.examples.test_command_examples import run as run_in_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[3]
# The programs, and the files that schedulers are given.
EXAMPLES = sorted(
    path.relative_to(ROOT / "examples").as_posix()
    for folder in ("", "airflow", "dagster", "docker", "kedro/src/shop")
    for path in (ROOT / "examples" / folder).glob("*.py")
)
SALES = ROOT / "examples" / "data" / "sales"
LONGEST = 60


def run(name: str) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_short_and_says_what_it_shows(name: str) -> None:
    text = (ROOT / "examples" / name).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert ast.get_docstring(ast.parse(text))


def test_kernel_example_explains_files_without_spark() -> None:
    output = run("inspect_log.py")
    assert "version 7, partitioned by country" in output
    assert "  read  country=DE" in output and "  skip  country=FR" in output


def test_audit_example_names_the_commits_that_wrote_rows() -> None:
    output = run("who_changed_what.py")
    assert "  order 3: version 0, orders of Monday" in output and "  version 0: 3 rows" in output
    assert "  version 2: DELETE" in output


def test_time_travel_example_shows_old_and_new_rows(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run_in_session("read_and_time_travel.py", spark, SALES, capsys)
    assert "now: 241 orders" in output and "at version 1: 60 orders" in output
    assert "MERGE" in output and ": 120 orders" in output


def test_changes_example_shows_updates_before_and_after(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run_in_session("read_changes.py", spark, SALES, capsys)
    assert "update_preimage" in output and "update_postimage" in output
    assert "the life of order" in output


def test_write_example_evolves_replaces_and_refuses(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run_in_session("write_and_evolve.py", spark, tmp_path, capsys)
    assert "refused:" in output and "|   2|         10|" in output
    assert "ADD CONSTRAINT" in output and "replaceWhere" not in output.splitlines()[0]
