"""Whether files hold rows that a command looks for: by partition values and statistics, then by the rows themselves."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.base.arrow_buffers import integers
from delta_ds.kernel.files.read.matching import Matching
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.format.expressions.tree import columns, conjunction
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.transaction.append_conflicts import is_widened

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.table_state import TableState
    from delta_ds.kernel.format.values.deletion_vector import Positions
    from delta_ds.kernel.log.live_files import LiveFiles
    from delta_ds.kernel.transaction.pending import Pending
    from delta_ds.kernel.transaction.reads import ReadPredicate

# To read more than that for one commit that came first costs more than to run the command again.
MOST_BYTES = 256 << 20


class WantedRows:
    """The rows that meet a predicate, in files that the transaction has not read.

    Parameters
    ----------
    pending
        The transaction; its state says how files are read.
    wanted
        The predicate. What of it cannot be evaluated again counts as true.
    """

    def __init__(self, pending: Pending, sought: ReadPredicate) -> None:
        self._storage = pending.storage
        self._state: TableState = pending.state
        self._timezone = sought.timezone
        self.predicate: Expression | None = conjunction(
            [p for p in sought.parts if not is_widened(p) and self._compares_by_bytes(p)]
        )

    def _compares_by_bytes(self, part: Expression) -> bool:
        """Whether the kernel compares its columns as Spark does: not those padded or with a collation."""
        for column in columns(part):
            level: object = self._state.schema
            for name in column.path:
                field = level.find(name) if isinstance(level, StructType) else None
                if field is None:
                    break
                if not compares_by_bytes(field):
                    return False
                level = field.type
        return True

    def candidates(self, files: LiveFiles) -> pa.Int64Array:
        """The row numbers of the files that partition values and statistics do not rule out."""
        from delta_ds.kernel.files.scan.skipping import prune

        return prune(
            files,
            self.predicate,
            schema=self._state.schema,
            partition_columns=self._state.partition_columns,
            mapping_mode=self._state.mapping_mode,
            timezone=self._timezone,
        ).rows

    def first(self, pieces: Iterable[FileSlice]) -> tuple[str, int] | None:
        """The path of the first file with wanted rows, and how many it has; None if no file has any.

        A count of -1: they were not counted, as the predicate cannot be evaluated, or too much would have to be read.
        """
        left = MOST_BYTES
        for piece in pieces:
            left -= piece.size
            count = -1 if left < 0 else self.count(piece)
            if count:
                return piece.path, count
        return None

    def count(self, piece: FileSlice) -> int:
        """How many rows of a slice are wanted; -1: it cannot be told."""
        if self.predicate is None:
            return -1
        try:
            return sum(batch.num_rows for batch in self._matching.read(self._storage, piece))
        except PredicateError:
            # A value on which it fails, as a cast under ANSI rules: then the command would fail on that row, too.
            return -1

    @cached_property
    def _matching(self) -> Matching:
        plan = ReadPlan.of(
            self._state,
            schema=StructType(),
            timezone=self._timezone,
            metadata_columns=("row_index",),
            predicate=self.predicate,
        )
        return Matching(plan, self._state.schema)


def selected(piece: FileSlice, positions: Positions) -> FileSlice:
    """Some rows of a file, whether they are deleted or not."""
    from delta_ds.records import replace

    return replace(piece, deletion_vector=None, selection=np.sort(positions))


def pieces_of(
    files: LiveFiles, rows: Iterable[int], physical_partition_columns: tuple[str, ...]
) -> list[FileSlice]:
    """The slices of some files, by their row numbers."""
    from delta_ds.kernel.files.scan.scan import file_slices

    return file_slices(files.table.take(integers(list(rows))), physical_partition_columns)
