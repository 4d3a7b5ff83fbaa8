"""GENERATE: write symlink manifests for engines that do not know Delta.

No commit: the log of the table stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.conditions.commands import MODE_NOT_SUPPORTED
from delta_ds.kernel.transaction.symlink_manifest import write_manifests

if TYPE_CHECKING:
    from delta_ds.kernel.delta_log import DeltaLog

SYMLINK_FORMAT_MANIFEST = "symlink_format_manifest"


def generate(log: DeltaLog, mode: str) -> int:
    """Generate files for a table as it is now.

    Parameters
    ----------
    log
        The table.
    mode
        `symlink_format_manifest`, in any case; see `symlink_manifest`.

    Returns
    -------
    int
        How many files were written.

    Raises
    ------
    InvalidOptionError
        There is no such mode.
    UnsupportedOperationError
        The table has column mapping, or files with deletion vectors.
    """
    if mode.strip().lower() != SYMLINK_FORMAT_MANIFEST:
        raise MODE_NOT_SUPPORTED(mode=mode, table=log.storage.url, supportedModes=[SYMLINK_FORMAT_MANIFEST])
    return write_manifests(log.snapshot())
