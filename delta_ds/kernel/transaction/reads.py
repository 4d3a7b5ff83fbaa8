"""The read set of a transaction: predicates, files and application ids, for conflict checks.

Source: conflict-matrix section 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.events.log import READ_PREDICATE_WIDENED
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.tree import Expression, conjunction, conjuncts
from delta_ds.records import dataclass, field

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.files.scan.scan import Scan
    from delta_ds.kernel.log.snapshot import Snapshot


PartitionValues = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class ReadPredicate:
    """One predicate that a scan looked for.

    Attributes
    ----------
    parts
        The conjuncts as they were written, each bound to the schema that was read; none: every row.
    timezone
        The zone they are meant in; None if that is not known.
    """

    parts: tuple[Expression, ...] = ()
    timezone: str | None = "UTC"

    @property
    def expression(self) -> Expression | None:
        return conjunction(list(self.parts))


@dataclass(slots=True)
class Reads:
    """The read set of one transaction.

    Attributes
    ----------
    predicates
        One entry a scan; a file is of interest if it may hold a row of any of them.
    partitions
        Partitions that were overwritten by name: physical column names to texts, one list an overwrite.
    scans
        Whose files, as left after skipping, were read.
    files
        Further files that were read, by canonical path.
    excused
        Files that count as not read any more, by canonical path: a backfill gives up those that others have replaced.
    whole_table
        Whether the transaction hangs on every row of the table.
    app_ids
        Applications whose latest transaction was looked up.
    """

    predicates: list[ReadPredicate] = field(default_factory=list)
    partitions: list[Sequence[PartitionValues]] = field(default_factory=list)
    scans: list[Scan] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    excused: set[str] = field(default_factory=set)
    whole_table: bool = False
    app_ids: set[str] = field(default_factory=set)

    @property
    def nothing(self) -> bool:
        """Whether no rows and no files were read; reading an application id does not count."""
        return not (self.predicates or self.partitions or self.scans or self.files or self.whole_table)

    def add_scan(self, scan: Scan, predicate: ReadPredicate) -> None:
        self.predicates.append(predicate)
        self.scans.append(scan)

    def add_predicate(
        self, snapshot: Snapshot | None, predicate: str | Expression | None, timezone: str | None
    ) -> None:
        """Record a predicate; one that is not understood counts as every row."""
        try:
            bound = bound_predicate(snapshot, predicate, timezone)
        except PredicateError as error:
            READ_PREDICATE_WIDENED.log(predicate=predicate, reason=error)
            bound = ReadPredicate((), timezone)
        self.predicates.append(bound)

    def first_read(self, paths: Iterable[str]) -> str | None:
        """The first of some files, by canonical path, that was read; None if none was."""
        candidates = [path for path in paths if path not in self.excused]
        if not candidates:
            return None
        read = self.files.intersection(candidates)
        for scan in self.scans:
            if len(read) == len(candidates):
                break
            read |= _among(_scanned(scan), candidates)
        return next((path for path in candidates if path in read), None)


def bound_predicate(
    snapshot: Snapshot | None, predicate: str | Expression | None, timezone: str | None
) -> ReadPredicate:
    """Split a predicate into its conjuncts, and bind each of them.

    Raises
    ------
    PredicateError
        It cannot be parsed, or names an unknown column.
    """
    if predicate is None or snapshot is None:
        return ReadPredicate((), timezone)
    from delta_ds.kernel.format.expressions.bind import bind
    from delta_ds.kernel.format.expressions.sql import parse_predicate

    tree = parse_predicate(predicate) if isinstance(predicate, str) else predicate
    # Split before binding: that rewrites negations, and could turn one condition into several.
    parts = [bind(part, snapshot.schema, timezone or "UTC") for part in conjuncts(tree)]
    return ReadPredicate(tuple(parts), timezone)


def _scanned(scan: Scan) -> pa.ChunkedArray:
    path = scan.snapshot.live_files().canonical_paths
    return path if scan.predicate is None else path.take(scan.pruning.rows)


def _among(column: pa.ChunkedArray, paths: Sequence[str]) -> set[str]:
    import pyarrow.compute as pc

    from delta_ds.kernel.base.arrow_buffers import texts

    return set(column.filter(pc.is_in(column, value_set=texts(list(paths)))).to_pylist())


def partition_values(snapshot: Snapshot, path: str) -> dict[str, Any] | None:
    """The partition values of a live file, by physical name; None if it is not live or has none.

    Parameters
    ----------
    path
        Canonical.
    """
    import pyarrow.compute as pc

    from delta_ds.kernel.base.arrow_buffers import texts

    files = snapshot.live_files()
    if "partitionValues" not in files.table.column_names:
        return None
    rows = files.table.filter(pc.is_in(files.canonical_paths, value_set=texts([path])))
    values: list[dict[str, Any] | None] = rows["partitionValues"].to_pylist()
    return values[0] if values else None
