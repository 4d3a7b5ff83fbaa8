"""Rows and files of a version for its page: first rows, partitions, single files, what a predicate reads."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.cli.json_values import shown
from delta_ds.cli.ui.view import totals
from delta_ds.kernel.base.arrow_buffers import numbers
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.log.history import datetime_of

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.cli.ui.view import TableView


# How many marks a drawing of all files has at most.
_MOST_CELLS = 400
# Rules name parts of the predicate; beyond these it is no use to count further.
_MOST_RULES = 50


def partition_page(
    view: TableView, version: int, sort: str, descending: bool, offset: int, limit: int
) -> dict[str, Any]:
    """Partitions with the figures of their files."""
    figures = view.figures(version)
    found = figures.partitions
    if sort == "values" and "values" in found.column_names:
        keys = pa.Table.from_struct_array(found["values"].combine_chunks())
    else:
        keys = found.select(["partition" if sort == "values" else sort])
    page = found.take(_sorted(keys, descending)[offset : offset + limit]).to_pylist()
    return {"total": found.num_rows, "most": pc.max(found["bytes"]).as_py() or 0, "partitions": page}


def file_page(
    view: TableView,
    version: int,
    where: str,
    kept: str,
    partition: int | None,
    sort: str,
    descending: bool,
    offset: int,
    limit: int,
) -> dict[str, Any]:
    """Files with their figures and, where there is a predicate, whether it reads them and why."""
    figures = view.figures(version)
    table = figures.table
    if where.strip():
        explained = view.explain(version, where)
        table = table.append_column("kept", explained["kept"]).append_column("rule", explained["rule"])
        if kept:
            table = table.filter(pc.equal(table["kept"], kept == "yes"))
    if partition is not None:
        table = table.filter(pc.equal(table["partition"], partition))
    keys = table.select([{"bytes": "size"}.get(sort, sort)])
    page = table.take(_sorted(keys, descending)[offset : offset + limit])
    rows = page.to_pylist()
    if "values" in figures.partitions.column_names:
        for row, values in zip(
            rows, figures.partitions["values"].take(page["partition"]).to_pylist(), strict=True
        ):
            row["values"] = values
    for row in rows:
        row["modified"] = None if row["modified"] is None else datetime_of(row["modified"])
    return {"total": table.num_rows, "files": rows}


def _sorted(keys: pa.Table, descending: bool) -> pa.Array:
    order = "descending" if descending else "ascending"
    return pc.sort_indices(keys, sort_keys=[(name, order) for name in keys.column_names])


def filter_summary(view: TableView, version: int, where: str) -> dict[str, Any]:
    """What a predicate reads: how many files, by which rules others are skipped, and where in the log they are."""
    figures, explained = view.figures(version), view.explain(version, where)
    kept = explained["kept"]
    return {
        "all": figures.totals(),
        "read": totals(figures.table.filter(kept)),
        "rules": explained.steps.slice(0, _MOST_RULES).to_pylist(),
        "strip": _strip(kept),
    }


def _strip(kept: pa.ChunkedArray) -> dict[str, Any]:
    """The files in log order as cells: how many files each stands for, and which share of them is read."""
    import numpy as np

    flags = numbers(kept.cast(pa.int64()))
    cells = min(len(flags), _MOST_CELLS)
    if not cells:
        return {"filesPerCell": 0, "cells": []}
    starts = np.arange(cells) * len(flags) // cells
    counts = np.diff([*starts, len(flags)])
    shares = np.add.reduceat(flags, starts) / counts
    return {"filesPerCell": int(counts.max()), "cells": [round(float(share), 3) for share in shares]}


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
    from delta_ds.kernel.files.read.reader import Matching, read_slice

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
