"""Write by Spark's own Parquet writer: into a new folder of the table, then one commit.

Each attempt of a task writes its files under their final names. Which attempts succeeded is asked of Spark's
scheduler: files of others, failed or speculative, do not get into the log and are deleted; what a late one still writes
is left for VACUUM. What the log has to know of the files is read off their footers.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from delta_ds.events.log import ORPHAN_FILES_LEFT
from delta_ds.events.spark import WRITTEN_BY_SPARK, WRITTEN_BY_SPARK_AFTER_ALL
from delta_ds.exceptions import StorageError
from delta_ds.kernel.commands.optimize.auto_compact import compact_as_planned
from delta_ds.kernel.files.write.write_spec import encode
from delta_ds.kernel.format.schema.char_varchar import schema_of
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import FOLDERS_OF_WRITES
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.staging import StagedFiles, Staging, discard
from delta_ds.kernel.storage.store_errors import NOTHING_WRITTEN
from delta_ds.kernel.storage.store_options import is_hadoop_setting
from delta_ds.kernel.transaction.transaction import Transaction
from delta_ds.kernel.transaction.write.finish import finish_write
from delta_ds.kernel.transaction.write.intent import APPEND, OVERWRITE, batch_intent, find_target
from delta_ds.kernel.transaction.write.parquet_files import NotPlainError, ParquetFiles, read_parquet_files
from delta_ds.kernel.transaction.write.plan import plan_write
from delta_ds.kernel.transaction.write.task import TaskResult
from delta_ds.records import dataclass
from delta_ds.spark.base.kinds.session_facts import engine_info, with_session_settings
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.base.session_conf import time_zone
from delta_ds.spark.base.table_names import check_path, path_option
from delta_ds.spark.engines.classic.hadoop import file_system, hadoop_root
from delta_ds.spark.engines.classic.jvm import Jvm, NotNative
from delta_ds.spark.engines.classic.plain_files import (
    OnlySparkError,
    check_tasks,
    find_plain_files,
    write_computed,
    write_plain_files,
)
from delta_ds.spark.engines.classic.row_columns import (
    COPY,
    check_writable,
    columns_of,
    stored_columns,
    stored_rows,
)
from delta_ds.spark.engines.classic.snapshot_isolation import (
    caches_rows,
    pin_snapshots,
    reads_table,
    refresh_cached_rows,
)
from delta_ds.spark.errors.translation import as_delta_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.kernel.transaction.write.plan import WritePlan


# What the names of files hold of the task and its attempt: `part-attempt_<time>_<stage>_m_<task>_<number>-...`.
# Hadoop writes numbers with the digits of the JVM's locale.
_ATTEMPT = re.compile(r"/part-attempt_\d+_(\d+)_m_(\d+)_(\d+)-[^/]*$")

_CODECS = {"none": "uncompressed"}
_WRITER_OPTIONS = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # Bounds that are cut off cannot be told from others in the footers that pyarrow reads.
    "parquet.statistics.truncate.length": "2147483647",
}
# What the files of a table must be like, whatever the session says of Parquet files in general.
_SETTINGS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.fieldId.write.enabled": "true",
}
# The same, where tasks look it up in what the session has said.
_TASK_SETTINGS = {"spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED"}


def save(df: DataFrame, options: Mapping[str, str], *, overwrite: bool) -> int | None:
    """Write rows to a table, or to a new one.

    Parameters
    ----------
    df
        The rows, in a classic session.
    options
        As of `df.write`, `path` among them; see `WRITE_OPTIONS`.
    overwrite
        The mode is overwrite, not append.

    Returns
    -------
    int or None
        The version; None where there was nothing to commit.

    Raises
    ------
    NotNative
        The portable path has to write this; nothing was written.
    DeltaError
        As of `plan_write` and `finish_write`, or a row breaks a constraint; nothing was written.
    """
    spark = df.sparkSession
    jvm = Jvm.of(spark)
    check_path(options)
    mode, settled = OVERWRITE if overwrite else APPEND, with_session_settings(spark, options)
    target = find_target(batch_intent(settled, mode, time_zone=time_zone(spark)))
    storage, snapshot = target.storage, target.snapshot
    if target.nothing_to_do:
        return None
    plan = plan_write(target, schema_of(df.schema.jsonValue()), columns_of=columns_of(spark))
    if plan.overwrite_scope.records_changes:
        raise NotNative("rows of the change data feed are written along with the rows")
    # Asked once, before anything is written: what fails after the commit would have the rows written again.
    root = _root(jvm, plan, options)
    folder = str(uuid.uuid4())
    reads_itself = snapshot is not None and reads_table(df, plan.options.path)
    with pin_snapshots(spark, snapshot):
        result = stage(df, plan, options, folder)
    with StagedFiles(storage) as staged:
        staged.deleted_by(lambda: _remove(jvm, root, folder, plan))
        transaction = Transaction(storage, snapshot, engine_info=engine_info())
        if reads_itself:
            # The rows come from the table itself: whatever changes it in the meantime contradicts them.
            transaction.read_whole_table()
        version = finish_write(plan, [result], transaction, staged=staged)
    if version is not None:
        compact_as_planned(plan, [result], engine_info())
        refresh_cached_rows(spark, root)
    return version


def stage(df: DataFrame, plan: WritePlan, options: Mapping[str, str], folder: str) -> TaskResult:
    """Write rows into a folder of the table that is not there yet; nothing refers to them.

    Parameters
    ----------
    df
        The rows that the write was planned for.
    plan
        The write.
    options
        Settings of Hadoop's file system.
    folder
        Its name: no other's, relative to the table.

    Raises
    ------
    NotNative
        The portable path has to write this; nothing was written.
    DeltaError
        A row breaks a constraint; the folder is gone again.
    """
    jvm = Jvm.of(df.sparkSession)
    check_writable(plan.files)
    root = _root(jvm, plan, options)
    try:
        with Staging(plan.storage.url) as staged:
            staged.deleted_by(lambda: _remove(jvm, root, folder, plan))
            if plan.read_version < 0 and not _is_there(jvm, root):
                staged.deleted_by(lambda: _remove_empty(jvm, root))
            result, after_all = _stage_by_arrow(df, plan, folder, lambda: _remove(jvm, root, folder, plan))
            if result is None:
                result = _stage_by_spark(jvm, df, plan, root, f"{folder}{after_all}", options)
            staged.release()
    except Exception as error:
        ours = as_delta_error(error)
        if ours is None or ours is error:
            raise
        raise ours from error
    return result


def _stage_by_spark(
    jvm: Jvm, df: DataFrame, plan: WritePlan, root: str, folder: str, options: Mapping[str, str]
) -> TaskResult:
    target = f"{root}{folder}"
    hadoop_options = {k: v for k, v in options.items() if is_hadoop_setting(k)}
    written = _write_files(jvm, stored_rows(df, plan), plan, target, hadoop_options)
    parquet_files = read_parquet_files(plan.storage, plan.files, folder, counts=written.counts)
    if written.rows not in (None, parquet_files.rows):
        _refuse_missing_rows(jvm, plan, target, written, parquet_files)
    plan.storage.fsync([plan.storage.resolve(add["path"]) for add in parquet_files.adds])
    _remove_leftovers(jvm, root, folder, plan, parquet_files)
    return TaskResult(adds=parquet_files.adds, rows=parquet_files.rows, timezone=plan.rows.timezone)


def _stage_by_arrow(
    df: DataFrame, plan: WritePlan, folder: str, remove: Callable[[], None]
) -> tuple[TaskResult | None, str]:
    """Write rows by Arrow; None where Spark has to, below the folder by the name that is given beside.

    That is another place where tasks have begun: late ones may still write.
    """
    try:
        write = _arrow_writer(df, plan, folder)
    except NotPlainError as why:
        WRITTEN_BY_SPARK.log(table=plan.storage.url, reason=str(why))
        return None, ""
    try:
        result = write()
    except NotPlainError as why:
        WRITTEN_BY_SPARK_AFTER_ALL.log(table=plan.storage.url, reason=str(why))
        remove()
        return None, "/spark"
    if not result.adds:
        remove()
    return result, ""


def _arrow_writer(df: DataFrame, plan: WritePlan, folder: str) -> Callable[[], TaskResult]:
    try:
        return partial(write_plain_files, df, plan, find_plain_files(df, plan), folder)
    except NotPlainError as why:
        # Without partitions Spark's writer needs less.
        if isinstance(why, OnlySparkError) or not plan.files.partition_columns:
            raise
    check_tasks(df)
    return partial(write_computed, df, plan, folder)


def _root(jvm: Jvm, plan: WritePlan, options: Mapping[str, str]) -> str:
    return _folder(jvm, options, plan.options.path, new=plan.read_version < 0)


def _folder(jvm: Jvm, options: Mapping[str, str], path: str, *, new: bool = False) -> str:
    root = hadoop_root(jvm, options, path, new=new)
    return root or f"file:{open_storage(path, {}).url.rstrip('/')}/"


@dataclass(frozen=True)
class _Written:
    """What Spark says of a write: how many rows, and which files count; None where it does not count rows."""

    rows: int | None
    counts: Callable[[str], bool]


def _write_files(
    jvm: Jvm, rows: DataFrame, plan: WritePlan, target: str, hadoop_options: Mapping[str, str]
) -> _Written:
    """Let Spark write the files."""
    frame, partitions = stored_columns(rows, plan.files)
    if plan.joins_small_files:
        # Spark gathers what belongs together before it writes, to partitions of the size that it is advised.
        frame = frame.hint("rebalance", *map(quoted, partitions))
    writer_options = {
        **_WRITER_OPTIONS,
        "compression": _CODECS.get(plan.files.codec, plan.files.codec),
    }
    if plan.files.max_records_per_file:
        writer_options["maxRecordsPerFile"] = str(plan.files.max_records_per_file)
    conf = frame.sparkSession.conf
    # Spark puts back only what the session sets.
    of_tasks = {key: value for key, value in _TASK_SETTINGS.items() if str(conf.get(key)) != value}
    attempts = jvm.writes.write(
        jvm.spark._jsparkSession,
        jvm.logical_plan(frame),
        target,
        len(partitions),
        jvm.map(writer_options),
        # Not among the options, which plans show.
        {**_SETTINGS, **hadoop_options},
        of_tasks,
        COPY,
    )
    if attempts is None:
        return _Written(None, bool)
    written, *successful = str(attempts).split()
    return _Written(int(written), _of_attempts(plan, frozenset(map(_numbers, successful))))


def _numbers(attempt: str) -> tuple[int, ...]:
    return tuple(map(int, attempt.split("_")))


def _of_attempts(plan: WritePlan, successful: frozenset[tuple[int, ...]]) -> Callable[[str], bool]:
    """Whether a file is of one of the attempts that succeeded, each a stage, a task and a number."""
    tasks = {attempt[:2] for attempt in successful}

    def counts(path: str) -> bool:
        match = _ATTEMPT.search(path)
        attempt = () if match is None else tuple(map(int, match.groups()))
        if attempt[:2] not in tasks:
            raise StorageError(
                f"cannot write to {plan.storage.url}: {path} is of no task that Spark's scheduler has told the end of, "
                "as where its queue of events is full (spark.scheduler.listenerbus.eventqueue.capacity); "
                f"{NOTHING_WRITTEN}",
                parameters={"table": plan.storage.url, "path": path},
            )
        return attempt in successful

    return counts


def _refuse_missing_rows(
    jvm: Jvm, plan: WritePlan, target: str, written: _Written, parquet_files: ParquetFiles
) -> None:
    """Leave the write to the portable path, or refuse it, where the driver does not see what tasks have written."""
    folder = jvm.Path(target)
    files = file_system(jvm, folder)
    if (
        not parquet_files.adds
        and not parquet_files.unwanted
        and files.exists(folder)
        and len(files.listStatus(folder))
    ):
        raise NotNative(f"what Hadoop has written to {target} is not to be seen for Python's file system")
    raise StorageError(
        f"cannot write to {plan.storage.url}: tasks have written {written.rows} rows, and {parquet_files.rows} are in "
        f"the files that the driver sees in {target}; a path must name one and the same folder on every machine. "
        f"{NOTHING_WRITTEN}",
        parameters={"table": plan.storage.url, "path": target},
    )


def _remove_leftovers(jvm: Jvm, root: str, folder: str, plan: WritePlan, parquet_files: ParquetFiles) -> None:
    """Delete what is no data file: files without rows, and Hadoop's checksums of local files."""
    if not parquet_files.adds:
        _remove(jvm, root, folder, plan)
        return
    paths = [encode(path) for path in parquet_files.unwanted]
    if plan.storage.address.scheme == "file":
        written = [*(add["path"] for add in parquet_files.adds), *paths]
        paths += [f"{head}/.{name}.crc" for head, _, name in (path.rpartition("/") for path in written)]
    discard(plan.storage, paths)


def _remove(jvm: Jvm, root: str, name: str, plan: WritePlan) -> None:
    """Delete the folder of a write that has no files; what cannot be deleted is logged, and left for VACUUM."""
    from py4j.protocol import Py4JError

    try:
        # By Hadoop, which knows of what it has put there beside files, and follows no link either.
        deleter.check_own(plan.storage, FOLDERS_OF_WRITES, [name.strip("/")])
        folder = jvm.Path(f"{root}{name}")
        file_system(jvm, folder).delete(folder, True)
    except (Py4JError, StorageError) as error:
        ORPHAN_FILES_LEFT.log(table=plan.storage.url, folder=f"{root}{name}", reason=error)


def _is_there(jvm: Jvm, folder: str) -> bool:
    path = jvm.Path(folder)
    return bool(file_system(jvm, path).exists(path))


def _remove_empty(jvm: Jvm, folder: str) -> None:
    """Delete the folder of a table that has not come to be, unless somebody has put something into it."""
    path = jvm.Path(folder)
    files = file_system(jvm, path)
    if files.exists(path) and len(files.listStatus(path)) == 0:
        files.delete(path, False)


def refresh_written_rows(spark: SparkSession, options: Mapping[str, str]) -> None:
    """The same of the table that the data source has written to; where Spark cannot open the store, it caches none."""
    with suppress(NotNative):
        if caches_rows(spark):
            refresh_cached_rows(spark, _folder(Jvm.of(spark), options, path_option(options) or ""))
