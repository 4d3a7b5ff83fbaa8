"""The data files below a folder, by listing it.

Source: Spark, `InMemoryFileIndex.shouldFilterOutPathName` (what is hidden).
"""

from __future__ import annotations

import pyarrow.compute as pc

from delta_ds.kernel.storage.filesystem import Storage

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
