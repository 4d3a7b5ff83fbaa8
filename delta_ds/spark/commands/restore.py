"""`restoreToVersion` and `restoreToTimestamp`."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING

from delta_ds.kernel.commands.restore import RESULT_COLUMNS, restore
from delta_ds.kernel.format.options.settings import RESTORE_PROTOCOL_DOWNGRADE
from delta_ds.spark.base.kinds.frames import frame, nothing
from delta_ds.spark.base.session_conf import is_set, time_zone
from delta_ds.spark.engines.connect import log_calls
from delta_ds.spark.engines.connect.connect_bridge import ask, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_ds.spark.commands.handle import Handle

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
    row = {name: int(metrics[log_calls.metric_of_column(name)]) for name in RESULT_COLUMNS}
    return frame(spark, [row], dict.fromkeys(RESULT_COLUMNS, "long"))
