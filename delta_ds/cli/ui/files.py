"""Rows, files and versions of a table for its page: first rows, partitions, single files, what a predicate reads; the
versions, newest first, with what their commits did and what the table had after them; actions of one commit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.cli.json_values import rows_of, shown
from delta_ds.cli.ui.view import totals
from delta_ds.kernel.base.arrow_buffers import numbers, true_rows
from delta_ds.kernel.commands.layout.timeline import timeline
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.format.actions import counted_rows
from delta_ds.kernel.log import history
from delta_ds.kernel.log.history import datetime_of
from delta_ds.kernel.log.json_actions import parse_file_actions, parse_line
from delta_ds.kernel.log.segment import list_log, version_not_found
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.records import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

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
                    for row in rows_of(batch.slice(0, limit + 1 - len(rows)))
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


_MOST_TEXT_OF_FIELD = 2000
# Rows by what became of them: the metrics that count them, the first that a commit has.
_ROW_METRICS = {
    "inserted": ("numTargetRowsInserted",),
    "updated": ("numUpdatedRows", "numTargetRowsUpdated"),
    "deleted": ("numDeletedRows", "numTargetRowsDeleted"),
}
_WRITTEN_ROWS = "numOutputRows"
_DESCRIBED = ("operation", "userName", "engineInfo", "userMetadata", "isolationLevel", "isBlindAppend")


def timeline_page(view: TableView, before: int | None, limit: int) -> dict[str, Any]:
    """Some versions and what happened in them.

    Parameters
    ----------
    before
        Only those below this version; None: from the newest on.

    Raises
    ------
    DeltaError
        The log is damaged, or there is no such version.
    """
    if before == 0:
        return {"versions": [], "older": False}
    last = view.newest() if before is None else view.snapshot(before - 1)
    # What the first of a timeline changed is not told: it is there for the second one's sake.
    counted = {row["version"]: row for row in timeline(last, limit + 1).versions.to_pylist()}
    listing = list_log(view.log.storage)
    wanted = sorted(counted)[-limit:]
    listing = replace(listing, commits={v: file for v, file in listing.commits.items() if v <= last.version})
    described = history.describe(view.log.storage, listing, last.table_state, len(wanted))
    return {
        "versions": [_version(entry, counted.get(entry["version"], {})) for entry in described],
        "older": min(counted) < wanted[0] if wanted else False,
    }


def _version(entry: Mapping[str, Any], counted: Mapping[str, Any]) -> dict[str, Any]:
    metrics = {name: _cut(value) for name, value in (entry["operationMetrics"] or {}).items()}
    parameters = {name: _cut(value) for name, value in (entry["operationParameters"] or {}).items()}
    counts = {name: value for name, value in counted.items() if name not in ("timestamp", "operation")}
    return {
        "version": entry["version"],
        "timestamp": entry["timestamp"],
        **{name: _cut(entry[name]) for name in _DESCRIBED},
        **counts,
        "rows": _rows(entry["operationMetrics"] or {}),
        "parameters": parameters,
        "metrics": metrics,
    }


def _rows(metrics: Mapping[str, Any]) -> dict[str, int]:
    """How many rows a commit inserted, updated and deleted, as far as its metrics tell."""
    found = {}
    for kind, names in _ROW_METRICS.items():
        number = next((_number(metrics[name]) for name in names if name in metrics), None)
        if number is not None:
            found[kind] = number
    written = _number(metrics.get(_WRITTEN_ROWS))
    if not found and written is not None:
        found["inserted"] = written
    return found


def _number(text: Any) -> int | None:
    return int(text) if isinstance(text, str) and text.isdecimal() else None


def _cut(value: Any) -> Any:
    return (
        value
        if not isinstance(value, str) or len(value) <= _MOST_TEXT_OF_FIELD
        else value[:_MOST_TEXT_OF_FIELD] + "..."
    )


_FILE_ACTIONS = ("add", "remove", "cdc")
# Of the text of an action, letters.
_MOST_TEXT_OF_ACTION = 20_000


def commit_page(view: TableView, version: int, offset: int, limit: int) -> dict[str, Any]:
    """The actions of a version: those on no file first, whole; those on files a page at a time.

    Raises
    ------
    VersionNotFoundError
        The log has no commit of the version.
    LogError
        It is damaged.
    """
    import pyarrow.compute as pc

    storage = view.log.storage
    path = relative_commit_path(version)
    try:
        data = storage.read(path)
    except FileNotFoundError:
        raise version_not_found(list_log(storage), version) from None
    where = f"{path} of {storage.url}"
    kinds = _kinds(where, data)
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    others = true_rows(pc.is_null(kinds)).to_pylist()
    on_files = true_rows(pc.is_valid(kinds))
    counts = {each["values"]: each["counts"] for each in pc.value_counts(kinds).to_pylist() if each["values"]}
    page, shown = (
        [parse_line(line, number, where) for number, line in (lines[n] for n in chosen)]
        for chosen in (on_files[offset : offset + limit].to_pylist(), others[:limit])
    )
    return {
        "version": version,
        "counts": {kind: counts.get(kind, 0) for kind in _FILE_ACTIONS},
        "actions": [_shown(action) for action in shown],
        "numActions": len(others),
        "files": [_file(action) for action in page],
    }


def _kinds(where: str, data: bytes) -> pa.Array:
    """For each line the name of its action if that is on a file, else null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    body = pa.struct([("path", pa.string())])
    tables = parse_file_actions([(where, data)], pa.schema([(name, body) for name in _FILE_ACTIONS]))
    if not tables:
        return pa.array([], pa.string())
    found = pa.concat_tables(tables)
    kinds = pa.nulls(found.num_rows, pa.string())
    for name in _FILE_ACTIONS:
        kinds = pc.if_else(pc.is_valid(found[name].combine_chunks()), pa.scalar(name), kinds)
    return kinds


def _shown(action: Any) -> dict[str, Any]:
    kind = next(iter(action), "") if isinstance(action, dict) else ""
    text = json.dumps(action.get(kind) if kind else action, indent=2, ensure_ascii=False)
    return {
        "kind": kind,
        "text": text[:_MOST_TEXT_OF_ACTION],
        "cut": max(0, len(text) - _MOST_TEXT_OF_ACTION),
    }


def _file(action: Any) -> dict[str, Any]:
    kind, body = next((name, action[name]) for name in _FILE_ACTIONS if action.get(name) is not None)
    vector = body.get("deletionVector")
    return {
        "kind": kind,
        "path": body.get("path"),
        "size": body.get("size"),
        "rows": counted_rows(body.get("stats")),
        "deleted": vector.get("cardinality") if isinstance(vector, dict) else None,
        "dataChange": body.get("dataChange"),
        **{key: value for key, value in _shown(action).items() if key != "kind"},
    }
