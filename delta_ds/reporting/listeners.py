"""Who listens to reports: delivered by a thread of their own, so that no listener slows or breaks a commit."""

from __future__ import annotations

import atexit
import os
import pickle
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from delta_ds.exceptions import InvalidArgumentError
from delta_ds.reporting.reports import (
    CommandReport,
    CommitReport,
    ProgressReport,
    Report,
    ScanReport,
    SnapshotReport,
)

# Reports that wait; more than a listener that has stopped is worth.
_MOST_WAITING = 10_000
_AT_EXIT_S = 5.0
_METHODS: dict[type, str] = {
    CommitReport: "on_commit",
    SnapshotReport: "on_snapshot",
    ScanReport: "on_scan",
    CommandReport: "on_command",
    ProgressReport: "on_progress",
}

_lock = threading.Lock()
# Replaced as a whole, and read without the lock.
_listening: tuple[Listening, ...] = ()
_waiting: queue.Queue[tuple[tuple[Listening, ...], Report] | threading.Event] = queue.Queue(_MOST_WAITING)
_thread: threading.Thread | None = None
_behind = False


class Listening:
    """A listener that was added; as a context manager it is removed at the end of the block.

    Examples
    --------
    >>> import delta_ds
    >>> reports = []
    >>> with delta_ds.add_listener(reports.append) as listening:
    ...     snapshot = delta_ds.DeltaLog("examples/data/sales").snapshot()
    >>> reports[0].version == snapshot.version
    True
    """

    def __init__(
        self, listener: Any, handlers: dict[type, Callable[[Any], object]], *, at_once: bool = False
    ) -> None:
        self.listener = listener
        self._handlers = handlers
        self._failed = False
        self._at_once = at_once

    def _wants(self, kind: type) -> bool:
        return kind in self._handlers

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until what was reported so far is delivered.

        Parameters
        ----------
        timeout
            Seconds at most; None: for ever.

        Returns
        -------
        bool
            Whether it is.

        Examples
        --------
        >>> import delta_ds
        >>> with delta_ds.add_listener(print) as listening:
        ...     listening.wait(10)
        True
        """
        return _flush(timeout)

    def remove(self) -> None:
        """Listen no more; what was reported before is still delivered. Removing twice does nothing.

        Examples
        --------
        >>> import delta_ds
        >>> listening = delta_ds.add_listener(print)
        >>> listening.remove()
        """
        global _listening
        with _lock:
            _listening = tuple(each for each in _listening if each is not self)

    def __enter__(self) -> Listening:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()
        self.wait(_AT_EXIT_S)

    def _deliver(self, report: Report) -> None:
        handler = self._handlers.get(type(report))
        if handler is None:
            return
        try:
            handler(report)
        except BaseException:  # noqa: BLE001 - whatever it is, it is the listener's own matter
            if not self._failed:
                self._failed = True
                from delta_ds.events.commands import LISTENER_FAILED

                LISTENER_FAILED.log_traceback(listener=repr(self.listener), report=type(report).__name__)


def add_listener(listener: object) -> Listening:
    """Tell a listener of commits, snapshots, scans, commands and progress in this process.

    Reports are delivered in order by a thread of their own: a listener that is slow slows nothing, one that raises is
    logged once (`listener_failed`) and goes on. Where 10,000 reports wait, further ones are dropped
    (`listener_behind`). What a listener does with this package itself is not reported; forked processes have none.

    Parameters
    ----------
    listener
        A function of one report, or an object with some of the methods `on_commit`, `on_snapshot`, `on_scan`,
        `on_command` and `on_progress`, each of one report.

    Returns
    -------
    Listening
        `remove()` ends it; it is a context manager, too.

    Raises
    ------
    InvalidArgumentError
        It is neither.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, delta_ds
    >>> class Rows:
    ...     def on_commit(self, report):
    ...         print(report.operation, report.version, report.rows_added)
    >>> with delta_ds.add_listener(Rows()):
    ...     version = delta_ds.DeltaLog(tempfile.mkdtemp()).write(pa.table({"id": [1, 2]}))
    WRITE 0 2
    """
    global _thread
    handlers = {kind: getattr(listener, name) for kind, name in _METHODS.items() if hasattr(listener, name)}
    if not handlers and callable(listener):
        handlers = dict.fromkeys(_METHODS, listener)
    if not handlers or not all(map(callable, handlers.values())):
        raise InvalidArgumentError(
            f"a listener is a function of one report, or has some of the methods {', '.join(_METHODS.values())}; "
            f"{listener!r} is neither",
            parameters={"listener": repr(listener)},
        )
    added = _add(Listening(listener, handlers))
    with _lock:
        if _thread is None or not _thread.is_alive():
            _thread = threading.Thread(target=_work, name="delta_ds-listeners", daemon=True)
            _thread.start()
    return added


def follow_commits(handler: Callable[[CommitReport], object]) -> Listening:
    """Tell a function of each commit before the call that made it returns, in the thread of that call.

    For what has to be done by the time the caller goes on, and takes little time.
    """
    return _add(Listening(handler, {CommitReport: handler}, at_once=True))


def _add(added: Listening) -> Listening:
    global _listening
    with _lock:
        _listening = (*_listening, added)
    return added


def remove_listener(listener: object) -> None:
    """Remove a listener that was added.

    Parameters
    ----------
    listener
        The listener itself, or what `add_listener` returned.

    Raises
    ------
    InvalidArgumentError
        It was not added, or is removed already.

    Examples
    --------
    >>> import delta_ds
    >>> listening = delta_ds.add_listener(print)
    >>> delta_ds.remove_listener(print)
    """
    found = [each for each in _listening if each is listener or each.listener == listener]
    if not found:
        raise InvalidArgumentError(
            f"{listener!r} is no listener: it was not added, or is removed already",
            parameters={"listener": repr(listener)},
        )
    for each in found:
        each.remove()


def is_wanted(kind: type) -> bool:
    """Whether anybody listens to reports of a class; asked before one is made."""
    return (
        bool(_listening)
        and threading.current_thread() is not _thread
        and any(each._wants(kind) for each in _listening)
    )


def report(found: Report) -> None:
    """Hand a report to the listeners; never fails, and waits for those only that follow commits at once."""
    global _behind
    if not is_wanted(type(found)):
        return
    for each in _listening:
        if each._at_once:
            each._deliver(found)
    waiting = tuple(each for each in _listening if not each._at_once)
    if not waiting:
        return
    try:
        _waiting.put_nowait((waiting, found))
        _behind = False
    except queue.Full:
        if not _behind:
            _behind = True
            from delta_ds.events.commands import LISTENER_BEHIND

            LISTENER_BEHIND.log(waiting=_MOST_WAITING)


def _work() -> None:
    while True:
        item = _waiting.get()
        if isinstance(item, threading.Event):
            item.set()
            continue
        listening, found = item
        for each in listening:
            each._deliver(found)


def _flush(timeout: float | None) -> bool:
    thread = _thread
    if thread is None or not thread.is_alive() or thread is threading.current_thread():
        return _waiting.empty()
    reached = threading.Event()
    until = None if timeout is None else time.monotonic() + timeout
    try:
        _waiting.put(reached, timeout=timeout)
    except queue.Full:
        return False
    return reached.wait(None if until is None else max(0.0, until - time.monotonic()))


def _at_exit() -> None:
    if _thread is not None:
        _flush(_AT_EXIT_S)


def _after_fork() -> None:
    """The thread is not there in a forked process, and what waited is the parent's."""
    global _lock, _listening, _waiting, _thread, _behind
    _lock, _listening, _thread, _behind = threading.Lock(), (), None, False
    _waiting = queue.Queue(_MOST_WAITING)


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# --- reports of another process on this machine: left in a folder, and handed to the listeners of this one


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
    with add_listener(_Leaver(Path(folder))):
        yield


@contextmanager
def take_reports() -> Iterator[str | None]:
    """A folder for reports of another process, which listeners get at the end of the block; None if nobody listens."""
    if not (is_wanted(CommitReport) or is_wanted(CommandReport)):
        yield None
        return
    import shutil
    import tempfile

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
        report(pickle.loads(file.read_bytes()))
    except Exception as error:  # noqa: BLE001 - the write is done
        from delta_ds.events.commands import REPORT_FAILED

        REPORT_FAILED.log_traceback(table=str(file), reason=error)
