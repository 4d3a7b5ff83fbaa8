"""`Scan`: the files of a snapshot that a predicate may keep, and their rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from delta_ds.conditions.data import READ_TABLE_WITHOUT_COLUMNS
from delta_ds.conditions.schema import COLUMN_NOT_FOUND_IN_SCHEMA, DUPLICATE_COLUMNS_ASKED
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan, file_slices, pack, split
from delta_ds.kernel.files.scan.skipping import (
    Pruning,
    ScanCourse,
    SkippingRules,
    row_numbers,
    skipping_rules,
)
from delta_ds.kernel.format.expressions.tree import Call, Expression
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.types import StructField, StructType
from delta_ds.records import replace

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.files.read.data_file import Batches
    from delta_ds.kernel.files.scan.explain import Explanation
    from delta_ds.kernel.log.live_files import LiveFiles
    from delta_ds.kernel.log.snapshot import Snapshot

DEFAULT_PARTITION_BYTES = 128 << 20
DEFAULT_AHEAD_BYTES = 128 << 20
# Larger files are read by several threads, row groups apart.
_PIECE_BYTES = 64 << 20


class Scan:
    """The read of a snapshot with a predicate and columns.

    Skipping never changes the rows: it drops files whose partition values and statistics prove that no row
    matches. `to_batches` and `to_arrow` then apply the predicate to the rows themselves.

    Attributes
    ----------
    predicate
        As a tree; None for none.
    schema
        Of the rows, without metadata columns.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        timezone: str | None = "UTC",
        metadata_columns: tuple[str, ...] = (),
    ) -> None:
        self.snapshot = snapshot
        self.timezone = timezone
        self.metadata_columns = metadata_columns
        self._given = predicate
        self.predicate = self._bind(predicate)
        self.schema = _project(snapshot, columns)

    def _bind(self, predicate: str | Expression | None) -> Expression | None:
        if predicate is None:
            return None
        from delta_ds.kernel.format.expressions.bind import bind

        if isinstance(predicate, str):
            from delta_ds.kernel.format.expressions.sql import parse_predicate

            predicate = parse_predicate(predicate)
        return bind(predicate, self.snapshot.schema, self.timezone or "UTC")

    def narrowed(self, columns: Sequence[str], predicate: Expression | None) -> Scan:
        """The same read of some of its columns, and of the rows that match another predicate as well."""
        parts = [each for each in (self.predicate, predicate) if each is not None]
        both = Call("and", tuple(parts)) if len(parts) == 2 else next(iter(parts), None)
        return Scan(self.snapshot, both, columns, self.timezone, self.metadata_columns)

    def refuse_repeated_columns(self) -> None:
        """Refuse a column that was asked for twice, for what has columns by their names.

        Raises
        ------
        SchemaError
            There is one; the message names it.
        """
        names = self.schema.names
        for name in names:
            if names.count(name) > 1:
                raise DUPLICATE_COLUMNS_ASKED(
                    column=name, table=self.snapshot.storage.url, version=self.snapshot.version
                )

    @cached_property
    def pruning(self) -> Pruning:
        """Of all live files, those that may hold matching rows, and the rule that skips each of the others."""
        rules = self._rules
        if rules is None:
            return Pruning(row_numbers(self.snapshot.live_files().num_rows))
        course = ScanCourse()
        files = self.snapshot.live_files()
        pruning = course.noted(rules.apply(files))
        course.tell(self.snapshot, files.table["size"].take(pruning.rows))
        return pruning

    @cached_property
    def _rules(self) -> SkippingRules | None:
        snapshot = self.snapshot
        if self.predicate is None:
            return None
        return skipping_rules(
            self.predicate,
            schema=snapshot.schema,
            partition_columns=snapshot.partition_columns,
            mapping_mode=snapshot.mapping_mode,
            timezone=self.timezone,
            counts_nan=lambda: snapshot.statistics_count_nan,
        )

    @cached_property
    def matching(self) -> LiveFiles:
        """The files that may hold matching rows, in log order; of a checkpoint no others are held in memory."""
        rules = self._rules
        if rules is None:
            return self.snapshot.live_files()
        if "pruning" in self.__dict__:
            return self.snapshot.live_files().take(self.pruning.rows)
        course = ScanCourse()
        found = self.snapshot.select_files(lambda files: course.noted(rules.apply(files)).rows)
        course.tell(self.snapshot, found.table["size"])
        return found

    def files(self) -> pa.Table:
        """The files that may hold matching rows."""
        return self.matching.table.append_column("stats", self.matching.stats_json())

    @property
    def known_num_files(self) -> int | None:
        """How many files may hold matching rows; None before anything asked for them."""
        known = self.__dict__
        if "matching" in known:
            return self.matching.num_rows
        return len(self.pruning.rows) if "pruning" in known else None

    @property
    def predicate_text(self) -> str | None:
        """The predicate as it was given; None for none."""
        return None if self._given is None else str(self._given)

    @property
    def num_files(self) -> int:
        """How many files may hold matching rows."""
        return self.matching.num_rows

    def slices(self) -> list[FileSlice]:
        """One slice a file: whole files, in log order."""
        return file_slices(self.matching.table, self.snapshot.physical_partition_columns)

    def tasks(
        self, max_partition_bytes: int = DEFAULT_PARTITION_BYTES, parallelism: int | None = None
    ) -> list[list[FileSlice]]:
        """The slices packed into tasks of about equal size, largest first."""
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

    def to_batches(self, max_bytes: int = DEFAULT_AHEAD_BYTES) -> Iterator[pa.RecordBatch]:
        """The matching rows, as batches of the projected columns, file by file in log order."""
        yield from self._batches(max_bytes)

    def batches_of(self, slices: Sequence[FileSlice]) -> Iterator[pa.RecordBatch]:
        """The matching rows of some of its slices, as `to_batches` gives them."""
        yield from self._batches(DEFAULT_AHEAD_BYTES, slices=slices)

    def to_arrow(self) -> pa.Table:
        """The matching rows as one Arrow table, in the order of `to_batches`, whose errors it has."""
        import pyarrow as pa

        from delta_ds.kernel.files.read.file_columns import output_schema

        return pa.Table.from_batches(self._batches(float("inf")), schema=output_schema(self.plan))

    def to_reader(self, max_bytes: int = DEFAULT_AHEAD_BYTES) -> pa.RecordBatchReader:
        """The matching rows as a stream that other libraries read from, as `to_batches` gives them."""
        import pyarrow as pa

        from delta_ds.kernel.files.read.file_columns import output_schema

        return pa.RecordBatchReader.from_batches(output_schema(self.plan), self._batches(max_bytes))

    def count(self) -> int:
        """How many rows match: from the log without a predicate where it is certain, else by reading."""
        from delta_ds.kernel.files.scan.aggregates import Aggregate, exact_aggregates

        if self.predicate is None:
            found = exact_aggregates(self.snapshot, [Aggregate("count")], timezone=self.timezone)
            if found is not None:
                return int(found[0].as_py())
        return sum(batch.num_rows for batch in self._columns_alone(StructType()))

    def extreme(self, function: Literal["min", "max"], column: str) -> pa.Scalar:
        """The least or greatest value of a column in the rows that match."""
        from delta_ds.kernel.files.scan.aggregates import Aggregate, check_order, exact_aggregates, extreme_of

        schema = _project(self.snapshot, [column])
        (field,) = schema
        check_order(field, function, self.snapshot.storage.url)
        # The log has the texts of `char(n)` as they are stored, without the blanks that belong to them.
        if self.predicate is None and compares_by_bytes(field):
            request = Aggregate(function, (field.name,))
            found = exact_aggregates(self.snapshot, [request], timezone=self.timezone)
            if found is not None:
                return found[0]
        return extreme_of(function, self._columns_alone(schema), field)

    def _columns_alone(self, schema: StructType) -> Iterator[pa.RecordBatch]:
        """The matching rows as batches of these columns, whatever was asked for."""
        return self._batches(DEFAULT_AHEAD_BYTES, replace(self._plan_for(schema), metadata_columns=()))

    def _batches(
        self, max_bytes: float, plan: ReadPlan | None = None, slices: Sequence[FileSlice] | None = None
    ) -> Iterator[pa.RecordBatch]:
        # A process that only plans reads nothing.
        from delta_ds.kernel.files.read.file_columns import Layouts
        from delta_ds.kernel.files.read.reader import Matching, in_order, read_slice, threads_for

        storage, plan = self.snapshot.storage, plan or self.plan
        whole = self.slices() if slices is None else slices
        pieces = [part for piece in whole for part in split(piece, _PIECE_BYTES)]
        workers = threads_for(storage)
        read: Callable[..., Batches]
        if self.predicate is None:
            read = partial(read_slice, storage, Layouts(plan), batch_rows=None)
        else:
            read = partial(Matching(plan, self.snapshot.schema).read, storage)
        alone = len(pieces) < workers  # then columns are decoded side by side
        return in_order(
            [partial(read, piece=piece, use_threads=alone) for piece in pieces], workers, max_bytes
        )

    def explain(self) -> Explanation:
        """Why each file is read or skipped."""
        from delta_ds.kernel.files.scan.explain import explain

        return explain(
            self.snapshot.live_files(),
            self.pruning,
            table=self.snapshot.storage.url,
            version=self.snapshot.version,
            predicate=self.predicate_text,
        )

    def __repr__(self) -> str:
        return f"Scan({self.snapshot!r}, predicate={str(self.predicate) if self.predicate else None!r})"


def package_of(package: str, method: str) -> Any:
    """An optional package, which an extra of the same name brings.

    Raises
    ------
    ImportError
        It cannot be imported; the message names method and extra.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(
            f"{method} needs {package}, which cannot be imported ({error}): pip install 'delta-ds[{package}]'"
        ) from error


def _project(snapshot: Snapshot, names: Sequence[str] | None) -> StructType:
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
