"""Events of commands on whole tables."""

from __future__ import annotations

import logging

from delta_ds.events.record import Event

AUTO_COMPACTION_FAILED = Event(
    "auto_compaction_failed", logging.WARNING, ("table", "reason"),
    "the compaction after a write failed; the write stands",
    "see to the reason, or run OPTIMIZE",
)  # fmt: skip
CONVERT_BY_DRIVER = Event(
    "convert_by_driver", logging.WARNING, ("table", "reason"),
    "CONVERT TO DELTA reads footers on the driver, as executors cannot",
    "`delta_ds.ship(spark)`; see clusters.md",
)  # fmt: skip
CONVERT_COUNTS_ONLY = Event(
    "convert_counts_only", logging.WARNING, ("table", "reason"),
    "files have columns in other case than the table: their rows are counted, and they get no bounds",
    "OPTIMIZE writes new statistics",
)  # fmt: skip
CONVERT_SKIPPED = Event(
    "convert_skipped", logging.INFO, ("table", "version"),
    "CONVERT TO DELTA found a table already, and did nothing",
    "nothing",
)  # fmt: skip
INVENTORY_ROWS_OUTSIDE = Event(
    "inventory_rows_outside", logging.WARNING, ("table", "rows"),
    "rows of an inventory are not below the table's folder, and do not count",
    "look at the inventory's query",
)  # fmt: skip
LAST_VACUUM_INFO_NOT_WRITTEN = Event(
    "last_vacuum_info_not_written", logging.WARNING, ("table", "reason"),
    "VACUUM could not leave its mark; the next VACUUM LITE looks at more commits, or refuses",
    "look at the permissions of the log's folder",
)  # fmt: skip
LAST_VACUUM_INFO_UNREADABLE = Event(
    "last_vacuum_info_unreadable", logging.WARNING, ("table", "reason"),
    "the mark of the last VACUUM cannot be read; VACUUM LITE looks at all commits",
    "nothing; the next VACUUM replaces it",
)  # fmt: skip
COMMAND_REPEATED = Event(
    "command_repeated", logging.WARNING, ("table", "operation", "attempt", "attempts", "reason"),
    "others changed rows that a command reads or changes; it reads no other table, so it is done again",
    "nothing, unless it comes often: see the guide on conflicts, and `spark.pydelta.retries`",
)  # fmt: skip
MERGE_BEGINS_ANEW = Event(
    "merge_begins_anew", logging.WARNING, ("table",),
    "an executor was lost, and rows of the computed source of a MERGE with it; the MERGE begins anew",
    "nothing, unless executors are lost often",
)  # fmt: skip
OPTIMIZE_BY_DRIVER = Event(
    "optimize_by_driver", logging.WARNING, ("table", "reason"),
    "OPTIMIZE rewrites files on the driver, as executors cannot",
    "`delta_ds.ship(spark)`; see clusters.md",
)  # fmt: skip
OPTIMIZE_COMMITS_AGAIN = Event(
    "optimize_commits_again", logging.INFO, ("table", "version", "after"),
    "another commit came first and left the files of an OPTIMIZE alone, which commits again on top of"
    " it",
    "nothing",
)  # fmt: skip
RESTORE_SKIPPED = Event(
    "restore_skipped", logging.INFO, ("table", "version"),
    "the table is at the version that RESTORE asks for",
    "nothing",
)  # fmt: skip
RETAIN_IGNORED = Event(
    "retain_ignored", logging.WARNING, ("table", "hours"),
    "VACUUM ... RETAIN asks for less than the table's retention, which holds instead",
    "set `delta.deletedFileRetentionDuration` of the table",
)  # fmt: skip
RULES_BY_SPARK = Event(
    "rules_by_spark", logging.INFO, ("table", "reason"),
    "a constraint or generated column is for Spark alone to evaluate, which does so in the query that finds the new"
    " values of UPDATE or MERGE, and reads all columns that they need for it",
    "nothing",
)  # fmt: skip
RULES_BY_SPARK = Event(
    "rules_by_spark", logging.INFO, ("table", "reason"),
    "a constraint or generated column is for Spark alone to evaluate, which does so in the query that finds the new"
    " values of UPDATE or MERGE, and reads all columns that they need for it",
    "nothing",
)  # fmt: skip
VACUUM_END_NOT_RECORDED = Event(
    "vacuum_end_not_recorded", logging.WARNING, ("table", "reason"),
    "VACUUM failed, and the history could not be told",
    "see to the reason, and run VACUUM again",
)  # fmt: skip
