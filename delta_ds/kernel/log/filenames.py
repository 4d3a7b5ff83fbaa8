"""The names of the files in `_delta_log` and what they say; `_last_checkpoint`, a hint where to start listing.

Source: PROTOCOL.md, "File Types"; names that match nothing here are not part of the log.

Source: PROTOCOL.md, "Last Checkpoint File"; protocol-checklist LCP-*.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from delta_ds.events.log import LAST_CHECKPOINT_CHECKSUM_MISMATCH, LAST_CHECKPOINT_UNREADABLE
from delta_ds.events.record import Event
from delta_ds.kernel.base.json_text import parse_json
from delta_ds.kernel.storage.filesystem import FileStatus, NotAFileError, Storage
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


def names_version(name: str) -> bool:
    """Whether a file of `_delta_log` makes a table of its folder: it is a commit or a checkpoint.

    >>> names_version("00000000000000000000.json")
    True
    >>> names_version("_last_checkpoint")
    False
    """
    match = _NAME.fullmatch(name)
    return match is not None and match["checksum"] is None and match["end"] is None


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


_UNRESERVED = re.compile("[A-Za-z0-9._~-]*")


def read_hint(storage: Storage) -> int | None:
    """The version of the newest checkpoint as the hint has it.

    None where the file is missing, torn, fails its checksum or makes no sense: the caller then lists the
    whole log, so a wrong hint costs time and never an answer.
    """
    hint = _read(storage)
    return None if hint is None else hint[0]


def adds_by_hint(storage: Storage, version: int) -> int | None:
    """How many files the checkpoint of a version has by the hint; None where it does not say, or of another version.

    Not by its `size`, as writers do not agree whether it counts what is in sidecars.
    """
    hint = _read(storage)
    return None if hint is None or hint[0] != version else hint[1]


def _read(storage: Storage) -> tuple[int, int | None] | None:
    try:
        data = storage.read(LAST_CHECKPOINT)
    except FileNotFoundError:
        return None
    except NotAFileError as error:
        LAST_CHECKPOINT_UNREADABLE.log(table=storage.url, reason=error)
        return None
    hint, problem = _parse(data)
    if problem is not None:
        event, told = problem
        event.log(table=storage.url, **told)
    return hint


@functools.lru_cache(maxsize=16)
def _parse(data: bytes) -> tuple[tuple[int, int | None] | None, tuple[Event, dict[str, str]] | None]:
    """Version and number of files in the content of a hint; what is wrong with it where there is no version.

    Remembered, since computing the checksum of a long schema costs more than reading the file.
    """
    try:
        hint = parse_json(data, object_pairs_hook=_unique_pairs)
        version = hint["version"]
        wanted = hint.get("checksum")
        found = None if wanted is None else checksum(hint)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return None, (LAST_CHECKPOINT_UNREADABLE, {"reason": repr(error)})
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        return None, (LAST_CHECKPOINT_UNREADABLE, {"reason": f"the version is {version!r}"})
    if wanted != found:
        return None, (LAST_CHECKPOINT_CHECKSUM_MISMATCH, {})
    adds = hint.get("numOfAddFiles")
    return (version, adds if isinstance(adds, int) else None), None


def checksum(hint: dict[str, Any]) -> str:
    """The lower-case hexadecimal MD5 of the canonical form of the hint without its own checksum.

    Source: PROTOCOL.md, "JSON checksum"; empty objects and arrays contribute nothing (LCP-R-05).
    """
    import hashlib

    found: list[tuple[str, str]] = []
    _collect({key: value for key, value in hint.items() if key != "checksum"}, "", found)
    # Paths are ASCII: their order is that of their bytes.
    text = ",".join(f"{path}={value}" for path, value in sorted(found))
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _collect(value: Any, path: str, found: list[tuple[str, str]]) -> None:
    """Add the leaves of a value to those found, each with its path."""
    if isinstance(value, dict):
        for key, child in value.items():
            _collect(child, f"{path}+{_quoted_key(key)}" if path else _quoted_key(key), found)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            _collect(child, f"{path}+{index}", found)
    else:
        found.append((path, _quoted(value) if isinstance(value, str) else json.dumps(value)))


def _quoted(text: str) -> str:
    if _UNRESERVED.fullmatch(text):
        return f'"{text}"'
    from urllib.parse import quote

    return '"' + quote(text, safe="-._~") + '"'


_quoted_key = functools.lru_cache(maxsize=256)(_quoted)


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("duplicate keys")
    return out


def write_hint(storage: Storage, hint: Mapping[str, Any]) -> bool:
    """Write `_last_checkpoint` with its checksum, unless it names a newer checkpoint already.

    Parameters
    ----------
    hint
        Its content without the checksum: at least `version` and `size`.

    Returns
    -------
    bool
        Whether it was written.

    Source: PROTOCOL.md, "Last Checkpoint File"; protocol-checklist LCP-W-03, LCP-RW-04.
    """
    known = read_hint(storage)
    if known is not None and known > hint["version"]:
        return False
    forget_hadoop_checksum(storage, LAST_CHECKPOINT)
    body = {**hint, "checksum": checksum(dict(hint))}
    storage.write(LAST_CHECKPOINT, json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode())
    return True


def forget_hadoop_checksum(storage: Storage, path: str) -> None:
    """Delete the checksum that Hadoop keeps beside a local file, before somebody else writes the file anew.

    Hadoop refuses to read a file that its `.name.crc` does not fit; without one it reads it.
    """
    if storage.address.scheme == "file":
        from delta_ds.kernel.storage import deleter
        from delta_ds.kernel.storage.deleter import HADOOP_CHECKSUMS

        folder, _, name = path.rpartition("/")
        deleter.delete(storage, HADOOP_CHECKSUMS, [f"{folder}/.{name}.crc"])
