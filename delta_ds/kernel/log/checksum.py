"""`.crc` files: a summary of a version that saves reading a long log for its protocol and metadata.

Source: PROTOCOL.md, "Version Checksum File"; checklist CRC-*.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

from delta_ds.exceptions import CorruptLogFileError
from delta_ds.kernel.log.actions import Metadata, Protocol
from delta_ds.kernel.log.segment import LogSegment
from delta_ds.kernel.storage.filesystem import Storage

logger = logging.getLogger("delta_ds")


@dataclass(frozen=True, slots=True)
class VersionChecksum:
    """What a version's checksum file says of it."""

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
        body = json.loads(storage.read(path))
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
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, CorruptLogFileError) as error:
        logger.warning("checksum_unreadable table=%s file=%s reason=%r", storage.url, path, error)
        return None
