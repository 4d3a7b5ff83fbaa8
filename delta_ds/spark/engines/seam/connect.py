"""A session of Spark Connect as commands see it: plans and expressions are the server's, and are asked for by text.

Writes of a session of Spark Connect: casts by the public API, and the data source on the server.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.types import AtomicType, DataType, StringType

from delta_ds.conditions.data import CAST_OVERFLOW_IN_TABLE_INSERT
from delta_ds.conditions.expressions import CAST_INVALID_INPUT
from delta_ds.kernel.format.options.settings import ANSI_POLICY
from delta_ds.spark.base.kinds.frames import active
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.base.table_names import is_read
from delta_ds.spark.engines.connect.expressions import keep_plans_of_columns, plans_named, plans_of
from delta_ds.spark.engines.connect.needed import reads_in, told
from delta_ds.spark.engines.seam.connect_expressions import ConnectExpressions
from delta_ds.spark.engines.seam.engine import CONNECT, is_same, portable_rows
from delta_ds.spark.errors.row_errors import error_column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from delta_ds.kernel.format.options.settings import SessionFacts
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.transaction.write.plan import WritePlan
    from delta_ds.kernel.transaction.write.task import TaskResult
    from delta_ds.spark.engines.classic.load import InsertRows
    from delta_ds.spark.engines.seam.engine import Matched, Pending, TablesRead, Transaction


class ConnectWrites:
    """See `Writes`."""

    def cast(self, rows: DataFrame, columns: Sequence[Matched], facts: SessionFacts) -> DataFrame:
        from pyspark.sql import functions as F

        given = rows.schema.fields
        # By their places: names may be there more than once.
        places = rows.toDF(*[f"c{at}" for at in range(len(given))])
        selected: list[Column] = []
        for column in columns:
            if column.place is None:
                selected.append(column.null())
                continue
            field, value = given[column.place], F.col(f"c{column.place}")
            if not is_same(field.dataType, column.kind):
                if facts.store_assignment == ANSI_POLICY and not facts.ansi:
                    value = _ansi_cast(value, field.dataType, column)
                else:
                    value = value.cast(column.kind)
            selected.append(value.alias(column.name))
        return places.select(*selected)

    @contextmanager
    def overflow_of_inserts(self) -> Iterator[None]:
        from pyspark.errors import PySparkException

        try:
            yield
        except PySparkException as error:
            if _condition(error) != "CAST_OVERFLOW":
                raise
            told: dict[str, Any] = dict(error.getMessageParameters() or {})
            raise CAST_OVERFLOW_IN_TABLE_INSERT(
                sourceType=str(told.get("sourceType", "")).strip('"'),
                targetType=str(told.get("targetType", "")).strip('"'),
                columnName="of that type",
            ) from error

    def check_constants(self, rows: DataFrame) -> None:
        """The server has computed them when it planned the write."""

    def save(self, rows: DataFrame, options: Mapping[str, str], *, overwrite: bool) -> Pending | None:
        return rows, options

    def refresh(self, options: Mapping[str, str]) -> None:
        """What its server has cached a client cannot reach."""

    def reports(self) -> AbstractContextManager[str | None]:
        return nullcontext()  # the server has listeners of its own


def _ansi_cast(value: Column, source: DataType, column: Matched) -> Column:
    """A cast that fails on values which do not fit, in a session whose own casts make null of them."""
    from pyspark.sql import functions as F

    if not isinstance(column.kind, AtomicType):
        return value  # refused where it does not fit: null inside would be no error
    cast = value.try_cast(column.kind)
    refused = CAST_INVALID_INPUT if isinstance(source, StringType) else CAST_OVERFLOW_IN_TABLE_INSERT
    wrong = refused(
        sourceType=source.simpleString().upper(),
        targetType=column.kind.simpleString().upper(),
        columnName=column.name,
    )
    return F.when(value.isNull() | cast.isNotNull(), cast).otherwise(error_column(wrong))


def _condition(error: Any) -> str | None:
    found: str | None = error.getCondition()
    return found


_Table = TypeVar("_Table")


class ConnectFrames:
    """See `Frames`."""

    def with_ids_of(self, frame: DataFrame, ids: DataFrame) -> DataFrame:
        return frame

    def in_place_of(
        self,
        frame: DataFrame,
        frames: Iterable[DataFrame | str],
        expressions: Iterable[object] | None = None,
    ) -> DataFrame:
        named = None if expressions is None else plans_named(frame.sparkSession, expressions)
        if named is not None and not named:
            return frame
        plans = plans_of(frames)
        return standing_for(frame, plans if named is None else plans & named)

    def follow(self) -> None:
        keep_plans_of_columns()

    def columns(self, frame: DataFrame) -> list[Column]:
        return [frame[quoted(name)] for name in frame.columns]

    def has_same_columns(self, one: DataFrame, other: DataFrame) -> bool:
        return False

    def check_join(self, joined: DataFrame, left: DataFrame, right: DataFrame) -> None:
        """Columns are told apart by the plans that they name."""

    def is_constant(self, frame: DataFrame) -> bool:
        return False

    def reads_by_python(self, frame: DataFrame) -> bool:
        return True

    def reads(self, frame: DataFrame, path: str) -> bool:
        relation = frame._plan.plan(frame.sparkSession.client)  # type: ignore[operator]
        return is_read(path, reads_in(relation))

    def estimated_bytes(self, frame: DataFrame) -> int | None:
        return None

    def arrow_rows(self, frame: DataFrame, storage: Storage, most: int) -> None:
        return None

    def measured_bytes(self, frame: DataFrame, rows: int, variable_bytes: int) -> int:
        return variable_bytes

    @contextmanager
    def kept(self, frame: DataFrame) -> Iterator[DataFrame]:
        # What is only cached is computed again where the server does not know the plan for the same.
        with active(frame.sparkSession):
            found = told(frame).localCheckpoint(eager=True)
        yield found

    def variable_bytes(self, frame: DataFrame) -> None:
        """None."""

    def fits_executors(self, frame: DataFrame, rows: int, variable_bytes: int) -> bool:
        return False


def standing_for(frame: DataFrame, plans: Iterable[int]) -> DataFrame:
    """A frame of a client in which columns of frames with other plans mean its columns of the same names."""
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    others = tuple(sorted(plans))
    if not others:
        return frame
    stands = _standing_class()(frame._plan, others)
    return ConnectFrame(stands, frame.sparkSession)  # type: ignore[arg-type]


@cache
def _standing_class() -> type:
    from pyspark.sql.connect import proto
    from pyspark.sql.connect.plan import LogicalPlan

    class Standing(LogicalPlan):
        def __init__(self, child: LogicalPlan, others: Sequence[int]) -> None:
            super().__init__(child)
            self._below, self._others = child, others

        def plan(self, session: Any) -> Any:
            relation = self._below.plan(session)
            # By its own id above them: nothing but what was written for them finds it by these.
            for plan in (*self._others, None):
                above = self._create_proto_relation()
                if plan is not None:
                    above = proto.Relation()
                    above.common.plan_id = plan
                above.project.input.CopyFrom(relation)
                above.project.expressions.add().unresolved_star.SetInParent()
                relation = above
            return relation

    return Standing


class ConnectJobs:
    """See `Jobs`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def parallelism(self) -> None:
        """Not told to a client."""

    def runs_small_jobs(self) -> bool:
        return False

    def runs_tasks_here(self) -> bool:
        return False

    def batch_function(
        self,
        apply: Callable[[_Table, DataFrame, Transaction | None], None],
        table: _Table,
        reopened: Callable[[SparkSession], _Table],
    ) -> Callable[[DataFrame, int], None]:
        """It runs in a process of the server, which is not told the query's id."""

        def function(batch: DataFrame, number: int) -> None:
            apply(reopened(batch.sparkSession), batch, None)

        return function

    def described(self, text: str) -> AbstractContextManager[None]:
        return nullcontext()

    def send(self, archive: Callable[[str], str]) -> str:
        from pyspark.errors import PySparkException

        with tempfile.TemporaryDirectory(prefix="delta-ds-ship-") as folder:
            try:
                self._spark.addArtifacts(archive(folder), pyfile=True)
            except PySparkException as error:
                # Its name is that of its contents, so what is there is the same.
                if error.getCondition() != "ARTIFACT_ALREADY_EXISTS":
                    raise
        return "workers of this session"

    def workers(self) -> tuple[bool, str]:
        return True, "the server's, which are not looked at"


class Connect:
    """See `Engine`. What only a JVM can tell is not known; the server resolves expressions anew for each query."""

    kind = CONNECT
    fixes_values = False

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.expressions = ConnectExpressions(spark)
        self.frames = ConnectFrames()
        self.jobs = ConnectJobs(spark)
        self.writes = ConnectWrites()

    def read(self, options: Mapping[str, str], schema: StructType | None, insert: InsertRows) -> DataFrame:
        return portable_rows(self._spark, options, schema)

    def numbered_rows(
        self,
        snapshot: Snapshot | None,
        options: Mapping[str, str],
        numbers: pa.Array,
        timezone: str,
        names: tuple[str, str],
    ) -> DataFrame | None:
        return None

    def row_rules(self) -> None:
        """None: a client has no session of the server's in which names mean Spark's functions only."""

    def write(
        self,
        rows: DataFrame,
        plan: WritePlan,
        options: Mapping[str, str],
        folder: str,
        problem: str | None,
    ) -> TaskResult | None:
        return None

    def pinned(self, snapshot: Snapshot | None) -> AbstractContextManager[TablesRead | None]:
        return nullcontext()

    def refresh(self, table: str) -> None:
        """Which rows the server has cached a client is not told."""
