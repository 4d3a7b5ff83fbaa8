"""Iceberg's manifests on the storage of a table: pyiceberg reads and writes them in memory, the storage holds them."""

from __future__ import annotations

import io
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.manifest import (
    ManifestEntry,
    ManifestFile,
    ManifestWriterV2,
    read_manifest_list,
    write_manifest_list,
)

from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import ICEBERG_METADATA

if TYPE_CHECKING:
    from pyiceberg.io import InputStream, OutputStream
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadataV2

    from delta_ds.kernel.storage.filesystem import Storage

# --- the descriptions of versions in the folder `metadata`, and the hint that names the newest one
# Source: Iceberg Table Spec, "File System Tables".

FOLDER = "metadata"
_HINT = f"{FOLDER}/version-hint.text"
_NAME = re.compile(r"v(\d+)\.metadata\.json")


def metadata_path(version: int) -> str:
    """The file that describes a version, relative to the table."""
    return f"{FOLDER}/v{version}.metadata.json"


def is_description(path: str) -> bool:
    """Whether a file is named as the description of a version is."""
    return _NAME.fullmatch(path.rpartition("/")[2]) is not None


def converted_versions(storage: Storage) -> list[int]:
    """The versions that are described, the newest one last."""
    try:
        listed = storage.list_from(FOLDER, "v")
    except FileNotFoundError:
        return []
    names = (_NAME.fullmatch(status.path.rpartition("/")[2]) for status in listed)
    return sorted(int(name[1]) for name in names if name)


def put_hint(storage: Storage) -> None:
    """Name the newest version; whoever publishes a newer one meanwhile says so after this or is seen by it."""
    while True:
        newest = converted_versions(storage)[-1]
        if _hint(storage) != newest:
            storage.write(_HINT, str(newest).encode())
        if converted_versions(storage)[-1] == newest:
            return


def _hint(storage: Storage) -> int | None:
    try:
        text = storage.read(_HINT).decode()
    except FileNotFoundError:
        return None
    return int(text) if text.isdecimal() else None


def read_metadata(storage: Storage, version: int) -> TableMetadataV2:
    """The description of a version, as pyiceberg has it."""
    from pyiceberg.table.metadata import TableMetadataUtil

    found: Any = TableMetadataUtil.parse_raw(storage.read(metadata_path(version)).decode())
    return found  # type: ignore[no-any-return]


# --- iceberg's manifests on the storage of a table: pyiceberg reads and writes them in memory, the storage holds them

_ENTRIES_OF_A_BLOCK = 1000
_COMPRESSION: Any = "gzip"


class _Bytes(InputFile):
    def __init__(self, location: str, data: bytes) -> None:
        super().__init__(location)
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> InputStream:
        return cast("InputStream", io.BytesIO(self._data))


class _Sink(OutputFile):
    """A file in memory, whose bytes stay when it is closed."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.data = b""

    def __len__(self) -> int:
        return len(self.data)

    def exists(self) -> bool:
        return False

    def to_input_file(self) -> InputFile:
        return _Bytes(self.location, self.data)

    def create(self, overwrite: bool = False) -> OutputStream:
        sink = self

        class _Stream(io.BytesIO):
            def close(self) -> None:
                if not self.closed:
                    sink.data = self.getvalue()
                super().close()

        return cast("OutputStream", _Stream())


class ManifestFolder(FileIO):
    """The folder `metadata` of a table.

    Parameters
    ----------
    storage
        Of the table.
    location
        Of the table as Iceberg spells it.

    Attributes
    ----------
    written
        The files that were written, relative to the table.
    """

    def __init__(self, storage: Storage, location: str) -> None:
        super().__init__()
        self._storage = storage
        self._location = location
        self.written: list[str] = []

    def path_of(self, location: str) -> str:
        """The path of a file of the folder relative to the table."""
        return f"{FOLDER}/{location.rpartition('/')[2]}"

    def new_input(self, location: str) -> InputFile:
        return _Bytes(location, self._storage.read(self.path_of(location)))

    def new_output(self, location: str) -> OutputFile:
        return _Sink(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        name = location if isinstance(location, str) else location.location
        deleter.delete(self._storage, ICEBERG_METADATA, [self.path_of(name)])

    def entries(self, manifest: ManifestFile) -> list[ManifestEntry]:
        """The entries of a manifest whose files are live."""
        return manifest.fetch_manifest_entry(self, discard_deleted=True)

    def manifests(self, manifest_list: str) -> list[ManifestFile]:
        """The manifests that a manifest list names."""
        return list(read_manifest_list(self.new_input(manifest_list)))

    @contextmanager
    def manifest(self, spec: PartitionSpec, schema: Schema, snapshot_id: int) -> Iterator[ManifestWriter]:
        """Write a manifest; the writer's `made` is it afterwards."""
        sink = _Sink(f"{self._location}/{FOLDER}/{uuid.uuid4()}-m0.avro")
        writer = ManifestWriter(spec, schema, sink, snapshot_id, _COMPRESSION)
        with writer:
            yield writer
        self._put(sink)
        writer.made = writer.to_manifest_file()

    def manifest_list(
        self, manifests: Sequence[ManifestFile], snapshot_id: int, parent: int | None, sequence_number: int
    ) -> str:
        """Write a manifest list; its address."""
        sink = _Sink(f"{self._location}/{FOLDER}/snap-{snapshot_id}-{uuid.uuid4()}.avro")
        with write_manifest_list(2, sink, snapshot_id, parent, sequence_number, _COMPRESSION) as writer:
            writer.add_manifests(list(manifests))
        self._put(sink)
        return sink.location

    def _put(self, sink: _Sink) -> None:
        path = self.path_of(sink.location)
        self._storage.create(path, sink.data)
        self.written.append(path)


class ManifestWriter(ManifestWriterV2):
    """Writes many entries to a block: pyiceberg gives each a block, and so a compression, of its own."""

    made: ManifestFile

    def __enter__(self) -> ManifestWriter:
        super().__enter__()
        self._blocks = _Blocks(self._writer)
        self._writer = cast("Any", self._blocks)
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            self._blocks.flush()
        self._writer = self._blocks.writer
        if error[0] is None:
            super().__exit__(*error)


class _Blocks:
    def __init__(self, writer: Any) -> None:
        self.writer = writer
        self._waiting: list[ManifestEntry] = []

    def write_block(self, entries: list[ManifestEntry]) -> None:
        self._waiting += entries
        if len(self._waiting) >= _ENTRIES_OF_A_BLOCK:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            self.writer.write_block(self._waiting)
            self._waiting = []
