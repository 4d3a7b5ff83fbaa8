"""Events of reads and streams."""

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
