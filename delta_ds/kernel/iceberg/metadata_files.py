"""The descriptions of versions in the folder `metadata`, and the hint that names the newest one.

Source: Iceberg Table Spec, "File System Tables".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadataV2

    from delta_ds.kernel.storage.filesystem import Storage

FOLDER = "metadata"
_HINT = f"{FOLDER}/version-hint.text"
_NAME = re.compile(r"v(\d+)\.metadata\.json")


def metadata_path(version: int) -> str:
    """The file that describes a version, relative to the table."""
    return f"{FOLDER}/v{version}.metadata.json"


def is_description(path: str) -> bool:
    """Whether a file is named as the description of a version is."""
    return _NAME.fullmatch(path.rpartition("/")[2]) is not None


def converted_versions(storage: Storage) -> list[int]:
    """The versions that are described, the newest one last."""
    try:
        listed = storage.list_from(FOLDER, "v")
    except FileNotFoundError:
        return []
    names = (_NAME.fullmatch(status.path.rpartition("/")[2]) for status in listed)
    return sorted(int(name[1]) for name in names if name)


def put_hint(storage: Storage) -> None:
    """Name the newest version; whoever publishes a newer one meanwhile says so after this or is seen by it."""
    while True:
        newest = converted_versions(storage)[-1]
        if _hint(storage) != newest:
            storage.write(_HINT, str(newest).encode())
        if converted_versions(storage)[-1] == newest:
            return


def _hint(storage: Storage) -> int | None:
    try:
        text = storage.read(_HINT).decode()
    except FileNotFoundError:
        return None
    return int(text) if text.isdecimal() else None


def read_metadata(storage: Storage, version: int) -> TableMetadataV2:
    """The description of a version, as pyiceberg has it."""
    from pyiceberg.table.metadata import TableMetadataUtil

    found: Any = TableMetadataUtil.parse_raw(storage.read(metadata_path(version)).decode())
    return found  # type: ignore[no-any-return]
