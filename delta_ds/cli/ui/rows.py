"""The first rows of a version, or of those that match a predicate, for its page: as texts, and not for long."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

from delta_ds.cli.json_values import shown
from delta_ds.kernel.files.scan.scan import Scan

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.cli.ui.view import TableView

_MOST_COLUMNS = 100
_MOST_TEXT = 500
# A predicate that matches nothing would read the whole table.
_SECONDS = 10.0


def first_rows(view: TableView, version: int, where: str, limit: int) -> dict[str, Any]:
    """Rows in the order of the log.

    Returns
    -------
    dict
        `columns`; `rows`, each a list of texts, null for null; `more`: whether there are others; `stopped`: whether
        they were looked for too long.

    Raises
    ------
    DeltaError
        As `Scan.to_batches`.
    """
    snapshot = view.snapshot(version)
    names = snapshot.schema.names[:_MOST_COLUMNS]
    scan = Scan(snapshot, where.strip() or None, names, timezone=view.zone)
    until = time.monotonic() + _SECONDS
    rows: list[list[str | None]] = []
    stopped = False
    with closing(_batches(scan)) as batches:
        for batch in batches:
            if batch is not None:
                rows += [
                    [_cell(value) for value in row.values()]
                    for row in batch.slice(0, limit + 1 - len(rows)).to_pylist()
                ]
            if len(rows) > limit:
                break
            if time.monotonic() > until:
                stopped = True
                break
    return {
        "columns": [{"name": field.name, "type": str(field.type)} for field in scan.schema],
        "numColumns": len(snapshot.schema),
        "rows": rows[:limit],
        "more": len(rows) > limit,
        "stopped": stopped,
    }


def _batches(scan: Scan) -> Generator[pa.RecordBatch | None, None, None]:
    """The rows file by file, and nothing after each file: `Scan.to_batches` would go on until it finds some."""
    from delta_ds.kernel.files.read.file_columns import Layouts
    from delta_ds.kernel.files.read.matching import Matching
    from delta_ds.kernel.files.read.reader import read_slice

    storage = scan.snapshot.storage
    if scan.predicate is None:
        read: Any = partial(read_slice, storage, Layouts(scan.plan), batch_rows=None)
    else:
        read = partial(Matching(scan.plan, scan.snapshot.schema).read, storage)
    for piece in scan.slices():
        with closing(read(piece=piece, use_threads=True)) as batches:
            yield from batches
        yield None


def _cell(value: Any) -> str | None:
    if value is None:
        return None
    text = shown(value)
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "..."
