"""The protocol a table needs: the least one for new tables, upgrades of existing ones.

A protocol is a set of features; `weakest_protocol` writes the set down in the weakest form, which is a legacy version
where one stands for exactly these features.

Source: PROTOCOL.md, "Table Features for New and Existing Tables"; protocol-checklist PRO-W-06..08, TF-W-02..05.
"""

from __future__ import annotations

from collections.abc import Collection

from delta_ds.conditions.protocol import INVALID_PROTOCOL_VERSION, READ_FEATURE_PROTOCOL_REQUIRES_WRITE
from delta_ds.conditions.tables import (
    FEATURE_OF_CATALOG,
    FEATURES_REQUIRE_MANUAL_ENABLEMENT,
    UNSUPPORTED_FEATURES_IN_CONFIG,
)
from delta_ds.kernel.format.actions import Metadata, Protocol
from delta_ds.kernel.format.features import (
    FEATURE_READER_VERSION,
    FEATURE_WRITER_VERSION,
    FEATURES,
    READER_VERSIONS,
    WRITER_VERSIONS,
    TableFeature,
    feature_named,
    missing_features,
    required_features,
    supported_features,
)
from delta_ds.kernel.format.properties import FEATURE_PREFIX, MIN_READER_VERSION, MIN_WRITER_VERSION

_DEFAULT_VERSIONS = (1, 2)  # of tables that ask for nothing


def weakest_protocol(names: Collection[str], readers: Collection[str] = ()) -> Protocol:
    """The weakest protocol that supports exactly these features.

    Parameters
    ----------
    names
        Features, their dependencies included.
    readers
        Which of the unknown ones are reader features.
    """
    features = [FEATURES[n] for n in names if n in FEATURES]
    unknown = {n for n in names if n not in FEATURES}
    listed = frozenset(names)
    reader = max([1, *(f.legacy_reader or FEATURE_READER_VERSION for f in features if f.needs_reader)])
    if unknown & set(readers):
        reader = FEATURE_READER_VERSION
    writer = max([1, *(f.legacy_writer or FEATURE_WRITER_VERSION for f in features)])
    if writer < FEATURE_WRITER_VERSION and supported_features(reader, writer, None, None) == listed:
        return Protocol(reader, writer)
    if reader < FEATURE_READER_VERSION:
        return Protocol(reader, FEATURE_WRITER_VERSION, None, listed)
    for_readers = frozenset(f.name for f in features if f.needs_reader) | (unknown & set(readers))
    return Protocol(reader, FEATURE_WRITER_VERSION, for_readers, listed)


def minimal_protocol(
    metadata: Metadata,
    extra_features: Collection[str] = (),
    reader: int | None = None,
    writer: int | None = None,
) -> Protocol:
    """The protocol of a new table.

    Parameters
    ----------
    metadata
        Its metadata; properties and column types ask for features.
    extra_features
        Features asked for by name.
    reader, writer
        Versions asked for (`delta.minReaderVersion`, `delta.minWriterVersion`); what they imply is
        supported too.

    Raises
    ------
    UnsupportedFeatureError
        The versions do not exist.
    """
    if writer is None and reader == FEATURE_READER_VERSION:
        reader = None  # features are listed then, and none is
    versions = (reader or _DEFAULT_VERSIONS[0], writer or _DEFAULT_VERSIONS[1])
    check_versions(*versions)
    names = (
        implied_features(*versions)
        | required_features(metadata.configuration, metadata.schema)
        | set(extra_features)
    )
    return weakest_protocol(names | missing_features((), names))


def upgrade_protocol(protocol: Protocol, metadata: Metadata, wanted: Collection[str] = ()) -> Protocol:
    """The protocol an existing table needs for its (new) metadata; the same object where nothing is missing.

    Parameters
    ----------
    protocol
        The effective one; its features are never given up.
    metadata
        As it will be.
    wanted
        Features asked for by name.

    Raises
    ------
    UnsupportedFeatureError
        The metadata needs a feature that existing tables get only when it is asked for by name.
    """
    needed = required_features(metadata.configuration, metadata.schema)
    missing = missing_features(protocol.supported, protocol.supported | needed | set(wanted))
    if not missing:
        return protocol
    by_hand = sorted(
        n for n in missing_features(protocol.supported, needed) if FEATURES[n].by_hand and n not in wanted
    )
    if by_hand:
        raise FEATURES_REQUIRE_MANUAL_ENABLEMENT(unsupportedFeatures=by_hand, first=by_hand[0])
    return weakest_protocol(protocol.supported | missing, protocol.reader_features or ())


def check_versions(reader: int, writer: int) -> None:
    """Refuse protocol versions that do not exist or do not go together.

    Raises
    ------
    UnsupportedFeatureError
        The message says which versions there are.
    """
    if reader not in READER_VERSIONS or writer not in WRITER_VERSIONS:
        raise INVALID_PROTOCOL_VERSION(reader=reader, writer=writer)
    if reader >= FEATURE_READER_VERSION and writer < FEATURE_WRITER_VERSION:
        raise READ_FEATURE_PROTOCOL_REQUIRES_WRITE(reader=reader, writer=writer)


def implied_features(reader: int, writer: int) -> frozenset[str]:
    """The features that legacy versions stand for; none where they are listed."""
    if writer >= FEATURE_WRITER_VERSION:
        return frozenset()
    return supported_features(reader, writer, None, None)


def without_catalog(protocol: Protocol) -> Protocol:
    """A protocol without what a table has from the catalog that manages it, for another table."""
    names = {name for name in protocol.supported if name not in FEATURES or not FEATURES[name].by_catalog}
    if names == protocol.supported:
        return protocol
    return weakest_protocol(names, protocol.reader_features or ())


def known_feature(name: str) -> TableFeature:
    """The feature that a user names in any case.

    Raises
    ------
    UnsupportedFeatureError
        There is none, or it is not one this package can write.
    """
    feature = feature_named(name)
    if feature is not None and feature.by_catalog:
        raise FEATURE_OF_CATALOG(feature=feature.name, configs=f"delta.feature.{name}")
    if feature is None or not feature.write:
        why = "is not known" if feature is None else "cannot be written"
        raise UNSUPPORTED_FEATURES_IN_CONFIG(
            feature=name,
            why=why,
            known=sorted(f.name for f in FEATURES.values() if f.write and not f.by_catalog),
            configs=f"delta.feature.{name}",
        )
    return feature


def protocol_properties(protocol: Protocol) -> dict[str, str]:
    """A protocol in the form of table properties, as delta-spark shows it."""
    texts = {
        MIN_READER_VERSION.name: str(protocol.min_reader),
        MIN_WRITER_VERSION.name: str(protocol.min_writer),
    }
    for name in sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())}):
        texts[FEATURE_PREFIX + name] = "supported"
    return texts
