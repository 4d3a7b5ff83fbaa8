"""A classic session as commands see it: plans, expressions and Spark's own writer are at hand in the JVM.

Writes of a classic session: casts as Spark's own inserts have them, and Spark's own Parquet writer. Rows of a query as
Arrow data of this process: computed once, measured, and brought here if they are few.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from delta_ds.events.spark import FOREIGN_WORKERS, PORTABLE_SCAN, PORTABLE_WRITE
from delta_ds.kernel.base.arrow_buffers import with_long_offsets
from delta_ds.kernel.files.rows.plan import ColumnsOf
from delta_ds.kernel.format.options.settings import ANSI_POLICY
from delta_ds.kernel.format.options.write import TASKS_OPTION
from delta_ds.kernel.transaction.write.parquet_files import NotPlainError
from delta_ds.records import dataclass
from delta_ds.reporting.listeners import take_reports
from delta_ds.spark.base.kinds.environment import foreign_workers
from delta_ds.spark.base.schema import find_columns
from delta_ds.spark.base.session_conf import NATIVE_SCAN_CONF, NATIVE_WRITE_CONF, is_off
from delta_ds.spark.base.table_names import path_option
from delta_ds.spark.engines.classic import load, resolution, snapshot_isolation, writer
from delta_ds.spark.engines.classic.jvm import GeneratesNumbers, Jvm, NotNative, compile_class
from delta_ds.spark.engines.classic.plain_files import read_plain_files
from delta_ds.spark.engines.classic.projection import ColumnAt, InsertedAt, Projected, project
from delta_ds.spark.engines.classic.row_columns import columns_of, stored_rows
from delta_ds.spark.engines.classic.scan import numbered_rows
from delta_ds.spark.engines.classic.snapshot_isolation import refresh_cached_rows
from delta_ds.spark.engines.classic.writer import stage
from delta_ds.spark.engines.seam.classic_expressions import ClassicExpressions
from delta_ds.spark.engines.seam.engine import CLASSIC, is_same, portable_rows
from delta_ds.spark.errors.translation import failed_jobs

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType as SparkStructType

    from delta_ds.kernel.format.options.settings import SessionFacts
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.transaction.write.plan import WritePlan
    from delta_ds.kernel.transaction.write.task import TaskResult
    from delta_ds.spark.engines.classic.load import InsertRows
    from delta_ds.spark.engines.seam.engine import Matched, Pending, RowRules, TablesRead, Transaction

# Nodes of plans by the texts that show them.
_COMPUTED_TO_BE_COUNTED = ("AdaptiveSparkPlan", "Exchange", "Subquery")


class ClassicWrites:
    """See `Writes`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def cast(self, rows: DataFrame, columns: Sequence[Matched], facts: SessionFacts) -> DataFrame:
        given = rows.schema.fields
        selected: list[Projected] = []
        for column in columns:
            if column.place is None:
                selected.append(column.null())
            elif is_same(given[column.place].dataType, column.kind):
                field = given[column.place]
                selected.append(ColumnAt(column.place, column.name, field.metadata or {}))
            else:
                is_ansi = facts.store_assignment == ANSI_POLICY
                selected.append(InsertedAt(column.place, column.name, column.kind.json(), is_ansi))
        return project(Jvm.of(self._spark), rows, selected)

    def overflow_of_inserts(self) -> AbstractContextManager[None]:
        return nullcontext()  # its casts raise it themselves

    def check_constants(self, rows: DataFrame) -> None:
        rows._jdf.queryExecution().optimizedPlan()

    def save(self, rows: DataFrame, options: Mapping[str, str], *, overwrite: bool) -> Pending | None:
        if is_off(self._spark, NATIVE_WRITE_CONF):
            return rows, options
        try:
            with failed_jobs(f"the write to {path_option(options) or 'a table without path'}"):
                writer.save(rows, options, overwrite=overwrite)
            return None
        except NotNative as why:
            PORTABLE_WRITE.log(reason=why.reason)
            return _by_known_tasks(rows, options) if isinstance(why, GeneratesNumbers) else (rows, options)

    def refresh(self, options: Mapping[str, str]) -> None:
        writer.refresh_written_rows(self._spark, options)

    def reports(self) -> AbstractContextManager[str | None]:
        return take_reports()


def _by_known_tasks(df: DataFrame, options: Mapping[str, str]) -> Pending:
    """Rows and options that say how many tasks write them, where that is known before they are computed.

    Not where a part of the query has to be computed first, as with a shuffle.
    """
    execution = df._jdf.queryExecution()
    plan = str(execution.executedPlan().treeString())
    # To count the partitions of these would begin to compute them.
    if any(word in plan for word in _COMPUTED_TO_BE_COUNTED):
        return df, options
    tasks = max(1, execution.toRdd().getNumPartitions())
    # What is planned once more may be cut otherwise, but into no more than that.
    return df.coalesce(tasks), {**options, TASKS_OPTION: str(tasks)}


# --- its frames and jobs

_Table = TypeVar("_Table")

_QUERY_ID = "sql.streaming.queryId"
_DESCRIPTION = "spark.job.description"
# Reading these again gives the same rows, at no cost worth speaking of.
_CONSTANTS = frozenset(["LocalRelation", "Range", "OneRowRelation"])
# Rows of so many bytes go to every executor.
BROADCAST_BYTES = 128 << 20


class ClassicFrames:
    """See `Frames`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def with_ids_of(self, frame: DataFrame, ids: DataFrame) -> DataFrame:
        return resolution.under_ids(frame, ids)

    def in_place_of(
        self,
        frame: DataFrame,
        frames: Iterable[DataFrame | str],
        expressions: Iterable[object] | None = None,
    ) -> DataFrame:
        return frame  # columns have ids, which stay

    def follow(self) -> None:
        """It does by the ids."""

    def columns(self, frame: DataFrame) -> list[Column]:
        return resolution.attributes(frame)

    def has_same_columns(self, one: DataFrame, other: DataFrame) -> bool:
        return one is other or resolution.same_output(one, other)

    def check_join(self, joined: DataFrame, left: DataFrame, right: DataFrame) -> None:
        if not resolution.joins(joined, left, right):
            raise ValueError("the two sides of a merge must be frames of their own, joined as they are")

    def is_constant(self, frame: DataFrame) -> bool:
        plan = frame._jdf.queryExecution().analyzed()
        while plan.nodeName() == "SubqueryAlias":
            plan = plan.child()
        return plan.nodeName() in _CONSTANTS

    def reads_by_python(self, frame: DataFrame) -> bool:
        """That Spark's own reader reads the newest version of a table the command notices: `CommandSnapshots.reads`.

        A version that is named, and what was read before the command, is the same whoever commits.
        """
        return "RelationV2" in str(Jvm.of(self._spark).logical_plan(frame).treeString())

    def reads(self, frame: DataFrame, path: str) -> bool:
        return snapshot_isolation.reads_table(frame, path)

    def estimated_bytes(self, frame: DataFrame) -> int | None:
        plan = frame._jdf.queryExecution().optimizedPlan()
        return int(str(plan.stats().sizeInBytes())) if plan.deterministic() else None

    def arrow_rows(self, frame: DataFrame, storage: Storage, most: int) -> pa.Table | None:
        try:
            return read_plain_files(frame, storage, most, here=runs_tasks_here(self._spark))
        except NotPlainError:
            return arrow_rows(frame, most)

    @contextmanager
    def kept(self, frame: DataFrame) -> Iterator[DataFrame]:
        from pyspark import StorageLevel

        frame.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            yield frame
        finally:
            frame.unpersist()

    def variable_bytes(self, frame: DataFrame) -> Column:
        """Nested values are measured as text."""
        from pyspark.sql import functions as F
        from pyspark.sql import types as T

        size = F.lit(0).cast("bigint")
        long = (T.StringType, T.BinaryType, T.ArrayType, T.MapType, T.StructType, T.VariantType)
        for column, field in zip(self.columns(frame), frame.schema, strict=True):
            if isinstance(field.dataType, long):
                value = column if isinstance(field.dataType, T.BinaryType) else column.cast("string")
                size += F.coalesce(F.octet_length(value), F.lit(0))
        return size

    def fits_executors(self, frame: DataFrame, rows: int, variable_bytes: int) -> bool:
        if str(self._spark.conf.get("spark.sql.autoBroadcastJoinThreshold")).startswith("-"):
            return False
        return self.measured_bytes(frame, rows, variable_bytes) <= BROADCAST_BYTES

    def measured_bytes(self, frame: DataFrame, rows: int, variable_bytes: int) -> int:
        return rows * int(frame._jdf.schema().defaultSize()) + variable_bytes


def runs_tasks_here(spark: SparkSession) -> bool:
    """Whether the tasks of a session run in the process of its JVM."""
    return re.fullmatch(r"local(\[.*\])?", str(spark.sparkContext.master)) is not None


class ClassicJobs:
    """See `Jobs`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def parallelism(self) -> int:
        return self._spark.sparkContext.defaultParallelism

    def runs_small_jobs(self) -> bool:
        return True

    def runs_tasks_here(self) -> bool:
        return runs_tasks_here(self._spark)

    def batch_function(
        self,
        apply: Callable[[_Table, DataFrame, Transaction | None], None],
        table: _Table,
        reopened: Callable[[SparkSession], _Table],
    ) -> Callable[[DataFrame, int], None]:
        def function(batch: DataFrame, number: int) -> None:
            query = batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
            apply(table, batch, None if query is None else (query, number))

        return function

    @contextmanager
    def described(self, text: str) -> Iterator[None]:
        context = self._spark.sparkContext
        before = context.getLocalProperty(_DESCRIPTION)
        context.setJobDescription(text)
        try:
            yield
        finally:
            context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]  # None takes it away

    def send(self, archive: Callable[[str], str]) -> str:
        context = self._spark.sparkContext
        # Executors fetch it from the driver when they start; this folder is there as long as the application is.
        context.addPyFile(archive(str(context._temp_dir)))
        return "executors"

    def workers(self) -> tuple[bool, str]:
        problem = foreign_workers(self._spark)
        if problem is None:
            return True, str(self._spark.sparkContext.pythonExec)
        FOREIGN_WORKERS.log(reason=problem)
        return False, problem


# --- the session


@dataclass(frozen=True)
class _Rules:
    """See `RowRules`."""

    columns_of: ColumnsOf

    def applied(
        self, rows: DataFrame, plan: WritePlan, places: Sequence[str] = (), unchecked: str | None = None
    ) -> DataFrame | None:
        try:
            return stored_rows(rows, plan, places, unchecked)
        except NotNative:
            return None


class Classic:
    """See `Engine`; what Spark's own reader and writer cannot do is told of, and done by tasks with this package."""

    kind = CLASSIC
    fixes_values = True

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.frames = ClassicFrames(spark)
        self.jobs = ClassicJobs(spark)
        self.writes = ClassicWrites(spark)

    @property
    def expressions(self) -> ClassicExpressions:
        return ClassicExpressions(self._spark)

    def read(
        self, options: Mapping[str, str], schema: SparkStructType | None, insert: InsertRows
    ) -> DataFrame:
        if is_off(self._spark, NATIVE_SCAN_CONF):
            return self._portable_rows(options, schema)
        try:
            return load.load(self._spark, options, schema, insert=insert)
        except NotNative as why:
            PORTABLE_SCAN.log(reason=why.reason)
            # Spark shows it in `explain(extended=True)`, and it has no part in the plan that is executed.
            shown = f"pydelta portable scan: {why.reason}"
            return self._portable_rows(options, schema).alias(shown)

    def _portable_rows(self, options: Mapping[str, str], schema: SparkStructType | None) -> DataFrame:
        if schema is not None:
            # Spark asks the data source for nothing then until rows are read.
            found = load.open_reading(self._spark, options).rows
            find_columns(schema, found.schema, found.table)
        return portable_rows(self._spark, options, schema)

    def numbered_rows(
        self,
        snapshot: Snapshot | None,
        options: Mapping[str, str],
        numbers: pa.Array,
        timezone: str,
        names: tuple[str, str],
    ) -> DataFrame | None:
        if snapshot is None or is_off(self._spark, NATIVE_SCAN_CONF):
            return None
        try:
            return numbered_rows(self._spark, snapshot, options, numbers, timezone, names)
        except NotNative as why:
            PORTABLE_SCAN.log(reason=why.reason)
            return None

    def row_rules(self) -> RowRules | None:
        try:
            return _Rules(columns_of(self._spark))
        except NotNative:
            return None

    def write(
        self,
        rows: DataFrame,
        plan: WritePlan,
        options: Mapping[str, str],
        folder: str,
        problem: str | None,
    ) -> TaskResult | None:
        if is_off(self._spark, NATIVE_WRITE_CONF):
            return None
        try:
            if problem is not None:
                raise NotNative(problem)
            return stage(rows, plan, options, folder)
        except NotNative as why:
            PORTABLE_WRITE.log(reason=why.reason)
            return None

    def pinned(self, snapshot: Snapshot | None) -> AbstractContextManager[TablesRead | None]:
        return snapshot_isolation.pin_snapshots(self._spark, snapshot)

    def refresh(self, table: str) -> None:
        refresh_cached_rows(self._spark, table)


_LARGE_CONF = "spark.sql.execution.arrow.useLargeVarTypes"


def arrow_rows(frame: DataFrame, most: int) -> pa.Table | None:
    """The rows of a frame, which one Spark job computes; a second one brings them.

    `toArrow` brings rows while they are computed, however many they become.

    Parameters
    ----------
    frame
        Of a classic session.
    most
        How many bytes of Arrow data they may be.

    Returns
    -------
    pyarrow.Table or None
        In the order of the frame, instants in UTC. None where they are more than `most`, or more than the executors
        hold in memory.
    """
    import pyarrow as pa
    from pyspark import RDD
    from pyspark.serializers import NoOpSerializer

    schema = frame.limit(0).toArrow().schema  # messages do not tell it
    sent = schema
    if frame.sparkSession.conf.get(_LARGE_CONF, "false") == "true":
        sent = pa.schema([field.with_type(with_long_offsets(field.type)) for field in schema])
    jvm = Jvm.of(frame.sparkSession)
    rows = compile_class(jvm.jvm, jvm.gateway, "ArrowRows")
    kept = rows.computed(frame._jdf)
    try:
        size = int(rows.bytes(kept))
        if not 0 <= size <= most:
            return None
        messages: list[bytes] = RDD(kept, frame.sparkSession.sparkContext, NoOpSerializer()).collect()
    finally:
        kept.unpersist(False)
    batches = [pa.ipc.read_record_batch(pa.py_buffer(message), sent) for message in messages]
    return pa.Table.from_batches(batches, sent).cast(schema)
