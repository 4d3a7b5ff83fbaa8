"""DROP FEATURE: remove the traces of a table feature, then the feature from the protocol.

First what a table property asks for is switched off and what is left of the feature in data files is rewritten (both
are commits of their own), then the feature goes. What only users can decide about, such as constraints, is refused by
name. Features that readers must know need more: older versions of the table hold traces that a reader without the
feature would misread, so those versions are either cut off or protected.

Source: protocol-checklist TF-W-06, CPR-W-01; delta-spark, `AlterTableDropFeatureDeltaCommand`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_ds.conditions.commands import (
    CANNOT_DROP_CHECK_CONSTRAINT_FEATURE,
    FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION,
    FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD,
    FEATURE_DROP_DEPENDENT_FEATURE,
    FEATURE_DROP_FEATURE_NOT_PRESENT,
    FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED,
    FEATURE_DROP_NONREMOVABLE_FEATURE,
    FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE,
)
from delta_ds.conditions.transaction import FEATURE_DROP_OVERTAKEN, FEATURE_DROP_TRACES
from delta_ds.kernel.commands.feature_history import (
    check_history,
    delete_old_versions,
    remove_old_vectors,
    write_latest_checkpoint,
)
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.optimize.planning import plan_optimize
from delta_ds.kernel.commands.optimize.request import PURGE, RETYPE, UNMAP, OptimizeRequest
from delta_ds.kernel.format.features import (
    CHECK_CONSTRAINTS,
    CHECKPOINT_PROTECTION,
    COLUMN_MAPPING,
    DELETION_VECTORS,
    DOMAIN_METADATA,
    FEATURES,
    IN_COMMIT_TIMESTAMP,
    MATERIALIZE_PARTITION_COLUMNS,
    ROW_TRACKING,
    TYPE_WIDENING,
    TYPE_WIDENING_PREVIEW,
    V2_CHECKPOINT,
    VACUUM_PROTOCOL_CHECK,
    TableFeature,
    feature_named,
)
from delta_ds.kernel.format.operations import (
    DROP_FEATURE,
    EMPTY_COMMIT,
    SET_TBLPROPERTIES,
    UNSET_TBLPROPERTIES,
)
from delta_ds.kernel.format.properties import (
    CHECKPOINT_POLICY,
    CHECKPOINT_PROTECTION_BEFORE_VERSION,
    CONSTRAINT_PREFIX,
    ENABLE_DELETION_VECTORS,
    ENABLE_IN_COMMIT_TIMESTAMPS,
    ENABLE_MATERIALIZE_PARTITION_COLUMNS,
    ENABLE_ROW_TRACKING,
    ENABLE_TYPE_WIDENING,
    ICT_ENABLEMENT_TIMESTAMP,
    ICT_ENABLEMENT_VERSION,
    PROPERTIES,
    ROW_TRACKING_SUSPENDED,
)
from delta_ds.kernel.format.schema.evolution import without_changes
from delta_ds.kernel.format.schema.field_metadata import TYPE_CHANGES
from delta_ds.kernel.format.schema.types import schema_to_json, walk
from delta_ds.kernel.log.segment import list_log
from delta_ds.kernel.transaction.alter import row_tracking
from delta_ds.kernel.transaction.alter.protocol import weakest_protocol
from delta_ds.kernel.transaction.alter.schema_change import field_in_history
from delta_ds.kernel.transaction.feature_removal import trace_of
from delta_ds.kernel.transaction.pending import ROW_TRACKING_DOMAIN
from delta_ds.records import dataclass, field, replace

if TYPE_CHECKING:
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.transaction.table_log import TableLog

_BARRIER = 3  # commits with a checkpoint each, so that no old reader has to replay commits with the feature


@dataclass(frozen=True, slots=True)
class _Removal:
    """How the traces of a feature are removed.

    Attributes
    ----------
    properties
        Table properties that are unset first, where they are set.
    sets
        Table properties that are set first, where they are otherwise.
    rewriting
        The kind of OPTIMIZE that takes traces out of data files.
    in_actions
        What in a commit shows that it was used: a pattern on the line. None: only the protocol shows it.
    remedy
        What removes traces that are left.
    """

    properties: tuple[str, ...] = ()
    sets: Mapping[str, str] = field(default_factory=dict)
    rewriting: str | None = None
    in_actions: str | None = None
    remedy: str = ""


_WIDENED = _Removal((ENABLE_TYPE_WIDENING.name,), rewriting=RETYPE, in_actions=r"delta\.typeChanges")
_REMOVALS: dict[str, _Removal] = {
    DELETION_VECTORS.name: _Removal(
        (ENABLE_DELETION_VECTORS.name,),
        rewriting=PURGE,
        in_actions=r'"deletionVector"\s*:\s*\{|"delta\.enableDeletionVectors"\s*:\s*"true"',
    ),
    V2_CHECKPOINT.name: _Removal(
        sets={CHECKPOINT_POLICY.name: "classic"}, in_actions=r'"delta\.checkpointPolicy"\s*:\s*"v2"'
    ),
    COLUMN_MAPPING.name: _Removal(rewriting=UNMAP, in_actions=r"delta\.columnMapping\.physicalName"),
    TYPE_WIDENING.name: _WIDENED,
    TYPE_WIDENING_PREVIEW.name: _WIDENED,
    VACUUM_PROTOCOL_CHECK.name: _Removal(),
    IN_COMMIT_TIMESTAMP.name: _Removal(
        (ICT_ENABLEMENT_VERSION.name, ICT_ENABLEMENT_TIMESTAMP.name),
        sets={ENABLE_IN_COMMIT_TIMESTAMPS.name: "false"},
    ),
    ROW_TRACKING.name: _Removal(
        sets={ENABLE_ROW_TRACKING.name: "false", ROW_TRACKING_SUSPENDED.name: "true"}
    ),
    MATERIALIZE_PARTITION_COLUMNS.name: _Removal((ENABLE_MATERIALIZE_PARTITION_COLUMNS.name,)),
    CHECK_CONSTRAINTS.name: _Removal(remedy="drop them with dropConstraint"),
    DOMAIN_METADATA.name: _Removal(remedy="drop what keeps it there"),
    CHECKPOINT_PROTECTION.name: _Removal((CHECKPOINT_PROTECTION_BEFORE_VERSION.name,)),
}


def drop_feature_support(log: TableLog, name: str, truncate_history: bool | None = None) -> int:
    """Remove a feature from a table's protocol; data files that use it are rewritten in this process.

    Parameters
    ----------
    log
        The table.
    name
        The feature's name in any case.
    truncate_history
        For features that readers must know: True cuts off the versions that used it, which is possible once they
        are older than `delta.dropFeatureTruncateHistory.retentionDuration`. Otherwise they stay readable for
        readers that know the feature, and the table gets the feature checkpointProtection.

    Returns
    -------
    int
        The version committed last.

    Raises
    ------
    UnsupportedFeatureError
        The feature is unknown, not supported by the table, needed by another one, or cannot be removed.
    UnsupportedOperationError
        The table, or a version that would have to be cut off, still uses it; the message says what to do.
    DeltaConcurrentModificationException
        Another commit got in the way. What was committed until then stays; calling this again goes on from there.
    """
    switch_off(log, name, truncate_history)
    request = rewrite_request(log, name)
    if request is not None:
        optimize(log, request)
    return finish_dropping(log, name, truncate_history)


def switch_off(log: TableLog, name: str, truncate_history: bool | None = None) -> None:
    """The first step of `drop_feature_support`: check that the feature can be dropped, and switch it off."""
    feature = _check_droppable(log, name, bool(truncate_history))
    removal = _REMOVALS[feature.name]
    if feature == CHECKPOINT_PROTECTION:
        log.start_transaction().commit(EMPTY_COMMIT)  # a version to begin after those that go
        delete_old_versions(log)
    _refuse_traces(log, feature)
    txn = log.start_transaction()
    before = txn.metadata.configuration
    unset = [key for key in removal.properties if key in before]
    differs = any(_differs(before, key, text) for key, text in removal.sets.items())
    changed = dict(removal.sets) if differs else {}
    if not unset and not changed:
        return
    after = {key: text for key, text in before.items() if key not in unset} | changed
    txn.set_metadata(replace(txn.metadata, configuration=after))
    if removal.properties:
        txn.commit(UNSET_TBLPROPERTIES, {"properties": unset or list(changed), "ifExists": True})
    else:
        txn.commit(SET_TBLPROPERTIES, {"properties": json.dumps(changed, separators=(",", ":"))})


def _differs(configuration: Mapping[str, str], key: str, text: str) -> bool:
    return bool(PROPERTIES[key].of(configuration) != PROPERTIES[key].parse(text))


def rewrite_request(log: TableLog, name: str) -> OptimizeRequest | None:
    """The rewriting needed after `switch_off`; None for none."""
    feature = feature_named(name)
    kind = None if feature is None else _REMOVALS[feature.name].rewriting
    if kind is None or (kind == UNMAP and log.open_snapshot().mapping_mode == "none"):
        return None
    request = OptimizeRequest(kind=kind)
    plan = plan_optimize(log, request)
    return request if plan.bins or plan.description is not None else None


def unmapping_request(log: TableLog, mode: str | None) -> OptimizeRequest:
    """The rewriting that removes column mapping from a table.

    Parameters
    ----------
    mode
        What `delta.columnMapping.mode` is then; None for nothing.

    Raises
    ------
    UnsupportedFeatureError
        Another feature of the table needs column mapping.
    """
    _refuse_dependents(log.storage.url, COLUMN_MAPPING, log.open_snapshot().protocol.supported)
    return OptimizeRequest(kind=UNMAP, mode_property=mode)


def finish_dropping(log: TableLog, name: str, truncate_history: bool | None = None) -> int:
    """The last step of `drop_feature_support`, after the rewriting.

    Returns
    -------
    int
        The version committed last.
    """
    feature = _check_droppable(log, name, bool(truncate_history))
    if rewrite_request(log, name) is not None:
        raise FEATURE_DROP_OVERTAKEN(feature=feature.name, table=log.storage.url)
    _clean_up(log, feature)
    _refuse_traces(log, feature, after_switching=True)
    if not feature.needs_reader:
        return _commit(log, feature, truncate_history)
    for _ in range(1 if truncate_history else _BARRIER):
        log.start_transaction().commit(EMPTY_COMMIT)
        if not truncate_history:
            write_latest_checkpoint(log)
    shown = _REMOVALS[feature.name].in_actions
    if truncate_history and shown is not None:
        check_history(log, feature.name, re.compile(shown.encode()))
    return _commit(log, feature, truncate_history, protect=not truncate_history)


def _clean_up(log: TableLog, feature: TableFeature) -> None:
    """Remove metadata that describes the data files of before the rewriting."""
    if feature in (TYPE_WIDENING, TYPE_WIDENING_PREVIEW):
        _forget_type_changes(log)
    elif feature == ROW_TRACKING:
        row_tracking.unbackfill(log)
    elif feature == DELETION_VECTORS:
        remove_old_vectors(log)


def _check_droppable(log: TableLog, name: str, truncate_history: bool) -> TableFeature:
    table = log.storage.url
    feature = feature_named(name)
    snapshot = log.open_snapshot()
    supported = snapshot.protocol.supported
    if feature is None:
        raise FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE(
            feature=name, table=table, supported=_comma_list(supported)
        )
    if feature.name not in supported:
        raise FEATURE_DROP_FEATURE_NOT_PRESENT(
            feature=feature.name, table=table, supported=_comma_list(supported)
        )
    if feature.name not in _REMOVALS:
        raise FEATURE_DROP_NONREMOVABLE_FEATURE(feature=feature.name)
    _refuse_dependents(table, feature, supported)
    if feature == CHECKPOINT_PROTECTION and not truncate_history:
        raise FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION(
            feature=feature.name, table=table
        )
    if truncate_history and not feature.needs_reader and feature != CHECKPOINT_PROTECTION:
        raise FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED(feature=feature.name)
    return feature


def _refuse_dependents(table: str, feature: TableFeature, supported: frozenset[str]) -> None:
    dependents = sorted(n for n in supported if n in FEATURES and feature in FEATURES[n].depends_on)
    if dependents:
        raise FEATURE_DROP_DEPENDENT_FEATURE(feature=feature.name, dependents=dependents, table=table)


def _comma_list(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _refuse_traces(log: TableLog, feature: TableFeature, *, after_switching: bool = False) -> None:
    """Refuse a table whose use of the feature cannot be removed here."""
    snapshot = log.open_snapshot()
    found = _trace(feature.name, snapshot, after_switching)
    if found is not None:
        refusal = {
            CHECK_CONSTRAINTS.name: CANNOT_DROP_CHECK_CONSTRAINT_FEATURE,
            CHECKPOINT_PROTECTION.name: FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD,
        }.get(feature.name, FEATURE_DROP_TRACES)
        remedy = _REMOVALS[feature.name].remedy
        way_out = f"; {remedy} first. Nothing was written" if remedy else "; call dropFeatureSupport again"
        raise refusal(
            feature=feature.name,
            table=log.storage.url,
            version=snapshot.version,
            trace=found,
            way_out=way_out,
        )


def _trace(name: str, snapshot: Snapshot, after_switching: bool) -> str | None:
    if name == CHECK_CONSTRAINTS.name:
        kept = [k for k in snapshot.metadata.configuration if k.startswith(CONSTRAINT_PREFIX)]
        names = ", ".join(k[len(CONSTRAINT_PREFIX) :] for k in kept)
        return f"it has the constraint(s) {names}" if kept else None
    if name == CHECKPOINT_PROTECTION.name:
        return _protection_reason(snapshot)
    if name == V2_CHECKPOINT.name:
        return None  # a classic checkpoint is written before the feature goes
    removal = _REMOVALS[name]
    if not after_switching and (removal.properties or removal.sets or removal.rewriting):
        return None
    return trace_of(name, snapshot)


def _protection_reason(snapshot: Snapshot) -> str | None:
    below = CHECKPOINT_PROTECTION_BEFORE_VERSION.of(snapshot.metadata.configuration)
    oldest = min(list_log(snapshot.storage).commits, default=below)
    return (
        f"versions from {oldest} on are kept, those below {below} need protection" if oldest < below else None
    )


def _forget_type_changes(log: TableLog) -> None:
    txn = log.start_transaction()
    before = txn.metadata.schema
    schema = without_changes(before)
    if schema != before:
        columns = [field_in_history(*place) for place in walk(before) if TYPE_CHANGES in place[1].metadata]
        txn.set_metadata(replace(txn.metadata, schema_string=schema_to_json(schema)))
        txn.commit(DROP_FEATURE, {"columns": columns})


def _commit(
    log: TableLog, feature: TableFeature, truncate_history: bool | None, *, protect: bool = False
) -> int:
    txn = log.start_transaction()
    names = txn.protocol.supported - {feature.name}
    configuration = dict(txn.metadata.configuration)
    if protect:
        names |= {CHECKPOINT_PROTECTION.name}
        configuration[CHECKPOINT_PROTECTION_BEFORE_VERSION.name] = str(txn.read_version + 1)
    if feature == ROW_TRACKING:
        configuration = {k: v for k, v in configuration.items() if k not in row_tracking.PROPERTIES}
        txn.remove_domain_metadata(ROW_TRACKING_DOMAIN)
    if configuration != txn.metadata.configuration:
        txn.set_metadata(replace(txn.metadata, configuration=configuration))
    txn.set_protocol(weakest_protocol(names, txn.protocol.reader_features or ()))
    parameters = {"featureName": feature.name, "truncateHistory": bool(truncate_history)}
    version = txn.commit(DROP_FEATURE, parameters)
    if feature.needs_reader:
        write_latest_checkpoint(log)
    return version
