"""The engines that wrote the statistics of a version, and whether they count NaN in bounds.

Spark's NaN is the greatest of floats, and delta-spark says so in `maxValues`. Engines that take their statistics from
Parquet's leave NaN out, and nothing in the statistics tells which is which. The log does, where commits and
checkpoints name their writers; what names none is taken for the latter kind.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.format.operations import operation_named
from delta_ds.kernel.log.json_actions import find_actions

if TYPE_CHECKING:
    from delta_ds.kernel.log.filenames import LogFile
    from delta_ds.kernel.log.segment import Checkpoint, LogSegment
    from delta_ds.kernel.storage.filesystem import Storage

# Put into the footers of checkpoints whose statistics all come from such engines.
COUNTS_NAN = {"delta_ds.statistics": "NaN counted"}

_ENGINES = re.compile(r"(^|\s)(Delta-Lake|delta_ds|Databricks-Runtime)/")
_SPARK = b"org.apache.spark.version"
_HEAD = 16 << 10  # nearly always all of `commitInfo`, which these engines write first
_AT_ONCE = 16


def statistics_count_nan(storage: Storage, segment: LogSegment) -> bool:
    """Tell whether the bounds of floats in a version's statistics hold for NaN, too.

    Looks at the head of each commit after the checkpoint and at the footer of the checkpoint. Of a checkpoint by
    delta-spark its statistics are believed, as delta-spark itself believes them.

    Parameters
    ----------
    segment
        Of the version.

    Source: PROTOCOL.md, "Per-file Statistics", "Commit Provenance Information".
    """
    if segment.checkpoint is not None and not _checkpoint_counts(storage, segment.checkpoint):
        return False
    if not segment.commits:
        return True
    with ThreadPoolExecutor(min(_AT_ONCE, len(segment.commits))) as readers:
        return all(readers.map(lambda file: _commit_counts(storage, file), segment.commits))


def _commit_counts(storage: Storage, file: LogFile) -> bool:
    try:
        head = storage.read_range(file.path, 0, _HEAD)
        if b"\n" not in head and len(head) == _HEAD:
            head = storage.read(file.path)
        found = find_actions(head.partition(b"\n")[0], ("commitInfo",), file.path)
    except (DeltaError, FileNotFoundError):
        return False
    info = found[0]["commitInfo"] if found else {}
    if operation_named(str(info.get("operation"))).copies_files:
        return False
    return _ENGINES.search(str(info.get("engineInfo") or "")) is not None


def _checkpoint_counts(storage: Storage, checkpoint: Checkpoint) -> bool:
    from delta_ds.kernel.log.checkpoint import locate_files
    from delta_ds.kernel.log.checkpoint_files import footer_of

    try:
        files = locate_files(storage, checkpoint)
        if files is None:
            return False
        stored = footer_of(storage, files, files.paths[0]).metadata or {}
    except (DeltaError, FileNotFoundError):
        return False
    ours = all(stored.get(key.encode()) == value.encode() for key, value in COUNTS_NAN.items())
    return ours or _SPARK in stored
