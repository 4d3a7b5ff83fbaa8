"""Sizes of data files that the log does not tell, or not believably: as the store knows them.

Whoever reads a file by its size, as Spark does, reads nothing of one that has none. Source: PROTOCOL.md, "Add File
and Remove File": `size` and `modificationTime` are required.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.kernel.base.arrow_buffers import integers, true_rows
from delta_ds.kernel.log.file_actions import LARGEST_FILE
from delta_ds.kernel.storage.filesystem import FileStatus, Storage

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 16


def with_known_sizes(storage: Storage, files: pa.Table) -> pa.Table:
    """Files with the sizes and times that the store knows, where the log has none: what is committed must have them.

    Parameters
    ----------
    files
        `path`, `size` and `modificationTime`, as the log has them. No file has less than a byte, or a pebibyte.

    Raises
    ------
    DataFileError
        A file is not there.
    """
    from concurrent.futures import ThreadPoolExecutor

    import pyarrow as pa
    import pyarrow.compute as pc

    none, most = integers([0, LARGEST_FILE])
    size = pc.fill_null(files["size"], none)
    known = pc.and_(pc.greater(size, none), pc.less(size, most))
    if pc.all(known, min_count=0).as_py() and not files["modificationTime"].null_count:
        return files
    unknown = pc.or_(pc.invert(known), pc.is_null(files["modificationTime"]))
    columns = {name: files[name].to_pylist() for name in ("path", "size", "modificationTime")}
    places = true_rows(unknown).to_pylist()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda place: _status(storage, columns["path"][place]), places)
        for place, status in zip(places, found, strict=True):
            if not known[place].as_py():
                columns["size"][place] = status.size
            if columns["modificationTime"][place] is None:
                columns["modificationTime"][place] = status.modified_ms
    for name in ("size", "modificationTime"):
        column = pa.chunked_array([integers(columns[name])])
        files = files.set_column(files.column_names.index(name), name, column)
    return files


def _status(storage: Storage, path: str) -> FileStatus:
    try:
        return storage.status(storage.resolve(path))
    except FileNotFoundError as error:
        from delta_ds.conditions.data import FAILED_READ_FILE_FILE_NOT_EXIST

        place = f"data file {path} of table {storage.url}"
        raise FAILED_READ_FILE_FILE_NOT_EXIST({"path": path}, place=place) from error
