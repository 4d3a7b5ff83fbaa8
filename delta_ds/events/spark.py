"""Events of the Spark half: sessions, executors, what Spark's own reader and writer cannot do."""

from __future__ import annotations

import logging

from delta_ds.events.record import Event

AGGREGATES_FROM_LOG = Event(
    "aggregates_from_log", logging.DEBUG, ("table",),
    "counts, minima and maxima were answered from the log",
    "nothing",
)  # fmt: skip
AGGREGATES_NOT_ANSWERED = Event(
    "aggregates_not_answered", logging.WARNING, ("reason",),
    "an aggregate could not be answered from the log, and files are scanned",
    "nothing; report the reason",
)  # fmt: skip
ANSWER_FAILED = Event(
    "answer_failed", logging.ERROR, ("what",),
    "a question of Spark's parser, catalog or analyser could not be answered",
    "report it, with the traceback",
)  # fmt: skip
CACHED_ROWS_NOT_RENEWED = Event(
    "cached_rows_not_renewed", logging.WARNING, ("table", "reason"),
    "rows that the session caches of a table could not be renewed after a write",
    "`spark.catalog.clearCache()`",
)  # fmt: skip
COMPILED_CLASSES_IGNORED = Event(
    "compiled_classes_ignored", logging.WARNING, ("file", "reason"),
    "compiled Java classes in the cache cannot be used; they are compiled anew",
    "nothing; they are replaced",
)  # fmt: skip
COMPILED_CLASSES_NOT_KEPT = Event(
    "compiled_classes_not_kept", logging.WARNING, ("file", "reason"),
    "compiled Java classes could not be put into the cache",
    "look at the folder; sessions start more slowly",
)  # fmt: skip
DELTA_SPARK_SETTING_LEFT_OUT = Event(
    "delta_spark_setting_left_out", logging.WARNING, ("name", "value", "reason"),
    "a setting of delta-spark's was taken out of a new session, as it names classes of its jar",
    "take it out of the program when convenient",
)  # fmt: skip
DISTRIBUTED_PLANNING_NOT_USED = Event(
    "distributed_planning_not_used", logging.WARNING, ("table", "reason"),
    "a large table is planned on the driver",
    "see the reason; the driver needs memory for the list of files",
)  # fmt: skip
EXECUTORS_WITHOUT_PACKAGE = Event(
    "executors_without_package", logging.WARNING, ("reason",),
    "executors lack this package, or have another version of it",
    "`delta_ds.ship(spark)`; see clusters.md",
)  # fmt: skip
FILTER_NOT_PUSHED = Event(
    "filter_not_pushed", logging.WARNING, ("filter", "reason"),
    "a filter of Spark cannot skip files; Spark applies it to the rows",
    "nothing; rows are right",
)  # fmt: skip
FILTER_NOT_TRANSLATED = Event(
    "filter_not_translated", logging.WARNING, ("reason", "nodes"),
    "a filter has no form in the log's terms; Spark applies it to the rows",
    "nothing; rows are right",
)  # fmt: skip
FILTER_NOT_USED_FOR_SKIPPING = Event(
    "filter_not_used_for_skipping", logging.WARNING, ("filter", "reason"),
    "a filter cannot be evaluated on statistics; no file is skipped by it",
    "nothing; rows are right",
)  # fmt: skip
FILTER_VALUES_NOT_READ = Event(
    "filter_values_not_read", logging.WARNING, ("reason", "values"),
    "the values of an IN filter cannot be read from the plan; Spark applies it to the rows",
    "nothing; rows are right",
)  # fmt: skip
FOREIGN_WORKERS = Event(
    "foreign_workers", logging.WARNING, ("reason",),
    "Python workers of the session run another Python than the driver",
    "set `PYSPARK_PYTHON`; see clusters.md",
)  # fmt: skip
MACHINE_TIME_ZONE_UNNAMED = Event(
    "machine_time_zone_unnamed", logging.WARNING, ("using",),
    "the machine's time zone has no name; its offset is used",
    "set `TZ`",
)  # fmt: skip
MODULES_OF_DELTA_SPARK_STAY = Event(
    "modules_of_delta_spark_stay", logging.INFO, ("reason",),
    "the modules `delta` of delta-spark are installed, and are not replaced",
    "uninstall delta-spark, or import `delta_ds`",
)  # fmt: skip
NATIVE_SCAN_NOT_USED = Event(
    "native_scan_not_used", logging.WARNING, ("path", "reason"),
    "`pydelta('/path')` reads by the Python data source",
    "nothing; the reason says what would make it quicker",
)  # fmt: skip
NO_JAR_FETCHED = Event(
    "no_jar_fetched", logging.INFO, ("extra_packages",),
    "`configure_spark_with_delta_pip` leaves out delta-spark's jar, which is not needed",
    "nothing",
)  # fmt: skip
PATCH_LEFT_IN_PLACE = Event(
    "patch_left_in_place", logging.WARNING, ("method",),
    "`unregister` left a method of Spark that somebody else has replaced since",
    "undo that replacement first",
)  # fmt: skip
PORTABLE_SCAN = Event(
    "portable_scan", logging.WARNING, ("reason",),
    "rows are read by the Python data source, not by Spark's own Parquet reader",
    "nothing; the reason says what would make it quicker",
)  # fmt: skip
PORTABLE_WRITE = Event(
    "portable_write", logging.WARNING, ("reason",),
    "rows are written by the Python data source, not by Spark's own Parquet writer",
    "nothing; the reason says what would make it quicker",
)  # fmt: skip
SESSION_REGISTERED = Event(
    "session_registered", logging.INFO, ("kind", "version"),
    "a session that somebody else made got Delta",
    "nothing",
)  # fmt: skip
SETTING_WITHOUT_EFFECT = Event(
    "setting_without_effect", logging.WARNING, ("name", "reason"),
    "a setting of delta-spark is set that has no effect here",
    "take it out, or see the reason",
)  # fmt: skip
PACKAGE_SHIPPED = Event(
    "package_shipped", logging.INFO, ("table", "reason"),
    "a command changes rows in tasks, and executors lack this package: it is sent to them, as by `ship`",
    "nothing; it is there for the life of the application",
)  # fmt: skip
SHIP_NOT_ENOUGH = Event(
    "ship_not_enough", logging.WARNING, ("reason",),
    "`ship` brought this package to executors, which lack more than that",
    "install what the reason names on executors",
)  # fmt: skip
UNREGISTER_NATIVE_SKIPPED = Event(
    "unregister_native_skipped", logging.INFO, ("reason",),
    "`unregister` found nothing of Spark's own reader and writer to take back",
    "nothing",
)  # fmt: skip
VIOLATING_VALUE_TOLD_AS_JSON = Event(
    "violating_value_told_as_json", logging.WARNING, ("type", "reason"),
    "a value that breaks a constraint is told as JSON, as Spark could not show it",
    "nothing",
)  # fmt: skip
WRITTEN_BY_SPARK = Event(
    "written_by_spark", logging.DEBUG, ("table", "reason"),
    "rows are written by Spark's own writer, and not as the Parquet files that they are",
    "nothing",
)  # fmt: skip
WRITTEN_BY_SPARK_AFTER_ALL = Event(
    "written_by_spark_after_all", logging.INFO, ("table", "reason"),
    "tasks could not write rows as Parquet files as they are; Spark's own writer wrote them",
    "nothing",
)  # fmt: skip
