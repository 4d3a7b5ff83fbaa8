"""Reading file slices: rows that count, constant columns, damage, memory."""

from __future__ import annotations

import datetime as dt
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_ds.exceptions import DataFileError, DeltaError, InvalidOptionError
from delta_ds.kernel.files.read.file_columns import output_schema
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.format.schema.types import (
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    StructField,
    StructType,
)
from delta_ds.kernel.format.values import deletion_vector
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage
from spark_tests.behaviour.kernel.files.parquet_files import rows, scan, schema_of, write
from spark_tests.full_form import examples

X = schema_of(x=LONG)
CHAR_5 = {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}


@pytest.fixture
def numbers(tmp_path: Path) -> FileSlice:
    """x = 0 to 999 in ten row groups of one hundred."""
    return write(tmp_path, pa.table({"x": range(1000)}), row_group_size=100)


def values(table: pa.Table) -> list[Any]:
    found: list[Any] = table["x"].to_pylist()
    return found


@pytest.mark.parametrize("batch_rows", [1, 7, 100, 5000])
def test_all_rows_come_in_order_whatever_the_batch_size(
    tmp_path: Path, numbers: FileSlice, batch_rows: int
) -> None:
    assert values(scan(tmp_path, [numbers], X, batch_rows)) == list(range(1000))


@given(cuts=st.lists(st.integers(1, 20_000), max_size=6), end_known=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_byte_ranges_that_tile_a_file_read_each_row_once(
    tmp_path: Path, numbers: FileSlice, cuts: list[int], end_known: bool
) -> None:
    edges = sorted({0, *(c for c in cuts if c < numbers.size), numbers.size})
    slices = [replace(numbers, start=a, length=b - a) for a, b in zip(edges, edges[1:], strict=False)]
    if not end_known:
        slices[-1] = replace(slices[-1], length=None)
    assert values(scan(tmp_path, slices, X)) == list(range(1000))


@given(
    gone=st.one_of(st.none(), st.sets(st.integers(0, 999))),
    kept=st.one_of(st.none(), st.sets(st.integers(0, 999))),
    start=st.integers(0, 5000),
    batch_rows=st.sampled_from([33, 150, 2000]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_deleted_and_selected_positions_are_physical(
    tmp_path: Path,
    numbers: FileSlice,
    gone: set[int] | None,
    kept: set[int] | None,
    start: int,
    batch_rows: int,
) -> None:
    piece = replace(numbers, start=min(start, numbers.size))
    in_range = values(scan(tmp_path, [piece], X))
    changed = replace(
        piece,
        deletion_vector=None if gone is None else deletion_vector.inline(sorted(gone)),
        selection=None if kept is None else np.array(sorted(kept), np.uint64),
    )
    found = scan(tmp_path, [changed], X, batch_rows, metadata_columns=("row_index",))
    assert values(found) == [v for v in in_range if v not in (gone or ()) and (kept is None or v in kept)]
    assert [m["row_index"] for m in found["_metadata"].to_pylist()] == values(found)


def test_no_columns_still_give_the_number_of_rows(tmp_path: Path, numbers: FileSlice) -> None:
    plan = ReadPlan(table=str(tmp_path), version=0, schema=StructType())
    piece = replace(numbers, deletion_vector=deletion_vector.inline([0, 500]))
    batches = list(read_slices(open_storage(str(tmp_path)), plan, [piece], 300))
    assert sum(batch.num_rows for batch in batches) == 998
    assert all(batch.schema == output_schema(plan) for batch in batches)


def test_partition_columns_come_from_the_log_even_if_the_file_has_them(tmp_path: Path) -> None:
    piece = write(tmp_path, pa.table({"x": [1, 2], "p": ["wrong", "wrong"], "q": [0, 0]}))
    piece = replace(piece, partition_values=("right", "2024-05-06"))
    found = rows(tmp_path, piece, schema_of(q=DATE, x=LONG, p=STRING), partition_columns=("p", "q"))
    assert found == [{"q": dt.date(2024, 5, 6), "x": x, "p": "right"} for x in (1, 2)]


def test_null_partition_and_only_partition_columns(tmp_path: Path, numbers: FileSlice) -> None:
    piece = replace(numbers, partition_values=(None,))
    found = scan(tmp_path, [piece], schema_of(p=TIMESTAMP), 400, partition_columns=("p",))
    assert found["p"].null_count == found.num_rows == 1000


def test_char_partition_is_padded(tmp_path: Path, numbers: FileSlice) -> None:
    schema = schema_of(p=StructField("p", STRING, metadata=CHAR_5))
    piece = replace(numbers, partition_values=("ab",))
    assert rows(tmp_path, piece, schema, partition_columns=("p",))[0] == {"p": "ab   "}


def test_constants_fill_extra_columns_and_missing_ones_come_from_the_file(tmp_path: Path) -> None:
    piece = write(tmp_path, pa.table({"phys": [5], "_change_type": ["delete"]}))
    field = StructField(
        "x", LONG, metadata={"delta.columnMapping.physicalName": "phys", "delta.columnMapping.id": 1}
    )
    extra = schema_of(_change_type=STRING, _commit_version=LONG, _commit_timestamp=TIMESTAMP)
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
    constants = (("_commit_version", 3), ("_commit_timestamp", moment))
    want = {"x": 5, "_change_type": "delete", "_commit_version": 3, "_commit_timestamp": moment}
    for stamp in (moment, int(moment.timestamp() * 1_000_000)):
        piece = replace(piece, constants=(constants[0], ("_commit_timestamp", stamp)))
        assert rows(tmp_path, piece, schema_of(x=field), mapping_mode="name", extra=extra) == [want]
    piece = replace(piece, constants=(*constants, ("_change_type", "insert")))
    found = rows(tmp_path, piece, schema_of(x=field), mapping_mode="name", extra=extra)
    assert found == [want | {"_change_type": "insert"}]


def test_metadata_column_locates_the_row(tmp_path: Path) -> None:
    folder = tmp_path / "p=a b"
    folder.mkdir()
    piece = replace(write(folder, pa.table({"x": [1]}), "f.parquet"), path="p=a%20b/f.parquet")
    names = ("file_path", "file_name", "file_size", "row_index")
    found = rows(tmp_path, piece, X, metadata_columns=names)
    assert found[0]["_metadata"] == {
        "file_path": f"file://{tmp_path}/p=a%20b/f.parquet",
        "file_name": "f.parquet",
        "file_size": piece.size,
        "row_index": 0,
    }


def test_row_ids_are_materialised_else_base_plus_position(tmp_path: Path) -> None:
    ids = pa.table(
        {"x": range(4), "_rid": [None, 70, None, None], "_rcv": pa.array([2, None, None, 1], pa.int64())}
    )
    piece = replace(write(tmp_path, ids), base_row_id=100, default_row_commit_version=9)
    piece = replace(piece, deletion_vector=deletion_vector.inline([2]))
    names = ("row_id", "row_commit_version")
    plan = {"metadata_columns": names, "row_id_column": "_rid", "row_commit_version_column": "_rcv"}
    found = rows(tmp_path, piece, X, **plan)
    assert [tuple(r["_metadata"].values()) for r in found] == [(100, 2), (70, 9), (103, 1)]
    found = rows(tmp_path, piece, X, metadata_columns=names)
    assert [tuple(r["_metadata"].values()) for r in found] == [(100, 9), (101, 9), (103, 9)]
    bare = replace(piece, base_row_id=None, default_row_commit_version=None)
    assert rows(tmp_path, bare, X, metadata_columns=names)[0]["_metadata"] == dict.fromkeys(names)


def test_unknown_metadata_field_is_refused(tmp_path: Path, numbers: FileSlice) -> None:
    with pytest.raises(InvalidOptionError, match="file_color"):
        scan(tmp_path, [numbers], X, metadata_columns=("file_color",))


def test_missing_file_names_file_table_version_and_vacuum(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"gone\.parquet.* at version 7 .*VACUUM") as caught:
        scan(tmp_path, [FileSlice("gone.parquet", 10)], X)
    assert caught.value.condition == "FAILED_READ_FILE.FILE_NOT_EXIST"
    assert str(tmp_path) in str(caught.value)


@given(data=st.data())
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(200)
)
def test_damaged_file_gives_a_delta_error_or_rows(
    tmp_path: Path, numbers: FileSlice, data: st.DataObject
) -> None:
    content = bytearray((tmp_path / numbers.path).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]
    (tmp_path / "bad.parquet").write_bytes(content)
    try:
        scan(tmp_path, [FileSlice("bad.parquet", len(content))], X)
    except DeltaError as error:
        assert "bad.parquet" in str(error)
        assert str(tmp_path) in str(error)


@pytest.mark.parametrize("keep", [0, 3, 100, -4, -1])
def test_truncated_file_is_refused(tmp_path: Path, numbers: FileSlice, keep: int) -> None:
    (tmp_path / "bad.parquet").write_bytes((tmp_path / numbers.path).read_bytes()[:keep])
    with pytest.raises(DataFileError, match=r"bad\.parquet .* cannot be read") as caught:
        scan(tmp_path, [FileSlice("bad.parquet", numbers.size)], X)
    assert caught.value.condition == "FAILED_READ_FILE.NO_HINT"


def test_error_of_the_consumer_is_not_taken_for_a_damaged_file(tmp_path: Path, numbers: FileSlice) -> None:
    plan = ReadPlan(table=str(tmp_path), version=0, schema=X)
    with pytest.raises(OSError, match="mine"):
        for _ in read_slices(open_storage(str(tmp_path)), plan, [numbers]):
            raise OSError("mine")


@pytest.fixture
def remote(numbers: FileSlice, tmp_path: Path) -> Iterator[tuple[Storage, list[FileSlice]]]:
    """Twelve copies of a file on a storage that is not local."""
    storage = open_storage(f"memory://{tmp_path.name}")
    store = fsspec.filesystem("memory")
    content = (tmp_path / numbers.path).read_bytes()
    for i in range(12):
        store.pipe_file(f"/{tmp_path.name}/{i}.parquet", content)
    yield storage, [replace(numbers, path=f"{i}.parquet") for i in range(12)]
    store.rm(f"/{tmp_path.name}", recursive=True)


def test_remote_files_come_in_order_though_opened_ahead(remote: tuple[Storage, list[FileSlice]]) -> None:
    storage, slices = remote
    plan = ReadPlan(table=storage.url, version=0, schema=X, metadata_columns=("file_name",))
    found = pa.Table.from_batches(read_slices(storage, plan, slices, 130))
    assert values(found) == list(range(1000)) * 12
    assert [m["file_name"] for m in found["_metadata"].to_pylist()[::1000]] == [s.path for s in slices]


def test_remote_error_comes_at_its_turn_and_reading_may_stop_early(
    remote: tuple[Storage, list[FileSlice]],
) -> None:
    storage, slices = remote
    plan = ReadPlan(table=storage.url, version=0, schema=X)
    slices[3] = FileSlice("gone.parquet", 10)
    batches = read_slices(storage, plan, slices)
    with pytest.raises(DataFileError, match=r"gone\.parquet"):
        for count, batch in enumerate(batches, start=1):
            assert count * batch.num_rows <= 3000
    assert count == 30  # one batch per row group
    batches = read_slices(storage, plan, slices)
    assert next(batches).num_rows == 100
    batches.close()


def test_plan_and_slices_travel_to_executors(numbers: FileSlice) -> None:
    plan = ReadPlan(table="t", version=0, schema=X, extra=schema_of(y=INTEGER))
    assert pickle.loads(pickle.dumps((plan, numbers))) == (plan, numbers)


def test_reading_imports_neither_pandas_nor_dataset(tmp_path: Path, numbers: FileSlice) -> None:
    program = f"""
import sys
from delta_ds.kernel.format.values import deletion_vector
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.format.schema.types import *
from delta_ds.kernel.storage.open import open_storage
types = {{"x": DecimalType(22, 2), "p": TIMESTAMP, "n": STRING}}
schema = StructType(tuple(StructField(name, kind) for name, kind in types.items()))
fields = ("file_path", "row_index", "row_id")
plan = ReadPlan("t", 0, schema, ("p",), timezone="Asia/Tokyo", metadata_columns=fields)
vector = deletion_vector.inline(range(5))
piece = FileSlice("a.parquet", {numbers.size}, 0, None, ("2024-01-01 00:00:00",), vector, 5)
table = [b for b in read_slices(open_storage({str(tmp_path)!r}), plan, [piece])]
heavy = ("pandas", "pyarrow.dataset", "pyarrow.acero", "sqlglot", "fsspec", "pyspark")
print([name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
