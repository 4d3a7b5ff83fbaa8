"""A feed of files with other partition columns than the table has in the end gives their values all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog

PROPERTIES = {"delta.enableChangeDataFeed": "true"}
Row = tuple[int, int | None, str]


def rows(*found: Row) -> pa.Table:
    ids, parts, texts = zip(*found, strict=True)
    return pa.table({"id": ids, "p": pa.array(parts, pa.int64()), "q": texts})


def changes(log: DeltaLog, start: int, end: int | None = None, **net: Any) -> list[tuple[Any, ...]]:
    columns = ["id", "p", "q", "_change_type", "_commit_version"]
    table = log.changes(start, end, **net).to_arrow().select(columns)
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


@pytest.mark.parametrize("mapping", ["none", "name"])
@pytest.mark.parametrize("one", ["", "p", "p, q"])
@pytest.mark.parametrize("other", ["", "q", "q, p"])
def test_an_overwrite_with_other_partition_columns_keeps_values(
    tmp_path: Path, one: str, other: str, mapping: str
) -> None:
    log = DeltaLog(tmp_path)
    first: list[Row] = [(1, 1, "a"), (2, None, "b"), (3, 2, "a")]
    second: list[Row] = [(1, 1, "a"), (2, 5, "c")]
    made = {**PROPERTIES, "delta.columnMapping.mode": mapping, "delta.enableDeletionVectors": "false"}
    log.write(rows(*first), options={**made, **({"partitionBy": one} if one else {})})
    again = {"overwriteSchema": "true", "partitionBy": other} if other else {"overwriteSchema": "true"}
    log.write(rows(*second), "overwrite", again)
    inserted = [(*row, "insert", 0) for row in first]
    replaced = [*((*row, "delete", 1) for row in first), *((*row, "insert", 1) for row in second)]
    assert changes(log, 0, 0) == sorted(inserted, key=repr)
    assert changes(log, 1) == sorted(replaced, key=repr)
    assert changes(log, 0) == sorted([*inserted, *replaced], key=repr)
    log.write(rows((4, 7, "d")), "append")
    assert changes(log, 0, net="net", keys=["id"]) == [
        (1, 1, "a", "insert", 1), (2, 5, "c", "insert", 1), (4, 7, "d", "insert", 2),
    ]  # fmt: skip
    assert changes(log, 1, 1, net="net", keys=["id"]) == [
        (2, 5, "c", "update_postimage", 1), (2, None, "b", "update_preimage", 1), (3, 2, "a", "delete", 1),
    ]  # fmt: skip
