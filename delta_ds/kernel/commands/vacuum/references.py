"""The files that versions within the retention refer to.

Live files; files whose removal is not older than the horizon; and whatever a commit at or after the horizon
names, since its versions are within the retention whatever the clock said by which a removal was dated, and
however long its files had been staged. Only sets are united, so nothing need be reconciled.

Source: protocol-checklist VAC-W-02, REM-R-04, DV-W-11.

What must stay, as VACUUM asks for it: the paths themselves, or of large tables their hashes, eight bytes a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import DataFileError
from delta_ds.kernel.base.arrow_buffers import field_of, integers, mask, texts
from delta_ds.kernel.commands.vacuum.paths import listing_forms
from delta_ds.kernel.format.values.deletion_vector import DeletionVectorDescriptor, z85_decode
from delta_ds.kernel.log.checkpoint import inline_actions, locate_files, remove_leaves, removed_by
from delta_ds.kernel.log.checkpoint_files import open_file
from delta_ds.kernel.log.commit import read_in_batches
from delta_ds.kernel.log.file_actions import as_vectors, deletion_vector_type
from delta_ds.kernel.log.filenames import LogFile
from delta_ds.kernel.log.json_actions import parse_file_actions
from delta_ds.kernel.log.parts import Part, parts_of, pieces
from delta_ds.kernel.log.reconcile import OlderFiles, select
from delta_ds.kernel.log.replay import ReplayHead
from delta_ds.kernel.log.segment import Checkpoint, LogListing, LogSegment, list_log, with_fallback
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.storage.filesystem import Storage

if TYPE_CHECKING:
    import numpy.typing as npt


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

    def removes_of(segment: LogSegment) -> list[pa.StructArray]:
        return [] if segment.checkpoint is None else list(_removes(storage, segment.checkpoint))

    segment, removes = with_fallback(storage, snapshot.segment, removes_of)
    columns += [part for rows in removes for part in _named_paths(_young(rows, cutoff_ms))]
    base = -1 if segment.checkpoint is None else segment.checkpoint.version
    columns += _named_in_commits(snapshot, listing, base, cutoff_ms)
    return _distinct(columns, storage)


def needed_by_commits(
    snapshot: Snapshot, head: ReplayHead, listing: LogListing, cutoff_ms: int
) -> pa.ChunkedArray:
    """What of `needed_paths` the commits of the log name, those before the checkpoint that `head` begins with included.

    Together with `needed_in_part` of all parts of it, these are the needed paths.
    """
    live = head.state.files.table
    columns = [live["path"], vector_files(live["deletionVector"])]
    checkpoint = snapshot.segment.checkpoint
    assert checkpoint is not None
    columns += _named_in_commits(snapshot, listing, checkpoint.version, cutoff_ms)
    return _distinct(columns, snapshot.storage)


def needed_in_part(older: OlderFiles, part: Part, cutoff_ms: int) -> pa.ChunkedArray:
    """What of `needed_paths` a part of a checkpoint names.

    Raises
    ------
    DeltaError
        As `needed_paths`.
    """
    columns: list[pa.ChunkedArray] = []
    for piece in pieces(older.storage, part):
        for live in select(older, [piece], None, map):
            columns += [live["path"], vector_files(live["deletionVector"])]
        for rows in _removes_in(older.storage, piece):
            columns += _named_paths(_young(rows, cutoff_ms))
    return _distinct(columns, older.storage)


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


def _removes(storage: Storage, checkpoint: Checkpoint) -> Iterator[pa.StructArray]:
    files = locate_files(storage, checkpoint)
    if files is None:
        manifest = inline_actions(storage, checkpoint) or b""
        yield from _parse_vectors([(checkpoint.files[0].path, manifest)], "remove")
        return
    for part in parts_of(storage, files, map):
        yield from _removes_in(storage, part)


def _removes_in(storage: Storage, part: Part) -> Iterator[pa.StructArray]:
    if "remove" not in part.actions:
        return
    struct_type = pa.struct([(name, kind) for name, kind in _fields().items() if name != "size"])
    with open_file(storage, part.files, part.path, part.footer) as opened:
        wanted = [field.name for field in struct_type]
        leaves = remove_leaves(opened.schema, wanted, f"{part.path} of {storage.url}")
        table = opened.read(leaves, part.groups)
        written_ms = opened.written_ms
    for rows in table["remove"].chunks:
        rows = rows.filter(pc.is_valid(pc.struct_field(rows, "path")))
        if len(rows):
            columns = [_conform(rows, field, written_ms) for field in struct_type]
            yield pa.StructArray.from_arrays(columns, fields=list(struct_type))


def _conform(rows: pa.StructArray, field: pa.Field, written_ms: int) -> pa.Array:
    """A field of removes in a checkpoint."""
    if rows.type.get_field_index(field.name) < 0:
        known = field.name == "deletionTimestamp"
        return removed_by(written_ms, len(rows)) if known else pa.nulls(len(rows), field.type)
    values = field_of(rows, field.name)
    return as_vectors(values, field.type) if pa.types.is_struct(field.type) else values.cast(field.type)


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


# Of the files that are looked up at once; more where more are needed, since each look-up hashes those first.
_ROWS = 131_072
# Rows of which all letters are numbers at the same time.
_HASHED_ROWS = 8_192
# The letters of a path that have a factor of their own; those after them share.
_FACTORS = 1 << 16


class Needed(Protocol):
    """The files that must stay, in the spelling of a listing."""

    @property
    def rows_at_once(self) -> int:
        """How many files are best asked for together."""
        ...

    def without(self, files: pa.Table) -> pa.Table:
        """The files (column `path`) that need not stay."""
        ...


class NeededPaths:
    """See `Needed`."""

    def __init__(self, paths: pa.ChunkedArray) -> None:
        self._paths = paths

    @property
    def rows_at_once(self) -> int:
        return max(_ROWS, len(self._paths))

    def without(self, files: pa.Table) -> pa.Table:
        return exclude_paths(files, self._paths)


def exclude_paths(files: pa.Table, needed: pa.ChunkedArray) -> pa.Table:
    """The files whose path is not among the needed ones."""
    if not (files.num_rows and len(needed)):
        return files
    return files.filter(pc.invert(pc.is_in(files["path"], value_set=needed)))


class PathHashes:
    """Hashes of paths that a process of the same seed finds, too.

    Parameters
    ----------
    seed
        Chosen anew for every run: what two paths have in common in one, they have not in another.
    """

    def __init__(self, seed: int) -> None:
        factors = np.random.default_rng(seed).integers(0, 1 << 64, _FACTORS, np.uint64)
        self._factors = factors | np.uint64(1)

    def of(self, paths: pa.ChunkedArray) -> npt.NDArray[np.uint64]:
        """The hash of each path; there are no nulls among them.

        Two paths share one with a probability of at most 2 to the power of -57: the sum of their letters, each times a
        random odd factor of its place (multilinear hashing).
        """
        found = [
            self._hashes(chunk.slice(start, _HASHED_ROWS))
            for chunk in paths.chunks
            for start in range(0, len(chunk), _HASHED_ROWS)
        ]
        return np.concatenate(found) if found else np.zeros(0, np.uint64)

    def _hashes(self, paths: pa.StringArray) -> npt.NDArray[np.uint64]:
        _, offsets, data = paths.buffers()
        ends = np.frombuffer(offsets, np.int32)[paths.offset :][: len(paths) + 1].astype(np.int64)
        lengths = np.diff(ends)
        letters = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]].astype(np.uint64)
        places = np.arange(len(letters)) - np.repeat(ends[:-1] - ends[0], lengths)
        # No letter counts as nothing, so that what is longer is something else.
        terms = (letters + np.uint64(1)) * self._factors[places % _FACTORS]
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
        starts = ends - ends[0]
        found: npt.NDArray[np.uint64] = sums[starts[1:]] - sums[starts[:-1]]
        return found


class NeededHashes:
    """See `Needed`. Whatever must stay does; a file too many may stay, see `PathHashes.of`, until the next run.

    Parameters
    ----------
    hashes
        How paths are hashed.
    parts
        The hashes of the files that must stay.
    """

    def __init__(self, hashes: PathHashes, parts: Iterable[npt.NDArray[np.uint64]]) -> None:
        self._hashes = hashes
        self._known = np.unique(np.concatenate([np.zeros(0, np.uint64), *parts]))

    @property
    def rows_at_once(self) -> int:
        return _ROWS

    def without(self, files: pa.Table) -> pa.Table:
        if not (files.num_rows and len(self._known)):
            return files
        found = self._hashes.of(files["path"])
        places = np.minimum(np.searchsorted(self._known, found), len(self._known) - 1)
        return files.filter(mask(self._known[places] != found))
