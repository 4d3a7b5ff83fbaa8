"""NOT NULL columns: by the log's statistics, by footers, by reading."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds import DataFileError, DeltaLog
from delta_ds.kernel.files.scan.null_checks import check_not_null
from delta_ds.kernel.files.scan.skipping import row_numbers
from delta_ds.testing import TableBuilder

SCHEMA = pa.schema([pa.field("a", pa.int64(), False), pa.field("p", pa.string(), False)])


def check(path: Path) -> None:
    snapshot = DeltaLog(path).open_snapshot()
    check_not_null(snapshot, row_numbers(snapshot.live_files().num_rows))


def rows(*values: int | None) -> pa.Table:
    return pa.table({"a": pa.array(values, pa.int64())})


def table(path: Path) -> TableBuilder:
    builder = TableBuilder(path)
    builder.create(SCHEMA, partition_columns=["p"])
    return builder


def test_statistics_without_nulls_are_believed(tmp_path: Path) -> None:
    builder = table(tmp_path)
    add = builder.write_file(rows(1, 2), partition_values={"p": "x"})
    builder.commit(add)
    (tmp_path / add["add"]["path"]).unlink()
    check(tmp_path)


def test_file_without_statistics_is_judged_by_its_footer(tmp_path: Path) -> None:
    table(tmp_path).append(rows(1, 2), partition_values={"p": "x"}, stats=False)
    check(tmp_path)


@pytest.mark.parametrize("stats", [True, False])
def test_nulls_in_a_file_are_an_error(tmp_path: Path, stats: bool) -> None:
    table(tmp_path).append(rows(1, None), partition_values={"p": "x"}, stats=stats)
    with pytest.raises(DataFileError, match="'a' of version 1 .* is NOT NULL") as caught:
        check(tmp_path)
    assert caught.value.condition == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"


def test_null_that_a_deletion_vector_deletes_does_not_count(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path)
    builder.create(SCHEMA, partition_columns=["p"], reader_features=["deletionVectors"])
    add = builder.write_file(rows(1, None, 3), partition_values={"p": "x"})
    builder.commit(add)
    builder.delete_rows(add, [1])
    check(tmp_path)


def test_null_partition_value_is_an_error(tmp_path: Path) -> None:
    table(tmp_path).append(rows(1), partition_values={"p": None})
    with pytest.raises(DataFileError, match="'p'"):
        check(tmp_path)


def test_struct_is_judged_by_its_fields(tmp_path: Path) -> None:
    kind = pa.struct([pa.field("x", pa.int64()), pa.field("y", pa.int64())])
    builder = TableBuilder(tmp_path)
    builder.create(pa.schema([pa.field("s", kind, False)]))
    builder.append(pa.table({"s": pa.array([{"x": None, "y": 1}, {"x": 2, "y": None}], kind)}))
    check(tmp_path)
    builder.append(pa.table({"s": pa.array([None, {"x": 2, "y": 1}], kind)}))
    with pytest.raises(DataFileError, match="'s'"):
        check(tmp_path)


def test_file_without_the_column_is_an_error(tmp_path: Path) -> None:
    table(tmp_path).append(
        pa.table({"other": pa.array([1], pa.int64())}), partition_values={"p": "x"}, stats=False
    )
    with pytest.raises(DataFileError, match="'a'"):
        check(tmp_path)
