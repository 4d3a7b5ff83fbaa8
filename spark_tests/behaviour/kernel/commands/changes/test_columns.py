"""The columns that a feed of changes has: those of the table now, or those of its end where columns are mapped."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import ChangeDataError, DeltaError
from delta_ds.kernel.commands.changes import open_changes
from delta_ds.kernel.format.schema.types import DOUBLE, LONG, TIMESTAMP_NTZ, DataType, DecimalType
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.transaction.alter.change_column import alter_column
from delta_ds.kernel.transaction.alter.columns import drop_columns, rename_column

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


@pytest.mark.parametrize("command", ["restore", "clone"])
@pytest.mark.parametrize("mapping", ["name", "id"])
def test_changes_that_take_away_a_column_and_bring_another_one_of_its_name_are_refused(
    tmp_path: Path, command: str, mapping: str
) -> None:
    log = table(tmp_path / "t", mapping)
    log.write(pa.table({"id": [3], "w": ["x"]}), "append", {"mergeSchema": "true"})
    first = log.snapshot().version
    clone = DeltaLog(tmp_path / "clone")
    log.clone(clone)
    drop_columns(log, ["w"])
    log.add_columns(pa.schema({"w": pa.string()}))
    log.write(pa.table({"id": [4], "w": ["y"]}), "overwrite")
    if command == "restore":
        log.restore(first)
    else:
        log.clone(clone, replace_existing=True)
    changed = log if command == "restore" else clone
    last = changed.snapshot().version
    with pytest.raises(ChangeDataError, match="removes files in which w have other names or types") as caught:
        changed.changes(last, last).to_arrow()
    assert caught.value.condition == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"


def test_changes_that_rename_a_column_back_have_its_values(tmp_path: Path) -> None:
    log = table(tmp_path, "name")
    rename_column(log, "id", "key")
    log.write(pa.table({"key": [4]}))
    log.restore(1)
    last = log.snapshot().version
    assert log.changes(last, last).to_arrow().column("id").to_pylist() == [4]


@pytest.mark.parametrize(
    ("kind", "wider"),
    [
        (pa.int32(), LONG),
        (pa.int16(), DOUBLE),
        (pa.float32(), DOUBLE),
        (pa.decimal128(5, 2), DecimalType(10, 4)),
        (pa.date32(), TIMESTAMP_NTZ),
    ],
)
@pytest.mark.parametrize("renamed", [False, True])
def test_changes_that_narrow_a_partition_column_are_refused(
    tmp_path: Path, kind: pa.DataType, wider: DataType, renamed: bool
) -> None:
    log = DeltaLog(tmp_path)
    made = {"delta.enableChangeDataFeed": "true", "delta.enableTypeWidening": "true", "partitionBy": "p"}
    made |= {"delta.columnMapping.mode": "name", "delta.feature.timestampNtz": "supported"}
    log.write(pa.table({"id": [1], "p": pa.array([None], kind)}), options=made)
    alter_column(log, "p", data_type=wider)
    if renamed:
        rename_column(log, "p", "q")
    log.write(log.snapshot().scan().to_arrow())
    log.restore(0)
    last = log.snapshot().version
    with pytest.raises(ChangeDataError, match="removes files in which . have other names or types"):
        log.changes(last, last).to_arrow()


def test_an_overwrite_that_widens_a_partition_column_tells_its_values(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    made = {"delta.enableChangeDataFeed": "true", "partitionBy": "p"}
    log.write(pa.table({"id": [1], "p": pa.array([7], pa.int32())}), options=made)
    log.write(
        pa.table({"id": [2], "p": [2**40]}), "overwrite", {"overwriteSchema": "true", "partitionBy": "p"}
    )
    assert sorted(log.changes(1, 1).to_arrow().column("p").to_pylist()) == [7, 2**40]
