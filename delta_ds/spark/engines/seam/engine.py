"""What is asked of a session above `engines` and `native`: the face that each kind has its own class for.

Commands know no kinds of sessions. What differs between them is here: a few verbs, and what a session knows of
expressions, of frames, of jobs and of writes. What one cannot do it says by its answer: no rows of its own (None),
columns of two queries that do not mean the same (False). What writes ask beside that is here too, and rows of tables by
the data source of this package, which every kind of session can do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from pyspark.sql.types import ArrayType, DataType, MapType, StructType, UserDefinedType

from delta_ds.records import dataclass
from delta_ds.spark.base.kinds.sealed import seal
from delta_ds.spark.base.kinds.session_facts import with_facts_of_reads, with_session_settings
from delta_ds.spark.base.session_conf import source_in_python
from delta_ds.spark.base.table_names import FORMAT
from delta_ds.spark.engines.monkeypatch import call_original
from delta_ds.spark.errors.translation import delta_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType
    from pyspark.sql.types import StructType as SparkStructType

    from delta_ds.kernel.format.options.settings import SessionFacts
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.transaction.write.plan import WritePlan
    from delta_ds.kernel.transaction.write.task import TaskResult
    from delta_ds.spark.engines.classic.load import InsertRows
    from delta_ds.spark.engines.seam.expressions import Expressions

# Rows, and the options of their write.
Pending: TypeAlias = "tuple[DataFrame, Mapping[str, str]]"


@dataclass(frozen=True, slots=True)
class Matched:
    """A column of rows, as a table is to have it.

    Attributes
    ----------
    place
        Among the columns of the rows; None: they have none, and it is null.
    name, kind
        That it gets.
    """

    place: int | None
    name: str
    kind: DataType

    def null(self) -> Column:
        """The column where the rows have none."""
        from pyspark.sql import functions as F

        return F.lit(None).cast(self.kind).alias(self.name)


class Writes(Protocol):
    """What a kind of session does for a write of rows."""

    def cast(self, rows: DataFrame, columns: Sequence[Matched], facts: SessionFacts) -> DataFrame:
        """The matched columns of rows, cast by the policy of the session, which is not `STRICT`, or loses nothing."""
        ...

    def overflow_of_inserts(self) -> AbstractContextManager[None]:
        """Within the block the overflow of a `cast` is raised as the one of an insert."""
        ...

    def check_constants(self, rows: DataFrame) -> None:
        """Raise what is wrong with constants of rows, as Spark computes them before anything is checked."""
        ...

    def save(self, rows: DataFrame, options: Mapping[str, str], *, overwrite: bool) -> Pending | None:
        """Write by Spark's own writer; what the data source has to write where that one cannot, with its options."""
        ...

    def refresh(self, options: Mapping[str, str]) -> None:
        """Let go of rows of the table of a write that Spark has cached; where it cannot open the store, it caches none.

        Parameters
        ----------
        options
            Of the write.
        """
        ...

    def reports(self) -> AbstractContextManager[str | None]:
        """The folder to which a commit in another process of this machine brings its reports; None on another one."""
        ...


def is_same(given: DataType, wanted: DataType) -> bool:
    """Whether types are the same but for nullability and metadata."""
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        pairs = zip(given.fields, wanted.fields, strict=False)
        return len(given.fields) == len(wanted.fields) and all(
            a.name == b.name and is_same(a.dataType, b.dataType) for a, b in pairs
        )
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return is_same(given.elementType, wanted.elementType)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        return is_same(given.keyType, wanted.keyType) and is_same(given.valueType, wanted.valueType)
    if isinstance(given, UserDefinedType):
        return given == wanted
    return given.simpleString() == wanted.simpleString()


def portable_rows(spark: SparkSession, options: Mapping[str, str], schema: StructType | None) -> DataFrame:
    """The rows that read options ask for; arguments as of `Engine.read`."""
    complete = seal(spark, with_session_settings(spark, with_facts_of_reads(spark, options)), FORMAT)
    reader = spark.read.format(source_in_python(spark)).options(**complete)
    if schema is not None:
        reader = reader.schema(schema)
    with delta_errors():
        frame: DataFrame = call_original(reader, "load")
    return frame


CLASSIC, CONNECT = "classic", "connect"
_Table = TypeVar("_Table")
# The application and version that a commit counts as.
Transaction = tuple[str, int]


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


class Frames(Protocol):
    """What a kind of session knows of frames: which columns they have, how large their rows are; and keeps rows."""

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

    def follow(self) -> None:
        """From now on let a column of a frame say which frame it is of, so that commands see what that is made of."""
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

    def reads(self, frame: DataFrame, path: str) -> bool:
        """Whether the rows of a frame are computed from the newest version of the table at a path, as far as is known.

        A client does not see what names of its server stand for.
        """
        ...

    def estimated_bytes(self, frame: DataFrame) -> int | None:
        """How large Spark expects the rows of a frame to be.

        None where it does not say, or rows may be others each time they are computed.
        """
        ...

    def arrow_rows(self, frame: DataFrame, storage: Storage, most: int) -> pa.Table | None:
        """The rows of a frame, computed once; None where they are of more bytes than `most`, or not to be measured.

        Rows that are Parquet files in the store of a table need no query.
        """
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


class Jobs(Protocol):
    """Where jobs of a session run, and how many tasks of them at a time."""

    def parallelism(self) -> int | None:
        """How many tasks can run at a time; None where that is not told."""
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
    def frames(self) -> Frames:
        """What it knows of frames."""
        ...

    @property
    def jobs(self) -> Jobs:
        """What it knows of its jobs."""
        ...

    @property
    def writes(self) -> Writes:
        """What it does for writes of rows."""
        ...

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
