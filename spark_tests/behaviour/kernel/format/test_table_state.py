from __future__ import annotations

import pickle
from collections.abc import Mapping

import pytest

from delta_ds.exceptions import InvalidOptionError, UnsupportedFeatureError
from delta_ds.kernel.format.actions import CLUSTERING_DOMAIN, Metadata, Protocol
from delta_ds.kernel.format.features import (
    CHANGE_DATA_FEED,
    CHECK_CONSTRAINTS,
    CLUSTERING,
    COLUMN_MAPPING,
    DELETION_VECTORS,
    FEATURES,
    ROW_TRACKING,
    TYPE_WIDENING,
    V2_CHECKPOINT,
    VARIANT_TYPE,
    TableFeature,
)
from delta_ds.kernel.format.schema.types import LONG, StructField, StructType, schema_to_json
from delta_ds.kernel.format.table_state import TableState


def _mapped(name: str, number: int) -> StructField:
    keys = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return StructField(name, LONG, True, keys)


SCHEMA = StructType((_mapped("a", 1), _mapped("p", 2)))


def state(
    *features: str,
    legacy: tuple[int, int] | None = None,
    properties: Mapping[str, str] | None = None,
    domains: Mapping[str, str] | None = None,
) -> TableState:
    names = frozenset(features)
    protocol = Protocol(3, 7, names, names) if legacy is None else Protocol(*legacy)
    metadata = Metadata("id", schema_to_json(SCHEMA), ("p",), dict(properties or {}))
    return TableState("t", 3, protocol, metadata, domains)


def test_a_feature_is_on_only_where_protocol_and_property_say_so() -> None:
    on = {"delta.enableRowTracking": "true"}
    assert state("rowTracking", properties=on).enabled(ROW_TRACKING)
    assert not state("rowTracking").enabled(ROW_TRACKING)
    assert not state("rowTracking", properties={"delta.enableRowTracking": "false"}).enabled(ROW_TRACKING)
    assert not state(properties=on).enabled(ROW_TRACKING)


def test_legacy_versions_turn_on_what_they_imply() -> None:
    on = {"delta.enableChangeDataFeed": "TRUE"}
    assert state(legacy=(1, 4), properties=on).enabled(CHANGE_DATA_FEED)
    assert not state(legacy=(1, 3), properties=on).enabled(CHANGE_DATA_FEED)


def test_other_values_than_true_turn_features_on() -> None:
    assert state("columnMapping", properties={"delta.columnMapping.mode": "id"}).enabled(COLUMN_MAPPING)
    assert not state("columnMapping", properties={"delta.columnMapping.mode": "none"}).enabled(COLUMN_MAPPING)
    assert state("v2Checkpoint", properties={"delta.checkpointPolicy": "v2"}).enabled(V2_CHECKPOINT)
    assert not state("v2Checkpoint").enabled(V2_CHECKPOINT)
    assert state("checkConstraints", properties={"delta.constraints.c": "a > 0"}).enabled(CHECK_CONSTRAINTS)
    assert not state("checkConstraints").enabled(CHECK_CONSTRAINTS)


def test_features_without_a_property_are_on_where_they_are_supported() -> None:
    assert state("clustering").enabled(CLUSTERING)
    assert not state().enabled(CLUSTERING)


def test_a_preview_counts_as_its_feature() -> None:
    on = {"delta.enableTypeWidening": "true"}
    assert state("typeWidening-preview", properties=on).enabled(TYPE_WIDENING)
    assert state("variantType-preview").supports(VARIANT_TYPE)


def test_a_property_that_is_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"delta\.enableDeletionVectors"):
        state("deletionVectors", properties={"delta.enableDeletionVectors": "yes"}).enabled(DELETION_VECTORS)


@pytest.mark.parametrize("feature", FEATURES.values(), ids=str)
def test_every_feature_can_be_asked_for(feature: TableFeature) -> None:
    by_hand = feature.enabled_by is None and feature.enabled_by_prefix is None
    assert state(feature.name).enabled(feature) == by_hand


def test_partition_keys_are_physical_where_columns_are_mapped() -> None:
    mapped = state("columnMapping", properties={"delta.columnMapping.mode": "name"})
    assert (mapped.partition_columns, mapped.physical_partition_columns) == (("p",), ("col-2",))
    # The property of a protocol without the feature has no effect.
    assert state(properties={"delta.columnMapping.mode": "name"}).physical_partition_columns == ("p",)


def test_clustering_columns_come_from_the_domain() -> None:
    clustered = state("clustering", domains={CLUSTERING_DOMAIN: '{"clusteringColumns":[["col-1"]]}'})
    assert (clustered.clustering_paths, clustered.clustering_columns) == ((("col-1",),), (("a",),))
    assert state(domains={}).clustering_columns == ()
    with pytest.raises(ValueError, match="were not read"):
        _ = state().clustering_paths


def test_what_cannot_be_read_or_written_is_refused() -> None:
    state("deletionVectors").check_writable()
    protocol = Protocol(1, 7, None, frozenset({"collations", "domainMetadata"}))
    collated = TableState("t", 0, protocol, Metadata("i", schema_to_json(SCHEMA)))
    collated.check_readable()
    with pytest.raises(UnsupportedFeatureError, match="collations"):
        collated.check_writable()
    names = frozenset({"timestampNanos", "timestampNtz"})
    unknown = TableState("t", 0, Protocol(3, 7, names, names), Metadata("i", "no schema that is known here"))
    with pytest.raises(UnsupportedFeatureError, match="timestampNanos"):
        unknown.check_readable()


def test_a_state_survives_pickling() -> None:
    before = state("columnMapping", properties={"delta.columnMapping.mode": "name"})
    assert before.mapping_mode == "name"
    assert pickle.loads(pickle.dumps(before)) == before
