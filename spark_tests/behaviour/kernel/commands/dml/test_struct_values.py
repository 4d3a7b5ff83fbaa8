"""Expressions of UPDATE for structs, arrays and maps: fields by their names, values by the rules for storing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import InvariantViolationError, SchemaError

_INTS = pa.struct([("a", pa.int32()), ("b", pa.int64())])
_TURNED = pa.struct([("B", pa.int32()), ("A", pa.int64())])


@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize(
    ("column", "value", "stored"),
    [
        (_INTS, pa.scalar({"B": 7, "A": 8}, _TURNED), {"a": 8, "b": 7}),
        (_INTS, pa.scalar(None, _TURNED), None),
        (
            pa.list_(_INTS),
            pa.scalar([{"B": 7, "A": None}, None], pa.list_(_TURNED)),
            [{"a": None, "b": 7}, None],
        ),
        (
            pa.map_(pa.string(), _INTS),
            pa.scalar([("k", {"B": 7, "A": 8})], pa.map_(pa.string(), _TURNED)),
            [("k", {"a": 8, "b": 7})],
        ),
        (pa.list_(pa.int64()), pa.scalar([1, 2], pa.list_(pa.int32())), [1, 2]),
    ],
)
def test_fields_are_taken_by_name_as_by_merge(
    tmp_path: Path, column: pa.DataType, value: pa.Scalar, stored: Any, merges: bool
) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1], "x": pa.nulls(1, column), "y": pa.repeat(value, 1)}))
    if merges:
        log.merge(pa.table({"id": [1]}), "t.id = s.id", "s", "t").when_matched_update({"x": "t.y"}).execute()
    else:
        log.update({"x": "y"})
    assert log.snapshot().scan().to_arrow()["x"].to_pylist() == [stored]


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (pa.scalar({"a": 1}, pa.struct([("a", pa.int32())])), SchemaError, "b is not given"),
        (pa.scalar({"a": 1, "b": 1, "c": 1}), SchemaError, "c"),
        (pa.scalar({"x": 1, "y": 1}), SchemaError, "a, b is not given"),
        (pa.scalar([1]), SchemaError, "array"),
        (pa.scalar({"a": 1 << 40, "b": 1}), InvariantViolationError, "overflow"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, value: pa.Scalar, error: type[Exception], words: str
) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1], "x": pa.nulls(1, _INTS), "y": pa.repeat(value, 1)}))
    with pytest.raises(error, match=words):
        log.update({"x": "y"})
    assert log.snapshot().version == 0
