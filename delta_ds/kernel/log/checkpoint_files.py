"""The Parquet files of a checkpoint: named by more than their paths, and opened. Every reading of one passes here.

A checkpoint may be written again at its version, by any engine at any time: it then says the same of the table, by
other rows. So what is read later by row numbers or row groups, in this process or in another one, is read of the
object that was there first, or it is an error, which says that the file must be read anew.

Source: PROTOCOL.md, "Checkpoints", "V2 Spec", "Sidecar Files".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from delta_ds.conditions.protocol import LOG_FILE_NOT_FOUND
from delta_ds.exceptions import CorruptLogFileError, DeltaError, StorageError
from delta_ds.kernel.log.file_actions import ACTIONS, as_plain, check_types
from delta_ds.kernel.storage.filesystem import FileStatus, NotAFileError, OpenedFile, Storage
from delta_ds.records import dataclass, field, replace

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_T = TypeVar("_T")

# So many files of a checkpoint stay open between the reading of their footers and of their rows.
_LEFT_OPEN = 64
# Rows that are decoded at once where none is kept.
_CHECKED_ROWS = 8_192


class UnreadableCheckpointError(CorruptLogFileError):
    """A file of a checkpoint is missing, truncated or damaged; an older checkpoint can be used instead."""


class CheckpointReplacedError(UnreadableCheckpointError):
    """A file of a checkpoint is another one than it was; read from its start, it serves like the one before."""

    default_condition = LOG_FILE_NOT_FOUND.name


@dataclass(frozen=True, slots=True)
class SeenFile:
    """Which object a file was when it was first opened.

    Attributes
    ----------
    status
        Its size, time and etag; without an etag it may be another object all the same.
    footer
        A digest of its footer; "" where the etag says enough.
    machine
        The one that saw a local file: its etag is that of a mount, and others see another one. "" on a store.
    """

    status: FileStatus
    footer: str = ""
    machine: str = ""

    @property
    def is_certain(self) -> bool:
        """Whether every other object would have another status."""
        return self.status.etag is not None

    def may_be(self, status: FileStatus) -> bool:
        """Whether an object with a status can be this one, as far as size and time tell."""
        here = self.status
        return (here.size, here.modified_ms) == (status.size, status.modified_ms)

    def is_surely(self, status: FileStatus) -> bool:
        """Whether an object with a status is this one."""
        return self.may_be(status) and self.is_certain and self.status.etag == status.etag

    def without_etag(self) -> SeenFile:
        """The same, as a store without etags tells it."""
        return SeenFile(replace(self.status, etag=None), self.footer, self.machine)


@dataclass(frozen=True, slots=True)
class CheckpointFiles:
    """The Parquet files that hold the file actions, in the order that row numbers count through.

    Attributes
    ----------
    paths
        Relative to the table, or as `Storage.resolve` gives them.
    seen
        By path the files that were opened so far. Whoever opens one of them again gets the same object, or an error.
    footers
        By path those that were read and that nobody has asked for since; in this process only.
    waiting
        By path what `parts_of` has opened and left for whoever opens it next; `close` closes the others.
    """

    paths: tuple[str, ...]
    seen: dict[str, SeenFile] = field(default_factory=dict, compare=False)
    footers: dict[str, pq.FileMetaData] = field(default_factory=dict, compare=False)
    waiting: dict[str, CheckpointInput] = field(default_factory=dict, compare=False)

    def __reduce__(self) -> tuple[type[CheckpointFiles], tuple[tuple[str, ...], dict[str, SeenFile]]]:
        return CheckpointFiles, (self.paths, self.seen)

    @property
    def are_certain(self) -> bool:
        """Whether all files were opened, and the store tells for certain when one is another object."""
        return all(path in self.seen and self.seen[path].is_certain for path in self.paths)

    def close(self) -> None:
        """Close what was left open and nobody opened again."""
        for path in list(self.waiting):
            left = self.waiting.pop(path, None)
            if left is not None:
                left.close()

    def only(self, path: str) -> CheckpointFiles:
        """One of the files."""
        known = self.seen.get(path)
        return CheckpointFiles((path,), {} if known is None else {path: known})


def footer_of(
    storage: Storage, files: CheckpointFiles, path: str, *, leave_open: bool = False
) -> pq.FileMetaData:
    """The footer of one of the files, which is opened for it unless somebody has just done so.

    Parameters
    ----------
    leave_open
        Whether the file stays open for whoever opens it next, where not too many do; see `CheckpointFiles.close`.

    Raises
    ------
    UnreadableCheckpointError
        As `open_file`.
    """
    read = files.footers.pop(path, None)
    if read is not None:
        return read
    opened = open_file(storage, files, path)
    if leave_open and len(files.waiting) < _LEFT_OPEN:
        files.waiting[path] = opened
        return opened.metadata
    with opened:
        return opened.metadata


def open_file(
    storage: Storage, files: CheckpointFiles, path: str, footer: pq.FileMetaData | None = None
) -> CheckpointInput:
    """Open one of the files of a checkpoint.

    Parameters
    ----------
    footer
        Its footer, where it has been read before and the caller has it.

    Raises
    ------
    UnreadableCheckpointError
        The file is missing, damaged, or holds what are no actions; CheckpointReplacedError if it is another one than
        before.
    """
    waiting = files.waiting.pop(path, None)
    if waiting is not None:
        return waiting
    opened = _with_checkpoint_errors(storage, path, None, lambda: storage.open_known(path))
    try:
        return CheckpointInput(storage, files, path, opened, footer or files.footers.pop(path, None))
    except BaseException:
        opened.stream.close()
        raise


class CheckpointInput:
    """An open file of a checkpoint, made by `open_file`, whose errors its methods have. A context manager."""

    def __init__(
        self,
        storage: Storage,
        files: CheckpointFiles,
        path: str,
        opened: OpenedFile,
        footer: pq.FileMetaData | None,
    ) -> None:
        self._storage = storage
        self._path = path
        self._opened = opened
        known = files.seen.get(path)
        if known is not None and not known.may_be(opened.status):
            raise self.replaced()
        usable = known is not None and known.is_surely(opened.status)
        self._parquet = self._same(lambda: _parse(opened.stream, footer if usable else None))
        self._check_is(files, files.seen.setdefault(path, known or self._seen()))

    def __enter__(self) -> CheckpointInput:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._parquet.close(force=True)

    @property
    def metadata(self) -> pq.FileMetaData:
        """Its footer."""
        return self._parquet.metadata

    @property
    def written_ms(self) -> int:
        """When it was written, ms since 1970: what it tells without a time happened no later."""
        return self._opened.status.modified_ms

    @property
    def schema(self) -> pa.Schema:
        """The actions that it holds: structs by name."""
        return self._parquet.schema_arrow

    def read(
        self, columns: Sequence[str], groups: Sequence[int] | None = None, *, threads: bool = True
    ) -> pa.Table:
        """Columns, named by dotted paths, every text in them checked to be text.

        Parameters
        ----------
        groups
            Row groups to read; None for all.
        threads
            Whether on all cores, or in this thread alone.
        """

        def read() -> pa.Table:
            if groups is None:
                table = self._parquet.read(columns=columns, use_threads=threads)
            else:
                table = self._parquet.read_row_groups(groups, columns, use_threads=threads)
            self._check_rows(table.num_rows, groups)
            return as_plain(table)

        return self._same(read)

    def batches(
        self,
        size: int,
        columns: Sequence[str],
        groups: Sequence[int] | None = None,
        *,
        threads: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """The same, so many rows at a time. What was given out is right, also if an error follows."""
        wanted = range(self.metadata.num_row_groups) if groups is None else groups
        batches = self._parquet.iter_batches(size, wanted, columns, use_threads=threads)
        rows = 0

        def following() -> pa.RecordBatch | None:
            batch = next(batches, None)
            if batch is None:
                self._check_rows(rows, groups)
                return None
            return as_plain(batch)

        while (batch := self._same(following)) is not None:
            rows += batch.num_rows
            yield batch

    def check_rows(self) -> None:
        """Read all actions to the end, and keep none."""
        names = [name for name in self.schema.names if name in ACTIONS]
        for _ in self.batches(_CHECKED_ROWS, names):
            pass

    def translated(self, action: Callable[[], _T]) -> _T:
        """Do something with what the file holds; its errors become an UnreadableCheckpointError."""
        return _with_checkpoint_errors(self._storage, self._path, self._opened.status, action)

    def replaced(self) -> CheckpointReplacedError:
        """The error of a file that is another one than before."""
        return _replaced(self._storage, self._path)

    def _seen(self) -> SeenFile:
        status, machine = self._opened.status, self._machine
        return SeenFile(status, self._footer_digest if status.etag is None or machine else "", machine)

    @property
    def _machine(self) -> str:
        import platform

        return platform.node() if self._storage.address.scheme == "file" else ""

    def _check_is(self, files: CheckpointFiles, first: SeenFile) -> None:
        """Refuse an object that is not the one of the first opening."""
        status = self._opened.status
        if first.is_surely(status):
            return
        etags_tell = first.is_certain and first.machine == self._machine
        if etags_tell or not first.may_be(status) or first.footer != self._footer_digest:
            raise self.replaced()
        files.seen[self._path] = first.without_etag()

    @functools.cached_property
    def _footer_digest(self) -> str:
        """What tells footers apart, by their bytes: versions of Arrow need not agree on anything else."""
        return self._same(lambda: _digest_of_footer(self._opened))

    def _same(self, action: Callable[[], _T]) -> _T:
        """Read; what is made of the bytes of another object is not handed out."""
        found = self.translated(action)
        if not self._opened.is_same():
            raise self.replaced()
        return found

    def _check_rows(self, found: int, groups: Sequence[int] | None) -> None:
        chosen = range(self.metadata.num_row_groups) if groups is None else groups
        expected = sum(self.metadata.row_group(group).num_rows for group in chosen)
        if found != expected:
            raise ValueError(f"it has {found} rows, its footer says {expected}")


def _parse(stream: Any, footer: pq.FileMetaData | None) -> pq.ParquetFile:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(stream, metadata=footer, coerce_int96_timestamp_unit="us")
    check_types(file.schema_arrow)
    return file


def _digest_of_footer(opened: OpenedFile) -> str:
    import hashlib

    stream, end = opened.stream, opened.status.size - 8
    stream.seek(end)
    length = int.from_bytes(stream.read(4), "little")
    stream.seek(max(end - length, 0))
    return hashlib.blake2b(stream.read(length), digest_size=16).hexdigest()


def _with_checkpoint_errors(
    storage: Storage, path: str, opened: FileStatus | None, action: Callable[[], _T]
) -> _T:
    """Run a read; errors of Parquet or the store become an UnreadableCheckpointError.

    Parameters
    ----------
    opened
        The status of what is read: where the path names another object by now, that is the reason.
    """
    import pyarrow as pa

    try:
        return action()
    except DeltaError as error:
        if isinstance(error, StorageError) and _is_other_now(storage, path, opened):
            raise _replaced(storage, path) from error
        if not isinstance(error, NotAFileError):
            raise
        reason: Exception = error
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError) as error:
        if _is_other_now(storage, path, opened):
            raise _replaced(storage, path) from error
        reason = error
    raise UnreadableCheckpointError(
        f"checkpoint file {path} of {storage.url} cannot be read ({reason}); "
        "an older checkpoint is used where the log still allows it"
    ) from reason


def _is_other_now(storage: Storage, path: str, opened: FileStatus | None) -> bool:
    """Whether a path names another object by now; one that is gone is none."""
    if opened is None:
        return False
    try:
        now = storage.status(path)
    except (FileNotFoundError, DeltaError):
        return False
    # Etags where both have one: stores say times in whole seconds, and checkpoints of one table are often of one size.
    if opened.etag is not None and now.etag is not None:
        return opened.etag != now.etag
    return not SeenFile(opened).may_be(now)


def _replaced(storage: Storage, path: str) -> CheckpointReplacedError:
    return CheckpointReplacedError(
        f"checkpoint file {path} of {storage.url} was written again while it was read; read the table again"
    )
