"""Find the rows of files for which a predicate is true, by Arrow, where the files are rewritten."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.base.arrow_buffers import flags, numbers
from delta_ds.kernel.commands.dml.candidates import Rewritten
from delta_ds.kernel.commands.dml.changed_rows import ChangedRows
from delta_ds.kernel.commands.dml.file_rewrite import rewrite_found_files
from delta_ds.kernel.commands.dml.new_values import NewValues
from delta_ds.kernel.commands.dml.plan import FileRewrite
from delta_ds.kernel.files.read.file_columns import METADATA_COLUMN
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.files.read.reader import Matching, read_slices
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt
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
        PredicateError
            The predicate cannot be evaluated on a value.
        DeltaError
            As `rewrite_changed_files`; the files of this task are deleted.
        """
        return rewrite_found_files(plan, _Search(self, plan.change.write.storage), files, task)


class _Search:
    """The search of one task."""

    def __init__(self, finder: RowFinder, storage: Storage) -> None:
        self._finder, self._storage = finder, storage
        reading = finder.reading
        self._matching = None if reading.predicate is None else Matching(reading, finder.table)

    def in_file(self, piece: FileSlice) -> ChangedRows:
        """Only the columns of the predicate are read, of row groups that may match; what is held are positions."""
        batches: Iterable[pa.RecordBatch]
        if self._matching is None:
            batches = read_slices(self._storage, self._finder.reading, [piece])
        else:
            batches = self._matching.read(self._storage, piece)
        found = [numbers(batch.column(METADATA_COLUMN).field("row_index")) for batch in batches]
        return self.change(np.concatenate([np.empty(0, np.int64), *found]))

    def among(self, rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        return (
            np.ones(rows.num_rows, np.bool_) if self._matching is None else flags(self._matching.holds(rows))
        )

    def change(self, places: npt.NDArray[np.int64]) -> ChangedRows:
        return ChangedRows.of_one_clause(places, self._finder.values)


def bound_condition(
    tree: Expression, schema: StructType, timezone: str, *, operation: str, table: str, undone: str
) -> Expression:
    """A condition on rows, bound.

    Parameters
    ----------
    operation, table, undone
        For messages; the last says what was not done.

    Raises
    ------
    PredicateError
        It does not fit the columns, or uses what only Spark can evaluate, which is named.
    """
    from delta_ds.kernel.format.expressions.bind import bind
    from delta_ds.kernel.format.expressions.evaluate import unevaluable

    bound = bind(tree, schema, timezone)
    unknown = unevaluable(bound)
    if unknown is not None:
        raise PredicateError(f"{unknown} in {operation} {table} cannot be evaluated without Spark. {undone}")
    return bound
