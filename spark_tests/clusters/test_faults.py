"""Tasks fail or stay behind, executors are killed: rows are exact, and no file is lost or hidden."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_tests.clusters.outcome import Outcome
from spark_tests.clusters.processes import application, environment, standalone_cluster
from spark_tests.clusters.scenarios import SCENARIOS

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


class TestLocalCluster:
    @pytest.fixture(scope="class")
    def results(self, tmp_path_factory: pytest.TempPathFactory) -> Results:
        folder = tmp_path_factory.mktemp("local")
        job = {"master": LOCAL, "folder": str(folder), "label": "local-cluster[2,1,1024]"}
        return application({**job, "scenarios": list(SCENARIOS)})

    @pytest.mark.cluster
    @pytest.mark.parametrize("scenario", SCENARIOS)
    def test_survives(self, results: Results, scenario: str, outcomes: list[Outcome]) -> None:
        check(results, scenario, outcomes)
        assert results[scenario]["outcome"]["killed"] > 0
        assert results[scenario]["outcome"]["failed"] > 0


class TestSpeculation:
    """The first attempt of a task stays behind, and a second one overtakes it; executors are killed as well."""

    @pytest.fixture(scope="class")
    def results(self, tmp_path_factory: pytest.TempPathFactory) -> Results:
        folder = tmp_path_factory.mktemp("speculation")
        job = {"master": LOCAL, "folder": str(folder), "label": "spark.speculation=true", "conf": SPECULATION}
        return application({**job, "scenarios": list(SCENARIOS), "slow": True})

    @pytest.mark.cluster
    @pytest.mark.parametrize("scenario", SCENARIOS)
    def test_survives(self, results: Results, scenario: str, outcomes: list[Outcome]) -> None:
        check(results, scenario, outcomes)

    @pytest.mark.cluster
    def test_took_place(self, results: Results) -> None:
        assert sum(found["speculative"] for found in results.values()) > 0


class TestStandalone:
    """A master and two workers; executors come when there is work, and go when there is none."""

    @pytest.fixture(scope="class")
    def results(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
        folder = tmp_path_factory.mktemp("standalone")
        with standalone_cluster(folder, environment()) as cluster:
            job = {
                "master": cluster.url,
                "folder": str(folder / "application"),
                "conf": DYNAMIC,
                "executors": 0,
            }
            yield application(
                {**job, "scenarios": list(SCENARIOS), "label": "standalone, dynamic allocation"}
            )

    @pytest.mark.cluster
    @pytest.mark.parametrize("scenario", SCENARIOS)
    def test_survives(self, results: Results, scenario: str, outcomes: list[Outcome]) -> None:
        check(results, scenario, outcomes)
        assert results[scenario]["outcome"]["killed"] > 0


@pytest.mark.spark
@pytest.mark.slow
def test_tasks_fail_and_executors_die_and_rows_stay_exact(tmp_path: Path, outcomes: list[Outcome]) -> None:
    job = {"master": LOCAL, "folder": str(tmp_path / "small"), "label": "local-cluster[2,1,1024], small form"}
    scenarios = ["write", "merge"]
    results = application({**job, "scenarios": scenarios})
    for scenario in scenarios:
        check(results, scenario, outcomes)
