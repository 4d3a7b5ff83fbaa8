"""Taking a feature out of a table's protocol, once nothing in the table needs it.

What a table property asks for is switched off here. Traces in data files are not rewritten: they are refused by
name, with what removes them. Features that readers must know need more: older versions of the table hold traces
that a reader without the feature would misread, so those versions are either cut off or protected.

Source: protocol-checklist TF-W-06, CPR-W-01; delta-spark, `AlterTableDropFeatureDeltaCommand`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from delta_ds.exceptions import UnsupportedFeatureError, UnsupportedOperationError
from delta_ds.kernel.alter.protocol import least
from delta_ds.kernel.features import FEATURES, TableFeature, feature_named
from delta_ds.kernel.log.segment import list_log, read_files
from delta_ds.kernel.properties import CONSTRAINT_PREFIX, value_of
from delta_ds.kernel.transaction.feature_removal import trace_of

if TYPE_CHECKING:
    from delta_ds.kernel.delta_log import DeltaLog
    from delta_ds.kernel.snapshot import Snapshot

PROTECTION = "checkpointProtection"
PROTECTED_BELOW = "delta.requireCheckpointProtectionBeforeVersion"
_RETENTION = "delta.dropFeatureTruncateHistory.retentionDuration"
_BARRIER = 3  # commits with a checkpoint each, so that no old reader has to replay commits with the feature


@dataclass(frozen=True, slots=True)
class _Removal:
    """How a feature goes.

    Attributes
    ----------
    properties
        Table properties that are unset first; ending in a dot: a prefix.
    in_actions
        What in a commit shows that it was used: a pattern on the line. None: only the protocol shows it.
    remedy
        What removes traces that are left.
    """

    properties: tuple[str, ...] = ()
    in_actions: str | None = None
    remedy: str = ""


_REWRITE = "write the rows to a new table without the feature"
_REMOVALS: dict[str, _Removal] = {
    "deletionVectors": _Removal(
        ("delta.enableDeletionVectors",),
        r'"deletionVector"\s*:\s*\{|"delta\.enableDeletionVectors"\s*:\s*"true"',
        "rewrite the files that have them with optimize().executePurge()",
    ),
    "v2Checkpoint": _Removal(
        ("delta.checkpointPolicy",), r'"delta\.checkpointPolicy"\s*:\s*"v2"',
        "write a classic checkpoint",
    ),
    "columnMapping": _Removal((), r'delta\.columnMapping\.physicalName', _REWRITE),
    "typeWidening": _Removal(("delta.enableTypeWidening",), r"delta\.typeChanges", _REWRITE),
    "typeWidening-preview": _Removal(("delta.enableTypeWidening",), r"delta\.typeChanges", _REWRITE),
    "vacuumProtocolCheck": _Removal(),
    "inCommitTimestamp": _Removal(
        (
            "delta.enableInCommitTimestamps", "delta.inCommitTimestampEnablementVersion",
            "delta.inCommitTimestampEnablementTimestamp",
        )
    ),
    "materializePartitionColumns": _Removal(("delta.enableMaterializePartitionColumnsFeature",)),
    "checkConstraints": _Removal(remedy="drop them with dropConstraint"),
    "allowColumnDefaults": _Removal(remedy="drop them with alterColumn"),
    "domainMetadata": _Removal(remedy="drop what keeps it there"),
    "checkpointProtection": _Removal((PROTECTED_BELOW,)),
}  # fmt: skip


def drop_feature_support(log: DeltaLog, name: str, truncate_history: bool | None = None) -> int:
    """Take a feature out of a table's protocol.

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
    """
    feature = _droppable(log, name, bool(truncate_history))
    removal = _REMOVALS[feature.name]
    _refuse_traces(log, feature, after=removal.properties)
    _switch_off(log, removal)
    if feature.name == "v2Checkpoint":
        _checkpoint(log)
    if not feature.needs_reader:
        return _commit(log, feature, truncate_history)
    if truncate_history:
        _check_history(log, feature, removal)
        return _commit(log, feature, truncate_history)
    for _ in range(_BARRIER):
        log.start_transaction().commit("EMPTY COMMIT")
        _checkpoint(log)
    return _commit(log, feature, truncate_history, protect=True)


def _droppable(log: DeltaLog, name: str, truncate_history: bool) -> TableFeature:
    table = log.storage.url
    feature = feature_named(name)
    snapshot = log.snapshot()
    supported = snapshot.protocol.supported
    if feature is None:
        raise _cannot(name, f"no feature of that name is known; {table} has {_listed(supported)}",
                      "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE")  # fmt: skip
    if feature.name not in supported:
        raise _cannot(feature.name, f"{table} does not have it; it has {_listed(supported)}",
                      "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT")  # fmt: skip
    if feature.name not in _REMOVALS:
        raise _cannot(feature.name, "it is not one that can be removed; write the rows to a new table",
                      "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE")  # fmt: skip
    dependents = sorted(n for n in supported if n in FEATURES and feature.name in FEATURES[n].depends_on)
    if dependents:
        raise _cannot(feature.name, f"{', '.join(dependents)} of {table} need it; drop them first",
                      "DELTA_FEATURE_DROP_DEPENDENT_FEATURE")  # fmt: skip
    if truncate_history and not feature.needs_reader:
        raise _cannot(feature.name, "history need not be cut off for a feature of writers: leave truncateHistory out",
                      "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED")  # fmt: skip
    return feature


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _cannot(name: str, why: str, condition: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"table feature {name!r} cannot be dropped: {why}. Nothing was written",
        condition=condition,
        parameters={"feature": name},
    )


def _refuse_traces(log: DeltaLog, feature: TableFeature, after: tuple[str, ...]) -> None:
    """Refuse a table that uses the feature in other ways than by properties that will be unset."""
    snapshot = log.snapshot()
    found = _trace(feature.name, snapshot, after)
    if found is not None:
        condition = {
            "checkConstraints": "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
            PROTECTION: "DELTA_FEATURE_CANNOT_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
        }.get(feature.name, "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL")
        raise UnsupportedOperationError(
            f"table feature {feature.name!r} of {log.storage.url} cannot be dropped at version {snapshot.version}: "
            f"{found}; {_REMOVALS[feature.name].remedy} first. Nothing was written",
            condition=condition,
            parameters={"feature": feature.name, "trace": found},
        )


def _trace(name: str, snapshot: Snapshot, ignoring: tuple[str, ...]) -> str | None:
    if name == "checkConstraints":
        kept = [k for k in snapshot.metadata.configuration if k.startswith(CONSTRAINT_PREFIX)]
        return (
            f"it has the constraint(s) {', '.join(k[len(CONSTRAINT_PREFIX) :] for k in kept)}"
            if kept
            else None
        )
    if name == "allowColumnDefaults":
        columns = [f.name for f in snapshot.schema if "CURRENT_DEFAULT" in f.metadata]
        return f"the column(s) {', '.join(columns)} have defaults" if columns else None
    if name == PROTECTION:
        below = value_of(snapshot.metadata.configuration, PROTECTED_BELOW)
        oldest = min(list_log(snapshot.storage).commits, default=below)
        return (
            f"versions from {oldest} on are kept, those below {below} need protection"
            if oldest < below
            else None
        )
    if name == "v2Checkpoint":
        return None  # a classic checkpoint is written before the feature goes
    configuration = {k: v for k, v in snapshot.metadata.configuration.items() if k not in ignoring}
    return trace_of(name, _Without(snapshot, configuration))  # type: ignore[arg-type]


class _Without:
    """A snapshot as it will be without some properties."""

    def __init__(self, snapshot: Snapshot, configuration: dict[str, str]) -> None:
        self._snapshot = snapshot
        self.metadata = replace(snapshot.metadata, configuration=configuration)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._snapshot, name)


def _switch_off(log: DeltaLog, removal: _Removal) -> None:
    txn = log.start_transaction()
    there = [name for name in removal.properties if name in txn.metadata.configuration]
    if not there:
        return
    kept = {k: v for k, v in txn.metadata.configuration.items() if k not in there}
    txn.set_metadata(replace(txn.metadata, configuration=kept))
    txn.commit("UNSET TBLPROPERTIES", {"properties": there, "ifExists": True})


def _checkpoint(log: DeltaLog) -> None:
    from delta_ds.kernel.transaction.checkpoint import write_checkpoint

    write_checkpoint(log.storage, log.snapshot().segment)


def _commit(
    log: DeltaLog, feature: TableFeature, truncate_history: bool | None, *, protect: bool = False
) -> int:
    txn = log.start_transaction()
    names = txn.protocol.supported - {feature.name}
    if protect:
        names |= {PROTECTION}
        below = {PROTECTED_BELOW: str(txn.read_version + 1)}
        txn.set_metadata(replace(txn.metadata, configuration={**txn.metadata.configuration, **below}))
    txn.set_protocol(least(names, txn.protocol.reader_features or ()))
    parameters = {"featureName": feature.name, "truncateHistory": bool(truncate_history)}
    version = txn.commit("DROP FEATURE", parameters)
    if feature.needs_reader:
        _checkpoint(log)
    return version


# --- older versions


def _check_history(log: DeltaLog, feature: TableFeature, removal: _Removal) -> None:
    """Cut off what is old enough, and refuse where a kept version still shows the feature."""
    from delta_ds.kernel.log.cleanup import clean_up

    if next(_using(log, feature, removal), None) is None:
        return
    _checkpoint(log)
    retention: timedelta = value_of(log.snapshot().metadata.configuration, _RETENTION)
    clean_up(log.storage, retention=retention)
    used = next(_using(log, feature, removal), None)
    if used is not None:
        raise UnsupportedOperationError(
            f"table feature {feature.name!r} of {log.storage.url} cannot be dropped yet: version {used} still uses it "
            f"and is kept for {retention} ({_RETENTION}). The table does not use it any more: call "
            "dropFeatureSupport again then, or without truncateHistory now",
            condition="DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
            parameters={"feature": feature.name, "version": used},
        )


def _using(log: DeltaLog, feature: TableFeature, removal: _Removal) -> Iterator[int]:
    """The versions in the log that show traces of the feature."""
    if removal.in_actions is None:
        return
    pattern = re.compile(removal.in_actions.encode())
    listing = list_log(log.storage)
    for checkpoint in listing.checkpoints:
        if trace_of(feature.name, log.snapshot(checkpoint.version)) is not None:
            yield checkpoint.version
    for version, file in sorted(listing.commits.items()):
        if pattern.search(read_files(log.storage, [file])[0]):
            yield version
