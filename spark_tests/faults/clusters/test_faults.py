"""Tasks fail or stay behind, executors are killed: rows are exact, and no file is lost or hidden."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from delta_ds.api.delta_log import DeltaLog
from spark_tests.faults.clusters.faults import new_file
from spark_tests.faults.clusters.invariants import check_table
from spark_tests.faults.clusters.outcome import Outcome
from spark_tests.faults.clusters.processes import (
    application,
    environment,
    standalone_cluster,
    started_application,
)
from spark_tests.faults.clusters.scenarios import COUNT, SCENARIOS

pytestmark = pytest.mark.long

LOCAL = "local-cluster[2,1,1024]"
SPECULATION = {
    "spark.speculation": "true", "spark.speculation.interval": "100ms", "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3", "spark.speculation.minTaskRuntime": "100ms",
}  # fmt: skip
DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0", "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.executorIdleTimeout": "3s", "spark.dynamicAllocation.shuffleTracking.timeout": "10s",
}  # fmt: skip

Results = dict[str, dict[str, Any]]


def check(results: Results, scenario: str, outcomes: list[Outcome]) -> None:
    found = results[scenario]
    assert found["failure"] is None, found["failure"]
    outcome = Outcome(**found["outcome"])
    outcomes.append(outcome)
    assert outcome.missing == 0
    assert outcome.rows > 0


@pytest.fixture(scope="module")
def on_local_cluster(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = str(tmp_path_factory.mktemp("local"))
    job = {"master": LOCAL, "folder": folder, "label": LOCAL, "scenarios": list(SCENARIOS)}
    return application(job)


@pytest.fixture(scope="module")
def with_speculation(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The first attempt of a task stays behind, and one on another host overtakes it; executors are killed as well."""
    folder = tmp_path_factory.mktemp("speculation")
    with standalone_cluster(folder, environment()) as cluster:
        job = {
            "master": cluster.url,
            "folder": str(folder / "application"),
            "conf": SPECULATION,
            "slow": True,
        }
        return application({**job, "scenarios": list(SCENARIOS), "label": "standalone, speculation"})


@pytest.fixture(scope="module")
def on_standalone_cluster(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A master and two workers; executors come when there is work, and go when there is none."""
    folder = tmp_path_factory.mktemp("standalone")
    with standalone_cluster(folder, environment()) as cluster:
        job = {"master": cluster.url, "folder": str(folder / "application"), "conf": DYNAMIC, "executors": 0}
        return application({**job, "scenarios": list(SCENARIOS), "label": "standalone, dynamic allocation"})


@pytest.mark.cluster
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_local_cluster(on_local_cluster: Results, scenario: str, outcomes: list[Outcome]) -> None:
    check(on_local_cluster, scenario, outcomes)
    assert on_local_cluster[scenario]["outcome"]["killed"] > 0


@pytest.mark.cluster
def test_tasks_failed_on_it(on_local_cluster: Results) -> None:
    failed = {scenario: found["outcome"]["failed"] for scenario, found in on_local_cluster.items()}
    assert failed["write"] > 0 and failed["merge"] > 0, failed


@pytest.mark.cluster
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_speculation(with_speculation: Results, scenario: str, outcomes: list[Outcome]) -> None:
    check(with_speculation, scenario, outcomes)


@pytest.mark.cluster
def test_speculation_took_place(with_speculation: Results) -> None:
    assert sum(found["speculative"] for found in with_speculation.values()) > 0


@pytest.mark.cluster
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_dynamic_allocation(on_standalone_cluster: Results, scenario: str, outcomes: list[Outcome]) -> None:
    check(on_standalone_cluster, scenario, outcomes)
    assert on_standalone_cluster[scenario]["outcome"]["killed"] > 0


@pytest.mark.cluster
def test_a_killed_application_leaves_nothing_that_vacuum_does_not_find(
    tmp_path: Path, outcomes: list[Outcome]
) -> None:
    job = {"master": LOCAL, "folder": str(tmp_path / "killed"), "label": LOCAL, "scenarios": ["abandoned"]}
    table = tmp_path / "killed" / "abandoned" / "table"
    with started_application(job) as process:
        _wait_until(lambda: (table / "_delta_log" / f"{0:020}.json").exists(), process)
        _wait_until(new_file(table), process)
    rows = DeltaLog(table).snapshot().scan().to_arrow().num_rows
    assert rows == COUNT
    orphans, missing = check_table(str(table))
    assert orphans > 0
    outcome = Outcome(
        f"{LOCAL}: driver and executors killed", killed=2, rows=rows, orphans=orphans, missing=missing
    )
    outcomes.append(outcome)
    assert missing == 0


def _wait_until(there: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 300
    while not there():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.spark
@pytest.mark.slow
def test_tasks_fail_and_executors_die_and_rows_stay_exact(tmp_path: Path, outcomes: list[Outcome]) -> None:
    job = {"master": LOCAL, "folder": str(tmp_path / "small"), "label": LOCAL, "scenarios": ["merge"]}
    check(application(job), "merge", outcomes)
