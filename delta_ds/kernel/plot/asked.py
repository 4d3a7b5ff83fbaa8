"""What pictures ask a log, wherever that is: answers are small enough to travel, and need no matplotlib there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.layout.column import ColumnLayout
    from delta_ds.kernel.layout.timeline import Timeline
    from delta_ds.kernel.scan.scan import Scan


class Version(Protocol):
    """A version of a table as pictures need it; see `Snapshot`."""

    def column_layout(self, column: str, *, timezone: str) -> ColumnLayout: ...

    def scan(self, predicate: str, *, timezone: str) -> Scan: ...


class Log(Protocol):
    """A log as pictures need it; see `DeltaLog`."""

    def timeline(self, limit: int | None = None) -> Timeline: ...

    def snapshot(self, version: int | None = None) -> Version: ...


@dataclass(frozen=True, slots=True)
class Skipping:
    """An explanation without its files: `steps` as of `Explanation`."""

    table: str
    version: int
    predicate: str
    steps: pa.Table


def timeline(log: Log, limit: int | None) -> Timeline:
    """See `DeltaLog.timeline`."""
    return log.timeline(limit)


def column_layout(log: Log, column: str, version: int | None, timezone: str) -> ColumnLayout:
    """See `Snapshot.column_layout`; without the paths of the files."""
    found = log.snapshot(version).column_layout(column, timezone=timezone)
    return replace(found, files=found.files.drop_columns(["path"]))


def skipping(log: Log, predicate: str, version: int | None, timezone: str) -> Skipping:
    """See `Scan.explain`."""
    found = log.snapshot(version).scan(predicate, timezone=timezone).explain()
    return Skipping(found.table, found.version, predicate, found.steps)
