"""Rows of a command found and changed by Arrow, where their files are: no query of Spark looks at a row.

Tasks of a Spark job do it, or threads of this process where tasks would run on the same machine, or there is little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from delta_ds.exceptions import InvariantViolationError, PredicateError
from delta_ds.kernel.base.work import Work
from delta_ds.kernel.commands.dml.candidates import CandidateFiles
from delta_ds.kernel.commands.dml.in_process import Task, rewrite_in_threads
from delta_ds.kernel.commands.dml.plan import DmlPlan, FileRewrite
from delta_ds.kernel.commands.dml.rewritten import Rewritten, together
from delta_ds.kernel.files.read.ahead import threads_for
from delta_ds.kernel.transaction.write.task import TaskResult, write_rows
from delta_ds.spark.base.kinds.frames import run_tasks
from delta_ds.spark.base.progress import tasks_counted
from delta_ds.spark.base.session_conf import LOCAL_OPTIMIZE_CONF, LOCAL_OPTIMIZE_SIZE, size
from delta_ds.spark.commands.dml_target import DmlTarget
from delta_ds.spark.commands.file_rewrite import MOST_FILES, plan_of, tasks_for
from delta_ds.spark.engines.classic.catalyst.values import OnlySpark
from delta_ds.spark.errors.translation import as_delta_error

if TYPE_CHECKING:
    import pyarrow as pa

_OPEN_BYTES = 64 << 10
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
        rewrite: FileRewrite = target.ask(plan_of, self.plan, files, tuple(actions), repeated)
        found = _or_spark(lambda: self._run(rewrite, task))
        if found.result.paths:
            self.results.append(found.result)
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
        """Write new rows, given by the table's columns but those that are computed; how many.

        Raises
        ------
        OnlySpark
            As `rewrite`.
        """
        with self._work.phase("inserting", unit="rows") as phase:
            rows = phase.rows(batches)
            result = _or_spark(lambda: write_rows(self.plan.inserts, rows, folder=self.plan.folder))
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
    """Whether threads of this process do it; see `LOCAL_OPTIMIZE_CONF`."""
    most = size(target.spark, LOCAL_OPTIMIZE_CONF, LOCAL_OPTIMIZE_SIZE)
    if not most or not target.engine.jobs.runs_small_jobs():
        return False
    if target.engine.jobs.runs_tasks_here():
        return True
    return sum(piece.size + _OPEN_BYTES for piece in rewrite.files.values()) <= most


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
