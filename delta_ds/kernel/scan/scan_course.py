"""The choice of a scan's files in numbers, and the report of it for whoever listens."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from delta_ds.reporting import listeners
from delta_ds.reporting.reports import ScanReport

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.scan.skipping import Pruning


class ScanCourse:
    """What is noted while files are chosen, by several threads: nothing, unless somebody listens."""

    __slots__ = ("_parts", "_started", "_wanted")

    def __init__(self) -> None:
        self._wanted = listeners.is_wanted(ScanReport)
        self._started = time.perf_counter()
        self._parts: list[Pruning] = []

    def noted(self, pruning: Pruning) -> Pruning:
        """The same pruning."""
        if self._wanted:
            self._parts.append(pruning)
        return pruning

    def tell(self, version: Snapshot, sizes: pa.ChunkedArray) -> None:
        """Report what was chosen: the sizes, bytes, of the files that are read."""
        if not self._wanted:
            return
        import pyarrow.compute as pc

        skipped: dict[str, int] = {}
        for pruning in self._parts:
            for reason in pruning.reasons:
                skipped[reason.source] = skipped.get(reason.source, 0) + len(reason.rows)
        listeners.report(
            ScanReport(
                table=version.storage.url,
                version=version.version,
                files=len(sizes) + sum(skipped.values()),
                files_kept=len(sizes),
                bytes_kept=int(pc.sum(sizes).as_py() or 0),
                skipped=skipped,
                seconds=time.perf_counter() - self._started,
            )
        )
