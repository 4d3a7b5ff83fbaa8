"""The live files of a checkpoint, part by part: all, or those that a filter keeps, without holding the others.

A filter is asked about each part, and what it keeps is compared with what newer commits name. A part can be looked at
anywhere: in turn, in threads, or in the tasks of a Spark job.

Source: PROTOCOL.md, "Action Reconciliation"; protocol-checklist REC-*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from delta_ds.kernel.base.arrow_buffers import numbers
from delta_ds.kernel.log.checkpoint_adds import CheckpointPart, KeptColumns
from delta_ds.kernel.log.checkpoint_files import CheckpointFiles
from delta_ds.kernel.log.file_actions import working_schema
from delta_ds.kernel.log.live_files import FileFilter
from delta_ds.kernel.log.parts import Map, Part, pieces
from delta_ds.kernel.log.reconcile import untouched
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class OlderFiles:
    """The files that a checkpoint adds, but those that commits after it name. Can be pickled.

    Attributes
    ----------
    checkpoint
        Its files.
    touched
        The keys of the files that the commits add or remove.
    partition_columns
        See `State.partition_columns`.
    """

    storage: Storage
    checkpoint: CheckpointFiles
    touched: pa.StringArray
    partition_columns: tuple[str, ...]


def select(
    older: OlderFiles,
    parts: Sequence[Part],
    keep: FileFilter | None,
    map: Map,
    kept_columns: KeptColumns | None = None,
    *,
    statistics: bool = False,
) -> Iterable[pa.Table]:
    """The live files in some parts of a checkpoint that a filter keeps.

    Parameters
    ----------
    keep
        Tells of some files the ascending numbers of those to keep; None: all. It can be pickled if `map` needs that.
    map
        Looks at the parts.
    kept_columns
        What filters found out about the parts before.
    statistics
        Whether the files come with their statistics, for who will not read the checkpoint for them: `stats`, and as
        last column `stats_parsed` where the text is not all.

    Returns
    -------
    iterable of pyarrow.Table
        One a part, in order, of `working_schema`.

    Raises
    ------
    UnreadableCheckpointError
        A file of the checkpoint cannot be read.
    """
    return map(_Selection(older, keep, kept_columns, statistics), parts)


@dataclass(frozen=True, slots=True)
class _Selection:
    older: OlderFiles
    keep: FileFilter | None
    kept_columns: KeptColumns | None
    statistics: bool

    def __call__(self, part: Part) -> pa.Table:
        import pyarrow as pa

        none = pa.Table.from_batches([], working_schema(self.older.partition_columns))
        files = [self._files(piece) for piece in pieces(self.older.storage, part) if "add" in piece.actions]
        return pa.concat_tables(files, promote_options="default") if files else none

    def _files(self, part: Part) -> pa.Table:
        import pyarrow as pa

        storage, columns = self.older.storage, self.older.partition_columns
        with CheckpointPart(storage, part, columns, self.kept_columns) as opened:
            found = opened.live_files(None if self.keep is None else self.keep(opened))
            files = untouched(found, self.older.touched, storage)
            if self.statistics:
                told = opened.statistics(numbers(files["row"]) - part.first_row)
            else:
                told = {"stats": pa.chunked_array([pa.nulls(files.num_rows, pa.string())])}
        for name, column in told.items():
            files = files.append_column(name, column)
        return files.select([*working_schema(columns).names, *list(told)[1:]])
