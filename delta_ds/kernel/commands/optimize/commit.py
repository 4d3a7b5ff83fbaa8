"""The commit of an OPTIMIZE, retried on top of commits that left its files alone, and its metrics.

Source: conflict-matrix section 7; delta-spark, `OptimizeExecutor.commitAndRetry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.transaction import CONCURRENT_MODIFICATION
from delta_ds.events.commands import OPTIMIZE_COMMITS_AGAIN
from delta_ds.exceptions import DeltaConcurrentModificationException
from delta_ds.kernel.base.arrow_buffers import texts, true_rows
from delta_ds.kernel.commands.dml.commit import discard_folder
from delta_ds.kernel.commands.optimize.bins import ZCubeStats, columns_text
from delta_ds.kernel.commands.optimize.planning import OptimizePlan
from delta_ds.kernel.commands.optimize.reorg import Description
from delta_ds.kernel.commands.optimize.request import FULL, REORG, UNMAP, partition_predicate
from delta_ds.kernel.commands.optimize.rewriting import rewrite_plan
from delta_ds.kernel.commands.optimize.zorder_curve import HILBERT, ZORDER
from delta_ds.kernel.files.read.plan import vector_descriptor
from delta_ds.kernel.format import operations
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.expressions.tree import Call, Cast, Column, Expression, Literal, fold, quote_name
from delta_ds.kernel.format.operations import Operation
from delta_ds.kernel.format.schema.column_paths import parse_path, show
from delta_ds.kernel.storage.staging import StagedFiles

if TYPE_CHECKING:
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.transaction.table_log import TableLog
    from delta_ds.kernel.transaction.transaction import Transaction


_PRESERVED = {"delta.rowTracking.preserved": "true"}


def commit_optimize(
    log: TableLog,
    plan: OptimizePlan,
    adds: Sequence[AddFile],
    *,
    engine_info: str | None = None,
    user_metadata: str | None = None,
) -> int | None:
    """Commit new files in place of the files they were made from.

    Where others have committed first and this contradicts it, the same files are committed again on top, as long as
    every file they were made of is still there, with the same deleted rows, and partitioned as it was.

    Parameters
    ----------
    log
        The table.
    plan
        What was done.
    adds
        The bodies of the `add` actions of all bins.
    engine_info, user_metadata
        Who writes, and what is said about it, for the history.

    Returns
    -------
    int or None
        The version; None where there was nothing to do.

    Raises
    ------
    DeltaConcurrentModificationException
        A file was removed or changed, or the table described anew. As with every other failure the new files are
        deleted, except where a version may name them (`UncertainWriteError`, interrupts).
    """
    if not plan.bins and plan.description is None:
        return None
    with StagedFiles(log.storage, [add["path"] for add in adds]) as staged:
        transaction = log.start_transaction(engine_info=engine_info)
        if transaction.read_version != plan.version:
            transaction = log.start_transaction(plan.version, engine_info=engine_info)
        while True:
            try:
                return _commit(transaction, plan, adds, user_metadata, staged)
            except DeltaConcurrentModificationException as error:  # noqa: PERF203 - as rare as it is slow
                transaction = log.start_transaction(engine_info=engine_info)
                if not _still_holds(transaction.base, plan):
                    raise
                OPTIMIZE_COMMITS_AGAIN.log(
                    table=log.storage.url, version=transaction.read_version, after=error.condition
                )


def _commit(
    transaction: Transaction,
    plan: OptimizePlan,
    adds: Sequence[AddFile],
    user_metadata: str | None,
    staged: StagedFiles,
) -> int:
    snapshot = transaction.base
    assert snapshot is not None
    request = plan.request
    rows = _input_rows(snapshot, plan)
    if rows is None:
        raise CONCURRENT_MODIFICATION(version=snapshot.version, table=snapshot.storage.url)
    predicate = partition_predicate(snapshot, request)
    transaction.read_predicate(predicate, timezone=request.timezone)
    transaction.read_files(piece.path for piece in plan.slices)
    transaction.remove_live(rows, data_change=False)
    transaction.add_all(adds)
    if plan.description is not None:
        # A file that came meanwhile has the names of before.
        transaction.read_whole_table()
        _describe(transaction, plan.description)
    return transaction.commit(
        operation_name(plan),
        operation_parameters(plan),
        operation_metrics(plan, adds),
        user_metadata=user_metadata,
        tags=_PRESERVED if plan.rewrite.tracking else None,
        staged=staged,
    )


def _describe(transaction: Transaction, description: Description) -> None:
    transaction.set_metadata(description.metadata)
    for name, text in description.domains.items():
        transaction.set_domain_metadata(name, text)


def _input_rows(snapshot: Snapshot, plan: OptimizePlan) -> pa.Array | None:
    """The rewritten files among the live files; None if one is not there, or has other deleted rows."""
    table = snapshot.live_files().table
    wanted = {piece.path: piece.deletion_vector for piece in plan.slices}
    rows = true_rows(pc.is_in(table["path"], value_set=texts(list(wanted))))
    if len(rows) != len(wanted):
        return None
    found = table.select(["path", "deletionVector"]).take(rows)
    vectors = [vector_descriptor(value) for value in found["deletionVector"].to_pylist()]
    same = all(wanted[p] == v for p, v in zip(found["path"].to_pylist(), vectors, strict=True))
    return rows if same else None


def _still_holds(snapshot: Snapshot | None, plan: OptimizePlan) -> bool:
    """Whether the new files can still replace the old ones in a later version."""
    if snapshot is None or plan.description is not None or _input_rows(snapshot, plan) is None:
        return False
    snapshot.table_state.check_writable()
    now = rewrite_plan(snapshot, plan.request.timezone)
    before = plan.rewrite
    return (
        now.reading.partition_columns == before.reading.partition_columns
        and now.tracking == before.tracking
        and now.reading.mapping_mode == before.reading.mapping_mode
    )


def discard_staged(log: TableLog, folder: str) -> None:
    """Delete the new files of an OPTIMIZE that failed, by their folder; what cannot be deleted is logged."""
    discard_folder(log.open_snapshot(), folder)


# --- metrics, and what the history says


def result_metrics(
    plan: OptimizePlan, adds: Sequence[AddFile], started_ms: int, ended_ms: int, cores: int
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
        }
        if vectors
        else None,
        "numTableColumns": len(plan.rewrite.reading.schema),
        "numTableColumnsWithStats": plan.columns_with_statistics,
    }


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
    predicate = columns_text([unresolved_text(parse_predicate(text)) for text in request.where])
    if request.kind == UNMAP:
        return {}
    if request.kind in REORG:
        return {"predicate": predicate, "applyPurge": True}
    clustered = plan.curve is not None and plan.curve.kind == HILBERT
    columns = [show(path) for path in plan.curve.columns] if plan.curve is not None and clustered else []
    parameters = {
        "predicate": predicate,
        "zOrderBy": columns_text([show(parse_path(name)) for name in request.columns]),
        "clusterBy": columns_text(columns),
        "auto": request.auto,
    }
    return parameters | {"isFull": request.kind == FULL} if clustered else parameters


def operation_metrics(plan: OptimizePlan, adds: Sequence[AddFile]) -> dict[str, int]:
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
        **({"numOutputBytes": sum(sizes)} if plan.request.kind == UNMAP else {}),
        "numAddedFiles": len(adds),
        "maxFileSize": sizes[-1],
    }


_INFIX = frozenset(["=", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "div", "&", "|", "^"])
_FUNCTIONS_OF_SPARK = frozenset(["isnull", "isnotnull"])


def unresolved_text(expression: Expression) -> str:
    """The text of an expression that was parsed and not bound.

    >>> from delta_ds.kernel.format.expressions.sql import parse_predicate
    >>> unresolved_text(parse_predicate("key = 'a' AND NOT (n IN (1, 2))"))
    "(('key = a) AND NOT 'n IN (1,2))"
    """
    return fold(expression, _text)


def _text(node: Expression, parts: list[str]) -> str:
    if isinstance(node, Column):
        return "'" + ".".join(map(quote_name, node.path))
    if isinstance(node, Literal):
        return _constant(node.value)
    if isinstance(node, Cast):
        return f"{'try_' * node.safe}cast({parts[0]} as {node.type})"
    return _call(node, parts)


def _call(node: Call, parts: list[str]) -> str:
    name = node.name
    if name in ("and", "or"):
        return reduce(lambda left, right: f"({left} {name.upper()} {right})", parts)
    if name == "<>":
        return f"NOT ({parts[0]} = {parts[1]})"
    if name in _INFIX and len(parts) == 2:
        return f"({parts[0]} {name} {parts[1]})"
    if name == "not":
        return f"NOT {parts[0]}"
    if name == "in":
        return f"{parts[0]} IN ({','.join(parts[1:])})"
    if name == "like":
        escape = f" ESCAPE '{parts[2]}'" if len(parts) == 3 else ""
        return f"{parts[0]} LIKE {parts[1]}{escape}"
    quote = "" if name in _FUNCTIONS_OF_SPARK else "'"
    return f"{quote}{name}({', '.join(parts)})"


def _constant(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"0x{value.hex().upper()}" if isinstance(value, bytes) else str(value)
