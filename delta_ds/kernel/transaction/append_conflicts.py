"""Check 7: files added by other commits that a transaction should have read.

As in delta-spark, partition values decide: on a table without partition columns every new file counts. Where the
transaction asks for it, statistics are looked at too, by the rules that skip files in a scan, and then rows. Either
way a file is let pass only where it is proven that none of its rows can be of interest.

Source: conflict-matrix section 3, check 7.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from delta_ds.events.transactions import CONFLICT_CHECK_WIDENED
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.format.expressions.tree import Call, Expression, columns, conjunction, fold
from delta_ds.kernel.transaction.reads import PartitionValues, ReadPredicate, Reads

if TYPE_CHECKING:
    from delta_ds.kernel.log.live_files import LiveFiles
    from delta_ds.kernel.log.snapshot import Snapshot


_UNKNOWN = object()
FirstWithRows: TypeAlias = "Callable[[ReadPredicate, Sequence[int]], int | None]"


def first_of_interest(
    files: LiveFiles,
    reads: Reads,
    snapshot: Snapshot,
    *,
    use_statistics: bool = False,
    first_with_rows: FirstWithRows | None = None,
) -> int | None:
    """Find the first file that the transaction should have read.

    Parameters
    ----------
    files
        What a commit added.
    reads
        Of a transaction that is no blind append.
    snapshot
        What it read: predicates and partition values are understood by its schema.
    use_statistics
        Whether the statistics of the files count as well.
    first_with_rows
        The first of some files, by row numbers of `files.table`, that holds rows of a predicate; None: files that
        statistics do not rule out are not looked into.

    Returns
    -------
    int or None
        Its row number in `files.table`; None if none is of interest.
    """
    if files.num_rows == 0:
        return None
    if reads.whole_table:
        return 0
    if not snapshot.partition_columns and not (use_statistics and (reads.predicates or reads.partitions)):
        return 0
    matches = [_first_matching(files, p, snapshot, use_statistics, first_with_rows) for p in reads.predicates]
    matches += [_first_in(files, partitions, snapshot) for partitions in reads.partitions]
    return min((row for row in matches if row is not None), default=None)


def _first_matching(
    files: LiveFiles,
    predicate: ReadPredicate,
    snapshot: Snapshot,
    use_statistics: bool,
    first_with_rows: FirstWithRows | None,
) -> int | None:
    expression = _known_part(predicate.parts) if use_statistics else _partition_part(predicate, snapshot)
    if expression is None:
        return 0
    from delta_ds.kernel.files.scan.skipping import prune

    try:
        rows = prune(
            files,
            expression,
            schema=snapshot.schema,
            partition_columns=snapshot.partition_columns,
            mapping_mode=snapshot.mapping_mode,
            timezone=predicate.timezone,
        ).rows
    except DeltaError as error:
        CONFLICT_CHECK_WIDENED.log(table=snapshot.storage.url, predicate=expression, reason=error)
        return 0
    if first_with_rows is not None:
        return first_with_rows(predicate, rows.to_pylist())
    return int(rows[0].as_py()) if len(rows) else None


def _partition_part(predicate: ReadPredicate, snapshot: Snapshot) -> Expression | None:
    """The conjuncts that read partition columns only; None for no restriction."""
    partitioned = {name.lower() for name in snapshot.partition_columns}
    return _known_part(
        part
        for part in predicate.parts
        if all(column.path[0].lower() in partitioned for column in columns(part))
    )


def _known_part(parts: Iterable[Expression]) -> Expression | None:
    """The conjuncts that can be evaluated again; None for no restriction."""
    return conjunction([part for part in parts if not is_widened(part)])


def is_widened(part: Expression) -> bool:
    """Whether a condition counts as TRUE because it cannot be evaluated again, such as one with `rand()`.

    Parts of AND and OR are looked at one by one: of an AND the others still hold.
    """
    from delta_ds.kernel.format.expressions.evaluate import can_evaluate

    def below(node: Expression) -> tuple[Expression, ...]:
        return node.args if isinstance(node, Call) and node.name in ("and", "or") else ()

    def combine(node: Expression, widened: list[bool]) -> bool:
        if not widened:
            return not can_evaluate(node)
        return any(widened) if isinstance(node, Call) and node.name == "or" else all(widened)

    return fold(part, combine, below)


def _first_in(files: LiveFiles, partitions: Sequence[PartitionValues], snapshot: Snapshot) -> int | None:
    """The first file in one of some partitions, compared by typed values; null equals null here."""
    if "partitionValues" not in files.table.column_names:
        return 0
    # Both sides at once: what a timestamp means can depend on how the others are written.
    keys = _typed_tuples([*partitions, *files.table["partitionValues"].to_pylist()], snapshot)
    read_keys = set(keys[: len(partitions)])
    undecided = any(_UNKNOWN in key for key in read_keys)
    for row, key in enumerate(keys[len(partitions) :]):
        if key in read_keys or undecided or _UNKNOWN in key:
            return row
    return None


def _typed_tuples(tuples: Sequence[PartitionValues | None], snapshot: Snapshot) -> list[tuple[Hashable, ...]]:
    from delta_ds.kernel.format.expressions.arrays import array_of
    from delta_ds.kernel.format.schema.types import STRING, TIMESTAMP
    from delta_ds.kernel.format.values import partition_values

    columns: list[list[Hashable]] = []
    names = zip(snapshot.partition_columns, snapshot.physical_partition_columns, strict=True)
    for logical, physical in names:
        field = snapshot.schema.find(logical)
        assert field is not None
        texts = [None if values is None else values.get(physical) for values in tuples]
        parsed = partition_values.parse(array_of(texts, STRING), field.type)
        mixed = field.type == TIMESTAMP and len({_names_zone(text) for text in texts if text}) > 1
        columns.append(
            [
                _key(t, v, mixed)
                for t, v in zip(texts, partition_values.comparable_values(parsed), strict=True)
            ]
        )
    return list(zip(*columns, strict=True)) if columns else [()] * len(tuples)


def _key(text: str | None, value: Any, mixed: bool) -> Hashable:
    """A key that equal values share; `_UNKNOWN` for text whose value is not certain."""
    if text and (value is None or mixed):
        return _UNKNOWN
    # NaN is not equal to itself in Python.
    return "NaN" if isinstance(value, float) and value != value else value


def _names_zone(text: str) -> bool:
    return text.endswith("Z") or "+" in text or text.count("-") > 2
