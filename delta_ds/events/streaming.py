"""Events of streams."""

from __future__ import annotations

from delta_ds.events.record import Event

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
