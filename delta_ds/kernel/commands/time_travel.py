"""The version a command goes back to, by number or by timestamp."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from delta_ds.conditions.options import TIMESTAMP_INVALID
from delta_ds.kernel.format.options import parsing as values

if TYPE_CHECKING:
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.transaction.table_log import TableLog

Timestamp = datetime | int | str


def snapshot_at(
    log: TableLog, version: int | None, timestamp: Timestamp | None, timezone: str = "UTC"
) -> Snapshot:
    """The snapshot of a version, of a timestamp, or (neither given) the latest.

    Parameters
    ----------
    log
        The table.
    version
        The version.
    timestamp
        An aware datetime, ms since 1970, or text as Spark casts it to a timestamp.
    timezone
        The session time zone: that of texts without one.

    Raises
    ------
    InvalidOptionError
        Both are given, or the text is no timestamp.
    DeltaError
        As `DeltaLog.snapshot`.
    """
    if not isinstance(timestamp, str):
        return log.open_snapshot(version, timestamp)
    try:
        timestamp = values.timestamp(timestamp, values.zone_by_name(timezone))
    except ValueError as error:
        raise TIMESTAMP_INVALID(timestamp=timestamp, table=log.storage.url, reason=error) from error
    return log.open_snapshot(version, timestamp)
