"""What pictures ask of a version, wherever its log is: answers are small, and need no matplotlib there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.kernel.log.snapshot import Snapshot, open_snapshot
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.commands.layout.column import ColumnLayout
    from delta_ds.kernel.commands.layout.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Skipping:
    """An explanation without its files: `steps` as of `Explanation`."""

    table: str
    version: int
    predicate: str
    steps: pa.Table


def timeline(latest: Snapshot, limit: int | None) -> Timeline:
    """See `DeltaLog.timeline`."""
    from delta_ds.kernel.commands.layout.timeline import timeline

    return timeline(latest, limit)


def column_layout(latest: Snapshot, column: str, version: int | None, timezone: str) -> ColumnLayout:
    """See `Snapshot.column_layout`; without the paths of the files."""
    from delta_ds.kernel.commands.layout.column import column_layout

    found = column_layout(_at(latest, version), column, timezone=timezone)
    return replace(found, files=found.files.drop_columns(["path"]))


def skipping(latest: Snapshot, predicate: str, version: int | None, timezone: str) -> Skipping:
    """See `Scan.explain`."""
    from delta_ds.kernel.files.scan.scan import Scan

    found = Scan(_at(latest, version), predicate, timezone=timezone).explain()
    return Skipping(found.table, found.version, predicate, found.steps)


def _at(latest: Snapshot, version: int | None) -> Snapshot:
    return latest if version in (None, latest.version) else open_snapshot(latest.storage, version)
