"""Every table is a large one here, and has a checkpoint for tasks to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from delta_ds.kernel.log.parts import Part
from delta_ds.kernel.log.segment import LogSegment, find_segment
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.transaction.post_commit import write_checkpoint
from delta_ds.spark.base.session_conf import LARGE_TABLE_CONF
from delta_ds.spark.engines import large_tables

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def every_table_is_large(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The numbers of parts that jobs had."""
    parts: list[int] = []
    load_head, map_in_tasks = large_tables.load_head, large_tables.map_in_tasks

    def with_checkpoint(storage: Storage, segment: LogSegment) -> object:
        if segment.checkpoint is None:
            write_checkpoint(storage, segment)
            segment = find_segment(storage, segment.version)
        return load_head(storage, segment)

    def counted(spark: SparkSession, function: Any, found: Sequence[Part]) -> list[pa.Table]:
        parts.append(len(found))
        return map_in_tasks(spark, function, found)

    monkeypatch.setattr(large_tables, "load_head", with_checkpoint)
    for module in (large_tables,):
        monkeypatch.setattr(module, "map_in_tasks", counted)
    spark.conf.set(LARGE_TABLE_CONF, "0")
    yield parts
    spark.conf.unset(LARGE_TABLE_CONF)
