"""`df.write` with all save modes, partitioning and clustering.

Source: delta-spark, `WriteIntoDelta`, and its answers to the same calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from delta_ds.conditions.session import INVALID_SAVE_MODE, TABLE_OR_VIEW_ALREADY_EXISTS
from delta_ds.events.spark import PORTABLE_WRITE
from delta_ds.exceptions import InvalidOptionError, TableExistsError
from delta_ds.kernel.options.session_settings import (
    CONFLICT_DETECTION,
    SETTINGS_OPTION,
    conflict_detection,
    settings_for_tasks,
)
from delta_ds.kernel.options.settings import (
    AUTO_MERGE,
    OPTIMIZE_WRITE,
    TXN_APP_ID,
    TXN_VERSION,
    USER_METADATA,
)
from delta_ds.kernel.options.write import ERROR, IGNORE, REPORT_FOLDER_OPTION, TASKS_OPTION
from delta_ds.kernel.transaction.origin import ORIGIN_KEY
from delta_ds.reporting.mailbox import take_reports
from delta_ds.spark import settings
from delta_ds.spark.engine import is_connect
from delta_ds.spark.errors import delta_errors
from delta_ds.spark.hadoop_settings import with_session_settings
from delta_ds.spark.job_failures import failed_jobs
from delta_ds.spark.origin import origin_of
from delta_ds.spark.schema import quoted_list
from delta_ds.spark.session import tables
from delta_ds.spark.session.monkeypatch import call_original
from delta_ds.spark.session.positions import by_position, with_types
from delta_ds.spark.session_conf import NATIVE_WRITE_CONF, is_off
from delta_ds.spark.table_names import FORMAT, path_option, with_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Settings of a session that stand for an option, as in delta-spark: of every write, and of batches only.
OF_EVERY_WRITE = {
    "userMetadata": USER_METADATA.full_name,
    "mergeSchema": AUTO_MERGE.full_name,
    "optimizeWrite": OPTIMIZE_WRITE.full_name,
}
_OF_BATCHES = {**OF_EVERY_WRITE, "txnAppId": TXN_APP_ID.full_name, "txnVersion": TXN_VERSION.full_name}

APPEND, OVERWRITE = "append", "overwrite"
_MODES = {
    "append": APPEND,
    "overwrite": OVERWRITE,
    "ignore": IGNORE,
    "error": ERROR,
    "errorifexists": ERROR,
    "default": ERROR,
}
# Nodes of plans by the texts that show them.
_COMPUTED_TO_BE_COUNTED = ("AdaptiveSparkPlan", "Exchange", "Subquery")
DYNAMIC_CONF = "spark.sql.sources.partitionOverwriteMode"


def save(
    df: DataFrame,
    path: str | None,
    mode: str | None,
    options: Mapping[str, str],
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
) -> None:
    """Write rows to the table at a path, as `df.write.save` of delta-spark does.

    Parameters
    ----------
    df
        The rows.
    path
        None: it is among the options.
    mode
        `append`, `overwrite`, `ignore`, `error` or `errorifexists`, in any case; None is `errorifexists`.
    options
        As of `df.write`; see `WRITE_OPTIONS`.
    partition_by, cluster_by
        Columns of a new table; of one that is there they must be the same. Empty: not said.

    Raises
    ------
    TableExistsError
        `errorifexists`, and there is a table, or another one has made it in the meantime.
    DeltaError
        The rows do not fit, the table cannot be written, or an option is not known; nothing was written.
    """
    wanted = save_mode(mode)
    complete = with_layout(with_path(options, path, "save"), partition_by, cluster_by)
    spark = df.sparkSession
    if (
        wanted == IGNORE
        and path_option(complete) is not None
        and tables.find_table(spark, complete) is not None
    ):
        return
    if wanted in (ERROR, IGNORE):
        _put(complete, "ifExists", wanted)
    overwrite = wanted == OVERWRITE
    if overwrite:
        _take_over_dynamic_mode(spark, complete)
    write(df, complete, overwrite=overwrite)


def save_as_table(
    df: DataFrame,
    path: str,
    mode: str | None,
    options: Mapping[str, str],
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
) -> None:
    """Write rows as ``df.write.saveAsTable("pydelta.`/path`")`` does; arguments as for `save`.

    As with delta-spark, columns go by their names, an append needs a table and casts to its types, and an overwrite
    keeps the table's schema and partitioning unless the option `overwriteSchema` is set.

    Raises
    ------
    NotADeltaTableError
        `append`, and there is no table.
    DeltaError
        As `save`.
    """
    if save_mode(mode) == APPEND:
        complete = with_settings(df.sparkSession, {**options, "path": path}, OF_EVERY_WRITE)
        table = tables.existing_table(df.sparkSession, complete, "saveAsTable in mode append")
        df = with_types(df, table, complete)
    with as_existing_name(path):
        save(df, path, mode, options, partition_by, cluster_by)


def insert_into(df: DataFrame, path: str, mode: str | None, options: Mapping[str, str]) -> None:
    """Write rows as ``df.write.insertInto("pydelta.`/path`")`` does: columns go by their place.

    Parameters
    ----------
    mode
        `overwrite` replaces what is there; every other one appends, as in Spark.

    Raises
    ------
    NotADeltaTableError
        There is no table.
    SchemaError
        There are fewer columns than the table has.
    DeltaError
        As `save`.

    Differs: delta-spark leaves out options such as `replaceWhere` here; they count.
    """
    complete = with_settings(df.sparkSession, with_path(options, path, "insertInto"), OF_EVERY_WRITE)
    table = tables.existing_table(df.sparkSession, complete, "insertInto")
    placed = by_position(df, table, complete)
    save(placed, None, OVERWRITE if save_mode(mode) == OVERWRITE else APPEND, complete)


def insert_rows(df: DataFrame, options: Mapping[str, str], overwrite: bool) -> None:
    """Write rows as `INSERT INTO` and `INSERT OVERWRITE` on a view of a table do.

    Parameters
    ----------
    df
        The rows, with the columns of the table.
    options
        `path`, and what the filesystem needs.
    """
    save(df, None, OVERWRITE if overwrite else APPEND, options)


def write(df: DataFrame, options: Mapping[str, str], *, overwrite: bool) -> None:
    """Write rows as options say: by Spark's own writer where that is possible, else by the data source.

    Parameters
    ----------
    options
        As the data source takes them: `path`, `partitionBy`, `ifExists` and the like among them.
    overwrite
        An overwrite, not an append.
    """
    spark = df.sparkSession
    options = with_settings(spark, options, _OF_BATCHES)
    if not is_connect(spark) and not is_off(spark, NATIVE_WRITE_CONF):
        from delta_ds.spark.native import writer as native
        from delta_ds.spark.native.jvm import GeneratesNumbers, NotNative

        try:
            with failed_jobs(f"the write to {path_option(options) or 'a table without path'}"):
                native.save(df, options, overwrite=overwrite)
            return
        except NotNative as why:
            PORTABLE_WRITE.log(reason=why.reason)
            if isinstance(why, GeneratesNumbers):
                df, options = _by_known_tasks(df, options)
    options = with_session_settings(spark, options)
    writer = df.write.format(FORMAT).mode(OVERWRITE if overwrite else APPEND).options(**options)
    # The commit is made in a process of its own; on Spark Connect on another machine, with listeners of its own.
    with nullcontext() if is_connect(spark) else take_reports() as folder, delta_errors():
        if folder is not None:
            writer = writer.option(REPORT_FOLDER_OPTION, folder)
        call_original(writer, "save")


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


def save_mode(mode: str | None) -> str:
    """The save mode that a word stands for: `append`, `overwrite`, `ignore` or `error`.

    Raises
    ------
    InvalidOptionError
        The word stands for none.
    """
    if mode is None:
        return ERROR
    found = _MODES.get(mode.strip().lower())
    if found is None:
        raise INVALID_SAVE_MODE(mode=mode)
    return found


@contextmanager
def as_existing_name(path: str) -> Iterator[None]:
    """The error for an existing table, as delta-spark raises it in `saveAsTable` and `create`."""
    try:
        yield
    except TableExistsError as error:
        raise TABLE_OR_VIEW_ALREADY_EXISTS(error.parameters, path=path, reason=error.text) from error


def with_layout(
    options: Mapping[str, str], partition_by: Sequence[str], cluster_by: Sequence[str]
) -> dict[str, str]:
    """Options with the partitioning and clustering that calls have said; each may be said once."""
    complete = dict(options)
    if partition_by:
        _put(complete, "partitionBy", quoted_list(partition_by))
    if cluster_by:
        _put(complete, "clusterBy", quoted_list(cluster_by))
    return complete


def _put(options: dict[str, str], name: str, text: str) -> None:
    """Add the value of a method call to the options, which must not have it too."""
    if any(given.lower() == name.lower() for given in options):
        raise InvalidOptionError(
            f"{name} is given twice, by the option and by the call (.partitionBy, .clusterBy, .mode); give it once",
            parameters={"option": name},
        )
    options[name] = text


def _take_over_dynamic_mode(spark: SparkSession, options: dict[str, str]) -> None:
    """An overwrite follows the session's setting, as in delta-spark, unless its options say what to replace."""
    given = {name.lower() for name in options}
    if given & {"partitionoverwritemode", "replacewhere", "replacetable"}:
        return
    if str(spark.conf.get(DYNAMIC_CONF, "static")).lower() == "dynamic":
        options["partitionOverwriteMode"] = "dynamic"


def with_settings(
    spark: SparkSession, options: Mapping[str, str], stand_for: Mapping[str, str]
) -> dict[str, str]:
    """Options completed by the session's settings for all writes.

    Parameters
    ----------
    stand_for
        The settings of a session by the name of the option that they stand for.

    Raises
    ------
    InvalidOptionError
        A value that a setting does not take.
    """
    found = settings.session_settings(spark)
    from_session = {name: found[key] for name, key in stand_for.items() if key in found}
    carried = settings_for_tasks(found)
    if carried:
        from delta_ds.kernel.commands.optimize.auto_compact import auto_compaction_of

        auto_compaction_of(carried)  # refused here, and not after the commit
        conflict_detection(carried.get(CONFLICT_DETECTION))
    carried[ORIGIN_KEY] = origin_of(spark).to_text()
    from_session[SETTINGS_OPTION] = json.dumps(carried, ensure_ascii=False)
    given = {name.lower() for name in options}
    return {**options, **{name: text for name, text in from_session.items() if name.lower() not in given}}
