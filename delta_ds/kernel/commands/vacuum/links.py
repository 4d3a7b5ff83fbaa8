"""Symbolic links on local disks: compare listed and logged files by their resolved paths.

A partition folder can be a link to another folder of the same table, and a data file a link to another file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.arrow_buffers import texts
from delta_ds.kernel.log.nested_arrays import array_of_values


def names_without_links(paths: pa.ChunkedArray, root: str) -> pa.ChunkedArray:
    """The paths that files have once symbolic links are resolved, where they differ.

    Links are looked for once a folder.

    Parameters
    ----------
    paths
        Decoded: absolute, or relative to `root`.
    root
        The table's folder.
    """
    real_root = os.path.realpath(root)
    folders = pc.replace_substring_regex(paths, "/?[^/]*$", "").combine_chunks().dictionary_encode()
    moved: list[str | None] = []
    linked: list[pa.Array] = []
    for number, folder in enumerate(folders.dictionary.to_pylist()):
        at = os.path.join(root, folder)
        real = _without_links(at)
        below = _below(real_root, real)
        moved.append(None if below is None or below == folder else f"{below}/" if below else "")
        names = _links_in(real)
        if names is None or names:
            here = paths.filter(pc.equal(folders.indices, pa.scalar(number, folders.indices.type)))
            linked.append(_targets(here.to_pylist(), names, real, real_root))
    prefix = array_of_values(moved, pa.string()).take(folders.indices)
    name = pc.replace_substring_regex(paths, "^.*/", "").combine_chunks()
    renamed = pc.binary_join_element_wise(prefix, name, texts([""])[0]).drop_null()
    return pa.chunked_array([renamed, *linked], type=pa.string())


def _targets(paths: Iterable[str], links: set[str] | None, real: str, real_root: str) -> pa.Array:
    """Where those of a folder's files lead that are links; None: any of them may be one."""
    found = []
    for path in paths:
        name = path.rpartition("/")[2]
        if links is None or name in links:
            target = _below(real_root, _without_links(f"{real}/{name}"))
            if target:
                found.append(target)
    return texts(found)


def _links_in(folder: str) -> set[str] | None:
    """The names in a folder that are links; None where it may not be listed."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries if entry.is_symlink()}
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except OSError:
        return None


def _without_links(path: str) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:  # no name of a file, as one with a NUL
        return path


def _below(root: str, path: str) -> str | None:
    """A path relative to a folder, "" for the folder itself; None where it is not below it."""
    if path == root:
        return ""
    start = root.rstrip("/") + "/"
    return path[len(start) :] if path.startswith(start) else None
