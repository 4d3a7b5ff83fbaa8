"""The files of a version for its page: partitions, single files, what a predicate reads; a page of them at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.cli.ui.view import totals
from delta_ds.kernel.base.arrow_buffers import numbers
from delta_ds.kernel.log.history import datetime_of

if TYPE_CHECKING:
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
