"""The statistics of one data file, collected while it is written.

Row group by row group Arrow kernels take the bounds of all columns but strings: those of strings, the dear
ones, are in the footer of the finished file, exact unless a value is longer than the footer keeps.
Source: PROTOCOL.md, "Per-file Statistics" (protocol-checklist section 37).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.data.values.statistics_json import bound_texts
from delta_ds.kernel.data.write.statistics_columns import StatisticsColumn
from delta_ds.kernel.schema.types import DATE, DOUBLE, FLOAT, STRING, TIMESTAMP, TIMESTAMP_NTZ

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_LONGEST_IN_FOOTER = 4096  # parquet-cpp keeps no bounds when one of them has more bytes


class FileStatistics:
    """Collects the statistics of one file.

    Parameters
    ----------
    columns
        The leaves that get statistics.
    prefix_length
        UTF-16 units of strings that are kept.
    tight_bounds
        Whether to say that bounds are tight, which only tables with deletion vectors need.
    """

    def __init__(self, columns: Sequence[StatisticsColumn], prefix_length: int, tight_bounds: bool) -> None:
        self.rows = 0
        self._columns = [_Column(c) for c in columns]
        self._prefix_length = prefix_length
        self._tight_bounds = tight_bounds

    def add(self, group: pa.Table) -> None:
        """Take in rows that were written, with the columns of the file."""
        self.rows += group.num_rows
        structs: dict[tuple[int, ...], list[pa.ChunkedArray]] = {(): group.columns}
        for column in self._columns:
            column.add(group.num_rows, _at(column.about.route, structs))

    def text(self, footer: pq.FileMetaData) -> str:
        """The JSON of the statistics, once all rows are written and the footer is there."""
        low: dict[str, Any] = {}
        high: dict[str, Any] = {}
        nulls: dict[str, Any] = {}
        for column in self._columns:
            column.finish(footer)
            path = column.about.path
            _put(nulls, path, str(column.nulls))
            if column.low is not None:
                texts = bound_texts(column.about.type, column.low, column.high, self._prefix_length)
                for tree, text in zip((low, high), texts, strict=True):
                    if text is not None:
                        _put(tree, path, text)
        parts: dict[str, Any] = {"numRecords": str(self.rows)}
        if self._columns:
            parts |= {"minValues": low, "maxValues": high, "nullCount": nulls}
        if self._tight_bounds:
            parts["tightBounds"] = "true"
        return _object(parts)


def _at(
    route: tuple[int, ...], structs: dict[tuple[int, ...], list[pa.ChunkedArray]]
) -> pa.ChunkedArray | None:
    """The leaf at a route; null where a struct above it is. Flattened structs are kept in `structs`."""
    if not route:
        return None
    above = route[:-1]
    if above not in structs:
        parent = _at(above, structs)
        structs[above] = parent.flatten() if parent is not None else []
    return structs[above][route[-1]]


def _put(tree: dict[str, Any], path: tuple[str, ...], text: str) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = text


def _object(tree: Mapping[str, Any]) -> str:
    """The JSON object of a tree whose leaves are JSON texts."""
    parts = [
        f"{json.dumps(name, ensure_ascii=False)}:{node if isinstance(node, str) else _object(node)}"
        for name, node in tree.items()
    ]
    return "{" + ",".join(parts) + "}"


class _Column:
    """The statistics of one leaf so far; bounds are comparable values, None while there is none."""

    __slots__ = ("_bounds", "_in_footer", "about", "high", "low", "nulls")

    def __init__(self, about: StatisticsColumn) -> None:
        self.about = about
        self.nulls = 0
        self.low: Any = None
        self.high: Any = None
        self._in_footer = 0  # so many row groups, at least, have their bounds in the footer
        self._bounds = _BOUNDS.get(str(about.type), _plain_bounds) if about.bounded else None

    def add(self, rows: int, values: pa.ChunkedArray | None) -> None:
        nulls = rows if values is None else values.null_count
        self.nulls += nulls
        if self._bounds is None or values is None or nulls == rows:
            return
        bounds = self._bounds(values)
        if bounds is None:
            self._in_footer += 1
        else:
            self._widen(*bounds)

    def _widen(self, low: Any, high: Any) -> None:
        self.low = low if self.low is None else _least(self.low, low)
        self.high = high if self.high is None else _greatest(self.high, high)

    def finish(self, footer: pq.FileMetaData) -> None:
        """Take the bounds of strings from the row groups; if some have none, there are none at all."""
        if not self._in_footer:
            return
        groups = (
            footer.row_group(g).column(self.about.leaf).statistics for g in range(footer.num_row_groups)
        )
        bounded = [bounds for bounds in groups if bounds is not None and bounds.has_min_max]
        for bounds in bounded:
            self._widen(bounds.min_raw, bounds.max_raw)
        if len(bounded) < self._in_footer:
            self.low = self.high = None


def _least(one: Any, other: Any) -> Any:
    """The lesser in Spark's order, where NaN is the greatest."""
    if isinstance(one, float) and math.isnan(one):
        return other
    return other if other < one else one


def _greatest(one: Any, other: Any) -> Any:
    if isinstance(other, float) and math.isnan(other):
        return other
    return other if other > one else one


def _plain_bounds(values: pa.ChunkedArray) -> tuple[Any, Any]:
    bounds = pc.min_max(values)
    return bounds["min"].as_py(), bounds["max"].as_py()


def _number_bounds(values: pa.ChunkedArray) -> tuple[int, int]:
    """Of dates and timestamps as the numbers they are: Python's own types would not hold them all."""
    bounds = pc.min_max(values)
    return bounds["min"].value, bounds["max"].value


def _float_bounds(values: pa.ChunkedArray) -> tuple[float, float]:
    low, high = _plain_bounds(values)  # NaN only if there is nothing else
    if not math.isnan(high) and pc.any(pc.is_nan(values)).as_py():
        high = math.nan
    return low, high


def _string_bounds(values: pa.ChunkedArray) -> tuple[bytes, bytes] | None:
    """The bounds of strings too long for the footer; None where the footer will have them."""
    if pc.max(pc.binary_length(values)).as_py() <= _LONGEST_IN_FOOTER:
        return None
    bounds = pc.min_max(values)
    return bounds["min"].as_buffer().to_pybytes(), bounds["max"].as_buffer().to_pybytes()


_BOUNDS: dict[str, Callable[[pa.ChunkedArray], tuple[Any, Any] | None]] = {
    str(FLOAT): _float_bounds,
    str(DOUBLE): _float_bounds,
    str(STRING): _string_bounds,
    str(DATE): _number_bounds,
    str(TIMESTAMP): _number_bounds,
    str(TIMESTAMP_NTZ): _number_bounds,
}
