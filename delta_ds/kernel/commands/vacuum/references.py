"""The files that versions within the retention refer to.

Live files; files whose removal is not older than the horizon; and whatever a commit at or after the horizon
names, since its versions are within the retention whatever the clock said by which a removal was dated, and
however long its files had been staged. Only sets are united, so nothing need be reconciled.

Source: protocol-checklist VAC-W-02, REM-R-04, DV-W-11.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.events.log import CHECKPOINT_PASSED_OVER
from delta_ds.exceptions import DataFileError
from delta_ds.kernel.arrow_buffers import field_of, fields_of, integers, texts
from delta_ds.kernel.commands.vacuum.paths import listing_forms
from delta_ds.kernel.data.values.deletion_vector import DeletionVectorDescriptor, z85_decode
from delta_ds.kernel.log.checkpoint import inline_actions, locate_files
from delta_ds.kernel.log.checkpoint_files import CheckpointFiles, UnreadableCheckpointError, open_file
from delta_ds.kernel.log.commit import read_in_batches
from delta_ds.kernel.log.file_actions import deletion_vector_type
from delta_ds.kernel.log.file_selection import select_in_checkpoint
from delta_ds.kernel.log.filenames import LogFile
from delta_ds.kernel.log.json_actions import parse_file_actions
from delta_ds.kernel.log.replay import ReplayHead
from delta_ds.kernel.log.segment import Checkpoint, LogListing, find_segment, list_log
from delta_ds.kernel.scan.skipping import row_numbers
from delta_ds.kernel.snapshot import Snapshot
from delta_ds.kernel.storage.filesystem import Storage


def _fields() -> dict[str, pa.DataType]:
    number = pa.int64()
    return {
        "path": pa.string(),
        "size": number,
        "deletionTimestamp": number,
        "deletionVector": deletion_vector_type(),
    }


def _schema(*actions: str) -> pa.Schema:
    body = pa.struct(list(_fields().items()))
    return pa.schema([(name, body) for name in actions])


def needed_paths(snapshot: Snapshot, listing: LogListing, cutoff_ms: int) -> pa.ChunkedArray:
    """The files that must stay, in the spelling of a listing, without duplicates.

    Parameters
    ----------
    snapshot
        The newest version.
    listing
        Of the whole log, made after the snapshot.
    cutoff_ms
        The horizon, ms since 1970.

    Raises
    ------
    DeltaError
        The log cannot be read, or names a deletion vector that is none: nothing may be deleted then.
    """
    storage = snapshot.storage
    live = snapshot.live_files().table
    columns = [live["path"], vector_files(live["deletionVector"])]
    segment_base = -1
    checkpoint = snapshot.segment.checkpoint
    if checkpoint is not None:
        checkpoint, removes = _tombstones(snapshot, checkpoint)
        segment_base = checkpoint.version if checkpoint is not None else -1
        columns += [part for rows in removes for part in _named_paths(_young(rows, cutoff_ms))]
    columns += _named_in_commits(snapshot, listing, segment_base, cutoff_ms)
    return _distinct(columns, storage)


def needed_by_commits(
    snapshot: Snapshot, head: ReplayHead, listing: LogListing, cutoff_ms: int
) -> pa.ChunkedArray:
    """What of `needed_paths` the commits of the log name, those before the checkpoint that `head` begins with included.

    Together with `needed_in_checkpoint` of all parts of it, these are the needed paths.
    """
    live = head.state.files.table
    columns = [live["path"], vector_files(live["deletionVector"])]
    checkpoint = snapshot.segment.checkpoint
    assert checkpoint is not None
    columns += _named_in_commits(snapshot, listing, checkpoint.version, cutoff_ms)
    return _distinct(columns, snapshot.storage)


def needed_in_checkpoint(
    storage: Storage, part: CheckpointFiles, touched: pa.StringArray, columns: Sequence[str], cutoff_ms: int
) -> pa.ChunkedArray:
    """What of `needed_paths` a checkpoint names, or a part of one.

    Parameters
    ----------
    touched, columns
        See `select_in_checkpoint`.

    Raises
    ------
    DeltaError
        As `needed_paths`.
    """
    with ThreadPoolExecutor(1) as reader:
        live = select_in_checkpoint(
            storage, part, touched, columns, lambda files: row_numbers(files.num_rows), reader
        )
    path_columns = [
        column for table in live for column in (table["path"], vector_files(table["deletionVector"]))
    ]
    for rows in _removes_in(storage, part):
        path_columns += _named_paths(_young(rows, cutoff_ms))
    return _distinct(path_columns, storage)


def _named_in_commits(
    snapshot: Snapshot, listing: LogListing, segment_base: int, cutoff_ms: int
) -> Iterator[pa.ChunkedArray]:
    """The files that commits within the horizon name, and those that commits since the checkpoint removed lately."""
    storage = snapshot.storage
    first = first_within(listing, snapshot.version, cutoff_ms)
    before = [f for v, f in listing.commits.items() if segment_base < v < first]
    within = [f for v, f in listing.commits.items() if v >= first]
    for rows in read_log_rows(storage, before, "remove"):
        yield from _named_paths(_young(rows, cutoff_ms))
    for rows in read_log_rows(storage, within, "add", "remove", "cdc"):
        yield from _named_paths(rows)


def paths_added_since(storage: Storage, version: int, below: int | None = None) -> pa.ChunkedArray:
    """The files that commits after a version added, in the spelling of a listing.

    Parameters
    ----------
    below
        Commits from this version on are not looked at.
    """
    commits = list_log(storage, version + 1).commits
    files = [file for v, file in commits.items() if v > version and (below is None or v < below)]
    columns = [part for rows in read_log_rows(storage, files, "add", "cdc") for part in _named_paths(rows)]
    return _distinct(columns, storage)


def _distinct(parts: Sequence[pa.ChunkedArray], storage: Storage) -> pa.ChunkedArray:
    chunks = [chunk for part in parts for chunk in part.chunks]
    paths = pa.chunked_array([pa.chunked_array(chunks, type=pa.string()).unique()])
    return pa.chunked_array([listing_forms(paths, storage).unique()])


def first_within(listing: LogListing, read: int, cutoff_ms: int) -> int:
    """The first version that was committed at or after the horizon; what came after the one read counts too."""
    young = [v for v, file in listing.commits.items() if file.status.modified_ms >= cutoff_ms]
    return min([*young, read + 1])


def read_log_rows(storage: Storage, files: Sequence[LogFile], *actions: str) -> Iterator[pa.StructArray]:
    """The file actions of commits, in batches: structs of path, size, deletionTimestamp, deletionVector."""
    for commits in read_in_batches(storage, sorted(files, key=lambda file: file.version)):
        for commit in commits:
            commit.check_whole()
        yield from _parse_vectors([(commit.where, commit.data) for commit in commits], *actions)


def _parse_vectors(contents: list[tuple[str, bytes]], *actions: str) -> Iterator[pa.StructArray]:
    for table in parse_file_actions(contents, _schema(*actions)):
        for name in actions:
            rows = table[name].drop_null().combine_chunks()
            if len(rows):
                yield rows


def _young(rows: pa.StructArray, cutoff_ms: int) -> pa.StructArray:
    return rows.filter(is_young(rows, cutoff_ms))


def is_young(rows: pa.StructArray, cutoff_ms: int) -> pa.BooleanArray:
    """Whether removes are not older than the horizon; one without a time is."""
    times = pc.fill_null(pc.struct_field(rows, "deletionTimestamp"), integers([0])[0])
    return pc.greater_equal(times, integers([cutoff_ms])[0])


def _named_paths(rows: pa.StructArray) -> list[pa.ChunkedArray]:
    vectors = pc.struct_field(rows, "deletionVector")
    return [pa.chunked_array([pc.struct_field(rows, "path")]), vector_files(pa.chunked_array([vectors]))]


# ---------------------------------------------------------------- checkpoints


def _tombstones(snapshot: Snapshot, checkpoint: Checkpoint) -> tuple[Checkpoint | None, list[pa.StructArray]]:
    """The removes in a checkpoint of a version, and the checkpoint: an older one where that cannot be read."""
    storage = snapshot.storage
    rejected: list[Checkpoint] = []
    current: Checkpoint | None = checkpoint
    while current is not None:
        try:
            return current, list(_checkpoint_removes(storage, current))
        except UnreadableCheckpointError as error:
            CHECKPOINT_PASSED_OVER.log(table=storage.url, version=current.version, reason=error)
            rejected.append(current)
        current = find_segment(storage, snapshot.version, rejected).checkpoint
    return None, []


def _checkpoint_removes(storage: Storage, checkpoint: Checkpoint) -> Iterator[pa.StructArray]:
    files = locate_files(storage, checkpoint)
    if files is None:
        manifest = inline_actions(storage, checkpoint) or b""
        yield from _parse_vectors([(checkpoint.files[0].path, manifest)], "remove")
        return
    yield from _removes_in(storage, files)


def _removes_in(storage: Storage, files: CheckpointFiles) -> Iterator[pa.StructArray]:
    struct_type = pa.struct([(name, kind) for name, kind in _fields().items() if name != "size"])
    for path in files.paths:
        with open_file(storage, files, path) as opened:
            schema = opened.schema
            if "remove" not in schema.names:
                continue
            present = [
                f.name for f in schema.field("remove").type if f.name in _fields() and f.name != "size"
            ]
            if "path" not in present:
                continue
            table = opened.read([f"remove.{name}" for name in present], files.groups)
        for rows in table["remove"].chunks:
            rows = rows.filter(pc.is_valid(pc.struct_field(rows, "path")))
            if len(rows):
                yield pa.StructArray.from_arrays(
                    _conform_removes(rows, struct_type), fields=list(struct_type)
                )


def _conform_removes(rows: pa.StructArray, struct_type: pa.StructType) -> list[pa.Array]:
    """The fields of removes in a checkpoint; some writers store a struct of nulls where there is no vector."""
    path, time, vector = fields_of(_without_vector(rows), struct_type)
    names = {f.name for f in rows.type}
    if "deletionVector" in names:
        kind = deletion_vector_type()
        inner = fields_of(pc.struct_field(rows, "deletionVector"), kind)
        vector = pa.StructArray.from_arrays(inner, fields=list(kind), mask=pc.is_null(inner[0]))
    return [path, time, vector]


def _without_vector(rows: pa.StructArray) -> pa.StructArray:
    others = [f for f in rows.type if f.name != "deletionVector"]
    return pa.StructArray.from_arrays([field_of(rows, f.name) for f in others], fields=others)


# ---------------------------------------------------------------- deletion vectors


def vector_files(vectors: pa.ChunkedArray) -> pa.ChunkedArray:
    """The files that hold deletion vectors, as the `path` of an action would name them; distinct."""
    if vectors.null_count == len(vectors):
        return pa.chunked_array([], type=pa.string())
    chunks = [vector_paths(chunk.drop_null()) for chunk in vectors.chunks]
    return pa.chunked_array(chunks, type=pa.string()).drop_null()


def vector_paths(vectors: pa.StructArray) -> pa.Array:
    """The file of each deletion vector, as the `path` of an action would name it; null for inline ones.

    Parameters
    ----------
    vectors
        Descriptors without nulls.

    Raises
    ------
    DataFileError
        One names no file in any way that is known.
    """
    kinds = pc.struct_field(vectors, "storageType").dictionary_encode()
    names = pc.struct_field(vectors, "pathOrInlineDv")
    # Vectors share files, and the names of inline ones are of no interest.
    inline = pc.equal(kinds.dictionary, texts(["i"])[0]).take(kinds.indices)
    key = pc.binary_join_element_wise(kinds.cast(pa.string()), names, texts([" "])[0])
    encoded = pc.if_else(inline, pa.nulls(1, pa.string())[0], key).dictionary_encode()
    named = encoded.dictionary.to_pylist()
    paths = _uuid_paths(named)
    if paths is None:
        keys = [text.partition(" ") for text in named]
        paths = [DeletionVectorDescriptor(kind, name, None, 0, 0).path or "" for kind, _, name in keys]
    return texts(paths).take(encoded.indices)


def _uuid_paths(named: list[str]) -> list[str] | None:
    """The files of vectors that are all named by a UUID (`u <prefix><20 letters>`), decoded at once; else None.

    One by one they cost more than all the rest of a VACUUM.
    """
    if not all(text.isascii() and text[:2] == "u " and len(text) >= 22 for text in named):
        return None
    try:
        data = z85_decode("".join(text[-20:] for text in named)).hex() if named else ""
    except DataFileError:  # which one it is, the slow way tells
        return None
    out = []
    for number, text in enumerate(named):
        prefix, hexed = text[2:-20], data[32 * number : 32 * number + 32]
        uuid = f"{hexed[:8]}-{hexed[8:12]}-{hexed[12:16]}-{hexed[16:20]}-{hexed[20:]}"
        out.append(quote(f"{prefix}/deletion_vector_{uuid}.bin" if prefix else f"deletion_vector_{uuid}.bin"))
    return out
