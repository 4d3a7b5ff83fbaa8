"""What a commit to a catalog-managed table has to have: the feature with what it needs, and in-commit timestamps.

Source: PROTOCOL.md, "Catalog-managed Table Enablement", "Writer Requirements for Catalog-managed tables";
protocol-checklist CAT-W-03.
"""

from __future__ import annotations

from delta_ds.conditions.coordination import (
    CATALOG_PROPERTY_NEEDED,
    CATALOG_WANTS_FEATURES,
    IN_COMMIT_TIMESTAMPS_NEEDED,
    MANAGED_FEATURE_NEEDED,
)
from delta_ds.kernel.format.actions import Protocol
from delta_ds.kernel.format.features import (
    CATALOG_MANAGED,
    FEATURE_READER_VERSION,
    FEATURE_WRITER_VERSION,
    FEATURES,
    IN_COMMIT_TIMESTAMP,
    VACUUM_PROTOCOL_CHECK,
)
from delta_ds.kernel.format.operations import UNSET_TBLPROPERTIES
from delta_ds.kernel.format.properties import ENABLE_IN_COMMIT_TIMESTAMPS, FEATURE_PREFIX
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.transaction.pending import Pending
from delta_ds.records import replace

_NEEDED = (CATALOG_MANAGED, IN_COMMIT_TIMESTAMP, VACUUM_PROTOCOL_CHECK)


def complete(pending: Pending) -> None:
    """Give a new table of a catalog its features, and keep those and the timestamps of one that is there.

    Raises
    ------
    UnsupportedOperationError
        The commit gives up what a catalog-managed table needs; nothing was written.
    """
    if pending.snapshot is None and pending.new_protocol is not None:
        pending.new_protocol = pending.protocol = _managed(pending.new_protocol, pending.storage)
    _keep_features(pending)
    _keep_properties(pending)
    _keep_timestamps(pending)


def _managed(protocol: Protocol, storage: Storage) -> Protocol:
    wanted = {
        name.removeprefix(FEATURE_PREFIX)
        for name in storage.new_table_properties()
        if name.startswith(FEATURE_PREFIX)
    }
    if unknown := {name for name in wanted if name not in FEATURES or not FEATURES[name].write}:
        raise CATALOG_WANTS_FEATURES(table=storage.url, features=sorted(unknown))
    names = protocol.supported | {feature.name for feature in _NEEDED} | wanted
    readers = {n for n in names if n in FEATURES and FEATURES[n].needs_reader} | set(
        protocol.reader_features or ()
    )
    return Protocol(FEATURE_READER_VERSION, FEATURE_WRITER_VERSION, frozenset(readers), names)


def _keep_features(pending: Pending) -> None:
    before, new = pending.snapshot, pending.new_protocol
    if before is None or new is None:
        return
    lost = [f.name for f in _NEEDED if before.protocol.supports(f) and not new.supports(f)]
    if lost:
        raise MANAGED_FEATURE_NEEDED(feature=lost[0], table=pending.table)


def _keep_properties(pending: Pending) -> None:
    """Give a new table the properties that its catalog wants, and let nothing that replaces metadata lose them."""
    new = pending.new_metadata
    if new is None:
        return
    if pending.snapshot is None:
        wanted = pending.storage.new_table_properties()
        keeps = {name: text for name, text in wanted.items() if not name.startswith(FEATURE_PREFIX)}
    else:
        keeps = dict(pending.storage.kept_properties(pending.snapshot.metadata.configuration))
    for name, text in keeps.items():
        told = new.configuration.get(name)
        if (told is not None and told != text) or (told is None and pending.operation == UNSET_TBLPROPERTIES):
            raise CATALOG_PROPERTY_NEEDED(property=name, value=text, table=pending.table)
    if any(name not in new.configuration for name in keeps):
        configuration = {**new.configuration, **keeps}
        pending.new_metadata = pending.metadata = replace(new, configuration=configuration)


def _keep_timestamps(pending: Pending) -> None:
    new = pending.new_metadata
    if new is None or pending.state.enabled(IN_COMMIT_TIMESTAMP):
        return
    name = ENABLE_IN_COMMIT_TIMESTAMPS.name
    if name in new.configuration or pending.operation == UNSET_TBLPROPERTIES:
        raise IN_COMMIT_TIMESTAMPS_NEEDED(table=pending.table, property=name)
    # Of a table that is new, or that takes the place of one.
    pending.new_metadata = pending.metadata = replace(new, configuration={**new.configuration, name: "true"})
