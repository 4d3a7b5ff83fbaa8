"""`Scan`: the file slices of a snapshot that a predicate may keep, packed into tasks, and their rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from delta_ds.conditions.data import READ_TABLE_WITHOUT_COLUMNS
from delta_ds.conditions.schema import COLUMN_NOT_FOUND_IN_SCHEMA
from delta_ds.exceptions import CorruptLogFileError
from delta_ds.kernel.actions import DeletionVector
from delta_ds.kernel.arguments import checked
from delta_ds.kernel.data.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.data.read.reader import output_schema, read_slices
from delta_ds.kernel.data.values.deletion_vector import DeletionVectorDescriptor
from delta_ds.kernel.expressions.tree import Expression, columns
from delta_ds.kernel.scan.skipping import Pruning, prune
from delta_ds.kernel.schema.types import StructField, StructType

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.scan.table_version import TableVersion

DEFAULT_PARTITION_BYTES = 128 << 20


@checked
class Scan:
    """The read of a snapshot with a predicate and columns; made by `Snapshot.scan`.

    Skipping never changes the rows: it drops files whose partition values and statistics prove that no row
    matches. `to_batches` and `to_arrow` then apply the predicate to the rows themselves.
    """

    def __init__(
        self,
        snapshot: TableVersion,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        timezone: str | None = "UTC",
        metadata_columns: tuple[str, ...] = (),
    ) -> None:
        self.snapshot = snapshot
        self.timezone = timezone
        self.metadata_columns = metadata_columns
        self.predicate = self._bind(predicate)
        self.schema = _project(snapshot, columns)

    def _bind(self, predicate: str | Expression | None) -> Expression | None:
        if predicate is None:
            return None
        from delta_ds.kernel.expressions.bind import bind

        if isinstance(predicate, str):
            from delta_ds.kernel.expressions.sql import parse_predicate

            predicate = parse_predicate(predicate)
        return bind(predicate, self.snapshot.schema, self.timezone or "UTC")

    @cached_property
    def pruning(self) -> Pruning:
        """The files that may hold matching rows, and the rule that skips each of the others."""
        snapshot = self.snapshot
        return prune(
            snapshot.live_files(),
            self.predicate,
            schema=snapshot.schema,
            partition_columns=snapshot.partition_columns,
            mapping_mode=snapshot.mapping_mode,
            timezone=self.timezone,
            counts_nan=lambda: snapshot.statistics_count_nan,
        )

    def files(self) -> pa.Table:
        """The files that may hold matching rows: the columns of `LiveFiles.table`, and `stats`."""
        files = self.snapshot.live_files()
        if self.predicate is None:
            return files.table.append_column("stats", files.stats_json())
        rows = self.pruning.rows
        return files.table.take(rows).append_column("stats", files.stats_json(rows))

    @property
    def num_files(self) -> int:
        """How many files may hold matching rows."""
        return len(self.pruning.rows) if self.predicate is not None else self.snapshot.live_files().num_rows

    def slices(self) -> list[FileSlice]:
        """One slice a file: whole files, in log order."""
        table = self.snapshot.live_files().table
        if self.predicate is not None:
            table = table.take(self.pruning.rows)
        return file_slices(table, self.snapshot.physical_partition_columns)

    def tasks(
        self, max_partition_bytes: int = DEFAULT_PARTITION_BYTES, parallelism: int | None = None
    ) -> list[list[FileSlice]]:
        """The slices packed into tasks of about equal size, largest first.

        Parameters
        ----------
        max_partition_bytes
            Bytes of files a task reads at most; larger files are split by row groups.
        parallelism
            Tasks are made small enough for so many to run at once; None for the CPUs of this machine.
        """
        return pack(self.slices(), max_partition_bytes, parallelism or os.cpu_count() or 1)

    @cached_property
    def plan(self) -> ReadPlan:
        """What the tasks of this scan share.

        Raises
        ------
        SchemaError
            The table has no columns, or a projected one does not exist.
        """
        return self._plan_for(self.schema)

    def _plan_for(self, schema: StructType) -> ReadPlan:
        snapshot = self.snapshot
        if not snapshot.schema.fields:
            raise READ_TABLE_WITHOUT_COLUMNS(table=snapshot.storage.url, version=snapshot.version)
        return ReadPlan.of(
            snapshot.table_state,
            schema=schema,
            timezone=self.timezone,
            metadata_columns=self.metadata_columns,
            predicate=self.predicate,
        )

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The matching rows, as batches of the projected columns; one file after the other.

        Raises
        ------
        PredicateError
            The predicate uses a function that only Spark can evaluate.
        DataFileError
            A file is missing or damaged; the message names it.
        """
        plan, project = self._reading()
        for piece in self.slices():
            for batch in read_slices(self.snapshot.storage, plan, [piece]):
                yield from project(batch)

    def to_arrow(self) -> pa.Table:
        """The matching rows as one Arrow table; files are read in parallel. Errors as `to_batches`."""
        import pyarrow as pa

        plan, project = self._reading()
        storage = self.snapshot.storage

        def read(piece: FileSlice) -> list[pa.RecordBatch]:
            return [out for batch in read_slices(storage, plan, [piece]) for out in project(batch)]

        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            batches = [batch for part in pool.map(read, self.slices()) for batch in part]
        return pa.Table.from_batches(batches, schema=output_schema(self.plan))

    def _reading(self) -> tuple[ReadPlan, Any]:
        """The plan to read with, predicate columns included, and the step from its batches to the result."""
        plan = self.plan
        predicate = self.predicate
        if predicate is None:
            return plan, lambda batch: (batch,)
        from delta_ds.kernel.expressions.evaluate import evaluate

        have = set(self.schema.names)
        extra = dict.fromkeys(c.path[0] for c in columns(predicate) if c.path[0] not in have)
        found = [self.snapshot.schema.find(name) for name in extra]
        wide = StructType((*self.schema.fields, *(f for f in found if f is not None)))
        reading = self._plan_for(wide) if len(wide) > len(self.schema) else plan
        names = output_schema(plan).names

        def project(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
            kept = batch.filter(evaluate(predicate, batch))
            if kept.num_rows:
                yield kept.select(names)

        return reading, project

    def explain(self) -> pa.Table:
        """Why each file is read or skipped.

        Returns
        -------
        pyarrow.Table
            `path` string, `kept` bool, `rule` string: one row a live file.
        """
        from delta_ds.kernel.scan.explain import explain

        return explain(self.snapshot.live_files(), self.pruning)

    def __repr__(self) -> str:
        return f"Scan({self.snapshot!r}, predicate={str(self.predicate) if self.predicate else None!r})"


def _project(snapshot: TableVersion, names: Sequence[str] | None) -> StructType:
    if names is None:
        return snapshot.schema
    fields: list[StructField] = []
    for name in names:
        field = snapshot.schema.find(name)
        if field is None:
            import difflib

            near = difflib.get_close_matches(name, snapshot.schema.names, n=1, cutoff=0.5)
            raise COLUMN_NOT_FOUND_IN_SCHEMA(
                column=name,
                version=snapshot.version,
                table=snapshot.storage.url,
                hint=f"did you mean {near[0]!r}? " if near else "",
                columns=snapshot.schema.names,
            )
        fields.append(field)
    return StructType(tuple(fields))


def file_slices(table: pa.Table, partition_columns: Sequence[str]) -> list[FileSlice]:
    """Rows of live files as slices: the only place where files become Python objects."""
    import pyarrow.compute as pc

    if partition_columns and "partitionValues" in table.column_names:
        values = table["partitionValues"]
        lists = [pc.struct_field(values, name).to_pylist() for name in partition_columns]
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
        cast("int", value.get("cardinality")),  # optional in what other engines wrote
    )


# What opening a file costs, in bytes that could be read meanwhile: Spark's default for the same trade.
OPEN_COST_BYTES = 4 << 20


def pack(slices: Sequence[FileSlice], max_bytes: int, parallelism: int) -> list[list[FileSlice]]:
    """Tasks of at most about `max_bytes`, small enough for `parallelism` of them, largest first.

    Files larger than a task become byte ranges; a reader takes the row groups whose middle lies in its
    range. O(n log n).
    """
    total = sum(piece.size + OPEN_COST_BYTES for piece in slices)
    limit = max(1, min(max_bytes, max(OPEN_COST_BYTES, total // max(1, parallelism))))
    pieces = [part for piece in slices for part in _split(piece, limit)]
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


def _split(piece: FileSlice, limit: int) -> list[FileSlice]:
    if piece.size <= limit or piece.length is not None:
        return [piece]
    starts = range(0, piece.size, limit)
    return [replace(piece, start=start, length=min(limit, piece.size - start)) for start in starts]
