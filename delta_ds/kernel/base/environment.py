"""What is around this process: environment variables, each one record; the folders of relative paths and of scratch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from delta_ds.records import dataclass


@dataclass(frozen=True, slots=True)
class EnvironmentVariable:
    """One environment variable.

    Attributes
    ----------
    name
        In full.
    default
        What holds where it is not set; empty: nothing.
    meaning
        What it does, for the documentation.
    """

    name: str
    default: str
    meaning: str

    def text(self) -> str:
        """What it is set to, or the default."""
        return os.environ.get(self.name, self.default)


CACHE = EnvironmentVariable(
    "DELTA_DS_CACHE",
    "",
    "the folder for snapshots, and classes of sessions, that the next process begins with, of one user alone (0700); "
    "`off`: none are kept. Where it is not set, `delta_ds` in `XDG_CACHE_HOME`",
)
CACHE_SIZE = EnvironmentVariable(
    "DELTA_DS_CACHE_SIZE",
    str(1 << 30),
    "how many bytes that folder holds at most; what was not used for longest goes first",
)
KEPT_STATISTICS = EnvironmentVariable(
    "DELTA_DS_KEPT_STATISTICS",
    str(64 << 20),
    "how many bytes of statistics, parsed and compressed, a snapshot keeps in memory for the next filter on the same "
    "columns; 0: none",
)
CACHE_HOME = EnvironmentVariable(
    "XDG_CACHE_HOME", "", "where programs keep what they can make again; `~/.cache` where it is not set"
)
TIME_ZONE = EnvironmentVariable(
    "TZ", "", "the time zone of this machine, where a session's is not known; else it is asked of the system"
)
PROGRESS = EnvironmentVariable(
    "DELTA_DS_PROGRESS",
    "auto",
    "progress of long work as a line on a terminal: `off` shows none; whatever else it is, it is shown where the error "
    "stream is a terminal",
)
ORIGIN = EnvironmentVariable(
    "DELTA_DS_ORIGIN",
    "on",
    "`off` (or `false`, `no`, `0`): commits do not say by which application, job, notebook and user they are made",
)
USER_NAME = EnvironmentVariable(
    "DELTA_DS_USER_NAME",
    "",
    "the `userName` of commits; no name of the machine's users is ever taken. In sessions "
    "`spark.pydelta.commitInfo.userName` goes before it",
)

LOCAL_FOLDERS = EnvironmentVariable(
    "SPARK_LOCAL_DIRS",
    "",
    "folders, by commas, of which the first that is there takes temporary files: rows that do not fit into memory, and "
    "what goes to a store when it is complete. Spark sets it for its tasks; a driver uses the folder of its session in "
    "`spark.local.dir`",
)
UNITY_TOKEN = EnvironmentVariable(
    "DELTA_DS_UNITY_TOKEN",
    "",
    "the token of Unity Catalog, where neither storage options nor settings of the catalog give one",
)

VARIABLES = (
    CACHE,
    CACHE_SIZE,
    KEPT_STATISTICS,
    CACHE_HOME,
    TIME_ZONE,
    PROGRESS,
    ORIGIN,
    USER_NAME,
    LOCAL_FOLDERS,
    UNITY_TOKEN,
)

# --- relative paths: of the folder of this process, or of the process that a call is about

_folder: ContextVar[Callable[[], str] | None] = ContextVar("delta_ds_folder", default=None)


@contextmanager
def relative_to(folder: Callable[[], str]) -> Iterator[None]:
    """Within the block, relative paths are of another folder than the one in which this process is.

    Parameters
    ----------
    folder
        Asked for it where there is a relative path, and only then.
    """
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def absolute(path: str) -> str:
    """A local path from the root on, without `.` and `..`; links are not followed, and `~` is a name."""
    folder = _folder.get()
    if folder is None or os.path.isabs(path):
        return os.path.abspath(path)
    return os.path.abspath(os.path.join(folder(), path))


# --- temporary files: where Spark has its own, which may be another disk than that of the system's temporary folder

_of_driver: list[Callable[[], str | None]] = []


def ask_driver(provider: Callable[[], str | None]) -> None:
    """Ask this for the folder of temporary files; None: the process is no driver."""
    _of_driver[:] = [provider]


def scratch_folder() -> str | None:
    """Where temporary files go: into the folder of the session, or of the task; None for the system's."""
    told = (provider() for provider in _of_driver)
    for folder in (*told, *LOCAL_FOLDERS.text().split(",")):
        if folder and os.path.isdir(folder):
            return folder
    return None
