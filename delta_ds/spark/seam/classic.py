"""A classic session as commands see it: plans, expressions and Spark's own writer are at hand in the JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypeVar

from delta_ds.events.spark import FOREIGN_WORKERS, PORTABLE_SCAN, PORTABLE_WRITE
from delta_ds.kernel.data.rows.plan import ColumnsOf
from delta_ds.records import dataclass
from delta_ds.spark.engines.environment import foreign_workers
from delta_ds.spark.native import load, resolution, snapshot_isolation
from delta_ds.spark.native.jvm import Jvm, NotNative
from delta_ds.spark.native.row_columns import columns_of, stored_rows
from delta_ds.spark.native.scan import numbered_rows
from delta_ds.spark.native.writer import refresh_cached_rows, stage
from delta_ds.spark.seam.classic_expressions import ClassicExpressions
from delta_ds.spark.seam.classic_writes import ClassicWrites
from delta_ds.spark.seam.engine import CLASSIC
from delta_ds.spark.seam.portable import portable_rows
from delta_ds.spark.session_conf import NATIVE_SCAN_CONF, NATIVE_WRITE_CONF, is_off

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.write.plan import WritePlan
    from delta_ds.kernel.write.task import TaskResult
    from delta_ds.spark.native.latest_version import InsertRows
    from delta_ds.spark.seam.engine import RowRules, TablesRead, Transaction

_Table = TypeVar("_Table")

_QUERY_ID = "sql.streaming.queryId"
_DESCRIPTION = "spark.job.description"
# Reading these again gives the same rows, at no cost worth speaking of.
_CONSTANTS = frozenset(["LocalRelation", "Range", "OneRowRelation"])
# Rows of so many bytes go to every executor.
BROADCAST_BYTES = 128 << 20


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
        self.expressions = ClassicExpressions(spark)
        self.writes = ClassicWrites(spark)

    # --- rows

    def read(self, options: Mapping[str, str], schema: StructType | None, insert: InsertRows) -> DataFrame:
        if is_off(self._spark, NATIVE_SCAN_CONF):
            return portable_rows(self._spark, options, schema)
        try:
            return load.load(self._spark, options, schema, insert=insert)
        except NotNative as why:
            PORTABLE_SCAN.log(reason=why.reason)
            # Spark shows it in `explain(extended=True)`, and it has no part in the plan that is executed.
            shown = f"pydelta portable scan: {why.reason}"
            return portable_rows(self._spark, options, schema).alias(shown)

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

    def with_ids_of(self, frame: DataFrame, ids: DataFrame) -> DataFrame:
        return resolution.under_ids(frame, ids)

    def context(self, frame: DataFrame, given: Iterable[DataFrame]) -> resolution.ExpressionContext:
        return resolution.ExpressionContext(frame, given)

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
        row_bytes = int(frame._jdf.schema().defaultSize())
        return rows * row_bytes + variable_bytes <= BROADCAST_BYTES

    # --- writing

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

    # --- jobs

    def tasks(self, per_core: int, otherwise: int) -> int:
        return per_core * self._spark.sparkContext.defaultParallelism

    def cores(self, server_cores: int) -> int:
        return self._spark.sparkContext.defaultParallelism

    def runs_small_jobs(self) -> bool:
        return True

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
