"""Events of reading: statistics and filters that skip no file."""

from __future__ import annotations

import logging

from delta_ds.events.record import Event

CHAR_PADDING_SKIPPED = Event(
    "char_padding_skipped", logging.WARNING, ("declared", "schema"),
    "the type that a CHAR column was declared with does not fit the column; its values are not padded",
    "correct the metadata of the column",
)  # fmt: skip
GENERATED_COLUMN_NOT_USED_FOR_PRUNING = Event(
    "generated_column_not_used_for_pruning", logging.INFO, ("column", "reason"),
    "the expression of a generated partition column is not understood; filters on its source skip no "
    "partition",
    "filter by the partition column itself",
)  # fmt: skip
OPTION_PASSED_OVER = Event(
    "option_passed_over", logging.WARNING, ("option", "kind", "hint"),
    "an option is none of this source's, and has no effect",
    "leave it out; `spark.pydelta.unknownOptions` says whether such options are refused",
)  # fmt: skip
PRUNING_NOT_EVALUATED = Event(
    "pruning_not_evaluated", logging.WARNING, ("expression", "reason"),
    "a filter on partition columns could not be evaluated; no file is skipped by it",
    "nothing; rows are right",
)  # fmt: skip
STATISTICS_COLUMN_UNKNOWN = Event(
    "statistics_column_unknown", logging.WARNING, ("table", "column"),
    "`delta.dataSkippingStatsColumns` names a column that the table does not have; it is left out",
    "correct the property",
)  # fmt: skip
STATISTICS_OF_OTHER_TYPE = Event(
    "statistics_of_other_type", logging.WARNING, ("leaf", "found", "wanted"),
    "statistics of a column have another type than the column; no file is skipped by them",
    "nothing; `maintain()` or OPTIMIZE writes new ones",
)  # fmt: skip
STATISTICS_UNREADABLE = Event(
    "statistics_unreadable", logging.WARNING, ("files",),
    "statistics of some files are no JSON; these files are read whatever the filter",
    "nothing; OPTIMIZE writes new ones",
)  # fmt: skip
