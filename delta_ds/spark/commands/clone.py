"""`clone`, `cloneAtVersion` and `cloneAtTimestamp`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from delta_ds.spark import log_calls
from delta_ds.spark.commands.handle import open_handle
from delta_ds.spark.connect_bridge import run
from delta_ds.spark.session_conf import time_zone
from delta_ds.spark.table_names import without_path

if TYPE_CHECKING:
    from delta_ds.spark.commands.handle import Handle


def run_clone(
    handle: Handle,
    target: str,
    shallow: bool,
    replace: bool,
    properties: Mapping[str, str] | None,
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
    options = without_path(handle.options)
    run(
        handle.log,
        log_calls.clone_to,
        target,
        options,
        shallow=shallow,
        version=version,
        timestamp=timestamp,
        timezone=time_zone(handle.spark),
        replace_existing=replace,
        properties=dict(properties or {}),
    )
    return open_handle(handle.spark, target, options)
