"""Writes of a classic session: casts as Spark's own inserts have them, and Spark's own Parquet writer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from delta_ds.events.spark import PORTABLE_WRITE
from delta_ds.kernel.format.options.session_facts import ANSI_POLICY
from delta_ds.kernel.format.options.write import TASKS_OPTION
from delta_ds.reporting.mailbox import take_reports
from delta_ds.spark.base.session_conf import NATIVE_WRITE_CONF, is_off
from delta_ds.spark.base.table_names import path_option
from delta_ds.spark.engines.classic import writer
from delta_ds.spark.engines.classic.jvm import GeneratesNumbers, Jvm, NotNative
from delta_ds.spark.engines.classic.projection import ColumnAt, InsertedAt, Projected, project
from delta_ds.spark.engines.seam.writes import is_same
from delta_ds.spark.errors.job_failures import failed_jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.kernel.format.options.session_facts import SessionFacts
    from delta_ds.spark.engines.seam.writes import Matched, Pending

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
