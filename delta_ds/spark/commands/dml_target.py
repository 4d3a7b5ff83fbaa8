"""The target of DELETE, UPDATE and MERGE, pinned to one version: its rows with their positions, its log; and EXPLAIN.

A private data source reads some files with row positions, where Spark's own reader cannot be used. A command that is
explained takes its course to the place where it would look for its rows, and ends there: the log was read by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.base.arrow_buffers import integers
from delta_ds.kernel.commands.dml.candidates import (
    CandidateFiles,
    candidate_files,
    distinct_partitions,
    usable_predicate,
)
from delta_ds.kernel.commands.dml.changed_rows import FILE, ROW
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan, pack
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.files.scan.scan import DEFAULT_PARTITION_BYTES, Scan
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.tree import Expression
from delta_ds.kernel.format.options.read import parse_read_options
from delta_ds.kernel.format.options.settings import TIME_ZONE
from delta_ds.kernel.format.schema.types import INTEGER, LONG, StructField, StructType
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.transaction.table_log import TableLog
from delta_ds.records import replace
from delta_ds.redaction import redacted
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.base import wire
from delta_ds.spark.base.kinds import sealed
from delta_ds.spark.base.kinds.frames import frame_of
from delta_ds.spark.base.kinds.sealed import Sealed, seal
from delta_ds.spark.base.kinds.session_facts import facts_of, with_facts_of_reads, with_session_settings
from delta_ds.spark.base.query_needs import TARGET_FORMAT as FORMAT
from delta_ds.spark.base.query_needs import Needed, needed_of
from delta_ds.spark.commands.handle import Handle
from delta_ds.spark.engines.connect.connect_bridge import ask, run
from delta_ds.spark.engines.connect.log_calls import at_version
from delta_ds.spark.engines.large_tables import is_large, matching_files
from delta_ds.spark.engines.seam.choice import engine_of
from delta_ds.spark.engines.seam.expressions import Context, Resolved
from delta_ds.spark.errors.translation import delta_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType as SparkStructType

# What is known of the command that is explained, by name; None: no command is.
_told: ContextVar[dict[str, str] | None] = ContextVar("told", default=None)


class _Ended(Exception):
    """Ends a command that is explained."""


def explained(command: Callable[[], object]) -> str:
    """What a command would do.

    Parameters
    ----------
    command
        Runs it, in this thread.

    Returns
    -------
    str
        `Name: value` with commas between, as Spark writes it of a scan: `Table`, `Version`, `Files` (those that may
        hold such rows, and how many there are), `Rows` (how they are found) and `Reason` (why Arrow cannot).

    Raises
    ------
    DeltaError
        As the command, before it looks for its rows.
    """
    told: dict[str, str] = {}
    before = _told.set(told)
    try:
        command()
        told["Rows"] = "none"
    except _Ended:
        pass  # told by who ended it
    finally:
        _told.reset(before)
    return redacted(", ".join(f"{name}: {text}" for name, text in told.items()))


def is_explained() -> bool:
    """Whether a command is explained in this thread."""
    return _told.get() is not None


def begin_explained(target: DmlTarget) -> None:
    """Tell which version of which table a command changes, if it is explained."""
    told = _told.get()
    if told is not None:
        told |= {"Table": target.handle.where, "Version": str(target.version)}


def end_if_explained(
    target: DmlTarget, rows: str, files: CandidateFiles | None = None, reason: str = ""
) -> None:
    """End the command here, if it is explained.

    Parameters
    ----------
    rows
        How it finds its rows.
    files
        Where it looks for them; None: that is not known yet.
    reason
        Why Arrow cannot find them.
    """
    told = _told.get()
    if told is None:
        return
    if files is not None:
        told["Files"] = f"{len(files)} of {len(target.all_files)}"
    told["Rows"] = rows
    if reason:
        told["Reason"] = reason
    raise _Ended


_FILES = "files"
_PLACE = (StructField(FILE, INTEGER), StructField(ROW, LONG))


def register_source(spark: SparkSession) -> None:
    """Make the source known to a session."""
    if not sealed.is_registered(spark, FORMAT):
        sealed.register_source(spark, TargetSource)


class TargetSource(DataSource, Sealed):
    """Options: the table's, and `files`: version, numbers and paths of files, and the session zone."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(self.opened(options))
        self._version, self._numbers, self._paths, self._timezone = wire.decode(self.options[_FILES])

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def _snapshot(self) -> tuple[Snapshot, Needed | None]:
        """The version, and what of its columns a query of a client needs."""
        parsed = parse_read_options({name: text for name, text in self.options.items() if name != _FILES})
        log = TableLog(open_storage(parsed.path, parsed.storage_options))
        return log.open_snapshot(self._version), needed_of(parsed.facts.settings)[0]

    def schema(self) -> SparkStructType:
        snapshot, needed = self._snapshot()
        # Places are known of every row, but what promises no nulls keeps Spark from ever asking.
        every = StructType((*snapshot.schema.fields, *_PLACE))
        needed_columns = every if needed is None else needed.of(every)
        fields = [field for field in snapshot.schema if field in needed_columns.fields]
        return schemas.to_spark(StructType((*(fields or snapshot.schema.fields[:1]), *_PLACE)))

    def reader(self, schema: SparkStructType) -> DataSourceReader:
        places = dict(zip(self._paths, self._numbers, strict=True))
        return _Reader(self._snapshot()[0], schema, places, self._timezone)


class _Slices(InputPartition):
    def __init__(self, slices: Sequence[tuple[int, FileSlice]]) -> None:
        super().__init__(None)
        self.slices = tuple(slices)

    def __repr__(self) -> str:
        return f"_Slices({len(self.slices)})"


class _Reader(DataSourceReader):
    """Pickled, it keeps only what `read` needs in a task."""

    def __init__(
        self, snapshot: Snapshot, schema: SparkStructType, numbers: Mapping[str, int], timezone: str
    ) -> None:
        columns = schema.names[: -len(_PLACE)]
        self._scan: Any = Scan(snapshot, columns=columns, metadata_columns=("row_index",))
        self._numbers: Any = numbers
        self._storage = snapshot.storage
        self._plan: ReadPlan = replace(self._scan.plan, timezone=timezone)
        self._schema = schema
        self._columns = len(columns)

    def __getstate__(self) -> dict[str, Any]:
        return {n: v for n, v in self.__dict__.items() if n not in ("_scan", "_numbers")}

    def partitions(self) -> Sequence[InputPartition]:
        slices = [piece for piece in self._scan.slices() if piece.path in self._numbers]
        tasks = pack(slices, DEFAULT_PARTITION_BYTES, 1)
        packed = [_Slices([(self._numbers[piece.path], piece) for piece in task]) for task in tasks]
        return packed or [_Slices(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Slices)
        schema = schemas.to_arrow(self._schema)
        for number, piece in partition.slices:
            for batch in read_slices(self._storage, self._plan, [piece]):
                yield schemas.conform(self._with_places(batch, number), schema, self._plan.table)

    def _with_places(self, batch: pa.RecordBatch, number: int) -> pa.RecordBatch:
        import pyarrow as pa

        (index,) = batch.column(self._columns).flatten()
        file = pa.repeat(pa.scalar(number, pa.int32()), len(batch))
        names = [*batch.schema.names[: self._columns], *(f.name for f in _PLACE)]
        return pa.RecordBatch.from_arrays([*batch.columns[: self._columns], file, index], names=names)


TUPLE = "__pydelta_tuple"


def _state(log: DeltaLog, version: int | None) -> TableState:
    """What a client needs to know of a version whose log is on the server; None: the newest."""
    return log.open_snapshot(version).table_state


class DmlTarget:
    """A table at the version that a command starts from.

    Parameters
    ----------
    handle
        The table.
    version
        The version, for what only reads; None: the newest.

    Attributes
    ----------
    engine
        The session as commands see it.
    state
        The version: its protocol and metadata.
    facts
        What the session says, when the command begins.
    timezone
        The session time zone.
    """

    def __init__(self, handle: Handle, version: int | None = None) -> None:
        self.handle = handle
        self.spark = handle.spark
        self.engine = engine_of(handle.spark)
        self.facts = facts_of(handle.spark)
        self.timezone = self.facts.settings[TIME_ZONE]
        self._first: DataFrame | None = None
        log = handle.log
        self._snapshot = log.open_snapshot(version) if isinstance(log, DeltaLog) else None
        self.state: TableState = (
            ask(handle.log, _state, version) if self._snapshot is None else self._snapshot.table_state
        )
        self.version = self.state.version
        self.schema = self.state.schema

    @property
    def snapshot(self) -> Snapshot | None:
        """The version itself; None where the log is on a server."""
        return self._snapshot

    # --- the log

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of `function(snapshot, *arguments)`, wherever the log is; `wire.py` has a form for it."""
        if self._snapshot is not None:
            return function(self._snapshot, *arguments)
        return ask(self.handle.log, at_version, self.version, function, arguments)

    def run(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call `function(snapshot, *arguments)` once, wherever the log is."""
        if self._snapshot is not None:
            function(self._snapshot, *arguments)
        else:
            run(self.handle.log, at_version, self.version, function, arguments)

    # --- rows

    def frame(self, files: CandidateFiles) -> DataFrame:
        """The rows of some files, under the table's alias.

        Returns
        -------
        DataFrame
            The table's columns, then `FILE` (int) and `ROW` (bigint, the position in the file). In classic sessions
            all frames of a target have the same columns: what was resolved on one of them can be evaluated on every
            other.
        """
        rows = self.engine.numbered_rows(
            self._snapshot, self.handle.options, files.numbers, self.timezone, (FILE, ROW)
        )
        rows = self._portable(files) if rows is None else rows
        if self._first is None:
            self._first = rows
        return self._with_alias(self._in_same_columns(rows))

    def _in_same_columns(self, frame: DataFrame) -> DataFrame:
        if self._first is None or frame is self._first:
            return frame
        return self.engine.frames.with_ids_of(frame, self._first)

    @cached_property
    def context(self) -> Context | None:
        """See `Expressions.context`."""
        return self.engine.expressions.context(self._first or self.frame(self.no_files), self.handle.given)

    def _with_alias(self, frame: DataFrame) -> DataFrame:
        frame = self.engine.frames.in_place_of(frame, self.handle.given)
        return frame.alias(self.handle.alias) if self.handle.alias else frame

    def _portable(self, files: CandidateFiles) -> DataFrame:
        register_source(self.spark)
        chosen = (self.version, files.numbers.to_pylist(), files.paths.to_pylist(), self.timezone)
        read_options = with_facts_of_reads(self.spark, self.handle.options)
        options = seal(self.spark, with_session_settings(self.spark, read_options), FORMAT)
        reader = self.spark.read.format(FORMAT).options(**options, files=wire.encode(chosen))
        with delta_errors():
            return reader.load()

    @cached_property
    def no_files(self) -> CandidateFiles:
        """No file at all, for a frame that only resolves expressions."""
        import pyarrow as pa

        none = pa.nulls(0, pa.int64())
        return CandidateFiles(none, pa.nulls(0, pa.string()), none)

    @cached_property
    def all_files(self) -> CandidateFiles:
        """All live files."""
        files: CandidateFiles = self.ask(candidate_files, None, self.timezone)
        return files

    # --- predicates

    def understood(self, parts: Sequence[Expression]) -> Expression | None:
        """See `candidates.usable_predicate`."""
        predicate: Expression | None = self.ask(usable_predicate, list(parts), self.timezone)
        return predicate

    def files(self, predicate: Expression | None) -> CandidateFiles:
        """The files that may hold matching rows."""
        if predicate is None:
            return self.all_files
        self._narrow(predicate)
        found: CandidateFiles = self.ask(candidate_files, predicate, self.timezone)
        return found

    def _narrow(self, predicate: Expression) -> None:
        """Of a large table, let tasks find the files of the command: from here on it knows of no others.

        A command looks for its files once, and reads and changes none but those.
        """
        if self._snapshot is None or not is_large(self.spark, self._snapshot):
            return
        bound = bind(predicate, self.schema, self.timezone)
        self._snapshot = matching_files(self.spark, self._snapshot, bound, self.timezone, statistics=True)

    @contextmanager
    def as_it_was_after(self, failure: type[Exception]) -> Iterator[None]:
        """Within the block, a failure of that class undoes what the block has narrowed the table to.

        Who goes on in another way may look for other files.
        """
        before = self._snapshot
        try:
            yield
        except failure:
            if self._snapshot is not before:
                self._snapshot = before
                self.__dict__.pop("all_files", None)  # numbered as the narrowed table numbers them
            raise

    def files_in_partitions(self, condition: Resolved, predicate: Expression | None) -> CandidateFiles:
        """The files whose partition values match a condition that reads partition columns only, by Spark.

        Parameters
        ----------
        predicate
            What of the condition the kernel understands.
        """
        import pyarrow.compute as pc

        if predicate is not None:
            self._narrow(predicate)
        tuples, codes = self.ask(distinct_partitions, self.timezone)
        numbered = tuples.append_column(TUPLE, integers(range(tuples.num_rows)))
        frame = self._with_alias(self._in_same_columns(frame_of(self.spark, numbered)))
        matching = sorted(row[0] for row in frame.where(condition.column).select(TUPLE).collect())
        chosen = pc.is_in(codes, value_set=integers(matching))
        files = self.all_files
        return CandidateFiles(*(values.filter(chosen) for values in (files.numbers, files.paths, files.rows)))
