from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from delta_ds.exceptions import TimestampOutOfRangeError, VersionNotFoundError
from delta_ds.testing import TableBuilder, commit_time
from spark_tests.behaviour.kernel.commands.streaming.streams import everything, open_source, rows, table

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MILLISECOND = timedelta(milliseconds=1)


def at(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    made = table(tmp_path)
    for n in (1, 2, 3):
        made.append(rows(n))
    return made


def test_a_starting_version_begins_with_that_commit(builder: TableBuilder) -> None:
    assert everything(open_source(builder.path, startingVersion=2)) == [[2, 3]]
    assert everything(open_source(builder.path, startingVersion=0)) == [[1, 2, 3]]


@pytest.mark.parametrize("version", [4, 99])
def test_a_version_that_is_not_there_yet_is_refused(builder: TableBuilder, version: int) -> None:
    with pytest.raises(VersionNotFoundError, match=str(version)):
        open_source(builder.path, startingVersion=version).initial_offset()


def test_a_version_that_was_cleaned_up_is_refused(builder: TableBuilder) -> None:
    builder.checkpoint()
    for version in (0, 1):
        builder.commit_file(version).unlink()
    with pytest.raises(VersionNotFoundError):
        open_source(builder.path, startingVersion=1).initial_offset()
    assert everything(open_source(builder.path, startingVersion=2)) == [[2, 3]]


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (at(0), [1, 2, 3]),
        (at(commit_time(2)), [2, 3]),
        (at(commit_time(2) - 1), [2, 3]),
        (at(commit_time(2) + 1), [3]),
    ],
)
def test_a_starting_moment_begins_with_the_first_commit_from_then_on(
    builder: TableBuilder, moment: datetime, expected: list[int]
) -> None:
    assert everything(open_source(builder.path, startingTimestamp=moment)) == [expected]


def test_a_starting_moment_is_not_rounded_down_to_the_commit_before(tmp_path: Path) -> None:
    # Of such moments seconds as floats, times a thousand, are not always whole milliseconds.
    moments = (datetime(2038, 6, 1, tzinfo=timezone.utc) + n * MILLISECOND for n in range(1000))
    moment = next(m for m in moments if int(m.timestamp() * 1000) < (m - EPOCH) // MILLISECOND)
    made = table(tmp_path)
    for number in (1, 2):
        made.append(rows(number))
        time = (moment - EPOCH) // MILLISECOND - 2 + number
        os.utime(made.commit_file(number), ns=(0, time * 1_000_000))
    assert everything(open_source(tmp_path, startingTimestamp=moment)) == [[2]]


def test_a_moment_after_the_last_commit_is_refused(builder: TableBuilder) -> None:
    with pytest.raises(TimestampOutOfRangeError) as caught:
        open_source(builder.path, startingTimestamp=at(commit_time(3) + 1)).initial_offset()
    assert caught.value.condition == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
