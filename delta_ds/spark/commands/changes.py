"""`changes`: the change data feed between two versions or timestamps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from delta_ds.kernel.commands.changes.net import check_net
from delta_ds.spark.base.schema import quoted_list
from delta_ds.spark.base.session_conf import time_zone
from delta_ds.spark.session.reading import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_ds.spark.commands.handle import Handle


def run_changes(
    handle: Handle,
    start: int | str | datetime | None,
    end: int | str | datetime | None,
    net: str | None,
    keys: Sequence[str] | None,
) -> DataFrame:
    """The change feed of a range of versions; see `DeltaTable.changes`."""
    kind = check_net(net, keys)
    options = {**handle.options, "readChangeFeed": "true", "timeZone": time_zone(handle.spark)}
    options |= _boundary("starting", 0 if start is None else start)
    if end is not None:
        options |= _boundary("ending", end)
    if kind is not None:
        options |= {"net": kind, "keys": quoted_list(keys or ())}
    rows = read(handle.spark, options)
    return rows.alias(handle.alias) if handle.alias else rows


def _boundary(which: str, value: int | str | datetime) -> dict[str, str]:
    if isinstance(value, int):
        return {f"{which}Version": str(value)}
    return {f"{which}Timestamp": value if isinstance(value, str) else value.isoformat()}
