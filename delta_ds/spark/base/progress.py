"""Progress of commands on the driver: told to listeners, and shown where Spark shows its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from delta_ds.kernel.base import terminal
from delta_ds.kernel.base.work import Work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTING = "spark.ui.showConsoleProgress"


@contextmanager
def progress_of(spark: SparkSession) -> Iterator[None]:
    """Show progress in a block only where the session shows that of Spark's jobs."""
    with terminal.silence(str(spark.conf.get(_SETTING, "false")).lower() != "true"):
        yield


@contextmanager
def work_of(spark: SparkSession, command: str, table: str) -> Iterator[Work]:
    """A command of a session, from its first phase to its report."""
    with progress_of(spark), Work(command, table) as work:
        yield work
