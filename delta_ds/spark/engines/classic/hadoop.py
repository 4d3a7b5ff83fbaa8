"""The folder of a table as the JVM opens it, by Hadoop's file systems; its files in directories, for a `FileIndex`.

These are built in the JVM from one message. A call from Python costs about 0.1 ms; with several a file, hundreds of
thousands of files would take minutes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import numpy as np

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.base.arrow_buffers import integers, texts
from delta_ds.kernel.files.read.plan import vector_descriptor
from delta_ds.kernel.format.expressions.arrays import array_of
from delta_ds.kernel.format.options.parsing import is_of_store
from delta_ds.kernel.format.schema.types import BINARY
from delta_ds.kernel.format.values.deletion_vector import read_positions
from delta_ds.kernel.log.live_files import with_known_sizes
from delta_ds.kernel.storage.store_options import is_hadoop_setting
from delta_ds.kernel.storage.uri import has_scheme, parse_address
from delta_ds.spark.base.session_conf import NATIVE_SCAN_CONF
from delta_ds.spark.engines.classic.jvm import Jvm, NotNative
from delta_ds.spark.engines.large_tables import is_large

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from delta_ds.kernel.format.actions import DeletionVector
    from delta_ds.kernel.format.schema.types import StructField
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.spark.base.kinds.java_object import JavaObject, JavaValue

_TIME_TRAVEL = re.compile(r"@([vV][0-9]{1,19}|[0-9]{17})$")


# What was found of a table's folder, once a JVM: what Hadoop has opened it keeps open, by the same settings.
_roots: WeakKeyDictionary[JavaObject, dict[str, str]] = WeakKeyDictionary()
# Spellings of one store, of which a Hadoop mostly knows one only.
_S3 = re.compile(r"^s3[an]?://", re.IGNORECASE)


def hadoop_root(jvm: Jvm, options: Mapping[str, str], path: str, *, new: bool = False) -> str | None:
    """The table's folder as Hadoop opens it; None for a local one.

    Parameters
    ----------
    options
        Of the read or write.
    path
        The table as the user names it.
    new
        Whether the table is yet to be made, so that there is no log to look for.

    Raises
    ------
    NotNative
        Spark's JVM cannot open the store: it lacks the file system's classes or the credentials.
    """
    if not has_scheme(path) or path.lower().startswith("file:"):
        return None
    given = [name for name in options if is_of_store(name) and not is_hadoop_setting(name)]
    if given:
        raise NotNative(f"the option {given[0]} is meant for Python's file system, not for Hadoop's")
    if parse_address(path).userinfo:
        raise NotNative("the address has a login, which is for Python's file system and not for plans")
    root = _TIME_TRAVEL.sub("", path).rstrip("/") + "/"
    known = _roots.setdefault(jvm.gateway, {})
    if root in known:
        return known[root]
    found = _find_root(jvm, root, new)
    if not new:
        known[root] = found
    return found


def _find_root(jvm: Jvm, root: str, new: bool) -> str:
    from py4j.protocol import Py4JError

    def problem(candidate: str) -> str | None:
        try:
            log = jvm.Path(f"{candidate}_delta_log")
            there = file_system(jvm, log).exists(log)
            return None if there or new else "it sees no _delta_log there"
        except Py4JError as error:
            cause = getattr(error, "java_exception", None)
            return str(cause.toString() if cause is not None else error).splitlines()[0]

    problems = []
    for candidate in dict.fromkeys((root, _S3.sub("s3a://", root))):
        found = problem(candidate)
        if found is None:
            return candidate
        problems.append(found)
    raise NotNative(f"Hadoop cannot open {root}: {'; '.join(dict.fromkeys(problems))}")


def as_hadoop_opens(address: str, root: str) -> str:
    """An absolute address of a log by the scheme that Hadoop knows the table's own folder by.

    >>> as_hadoop_opens("s3://bucket/t/a.parquet", "s3a://bucket/clone/")
    's3a://bucket/t/a.parquet'
    """
    scheme = _S3.match(root)
    return address if scheme is None else _S3.sub(scheme[0], address)


def file_system(jvm: Jvm, path: JavaObject) -> JavaValue:
    """Hadoop's file system of a path, as the session is configured."""
    return path.getFileSystem(jvm.spark._jsparkSession.sessionState().newHadoopConf())


def check_names(spark: SparkSession, snapshot: Snapshot) -> None:
    """Leave tables to the portable path whose files Hadoop cannot open on a local disk.

    It looks for a checksum beside each local file, and takes a colon in its name for a URI's. The files of large
    tables are not known yet: see `check_found_names`.

    Raises
    ------
    NotNative
        A file has such a name.
    """
    if not is_large(spark, snapshot) and _has_colons(snapshot):
        raise NotNative(f"{_COLONS}, which Hadoop cannot open on a local disk")


def check_found_names(snapshot: Snapshot) -> None:
    """Refuse to read files of a large table that Hadoop cannot open on a local disk.

    Raises
    ------
    DeltaError
        A file has such a name.
    """
    if snapshot.storage.address.scheme == "file" and _has_colons(snapshot):
        raise DeltaError(
            f"{_COLONS} of {snapshot.storage.url}, and Spark's own reader cannot open such files on a local disk; "
            f"read the table with {NATIVE_SCAN_CONF}=false"
        )


_COLONS = "the names of data files hold colons"


def _has_colons(snapshot: Snapshot) -> bool:
    import pyarrow.compute as pc

    odd = pc.match_substring_regex(snapshot.live_files().table["path"], r"(:|%3[aA])[^/]*$")
    return bool(pc.any(odd, min_count=0).as_py())


def local_root(snapshot: Snapshot) -> str:
    """The folder of a table on a local disk, as Hadoop names it.

    Raises
    ------
    NotNative
        It is in a store.
    """
    if snapshot.storage.address.scheme != "file":
        raise NotNative(f"{snapshot.storage.url} is not known to Hadoop")
    return f"file:{snapshot.storage.url.rstrip('/')}/"


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
