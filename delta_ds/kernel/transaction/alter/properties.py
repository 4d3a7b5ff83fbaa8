"""Set and unset table properties, with the protocol upgrades that they need.

Source: protocol-checklist MD-RW-05, TF-W-02; delta-spark, `AlterTableSetPropertiesDeltaCommand`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from delta_ds.conditions.protocol import ENGINE_PROPERTY_NOT_UNSET, FEATURE_PROPERTY_NOT_UNSET
from delta_ds.conditions.tables import (
    ADD_CONSTRAINTS,
    ALTER_TABLE_SET_CLUSTERING,
    CREATE_TABLE_SET_CLUSTERING,
    DROP_CONSTRAINTS,
    UNSUPPORTED_FEATURE_SET_TABLE_PROPERTY,
    UNSUPPORTED_FEATURE_STATUS,
)
from delta_ds.kernel.format.features import CLUSTERING
from delta_ds.kernel.format.operations import SET_TBLPROPERTIES, UNSET_TBLPROPERTIES
from delta_ds.kernel.format.properties import (
    CONSTRAINT_PREFIX,
    ENABLE_ROW_TRACKING,
    FEATURE_PREFIX,
    IGNORE_PROTOCOL_DEFAULTS,
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    PROPERTIES,
    STRICT,
    PropertyRules,
    canonical_name,
    check_property,
    check_together,
)
from delta_ds.kernel.transaction.alter import row_tracking
from delta_ds.kernel.transaction.alter.protocol import check_versions, implied_features, known_feature
from delta_ds.kernel.transaction.alter.table_metadata import finalize_metadata, with_metadata
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from delta_ds.kernel.transaction.table_log import TableLog
    from delta_ds.kernel.transaction.transaction import Transaction


# --- table properties as users give them, split into those to store and those that only ask for a protocol
# Source: protocol-checklist MD-RW-05, MD-W-06.

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


def with_defaults(properties: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """Properties of a new table with those that it has where they are not named, in any case."""
    given = {name.lower() for name in properties}
    return {**{key: text for key, text in defaults.items() if key.lower() not in given}, **properties}


def parse_properties(
    properties: Mapping[str, str],
    rules: PropertyRules = STRICT,
    *,
    defaults: Mapping[str, str] | None = None,
    creates: bool = False,
) -> PropertyInputs:
    """Check the properties that a user gives.

    Parameters
    ----------
    properties
        Names to texts.
    rules
        What the session says of them.
    defaults
        Those of a new table where `properties` do not name them.
    creates
        Whether they are of a table that comes to be, for messages.

    Raises
    ------
    InvalidOptionError
        An unknown `delta.` name (with the nearest known one), a wrong value, one that cannot be set, or two that
        contradict each other.
    UnsupportedFeatureError
        `delta.feature.<name>` for a feature that is unknown or cannot be written.
    """
    given: dict[str, str] = {}
    stored: dict[str, str] = {}
    features: set[str] = set()
    versions: dict[str, int] = {}
    for name, value in with_defaults(properties, defaults or {}).items():
        key, text = check_property(name, value, rules), str(value)
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
    check_together(properties, rules)
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
        raise UNSUPPORTED_FEATURE_STATUS(property=key, status=text, feature=feature)


_COMMENT = "comment"  # stored as the table's description


def set_properties(log: TableLog, properties: Mapping[str, str], rules: PropertyRules = STRICT) -> int:
    """Set table properties, and upgrade the protocol as far as they need it.

    Parameters
    ----------
    log
        The table.
    properties
        Names to texts. `delta.` names in any case; `comment` sets the description. `delta.minReaderVersion`,
        `delta.minWriterVersion` and `delta.feature.<name>` only upgrade the protocol.
    rules
        What the session says of them.

    Returns
    -------
    int
        The version committed. Row tracking on a table with files takes several commits; this is the last.

    Raises
    ------
    InvalidOptionError
        An unknown name, a wrong value, what cannot be set this way, or values that contradict each other.
    UnsupportedFeatureError
        What is asked for needs a feature this package could not write.
    SchemaError, UnsupportedOperationError
        It does not go with the table's columns, or with what it was until now.
    """
    return _set(log, parse_properties(_texts(properties), rules))


# In `tags` of a commit that does nothing else: writers with delta-spark follow it without a conflict.
_ROW_TRACKING_ONLY = {"rowTrackingEnablementOnly": "true"}


def _set(log: TableLog, inputs: PropertyInputs) -> int:
    _check_settable(inputs)
    txn = log.start_transaction()
    tags = None
    if ENABLE_ROW_TRACKING.of(inputs.stored) and not ENABLE_ROW_TRACKING.of(txn.metadata.configuration):
        # What is refused is refused before the backfill.
        _change_metadata(txn, inputs)
        row_tracking.backfill(log)
        txn = log.start_transaction()
        tags = _ROW_TRACKING_ONLY if set(inputs.given) == {ENABLE_ROW_TRACKING.name} else None
    _change_metadata(txn, inputs, apply=True)
    return txn.commit(SET_TBLPROPERTIES, {"properties": _json(inputs.given)}, tags=tags)


def _change_metadata(txn: Transaction, inputs: PropertyInputs, *, apply: bool = False) -> None:
    old = txn.metadata
    stored = dict(inputs.stored)
    description = stored.pop(_COMMENT, old.description)
    wanted = set(inputs.features)
    if inputs.reader is not None or inputs.writer is not None:
        versions = (
            inputs.reader or txn.protocol.min_reader,
            inputs.writer or txn.protocol.min_writer,
        )
        check_versions(*versions)
        wanted |= implied_features(*versions)
    new = replace(old, description=description, configuration={**old.configuration, **stored})
    after = with_metadata(txn.table_state, new, wanted)
    if apply:
        txn.set_table_state(after)


def _check_settable(inputs: PropertyInputs) -> None:
    constraints = [name for name in inputs.given if name.startswith(CONSTRAINT_PREFIX)]
    if constraints:
        raise ADD_CONSTRAINTS(property=constraints[0])


def unset_properties(log: TableLog, names: Sequence[str]) -> int:
    """Take table properties away; those that are not set are ignored.

    Parameters
    ----------
    log
        The table.
    names
        `delta.` names in any case, others as they are stored; `comment` takes the description away.

    Returns
    -------
    int
        The version committed.

    Raises
    ------
    InvalidOptionError
        A property that stands for something else: a constraint, a feature, a protocol version.
    UnsupportedOperationError
        What the property stands for cannot be turned off.
    """
    keys = [canonical_name(name) for name in ([names] if isinstance(names, str) else names)]
    for key in keys:
        _check_unsettable(key)
    txn = log.start_transaction()
    old = txn.metadata
    configuration = {name: text for name, text in old.configuration.items() if name not in keys}
    description = None if _COMMENT in keys else old.description
    new = replace(old, description=description, configuration=configuration)
    new = finalize_metadata(new, old, txn.storage.url, txn.protocol.supported)
    txn.set_metadata(new)
    return txn.commit(UNSET_TBLPROPERTIES, {"properties": list(keys), "ifExists": True})


def _check_unsettable(key: str) -> None:
    folded = key.lower()
    known = PROPERTIES.get(key)
    if folded.startswith(FEATURE_PREFIX):
        raise FEATURE_PROPERTY_NOT_UNSET(property=key)
    if folded.startswith(CONSTRAINT_PREFIX):
        raise DROP_CONSTRAINTS(property=key)
    if known is not None and not known.settable:
        raise ENGINE_PROPERTY_NOT_UNSET(property=key)


def upgrade_table_protocol(log: TableLog, reader: int, writer: int) -> int:
    """Raise a table to protocol versions: what they imply is supported from then on, nothing is lowered.

    Parameters
    ----------
    log
        The table.
    reader, writer
        The versions wanted at least.

    Returns
    -------
    int
        The version committed.

    Raises
    ------
    InvalidOptionError
        There are no such versions.
    UnsupportedFeatureError
        They do not go together.

    Source: protocol-checklist PRO-W-06, TF-W-03.
    """
    return set_properties(log, {MIN_READER_VERSION.name: str(reader), MIN_WRITER_VERSION.name: str(writer)})


def add_feature_support(log: TableLog, name: str) -> int:
    """Make a table support a feature and what it depends on.

    Parameters
    ----------
    log
        The table.
    name
        The feature's name in any case.

    Returns
    -------
    int
        The version committed.

    Raises
    ------
    UnsupportedFeatureError
        The feature is unknown, or cannot be written by this package.

    Source: protocol-checklist TF-W-02, TF-W-04, TF-W-05.
    """
    wanted = {FEATURE_PREFIX + name: "supported"}
    return _set(log, replace(parse_properties(wanted), given=wanted))


def _texts(properties: Mapping[str, object]) -> dict[str, str]:
    """Values as text, as SQL would have them: `True` is `true`."""
    return {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in properties.items()}


def _json(properties: Mapping[str, str]) -> str:
    return json.dumps(dict(properties), separators=(",", ":"), ensure_ascii=False)
