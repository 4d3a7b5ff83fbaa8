"""Carry a write out: the one function that every way of writing rows ends in.

Source: delta-spark, `WriteIntoDelta`, and its answers to the same calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from delta_ds.events.spark import PORTABLE_WRITE
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.options.write import IGNORE, REPORT_FOLDER_OPTION, TASKS_OPTION
from delta_ds.kernel.write.intent import APPEND, OVERWRITE, batch_intent
from delta_ds.reporting.mailbox import take_reports
from delta_ds.spark.engines.hadoop_settings import with_session_settings
from delta_ds.spark.engines.kind import jvm_problem, of_kind
from delta_ds.spark.engines.sealed import seal
from delta_ds.spark.errors import delta_errors
from delta_ds.spark.job_failures import failed_jobs
from delta_ds.spark.monkeypatch import call_original
from delta_ds.spark.session_conf import NATIVE_WRITE_CONF, is_off
from delta_ds.spark.session_facts import facts_of
from delta_ds.spark.table_names import FORMAT, path_option
from delta_ds.spark.writes.casts import overflow_of_inserts
from delta_ds.spark.writes.columns import align
from delta_ds.spark.writes.options import complete_options
from delta_ds.spark.writes.request import SAVE, WriteRequest
from delta_ds.spark.writes.target import existing_table, find_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Nodes of plans by the texts that show them.
_COMPUTED_TO_BE_COUNTED = ("AdaptiveSparkPlan", "Exchange", "Subquery")


def write(request: WriteRequest) -> None:
    """Write rows as they were asked to be written.

    Raises
    ------
    NotADeltaTableError
        The way of writing needs a table, and there is none.
    TableExistsError
        The mode is `error`, and there is a table, or another one has made it in the meantime.
    DeltaError
        The rows do not fit, the table cannot be written, or an option is not known; nothing was written.
    """
    spark = request.rows.sparkSession
    facts = facts_of(spark)
    options = complete_options(request, facts)
    overwrite = request.mode == OVERWRITE
    # What no table can honour is refused before one is looked at.
    intent = batch_intent(options, OVERWRITE if overwrite else APPEND)
    rows = request.rows
    if request.way.is_aligned:
        table = existing_table(spark, options, request.way.call)
        rows = align(rows, table, request.way, intent.options, facts)
    elif (
        request.mode == IGNORE and path_option(options) is not None and find_table(spark, options) is not None
    ):
        return
    try:
        with overflow_of_inserts(rows):
            _carry_out(rows, options, overwrite=overwrite)
    except SchemaError:
        if rows is not request.rows and not jvm_problem(spark):
            # Constants that no column can hold are told first, as Spark computes them before anything is checked.
            rows._jdf.queryExecution().optimizedPlan()
        raise


def insert_rows(df: DataFrame, options: Mapping[str, str], overwrite: bool) -> None:
    """Write rows as `INSERT INTO` and `INSERT OVERWRITE` on a view of a table do.

    Parameters
    ----------
    df
        The rows, with the columns of the table.
    options
        `path`, and what the filesystem needs.
    """
    write(WriteRequest(df, SAVE, OVERWRITE if overwrite else APPEND, options))


def _carry_out(rows: DataFrame, options: Mapping[str, str], *, overwrite: bool) -> None:
    """Write by Spark's own writer where that is possible, else by the data source."""
    spark = rows.sparkSession
    if not jvm_problem(spark) and not is_off(spark, NATIVE_WRITE_CONF):
        from delta_ds.spark.native import writer as native
        from delta_ds.spark.native.jvm import GeneratesNumbers, NotNative

        try:
            with failed_jobs(f"the write to {path_option(options) or 'a table without path'}"):
                native.save(rows, options, overwrite=overwrite)
            return
        except NotNative as why:
            PORTABLE_WRITE.log(reason=why.reason)
            if isinstance(why, GeneratesNumbers):
                rows, options = _by_known_tasks(rows, options)
    sealed = seal(spark, with_session_settings(spark, options), FORMAT)
    writer = rows.write.format(FORMAT).mode(OVERWRITE if overwrite else APPEND).options(**sealed)
    # The commit is made in a process of its own; on Spark Connect on another machine, with listeners of its own.
    reports: AbstractContextManager[str | None]
    reports = of_kind(spark, classic=take_reports(), connect=nullcontext())
    with reports as folder, delta_errors():
        if folder is not None:
            writer = writer.option(REPORT_FOLDER_OPTION, folder)
        call_original(writer, "save")
    if not jvm_problem(spark):
        from delta_ds.spark.native.writer import refresh_written_rows

        refresh_written_rows(spark, options)


def _by_known_tasks(df: DataFrame, options: Mapping[str, str]) -> tuple[DataFrame, Mapping[str, str]]:
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
