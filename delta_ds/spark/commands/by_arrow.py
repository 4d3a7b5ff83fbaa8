"""Rows of a command changed by Arrow, in tasks: found where their files are, or by a query of Spark.

What Spark carries are the places of rows and the values that are new. The files themselves are read and written by the
tasks, so no row that stays as it is becomes a row of Spark. Tasks of a Spark job do it, or threads of this process
where tasks would run on the same machine, or there is little. Who owns the files that are made of rows is here, and
rows that a command reads more than once, which have to be the same each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from delta_ds.exceptions import InvariantViolationError, PredicateError
from delta_ds.kernel.base.work import Work
from delta_ds.kernel.commands.dml.candidates import CandidateFiles, Rewritten, together
from delta_ds.kernel.commands.dml.changed_rows import FILE, ROW
from delta_ds.kernel.commands.dml.file_rewrite import rewrite_changed_files
from delta_ds.kernel.commands.dml.in_process import Task, rewrite_in_threads
from delta_ds.kernel.commands.dml.plan import DmlPlan, FileRewrite, plan_file_rewrite
from delta_ds.kernel.files.read.reader import threads_for
from delta_ds.kernel.format.schema.column_paths import HIDDEN
from delta_ds.kernel.storage.staging import Staging
from delta_ds.kernel.transaction.write.task import TaskResult, write_rows
from delta_ds.spark.base.kinds.frames import active, run_tasks, tasks_counted
from delta_ds.spark.base.session_conf import is_little
from delta_ds.spark.commands.dml_target import DmlTarget, end_if_explained
from delta_ds.spark.engines.classic.catalyst_values import OnlySpark
from delta_ds.spark.errors.translation import as_delta_error

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.spark.engines.seam.engine import Jobs


@contextmanager
def staging(table: str) -> Iterator[Staging]:
    """The owner of a command's files; errors of Spark are translated within the block.

    Parameters
    ----------
    table
        Its address, for messages.
    """
    with Staging(table) as staged:
        try:
            yield staged
        except BaseException as error:
            ours = as_delta_error(error)
            if ours is None or ours is error:
                raise
            raise ours from error


def in_threads(spark: SparkSession, jobs: Jobs, size: int, files: int, share: int = 1) -> bool:
    """Whether threads of this process rewrite files, not tasks: where those would run here too, or little is rewritten.

    Parameters
    ----------
    size, files, share
        As of `is_little`.

    Raises
    ------
    InvalidOptionError
        `LOCAL_OPTIMIZE_CONF` is no size.
    """
    if not (is_little(spark, 1, 0) and jobs.runs_small_jobs()):
        return False
    return jobs.runs_tasks_here() or is_little(spark, size, files, share)


# The condition of Spark's error.
_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"


def materialize(frame: DataFrame, *, replicated: bool = False) -> DataFrame:
    """The rows of a frame, materialized; lost partitions fail the query instead of being computed again.

    Parameters
    ----------
    replicated
        On two executors each, where there are two.
    """
    with active(frame.sparkSession):
        if replicated:
            from pyspark import StorageLevel

            return frame.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY_2)
        return frame.localCheckpoint(eager=True)


def lost_rows(error: BaseException) -> bool:
    """Whether a query failed because materialized rows went with their executor: all has to begin anew."""
    return _LOST in str(error)


_Answer = TypeVar("_Answer")


class ByArrow:
    """One try to do a command by Arrow.

    Parameters
    ----------
    target
        The table.
    plan
        Of the change, with a folder of its own: tasks may still write when others have failed.
    work
        Is told how far it is.
    bring_package
        Sends this package to executors that do not have it.

    Attributes
    ----------
    results
        What was written.
    """

    def __init__(
        self, target: DmlTarget, plan: DmlPlan, work: Work, bring_package: Callable[[], None]
    ) -> None:
        self.target, self.plan, self._work = target, plan, work
        self._bring_package = bring_package
        self.results: list[TaskResult] = []
        self._changed_rows = 0

    def rewrite(
        self, task: Task, files: CandidateFiles, actions: Sequence[int], *, repeated: bool = False
    ) -> Rewritten:
        """Find rows in files, and rewrite the files or mark the rows.

        Parameters
        ----------
        task
            Finds and changes rows. Can be pickled.
        files, actions, repeated
            As of `rewrite_files`.

        Raises
        ------
        OnlySpark
            An expression fails on some row, or a new row breaks a constraint: Spark is to say whether that is an error,
            and what it is.
        """
        if not len(files):
            return Rewritten()
        if len(files) > MOST_FILES:
            raise OnlySpark(f"more than {MOST_FILES} files may hold such rows")
        target = self.target
        rewrite: FileRewrite = target.ask(
            partial(plan_file_rewrite, repeated=repeated), self.plan, files, tuple(actions)
        )
        place = "threads of the driver" if _is_local(target, rewrite) else "tasks of Spark"
        end_if_explained(target, f"found by Arrow in {place}", files)
        found = _or_spark(lambda: self._run(rewrite, task))
        if found.result.paths:
            self.results.append(found.result)
        self._changed_rows += found.rows
        return found

    def _run(self, rewrite: FileRewrite, task: Task) -> Rewritten:
        target = self.target
        if _is_local(target, rewrite):
            threads = threads_for(self.plan.write.storage, target.engine.jobs.parallelism() or 1)
            with self._work.phase("rewriting", total=len(rewrite.files), unit="files") as phase:
                return rewrite_in_threads(rewrite, task, threads, phase)
        self._bring_package()
        groups = _groups(rewrite, tasks_for(target, rewrite))
        numbers = target.spark.range(0, len(groups), 1, len(groups))
        with (
            self._work.phase("rewriting", unit="tasks") as phase,
            tasks_counted(target.spark, phase),
        ):
            return together(run_tasks(numbers, partial(_in_task, rewrite, task, groups)))

    def insert(self, batches: Iterable[pa.RecordBatch]) -> int:
        """Write new rows, after `rewrite`, given by the table's columns but those that are computed; how many.

        Raises
        ------
        OnlySpark
            As `rewrite`.
        """
        with self._work.phase("inserting", unit="rows") as phase:
            rows = phase.rows(batches)
            plan = self.plan.inserts_beside(self._changed_rows)
            result = _or_spark(lambda: write_rows(plan, rows, folder=self.plan.folder))
        if result.paths:
            self.results.append(result)
        return result.rows


def _or_spark(work: Callable[[], _Answer]) -> _Answer:
    try:
        return work()
    except Exception as error:
        ours = as_delta_error(error)
        if isinstance(ours, (PredicateError, InvariantViolationError)):
            raise OnlySpark(f"an error on a row: {ours.text}") from error
        raise


def _is_local(target: DmlTarget, rewrite: FileRewrite) -> bool:
    size = sum(piece.size for piece in rewrite.files.values())
    return in_threads(target.spark, target.engine.jobs, size, len(rewrite.files))


def _groups(rewrite: FileRewrite, tasks: int) -> list[list[int]]:
    """The numbers of the files of each task: the largest ones apart."""
    largest_first = sorted(rewrite.files, key=lambda number: -rewrite.files[number].size)
    return [largest_first[task::tasks] for task in range(tasks)]


def _in_task(
    rewrite: FileRewrite,
    task: Task,
    groups: Sequence[Sequence[int]],
    batches: Iterator[pa.RecordBatch],
    number: int,
) -> Rewritten:
    mine = [n for batch in batches for group in batch.column(0).to_pylist() for n in groups[group]]
    return task(rewrite, mine, number)


# --- positions of matching rows: counted by file, or aggregated to bitmaps
# Source: Spark's bitmap functions, which aggregate on executors: at most one bit for each row of a file that is
# touched comes to the driver, whatever is found.

_BUCKET, _BITS = f"{HIDDEN}bucket", f"{HIDDEN}bits"
_BUCKET_ROWS = 32768  # of Spark's bitmap_bucket_number


def positions(found: DataFrame) -> dict[int, npt.NDArray[np.uint64]]:
    """The distinct positions of the rows of a frame.

    Parameters
    ----------
    found
        With the columns `FILE` and `ROW`.

    Returns
    -------
    dict
        By number of the file, uint64 positions, ascending.
    """
    from pyspark.sql import functions as F

    # Spark counts rows and bitmaps from one.
    number = found[ROW] + 1
    places = (F.bitmap_bucket_number(number).alias(_BUCKET), F.bitmap_bit_position(number).alias(_BITS))
    placed = found.select(found[FILE], *places)
    gathered = placed.groupBy(FILE, _BUCKET).agg(F.bitmap_construct_agg(_BITS).alias(_BITS))
    parts: dict[int, list[npt.NDArray[np.uint64]]] = {}
    for file, bucket, bits in sorted(gathered.collect(), key=lambda row: tuple(row)[:2]):
        set_bits = np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little"))
        rows = set_bits.astype(np.uint64) + np.uint64((bucket - 1) * _BUCKET_ROWS)
        parts.setdefault(file, []).append(rows)
    return {file: np.concatenate(rows) for file, rows in parts.items()}


def count_by_file(found: DataFrame) -> dict[int, int]:
    """How many rows of a frame lie in each file, by its number."""
    from pyspark.sql import functions as F

    return {row[0]: row[1] for row in found.groupBy(FILE).agg(F.count(F.lit(1))).collect()}


# --- rewrite the files in which rows change by Arrow, in tasks: Spark finds the rows and computes their new values

# So many files are described to every task; of more, those without a changed row are left out first.
MOST_FILES = 20_000
_TASK_BYTES = 128 << 20
# Tasks for each core, so that one with more to do than others does not keep all waiting.
_TASKS_PER_CORE = 4
_TASKS_OF_UNKNOWN_CORES = 32


def rewrite_files(
    target: DmlTarget,
    plan: DmlPlan,
    rows_of: Callable[[CandidateFiles], DataFrame],
    files: CandidateFiles,
    actions: Sequence[int],
    *,
    repeated: bool = False,
) -> Rewritten:
    """Rewrite files in which rows change.

    Parameters
    ----------
    target
        The table.
    plan
        Of the change, for tasks that evaluate the table's expressions themselves.
    rows_of
        The rows of files to which a clause may apply, see `rewrite_changed_files`: their places, and by the names of
        the table the columns that get new values.
    files
        Where such rows may be.
    actions, repeated
        See `FileRewrite`.

    Raises
    ------
    InvariantViolationError
        A row breaks a constraint.
    """
    if len(files) > MOST_FILES and target.engine.fixes_values:
        files = files.only(list(count_by_file(rows_of(files))))
    if not len(files):
        return Rewritten()
    rows = rows_of(files)
    rewrite: FileRewrite = target.ask(
        partial(plan_file_rewrite, repeated=repeated), plan, files, tuple(actions)
    )
    spread = _spread(rows, files, tasks_for(target, rewrite))
    return together(run_tasks(spread, partial(rewrite_changed_files, rewrite)))


def tasks_for(target: DmlTarget, rewrite: FileRewrite) -> int:
    """How many tasks rewrite files."""
    size = sum(piece.size for piece in rewrite.files.values())
    cores = target.engine.jobs.parallelism()
    tasks = _TASKS_OF_UNKNOWN_CORES if cores is None else _TASKS_PER_CORE * cores
    return min(len(rewrite.files), max(tasks, -(-size // _TASK_BYTES)))


def _spread(rows: DataFrame, files: CandidateFiles, tasks: int) -> DataFrame:
    """The rows of each file in one task, in the order of the file."""
    from pyspark.sql import functions as F

    first, last = files.numbers[0].as_py(), files.numbers[-1].as_py()
    if last - first + 1 == len(files):
        # Neighbours, which tend to change together, go to different tasks.
        spread = rows.repartitionById(tasks, F.pmod(rows[FILE] - first, F.lit(tasks)).cast("int"))
    else:
        spread = rows.repartition(tasks, rows[FILE])
    return spread.sortWithinPartitions(FILE, ROW)
