"""Deletion vectors: their descriptors, files and bitmaps; read, and written several to a file.

A deletion vector is a 64-bit Roaring bitmap of 0-based physical row positions, inline in the log (Z85)
or in a `.bin` file that may hold several. Source: PROTOCOL.md, "Deletion Vectors" (protocol-checklist section 19).
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

import numpy as np

from delta_ds.conditions.data import (
    CANNOT_RECONSTRUCT_PATH_FROM_URI,
    DELETION_VECTOR_CHECKSUM_MISMATCH,
    DELETION_VECTOR_NOT_EXIST,
)
from delta_ds.exceptions import DataFileError, DeltaError
from delta_ds.kernel.format.actions import DeletionVector, without_nulls
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

    from delta_ds.kernel.storage.filesystem import Storage

    Positions = npt.NDArray[np.uint64]

MAGIC = 1681511377
FILE_VERSION = 1
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_Z85_VALUES = {character: value for value, character in enumerate(_Z85)}
_UUID_LENGTH = 20  # 16 bytes in Z85


@dataclass(frozen=True, slots=True)
class DeletionVectorDescriptor:
    """The `deletionVector` of an add or remove action.

    `storage_type` is `u` (file named by a UUID), `p` (file at an absolute path) or `i` (inline);
    `offset` and `size_in_bytes` locate the bitmap in its file; `cardinality` counts its rows, None where its writer
    left that out.
    """

    storage_type: str
    path_or_inline: str
    offset: int | None
    size_in_bytes: int
    cardinality: int | None

    @property
    def path(self) -> str | None:
        """The URI-encoded path of the file, relative to the table root or absolute; None if inline.

        Raises
        ------
        DataFileError
            The storage type is unknown or the UUID is not one.
        """
        if self.storage_type == "i":
            return None
        if self.storage_type == "p":
            return self.path_or_inline
        if self.storage_type != "u":
            raise CANNOT_RECONSTRUCT_PATH_FROM_URI(storage_type=self.storage_type)
        prefix, encoded = self.path_or_inline[:-_UUID_LENGTH], self.path_or_inline[-_UUID_LENGTH:]
        decoded = z85_decode(encoded)
        if len(decoded) != 16:
            raise DataFileError(f"the deletion vector id {self.path_or_inline!r} holds no UUID")
        directory = f"{prefix}/" if prefix else ""
        return quote(f"{directory}deletion_vector_{UUID(bytes=decoded)}.bin")


def z85_encode(data: bytes) -> str:
    """Z85 text of bytes, padded with zero bytes to a multiple of four (DV-R-06)."""
    padded = data + bytes(-len(data) % 4)
    out: list[str] = []
    for (word,) in struct.iter_unpack(">I", padded):
        out.extend(_Z85[word // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return "".join(out)


def z85_decode(text: str) -> bytes:
    """Bytes of a Z85 text, padding included.

    Raises
    ------
    DataFileError
        The text's length is no multiple of five, or it holds a character outside Z85.
    """
    if len(text) % 5:
        raise DataFileError(f"Z85 text of {len(text)} characters; it must be a multiple of 5")
    try:
        digits = np.array([_Z85_VALUES[character] for character in text], np.uint64).reshape(-1, 5)
    except KeyError as error:
        raise DataFileError(f"{error.args[0]!r} is not a character of Z85") from error
    words = digits @ np.array([85**power for power in (4, 3, 2, 1, 0)], np.uint64)
    # The last group may exceed 32 bits where a writer padded it with other than zeros; as in Java it wraps,
    # and the caller cuts off the padding. Content is protected by size, magic and cardinality.
    return words.astype(">u4").tobytes()


def read_positions(
    storage: Storage, descriptor: DeletionVectorDescriptor, rows: int | None = None
) -> Positions:
    """Read the deleted row positions of a data file.

    Parameters
    ----------
    storage
        The table's storage, which opens relative and absolute paths.
    descriptor
        The `deletionVector` of the file's action.
    rows
        How many rows the data file has, where that is known: no others can be deleted in it.

    Returns
    -------
    np.ndarray
        uint64 0-based physical row positions, ascending and distinct.

    Raises
    ------
    DataFileError
        The vector is missing, truncated, has another size, checksum, magic number or cardinality.

    Source: protocol-checklist DV-R-04 to DV-R-08.
    """
    where = f"inline deletion vector of table {storage.url}"
    try:
        path = descriptor.path
        if path is None:
            payload = z85_decode(descriptor.path_or_inline)[: descriptor.size_in_bytes]
            _check(len(payload) == descriptor.size_in_bytes, "is shorter than its sizeInBytes")
        else:
            where = f"deletion vector file {path} of table {storage.url}"
            payload = _read_file(storage, path, descriptor)
        return decode(payload, descriptor.cardinality, rows)
    except FileNotFoundError as error:
        raise DELETION_VECTOR_NOT_EXIST(
            where=where, path=descriptor.path_or_inline, table=storage.url
        ) from error
    except (DataFileError, OSError) as error:
        text = error.text if isinstance(error, DeltaError) else str(error)
        raise DELETION_VECTOR_CHECKSUM_MISMATCH(
            where=where,
            offset=descriptor.offset,
            text=text,
            path=descriptor.path_or_inline,
            table=storage.url,
        ) from error


def _read_file(storage: Storage, path: str, descriptor: DeletionVectorDescriptor) -> bytes:
    offset, size = descriptor.offset or 0, descriptor.size_in_bytes
    _check(offset >= 0 and size >= 0, f"has the impossible offset {offset} or size {size}")
    # The common vector starts right after the version byte, which then costs no request of its own.
    lead = 1 if offset == 1 else 0
    data = storage.read_range(storage.resolve(path), offset - lead, lead + size + 8)
    _check(len(data) == lead + size + 8, f"ends {lead + size + 8 - len(data)} bytes early")
    _check(not lead or data[0] == FILE_VERSION, f"has format version {data[0]}, only {FILE_VERSION} is known")
    (stored,) = struct.unpack_from(">i", data, lead)
    _check(stored == size, f"stores a vector of {stored} bytes, the log says {size}")
    payload = data[lead + 4 : lead + 4 + size]
    (checksum,) = struct.unpack_from(">I", data, lead + 4 + size)
    _check(checksum == zlib.crc32(payload), "does not match its CRC-32 checksum")
    return payload


def decode(payload: bytes, cardinality: int | None = None, rows: int | None = None) -> Positions:
    """Positions of a serialized bitmap, ascending; checks magic number and, if given, that there are so many.

    Parameters
    ----------
    cardinality
        How many there must be.
    rows
        How many rows there are: all positions are below.
    """
    from pyroaring import BitMap64

    _check(len(payload) >= 12, f"holds {len(payload)} bytes, too few for a bitmap")
    (magic,) = struct.unpack_from("<I", payload)
    _check(magic == MAGIC, f"starts with magic number {magic}, not {MAGIC}")
    try:
        bitmap = BitMap64.deserialize(payload[4:])
    except ValueError as error:
        raise DataFileError("holds no valid Roaring bitmap") from error
    # Before they are laid out: few bytes can stand for more positions than fit into memory.
    count = len(bitmap)
    _check(
        cardinality is None or count == cardinality, f"holds {count} positions, the log says {cardinality}"
    )
    _check(rows is None or count <= rows, f"deletes {count} rows of a file that has {rows}")
    positions: Positions = np.frombuffer(bitmap.to_array(), np.uint64)
    _check(
        len(positions) == count and bool((positions[1:] > positions[:-1]).all()),
        "holds positions out of order",
    )
    _check(
        rows is None or not count or positions[-1] < rows,
        f"deletes row {positions[-1] if count else 0} of a file that has {rows}, so it is that of another file",
    )
    return positions


def encode(positions: npt.ArrayLike) -> bytes:
    """The serialized bitmap (magic number and portable 64-bit Roaring) of row positions in any order."""
    from pyroaring import BitMap64

    bitmap = BitMap64(np.asarray(positions, np.uint64))
    bitmap.run_optimize()
    serialized: bytes = bitmap.serialize()
    return struct.pack("<I", MAGIC) + serialized


def inline(positions: npt.ArrayLike) -> DeletionVectorDescriptor:
    """A descriptor that carries the positions itself."""
    payload = encode(positions)
    return DeletionVectorDescriptor("i", z85_encode(payload), None, len(payload), len(np.unique(positions)))


def encode_file(payloads: Sequence[bytes]) -> tuple[bytes, list[int]]:
    """The bytes of a `.bin` file with several serialized bitmaps, and the offset of each (DV-R-07)."""
    out, offsets = bytearray([FILE_VERSION]), []
    for payload in payloads:
        offsets.append(len(out))
        out += struct.pack(">i", len(payload)) + payload + struct.pack(">I", zlib.crc32(payload))
    return bytes(out), offsets


def _check(condition: Any, text: str) -> None:
    if not condition:
        raise DataFileError(f"it {text}")


# As delta-spark packs them: deletionVectors.packing.targetSize.
_TARGET_BYTES = 2 << 20


def merge_positions(
    storage: Storage, before: DeletionVectorDescriptor | None, positions: Positions, rows: int
) -> Positions:
    """The rows of a file that are deleted once more of them are.

    Parameters
    ----------
    storage
        The table's.
    before
        What deletes rows of the file already.
    positions
        uint64 row positions, in any order.
    rows
        How many rows the file has.

    Returns
    -------
    np.ndarray
        uint64, ascending and distinct.

    Raises
    ------
    DataFileError
        As `read_positions`.
    """
    if before is None:
        return np.unique(positions)
    return np.union1d(read_positions(storage, before, rows), positions)


def write_vectors(
    storage: Storage, deleted: Mapping[str, Positions], written: list[str]
) -> dict[str, DeletionVectorDescriptor]:
    """Write deletion vectors to new files at the root of the table.

    Parameters
    ----------
    storage
        The table's.
    deleted
        By data file, the positions that are deleted in it: distinct.
    written
        Empty; gets the path of each file, relative to the table, before it is written.

    Returns
    -------
    dict
        The descriptors, by data file.

    Raises
    ------
    StorageError
        A file cannot be written; `written` has what has to be deleted.
    """
    found: dict[str, DeletionVectorDescriptor] = {}
    for keys, payloads in _pack_vectors(deleted):
        name = uuid.uuid4()
        data, offsets = encode_file(payloads)
        path = f"deletion_vector_{name}.bin"
        written.append(path)
        # Under its own name from the start, which nothing refers to yet: what a crash leaves, VACUUM finds.
        with storage.open_output(storage.resolve(path)) as output:
            output.write(data)
        identity = z85_encode(name.bytes)
        for key, payload, offset in zip(keys, payloads, offsets, strict=True):
            found[key] = DeletionVectorDescriptor("u", identity, offset, len(payload), len(deleted[key]))
    storage.fsync([storage.resolve(path) for path in written])
    return found


def _pack_vectors(deleted: Mapping[str, Positions]) -> Iterator[tuple[list[str], Sequence[bytes]]]:
    keys: list[str] = []
    payloads: list[bytes] = []
    size = 0
    for key, positions in deleted.items():
        payload = encode(positions)
        keys.append(key)
        payloads.append(payload)
        size += len(payload)
        if size >= _TARGET_BYTES:
            yield keys, payloads
            keys, payloads, size = [], [], 0
    if keys:
        yield keys, payloads


def as_action(descriptor: DeletionVectorDescriptor) -> DeletionVector:
    """The descriptor as an action has it."""
    body: DeletionVector = {
        "storageType": descriptor.storage_type,
        "pathOrInlineDv": descriptor.path_or_inline,
        "offset": descriptor.offset,
        "sizeInBytes": descriptor.size_in_bytes,
        "cardinality": descriptor.cardinality,
    }
    return without_nulls(body)
