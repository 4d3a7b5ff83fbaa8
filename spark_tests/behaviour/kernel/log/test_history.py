"""Commit times, time travel by timestamp, and the history."""

from __future__ import annotations

import os
from datetime import datetime, timezone

import pyarrow as pa
import pytest

from delta_ds import (
    CorruptLogFileError,
    DeltaError,
    DeltaLog,
    InvalidOptionError,
    TimestampOutOfRangeError,
    UnsupportedFeatureError,
)
from delta_ds.kernel.log.history import datetime_of, milliseconds
from delta_ds.testing import TableBuilder, commit_time, metadata_action

SCHEMA = pa.schema([("id", pa.int64())])


def set_times(table, times):
    for version, time in enumerate(times):
        os.utime(table.commit_file(version), ns=(time * 1_000_000,) * 2)


@pytest.fixture
def table(tmp_path):
    builder = TableBuilder(tmp_path)
    builder.create(SCHEMA)
    for _ in range(4):
        builder.append(pa.table({"id": [1]}))
    return builder


def test_a_moment_between_commits_is_the_earlier_version(table):
    log = DeltaLog(table.path)
    assert log.snapshot(timestamp=commit_time(2)).version == 2
    assert log.snapshot(timestamp=commit_time(3) - 1).version == 2


def test_an_aware_datetime_is_understood_and_a_naive_one_refused(table):
    moment = datetime.fromtimestamp(commit_time(1) / 1000, tz=timezone.utc)
    assert DeltaLog(table.path).snapshot(timestamp=moment).version == 1
    with pytest.raises(InvalidOptionError, match="time zone"):
        DeltaLog(table.path).snapshot(timestamp=moment.replace(tzinfo=None))


def test_a_moment_is_not_rounded_down_to_the_millisecond_before():
    # Of such moments seconds as floats, times a thousand, are not always whole milliseconds.
    first = 2_159_000_000_000
    assert [milliseconds(datetime_of(time)) for time in range(first, first + 1000)] == [
        *range(first, first + 1000)
    ]


def test_version_and_timestamp_together_are_refused(table):
    with pytest.raises(InvalidOptionError, match="not both"):
        DeltaLog(table.path).snapshot(1, timestamp=commit_time(1))


@pytest.mark.parametrize(
    ("moment", "condition"),
    [
        (commit_time(0) - 1, "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
        (commit_time(4) + 1, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
    ],
)
def test_moments_out_of_reach_are_refused_as_delta_spark_does(table, moment, condition):
    with pytest.raises(TimestampOutOfRangeError) as error:
        DeltaLog(table.path).snapshot(timestamp=moment)
    assert error.value.condition == condition


def test_file_times_that_run_backwards_are_made_increasing(table):
    set_times(table, [1000, 5000, 2000, 2000, 9000])
    log = DeltaLog(table.path)
    found = [log.snapshot(timestamp=t).version for t in (1000, 4999, 5000, 5001, 5002, 8999, 9000)]
    assert found == [0, 0, 1, 2, 3, 3, 4]
    times = [int(entry["timestamp"].timestamp() * 1000) for entry in log.history()]
    assert times == [9000, 5002, 5001, 5000, 1000]


def in_commit_table(path, times, enabled_at=0):
    table = TableBuilder(path)
    properties = {"delta.enableInCommitTimestamps": "true"}
    if enabled_at:
        properties["delta.inCommitTimestampEnablementVersion"] = str(enabled_at)
        properties["delta.inCommitTimestampEnablementTimestamp"] = str(times[enabled_at])
    table.create(SCHEMA, writer_features=["inCommitTimestamp"], properties={} if enabled_at else properties)
    for version in range(len(times)):
        action = [metadata_action(SCHEMA, properties=properties)] if enabled_at == version > 0 else []
        info = {"inCommitTimestamp": times[version]} if version >= enabled_at else {}
        if version == 0 and not enabled_at:
            content = (
                table.commit_file(0)
                .read_bytes()
                .replace(
                    b'"operationParameters"', b'"inCommitTimestamp": %d, "operationParameters"' % times[0]
                )
            )
            table.raw_commit(content, 0)
        elif version:
            table.commit(*action, **info)
    return table


def test_in_commit_timestamps_count_and_file_times_do_not(tmp_path):
    table = in_commit_table(tmp_path, [100, 200, 300])
    set_times(table, [9, 5, 1])
    log = DeltaLog(tmp_path)
    assert [log.snapshot(timestamp=t).version for t in (100, 199, 200, 300)] == [0, 0, 1, 2]
    assert log.snapshot().timestamp == 300


def test_in_commit_timestamps_enabled_midway_split_the_search(tmp_path):
    table = in_commit_table(tmp_path, [100, 200, 5000, 6000], enabled_at=2)
    set_times(table, [100, 200, 1, 1])
    log = DeltaLog(tmp_path)
    assert [log.snapshot(timestamp=t).version for t in (100, 250, 4999, 5000, 6000)] == [0, 1, 1, 2, 3]


def test_an_enabled_but_missing_in_commit_timestamp_is_an_error(tmp_path):
    table = in_commit_table(tmp_path, [100, 200])
    table.commit()
    with pytest.raises(CorruptLogFileError, match="version 2"):
        _ = DeltaLog(tmp_path).snapshot().timestamp


def test_history_is_newest_first_limited_and_survives_missing_commit_info(table):
    table.commit({"txn": {"appId": "a", "version": 1}}, operation=None)
    entries = DeltaLog(table.path).history(limit=2)
    assert [(e["version"], e["operation"]) for e in entries] == [(5, None), (4, "WRITE")]


def test_history_gives_every_parameter_as_text(table):
    table.commit(operation="X", operationParameters={"a": 1, "b": [1, "x"], "c": "text", "d": None})
    (entry,) = DeltaLog(table.path).history(limit=1)
    assert entry["operationParameters"] == {"a": "1", "b": '[1, "x"]', "c": "text", "d": None}


@pytest.mark.parametrize(
    "change",
    [
        {
            "schemaString": '{"type":"struct","fields":[{"name":"id","type":"blob","nullable":true,"metadata":{}}]}'
        },
        {"schemaString": "{"},
        {"partitionColumns": ["nowhere"]},
    ],
    ids=["unknown type", "no JSON", "unknown partition column"],
)
@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_table_whose_columns_cannot_be_read_has_a_history(tmp_path, change, checkpoint):
    table = in_commit_table(tmp_path, [100, 200])
    if checkpoint:
        table.checkpoint()
    properties = {"delta.enableInCommitTimestamps": "true"}
    described = metadata_action(SCHEMA, properties=properties)["metaData"]
    table.commit({"metaData": {**described, **change}}, operation="ALTER", inCommitTimestamp=300)
    log = DeltaLog(tmp_path)
    with pytest.raises(DeltaError):
        log.snapshot()
    assert [(e["operation"], milliseconds(e["timestamp"])) for e in log.history()] == [
        ("ALTER", 300),
        ("WRITE", 200),
        ("WRITE", 100),
    ]


def test_a_table_that_needs_an_unknown_feature_of_readers_has_no_history(tmp_path):
    TableBuilder(tmp_path).create(SCHEMA, reader_features=["someday"])
    with pytest.raises(UnsupportedFeatureError, match="someday"):
        DeltaLog(tmp_path).history()
