"""A minute of the load that `make test-chaos` runs for longer, on more stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_tests.faults.chaos.load import Load, Result, run
from spark_tests.faults.chaos.plan import Plan

SEED = 20_261_123


@pytest.mark.slow
def test_a_load_on_a_local_disk_that_fails_loses_and_doubles_nothing(tmp_path: Path) -> None:
    load = Load(seconds=10, seed=SEED, writers=4, appends=10, kill_every=2, local_rate=0.01)
    check(run("local", load, tmp_path))


@pytest.mark.stores
@pytest.mark.slow
def test_a_load_on_a_store_that_makes_trouble_loses_and_doubles_nothing(tmp_path: Path) -> None:
    load = Load(seconds=20, seed=SEED, writers=4, appends=5, rates=(0.02, 0.5), kill_every=4, expire_every=10)
    check(run("moto", load, tmp_path))


def check(result: Result) -> None:
    assert result.ok, (result.lost, result.doubled, result.problems)
    assert result.faults, "no trouble"
    assert result.killed, "nobody was killed"
    assert result.told["done"]


def test_the_same_seed_makes_the_same_trouble() -> None:
    def chosen(seed: int) -> list[str | None]:
        plan = Plan(seed, 0.5, 0.5)
        return [plan.choose("PUT", f"/t/{number}") for number in range(100)]

    assert chosen(1) == chosen(1) != chosen(2)
