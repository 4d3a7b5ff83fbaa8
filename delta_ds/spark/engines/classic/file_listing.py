"""The files of a `FileIndex` in directories, as Spark takes them, built in the JVM from one message.

A call from Python costs about 0.1 ms; with several a file, hundreds of thousands of files would take minutes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.base.arrow_buffers import integers, texts
from delta_ds.kernel.files.read.plan import vector_descriptor
from delta_ds.kernel.format.expressions.arrays import array_of
from delta_ds.kernel.format.schema.types import BINARY
from delta_ds.kernel.format.values.deletion_vector import read_positions
from delta_ds.kernel.log.live_files import with_known_sizes
from delta_ds.spark.engines.classic.hadoop import as_hadoop_opens

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from delta_ds.kernel.format.actions import DeletionVector
    from delta_ds.kernel.format.schema.types import StructField
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.spark.base.kinds.java_object import JavaObject, JavaValue


def list_files(
    listing: JavaObject,
    root: str,
    values: JavaObject,
    counts: npt.NDArray[np.int32],
    files: pa.Table,
    storage: Storage,
) -> JavaValue:
    """A `Seq[PartitionDirectory]`.

    Parameters
    ----------
    listing
        The `TableFiles` of the JVM.
    root
        The table's folder as Hadoop names it, ending in `/`.
    values
        `InternalRow[]`: the partition values of each directory.
    counts
        int32: how many files each directory has.
    files
        Live files in the order of the directories; `path`, `size`, `modificationTime` are used.
    storage
        The table's, which decodes paths.
    """
    # Spark reads nothing of a file without a size.
    files = with_known_sizes(storage, files)
    sizes, times = (
        np.ascontiguousarray(files[name].to_numpy(), np.int64) for name in ("size", "modificationTime")
    )
    message = b"".join(
        (
            struct.pack("<i", files.num_rows),
            counts.astype("<i4").tobytes(),
            sizes.astype("<i8").tobytes(),
            times.astype("<i8").tobytes(),
            path_bytes(files["path"], storage, root),
        )
    )
    return listing.list(root, values, message)


def path_bytes(paths: pa.ChunkedArray, storage: Storage, root: str) -> bytes:
    """Decoded paths, each with a NUL behind it: relative to the table, or `/` and an absolute address."""
    import pyarrow.compute as pc

    # What needs no decoding and is plainly below the table, as nearly all files are, is not looked at one by one.
    odd = pc.match_substring_regex(paths, r"[%:]|^\.*/|/\.|//|^\.|\\")
    if not pc.any(odd, min_count=0).as_py():
        if not len(paths):
            return b""
        return str(pc.binary_join(_one_list(paths), texts(["\0"])[0])[0].as_py()).encode() + b"\0"
    return b"".join(f"{_decode(path, storage, root)}\0".encode() for path in paths.to_pylist())


def _one_list(paths: pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    whole = paths.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks)
    offsets = integers([0, len(whole)])
    return pa.LargeListArray.from_arrays(offsets, whole)


def _decode(path: str, storage: Storage, root: str) -> str:
    found = storage.resolve(path)
    if found.startswith("/"):
        return f"/{storage.address.scheme}:{found}"
    from delta_ds.kernel.storage.uri import has_scheme

    if has_scheme(found):
        # As the log writes it: the kernel's canonical scheme need not be the one that Hadoop knows.
        return f"/{as_hadoop_opens(unquote(path), root)}"
    return found.removeprefix("./")


# --- files in directories, as Spark takes them: those that share all partition values are one


class FileGroups:
    """Files in directories: those that share all values share one.

    Attributes
    ----------
    rows
        int64 rows of live files, directory by directory.
    counts, starts
        int32, int64: files of each directory, and where in `rows` they begin.
    codes
        int64: the partition tuple of each directory.
    """

    def __init__(
        self, rows: npt.NDArray[np.int64], counts: npt.NDArray[np.int32], codes: npt.NDArray[np.int64]
    ) -> None:
        self.rows = rows
        self.counts = counts
        self.codes = codes
        self.starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])[:-1]

    def only(self, numbers: npt.NDArray[np.int64]) -> FileGroups:
        """Some of the directories, by ascending numbers."""
        chosen = np.zeros(len(self.counts), np.bool_)
        chosen[numbers] = True
        return FileGroups(
            self.rows[np.repeat(chosen, self.counts)], self.counts[numbers], self.codes[numbers]
        )


def group_files(codes: pa.Array, rows: pa.Array, alone: npt.NDArray[np.bool_] | None) -> FileGroups:
    """Files grouped by their partition tuple, in log order within one; those that stand alone by themselves."""
    numbers, code = np.asarray(rows, np.int64), np.asarray(codes, np.int64)
    if not len(numbers):
        return FileGroups(numbers, np.zeros(0, np.int32), code)
    single = np.zeros(len(code), np.int64)
    if alone is not None:
        single[alone] = np.arange(1, int(alone.sum()) + 1)
    order = np.lexsort((single, code))
    code, single = code[order], single[order]
    changes = np.flatnonzero((code[1:] != code[:-1]) | (single[1:] != single[:-1])) + 1
    starts = np.concatenate([np.zeros(1, np.int64), changes])
    counts = np.diff(np.append(starts, len(code))).astype(np.int32)
    return FileGroups(numbers[order], counts, code[starts])


# Columns of a scan that the table has not, each with one value for a file.
DELETED = "__pydelta_dv"
FILE_NUMBER = "__pydelta_file"
BASE_ROW_ID = "__pydelta_row_id"
ROW_VERSION = "__pydelta_row_version"


def hidden_values(
    live: pa.Table, rows: pa.Array, columns: Sequence[StructField], storage: Storage
) -> list[pa.Array]:
    """The values of columns that a scan has beside those of the table.

    Parameters
    ----------
    live, rows
        The live files of a version, and the rows of those that are asked for.
    columns
        Of those above.
    storage
        Of the table.
    """
    import pyarrow as pa

    found: list[pa.Array] = []
    for column in columns:
        if column.name == DELETED:
            vectors = live["deletionVector"].take(rows)
            found.append(array_of(bitmaps(storage, vectors.to_pylist()), BINARY))
        elif column.name == FILE_NUMBER:
            found.append(rows.cast(pa.int32()))
        else:
            name = "baseRowId" if column.name == BASE_ROW_ID else "defaultRowCommitVersion"
            found.append(live[name].take(rows))
    return found


def bitmaps(storage: Storage, vectors: Sequence[DeletionVector | None]) -> list[bytes | None]:
    """The deleted rows of files as a scan takes them: one bit a row up to the last, in 64-bit words.

    Raises
    ------
    DeltaError
        A row lies beyond what Spark's own reader can address.
    """
    found = (vector_descriptor(vector) for vector in vectors)
    return [None if vector is None else _bitmap(read_positions(storage, vector)) for vector in found]


def _bitmap(positions: npt.NDArray[np.uint64]) -> bytes | None:
    if not len(positions):
        return None
    last = int(positions[-1])
    if last >= 1 << 31:
        raise DeltaError(
            f"a deletion vector deletes row {last} of its file, beyond what Spark's own reader can address; read the "
            "table with spark.pydelta.nativeScan=false"
        )
    bits = np.zeros((last // 64 + 1) * 64, np.uint8)
    bits[positions.astype(np.int64)] = 1
    return np.packbits(bits, bitorder="little").tobytes()
