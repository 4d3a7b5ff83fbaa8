"""The assets of `examples/dagster`, materialized by Dagster itself."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog

pytestmark = pytest.mark.orchestrators

if find_spec("dagster") is None:
    pytest.skip("Dagster is not installed here: run make test-orchestrators", allow_module_level=True)

import dagster as dg  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "dagster" / "orders.py"


class Lake:
    """The assets of the example, their tables, and the files that have landed."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.folder, self.instance = folder, instance
        self.names = runpy.run_path(str(EXAMPLE))
        self.resources = {"io_manager": self.names["lake"], "lake": self.names["lake"]}
        self.all = [self.names[name] for name in ("orders", "totals", "maintenance")]

    def land(self, day: str, *rows: str) -> None:
        (self.folder / "landing" / f"{day}.csv").write_text("\n".join(["id,country,amount", *rows, ""]))

    def make(self, asset: str, day: str | None = None, *more: dg.AssetsDefinition) -> dict[str, Any]:
        """Materialize an asset, and answer with its metadata."""
        result = dg.materialize(
            [*self.all, *more], selection=[asset], partition_key=day, resources=self.resources, instance=self.instance
        )  # fmt: skip
        assert result.success
        (event,) = result.asset_materializations_for_node(asset)
        return {name: value.value for name, value in event.metadata.items()} | {"run": result.run_id}

    def table(self, name: str) -> DeltaLog:
        return DeltaLog(self.folder / "lake" / name)

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in self.table(name).to_arrow().to_pylist())


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    (tmp_path / "landing").mkdir()
    monkeypatch.setenv("ORDERS_LANDING", str(tmp_path / "landing"))
    monkeypatch.setenv("ORDERS_LAKE", str(tmp_path / "lake"))
    with dg.DagsterInstance.ephemeral() as instance:
        yield Lake(tmp_path, instance)


def test_a_partition_that_runs_again_replaces_its_own_rows(lake: Lake) -> None:
    lake.land("2026-01-01", "1,DE,10", "2,FR,5.5")
    lake.land("2026-01-02", "3,DE,7")
    for day in ("2026-01-02", "2026-01-01", "2026-01-02"):
        made = lake.make("orders", day)
    assert (made["version"], made["rows"]) == (2, 1)
    assert lake.rows("orders") == [
        (1, "DE", 10.0, "2026-01-01"), (2, "FR", 5.5, "2026-01-01"), (3, "DE", 7.0, "2026-01-02"),
    ]  # fmt: skip
    lake.land("2026-01-01", "1,DE,11")
    made = lake.make("orders", "2026-01-01")
    assert lake.rows("orders") == [(1, "DE", 11.0, "2026-01-01"), (3, "DE", 7.0, "2026-01-02")]
    latest = lake.table("orders").history(1)[0]
    assert latest["operationParameters"]["predicate"] == "day = '2026-01-01'"
    assert latest["userMetadata"] == f"dagster run {made['run']}"


def test_an_asset_reads_all_partitions_or_the_one_of_its_own_day(lake: Lake) -> None:
    @dg.asset(partitions_def=lake.names["daily"])
    def count(orders: pa.Table) -> pa.Table:
        days = orders.column("day").unique().to_pylist()
        return pa.table({"day": days, "orders": [orders.num_rows] * len(days)})

    lake.land("2026-01-01", "1,DE,10", "2,FR,5.5")
    lake.land("2026-01-02", "3,DE,7")
    for day in ("2026-01-01", "2026-01-02"):
        lake.make("orders", day)
        lake.make("count", day, count)
    assert lake.rows("count") == [("2026-01-01", 2), ("2026-01-02", 1)]
    lake.make("totals")
    lake.make("totals")
    assert lake.rows("totals") == [("DE", 17.0), ("FR", 5.5)]


def test_maintenance_compacts_days_that_are_over(lake: Lake) -> None:
    lake.land("2026-01-01", "1,DE,10")
    lake.make("orders", "2026-01-01")
    table = lake.table("orders")
    table.write(table.to_arrow())
    assert table.snapshot().scan().num_files == 2
    made = lake.make("maintenance")
    assert made["deleted"] == 0  # a week has not passed
    assert table.snapshot().scan().num_files == 1
    assert len(lake.rows("orders")) == 2


def test_dagster_loads_the_file_as_it_is(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-f", str(EXAMPLE)],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Validation successful" in done.stdout + done.stderr
