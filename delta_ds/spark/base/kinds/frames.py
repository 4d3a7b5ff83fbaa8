"""DataFrames of rows on the driver, DataFrames through Python tasks on Arrow batches, and how far their stages are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.base.work import Work, silence
from delta_ds.spark.base import wire
from delta_ds.spark.base.kinds.environment import own_python
from delta_ds.spark.base.kinds.kind import is_connect
from delta_ds.spark.base.processes import OfThisVersion
from delta_ds.spark.base.schema import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import StatusTracker
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.kernel.base.work import Phase


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Within the block, a session is the active one of this thread: of the JVM, or of a client of Spark Connect.

    Where Spark looks a data source up by its name it asks the active session for those in Python. A thread that was
    just begun has none, and another one may have another session. A client takes the active session for that of a
    frame that the server keeps, whichever session had it kept.
    """
    if is_connect(spark):
        of_thread = type(spark)._active_session  # type: ignore[attr-defined]
        known = getattr(of_thread, "session", None)
        of_thread.session = spark
        try:
            yield
        finally:
            of_thread.session = known
        return
    jvm = spark._jvm
    assert jvm is not None
    sessions = type(spark)._get_j_spark_session_class(jvm)
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def frame_of(spark: SparkSession, rows: Any, schema: Any = None) -> DataFrame:
    """`createDataFrame`, which in a classic session also makes that session the active one.

    Parameters
    ----------
    rows
        Tuples, or a `pyarrow.Table`.
    schema
        As of `createDataFrame`; None: that of the table.
    """
    if is_connect(spark):
        return spark.createDataFrame(rows, schema)
    kind = type(spark)
    in_python = kind._activeSession
    try:
        with active(spark):
            return spark.createDataFrame(rows, schema)
    finally:
        kind._activeSession = in_python


def frame(spark: SparkSession, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> DataFrame:
    """Rows as a DataFrame.

    Parameters
    ----------
    rows
        By column; others are left out.
    columns
        Names and types in Spark's words.
    """
    schema = ", ".join(f"{name} {data_type}" for name, data_type in columns.items())
    return frame_of(spark, [tuple(row[name] for name in columns) for row in rows], schema)


def nothing(spark: SparkSession) -> DataFrame:
    """A DataFrame without rows and columns, which is what some commands of delta-spark return."""
    return spark.range(0).select()


def map_in_arrow(
    frame: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: str
) -> DataFrame:
    """What a function makes of the rows of each task; as `DataFrame.mapInArrow`.

    Parameters
    ----------
    frame
        The rows; each column has a name of its own.
    function
        Runs in the tasks: takes batches of them, yields batches of the result.
    schema
        Of the result, as DDL.
    """
    function = OfThisVersion(function)
    if is_connect(frame):
        # The client itself does not start without pandas.
        return frame.mapInArrow(function, schema)
    from pyspark.sql import DataFrame
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    task = UserDefinedFunction(function, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    with own_python(frame.sparkSession):
        column = task(*[frame[quoted(name)] for name in frame.columns])
    return DataFrame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)


def run_tasks(rows: DataFrame, work: Callable[[Iterator[pa.RecordBatch], int], Any]) -> list[Any]:
    """Hand rows to tasks with this package.

    Parameters
    ----------
    rows
        Their columns may have any names.
    work
        What a task does with batches of them, given its number.

    Returns
    -------
    list
        What the tasks answer; `wire.py` has a form for it.
    """
    names = rows.columns

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        named = (batch.rename_columns(names) for batch in batches)
        answer = work(named, context.partitionId() if context else 0)
        yield pa.RecordBatch.from_pydict({"answer": [wire.encode(answer)]})

    # Whoever makes a function of columns parses their names.
    plain = rows.toDF(*(f"c{at}" for at in range(len(names))))
    return [wire.decode(row[0]) for row in map_in_arrow(plain, task, "answer string").collect()]


def stages_of(spark: SparkSession) -> StatusTracker | None:
    """What tells of the stages that run; None on Spark Connect, whose clients show progress of their own."""
    return None if is_connect(spark) else spark.sparkContext.statusTracker()


_EVERY_S = 0.5
_SETTING = "spark.ui.showConsoleProgress"


@contextmanager
def progress_of(spark: SparkSession) -> Iterator[None]:
    """Show progress in a block only where the session shows that of Spark's jobs."""
    with silence(str(spark.conf.get(_SETTING, "false")).lower() != "true"):
        yield


@contextmanager
def tasks_counted(spark: SparkSession, phase: Phase, things: int | None = None) -> Iterator[None]:
    """Tell how far the Spark jobs of a block are, by the tasks that have ended.

    On Spark Connect the client has progress of its own.

    Parameters
    ----------
    things
        What the phase counts, shared out among the tasks; None: it counts tasks.
    """
    stages = stages_of(spark) if phase.is_told else None
    if stages is None:
        yield
        return
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(stages, phase, things, ended), daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()


def _watch(tracker: StatusTracker, phase: Phase, things: int | None, ended: threading.Event) -> None:
    seen: dict[int, tuple[int, int]] = {}
    while not ended.wait(_EVERY_S):
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None:
                seen[stage] = (info.numCompletedTasks, info.numTasks)
        # A stage that is not active any more has ended.
        active = set(tracker.getActiveStageIds())
        done = sum(now if stage in active else all_ for stage, (now, all_) in seen.items())
        total = sum(all_ for _, all_ in seen.values())
        if total:
            phase.reach(done if things is None else things * done // total, things or total)


@contextmanager
def work_of(spark: SparkSession, command: str, table: str) -> Iterator[Work]:
    """A command of a session, from its first phase to its report."""
    with progress_of(spark), Work(command, table) as work:
        yield work
