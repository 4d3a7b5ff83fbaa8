"""Progress of commands on the driver: told to listeners, and shown where Spark shows its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from delta_ds.kernel.base.work import Work, silence
from delta_ds.spark.base.kinds.frames import stages_of

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

    from delta_ds.kernel.base.work import Phase

_EVERY_S = 0.5
_SETTING = "spark.ui.showConsoleProgress"


@contextmanager
def progress_of(spark: SparkSession) -> Iterator[None]:
    """Show progress in a block only where the session shows that of Spark's jobs."""
    with silence(str(spark.conf.get(_SETTING, "false")).lower() != "true"):
        yield


@contextmanager
def tasks_counted(spark: SparkSession, phase: Phase, things: int | None = None) -> Iterator[None]:
    """Tell how far the Spark jobs of a block are, by the tasks that have ended.

    On Spark Connect the client has progress of its own.

    Parameters
    ----------
    things
        What the phase counts, shared out among the tasks; None: it counts tasks.
    """
    stages = stages_of(spark) if phase.is_told else None
    if stages is None:
        yield
        return
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(stages, phase, things, ended), daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()


def _watch(tracker: StatusTracker, phase: Phase, things: int | None, ended: threading.Event) -> None:
    seen: dict[int, tuple[int, int]] = {}
    while not ended.wait(_EVERY_S):
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None:
                seen[stage] = (info.numCompletedTasks, info.numTasks)
        # A stage that is not active any more has ended.
        active = set(tracker.getActiveStageIds())
        done = sum(now if stage in active else all_ for stage, (now, all_) in seen.items())
        total = sum(all_ for _, all_ in seen.values())
        if total:
            phase.reach(done if things is None else things * done // total, things or total)


@contextmanager
def work_of(spark: SparkSession, command: str, table: str) -> Iterator[Work]:
    """A command of a session, from its first phase to its report."""
    with progress_of(spark), Work(command, table) as work:
        yield work
