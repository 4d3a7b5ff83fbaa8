"""`DeltaTable.optimize()`: compaction, Z-order, clustering, purge."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from functools import partial
from time import time_ns
from typing import TYPE_CHECKING, Any

from delta_ds.api.delta_log import DeltaLog
from delta_ds.conditions.session import EXECUTORS_WITHOUT_PACKAGE
from delta_ds.events.commands import OPTIMIZE_BY_DRIVER
from delta_ds.kernel.base.work import Phase, Work
from delta_ds.kernel.commands.optimize import clustering_sort
from delta_ds.kernel.commands.optimize.command import bins_at_once, rewrite_all
from delta_ds.kernel.commands.optimize.commit import commit_optimize, discard_staged, result_metrics
from delta_ds.kernel.commands.optimize.planning import OptimizePlan, plan_optimize
from delta_ds.kernel.commands.optimize.request import (
    COMPACT,
    FULL,
    PURGE,
    ZORDER,
    OptimizeRequest,
    settings_of,
)
from delta_ds.kernel.format import operations
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.format.options.settings import TIME_ZONE, USER_METADATA
from delta_ds.records import replace
from delta_ds.spark.base.kinds.environment import tasks_problem
from delta_ds.spark.base.kinds.frames import frame_of, work_of
from delta_ds.spark.base.kinds.session_facts import engine_info, facts_of
from delta_ds.spark.commands.by_arrow import in_threads, staging
from delta_ds.spark.commands.optimize_tasks import arrange, rewrite_small
from delta_ds.spark.engines.arguments import NotExecuted, missing_attribute, public_methods
from delta_ds.spark.engines.connect.connect_bridge import ask, run
from delta_ds.spark.engines.seam.choice import engine_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.spark.commands.handle import Handle


_FILES = (
    "struct<min:bigint,max:bigint,avg:double not null,totalFiles:bigint not null,totalSize:bigint not null>"
)
_CUBES = "struct<num:bigint not null,size:bigint not null>"
_CLUSTERED = "struct<numFiles:bigint not null,size:bigint not null>"
# Column for column what delta-spark 4.4 answers.
METRICS = {
    "numFilesAdded": "bigint not null",
    "numFilesRemoved": "bigint not null",
    "filesAdded": _FILES,
    "filesRemoved": _FILES,
    "partitionsOptimized": "bigint not null",
    "zOrderStats": f"struct<strategyName:string,inputCubeFiles:{_CUBES},inputOtherFiles:{_CUBES},"
    f"inputNumCubes:bigint not null,mergedFiles:{_CUBES},numOutputCubes:bigint not null,mergedNumCubes:bigint>",
    "clusteringStats": f"struct<inputZCubeFiles:{_CLUSTERED},inputOtherFiles:{_CLUSTERED},"
    f"inputNumZCubes:bigint not null,mergedFiles:{_CLUSTERED},numOutputZCubes:bigint not null>",
    "numBins": "bigint not null",
    "numBatches": "bigint not null",
    "totalConsideredFiles": "bigint not null",
    "totalFilesSkipped": "bigint not null",
    "preserveInsertionOrder": "boolean not null",
    "numFilesSkippedToReduceWriteAmplification": "bigint not null",
    "numBytesSkippedToReduceWriteAmplification": "bigint not null",
    "startTimeMs": "bigint not null",
    "endTimeMs": "bigint not null",
    "totalClusterParallelism": "bigint not null",
    "totalScheduledTasks": "bigint not null",
    "autoCompactParallelismStats": "struct<maxClusterActiveParallelism:bigint,minClusterActiveParallelism:bigint,"
    "maxSessionActiveParallelism:bigint,minSessionActiveParallelism:bigint>",
    "deletionVectorStats": "struct<numDeletionVectorsRemoved:bigint not null,"
    "numDeletionVectorRowsRemoved:bigint not null>",
    "numTableColumns": "bigint not null",
    "numTableColumnsWithStats": "bigint not null",
}
SCHEMA = f"path string, metrics struct<{','.join(f'{name}:{kind}' for name, kind in METRICS.items())}>"

# What opening a file counts for.
_OPEN_BYTES = 64 << 10
_ORDERED_IN_MEMORY = 4
# Rows of larger bins together are not sorted by files in the folder of this machine: tasks have Spark's folders for it.
_ON_DISK_BYTES = 2 << 30


@public_methods
class DeltaOptimizeBuilder:
    """The methods of an OPTIMIZE; made by `DeltaTable.optimize`.

    Every `execute...` commits at most once, changes no row, and returns one row: `path` string and `metrics`, a struct
    that says what was done. Where there is nothing to do there is no commit.

    Examples
    --------
    >>> table = DeltaTable.forPath(spark, "/data/orders")
    >>> done = table.optimize().where("country = 'DE'").executeCompaction().first()
    >>> done.metrics.numFilesRemoved, done.metrics.numFilesAdded
    (2, 1)
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._where: tuple[str, ...] = ()
        self._unfinished = NotExecuted(f"the OPTIMIZE of {handle.where}")

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Only files of partitions that match; given twice, both must hold.

        Parameters
        ----------
        partitionFilter
            Spark SQL over partition columns.

        Examples
        --------
        >>> optimize = DeltaTable.forPath(spark, "/data/orders").optimize()
        >>> optimize.where("country = 'FR'").executeCompaction().first().metrics.totalConsideredFiles
        1
        """
        self._where = (*self._where, partitionFilter)
        return self

    def executeCompaction(self) -> DataFrame:
        """Join small files, and those with many deleted rows; arrange what is new in a clustered table.

        Raises
        ------
        PredicateError
            The filter names another column than partition columns.
        UnsupportedOperationError
            A filter on a clustered table.
        DeltaConcurrentModificationException
            Another commit removed or changed a file that was rewritten. Nothing was committed.

        Examples
        --------
        >>> optimize = DeltaTable.forPath(spark, "/data/orders").optimize()
        >>> optimize.executeCompaction().select("metrics.numFilesAdded", "metrics.numFilesRemoved").show()
        +-------------+---------------+
        |numFilesAdded|numFilesRemoved|
        +-------------+---------------+
        |            1|              2|
        +-------------+---------------+
        """
        return self._execute(COMPACT)

    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Arrange the rows of every partition along a Z-order curve through some columns.

        Parameters
        ----------
        cols
            Columns as in Spark SQL, nested ones too, of any type that has an order.

        Raises
        ------
        SchemaError, UnsupportedOperationError
            A column does not exist, is a partition column, or has no order or no statistics; or the table is
            clustered, and so has an order of its own. Else as `executeCompaction`.

        Examples
        --------
        >>> optimize = DeltaTable.forPath(spark, "/data/orders").optimize()
        >>> optimize.executeZOrderBy("id", "amount").first().metrics.zOrderStats.strategyName
        'all'
        """
        given: Sequence[Any] = cols[0] if len(cols) == 1 and not isinstance(cols[0], str) else cols
        return self._execute(ZORDER, given)

    def executePurge(self) -> DataFrame:
        """Rewrite every file that has deleted rows, without them: `REORG TABLE ... APPLY (PURGE)`.

        Raises
        ------
        DeltaError
            As `executeCompaction`.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.setProperties({"delta.enableDeletionVectors": "true"})
        >>> compacted = table.optimize().executeCompaction()
        >>> deleted = table.delete("id = 1")
        >>> table.optimize().executePurge().first().metrics.deletionVectorStats.numDeletionVectorRowsRemoved
        1
        """
        return self._execute(PURGE)

    def executeFull(self) -> DataFrame:
        """Arrange a clustered table anew where it was arranged by other columns: `OPTIMIZE ... FULL`.

        Raises
        ------
        UnsupportedOperationError
            The table is not clustered. Else as `executeCompaction`.

        Examples
        --------
        >>> orders = spark.read.format("pydelta").load("/data/orders")
        >>> orders.write.format("pydelta").clusterBy("id").save("/data/clustered")
        >>> table = DeltaTable.forPath(spark, "/data/clustered")
        >>> table.clusterBy(["amount"])
        >>> table.optimize().executeFull().first().metrics.numFilesAdded
        1
        """
        return self._execute(FULL)

    def __repr__(self) -> str:
        return f"<OPTIMIZE of {self._handle.where}: nothing happens before execute...()>"

    if not TYPE_CHECKING:  # which would let every name pass

        def __getattr__(self, name):
            if not name.startswith("_"):
                self._unfinished.done()  # this error says enough
            raise missing_attribute(self, name, "first call one of execute...(), whose answer is a DataFrame")

    def _execute(self, kind: str, columns: Sequence[str] = ()) -> DataFrame:
        self._unfinished.done()
        asked = session_request(self._handle.spark)
        return run_optimize(
            self._handle, replace(asked, kind=kind, where=self._where, columns=tuple(columns))
        )


def session_request(spark: SparkSession) -> OptimizeRequest:
    """A compaction of all files with the sizes that a session has.

    Raises
    ------
    InvalidOptionError
        A value that a setting does not take.
    """
    facts = facts_of(spark)
    return OptimizeRequest(
        settings=settings_of(facts.settings),
        timezone=facts.settings[TIME_ZONE],
        exact_names=facts.case_sensitive,
    )


def run_optimize(handle: Handle, request: OptimizeRequest) -> DataFrame:
    """Run an OPTIMIZE; see `DeltaOptimizeBuilder`."""
    path = f"file:{handle.where}" if handle.where.startswith("/") else handle.where
    return frame_of(handle.spark, [(path, optimize_files(handle, request))], SCHEMA)


def optimize_files(handle: Handle, request: OptimizeRequest) -> dict[str, Any]:
    """Run an OPTIMIZE, and tell what it did: `metrics` of the row that users get."""
    spark, log = handle.spark, handle.log
    started = time_ns() // 1_000_000
    with work_of(spark, operations.OPTIMIZE.name, handle.where) as work:
        with work.phase("planning"):
            plan, server_cores = ask(log, _plan_on_server, request)
        cores, adds = _carry_out(handle, plan, server_cores, work)
    return result_metrics(plan, adds, started, time_ns() // 1_000_000, cores)


def _carry_out(
    handle: Handle, plan: OptimizePlan, server_cores: int, work: Work
) -> tuple[int, list[AddFile]]:
    """Rewrite and commit; how many tasks can run at a time, and the new files."""
    spark, log = handle.spark, handle.log
    jobs = engine_of(spark).jobs
    # Where it is not told, as many as the machine that the log is read on has cores.
    cores = jobs.parallelism() or server_cores
    adds: list[AddFile] = []
    if plan.bins or plan.description is not None:
        plan = replace(plan, rewrite=replace(plan.rewrite, folder=str(uuid.uuid4())))
        with staging(handle.where) as staged:
            staged.deleted_by(partial(run, log, discard_staged, plan.rewrite.folder))
            described = jobs.described(f"OPTIMIZE {handle.where}: {len(plan.bins)} bins")
            with described, work.phase("rewriting", total=len(plan.bins), unit="bins") as phase:
                adds = _rewrite(spark, plan, cores, phase) if plan.bins else []
            user_metadata = spark.conf.get(USER_METADATA.full_name, None)
            with work.phase("committing", unit="commits"), staged.publishing():
                run(log, commit_optimize, plan, adds, engine_info=engine_info(), user_metadata=user_metadata)
    return cores, adds


def _plan_on_server(log: DeltaLog, request: OptimizeRequest) -> tuple[OptimizePlan, int]:
    return plan_optimize(log, request), os.cpu_count() or 1


def _rewrite(spark: SparkSession, plan: OptimizePlan, cores: int, phase: Phase) -> list[AddFile]:
    here = _in_threads(spark, plan)
    most = clustering_sort.IN_MEMORY_BYTES
    if here:
        most = max(most, _ON_DISK_BYTES // min(cores, bins_at_once(plan), len(plan.bins)))
    large = [n for n, files in enumerate(plan.bins) if plan.curve is not None and files.size > most]
    if here and not large:
        return rewrite_all(plan, cores, phase)
    if not large and not _can_tasks(spark, plan):
        return rewrite_all(plan, os.cpu_count() or 1, phase)
    if large and (problem := tasks_problem(spark)) is not None:
        raise EXECUTORS_WITHOUT_PACKAGE(
            operation=operations.OPTIMIZE.name, table=plan.rewrite.storage.url, reason=problem
        )
    small = sorted(set(range(len(plan.bins))) - set(large))
    adds = rewrite_small(spark, plan, small) if small else []
    phase.advance(len(small))
    for number in phase.each(large):
        adds += arrange(spark, plan, number, cores)
    return adds


def _in_threads(spark: SparkSession, plan: OptimizePlan) -> bool:
    # With a curve all rows of a bin are in memory.
    share = 1 if plan.curve is None else _ORDERED_IN_MEMORY
    files = sum(len(files.slices) for files in plan.bins)
    return in_threads(spark, engine_of(spark).jobs, sum(files.size for files in plan.bins), files, share)


def _can_tasks(spark: SparkSession, plan: OptimizePlan) -> bool:
    """Whether tasks can rewrite files; where they cannot, the driver does, as slow as that may be."""
    problem = tasks_problem(spark)
    if problem is not None:
        OPTIMIZE_BY_DRIVER.log(table=plan.rewrite.storage.url, reason=problem)
    return problem is None
