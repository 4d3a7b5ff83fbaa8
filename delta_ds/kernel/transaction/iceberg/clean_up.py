"""Delete what no description of a table in Iceberg's metadata needs any more.

Source: Iceberg Table Spec, "Snapshot Retention Policy"; Iceberg, "Remove old metadata files".
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import ICEBERG_METADATA
from delta_ds.kernel.storage.maintenance import Maintenance
from delta_ds.kernel.transaction.iceberg.storage_io import (
    FOLDER,
    ManifestFolder,
    converted_versions,
    is_description,
    metadata_path,
    read_metadata,
)

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadataV2

    from delta_ds.kernel.storage.filesystem import Storage

# Conversions at work, and readers that have opened an older description, are done by then.
_GRACE_MS = 3_600_000
_LISTS_AT_ONCE = 16
_DESCRIPTION = ".metadata.json"
_ENDINGS = (".avro", _DESCRIPTION)


def clean_up(storage: Storage, *, now_ms: int | None = None) -> int:
    """Delete descriptions of versions, and manifests, that the newest description does not know any more.

    Parameters
    ----------
    storage
        Of the table.
    now_ms
        Milliseconds since 1970; files of the last hour stay.

    Returns
    -------
    int
        How many files were deleted. None where another writer describes a table in the same folder, as manifests of
        both are named alike, or where the catalog of the table does not permit it.
    """
    versions = converted_versions(storage)
    if not versions or not storage.allows(Maintenance.LOG_CLEANUP):
        return 0
    listed = storage.list_from(FOLDER)
    paths = {
        f"{FOLDER}/{status.path.rpartition('/')[2]}": status.modified_ms
        for status in listed
        if status.is_file
    }
    if any(path.endswith(_DESCRIPTION) and not is_description(path) for path in paths):
        return 0
    metadata = read_metadata(storage, versions[-1])
    needed = _needed(storage, metadata, versions)
    before = (time.time_ns() // 1_000_000 if now_ms is None else now_ms) - _GRACE_MS
    stale = [p for p, at in paths.items() if p.endswith(_ENDINGS) and p not in needed and at < before]
    return len(deleter.delete(storage, ICEBERG_METADATA, stale))


def _needed(storage: Storage, metadata: TableMetadataV2, versions: list[int]) -> set[str]:
    """What the newest description names, and descriptions since the oldest of its snapshots."""
    folder = ManifestFolder(storage, metadata.location)
    lists = [snapshot.manifest_list for snapshot in metadata.snapshots]
    with ThreadPoolExecutor(_LISTS_AT_ONCE) as pool:
        manifests = {m.manifest_path for found in pool.map(folder.manifests, lists) for m in found}
    known = [int(s.summary["delta-version"] or 0) for s in metadata.snapshots if s.summary is not None]
    oldest = min([*known, versions[-1]])
    kept = {metadata_path(version) for version in versions if version >= oldest}
    return kept | {folder.path_of(location) for location in (*lists, *manifests)}
