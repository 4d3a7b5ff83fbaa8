"""Which metadata of others a transaction adopts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_ds.kernel.format.actions import Metadata, Protocol
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.transaction import append_conflicts
from spark_tests.behaviour.kernel.transaction.tables import LEGACY, SCHEMA, features, metadata

EVERYTHING = features(
    "rowTracking", "domainMetadata", "inCommitTimestamp",
    reader=["deletionVectors", "v2Checkpoint", "columnMapping"],
)  # fmt: skip
MAPPED = SCHEMA.replace(
    '"metadata": {}', '"metadata": {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "x"}', 1
)
BY_NAME = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
TRACKING = {"delta.enableRowTracking": "true", "delta.rowTracking.materializedRowIdColumnName": "_r"}


def incompatible_difference(before: Metadata, after: Metadata, protocol: Protocol) -> str | None:
    states = (TableState("t", 0, protocol, metadata) for metadata in (before, after))
    return append_conflicts.incompatible_difference(*states)


@pytest.mark.parametrize(
    "after",
    [
        metadata(),
        metadata({"delta.enableDeletionVectors": "true"}),
        metadata({"delta.enableDeletionVectors": "TRUE"}),
        metadata({"delta.checkpointPolicy": "v2"}),
        metadata(TRACKING),
        metadata({"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": "1"}),
        metadata(BY_NAME),
        metadata(BY_NAME, schema=MAPPED),
        metadata({"io.unitycatalog.tableId": "1"}),
    ],
)
def test_harmless_change_is_adopted(after: Metadata) -> None:
    assert incompatible_difference(metadata(), after, EVERYTHING) is None


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (replace(metadata(), name="n"), "name"),
        (replace(metadata(), description="d"), "description"),
        (replace(metadata(), created_time=2), "created time"),
        (replace(metadata(), id="other"), "id"),
        (metadata(partitioned=False), "partition columns"),
        (metadata({"delta.appendOnly": "true"}), "delta.appendOnly"),
        (metadata({"k": "v"}), "property k"),
        (metadata({"delta.enableDeletionVectors": "false"}), "delta.enableDeletionVectors"),
        (metadata({"delta.checkpointPolicy": "classic"}), "delta.checkpointPolicy"),
        (metadata({"delta.enableRowTracking": "false"}), "delta.enableRowTracking"),
        (metadata({"delta.rowTracking.materializedRowIdColumnName": "_r"}), "materializedRowIdColumnName"),
        (metadata({"delta.columnMapping.mode": "id"}), "delta.columnMapping.mode"),
        (metadata(schema=MAPPED), "schema"),
        (metadata(BY_NAME, schema=MAPPED.replace('"long"', '"integer"')), "column id"),
        (metadata(BY_NAME, schema=MAPPED.replace("columnMapping.id", "other")), "metadata of column id"),
    ],
)
def test_other_change_is_named(after: Metadata, words: str) -> None:
    assert words in (incompatible_difference(metadata(), after, EVERYTHING) or "adopted")


def test_feature_must_be_supported_by_then() -> None:
    for properties in (
        {"delta.enableDeletionVectors": "true"},
        {"delta.checkpointPolicy": "v2"},
        TRACKING,
        BY_NAME,
    ):
        assert incompatible_difference(metadata(), metadata(properties), LEGACY) is not None


def test_unset_and_changed_properties_are_no_additions() -> None:
    since = {"delta.inCommitTimestampEnablementVersion": "1"}
    assert "was unset" in (incompatible_difference(metadata({"k": "v"}), metadata(), EVERYTHING) or "")
    moved = {"delta.inCommitTimestampEnablementVersion": "2"}
    assert incompatible_difference(metadata(since), metadata(moved), EVERYTHING) is not None
    renamed = {**TRACKING, "delta.rowTracking.materializedRowIdColumnName": "_s"}
    assert incompatible_difference(metadata(TRACKING), metadata(renamed), EVERYTHING) is None
