"""`check`: all that is wrong or odd about a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from delta_ds.exceptions import DeltaError, NotADeltaTableError, UnsupportedFeatureError
from delta_ds.kernel.commands.fsck.contents import check_contents
from delta_ds.kernel.commands.fsck.data_files import check_files, check_vectors
from delta_ds.kernel.commands.fsck.findings import (
    MISSING_FILE,
    MISSING_VECTOR,
    UNREADABLE_VERSION,
    WRONG_FILE_ACTION,
    Finding,
)
from delta_ds.kernel.commands.fsck.log_files import check_log, check_newest
from delta_ds.kernel.work import Work

if TYPE_CHECKING:
    from delta_ds.kernel.delta_log import DeltaLog


def check(log: DeltaLog, *, contents: bool = False) -> Iterator[Finding]:
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


def _findings(log: DeltaLog, contents: bool, work: Work) -> Iterator[Finding]:
    try:
        snapshot = log.snapshot()
        snapshot.live_files()
        snapshot.scan().plan  # noqa: B018 - all that a scan asks of the table beside its files
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
