"""What a deep clone may copy: Parquet files of its source, of the tables that the source is a clone of, or of a list.

A log can name any file that its reader may open. To read rows of it is the reader's own affair; a copy in another table
would hand it to others. So a file counts by where it really lies: in the folder of the source, in that of a table which
a CLONE in the source's log names, or in one that the caller gives.

Source: PROTOCOL.md, "Add File and Remove File" (absolute paths).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from delta_ds.conditions.commands import CLONE_FILE_ELSEWHERE, CLONE_FILE_NOT_PARQUET
from delta_ds.exceptions import DataFileError, DeltaError, StorageError
from delta_ds.kernel.base.environment import absolute
from delta_ds.kernel.format.operations import CLONE
from delta_ds.kernel.log.commit import read_commits
from delta_ds.kernel.log.segment import list_log
from delta_ds.kernel.storage.open import open_plain
from delta_ds.kernel.storage.store_options import without_coordinator
from delta_ds.kernel.storage.uri import Address, parse_address, same_filesystem

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage

# In `tags` of a CLONE that names its source as a catalog does: where that lies.
SOURCE_ADDRESS_TAG = "pydelta.cloneSource"
_COMMITS_AT_ONCE = 50
_MOST_ANCESTORS = 100
_TABLE = re.compile(r"(?:delta|pydelta)\.`(.+)`", re.DOTALL)


def check_sources(source: Snapshot, paths: Iterable[str], files_from: Sequence[str]) -> None:
    """Refuse files that lie neither in the source's folder, nor in its ancestors', nor where the caller allows it.

    Parameters
    ----------
    paths
        Of data files and deletion vectors, as in actions.
    files_from
        Folders and files that the caller allows, as `open_storage` takes addresses.

    Raises
    ------
    UnsupportedOperationError
        `CLONE_FILE_ELSEWHERE`; nothing was written.
    StorageError
        A path leaves the table, or is on another filesystem.
    """
    storage = source.storage
    folders = [_root(storage), *(_real(parse_address(str(each))) for each in files_from)]
    elsewhere = [(path, place) for path in paths if not _lies_in(place := storage.place_of(path), folders)]
    for ancestor in _ancestors(storage, source.version) if elsewhere else ():
        elsewhere = [(path, place) for path, place in elsewhere if not _lies_in(place, [ancestor])]
        if not elsewhere:
            return
    if elsewhere:
        path, place = elsewhere[0]
        raise CLONE_FILE_ELSEWHERE(
            table=storage.url, version=source.version, path=path, place=place, files=len(elsewhere)
        )


def check_data_file(source: Snapshot, path: str, size: int, data: BinaryIO | pa.NativeFile) -> None:
    """Refuse what is not the data file that the log speaks of.

    Parameters
    ----------
    size
        In bytes, as the log has it.
    data
        The open file; it is read at its end.

    Raises
    ------
    DataFileError
        It has another size, or is no Parquet (`CLONE_FILE_NOT_PARQUET`).
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = source.storage.url
    found = data.seek(0, os.SEEK_END)
    if found != size:
        raise DataFileError(
            f"data file {path} of version {source.version} of {table} has {found} bytes, and the log says {size}. "
            "Nothing was cloned; see what `pydelta fsck` says of the table",
            parameters={"path": path, "table": table, "version": source.version},
        )
    try:
        pq.read_metadata(data)
    except (pa.ArrowInvalid, OSError) as error:
        raise CLONE_FILE_NOT_PARQUET(path=path, version=source.version, table=table, reason=error) from error


def _lies_in(place: Address, folders: Iterable[Address]) -> bool:
    return any(folder == place or folder.relative(place) is not None for folder in folders)


def _root(storage: Storage) -> Address:
    return _real(storage.address)


def _real(address: Address) -> Address:
    if address.scheme != "file":
        return Address(address.scheme, address.authority, address.path)
    return Address("file", "", os.path.realpath(absolute(address.path)))


def _ancestors(storage: Storage, version: int) -> Iterator[Address]:
    """The folders of the tables that a table is a clone of, and of those that these are clones of.

    Only of tables that are there: a log can claim to be a clone of any folder.
    """
    seen = {_root(storage)}
    waiting = [(storage, version)]
    while waiting:
        table, last = waiting.pop()
        for address, cloned in _cloned(table, last):
            real = _real(address)
            if real in seen or len(seen) > _MOST_ANCESTORS or not same_filesystem(storage.address, address):
                continue
            seen.add(real)
            above = open_plain(address, without_coordinator(storage.options))
            if _is_table(above):
                yield real
                waiting.append((above, cloned))


def _is_table(storage: Storage) -> bool:
    try:
        found = list_log(storage)
    except (DeltaError, FileNotFoundError):
        return False
    return bool(found.commits or found.checkpoints)


def _cloned(storage: Storage, last: int) -> Iterator[tuple[Address, int]]:
    """What the CLONEs in a log up to a version were made of, the newest first: addresses and versions."""
    commits = list_log(storage).commits
    versions = sorted((version for version in commits if version <= last), reverse=True)
    for start in range(0, len(versions), _COMMITS_AT_ONCE):
        files = [commits[version] for version in versions[start : start + _COMMITS_AT_ONCE]]
        for commit in read_commits(storage, files):
            if commit.info.get("operation") != CLONE.name:
                continue
            said = commit.info.get("operationParameters") or {}
            number = str(said.get("sourceVersion", "")).strip('"')
            if number.isdecimal():
                where = (commit.info.get("tags") or {}).get(SOURCE_ADDRESS_TAG) or said.get("source")
                yield from ((address, int(number)) for address in _addresses_of(where))


def _addresses_of(source: object) -> Iterator[Address]:
    """The address in a source as a CLONE names it, with backticks as they are and as SQL doubles them.

    None of a table of a catalog, and where it is no address.
    """
    found = _TABLE.fullmatch(str(source).strip('"'))
    for text in dict.fromkeys([found[1], found[1].replace("``", "`")] if found is not None else ()):
        with suppress(StorageError):
            yield parse_address(text)
