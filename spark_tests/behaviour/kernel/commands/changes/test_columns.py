"""The columns that a feed of changes has: those of the table now, or those of its end where columns are mapped."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.commands.changes import open_changes
from delta_ds.kernel.storage.open import open_storage

ADDED = ["id", "w", "_change_type", "_commit_version", "_commit_timestamp"]
BEFORE = [name for name in ADDED if name != "w"]


def table(path: Path, mapping: str) -> DeltaLog:
    log = DeltaLog(path)
    made = {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": mapping}
    log.write(pa.table({"id": [1, 2]}), options=made)
    log.delete("id = 2")
    return log


@pytest.mark.parametrize(("mapping", "found"), [("none", ADDED), ("name", BEFORE), ("id", BEFORE)])
def test_a_range_that_ends_before_a_column_came_has_it_unless_columns_are_mapped(
    tmp_path: Path, mapping: str, found: list[str]
) -> None:
    log = table(tmp_path, mapping)
    log.write(pa.table({"id": [3], "w": ["x"]}), "append", {"mergeSchema": "true"})
    assert log.changes(0).to_arrow().column_names == ADDED
    for end in (0, 1):
        feed = log.changes(0, end).to_arrow()
        assert feed.column_names == found
        assert feed.column("id").to_pylist() == [1, 2, 2][: feed.num_rows]
        if "w" in found:
            assert feed.column("w").null_count == feed.num_rows


def test_a_range_that_the_newest_columns_cannot_read_keeps_those_of_its_end(tmp_path: Path) -> None:
    log = table(tmp_path, "none")
    log.write(pa.table({"w": ["x"]}), "overwrite", {"overwriteSchema": "true"})
    assert log.changes(0, 1).to_arrow().column_names == BEFORE


def test_what_the_table_became_later_refuses_no_version_of_before(tmp_path: Path) -> None:
    log = table(tmp_path, "none")
    log.write(pa.table({"id": [3]}), "append")
    log.set_properties({"delta.enableChangeDataFeed": "false"})
    log.write(pa.table({"id": [4], "w": ["x"]}), "append", {"mergeSchema": "true"})
    for start in range(3):
        for end in range(start, 3):
            feed = log.changes(start, end).to_arrow()
            assert set(feed.column("_commit_version").to_pylist()) == set(range(start, end + 1))
            assert feed.column_names == ADDED
    with pytest.raises(DeltaError) as caught:
        log.changes(2, 3)
    assert caught.value.condition == "DELTA_MISSING_CHANGE_DATA"


def test_a_read_that_was_begun_keeps_its_columns(tmp_path: Path) -> None:
    log = table(tmp_path, "none")
    begun = open_changes(open_storage(str(tmp_path)), 0, 0)
    log.write(pa.table({"id": [3], "w": ["x"]}), "append", {"mergeSchema": "true"})
    again = open_changes(open_storage(str(tmp_path)), begun.start, begun.end, newest=begun.columns_of)
    assert (begun.schema.names, again.schema.names) == (BEFORE, BEFORE)
    assert open_changes(open_storage(str(tmp_path)), 0, 0).schema.names == ADDED
