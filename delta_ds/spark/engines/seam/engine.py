"""What is asked of a session above `engines` and `native`: the face that each kind has its own class for.

Commands know no kinds of sessions. What differs between them is here, and what one cannot do it says by its answer: no
rows of its own (None), columns of two queries that do not mean the same (False).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from delta_ds.kernel.format.schema.types import DataType
from delta_ds.records import dataclass, field

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType as SparkDataType
    from pyspark.sql.types import StructType as SparkStructType

    from delta_ds.conditions.record import ErrorCondition
    from delta_ds.exceptions import UnsupportedOperationError
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.schema.types import StructType
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.transaction.write.plan import WritePlan
    from delta_ds.kernel.transaction.write.task import TaskResult
    from delta_ds.spark.engines.classic.latest_version import InsertRows
    from delta_ds.spark.engines.classic.resolution import ExpressionContext
    from delta_ds.spark.engines.seam.writes import Writes


@dataclass(frozen=True)
class Resolved:
    """An expression of a user in the scope it was written for.

    Attributes
    ----------
    column
        To be evaluated in any frame that has the columns of the scope.
    type
        The type of its values.
    text
        As history tells it.
    source
        As it was given.
    projected
        The name under which the scope's side has to compute it before the join, see `Scope.projections`; None where
        that is not needed, which is always so in classic sessions.
    subquery
        Whether a query is in it, whose rows may be those of any table; not known on Spark Connect.
    """

    column: Column
    type: DataType
    text: str
    source: Any
    projected: str | None = None
    subquery: bool = False

    @property
    def needs_projection(self) -> bool:
        """Whether it can only be told apart if its side computes it before the join."""
        return self.projected is not None


def source_text(source: Any) -> str:
    """The text of an expression, for messages; a `Column` as pyspark shows it."""
    if isinstance(source, str):
        return source
    text = str(source)
    match = re.fullmatch(r"Column<'(.*)'>", text, re.DOTALL)
    return match[1] if match else text


class ResolutionCache:
    """What the server of Spark Connect has said of expressions, for scopes of frames that differ in their rows only."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], list[tuple[DataType, bool]]] = {}

    def find(
        self, key: tuple[Any, ...], ask: Callable[[], list[tuple[DataType, bool]]]
    ) -> list[tuple[DataType, bool]]:
        """For each expression its type, and whether its side has to compute it before a join; asked for once."""
        if key not in self._known:
            self._known[key] = ask()
        return self._known[key]

    def forget_columns(self) -> None:
        """Ask again of each `Column`, which may name a frame that has been replaced; text names columns only."""
        self._known = {
            key: found for key, found in self._known.items() if all(isinstance(part, str) for part in key[-1])
        }


@dataclass(frozen=True)
class ResolutionScope:
    """Where expressions are resolved.

    Attributes
    ----------
    frame
        The columns that they see.
    joined
        The frame that they will be evaluated in, where it is another one.
    context
        See `Engine.context`.
    label, clause
        Which of the scopes of a command this is, and which part of the command, for messages.
    cache
        What is known of expressions from scopes with the same label.
    projections
        Gets the columns that the scope's side has to compute before the join, by their names.
    refuse
        The error for an expression, by its condition and as it was given.
    takes_random
        Whether values may differ each time that they are computed.
    """

    frame: DataFrame
    joined: DataFrame | None
    context: ExpressionContext | None
    label: str
    clause: str
    cache: ResolutionCache
    projections: dict[str, Column] = field(compare=False)
    refuse: Callable[[ErrorCondition[UnsupportedOperationError], Any], UnsupportedOperationError]
    takes_random: bool


class TablesRead(Protocol):
    """The versions of tables that the queries of a command have read."""

    def reads(self, storage: Storage) -> bool:
        """Whether a query has read a table."""
        ...


class RowRules(Protocol):
    """What tables demand of rows, evaluated by Spark: constraints, generated columns, types."""

    def columns_of(self, text: str) -> Sequence[tuple[str, ...]]:
        """The columns that an SQL expression reads, see `plan_dml`."""
        ...

    def applied(
        self, rows: DataFrame, plan: WritePlan, places: Sequence[str] = (), unchecked: str | None = None
    ) -> DataFrame | None:
        """The rows as the table stores them, see `stored_rows`; None where Spark cannot do all that the plan wants."""
        ...


class Expressions(Protocol):
    """What a kind of session knows of expressions: of their meaning, and of what they say in the kernel's terms."""

    def resolve(
        self, scope: ResolutionScope, columns: Sequence[Column], sources: Sequence[Any], *, predicate: bool
    ) -> list[Resolved] | None:
        """What expressions mean; None where they have to be asked for one by one, which tells what is wrong.

        Parameters
        ----------
        columns, sources
            The expressions, as columns and as they were given.
        predicate
            Whether they are conditions, which take no subqueries.
        """
        ...

    def predicates(
        self, condition: Resolved, schema: StructType, timezone: str, alias: str | None
    ) -> Sequence[Expression]:
        """What a condition on a table says in the kernel's terms: all of these hold where it does. Not bound.

        Parameters
        ----------
        schema, timezone, alias
            Of the table; the session's time zone; the name by which expressions may call the table.
        """
        ...

    def column_ids(self, frame: DataFrame) -> Sequence[int]:
        """The ids of the columns of a frame, as `evaluable` takes names for; none where they are not known."""
        ...

    def evaluable(
        self, value: Column, schema: StructType, timezone: str, names: Mapping[int, str] | None = None
    ) -> Expression:
        """A resolved expression in the kernel's terms, row by row the same, not bound.

        Parameters
        ----------
        schema
            The columns that it may read.
        names
            Their names in `schema`, by the ids that they have for Spark; None: the names are the same.

        Raises
        ------
        OnlySpark
            The kernel has none.
        """
        ...

    def predicates_of_join(
        self, condition: Resolved, rows: DataFrame, schema: StructType, timezone: str, alias: str | None
    ) -> list[Expression]:
        """The same of the condition of a join, for what it says of the table alone; `rows` is its side."""
        ...

    def equal_keys(
        self, condition: Resolved, rows: DataFrame, source: DataFrame
    ) -> Sequence[tuple[str, Column]]:
        """The columns of the table that must equal an expression of the source; none where that is not known."""
        ...

    def columns_read(self, condition: Resolved, alias: str | None) -> set[str] | None:
        """The names of the columns that a condition reads; None where that is not known."""
        ...

    def functions_of_rows(self, sources: Iterable[object], alias: str | None) -> Sequence[Expression] | None:
        """The expressions that the kernel has to understand for all of `sources` to depend on nothing but the row.

        None where it is known that they may depend on more, or not known whether.
        """
        ...

    def cast_without_ansi(self, value: Column, kind: SparkDataType) -> Column:
        """A value cast as in sessions that are not ANSI: to null, or to what its last bits say, where it does not fit.

        On Spark Connect, where an ANSI session has no such cast, what does not fit is an error there.
        """
        ...

    def has_subqueries(self, columns: Iterable[Column]) -> bool:
        """Whether a column is the answer of a query, as far as that is known."""
        ...

    def are_one(self, columns: Sequence[Column]) -> bool:
        """Whether all of some columns are known to be the same one."""
        ...


CLASSIC, CONNECT = "classic", "connect"
_Table = TypeVar("_Table")
# The application and version that a commit counts as.
Transaction = tuple[str, int]


class Engine(Protocol):
    """A session as commands and writes see it; made by `engine_of`.

    Attributes
    ----------
    kind
        `CLASSIC` or `CONNECT`, for `register` and for what is told.
    fixes_values
        Whether what was resolved has one value in all queries of a command: the present, say. Where it has not, a
        command that reads rows twice has to keep them.
    """

    kind: str
    fixes_values: bool

    @property
    def expressions(self) -> Expressions:
        """What it knows of expressions."""
        ...

    @property
    def writes(self) -> Writes:
        """What it does for writes of rows."""
        ...

    # --- rows

    def read(
        self, options: Mapping[str, str], schema: SparkStructType | None, insert: InsertRows
    ) -> DataFrame:
        """The rows that read options ask for, by Spark's own reader where that one can read them.

        Parameters
        ----------
        schema
            Columns to read, as given to `spark.read.schema(...)`; None for all, or for what `columns` says.
        insert
            Writes the rows of an `INSERT INTO` a view of the result.
        """
        ...

    def numbered_rows(
        self,
        snapshot: Snapshot | None,
        options: Mapping[str, str],
        numbers: pa.Array,
        timezone: str,
        names: tuple[str, str],
    ) -> DataFrame | None:
        """Rows of files with their places, by Spark's own reader; None: the data source has to read them.

        Parameters
        ----------
        numbers
            Of the files in the version, int64.
        names
            Of the columns of a row's file and of its place there.
        """
        ...

    def with_ids_of(self, frame: DataFrame, ids: DataFrame) -> DataFrame:
        """A frame whose columns are those of another one, as far as this kind of session can tell them apart."""
        ...

    def in_place_of(
        self,
        frame: DataFrame,
        frames: Iterable[DataFrame | str],
        expressions: Iterable[object] | None = None,
    ) -> DataFrame:
        """A frame in which expressions find columns of frames that it stands for.

        Parameters
        ----------
        frame
            The rows.
        frames
            What it stands for, with the frames that those are made of.
        expressions
            Those whose columns are looked for; None: not known.
        """
        ...

    def context(self, frame: DataFrame, given: Iterable[DataFrame | str]) -> ExpressionContext | None:
        """The fixed values of `current_timestamp()` and its like, and columns of frames of the table.

        Parameters
        ----------
        frame
            The table as the command sees it.
        given
            Frames of the table that its user holds; for those of a client the qualifier of their columns.
        """
        ...

    def columns(self, frame: DataFrame) -> list[Column]:
        """The columns of a frame, also where two have one name if that can be."""
        ...

    def has_same_columns(self, one: DataFrame, other: DataFrame) -> bool:
        """Whether expressions that were resolved on one frame hold for the other."""
        ...

    def check_join(self, joined: DataFrame, left: DataFrame, right: DataFrame) -> None:
        """Refuse a join in which Spark had to change column ids, as in a self-join.

        Raises
        ------
        ValueError
            Expressions that were resolved on one side could mean columns of the other.
        """
        ...

    def is_constant(self, frame: DataFrame) -> bool:
        """Whether reading a frame again gives the same rows, at no cost worth speaking of."""
        ...

    def reads_by_python(self, frame: DataFrame) -> bool:
        """Whether a frame may read tables by Spark's data source interface, where `TablesRead` does not see them."""
        ...

    def estimated_bytes(self, frame: DataFrame) -> int | None:
        """How large Spark expects the rows of a frame to be.

        None where it does not say, or rows may be others each time they are computed.
        """
        ...

    def arrow_rows(self, frame: DataFrame, most: int) -> pa.Table | None:
        """The rows of a frame, computed once; None where they are of more bytes than `most`, or not to be measured."""
        ...

    def measured_bytes(self, frame: DataFrame, rows: int, variable_bytes: int) -> int:
        """How large so many rows of a frame are; see `variable_bytes`."""
        ...

    def kept(self, frame: DataFrame) -> AbstractContextManager[DataFrame]:
        """The rows of a frame, stored for two reads within the block."""
        ...

    def variable_bytes(self, frame: DataFrame) -> Column | None:
        """The bytes of the values of a row that may be long; None where nobody asks."""
        ...

    def fits_executors(self, frame: DataFrame, rows: int, variable_bytes: int) -> bool:
        """Whether every executor can hold the rows of a frame; see `variable_bytes`."""
        ...

    # --- writing

    def row_rules(self) -> RowRules | None:
        """Who evaluates what tasks cannot; None: nobody."""
        ...

    def write(
        self,
        rows: DataFrame,
        plan: WritePlan,
        options: Mapping[str, str],
        folder: str,
        problem: str | None,
    ) -> TaskResult | None:
        """Write rows by Spark's own writer; None: tasks with this package have to.

        Parameters
        ----------
        plan, options, folder
            The write, settings of Hadoop's file system, and the name of a folder of the table that is not there yet.
        problem
            Why Spark's writer cannot write them, where the command knows of something.
        """
        ...

    def pinned(self, snapshot: Snapshot | None) -> AbstractContextManager[TablesRead | None]:
        """Within the block all queries of the command read one version of each table; None: that is not known."""
        ...

    def refresh(self, table: str) -> None:
        """Let go of rows of a table that Spark has cached, after a commit."""
        ...

    # --- jobs

    def tasks(self, per_core: int, otherwise: int) -> int:
        """How many tasks a job should have: so many for each core, or a number where cores are not known."""
        ...

    def cores(self, server_cores: int) -> int:
        """How many tasks can run at a time, given the cores of the machine that the log is read on."""
        ...

    def runs_small_jobs(self) -> bool:
        """Whether this process may do little work itself rather than start a job."""
        ...

    def runs_tasks_here(self) -> bool:
        """Whether tasks run on the machine of this process, and nowhere else."""
        ...

    def batch_function(
        self,
        apply: Callable[[_Table, DataFrame, Transaction | None], None],
        table: _Table,
        reopened: Callable[[SparkSession], _Table],
    ) -> Callable[[DataFrame, int], None]:
        """What `foreachBatch` calls with each batch and its number.

        Parameters
        ----------
        apply
            Applies a batch to the table. It gets the transaction that the batch counts as; None where that is not
            known, so that a batch that comes again has to find its rows in the table.
        table, reopened
            The table, and what opens it again where the function runs in another process, with the session there.
        """
        ...

    def described(self, text: str) -> AbstractContextManager[None]:
        """Describe the jobs of the block in Spark's UI."""
        ...

    def send(self, archive: Callable[[str], str]) -> str:
        """Give Python tasks an archive to import from, which is written into a folder; who has it from now on."""
        ...

    def workers(self) -> tuple[bool, str]:
        """Whether Python workers can run this package, as far as is known without a job; which they are, or why not."""
        ...
