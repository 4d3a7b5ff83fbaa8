"""The one way in which files of a table's folder are deleted: as files of a kind, and only where they lie in the table.

Logs, tables that come out of an archive, and lists that users give name files; a name can lead anywhere. So whoever
deletes says what kind of files it owns, and what is called otherwise, lies outside of the table or behind a link stays,
with a line in the log. A link is not followed wherever it leads; one that stands where a file is to go is deleted as
such. The table's own folder may be reached by links.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from delta_ds.conditions.storage import NOT_IN_TABLE
from delta_ds.events.storage import DELETION_REFUSED
from delta_ds.kernel.storage.uri import has_scheme
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from delta_ds.kernel.storage.filesystem import Storage

OUTSIDE = "it is not below the table's folder"
OTHER_KIND = "it is not called as such files are"
_LOG = "_delta_log"
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


@dataclass(frozen=True, slots=True)
class Owned:
    """A kind of files that a command owns, and may delete.

    Attributes
    ----------
    name
        For messages.
    pattern
        A regular expression that the whole path matches, relative to the table and not encoded.
    """

    name: str
    pattern: str

    def holds(self, path: str) -> bool:
        """Whether a file is called as those of the kind are."""
        return re.fullmatch(self.pattern, path, re.DOTALL) is not None


_NOT_IN_LOG = rf"(?!(?i:{_LOG})(?:/|$)).+"

DATA_FILES = Owned("data files", _NOT_IN_LOG)
STAGED_FILES = Owned("files of a write that is not committed", _NOT_IN_LOG)
FOLDERS_OF_WRITES = Owned("the folder of a write", rf"(?:_change_data/)?{_UUID}(?:/.+)?")
LOG_FILES = Owned("files of the log", rf"{_LOG}/\.?\d{{20}}\.[^/]+")
STAGED_COMMITS = Owned("staged commits", rf"{_LOG}/_staged_commits/\d{{20}}\.[^/]+")
TEMPORARY_COMMITS = Owned("temporary commits", rf"{_LOG}/\.tmp/\d{{20}}\.json\.[^/]+")
SIDECARS = Owned("sidecars of checkpoints", rf"{_LOG}/_sidecars/[^/]+\.parquet")
HADOOP_CHECKSUMS = Owned("checksums of Hadoop", rf"{_LOG}/(?:_sidecars/)?\.[^/]+\.crc")
PROBES = Owned("probes of the store", rf"{_LOG}/\.create_once_probe\.[0-9a-f]+")
MANIFESTS = Owned("manifests", r"_symlink_format_manifest/(?:.+/)?manifest")
ICEBERG_METADATA = Owned(
    "metadata of Iceberg",
    rf"metadata/(?:v\d+\.metadata\.json|version-hint\.text|snap-\d+-[^/]*{_UUID}\.avro|{_UUID}-m\d+\.avro)",
)
BENCH_FILES = Owned("files of the command bench", r"pydelta-bench-[0-9a-f]+(?:/.+)?")


def delete(storage: Storage, owned: Owned, paths: Sequence[str]) -> list[str]:
    """Delete files of a kind; missing ones are fine, and what is not to be deleted stays and is told.

    Parameters
    ----------
    paths
        As `Storage.delete` takes them.

    Returns
    -------
    list of str
        Those that are gone.

    Raises
    ------
    StorageError
        One cannot be deleted; others may be gone.
    """
    own = _own(storage, owned, paths)
    if own:
        storage.delete(own)
    return own


def delete_empty_folders(storage: Storage, owned: Owned, paths: Sequence[str]) -> list[str]:
    """Delete folders that hold nothing, as `Storage.delete_empty_folders` does; others stay, as of `delete`."""
    own = _own(storage, owned, paths)
    return storage.delete_empty_folders(own) if own else []


def delete_below(storage: Storage, owned: Owned, folder: str) -> None:
    """Delete all files below a folder, and the folder; raises as `delete`, or where it cannot be listed."""
    folders = [folder]
    for batch in storage.list_below(folder, lambda inner: True):
        is_folder = batch["is_folder"].to_pylist()
        entries = list(zip(batch["path"].to_pylist(), is_folder, strict=True))
        folders += [path for path, is_one in entries if is_one]
        delete(storage, owned, [path for path, is_one in entries if not is_one])
    delete_empty_folders(storage, owned, folders)


def check_own(storage: Storage, owned: Owned, paths: Iterable[str]) -> None:
    """Refuse files that are to be written over and are none of a kind, or do not lie in the table.

    Raises
    ------
    StorageError
        `NOT_IN_TABLE`; nothing was written.
    """
    reason_of = _reasons(storage, owned)
    for path in paths:
        reason = reason_of(path)
        if reason is not None:
            raise NOT_IN_TABLE(
                path=storage.describe(path), kind=owned.name, reason=reason, outcome="nothing was written"
            )


def tell_refused(storage: Storage, owned: Owned, path: str, reason: str, files: int) -> None:
    """Say that some files are not deleted, of which one is named."""
    DELETION_REFUSED.log(table=storage.url, kind=owned.name, path=path, reason=reason, files=files)


def _own(storage: Storage, owned: Owned, paths: Sequence[str]) -> list[str]:
    reason_of = _reasons(storage, owned)
    own: list[str] = []
    refused: dict[str, list[str]] = {}
    for path in paths:
        reason = reason_of(path)
        if reason is None:
            own.append(path)
        elif reason in (OUTSIDE, OTHER_KIND) or storage.exists(path):
            refused.setdefault(reason, []).append(path)
    for reason, named in refused.items():
        tell_refused(storage, owned, named[0], reason, len(named))
    return own


def _reasons(storage: Storage, owned: Owned) -> Callable[[str], str | None]:
    """Finds why a file is not one to be deleted; None where it is."""
    links: dict[str, str | None] = {}
    local = storage.address.scheme == "file"
    # Where the system parts folders by something else, a name that holds it is a path of its own.
    other_separator = os.sep if local and os.sep != "/" else None

    def reason_of(path: str) -> str | None:
        relative = posixpath.normpath(path)
        absolute = has_scheme(path) or path.removeprefix("./").startswith("/")
        upwards = relative == "." or ".." in path.split("/")
        if absolute or upwards or (other_separator is not None and other_separator in path):
            return OUTSIDE
        if not owned.holds(relative):
            return OTHER_KIND
        folder = relative.rpartition("/")[0]
        if local and folder not in links:
            links[folder] = storage.link_on_the_way(folder)
        link = links.get(folder)
        return None if link is None else behind(link)

    return reason_of


def behind(link: str) -> str:
    """Why a file behind a link is not deleted."""
    return f"it lies behind the link {link}"
