"""JSON manifests of checkpoints with file actions in them: a damaged one is passed over where the commits serve."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog

MANIFEST = "00000000000000000002.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"


def damaged(add: dict[str, Any], how: str) -> str:
    body = dict(add["add"])
    if how == "no path":
        del body["path"]
    if how == "a size of text":
        body["size"] = "abc"
    if how == "partition values as a list":
        body["partitionValues"] = [1]
    text = json.dumps({"add": body})
    return text[:50] if how == "cut off" else text


@pytest.mark.parametrize(
    "how", ["whole", "no path", "a size of text", "partition values as a list", "cut off"]
)
def test_a_damaged_manifest_is_passed_over(tmp_path: Path, how: str) -> None:
    log = DeltaLog(tmp_path)
    for number in range(4):
        options = {} if number else {"delta.feature.v2Checkpoint": "supported"}
        log.write(pa.table({"a": [number]}), options=options)
    commits = [(tmp_path / "_delta_log" / f"{number:020}.json").read_text() for number in range(3)]
    actions = [json.loads(line) for text in commits for line in text.splitlines()]
    adds = [action for action in actions if "add" in action]
    others = [json.dumps(a) for a in actions if "protocol" in a or "metaData" in a]
    head = json.dumps({"checkpointMetadata": {"version": 2}})
    lines = [head, *others, json.dumps(adds[0]), damaged(adds[1], how), json.dumps(adds[2])]
    (tmp_path / "_delta_log" / MANIFEST).write_text("\n".join(lines) + "\n")
    read = DeltaLog(tmp_path)
    assert sorted(read.snapshot().scan().to_arrow()["a"].to_pylist()) == [0, 1, 2, 3]
    read.checkpoint()
    assert DeltaLog(tmp_path).open_snapshot().live_files().num_rows == 4
