"""The `add` actions of live files as they were committed, with statistics, tags and row ids.

`Snapshot.live_files` leaves out what a scan never asks for; commands that commit files once more need it.

Source: PROTOCOL.md, "Add File and Remove File"; protocol-checklist REC-*, DV-R-04.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from delta_ds.kernel.format.actions import AddFile

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.log.snapshot import Snapshot

_FIELDS = (
    "path", "partitionValues", "size", "modificationTime", "stats", "tags", "deletionVector", "baseRowId",
    "defaultRowCommitVersion", "clusteringProvider",
)  # fmt: skip
_MAPS = frozenset(["partitionValues", "tags"])
_ROWS_AT_ONCE = 10_000


def live_adds(snapshot: Snapshot, paths: pa.Array | None = None) -> Iterator[pa.Table]:
    """The live files of a version, in pieces.

    Parameters
    ----------
    paths
        Only the files with these paths; None: all.

    Returns
    -------
    iterator of pyarrow.Table
        The fields of an `add` but `dataChange`: maps as Arrow maps, `stats` as JSON text also where a
        checkpoint has them as columns only.

    Raises
    ------
    LogError
        A file of the log is damaged, or gone, and no others serve.
    DataFileError
        A file without a size in the log is not there either.
    """
    import pyarrow.compute as pc

    from delta_ds.kernel.log.checkpoint_write.state import CheckpointState

    state = CheckpointState.of_version(snapshot.storage, snapshot.segment, time.time_ns() // 1_000_000)
    for rows in state.file_actions(parsed_statistics=False):
        if rows.kind == "add" and rows.table.num_rows:
            table = rows.table
            if paths is not None:
                table = table.filter(pc.is_in(table["path"], value_set=paths))
            table = with_statistics_text(table)
            yield table.select([name for name in _FIELDS if name in table.column_names])


def with_statistics_text(table: pa.Table) -> pa.Table:
    """Files with all statistics as text: those of a column `stats_parsed`, too, whatever columns these are of."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if "stats_parsed" not in table.column_names:
        return table
    stored, parsed = table["stats"], table["stats_parsed"].combine_chunks()
    table = table.drop_columns(["stats_parsed"])
    if not stored.null_count:
        return table
    from delta_ds.kernel.files.write.checkpoint_columns import statistics_text

    text = pc.coalesce(stored, pa.chunked_array([statistics_text(parsed).cast(stored.type)]))
    return table.set_column(table.column_names.index("stats"), "stats", text)


def add_bodies(table: pa.Table, *, data_change: bool = True) -> Iterator[AddFile]:
    """The bodies of `add` actions, fields without a value left out."""
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        for row in batch.to_pylist():
            yield _body(row, data_change)


def _body(row: Mapping[str, Any], data_change: bool) -> AddFile:
    body: dict[str, Any] = {}
    for name, value in row.items():
        if value is None:
            continue
        if name in _MAPS:
            value = dict(value)
        elif name == "deletionVector":
            value = {key: part for key, part in value.items() if part is not None}
        body[name] = value
    body.setdefault("partitionValues", {})
    body["dataChange"] = data_change
    return cast("AddFile", body)
