"""Snapshots of Iceberg for versions of a table: one new manifest for files that came, others only where files went.

Source: Iceberg Table Spec, "Manifests", "Snapshots"; Iceberg's `MergeAppend`, whose bounds of merging these are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus

from delta_ds.records import dataclass, field

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema

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
        found = Difference()
        found.manifests += self._new(files, found.added)
        return found

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
        found = Difference()
        there: set[str] = set()
        missing = {*gone, *passing}
        for manifest in before:
            if not (manifest.has_added_files() or manifest.has_existing_files()):
                continue  # it says only what went with the snapshot before
            if not (missing or repeated):
                found.manifests.append(manifest)
                continue
            entries = self.folder.entries(manifest)
            there.update(e.data_file.file_path for e in entries if e.data_file.file_path in repeated)
            going = {e.data_file.file_path for e in entries} & missing
            missing -= going
            found.manifests.append(
                self._without(manifest, entries, going, found.removed) if going else manifest
            )
        missing.difference_update(passing)
        if missing:
            raise UnknownFileError(next(iter(missing)))
        found.manifests += self._new((f for f in files if f.file_path not in there), found.added)
        found.manifests = self._joined(found.manifests)
        return found

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
        found: list[ManifestFile] = []
        small: list[ManifestFile] = []
        for manifest in manifests:
            files = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
            keeps = manifest.deleted_files_count or files >= MAX_ENTRIES // 2
            keeps = keeps or manifest.partition_spec_id != self.spec.spec_id
            (found if keeps else small).append(manifest)
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
            found.append(writer.made)
        return found

    def _entries(self, manifest: ManifestFile) -> list[ManifestEntry]:
        return self.folder.entries(manifest)


def _with_first(first: T, rest: Iterator[T]) -> Iterator[T]:
    yield first
    yield from rest


def _entry(file: DataFile) -> ManifestEntry:
    return ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, data_file=file)
