"""How a table does: how much of what makes it slow or large there is, and the commands that are due."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import UnsupportedFeatureError, UnsupportedOperationError
from delta_ds.kernel.base.arrow_buffers import texts
from delta_ds.kernel.base.card import Card, Shown, table_of
from delta_ds.kernel.commands.optimize.planning import OptimizePlan, plan_for
from delta_ds.kernel.commands.optimize.request import OptimizeRequest
from delta_ds.kernel.commands.vacuum.command import removed_files
from delta_ds.kernel.files.scan.skipping import row_numbers
from delta_ds.kernel.format.operations import OPTIMIZE, REORG
from delta_ds.kernel.format.properties import CHECKPOINT_INTERVAL
from delta_ds.kernel.format.values.statistics import load_statistics
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from delta_ds.kernel.transaction.table_log import TableLog

# What has no name in the history, or two.
STATISTICS, VACUUM, CHECKPOINT, FSCK = "statistics", "VACUUM", "checkpoint", "fsck"

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
        `OPTIMIZE`, `REORG`, `statistics`, `VACUUM`, `checkpoint` or `fsck`.
    reason
        Why, with numbers.

    Examples
    --------
    >>> Due("OPTIMIZE", "joins 40 files into 1").command
    'OPTIMIZE'
    """

    command: str
    reason: str


@dataclass(frozen=True, slots=True)
class Health(Shown):
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
        The commands that are due, in the order in which `maintain` runs them; `fsck` before them, where files are
        missing.
    missing_files
        Live files and deletion vectors that are missing or of another size; None where nobody looked for them.

    Examples
    --------
    >>> from delta_ds import DeltaLog
    >>> found = health(DeltaLog("/data/orders"))
    >>> found.num_files, found.num_rows, found.due
    (4, 4, ())
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
    missing_files: int | None = None

    def _card(self) -> Card:
        from dataclasses import fields

        names = [each.name for each in fields(self) if each.name not in ("table", "version", "due")]
        facts = [(n.replace("_", " "), "not known" if (v := getattr(self, n)) is None else v) for n in names]
        due = table_of(("due", "why"), self.due, lambda each: (each.command, each.reason))
        title = f"Health of {self.table}, version {self.version}"
        return Card(title, facts, (due,) if self.due else (), "" if self.due else self.nothing_due)

    @property
    def nothing_due(self) -> str:
        """What to say where no command is due: whether the files were looked at, too."""
        return "by the log alone, nothing is due" if self.missing_files is None else "nothing is due"

    def __str__(self) -> str:
        from dataclasses import fields

        names = [each.name for each in fields(self) if each.name not in ("table", "version", "due")]
        lines = [f"{self.table} version {self.version}"]
        lines += [
            f"  {name.replace('_', ' ')}: {'not known' if (value := getattr(self, name)) is None else value}"
            for name in names
        ]
        lines += [f"  due: {each.command}: {each.reason}" for each in self.due] or [f"  {self.nothing_due}"]
        return "\n".join(lines)


def health(log: TableLog, request: OptimizeRequest | None = None, *, files: bool = False) -> Health:
    """Look at the newest version of a table by its log alone; nothing is changed.

    Parameters
    ----------
    log
        The table.
    request
        What OPTIMIZE would be asked for; by default small files are joined, and clustered tables clustered.
    files
        Whether the table's folder is listed as well, to find files that are missing.

    Raises
    ------
    DeltaError
        The table cannot be read.
    """
    snapshot = log.open_snapshot()
    found = health_of(snapshot, request or OptimizeRequest())
    if not files:
        return found
    from delta_ds.kernel.commands.fsck import incomplete_files

    missing = len(incomplete_files(snapshot))
    reason = f"{missing} files that the log names are missing or of another size"
    return replace(found, missing_files=missing, due=(*([Due(FSCK, reason)] if missing else []), *found.due))


def health_of(snapshot: Snapshot, request: OptimizeRequest) -> Health:
    """As `health`, of a version that is loaded already."""
    files = snapshot.live_files()
    counts = load_statistics(files, row_numbers(files.num_rows), []).num_records
    vectors = files.table["deletionVector"].combine_chunks()
    cardinality = pc.struct_field(vectors, "cardinality")
    plan = _plan(snapshot, request)
    unneeded = _unneeded(snapshot)
    unknown = counts.null_count
    found = Health(
        table=snapshot.storage.url,
        version=snapshot.version,
        num_files=files.num_rows,
        size_in_bytes=_sum(files.table["size"]),
        num_rows=None if unknown else _sum(counts) - _sum(cardinality),
        files_to_join=sum(len(one.slices) for one in plan.bins) if plan else 0,
        files_after=sum(one.outputs or 1 for one in plan.bins) if plan else 0,
        files_with_vectors=files.num_rows - vectors.null_count,
        deleted_rows=_sum(cardinality),
        files_without_statistics=unknown,
        commits_since_checkpoint=len(snapshot.segment.commits),
        unneeded_files=None if unneeded is None else unneeded[0],
        unneeded_bytes=None if unneeded is None else unneeded[1],
        due=(),
    )
    joins = found.files_to_join - found.files_after >= _JOINED_FILES
    joined = [piece.path for piece in plan.slices] if joins and plan else []
    left = pc.invert(pc.is_in(files.table["path"].combine_chunks(), value_set=texts(joined)))
    due = [
        *(
            [Due(OPTIMIZE.name, f"joins {found.files_to_join} files into {found.files_after}")]
            if joins
            else []
        ),
        *_due_of_rest(counts.filter(left), cardinality.filter(left)),
        *_due_of_log(found, CHECKPOINT_INTERVAL.of(snapshot.metadata.configuration)),
    ]
    return replace(found, due=tuple(due))


def _sum(values: pa.ChunkedArray | pa.Array) -> int:
    return int(pc.sum(values).as_py() or 0)


def _plan(snapshot: Snapshot, request: OptimizeRequest) -> OptimizePlan | None:
    """What OPTIMIZE would do; None for a table that it cannot rewrite here."""
    try:
        return plan_for(snapshot, request)
    except (UnsupportedFeatureError, UnsupportedOperationError):
        return None


def _unneeded(snapshot: Snapshot) -> tuple[int, int] | None:
    """How many files, of how many bytes, VACUUM would delete by the log; None where that does not reach back."""
    try:
        found = removed_files(snapshot)
    except (UnsupportedFeatureError, UnsupportedOperationError):
        return None
    return found.num_rows, _sum(found["size"])


def _due_of_rest(counts: pa.Array, deleted: pa.Array) -> Iterator[Due]:
    """What is due for the files that OPTIMIZE leaves: of each its rows by the log, and how many are deleted."""
    stored, gone = _sum(counts), _sum(deleted)
    if stored and gone / stored > _DELETED_SHARE:
        files = len(deleted) - deleted.null_count
        yield Due(REORG.name, f"{gone / stored:.0%} of the stored rows are deleted, in {files} files")
    if counts.null_count:
        yield Due(STATISTICS, f"{counts.null_count} files are read whatever the filter")


def _due_of_log(found: Health, interval: int) -> Iterator[Due]:
    if found.unneeded_files:
        yield Due(
            VACUUM,
            f"deletes {found.unneeded_files} files of {found.unneeded_bytes} bytes that no version needs",
        )
    if found.commits_since_checkpoint >= _INTERVALS_LATE * interval:
        yield Due(CHECKPOINT, f"{found.commits_since_checkpoint} commits since the last one")
