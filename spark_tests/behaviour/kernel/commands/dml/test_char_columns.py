"""`char(n)` columns in commands without Spark: rows go and change by the padded text, however it is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DeltaConcurrentModificationException, InvariantViolationError
from delta_ds.kernel.commands.dml import in_process as module
from delta_ds.kernel.commands.dml.commit import Committed
from delta_ds.kernel.format.schema.types import BOOLEAN, LONG, STRING, StructField, StructType
from delta_ds.kernel.transaction.alter.create import create_table

CHAR_5 = {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}
ID, C = StructField("id", LONG), StructField("c", STRING, True, CHAR_5)
AB, PADDED, B, NULL = ((1, "ab"), (2, "ab   "), (3, "b"), (4, None))


@pytest.fixture(params=["data", "partition", "deletion vectors", "mapped"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> DeltaLog:
    """A table whose column `c` has a text with its blanks, one without, another and null."""
    properties = {
        "deletion vectors": {"delta.enableDeletionVectors": "true"},
        "mapped": {"delta.columnMapping.mode": "name"},
    }
    log = DeltaLog(tmp_path)
    partitions = ["c"] if request.param == "partition" else []
    create_table(log, StructType((ID, C)), partitions, properties.get(request.param))
    log.write(_table(AB, PADDED))
    log.write(_table(B, NULL))
    return log


def _table(*rows: tuple[int, str | None]) -> pa.Table:
    return pa.table({"id": [row[0] for row in rows], "c": pa.array([row[1] for row in rows], pa.string())})


def _ids(log: DeltaLog, predicate: str | None = None) -> list[int]:
    return sorted(log.snapshot().scan(predicate).to_arrow()["id"].to_pylist())


MATCHES = {
    "c = 'ab'": [1, 2],
    "c = 'ab   '": [1, 2],
    "c = 'ab         '": [1, 2],
    "c IN ('ab', 'x')": [1, 2],
    "c <> 'ab'": [3],
    "c NOT IN ('ab')": [3],
    "NOT (c <=> 'ab')": [3, 4],
    "c > 'ab'": [3],
    "c <= 'ab'": [1, 2],
    "c < 'ab'": [],
    "upper(c) = 'AB'": [],
    "c LIKE 'ab'": [],
}


@pytest.mark.parametrize("predicate", MATCHES)
def test_rows_are_found_and_deleted_by_the_padded_text(log: DeltaLog, predicate: str) -> None:
    assert _ids(log, predicate) == MATCHES[predicate]
    assert log.delete(predicate).rows == len(MATCHES[predicate])
    assert _ids(log) == [i for i in range(1, 5) if i not in MATCHES[predicate]]


def test_rows_are_updated_by_the_padded_text(log: DeltaLog) -> None:
    log.update({"id": "if(c = 'ab', id + 10, id)"}, predicate="c <> 'b'")
    assert _ids(log) == [3, 4, 11, 12]


def test_clauses_of_a_merge_go_by_the_padded_text(log: DeltaLog) -> None:
    source = pa.table({"id": [1, 2, 3]})
    merge = log.merge(source, "t.id = s.id AND t.c IN ('ab', 'b')", source_alias="s", target_alias="t")
    merge.when_matched_update({"id": "t.id + 10"}, "t.c = 'ab'").when_not_matched_by_source_delete(
        "t.c <> 'ab' OR t.c IS NULL"
    ).execute()
    assert _ids(log) == [3, 11, 12]


def test_what_no_row_of_the_source_matches_goes_by_the_padded_text(log: DeltaLog) -> None:
    merge = log.merge(pa.table({"id": [9]}), "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_not_matched_by_source_delete("t.c <> 'ab'").execute()
    assert _ids(log) == [1, 2, 4]


@pytest.mark.parametrize(
    "keys", [["ab\x01  "], ["ab", "ab\x01  "], [f"ab{n:04}" for n in range(200)] + ["ab\x01  "]]
)
def test_a_key_of_the_source_is_compared_as_it_is(tmp_path: Path, keys: list[str]) -> None:
    """A plain text of a source is not padded; \\x01 is less than a blank."""
    log = DeltaLog(tmp_path)
    create_table(log, StructType((ID, C)), properties={"delta.enableDeletionVectors": "true"})
    log.write(_table((7, "ab\x01  "), AB, B))
    merge = log.merge(pa.table({"k": ["ab", *keys]}), "t.c = s.k", source_alias="s", target_alias="t")
    merge.when_matched_delete().execute()
    assert _ids(log) == [1, 3]


def test_constraints_hold_of_the_padded_text(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    create_table(log, StructType((ID, C)))
    log.write(_table(AB, PADDED))
    log.add_constraint("known", "c IN ('ab', 'b')")
    log.write(_table(B, (5, "ab ")))
    log.update({"id": "id + 10"}, predicate="c = 'ab'")
    assert _ids(log) == [3, 11, 12, 15]
    with pytest.raises(InvariantViolationError, match="known"):
        log.write(_table((6, "x")))


def test_generated_values_are_of_the_padded_text(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    generated = StructField("g", BOOLEAN, True, {"delta.generationExpression": "c = 'ab'"})
    create_table(log, StructType((ID, C, generated)))
    log.write(_table(AB, PADDED, B))
    log.update({"id": "id + 10"})
    source = _table((11, "b"), (13, "ab"), (14, "ab "), (15, "b "))
    merge = log.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    values = {"id": "s.id", "c": "s.c"}
    merge.when_matched_update(values).when_not_matched_insert(values).execute()
    found = sorted(log.snapshot().scan(columns=["id", "g"]).to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [row["g"] for row in found] == [False, True, True, True, False]


def test_a_text_that_another_commit_adds_and_that_is_equal_once_padded_is_a_conflict(
    log: DeltaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.set_properties({"delta.isolationLevel": "Serializable"})
    commit = module.commit_dml

    def second(*arguments: Any) -> Committed:
        monkeypatch.setattr(module, "commit_dml", commit)
        DeltaLog(log.storage.url).write(_table((5, "ab  ")))
        return commit(*arguments)

    monkeypatch.setattr(module, "commit_dml", second)
    with pytest.raises(DeltaConcurrentModificationException):
        log.delete("c = 'ab'")
    assert _ids(log, "c = 'ab'") == [1, 2, 5]
