"""A version of a table put in another place, or in front again: `cloneAtVersion`, `restoreToVersion` and the like."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from delta_ds.api.delta_log import DeltaLog
from delta_ds.conditions.commands import FILES_FROM_OF_SHALLOW_CLONE
from delta_ds.kernel.commands.clone import RESULT_COLUMNS, shallow_clone_parquet
from delta_ds.kernel.commands.restore import RESULT_COLUMNS as RESTORED_COLUMNS
from delta_ds.kernel.commands.restore import restore
from delta_ds.kernel.format.options.settings import RESTORE_PROTOCOL_DOWNGRADE
from delta_ds.kernel.storage.store_options import SecretOptions
from delta_ds.spark.base.kinds.frames import frame, nothing
from delta_ds.spark.base.kinds.session_facts import property_rules, with_session_settings
from delta_ds.spark.base.session_conf import is_set, time_zone
from delta_ds.spark.base.table_names import without_path
from delta_ds.spark.commands.handle import open_handle
from delta_ds.spark.engines.connect import log_calls
from delta_ds.spark.engines.connect.connect_bridge import ask, open_log, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.kernel.format.schema.types import StructType
    from delta_ds.spark.commands.handle import Handle


def run_clone(
    handle: Handle,
    target: str,
    shallow: bool,
    replace: bool,
    properties: Mapping[str, str] | None,
    files_from: Sequence[str] = (),
    *,
    version: int | None = None,
    timestamp: str | datetime | None = None,
) -> Handle:
    """Clone a version to another place; arguments as for `DeltaTable.clone`.

    Returns
    -------
    Handle
        On the new table.
    """
    clone_table(
        handle, target, shallow, replace, properties, files_from, version=version, timestamp=timestamp
    )
    return open_handle(handle.spark, target, without_path(handle.options))


def clone_table(
    handle: Handle,
    target: str,
    shallow: bool,
    replace: bool,
    properties: Mapping[str, str] | None,
    files_from: Sequence[str] = (),
    *,
    version: int | None = None,
    timestamp: str | datetime | None = None,
) -> dict[str, int]:
    """As `run_clone`; what was cloned, as delta-spark shows it.

    Raises
    ------
    InvalidOptionError
        `files_from` of a shallow clone. Else as of the kernel's clones.
    """
    if shallow and files_from:
        raise FILES_FROM_OF_SHALLOW_CLONE(table=target)
    options = without_path(with_session_settings(handle.spark, {**handle.options, "path": target}))
    how: dict[str, Any] = dict(
        shallow=shallow,
        version=version,
        timestamp=timestamp,
        timezone=time_zone(handle.spark),
        replace_existing=replace,
        properties=dict(properties or {}),
        rules=property_rules(handle.spark),
        source_name=handle.name,
    )
    if not shallow:
        how["files_from"] = list(files_from)
    if isinstance(handle.log, DeltaLog):
        return log_calls.clone_to(handle.log, target, options, **how).row()
    run(handle.log, log_calls.clone_to, target, SecretOptions(options), **how)
    # The history of a table that was just made.
    (commit,) = ask(open_log(handle.spark, target, options), DeltaLog.history, 1)
    metrics = commit["operationMetrics"]
    return {name: int(metrics[log_calls.metric_of_column(name)]) for name in RESULT_COLUMNS}


def clone_parquet(
    spark: SparkSession,
    path: str,
    partition_schema: StructType | None,
    target: str,
    replace: bool,
    properties: Mapping[str, str] | None,
    *,
    version: int | None = None,
    timestamp: str | datetime | None = None,
) -> dict[str, int]:
    """Clone a folder of Parquet files, in a classic session; what was cloned, as delta-spark shows it."""
    source, destination = open_log(spark, path, {}), open_log(spark, target, {})
    assert isinstance(source, DeltaLog)
    assert isinstance(destination, DeltaLog)
    found = shallow_clone_parquet(
        source,
        destination,
        partition_schema,
        version=version,
        timestamp=timestamp,
        timezone=time_zone(spark),
        replace_existing=replace,
        properties=properties,
        rules=property_rules(spark),
    )
    return found.row()


MISSING_FILES_SETTING = "spark.sql.files.ignoreMissingFiles"


def run_restore(
    handle: Handle, *, version: int | None = None, timestamp: str | datetime | None = None
) -> DataFrame:
    """Go back to a version or a moment, as a new version.

    Returns
    -------
    DataFrame
        One row, with the six columns of delta-spark; without rows and columns where the table was so already.
    """
    spark = handle.spark
    transaction = str(uuid.uuid4())
    run(
        handle.log,
        restore,
        version=version,
        timestamp=timestamp,
        timezone=time_zone(spark),
        ignore_missing_files=is_set(spark, MISSING_FILES_SETTING, False),
        protocol_downgrade_allowed=is_set(spark, RESTORE_PROTOCOL_DOWNGRADE.full_name, False),
        transaction_id=transaction,
    )
    metrics = ask(handle.log, log_calls.metrics_of, transaction)
    if metrics is None:
        return nothing(spark)
    row = {name: int(metrics[log_calls.metric_of_column(name)]) for name in RESTORED_COLUMNS}
    return frame(spark, [row], dict.fromkeys(RESTORED_COLUMNS, "long"))
