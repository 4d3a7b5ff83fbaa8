"""Legacy calendars and time zones."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.format.expressions.zones import (
    DAY_US,
    Rebase,
    civil_from_days,
    days_from_civil,
    instant_micros,
    julian_to_gregorian_days,
    rebase_dates,
    rebase_of,
    rebase_timestamps,
    zone,
)  # fmt: skip


@given(st.integers(-1_000_000, 4_000_000))
def test_civil_dates_and_day_numbers_are_inverse(days: int) -> None:
    assert days_from_civil(*civil_from_days(days)) == days


@given(st.dates())
def test_day_numbers_are_those_of_datetime(date: dt.date) -> None:
    assert days_from_civil(date.year, date.month, date.day) == date.toordinal() - 719_163


@pytest.mark.parametrize(
    ("julian_day", "date"),
    [(-141_428, (1582, 10, 4)), (-141_427, (1582, 10, 15)), (-719_164, (1, 1, 1)), (0, (1970, 1, 1))],
)
def test_hybrid_day_keeps_its_date(julian_day: int, date: tuple[int, int, int]) -> None:
    rebased = julian_to_gregorian_days(np.array([julian_day]))
    assert civil_from_days(int(rebased[0])) == date


def test_leap_day_that_only_julian_has_moves_to_the_next_day() -> None:
    leap_day = dt.date(1000, 3, 6).toordinal() - 719_163  # what 1000-02-29 of the Julian calendar is today
    rebased = julian_to_gregorian_days(np.array([leap_day, leap_day + 1]))
    assert [civil_from_days(int(day)) for day in rebased] == [(1000, 3, 1), (1000, 3, 1)]


def test_dates_keep_their_nulls_and_slices() -> None:
    days = pa.array([5, None, -719_164, -719_164], pa.int32()).view(pa.date32()).slice(1)
    assert rebase_dates(days).to_pylist() == [None, dt.date(1, 1, 1), dt.date(1, 1, 1)]


def test_modern_dates_pass_through_untouched() -> None:
    dates = pa.array([dt.date(2020, 1, 1), None])
    assert rebase_dates(dates) is dates
    nulls = pa.nulls(2, pa.date32())
    assert rebase_dates(nulls) is nulls


def test_timestamps_are_rebased_in_the_writers_zone() -> None:
    # Year 1 in Los Angeles: java.util.TimeZone takes -8:00, java.time local mean time, -7:52:58.
    written = -719_164 * DAY_US + 8 * 3_600_000_000
    array = pa.array([written, None, 0], pa.timestamp("us", "UTC"))
    expected = -719_162 * DAY_US + (7 * 3600 + 52 * 60 + 58) * 1_000_000
    rebased = rebase_timestamps(array, "America/Los_Angeles")
    assert rebased.cast(pa.int64()).to_pylist() == [expected, None, 0]
    assert rebased.type == array.type


def test_timestamps_of_a_fixed_zone_are_rebased_by_local_day() -> None:
    written = -719_164 * DAY_US - 3_600_000_000
    rebased = rebase_timestamps(pa.array([written], pa.timestamp("us", "UTC")), "+01:00")
    assert rebased.cast(pa.int64()).to_pylist() == [-719_162 * DAY_US - 3_600_000_000]


@given(st.integers(-2_208_988_800_000_000, 4_000_000_000_000_000))
def test_timestamps_since_1900_are_never_changed(micros: int) -> None:
    array = pa.array([micros], pa.timestamp("us", "UTC"))
    assert rebase_timestamps(array, "Europe/Paris") == array


@pytest.mark.parametrize(
    ("footer", "rebase"),
    [
        ({}, Rebase()),
        (None, Rebase()),
        ({b"org.apache.spark.version": b"4.2.0"}, Rebase(timezone="Asia/Tokyo")),
        ({b"org.apache.spark.version": b"2.4.8"}, Rebase(True, True, "Asia/Tokyo")),
        ({b"org.apache.spark.version": b"3.0.1"}, Rebase(False, True, "Asia/Tokyo")),
        (
            {
                b"org.apache.spark.version": b"4.2.0",
                b"org.apache.spark.legacyDateTime": b"",
                b"org.apache.spark.timeZone": b"UTC",
            },
            Rebase(True, False, "UTC"),
        ),
        (
            {b"org.apache.spark.version": b"4.2.0", b"org.apache.spark.legacyINT96": b""},
            Rebase(False, True, "Asia/Tokyo"),
        ),
    ],
)
def test_footer_tells_the_calendar(footer: dict[bytes, bytes] | None, rebase: Rebase) -> None:
    assert rebase_of(footer, "Asia/Tokyo") == rebase


@pytest.mark.parametrize("name", ["UTC", "Z", "+01:00", "GMT-3", "UTC+05:30", "PST", "EST", "Europe/Berlin"])
def test_zone_names_of_spark_are_known(name: str) -> None:
    assert zone(name).utcoffset(dt.datetime(2024, 1, 1)) is not None


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "+99:00", "../etc/passwd", "UTC+"])
def test_zone_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(InvalidOptionError):
        zone(name)


@given(st.datetimes(min_value=dt.datetime(1, 1, 3), max_value=dt.datetime(9999, 12, 29)))
def test_local_times_are_as_datetime_has_them(local: dt.datetime) -> None:
    where = zone("America/Sao_Paulo")
    micros = (local - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    instant = local.replace(tzinfo=where).astimezone(dt.timezone.utc).replace(tzinfo=None)
    assert instant_micros(micros, where) == (instant - dt.datetime(1970, 1, 1)) // dt.timedelta(
        microseconds=1
    )
