"""`check`: all that is wrong or odd about a table.

Checks of the log: every commit is there and can be read, checkpoints and checksums say what the commits say.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.data import (
    CANNOT_RECONSTRUCT_PATH_FROM_URI,
    DELETION_VECTOR_CHECKSUM_MISMATCH,
    FAILED_READ_FILE_FILE_NOT_EXIST,
)
from delta_ds.exceptions import (
    DataFileError,
    DeltaError,
    InvalidOptionError,
    LogError,
    NotADeltaTableError,
    UnsupportedFeatureError,
)
from delta_ds.kernel.base.arrow_buffers import true_rows
from delta_ds.kernel.base.work import Phase, Work
from delta_ds.kernel.commands.fsck_findings import (
    DAMAGED_VECTOR,
    LONG_TAIL,
    MISSING_COMMIT,
    MISSING_FILE,
    MISSING_VECTOR,
    NO_STATISTICS,
    UNREADABLE_CHECKPOINT,
    UNREADABLE_COMMIT,
    UNREADABLE_FILE,
    UNREADABLE_VERSION,
    UNREFERENCED_FILE,
    WRONG_CHECKPOINT,
    WRONG_CHECKSUM,
    WRONG_FILE_ACTION,
    WRONG_SIZE,
    WRONG_STATISTICS,
    Finding,
    Kind,
)
from delta_ds.kernel.commands.vacuum.candidates import find_candidates
from delta_ds.kernel.commands.vacuum.paths import Hidden, actual_paths
from delta_ds.kernel.commands.vacuum.references import NeededPaths, needed_paths, vector_files
from delta_ds.kernel.files.read.data_file import open_data_file
from delta_ds.kernel.files.read.file_columns import Layouts
from delta_ds.kernel.files.read.plan import FileSlice, vector_descriptor
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.format.actions import DeletionVector, counted_rows
from delta_ds.kernel.format.features import ROW_TRACKING
from delta_ds.kernel.format.properties import CHECKPOINT_INTERVAL
from delta_ds.kernel.format.values.deletion_vector import read_positions
from delta_ds.kernel.log.checksum import read_checksum
from delta_ds.kernel.log.commit import Commit, in_batches, read_commits
from delta_ds.kernel.log.filenames import LogFile, checksum_path
from delta_ds.kernel.log.replay import State, load_state
from delta_ds.kernel.log.segment import Checkpoint, LogListing, choose_segment, list_log
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.storage.filesystem import NotAFileError, Storage
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.records import replace

if TYPE_CHECKING:
    from delta_ds.kernel.transaction.table_log import TableLog


# As many intervals of checkpoints without one are told.
_INTERVALS = 10
_NEWEST = 2
_ACTIONS = ("add", "remove", "cdc", "metaData", "protocol", "commitInfo", "txn", "domainMetadata")


def check_log(storage: Storage, *, every_checkpoint: bool) -> Iterator[Finding]:
    """What is wrong with the files of a log.

    Parameters
    ----------
    every_checkpoint
        Whether all of them are held against a replay without them, or the newest two.
    """
    listing = list_log(storage)
    yield from _gaps(listing)
    yield from _commits(storage, listing)
    checkpoints = listing.checkpoints if every_checkpoint else listing.checkpoints[-_NEWEST:]
    for checkpoint in checkpoints:
        yield from _checkpoint(storage, listing, checkpoint)


def _gaps(listing: LogListing) -> Iterator[Finding]:
    versions = sorted(listing.commits)
    for before, after in zip(versions, versions[1:], strict=False):
        if after > before + 1:
            missing = f"{before + 1}" if after == before + 2 else f"{before + 1} to {after - 1}"
            yield Finding(
                MISSING_COMMIT, relative_commit_path(before + 1), f"there is no commit of version {missing}"
            )


def _commits(storage: Storage, listing: LogListing) -> Iterator[Finding]:
    files = [listing.commits[version] for version in sorted(listing.commits)]
    for batch in in_batches(files):
        try:
            contents = dict(zip(batch, read_commits(storage, batch), strict=True))
        except DeltaError:
            contents = {}  # one of them is to blame, and is asked for alone
        for file in batch:
            reason = _unreadable(storage, file, contents.get(file))
            if reason:
                yield Finding(UNREADABLE_COMMIT, file.path, reason)


def _unreadable(storage: Storage, file: LogFile, commit: Commit | None) -> str:
    """Why a commit cannot be read; empty where it can."""
    try:
        if commit is None:
            (commit,) = read_commits(storage, [file])
        commit.check_whole()
        commit.find(*_ACTIONS)
    except DeltaError as error:
        return error.text
    return ""


def _checkpoint(storage: Storage, listing: LogListing, checkpoint: Checkpoint) -> Iterator[Finding]:
    path = checkpoint.files[0].path
    listing = _as_of(listing, checkpoint.version)
    above = [other for other in listing.checkpoints if other.rank > checkpoint.rank]
    try:
        found = load_state(storage, choose_segment(listing, checkpoint.version, above))
    except DeltaError as error:
        yield Finding(UNREADABLE_CHECKPOINT, path, error.text)
        return
    try:
        replayed = load_state(storage, choose_segment(listing, checkpoint.version, [*above, checkpoint]))
    except DeltaError:
        return  # There is nothing to hold it against, or what there is has a finding of its own.
    differs = [what for what, one, other in _aspects(found, replayed) if one != other]
    if differs:
        yield Finding(WRONG_CHECKPOINT, path, f"other {', '.join(differs)} than by the log without it")


def _as_of(listing: LogListing, version: int) -> LogListing:
    """The log up to a version: a checkpoint is as good as what it stands for, whatever is wrong with later versions."""
    return replace(
        listing,
        commits={number: file for number, file in listing.commits.items() if number <= version},
        checkpoints=tuple(other for other in listing.checkpoints if other.version <= version),
    )


def _aspects(found: State, replayed: State) -> list[tuple[str, Any, Any]]:
    def files(state: State) -> pa.Table:
        columns = {"path": state.files.canonical_paths, "size": state.files.table["size"]}
        return pa.table(columns).sort_by("path")

    return [
        ("protocol", found.table.protocol, replayed.table.protocol),
        ("metadata", found.table.metadata, replayed.table.metadata),
        ("domains", found.table.domains, replayed.table.domains),
        ("transactions", dict(found.txns), dict(replayed.txns)),
        ("files", files(found), files(replayed)),
    ]


def check_newest(snapshot: Snapshot) -> Iterator[Finding]:
    """What is odd about the newest version: its checksum, and how much a reader has to read."""
    checksum = read_checksum(snapshot.storage, snapshot.segment)
    files = snapshot.live_files()
    if checksum is not None:
        size = pc.sum(files.table["size"]).as_py() or 0
        if (checksum.num_files, checksum.size_bytes) != (files.num_rows, size):
            detail = (
                f"it counts {checksum.num_files} files of {checksum.size_bytes} bytes, and there are "
                f"{files.num_rows} of {size}"
            )
            yield Finding(WRONG_CHECKSUM, checksum_path(snapshot.version), detail)
    commits = len(snapshot.segment.commits)
    if commits > _INTERVALS * CHECKPOINT_INTERVAL.of(snapshot.metadata.configuration):
        yield Finding(LONG_TAIL, "", f"{commits} commits since the last checkpoint")


# --- checks of data files and deletion vectors by a listing: they are there, and as large as the log says

_FILES_AT_ONCE = 16
# Of no file: all that the log names is kept, whenever it was removed, and no file is too young to be told.
_ALWAYS, _NEVER = 0, 1 << 62


def check_files(snapshot: Snapshot, phase: Phase) -> Iterator[Finding]:
    """Live files and vectors that are missing or of another size; files that nothing in the log names."""
    storage = snapshot.storage
    hidden = Hidden(snapshot.table_state)
    batches = _listed(snapshot, hidden, phase)
    # The log is read after the listing: what was committed meanwhile is named in it.
    listing = list_log(storage)
    yield from _incomplete(snapshot, batches)
    try:
        needed = NeededPaths(needed_paths(snapshot, listing, _ALWAYS))
    except (LogError, DataFileError, NotAFileError):
        return  # a finding of its own; what the log does not tell, nobody may take for unreferenced
    found = find_candidates(iter(batches), needed, hidden, _NEVER).files
    for path, size in zip(found["path"].to_pylist(), found["size"].to_pylist(), strict=True):
        yield Finding(UNREFERENCED_FILE, path, f"{size} bytes")


def incomplete_files(snapshot: Snapshot) -> list[Finding]:
    """Live files and vectors that are missing or of another size, by a listing of the table's folder."""
    with Work("FSCK", snapshot.storage.url) as work, work.phase("listing") as phase:
        return list(_incomplete(snapshot, _listed(snapshot, Hidden(snapshot.table_state), phase)))


def _listed(snapshot: Snapshot, hidden: Hidden, phase: Phase) -> list[pa.RecordBatch]:
    batches = []
    for batch in snapshot.storage.list_below("", lambda folder: folder not in hidden):
        batches.append(batch)
        phase.advance(batch.num_rows)
    return batches


def _incomplete(snapshot: Snapshot, batches: Sequence[pa.RecordBatch]) -> Iterator[Finding]:
    storage, live = snapshot.storage, snapshot.live_files().table
    listed = pa.Table.from_batches(batches) if batches else None
    yield from _present(storage, listed, live["path"], live["size"], MISSING_FILE)
    try:
        vectors = vector_files(live["deletionVector"]).unique()
    except DataFileError as error:
        yield Finding(WRONG_FILE_ACTION, "", error.text)
    else:
        yield from _present(storage, listed, vectors, None, MISSING_VECTOR)


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
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
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


# --- `check`: all that is wrong or odd about a table


def check(log: TableLog, *, contents: bool = False) -> Iterator[Finding]:
    """Look for what is wrong with a table, and change nothing.

    Parameters
    ----------
    log
        The table.
    contents
        Also read every row of the newest version, as a scan does, and hold every checkpoint against the log without
        it.

    Yields
    ------
    Finding
        Of the log first, then of the newest version, then of files.

    Raises
    ------
    NotADeltaTableError
        There is no table.
    UnsupportedFeatureError
        It needs something of readers that this package does not have.
    """
    with Work("FSCK", log.storage.url) as work:
        yield from _findings(log, contents, work)


def _findings(log: TableLog, contents: bool, work: Work) -> Iterator[Finding]:
    try:
        snapshot = log.open_snapshot()
        snapshot.live_files()
        Scan(snapshot).plan  # noqa: B018 - all that a scan asks of the table beside its files
    except (NotADeltaTableError, UnsupportedFeatureError):
        raise
    except DeltaError as error:
        yield Finding(UNREADABLE_VERSION, "", error.text)
        yield from check_log(log.storage, every_checkpoint=contents)
        return
    with work.phase("checking the log", unit="commits"):
        yield from check_log(log.storage, every_checkpoint=contents)
        yield from check_newest(snapshot)
        wrong = list(check_vectors(snapshot))
        yield from wrong
    missing = []
    with work.phase("listing") as phase:
        for finding in check_files(snapshot, phase):
            missing += [finding.path] if finding.kind in (MISSING_FILE, MISSING_VECTOR) else []
            yield finding
    if contents and not any(finding.kind is WRONG_FILE_ACTION for finding in wrong):
        with work.phase("reading rows", total=snapshot.live_files().num_rows) as phase:
            yield from check_contents(snapshot, phase, missing)


# --- checks of what data files and deletion vectors hold: every row of the newest version is read, as a scan reads it

_AT_ONCE = min(4, os.cpu_count() or 1)
_OF_VECTORS = (DELETION_VECTOR_CHECKSUM_MISMATCH.name, CANNOT_RECONSTRUCT_PATH_FROM_URI.name)


def check_contents(snapshot: Snapshot, phase: Phase, missing: Collection[str]) -> Iterator[Finding]:
    """Live files that a scan cannot read to their ends, and those that count other rows than their statistics.

    Parameters
    ----------
    missing
        The data files and deletion vectors that are known not to be there.
    """
    try:
        rows_have_ids = snapshot.table_state.enabled(ROW_TRACKING)
    except InvalidOptionError as error:
        yield Finding(UNREADABLE_VERSION, "", error.text)
        rows_have_ids = False
    scan = Scan(snapshot, metadata_columns=("row_id", "row_commit_version") if rows_have_ids else ())
    texts = snapshot.live_files().stats_json().to_pylist()
    layouts, pieces = Layouts(scan.plan), scan.slices()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        looked = pool.map(lambda piece: _look(snapshot.storage, layouts, piece), pieces)
        for piece, text, found in phase.each(zip(pieces, texts, looked, strict=True)):
            if isinstance(found, DeltaError):
                if not _is_told(found, piece, missing):
                    yield Finding(
                        DAMAGED_VECTOR if found.condition in _OF_VECTORS else UNREADABLE_FILE,
                        piece.path,
                        found.text,
                    )
            elif (stated := counted_rows(text)) is None:
                yield Finding(NO_STATISTICS, piece.path, "the log does not count its rows")
            elif stated != found:
                yield Finding(WRONG_STATISTICS, piece.path, f"{found} rows, and the log says {stated}")


def _look(storage: Storage, layouts: Layouts, piece: FileSlice) -> int | DeltaError:
    """How many rows a file holds, deleted ones included; or why it cannot be read to its end."""
    try:
        with open_data_file(storage, layouts.plan, piece) as file:
            columns = file.columns(layouts)
            for groups in file.row_groups(columns):
                for _ in file.read(columns, groups, None, False):
                    pass
            return file.num_rows
    except DeltaError as error:
        return error


def _is_told(error: DeltaError, piece: FileSlice, missing: Collection[str]) -> bool:
    """Whether an error only says that a file is not there which is known to be missing."""
    vector = piece.deletion_vector
    names = {piece.path} if vector is None or vector.path is None else {piece.path, vector.path}
    return error.condition == FAILED_READ_FILE_FILE_NOT_EXIST.name and not names.isdisjoint(missing)
