"""Events of streams."""

from __future__ import annotations

import logging

from delta_ds.events.record import Event

BATCH_IS_THERE = Event(
    "batch_is_there", logging.INFO, ("table", "query", "batch"),
    "a micro-batch is in the table already, and is not written again",
    "nothing",
)  # fmt: skip
BATCH_NOT_READ_BACK = Event(
    "batch_not_read_back", logging.WARNING, ("table", "reason"),
    "it could not be told whether a micro-batch is there already",
    "nothing; the commit itself tells",
)  # fmt: skip
DEPRECATED_OPTION = Event(
    "deprecated_option", logging.WARNING, ("name", "use"),
    "an option is old, and works",
    "use those that `use` names",
)  # fmt: skip
STREAM_DATA_LOSS = Event(
    "stream_data_loss", logging.WARNING, ("table", "first_missing", "last_missing"),
    "commits that a stream had still to read are gone, and `failOnDataLoss` is false",
    "read the table anew where its rows matter; keep the log longer (`delta.logRetentionDuration`)",
)  # fmt: skip
