"""Commands of a `DeltaLog`: what they commit, and what they refuse before they do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import (
    InvalidOptionError,
    InvariantViolationError,
    PredicateError,
    SchemaError,
    TableExistsError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)
from delta_ds.kernel.format.schema.types import STRING, StructField, StructType


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    """Three files of two rows, in two partitions."""
    log = DeltaLog(tmp_path / "t")
    for n, part in enumerate("aab"):
        rows = pa.table({"id": [10 * n, 10 * n + 1], "part": [part] * 2})
        log.write(rows, options={"partitionBy": "part"} if n == 0 else None)
    return log


def _ids(log: DeltaLog) -> list[int]:
    return sorted(log.to_arrow(columns=["id"])["id"].to_pylist())


def test_optimize_joins_the_small_files_of_a_partition(log: DeltaLog) -> None:
    before = _ids(log)
    done = log.optimize("part = 'a'")
    assert (done.version, done.metrics["numFilesRemoved"], done.metrics["numFilesAdded"]) == (3, 2, 1)
    assert _ids(log) == before
    assert log.optimize().version is None


def test_optimize_leaves_files_of_the_size_that_is_asked_for(log: DeltaLog) -> None:
    assert log.optimize(max_file_size=1).version is None
    assert log.optimize(min_file_size=1).version is None
    assert log.optimize(max_file_size=1 << 20).metrics["numFilesRemoved"] == 2


@pytest.mark.parametrize("size", [0, -1])
def test_a_size_that_no_file_has_is_refused(log: DeltaLog, size: int) -> None:
    with pytest.raises(InvalidOptionError, match=f"max_file_size is a number of bytes above 0, not {size}"):
        log.optimize(max_file_size=size)
    assert log.snapshot().version == 2


def test_optimize_full_is_for_clustered_tables(log: DeltaLog) -> None:
    with pytest.raises(UnsupportedOperationError):
        log.optimize(full=True)
    with pytest.raises(PredicateError):
        log.optimize("id = 1")


def test_zorder_arranges_the_rows_by_columns(log: DeltaLog) -> None:
    done = log.zorder(["id"], "part = 'a'")
    assert (done.version, done.metrics["zOrderStats"]["strategyName"]) == (3, "all")
    (commit,) = log.history(1)
    assert commit["operationParameters"]["zOrderBy"] == '["id"]'
    with pytest.raises(TypeError, match="columns must be a list of texts"):
        log.zorder("id")  # type: ignore[arg-type]


def test_vacuum_deletes_what_no_version_needs_and_only_tells_when_asked_to(log: DeltaLog) -> None:
    log.optimize()
    told = log.vacuum(0, dry_run=True, retention_check=False)
    assert (told.num_files, told.dry_run, told.version) == (2, True, None)
    with pytest.raises(InvalidOptionError):
        log.vacuum(0)
    assert log.vacuum(0, retention_check=False).num_files == 2
    assert len(_ids(log)) == 6


def test_restore_brings_an_earlier_version_back(log: DeltaLog) -> None:
    done = log.restore(1)
    assert done is not None
    assert (done.version, done.num_removed_files) == (3, 1)
    assert _ids(log) == [0, 1, 10, 11]
    assert log.restore(3) is None
    with pytest.raises(InvalidOptionError):
        log.restore()


def test_convert_makes_a_table_of_files(tmp_path: Path) -> None:
    pq.write_to_dataset(pa.table({"id": [1, 2], "part": [1, 2]}), tmp_path / "files", partition_cols=["part"])
    log = DeltaLog(tmp_path / "files")
    done = log.convert(pa.schema({"part": pa.int32()}), properties={"team": "sales"})
    assert done is not None
    assert (done.version, done.num_converted_files) == (0, 2)
    assert log.to_arrow("part = 2")["id"].to_pylist() == [2]
    assert log.snapshot().properties["team"] == "sales"
    assert log.convert() is None


@pytest.mark.parametrize("shallow", [False, True])
@pytest.mark.parametrize("by_address", [False, True])
def test_a_clone_has_the_rows_of_the_version(
    log: DeltaLog, tmp_path: Path, shallow: bool, by_address: bool
) -> None:
    place = tmp_path / "copy"
    done = log.clone(place if by_address else DeltaLog(place), shallow=shallow, version=1)
    assert (done.version, done.source_num_of_files) == (0, 2)
    assert _ids(DeltaLog(place)) == [0, 1, 10, 11]
    own = {path.name for path in place.rglob("*.parquet")}
    assert len(own) == (0 if shallow else 2)
    with pytest.raises(TableExistsError):
        log.clone(place, shallow=shallow)


def test_columns_are_added_where_they_are_wanted_in_their_order(log: DeltaLog) -> None:
    log.add_columns(pa.schema({"x": pa.int32(), "y": pa.string()}), after="id")
    log.add_columns(StructType((StructField("z", STRING),)))
    log.add_columns(pa.schema({"first": pa.date32(), "second": pa.date32()}), first=True)
    assert log.snapshot().schema.names == ["first", "second", "id", "x", "y", "part", "z"]
    assert log.to_arrow(columns=["x"])["x"].null_count == 6
    version = log.snapshot().version
    with pytest.raises(SchemaError, match="already"):
        log.add_columns(pa.schema({"ID": pa.int64()}))
    with pytest.raises(UnsupportedOperationError):
        log.add_columns(pa.schema([pa.field("w", pa.int64(), nullable=False)]))
    assert log.snapshot().version == version


def test_properties_are_set_and_unset(log: DeltaLog) -> None:
    log.set_properties({"delta.appendonly": True, "team": "sales"})
    assert log.snapshot().properties == {"delta.appendOnly": "true", "team": "sales"}
    log.unset_properties(["delta.appendOnly", "never set"])
    assert log.snapshot().properties == {"team": "sales"}
    with pytest.raises(InvalidOptionError, match="appendOnly"):
        log.set_properties({"delta.appendOnyl": "true"})


def test_a_constraint_holds_for_rows_that_are_there_and_for_those_to_come(log: DeltaLog) -> None:
    with pytest.raises(InvariantViolationError, match="rows in .* violate the new CHECK constraint .* small"):
        log.add_constraint("small", "id < 20")
    assert log.snapshot().version == 2
    assert log.add_constraint("Small", "id < 100") == 3
    with pytest.raises(InvariantViolationError):
        log.write(pa.table({"id": [100], "part": ["a"]}))
    with pytest.raises(SchemaError):
        log.add_constraint("small", "id < 200")
    log.drop_constraint("SMALL")
    log.write(pa.table({"id": [100], "part": ["a"]}))


def test_rows_for_which_a_constraint_is_null_break_it(log: DeltaLog) -> None:
    log.write(pa.table({"id": pa.array([None], pa.int64()), "part": ["a"]}))
    with pytest.raises(InvariantViolationError):
        log.add_constraint("positive", "id >= 0")


def test_a_constraint_that_only_spark_evaluates_is_refused(log: DeltaLog) -> None:
    with pytest.raises((UnsupportedFeatureError, PredicateError)):
        log.add_constraint("odd", "xpath_int(part, 'a') = 1")
    assert log.snapshot().version == 2


def test_a_constraint_that_is_not_there_is_dropped_only_where_it_may_be_missing(log: DeltaLog) -> None:
    with pytest.raises(InvalidOptionError, match="none"):
        log.drop_constraint("small")
    assert log.drop_constraint("small", if_exists=True) == 3


def test_a_feature_is_supported_once_it_is_added(log: DeltaLog) -> None:
    assert log.add_feature("DeletionVectors") == 3
    assert "deletionVectors" in log.snapshot().protocol.supported
    with pytest.raises(UnsupportedFeatureError):
        log.add_feature("teleport")
