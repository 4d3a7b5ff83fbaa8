"""The course of DELETE, UPDATE and MERGE without Spark: pin a version, rewrite files in threads, commit once.

Source: delta-spark, `DeleteCommand`, `UpdateCommand`, `MergeIntoCommand`.
"""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from delta_ds.conditions.dml import COMMAND_NEEDS_SPARK
from delta_ds.kernel.base.work import Phase, Work
from delta_ds.kernel.commands.dml.candidates import CandidateFiles, Rewritten, together
from delta_ds.kernel.commands.dml.commit import (
    Committed,
    DmlCommand,
    RowScope,
    commit_dml,
    discard_folder,
    run_repeated,
)
from delta_ds.kernel.commands.dml.file_rewrite import SMALL_BYTES
from delta_ds.kernel.commands.dml.plan import (
    DmlPlan,
    FileRewrite,
    check_changeable,
    check_names,
    plan_dml,
    plan_file_rewrite,
)
from delta_ds.kernel.files.read.data_file import is_remote
from delta_ds.kernel.files.read.reader import threads_for
from delta_ds.kernel.storage.staging import Staging
from delta_ds.kernel.transaction.pending import tracks_rows
from delta_ds.kernel.transaction.write.intent import has_transaction
from delta_ds.kernel.transaction.write.task import TaskResult
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.options.settings import SessionFacts
    from delta_ds.kernel.format.table_state import TableState
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.transaction.table_log import TableLog

_Answer = TypeVar("_Answer")
# What a task does: it takes the next of the numbers of files until there are none.
Task = Callable[[FileRewrite, Iterable[int], int], Rewritten]


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """What callers say of a command beside what it does to rows.

    Attributes
    ----------
    timezone
        The session time zone.
    user_metadata
        Free text for the history.
    engine_info
        Who changes the table, for the history; None: this package.
    txn
        Application and version that the command counts as: done once, however often it is tried.
    retries
        How often the command is done again, on the newest version, after commits of others contradicted it.
    facts
        What a session says of the files that are written; None: there is no session.
    version
        Which version the command changes; None: the newest, each time that it is done.
    reads_more
        Whether what becomes of a row may hang on more of the table than the command looks at: then files that others
        have changed decide what contradicts it.
    most_bytes
        Of how many bytes the files may be in which rows change; None: of any number.
    transaction_id
        The `txnId` of the commit; a new one by default.
    """

    timezone: str = "UTC"
    user_metadata: str | None = None
    engine_info: str | None = None
    txn: tuple[str, int] | None = None
    retries: int = 0
    facts: SessionFacts | None = None
    version: int | None = None
    reads_more: bool = False
    most_bytes: int | None = None
    transaction_id: str | None = None


class InProcessDml(AbstractContextManager["InProcessDml"]):
    """One attempt at a command. As a context: what it wrote is deleted at its end, unless it was committed.

    Parameters
    ----------
    log
        The table.
    operation
        Its name in the history.
    settings
        What callers say.
    removes
        Whether rows of the table may be changed or removed; an append-only table refuses that.

    Attributes
    ----------
    snapshot
        The version that is read.
    now
        The current time in all expressions of the command.
    plan
        How rows are written; there once `plan_rows` was called.

    Raises
    ------
    DeltaError
        The table cannot be changed by this package, or not at all.
    """

    plan: DmlPlan

    def __init__(
        self, log: TableLog, operation: str, settings: CommandSettings, *, removes: bool = True
    ) -> None:
        self._started = time.monotonic()
        self._rewriting_ms = 0
        self.operation = operation
        self.settings = settings
        self.now = datetime.datetime.now(datetime.timezone.utc)
        # A missing table is refused.
        self.snapshot: Snapshot = (
            log.newest() if settings.version is None else log.open_snapshot(settings.version)
        )
        snapshot = self.snapshot
        check_changeable(snapshot, operation, removes)
        check_names(snapshot.schema.names, "table", snapshot.storage.url, operation)
        self._results: list[TaskResult] = []
        self._guard = Staging(snapshot.storage.url)
        self._entered = ExitStack()

    def __enter__(self) -> InProcessDml:
        self._work = self._entered.enter_context(Work(self.operation, self.snapshot.storage.url))
        self._entered.enter_context(self._guard)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return self._entered.__exit__(kind, error, trace)

    def plan_rows(
        self,
        *,
        computed: Collection[str] = (),
        generates: Collection[str] = (),
        after: TableState | None = None,
    ) -> None:
        """Decide how rows are written: once, before any is; parameters as of `plan_dml`."""
        self.plan = plan_dml(
            self.snapshot,
            after=after,
            computed=computed,
            generates=generates,
            timezone=self.settings.timezone,
            facts=self.settings.facts,
        )

    # --- rows

    def rewrite(
        self, task: Task, files: CandidateFiles, actions: Sequence[int], *, repeated: bool = False
    ) -> Rewritten:
        """Rewrite the files in which rows change, or mark the rows.

        Threads do it, as many as there are CPUs, and each holds a batch of rows.

        Parameters
        ----------
        task
            Finds and changes rows; called once in each thread.
        files
            Where rows may change.
        actions, repeated
            See `FileRewrite`.

        Raises
        ------
        DeltaError
            What a task ran into, once all have ended; or the files are larger than the settings allow.
        """
        if not len(files):
            return Rewritten()
        rewrite = plan_file_rewrite(self.snapshot, self.plan, files, actions, repeated=repeated)
        most, size = self.settings.most_bytes, sum(piece.size for piece in rewrite.files.values())
        if most is not None and size > most:
            reason = f"files of {size} bytes, more than {most}"
            raise COMMAND_NEEDS_SPARK(
                operation=self.operation, table=self.snapshot.storage.url, reason=reason
            )
        self.owns_folder()
        with self._work.phase("rewriting", total=len(rewrite.files)) as phase:
            threads = threads_for(self.snapshot.storage)
            found = rewrite_in_threads(rewrite, task, threads, phase)
        self.wrote(found.result)
        self._rewriting_ms += found.milliseconds
        return found

    def phase(self, name: str, total: int, unit: str) -> AbstractContextManager[Phase]:
        """A part of the command, for who waits for it; see `Work.phase`."""
        return self._work.phase(name, total=total, unit=unit)

    def owns_folder(self) -> None:
        """What is written below the folder of the plan is deleted if the command fails."""
        snapshot, folder = self.snapshot, self.plan.folder
        self._guard.deleted_by(lambda: discard_folder(snapshot, folder))

    def wrote(self, result: TaskResult) -> None:
        """The commit names what a task wrote."""
        if result.paths:
            self._results.append(result)

    # --- commit

    def scope(self, wanted: Expression | None, misses_count: bool = False) -> RowScope | None:
        """What others must leave alone, as `RowScope`; None where the table cannot tell rows apart that move."""
        if self.settings.reads_more or not tracks_rows(self.snapshot.table_state):
            return None
        return RowScope(wanted, misses_count)

    def elapsed_ms(self) -> int:
        """Milliseconds since the command began."""
        return int((time.monotonic() - self._started) * 1000)

    def times(self) -> dict[str, int]:
        """What finding and rewriting rows took, as metrics."""
        return {"scanTimeMs": self.elapsed_ms() - self._rewriting_ms, "rewriteTimeMs": self._rewriting_ms}

    def commit(
        self,
        predicate: Expression | None,
        *,
        files: CandidateFiles | None = None,
        found: Rewritten | None = None,
        removed: Sequence[str] = (),
        rows: RowScope | None = None,
        parameters: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
    ) -> Committed:
        """Commit what was written.

        Parameters
        ----------
        predicate
            What of the table was looked at, not bound; None: all of it.
        files, found
            What `rewrite` was given and gave: files that were replaced go, rows that were marked no longer count.
        removed
            Files that go besides, by `path` as in the log.
        rows, parameters, metrics
            See `DmlCommand`.

        Raises
        ------
        DeltaConcurrentModificationException
            Another commit came first and contradicts the change.
        """
        gone: list[str] = list(removed)
        marked: dict[str, npt.NDArray[np.uint64]] = {}
        if files is not None and found is not None:
            marked = files.by_path(found.positions)
            gone += self.plan.replaced_files(files, found)
        settings = self.settings
        change = DmlCommand(
            operation=self.operation,
            predicate=predicate,
            timezone=settings.timezone,
            removed=gone,
            deleted=marked,
            results=tuple(self._results),
            parameters=dict(parameters or {}),
            metrics={**(metrics or {}), "executionTimeMs": self.elapsed_ms()},
            plan=self.plan if self._results or self.plan.write.new_metadata else None,
            txn=settings.txn,
            rows=rows,
            user_metadata=settings.user_metadata,
            engine_info=settings.engine_info,
            transaction_id=settings.transaction_id,
        )
        with self._work.phase("committing", unit="commits"), self._guard.publishing():
            return commit_dml(self.snapshot, change)


def run(
    log: TableLog,
    operation: str,
    settings: CommandSettings,
    work: Callable[[InProcessDml], _Answer],
    done: _Answer,
    *,
    removes: bool = True,
) -> _Answer:
    """Run a command, and again where others have changed rows that it reads or changes, as the settings say.

    Parameters
    ----------
    log, operation, settings, removes
        See `InProcessDml`.
    work
        Does it, by one commit at most.
    done
        The answer where the table has the transaction already that the command counts as.

    Raises
    ------
    DeltaConcurrentModificationException
        Another commit contradicts the command. Nothing was written, nothing is left behind, as with all errors.
    """

    def attempt() -> _Answer:
        with InProcessDml(log, operation, settings, removes=removes) as change:
            return done if has_transaction(change.snapshot, settings.txn) else work(change)

    return run_repeated(attempt, settings.retries, table=log.storage.url, operation=operation)


def rewrite_in_threads(plan: FileRewrite, task: Task, threads: int, phase: Phase | None = None) -> Rewritten:
    """Rewrite files, the largest first and small ones in their order, one after the other in each of some threads.

    Parameters
    ----------
    threads
        How many at most: small local files that share a new file are done by one.
    phase
        Is told of each file.

    Raises
    ------
    DeltaError
        What a task ran into, once all have ended.
    """
    largest_first = sorted(plan.files, key=lambda number: -max(plan.files[number].size, SMALL_BYTES))
    numbers = _Shared(iter(largest_first) if phase is None else phase.each(largest_first))
    works = min(threads, len(largest_first))
    if not is_remote(plan.change.write.storage):  # else threads wait for the store most of the time
        total = sum(piece.size for piece in plan.files.values())
        works = min(works, 1 + total // SMALL_BYTES)
    return together(in_threads(partial(task, plan, numbers), range(works), numbers.end))


class _Shared(Iterator[int]):
    """The numbers that several threads take one after the other."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self._lock = threading.Lock()
        self._ended = False

    def __next__(self) -> int:
        with self._lock:
            if self._ended:
                raise StopIteration
            return next(self._numbers)

    def end(self) -> None:
        """There are no more."""
        self._ended = True


def in_threads(
    function: Callable[[int], _Answer], works: Sequence[int], failed: Callable[[], None]
) -> list[_Answer]:
    """What a function answers for each number, in a thread each; the first error, once all threads have ended.

    Parameters
    ----------
    failed
        Called when one has failed, so that the others end soon.
    """

    def run_one(number: int) -> _Answer:
        try:
            return function(number)
        except BaseException:
            failed()
            raise

    if len(works) == 1:
        return [run_one(works[0])]
    with ThreadPoolExecutor(len(works)) as pool:
        futures = [pool.submit(run_one, number) for number in works]
        try:
            return [future.result() for future in futures]
        finally:
            failed()
