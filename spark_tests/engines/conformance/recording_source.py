"""The data source as it is, but writing down what it planned: Spark has no place where a user sees that."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delta_ds.spark.engines.portable.batch import DeltaReader, SlicePartition
from delta_ds.spark.engines.portable.source import PushdownSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
    from pyspark.sql.types import StructType

RECORD_TO = "recordTo"


class RecordingSource(PushdownSource):
    """Writes JSON to the path in option `recordTo`: `version`, `files` planned, `filters` pushed by Spark."""

    def __init__(self, options: Mapping[str, str]) -> None:
        own = {key.lower(): value for key, value in options.items()}
        self._record = own.pop(RECORD_TO.lower())
        super().__init__(own)

    @classmethod
    def name(cls) -> str:
        return "pydelta_yardstick"

    def reader(self, schema: StructType) -> DataSourceReader:
        reader = super().reader(schema)
        assert isinstance(reader, DeltaReader)
        _watch(reader, Path(self._record))
        return reader


def _watch(reader: DeltaReader, record: Path) -> None:
    """Wrap planning on the instance: tasks get the reader without it, since only its own state is pickled."""
    pushed: list[Filter] = []
    push, partitions = reader.pushFilters, reader.partitions

    def push_and_count(filters: list[Filter]) -> Any:
        pushed.extend(filters)
        return push(filters)

    def plan_and_record() -> Sequence[InputPartition]:
        planned = partitions()
        paths = {piece.path for part in planned if isinstance(part, SlicePartition) for piece in part.slices}
        found = {"version": reader._reading.pin.last, "files": len(paths), "filters": len(pushed)}
        record.write_text(json.dumps(found))
        return planned

    if "pushFilters" in vars(reader):
        reader.pushFilters = push_and_count  # type: ignore[method-assign]
    reader.partitions = plan_and_record  # type: ignore[method-assign,assignment]
