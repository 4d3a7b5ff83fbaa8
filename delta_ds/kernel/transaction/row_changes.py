"""`RowChanges`: what a command has done, row by row, and which rows of others would have changed that.

Source: conflict-matrix section 11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_ds.kernel.features import DELETION_VECTORS, ROW_TRACKING
from delta_ds.kernel.transaction.reads import ReadPredicate
from delta_ds.records import dataclass, field

if TYPE_CHECKING:
    from delta_ds.kernel.data.values.deletion_vector import Positions
    from delta_ds.kernel.storage.staging import StagedFiles
    from delta_ds.kernel.table_state import TableState


def tracks_rows(state: TableState) -> bool:
    """Whether rows of a table can be told apart in a commit: by deletion vectors, and by ids where they are moved."""
    return state.enabled(DELETION_VECTORS) and state.enabled(ROW_TRACKING)


@dataclass(slots=True)
class RowChanges:
    """The rows that a command has deleted or replaced, and those that it looked for.

    Attributes
    ----------
    deleted
        By `path` as the log spells it, the uint64 positions of rows that no longer count because of this command.
        Follows the rows where other commits have moved them to.
    wanted
        What every row meets that the outcome depends on: the condition of a DELETE or UPDATE, what the condition of
        a MERGE demands of the table.
    misses_count
        Whether it matters too that a row is not there: a MERGE inserts what it found no match for.
    staged
        The owner of new deletion vectors.
    superseded
        Files of deletion vectors that others have taken the place of, for the owner to delete once the commit is there.
    """

    deleted: Mapping[str, Positions]
    wanted: ReadPredicate
    misses_count: bool
    staged: StagedFiles
    superseded: set[str] = field(default_factory=set)
