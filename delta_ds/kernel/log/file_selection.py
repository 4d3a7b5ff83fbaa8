"""The live files that a filter keeps, from a checkpoint and the commits after it, without holding the others.

A filter is asked about each part of the checkpoint, and what it keeps is compared with what the commits name. So
memory is bounded by a part for each core, what is kept, and the commits.

Source: PROTOCOL.md, "Action Reconciliation"; protocol-checklist REC-*.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING

from delta_ds.kernel.log.checkpoint_adds import CheckpointPart, RowGroups, parts_of
from delta_ds.kernel.log.file_actions import working_schema
from delta_ds.kernel.log.kept_columns import KeptColumns
from delta_ds.kernel.log.live_files import FileFilter, LiveFiles
from delta_ds.kernel.log.reconcile import files_of_tables, untouched
from delta_ds.kernel.log.replay import FoundActions, files_again, load_head
from delta_ds.kernel.log.segment import LogSegment
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.table_state import TableState
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.log.checkpoint_files import CheckpointFiles


@dataclass(frozen=True, slots=True)
class SelectedFiles:
    """Files that a filter keeps, and the table's description as the same files of the log give it."""

    files: LiveFiles
    table: TableState


def select_files(
    storage: Storage, segment: LogSegment, found: FoundActions, keep: FileFilter, kept_columns: KeptColumns
) -> SelectedFiles | None:
    """The live files of a segment that a filter keeps, in log order.

    Parameters
    ----------
    found
        What `load_table_state` found in the same files.
    keep
        Tells of some files the ascending numbers of those to keep.
    kept_columns
        What filters found out about the parts of this checkpoint before.

    Returns
    -------
    SelectedFiles or None
        None where there is no checkpoint in Parquet to go through: then a replay is the way.

    Raises
    ------
    UnreadableCheckpointError
        A file of the checkpoint cannot be read.
    LogError
        As `replay.load_state`.
    """
    if segment.checkpoint is None:
        return None
    head = load_head(storage, segment, found)
    if head.checkpoint is None:
        return None
    columns = head.state.partition_columns
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        kept = select_in_checkpoint(
            storage, head.checkpoint, head.touched, columns, keep, workers, kept_columns
        )
    recent = head.state.files
    if recent.num_rows:
        kept.append(recent.take(keep(recent)).working_table())
    files = files_of_tables(storage, kept, head.checkpoint, working_schema(columns))
    files.again = functools.partial(files_again, storage, segment.version)
    return SelectedFiles(files, head.state.table)


def select_in_checkpoint(
    storage: Storage,
    checkpoint: CheckpointFiles,
    touched: pa.StringArray,
    columns: Sequence[str],
    keep: FileFilter,
    workers: Executor,
    kept_columns: KeptColumns | None = None,
) -> list[pa.Table]:
    """The live files in a checkpoint, or in some row groups of it, that a filter keeps.

    Parameters
    ----------
    touched, columns
        See `ReplayHead.touched`, and `State.partition_columns`.
    keep, kept_columns
        See `select_files`; None: nothing is kept for other filters.
    workers
        Each looks at some row groups at a time.

    Returns
    -------
    list of pyarrow.Table
        In order, of `working_schema`.

    Raises
    ------
    UnreadableCheckpointError
        A file of the checkpoint cannot be read.
    """
    schema = working_schema(columns)

    def survivors(groups: RowGroups) -> pa.Table:
        import pyarrow as pa

        with CheckpointPart(storage, groups, columns, kept_columns) as part:
            (files,) = untouched([part.live_files(keep(part))], touched, storage)
        return files.append_column("stats", pa.nulls(files.num_rows, pa.string())).select(schema.names)

    return list(workers.map(survivors, parts_of(storage, checkpoint, workers)))
