"""Which tables are large: those whose log the driver does not read by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.conditions.options import INVALID_CONF_VALUE
from delta_ds.events.spark import DISTRIBUTED_PLANNING_NOT_USED
from delta_ds.kernel.format.features import V2_CHECKPOINT
from delta_ds.kernel.log.checkpoint_files import UnreadableCheckpointError
from delta_ds.kernel.log.parts import holds_actions
from delta_ds.spark.base.kinds.environment import tasks_problem
from delta_ds.spark.base.session_conf import LARGE_TABLE_CONF, LARGE_TABLE_FILES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds.kernel.log.snapshot import Snapshot


def is_large(spark: SparkSession, snapshot: Snapshot) -> bool:
    """Whether the files of a version are to be found by the tasks of a job; see `LARGE_TABLE_CONF`.

    Not where its files are known already, nor where tasks cannot run this package, which is logged.

    Raises
    ------
    InvalidOptionError
        The setting is no number.
    """
    if snapshot.is_loaded or snapshot.selection is not None:
        return False
    sidecars = snapshot.table_state.supports(V2_CHECKPOINT)
    try:
        if not holds_actions(snapshot.storage, snapshot.segment, _bound(spark), sidecars=sidecars):
            return False
    except UnreadableCheckpointError:
        return False  # the driver takes an older one, and says so
    reason = tasks_problem(spark)
    if reason is not None:
        driver_plans(snapshot, reason)
    return reason is None


def driver_plans(snapshot: Snapshot, reason: str) -> None:
    """Log why the driver reads the log of a large table by itself."""
    DISTRIBUTED_PLANNING_NOT_USED.log(table=snapshot.storage.url, reason=reason)


def _bound(spark: SparkSession) -> int:
    text = str(spark.conf.get(LARGE_TABLE_CONF, str(LARGE_TABLE_FILES)))
    try:
        return int(text)
    except ValueError as error:
        raise INVALID_CONF_VALUE(setting=LARGE_TABLE_CONF, value=text, reason=error) from error
