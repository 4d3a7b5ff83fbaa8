"""The removals of an overwrite, inside the transaction that adds the new files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import field_of, integers
from delta_ds.kernel.base.nested_arrays import array_of_values
from delta_ds.kernel.files.read.file_columns import ROW_TRACKING_FIELDS, row_tracking_as_columns
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan, file_slices
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.files.write.writer import FileWriter
from delta_ds.kernel.format.actions import AddCDCFile, AddFile
from delta_ds.kernel.format.expressions.arrays import FALSE
from delta_ds.kernel.format.expressions.evaluate import evaluate
from delta_ds.kernel.format.options.settings import (
    BY_ROWS,
    BY_STATISTICS,
    CONFLICT_DETECTION,
    conflict_detection,
)
from delta_ds.kernel.format.schema.types import LONG, StructField
from delta_ds.kernel.format.values.partition_values import comparable_values, parse
from delta_ds.kernel.format.values.statistics import load_statistics
from delta_ds.kernel.transaction.pending import tracks_rows
from delta_ds.kernel.transaction.write.overwrite_scope import EVERYTHING, MATCHING, PARTITIONS
from delta_ds.kernel.transaction.write.task import ChangeWriter
from delta_ds.records import dataclass, field, replace

if TYPE_CHECKING:
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.staging import StagedFiles
    from delta_ds.kernel.transaction.transaction import Transaction
    from delta_ds.kernel.transaction.write.plan import WritePlan


@dataclass(slots=True)
class RemovedFiles:
    """The files that an overwrite removed, and those rewritten for the rows that stay.

    Attributes
    ----------
    adds, changes
        The bodies of `add` and `cdc` actions.
    files, size
        How many files were removed, and their bytes.
    deleted, copied
        How many rows are gone, and how many were only copied; None where not counted.
    """

    adds: list[AddFile] = field(default_factory=list)
    changes: list[AddCDCFile] = field(default_factory=list)
    files: int = 0
    size: int = 0
    deleted: int | None = None
    copied: int | None = None


def remove_replaced(
    plan: WritePlan,
    transaction: Transaction,
    snapshot: Snapshot,
    adds: Sequence[AddFile],
    staged: StagedFiles,
) -> RemovedFiles:
    """Remove what the write replaces, and record what was read to know it.

    Parameters
    ----------
    plan
        The write.
    transaction, snapshot
        On the version that the write started from.
    adds
        The new files.
    staged
        Becomes the owner of what is written anew.
    """
    scope = plan.overwrite_scope.kind
    if scope == EVERYTHING:
        transaction.recorded_scan(None)
        return _remove(plan, transaction, snapshot, None)
    if scope == PARTITIONS:
        written = _distinct([add["partitionValues"] for add in adds])
        transaction.read_partitions(written)
        return _remove(plan, transaction, snapshot, _rows_in(snapshot, written, plan.rows.timezone))
    if scope == MATCHING:
        return _remove_matching(plan, transaction, snapshot, staged)
    return RemovedFiles()


def _remove(
    plan: WritePlan, transaction: Transaction, snapshot: Snapshot, rows: pa.Array | None
) -> RemovedFiles:
    table = snapshot.live_files().table
    chosen = table if rows is None else table.take(rows)
    transaction.remove_live(rows, data_change=plan.options.data_change)
    return RemovedFiles(files=chosen.num_rows, size=pc.sum(chosen["size"]).as_py() or 0)


def _distinct(partitions: Sequence[Mapping[str, str | None]]) -> list[Mapping[str, str | None]]:
    return list({tuple(sorted(p.items())): p for p in partitions}.values())


def _rows_in(snapshot: Snapshot, partitions: Sequence[Mapping[str, str | None]], timezone: str) -> pa.Array:
    """The row numbers of the live files in some partitions, whatever spelling the log has for the values."""
    table = snapshot.live_files().table
    if not partitions or not table.num_rows:
        return integers([])
    names = snapshot.physical_partition_columns
    written = [array_of_values([values.get(name) for values in partitions], pa.string()) for name in names]
    # By name: after a partition column was renamed, the values come under its older names as well.
    stored = [field_of(table["partitionValues"], name).combine_chunks() for name in names]
    wanted = set(_keys(snapshot, written, timezone))
    return integers([row for row, key in enumerate(_keys(snapshot, stored, timezone)) if key in wanted])


def _keys(snapshot: Snapshot, texts: Sequence[pa.StringArray], timezone: str) -> list[tuple[str, ...]]:
    """The partition values of files, such that equal values of a type have equal keys."""
    columns = []
    for name, values in zip(snapshot.partition_columns, texts, strict=True):
        field = snapshot.schema.find(name)
        assert field is not None  # a snapshot without its partition columns is refused
        parsed = parse(values, field.type, timezone)
        columns.append([repr(value) for value in comparable_values(parsed)])
    return list(zip(*columns, strict=True))


def _remove_matching(
    plan: WritePlan, transaction: Transaction, snapshot: Snapshot, staged: StagedFiles
) -> RemovedFiles:
    """Remove the rows that match a predicate: whole files, or files whose other rows are written anew."""
    # At the time that the write's own rows are held against, not at that of now.
    assert plan.overwrite_scope.condition is not None
    _sharpen_checks(plan, transaction, snapshot)
    predicate = plan.overwrite_scope.condition.clause.tree
    candidates = transaction.recorded_scan(predicate, timezone=plan.rows.timezone).pruning.rows
    if plan.overwrite_scope.by_partition:
        removed = _remove(plan, transaction, snapshot, candidates)
        removed.deleted = _count_rows(snapshot, candidates)
        removed.copied = 0
        return removed
    rewriter = _Rewriter(plan, snapshot)
    try:
        gone = [row for row in candidates.to_pylist() if rewriter.rewrite(row)]
        adds, changes = rewriter.close()
        staged.add(body["path"] for body in (*adds, *changes))
    except BaseException:
        rewriter.abort()
        raise
    removed = _remove(plan, transaction, snapshot, integers(gone))
    removed.adds, removed.changes = adds, changes
    removed.deleted, removed.copied = rewriter.deleted, rewriter.copied
    return removed


def _sharpen_checks(plan: WritePlan, transaction: Transaction, snapshot: Snapshot) -> None:
    """Let statistics, and rows, show that a file which others add is of no interest, as far as the session wants it.

    What a write with `replaceWhere` removes and keeps hangs on the rows that match, and on no others: where none of
    the rows that another commit brought does, the write does the same after that commit.
    """
    by = conflict_detection(plan.options.facts.settings.get(CONFLICT_DETECTION))
    by_rows = by == BY_ROWS and tracks_rows(snapshot.table_state)
    if by == BY_STATISTICS or by_rows:
        transaction.use_statistics = True
    transaction.looks_into_files = by_rows


def _count_rows(snapshot: Snapshot, rows: pa.Array) -> int | None:
    """The live rows of files, by the log; None where it does not say."""
    files = snapshot.live_files()
    physical = load_statistics(files, rows, []).num_records
    if physical.null_count:
        return None
    deleted = pc.struct_field(files.table["deletionVector"].take(rows), "cardinality")
    return int((pc.sum(physical).as_py() or 0) - (pc.sum(deleted).as_py() or 0))


class _Rewriter:
    """Rewrites files without their matching rows; a file without matches is left alone."""

    def __init__(self, plan: WritePlan, snapshot: Snapshot) -> None:
        self._plan = plan
        self._slices: list[FileSlice] = file_slices(
            snapshot.live_files().table, plan.state.physical_partition_columns
        )
        self._tracking = plan.state.row_tracking_columns
        self._reading = ReadPlan.of(
            plan.state,
            timezone=plan.rows.timezone,
            metadata_columns=ROW_TRACKING_FIELDS if self._tracking else (),
        )
        extra = tuple(StructField(name, LONG) for name in self._tracking)
        self._files = FileWriter(plan.storage, replace(plan.files_of_whole_rows, extra_columns=extra))
        feed = plan.overwrite_scope.records_changes
        self._changes = ChangeWriter(plan.storage, plan.files_of_whole_rows) if feed else None
        self._width = len(plan.state.schema.fields)
        self.deleted = self.copied = 0

    def rewrite(self, row: int) -> bool:
        """Copy the rows of a file that stay; False if all of them stay, with their file."""
        batches = list(read_slices(self._plan.storage, self._reading, [self._slices[row]]))
        masks = [self._matches(batch) for batch in batches]
        matching = sum(mask.true_count for mask in masks)
        if not matching:
            return False
        for batch, mask in zip(batches, masks, strict=True):
            kept = batch.filter(pc.invert(mask))
            if kept.num_rows:
                self._files.write(row_tracking_as_columns(kept, self._tracking))
                self.copied += kept.num_rows
            if self._changes is not None and mask.true_count:
                self._changes.write(self._columns(batch.filter(mask)), "delete")
        self.deleted += matching
        return True

    def _matches(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        assert self._plan.overwrite_scope.predicate is not None
        found = evaluate(self._plan.overwrite_scope.predicate, self._columns(batch))
        return pc.fill_null(found, FALSE)

    def _columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.select(list(range(self._width)))

    def close(self) -> tuple[list[AddFile], list[AddCDCFile]]:
        return self._files.close(), self._changes.close() if self._changes else []

    def abort(self) -> None:
        self._files.abort()
        if self._changes:
            self._changes.abort()
