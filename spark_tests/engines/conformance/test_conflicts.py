"""The conflicts yardstick finds what is wrong, and says so by its exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_tests.behaviour.kernel.transaction.tables import SCHEMA
from spark_tests.engines.conformance.__main__ import main


def _case(**changes: Any) -> dict[str, Any]:
    add = {"path": "n", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    side = {"reads": "none", "read_txn_app_ids": [], "operation": "WRITE", "op_changes_data": True}
    return {
        "id": "case-1", "family": "append", "what": "two appends", "verified": True, "expect": "commit",
        "table": {
            "id": "t", "schema": json.loads(SCHEMA), "partitionColumns": [], "properties": {}, "files": [],
            "protocol": {"minReaderVersion": 1, "minWriterVersion": 2}, "isolation": "Serializable",
        },
        "txn_a": {**side, "actions": [{"add": add}]},
        "winner_b": {**side, "actions": [{"add": {**add, "path": "b"}}]},
        "expect_committed": {"version": 2, "isolationLevel": "Serializable", "isBlindAppend": True}, **changes,
    }  # fmt: skip


def _run(tmp_path: Path, *cases: Any) -> int:
    file = tmp_path / "cases.json"
    file.write_text(json.dumps(list(cases)))
    return main(["conflicts", str(file)])


def test_right_outcome_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(tmp_path, _case()) == 0
    assert capsys.readouterr().out.split("\n")[:2] == ["PASS case-1", "1 passed, 0 failed"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"expect": "ConcurrentAppendException"}, "committed version 2 instead of"),
        ({"expect_committed": {"version": 3}}, "instead of 3"),
        (
            {"expect_committed": {"version": 2, "isolationLevel": "S", "isBlindAppend": True}},
            "isolationLevel",
        ),
        (
            {"expect_committed": {"version": 2, "isolationLevel": "S", "isBlindAppend": False}},
            "isBlindAppend",
        ),
        ({"expect_committed": {"newKey": 1}}, "newKey"),
        ({"expect_committed": {"version": 2, "rowIdHighWaterMark": 1}}, "rowIdHighWaterMark is []"),
        ({"expect_committed": {"version": 2, "inCommitTimestamp": 1}}, "inCommitTimestamp is None"),
        ({"newKey": 1}, "newKey"),
    ],
)
def test_wrong_outcome_fails_and_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], words: str
) -> None:
    assert _run(tmp_path, _case(**changes), _case()) == 1
    out = capsys.readouterr().out
    assert "FAIL case-1 (two appends)" in out
    assert words in out
    assert "1 passed, 1 failed" in out


def test_conflict_is_compared_with_what_was_recorded_or_accepted(tmp_path: Path) -> None:
    case = _case()
    case["txn_a"] = {**case["txn_a"], "reads": [{"predicate": None}]}
    assert _run(tmp_path, case) == 1
    assert _run(tmp_path, {**case, "accept": ["ConcurrentAppendException"]}) == 0
    expected = {**case, "expect": "ConcurrentAppendException"}
    assert _run(tmp_path, {**expected, "message_contains": "version 1"}) == 0
    assert _run(tmp_path, {**expected, "message_contains": "no such words"}) == 1


def test_null_means_that_nothing_was_committed(tmp_path: Path) -> None:
    nothing = {"version": 2, "rowIdHighWaterMark": None, "inCommitTimestamp": None, "commit_tags": None}
    assert _run(tmp_path, _case(expect_committed=nothing)) == 0
    tracked = _case(expect_committed=nothing)
    features = {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["domainMetadata", "rowTracking"],
    }
    tracked["table"] = {**tracked["table"], "protocol": features}
    for side in ("txn_a", "winner_b"):
        ((add,),) = [list(action.values()) for action in tracked[side]["actions"]]
        add["stats"] = json.dumps({"numRecords": 1})
    assert _run(tmp_path, tracked) == 1
    assert _run(tmp_path, {**tracked, "expect_committed": {"version": 2, "rowIdHighWaterMark": 1}}) == 0


@pytest.mark.parametrize("part", ["table", "txn_a", "winner_b"])
def test_key_that_is_not_known_is_told_wherever_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], part: str
) -> None:
    case = _case()
    assert _run(tmp_path, {**case, part: {**case[part], "newKey": 1}}) == 1
    assert "not compared: ['newKey']" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["[]", "{", '[{"id": "x"}]'])
def test_file_without_cases_cannot_be_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "cases.json").write_text(text)
    assert main(["conflicts", str(tmp_path / "cases.json")]) == 2
    assert main(["conflicts", str(tmp_path / "missing.json")]) == 2
