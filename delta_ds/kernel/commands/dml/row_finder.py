"""Find the rows of files for which a predicate is true, by Arrow, where the files are rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from delta_ds.kernel.base.arrow_buffers import numbers
from delta_ds.kernel.commands.dml.changed_rows import ChangedRows
from delta_ds.kernel.commands.dml.file_rewrite import FileRewrite, rewrite_found_files
from delta_ds.kernel.commands.dml.new_values import NewValues
from delta_ds.kernel.commands.dml.rewritten import Rewritten
from delta_ds.kernel.files.read.matching import Matching
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage


@dataclass(frozen=True, slots=True)
class RowFinder:
    """Which rows of files change, and to what. Can be pickled.

    Attributes
    ----------
    reading
        How files are read: no column, the positions of rows, and the predicate.
    table
        All columns of the table.
    values
        The new values; None: the rows are deleted.
    """

    reading: ReadPlan
    table: StructType
    values: NewValues | None = None

    @classmethod
    def of(
        cls, snapshot: Snapshot, predicate: Expression | None, timezone: str, values: NewValues | None = None
    ) -> RowFinder:
        """Find rows of a version.

        Parameters
        ----------
        predicate
            Bound; None: all rows.
        """
        reading = ReadPlan.of(
            snapshot.table_state,
            schema=StructType(),
            timezone=timezone,
            metadata_columns=("row_index",),
            predicate=predicate,
        )
        return cls(reading, snapshot.schema, values)

    def changed(
        self, storage: Storage, files: Iterable[tuple[int, FileSlice]]
    ) -> Iterator[tuple[int, ChangedRows]]:
        """The rows of files that change, file by file.

        Only the columns of the predicate are read, of row groups that may match; what is held are positions.

        Raises
        ------
        PredicateError
            The predicate cannot be evaluated on a value.
        DataFileError
            A file is missing or damaged.
        """
        matching = None if self.reading.predicate is None else Matching(self.reading, self.table)
        for number, piece in files:
            batches: Iterable[pa.RecordBatch]
            if matching is None:
                batches = read_slices(storage, self.reading, [piece])
            else:
                batches = matching.read(storage, piece)
            found = [numbers(batch.column(0).field("row_index")) for batch in batches]
            places = np.concatenate([np.empty(0, np.int64), *found])
            yield number, ChangedRows.of_one_clause(places, self.values)

    def rewrite(self, plan: FileRewrite, files: Iterable[int], task: int = 0) -> Rewritten:
        """Rewrite those of some files in which rows match, or mark the rows.

        Parameters
        ----------
        plan
            The files, and what happens to rows: by its only clause.
        files
            The numbers of files; may be shared with other tasks, each of which takes the next.
        task
            The number of the task, different for all tasks of a change.

        Raises
        ------
        DeltaError
            As `changed` and `rewrite_changed_files`; the files of this task are deleted.
        """
        pieces = ((number, plan.files[number]) for number in files)
        return rewrite_found_files(plan, self.changed(plan.change.write.storage, pieces), task)
