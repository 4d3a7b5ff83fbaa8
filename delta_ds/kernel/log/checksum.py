"""Version checksum files (`.crc`): written after commits, read for protocol and metadata, verified.

Each is made from that of the version before and the actions of the commit in between, without a look at the log.

Source: PROTOCOL.md, "Version Checksum File"; protocol-checklist CRC-*.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from delta_ds.events.log import CHECKSUM_EXISTS, CHECKSUM_UNREADABLE
from delta_ds.exceptions import CorruptLogFileError
from delta_ds.kernel.base.json_text import parse_json
from delta_ds.kernel.format.actions import Action, DomainMetadata, Metadata, Protocol, SetTransaction
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.filenames import checksum_path
from delta_ds.kernel.log.segment import LogSegment
from delta_ds.kernel.storage.filesystem import NotAFileError, Storage
from delta_ds.records import dataclass

_UNREADABLE = (
    ValueError, KeyError, TypeError, AttributeError, OverflowError, CorruptLogFileError, NotAFileError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class VersionChecksum:
    """The part of a checksum file that a reader uses."""

    protocol: Protocol
    metadata: Metadata
    num_files: int
    size_bytes: int


def read_checksum(storage: Storage, segment: LogSegment) -> VersionChecksum | None:
    """The checksum of the segment's version; None where it is missing or not whole (which is logged)."""
    if segment.checksum is None:
        return None
    path = segment.checksum.path
    try:
        body = parse_json(storage.read(path))
        if body["numMetadata"] != 1 or body["numProtocol"] != 1:
            raise ValueError("numMetadata and numProtocol must be 1")
        where = f"{path} of {storage.url}"
        return VersionChecksum(
            Protocol.from_action(body["protocol"], where),
            Metadata.from_action(body["metadata"], where),
            int(body["numFiles"]),
            int(body["tableSizeBytes"]),
        )
    except FileNotFoundError:
        return None
    except _UNREADABLE as error:
        CHECKSUM_UNREADABLE.log(table=storage.url, file=path, reason=error)
        return None


@dataclass(frozen=True, slots=True)
class Summary:
    """The counts of a checksum file, carried on from commit to commit.

    Attributes
    ----------
    num_files, size_bytes
        Of the live files.
    txns, domains
        The newest `txn` by application and the live `domainMetadata` by domain, as bodies of actions; None
        where the version before did not say.
    """

    num_files: int
    size_bytes: int
    txns: Mapping[str, SetTransaction] | None
    domains: Mapping[str, DomainMetadata] | None


EMPTY = Summary(0, 0, {}, {})


def read_summary(storage: Storage, version: int) -> Summary | None:
    """The summary in a version's checksum file; None where there is none, or it is not whole (which is logged)."""
    path = checksum_path(version)
    try:
        body = parse_json(storage.read(path))
        return Summary(
            int(body["numFiles"]),
            int(body["tableSizeBytes"]),
            _by(body.get("setTransactions"), "appId"),
            _by(body.get("domainMetadata"), "domain"),
        )
    except FileNotFoundError:
        return None
    except _UNREADABLE as error:
        CHECKSUM_UNREADABLE.log(table=storage.url, file=path, reason=error)
        return None


def _by(bodies: Any, key: str) -> dict[str, Any] | None:
    return None if bodies is None else {body[key]: body for body in bodies}


def next_summary(before: Summary, actions: Sequence[Action]) -> Summary | None:
    """The summary after a commit.

    Parameters
    ----------
    before
        Of the version before; `EMPTY` for the first one.
    actions
        All actions of the commit, as `{name: body}`. Its adds are new files and its removes were live; see
        `counts_up`.

    Returns
    -------
    Summary or None
        None where a file's size is not known.
    """
    files, size = before.num_files, before.size_bytes
    txns = None if before.txns is None else dict(before.txns)
    domains = None if before.domains is None else dict(before.domains)
    for action in actions:
        if (add := action.get("add")) is not None:
            files, size = files + 1, size + int(add["size"])
        elif (remove := action.get("remove")) is not None:
            if (removed := remove.get("size")) is None:
                return None
            files, size = files - 1, size - int(removed)
        elif (txn := action.get("txn")) is not None and txns is not None:
            txns[txn["appId"]] = txn
        elif (domain := action.get("domainMetadata")) is not None and domains is not None:
            domains.pop(domain["domain"], None)
            if not domain.get("removed"):
                domains[domain["domain"]] = domain
    return Summary(files, size, txns, domains)


def counts_up(actions: Sequence[Action], *, rearranges: bool = False) -> bool:
    """Whether the summary after a commit follows from its actions alone.

    Not where files may be added that are live already, to change what the log says of them (COM-W-08): such
    adds change no data and come without removes that change none.

    Parameters
    ----------
    rearranges
        Whether the commit has removes besides, none of which changes data.
    """
    if rearranges or any(not _changes_data(action, "remove") for action in actions):
        return True
    return all(_changes_data(action, "add") for action in actions)


def _changes_data(action: Action, name: Literal["add", "remove"]) -> bool:
    """Whether an action is of another name, or changes data."""
    body = action.get(name)
    return body is None or body.get("dataChange", True)


def write_checksum(
    storage: Storage,
    state: TableState,
    summary: Summary,
    *,
    txn_id: str | None = None,
    in_commit_timestamp: int | None = None,
) -> bool:
    """Write the checksum file of a version, unless there is one.

    Parameters
    ----------
    state
        The version: its protocol and metadata.
    txn_id
        Of its commit.
    in_commit_timestamp
        Of its commit, ms; None where in-commit timestamps are not enabled.

    Returns
    -------
    bool
        Whether it was written.

    Source: PROTOCOL.md, "Version Checksum File"; protocol-checklist CRC-W-01, CRC-W-02.
    """
    body: dict[str, Any] = {
        "txnId": txn_id,
        "tableSizeBytes": summary.size_bytes,
        "numFiles": summary.num_files,
        "numMetadata": 1,
        "numProtocol": 1,
        "inCommitTimestampOpt": in_commit_timestamp,
        "setTransactions": None if summary.txns is None else list(summary.txns.values()),
        "domainMetadata": None if summary.domains is None else list(summary.domains.values()),
        "metadata": state.metadata.to_action(),
        "protocol": state.protocol.to_action(),
    }
    known = {name: value for name, value in body.items() if value is not None}
    data = json.dumps(known, separators=(",", ":"), ensure_ascii=False).encode()
    try:
        # Not worth waiting for the disk: after a power failure the log tells the same.
        storage.create(checksum_path(state.version), data, durable=False)
    except FileExistsError:
        CHECKSUM_EXISTS.log(table=storage.url, version=state.version)
        return False
    return True
