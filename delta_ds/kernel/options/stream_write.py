"""The options of a streaming write: those of a batch write that hold for every batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_ds.conditions.classes import OUTPUT_MODE_NOT_ALLOWED
from delta_ds.conditions.options import UNSUPPORTED_OUTPUT_MODE
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.options.write import WriteOptions, parse_write_options
from delta_ds.records import replace

APPEND, COMPLETE, UPDATE = "append", "complete", "update"
# What Spark hands to a sink although it means the query.
_OF_THE_QUERY = frozenset(["checkpointlocation", "queryname", "outputmode"])
BATCH_ONLY = {
    "replaceWhere": "every batch of mode complete replaces the whole table",
    "partitionOverwriteMode": "every batch of mode complete replaces the whole table",
    "txnAppId": "the query id and the batch id take its place",
    "txnVersion": "the query id and the batch id take its place",
    "dataChange": "a stream brings new rows",
    "ifExists": "a stream adds to the table that is there",
    "reportFolder": "whoever made the folder has gone on",
    "replaceTable": "a stream adds to the table that is there",
}


def parse_stream_write_options(
    options: Mapping[str, Any], *, mode: str, session_time_zone: str = "UTC"
) -> WriteOptions:
    """Parse and check the options of a streaming write.

    Parameters
    ----------
    options
        As for `parse_write_options`.
    mode
        The output mode: `append` or `complete`.
    session_time_zone
        The zone of local times, unless the option `timeZone` is given.

    Raises
    ------
    InvalidOptionError
        As `parse_write_options`, or an option for batch writes only.
    UnsupportedOperationError
        The output mode is `update`.
    """
    check_mode(mode)
    kept = {name: value for name, value in options.items() if name.lower() not in _OF_THE_QUERY}
    given = {name.lower() for name, value in kept.items() if value is not None}
    for name, hint in BATCH_ONLY.items():
        if name.lower() in given:
            raise InvalidOptionError(
                f"option {name!r} is for batch writes, not for streams: {hint}",
                parameters={"option": name},
            )
    parsed = parse_write_options(kept, overwrite=mode == COMPLETE, session_time_zone=session_time_zone)
    # What the session says of overwrites holds for batches.
    return replace(parsed, dynamic_partitions=False)


def check_mode(mode: str) -> None:
    """Refuse an output mode that a table cannot take.

    Raises
    ------
    UnsupportedOperationError
        It is neither `append` nor `complete`.
    """
    if mode not in (APPEND, COMPLETE):
        raise (UNSUPPORTED_OUTPUT_MODE if mode == UPDATE else OUTPUT_MODE_NOT_ALLOWED)(mode=mode)
