"""The columns that get statistics, by the table's properties.

Source: PROTOCOL.md, "Per-file Statistics"; delta-spark, `StatisticsCollection` (protocol-checklist ST-W-08).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from delta_ds.conditions.data import (
    COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN,
    COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE,
    DUPLICATE_DATA_SKIPPING_COLUMNS,
)
from delta_ds.conditions.protocol import STATISTICS_COLUMNS_UNREADABLE
from delta_ds.conditions.schema import STATISTICS_COLUMN_NOT_FOUND
from delta_ds.events.reading import STATISTICS_COLUMN_UNKNOWN
from delta_ds.kernel.data.values.statistics import has_bounds
from delta_ds.kernel.data.write.columns import FileColumns, leaf_count
from delta_ds.kernel.data.write.write_spec import WriteSpec
from delta_ds.kernel.properties import DATA_SKIPPING_NUM_INDEXED_COLS, DATA_SKIPPING_STATS_COLUMNS
from delta_ds.kernel.schema import column_paths
from delta_ds.kernel.schema.column_mapping import physical_name
from delta_ds.kernel.schema.types import VARIANT, DataType, StructType
from delta_ds.records import dataclass

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
