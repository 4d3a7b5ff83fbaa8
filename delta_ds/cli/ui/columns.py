"""The columns of a version for its page: ranges over all files, and how well lookups by each skip files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from delta_ds.cli.json_values import shown
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.commands.layout.column import column_layout
from delta_ds.kernel.files.scan.file_pruning import find_statistics_column
from delta_ds.kernel.files.scan.skipping import row_numbers
from delta_ds.kernel.format.schema.column_paths import Path, quote, show
from delta_ds.kernel.format.schema.types import StructField, StructType
from delta_ds.kernel.format.values.statistics import load_statistics

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.cli.ui.view import TableView
    from delta_ds.kernel.commands.layout.column import ColumnLayout
    from delta_ds.kernel.log.snapshot import Snapshot

# Ranges in one drawing; with more files each bar stands for several of them.
_MOST_BARS = 200
_MOST_TEXT = 120


def column_page(view: TableView, version: int, offset: int, limit: int) -> dict[str, Any]:
    """Columns with least and greatest value, nulls, and the files that a lookup of a value reads."""
    snapshot = view.snapshot(version)
    leaves = list(_leaves(snapshot.schema, ()))
    page = leaves[offset : offset + limit]
    _load(snapshot, [path for path, _ in page])
    return {
        "total": len(leaves),
        "numFiles": snapshot.live_files().num_rows,
        "columns": [
            {
                "name": show(path),
                "column": quote(path),
                "type": str(field.type),
                **_figures(view, snapshot, path),
            }
            for path, field in page
        ],
    }


def _leaves(schema: StructType, inside: Path) -> Iterator[tuple[Path, StructField]]:
    """What may have values of its own in statistics: columns, and fields of structs."""
    for field in schema.fields:
        if isinstance(field.type, StructType):
            yield from _leaves(field.type, (*inside, field.name))
        else:
            yield (*inside, field.name), field


def _load(snapshot: Snapshot, paths: list[Path]) -> None:
    """Parse the statistics of all columns at once; each finds its own afterwards."""
    found = [find_statistics_column(snapshot.schema, path, snapshot.mapping_mode) for path in paths]
    files = snapshot.live_files()
    leaves = [(leaf.path, leaf.type) for leaf in found if leaf is not None]
    load_statistics(files, row_numbers(files.num_rows), leaves)


def _figures(view: TableView, snapshot: Snapshot, path: Path) -> dict[str, Any]:
    try:
        layout = column_layout(snapshot, quote(path), timezone=view.zone)
    except UnsupportedOperationError:
        # Logs hold no bounds of such a type.
        return {"bounds": False}
    nulls = layout.files["nulls"]
    known = layout.known
    return {
        "bounds": True,
        "low": _text(pc.min(known["low"]).as_py()) if known.num_rows else None,
        "high": _text(pc.max(known["high"]).as_py()) if known.num_rows else None,
        "nulls": None if nulls.null_count else pc.sum(nulls).as_py() or 0,
        "unknown": layout.num_unknown,
        "read": layout.files_read(),
    }


def range_page(view: TableView, version: int, column: str, where: str) -> dict[str, Any]:
    """The ranges of a column, file by file or, where there are many, of neighbours together, for a drawing.

    Returns
    -------
    dict
        `bars`: `at` and `to` between 0 and 1 on the axis from `low` to `high`, `files`, `from` and `till` as texts, and
        `read`: the share of its files that the predicate reads, None without one.

    Raises
    ------
    DeltaError
        There is no such column, logs hold no bounds of it, or the predicate is wrong.
    """
    layout = column_layout(view.snapshot(version), column, timezone=view.zone)
    known = layout.known
    if where.strip():
        explained = view.explain(version, where).files
        kept = explained.filter(explained["kept"])["path"]
        known = known.append_column("kept", pc.is_in(known["path"], kept.combine_chunks()))
    bars = _bars(known)
    return {
        "column": layout.column,
        "type": layout.type,
        "numFiles": layout.num_files,
        "unknown": layout.num_unknown,
        "withoutValues": layout.num_without_values,
        "low": _text(pc.min(known["low"]).as_py()) if known.num_rows else None,
        "high": _text(pc.max(known["high"]).as_py()) if known.num_rows else None,
        "read": _read(layout),
        "bars": bars,
    }


def _read(layout: ColumnLayout) -> dict[str, float]:
    return {"value": layout.files_read(), "tenth": layout.files_read(0.1)}


def _bars(known: pa.Table) -> list[dict[str, Any]]:
    import numpy as np

    count = known.num_rows
    if not count:
        return []
    low_at, high_at = np.array(known["low_at"]), np.array(known["high_at"])
    start, span = low_at.min(), max(high_at.max() - low_at.min(), np.finfo(float).tiny)
    bars = min(count, _MOST_BARS)
    starts = np.arange(bars) * count // bars
    ends = [*starts[1:], count]
    out = []
    for first, end in zip(starts, ends, strict=True):
        part = known.slice(int(first), int(end - first))
        out.append(
            {
                "at": float((low_at[first:end].min() - start) / span),
                "to": float((high_at[first:end].max() - start) / span),
                "files": int(end - first),
                "from": _text(pc.min(part["low"]).as_py()),
                "till": _text(pc.max(part["high"]).as_py()),
                "read": pc.mean(part["kept"]).as_py() if "kept" in part.column_names else None,
            }
        )
    return out


def _text(value: Any) -> str:
    text = shown(value)
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "..."
