"""What an OPTIMIZE is asked to do, the checks of it, and the file sizes it aims at.

Source: delta-spark, `OptimizeTableCommand.run` and `validateZorderByColumns`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.commands import (
    CLUSTERING_WITH_PARTITION_PREDICATE,
    CLUSTERING_WITH_ZORDER_BY,
    DATATYPE_MISMATCH_INVALID_ORDERING_TYPE,
    OPTIMIZE_FULL_NOT_SUPPORTED,
    ZORDERING_COLUMN_DOES_NOT_EXIST,
    ZORDERING_ON_COLUMN_WITHOUT_STATS,
    ZORDERING_ON_PARTITION_COLUMN,
)
from delta_ds.conditions.expressions import FAILED_RECOGNIZE_PREDICATE
from delta_ds.conditions.options import NON_PARTITION_COLUMN_REFERENCE
from delta_ds.exceptions import CorruptLogFileError, InvalidOptionError, PredicateError
from delta_ds.kernel.base.value_types import parse_boolean, parse_size
from delta_ds.kernel.files.write.columns import file_columns
from delta_ds.kernel.files.write.statistics import statistics_columns
from delta_ds.kernel.format.actions import CLUSTERING_DOMAIN
from delta_ds.kernel.format.expressions import evaluate
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.expressions.tree import Expression, columns, conjunction
from delta_ds.kernel.format.features import CLUSTERING
from delta_ds.kernel.format.options import settings
from delta_ds.kernel.format.options.settings import CODEC
from delta_ds.kernel.format.schema import column_paths
from delta_ds.kernel.format.schema.column_mapping import physical_path
from delta_ds.kernel.format.schema.column_paths import Path, find, show
from delta_ds.kernel.format.schema.types import ArrayType, DataType, MapType, StructType
from delta_ds.records import dataclass, field, replace

if TYPE_CHECKING:
    from delta_ds.kernel.files.write.write_spec import WriteSpec
    from delta_ds.kernel.log.snapshot import Snapshot


COMPACT = "compact"
ZORDER = "zorder"
FULL = "full"
PURGE = "purge"
RETYPE = "retype"
UNMAP = "unmap"
UPGRADE = "upgrade"
# Kinds that rewrite each file that holds something, in the order of its rows, and nothing else.
REORG = frozenset([PURGE, RETYPE, UNMAP, UPGRADE])


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError("it is a number from 0 to 1")
    return share


def _size(text: str) -> int:
    return 0 if text.strip() == "0" else parse_size(text)


@dataclass(frozen=True, slots=True)
class OptimizeSettings:
    """What a session says of an OPTIMIZE: sizes in bytes, with delta-spark's defaults, and the codec.

    Attributes
    ----------
    min_file_size
        Smaller files are candidates.
    max_file_size
        What files shall come to; None: the table's `delta.targetFileSize`, else 1 GiB.
    max_deleted_rows_ratio
        Files with a larger share of deleted rows are candidates whatever their size.
    min_cube_size, target_cube_size
        Files clustered together are left alone once they have the first, and gathered up to the second.
    check_statistics
        Whether columns to order by must have statistics.
    compression
        The codec of new files; None: the table's.

    Source: delta-spark, `DeltaSQLConf`.
    """

    min_file_size: int = 1 << 30
    max_file_size: int | None = None
    max_deleted_rows_ratio: float = 0.05
    min_cube_size: int = 100 << 30
    target_cube_size: int = 150 << 30
    check_statistics: bool = True
    compression: str | None = None


# Session setting: the attribute, how its text is read.
SETTINGS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    settings.OPTIMIZE_MIN_FILE_SIZE.full_name: ("min_file_size", _size),
    settings.OPTIMIZE_MAX_FILE_SIZE.full_name: ("max_file_size", _size),
    settings.OPTIMIZE_MAX_DELETED_ROWS_RATIO.full_name: ("max_deleted_rows_ratio", _share),
    settings.CLUSTERING_MIN_CUBE_SIZE.full_name: ("min_cube_size", _size),
    settings.CLUSTERING_TARGET_CUBE_SIZE.full_name: ("target_cube_size", _size),
    settings.ZORDER_CHECK_STATISTICS.full_name: ("check_statistics", parse_boolean),
    CODEC: ("compression", str),
}


def settings_of(configuration: Mapping[str, str]) -> OptimizeSettings:
    """The settings that a session has, by delta-spark's names; others count as not set.

    Raises
    ------
    InvalidOptionError
        A value that a setting does not take.
    """
    values: dict[str, Any] = {}
    for name, (attribute, parse) in SETTINGS.items():
        text = configuration.get(name)
        if text is None:
            continue
        try:
            values[attribute] = parse(text)
        except ValueError as error:
            raise InvalidOptionError(
                f"the session setting {name} cannot be {text!r}: {error}", parameters={"setting": name}
            ) from error
    return OptimizeSettings(**values)


@dataclass(frozen=True, slots=True)
class OptimizeRequest:
    """The kind, predicate, columns and sizes of an OPTIMIZE. Can be pickled.

    Attributes
    ----------
    kind
        `compact` (clustered tables are clustered), `zorder`, `full` (cluster all files anew), `purge` (rewrite
        every file that has deleted rows), `retype` (every file with values of an older, narrower type), `unmap`
        (all files, under the names of the columns: the table loses its column mapping) or `upgrade` (every file
        that was not written by the table's version of Iceberg compatibility).
    where
        Predicates on partition columns, as Spark SQL; all must hold.
    columns
        What to order by, as in Spark SQL.
    settings
        See `OptimizeSettings`.
    timezone
        The session time zone, in which predicates are meant.
    auto
        Whether a write started this.
    mode_property
        What `unmap` leaves as `delta.columnMapping.mode`; None for nothing.
    partitions
        Only these partitions, as `partitionValues` of the log has them; None for any.
    exact_names
        Whether columns have to be named in their own case.
    """

    kind: str = COMPACT
    where: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    settings: OptimizeSettings = field(default_factory=OptimizeSettings)
    timezone: str = "UTC"
    auto: bool = False
    mode_property: str | None = None
    partitions: tuple[Mapping[str, str | None], ...] | None = None
    exact_names: bool = False

    def with_settings(self, **changes: Any) -> OptimizeRequest:
        """The same request with other sizes."""
        from dataclasses import fields

        names = {f.name for f in fields(OptimizeSettings)}
        assert names.issuperset(changes)
        return replace(self, settings=replace(self.settings, **changes))


_NO_ORDER = frozenset(["variant", "geometry", "geography", "interval"])


def check_kind(snapshot: Snapshot, request: OptimizeRequest) -> None:
    """Refuse operations that clustered tables, or tables that are not clustered, do not have.

    Raises
    ------
    UnsupportedOperationError
        Z-order or a predicate on a clustered table, FULL on another one.
    """
    table = snapshot.storage.url
    if request.kind == FULL and not snapshot.clustering_columns:
        raise OPTIMIZE_FULL_NOT_SUPPORTED(table=table)
    if not snapshot.protocol.supports(CLUSTERING):
        return
    if request.where:
        raise CLUSTERING_WITH_PARTITION_PREDICATE(
            table=table, where=request.where, predicates=" ".join(request.where)
        )
    if request.kind == ZORDER or request.columns:
        raise CLUSTERING_WITH_ZORDER_BY(table=table, zOrderBy=", ".join(request.columns))


def clustering_curve_columns(snapshot: Snapshot) -> tuple[Path, ...]:
    """The columns that a clustered table is clustered by.

    Raises
    ------
    CorruptLogFileError
        One is no column of the table.
    """
    columns = tuple(tuple(path) for path in snapshot.clustering_columns)
    missing = [path for path in columns if find(snapshot.schema, path) is None]
    if missing:
        raise CorruptLogFileError(
            f"the metadata domain {CLUSTERING_DOMAIN} of version {snapshot.version} of {snapshot.storage.url} names "
            f"{show(missing[0])}, which is no column of the table. Set the clustering columns anew with ALTER TABLE "
            "... CLUSTER BY"
        )
    return columns


def partition_predicate(snapshot: Snapshot, request: OptimizeRequest) -> Expression | None:
    """The predicates of a request as one on partition columns only; None for no predicate.

    Raises
    ------
    PredicateError
        One cannot be parsed, names another column than a partition column, or uses what only Spark can evaluate.
    """
    texts = request.where
    if not texts:
        return None
    trees = [_parse_where(text) for text in texts]
    fold = str if request.exact_names else str.lower
    partitions = {fold(name) for name in snapshot.partition_columns}
    for column in (column for tree in trees for column in columns(tree)):
        if fold(column.path[0]) not in partitions or len(column.path) > 1:
            raise NON_PARTITION_COLUMN_REFERENCE(
                columnName=show(column.path),
                table=snapshot.storage.url,
                columnList=snapshot.partition_columns,
            )
    whole = conjunction(trees)
    assert whole is not None
    bound = bind(whole, snapshot.schema, request.timezone)
    outside = evaluate.unevaluable(bound)
    if outside is not None:
        raise PredicateError(
            f"the predicate {' AND '.join(texts)} on {snapshot.storage.url} uses {outside}, which only Spark can "
            "evaluate. Nothing was written; compare partition columns with constants",
            parameters={"predicate": list(texts)},
        )
    return whole


def _parse_where(text: str) -> Expression:
    try:
        return parse_predicate(text)
    except PredicateError as error:
        raise FAILED_RECOGNIZE_PREDICATE(predicate=text, reason=error.text) from error


def zorder_columns(snapshot: Snapshot, request: OptimizeRequest, files: WriteSpec | None) -> tuple[Path, ...]:
    """The logical paths of the columns to order by, in the schema's case; one that is named twice counts once.

    Parameters
    ----------
    request
        With the columns as they are written in Spark SQL.
    files
        How files are written, which says what columns have statistics; None: they need not have any.

    Raises
    ------
    SchemaError
        A column does not exist, or is a partition column.
    UnsupportedOperationError
        A column has no order, or no statistics.
    """
    paths = [_zorder_column(snapshot, name, request.exact_names) for name in request.columns]
    if files is not None:
        _check_statistics(snapshot, paths, files)
    return tuple(dict.fromkeys(paths))


def _zorder_column(snapshot: Snapshot, name: str, exact: bool) -> Path:
    schema, table = snapshot.schema, snapshot.storage.url
    partitions = {column.lower() for column in snapshot.partition_columns}
    wanted = column_paths.parse_path(name)
    if len(wanted) == 1 and wanted[0].lower() in partitions:
        raise ZORDERING_ON_PARTITION_COLUMN(colName=name, table=table)
    data = StructType(tuple(f for f in schema if f.name.lower() not in partitions))
    found = column_paths.find(data, wanted)
    if found is None or (exact and found[0] != tuple(wanted)):
        nearest = column_paths.nearest_name(name, data.names)
        hint = f"did you mean {nearest!r}?" if nearest else f"there are: {', '.join(data.names[:20])}"
        raise ZORDERING_COLUMN_DOES_NOT_EXIST(columnName=name, table=table, hint=hint, suggestion=nearest)
    path, field = found
    if not has_order(field.type):
        raise DATATYPE_MISMATCH_INVALID_ORDERING_TYPE(
            table=table, columnName=show(path), dataType=str(field.type)
        )
    return path


def has_order(data_type: DataType) -> bool:
    """Whether rows can be arranged by values of a type, as in Spark: not by maps and variants, at any depth."""
    if isinstance(data_type, StructType):
        return all(has_order(field.type) for field in data_type)
    if isinstance(data_type, ArrayType):
        return has_order(data_type.element)
    if isinstance(data_type, MapType):
        return False
    return str(data_type).partition("(")[0].partition(" ")[0] not in _NO_ORDER


def _check_statistics(snapshot: Snapshot, paths: Sequence[Path], files: WriteSpec) -> None:
    leaves = [column.path for column in statistics_columns(files, file_columns(files, none_will_do=True))]
    # A struct has statistics where any field of it has.
    collected = {leaf[:depth] for leaf in leaves for depth in range(1, len(leaf) + 1)}
    mode = snapshot.mapping_mode
    lacking = [show(path) for path in paths if physical_path(snapshot.schema, path, mode) not in collected]
    if lacking:
        raise ZORDERING_ON_COLUMN_WITHOUT_STATS(table=snapshot.storage.url, cols=lacking)
