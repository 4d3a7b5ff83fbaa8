"""Tables of a catalog by name: made, taken over, listed and dropped."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import delta_ds
from delta_ds import DeltaLog
from delta_ds.exceptions import (
    DeltaError,
    InvalidOptionError,
    StorageError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)
from delta_ds.kernel.commands.clone import shallow_clone
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.transaction.alter.properties import set_properties
from spark_tests.behaviour.kernel.storage.coordination.helpers import NAME, Managed

CORPUS = Path(__file__).parents[4] / "engines/conformance/corpora/acceptance/tables"


def catalog(folder: Path) -> delta_ds.Catalog:
    return delta_ds.catalog("sqlite", str(folder / "coordinator.db"))


def test_names_are_found_in_any_case_and_taken_once(tmp_path: Path) -> None:
    tables = catalog(tmp_path)
    tables.create("Main.Sales.Orders", str(tmp_path / "orders"))
    assert tables.names() == ["Main.Sales.Orders"]
    assert tables.log("MAIN.sales.orders").write(pa.table({"id": [1]})) == 0
    for name, place in [("main.sales.orders", "other"), ("main.sales.other", "orders")]:
        with pytest.raises(DeltaError) as caught:
            tables.create(name, str(tmp_path / place))
        assert caught.value.condition in (
            "DELTA_COORDINATOR_TABLE_EXISTS",
            "DELTA_UNMANAGED_TABLE_AT_LOCATION",
        )
    with pytest.raises(InvalidOptionError, match="give the location"):
        tables.create("main.sales.nowhere")


def test_options_for_spark_are_not_shown(tmp_path: Path) -> None:
    tables = delta_ds.catalog("sqlite", str(tmp_path / "c.db"), {"coordinatorToken": "s3cr3t-token"})
    tables.create(NAME, str(tmp_path / "orders")).write(pa.table({"id": [1]}))
    given, then = tables.options(NAME), tables.moment([NAME]).options(NAME)
    assert given["storage.coordinatorToken"] == then["storage.coordinatorToken"] == "s3cr3t-token"
    assert "s3cr3t-token" not in f"{given} {then!r} {tables!r}"


def test_a_table_that_is_there_is_not_made_managed(tmp_path: Path) -> None:
    DeltaLog(tmp_path / "plain").write(pa.table({"id": [1]}))
    with pytest.raises(StorageError) as caught:
        catalog(tmp_path).create("main.sales.plain", str(tmp_path / "plain"))
    assert caught.value.condition == "DELTA_UNMANAGED_TABLE_AT_LOCATION"
    with pytest.raises(UnsupportedFeatureError) as untaken:
        catalog(tmp_path).register("main.sales.plain", str(tmp_path / "plain"))
    assert untaken.value.condition == "DELTA_CATALOG_MANAGED_MISMATCH"
    for log in (DeltaLog(tmp_path / "plain"), Managed(tmp_path).open()):
        with pytest.raises(DeltaError) as refused:
            set_properties(log, {"delta.feature.catalogManaged": "supported"})
        assert refused.value.condition in ("DELTA_UNSUPPORTED_FEATURES_IN_CONFIG", "DELTA_TABLE_NOT_FOUND")


@pytest.mark.acceptance
def test_a_table_of_another_engine_is_read_once_a_catalog_takes_it(tmp_path: Path) -> None:
    shutil.copytree(CORPUS / "kernel-catalog_managed_0/table", tmp_path / "table")
    with pytest.raises(UnsupportedFeatureError, match="commitCoordinator"):
        DeltaLog(tmp_path / "table").snapshot()
    log = catalog(tmp_path).register(NAME, str(tmp_path / "table"))
    before = log.open_snapshot()
    rows = Scan(before).to_arrow()
    assert before.live_files().num_rows or not rows.num_rows
    set_properties(log, {"delta.checkpointInterval": "7"})
    assert (log.snapshot().version, log.snapshot().scan().count()) == (before.version + 1, rows.num_rows)


def test_a_table_that_is_dropped_is_published_first_and_not_found_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from delta_ds.kernel.storage.coordination.log_store import CoordinatedLogStore

    managed = Managed(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(CoordinatedLogStore, "back_fill", lambda self, version, data=None: None)
        managed.append(0)
        managed.append(1)
    assert managed.published() == []
    catalog(tmp_path).drop(NAME)
    assert managed.published() == [0, 1]
    with pytest.raises(StorageError) as caught:
        managed.open().snapshot()
    assert caught.value.condition == "DELTA_COORDINATOR_TABLE_NOT_FOUND"
    assert catalog(tmp_path).register(NAME, str(managed.path)).snapshot().version == 1


def test_a_clone_of_a_managed_table_is_an_ordinary_one(tmp_path: Path) -> None:
    managed = Managed(tmp_path)
    managed.append(1)
    managed.append(2)
    shallow_clone(managed.open(), DeltaLog(tmp_path / "clone"))
    clone = DeltaLog(tmp_path / "clone").snapshot()
    assert "catalogManaged" not in clone.protocol.supported
    assert clone.scan().count() == 2


def test_the_feature_cannot_be_dropped(tmp_path: Path) -> None:
    from delta_ds.kernel.commands.drop_feature import drop_feature_support

    managed = Managed(tmp_path)
    managed.append(1)
    for feature in ("catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"):
        with pytest.raises((UnsupportedFeatureError, UnsupportedOperationError)):
            drop_feature_support(managed.open(), feature)
    assert managed.open().snapshot().version == 0
