"""One line of progress per phase of long work on the driver, in interactive sessions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTING = "spark.ui.showConsoleProgress"


def phase(spark: SparkSession, text: str) -> None:
    """Print the start of a phase, on a terminal where Spark shows its progress too.

    Parameters
    ----------
    spark
        The session.
    text
        `OPTIMIZE /path: looking at 12000 files`.
    """
    if sys.stderr.isatty() and str(spark.conf.get(_SETTING, "false")).lower() == "true":
        print(f"[delta_ds] {text}", file=sys.stderr, flush=True)
