"""The project of `examples/kedro`, whose catalog names Delta tables, run by Kedro itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from delta_ds import DeltaLog

pytestmark = pytest.mark.orchestrators

if find_spec("kedro") is None:
    pytest.skip("Kedro is not installed here: run make test-orchestrators", allow_module_level=True)

HERE = Path(__file__).parent


def run(project: Path, *command: str) -> str:
    # Kedro's telemetry asks nobody before it calls home.
    environment = {**os.environ, "DO_NOT_TRACK": "1", "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HERE.parents[2] / "examples" / "kedro", tmp_path / "project"))


def test_the_catalog_reads_and_writes_delta_tables(project: Path) -> None:
    report = json.loads(run(project, str(HERE / "run_project.py"), str(project)).rpartition("REPORT ")[2])
    first = ["1,DE,10,2026-01-01", "2,FR,5,2026-01-01", "3,DE,7,2026-01-02"]
    assert report["first"] == {
        "there": [],
        "orders": first,
        "totals": ["DE,17", "FR,5"],
        "first_orders": first,
    }
    assert report["second"] == {
        "there": ["orders", "totals"],
        # Only the day that landed was replaced.
        "orders": ["1,DE,10,2026-01-01", "2,FR,5,2026-01-01", "4,PL,2,2026-01-02"],
        "totals": ["DE,10", "FR,5", "PL,2"],
        "first_orders": first,
    }


def test_kedro_run_needs_nothing_but_the_hook(project: Path) -> None:
    (project / "data" / "landing").mkdir(parents=True)
    (project / "data" / "landing" / "a.csv").write_text("id,country,amount,day\n1,DE,10,2026-01-01\n")
    run(project, "-m", "kedro", "run")
    for table in ("orders", "totals"):
        log = DeltaLog(project / "data" / table)
        assert (log.to_arrow().num_rows, log.history(1)[0]["operation"]) == (1, "WRITE")
