"""Symlink manifests: text files that name the live data files, for engines that read Hive tables.

One file `_symlink_format_manifest/<partition folders>/manifest` a partition, or just one for a table without
partitions. Each is replaced as a whole, but not all at once: between two of them a reader may see both versions.

Source: docs of delta-spark, "Presto, Trino and Athena to Delta Lake integration using manifests".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import unquote

from delta_ds.conditions.transaction import (
    UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS,
    UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING,
)
from delta_ds.kernel.files.write.write_spec import list_written_files
from delta_ds.kernel.format.actions import Action
from delta_ds.kernel.format.values.partition_values import partition_folder
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import MANIFESTS
from delta_ds.kernel.storage.uri import has_scheme

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.log.snapshot import Snapshot

FOLDER = "_symlink_format_manifest"
_NAME = "manifest"
_FILES_AT_ONCE = 16


def write_manifests(snapshot: Snapshot, partitions: Collection[str] | None = None) -> int:
    """Write the manifests of a version, and delete those of partitions that have no files.

    Parameters
    ----------
    snapshot
        The version.
    partitions
        Only these folders (see `folders_of`); None for all.

    Returns
    -------
    int
        How many manifests were written.

    Raises
    ------
    UnsupportedOperationError
        The table has column mapping, or files with deletion vectors, which a manifest cannot express.
    StorageError
        The storage refused, or a folder of the manifests is a link.
    """
    check_can_have_manifests(snapshot)
    wanted = _manifests(snapshot, partitions)
    storage = snapshot.storage
    deleter.check_own(storage, MANIFESTS, wanted)
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        written = list(pool.map(lambda path: storage.write(path, wanted[path]), wanted))
    if partitions is None:
        there = {path for path, _, _ in list_written_files(storage, FOLDER)}
    else:
        there = {_path(folder) for folder in partitions}
    deleter.delete(storage, MANIFESTS, sorted(there - wanted.keys()))
    return len(written)


def check_can_have_manifests(snapshot: Snapshot) -> None:
    """Refuse a table whose rows are not exactly those of its files.

    Raises
    ------
    UnsupportedOperationError
        It has column mapping, or files with deletion vectors.
    """
    table = snapshot.storage.url
    if snapshot.mapping_mode != "none":
        raise UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING(table=table)
    vectors = snapshot.live_files().table["deletionVector"]
    count = len(vectors) - vectors.null_count
    if count:
        raise UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS(table=table, files=count)


def folders_of(snapshot: Snapshot, values: Collection[Mapping[str, str | None]]) -> set[str]:
    """The partition folders of `partitionValues` of actions."""
    names = _names(snapshot)
    return {partition_folder((logical, body.get(stored)) for logical, stored in names) for body in values}


def update_after(snapshot: Snapshot, actions: Collection[Action], *, everything: bool) -> int:
    """Bring the manifests up to date with a commit.

    Parameters
    ----------
    snapshot
        At or after the version of the commit.
    actions
        Of the commit, as `{name: body}`.
    everything
        Whether to write all manifests: the commit is the table's first or changed its metadata, or `actions`
        lacks removes. Where there are none yet, all are written anyway.

    Returns
    -------
    int
        How many manifests were written.

    Raises
    ------
    UnsupportedOperationError, StorageError
        As `write_manifests`.
    """
    if everything or not snapshot.partition_columns or not list_written_files(snapshot.storage, FOLDER):
        return write_manifests(snapshot)
    touched: list[Mapping[str, str | None]] = []
    for action in actions:
        body = action.get("add") or action.get("remove")
        if body is None:
            continue
        values = body.get("partitionValues")
        if values is None:
            return write_manifests(snapshot)  # a remove need not say where its file was
        touched.append(values)
    return write_manifests(snapshot, folders_of(snapshot, touched))


def _names(snapshot: Snapshot) -> list[tuple[str, str]]:
    return list(zip(snapshot.partition_columns, snapshot.physical_partition_columns, strict=True))


def _path(folder: str) -> str:
    return f"{FOLDER}/{folder}/{_NAME}" if folder else f"{FOLDER}/{_NAME}"


def _manifests(snapshot: Snapshot, partitions: Collection[str] | None) -> dict[str, bytes]:
    """The contents of the manifests, by path relative to the table."""
    import pyarrow.compute as pc

    table = snapshot.live_files().table
    out: dict[str, bytes] = {}
    if not snapshot.partition_columns:
        return {_path(""): _lines(snapshot, table["path"])}
    for folder, rows in _partitions(snapshot, table).items():
        if partitions is None or folder in partitions:
            out[_path(folder)] = _lines(snapshot, pc.take(table["path"], rows))
    return out


def _partitions(snapshot: Snapshot, table: pa.Table) -> dict[str, pa.Array]:
    """By the folder of partitions, the row numbers of their files."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from delta_ds.kernel.base.arrow_buffers import field_of, integers, texts

    if not table.num_rows:
        return {}
    names = _names(snapshot)
    values = table["partitionValues"].combine_chunks()
    # By number: columns may have any name. Null and the empty text are one partition.
    columns = {
        str(number): pc.fill_null(field_of(values, stored).cast(pa.string()), texts([""])[0])
        for number, (_, stored) in enumerate(names)
    }
    rows = pa.table({**columns, "row": integers(np.arange(table.num_rows))})
    grouped = rows.group_by(list(columns)).aggregate([("row", "list")])
    lists = grouped["row_list"].combine_chunks()
    keys = grouped.select(list(columns)).to_pylist()
    folders: dict[str, list[pa.Array]] = {}
    for number, key in enumerate(keys):
        parts = [(logical, key[str(place)]) for place, (logical, _) in enumerate(names)]
        # Values of several partitions may stand for one folder: null, and a text that is the name of its folder.
        folders.setdefault(partition_folder(parts), []).append(lists[number].values)
    return {folder: pa.concat_arrays(rows) for folder, rows in folders.items()}


def _lines(snapshot: Snapshot, paths: pa.ChunkedArray) -> bytes:
    """The decoded addresses of files, one a line."""
    address = snapshot.storage.address
    scheme = "file:" if address.scheme == "file" else ""
    root = scheme + str(address)
    out = []
    for path in paths.to_pylist():
        if has_scheme(path):
            out.append(unquote(path))
            continue
        where = unquote(path)
        snapshot.storage.resolve(path)
        out.append(scheme + where if path.startswith("/") else f"{root}/{where}")
    return "".join(line + "\n" for line in sorted(out)).encode()
