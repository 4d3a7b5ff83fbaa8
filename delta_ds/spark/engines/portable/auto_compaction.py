"""Auto compaction after writes, where the table or the session asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from delta_ds.events.commands import AUTO_COMPACTION_FAILED
from delta_ds.kernel.commands.optimize.auto_compact import (
    AutoCompaction,
    auto_compact,
    is_enabled,
)
from delta_ds.kernel.format.actions import Metadata
from delta_ds.kernel.transaction.table_log import TableLog
from delta_ds.kernel.transaction.write.task import TaskResult
from delta_ds.spark.base.kinds.origin import engine_info

if TYPE_CHECKING:
    from delta_ds.kernel.storage.filesystem import Storage


def compact_after(
    storage: Storage,
    metadata: Metadata,
    results: Iterable[TaskResult],
    compaction: AutoCompaction,
    timezone: str,
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
    """
    try:
        if not is_enabled(metadata.configuration, compaction):
            return
        partitions = _distinct(add["partitionValues"] for result in results for add in result.adds)
        auto_compact(TableLog(storage), partitions, compaction, timezone=timezone, engine_info=engine_info())
    except Exception as error:
        # The version is there: whoever is told of a failure now would take its files for leftovers.
        AUTO_COMPACTION_FAILED.log(table=storage.url, reason=error)


def _distinct(partitions: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return list({tuple(sorted(p.items())): p for p in partitions}.values())
