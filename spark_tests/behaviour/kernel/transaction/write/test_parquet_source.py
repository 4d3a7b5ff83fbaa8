"""Rows of Parquet files: those of its splits together are those of the file, and doubtful files are refused."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.transaction.write.parquet_files import NotPlainError, ParquetColumns, Split, SplitRows
from spark_tests.full_form import examples

TYPES = (
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(),
    pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.decimal128(9, 2), pa.decimal128(38, 10),
)  # fmt: skip
VALUES = (
    True, 1, 2, 3, 4, 1.5, float("nan"), "text", b"bytes", datetime.date(1500, 1, 2),
    datetime.datetime(1600, 1, 2, tzinfo=datetime.timezone.utc), datetime.datetime(2024, 1, 2), Decimal("1.25"),
    Decimal("-7.5"),
)  # fmt: skip


def read(
    path: Path, schema: pa.Schema, splits: list[Split], sources: tuple[str, ...] | None = None
) -> pa.Table:
    storage = open_storage(path.parent)
    columns = ParquetColumns(schema_from_arrow(schema), sources or tuple(schema.names))
    rows = SplitRows(storage, columns, splits)
    return pa.Table.from_batches(list(rows), schema)


def whole(path: Path) -> Split:
    size = path.stat().st_size
    return Split(path.name, 0, size, size)


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_splits_that_tile_a_file_hold_each_row_once_and_in_order(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = data.draw(st.integers(1, 40))
    chosen = data.draw(st.lists(st.sampled_from(range(len(TYPES))), min_size=1, unique=True))
    columns = {
        f"c{n}": pa.array(
            [
                VALUES[n] if there else None
                for there in data.draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
            ],
            TYPES[n],
        )
        for n in chosen
    }
    table = pa.table({"row": pa.array(range(rows), pa.int64()), **columns})
    path = tmp_path_factory.mktemp("split") / "f.parquet"
    pq.write_table(
        table,
        path,
        row_group_size=data.draw(st.integers(1, rows)),
        use_deprecated_int96_timestamps=data.draw(st.booleans())
        and pa.timestamp("us") not in table.schema.types,
        store_schema=data.draw(st.booleans()),
    )
    size = path.stat().st_size
    cuts = sorted({0, size, *data.draw(st.lists(st.integers(0, size), max_size=4))})
    splits = [
        Split("f.parquet", start, end - start, size) for start, end in zip(cuts, cuts[1:], strict=False)
    ]
    columns_of = ParquetColumns(schema_from_arrow(table.schema), tuple(table.schema.names))
    found = SplitRows(open_storage(path.parent), columns_of, splits)
    assert repr(pa.Table.from_batches(list(found), table.schema).to_pylist()) == repr(table.to_pylist())
    assert found.rows == {"f.parquet": (rows, rows)}


def test_columns_are_taken_by_their_names_and_missing_ones_are_null(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"a": [1, 2], "s": [{"x": 1}, {"x": 2}], "b": ["x", "y"]}), path)
    wanted = pa.schema([("one", pa.string()), ("none", pa.int32()), ("two", pa.int64())])
    found = read(path, wanted, [whole(path)], ("b", "c", "a"))
    assert found.to_pylist() == [{"one": "x", "none": None, "two": 1}, {"one": "y", "none": None, "two": 2}]


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.large_string(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "UTC")),
    ],
    ids=str,
)
def test_what_only_arrow_tells_apart_is_the_same(
    tmp_path: Path, stored: pa.DataType, wanted: pa.DataType
) -> None:
    path = tmp_path / "f.parquet"
    value: Any = datetime.datetime(2024, 1, 2) if pa.types.is_timestamp(stored) else b"x"
    pq.write_table(pa.table({"a": pa.array([value, None]).cast(stored)}), path)
    assert read(path, pa.schema([("a", wanted)]), [whole(path)]).num_rows == 2


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.array([1], pa.int32()), pa.int64()),
        (pa.array([1], pa.uint32()), pa.int64()),
        (pa.array(["x"]).dictionary_encode(), pa.string()),
        (pa.array([b"x"]), pa.string()),
        (pa.array([datetime.datetime(2024, 1, 2)], pa.timestamp("ms", "UTC")), pa.timestamp("us", "UTC")),
        (pa.array([datetime.datetime(2024, 1, 2)], pa.timestamp("us")), pa.timestamp("us", "UTC")),
        (pa.array([datetime.datetime(2024, 1, 2)], pa.timestamp("us", "UTC")), pa.timestamp("us")),
        (pa.array([Decimal("1.5")], pa.decimal128(5, 1)), pa.decimal128(6, 1)),
        (pa.array([[1]]), pa.int64()),
        (pa.array([{"a": 1}]), pa.int64()),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_other_types_are_left_to_other_readers(tmp_path: Path, stored: pa.Array, wanted: pa.DataType) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"a": stored}), path, version="2.6")
    with pytest.raises(NotPlainError, match="column a is stored as"):
        read(path, pa.schema([("a", wanted)]), [whole(path)])


@pytest.mark.parametrize("names", [["A"], ["a", "A"]])
def test_names_in_another_case_are_left_to_other_readers(tmp_path: Path, names: list[str]) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1])] * len(names), names), path)
    with pytest.raises(NotPlainError, match="spelled otherwise"):
        read(path, pa.schema([("a", pa.int64())]), [whole(path)])


@pytest.mark.parametrize(
    "footer",
    [
        {"org.apache.spark.version": "2.4.5"},
        {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""},
        {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyINT96": ""},
    ],
)
def test_files_of_an_old_calendar_are_left_to_other_readers(tmp_path: Path, footer: dict[str, str]) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata(footer), path)
    with pytest.raises(NotPlainError, match="calendar"):
        read(path, pa.schema([("a", pa.int64())]), [whole(path)])


@pytest.mark.parametrize("content", [b"", b"PAR1 this is no Parquet file", None])
def test_files_that_cannot_be_read_are_left_to_other_readers(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "f.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(NotPlainError, match=r"f\.parquet: "):
        read(path, pa.schema([("a", pa.int64())]), [Split("f.parquet", 0, 10, 10)])


def test_errors_of_whoever_takes_the_rows_stay_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    schema = schema_from_arrow(pa.schema([("a", pa.int64())]))
    with pytest.raises(OSError, match="full"):
        for _ in SplitRows(open_storage(tmp_path), ParquetColumns(schema, ("a",)), [whole(path)]):
            raise OSError("the disk is full")
