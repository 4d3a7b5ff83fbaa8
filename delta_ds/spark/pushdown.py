"""When pushed filters may be used to skip files.

Up to Spark 4.3 every use of one DataFrame (or view) shares one read plan, made by whichever filter was
pushed last: after `df.where("a = 1").count()`, `df.count()` reads only the files that were planned for
`a = 1`, and in `df.where("a = 1").union(df.where("a = 2"))` both halves read the files of one of them.
Skipping files by pushed filters then loses rows, so it happens only

- where Spark plans each scan by itself (it then has `DataSourceReader.pushLimit`, SPARK-58551), or
- in a session that vouches for using each DataFrame in one scan: `register(spark, pushdown=True)`.
"""

from __future__ import annotations

import sys

PUSHDOWN_CONF = "spark.sql.python.filterPushdown.enabled"

_PUSHDOWN_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


def plans_each_scan() -> bool:
    """Whether this Spark keeps the read plans of different scans of one DataFrame apart."""
    from pyspark.sql.datasource import DataSourceReader

    return hasattr(DataSourceReader, "pushLimit")


def in_pushdown_worker() -> bool:
    """Whether this process is the one in which Spark pushes filters.

    Spark starts it only while the configuration allows pushdown. In the other one, which plans reads
    without filters, a reader that overrides `pushFilters` makes the query fail if the configuration does
    not allow it, so no reader may do so there.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    # Its daemon imports it by name; without a daemon (on Windows) it is the main module.
    return _PUSHDOWN_WORKER in sys.modules or getattr(main, "name", None) == _PUSHDOWN_WORKER
