"""A cache of snapshots on disk, so that the next process replays only newer commits.

Spark plans, reads and commits in separate Python processes, so a cold process is the normal case. An
entry is one Arrow IPC file with a description behind it, memory-mapped when used; it counts only if every log
file it was made from is still the same (name, size, time, etag), only as old as that, and only if every byte
is as it was written: what a bad disk or a power failure leaves would else give wrong rows, or end the process.
The checkpoint that its rows count in may be older than those of the log now; it is looked at when it is read.

The folder belongs to the user alone (0700), is bounded in size (least recently used entries go first)
and safe under concurrent processes: entries appear by rename and are never changed. Anything wrong with
an entry means a cache miss.

Where it is and what it may hold: `environment.CACHE`, `environment.CACHE_SIZE`.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import stat
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delta_ds.events.log import CACHE_ENTRY_IGNORED, CACHE_OFF, CACHE_SIZE_IGNORED, CACHE_WRITE_FAILED
from delta_ds.kernel.base import environment
from delta_ds.kernel.format.actions import Metadata, Protocol
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.checkpoint_files import CheckpointFiles, SeenFile
from delta_ds.kernel.log.filenames import LogFile
from delta_ds.kernel.log.live_files import LiveFiles
from delta_ds.kernel.log.replay import Base, State, files_again
from delta_ds.kernel.log.segment import LogSegment
from delta_ds.kernel.storage.filesystem import FileStatus, Storage

if TYPE_CHECKING:
    import pyarrow as pa


_FORMAT = 3
# At the end of an entry: the bytes of the Arrow file, those of the description after it, and its CRC-32.
_END = struct.Struct("<8sQQI")
_MAGIC = b"DDSENTRY"
_ENTRY = re.compile(r"[0-9a-f]{32}/\d{20}-[0-9a-f]{16}\.arrow")
# Of the Arrow file so many bytes have a CRC-32 of their own, so that all cores can check.
_BLOCK_BYTES = 8 << 20
# Below this a replay is as fast as looking into the cache.
_WORTHWHILE_FILES = 2000
_WORTHWHILE_COMMITS = 50
# Windows has no user ids; there the folder is in the user's profile, which others cannot read.
_current_user = getattr(os, "getuid", None)


def cache_folder() -> Path | None:
    """The folder of this user's entries, made if needed; None if caching is off or not safe here."""
    setting = environment.CACHE.text()
    if setting.lower() == "off":
        return None
    base = environment.CACHE_HOME.text() or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(setting) if setting else Path(base) / "delta_ds"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        CACHE_OFF.log(folder=folder, reason=error)
        return None
    if _current_user is not None and (found.st_uid != _current_user() or stat.S_IMODE(found.st_mode) & 0o077):
        CACHE_OFF.log(folder=folder, reason="it is not this user's alone (0700)")
        return None
    return folder


def load(storage: Storage, segment: LogSegment) -> Base | None:
    """The newest cached state that the segment equals or continues; None for a miss."""
    folder = _table_folder(storage)
    if folder is None or not folder.is_dir():
        return None
    for version, path in _entries(folder):
        if version > segment.version:
            continue
        state = _read(storage, segment, version, path)
        if state is not None:
            return Base(version, state)
    return None


def store(storage: Storage, segment: LogSegment, state: State, replayed_commits: int) -> None:
    """Keep a state for later processes, if replaying it took long enough.

    Failing to write is logged and otherwise of no matter.
    """
    if state.files.num_rows < _WORTHWHILE_FILES and replayed_commits < _WORTHWHILE_COMMITS:
        return
    folder = _table_folder(storage)
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        _write(folder, segment, state)
        _evict(folder.parent)
    except OSError as error:
        CACHE_WRITE_FAILED.log(folder=folder, reason=error)


def _table_folder(storage: Storage) -> Path | None:
    folder = cache_folder()
    if folder is None:
        return None
    return folder / hashlib.sha256(storage.url.encode()).hexdigest()[:32]


def _entries(folder: Path) -> Iterator[tuple[int, Path]]:
    try:
        names = sorted((p.name for p in folder.iterdir() if p.suffix == ".arrow"), reverse=True)
    except OSError as error:  # no more of it, or not this user's any more
        CACHE_OFF.log(folder=folder, reason=error)
        return
    for name in names:
        if name[:20].isdecimal():
            yield int(name[:20]), folder / name


def _fingerprint(files: Sequence[LogFile]) -> list[list[Any]]:
    return [[f.path, f.status.size, f.status.modified_ms, f.status.etag] for f in files]


def _write(folder: Path, segment: LogSegment, state: State) -> None:
    import tempfile

    import pyarrow as pa
    import pyarrow.ipc as ipc

    stats, row, checkpoint = state.files.parts
    table = state.files.table.append_column("stats", stats).append_column("row", row)
    body = {
        "format": _FORMAT,
        "version": segment.version,
        "files": _fingerprint((*segment.files, segment.last_commit)),
        "protocol": _protocol_body(state.table.protocol),
        "metadata": _metadata_body(state.table.metadata),
        "txns": dict(state.txns),
        "domains": dict(state.table.domains or {}),
        "partition_columns": list(state.partition_columns),
        "checkpoint": None if checkpoint is None else _checkpoint_body(checkpoint),
    }
    name = f"{segment.version:020d}-{hashlib.sha256(json.dumps(body).encode()).hexdigest()[:16]}.arrow"
    handle, temporary = tempfile.mkstemp(prefix=".entry-", dir=folder)
    os.close(handle)
    try:
        with pa.OSFile(temporary, "wb") as sink, ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        size = os.path.getsize(temporary)
        body["blocks"] = _checksums(temporary, size)
        text = json.dumps(body).encode()
        with open(temporary, "ab") as file:
            file.write(text + _END.pack(_MAGIC, size, len(text), zlib.crc32(text)))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, folder / name)
    except BaseException:
        os.unlink(temporary)
        raise


def _checksums(path: str | Path, size: int) -> list[int]:
    """The CRC-32 of each block of the first `size` bytes; read, so that a mapping holds only what is used of it."""
    from concurrent.futures import ThreadPoolExecutor

    def checksum(start: int) -> int:
        with open(path, "rb") as file:
            file.seek(start)
            return zlib.crc32(file.read(min(_BLOCK_BYTES, size - start)))

    starts = range(0, size, _BLOCK_BYTES)
    if len(starts) < 2:
        return list(map(checksum, starts))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(checksum, starts))


def _read(storage: Storage, segment: LogSegment, version: int, path: Path) -> State | None:
    import pyarrow as pa
    import pyarrow.ipc as ipc

    try:
        with pa.memory_map(str(path)) as file:
            whole = file.read_buffer(file.size())
        magic, size, length, checksum = _END.unpack(whole[-_END.size :])
        if magic != _MAGIC or size + length + _END.size != whole.size:
            raise ValueError("it is of another format, or cut off")
        text = whole.slice(size, length)
        if zlib.crc32(text) != checksum:
            raise ValueError("its description is damaged")
        body = json.loads(text.to_pybytes())
        if body["format"] != _FORMAT or body["version"] != version:
            raise ValueError("it is of another format")
        if not _still_true(body["files"], segment, version):
            return None
        data = whole.slice(0, size)
        if _checksums(path, size) != body["blocks"]:
            raise ValueError("its content is damaged")
        table = ipc.open_file(data).read_all()
        os.utime(path)
        return _state(storage, table, body)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, struct.error, pa.ArrowException) as error:
        CACHE_ENTRY_IGNORED.log(file=path, reason=error)
        with suppress(OSError):
            path.unlink()
        return None


def _still_true(recorded: list[list[Any]], segment: LogSegment, version: int) -> bool:
    """Whether a cached state is of this segment: same base, same commits up to its version.

    With a newer checkpoint the older commits may be cleaned up; the entry then still holds if the
    checkpoint of the segment is not above it, so every commit in between can be compared.
    """
    known = {entry[0]: entry[1:] for entry in recorded}
    current = {f[0]: f[1:] for f in _fingerprint((*segment.files, segment.last_commit))}
    if segment.checkpoint is not None and segment.checkpoint.version > version:
        return False
    shared = [path for path in known if path in current]
    if any(known[path] != current[path] for path in shared):
        return False
    # The commits after the segment's checkpoint up to the entry's version must all have been read by it.
    needed = [f.path for f in segment.commits if f.end <= version]
    if segment.checkpoint is not None and segment.checkpoint.version == version:
        needed += [f.path for f in segment.checkpoint.files]
    straddling = [f for f in segment.commits if f.version <= version < f.end]
    return not straddling and all(path in known for path in needed) and bool(shared)


def _state(storage: Storage, table: pa.Table, body: Mapping[str, Any]) -> State:
    version = int(body["version"])
    checkpoint = None if body["checkpoint"] is None else _checkpoint(body["checkpoint"])
    again = functools.partial(files_again, storage, version)
    base = table.drop_columns(["stats", "row"])
    files = LiveFiles(storage, base, table["stats"], table["row"], checkpoint, again)
    found = TableState(
        storage.url,
        version,
        _protocol(body["protocol"]),
        _metadata(body["metadata"]),
        dict(body["domains"]),
    )
    return State(found, dict(body["txns"]), files, tuple(body["partition_columns"]))


def _checkpoint_body(files: CheckpointFiles) -> list[list[Any]]:
    """The files that rows count in, with what tells each from another one of its name."""
    return [
        [path, file.status.size, file.status.modified_ms, file.status.etag, file.footer, file.machine]
        for path, file in ((path, files.seen[path]) for path in files.paths)
    ]


def _checkpoint(body: Sequence[Sequence[Any]]) -> CheckpointFiles:
    seen = {entry[0]: SeenFile(FileStatus(*entry[:4]), *entry[4:]) for entry in body}
    return CheckpointFiles(tuple(seen), seen)


def _protocol_body(protocol: Protocol) -> dict[str, Any]:
    return {
        "minReaderVersion": protocol.min_reader,
        "minWriterVersion": protocol.min_writer,
        "readerFeatures": None if protocol.reader_features is None else sorted(protocol.reader_features),
        "writerFeatures": None if protocol.writer_features is None else sorted(protocol.writer_features),
    }


def _protocol(body: Mapping[str, Any]) -> Protocol:
    return Protocol.from_action(body, "the snapshot cache")


def _metadata_body(metadata: Metadata) -> dict[str, Any]:
    return {
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "format": {"provider": metadata.provider},
        "schemaString": metadata.schema_string,
        "partitionColumns": list(metadata.partition_columns),
        "configuration": dict(metadata.configuration),
        "createdTime": metadata.created_time,
    }


def _metadata(body: Mapping[str, Any]) -> Metadata:
    return Metadata.from_action(body, "the snapshot cache")


def _evict(folder: Path) -> None:
    """Delete the least recently used entries until the folder is within its bound."""
    try:
        bound = int(environment.CACHE_SIZE.text())
    except ValueError:
        bound = int(environment.CACHE_SIZE.default)
        CACHE_SIZE_IGNORED.log(value=environment.CACHE_SIZE.text())
    found = []
    for path in folder.glob("*/*.arrow"):
        if not _ENTRY.fullmatch(str(path.relative_to(folder).as_posix())) or path.parent.is_symlink():
            continue  # of somebody else: the folder may be one that is used for other things too
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        found.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= bound:
            break
        path.unlink(missing_ok=True)
        total -= size
