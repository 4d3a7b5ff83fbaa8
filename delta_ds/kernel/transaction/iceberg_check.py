"""The checks of a commit to a table with Iceberg compatibility: its description, and the files it adds or finds.

Source: PROTOCOL.md, "Iceberg Compatibility V1", "Iceberg Compatibility V2"; protocol-checklist section 20; delta-spark,
`IcebergCompatBase.enforceInvariantsAndDependencies`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from delta_ds.conditions.iceberg import (
    COMPAT_ADDED_DELETION_VECTOR,
    COMPAT_DELETION_VECTORS_NOT_PURGED,
    COMPAT_FILES_NOT_ICEBERG_COMPAT,
    COMPAT_MISSING_NUM_RECORDS,
)
from delta_ds.kernel.iceberg_compatibility import (
    check_description,
    enabled_version,
    property_of,
    writes_metadata,
)
from delta_ds.kernel.log.paths import canonical_path
from delta_ds.kernel.operations import UPGRADE_UNIFORM
from delta_ds.kernel.properties import UNIVERSAL_FORMAT_ENABLED_FORMATS

if TYPE_CHECKING:
    from delta_ds.kernel.actions import AddFile
    from delta_ds.kernel.snapshot import Snapshot
    from delta_ds.kernel.transaction.pending import Pending


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
    from delta_ds.kernel.iceberg.data_files import is_counted, is_tagged

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
    from delta_ds.kernel.iceberg.data_files import complaints

    files = list(adds)
    vectors = sum(1 for add in files if add.get("deletionVector") is not None)
    if vectors:
        raise COMPAT_DELETION_VECTORS_NOT_PURGED(table=pending.table, files=vectors, version=version)
    found = list(complaints(pending.storage, pending.state, version, files))
    if found:
        raise COMPAT_FILES_NOT_ICEBERG_COMPAT(
            table=pending.table,
            wanted=wanted,
            version=version,
            addFilesCount=len(files),
            addFilesWithoutTag=len(found),
            tableVersion=max(pending.version - 1, 0),
            path=found[0].path,
            reason=found[0].reason,
        )


def _staying(snapshot: Snapshot, pending: Pending) -> Iterator[AddFile]:
    """The live files that the commit does not remove."""
    from delta_ds.kernel.live_adds import add_bodies, live_adds

    gone = {canonical_path(str(body.get("path")), pending.storage) for body in pending.removes}
    for removes in pending.live_removes:
        gone.update(removes.canonical_paths.to_pylist())
    for table in live_adds(snapshot):
        for add in add_bodies(table):
            if canonical_path(add["path"], pending.storage) not in gone:
                yield add
