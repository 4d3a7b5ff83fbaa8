"""Snapshots of Iceberg for versions of a table: one new manifest for files that came, others only where files went.

Source: Iceberg Table Spec, "Manifests", "Snapshots"; Iceberg's `MergeAppend`, whose bounds of merging these are.

What the commits after a version do to the files of a table, as far as Iceberg has to follow them.

Delete what no description of a table in Iceberg's metadata needs any more.

Source: Iceberg Table Spec, "Snapshot Retention Policy"; Iceberg, "Remove old metadata files".
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus

from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.log.filenames import commit_path
from delta_ds.kernel.log.json_actions import iterate_bodies
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import ICEBERG_METADATA
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.maintenance import Maintenance
from delta_ds.kernel.storage.uri import canonical_path
from delta_ds.kernel.transaction.iceberg.storage_io import (
    FOLDER,
    ManifestFolder,
    converted_versions,
    is_description,
    metadata_path,
    read_metadata,
)
from delta_ds.records import dataclass, field

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadataV2

    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.transaction.iceberg.storage_io import ManifestFolder


T = TypeVar("T")

# Of a manifest: one that loses a file is written anew, and pyiceberg writes ten thousand entries a second.
MAX_ENTRIES = 2_000
MAX_MANIFESTS = 100  # small ones of a snapshot, before they are joined


class UnknownFileError(Exception):
    """A file that went is in no manifest: what is there describes another table."""


@dataclass(slots=True)
class Counts:
    """How many files, rows and bytes."""

    files: int = 0
    rows: int = 0
    size: int = 0

    def count(self, file: DataFile) -> None:
        self.files += 1
        self.rows += file.record_count
        self.size += file.file_size_in_bytes


@dataclass(slots=True)
class Difference:
    """The manifests of a snapshot, and what it adds to the one before and takes away."""

    manifests: list[ManifestFile] = field(default_factory=list)
    added: Counts = field(default_factory=Counts)
    removed: Counts = field(default_factory=Counts)


@dataclass(frozen=True, slots=True)
class SnapshotWriter:
    """Writes the manifests of one snapshot.

    Attributes
    ----------
    folder
        Where they are.
    specs
        Partition specs by their ids; `spec` is that of new manifests.
    """

    folder: ManifestFolder
    specs: dict[int, PartitionSpec]
    spec: PartitionSpec
    schema: Schema
    snapshot_id: int
    sequence_number: int

    def whole(self, files: Iterable[DataFile]) -> Difference:
        """A snapshot of these files and no others."""
        difference = Difference()
        difference.manifests += self._new(files, difference.added)
        return difference

    def following(
        self,
        before: Sequence[ManifestFile],
        files: Sequence[DataFile],
        gone: Collection[str],
        passing: Collection[str],
        repeated: Collection[str],
    ) -> Difference:
        """A snapshot that follows another one.

        Parameters
        ----------
        before
            The manifests of the other one.
        files
            That come.
        gone
            Addresses of those that go.
        passing
            Addresses of those that go, if they are there.
        repeated
            Addresses among those of `files` that may have been there.

        Raises
        ------
        UnknownFileError
            A file that goes is not there.
        """
        difference = Difference()
        there: set[str] = set()
        missing = {*gone, *passing}
        for manifest in before:
            if not (manifest.has_added_files() or manifest.has_existing_files()):
                continue  # it says only what went with the snapshot before
            if not (missing or repeated):
                difference.manifests.append(manifest)
                continue
            entries = self.folder.entries(manifest)
            there.update(e.data_file.file_path for e in entries if e.data_file.file_path in repeated)
            going = {e.data_file.file_path for e in entries} & missing
            missing -= going
            difference.manifests.append(
                self._without(manifest, entries, going, difference.removed) if going else manifest
            )
        missing.difference_update(passing)
        if missing:
            raise UnknownFileError(next(iter(missing)))
        difference.manifests += self._new((f for f in files if f.file_path not in there), difference.added)
        difference.manifests = self._joined(difference.manifests)
        return difference

    def _new(self, files: Iterable[DataFile], counts: Counts) -> Iterator[ManifestFile]:
        waiting = iter(files)
        for first in waiting:
            with self.folder.manifest(self.spec, self.schema, self.snapshot_id) as writer:
                for number, file in enumerate(_with_first(first, waiting), 1):
                    counts.count(file)
                    writer.add(_entry(file))
                    if number == MAX_ENTRIES:
                        break
            yield writer.made

    def _without(
        self, manifest: ManifestFile, entries: Sequence[ManifestEntry], going: Collection[str], counts: Counts
    ) -> ManifestFile:
        spec = self.specs[manifest.partition_spec_id]
        with self.folder.manifest(spec, self.schema, self.snapshot_id) as writer:
            for entry in entries:
                if entry.data_file.file_path in going:
                    counts.count(entry.data_file)
                    writer.delete(entry)
                else:
                    writer.existing(entry)
        return writer.made

    def _joined(self, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
        """Many small manifests as few large ones; those that say what goes with this snapshot stay."""
        large: list[ManifestFile] = []
        small: list[ManifestFile] = []
        for manifest in manifests:
            files = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
            keeps = manifest.deleted_files_count or files >= MAX_ENTRIES // 2
            keeps = keeps or manifest.partition_spec_id != self.spec.spec_id
            (large if keeps else small).append(manifest)
        if len(small) <= MAX_MANIFESTS:
            return list(manifests)
        entries = (entry for manifest in small for entry in self._entries(manifest))
        for first in entries:
            with self.folder.manifest(self.spec, self.schema, self.snapshot_id) as writer:
                for number, entry in enumerate(_with_first(first, entries), 1):
                    if entry.snapshot_id == self.snapshot_id:
                        writer.add(_entry(entry.data_file))
                    else:
                        writer.existing(entry)
                    if number == MAX_ENTRIES:
                        break
            large.append(writer.made)
        return large

    def _entries(self, manifest: ManifestFile) -> list[ManifestEntry]:
        return self.folder.entries(manifest)


def _with_first(first: T, rest: Iterator[T]) -> Iterator[T]:
    yield first
    yield from rest


def _entry(file: DataFile) -> ManifestEntry:
    return ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, data_file=file)


# With more, all files are described anew.
MAX_COMMITS = 100


@dataclass(slots=True)
class LogChanges:
    """Files that came and went.

    Attributes
    ----------
    added
        The `add` actions of files that may be new, by canonical path.
    removed
        Canonical paths of files that are live no more.
    passing
        Canonical paths of files that came and went; whether they were there before is not known.
    may_repeat
        Whether some of `added` may have been live before: they were committed again with other statistics or tags.
    operations
        Of the commits, for the summary of the snapshot.
    """

    added: dict[str, AddFile] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    passing: set[str] = field(default_factory=set)
    may_repeat: bool = False
    operations: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.passing)


def changes_between(storage: Storage, after: int, until: int) -> LogChanges | None:
    """The changes of the commits after one version until another one; None where they are too many or gone.

    Raises
    ------
    StorageError
        The storage refused.
    CorruptLogFileError
        A commit is damaged.
    """
    if until - after > MAX_COMMITS:
        return None
    changes = LogChanges()
    for version in range(after + 1, until + 1):
        try:
            data = storage.read_whole(commit_path(version))
        except FileNotFoundError:
            return None
        where = f"{commit_path(version)} of {storage.url}"
        for name, body in iterate_bodies(data, where, "add", "remove", "commitInfo"):
            _follow(changes, name, body, storage)
    return changes


def _follow(found: LogChanges, name: str, body: Mapping[str, Any], storage: Storage) -> None:
    if name == "commitInfo":
        found.operations.append(str(body.get("operation")))
        return
    path = canonical_path(body["path"], storage)
    if name == "add":
        found.may_repeat |= not body.get("dataChange", True) or path in found.removed | found.passing
        found.removed.discard(path)
        found.passing.discard(path)
        found.added[path] = cast("AddFile", body)
    else:
        came = found.added.pop(path, None)
        (found.removed if came is None else found.passing).add(path)


# Conversions at work, and readers that have opened an older description, are done by then.
_GRACE_MS = 3_600_000
_LISTS_AT_ONCE = 16
_DESCRIPTION = ".metadata.json"
_ENDINGS = (".avro", _DESCRIPTION)


def clean_up(storage: Storage, *, now_ms: int | None = None) -> int:
    """Delete descriptions of versions, and manifests, that the newest description does not know any more.

    Parameters
    ----------
    storage
        Of the table.
    now_ms
        Milliseconds since 1970; files of the last hour stay.

    Returns
    -------
    int
        How many files were deleted. None where another writer describes a table in the same folder, as manifests of
        both are named alike, or where the catalog of the table does not permit it.
    """
    versions = converted_versions(storage)
    if not versions or not storage.allows(Maintenance.LOG_CLEANUP):
        return 0
    listed = storage.list_from(FOLDER)
    paths = {
        f"{FOLDER}/{status.path.rpartition('/')[2]}": status.modified_ms
        for status in listed
        if status.is_file
    }
    if any(path.endswith(_DESCRIPTION) and not is_description(path) for path in paths):
        return 0
    metadata = read_metadata(storage, versions[-1])
    needed = _needed(storage, metadata, versions)
    before = (time.time_ns() // 1_000_000 if now_ms is None else now_ms) - _GRACE_MS
    stale = [p for p, at in paths.items() if p.endswith(_ENDINGS) and p not in needed and at < before]
    return len(deleter.delete(storage, ICEBERG_METADATA, stale))


def _needed(storage: Storage, metadata: TableMetadataV2, versions: list[int]) -> set[str]:
    """What the newest description names, and descriptions since the oldest of its snapshots."""
    folder = ManifestFolder(storage, metadata.location)
    lists = [snapshot.manifest_list for snapshot in metadata.snapshots]
    with ThreadPoolExecutor(_LISTS_AT_ONCE) as pool:
        manifests = {m.manifest_path for found in pool.map(folder.manifests, lists) for m in found}
    versions_told = [
        int(s.summary["delta-version"] or 0) for s in metadata.snapshots if s.summary is not None
    ]
    oldest = min([*versions_told, versions[-1]])
    descriptions = {metadata_path(version) for version in versions if version >= oldest}
    return descriptions | {folder.path_of(location) for location in (*lists, *manifests)}
