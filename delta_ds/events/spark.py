"""Events of the Spark half: sessions, executors, what Spark's own reader and writer cannot do."""

from __future__ import annotations

from delta_ds.events.record import Event

AGGREGATES_FROM_LOG = Event.debug(
    "aggregates_from_log table",
    "counts, minima and maxima were answered from the log",
    "nothing",
)
AGGREGATES_NOT_ANSWERED = Event.warning(
    "aggregates_not_answered reason",
    "an aggregate could not be answered from the log, and files are scanned",
    "nothing; report the reason",
)
ANSWER_FAILED = Event.error(
    "answer_failed what",
    "a question of Spark's parser, catalog or analyser could not be answered",
    "report it, with the traceback",
)
CACHED_ROWS_NOT_RENEWED = Event.warning(
    "cached_rows_not_renewed table reason",
    "cached rows of a table could not be refreshed after a write",
    "`spark.catalog.clearCache()`",
)
COMPILED_CLASSES_IGNORED = Event.warning(
    "compiled_classes_ignored file reason",
    "compiled Java classes in the cache cannot be used; they are compiled again",
    "nothing; they are replaced",
)
COMPILED_CLASSES_NOT_KEPT = Event.warning(
    "compiled_classes_not_kept file reason",
    "compiled Java classes could not be written to the cache",
    "check the folder; sessions start more slowly",
)
DELTA_SPARK_SETTING_LEFT_OUT = Event.warning(
    "delta_spark_setting_left_out name value reason",
    "a setting of delta-spark was removed from a new session, because it names classes of its jar",
    "remove it from the program when convenient",
)
DISTRIBUTED_PLANNING_NOT_USED = Event.warning(
    "distributed_planning_not_used table reason",
    "a large table is planned on the driver",
    "see the reason; the driver needs memory for the list of files",
)
ENTRY_NOT_RENEWED = Event.warning(
    "entry_not_renewed table reason",
    "the columns and properties of a table in the metastore could not be renewed after a commit, which stands",
    "see the reason; the next commit tries again",
)
ENTRY_WITHOUT_COLUMNS = Event.warning(
    "entry_without_columns table reason",
    "a client of `pydelta serve` asked for the columns of a table whose log cannot be read, and gets none",
    "mend the table, or drop its entry",
)
EXECUTORS_WITHOUT_PACKAGE = Event.warning(
    "executors_without_package reason",
    "executors lack this package, or have another version of it",
    "`delta_ds.ship(spark)`; see clusters.md",
)
FILTER_NOT_PUSHED = Event.warning(
    "filter_not_pushed filter reason",
    "a filter of Spark cannot skip files; Spark applies it to the rows",
    "nothing; rows are right",
)
FILTER_NOT_TRANSLATED = Event.warning(
    "filter_not_translated reason nodes",
    "a filter cannot be expressed for the log; Spark applies it to the rows",
    "nothing; rows are right",
)
FILTER_NOT_USED_FOR_SKIPPING = Event.warning(
    "filter_not_used_for_skipping filter reason",
    "a filter cannot be evaluated on statistics; no file is skipped by it",
    "nothing; rows are right",
)
FILTER_VALUES_NOT_READ = Event.warning(
    "filter_values_not_read reason values",
    "the values of an IN filter cannot be read from the plan; Spark applies it to the rows",
    "nothing; rows are right",
)
FOREIGN_WORKERS = Event.warning(
    "foreign_workers reason",
    "Python workers of the session run another Python than the driver",
    "set `PYSPARK_PYTHON`; see clusters.md",
)
MACHINE_TIME_ZONE_UNNAMED = Event.warning(
    "machine_time_zone_unnamed using",
    "the machine's time zone has no name; its offset is used",
    "set `TZ`",
)
MODULES_OF_DELTA_SPARK_STAY = Event.info(
    "modules_of_delta_spark_stay reason",
    "the modules `delta` of delta-spark are installed, and are not replaced",
    "uninstall delta-spark, or import `delta_ds`",
)
NATIVE_SCAN_NOT_USED = Event.warning(
    "native_scan_not_used path reason",
    "`pydelta('/path')` reads by the Python data source",
    "nothing; the reason says how to make it quicker",
)
NO_JAR_FETCHED = Event.info(
    "no_jar_fetched extra_packages",
    "`configure_spark_with_delta_pip` leaves out delta-spark's jar, which is not needed",
    "nothing",
)
PATCH_LEFT_IN_PLACE = Event.warning(
    "patch_left_in_place method",
    "`unregister` left a method of Spark that somebody else has replaced since",
    "undo that replacement first",
)
PORTABLE_SCAN = Event.warning(
    "portable_scan reason",
    "rows are read by the Python data source, not by Spark's own Parquet reader",
    "nothing; the reason says how to make it quicker",
)
PORTABLE_WRITE = Event.warning(
    "portable_write reason",
    "rows are written by the Python data source, not by Spark's own Parquet writer",
    "nothing; the reason says how to make it quicker",
)
SESSION_REGISTERED = Event.info(
    "session_registered kind version",
    "a session that another program created was registered",
    "nothing",
)
SETTING_WITHOUT_EFFECT = Event.warning(
    "setting_without_effect name reason",
    "a setting of delta-spark is set that has no effect here",
    "remove it, or see the reason",
)
PACKAGE_SHIPPED = Event.info(
    "package_shipped table reason",
    "a command changes rows in tasks, and executors lack this package: the command sends it to them, as `ship` does",
    "nothing; it stays until the application ends",
)
SHIP_NOT_ENOUGH = Event.warning(
    "ship_not_enough reason",
    "`ship` brought this package to executors, which lack more than that",
    "install what the reason names on executors",
)
UNREGISTER_NATIVE_SKIPPED = Event.info(
    "unregister_native_skipped reason",
    "`unregister` found nothing of Spark's own reader and writer to restore",
    "nothing",
)
VIOLATING_VALUE_TOLD_AS_JSON = Event.warning(
    "violating_value_told_as_json type reason",
    "a value that violates a constraint is shown as JSON, because Spark could not show it",
    "nothing",
)
WRITTEN_BY_SPARK = Event.debug(
    "written_by_spark table reason",
    "Spark's own writer writes the rows, instead of Arrow",
    "nothing",
)
WRITTEN_BY_SPARK_AFTER_ALL = Event.info(
    "written_by_spark_after_all table reason",
    "Arrow could not write the rows, as where Parquet files leave a reader a choice; Spark's own writer wrote them",
    "nothing",
)
