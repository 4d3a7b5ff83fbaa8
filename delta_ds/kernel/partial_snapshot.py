"""`PartialSnapshot`: a version of which only some live files are known, those that may hold matching rows."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_ds.kernel.log.live_files import LiveFiles
from delta_ds.kernel.snapshot import OpenedVersion, Snapshot
from delta_ds.records import replace

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.log.replay import State


class PartialSnapshot(Snapshot):
    """A version with some of its live files, for what reads or changes no others.

    What it says of all files (`num_rows`, sums, whether some file has a deletion vector) holds for those alone.

    Parameters
    ----------
    whole
        The version.
    state
        Its state but for the files.
    files
        In the order of the version's live files: tables with the columns of `LiveFiles.table`, and `stats`.

    Attributes
    ----------
    identity
        Of no other one: row numbers into its files mean nothing elsewhere.

    Raises
    ------
    LogError
        A checksum file contradicts the log.
    """

    def __init__(self, whole: Snapshot, state: State, files: Sequence[pa.Table]) -> None:
        import pyarrow as pa

        self.identity = uuid.uuid4().hex
        super().__init__(whole.storage, whole.segment, OpenedVersion(whole.table_state))
        self._check_description(state.table)
        table = pa.concat_tables(files)
        none = pa.chunked_array([pa.nulls(table.num_rows, pa.int64())])
        found = LiveFiles(whole.storage, table.drop_columns(["stats"]), table["stats"], none, None)
        self._partial = replace(state, files=found)

    @property
    def state(self) -> State:
        """The state of the version, with the files that are known."""
        return self._partial

    @property
    def _state_at_hand(self) -> bool:
        return True
