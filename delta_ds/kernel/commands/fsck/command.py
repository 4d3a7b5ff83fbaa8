"""`check`: all that is wrong or odd about a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from delta_ds.exceptions import LogError, NotADeltaTableError
from delta_ds.kernel.commands.fsck.data_files import Progress, check_contents, check_files
from delta_ds.kernel.commands.fsck.findings import UNREADABLE_VERSION, Finding
from delta_ds.kernel.commands.fsck.log_files import check_log, check_newest

if TYPE_CHECKING:
    from delta_ds.kernel.delta_log import DeltaLog


def check(log: DeltaLog, *, contents: bool = False, progress: Progress | None = None) -> Iterator[Finding]:
    """Look for what is wrong with a table, and change nothing.

    Parameters
    ----------
    log
        The table.
    contents
        Also read the footer of each data file, and hold every checkpoint against the log without it.
    progress
        Is called now and then with what is done, how much of it, and of how much.

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
    tell = progress or _tell_nobody
    try:
        snapshot = log.snapshot()
        snapshot.live_files()
    except NotADeltaTableError:
        raise
    except LogError as error:
        yield Finding(UNREADABLE_VERSION, "", error.text)
        yield from check_log(log.storage, every_checkpoint=contents)
        return
    yield from check_log(log.storage, every_checkpoint=contents)
    yield from check_newest(snapshot)
    yield from check_files(snapshot, tell)
    if contents:
        yield from check_contents(snapshot, tell)


def _tell_nobody(what: str, done: int, total: int | None) -> None:
    """Say nothing."""
