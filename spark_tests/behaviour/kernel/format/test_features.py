"""The feature table, and which tables are refused for what."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.exceptions import UnsupportedFeatureError
from delta_ds.kernel.format.features import (
    FEATURES,
    feature_named,
    missing_features,
    required_features,
    supported_features,
    with_dependencies,
)
from delta_ds.kernel.format.schema.types import StructType, parse_schema
from delta_ds.kernel.format.table_state import check_managed, check_readable, check_writable
from delta_ds.kernel.storage.open import open_storage

TABLE = "s3://bucket/t"

READABLE = {
    "catalogManaged", "columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck",
    "typeWidening", "typeWidening-preview", "variantType", "variantType-preview",
    "variantShredding", "variantShredding-preview",
}  # fmt: skip


@dataclass(frozen=True)
class Proto:
    min_reader: int
    min_writer: int
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None


def features(readers: set[str], writers: set[str] = frozenset()) -> Proto:  # type: ignore[assignment]
    return Proto(3, 7, frozenset(readers), frozenset(readers | writers))


def refusal(
    protocol: Proto, properties: dict[str, str] | None = None, schema: StructType | None = None
) -> str:
    with pytest.raises(UnsupportedFeatureError) as caught:
        check_readable(protocol, properties or {}, TABLE, schema)
    assert TABLE in str(caught.value)
    return str(pickle.loads(pickle.dumps(caught.value)))


def schema(type_name: str, metadata: str = "{}") -> StructType:
    inner = f'{{"name":"x","type":"{type_name}","nullable":true,"metadata":{metadata}}}'
    nested = f'{{"type":"array","elementType":{{"type":"struct","fields":[{inner}]}},"containsNull":true}}'
    return parse_schema(f'{{"type":"struct","fields":[{{"name":"a","type":{nested}}}]}}')


def test_exactly_the_reader_features_that_the_kernel_implements_are_readable() -> None:
    assert {f.name for f in FEATURES.values() if f.needs_reader and f.read} == READABLE


def test_every_dependency_and_stable_twin_is_itself_a_feature() -> None:
    for feature in FEATURES.values():
        assert set(feature.depends_on) <= set(FEATURES.values())
        assert feature.stands_for is None or feature.stands_for in FEATURES.values()


@pytest.mark.parametrize(
    ("reader", "writer", "names"),
    [
        (1, 1, set()),
        (1, 2, {"appendOnly", "invariants"}),
        (1, 3, {"appendOnly", "invariants", "checkConstraints"}),
        (1, 4, {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"}),
        (2, 4, {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"}),
        (1, 7, set()),
        (2, 7, {"columnMapping"}),
        (3, 7, set()),
    ],
)
def test_legacy_versions_imply_features(reader: int, writer: int, names: set[str]) -> None:
    assert supported_features(reader, writer, None, None) == names


def test_reader_2_and_writer_6_imply_every_legacy_feature() -> None:
    legacy = {f.name for f in FEATURES.values() if f.legacy_writer is not None}
    assert supported_features(2, 6, None, None) == legacy
    assert len(legacy) == 7
    assert "columnMapping" not in supported_features(1, 5, None, None)


def test_listed_features_are_supported_unknown_ones_too() -> None:
    assert supported_features(3, 7, {"deletionVectors"}, {"deletionVectors", "mine"}) == {
        "deletionVectors",
        "mine",
    }


@pytest.mark.parametrize(
    "protocol", [Proto(1, 1), Proto(1, 2), Proto(2, 5), Proto(2, 6), Proto(1, 8, None, frozenset())]
)
def test_a_legacy_table_is_readable(protocol: Proto) -> None:
    check_readable(
        protocol, {"delta.enableDeletionVectors": "true"} if protocol.min_writer < 7 else {}, TABLE
    )


@given(readers=st.sets(st.sampled_from(sorted(READABLE))), writers=st.sets(st.text(min_size=1)))
def test_supported_reader_features_and_any_writer_features_are_readable(
    readers: set[str], writers: set[str]
) -> None:
    names = with_dependencies(readers | (writers - set(FEATURES)))
    check_readable(Proto(3, 7, frozenset(readers), names), {}, TABLE)


@given(unknown=st.sets(st.text(min_size=1).filter(lambda name: name not in FEATURES), min_size=1))
def test_each_unknown_reader_feature_is_named(unknown: set[str]) -> None:
    message = refusal(features({*unknown, "deletionVectors"}))
    assert "[DELTA_UNSUPPORTED_FEATURES_FOR_READ]" in message
    assert all(name in message for name in unknown)
    assert "deletionVectors" not in message


@pytest.mark.parametrize(
    "name",
    ["catalogOwned", "catalogOwned-preview", "DeletionVectors", "timestampNanos", "adaptiveMetadata-preview",
     "redirectReaderWriter-preview"],
)  # fmt: skip
def test_a_reader_feature_that_is_not_supported_is_refused_by_name(name: str) -> None:
    message = refusal(features({name}))
    assert "[DELTA_UNSUPPORTED_FEATURES_FOR_READ]" in message
    assert name in message


def test_a_catalog_managed_table_is_not_read_by_path() -> None:
    protocol = features({"catalogManaged", "vacuumProtocolCheck"}, {"inCommitTimestamp"})
    check_readable(protocol, {}, TABLE)
    with pytest.raises(UnsupportedFeatureError) as caught:
        check_managed(protocol, open_storage("memory://catalog-managed"))
    assert caught.value.condition == "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"


@pytest.mark.parametrize("name", ["geospatial", "geospatial-dev"])
def test_a_geospatial_table_is_refused(name: str) -> None:
    assert "[DELTA_GEOSPATIAL_NOT_SUPPORTED]" in refusal(features({name}))


@pytest.mark.parametrize("reader", [-1, 0, 4, 99])
def test_a_reader_version_out_of_range_is_refused_naming_both_versions(reader: int) -> None:
    message = refusal(Proto(reader, 7, frozenset(), frozenset()))
    assert "[DELTA_INVALID_PROTOCOL_VERSION]" in message
    assert f"reader version {reader} and writer version 7" in message


@pytest.mark.parametrize(
    ("protocol", "condition", "word"),
    [
        (Proto(3, 7, None, frozenset()), "DELTA_INVALID_PROTOCOL_VERSION", "lacks readerFeatures"),
        (Proto(3, 7, frozenset(), None), "DELTA_INVALID_PROTOCOL_VERSION", "lacks writerFeatures"),
        (Proto(1, 7, frozenset(), frozenset()), "DELTA_INVALID_PROTOCOL_VERSION", "has readerFeatures"),
        (Proto(1, 2, None, frozenset()), "DELTA_INVALID_PROTOCOL_VERSION", "has writerFeatures"),
        (Proto(3, 5, frozenset(), None), "DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE", "writer version 5"),
    ],
)
def test_versions_and_feature_lists_that_contradict_each_other_are_refused(
    protocol: Proto, condition: str, word: str
) -> None:
    message = refusal(protocol)
    assert f"[{condition}]" in message
    assert word in message


@pytest.mark.parametrize(
    ("properties", "missing"),
    [
        ({"delta.enableDeletionVectors": "TRUE"}, "deletionVectors"),
        ({"delta.columnMapping.mode": "name"}, "columnMapping"),
        ({"delta.checkpointPolicy": "v2"}, "v2Checkpoint"),
        ({"delta.constraints.positive": "a > 0"}, "checkConstraints"),
        ({"delta.enableRowTracking": "true"}, "domainMetadata, rowTracking"),
        ({"delta.enableVariantShredding": "true"}, "variantShredding, variantType"),
    ],
)
def test_a_property_whose_feature_is_not_listed_is_refused(properties: dict[str, str], missing: str) -> None:
    message = refusal(features(set()), properties)
    assert "[DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH]" in message
    assert f"feature(s) {missing}, which" in message


def test_a_listed_feature_without_its_dependency_is_refused() -> None:
    message = refusal(features({"catalogManaged"}, {"inCommitTimestamp"}))
    assert "[DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH]" in message
    assert "vacuumProtocolCheck" in message


def test_a_reader_feature_missing_from_the_writers_list_is_refused_once_the_metadata_needs_it() -> None:
    protocol = Proto(3, 7, frozenset({"deletionVectors"}), frozenset())
    check_readable(protocol, {}, TABLE)
    assert "deletionVectors" in refusal(protocol, {"delta.enableDeletionVectors": "true"})


@pytest.mark.parametrize(
    ("properties", "readers"),
    [
        ({"delta.enableTypeWidening": "true"}, {"typeWidening-preview"}),
        ({"delta.enableVariantShredding": "true"}, {"variantShredding-preview", "variantType-preview"}),
    ],
)
def test_a_preview_feature_stands_for_the_stable_one(properties: dict[str, str], readers: set[str]) -> None:
    check_readable(features(readers), properties, TABLE)


def test_column_mapping_implied_by_reader_2_needs_no_listing() -> None:
    check_readable(Proto(2, 7, None, frozenset()), {"delta.columnMapping.mode": "id"}, TABLE)


def test_properties_that_are_off_ask_for_nothing() -> None:
    off = {
        "delta.enableDeletionVectors": "false", "delta.columnMapping.mode": "none",
        "delta.checkpointPolicy": "classic", "my.own": "true",
    }  # fmt: skip
    assert required_features(off) == frozenset()


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (schema("timestamp_ntz"), "timestampNtz"),
        (schema("variant"), "variantType"),
        (schema("long", '{"delta.identity.start":1}'), "identityColumns"),
        (schema("long", '{"delta.generationExpression":"a"}'), "generatedColumns"),
        (schema("long", '{"delta.invariants":"{}"}'), "invariants"),
    ],
)
def test_a_nested_column_asks_for_its_feature(found: StructType, name: str) -> None:
    assert required_features({}, found) == {name}
    assert name in refusal(features(set()), schema=found)


def test_dependencies_are_followed_all_the_way() -> None:
    assert with_dependencies({"icebergCompatV3"}) == {
        "icebergCompatV3", "columnMapping", "rowTracking", "domainMetadata",
    }  # fmt: skip


# --- writing

WRITERS = {
    "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping",
    "identityColumns", "deletionVectors", "rowTracking", "timestampNtz", "domainMetadata", "v2Checkpoint",
    "clustering", "vacuumProtocolCheck", "inCommitTimestamp", "typeWidening", "typeWidening-preview",
    "variantType", "variantType-preview", "variantShredding", "variantShredding-preview",
    "allowColumnDefaults", "checkpointProtection", "materializePartitionColumns", "icebergCompatV1", "icebergCompatV2",
    "catalogManaged",
}  # fmt: skip


def test_exactly_the_features_that_the_kernel_implements_are_writable() -> None:
    assert {name for name, f in FEATURES.items() if f.write} == WRITERS
    assert all(f.read for f in FEATURES.values() if f.write)


@pytest.mark.parametrize(("reader", "writer"), [(1, 1), (1, 2), (1, 4), (2, 5), (2, 6)])
def test_a_legacy_table_is_writable(reader: int, writer: int) -> None:
    check_writable(Proto(reader, writer, None, None), {}, TABLE)


def test_a_table_with_every_implemented_feature_is_writable() -> None:
    readers = {name for name in WRITERS if FEATURES[name].needs_reader}
    check_writable(features(readers, WRITERS), {}, TABLE)


@pytest.mark.parametrize("name", sorted(set(FEATURES) - WRITERS) + ["nosuch"])
def test_a_feature_that_is_not_implemented_is_refused_for_writing(name: str) -> None:
    known = FEATURES.get(name)
    readers = {name} if known is not None and known.needs_reader else set()
    needed = with_dependencies({name}) - {name}
    protocol = features(readers | {n for n in needed if FEATURES[n].needs_reader}, {name, *needed})
    with pytest.raises(UnsupportedFeatureError) as caught:
        check_writable(protocol, {}, TABLE)
    if not readers:
        assert caught.value.condition == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"
        assert name in str(caught.value)


@pytest.mark.parametrize("version", [0, 8, 99])
def test_a_writer_version_out_of_range_is_refused_for_writing(version: int) -> None:
    listed = frozenset[str]() if version >= 7 else None
    with pytest.raises(UnsupportedFeatureError, match=f"writer version {version}") as caught:
        check_writable(Proto(1, version, None, listed), {}, TABLE)
    assert caught.value.condition == "DELTA_INVALID_PROTOCOL_VERSION"


@given(st.sets(st.sampled_from(sorted(FEATURES))), st.sets(st.sampled_from(sorted(FEATURES))))
def test_what_is_lacking_completes_what_is_wanted(has: set[str], wanted: set[str]) -> None:
    after = has | missing_features(has, wanted)
    assert not missing_features(after, wanted)
    assert missing_features(has, wanted).isdisjoint(has)
    stand_ins = {stable.name for n in after if (stable := FEATURES[n].stands_for)}
    assert wanted <= after | stand_ins


def test_a_shredding_preview_without_the_variant_type_is_readable_as_other_engines_write_it() -> None:
    check_readable(features({"variantShredding-preview"}), {"delta.enableVariantShredding": "true"}, TABLE)


@pytest.mark.parametrize("name", ["deletionvectors", "DELETIONVECTORS", "deletionVectors"])
def test_features_are_found_in_any_case(name: str) -> None:
    assert feature_named(name) is FEATURES["deletionVectors"]
    assert feature_named("nosuch") is None
