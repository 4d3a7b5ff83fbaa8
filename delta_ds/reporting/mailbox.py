"""Reports of another process on this machine: left in a folder, and handed to the listeners of this one."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from delta_ds.events.commands import REPORT_FAILED
from delta_ds.reporting import listeners
from delta_ds.reporting.reports import CommandReport, CommitReport, Report


class _Leaver:
    """Leaves reports of commits and commands in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _leave(self, report: Report) -> None:
        # Complete under its name, whenever somebody looks; in order of time.
        hidden = self._folder / f".{uuid.uuid4().hex}"
        hidden.write_bytes(pickle.dumps(report))
        os.replace(hidden, self._folder / f"{time.time_ns():020}-{hidden.name[1:]}")

    on_commit = on_command = _leave


@contextmanager
def leave_reports(folder: str | None) -> Iterator[None]:
    """Leave the reports of a block in a folder, for whoever made it; None: do not."""
    if folder is None or not os.path.isdir(folder):
        yield
        return
    with listeners.add_listener(_Leaver(Path(folder))):
        yield


@contextmanager
def take_reports() -> Iterator[str | None]:
    """A folder for reports of another process, which listeners get at the end of the block; None if nobody listens."""
    if not (listeners.is_wanted(CommitReport) or listeners.is_wanted(CommandReport)):
        yield None
        return
    folder = tempfile.mkdtemp(prefix="delta-ds-reports-")  # of this user alone: what is in it is unpickled
    try:
        yield folder
    finally:
        for file in sorted(Path(folder).iterdir()):
            if not file.name.startswith("."):
                _take(file)
        shutil.rmtree(folder, ignore_errors=True)


def _take(file: Path) -> None:
    try:
        listeners.report(pickle.loads(file.read_bytes()))
    except Exception as error:  # noqa: BLE001 - the write is done
        REPORT_FAILED.log_traceback(table=str(file), reason=error)
