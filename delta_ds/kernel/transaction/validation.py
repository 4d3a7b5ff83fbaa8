"""Checks of a commit before the first attempt, whoever else commits; what one to a catalog-managed table has to have.

That is the feature with what it needs, and in-commit timestamps.

Source: PROTOCOL.md, "Delta Log Entries", "Append-only Tables", "Catalog-managed Table Enablement", "Writer Requirements
for Catalog-managed tables"; conflict-matrix section 6; protocol-checklist CAT-W-03.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from delta_ds.conditions.coordination import (
    CATALOG_PROPERTY_NEEDED,
    CATALOG_WANTS_FEATURES,
    IN_COMMIT_TIMESTAMPS_NEEDED,
    MANAGED_FEATURE_NEEDED,
)
from delta_ds.conditions.iceberg import (
    COMPAT_ADDED_DELETION_VECTOR,
    COMPAT_DELETION_VECTORS_NOT_PURGED,
    COMPAT_FILES_NOT_ICEBERG_COMPAT,
    COMPAT_MISSING_NUM_RECORDS,
)
from delta_ds.conditions.transaction import (
    ADD_FILE_PARTITIONING_MISMATCH,
    BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION,
    DOMAIN_METADATA_NOT_SUPPORTED,
    DUPLICATE_ACTIONS_FOUND,
    INVALID_PROTOCOL_DOWNGRADE,
    MANIFESTS_WITH_EXISTING_DELETION_VECTORS,
    MANIFESTS_WITH_PERSISTENT_DELETION_VECTORS,
    ROW_ID_HIGH_WATER_MARK_SET,
)
from delta_ds.events.log import MIXED_DATA_CHANGE
from delta_ds.exceptions import (
    AppendOnlyError,
    CommitFailedError,
)
from delta_ds.kernel.base.arrow_buffers import texts
from delta_ds.kernel.format import features
from delta_ds.kernel.format.actions import AddFile, Protocol, RemoveFile, vector_id
from delta_ds.kernel.format.features import (
    CATALOG_MANAGED,
    DELETION_VECTORS,
    DOMAIN_METADATA,
    FEATURE_READER_VERSION,
    FEATURE_WRITER_VERSION,
    FEATURES,
    IN_COMMIT_TIMESTAMP,
    ROW_TRACKING,
    VACUUM_PROTOCOL_CHECK,
)
from delta_ds.kernel.format.iceberg_compatibility import (
    check_description,
    enabled_version,
    property_of,
    writes_metadata,
)
from delta_ds.kernel.format.operations import CLONE, UNSET_TBLPROPERTIES, UPGRADE_UNIFORM
from delta_ds.kernel.format.properties import (
    APPEND_ONLY,
    ENABLE_IN_COMMIT_TIMESTAMPS,
    FEATURE_PREFIX,
    SYMLINK_MANIFEST_ENABLED,
    UNIVERSAL_FORMAT_ENABLED_FORMATS,
)
from delta_ds.kernel.format.schema.version_changes import schema_changes
from delta_ds.kernel.format.table_state import check_managed, check_writable
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.uri import canonical_path
from delta_ds.kernel.transaction.feature_removal import removed_features
from delta_ds.kernel.transaction.pending import ROW_TRACKING_DOMAIN, Pending
from delta_ds.records import replace

if TYPE_CHECKING:
    from delta_ds.kernel.log.snapshot import Snapshot

_NEEDED = (CATALOG_MANAGED, IN_COMMIT_TIMESTAMP, VACUUM_PROTOCOL_CHECK)


def check_actions(pending: Pending) -> None:
    """Refuse a commit that is invalid by itself.

    Raises
    ------
    UnsupportedFeatureError
        The table needs a feature that this package cannot write, or the commit one that the table lacks.
    CommitFailedError
        Actions contradict each other.
    AppendOnlyError, UnsupportedOperationError, SchemaError
        Rows of an append-only table would be removed; the protocol would be lowered, or properties exclude each
        other; partition values do not fit the table; Iceberg compatibility does not allow it.
    """
    _check_protocol(pending)
    _check_domains(pending)
    _check_partition_values(pending)
    _check_duplicates(pending)
    _check_append_only(pending)
    _check_manifests(pending)
    _check_feed_over_mapping(pending)
    check_iceberg(pending)
    _note_mixed_data_change(pending)


def _check_protocol(pending: Pending) -> None:
    before = pending.snapshot.protocol if pending.snapshot is not None else None
    table, new = pending.table, pending.new_protocol
    if before is not None and new is not None and not pending.operation.may_lower_protocol:
        lost = removed_features(before, new)
        if lost:
            raise INVALID_PROTOCOL_DOWNGRADE(
                table=table,
                features=lost,
                oldProtocol=f"{before.min_reader},{before.min_writer}",
                newProtocol=f"{new.min_reader},{new.min_writer}",
            )
    pending.state.check_writable()
    check_managed(pending.protocol, pending.storage)
    if before is not None and new is not None and pending.snapshot is not None:
        # What is there must be understood as well, also where it is about to be dropped.
        check_writable(before, {}, table, pending.snapshot.schema)


def _check_domains(pending: Pending) -> None:
    mark = pending.domains.get(ROW_TRACKING_DOMAIN)
    leaves = bool(mark and mark.get("removed")) and not pending.protocol.supports(ROW_TRACKING)
    if mark is not None and not leaves:
        raise ROW_ID_HIGH_WATER_MARK_SET(table=pending.table)
    if pending.domains and not pending.protocol.supports(DOMAIN_METADATA):
        names = ", ".join(pending.domains)
        raise DOMAIN_METADATA_NOT_SUPPORTED(
            names=names, table=pending.table, domainNames=list(pending.domains)
        )


def _check_partition_values(pending: Pending) -> None:
    columns = set(pending.state.physical_partition_columns)
    for add in pending.adds:
        if not isinstance(add.get("path"), str):
            raise CommitFailedError(
                f"an add for table {pending.table} has no path; nothing was written: {add}"
            )
        named = set(add.get("partitionValues") or {})
        if named != columns:
            raise ADD_FILE_PARTITIONING_MISMATCH(
                path=add["path"], given=sorted(named), table=pending.table, wanted=sorted(columns)
            )


def _check_duplicates(pending: Pending) -> None:
    added = _by_path("add", pending.adds, pending.storage)
    removed = _by_path("remove", pending.removes, pending.storage)
    for path in added.keys() & removed.keys():
        if added[path] == removed[path]:
            raise _duplicate("add/remove", path, pending.table)
    live = [removes for removes in pending.live_removes if removes]
    if not live:
        return
    import pyarrow as pa
    import pyarrow.compute as pc

    paths = pa.concat_tables(
        pa.table({"path": removes.canonical_paths, "deletionVector": removes.table["deletionVector"]})
        for removes in live
    )
    if len(live) > 1 or live[0].rows is not None:
        counts = pc.value_counts(paths["path"].combine_chunks())
        twice = counts.filter(pc.greater(counts.field("counts"), texts(["1"]).cast(pa.int64())[0]))
        if len(twice):
            raise _duplicate("remove", twice.field("values")[0].as_py(), pending.table)
    own = [*added, *removed]
    hits = paths.filter(pc.is_in(paths["path"], value_set=texts(own))) if own else paths.slice(0, 0)
    for row in hits.to_pylist():
        if row["path"] in removed:
            raise _duplicate("remove", row["path"], pending.table)
        if added[row["path"]] == vector_id(row["deletionVector"]):
            raise _duplicate("add/remove", row["path"], pending.table)


def _by_path(kind: str, bodies: Iterable[AddFile | RemoveFile], storage: Storage) -> dict[str, str | None]:
    by_path: dict[str, str | None] = {}
    for body in bodies:
        path = canonical_path(str(body.get("path")), storage)
        if path in by_path:
            raise _duplicate(kind, path, storage.url)
        by_path[path] = vector_id(body.get("deletionVector"))
    return by_path


def _duplicate(kind: str, path: str, table: str) -> CommitFailedError:
    return DUPLICATE_ACTIONS_FOUND(actionType=kind, path=path, table=table)


def _check_append_only(pending: Pending) -> None:
    if pending.snapshot is None or pending.operation == CLONE:
        return  # a clone that is brought up to date looks for itself
    loses = any(body.get("dataChange", False) for body in pending.removes)
    loses |= any(removes.data_change for removes in pending.live_removes if removes)
    if loses:
        check_may_remove(pending.snapshot, pending.operation.name)


def check_may_remove(snapshot: Snapshot, operation: str) -> None:
    """Refuse to change or remove rows of an append-only table.

    Raises
    ------
    AppendOnlyError
        `delta.appendOnly` is effective.
    """
    if snapshot.table_state.enabled(features.APPEND_ONLY):
        table = snapshot.storage.url
        raise AppendOnlyError(
            "This table is configured to only allow appends. If you would like to permit updates or deletes, set "
            f"delta.appendOnly of {table} to false: this {operation} changes or removes rows; nothing was written",
            parameters={"table_name": table, "config": APPEND_ONLY.name},
        )


def _check_manifests(pending: Pending) -> None:
    """Manifests name whole files, so a table that has them after every commit has no deletion vectors."""
    if pending.new_metadata is None:
        return
    properties = pending.new_metadata.configuration
    if not SYMLINK_MANIFEST_ENABLED.of(properties):
        return
    if pending.state.enabled(DELETION_VECTORS):
        raise MANIFESTS_WITH_PERSISTENT_DELETION_VECTORS(table=pending.table)
    if pending.snapshot is not None and _newly_has_manifests_over_vectors(pending.snapshot):
        raise MANIFESTS_WITH_EXISTING_DELETION_VECTORS(table=pending.table)


def _check_feed_over_mapping(pending: Pending) -> None:
    """What a change feed says of rows whose columns change their names in the same commit is not defined.

    Source: delta-spark, `OptimisticTransaction.performCdcColumnMappingCheck`.
    """
    new, before = pending.new_metadata, pending.snapshot
    if new is None or before is None or pending.operation.takes_description:
        return
    if not (pending.adds or pending.removes or any(pending.live_removes)):
        return
    if pending.state.mapping_mode == "none" or not pending.state.enabled(features.CHANGE_DATA_FEED):
        return
    if before.mapping_mode == "none":
        what = "turns column mapping on"
    else:
        changes = schema_changes(before.schema, new.schema)
        changed = (*changes.dropped, *(old for old, _ in changes.renamed))
        if not changed:
            return
        what = f"drops or renames columns ({', '.join(changed)})"
    raise BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION(
        opName=pending.operation.name, table=pending.table, what=what
    )


def _newly_has_manifests_over_vectors(before: Snapshot) -> bool:
    if SYMLINK_MANIFEST_ENABLED.of(before.metadata.configuration) or not before.protocol.supports(
        DELETION_VECTORS
    ):
        return False
    vectors = before.live_files().table["deletionVector"]
    return bool(vectors.null_count < len(vectors))


def _note_mixed_data_change(pending: Pending) -> None:
    seen = {bool(body.get("dataChange", False)) for body in (*pending.adds, *pending.removes)}
    seen |= {removes.data_change for removes in pending.live_removes if removes}
    if len(seen) > 1:
        MIXED_DATA_CHANGE.log(table=pending.table, operation=pending.operation)


# --- the checks of a commit to a table with Iceberg compatibility: its description, and the files it adds or finds
# Source: PROTOCOL.md, "Iceberg Compatibility V1", "Iceberg Compatibility V2"; protocol-checklist section 20;
# delta-spark, `IcebergCompatBase.enforceInvariantsAndDependencies`.


def check_iceberg(pending: Pending) -> None:
    """Refuse a commit that would leave the table, or one of its files, unreadable for readers of Iceberg.

    Raises
    ------
    UnsupportedOperationError
        Naming the property, column or file in the way.
    """
    upgrade = pending.operation == UPGRADE_UNIFORM
    if pending.new_metadata is not None or pending.new_protocol is not None:
        before = pending.snapshot.metadata if pending.snapshot is not None else None
        supported = pending.state.protocol.supported
        check_description(pending.metadata, supported, before, pending.table, upgrade=upgrade)
    version = enabled_version(pending.state)
    if version is None:
        return
    _check_added(pending, version)
    wanted = _newly_wanted(pending, version)
    if wanted is not None and pending.snapshot is not None and not upgrade:
        # Files that others add meanwhile were not written by the rules.
        pending.reads.whole_table = True
        pending.reads.add_predicate(pending.snapshot, None, None)
        pending.serializable = True
        _check_files(pending, version, wanted, _staying(pending.snapshot, pending))


def _newly_wanted(pending: Pending, version: int) -> str | None:
    """The property that existing files have to comply with from this commit on; None for none."""
    if pending.new_metadata is None or pending.snapshot is None:
        return None
    before = pending.snapshot.table_state
    if writes_metadata(pending.metadata.configuration) and not writes_metadata(before.properties):
        return f"{UNIVERSAL_FORMAT_ENABLED_FORMATS} = iceberg"
    return None if enabled_version(before) == version else f"{property_of(version)} = true"


def _check_added(pending: Pending, version: int) -> None:
    from delta_ds.kernel.transaction.iceberg.data_files import is_counted, is_tagged

    unproved = []
    for add in pending.adds:
        if add.get("deletionVector") is not None:
            raise COMPAT_ADDED_DELETION_VECTOR(table=pending.table, path=add["path"], version=version)
        if not is_counted(add):
            raise COMPAT_MISSING_NUM_RECORDS(table=pending.table, path=add["path"], version=version)
        if not is_tagged(add, version):
            unproved.append(add)
    if unproved:
        wanted = f"{property_of(version)} = true"
        _check_files(pending, version, wanted, unproved)


def _check_files(pending: Pending, version: int, wanted: str, adds: Iterable[AddFile]) -> None:
    from delta_ds.kernel.transaction.iceberg.data_files import complaints

    files = list(adds)
    vectors = sum(1 for add in files if add.get("deletionVector") is not None)
    if vectors:
        raise COMPAT_DELETION_VECTORS_NOT_PURGED(table=pending.table, files=vectors, version=version)
    problems = list(complaints(pending.storage, pending.state, version, files))
    if problems:
        raise COMPAT_FILES_NOT_ICEBERG_COMPAT(
            table=pending.table,
            wanted=wanted,
            version=version,
            addFilesCount=len(files),
            addFilesWithoutTag=len(problems),
            tableVersion=max(pending.version - 1, 0),
            path=problems[0].path,
            reason=problems[0].reason,
        )


def _staying(snapshot: Snapshot, pending: Pending) -> Iterator[AddFile]:
    """The live files that the commit does not remove."""
    from delta_ds.kernel.files.write.live_actions import add_bodies, live_adds

    gone = {canonical_path(str(body.get("path")), pending.storage) for body in pending.removes}
    for removes in pending.live_removes:
        gone.update(removes.canonical_paths.to_pylist())
    for table in live_adds(snapshot):
        for add in add_bodies(table):
            if canonical_path(add["path"], pending.storage) not in gone:
                yield add


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
