"""Table properties: every record, its default, and what may be set."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.base.value_types import parse_interval
from delta_ds.kernel.format.features import FEATURES
from delta_ds.kernel.format.properties import PROPERTIES, PropertyRules, check_property, check_together


@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_every_default_is_a_value_the_property_takes(name: str) -> None:
    known = PROPERTIES[name]
    assert name.startswith("delta.")
    if known.default is None:
        assert known.of({}) is None
    else:
        assert known.of({}) == known.parse(known.default)


def test_every_property_that_enables_a_feature_is_known() -> None:
    enabling = {f.enabled_by for f in FEATURES.values() if f.enabled_by}
    assert enabling <= set(PROPERTIES.values())


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("delta.appendOnly", "TRUE", True),
        ("delta.checkpointInterval", "25", 25),
        ("delta.dataSkippingNumIndexedCols", "-1", -1),
        ("delta.isolationLevel", "serializable", "Serializable"),
        ("delta.columnMapping.mode", "Name", "name"),
        ("delta.logRetentionDuration", "interval 60 days", timedelta(days=60)),
        ("delta.parquet.format.version", "2.9.0", "2.9.0"),
    ],
)
def test_a_stored_value_is_parsed(name: str, text: str, value: object) -> None:
    assert PROPERTIES[name].of({name: text}) == value
    assert check_property(name.upper(), text) == name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("delta.deletedFileRetentionDuration", "a while"),
        ("delta.appendOnly", "yes"),
        ("delta.checkpointInterval", "0"),
        ("delta.checkpointInterval", "ten"),
        ("delta.minReaderVersion", "4"),
        ("delta.isolationLevel", "SnapshotIsolation"),
        ("delta.logRetentionDuration", "1 month"),
        ("delta.parquet.format.version", "3.0.0"),
        ("delta.parquet.compression.codec", "zip"),
    ],
)
def test_a_wrong_value_is_refused_naming_the_property(name: str, text: str) -> None:
    for call in (lambda: check_property(name, text), lambda: PROPERTIES[name].of({name: text})):
        with pytest.raises(InvalidOptionError, match=name) as caught:
            call()
        no_interval = text == "a while"
        wanted = "DELTA_INVALID_INTERVAL" if no_interval else "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"
        assert caught.value.condition == wanted


_MS_A_DAY = 24 * 3600 * 1000
_KEPT = st.none() | st.integers(-2, 2).map(lambda ms: 7 * _MS_A_DAY + ms) | st.integers(0, 60 * _MS_A_DAY)


@given(log=_KEPT, files=_KEPT, upper=st.booleans(), part=st.integers(0, 999))
def test_the_log_is_kept_as_long_as_deleted_files_by_what_a_command_says(
    log: int | None, files: int | None, upper: bool, part: int
) -> None:
    said = {"delta.logRetentionDuration": log, "delta.deletedFileRetentionDuration": files}
    given_ = {
        name.upper() if upper else name: f"interval {ms} milliseconds {part} microseconds"
        for name, ms in said.items()
        if ms is not None
    }
    check_together(given_, PropertyRules(retentions=False))
    of_log, of_files = 30 * _MS_A_DAY if log is None else log, 7 * _MS_A_DAY if files is None else files
    if not given_ or of_log >= of_files:
        check_together(given_)
        return
    wanted = "needs to be less than or equal to" if log is None else "needs to be greater than or equal to"
    with pytest.raises(InvalidOptionError, match=wanted) as caught:
        check_together(given_)
    assert all(name in str(caught.value) for name in said)


def test_an_unknown_delta_property_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidOptionError, match=r"did you mean delta\.appendOnly\?") as caught:
        check_property("delta.apendOnly", "true")
    assert caught.value.condition == "DELTA_UNKNOWN_CONFIGURATION"


@pytest.mark.parametrize(
    "name", ["my.own", "delta.feature.deletionVectors", "delta.constraints.Positive", "x"]
)
def test_user_features_and_constraints_keep_their_names(name: str) -> None:
    assert check_property(name, "supported") == name


@pytest.mark.parametrize(
    "name", [n for n, p in PROPERTIES.items() if p.acts_on == "refused" or not p.settable]
)
def test_what_is_not_offered_or_not_the_users_to_set_is_refused(name: str) -> None:
    with pytest.raises(InvalidOptionError, match="cannot be set"):
        check_property(name, "true")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("interval 1 week", timedelta(weeks=1)),
        ("2 weeks", timedelta(weeks=2)),
        ("INTERVAL 30 DAYS", timedelta(days=30)),
        ("1 day 12 hours 30 minutes", timedelta(days=1, hours=12, minutes=30)),
        ("interval 1.5 seconds", timedelta(milliseconds=1500)),
        ("250 milliseconds 5 microseconds", timedelta(milliseconds=250, microseconds=5)),
        ("0 days", timedelta()),
        ("2 days -1 hours", timedelta(hours=47)),
    ],
)
def test_intervals_are_parsed(text: str, expected: timedelta) -> None:
    assert parse_interval(text) == expected


@given(
    st.text()
    | st.from_regex(r"(interval )?(-?[0-9]{1,25} (day|month|year|week|hour)s? ?){1,3}", fullmatch=True)
)
def test_any_text_is_an_interval_of_zero_or_more_or_a_value_error(text: str) -> None:
    try:
        assert parse_interval(text) >= timedelta()
    except ValueError as error:
        assert "interval" in str(error)


@pytest.mark.parametrize(
    "text", ["", "interval", "1 month", "1 year", "-1 day", "week", "1", "1 dayss", "9" * 30 + " days"]
)
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="it is an interval"):
        parse_interval(text)
