"""Where rows are after their files were rewritten as they were: found by their row ids.

Source: PROTOCOL.md, "Row Tracking".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from delta_ds.kernel.data.read.plan import ReadPlan
from delta_ds.kernel.data.read.reader import read_slices
from delta_ds.kernel.schema.types import StructType

if TYPE_CHECKING:
    from delta_ds.kernel.data.read.plan import FileSlice
    from delta_ds.kernel.data.values.deletion_vector import Positions
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.table_state import TableState


def find_moved(
    storage: Storage, state: TableState, rows: Iterable[FileSlice], targets: Iterable[FileSlice]
) -> Mapping[str, Positions] | None:
    """The places of some rows in other files.

    Parameters
    ----------
    storage, state
        The table, and how its files are read.
    rows
        Files with the rows selected.
    targets
        The files to look into.

    Returns
    -------
    dict or None
        By path of the target, uint64 positions, ascending; None where not each row is there exactly once.
    """
    plan = ReadPlan.of(state, schema=StructType(), metadata_columns=("row_id", "row_index"))
    wanted = [ids for piece in rows for ids, _ in _ids(storage, plan, piece)]
    ids = np.sort(np.concatenate([np.empty(0, np.int64), *wanted]))
    found: dict[str, Positions] = {}
    missing = len(ids)
    for piece in targets:
        places = [places[np.isin(row_ids, ids)] for row_ids, places in _ids(storage, plan, piece)]
        positions = np.concatenate([np.empty(0, np.int64), *places])
        if len(positions):
            found[piece.path] = positions.astype(np.uint64)
            missing -= len(positions)
    return found if missing == 0 and len(np.unique(ids)) == len(ids) and _all_known(ids) else None


def _all_known(ids: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bool:
    return not len(ids) or int(ids[0]) >= 0


def _ids(
    storage: Storage, plan: ReadPlan, piece: FileSlice
) -> Iterable[tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]]:
    """Row ids and positions of the rows of a slice, batch by batch; a row without an id has -1."""
    for batch in read_slices(storage, plan, [piece]):
        row_ids, places = batch.column(0).flatten()
        yield np.asarray(row_ids.fill_null(-1)), np.asarray(places)
