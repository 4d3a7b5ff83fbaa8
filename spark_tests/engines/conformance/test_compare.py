"""The comparison notices what differs, and only that."""

from __future__ import annotations

import pyarrow as pa
import pytest

from delta_ds.exceptions import (
    ChangeDataError,
    DataFileError,
    DeltaError,
    TimestampOutOfRangeError,
    UnsupportedFeatureError,
)
from spark_tests.engines.conformance.compare import (
    difference,
    not_within,
    without_internal_metadata,
    wrong_kind,
)

NAN = float("nan")
PAIRS = pa.map_(pa.string(), pa.float64())


def one(values: list, kind: pa.DataType) -> pa.Table:  # type: ignore[type-arg]
    return pa.table({"c": pa.array(values, kind)})


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        ([1, 2, None], [None, 2, 1], pa.int64()),
        ([NAN, 1.0], [1.0, NAN], pa.float64()),
        ([[NAN, None]], [[NAN, None]], pa.list_(pa.float32())),
        ([[("a", 1.0), ("b", NAN)]], [[("b", NAN), ("a", 1.0)]], PAIRS),
        ([{"x": -0.0}], [{"x": -0.0}], pa.struct([("x", pa.float64())])),
        ([10**17], [10**17], pa.timestamp("us")),
        ([], [], pa.null()),
    ],
)
def test_equal_bags_of_rows_have_no_difference(left: list, right: list, kind: pa.DataType) -> None:  # type: ignore[type-arg]
    assert difference(one(left, kind), one(right, kind)) is None


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        ([1, 1, 2], [1, 2, 2], pa.int64()),
        ([0.0], [-0.0], pa.float64()),
        ([NAN], [None], pa.float64()),
        ([[0.0]], [[-0.0]], pa.list_(pa.float32())),
        ([[]], [None], pa.list_(pa.int32())),
        ([[("a", 1.0)]], [[("a", 2.0)]], PAIRS),
        ([{"x": None}], [None], pa.struct([("x", pa.float64())])),
        ([""], [None], pa.string()),
        ([b"a"], [b"b"], pa.binary()),
    ],
)
def test_other_rows_are_a_difference(left: list, right: list, kind: pa.DataType) -> None:  # type: ignore[type-arg]
    assert "rows differ" in str(difference(one(left, kind), one(right, kind)))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.int32(), pa.int64()),
        (pa.decimal128(10, 2), pa.decimal128(10, 3)),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.list_(pa.int32()), pa.list_(pa.int64())),
        (pa.struct([("a", pa.int32())]), pa.struct([("b", pa.int32())])),
        (pa.string(), pa.large_string()),
    ],
)
def test_other_type_is_a_difference_even_without_rows(left: pa.DataType, right: pa.DataType) -> None:
    assert "instead of" in str(difference(one([], left), one([], right)))


def test_zone_of_an_instant_does_not_matter() -> None:
    assert difference(one([5], pa.timestamp("us", "UTC")), one([5], pa.timestamp("us", "Asia/Tokyo"))) is None


def test_row_that_the_whole_does_not_have_is_found() -> None:
    assert not_within(one([1], pa.int64()), one([1, 2], pa.int64())) is None
    assert "does not have" in str(not_within(one([1, 1], pa.int64()), one([1, 2], pa.int64())))


def test_internal_metadata_is_left_out_at_every_depth() -> None:
    field = {"name": "a", "type": "long", "nullable": True, "metadata": {"delta.x": 1, "comment": "c"}}
    outer = {
        "name": "s",
        "type": {"type": "struct", "fields": [field]},
        "nullable": True,
        "metadata": {"delta.y": 1},
    }
    cleaned = without_internal_metadata({"type": "struct", "fields": [outer]})
    assert cleaned["fields"][0]["metadata"] == {}
    assert cleaned["fields"][0]["type"]["fields"][0]["metadata"] == {"comment": "c"}


@pytest.mark.parametrize(
    ("kind", "condition", "wanted", "accepted"),
    [
        (DataFileError, "FAILED_READ_FILE.FILE_NOT_EXIST", "FAILED_READ_FILE.FILE_NOT_EXIST", True),
        (DataFileError, "FAILED_READ_FILE", "FAILED_READ_FILE.FILE_NOT_EXIST", True),
        (UnsupportedFeatureError, "X", "FAILED_READ_FILE.FILE_NOT_EXIST", False),
        (ChangeDataError, "X", "DELTA_MISSING_CHANGE_DATA", True),
        (DeltaError, "X", "DELTA_MISSING_CHANGE_DATA", False),
        (DeltaError, "X", "IllegalStateException", True),
        (None, None, "IllegalStateException", False),
        (
            TimestampOutOfRangeError,
            "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
            "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
            False,
        ),
    ],
)
def test_error_must_be_ours_and_speak_of_the_cause(
    kind: type[DeltaError] | None, condition: str | None, wanted: str, accepted: bool
) -> None:
    assert (wrong_kind(kind, condition, wanted) is None) == accepted
