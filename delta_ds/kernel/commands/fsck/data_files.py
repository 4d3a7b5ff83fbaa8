"""Checks of data files and deletion vectors by a listing: they are there, and as large as the log says."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import DataFileError, DeltaError, LogError
from delta_ds.kernel.actions import DeletionVector
from delta_ds.kernel.arrow_buffers import true_rows
from delta_ds.kernel.commands.fsck.findings import (
    DAMAGED_VECTOR,
    MISSING_FILE,
    MISSING_VECTOR,
    UNREFERENCED_FILE,
    WRONG_FILE_ACTION,
    WRONG_SIZE,
    Finding,
    Kind,
)
from delta_ds.kernel.commands.vacuum.candidates import find_candidates
from delta_ds.kernel.commands.vacuum.needed import NeededPaths
from delta_ds.kernel.commands.vacuum.paths import Hidden, actual_paths
from delta_ds.kernel.commands.vacuum.references import needed_paths, vector_files
from delta_ds.kernel.data.values.deletion_vector import read_positions
from delta_ds.kernel.log.segment import list_log
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.scan.scan import vector_descriptor
from delta_ds.kernel.storage.filesystem import NotAFileError, Storage
from delta_ds.kernel.work import Phase

_AT_ONCE = 16
# Of no file: all that the log names is kept, whenever it was removed, and no file is too young to be told.
_ALWAYS, _NEVER = 0, 1 << 62


def check_files(snapshot: Snapshot, phase: Phase) -> Iterator[Finding]:
    """Live files and vectors that are missing or of another size; files that nothing in the log names."""
    storage = snapshot.storage
    hidden = Hidden(snapshot.table_state)
    batches = []
    for batch in storage.list_below("", lambda folder: folder not in hidden):
        batches.append(batch)
        phase.advance(batch.num_rows)
    # The log is read after the listing: what was committed meanwhile is named in it.
    listing = list_log(storage)
    live = snapshot.live_files().table
    listed = pa.Table.from_batches(batches) if batches else None
    yield from _present(storage, listed, live["path"], live["size"], MISSING_FILE)
    try:
        vectors = vector_files(live["deletionVector"]).unique()
    except DataFileError as error:
        yield Finding(WRONG_FILE_ACTION, "", error.text)
    else:
        yield from _present(storage, listed, vectors, None, MISSING_VECTOR)
    try:
        needed = NeededPaths(needed_paths(snapshot, listing, _ALWAYS))
    except (LogError, DataFileError, NotAFileError):
        return  # a finding of its own; what the log does not tell, nobody may take for unreferenced
    found = find_candidates(iter(batches), needed, hidden, _NEVER).files
    for path, size in zip(found["path"].to_pylist(), found["size"].to_pylist(), strict=True):
        yield Finding(UNREFERENCED_FILE, path, f"{size} bytes")


def check_vectors(snapshot: Snapshot) -> Iterator[Finding]:
    """Live files whose deletion vectors make no sense as far as the log holds them: descriptors, and inline ones."""
    live = snapshot.live_files().table
    with_vector = live.filter(pc.is_valid(live["deletionVector"]))
    for path, vector in zip(*(with_vector[n].to_pylist() for n in ("path", "deletionVector")), strict=True):
        found = _wrong_vector(snapshot.storage, path, vector)
        if found is not None:
            yield found


def _wrong_vector(storage: Storage, path: str, vector: DeletionVector) -> Finding | None:
    try:
        descriptor = vector_descriptor(vector)
        if descriptor is not None and descriptor.path is None:
            read_positions(storage, descriptor)
    except DataFileError as error:
        return Finding(DAMAGED_VECTOR, path, error.text)
    except LogError as error:
        return Finding(WRONG_FILE_ACTION, path, error.text)
    return None


def _present(
    storage: Storage, listed: pa.Table | None, paths: Any, sizes: pa.ChunkedArray | None, missing: Kind
) -> Iterator[Finding]:
    """Those of some files that a listing lacks, and that are not to be found one by one either."""
    named = paths.combine_chunks() if isinstance(paths, pa.ChunkedArray) else paths
    if listed is None:
        places = pa.nulls(len(named), pa.int32())
    else:
        places = pc.index_in(actual_paths(named, storage), listed["path"].combine_chunks())
    found = None if listed is None else listed["size"].take(places)
    right = pc.is_valid(places)
    if sizes is not None and found is not None:
        right = pc.and_(right, pc.fill_null(pc.equal(found, sizes), False))
    doubtful = true_rows(pc.invert(right)).to_pylist()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = pool.map(lambda number: _size(storage, named[number].as_py()), doubtful)
        for number, size in zip(doubtful, asked, strict=True):
            path = named[number].as_py()
            if isinstance(size, str):
                yield Finding(missing, path, size)
            elif sizes is not None and size != sizes[number].as_py():
                yield Finding(WRONG_SIZE, path, f"{size} bytes, and the log says {sizes[number].as_py()}")


def _size(storage: Storage, path: str) -> int | str:
    """Of a file that an action names, wherever it lies; why it cannot be told."""
    try:
        return storage.status(storage.resolve(path)).size
    except FileNotFoundError:
        return "there is no such file"
    except DeltaError as error:
        return error.text
