"""Events of reads, streams and commands on whole tables, and of listeners to their reports."""

from __future__ import annotations

from delta_ds.events.record import Event

CHAR_PADDING_SKIPPED = Event.warning(
    "char_padding_skipped declared schema",
    "the declared type of a CHAR column does not fit the column; its values are not padded",
    "correct the metadata of the column",
)
GENERATED_COLUMN_NOT_USED_FOR_PRUNING = Event.info(
    "generated_column_not_used_for_pruning column reason",
    "the expression of a generated partition column is not understood; filters on its source skip no "
    "partition",
    "filter by the partition column itself",
)
OPTION_PASSED_OVER = Event.warning(
    "option_passed_over option kind hint",
    "this source does not know an option, which has no effect",
    "remove it; `spark.pydelta.unknownOptions` sets whether such options are refused",
)
PARQUET_READ_AGAIN = Event.warning(
    "parquet_read_again table reason",
    "polars could not read data files of a lazy frame; the reader of this package reads them instead",
    "nothing; rows are right, and a damaged file is an error that names it",
)
PRUNING_NOT_EVALUATED = Event.warning(
    "pruning_not_evaluated expression reason",
    "a filter on partition columns could not be evaluated; no file is skipped by it",
    "nothing; rows are right",
)
STATISTICS_COLUMN_UNKNOWN = Event.warning(
    "statistics_column_unknown table column",
    "`delta.dataSkippingStatsColumns` names a column that the table does not have; the name is ignored",
    "correct the property",
)
STATISTICS_OF_OTHER_TYPE = Event.warning(
    "statistics_of_other_type leaf found wanted",
    "statistics of a column have another type than the column; no file is skipped by them",
    "nothing; `maintain()` or OPTIMIZE writes new ones",
)
STATISTICS_UNREADABLE = Event.warning(
    "statistics_unreadable files",
    "statistics of some files are not JSON; every filter reads these files",
    "nothing; OPTIMIZE writes new ones",
)


BATCH_IS_THERE = Event.info(
    "batch_is_there table query batch",
    "a micro-batch is in the table already, and is not written again",
    "nothing",
)
BATCH_NOT_READ_BACK = Event.warning(
    "batch_not_read_back table reason",
    "it could not be determined whether a micro-batch is in the table already",
    "nothing; the commit itself checks",
)
DEPRECATED_OPTION = Event.warning(
    "deprecated_option name use",
    "an option is deprecated but works",
    "use those that `use` names",
)
STREAM_DATA_LOSS = Event.warning(
    "stream_data_loss table first_missing last_missing",
    "commits that a stream has not read yet were removed, and `failOnDataLoss` is false",
    "read the table again if its rows matter; keep the log longer (`delta.logRetentionDuration`)",
)


AUTO_COMPACTION_FAILED = Event.warning(
    "auto_compaction_failed table reason",
    "the compaction after a write failed; the write stands",
    "fix the reason, or run OPTIMIZE",
)
CONVERT_BY_DRIVER = Event.warning(
    "convert_by_driver table reason",
    "CONVERT TO DELTA reads footers on the driver, because executors cannot",
    "`delta_ds.ship(spark)`; see clusters.md",
)
CONVERT_COUNTS_ONLY = Event.warning(
    "convert_counts_only table reason",
    "files spell column names in another case than the table: their rows are counted, but they get no minimum and "
    "maximum",
    "OPTIMIZE writes new statistics",
)
CONVERT_SKIPPED = Event.info(
    "convert_skipped table version",
    "CONVERT TO DELTA found an existing table and did nothing",
    "nothing",
)
INVENTORY_ROWS_OUTSIDE = Event.warning(
    "inventory_rows_outside table rows",
    "rows of an inventory are not below the table's folder, so they are ignored",
    "look at the inventory's query",
)
INNER_TABLES_KEPT = Event.warning(
    "inner_tables_kept table files folders",
    "VACUUM left alone files in folders below the table's folder that have a log of their own: they are other tables",
    "nothing; a table is better not put into the folder of another one, as other engines delete its files",
)
LAST_VACUUM_INFO_NOT_WRITTEN = Event.warning(
    "last_vacuum_info_not_written table reason",
    "VACUUM could not record where it stopped; the next VACUUM LITE reads more commits, or refuses",
    "look at the permissions of the log's folder",
)
LAST_VACUUM_INFO_UNREADABLE = Event.warning(
    "last_vacuum_info_unreadable table reason",
    "the record of the last VACUUM cannot be read; VACUUM LITE reads all commits",
    "nothing; the next VACUUM replaces it",
)
COMMAND_REPEATED = Event.warning(
    "command_repeated table operation attempt attempts reason",
    "another commit changed rows that a command reads or changes; the command reads no other table, so it is repeated",
    "nothing, unless it happens often: see the guide on conflicts, and `spark.pydelta.retries`",
)
MERGE_BEGINS_ANEW = Event.warning(
    "merge_begins_anew table",
    "an executor that held rows of the computed source of a MERGE was lost; the MERGE starts again",
    "nothing, unless executors are lost often",
)
OPTIMIZE_BY_DRIVER = Event.warning(
    "optimize_by_driver table reason",
    "OPTIMIZE rewrites files on the driver, because executors cannot",
    "`delta_ds.ship(spark)`; see clusters.md",
)
OPTIMIZE_COMMITS_AGAIN = Event.info(
    "optimize_commits_again table version after",
    "another commit came first and did not touch the files of an OPTIMIZE, which commits again on top of it",
    "nothing",
)
RESTORE_SKIPPED = Event.info(
    "restore_skipped table version",
    "the table already is at the version of RESTORE",
    "nothing",
)
RETAIN_IGNORED = Event.warning(
    "retain_ignored table hours",
    "VACUUM ... RETAIN is shorter than the table's retention, which applies instead",
    "set `delta.deletedFileRetentionDuration` of the table",
)
ROWS_FOUND_BY_SPARK = Event.info(
    "rows_found_by_spark table operation reason",
    "a query of Spark finds the rows of a DELETE, UPDATE or MERGE and computes their new values, as Arrow cannot do it "
    "where the files are, or not as Spark does",
    "nothing; a command of expressions that Arrow evaluates is faster",
)
RULES_BY_SPARK = Event.info(
    "rules_by_spark table reason",
    "only Spark can evaluate a constraint or generated column; it does so in the query that finds the new values of "
    "UPDATE or MERGE, and reads all columns that the expression needs",
    "nothing",
)
VACUUM_END_NOT_RECORDED = Event.warning(
    "vacuum_end_not_recorded table reason",
    "VACUUM failed, and this could not be recorded in the history",
    "fix the reason, and run VACUUM again",
)


LISTENER_BEHIND = Event.warning(
    "listener_behind waiting",
    "listeners are too slow: this many reports wait, and further ones are dropped",
    "make the listener queue its reports and return",
)
LISTENER_FAILED = Event.warning(
    "listener_failed listener report",
    "a listener raised an error; it still gets later reports, but its later errors are not logged",
    "see the traceback",
)
REPORT_FAILED = Event.warning(
    "report_failed table reason",
    "a report of a commit could not be created; the commit itself is not affected",
    "report it, with the traceback",
)
