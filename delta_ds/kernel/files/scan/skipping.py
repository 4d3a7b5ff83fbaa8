"""Data skipping: the files that cannot hold a matching row, by partition values and statistics.

The predicate is split into conjuncts. For each file and conjunct the only question is whether the conjunct
*may* be true of some row; where that is not known, it may. So a part that cannot be decided never disables
the others, and a file with a matching row is never skipped.

Source: PROTOCOL.md, "Per-file Statistics" and "Partition Value Serialization".

Skipping as a filter that other processes can be given, for the files of a part of a checkpoint.

What it keeps of all parts, then of the files of the commits after the checkpoint, is what `prune` keeps of all live
files, in the same order: skipping looks at one file at a time.

Source: PROTOCOL.md, "Per-file Statistics".
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import true_rows
from delta_ds.kernel.files.scan.bounds import same_for_all
from delta_ds.kernel.files.scan.file_pruning import (
    FilePruning,
    StatisticsColumnRef,
    find_statistics_column,
    without_nan,
)
from delta_ds.kernel.files.scan.partitions import partition_tuples
from delta_ds.kernel.format.expressions.arrays import FALSE, scalar_of
from delta_ds.kernel.format.expressions.tree import Expression, columns, conjuncts
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.column_mapping import physical_name
from delta_ds.kernel.format.schema.field_metadata import GENERATION_EXPRESSION
from delta_ds.kernel.format.schema.types import DOUBLE, FLOAT, LONG, DataType, StructField, StructType
from delta_ds.kernel.format.values.statistics import load_statistics
from delta_ds.records import dataclass
from delta_ds.reporting import listeners
from delta_ds.reporting.reports import ScanReport

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.format.values.statistics import FilesToPrune
    from delta_ds.kernel.log.live_files import FileFilter
    from delta_ds.kernel.log.snapshot import Snapshot


# A rule names its conjunct; a list of a thousand values is not worth a thousand lines.
_MOST_LETTERS = 200
# What files are skipped by.
PARTITION_VALUES, STATISTICS = "partition values", "statistics"
_NO_RECORDS = scalar_of(0, LONG)


@dataclass(frozen=True, slots=True)
class Reason:
    """A rule, the files it speaks of, as ascending row numbers into `LiveFiles.table`, and what it goes by."""

    rule: str
    rows: pa.Int64Array
    source: str = ""


@dataclass(frozen=True, slots=True)
class Pruning:
    """The files a scan has to read, and why.

    Attributes
    ----------
    rows
        The files to read, as ascending row numbers into `LiveFiles.table`.
    reasons
        What dropped the others, in the order applied; each dropped file stands in exactly one.
    undecided
        Why files were kept that other statistics might have dropped; a file may stand in several or none.
    """

    rows: pa.Int64Array
    reasons: tuple[Reason, ...] = ()
    undecided: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class SkippingRules:
    """What a predicate asks of files; made once, applied to any number of sets of files.

    Attributes
    ----------
    by_partition, by_data
        Its conjuncts: those that partition values decide, and the others.
    partitions
        Logical name -> physical name and type of the partition columns that they read.
    opaque
        Logical names of those whose strings are not compared by their bytes.
    leaves
        By logical path the data columns that have statistics.
    timezone, counts_nan
        See `skipping_rules`.
    """

    by_partition: Sequence[Expression]
    by_data: Sequence[Expression]
    partitions: Mapping[str, tuple[str, DataType]]
    opaque: frozenset[str]
    leaves: Mapping[tuple[str, ...], StatisticsColumnRef]
    timezone: str | None
    counts_nan: Callable[[], bool]

    def apply(self, files: FilesToPrune) -> Pruning:
        """Drop the files that cannot hold a row for which the predicate is true.

        Conjuncts over partition columns go first, evaluated on the distinct partition tuples; statistics are
        parsed only for the files left, and only of the columns that the other conjuncts name. No Python object
        per file: cost is linear in files, a few vector operations a node of the predicate.
        """
        tuples = partition_tuples(files, self.partitions, self.opaque, self.timezone)
        first = _Steps(row_numbers(files.num_rows), PARTITION_VALUES)
        first.apply(self.by_partition, FilePruning(tuples))
        left = first.kept_rows()
        if not self.by_data or len(left) == 0:
            return Pruning(left, tuple(first.reasons))
        statistics = load_statistics(files, left, [(leaf.path, leaf.type) for leaf in self.leaves.values()])
        second = _Steps(left, STATISTICS)
        second.drop(pc.equal(statistics.num_records, _NO_RECORDS).fill_null(FALSE), "numRecords = 0")
        numbers = frozenset[tuple[str, ...]]().union(*map(without_nan, self.by_data))
        evidence = FilePruning(
            tuples.take(left), statistics, self.leaves, numbers=numbers, counts_nan=self.counts_nan
        )
        second.apply(self.by_data, evidence)
        undecided = second.undecided(self.by_data, evidence)
        return Pruning(second.kept_rows(), (*first.reasons, *second.reasons), undecided)


def skipping_rules(
    predicate: Expression,
    *,
    schema: StructType,
    partition_columns: Sequence[str],
    mapping_mode: str,
    timezone: str | None = None,
    counts_nan: Callable[[], bool] = lambda: False,
) -> SkippingRules:
    """What a predicate asks of the files of a table.

    Parameters
    ----------
    predicate
        Bound to `schema`.
    schema, partition_columns, mapping_mode
        Of the table at that version; column names are logical.
    timezone
        The session's zone. None if not known: what depends on it then decides only with a day to spare.
    counts_nan
        Whether all statistics are known to count NaN among the floats; asked only where that matters.

    Source: PROTOCOL.md, "Per-file Statistics"; protocol-checklist ST-R-02 to ST-R-12, PV-RW-01 to 03.
    """
    by_partition, by_data = _split(predicate, schema, partition_columns, timezone)
    fields = _partition_fields([*by_partition, *by_data], schema, partition_columns)
    return SkippingRules(
        by_partition,
        by_data,
        {f.name: (physical_name(f, mapping_mode), f.type) for f in fields},
        frozenset(f.name for f in fields if not compares_by_bytes(f)),
        _leaves(by_data, schema, partition_columns, mapping_mode),
        timezone,
        counts_nan,
    )


def prune(
    files: FilesToPrune,
    predicate: Expression | None,
    *,
    schema: StructType,
    partition_columns: Sequence[str],
    mapping_mode: str,
    timezone: str | None = None,
    counts_nan: Callable[[], bool] = lambda: False,
) -> Pruning:
    """Drop the files that cannot hold a row for which a predicate is true; None keeps all files.

    See `skipping_rules` for the arguments, and `SkippingRules.apply`.
    """
    if predicate is None:
        return Pruning(row_numbers(files.num_rows))
    rules = skipping_rules(
        predicate,
        schema=schema,
        partition_columns=partition_columns,
        mapping_mode=mapping_mode,
        timezone=timezone,
        counts_nan=counts_nan,
    )
    return rules.apply(files)


def _split(
    predicate: Expression, schema: StructType, partition_columns: Sequence[str], timezone: str | None
) -> tuple[list[Expression], list[Expression]]:
    """The conjuncts that partition values decide, those of generated columns included, and the others."""
    partitioned = {name.lower() for name in partition_columns}
    by_partition: list[Expression] = []
    by_data: list[Expression] = []
    for part in conjuncts(predicate):
        reads_data = any(column.path[0].lower() not in partitioned for column in columns(part))
        (by_data if reads_data else by_partition).append(part)
    generated_too = any(
        field is not None and GENERATION_EXPRESSION in field.metadata
        for field in map(schema.find, partition_columns)
    )
    if by_data and generated_too:
        from delta_ds.kernel.format.expressions import generated

        derived = generated.derive_partition_filters(predicate, schema, partition_columns, timezone)
        if derived is not None:
            by_partition += conjuncts(derived)
    return by_partition, by_data


def _partition_fields(
    parts: Sequence[Expression], schema: StructType, partition_columns: Sequence[str]
) -> list[StructField]:
    """The partition columns that the conjuncts read."""
    used = {column.path[0].lower() for part in parts for column in columns(part)}
    return [f for f in map(schema.find, partition_columns) if f is not None and f.name.lower() in used]


def _leaves(
    parts: Sequence[Expression], schema: StructType, partition_columns: Sequence[str], mapping_mode: str
) -> dict[tuple[str, ...], StatisticsColumnRef]:
    """The data columns with statistics that the conjuncts read, by logical path."""
    partitioned = {name.lower() for name in partition_columns}
    found = {}
    for part in parts:
        for column in columns(part):
            if column.path[0].lower() not in partitioned and column.path not in found:
                leaf = find_statistics_column(schema, column.path, mapping_mode)
                if leaf is not None:
                    found[column.path] = leaf
    return found


def row_numbers(length: int) -> pa.Int64Array:
    """The numbers 0, 1, ... of that many rows."""
    return true_rows(same_for_all(True, length))


class _Steps:
    """The files still in, and what has dropped the others."""

    def __init__(self, rows: pa.Int64Array, source: str) -> None:
        self.rows = rows
        self.source = source
        self.kept = same_for_all(True, len(rows))
        self.reasons: list[Reason] = []

    def kept_rows(self) -> pa.Int64Array:
        return self.rows.filter(self.kept)

    def apply(self, parts: Sequence[Expression], evidence: FilePruning) -> None:
        for part in parts:
            evidence.used.clear()
            impossible = pc.invert(evidence.may_be(part, True))
            sources = " and ".join(sorted(evidence.used))
            self.drop(impossible, f"{_short(part)}: {sources}" if sources else _short(part))

    def drop(self, mask: pa.BooleanArray, rule: str) -> None:
        newly = pc.and_(self.kept, mask)
        if newly.true_count:
            self.reasons.append(Reason(rule, self.rows.filter(newly), self.source))
            self.kept = pc.and_not(self.kept, mask)

    def undecided(self, parts: Sequence[Expression], evidence: FilePruning) -> tuple[Reason, ...]:
        out = []
        for part in parts:
            for rule, mask in evidence.gaps(part):
                rows = self.rows.filter(pc.and_(self.kept, mask))
                if len(rows):
                    out.append(Reason(f"{_short(part)}: {rule}", rows))
        return tuple(out)


def _short(part: Expression) -> str:
    text = str(part)
    return text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 3] + "..."


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


def part_filter(version: Snapshot, predicate: Expression | None, timezone: str | None) -> FileFilter | None:
    """The files that may hold rows for which a predicate is true, as a filter that can be pickled.

    Parameters
    ----------
    predicate
        Bound to the schema of the version; None for all live files.
    timezone
        See `prune`.
    """
    if predicate is None:
        return None
    floats = any(c.type in (FLOAT, DOUBLE) for c in columns(predicate))
    rules = skipping_rules(
        predicate,
        schema=version.schema,
        partition_columns=version.partition_columns,
        mapping_mode=version.mapping_mode,
        timezone=timezone,
        counts_nan=functools.partial(bool, floats and version.statistics_count_nan),
    )
    return functools.partial(_kept, rules)


def _kept(rules: SkippingRules, files: FilesToPrune) -> pa.Int64Array:
    return rules.apply(files).rows
