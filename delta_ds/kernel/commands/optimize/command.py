"""OPTIMIZE in one process, without Spark: one thread a bin; REORG TABLE ... APPLY (UPGRADE UNIFORM (...)).

The latter makes a table one that readers of Iceberg read, in three steps, each of which may be the last one if
something fails; run again, it goes on from there. The properties come first, so that whatever others write from then
on complies; then the files from before are written anew; then the metadata of Iceberg is written with every commit.

Source: delta-spark, `ReorgTableForUpgradeUniformHelper`, `DeltaUpgradeUniformOperation`.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, cast

from delta_ds.conditions.iceberg import COMPAT_VERSION_NOT_SUPPORTED
from delta_ds.kernel.base.environment import scratch_folder
from delta_ds.kernel.base.work import Phase, Work
from delta_ds.kernel.commands.optimize import clustering_sort
from delta_ds.kernel.commands.optimize.commit import commit_optimize, result_metrics
from delta_ds.kernel.commands.optimize.planning import OptimizePlan, plan_optimize
from delta_ds.kernel.commands.optimize.request import UPGRADE, OptimizeRequest
from delta_ds.kernel.commands.optimize.rewriting import Bin, RewritePlan, rewrite_files
from delta_ds.kernel.commands.optimize.zorder_curve import ClusteringCurve
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.format.iceberg_compatibility import (
    ICEBERG,
    check_installed,
    enabled_version,
    of_new_table,
    property_of,
    writes_metadata,
)
from delta_ds.kernel.format.operations import OPTIMIZE, UPGRADE_UNIFORM
from delta_ds.kernel.format.properties import (
    COLUMN_MAPPING_MODE,
    ENABLE_DELETION_VECTORS,
    UNIVERSAL_FORMAT_ENABLED_FORMATS,
)
from delta_ds.kernel.storage.staging import StagedFiles
from delta_ds.kernel.storage.store_errors import NOTHING_COMMITTED, cannot_write
from delta_ds.kernel.transaction.alter.properties import set_properties
from delta_ds.kernel.transaction.alter.table_metadata import with_metadata
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.transaction.table_log import TableLog

# Bins of so many bytes of files together are arranged along a curve at a time.
_HELD_BYTES = 1 << 30


VERSIONS = (1, 2)


@dataclass(frozen=True, slots=True)
class OptimizeResult:
    """What an OPTIMIZE did.

    Attributes
    ----------
    version
        What was committed; None where there was nothing to do.
    metrics
        As delta-spark's result has them.
    """

    version: int | None
    metrics: dict[str, object]


def optimize(
    log: TableLog,
    request: OptimizeRequest | None = None,
    *,
    threads: int | None = None,
    engine_info: str | None = None,
) -> OptimizeResult:
    """Rewrite files of a table, as one commit; its rows stay what they are.

    Parameters
    ----------
    log
        The table.
    request
        What to do; by default small files are joined, and clustered tables clustered.
    threads
        How many bins are rewritten at a time; by default as many as there are processors. Each holds a part of its
        rows, or, where they are arranged along a curve, up to `clustering_sort.IN_MEMORY_BYTES` of files.
    engine_info
        Who writes, for the history.

    Raises
    ------
    UnsupportedFeatureError
        The table needs something of writers that is not supported.
    UnsupportedOperationError, SchemaError, PredicateError
        The table cannot be optimized like that.
    DeltaConcurrentModificationException
        Another commit removed or changed a file that was rewritten. Nothing was committed, nothing is left behind.

    >>> import tempfile, pyarrow as pa
    >>> from delta_ds import DeltaLog
    >>> log = DeltaLog(tempfile.mkdtemp())
    >>> log.write(pa.table({"id": [1]})), log.write(pa.table({"id": [2]}))
    (0, 1)
    >>> optimize(log).metrics["numFilesRemoved"]
    2
    """
    started = time_ns() // 1_000_000
    cores = threads or os.cpu_count() or 1
    with Work(OPTIMIZE.name, log.storage.url) as work:
        with work.phase("planning"):
            plan = plan_optimize(log, request or OptimizeRequest())
        with work.phase("rewriting", total=len(plan.bins), unit="bins") as phase:
            adds = rewrite_all(plan, cores, phase)
        with work.phase("committing", unit="commits"):
            version = commit_optimize(log, plan, adds, engine_info=engine_info)
    return OptimizeResult(version, result_metrics(plan, adds, started, time_ns() // 1_000_000, cores))


def rewrite_all(plan: OptimizePlan, threads: int, phase: Phase | None = None) -> list[AddFile]:
    """Rewrite the files of all bins.

    Parameters
    ----------
    threads
        As for `optimize`.
    phase
        Is told of each bin that is done.

    Returns
    -------
    list of dict
        The bodies of the `add` actions.

    Raises
    ------
    DeltaError
        What a bin ran into; the new files of all bins are deleted.
    """
    at_a_time = max(1, min(threads, len(plan.bins), bins_at_once(plan)))
    bins = [
        partial(rewrite_bin, plan.rewrite, plan.curve, files, number, threads // at_a_time)
        for number, files in enumerate(plan.bins)
    ]
    return _all_or_none(plan.rewrite.storage, bins, at_a_time, phase)


def bins_at_once(plan: OptimizePlan) -> int:
    """How many bins may be rewritten at a time, as far as memory goes."""
    if plan.curve is None:
        return len(plan.bins)
    largest = max((files.size for files in plan.bins), default=0)
    held = min(largest, clustering_sort.IN_MEMORY_BYTES)
    return max(1, _HELD_BYTES // max(1, held))


def _all_or_none(
    storage: Storage, tasks: Sequence[Callable[[], list[AddFile]]], threads: int, phase: Phase | None = None
) -> list[AddFile]:
    """What tasks in threads have written; where one fails, the new files of all are deleted."""
    pool = ThreadPoolExecutor(max(1, threads))
    work = [pool.submit(task) for task in tasks]
    try:
        for future in as_completed(work):
            future.result()
            if phase is not None:
                phase.advance()
    except BaseException:
        # Also where a user interrupts: what runs ends first, what waits does not begin.
        pool.shutdown(cancel_futures=True)
        written = [future for future in work if not future.cancelled() and future.exception() is None]
        with StagedFiles(storage, [add["path"] for future in written for add in future.result()]):
            raise
    pool.shutdown()
    return [add for future in work for add in future.result()]


def rewrite_bin(
    plan: RewritePlan, curve: ClusteringCurve | None, files: Bin, task: int, threads: int = 1
) -> list[AddFile]:
    """Rewrite the files of one bin, in one task.

    Parameters
    ----------
    curve
        Along what rows are arranged; None to keep their order.
    task
        A number for the names of files.
    threads
        How many files are read, or parts of them sorted, at a time.

    Returns
    -------
    list of dict
        The bodies of the `add` actions; errors as `rewrite_files`.
    """
    if curve is None:
        return rewrite_files(plan, files, task, threads)
    if files.size <= clustering_sort.IN_MEMORY_BYTES:
        return clustering_sort.arrange_in_memory(plan, curve, files, task, threads)
    return _arrange_on_disk(plan, curve, files, task, threads)


def _arrange_on_disk(
    plan: RewritePlan, curve: ClusteringCurve, files: Bin, task: int, threads: int
) -> list[AddFile]:
    sample = clustering_sort.sample_slices(files.slices)
    cuts = clustering_sort.cuts_of(
        curve, clustering_sort.sample_rows(plan, curve, sample, threads=threads), files
    )
    with tempfile.TemporaryDirectory(prefix="delta-ds-optimize-", dir=scratch_folder()) as name:
        folder = Path(name)

        def distribute(group: int) -> None:
            blobs = clustering_sort.distribute(plan, cuts, files.slices[group::threads])
            for number, (piece, blob) in enumerate(blobs):
                _put(folder / clustering_sort.piece_file(piece, group, number), blob)

        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(distribute, range(threads)):
                pass
        return _write_outputs(plan, cuts, files, folder, task, threads)


def _put(path: Path, blob: bytes) -> None:
    try:
        path.write_bytes(blob)
    except OSError as error:
        raise cannot_write(f"a temporary file in {path.parent}", error, NOTHING_COMMITTED) from error


def _write_outputs(
    plan: RewritePlan, cuts: clustering_sort.Cuts, files: Bin, folder: Path, task: int, threads: int
) -> list[AddFile]:
    pieces: list[list[Path]] = [[] for _ in range(cuts.outputs)]
    for path in sorted(folder.iterdir()):
        pieces[cuts.output_of(clustering_sort.piece_of(path))].append(path)
    at_a_time = min(threads, cuts.outputs)
    outputs = [
        partial(
            clustering_sort.write_piece_files, plan, cuts, paths, files, task + number, threads // at_a_time
        )
        for number, paths in enumerate(pieces)
    ]
    return _all_or_none(plan.storage, outputs, at_a_time)


def upgrade_uniform(log: TableLog, version: int) -> int:
    """Turn on Iceberg compatibility and UniForm; files that do not comply are written anew in this process.

    Parameters
    ----------
    log
        The table.
    version
        Of Iceberg compatibility: 1 or 2.

    Returns
    -------
    int
        How many files were written anew.

    Raises
    ------
    UnsupportedOperationError
        There is no such version, the table cannot have it, or pyiceberg is missing.
    DeltaConcurrentModificationException
        Another commit got in the way. What was committed until then stays; run it again.
    """
    begin_upgrade(log, version)
    result = optimize(log, OptimizeRequest(kind=UPGRADE))
    finish_upgrade(log)
    return cast("int", result.metrics["numFilesRemoved"])


def begin_upgrade(log: TableLog, version: int) -> None:
    """The first step of `upgrade_uniform`: the properties of the table, where it has others."""
    if version not in VERSIONS:
        raise COMPAT_VERSION_NOT_SUPPORTED(table=log.storage.url, version=version, maxVersion=max(VERSIONS))
    check_installed(log.storage.url)
    txn = log.start_transaction()
    if enabled_version(txn.table_state) == version:
        return
    before = txn.metadata.configuration
    wanted = {property_of(version).name: "true"}
    wanted |= {
        p.name: "false" for p in map(property_of, VERSIONS) if p.name in before and p.name not in wanted
    }
    if COLUMN_MAPPING_MODE.of(before) == "none":
        wanted[COLUMN_MAPPING_MODE.name] = "name"
    wanted[ENABLE_DELETION_VECTORS.name] = "false"
    new = replace(txn.metadata, configuration=of_new_table({**before, **wanted}))
    txn.set_table_state(with_metadata(txn.table_state, new, upgrade=True))
    txn.commit(UPGRADE_UNIFORM, {"properties": json.dumps(wanted, separators=(",", ":"))})


def finish_upgrade(log: TableLog) -> None:
    """The last step of `upgrade_uniform`: the metadata of Iceberg, from now on with every commit."""
    properties = log.open_snapshot().properties
    if not writes_metadata(properties):
        formats = [*UNIVERSAL_FORMAT_ENABLED_FORMATS.of(properties), ICEBERG]
        set_properties(log, {UNIVERSAL_FORMAT_ENABLED_FORMATS.name: ",".join(formats)})
