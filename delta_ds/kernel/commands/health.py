"""How a table does: how much of what makes it slow or large there is, and the commands that are due."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from delta_ds.exceptions import UnsupportedFeatureError, UnsupportedOperationError
from delta_ds.kernel.commands.optimize.planning import OptimizePlan, plan_for
from delta_ds.kernel.commands.optimize.request import OptimizeRequest
from delta_ds.kernel.commands.vacuum import vacuum
from delta_ds.kernel.data.values.statistics import load_statistics
from delta_ds.kernel.operations import OPTIMIZE
from delta_ds.kernel.properties import CHECKPOINT_INTERVAL
from delta_ds.kernel.scan.skipping import row_numbers
from delta_ds.kernel.snapshot import Snapshot
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from delta_ds.kernel.delta_log import DeltaLog

# Below these a command costs more than it brings.
_JOINED_FILES = 16
_DELETED_SHARE = 0.05
_INTERVALS_LATE = 2


@dataclass(frozen=True, slots=True)
class Due:
    """A command that is due.

    Attributes
    ----------
    command
        `OPTIMIZE`, `VACUUM` or `checkpoint`.
    reason
        Why, with numbers.
    """

    command: str
    reason: str


@dataclass(frozen=True, slots=True)
class Health:
    """How a version of a table does.

    Attributes
    ----------
    table, version
        What was looked at.
    num_files, size_in_bytes
        Of the live files.
    num_rows
        As the log counts them, without deleted ones; None where it does not count all.
    files_to_join, files_after
        What OPTIMIZE would join, and into how many.
    files_with_vectors, deleted_rows
        Files with deletion vectors, and the rows that these delete.
    files_without_statistics
        Files whose rows the log does not count; no filter skips them but by their partition.
    commits_since_checkpoint
        What every new reader has to read.
    unneeded_files, unneeded_bytes
        What VACUUM would delete of the files that commits removed; None where the log does not tell.
    due
        The commands that are due.
    """

    table: str
    version: int
    num_files: int
    size_in_bytes: int
    num_rows: int | None
    files_to_join: int
    files_after: int
    files_with_vectors: int
    deleted_rows: int
    files_without_statistics: int
    commits_since_checkpoint: int
    unneeded_files: int | None
    unneeded_bytes: int | None
    due: tuple[Due, ...]

    def __str__(self) -> str:
        from dataclasses import fields

        names = [each.name for each in fields(self) if each.name not in ("table", "version", "due")]
        lines = [f"{self.table} version {self.version}"]
        lines += [
            f"  {name.replace('_', ' ')}: {'not known' if (value := getattr(self, name)) is None else value}"
            for name in names
        ]
        lines += [f"  due: {each.command}: {each.reason}" for each in self.due] or ["  nothing is due"]
        return "\n".join(lines)


def health(log: DeltaLog) -> Health:
    """Look at the newest version of a table by its log alone; nothing is changed.

    Raises
    ------
    DeltaError
        The table cannot be read.
    """
    snapshot = log.snapshot()
    files = snapshot.live_files()
    statistics = load_statistics(files, row_numbers(files.num_rows), [])
    vectors = files.table["deletionVector"].combine_chunks()
    deleted = int(pc.sum(pc.struct_field(vectors, "cardinality")).as_py() or 0)
    unknown = statistics.num_records.null_count
    stored = int(pc.sum(statistics.num_records).as_py() or 0)
    plan = _plan(snapshot)
    joined = sum(len(one.slices) for one in plan.bins) if plan else 0
    after = sum(one.outputs or 1 for one in plan.bins) if plan else 0
    commits = len(snapshot.segment.commits)
    unneeded = _unneeded(log)
    found = Health(
        table=snapshot.storage.url,
        version=snapshot.version,
        num_files=files.num_rows,
        size_in_bytes=int(pc.sum(files.table["size"]).as_py() or 0),
        num_rows=None if unknown else stored - deleted,
        files_to_join=joined,
        files_after=after,
        files_with_vectors=files.num_rows - vectors.null_count,
        deleted_rows=deleted,
        files_without_statistics=unknown,
        commits_since_checkpoint=commits,
        unneeded_files=None if unneeded is None else unneeded[0],
        unneeded_bytes=None if unneeded is None else unneeded[1],
        due=(),
    )
    interval = CHECKPOINT_INTERVAL.of(snapshot.metadata.configuration)
    return replace(found, due=tuple(_due(found, stored, interval)))


def _plan(snapshot: Snapshot) -> OptimizePlan | None:
    """What OPTIMIZE would do; None for a table that it cannot rewrite here."""
    try:
        return plan_for(snapshot, OptimizeRequest())
    except (UnsupportedFeatureError, UnsupportedOperationError):
        return None


def _unneeded(log: DeltaLog) -> tuple[int, int] | None:
    """How many files, of how many bytes, VACUUM would delete by the log; None where that does not reach back."""
    try:
        found = vacuum(log, dry_run=True, mode="lite")
    except (UnsupportedFeatureError, UnsupportedOperationError):
        return None
    return found.num_files, found.num_bytes


def _due(found: Health, stored: int, interval: int) -> Iterator[Due]:
    if found.files_to_join - found.files_after >= _JOINED_FILES:
        yield Due(OPTIMIZE.name, f"joins {found.files_to_join} files into {found.files_after}")
    elif stored and found.deleted_rows / stored > _DELETED_SHARE:
        share = f"{found.deleted_rows / stored:.0%}"
        yield Due(
            OPTIMIZE.name, f"{share} of the stored rows are deleted, in {found.files_with_vectors} files"
        )
    if found.unneeded_files:
        yield Due(
            "VACUUM",
            f"deletes {found.unneeded_files} files of {found.unneeded_bytes} bytes that no version needs",
        )
    if found.commits_since_checkpoint >= _INTERVALS_LATE * interval:
        yield Due("checkpoint", f"{found.commits_since_checkpoint} commits since the last one")
