"""The statistics of one data file, collected while it is written.

Row group by row group Arrow kernels take the bounds of all columns but strings: those of strings, the dear
ones, are in the footer of the finished file, exact unless a value is longer than the footer keeps.
Source: PROTOCOL.md, "Per-file Statistics" (protocol-checklist section 37).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.data import (
    COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN,
    COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE,
    DUPLICATE_DATA_SKIPPING_COLUMNS,
)
from delta_ds.conditions.protocol import STATISTICS_COLUMNS_UNREADABLE
from delta_ds.conditions.schema import STATISTICS_COLUMN_NOT_FOUND
from delta_ds.events.commands import STATISTICS_COLUMN_UNKNOWN
from delta_ds.kernel.files.write.columns import FileColumns, leaf_count
from delta_ds.kernel.files.write.write_spec import WriteSpec
from delta_ds.kernel.format.properties import DATA_SKIPPING_NUM_INDEXED_COLS, DATA_SKIPPING_STATS_COLUMNS
from delta_ds.kernel.format.schema import column_paths
from delta_ds.kernel.format.schema.column_mapping import physical_name
from delta_ds.kernel.format.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    DataType,
    StructType,
)
from delta_ds.kernel.format.values.statistics_json import bound_texts, has_bounds
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# --- the columns that get statistics, by the table's properties
# Source: PROTOCOL.md, "Per-file Statistics"; delta-spark, `StatisticsCollection` (protocol-checklist ST-W-08).

_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s`.,]+))\s*([.,]|$)")

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StatisticsColumn:
    """A leaf that gets statistics.

    Attributes
    ----------
    path
        Physical path through structs.
    type
        Its type; arrays, maps and variants are leaves.
    route
        Where it is in a file: the number of the column, then of the field in each struct. Empty for void
        columns, which no file holds.
    leaf
        The number of its first Parquet leaf column; -1 for void columns.
    """

    path: Path
    type: DataType
    route: tuple[int, ...]
    leaf: int

    @property
    def bounded(self) -> bool:
        """Whether it gets minimum and maximum, and not only the number of nulls."""
        return has_bounds(self.type)


def statistics_columns(plan: WriteSpec, columns: FileColumns) -> tuple[StatisticsColumn, ...]:
    """The leaves that get statistics, in schema order.

    Those that `delta.dataSkippingStatsColumns` names, else the first `delta.dataSkippingNumIndexedCols`
    leaves that are not partition columns (arrays and maps count as one, -1 means all); clustering columns
    always. Names that no column has are left out with a warning: statistics may be absent.

    Raises
    ------
    InvalidOptionError
        `delta.dataSkippingStatsColumns` is no list of column names.
    """
    partitions = set(plan.partition_columns)
    data = StructType(tuple(f for f in plan.schema if f.name not in partitions))
    leaves = list(_leaves(data, plan.mapping_mode, (), ()))
    text = DATA_SKIPPING_STATS_COLUMNS.of(plan.properties)
    if text is None:
        limit = DATA_SKIPPING_NUM_INDEXED_COLS.of(plan.properties)
        chosen = {physical for _, physical, _ in (leaves if limit < 0 else leaves[:limit])}
    else:
        chosen = _named_leaves(parse_names(text), leaves, plan)
    chosen |= set(plan.clustering_columns)
    places = {path: (route, leaf) for path, route, leaf in _places(columns)}
    return tuple(
        StatisticsColumn(physical, kind, *places.get(physical, ((), -1)))
        for _, physical, kind in leaves
        if physical in chosen
    )


_Leaf = tuple[Path, Path, DataType]


def _leaves(level: StructType, mode: str, logical: Path, physical: Path) -> Iterator[_Leaf]:
    """Logical path, physical path and type of each leaf."""
    for f in level:
        path, stored = (*logical, f.name), (*physical, physical_name(f, mode))
        if isinstance(f.type, StructType):
            yield from _leaves(f.type, mode, path, stored)
        else:
            yield path, stored, f.type


def _named_leaves(names: Sequence[Path], leaves: Sequence[_Leaf], plan: WriteSpec) -> set[Path]:
    wanted = {_lower_case(name) for name in names}
    chosen: set[Path] = set()
    for logical, physical, _ in leaves:
        above = {_lower_case(logical[:n]) for n in range(1, len(logical) + 1)} & wanted
        if above:
            chosen.add(physical)
            wanted -= {name for name in above if name == _lower_case(logical)}
    prefixes = {_lower_case(logical[:n]) for logical, _, _ in leaves for n in range(1, len(logical) + 1)}
    for name in sorted(wanted - prefixes):
        STATISTICS_COLUMN_UNKNOWN.log(table=plan.table, column=".".join(name))
    return chosen


def _lower_case(path: Path) -> Path:
    return tuple(name.lower() for name in path)


def _places(columns: FileColumns) -> Iterator[tuple[Path, tuple[int, ...], int]]:
    """Physical path, route and first Parquet leaf of each leaf of a file."""

    def walk(
        level: StructType, path: Path, route: tuple[int, ...], leaf: int
    ) -> Iterator[tuple[Path, tuple[int, ...], int]]:
        for i, f in enumerate(level):
            if isinstance(f.type, StructType):
                yield from walk(f.type, (*path, f.name), (*route, i), leaf)
            else:
                yield (*path, f.name), (*route, i), leaf
            leaf += leaf_count(f.type)

    return walk(StructType(columns.fields), (), (), 0)


def parse_names(text: str) -> list[Path]:
    """The column paths of a list such as ``a, b.c, `x.y` ``.

    Raises
    ------
    InvalidOptionError
        The text is no such list.
    """
    names: list[Path] = []
    path: list[str] = []
    at, open_ = 0, bool(text.strip())
    while open_:
        match = _PART.match(text, at)
        if match is None:
            raise STATISTICS_COLUMNS_UNREADABLE(
                value=text,
                property=DATA_SKIPPING_STATS_COLUMNS.name,
            )
        path.append(match[1].replace("``", "`") if match[1] else match[2])
        if match[3] != ".":
            names.append(tuple(path))
            path = []
        at, open_ = match.end(), match[3] != ""
    return names


def check_statistics_columns(
    schema: StructType, partition_columns: Sequence[str], text: str, table: str
) -> None:
    """Check a new value of `delta.dataSkippingStatsColumns`.

    Raises
    ------
    InvalidOptionError
        The text is no list of columns, or it names a partition column, a column that is not there or whose
        type has no statistics, or one twice.

    Source: delta-spark, `StatisticsCollection.validateDeltaStatsColumns`.
    """
    partitions = {name.lower() for name in partition_columns}
    seen: set[Path] = set()
    for name in parse_names(text):
        shown = ".".join(name)
        if name[0].lower() in partitions:
            raise COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN(
                columnName=shown, table=table, column=name[0]
            )
        found = column_paths.find(schema, name)
        if found is None:
            raise STATISTICS_COLUMN_NOT_FOUND(columnName=shown, table=table)
        kind = found[1].type
        # Of a struct, and of what is inside, as much is taken as there is.
        if len(name) == 1 and not (has_bounds(kind) or isinstance(kind, StructType) or kind == VARIANT):
            raise COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE(columnName=shown, table=table, type=kind)
        for leaf in _below(name, kind):
            if leaf in seen:
                raise DUPLICATE_DATA_SKIPPING_COLUMNS(columnName=shown, table=table)
            seen.add(leaf)


def _below(name: Path, kind: DataType) -> list[Path]:
    if not isinstance(kind, StructType):
        return [name]
    return [(*name, *logical) for logical, _, _ in _leaves(kind, "none", (), ())]


# --- the statistics of one data file, collected while it is written

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
