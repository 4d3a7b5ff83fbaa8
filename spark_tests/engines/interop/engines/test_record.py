"""The record of the matrix, `docs/engines.json`, covers every feature and says what is told of it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pyarrow as pa
import pytest

from delta_ds.kernel.format.features import FEATURES
from spark_tests.engines.interop.engines.features import ALL, offered
from spark_tests.engines.interop.engines.judging import GRADES, REFUSED, SAME, TYPES, WRONG, judge
from spark_tests.engines.interop.engines.matrix import RECORD, worse
from spark_tests.engines.interop.engines.readers import READERS


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(RECORD.read_text())
    return read


def test_every_feature_that_is_written_has_a_table() -> None:
    shown = {feature.name for row in ALL for feature in row.supports}
    written = {feature.name for feature in FEATURES.values() if feature.write}
    assert written <= shown, "a feature is a row of spark_tests/engines/interop/engines/features.py"


def test_the_record_is_of_the_rows_there_are(record: dict[str, Any]) -> None:
    recorded = [(row["table"], row["version"], row["supports"], row["advice"]) for row in record["features"]]
    rows = [(row.table, row.version, [f.name for f in row.supports], row.advice) for row in offered()]
    assert recorded == rows, "run: make engines-page"


def test_the_record_has_every_engine_and_a_grade_in_every_cell(record: dict[str, Any]) -> None:
    assert list(record["engines"]) == list(READERS)
    for row in record["features"]:
        assert list(row["cells"]) == list(READERS)
        for grade, detail in row["cells"].values():
            assert grade in GRADES
            assert detail or grade == SAME


def test_delta_spark_reads_all_that_can_be_read_by_its_path(record: dict[str, Any]) -> None:
    cells = {row["table"]: row["cells"]["delta-spark"][0] for row in record["features"]}
    assert {table for table, grade in cells.items() if grade != SAME} <= {"catalog_managed"}
    assert set(cells.values()) <= {SAME, REFUSED}


def test_no_engine_misreads_a_table_of_ours_that_reads_one_of_delta_spark(record: dict[str, Any]) -> None:
    for row in record["features"]:
        for engine, (grade, _) in row["cells"].items():
            if grade == WRONG:
                assert row["of delta-spark"].get(engine) not in (None, SAME, TYPES), (row["table"], engine)


def test_a_cell_that_got_worse_is_told(record: dict[str, Any]) -> None:
    assert worse(record, record) == []
    measured = copy.deepcopy(record)
    measured["features"][0]["cells"]["deltalake"] = [WRONG, "3 rows instead of 4"]
    (line,) = worse(measured, record)
    assert "deltalake: wrong rows: 3 rows instead of 4; recorded: same rows" in line
    assert worse(record, measured) == []


@pytest.mark.parametrize(
    ("found", "grade"),
    [
        (pa.table({"a": pa.array([1, 2]), "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32()))}), SAME),
        (pa.table({"a": pa.array([1, 2], pa.int32()), "m": pa.array(
            [[{"key": "k", "value": 1}], None],
            pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.int64())])))}), TYPES),
        (pa.table({"a": pa.array([1, 2]), "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int32()))}), WRONG),
        (pa.table({"a": pa.array([1, 3]), "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32()))}), WRONG),
        (pa.table({"a": pa.array([1, 2, 2])}), WRONG),
    ],
)  # fmt: skip
def test_rows_are_compared_whatever_their_encoding(found: pa.Table, grade: str) -> None:
    wanted = pa.table({"a": [1, 2], "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32()))})
    assert judge(found, wanted).grade == grade


def test_refusals_rank_before_wrong_rows() -> None:
    assert GRADES.index(REFUSED) < GRADES.index(WRONG)
