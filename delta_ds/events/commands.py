"""Events of commands on whole tables."""

from __future__ import annotations

from delta_ds.events.record import Event

AUTO_COMPACTION_FAILED = Event.warning(
    "auto_compaction_failed table reason",
    "the compaction after a write failed; the write stands",
    "see to the reason, or run OPTIMIZE",
)
CONVERT_BY_DRIVER = Event.warning(
    "convert_by_driver table reason",
    "CONVERT TO DELTA reads footers on the driver, as executors cannot",
    "`delta_ds.ship(spark)`; see clusters.md",
)
CONVERT_COUNTS_ONLY = Event.warning(
    "convert_counts_only table reason",
    "files have columns in other case than the table: their rows are counted, and they get no bounds",
    "OPTIMIZE writes new statistics",
)
CONVERT_SKIPPED = Event.info(
    "convert_skipped table version",
    "CONVERT TO DELTA found a table already, and did nothing",
    "nothing",
)
INVENTORY_ROWS_OUTSIDE = Event.warning(
    "inventory_rows_outside table rows",
    "rows of an inventory are not below the table's folder, and do not count",
    "look at the inventory's query",
)
LAST_VACUUM_INFO_NOT_WRITTEN = Event.warning(
    "last_vacuum_info_not_written table reason",
    "VACUUM could not leave its mark; the next VACUUM LITE looks at more commits, or refuses",
    "look at the permissions of the log's folder",
)
LAST_VACUUM_INFO_UNREADABLE = Event.warning(
    "last_vacuum_info_unreadable table reason",
    "the mark of the last VACUUM cannot be read; VACUUM LITE looks at all commits",
    "nothing; the next VACUUM replaces it",
)
COMMAND_REPEATED = Event.warning(
    "command_repeated table operation attempt attempts reason",
    "others changed rows that a command reads or changes; it reads no other table, so it is done again",
    "nothing, unless it comes often: see the guide on conflicts, and `spark.pydelta.retries`",
)
MERGE_BEGINS_ANEW = Event.warning(
    "merge_begins_anew table",
    "an executor was lost, and rows of the computed source of a MERGE with it; the MERGE begins anew",
    "nothing, unless executors are lost often",
)
OPTIMIZE_BY_DRIVER = Event.warning(
    "optimize_by_driver table reason",
    "OPTIMIZE rewrites files on the driver, as executors cannot",
    "`delta_ds.ship(spark)`; see clusters.md",
)
OPTIMIZE_COMMITS_AGAIN = Event.info(
    "optimize_commits_again table version after",
    "another commit came first and left the files of an OPTIMIZE alone, which commits again on top of it",
    "nothing",
)
RESTORE_SKIPPED = Event.info(
    "restore_skipped table version",
    "the table is at the version that RESTORE asks for",
    "nothing",
)
RETAIN_IGNORED = Event.warning(
    "retain_ignored table hours",
    "VACUUM ... RETAIN asks for less than the table's retention, which holds instead",
    "set `delta.deletedFileRetentionDuration` of the table",
)
RULES_BY_SPARK = Event.info(
    "rules_by_spark table reason",
    "a constraint or generated column is for Spark alone to evaluate, which does so in the query that finds the new"
    " values of UPDATE or MERGE, and reads all columns that they need for it",
    "nothing",
)
VACUUM_END_NOT_RECORDED = Event.warning(
    "vacuum_end_not_recorded table reason",
    "VACUUM failed, and the history could not be told",
    "see to the reason, and run VACUUM again",
)
