"""Names and listing of data files, whose paths are encoded as URIs.

Source: PROTOCOL.md, "Data Files" (protocol-checklist LOG-W-08, PTH-W-03).
"""

from __future__ import annotations

import random
import string
import uuid
from urllib.parse import quote

import pyarrow.compute as pc

from delta_ds.kernel.storage.filesystem import Storage

_UNCHANGED_IN_URI = "/=:@!$&'()*+,;-._~"
_EXTENSIONS = {
    "none": "", "uncompressed": "", "gzip": ".gz", "brotli": ".br", "lz4": ".lz4raw", "lz4_raw": ".lz4raw",
}  # fmt: skip
_ALPHANUMERIC = string.ascii_letters + string.digits
_RANDOM = random.SystemRandom()


def encode(path: str) -> str:
    """A relative path as the `path` of an action."""
    return quote(path, safe=_UNCHANGED_IN_URI)


def random_prefix(length: int) -> str:
    """A directory of random letters and digits, which spreads files over the partitions of an object store."""
    return "".join(_RANDOM.choices(_ALPHANUMERIC, k=length))


def file_name(prefix: str, task: int, number: int, codec: str) -> str:
    """A name that no other file has: `part-00003-<uuid>.c000.zstd.parquet`."""
    extension = _EXTENSIONS.get(codec, f".{codec}")
    return f"{prefix}-{task:05d}-{uuid.uuid4()}.c{number:03d}{extension}.parquet"


# Path relative to the table and not encoded, bytes, modification time in ms.
Written = tuple[str, int, int]

_HIDDEN = ("_", ".")


def list_written_files(storage: Storage, folder: str) -> list[Written]:
    """The data files below a folder: path relative to the table, bytes, modification time in ms; in order of path.

    What begins with `_` or `.` and is no partition is a marker, a checksum or an attempt that did not finish.
    A folder that is not there has none: object stores do not know empty folders.

    Raises
    ------
    StorageError
        The store refused.
    """
    found: list[Written] = []
    for batch in storage.list_below(folder, lambda inner: not _is_hidden(inner, folder)):
        files = batch.filter(pc.invert(batch["is_folder"]))
        columns = [files[name].to_pylist() for name in ("path", "size", "modified_ms")]
        found += [file for file in zip(*columns, strict=True) if not _is_hidden(file[0], folder)]
    return sorted(found)


def _is_hidden(path: str, folder: str) -> bool:
    below = path.removeprefix(folder.strip("/")).strip("/")
    return any(name[0] in _HIDDEN and "=" not in name for name in below.split("/"))
