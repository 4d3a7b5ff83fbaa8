"""`TableView`: one table as its page asks for it; versions and explanations are kept for the next request."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.files.scan.partitions import partition_tuples
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.files.scan.skipping import row_numbers
from delta_ds.kernel.format.schema.types import STRING
from delta_ds.kernel.format.values.statistics import load_statistics
from delta_ds.kernel.transaction.table_log import snapshot_at
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from delta_ds.api.delta_log import DeltaLog
    from delta_ds.kernel.files.scan.explain import Explanation
    from delta_ds.kernel.log.snapshot import Snapshot

# --- `FileFigures`: bytes, rows and partitions of all files of a version, by its log alone


@dataclass(frozen=True, slots=True)
class FileFigures:
    """The files of a version.

    Attributes
    ----------
    table
        A row a file, in log order: `path` string; `size`, `rows`, `deleted`, `modified`, `partition` int64: bytes, live
        rows (null: not known), rows that a deletion vector deletes, ms since 1970, the row number in `partitions`.
    partitions
        A row a distinct tuple of partition values: `values` struct of texts by logical name (absent for a table
        without partitions), and `files`, `bytes`, `rows`, `deleted` int64; `rows` null: not known of some file.
    """

    table: pa.Table
    partitions: pa.Table

    @classmethod
    def of(cls, snapshot: Snapshot) -> FileFigures:
        """Those of a snapshot, by its log alone; linear in files, without a Python object a file."""
        files = snapshot.live_files()
        stored = load_statistics(files, row_numbers(files.num_rows), []).num_records
        deleted = pc.struct_field(files.table["deletionVector"].combine_chunks(), "cardinality")
        deleted = pc.fill_null(deleted, 0)
        physical = zip(snapshot.partition_columns, snapshot.physical_partition_columns, strict=True)
        wanted = {name: (column, STRING) for name, column in physical}
        tuples = partition_tuples(files, wanted, frozenset(), "UTC")
        table = pa.table(
            {
                "path": files.table["path"],
                "size": files.table["size"],
                "rows": pc.subtract(stored, deleted),
                "deleted": deleted,
                "modified": files.table["modificationTime"],
                "partition": tuples.code,
            }
        )
        return cls(table, _partitions(table, tuples.table if wanted else None))

    def totals(self) -> dict[str, Any]:
        """How many files, bytes and rows; rows None where the log does not count all."""
        return totals(self.table)


def _partitions(table: pa.Table, values: pa.Table | None) -> pa.Table:
    found = table.group_by("partition").aggregate(
        [("path", "count"), ("size", "sum"), ("deleted", "sum")]
        + [("rows", "sum", pc.ScalarAggregateOptions(skip_nulls=False))]
    )
    columns = {"files": "path_count", "bytes": "size_sum", "rows": "rows_sum", "deleted": "deleted_sum"}
    out = pa.table(
        {"partition": found["partition"], **{new: found[old] for new, old in columns.items()}}
    ).sort_by("partition")
    if values is None:
        return out
    texts = values.take(out["partition"])
    return out.append_column(
        "values", pa.StructArray.from_arrays([c.combine_chunks() for c in texts.columns], texts.column_names)
    )


def totals(table: pa.Table) -> dict[str, Any]:
    """How many files, bytes and rows some files have; rows None where the log does not count all."""
    unknown = table["rows"].null_count
    return {
        "files": table.num_rows,
        "bytes": pc.sum(table["size"]).as_py() or 0,
        "rows": None if unknown else pc.sum(table["rows"]).as_py() or 0,
        "deleted": pc.sum(table["deleted"]).as_py() or 0,
    }


# --- `TableView`: one table as its page asks for it; versions and explanations are kept for the next request

_T = TypeVar("_T")

# Somebody goes back and forth between a few versions, and pages through the answers to a filter.
_KEPT = 4
# Of a version.
_MOST_DIGITS = 19


class TableView:
    """What the requests of one page share.

    Parameters
    ----------
    log
        The table.
    zone
        The time zone of predicates, and of timestamps without one.
    start
        The version that the page begins with; None: the newest there is.
    """

    def __init__(self, log: DeltaLog, zone: str = "UTC", start: int | None = None) -> None:
        self.log = log
        self.zone = zone
        self.start = start
        self._id: str | None = None
        self._snapshots: _Recent[Snapshot] = _Recent()
        self._explained: _Recent[Explanation] = _Recent()
        self._figures: _Recent[FileFigures] = _Recent()

    def newest(self) -> Snapshot:
        """The newest version, looked for anew."""
        found = self.log.open_snapshot()
        if found.metadata.id != self._id:
            # Another table has come to be in its place.
            self._snapshots, self._explained, self._figures = _Recent(), _Recent(), _Recent()
            self._id = found.metadata.id
        return self._snapshots.get(found.version, lambda: found)

    def resolve(self, at: str) -> Snapshot:
        """The version that a text names: a number or a timestamp; nothing: what the page begins with.

        Raises
        ------
        DeltaError
            There is none.
        """
        at = at.strip()
        if at.isascii() and at.isdecimal() and len(at) <= _MOST_DIGITS:
            return self.snapshot(int(at))
        if at:
            found = snapshot_at(self.log, None, at, self.zone)
            return self._snapshots.get(found.version, lambda: found)
        return self.newest() if self.start is None else self.snapshot(self.start)

    def snapshot(self, version: int) -> Snapshot:
        """A version."""
        return self._snapshots.get(version, partial(self.log.open_snapshot, version))

    def explain(self, version: int, where: str) -> Explanation:
        """What a predicate reads of a version, and why; an empty one reads everything.

        Raises
        ------
        PredicateError
            It cannot be parsed, or names what is not there.
        """
        snapshot = self.snapshot(version)
        predicate = where.strip() or None
        return self._explained.get(
            (version, where), lambda: Scan(snapshot, predicate, timezone=self.zone).explain()
        )

    def figures(self, version: int) -> FileFigures:
        """The files of a version with their figures."""
        snapshot = self.snapshot(version)
        return self._figures.get(version, lambda: FileFigures.of(snapshot))


class _Recent(Generic[_T]):
    """The things asked for last; one of them is made at a time, and none twice."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, _T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any, make: Callable[[], _T]) -> _T:
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
                if len(self._made) > _KEPT:
                    self._made.popitem(last=False)
            self._made.move_to_end(key)
            return self._made[key]
