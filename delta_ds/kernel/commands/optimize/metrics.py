"""The metrics of an OPTIMIZE, as its result and as operation metrics of the commit.

Source: delta-spark, `OptimizeStats`, `OptimizeMetrics`, `OptimizeExecutor.createMetrics`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from delta_ds.kernel import operations
from delta_ds.kernel.commands.optimize.planning import OptimizePlan
from delta_ds.kernel.commands.optimize.request import FULL, REORG, UNMAP
from delta_ds.kernel.commands.optimize.zcubes import ZCubeStats, columns_text
from delta_ds.kernel.commands.optimize.zorder_curve import HILBERT, ZORDER
from delta_ds.kernel.operations import Operation
from delta_ds.kernel.schema.column_paths import show

Body = Mapping[str, Any]


def result_metrics(
    plan: OptimizePlan, adds: Sequence[Body], started_ms: int, ended_ms: int, cores: int
) -> dict[str, Any]:
    """The struct `metrics` of the row that users get, under delta-spark's names.

    Parameters
    ----------
    adds
        The new files.
    started_ms, ended_ms
        Milliseconds since 1970.
    cores
        How many tasks can run at a time.
    """
    removed = [piece.size for piece in plan.slices]
    vectors = _cardinalities(plan)
    return {
        "numFilesAdded": len(adds),
        "numFilesRemoved": len(removed),
        "filesAdded": _sizes([add["size"] for add in adds]),
        "filesRemoved": _sizes(removed),
        "partitionsOptimized": plan.partitions,
        "zOrderStats": _zorder(plan, removed),
        "clusteringStats": None if plan.zcubes is None else _clustering(plan.zcubes, len(plan.bins)),
        "numBins": len(plan.bins),
        "numBatches": 1,
        "totalConsideredFiles": plan.considered,
        "totalFilesSkipped": plan.considered - len(removed),
        "preserveInsertionOrder": False,
        "numFilesSkippedToReduceWriteAmplification": 0,
        "numBytesSkippedToReduceWriteAmplification": 0,
        "startTimeMs": started_ms,
        "endTimeMs": ended_ms,
        "totalClusterParallelism": cores,
        "totalScheduledTasks": 0,
        "autoCompactParallelismStats": None,
        "deletionVectorStats": {
            "numDeletionVectorsRemoved": len(vectors),
            "numDeletionVectorRowsRemoved": sum(vectors),
        } if vectors else None,
        "numTableColumns": len(plan.rewrite.reading.schema),
        "numTableColumnsWithStats": plan.columns_with_statistics,
    }  # fmt: skip


def _cardinalities(plan: OptimizePlan) -> list[int]:
    vectors = [piece.deletion_vector for piece in plan.slices]
    return [int(vector.cardinality or 0) for vector in vectors if vector is not None]


def _sizes(sizes: Sequence[int]) -> dict[str, Any]:
    return {
        "min": min(sizes, default=None),
        "max": max(sizes, default=None),
        "avg": sum(sizes) / len(sizes) if sizes else 0.0,
        "totalFiles": len(sizes),
        "totalSize": sum(sizes),
    }


def _zorder(plan: OptimizePlan, removed: Sequence[int]) -> dict[str, Any] | None:
    if plan.curve is None or plan.curve.kind != ZORDER:
        return None
    files = {"num": len(removed), "size": sum(removed)}
    return {
        "strategyName": "all",
        "inputCubeFiles": {"num": 0, "size": 0},
        "inputOtherFiles": files,
        "inputNumCubes": 0,
        "mergedFiles": files,
        "numOutputCubes": plan.partitions,
        "mergedNumCubes": None,
    }


def _clustering(found: ZCubeStats, cubes: int) -> dict[str, Any]:
    def files(counted: tuple[int, int]) -> dict[str, int]:
        return {"numFiles": counted[0], "size": counted[1]}

    return {
        "inputZCubeFiles": files(found.cube_files),
        "inputOtherFiles": files(found.other_files),
        "inputNumZCubes": found.cubes,
        "mergedFiles": files(found.merged),
        "numOutputZCubes": cubes,
    }


def operation_name(plan: OptimizePlan) -> Operation:
    """The name of the operation in the history."""
    if plan.request.kind == UNMAP:
        return operations.REMOVE_COLUMN_MAPPING
    return operations.REORG if plan.request.kind in REORG else operations.OPTIMIZE


def operation_parameters(plan: OptimizePlan) -> dict[str, Any]:
    """The `operationParameters` of the commit."""
    request = plan.request
    predicate = columns_text(request.where)
    if request.kind == UNMAP:
        return {}
    if request.kind in REORG:
        return {"predicate": predicate, "applyPurge": True}
    columns = [show(path) for path in plan.curve.columns] if plan.curve else []
    clustered = plan.curve is not None and plan.curve.kind == HILBERT
    parameters = {
        "predicate": predicate,
        "zOrderBy": columns_text([] if clustered else columns),
        "clusterBy": columns_text(columns if clustered else []),
        "auto": request.auto,
    }
    return parameters | {"isFull": request.kind == FULL} if clustered else parameters


def operation_metrics(plan: OptimizePlan, adds: Sequence[Body]) -> dict[str, int]:
    """The `operationMetrics` of the commit."""
    sizes = sorted(int(add["size"]) for add in adds) or [0]
    removed = [piece.size for piece in plan.slices]
    count = len(sizes)
    return {
        "numRemovedFiles": len(removed),
        "numRemovedBytes": sum(removed),
        "p25FileSize": sizes[count // 4],
        "numDeletionVectorsRemoved": len(_cardinalities(plan)),
        "minFileSize": sizes[0],
        "p75FileSize": sizes[count * 3 // 4],
        "p50FileSize": sizes[count // 2],
        "numAddedBytes": sum(sizes),
        "numAddedFiles": len(adds),
        "maxFileSize": sizes[-1],
    }
