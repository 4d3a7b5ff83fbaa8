"""The names of the files in `_delta_log` and what they say.

Source: PROTOCOL.md, "File Types"; names that match nothing here are not part of the log.
"""

from __future__ import annotations

import re
from enum import Enum

from delta_ds.kernel.storage.filesystem import FileStatus
from delta_ds.records import dataclass

LOG_DIRECTORY = "_delta_log"
SIDECAR_DIRECTORY = f"{LOG_DIRECTORY}/_sidecars"
LAST_CHECKPOINT = f"{LOG_DIRECTORY}/_last_checkpoint"


class Kind(Enum):
    COMMIT = "commit"
    CHECKPOINT = "checkpoint"
    COMPACTION = "compaction"
    CHECKSUM = "checksum"


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of the log, as its name describes it.

    `version` is the commit's version, for a compaction the first one it covers and `end` the last.
    `part` of `parts` is set for multi-part checkpoints; `unique` for UUID-named (V2) ones.
    """

    status: FileStatus
    kind: Kind
    version: int
    end: int
    part: int = 0
    parts: int = 0
    unique: str = ""

    @property
    def path(self) -> str:
        return self.status.path

    @property
    def is_json(self) -> bool:
        return self.path.endswith(".json")


_NAME = re.compile(
    r"(?P<version>\d{20})\."
    r"(?:(?P<commit>json)"
    r"|(?P<checksum>crc)"
    r"|(?P<end>\d{20})\.compacted\.json"
    r"|checkpoint\.parquet"
    r"|checkpoint\.(?P<part>\d{10})\.(?P<parts>\d{10})\.parquet"
    r"|checkpoint\.(?P<unique>[0-9A-Za-z][0-9A-Za-z-]*)\.(?:json|parquet))"
)


def parse_name(status: FileStatus) -> LogFile | None:
    """The kind and version of a file of `_delta_log`; None for staged, temporary and foreign files."""
    match = _NAME.fullmatch(status.path.rsplit("/", 1)[-1])
    if match is None:
        return None
    version = int(match["version"])
    if match["commit"]:
        return LogFile(status, Kind.COMMIT, version, version)
    if match["checksum"]:
        return LogFile(status, Kind.CHECKSUM, version, version)
    if match["end"]:
        return LogFile(status, Kind.COMPACTION, version, int(match["end"]))
    return LogFile(
        status,
        Kind.CHECKPOINT,
        version,
        version,
        int(match["part"] or 0),
        int(match["parts"] or 0),
        match["unique"] or "",
    )


def version_prefix(version: int) -> str:
    """The start of the names of all files of a version, which also is where a listing starts."""
    return f"{version:020d}"


def checksum_path(version: int) -> str:
    """The path of a version's checksum file, relative to the table."""
    return f"{LOG_DIRECTORY}/{version:020d}.crc"


def commit_path(version: int) -> str:
    """The path of a version's commit, relative to the table."""
    return f"{LOG_DIRECTORY}/{version:020d}.json"
