"""What a DELETE or UPDATE did, counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from delta_ds.kernel.commands.dml.commit import Committed
from delta_ds.records import dataclass, field

_Result = TypeVar("_Result", bound="RowChangeResult")


@dataclass(frozen=True, slots=True)
class RowChangeResult:
    """What a DELETE or UPDATE did. What is counted beside version and rows does not count for equality.

    Attributes
    ----------
    version
        What was committed; None where no row matched, unless the command counts as a transaction: that is recorded.
    rows
        How many rows were deleted or updated; None where whole files went whose rows the log does not count.
    num_copied_rows
        How many other rows were written anew, as their files were.
    num_added_files, num_removed_files, num_added_bytes, num_removed_bytes
        Data files that came and went.
    num_added_change_files
        Files for the change data feed.
    num_deletion_vectors_added, num_deletion_vectors_removed
        Marks of deleted rows; one that was extended counts as both.
    scan_time_ms, rewrite_time_ms, execution_time_ms
        What finding rows, rewriting files, and both took.
    """

    version: int | None
    rows: int | None
    num_copied_rows: int = field(default=0, compare=False)
    num_added_files: int = field(default=0, compare=False)
    num_removed_files: int = field(default=0, compare=False)
    num_added_bytes: int = field(default=0, compare=False)
    num_removed_bytes: int = field(default=0, compare=False)
    num_added_change_files: int = field(default=0, compare=False)
    num_deletion_vectors_added: int = field(default=0, compare=False)
    num_deletion_vectors_removed: int = field(default=0, compare=False)
    scan_time_ms: int = field(default=0, compare=False)
    rewrite_time_ms: int = field(default=0, compare=False)
    execution_time_ms: int = field(default=0, compare=False)


def counted(kind: type[_Result], committed: Committed, rows: int | None) -> _Result:
    """What was committed, as a result of a kind."""
    metrics: Mapping[str, Any] = committed.metrics
    found = {name: metrics.get(metric, 0) for name, metric in _METRICS.items()}
    return kind(committed.version, rows, **found)


_METRICS = {
    "num_copied_rows": "numCopiedRows",
    "num_added_files": "numAddedFiles",
    "num_removed_files": "numRemovedFiles",
    "num_added_bytes": "numAddedBytes",
    "num_removed_bytes": "numRemovedBytes",
    "num_added_change_files": "numAddedChangeFiles",
    "num_deletion_vectors_added": "numDeletionVectorsAdded",
    "num_deletion_vectors_removed": "numDeletionVectorsRemoved",
    "scan_time_ms": "scanTimeMs",
    "rewrite_time_ms": "rewriteTimeMs",
    "execution_time_ms": "executionTimeMs",
}


@dataclass(frozen=True, slots=True)
class DeleteResult(RowChangeResult):
    """What a DELETE did; see `RowChangeResult`.

    Examples
    --------
    >>> from delta_ds import DeltaLog
    >>> DeltaLog("/data/orders").delete("id = 1").num_removed_files
    1
    """

    @property
    def num_deleted_rows(self) -> int | None:
        """`rows`, by delta-rs's name.

        Examples
        --------
        >>> from delta_ds import DeltaLog
        >>> DeltaLog("/data/orders").delete("id = 1").num_deleted_rows
        1
        """
        return self.rows


@dataclass(frozen=True, slots=True)
class UpdateResult(RowChangeResult):
    """What an UPDATE did; see `RowChangeResult`.

    Examples
    --------
    >>> from delta_ds import DeltaLog
    >>> DeltaLog("/data/orders").update({"amount": "0"}, predicate="id = 1").num_added_files
    1
    """

    @property
    def num_updated_rows(self) -> int | None:
        """`rows`, by delta-rs's name.

        Examples
        --------
        >>> from delta_ds import DeltaLog
        >>> DeltaLog("/data/orders").update({"amount": "0"}, predicate="id = 1").num_updated_rows
        1
        """
        return self.rows
