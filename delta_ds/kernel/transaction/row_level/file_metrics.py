"""The metrics of files and deletion vectors, of a commit that follows others: what it does to the files as they are.

Source: delta-spark, `DMLWithDeletionVectorsHelper` (which vectors count as updated).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.kernel.log.paths import canonical_path

if TYPE_CHECKING:
    from delta_ds.kernel.actions import RemoveFile
    from delta_ds.kernel.transaction.pending import Pending

# The metrics of DELETE and UPDATE, and of MERGE.
_REMOVED = ("numRemovedFiles", "numTargetFilesRemoved")
_REMOVED_BYTES = ("numRemovedBytes", "numTargetBytesRemoved")
_VECTORS_ADDED = ("numDeletionVectorsAdded", "numTargetDeletionVectorsAdded")
_VECTORS_REMOVED = ("numDeletionVectorsRemoved", "numTargetDeletionVectorsRemoved")
_VECTORS_UPDATED = ("numDeletionVectorsUpdated", "numTargetDeletionVectorsUpdated")


def recount_files(pending: Pending) -> None:
    """Count anew which files go, and which get another deletion vector; rows and new files stay what they were."""
    added = {canonical_path(str(body.get("path")), pending.storage) for body in pending.adds}
    marked: list[RemoveFile] = []
    gone: list[RemoveFile] = []
    for body in pending.removes:
        stays = canonical_path(str(body.get("path")), pending.storage) in added
        (marked if stays else gone).append(body)
    updated = sum(body.get("deletionVector") is not None for body in marked)
    dropped = sum(body.get("deletionVector") is not None for body in gone)
    counts = {
        _REMOVED: len(gone),
        _REMOVED_BYTES: sum(int(body.get("size") or 0) for body in gone),
        _VECTORS_ADDED: len(marked),
        _VECTORS_REMOVED: dropped + updated,
        _VECTORS_UPDATED: updated,
    }
    before = pending.commit_info.get("operationMetrics") or {}
    after = {name: str(count) for names, count in counts.items() for name in names if name in before}
    pending.commit_info["operationMetrics"] = {**before, **after}
