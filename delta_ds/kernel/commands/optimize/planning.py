"""The plan of an OPTIMIZE, made from the log alone.

Source: delta-spark, `OptimizeExecutor.optimize`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from delta_ds.kernel.base.arrow_buffers import field_of, integers, numbers
from delta_ds.kernel.base.nested_arrays import array_of_values
from delta_ds.kernel.commands.optimize import bins
from delta_ds.kernel.commands.optimize.bins import ZCubeStats
from delta_ds.kernel.commands.optimize.reorg import Description, to_rewrite, without_mapping
from delta_ds.kernel.commands.optimize.request import (
    FULL,
    REORG,
    UNMAP,
    OptimizeRequest,
    check_kind,
    clustering_curve_columns,
    partition_predicate,
    zorder_columns,
)
from delta_ds.kernel.commands.optimize.rewriting import Bin, RewritePlan, rewrite_plan
from delta_ds.kernel.commands.optimize.zorder_curve import HILBERT, ZORDER, ClusteringCurve, Numbers
from delta_ds.kernel.files.read.plan import FileSlice, file_slices
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.format import operations
from delta_ds.kernel.format.features import CLUSTERING
from delta_ds.kernel.format.options.write import checked_codec
from delta_ds.kernel.format.properties import DATA_SKIPPING_NUM_INDEXED_COLS, TARGET_FILE_SIZE
from delta_ds.kernel.format.schema.column_paths import show
from delta_ds.kernel.storage.maintenance import Maintenance
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.transaction.table_log import TableLog

_DEFAULT_FILE_SIZE = 1 << 30


@dataclass(frozen=True, slots=True)
class OptimizePlan:
    """What an OPTIMIZE rewrites, and how. Can be pickled.

    Attributes
    ----------
    request
        What was asked for.
    rewrite
        How files are read and written.
    version
        The version that was read.
    bins
        Which files are rewritten, and which of them together.
    curve
        Along what rows are arranged; None where they keep their order.
    considered
        How many files the request speaks of.
    partitions
        How many partitions have files to rewrite.
    zcubes
        What a clustering found; None for everything else.
    columns_with_statistics
        How many columns of the table have statistics, as delta-spark counts them.
    description
        What the commit makes of the table's metadata; None where it stays.
    """

    request: OptimizeRequest
    rewrite: RewritePlan
    version: int
    bins: tuple[Bin, ...]
    curve: ClusteringCurve | None
    considered: int
    partitions: int
    zcubes: ZCubeStats | None
    columns_with_statistics: int
    description: Description | None = None

    @property
    def slices(self) -> list[FileSlice]:
        """The files that are rewritten."""
        return [piece for files in self.bins for piece in files.slices]


def plan_optimize(log: TableLog, request: OptimizeRequest) -> OptimizePlan:
    """Plan an OPTIMIZE of the newest version.

    No Python object is made for a file that stays as it is; statistics are read for files with deleted rows only.

    Parameters
    ----------
    log
        The table.
    request
        What to do.

    Raises
    ------
    UnsupportedFeatureError
        The table needs something of writers that is not supported.
    UnsupportedOperationError, SchemaError, PredicateError
        The table cannot be optimized like that.
    """
    snapshot = log.newest()
    name = operations.REORG.name if request.kind in REORG else operations.OPTIMIZE.name
    log.storage.check_allowed(Maintenance.OPTIMIZE, name)
    return plan_for(snapshot, request)


def plan_for(snapshot: Snapshot, request: OptimizeRequest) -> OptimizePlan:
    """As `plan_optimize`, for a version that is loaded already."""
    snapshot.table_state.check_writable()
    check_kind(snapshot, request)
    description = without_mapping(snapshot, request.mode_property) if request.kind == UNMAP else None
    compression = request.settings.compression
    rewrite = rewrite_plan(snapshot, request.timezone, description, compression)
    curve = _curve(snapshot, request, rewrite)
    rows = _files_to_consider(snapshot, request)
    table = snapshot.live_files().table
    partitions = bins.partition_numbers(table.take(integers(rows)), snapshot.physical_partition_columns)
    places, zcube_counts = _places(snapshot, request, curve, rows)
    chosen = [rows[p] for p in places]
    if chosen:
        checked_codec(compression)
    limit = DATA_SKIPPING_NUM_INDEXED_COLS.of(snapshot.metadata.configuration)
    return OptimizePlan(
        request=request,
        rewrite=rewrite,
        version=snapshot.version,
        bins=_bins(snapshot, request, curve, chosen),
        curve=curve,
        considered=len(rows),
        partitions=len(np.unique(partitions[np.concatenate(places)])) if places else 0,
        zcubes=zcube_counts,
        columns_with_statistics=min(int(limit), len(snapshot.schema)),
        description=description,
    )


def file_size(properties: Mapping[str, str], request: OptimizeRequest) -> int:
    """The target size of new files in bytes: the table's property first, unless a write asked for a size."""
    own = None if request.auto else TARGET_FILE_SIZE.of(properties)
    return int(own or request.settings.max_file_size or _DEFAULT_FILE_SIZE)


def _curve(snapshot: Snapshot, request: OptimizeRequest, rewrite: RewritePlan) -> ClusteringCurve | None:
    if request.kind == ZORDER and request.columns:
        files = rewrite.files if request.settings.check_statistics else None
        return ClusteringCurve(ZORDER, zorder_columns(snapshot, request, files))
    if request.kind not in REORG and snapshot.protocol.supports(CLUSTERING) and snapshot.clustering_columns:
        return ClusteringCurve(HILBERT, clustering_curve_columns(snapshot))
    return None


def _files_to_consider(snapshot: Snapshot, request: OptimizeRequest) -> Numbers:
    """The files that the request is about, as row numbers."""
    predicate = partition_predicate(snapshot, request)
    if predicate is not None:
        return numbers(Scan(snapshot, predicate, timezone=request.timezone).pruning.rows)
    if request.partitions is None:
        return np.arange(snapshot.live_files().num_rows, dtype=np.int64)
    return in_partitions(snapshot, request.partitions)


def in_partitions(snapshot: Snapshot, partitions: Sequence[Mapping[str, str | None]]) -> Numbers:
    """The live files of some partitions, as row numbers.

    Parameters
    ----------
    partitions
        `partitionValues` as the log has them.
    """
    table = snapshot.live_files().table
    if not snapshot.partition_columns:
        return np.arange(table.num_rows, dtype=np.int64)
    names = snapshot.physical_partition_columns
    chosen = pa.table(
        {name: array_of_values([p.get(name) for p in partitions], pa.string()) for name in names}
    )
    stored = pa.table({name: field_of(table["partitionValues"], name) for name in names})
    both = pa.concat_tables([stored, chosen]).combine_chunks()
    columns = [column.combine_chunks() for column in both.columns]
    nested = pa.table({"partitionValues": pa.StructArray.from_arrays(columns, names=list(names))})
    codes = bins.partition_numbers(nested, names)
    return np.flatnonzero(np.isin(codes[: len(stored)], codes[len(stored) :])).astype(np.int64)


def _places(
    snapshot: Snapshot, request: OptimizeRequest, curve: ClusteringCurve | None, rows: Numbers
) -> tuple[list[Numbers], ZCubeStats | None]:
    """The files of each bin, as places among `rows`."""
    files = snapshot.live_files()
    table = files.table.take(integers(rows))
    sizes = numbers(table["size"])
    partitions = bins.partition_numbers(table, snapshot.physical_partition_columns)
    settings = request.settings
    target = file_size(snapshot.metadata.configuration, request)
    if curve is not None and curve.kind == HILBERT:
        cubes = bins.zcubes_of(snapshot, [show(path) for path in curve.columns])
        taken, zcube_counts = bins.choose_files(cubes, sizes, settings.min_cube_size, request.kind == FULL)
        most = max(settings.target_cube_size, settings.min_cube_size)
        return [taken[b] for b in bins.pack_bins(sizes[taken], partitions[taken], most)], zcube_counts
    if curve is not None:
        return bins.pack_bins(sizes, partitions, int(sizes.sum())), None
    if request.kind in REORG:
        taken = to_rewrite(snapshot, request.kind, table)
        if snapshot.clustering_columns:
            return [taken[i : i + 1] for i in range(len(taken))], None
    else:
        taken = np.searchsorted(rows, bins.compaction_candidates(files, rows, settings)).astype(np.int64)
    taken = taken[bins.by_size(sizes[taken])]
    packed = [taken[b] for b in bins.pack_bins(sizes[taken], partitions[taken], target)]
    return [b for b in packed if len(b) > 1 or request.kind in REORG], None


def _bins(
    snapshot: Snapshot, request: OptimizeRequest, curve: ClusteringCurve | None, chosen: Sequence[Numbers]
) -> tuple[Bin, ...]:
    """The chosen files as Python objects; all others stay rows of Arrow tables."""
    if not chosen:
        return ()
    table = snapshot.live_files().table.take(integers(np.concatenate(chosen)))
    slices = file_slices(table, snapshot.physical_partition_columns)
    ends = np.cumsum([len(rows) for rows in chosen]).tolist()
    groups = [tuple(slices[s:e]) for s, e in zip([0, *ends[:-1]], ends, strict=True)]
    if curve is None:
        if request.kind not in REORG or not snapshot.clustering_columns:
            return tuple(Bin(group) for group in groups)
        tags_and_providers = bins.kept_tags(snapshot, [group[0].path for group in groups])
        return tuple(
            Bin(group, None, tags, provider)
            for group, (tags, provider) in zip(groups, tags_and_providers, strict=True)
        )
    target = file_size(snapshot.metadata.configuration, request)
    columns = [show(path) for path in curve.columns]
    clustered = curve.kind == HILBERT
    return tuple(
        Bin(
            group,
            max(1, sum(piece.size for piece in group) // target),
            bins.new_tags(columns) if clustered else {},
            bins.PROVIDER if clustered else None,
        )
        for group in groups
    )
