"""Dropping features: what is switched off, protected, or refused."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.alter.drop_feature import drop_feature_support
from delta_ds.kernel.alter.properties import unset_properties
from delta_ds.kernel.delta_log import DeltaLog
from delta_ds.testing import TableBuilder
from spark_tests.kernel.alter.tables import action, made, protocol


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("inCommitTimestamp", {"delta.enableInCommitTimestamps": "true"}),
        ("materializePartitionColumns", {"delta.enableMaterializePartitionColumnsFeature": "true"}),
        ("checkConstraints", {"delta.feature.checkConstraints": "supported"}),
        ("ALLOWCOLUMNDEFAULTS", {"delta.feature.allowColumnDefaults": "supported"}),
        ("domainMetadata", {"delta.feature.domainMetadata": "supported"}),
    ],
)
def test_a_feature_of_writers_goes_and_leaves_the_least_protocol(
    tmp_path: Path, name: str, properties: dict[str, str]
) -> None:
    log = made(tmp_path, properties=properties)
    version = drop_feature_support(log, name)
    assert protocol(log) == (1, 2, None, None)
    assert log.snapshot().properties == {}
    assert action(log, version, "commitInfo")["operation"] == "DROP FEATURE"


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("deletionVectors", {"delta.enableDeletionVectors": "true"}),
        ("v2Checkpoint", {"delta.checkpointPolicy": "v2"}),
        ("typeWidening", {"delta.enableTypeWidening": "true"}),
        ("vacuumProtocolCheck", {"delta.feature.vacuumProtocolCheck": "supported"}),
    ],
)
def test_a_feature_of_readers_goes_and_leaves_the_versions_before_protected(
    tmp_path: Path, name: str, properties: dict[str, str]
) -> None:
    log = made(tmp_path, properties=properties)
    version = drop_feature_support(log, name)
    assert protocol(log) == (1, 7, None, ["appendOnly", "checkpointProtection", "invariants"])
    assert log.snapshot().properties == {"delta.requireCheckpointProtectionBeforeVersion": str(version)}
    assert name in log.snapshot(version - 1).protocol.supported


def test_versions_that_used_a_feature_are_kept_for_a_day(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    with pytest.raises(DeltaError, match="version 0 still uses it") as caught:
        drop_feature_support(log, "deletionVectors", True)
    assert caught.value.condition == "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
    assert "delta.enableDeletionVectors" not in log.snapshot().properties


def test_versions_that_used_a_feature_are_cut_off_once_they_are_old(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    unset_properties(log, ["delta.enableDeletionVectors"])
    with pytest.raises(DeltaError):
        drop_feature_support(log, "deletionVectors", True)
    for file in (tmp_path / "_delta_log").iterdir():
        os.utime(file, (1_600_000_000, 1_600_000_000))
    drop_feature_support(log, "deletionVectors", True)
    assert protocol(log) == (1, 2, None, None)
    assert not (tmp_path / "_delta_log" / f"{0:020}.json").exists()


def test_a_feature_that_no_version_used_goes_at_once(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.feature.deletionVectors": "supported"})
    drop_feature_support(log, "deletionVectors", True)
    assert protocol(log) == (1, 2, None, None)


def test_files_with_deletion_vectors_are_in_the_way(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    rows = pa.table({"id": pa.array([1, 2], pa.int64())})
    table.create(rows.schema, reader_features=["deletionVectors"])
    add = table.write_file(rows)
    table.commit(add)
    table.delete_rows(add, [0])
    log = DeltaLog(tmp_path)
    before = log.snapshot().version
    with pytest.raises(DeltaError, match="executePurge"):
        drop_feature_support(log, "deletionVectors")
    assert log.snapshot().version == before


@pytest.mark.parametrize(
    ("name", "properties", "word", "condition"),
    [
        ("nosuch", {}, "nosuch", "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"),
        ("deletionVectors", {}, "appendOnly, invariants", "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"),
        ("appendOnly", {}, "not one that can be removed", "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
        (
            "domainMetadata", {"delta.enableRowTracking": "true"}, "rowTracking",
            "DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
        ),
        (
            "checkConstraints", {"delta.constraints.c": "id > 0"}, "dropConstraint",
            "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
        ),
        ("columnMapping", {"delta.columnMapping.mode": "name"}, "new table",
         "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"),
    ],
)  # fmt: skip
def test_what_cannot_go_is_refused_with_the_way_out(
    tmp_path: Path, name: str, properties: dict[str, str], word: str, condition: str
) -> None:
    log = made(tmp_path, properties=properties)
    with pytest.raises(DeltaError, match=word) as caught:
        drop_feature_support(log, name)
    assert caught.value.condition == condition
    assert log.snapshot().version == 0


def test_history_is_not_cut_off_for_a_feature_of_writers(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.feature.allowColumnDefaults": "supported"})
    with pytest.raises(DeltaError) as caught:
        drop_feature_support(log, "allowColumnDefaults", True)
    assert caught.value.condition == "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"
