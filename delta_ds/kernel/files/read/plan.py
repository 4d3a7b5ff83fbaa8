"""`FileSlice` and `ReadPlan`: a part of a file to read, and what all slices of a scan share; live files as slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_ds.exceptions import CorruptLogFileError
from delta_ds.kernel.base.arrow_buffers import field_of
from delta_ds.kernel.format.actions import DeletionVector
from delta_ds.kernel.format.properties import ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.format.values.deletion_vector import DeletionVectorDescriptor
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.values.deletion_vector import Positions


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A data or change file, or a byte range of one.

    Attributes
    ----------
    path
        As in the log, URI-encoded.
    size
        Bytes of the whole file, as the log says.
    start, length
        The byte range; row groups whose middle byte lies in it belong to the slice. None: to the end.
    partition_values
        Texts as in the log, in the order of the partition columns.
    partition_columns
        Logical names of the partition columns, where a file has others than the table; None: those of `ReadPlan`.
    deletion_vector
        Rows that are gone.
    base_row_id, default_row_commit_version
        Row tracking of the file, where the log has it.
    constants
        Values of columns of `ReadPlan.extra` as `Literal` holds them, timestamps also as microseconds since
        1970; a column that is missing here is read from the file by its name.
    selection
        Sorted physical row positions: only these rows are returned. None: all.
    """

    path: str
    size: int
    start: int = 0
    length: int | None = None
    partition_values: tuple[str | None, ...] = ()
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    constants: tuple[tuple[str, object], ...] = ()
    selection: Positions | None = None
    partition_columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What all slices of a scan share.

    Attributes
    ----------
    table, version
        For messages: the table's URL and the version read.
    schema
        Logical output columns in order, partition columns among them, with column mapping metadata.
    partition_columns
        Logical names of all the table's partition columns; their values never come from files.
    mapping_mode
        `none`, `name` or `id`.
    timezone
        Zone of partition values without one and of legacy files without one; None counts as UTC.
    metadata_columns
        Fields of the struct column `_metadata`: `file_path`, `file_name`, `file_size`, `row_index`, `row_id`,
        `row_commit_version`; none, no such column.
    row_id_column, row_commit_version_column
        Physical names of the materialised row tracking columns.
    extra
        Columns after `schema`, see `FileSlice.constants`.
    predicate
        Bound; row groups that cannot match are left out. Rows are not filtered.
    """

    table: str
    version: int
    schema: StructType
    partition_columns: tuple[str, ...] = ()
    mapping_mode: str = "none"
    timezone: str | None = None
    metadata_columns: tuple[str, ...] = ()
    row_id_column: str | None = None
    row_commit_version_column: str | None = None
    extra: StructType = StructType()
    predicate: Expression | None = None

    @classmethod
    def of(
        cls,
        state: TableState,
        *,
        schema: StructType | None = None,
        version: int | None = None,
        timezone: str | None = None,
        metadata_columns: tuple[str, ...] = (),
        extra: StructType | None = None,
        predicate: Expression | None = None,
    ) -> ReadPlan:
        """The plan for files of a version: how they are read follows from its protocol and metadata.

        Parameters
        ----------
        schema
            The columns to read; None for all.
        version
            For messages, where it is another one than that of the state.
        timezone, metadata_columns, extra, predicate
            See `ReadPlan`.
        """
        return cls(
            table=state.table,
            version=state.version if version is None else version,
            schema=state.schema if schema is None else schema,
            partition_columns=state.partition_columns,
            mapping_mode=state.mapping_mode,
            timezone=timezone,
            metadata_columns=metadata_columns,
            row_id_column=ROW_ID_COLUMN.of(state.properties),
            row_commit_version_column=ROW_COMMIT_VERSION_COLUMN.of(state.properties),
            extra=extra or StructType(),
            predicate=predicate,
        )


def file_slices(table: pa.Table, partition_columns: Sequence[str]) -> list[FileSlice]:
    """Rows of live files as slices: the only place where files become Python objects."""

    if partition_columns and "partitionValues" in table.column_names:
        values = table["partitionValues"]
        lists = [field_of(values, name).to_pylist() for name in partition_columns]
        tuples: Sequence[tuple[str | None, ...]] = list(zip(*lists, strict=True))
    else:
        tuples = [()] * table.num_rows
    vectors = table["deletionVector"]
    descriptors = (
        [None] * table.num_rows
        if vectors.null_count == table.num_rows
        else [vector_descriptor(v) for v in vectors.to_pylist()]
    )
    return [
        FileSlice(
            path=path,
            size=size,
            partition_values=tuple_,
            deletion_vector=vector,
            base_row_id=row_id,
            default_row_commit_version=version,
        )
        for path, size, tuple_, vector, row_id, version in zip(
            table["path"].to_pylist(),
            table["size"].to_pylist(),
            tuples,
            descriptors,
            table["baseRowId"].to_pylist(),
            table["defaultRowCommitVersion"].to_pylist(),
            strict=True,
        )
    ]


def vector_descriptor(value: DeletionVector | None) -> DeletionVectorDescriptor | None:
    """The deletion vector of a file action's struct; None for none.

    Raises
    ------
    CorruptLogFileError
        The struct lacks what a descriptor must have.
    """
    if value is None:
        return None
    missing = [key for key in ("storageType", "pathOrInlineDv", "sizeInBytes") if value.get(key) is None]
    if missing:
        raise CorruptLogFileError(f"a deletion vector in the log has no {' and no '.join(missing)}: {value}")
    return DeletionVectorDescriptor(
        value["storageType"],
        value["pathOrInlineDv"],
        value.get("offset"),
        value["sizeInBytes"],
        value.get("cardinality"),
    )


# What opening a file costs, in bytes that could be read meanwhile: Spark's default for the same trade.
OPEN_COST_BYTES = 4 << 20
# Of one file; more than one of a pebibyte is cut into.
_MOST_PIECES = 1 << 16


def pack(slices: Sequence[FileSlice], max_bytes: int, parallelism: int) -> list[list[FileSlice]]:
    """Tasks of at most about `max_bytes`, small enough for `parallelism` of them, largest first.

    Files larger than a task become byte ranges; a reader takes the row groups whose middle lies in its
    range. O(n log n).
    """
    total = sum(piece.size + OPEN_COST_BYTES for piece in slices)
    limit = max(1, min(max_bytes, max(OPEN_COST_BYTES, total // max(1, parallelism))))
    pieces = [part for piece in slices for part in split(piece, limit)]
    pieces.sort(key=_length, reverse=True)
    tasks: list[list[FileSlice]] = []
    room = 0
    for piece in pieces:
        length = _length(piece) + OPEN_COST_BYTES
        if not tasks or length > room:
            tasks.append([])
            room = limit
        tasks[-1].append(piece)
        room -= length
    return tasks


def _length(piece: FileSlice) -> int:
    return piece.size if piece.length is None else piece.length


def split(piece: FileSlice, limit: int) -> list[FileSlice]:
    """A file as byte ranges of at most about so many bytes; one that fits stays as it is."""
    if piece.size <= limit or piece.length is not None:
        return [piece]
    # The log may say any size.
    limit = max(limit, piece.size // _MOST_PIECES)
    starts = range(0, piece.size, limit)
    return [replace(piece, start=start, length=min(limit, piece.size - start)) for start in starts]
