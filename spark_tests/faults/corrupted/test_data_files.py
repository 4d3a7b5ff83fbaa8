"""Data files and deletion vectors that are gone, damaged, or lie where a table must not reach."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds.exceptions import DataFileError, DeltaError, StorageError
from delta_ds.kernel.format.values import deletion_vector
from delta_ds.testing import TableBuilder
from spark_tests.faults.corrupted.tables import (
    IDS,
    add_line,
    assert_read_or_refused,
    assert_refused,
    read_ids,
    rows,
)


def data_file(table: TableBuilder) -> Path:
    return sorted(table.path.glob("part-*.parquet"))[0]


def test_missing_data_file_is_named(table: TableBuilder) -> None:
    file = data_file(table)
    file.unlink()
    error = assert_refused(table, DataFileError, match=file.name)
    assert error.condition == "FAILED_READ_FILE.FILE_NOT_EXIST"
    assert "VACUUM" in str(error)


@pytest.mark.parametrize("keep", [0, 1, 4, 100, -1, -8])
def test_cut_data_file_is_refused_and_named(table: TableBuilder, keep: int) -> None:
    file = data_file(table)
    file.write_bytes(file.read_bytes()[:keep])
    assert_refused(table, DataFileError, match=file.name)


@pytest.mark.parametrize("content", [b"garbage", b"PAR1" * 10, b"PAR1" + b"\xff" * 100 + b"PAR1"])
def test_garbage_in_a_data_file_is_refused(table: TableBuilder, content: bytes) -> None:
    data_file(table).write_bytes(content)
    assert_refused(table, DataFileError)


def test_folder_in_place_of_a_data_file_is_refused(table: TableBuilder) -> None:
    data_file(table).unlink()
    data_file_again = table.path / "folder.parquet"
    data_file_again.mkdir()
    add = add_line(table, 7)
    add["add"]["path"] = data_file_again.name
    table.commit(add)
    assert_refused(table, DataFileError)


def test_column_of_another_kind_in_a_data_file_is_refused(table: TableBuilder) -> None:
    pq.write_table(pa.table({"id": ["seven"], "name": ["x"]}), table.path / "odd.parquet")
    add = add_line(table, 7)
    add["add"]["path"] = "odd.parquet"
    table.commit(add)
    assert_refused(table)


def test_data_file_that_lacks_a_column_gives_nulls(table: TableBuilder) -> None:
    table.append(pa.table({"id": [7]}))
    assert read_ids(table) == [*IDS, 7]


@pytest.mark.parametrize("size", [1, 10**12])
def test_size_that_is_not_the_files_never_changes_rows(table: TableBuilder, size: int) -> None:
    add = add_line(table, 7)
    add["add"]["size"] = size
    table.commit(add)
    assert_read_or_refused(table, [*IDS, 7])


ESCAPES = (
    "../secret.parquet", "../../etc/passwd", "%2e%2e/secret.parquet", "..%2fsecret.parquet",
    "%2e%2e%2fsecret.parquet", "a/../../secret.parquet", "./../secret.parquet",
    "a/%2e%2e/%2e%2e/secret.parquet", "..", ".",
)  # fmt: skip


@pytest.mark.parametrize("path", ESCAPES)
def test_path_that_leaves_the_table_is_not_followed(table: TableBuilder, path: str) -> None:
    pq.write_table(rows(666), table.path.parent / "secret.parquet")
    add = add_line(table, 7)
    add["add"]["path"] = path
    table.commit(add)
    assert_refused(table, StorageError, DataFileError)


def test_path_that_is_encoded_twice_is_decoded_once(table: TableBuilder) -> None:
    pq.write_table(rows(666), table.path.parent / "secret.parquet")
    add = add_line(table, 7)
    add["add"]["path"] = "%252e%252e/secret.parquet"
    table.commit(add)
    assert_refused(table, DataFileError)


@pytest.mark.parametrize(
    "path",
    [
        "s3://bucket/x.parquet",
        "http://localhost/x",
        "file://elsewhere/x",
        "memory://x",
        "ftp:/x",
        "a%00b",
        "%ff%fe",
    ],
)
def test_path_on_another_store_is_not_followed(table: TableBuilder, path: str) -> None:
    add = add_line(table, 7)
    add["add"]["path"] = path
    table.commit(add)
    assert_refused(table, StorageError)


def test_absolute_path_on_the_same_store_is_read(table: TableBuilder) -> None:
    file = table.path.parent / "cloned from.parquet"
    pq.write_table(rows(7), file)
    add = add_line(table, 7)
    add["add"]["path"] = "file://" + quote(str(file))
    table.commit(add)
    assert read_ids(table) == [*IDS, 7]


@pytest.mark.parametrize("name", ["100%", "a%zz", "ü b", "a+b", "a?b#c", "a:b", "C=1:2", "~", "-", "..."])
def test_odd_file_names_are_read(table: TableBuilder, name: str) -> None:
    table.append(rows(7), path=f"{name}.parquet")
    assert read_ids(table) == [*IDS, 7]


Damage = Callable[[bytes], bytes]
DAMAGED_FILES: dict[str, Damage] = {
    "checksum": lambda b: b[:-1] + bytes([b[-1] ^ 1]),
    "payload": lambda b: b[:20] + bytes([b[20] ^ 1]) + b[21:],
    "magic": lambda b: b[:5] + bytes([b[5] ^ 1]) + b[6:],
    "stored size": lambda b: b[:4] + bytes([b[4] ^ 1]) + b[5:],
    "format version": lambda b: b"\x02" + b[1:],
    "cut": lambda b: b[:-6],
    "cut in the size": lambda b: b[:3],
    "empty": lambda b: b"",
}


@pytest.mark.parametrize("damage", DAMAGED_FILES)
def test_damaged_deletion_vector_file_is_refused(table: TableBuilder, damage: str) -> None:
    file = delete_second_row(table)
    file.write_bytes(DAMAGED_FILES[damage](file.read_bytes()))
    assert_refused(table, DataFileError, match=file.stem)


def test_deletion_vector_with_wrong_magic_and_right_checksum_is_refused(table: TableBuilder) -> None:
    payload = bytearray(deletion_vector.encode([1]))
    payload[0] ^= 1
    content, _ = deletion_vector.encode_file([bytes(payload)])
    delete_second_row(table).write_bytes(content)
    assert_refused(table, DataFileError, match="magic")


def test_missing_deletion_vector_is_named(table: TableBuilder) -> None:
    file = delete_second_row(table)
    file.unlink()
    error = assert_refused(table, DataFileError, match=file.stem)
    assert error.condition == "FAILED_READ_FILE.FILE_NOT_EXIST"


DESCRIPTORS: dict[str, dict[str, Any]] = {
    "cardinality too large": {"cardinality": 2},
    "cardinality zero": {"cardinality": 0},
    "cardinality negative": {"cardinality": -1},
    "size too small": {"sizeInBytes": 20},
    "size too large": {"sizeInBytes": 2**31 - 1},
    "size negative": {"sizeInBytes": -4},
    "offset too large": {"offset": 10_000},
    "offset negative": {"offset": -1},
    "unknown storage type": {"storageType": "x"},
    "no storage type": {"storageType": None},
    "no path": {"pathOrInlineDv": None},
    "id too short": {"pathOrInlineDv": "abc"},
    "id outside of Z85": {"pathOrInlineDv": "~" * 20},
    "inline with no bitmap in it": {"storageType": "i", "offset": None},
    "inline that is empty": {"storageType": "i", "pathOrInlineDv": "", "sizeInBytes": 0, "offset": None},
    "another store": {"storageType": "p", "pathOrInlineDv": "s3://bucket/dv.bin"},
    "path that leaves the table": {"storageType": "p", "pathOrInlineDv": "../dv.bin"},
    "prefix that leaves the table": {"pathOrInlineDv": "../x" + "0" * 20},
}


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_deletion_vector_that_is_not_what_the_log_says_is_refused(table: TableBuilder, name: str) -> None:
    add = add_line(table, 7, 8)
    vector = {**table.deletion_vector([1]), **DESCRIPTORS[name]}
    add["add"]["deletionVector"] = vector
    table.commit(add)
    assert_refused(table, DeltaError)


@pytest.mark.parametrize("storage", ["u", "p", "i"])
def test_deletion_vector_of_every_storage_hides_its_rows(table: TableBuilder, storage: str) -> None:
    add = add_line(table, 7, 8, 9)
    table.commit(add)
    table.delete_rows(add, [0, 2], storage)
    assert read_ids(table) == [*IDS, 8]


def test_positions_beyond_the_file_hide_nothing_more(table: TableBuilder) -> None:
    add = add_line(table, 7, 8)
    table.commit(add)
    table.delete_rows(add, [1, 2**40])
    assert_read_or_refused(table, [*IDS, 7])


def delete_second_row(table: TableBuilder) -> Path:
    """Delete a row by a deletion vector and return the vector's file."""
    add = add_line(table, 7, 8)
    table.commit(add)
    table.delete_rows(add, [1])
    (file,) = table.path.glob("deletion_vector_*.bin")
    return file
