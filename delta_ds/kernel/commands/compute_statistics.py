"""Statistics for files that have none: read from their footers, and committed with the files as they are.

Source: PROTOCOL.md, "Per-file Statistics"; delta-spark, `StatisticsCollection.recompute`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.data import FAILED_READ_FILE_FILE_NOT_EXIST, FAILED_READ_FILE_NO_HINT
from delta_ds.exceptions import DataFileError, DeltaError
from delta_ds.kernel.base.work import Work
from delta_ds.kernel.files.scan.skipping import row_numbers
from delta_ds.kernel.files.write.footer_statistics import FooterStatistics, read_footer
from delta_ds.kernel.files.write.live_actions import add_bodies, live_adds
from delta_ds.kernel.files.write.write_spec import write_spec
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.format.operations import COMPUTE_STATS
from delta_ds.kernel.format.values.statistics import load_statistics
from delta_ds.kernel.format.values.statistics_json import with_wide_bounds
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.transaction.table_log import TableLog

_AT_ONCE = 16
_FILES_A_COMMIT = 20_000


@dataclass(frozen=True, slots=True)
class ComputedStatistics:
    """What was committed.

    Attributes
    ----------
    version
        Of the last commit; None where every file had statistics.
    files
        How many files got statistics.
    counts_only
        How many of them got the number of their rows and no bounds: those without some column of the table.
    """

    version: int | None
    files: int
    counts_only: int


def compute_statistics(
    log: TableLog, *, engine_info: str | None = None, files_a_commit: int = _FILES_A_COMMIT
) -> ComputedStatistics:
    """Commit the files whose rows the log does not count again, with statistics; no row and no file changes.

    Parameters
    ----------
    log
        The table.
    engine_info
        Who writes, for the history.
    files_a_commit
        How many files one commit holds at most.

    Raises
    ------
    DataFileError
        A file is missing or damaged. What was committed before stays.
    DeltaConcurrentModificationException
        Another commit removed or changed one of the files. Nothing of this commit was written.
    UnsupportedFeatureError
        The table needs something of writers that is not supported.
    """
    with Work(COMPUTE_STATS.name, log.storage.url) as work:
        return _computed(log, work, engine_info, files_a_commit)


def _computed(log: TableLog, work: Work, engine_info: str | None, files_a_commit: int) -> ComputedStatistics:
    version, total, counted = None, 0, 0
    while True:
        txn = log.start_transaction(engine_info=engine_info)
        assert txn.base is not None
        bodies = list(islice(_without_statistics(txn.base), files_a_commit))
        if not bodies:
            return ComputedStatistics(version, total, counted)
        reader = _Reader(txn.base)
        reading = work.phase("reading footers", total=len(bodies))
        with reading as phase, ThreadPoolExecutor(_AT_ONCE) as pool:
            found = list(phase.each(pool.map(reader.statistics, bodies)))
        txn.read_files(body["path"] for body in bodies)
        txn.add_all(
            cast("AddFile", {**body, "stats": text}) for body, (text, _) in zip(bodies, found, strict=True)
        )
        version = txn.commit(
            COMPUTE_STATS,
            metrics={"numFiles": len(bodies), "numFilesCountsOnly": sum(not b for _, b in found)},
        )
        total += len(bodies)
        counted += sum(not bounds for _, bounds in found)


def _without_statistics(snapshot: Snapshot) -> Iterator[AddFile]:
    """The `add` actions of live files whose rows the log does not count."""
    files = snapshot.live_files()
    counts = load_statistics(files, row_numbers(files.num_rows), []).num_records
    if not counts.null_count:
        return
    paths = files.table["path"].combine_chunks().filter(pc.is_null(counts)).cast(pa.string())
    for table in live_adds(snapshot, paths):
        yield from add_bodies(table, data_change=False)


class _Reader:
    """Reads the statistics of single files of a version."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._storage: Storage = snapshot.storage
        spec = write_spec(snapshot.table_state, clustering_columns=snapshot.clustering_paths)
        self._statistics = FooterStatistics(snapshot.storage, spec)

    def statistics(self, body: AddFile) -> tuple[str, bool]:
        """The text of a file's statistics, and whether it has bounds."""
        path, size = self._storage.resolve(body["path"]), body["size"]
        try:
            rows = int(read_footer(self._storage, path, size).num_rows)
        except FileNotFoundError as error:
            raise FAILED_READ_FILE_FILE_NOT_EXIST(self._named(path), place=self._place(path)) from error
        except (DeltaError, pa.ArrowException, OSError) as error:
            reason = error.text if isinstance(error, DeltaError) else error
            raise FAILED_READ_FILE_NO_HINT(
                self._named(path), place=self._place(path), reason=reason
            ) from error
        try:
            text, bounds = self._statistics.of(path, size)[1], True
        except DataFileError:
            # Written before a column came or went: its bounds would be those of other columns.
            text, bounds = f'{{"numRecords":{rows}}}', False
        return (with_wide_bounds(text, rows) if body.get("deletionVector") else text), bounds

    def _place(self, path: str) -> str:
        return f"data file {path} of table {self._storage.url}"

    def _named(self, path: str) -> dict[str, str]:
        return {"path": path, "table": self._storage.url}
