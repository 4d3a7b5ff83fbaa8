"""Checks of data files and deletion vectors: they are there, as large as the log says, and hold what statistics say."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import DeltaError, LogError
from delta_ds.kernel.arrow_buffers import true_rows
from delta_ds.kernel.commands.fsck.findings import (
    MISSING_FILE,
    MISSING_VECTOR,
    NO_STATISTICS,
    UNREADABLE_FILE,
    UNREFERENCED_FILE,
    WRONG_SIZE,
    WRONG_STATISTICS,
    Finding,
    Kind,
)
from delta_ds.kernel.commands.vacuum.candidates import find_candidates
from delta_ds.kernel.commands.vacuum.needed import NeededPaths
from delta_ds.kernel.commands.vacuum.paths import Hidden, actual_paths
from delta_ds.kernel.commands.vacuum.references import needed_paths, vector_files
from delta_ds.kernel.data.write.footer_statistics import read_footer
from delta_ds.kernel.json_text import parse_json
from delta_ds.kernel.log.segment import list_log
from delta_ds.kernel.snapshot import Snapshot
from delta_ds.kernel.storage.filesystem import Storage
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
    vectors = vector_files(live["deletionVector"]).unique()
    yield from _present(storage, listed, vectors, None, MISSING_VECTOR)
    try:
        needed = NeededPaths(needed_paths(snapshot, listing, _ALWAYS))
    except LogError:
        return  # a finding of its own; what the log does not tell, nobody may take for unreferenced
    found = find_candidates(iter(batches), needed, hidden, _NEVER).files
    for path, size in zip(found["path"].to_pylist(), found["size"].to_pylist(), strict=True):
        yield Finding(UNREFERENCED_FILE, path, f"{size} bytes")


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
            if size is None:
                yield Finding(missing, path, "there is no such file")
            elif sizes is not None and size != sizes[number].as_py():
                yield Finding(WRONG_SIZE, path, f"{size} bytes, and the log says {sizes[number].as_py()}")


def _size(storage: Storage, path: str) -> int | None:
    """Of a file that an action names, wherever it lies; None where there is none."""
    try:
        return storage.status(storage.resolve(path)).size
    except FileNotFoundError:
        return None


def check_contents(snapshot: Snapshot, phase: Phase) -> Iterator[Finding]:
    """Live files whose footers cannot be read or count other rows than their statistics."""
    files = snapshot.live_files()
    texts = files.stats_json().to_pylist()
    paths, sizes = files.table["path"].to_pylist(), files.table["size"].to_pylist()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        rows = pool.map(lambda path, size: _rows(snapshot.storage, path, size), paths, sizes)
        for path, text, found in phase.each(zip(paths, texts, rows, strict=True)):
            if isinstance(found, str):
                yield Finding(UNREADABLE_FILE, path, found)
                continue
            stated = parse_json(text).get("numRecords") if text else None
            if stated is None:
                yield Finding(NO_STATISTICS, path, "the log does not count its rows")
            elif found is not None and stated != found:
                yield Finding(WRONG_STATISTICS, path, f"{found} rows, and the log says {stated}")


def _rows(storage: Storage, path: str, size: int) -> int | str | None:
    """How many rows a file holds; why it cannot be told; None for a file that is not there."""
    try:
        return int(read_footer(storage, storage.resolve(path), size).num_rows)
    except FileNotFoundError:
        return None
    except DeltaError as error:
        return error.text
    except (pa.ArrowException, OSError) as error:
        return str(error)
