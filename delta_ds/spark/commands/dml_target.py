"""The target of DELETE, UPDATE and MERGE, pinned to one version: its rows with their positions, and its log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.base.arrow_buffers import integers
from delta_ds.kernel.commands.dml.candidates import (
    CandidateFiles,
    candidate_files,
    distinct_partitions,
    usable_predicate,
)
from delta_ds.kernel.commands.dml.changed_rows import FILE, ROW
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.tree import Expression
from delta_ds.kernel.format.options.session_facts import TIME_ZONE
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.spark.base import wire
from delta_ds.spark.base.kinds.frames import frame_of
from delta_ds.spark.base.kinds.hadoop_settings import with_session_settings
from delta_ds.spark.base.kinds.sealed import seal
from delta_ds.spark.commands.file_scan_source import FORMAT, register_source
from delta_ds.spark.commands.handle import Handle
from delta_ds.spark.engines.classic.columns import HIDDEN
from delta_ds.spark.engines.connect.connect_bridge import fetch, run
from delta_ds.spark.engines.connect.log_calls import at_version
from delta_ds.spark.engines.large_tables.bound import is_large
from delta_ds.spark.engines.large_tables.matching_files import matching_files
from delta_ds.spark.engines.seam.choice import engine_of
from delta_ds.spark.engines.seam.engine import Resolved
from delta_ds.spark.engines.session_facts import facts_of
from delta_ds.spark.errors.translation import delta_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_ds.spark.engines.classic.resolution import ExpressionContext


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
        self._snapshot: Snapshot | None = None
        self._first: DataFrame | None = None
        if isinstance(handle.log, DeltaLog):
            self._snapshot = handle.log.open_snapshot(version)
        self.state: TableState = (
            fetch(handle.log, _state, version) if self._snapshot is None else self._snapshot.table_state
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
        return fetch(self.handle.log, at_version, self.version, function, arguments)

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
        found = self.engine.numbered_rows(
            self._snapshot, self.handle.options, files.numbers, self.timezone, (FILE, ROW)
        )
        if found is None:
            found = self._portable(files)
        if self._first is None:
            self._first = found
        return self._with_alias(self._in_same_columns(found))

    def _in_same_columns(self, frame: DataFrame) -> DataFrame:
        if self._first is None or frame is self._first:
            return frame
        return self.engine.with_ids_of(frame, self._first)

    @cached_property
    def context(self) -> ExpressionContext | None:
        """See `Engine.context`."""
        return self.engine.context(self._first or self.frame(self.no_files), self.handle.given)

    def _with_alias(self, frame: DataFrame) -> DataFrame:
        return frame.alias(self.handle.alias) if self.handle.alias else frame

    def _portable(self, files: CandidateFiles) -> DataFrame:
        register_source(self.spark)
        chosen = (self.version, files.numbers.to_pylist(), files.paths.to_pylist(), self.timezone)
        text = wire.encode(chosen)
        options = seal(self.spark, with_session_settings(self.spark, self.handle.options), FORMAT)
        reader = self.spark.read.format(FORMAT).options(**options, files=text)
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
        found: CandidateFiles = self.ask(candidate_files, None, self.timezone)
        return found

    # --- predicates

    def understood(self, parts: Sequence[Expression]) -> Expression | None:
        """See `candidates.usable_predicate`."""
        found: Expression | None = self.ask(usable_predicate, list(parts), self.timezone)
        return found

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


def is_hidden(name: str) -> bool:
    """Whether a column is one of those that users never see."""
    return name.startswith(HIDDEN)
