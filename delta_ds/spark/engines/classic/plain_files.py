"""Rows that are Parquet files as they are, read by Arrow; writes of them, and of computed rows of partitioned tables.

Rows that are Parquet files do not pass through Spark's rows. Spark decides what is read: its own plan of the query has
to be a scan of Parquet files and names, and its splits become the tasks. So the table gets the files that Spark's
writer would have made, with the same rows. Whatever asks for more is computed by Spark: a filter, a check of the table,
a setting of readers, a file that leaves a reader a choice.

Rows that Spark has computed, completed and checked come to the tasks of a partitioned table as Arrow batches: Spark's
writer sorts them and opens a file for each partition, at two to three times the processor time.
"""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from delta_ds.conditions.session import PYTHON_WORKERS_WITHOUT_PACKAGE
from delta_ds.exceptions import StorageError
from delta_ds.kernel.files.read.reader import threads_for
from delta_ds.kernel.files.rows.casts import match_names
from delta_ds.kernel.format.schema.field_metadata import COLLATIONS
from delta_ds.kernel.format.schema.types import (
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    StructType,
    is_nested,
)
from delta_ds.kernel.transaction.write.parquet_files import (
    NotPlainError,
    ParquetColumns,
    Read,
    Split,
    SplitRows,
    check_whole,
)
from delta_ds.kernel.transaction.write.task import TaskResult, WriteSign, write_rows
from delta_ds.records import dataclass
from delta_ds.spark.base.kinds.environment import tasks_problem
from delta_ds.spark.base.kinds.frames import map_in_arrow, run_tasks
from delta_ds.spark.base.schema import from_spark, quoted
from delta_ds.spark.base.session_conf import ARROW_WRITE_CONF, is_little, is_off
from delta_ds.spark.engines.classic.jvm import Jvm, NotNative, compile_class
from delta_ds.spark.engines.classic.row_columns import stored_rows
from delta_ds.spark.errors.translation import as_delta_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.transaction.write.plan import WritePlan
    from delta_ds.spark.base.kinds.java_object import JavaObject


_Item = TypeVar("_Item")
_Done = TypeVar("_Done")

# Settings that change what Spark reads, with the only value that readers need no rule for.
_READING = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
}
# The same, where there are dates or timestamps.
_READING_MOMENTS = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "corrected",
    "spark.sql.parquet.int96RebaseModeInRead": "corrected",
    "spark.sql.parquet.int96TimestampConversion": "false",
}
_MOMENTS = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_OF_SPARK = "org.apache.spark.sql."
# Rows that are held are measured every so many.
_MEASURED_ROWS = 1 << 9
# The commit protocol of a session that sets none.
_COMMIT_PROTOCOL = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"


class OnlySparkError(NotPlainError):
    """The session leaves writes of any rows to Spark."""


@dataclass(frozen=True)
class PlainFiles:
    """Rows that are Parquet files: their columns, for each task its splits, and whether threads do without tasks."""

    columns: ParquetColumns
    tasks: tuple[tuple[Split, ...], ...]
    in_threads: bool


def find_plain_files(df: DataFrame, plan: WritePlan) -> PlainFiles:
    """The files that the rows of a write are.

    Parameters
    ----------
    df
        The rows, in a classic session.
    plan
        Of the write.

    Raises
    ------
    NotPlainError
        They are more than that, or the write does more than to store them.
    OnlySparkError
        The session leaves writes of any rows to Spark.
    """
    _check_writing(df)
    if plan.joins_small_files:
        raise NotPlainError("small files are joined before they are written")
    _check_rows(df, plan)
    found = _found(df, plan.storage)
    if not found.in_threads:
        check_tasks(df)
    return found


def read_plain_files(df: DataFrame, storage: Storage, most: int, *, here: bool) -> pa.Table | None:
    """The rows of a query that are Parquet files, read by threads of this process.

    Parameters
    ----------
    df
        The query, in a classic session.
    storage
        Of a table in the same store.
    most
        How many bytes they may be.
    here
        Whether this process reads large files too.

    Returns
    -------
    pyarrow.Table or None
        None where they are more than `most` bytes.

    Raises
    ------
    NotPlainError
        They are more than that, or executors are to read them.
    """
    if (listener := _listener(df)) is not None:
        raise NotPlainError(listener)
    found = _found(df, storage)
    if not (here or found.in_threads):
        raise NotPlainError("executors read files that are not small")
    held = Counter[str]()  # bytes; a few rows too many by several threads at once do no harm

    def rows_of(task: Sequence[Split]) -> tuple[list[pa.RecordBatch], Read]:
        rows, batches = SplitRows(storage, found.columns, task, _MEASURED_ROWS), []
        for batch in rows:
            held["bytes"] += batch.nbytes
            if held["bytes"] > most:
                break
            batches.append(batch)
        return batches, rows.rows

    tables = _in_threads(rows_of, storage, found.tasks)
    if held["bytes"] > most:
        return None
    check_whole(read for _, read in tables)
    return pa.Table.from_batches([batch for batches, _ in tables for batch in batches], found.columns.arrow)


def _found(df: DataFrame, storage: Storage) -> PlainFiles:
    schema = from_spark(df.schema)
    _check_flat(schema)
    if any(COLLATIONS in field.metadata for field in schema):
        raise NotPlainError("texts are compared by rules of their own")
    _check_reading(df)
    jvm = Jvm.of(df.sparkSession)
    try:
        plain = compile_class(jvm.jvm, jvm.gateway, "PlainFiles")
    except NotNative as why:
        raise NotPlainError(why.reason) from why
    # Planned anew: files are listed now, and nothing of it has run yet.
    query = jvm.data_frame(jvm.logical_plan(df))
    found = json.loads(plain.describe(query._jdf.queryExecution()))
    if "reason" in found:
        raise NotPlainError(found["reason"])
    columns = ParquetColumns(schema, tuple(found["sources"]))
    tasks = tuple(filter(None, (tuple(_split(storage, *split) for split in task) for task in found["tasks"])))
    splits = [split for task in tasks for split in task]
    in_threads = is_little(df.sparkSession, sum(split.length for split in splits), len(splits))
    return PlainFiles(columns, tasks, in_threads)


def _split(storage: Storage, url: str, start: int, length: int, size: int) -> Split:
    try:
        return Split(storage.resolve(url), start, length, size)
    except StorageError as error:
        raise NotPlainError(error.text) from error


def _check_reading(df: DataFrame) -> None:
    spark = df.sparkSession
    moments = any(field.type in _MOMENTS for field in from_spark(df.schema))
    for name, needed in (_READING | _READING_MOMENTS if moments else _READING).items():
        if str(spark.conf.get(name)).lower() != needed:
            raise NotPlainError(f"{name} is set")


def _check_writing(df: DataFrame) -> None:
    spark = df.sparkSession
    if is_off(spark, ARROW_WRITE_CONF):
        raise OnlySparkError(f"{ARROW_WRITE_CONF} is false")
    if str(spark.sparkContext.getConf().get("spark.speculation", "false")).lower() != "false":
        raise OnlySparkError("files of attempts that came too late would stay")
    session: JavaObject = spark._jsparkSession
    if session.sessionState().conf().fileCommitProtocolClass() != _COMMIT_PROTOCOL:
        raise OnlySparkError("the session has a commit protocol of its own")
    if not session.sessionState().newHadoopConf().getPropsWithPrefix("parquet.").isEmpty():
        raise OnlySparkError("Hadoop's configuration says how Parquet files are written")
    if (listener := _listener(df)) is not None:
        raise OnlySparkError(listener)


def _listener(df: DataFrame) -> str | None:
    """Who is told of queries is told what they read and write; None where there is nobody."""
    for listener in df.sparkSession._jsparkSession.listenerManager().listListeners():
        if not str(listener.getClass().getName()).startswith(_OF_SPARK):
            return "the session has listeners of queries"
    return None


def _check_rows(df: DataFrame, plan: WritePlan) -> None:
    """Check that the table stores the rows as they are: flat columns, nothing computed, cast or checked."""
    rows, files = plan.rows, plan.files
    if rows.defaults or rows.identities or rows.generated or rows.checks:
        raise NotPlainError("the table computes or checks values")
    given = from_spark(df.schema)
    for field, at in zip(rows.table, match_names(given.names, rows.table), strict=True):
        if at is not None and given.fields[at].type != field.type:
            raise NotPlainError(f"column {field.name} is cast")
    _check_flat(rows.table)
    if files.extra_columns:
        raise NotPlainError("the files hold more than the rows")


def _check_flat(columns: StructType) -> None:
    for field in columns:
        if is_nested(field.type) or field.type in (VARIANT, VOID):
            raise NotPlainError(f"column {field.name} is of type {field.type}")
    if not columns.fields:
        raise NotPlainError("there are no columns")


def write_plain_files(df: DataFrame, plan: WritePlan, found: PlainFiles, folder: str) -> TaskResult:
    """Write the rows of Parquet files into a folder of the table.

    Raises
    ------
    NotPlainError
        A file leaves a reader a choice, or executors cannot do it. The folder may hold files.
    StorageError
        A file cannot be written; the same.
    """
    if not found.tasks:
        return TaskResult(timezone=plan.rows.timezone)
    _check_first(plan, found)
    results: list[TaskResult] = []
    reads: list[Read] = []
    write = partial(_write_rows_of, plan, found, folder)
    written: Iterable[_Written]
    if found.in_threads:
        written = _in_threads(write, plan.storage, range(len(found.tasks)))
    else:
        written = _in_tasks(write, df, plan, found, folder)
    for result, rows in written:
        if isinstance(result, str):
            raise NotPlainError(result)
        results.append(result)
        reads.append(rows)
    check_whole(reads)
    if not found.in_threads:
        WriteSign.of(plan.storage, folder).discard_others(results)
    return _together(results, plan)


def check_tasks(df: DataFrame) -> None:
    """Check that tasks can write rows; raises `NotPlainError`."""
    if (problem := tasks_problem(df.sparkSession)) is not None:
        raise NotPlainError(problem)


def write_computed(df: DataFrame, plan: WritePlan, folder: str) -> TaskResult:
    """Write rows that Spark computes, completes and checks into a folder of the table.

    Raises
    ------
    NotPlainError
        Executors cannot do it. The folder may hold files.
    NotNative
        Spark cannot complete them; nothing was written.
    DeltaError
        A row breaks a constraint, or a file cannot be written. The folder may hold files.
    """
    rows = stored_rows(df, plan)
    if plan.joins_small_files:
        # Spark gathers what belongs together before it is written, to partitions of the size that it is advised.
        rows = rows.hint("rebalance", *map(quoted, plan.files.partition_columns))
    with _waiting(plan, folder) as sign:
        write = partial(write_rows, plan.of_stored_rows, folder=folder, sign=sign)
        results: list[TaskResult] = run_tasks(rows, write)
    sign.discard_others(results)
    return _together(results, plan)


@contextmanager
def _waiting(plan: WritePlan, folder: str) -> Iterator[WriteSign]:
    """For what tasks write within the block; without this package they leave it to Spark."""
    sign = WriteSign.of(plan.storage, folder)
    sign.put()
    try:
        yield sign
    except Exception as error:
        ours = as_delta_error(error)
        if ours is not None and ours.condition == PYTHON_WORKERS_WITHOUT_PACKAGE.name:
            raise NotPlainError(ours.text) from error
        raise
    finally:
        sign.remove()


def _together(results: Sequence[TaskResult], plan: WritePlan) -> TaskResult:
    return TaskResult(
        adds=[add for result in results for add in result.adds],
        rows=sum(result.rows for result in results),
        timezone=plan.rows.timezone,
    )


def _check_first(plan: WritePlan, found: PlainFiles) -> None:
    """Look at one file before any task starts: mostly all are alike."""
    first = found.tasks[0][0]
    nothing = Split(first.path, first.size, 0, first.size + 1)
    for _ in SplitRows(plan.storage, found.columns, [nothing]):
        pass


# What a task wrote, or why it could not.
_Written = tuple["TaskResult | str", Read]


def _in_threads(work: Callable[[_Item], _Done], storage: Storage, items: Sequence[_Item]) -> list[_Done]:
    """What threads of this process do for each item, in their order."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads_for(storage), thread_name_prefix="pydelta-files") as pool:
        return list(pool.map(work, items))


def _in_tasks(
    write: Callable[..., _Written], df: DataFrame, plan: WritePlan, found: PlainFiles, folder: str
) -> Iterator[_Written]:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                blob = pickle.dumps(write(number, sign))
                yield pa.RecordBatch.from_arrays([pa.array([blob], pa.binary())], names=["result"])

    count = len(found.tasks)
    with _waiting(plan, folder) as sign:
        written = map_in_arrow(df.sparkSession.range(0, count, 1, count), task, "result binary").collect()
    return (pickle.loads(row[0]) for row in written)


def _write_rows_of(
    plan: WritePlan, found: PlainFiles, folder: str, number: int, sign: WriteSign | None = None
) -> _Written:
    rows = SplitRows(plan.storage, found.columns, found.tasks[number])
    result: TaskResult | str
    try:
        result = write_rows(plan, rows, number, folder=folder, sign=sign)
    except NotPlainError as why:
        result = str(why)
    return result, rows.rows
