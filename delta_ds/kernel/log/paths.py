"""The normal form of a path by which files are compared, however a log spells it.

The `path` of an action is URI-encoded, relative or absolute, and many texts name one file: `a%20b`, `./a%20b` and
`file:///table/a%20b`. Replay, conflicts, the change feed and whatever else asks whether two actions mean the same
file compares what the storage would open.

Source: PROTOCOL.md, "Add File and Remove File", "Action Reconciliation"; protocol-checklist REC-R-05, PTH-RW-01.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.exceptions import StorageError
from delta_ds.kernel.arrow_buffers import texts
from delta_ds.kernel.storage.filesystem import Storage

if TYPE_CHECKING:
    import pyarrow as pa

# All other texts are their own canonical form.
ODD = r"%|:|//|^/|(^|/)\.\.?(/|$)"


def canonical_path(path: str, storage: Storage) -> str:
    """What a `path` of an action names: relative to the table where it lies below it, decoded.

    A path that the storage may not open stays as it is: it names no file of the table.
    """
    try:
        return storage.resolve(path)
    except StorageError:
        return path


def canonical_paths(paths: pa.ChunkedArray, storage: Storage) -> pa.ChunkedArray:
    """`canonical_path` of many, nulls included; only odd texts are looked at in Python, most of them once a folder."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not _has_odd_letters(paths):
        return paths
    odd = pc.match_substring_regex(paths, ODD)
    if not pc.any(odd, min_count=0).as_py():
        return paths
    whole = paths.combine_chunks()
    odd = odd.combine_chunks()
    strange = pc.if_else(odd, whole, pa.nulls(1, pa.string())[0])
    # A file whose own name is plain is called as its folder is: asked for once, with a file `-` in it.
    plain = pc.and_(
        pc.match_substring_regex(strange, r"[^/]/[^/%:]+$"),
        pc.invert(pc.match_substring_regex(strange, r"/\.\.?$")),
    )
    asked = pc.if_else(plain, pc.replace_substring_regex(strange, "[^/]+$", "-"), strange).dictionary_encode()
    found = [canonical_path(path, storage) for path in asked.dictionary.to_pylist()]
    resolved = texts(found).take(asked.indices)
    name = pc.replace_substring_regex(strange, "^.*/", "")
    nothing = texts([""])[0]
    named = pc.binary_join_element_wise(pc.replace_substring_regex(resolved, "-$", ""), name, nothing)
    return pa.chunked_array([pc.coalesce(pc.if_else(plain, named, resolved), whole)])


def _has_odd_letters(paths: pa.ChunkedArray) -> bool:
    """Whether any text may be odd, by a look at the bytes of all."""
    import numpy as np
    import pyarrow.compute as pc

    for chunk in paths.chunks:
        letters = chunk.buffers()[2]
        if letters is None:
            continue
        values = np.frombuffer(letters, dtype=np.uint8)
        if (values == ord("%")).any() or (values == ord(":")).any():
            return True
        after = values[1:][values[:-1] == ord("/")]
        if (after == ord("/")).any() or (after == ord(".")).any():
            return True
    starts = pc.match_substring_regex(paths, r"^[/.]")
    return bool(pc.any(starts, min_count=0).as_py())
