"""The level a commit is checked at."""

from __future__ import annotations

import pytest

from delta_ds.kernel.format.operations import operation_named
from delta_ds.kernel.transaction.pending import IsolationLevel, commit_level, table_level


@pytest.mark.parametrize(
    ("text", "level"),
    [
        (None, "Serializable"), ("serializable", "Serializable"), ("WRITESERIALIZABLE", "WriteSerializable"),
        ("SnapshotIsolation", "SnapshotIsolation"),
    ],
)  # fmt: skip
def test_table_level_ignores_case_and_defaults_to_serializable(text: str | None, level: str) -> None:
    configuration = {} if text is None else {"delta.isolationLevel": text}
    assert table_level(configuration, "t").value == level


@pytest.mark.parametrize(
    ("level", "changes", "result"),
    [
        ("Serializable", True, "SnapshotIsolation"), ("Serializable", False, "SnapshotIsolation"),
        ("WriteSerializable", True, "WriteSerializable"), ("WriteSerializable", False, "SnapshotIsolation"),
        ("SnapshotIsolation", True, "SnapshotIsolation"),
    ],
)  # fmt: skip
def test_rearranging_commit_is_checked_less(level: str, changes: bool, result: str) -> None:
    found = commit_level(IsolationLevel(level), only_rearranges=True, changes_data=changes)
    assert found.value == result
    assert commit_level(IsolationLevel(level), only_rearranges=False, changes_data=changes).value == level


def test_operations_that_change_rows_are_known_by_name() -> None:
    changing = ["WRITE", "MERGE", "STREAMING UPDATE", "CREATE OR REPLACE TABLE AS SELECT"]
    others = ["OPTIMIZE", "CREATE TABLE", "ADD COLUMNS", "VACUUM START", "Manual Update"]
    assert [name for name in (*changing, *others) if operation_named(name).changes_data] == changing
