"""Table properties as users give them, split into those to store and those that only ask for a protocol.

Source: protocol-checklist MD-RW-05, MD-W-06.
"""

from __future__ import annotations

from collections.abc import Mapping

from delta_ds.conditions.tables import (
    ALTER_TABLE_SET_CLUSTERING,
    CREATE_TABLE_SET_CLUSTERING,
    UNSUPPORTED_FEATURE_SET_TABLE_PROPERTY,
    UNSUPPORTED_FEATURE_STATUS,
)
from delta_ds.kernel.alter.protocol import known_feature
from delta_ds.kernel.features import CLUSTERING
from delta_ds.kernel.properties import (
    CONSTRAINT_PREFIX,
    FEATURE_PREFIX,
    IGNORE_PROTOCOL_DEFAULTS,
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    check_property,
)
from delta_ds.records import dataclass

_VERSIONS = (MIN_READER_VERSION.name, MIN_WRITER_VERSION.name)
_ON = ("supported", "enabled")

# Spark keeps these for itself: they say where and what a table is, not how it behaves.
_RESERVED = ("location", "provider", "owner", "external", "is_managed_location")


@dataclass(frozen=True, slots=True)
class PropertyInputs:
    """Checked properties of one command.

    Attributes
    ----------
    given
        All of them, `delta.` names in their canonical spelling: what the history records.
    stored
        Those that go into the table's `configuration`.
    features
        Features asked for by `delta.feature.<name>`.
    reader, writer
        Protocol versions asked for; None: not said.
    """

    given: Mapping[str, str]
    stored: Mapping[str, str]
    features: frozenset[str]
    reader: int | None
    writer: int | None


def parse_properties(
    properties: Mapping[str, str], *, unknown: bool = False, creates: bool = False
) -> PropertyInputs:
    """Check the properties that a user gives.

    Parameters
    ----------
    properties
        Names to texts.
    unknown
        Whether `delta.` names may be some that there are not.
    creates
        Whether they are of a table that comes to be, for messages.

    Raises
    ------
    InvalidOptionError
        An unknown `delta.` name (with the nearest known one), a wrong value, or one that cannot be set.
    UnsupportedFeatureError
        `delta.feature.<name>` for a feature that is unknown or cannot be written.
    """
    given: dict[str, str] = {}
    stored: dict[str, str] = {}
    features: set[str] = set()
    versions: dict[str, int] = {}
    for name, value in properties.items():
        key, text = check_property(name, value, unknown=unknown), str(value)
        folded = key.lower()
        if folded in _RESERVED:
            raise UNSUPPORTED_FEATURE_SET_TABLE_PROPERTY(property=name)
        if folded.startswith(FEATURE_PREFIX):
            feature = known_feature(key[len(FEATURE_PREFIX) :])
            _check_status(key, text, feature.name, creates)
            key = FEATURE_PREFIX + feature.name.lower()
            features.add(feature.name)
        elif folded.startswith(CONSTRAINT_PREFIX):
            stored[key := CONSTRAINT_PREFIX + folded[len(CONSTRAINT_PREFIX) :]] = text
        elif key in _VERSIONS:
            versions[key] = int(text)
        elif key != IGNORE_PROTOCOL_DEFAULTS.name:
            stored[key] = text
        given[key] = text
    return PropertyInputs(
        given,
        stored,
        frozenset(features),
        versions.get(MIN_READER_VERSION.name),
        versions.get(MIN_WRITER_VERSION.name),
    )


def _check_status(key: str, text: str, feature: str, creates: bool) -> None:
    if feature == CLUSTERING.name:
        refused = CREATE_TABLE_SET_CLUSTERING if creates else ALTER_TABLE_SET_CLUSTERING
        raise refused(key=key, tableFeature=feature)
    if text.strip().lower() not in _ON:
        raise UNSUPPORTED_FEATURE_STATUS(property=key, status=text)
