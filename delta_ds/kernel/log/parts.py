"""A checkpoint as a list of parts, whatever its form: each a run of row groups of one of its Parquet files.

The file is the checkpoint's own, one of several, or a sidecar. File actions are read part by part, so that memory is
bounded by the parts that are looked at at the same time. Those inside a JSON manifest are read as a commit's.

Source: PROTOCOL.md, "Checkpoints", "V2 Spec", "Sidecar Files".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.log.checkpoint import adds_without_path, locate_files
from delta_ds.kernel.log.checkpoint_files import CheckpointFiles, footer_of
from delta_ds.kernel.log.filenames import adds_by_hint
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from delta_ds.kernel.log.segment import LogSegment
    from delta_ds.kernel.storage.filesystem import Storage

# Calls a function with each of some values, in turn, in threads or in tasks of Spark; what it answers, in order.
Map = Callable[..., Iterable[Any]]

# Smaller row groups go together: each part has a fixed cost, each row some hundred bytes of statistics.
PART_ROWS = 1 << 16
# So many actions are a task of about a second, in about as many bytes of memory as a data file's row group.
TASK_ROWS = 250_000
# With so many files each is a task: to read their footers would take longer than what an even split gains.
_MANY_FILES = 64
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive row groups of one file of a checkpoint. Can be pickled.

    Attributes
    ----------
    files
        Of the checkpoint, or this one alone.
    groups
        None: all of the file; nobody has read its footer.
    first_row, num_rows
        Its rows, counted through all files of the checkpoint; through this one where `groups` is None.
    actions
        `add` and `remove`, or the one of them that all its file actions are.
    footer
        Of the file; None where it is to be read by the process that opens the part.
    """

    files: CheckpointFiles
    path: str
    groups: tuple[int, ...] | None = None
    first_row: int = 0
    num_rows: int = 0
    actions: frozenset[str] = frozenset(["add", "remove"])
    footer: pq.FileMetaData | None = None

    @property
    def place(self) -> str | None:
        """A name of its own, which no row groups of a file have that takes the place of this one.

        None where the store cannot tell such a file.
        """
        seen = self.files.seen[self.path]
        if not seen.is_certain or self.groups is None:
            return None
        status = seen.status
        named = f"{self.path}:{status.size}:{status.modified_ms}:{status.etag}"
        return f"{named}:{self.groups[0]}:{self.groups[-1]}"


def parts_of(
    storage: Storage, files: CheckpointFiles, map: Map, rows: int | None = None, *, leave_open: bool = False
) -> list[Part]:
    """The parts of a checkpoint, in order; row groups that say they hold no file action are left out.

    Parameters
    ----------
    map
        Reads the footers.
    rows
        About how many a part has; None for what is looked at together.
    leave_open
        Whether files stay open for who reads the parts in this process; whoever asks for it calls `files.close`.

    Raises
    ------
    UnreadableCheckpointError
        The footer of a file cannot be read.
    """
    parts: list[Part] = []
    first_row = 0
    footers = map(functools.partial(_footer, storage, files, leave_open=leave_open), files.paths)
    for path, footer in zip(files.paths, footers, strict=True):
        parts += _runs(Part(files, path, None, first_row, footer=footer), rows or PART_ROWS)
        first_row += footer.num_rows
    return parts


def parts_for_tasks(storage: Storage, files: CheckpointFiles) -> list[Part]:
    """The parts of a checkpoint for tasks, in order, for any process: each finds the same there, or an error.

    Raises
    ------
    UnreadableCheckpointError
        A file of the checkpoint cannot be read.
    """
    if len(files.paths) >= _MANY_FILES:
        return [Part(files.only(path), path) for path in files.paths]
    with ThreadPoolExecutor(_AT_ONCE) as readers:
        parts = parts_of(storage, files, readers.map, TASK_ROWS)
    return [replace(part, files=files.only(part.path), footer=None) for part in parts]


def pieces(storage: Storage, part: Part) -> list[Part]:
    """What of a part is looked at together: of one for tasks smaller parts, else the part itself."""
    if part.footer is not None:
        return [part]
    return list(_runs(replace(part, footer=_footer(storage, part.files, part.path)), PART_ROWS))


def holds_actions(storage: Storage, segment: LogSegment, actions: int, *, sidecars: bool) -> bool:
    """Whether the checkpoint that a segment starts from holds at least so many actions.

    By the sizes of its files, the hint `_last_checkpoint`, or footers; no row is read.

    Parameters
    ----------
    sidecars
        Whether the checkpoint may have sidecars, of whose sizes its own says nothing.

    Raises
    ------
    UnreadableCheckpointError
        A file of the checkpoint cannot be read.
    """
    checkpoint = segment.checkpoint
    if checkpoint is None:
        return actions <= 0
    # No row takes less than a byte.
    if not sidecars and sum(file.status.size for file in checkpoint.files) < actions:
        return False
    hinted = adds_by_hint(storage, checkpoint.version)
    if hinted is not None:
        return hinted >= actions
    files = locate_files(storage, checkpoint)
    if files is None:
        return actions <= 0
    with ThreadPoolExecutor(_AT_ONCE) as readers:
        return sum(part.num_rows for part in parts_of(storage, files, readers.map)) >= actions


def _footer(
    storage: Storage, files: CheckpointFiles, path: str, *, leave_open: bool = False
) -> pq.FileMetaData:
    footer = footer_of(storage, files, path, leave_open=leave_open)
    if column_number(footer, "add.path") is None and _has_column(footer, "add"):
        raise adds_without_path()
    return footer


def _runs(part: Part, most_rows: int) -> Iterator[Part]:
    """The parts that some row groups make, or all of a file; each of groups that hold the same kinds of actions."""
    assert part.footer is not None
    columns = {name: column_number(part.footer, f"{name}.path") for name in ("add", "remove")}
    # Removes without a path are damage, which is told to whoever asks for removes.
    nameless = {"remove"} if columns["remove"] is None and _has_column(part.footer, "remove") else ()
    run: list[int] = []
    held: frozenset[str] = frozenset()
    first = at = part.first_row
    for group in range(part.footer.num_row_groups) if part.groups is None else part.groups:
        described = part.footer.row_group(group)
        holds = frozenset(
            name
            for name, column in columns.items()
            if (column is not None and nulls(described, column) != described.num_rows) or name in nameless
        )
        if run and (holds != held or at - first + described.num_rows > most_rows):
            yield replace(part, groups=tuple(run), first_row=first, num_rows=at - first, actions=held)
            run = []
        if not run:
            first, held = at, holds
        if holds:
            run.append(group)
        at += described.num_rows
    if run:
        yield replace(part, groups=tuple(run), first_row=first, num_rows=at - first, actions=held)


def column_number(footer: pq.FileMetaData, path: str) -> int | None:
    """The place of a column among those of a file, by its dotted path."""
    schema = footer.schema
    return next((n for n in range(len(schema)) if schema.column(n).path == path), None)


def _has_column(footer: pq.FileMetaData, action: str) -> bool:
    schema = footer.schema
    return any(schema.column(n).path.startswith(f"{action}.") for n in range(len(schema)))


def nulls(group: pq.RowGroupMetaData, column: int) -> int | None:
    """How many rows of a column are null; None if the footer does not say."""
    statistics = group.column(column).statistics
    return statistics.null_count if statistics is not None and statistics.has_null_count else None
