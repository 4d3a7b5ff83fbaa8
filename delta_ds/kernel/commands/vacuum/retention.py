"""The retention of files that were removed, and the check that a shorter one is safe."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta

from delta_ds.conditions.maintenance import (
    VACUUM_RETENTION_PERIOD_NEGATIVE,
    VACUUM_RETENTION_PERIOD_TOO_SHORT,
)
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.properties import DELETED_FILE_RETENTION
from delta_ds.records import dataclass

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Horizon:
    """The cut-off of a VACUUM: files older than `cutoff_ms` may be deleted.

    Attributes
    ----------
    cutoff_ms
        ms since 1970; a file of exactly this time stays.
    default_ms, specified_ms
        The retention by the table's property, and the one that was asked for (None: not said).
    checked
        Whether a retention shorter than the property's is refused.
    """

    cutoff_ms: int
    default_ms: int
    specified_ms: int | None
    checked: bool

    def parameters(self) -> dict[str, bool | int]:
        """The parameters of VACUUM START."""
        named: dict[str, bool | int] = {
            "retentionCheckEnabled": self.checked,
            "defaultRetentionMillis": self.default_ms,
        }
        return (
            named if self.specified_ms is None else {**named, "specifiedRetentionMillis": self.specified_ms}
        )


def horizon_of(
    configuration: Mapping[str, str], table: str, hours: float | None, *, checked: bool, now_ms: int
) -> Horizon:
    """The horizon of one VACUUM.

    Parameters
    ----------
    configuration
        The table's properties.
    table
        Its address, for messages.
    hours
        The retention asked for; None: the table's own. Differs: delta-spark rounds it to whole hours.

    Raises
    ------
    InvalidOptionError
        A negative retention, or one shorter than the table's while that is checked.
    """
    default_ms = DELETED_FILE_RETENTION.of(configuration) // timedelta(milliseconds=1)
    if hours is None:
        return Horizon(now_ms - default_ms, default_ms, None, checked)
    if not math.isfinite(hours):
        raise InvalidOptionError(
            f"retentionHours is {hours}, which is no number of hours; table {table} was not touched",
            parameters={"retentionHours": hours},
        )
    if hours < 0:
        raise VACUUM_RETENTION_PERIOD_NEGATIVE(retentionHours=hours, table=table)
    specified_ms = math.ceil(hours * _HOUR_MS)
    if checked and specified_ms < default_ms:
        wanted = -(-default_ms // _HOUR_MS)
        raise VACUUM_RETENTION_PERIOD_TOO_SHORT(
            retentionHours=hours,
            table=table,
            configuredRetentionHours=wanted,
        )
    return Horizon(now_ms - specified_ms, default_ms, specified_ms, checked)
