from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from delta_ds.exceptions import DeltaError, InvalidOptionError, UnsupportedOperationError
from delta_ds.kernel.format.options.stream_read import (
    STREAM_READ_OPTIONS,
    StreamReadOptions,
    parse_stream_read_options,
)
from delta_ds.kernel.transaction.write.intent import stream_intent


def read(**options: Any) -> StreamReadOptions:
    return parse_stream_read_options({"path": "/t", **options})


def refusal(**options: Any) -> InvalidOptionError:
    with pytest.raises(InvalidOptionError) as caught:
        read(**options)
    return caught.value


def test_a_path_alone_gives_the_defaults() -> None:
    assert read() == StreamReadOptions(path="/t")
    assert not read().has_start
    assert read().fail_on_data_loss


def test_every_option_fills_a_field() -> None:
    fields = set(StreamReadOptions.__slots__)  # type: ignore[attr-defined]
    assert {option.target for option in STREAM_READ_OPTIONS} - {"event_time_order"} == fields - {
        "storage_options",
        "facts",
    }


def test_names_come_in_any_case_and_by_their_older_names() -> None:
    options = read(
        MAXFILESPERTRIGGER="7", maxbytespertrigger="10g", readChangeData="true", schemaLocation="/c/s"
    )
    assert (options.max_files, options.max_bytes) == (7, 10 << 30)
    assert (options.change_feed, options.schema_tracking_location) == (True, "/c/s")


def test_a_starting_version_is_a_number_or_latest() -> None:
    assert read(startingVersion="0").starting_version == 0
    assert read(startingVersion="Latest").starting_version == "latest"
    moment = read(startingTimestamp="2024-01-31").starting_timestamp
    assert moment == datetime(2024, 1, 31, tzinfo=timezone.utc)


def test_what_commits_may_do_follows_from_the_options() -> None:
    assert not read().allows_deletes
    assert read(ignoreDeletes="true").allows_deletes and not read(ignoreDeletes="true").allows_changes
    for option in ("ignoreChanges", "skipChangeCommits", "ignoreFileDeletion"):
        assert read(**{option: "true"}).allows_changes and read(**{option: "true"}).allows_deletes


@pytest.mark.parametrize(
    ("options", "text", "condition"),
    [
        ({"startingVersion": "-1"}, "from 0 on", "DELTA_ILLEGAL_OPTION"),
        ({"startingVersion": "newest"}, "latest", "DELTA_ILLEGAL_OPTION"),
        ({"maxFilesPerTrigger": "0"}, "from 1 on", "DELTA_ILLEGAL_OPTION"),
        ({"maxBytesPerTrigger": "0"}, "maxBytesPerTrigger", "DELTA_ILLEGAL_OPTION"),
        ({"ignoreDeletes": "yes"}, "true or false", "DELTA_ILLEGAL_OPTION"),
        ({"excludeRegex": "("}, "regular expression", "DELTA_REGEX_OPT_SYNTAX_ERROR"),
        ({"withEventTimeOrder": "true"}, "watermark", "DELTA_ILLEGAL_OPTION"),
        ({"allowSourceColumnDrop": "maybe"}, "always", "DELTA_ILLEGAL_OPTION"),
        ({"maxFilePerTrigger": "1"}, "maxFilesPerTrigger", "DELTA_ILLEGAL_OPTION"),
        ({"endingVersion": "1"}, "no end", "DELTA_ILLEGAL_OPTION"),
        ({"versionAsOf": "1"}, "startingVersion", "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"),
        ({"startingVersion": "1", "startingTimestamp": "2024-01-01"}, "not both",
         "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET"),
        ({"schemaTrackingLocation": "/c", "failOnDataLoss": "false"}, "every commit", "DELTA_ILLEGAL_OPTION"),
        ({"readChangeFeed": "true", "metadataColumns": "row_id"}, "metadataColumns", "DELTA_ILLEGAL_OPTION"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(options: dict[str, str], text: str, condition: str) -> None:
    error = refusal(**options)
    assert text in str(error)
    assert error.condition == condition


def test_false_is_taken_for_the_order_of_event_time() -> None:
    assert read(withEventTimeOrder="false") == read()


def test_secrets_are_not_shown() -> None:
    options = read(schemaTrackingLocation="s3://u:s3cr3t@b/c", **{"storage.key": "s3cr3t"})
    assert "s3cr3t" not in repr(options)
    assert options.storage_options["key"] == "s3cr3t"


def test_update_mode_is_refused_with_advice() -> None:
    with pytest.raises(UnsupportedOperationError, match=r"foreachBatch.*merge"):
        stream_intent({"path": "/t"}, "update")
    assert issubclass(UnsupportedOperationError, DeltaError)
