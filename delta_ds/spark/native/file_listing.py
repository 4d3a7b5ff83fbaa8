"""Files of a table as Spark's `FileIndex` returns them, built in the JVM from one message, whatever their number.

A call from Python costs about 0.1 ms; with several a file, hundreds of thousands of files would take minutes.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from delta_ds.spark.native.compiler import compile_class

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from delta_ds.kernel.storage.filesystem import Storage

_NAME = "org.pydelta.TableFiles"
_SOURCE = """
package org.pydelta;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics;
import org.apache.spark.sql.execution.datasources.PartitionDirectory$;
import scala.collection.immutable.Map$;
import scala.collection.immutable.VectorBuilder;
import scala.math.BigInt$;

public class TableFiles {
    public Object list(String root, InternalRow[] values, byte[] message) {
        ByteBuffer in = ByteBuffer.wrap(message).order(ByteOrder.LITTLE_ENDIAN);
        int files = in.getInt();
        int[] counts = new int[values.length];
        for (int i = 0; i < counts.length; i++) counts[i] = in.getInt();
        int sizes = in.position(), times = sizes + 8 * files, at = times + 8 * files, file = 0;
        VectorBuilder out = new VectorBuilder();
        for (int group = 0; group < counts.length; group++) {
            FileStatus[] found = new FileStatus[counts[group]];
            for (int i = 0; i < found.length; i++, file++) {
                int end = at;
                while (message[end] != 0) end++;
                String text = new String(message, at, end - at, StandardCharsets.UTF_8);
                at = end + 1;
                Path path = new Path(text.startsWith("/") ? text.substring(1) : root + text);
                found[i] = new FileStatus(
                    in.getLong(sizes + 8 * file), false, 1, 134217728L, in.getLong(times + 8 * file), path);
            }
            out.addOne(PartitionDirectory$.MODULE$.apply(values[group], found));
        }
        return out.result();
    }

    public Object statistics(long bytes, long rows) {
        scala.Option counted = rows < 0 ? scala.None$.MODULE$ : new scala.Some(BigInt$.MODULE$.apply(rows));
        return new CatalogStatistics(BigInt$.MODULE$.apply(bytes), counted, Map$.MODULE$.empty());
    }

    public String[] paths(String root, byte[] message) {
        java.util.ArrayList out = new java.util.ArrayList();
        int at = 0;
        while (at < message.length) {
            int end = at;
            while (message[end] != 0) end++;
            String text = new String(message, at, end - at, StandardCharsets.UTF_8);
            at = end + 1;
            out.add(new Path(text.startsWith("/") ? text.substring(1) : root + text).toUri().toString());
        }
        return (String[]) out.toArray(new String[0]);
    }
}
"""


def compile_listing(jvm: Any, gateway: Any) -> Any:
    """The instance that `list_files` calls.

    Raises
    ------
    NotNative
        See `compile_class`.
    """
    return compile_class(jvm, gateway, _NAME, _SOURCE)


def list_files(
    listing: Any,
    root: str,
    values: Any,
    counts: npt.NDArray[np.int32],
    files: pa.Table,
    storage: Storage,
) -> Any:
    """A `Seq[PartitionDirectory]`.

    Parameters
    ----------
    listing
        From `compile_listing`.
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
    sizes, times = (
        np.ascontiguousarray(files[name].fill_null(0).to_numpy(), np.int64)
        for name in ("size", "modificationTime")
    )
    message = b"".join(
        (
            struct.pack("<i", files.num_rows),
            counts.astype("<i4").tobytes(),
            sizes.astype("<i8").tobytes(),
            times.astype("<i8").tobytes(),
            path_bytes(files["path"], storage),
        )
    )
    return listing.list(root, values, message)


def path_bytes(paths: pa.ChunkedArray, storage: Storage) -> bytes:
    """Decoded paths, each with a NUL behind it: relative to the table, or `/` and an absolute address."""
    import pyarrow.compute as pc

    # What needs no decoding and is plainly below the table, as nearly all files are, is not looked at one by one.
    odd = pc.match_substring_regex(paths, r"[%:]|^\.*/|/\.|//|^\.|\\")
    if not pc.any(odd, min_count=0).as_py():
        if not len(paths):
            return b""
        return str(pc.binary_join(_one_list(paths), "\0")[0].as_py()).encode() + b"\0"
    return b"".join(f"{_decoded(path, storage)}\0".encode() for path in paths.to_pylist())


def _one_list(paths: pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    whole = paths.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks)
    offsets = pa.array(np.array([0, len(whole)], np.int64))
    return pa.LargeListArray.from_arrays(offsets, whole)


def _decoded(path: str, storage: Storage) -> str:
    found = storage.resolve(path)
    if found.startswith("/"):
        return f"/{storage.address.scheme}:{found}"
    from delta_ds.kernel.storage.uri import has_scheme

    if has_scheme(found):
        # As the log writes it: the kernel's canonical scheme need not be the one that Hadoop knows.
        return f"/{unquote(path)}"
    return found.removeprefix("./")
