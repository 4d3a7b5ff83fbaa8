"""Checkpoint a version of a table: the checkpoint writer with typed statistics.

Source: PROTOCOL.md, "Checkpoints".
"""

from __future__ import annotations

import logging

from delta_ds.kernel.data.write.checkpoint_columns import CheckpointColumns, typed_columns
from delta_ds.kernel.log.checkpoint import UnreadableCheckpointError
from delta_ds.kernel.log.checkpoint_write import writer
from delta_ds.kernel.log.checkpoint_write.writer import CheckpointInfo
from delta_ds.kernel.log.segment import Checkpoint, LogSegment, find_segment
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.table_state import TableState

logger = logging.getLogger("delta_ds")


def write_checkpoint(storage: Storage, segment: LogSegment, *, now_ms: int | None = None) -> CheckpointInfo:
    """Write a checkpoint of the segment's version; see `log.checkpoint_write.writer.write_checkpoint`.

    Where the checkpoint that the segment starts from cannot be read, an older one serves.

    Raises
    ------
    UnsupportedFeatureError
        The version's protocol is not supported: its state could hold more than is understood (CPR-W-01).
    """

    def columns(state: TableState) -> CheckpointColumns:
        state.check_writable()
        return typed_columns(state)

    rejected: list[Checkpoint] = []
    while True:
        try:
            return writer.write_checkpoint(storage, segment, columns, now_ms=now_ms)
        except UnreadableCheckpointError as error:
            if segment.checkpoint is None:
                raise
            logger.warning(
                "checkpoint_passed_over table=%s version=%s reason=%s",
                storage.url, segment.checkpoint.version, error.text,
            )  # fmt: skip
            rejected.append(segment.checkpoint)
        segment = find_segment(storage, segment.version, rejected)
