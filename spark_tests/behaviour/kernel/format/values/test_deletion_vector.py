"""Deletion vectors: protocol vectors, damage, and the way back."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from delta_ds.exceptions import DataFileError, StorageError
from delta_ds.kernel.format.values.deletion_vector import (
    MAGIC,
    DeletionVectorDescriptor,
    decode,
    encode,
    encode_file,
    inline,
    read_positions,
    z85_decode,
    z85_encode,
)  # fmt: skip
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage
from spark_tests.full_form import examples

ROWS = [3, 4, 7, 11, 18, 29]
PAYLOAD = bytes.fromhex(
    "d1d339640100000000000000000000003a3000000100000000000500100000000300040007000b0012001d00"
)
INLINE = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
ON_DISK = DeletionVectorDescriptor("u", ")U5k>1H?2ZURw+xNho[P", 1, 44, 6)
FILE = "deletion_vector_ee84bc6f-04b7-4b36-b031-4a9f991772ba.bin"
FILE_BYTES = b"\x01" + struct.pack(">i", 44) + PAYLOAD + bytes.fromhex("acd74a79")


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path))


def test_inline_vector_of_the_protocol_is_read(storage: Storage) -> None:
    assert read_positions(storage, DeletionVectorDescriptor("i", INLINE, None, 44, 6)).tolist() == ROWS


def test_file_vector_of_spark_is_read(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(FILE_BYTES)
    positions = read_positions(storage, ON_DISK)
    assert positions.tolist() == ROWS
    assert positions.dtype == np.uint64


def test_absolute_path_is_decoded_once(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "a b%20.bin").write_bytes(FILE_BYTES)
    path = f"file://{tmp_path}/a%20b%2520.bin"
    assert read_positions(storage, DeletionVectorDescriptor("p", path, 1, 44, 6)).tolist() == ROWS


def test_uuid_path_has_its_prefix_as_folder() -> None:
    descriptor = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6)
    assert descriptor.path == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (FILE_BYTES[:-1], "ends 1 bytes early"),
        (FILE_BYTES[:3], "early"),
        (b"", "early"),
        (b"\x02" + FILE_BYTES[1:], "format version 2"),
        (FILE_BYTES[:-1] + b"\0", "CRC-32"),
        (FILE_BYTES[:20] + b"\xff" + FILE_BYTES[21:], "CRC-32"),
        (b"\x01" + struct.pack(">i", 43) + FILE_BYTES[5:], "43 bytes, the log says 44"),
    ],
)
def test_damaged_file_is_named_with_its_table(
    storage: Storage, tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(DataFileError, match=said) as caught:
        read_positions(storage, ON_DISK)
    assert FILE in str(caught.value)
    assert storage.url in str(caught.value)


def test_missing_file_names_vacuum_as_the_likely_cause(storage: Storage) -> None:
    with pytest.raises(DataFileError, match="VACUUM") as caught:
        read_positions(storage, ON_DISK)
    assert caught.value.condition == "FAILED_READ_FILE.FILE_NOT_EXIST"


@pytest.mark.parametrize(
    ("descriptor", "said"),
    [
        (DeletionVectorDescriptor("i", INLINE, None, 44, 5), "holds 6 positions, the log says 5"),
        (DeletionVectorDescriptor("i", INLINE, None, 48, 6), "shorter than its sizeInBytes"),
        (DeletionVectorDescriptor("i", INLINE[:-1], None, 40, 6), "multiple of 5"),
        (DeletionVectorDescriptor("i", INLINE[:-1] + '"', None, 44, 6), "not a character of Z85"),
        (
            DeletionVectorDescriptor("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", None, 40, 6),
            "magic",
        ),
        (DeletionVectorDescriptor("i", "", None, 0, 0), "too few"),
        (DeletionVectorDescriptor("x", INLINE, None, 44, 6), "storage type 'x'"),
        (DeletionVectorDescriptor("u", "short", 1, 44, 6), "UUID"),
        (DeletionVectorDescriptor("u", ON_DISK.path_or_inline, -5, 44, 6), "impossible offset"),
    ],
)
def test_impossible_descriptor_is_refused(
    storage: Storage, descriptor: DeletionVectorDescriptor, said: str
) -> None:
    with pytest.raises(DataFileError, match=said):
        read_positions(storage, descriptor)


def test_prefix_that_leaves_the_table_is_refused(storage: Storage) -> None:
    with pytest.raises(StorageError):
        read_positions(storage, DeletionVectorDescriptor("u", "../../x" + ON_DISK.path_or_inline, 1, 44, 6))


@pytest.mark.parametrize("cut", range(12, len(PAYLOAD) - 1))
def test_every_truncation_of_a_bitmap_is_refused(cut: int) -> None:
    with pytest.raises(DataFileError):
        decode(PAYLOAD[:cut], 6)


@given(st.lists(st.integers(0, 2**40), max_size=200))
def test_positions_survive_encoding(rows: list[int]) -> None:
    assert decode(encode(rows)).tolist() == sorted(set(rows))


@given(st.binary(max_size=64))
def test_bytes_survive_z85(data: bytes) -> None:
    assert z85_decode(z85_encode(data))[: len(data)] == data


def test_file_of_several_vectors_gives_each_at_its_offset(storage: Storage, tmp_path: Path) -> None:
    rows = [[1], list(range(100_000)), [2**33, 5]]
    payloads = [encode(r) for r in rows]
    content, offsets = encode_file(payloads)
    (tmp_path / "v.bin").write_bytes(content)
    for wanted, payload, offset in zip(rows, payloads, offsets, strict=True):
        descriptor = DeletionVectorDescriptor("p", f"{tmp_path}/v.bin", offset, len(payload), len(wanted))
        assert read_positions(storage, descriptor).tolist() == sorted(wanted)


def test_file_encoding_is_that_of_spark() -> None:
    assert zlib.crc32(PAYLOAD) == 0xACD74A79
    assert encode_file([PAYLOAD]) == (FILE_BYTES, [1])


def test_inline_descriptor_is_read_back(storage: Storage) -> None:
    descriptor = inline([9, 1, 9])
    assert descriptor.cardinality == 2
    assert read_positions(storage, descriptor).tolist() == [1, 9]


def bomb(positions: int) -> bytes:
    """A few bytes that stand for very many positions."""
    bitmap = BitMap64()
    bitmap.add_range(0, positions)
    bitmap.run_optimize()
    return struct.pack("<I", MAGIC) + bytes(bitmap.serialize())


def test_more_positions_than_the_log_says_are_never_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "frombuffer", lambda *_: pytest.fail("positions were laid out"))
    with pytest.raises(DataFileError, match="holds 1073741824 positions, the log says 1"):
        decode(bomb(1 << 30), 1)


def test_more_positions_than_the_file_has_rows_are_never_laid_out(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = bomb(1 << 24)
    vector = DeletionVectorDescriptor("i", z85_encode(payload), None, len(payload), 1 << 24)
    for honest in (vector, replace(vector, cardinality=None)):  # type: ignore[arg-type]
        with pytest.raises(DataFileError, match="deletes 16777216 rows of a file that has 5"):
            read_positions(storage, honest, 5)


def test_positions_are_those_of_rows_that_the_file_has(storage: Storage) -> None:
    assert read_positions(storage, inline([0, 2]), 3).tolist() == [0, 2]
    assert read_positions(storage, inline([]), 0).tolist() == []
    with pytest.raises(DataFileError, match="deletes row 3 of a file that has 3, so it is that of another"):
        read_positions(storage, inline([0, 3]), 3)


def test_a_size_beyond_the_file_sets_no_memory_aside(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(FILE_BYTES)
    tracemalloc.start()
    try:
        with pytest.raises(DataFileError, match="bytes early"):
            read_positions(storage, replace(ON_DISK, size_in_bytes=(1 << 31) - 1))
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(st.data())
def test_damaged_bitmaps_are_refused_or_ascending(data: st.DataObject) -> None:
    start = [encode([1, 5, 7]), encode(range(5000)), encode(range(0, 9000, 3)), bomb(1 << 20)]
    payload = bytearray(data.draw(st.sampled_from(start)))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(4, min(80, len(payload) - 1)))
        payload[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    try:
        positions = decode(bytes(payload), None, 1 << 21)
    except DataFileError:
        return
    assert (positions[1:] > positions[:-1]).all()
