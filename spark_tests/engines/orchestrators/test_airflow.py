"""The DAGs of `examples/airflow`, run by Airflow itself with a SQLite database in a folder of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from delta_ds import DeltaLog

pytestmark = pytest.mark.orchestrators

if find_spec("airflow") is None:
    pytest.skip("Airflow is not installed here: run make test-orchestrators", allow_module_level=True)

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
EXAMPLES = ROOT / "examples" / "airflow"
ALL_WELL = {"load": "success", "note": "success", "maintain": "success"}


class Airflow:
    """An Airflow of its own, with the files that have landed and the tables of its DAGs."""

    def __init__(self, folder: Path) -> None:
        self.landing = folder / "landing"
        self.landing.mkdir()
        self.orders, self.totals = str(folder / "lake" / "orders"), str(folder / "lake" / "totals")
        self._environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("AIRFLOW")},
            "AIRFLOW_HOME": str(folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "ORDERS_LANDING": str(self.landing),
            "ORDERS_TABLE": self.orders,
            "TOTALS_TABLE": self.totals,
        }
        self._python("-m", "airflow", "db", "migrate")

    def land(self, day: str, *rows: str, columns: str = "id,country,amount") -> None:
        (self.landing / f"{day}.csv").write_text("\n".join([columns, *rows, ""]))

    def run(self, example: str, *days: str) -> list[dict[str, Any]]:
        """What became of a run of a DAG for each day."""
        told = self._python(str(HERE / "run_dag.py"), str(EXAMPLES / example), *days)
        return [json.loads(line[4:]) for line in told.splitlines() if line.startswith("RUN ")]

    def _python(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words], env=self._environment, capture_output=True, text=True, timeout=600, check=False
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout


@pytest.fixture
def airflow(tmp_path: Path) -> Airflow:
    return Airflow(tmp_path)


def rows(path: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in DeltaLog(path).to_arrow().to_pylist())


def test_a_day_that_runs_again_replaces_its_rows_and_is_noted_once(airflow: Airflow) -> None:
    airflow.land("2026-01-01", "1,DE,10", "2,FR,5.5")
    airflow.land("2026-01-02", "3,DE,7")
    first = airflow.run("orders.py", "2026-01-02", "2026-01-01", "2026-01-01")
    assert [run["tasks"] for run in first] == [ALL_WELL] * 3
    assert rows(airflow.orders) == [
        (1, "DE", 10.0, "2026-01-01"), (2, "FR", 5.5, "2026-01-01"), (3, "DE", 7.0, "2026-01-02"),
    ]  # fmt: skip
    airflow.land("2026-01-01", "1,DE,11")
    airflow.run("orders.py", "2026-01-01")
    assert rows(airflow.orders) == [(1, "DE", 11.0, "2026-01-01"), (3, "DE", 7.0, "2026-01-02")]

    assert rows(f"{airflow.orders}_loads") == [("2026-01-01", 2), ("2026-01-02", 1)]
    notes = DeltaLog(f"{airflow.orders}_loads")
    commits = [commit["operation"] for commit in reversed(notes.history())]
    assert [name for name in commits if "VACUUM" not in name] == ["WRITE", "WRITE", "OPTIMIZE"]
    assert notes.snapshot().scan().num_files == 1

    (latest,) = [commit for commit in DeltaLog(airflow.orders).history() if commit["operation"] == "WRITE"][
        :1
    ]
    assert latest["operationParameters"]["predicate"] == "day = '2026-01-01'"
    job = latest["job"]
    assert (job["jobId"], job["jobName"]) == ("orders", "load")
    assert job["jobRunId"].startswith("manual__")


def test_a_file_that_does_not_fit_fails_at_once_and_changes_nothing(airflow: Airflow) -> None:
    airflow.land("2026-01-01", "1,DE,10")
    airflow.run("orders.py", "2026-01-01")
    before = DeltaLog(airflow.orders).snapshot().version
    airflow.land("2026-01-01", "1,DE,10,x", columns="id,country,amount,coupon")
    (run,) = airflow.run("orders.py", "2026-01-01")
    assert (run["state"], run["tasks"]["load"]) == ("failed", "failed")
    assert run["tasks"]["note"] == run["tasks"]["maintain"] == "upstream_failed"
    assert DeltaLog(airflow.orders).snapshot().version == before


def test_totals_follow_the_orders_of_their_day_through_spark(airflow: Airflow) -> None:
    airflow.land("2026-01-01", "1,DE,10", "2,FR,5.5", "4,DE,1")
    airflow.land("2026-01-02", "3,DE,7")
    airflow.run("orders.py", "2026-01-01", "2026-01-02")
    runs = airflow.run("totals.py", "2026-01-01", "2026-01-02")
    assert [run["tasks"] for run in runs] == [{"merge": "success"}] * 2
    assert rows(airflow.totals) == [
        ("2026-01-01", "DE", 11.0), ("2026-01-01", "FR", 5.5), ("2026-01-02", "DE", 7.0),
    ]  # fmt: skip
    airflow.land("2026-01-01", "2,FR,6")
    airflow.run("orders.py", "2026-01-01")
    airflow.run("totals.py", "2026-01-01")
    assert rows(airflow.totals) == [("2026-01-01", "FR", 6.0), ("2026-01-02", "DE", 7.0)]
    latest = DeltaLog(airflow.totals).history(1)[0]
    assert (latest["operation"], latest["job"]["jobId"], latest["job"]["jobName"]) == (
        "MERGE",
        "totals",
        "merge",
    )
