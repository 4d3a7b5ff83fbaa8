from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.exceptions import DeltaError, LogError, UnsupportedFeatureError, UnsupportedOperationError
from delta_ds.kernel.commands.streaming.offsets import StreamOffset

VERSIONS = st.integers(0, 2**62)
OFFSETS = st.builds(
    StreamOffset, st.just("id"), VERSIONS, VERSIONS, st.booleans(), VERSIONS, st.booleans(), st.booleans()
)


@given(OFFSETS)
def test_json_brings_back_the_offset(offset: StreamOffset) -> None:
    assert StreamOffset.parse(offset.to_json(), "id", "/t") == offset
    assert StreamOffset.parse(json.loads(json.dumps(offset.to_dict())), "id", "/t") == offset


@given(VERSIONS, VERSIONS, VERSIONS)
def test_offsets_of_a_stream_are_ordered_by_version_and_index(version: int, index: int, other: int) -> None:
    start = StreamOffset.beginning("id", version, snapshot=True)
    inside = start.at(version, index, snapshot=True)
    assert start.key <= inside.key < start.at(version + 1).key
    assert (start.at(version, index).key < start.at(other, index).key) == (version < other)


def test_a_position_reached_by_reading_is_no_beginning() -> None:
    start = StreamOffset.beginning("id", 3, snapshot=True)
    assert start.at(3, 0, snapshot=True) is start
    assert start.is_origin
    assert not start.at(4).is_origin
    assert start.at(4).origin == (3, True)


def test_only_a_beginning_gives_way_to_the_one_that_the_end_knows() -> None:
    end = StreamOffset.beginning("id", 3, snapshot=True).at(4)
    assert StreamOffset.beginning("id", 9, snapshot=True).resolved(end).position == (3, 0, True)
    reached = StreamOffset.beginning("id", 9, snapshot=True).at(10)
    assert reached.resolved(end) is reached


VALID: dict[str, Any] = StreamOffset.beginning("id", 3, snapshot=True).to_dict()


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "3", "null", "{}",
        *(json.dumps({**VALID, key: wrong}) for key in VALID for wrong in (None, [], -1, 1.5)),
        *(json.dumps({k: v for k, v in VALID.items() if k != key}) for key in VALID),
    ],
)  # fmt: skip
def test_damaged_text_is_refused(text: str) -> None:
    with pytest.raises(LogError, match="/t") as caught:
        StreamOffset.parse(text, "id", "/t")
    assert caught.value.condition == "DELTA_INVALID_SOURCE_OFFSET_FORMAT"


def test_an_offset_of_delta_spark_is_named_as_such() -> None:
    text = '{"sourceVersion":1,"reservoirId":"id","reservoirVersion":1,"index":-1,"isStartingVersion":false}'
    with pytest.raises(LogError, match="delta-spark.* all before version 1, where startingVersion=1 goes on"):
        StreamOffset.parse(text, "id", "/t")


@pytest.mark.parametrize("change", ['"index":4', '"isStartingVersion":true', '"reservoirVersion":"x"'])
def test_an_offset_of_delta_spark_within_a_version_names_none_to_go_on_with(change: str) -> None:
    text = '{"reservoirId":"id","reservoirVersion":1,"index":-1,"isStartingVersion":false,' + change + "}"
    with pytest.raises(LogError, match="cannot be continued here; begin with a new one"):
        StreamOffset.parse(text, "id", "/t")


@pytest.mark.parametrize(
    ("change", "kind", "condition"),
    [
        ({"pydeltaOffset": 2}, UnsupportedFeatureError, "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION"),
        ({"tableId": "other"}, UnsupportedOperationError, "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"),
    ],
)
def test_a_newer_format_and_another_table_are_refused(
    change: dict[str, Any], kind: type[DeltaError], condition: str
) -> None:
    with pytest.raises(kind) as caught:
        StreamOffset.parse({**VALID, **change}, "id", "/t")
    assert caught.value.condition == condition
