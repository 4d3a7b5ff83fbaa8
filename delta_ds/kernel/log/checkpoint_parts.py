"""A checkpoint in parts of about equal size, each to be replayed in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from delta_ds.kernel.log.checkpoint import locate_files
from delta_ds.kernel.log.checkpoint_files import CheckpointFiles, open_file
from delta_ds.kernel.log.last_checkpoint import adds_by_hint

if TYPE_CHECKING:
    from delta_ds.kernel.log.segment import LogSegment
    from delta_ds.kernel.storage.filesystem import Storage

# So many actions are a task of about a second, in about as many bytes of memory as a data file's row group.
PART_ROWS = 250_000
# With so many files each is a part: to read their footers would take longer than what an even split gains.
_MANY_FILES = 64
_AT_ONCE = 16


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
    return sum(map(sum, _rows_of_groups(storage, files))) >= actions


def split_checkpoint(storage: Storage, files: CheckpointFiles) -> list[CheckpointFiles]:
    """The parts of a checkpoint, in the order of its rows, for any process: each finds the same there, or an error.

    Raises
    ------
    UnreadableCheckpointError
        A file of the checkpoint cannot be read.
    """
    if len(files.paths) >= _MANY_FILES:
        return [files.part(path) for path in files.paths]
    rows = _rows_of_groups(storage, files)
    return [
        files.part(path, groups)
        for path, lengths in zip(files.paths, rows, strict=True)
        for groups in _split_groups(lengths)
    ]


def _split_groups(rows: Sequence[int]) -> list[tuple[int, ...] | None]:
    """The row groups of one file, by the parts that it makes; None: all of them."""
    parts: list[list[int]] = []
    room = 0
    for group, length in enumerate(rows):
        if not parts or length > room:
            parts.append([])
            room = PART_ROWS
        parts[-1].append(group)
        room -= length
    return [None] if len(parts) <= 1 else [tuple(part) for part in parts]


def _rows_of_groups(storage: Storage, files: CheckpointFiles) -> list[list[int]]:
    """The rows of each row group of each file."""

    def rows(path: str) -> list[int]:
        with open_file(storage, files, path) as opened:
            footer = opened.metadata
            return [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(rows, files.paths))
