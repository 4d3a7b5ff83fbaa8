"""Auto compaction: compact the small files of a partition after a write.

Synchronous, small, and never failing the write: what goes wrong is logged, and the next write makes up for it.

Source: delta-spark, `AutoCompact`, `AutoCompactUtils`, `AutoCompactPartitionStats`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from delta_ds.conditions.options import INVALID_AUTO_COMPACT_TYPE
from delta_ds.events.commands import AUTO_COMPACTION_FAILED
from delta_ds.exceptions import DeltaError, InvalidOptionError
from delta_ds.kernel.base.arrow_buffers import integers, numbers
from delta_ds.kernel.base.value_types import parse_size
from delta_ds.kernel.commands.optimize import bins
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.optimize.planning import in_partitions
from delta_ds.kernel.commands.optimize.request import COMPACT, OptimizeRequest, OptimizeSettings
from delta_ds.kernel.format.options import settings
from delta_ds.kernel.format.options.settings import CODEC
from delta_ds.kernel.format.properties import AUTO_COMPACT, AUTO_OPTIMIZE
from delta_ds.kernel.storage.maintenance import Maintenance
from delta_ds.kernel.transaction.origin import carried
from delta_ds.kernel.transaction.table_log import TableLog
from delta_ds.records import dataclass
from delta_ds.reporting.listeners import leave_reports

if TYPE_CHECKING:
    from delta_ds.kernel.format.actions import Metadata
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.transaction.write.plan import WritePlan
    from delta_ds.kernel.transaction.write.task import TaskResult


_MOST_PARTITIONS = 128

PartitionValues = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class AutoCompaction:
    """Whether and how compaction follows a write.

    Attributes
    ----------
    enabled
        What the session says; None: the table's `delta.autoOptimize.autoCompact`, or the older `delta.autoOptimize`.
    min_files
        So many small files of a partition start a compaction.
    max_file_size
        Bytes that files shall come to.
    min_file_size
        Files of fewer bytes are small; None: half of `max_file_size`.
    compression
        The codec of new files; None: the table's.
    """

    enabled: bool | None = None
    min_files: int = 50
    max_file_size: int = 128 << 20
    min_file_size: int | None = None
    compression: str | None = None

    @property
    def small(self) -> int:
        return self.max_file_size // 2 if self.min_file_size is None else self.min_file_size


def auto_compaction_of(configuration: Mapping[str, str]) -> AutoCompaction:
    """The settings of auto compaction in a session, by delta-spark's names.

    Raises
    ------
    InvalidOptionError
        A value that a setting does not take.
    """
    enabled = settings.AUTO_COMPACT.text(configuration)
    if enabled not in (None, "true", "false"):
        raise INVALID_AUTO_COMPACT_TYPE(value=enabled)
    low = settings.AUTO_COMPACT_MIN_FILE_SIZE.text(configuration)
    try:
        return AutoCompaction(
            enabled=None if enabled is None else enabled == "true",
            min_files=int(settings.AUTO_COMPACT_MIN_NUM_FILES.text(configuration) or ""),
            max_file_size=parse_size(settings.AUTO_COMPACT_MAX_FILE_SIZE.text(configuration) or ""),
            min_file_size=None if low is None else parse_size(low),
            compression=configuration.get(CODEC),
        )
    except ValueError as error:
        raise InvalidOptionError(
            f"a setting of spark.databricks.delta.autoCompact is wrong: {error}"
        ) from error


def is_enabled(properties: Mapping[str, str], settings: AutoCompaction) -> bool:
    """Whether writes to a table with these properties are followed by compaction."""
    if settings.enabled is not None:
        return settings.enabled
    old, new = AUTO_OPTIMIZE.of(properties), AUTO_COMPACT.of(properties)
    return bool(old or new)


def auto_compact(
    log: TableLog,
    partitions: Sequence[PartitionValues],
    settings: AutoCompaction | None = None,
    *,
    timezone: str = "UTC",
    engine_info: str | None = None,
) -> int | None:
    """Compact the partitions that a commit has added files to, where they have many small ones.

    Never raises: what goes wrong is logged.

    Parameters
    ----------
    log
        The table, after the commit.
    partitions
        `partitionValues` of the files that were added; `{}` for tables without partitions.
    settings
        What the session says.
    timezone
        Of the session.
    engine_info
        Who writes, for the history.

    Returns
    -------
    int or None
        The version of the compaction; None where there was none.
    """
    settings = settings or AutoCompaction()
    try:
        snapshot = log.newest()
        if not partitions or not is_enabled(snapshot.metadata.configuration, settings):
            return None
        chosen = _crowded_partitions(snapshot, partitions, settings)
        if not chosen or not log.storage.allows(Maintenance.OPTIMIZE):
            return None
        sizes = OptimizeSettings(
            min_file_size=settings.small,
            max_file_size=settings.max_file_size,
            max_deleted_rows_ratio=1.0,
            compression=settings.compression,
        )
        request = OptimizeRequest(COMPACT, settings=sizes, timezone=timezone, auto=True, partitions=chosen)
        return optimize(log, request, engine_info=engine_info).version
    except Exception as error:  # noqa: BLE001 - whatever it is, the write it follows stands
        reason = error.text if isinstance(error, DeltaError) else repr(error)
        AUTO_COMPACTION_FAILED.log(table=log.storage.url, reason=reason)
        return None


def _crowded_partitions(
    snapshot: Snapshot, partitions: Sequence[PartitionValues], settings: AutoCompaction
) -> tuple[PartitionValues, ...]:
    """The partitions that have many small files."""
    distinct = {tuple(sorted(values.items())): values for values in partitions}
    wanted = list(distinct.values())
    rows = in_partitions(snapshot, wanted)
    table = snapshot.live_files().table.take(integers(rows))
    small = numbers(table["size"]) < settings.small
    if not snapshot.partition_columns:
        return ({},) if small.sum() >= settings.min_files else ()
    table = table.take(integers(np.flatnonzero(small)))
    codes = bins.partition_numbers(table, snapshot.physical_partition_columns)
    counts = np.bincount(codes) if len(codes) else np.empty(0, np.int64)
    firsts = np.unique(codes, return_index=True)[1][counts[counts > 0] >= settings.min_files]
    names = snapshot.physical_partition_columns
    found = table.take(integers(firsts[:_MOST_PARTITIONS]))["partitionValues"].to_pylist()
    return tuple({name: values[name] for name in names} for values in found)


def compact_as_planned(plan: WritePlan, results: Sequence[TaskResult], engine_info: str) -> None:
    """What follows a commit, by what the session said when the write began; arguments as of `compact_after`."""
    options = plan.options
    if not options.data_change:
        return
    compaction = auto_compaction_of(options.facts.settings)
    with leave_reports(options.report_folder), carried(options.facts.settings):
        compact_after(plan.storage, plan.state.metadata, results, compaction, plan.rows.timezone, engine_info)


def compact_after(
    storage: Storage,
    metadata: Metadata,
    results: Iterable[TaskResult],
    compaction: AutoCompaction,
    timezone: str,
    engine_info: str,
) -> None:
    """Compact partitions that a commit has added files to, if that is wanted and they have many small ones.

    Never fails: what goes wrong is logged.

    Parameters
    ----------
    storage, metadata
        The table, after the commit.
    results
        What was written.
    compaction
        What the session says.
    engine_info
        Who compacts, for the history.
    """
    try:
        if not is_enabled(metadata.configuration, compaction):
            return
        partitions = _distinct(add["partitionValues"] for result in results for add in result.adds)
        auto_compact(TableLog(storage), partitions, compaction, timezone=timezone, engine_info=engine_info)
    except Exception as error:
        # The version is there: whoever is told of a failure now would take its files for leftovers.
        AUTO_COMPACTION_FAILED.log(table=storage.url, reason=error)


def _distinct(partitions: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return list({tuple(sorted(p.items())): p for p in partitions}.values())
