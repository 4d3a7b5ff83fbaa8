"""A dbt project on Delta tables: built, built on top, documented, cloned, rebuilt.

By the session method, as `python -m delta_ds run` runs it, and by the Thrift method, through `pydelta serve --thrift`.
The project names delta-spark's extension and catalog, as projects do. The rows below are those that its models say.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_tests.behaviour.spark.serving import served

pytestmark = pytest.mark.dbt

pytest.importorskip("dbt.cli", reason="dbt is not installed here: run make test-dbt")

HERE = Path(__file__).parent
RUN = [sys.executable, "-m", "delta_ds", "run", "--"]
METHODS = ("session", "thrift")
NODES = 19  # seeds, models, snapshots and tests of `project`


def run(
    command: list[str], folder: Path, by: Sequence[str] = RUN, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program, which has to succeed; `by` another one in front of it."""
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [*by, *command], capture_output=True, text=True, cwd=folder, env=environment, timeout=600
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done


@pytest.fixture(scope="module", params=METHODS)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of every step of `steps.py`."""
    folder = tmp_path_factory.mktemp("shop")
    shutil.copytree(HERE / "project", folder / "project")
    command = [str(HERE / "steps.py"), str(folder)]
    if request.param == "session":
        return _reported(run(command, folder).stdout)
    with served(folder) as url:
        address = url.removeprefix("jdbc:hive2://").rstrip("/").split(":")
        return _reported(run([sys.executable, *command, *address], folder, by=()).stdout)


def _reported(printed: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(printed.rpartition("\nREPORT ")[2])
    return report


def test_the_command_itself_builds_the_seeds(tmp_path: Path):
    shutil.copytree(HERE / "project", tmp_path / "project")
    variables = {"SHOP_FOLDER": str(tmp_path), "DBT_PROFILES_DIR": str(tmp_path / "project")}
    done = run(["dbt", "seed", "--project-dir", str(tmp_path / "project")], tmp_path, **variables)
    assert "PASS=2 WARN=0 ERROR=0" in done.stdout
    assert "delta_spark_setting_left_out name=spark.sql.catalog.spark_catalog" in done.stderr


@pytest.mark.parametrize(
    ("step", "nodes"),
    [
        ("debug", 0),
        ("first", NODES),
        ("second", NODES),
        ("docs", 0),
        ("freshness", 1),
        ("show", 1),
        ("clone", 13),
        ("operations", 0),
        ("full refresh", NODES),
    ],
)
def test_every_node_of_a_step_succeeds(report: dict[str, Any], step: str, nodes: int):
    found = report[step]
    assert (found["failed"], found["error"], found["success"]) == ({}, None, True)
    assert found["nodes"] >= nodes


FIRST = {
    "daily": [
        "day=2026-01-01, orders=1, amount=10.50",
        "day=2026-01-02, orders=2, amount=25.25",
        "day=2026-01-03, orders=1, amount=7.00",
    ],
    "appended": ["id=1, amount=10.50", "id=2, amount=20.00", "id=3, amount=5.25", "id=4, amount=7.00"],
    "contracted": ["id=1, name=Ada", "id=2, name=Bo", "id=3, name=Cy"],
    "counter": ["n=4"],
}
SECOND = {
    "daily": [*FIRST["daily"], "day=2026-01-04, orders=1, amount=8.00"],
    # With a new column, from a view over the table itself.
    "appended": [
        *(f"{row}, step=None" for row in FIRST["appended"]),
        "id=4, amount=7.00, step=later",
        "id=5, amount=8.00, step=later",
    ],
    # Amounts rise by one, and the first amount is not updated.
    "merged": [
        "id=1, amount=11.50, first_amount=10.50",
        "id=104, amount=1.00, first_amount=1.00",
        "id=2, amount=21.00, first_amount=20.00",
        "id=3, amount=6.25, first_amount=5.25",
        "id=4, amount=8.00, first_amount=7.00",
        "id=5, amount=9.00, first_amount=8.00",
    ],
    # One partition only.
    "overwritten": [
        "id=1, amount=10.50, day=2026-01-01",
        "id=2, amount=21.00, day=2026-01-02",
        "id=3, amount=6.25, day=2026-01-02",
        "id=4, amount=7.00, day=2026-01-03",
    ],
    # Replaced by a query on itself.
    "counter": ["n=1", "n=14"],
    # The version before.
    "travelled": FIRST["daily"],
}


@pytest.mark.parametrize(("name", "expected"), [("first", FIRST), ("second", SECOND)])
def test_the_tables_hold_what_the_models_say(
    report: dict[str, Any], name: str, expected: dict[str, list[str]]
):
    found = report[f"rows of the {name}"]
    assert {table: found[table] for table in expected} == expected


def test_a_snapshot_ends_the_rows_that_changed_or_went(report: dict[str, Any]):
    rows = [row.partition(", dbt_valid_to=") for row in report["rows of the second"]["customer_history"]]
    assert [(row, ended != "None") for row, _, ended in rows] == [
        ("id=1, name=Ada, country=DE", False),
        ("id=2, name=Bo, country=FR", True),
        ("id=2, name=Bob, country=FR", False),
        ("id=3, name=Cy, country=PL", True),
        ("id=4, name=Di, country=DE", False),
    ]


def test_clones_hold_the_same_rows(report: dict[str, Any]):
    clones, originals = report["rows of the clones"], report["rows of the second"]
    assert {"daily", "merged", "customer_history"} <= set(clones)
    assert clones == {table: originals[table] for table in clones}


def test_operations_read_the_answers_of_statements(report: dict[str, Any]):
    assert report["operations"]["notes"] == [
        "history MERGE,CREATE OR REPLACE TABLE AS SELECT",
        "detail delta",
        "changes 10",
        "columns day,orders,amount",
        "property true",
        "restored 4",
        "truncated 0",
    ]
