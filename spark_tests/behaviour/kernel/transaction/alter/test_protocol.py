"""Protocols of new and existing tables: the outcomes of delta-spark, and the laws of upgrades."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.exceptions import DeltaError, UnsupportedFeatureError
from delta_ds.kernel.format.actions import Metadata, Protocol
from delta_ds.kernel.format.features import FEATURES, missing_features, required_features, supported_features
from delta_ds.kernel.format.schema.types import (
    INTEGER,
    LONG,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    StructField,
    StructType,
    schema_to_json,
)
from delta_ds.kernel.transaction.alter.properties import (
    add_feature_support,
    set_properties,
    upgrade_table_protocol,
)
from delta_ds.kernel.transaction.alter.protocol import minimal_protocol, upgrade_protocol, weakest_protocol
from spark_tests.behaviour.kernel.transaction.alter.tables import PLAIN, action, made, protocol, with_rows

OLD = ["appendOnly", "invariants"]
Outcome = tuple[int, int, list[str] | None, list[str] | None]


def writer(*names: str) -> Outcome:
    return 1, 7, None, sorted([*OLD, *names])


def both(name: str, *more: str) -> Outcome:
    return 3, 7, [name], sorted([*OLD, name, *more])


MAPPED: Outcome = (2, 7, None, sorted([*OLD, "columnMapping"]))
PROPERTIES: list[tuple[str, str, Outcome]] = [
    ("delta.appendOnly", "true", (1, 2, None, None)),
    ("delta.checkpointInterval", "5", (1, 2, None, None)),
    ("delta.isolationLevel", "Serializable", (1, 2, None, None)),
    ("delta.rowTrackingSuspended", "true", (1, 2, None, None)),
    ("delta.enableChangeDataFeed", "true", writer("changeDataFeed")),
    ("delta.enableDeletionVectors", "true", both("deletionVectors")),
    ("delta.columnMapping.mode", "name", MAPPED),
    ("delta.enableRowTracking", "true", writer("domainMetadata", "rowTracking")),
    ("delta.enableTypeWidening", "true", both("typeWidening")),
    ("delta.enableInCommitTimestamps", "true", writer("inCommitTimestamp")),
    ("delta.checkpointPolicy", "v2", both("v2Checkpoint")),
    ("delta.enableMaterializePartitionColumnsFeature", "true", writer("materializePartitionColumns")),
    ("delta.minWriterVersion", "4", (1, 4, None, None)),
    ("delta.minReaderVersion", "2", (1, 2, None, None)),
]
NAMED: list[tuple[str, Outcome]] = [
    ("appendOnly", (1, 2, None, None)),
    ("invariants", (1, 2, None, None)),
    ("checkConstraints", (1, 3, None, None)),
    ("changeDataFeed", writer("changeDataFeed")),
    ("generatedColumns", writer("generatedColumns")),
    ("columnMapping", MAPPED),
    ("identityColumns", writer("identityColumns")),
    ("deletionVectors", both("deletionVectors")),
    ("DELETIONVECTORS", both("deletionVectors")),
    ("rowTracking", writer("domainMetadata", "rowTracking")),
    ("timestampNtz", both("timestampNtz")),
    ("domainMetadata", writer("domainMetadata")),
    ("v2Checkpoint", both("v2Checkpoint")),
    ("vacuumProtocolCheck", both("vacuumProtocolCheck")),
    ("allowColumnDefaults", writer("allowColumnDefaults")),
]
VERSIONS: list[tuple[int, int, Outcome]] = [
    (1, 3, (1, 3, None, None)),
    (1, 4, (1, 4, None, None)),
    (1, 6, (1, 6, None, None)),
    (2, 4, (1, 4, None, None)),
    (2, 5, (2, 5, None, None)),
    (2, 6, (2, 6, None, None)),
]


@pytest.mark.parametrize(("name", "value", "outcome"), PROPERTIES)
def test_a_property_of_a_new_table_gives_the_protocol_of_delta_spark(
    tmp_path: Path, name: str, value: str, outcome: Outcome
) -> None:
    assert protocol(made(tmp_path, properties={name: value})) == outcome


@pytest.mark.parametrize(("name", "value", "outcome"), PROPERTIES)
def test_a_property_set_later_gives_the_protocol_of_delta_spark(
    tmp_path: Path, name: str, value: str, outcome: Outcome
) -> None:
    log = made(tmp_path)
    set_properties(log, {name: value})
    assert protocol(log) == outcome


@pytest.mark.parametrize(("name", "outcome"), NAMED)
def test_a_feature_asked_for_by_name_gives_the_protocol_of_delta_spark(
    tmp_path: Path, name: str, outcome: Outcome
) -> None:
    assert protocol(made(tmp_path / "new", properties={f"delta.feature.{name}": "supported"})) == outcome
    log = made(tmp_path / "old")
    add_feature_support(log, name)
    assert protocol(log) == outcome


@pytest.mark.parametrize(("reader", "version", "outcome"), VERSIONS)
def test_versions_asked_for_give_the_protocol_of_delta_spark(
    tmp_path: Path, reader: int, version: int, outcome: Outcome
) -> None:
    asked = {"delta.minReaderVersion": str(reader), "delta.minWriterVersion": str(version)}
    new = made(tmp_path / "new", properties=asked)
    assert protocol(new) == outcome
    assert new.snapshot().properties == {}
    log = made(tmp_path / "old")
    upgrade_table_protocol(log, reader, version)
    assert protocol(log) == outcome


def test_a_new_table_may_be_asked_for_the_reader_version_of_features_alone(tmp_path: Path) -> None:
    assert protocol(made(tmp_path, properties={"delta.minReaderVersion": "3"})) == (1, 2, None, None)


@pytest.mark.parametrize(("reader", "version"), [(1, 1), (1, 7), (2, 7), (3, 7)])
def test_feature_versions_alone_ask_for_nothing(tmp_path: Path, reader: int, version: int) -> None:
    asked = {"delta.minReaderVersion": str(reader), "delta.minWriterVersion": str(version)}
    assert protocol(made(tmp_path / "new", properties=asked)) == (1, 1, None, None)
    log = made(tmp_path / "old")
    upgrade_table_protocol(log, reader, version)
    assert protocol(log) == (1, 2, None, None)


@pytest.mark.parametrize(
    ("columns", "outcome"),
    [
        ([StructField("id", LONG, nullable=False)], (1, 2, None, None)),
        ([StructField("a", ArrayType(TIMESTAMP_NTZ))], both("timestampNtz")),
        ([StructField("a", VARIANT)], both("variantType")),
        (
            [StructField("id", LONG), StructField("g", LONG, True, {"delta.generationExpression": "id + 1"})],
            writer("generatedColumns"),
        ),
        (
            [StructField("id", LONG, True, {"delta.identity.start": 1, "delta.identity.step": 2})],
            writer("identityColumns"),
        ),
    ],
)
def test_columns_of_a_new_table_ask_for_features(
    tmp_path: Path, columns: list[StructField], outcome: Outcome
) -> None:
    assert protocol(made(tmp_path, StructType(tuple(columns)))) == outcome


def test_all_legacy_features_of_a_version_are_written_as_that_version() -> None:
    assert weakest_protocol(supported_features(1, 4, None, None)) == Protocol(1, 4)
    assert weakest_protocol(supported_features(2, 5, None, None)) == Protocol(2, 5)


def test_an_upgrade_of_a_legacy_table_lists_what_its_versions_imply(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"})
    set_properties(log, {"delta.enableDeletionVectors": "true"})
    implied = sorted(supported_features(2, 5, None, None))
    assert protocol(log) == (
        3,
        7,
        ["columnMapping", "deletionVectors"],
        sorted([*implied, "deletionVectors"]),
    )


def test_an_upgrade_without_effect_writes_no_protocol(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    version = add_feature_support(log, "deletionVectors")
    assert action(log, version, "protocol") is None


def test_a_type_that_needs_a_feature_is_not_added_to_an_existing_table_silently() -> None:
    schema = StructType((StructField("t", TIMESTAMP_NTZ),))
    with pytest.raises(UnsupportedFeatureError, match=r"addFeatureSupport\('timestampNtz'\)") as caught:
        upgrade_protocol(Protocol(1, 2), metadata(schema))
    assert caught.value.condition == "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"
    assert upgrade_protocol(Protocol(1, 2), metadata(schema), {"timestampNtz"}).supports(
        FEATURES["timestampNtz"]
    )


def test_a_preview_feature_is_kept_where_its_property_is_set_again() -> None:
    names = frozenset({"typeWidening-preview"})
    before = Protocol(3, 7, names, names)
    assert upgrade_protocol(before, metadata(properties={"delta.enableTypeWidening": "true"})) is before


@pytest.mark.parametrize("name", ["nosuch", "icebergCompatV3", "catalogManaged", "collations"])
def test_a_feature_that_cannot_be_written_is_refused_by_name(tmp_path: Path, name: str) -> None:
    log = made(tmp_path)
    with pytest.raises(UnsupportedFeatureError, match=name) as caught:
        add_feature_support(log, name)
    assert caught.value.condition == "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"
    assert log.snapshot().version == 0


@pytest.mark.parametrize(("reader", "version"), [(4, 7), (1, 8), (0, 2), (3, 6)])
def test_versions_that_do_not_exist_are_refused(tmp_path: Path, reader: int, version: int) -> None:
    log = made(tmp_path)
    with pytest.raises(DeltaError):
        upgrade_table_protocol(log, reader, version)
    assert log.snapshot().version == 0


def test_versions_lower_than_the_tables_change_nothing(tmp_path: Path) -> None:
    log = with_rows(tmp_path)
    upgrade_table_protocol(log, 1, 1)
    assert protocol(log) == (1, 2, None, None)


# --- laws

WRITABLE = sorted(name for name, f in FEATURES.items() if f.write)
CONFIGURATIONS = st.dictionaries(
    st.sampled_from([name for name, _, _ in PROPERTIES[:12]]), st.just("true"), max_size=4
)
SCHEMAS = st.sampled_from([PLAIN, StructType((StructField("v", VARIANT), StructField("i", INTEGER)))])


def metadata(schema: StructType = PLAIN, properties: dict[str, str] | None = None) -> Metadata:
    return Metadata("id", schema_to_json(schema), (), properties or {})


@st.composite
def protocols(draw: st.DrawFn) -> Protocol:
    if draw(st.booleans()):
        return Protocol(*draw(st.sampled_from([(1, 1), (1, 2), (1, 3), (1, 4), (2, 3), (2, 5), (2, 6)])))
    names = draw(st.sets(st.sampled_from(WRITABLE), max_size=5))
    return weakest_protocol(names | missing_features((), names))


@given(protocols(), CONFIGURATIONS, SCHEMAS, st.sets(st.sampled_from(WRITABLE), max_size=2))
def test_an_upgrade_supports_all_that_is_needed_loses_nothing_and_is_done_once(
    before: Protocol, properties: dict[str, str], schema: StructType, wanted: set[str]
) -> None:
    wanted_metadata = metadata(schema, properties)
    after = upgrade_protocol(before, wanted_metadata, wanted)
    assert after.supported >= before.supported
    assert not missing_features(after.supported, required_features(properties, schema) | wanted)
    assert upgrade_protocol(after, wanted_metadata, wanted) is after
    assert (after.reader_features is not None) == (after.min_reader == 3)
    assert (after.writer_features is not None) == (after.min_writer == 7)


@given(st.sets(st.sampled_from(WRITABLE)))
def test_the_least_protocol_supports_exactly_its_features(names: set[str]) -> None:
    whole = names | missing_features((), names)
    assert weakest_protocol(whole).supported == whole


@given(CONFIGURATIONS, SCHEMAS)
def test_a_new_table_needs_no_upgrade(properties: dict[str, str], schema: StructType) -> None:
    new = metadata(schema, properties)
    made_for_it = minimal_protocol(new)
    assert upgrade_protocol(made_for_it, new) is made_for_it
