"""Paths as VACUUM compares them: relative to the table, decoded, links resolved; and the hidden ones it skips.

On local disks a partition folder can be a link to another folder of the same table, a data file one to another file.

Source: PROTOCOL.md, "Add File and Remove File"; protocol-checklist VAC-W-03, VAC-W-04, PTH-RW-01.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import StorageError
from delta_ds.kernel.base.arrow_buffers import texts
from delta_ds.kernel.base.nested_arrays import array_of_values
from delta_ds.kernel.format.properties import UNIVERSAL_FORMAT_ENABLED_FORMATS
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.format.values.partition_values import escape
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.uri import ODD, decode, has_scheme, parse_address

CHANGE_FOLDER = "_change_data"
_INDEX_FOLDER = "_delta_index"
_ICEBERG_FOLDER = "metadata"
# Where Hadoop's committers keep the files of attempts, in the folder of a write by Spark: if it is killed they stay.
_ATTEMPTS = (
    r"^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:/[0-9]+)?)/_temporary(?:/[0-9]+/_temporary)?(/|$)"
)


def listing_forms(paths: pa.ChunkedArray, storage: Storage) -> pa.ChunkedArray:
    """All forms in which a listing may spell the files that actions name.

    An absolute path counts as inside the table whatever the spelling of its store is, and local links of folders
    and of files are followed: to keep one file too many does no harm.

    Parameters
    ----------
    paths
        `path` of actions, URI-encoded.
    """
    roots = _roots(storage)

    def forms(path: str) -> Iterable[str]:
        yield path
        try:
            form = decode(parse_address(path).path if has_scheme(path) else path)
        except StorageError:  # no reader can open it either
            return
        yield form
        if not form.startswith("/"):
            yield posixpath.normpath(form)
            form = f"{roots[0]}/{form}"
        form = posixpath.normpath(form)
        for root in roots:
            if form.startswith(f"{root}/"):
                yield form[len(root) + 1 :]

    named = _each(paths, forms)
    if storage.address.scheme != "file":
        return named
    linked = names_without_links(named, storage.address.path)
    return pa.chunked_array([*named.chunks, *linked.chunks], type=pa.string())


def actual_paths(paths: pa.Array, storage: Storage) -> pa.Array:
    """The files that actions name, relative to the table; null outside of it (shallow clones).

    Parameters
    ----------
    paths
        `path` of actions, URI-encoded, without nulls.
    """

    def actual(path: str) -> str | None:
        try:
            resolved = storage.resolve(path)
        except StorageError:  # on another filesystem, or above the table: not this table's to delete
            return None
        return None if resolved.startswith("/") or has_scheme(resolved) else resolved.removeprefix("./")

    if not _any(pc.match_substring_regex(paths, ODD)):
        return paths
    encoded = paths.dictionary_encode()
    resolved = [actual(path) for path in encoded.dictionary.to_pylist()]
    return array_of_values(resolved, pa.string()).take(encoded.indices)


def _each(paths: pa.ChunkedArray, forms: Callable[[str], Iterable[str]]) -> pa.ChunkedArray:
    """The forms of each path; found once a folder for files whose own name is a plain one."""
    odd = pc.match_substring_regex(paths, ODD)
    if not _any(odd):
        return paths.drop_null()
    chunks = list(paths.filter(pc.invert(odd)).chunks)
    strange = paths.filter(odd).unique()
    split = pc.match_substring_regex(strange, r"[^/]/[^/%:]+$")
    split = pc.and_(split, pc.invert(pc.match_substring_regex(strange, r"/\.\.?$")))
    all_forms = [form for path in strange.filter(pc.invert(split)).to_pylist() for form in forms(path)]
    chunks.append(texts(all_forms))
    strange = strange.filter(split)
    folder = pc.replace_substring_regex(strange, "/[^/]+$", "").dictionary_encode()
    name = pc.replace_substring_regex(strange, "^.*/", "")
    # Of a file called `-`, whose name is then cut off: the folder itself may be the table's.
    folders = [tuple({form[:-1] for form in forms(f"{path}/-")}) for path in folder.dictionary.to_pylist()]
    for number in range(max(map(len, folders), default=0)):
        spelled = [form[number] if number < len(form) else None for form in folders]
        spelled_here = array_of_values(spelled, pa.string()).take(folder.indices)
        chunks.append(pc.binary_join_element_wise(spelled_here, name, texts([""])[0]).drop_null())
    return pa.chunked_array(chunks, type=pa.string())


def _any(flags: pa.Array | pa.ChunkedArray) -> bool:
    return bool(pc.any(flags, min_count=0).as_py())


def _roots(storage: Storage) -> list[str]:
    root = storage.address.path.rstrip("/")
    return list(dict.fromkeys([root, os.path.realpath(root)])) if storage.address.scheme == "file" else [root]


class Hidden:
    """The paths below a table's folder that VACUUM never touches: the log, markers, files of other programs.

    Names that begin with `_` or `.` are, but for folders of partition columns, change files and indexes, and what a
    write of this package that was killed has left in its own folder.
    """

    def __init__(self, state: TableState) -> None:
        names = {*state.partition_columns, *state.physical_partition_columns}
        starts = sorted(form for name in names for form in {name, escape(name)} if form[0] in "_.")
        self._partition = f"(^|/)(?:{'|'.join(re.escape(s) for s in starts)})=" if starts else None
        formats = state.properties.get(UNIVERSAL_FORMAT_ENABLED_FORMATS.name, "")
        self._iceberg = "iceberg" in formats.lower()

    def __contains__(self, path: str) -> bool:
        """Whether a folder is hidden or inside a hidden one."""
        name = path.rpartition("/")[2]
        if name[0] not in "_." and path != _ICEBERG_FOLDER:
            return False
        return bool(self.mask(pa.chunked_array([texts([path])]))[0].as_py())

    def mask(self, paths: pa.ChunkedArray) -> pa.ChunkedArray:
        """A boolean for each path relative to the table."""
        shown = pc.replace_substring_regex(paths, f"^({CHANGE_FOLDER}|{_INDEX_FOLDER})(/|$)", r"shown\2")
        shown = pc.replace_substring_regex(shown, _ATTEMPTS, r"\1/shown\2")
        if self._partition:
            shown = pc.replace_substring_regex(shown, self._partition, r"\1shown=")
        hidden = pc.match_substring_regex(shown, r"(^|/)[._]")
        if self._iceberg:
            hidden = pc.or_(hidden, pc.match_substring_regex(paths, f"^{_ICEBERG_FOLDER}(/|$)"))
        return hidden


def parent_folders(paths: pa.ChunkedArray) -> set[str]:
    """The folders that hold files, and all above them; "" is the table's own."""
    direct = pc.replace_substring_regex(paths, "/?[^/]*$", "").unique().to_pylist()
    return set(with_ancestors(direct))


def with_ancestors(folders: Sequence[str]) -> set[str]:
    """Folders and all above them."""
    ancestors: set[str] = set()
    for folder in folders:
        while folder not in ancestors:
            ancestors.add(folder)
            folder = folder.rpartition("/")[0]
    return ancestors


# --- symbolic links on local disks


def links_on_the_way(paths: pa.ChunkedArray, storage: Storage) -> pa.ChunkedArray:
    """For each path relative to the table the first link among its folders; null where there is none."""
    if storage.address.scheme != "file":
        return pa.chunked_array([pa.nulls(len(paths), pa.string())])
    folders = pc.replace_substring_regex(paths, "/?[^/]*$", "").combine_chunks().dictionary_encode()
    links = [storage.link_on_the_way(folder) for folder in folders.dictionary.to_pylist()]
    return pa.chunked_array([array_of_values(links, pa.string()).take(folders.indices)])


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
    targets = []
    for path in paths:
        name = path.rpartition("/")[2]
        if links is None or name in links:
            target = _below(real_root, _without_links(f"{real}/{name}"))
            if target:
                targets.append(target)
    return texts(targets)


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
