"""What winning commits brought: metadata that a transaction can adopt, and files that it should have read.

As in delta-spark, partition values decide: on a table without partition columns every new file counts. Where the
transaction asks for it, statistics are looked at too, by the rules that skip files in a scan, and then rows. Either
way a file is let pass only where it is proven that none of its rows can be of interest.

Source: conflict-matrix section 3, check 7.

Everything else means that the transaction was planned for another table than there is now.

Source: conflict-matrix section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from delta_ds.events.log import CONFLICT_CHECK_WIDENED
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.format.expressions.tree import Call, Expression, columns, conjunction, fold
from delta_ds.kernel.format.features import (
    CATALOG_MANAGED,
    DELETION_VECTORS,
    IN_COMMIT_TIMESTAMP,
    ROW_TRACKING,
    V2_CHECKPOINT,
    TableFeature,
)
from delta_ds.kernel.format.properties import (
    CHECKPOINT_POLICY,
    COLUMN_MAPPING_MAX_ID,
    COLUMN_MAPPING_MODE,
    ENABLE_DELETION_VECTORS,
    ENABLE_IN_COMMIT_TIMESTAMPS,
    ENABLE_ROW_TRACKING,
    ICT_ENABLEMENT_TIMESTAMP,
    ICT_ENABLEMENT_VERSION,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
)
from delta_ds.kernel.format.schema.field_metadata import FIELD_ID, NESTED_IDS, PHYSICAL_NAME
from delta_ds.kernel.format.schema.types import StructField
from delta_ds.kernel.format.table_state import TableState
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


# Set on commits that only moved the marks of identity columns.
IDENTITY_TAG = "delta.identity.schemaUpdate"

_MAPPING_KEYS = frozenset(
    [FIELD_ID, PHYSICAL_NAME, NESTED_IDS, "parquet.field.id", "parquet.field.nested.ids"]
)


def incompatible_difference(before: TableState, after: TableState) -> str | None:
    """The part of a metadata change that cannot be adopted, in words; None if all of it can.

    Parameters
    ----------
    before
        What the transaction goes by.
    after
        What holds after the other commit.
    """
    for name in ("id", "name", "description", "provider", "partition_columns", "created_time"):
        if getattr(before.metadata, name) != getattr(after.metadata, name):
            return f"its {name.replace('_', ' ')} changed"
    found = _property_difference(before, after)
    if found is None and before.metadata.schema_string != after.metadata.schema_string:
        found = _schema_difference(before, after)
    return found


def enables_row_tracking(before: TableState, after: TableState) -> bool:
    """Whether the other commit turned row tracking on."""
    return after.enabled(ROW_TRACKING) and not before.enabled(ROW_TRACKING)


def _property_difference(before: TableState, after: TableState) -> str | None:
    old, new = before.properties, after.properties
    removed = sorted(old.keys() - new.keys())
    if removed:
        return f"property {removed[0]} was unset"
    for name in sorted(new):
        if old.get(name) == new[name]:
            continue
        allowed = _ADOPTED.get(name)
        if allowed is None or not allowed(_MetadataChange(name, before, after)):
            return f"property {name} was set to {new[name]!r}"
    return None


class _MetadataChange:
    """One property that was added or changed."""

    def __init__(self, name: str, before: TableState, after: TableState) -> None:
        self.before, self.after = before, after
        self.is_new = name not in before.properties


def _is_turned_on(feature: TableFeature) -> Callable[[_MetadataChange], bool]:
    return lambda change: change.after.enabled(feature)


def _to_mapping_by_name(change: _MetadataChange) -> bool:
    return _maps_by_name_now(change.before, change.after)


def _maps_by_name_now(before: TableState, after: TableState) -> bool:
    return (before.mapping_mode, after.mapping_mode) == ("none", "name")


def _names_row_tracking_column(change: _MetadataChange) -> bool:
    return change.after.enabled(ROW_TRACKING)


def _is_new(change: _MetadataChange) -> bool:
    return change.is_new


def _catalog_id(change: _MetadataChange) -> bool:
    return change.is_new or not change.after.supports(CATALOG_MANAGED)


_ADOPTED: dict[str, Callable[[_MetadataChange], bool]] = {
    ENABLE_ROW_TRACKING.name: _is_turned_on(ROW_TRACKING),
    ROW_ID_COLUMN.name: _names_row_tracking_column,
    ROW_COMMIT_VERSION_COLUMN.name: _names_row_tracking_column,
    COLUMN_MAPPING_MODE.name: _to_mapping_by_name,
    COLUMN_MAPPING_MAX_ID.name: lambda change: True,
    ENABLE_DELETION_VECTORS.name: _is_turned_on(DELETION_VECTORS),
    CHECKPOINT_POLICY.name: _is_turned_on(V2_CHECKPOINT),
    ENABLE_IN_COMMIT_TIMESTAMPS.name: _is_turned_on(IN_COMMIT_TIMESTAMP),
    ICT_ENABLEMENT_VERSION.name: _is_new,
    ICT_ENABLEMENT_TIMESTAMP.name: _is_new,
    "io.unitycatalog.tableId": _catalog_id,
}


def _schema_difference(before: TableState, after: TableState) -> str | None:
    """Only what switching column mapping on writes into top-level fields can be adopted."""
    old, new = before.schema.fields, after.schema.fields
    if not _maps_by_name_now(before, after):
        return "its schema changed"
    if len(old) != len(new):
        return "its columns changed"
    for was, now in zip(old, new, strict=True):
        if (was.name, was.type, was.nullable) != (now.name, now.type, now.nullable):
            return f"column {was.name} changed"
        if _changed_keys(was, now) - _MAPPING_KEYS:
            return f"the metadata of column {was.name} changed"
    return None


def _changed_keys(was: StructField, now: StructField) -> set[str]:
    keys = was.metadata.keys() | now.metadata.keys()
    missing = object()
    return {key for key in keys if was.metadata.get(key, missing) != now.metadata.get(key, missing)}
