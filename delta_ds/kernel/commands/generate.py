"""GENERATE: write symlink manifests, or the metadata of Iceberg, for engines that do not know Delta.

No commit: the log of the table stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.conditions.commands import MODE_NOT_SUPPORTED
from delta_ds.conditions.iceberg import GENERATE_WITHOUT_UNIVERSAL_FORMAT
from delta_ds.kernel.iceberg_compatibility import ICEBERG, writes_metadata
from delta_ds.kernel.transaction.symlink_manifest import write_manifests

if TYPE_CHECKING:
    from delta_ds.kernel.table_log import TableLog

SYMLINK_FORMAT_MANIFEST = "symlink_format_manifest"
_MODES = (SYMLINK_FORMAT_MANIFEST, ICEBERG)


def generate(log: TableLog, mode: str) -> int:
    """Generate files for a table as it is now.

    Parameters
    ----------
    log
        The table.
    mode
        In any case: `symlink_format_manifest`, see `symlink_manifest`; or `iceberg`, for the metadata of Iceberg where
        a commit could not bring it up to date, see `iceberg.conversion`.

    Returns
    -------
    int
        How many manifests, or descriptions of a version in Iceberg's metadata, were written.

    Raises
    ------
    InvalidOptionError
        There is no such mode.
    UnsupportedOperationError
        The table has column mapping, or files with deletion vectors; or does not ask for the metadata of Iceberg.
    """
    wanted = mode.strip().lower()
    if wanted not in _MODES:
        raise MODE_NOT_SUPPORTED(mode=mode, table=log.storage.url, supportedModes=list(_MODES))
    snapshot = log.open_snapshot()
    if wanted == SYMLINK_FORMAT_MANIFEST:
        return write_manifests(snapshot)
    if not writes_metadata(snapshot.properties):
        raise GENERATE_WITHOUT_UNIVERSAL_FORMAT(table=log.storage.url, format=ICEBERG)
    from delta_ds.kernel.iceberg.conversion import convert

    return int(convert(log.storage, snapshot.table_state, snapshot.timestamp))
