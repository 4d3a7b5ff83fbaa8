"""A private data source that reads some files with row positions, where Spark's own reader cannot be used.

A data source that only `DmlTarget` reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from delta_ds.kernel.commands.dml.changed_rows import FILE, ROW
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.format.options.read import parse_read_options
from delta_ds.kernel.format.schema.types import INTEGER, LONG, StructField, StructType
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.transaction.table_log import TableLog
from delta_ds.records import replace
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.base import wire
from delta_ds.spark.base.kinds import sealed
from delta_ds.spark.base.kinds.sealed import Sealed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType as SparkStructType

FORMAT = "pydelta_target"

_FILES = "files"
_PLACE = (StructField(FILE, INTEGER), StructField(ROW, LONG))


def register_source(spark: SparkSession) -> None:
    """Make the source known to a session."""
    if not sealed.is_registered(spark, FORMAT):
        sealed.register_source(spark, TargetSource)


class TargetSource(DataSource, Sealed):
    """Options: the table's, and `files`: version, numbers and paths of files, and the session zone."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(self.opened(options))
        self._version, self._numbers, self._paths, self._timezone = wire.decode(self.options[_FILES])

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def _snapshot(self) -> Snapshot:
        options = {name: text for name, text in self.options.items() if name != _FILES}
        parsed = parse_read_options(options)
        return TableLog(open_storage(parsed.path, parsed.storage_options)).open_snapshot(self._version)

    def schema(self) -> SparkStructType:
        # Places are known of every row, but what promises no nulls keeps Spark from ever asking.
        return schemas.to_spark(StructType((*self._snapshot().schema.fields, *_PLACE)))

    def reader(self, schema: SparkStructType) -> DataSourceReader:
        places = dict(zip(self._paths, self._numbers, strict=True))
        return _Reader(self._snapshot(), schema, places, self._timezone)


class _Slices(InputPartition):
    def __init__(self, slices: Sequence[tuple[int, FileSlice]]) -> None:
        super().__init__(None)
        self.slices = tuple(slices)

    def __repr__(self) -> str:
        return f"_Slices({len(self.slices)})"


class _Reader(DataSourceReader):
    """Pickled, it keeps only what `read` needs in a task."""

    def __init__(
        self, snapshot: Snapshot, schema: SparkStructType, numbers: Mapping[str, int], timezone: str
    ) -> None:
        self._scan: Any = Scan(snapshot, metadata_columns=("row_index",))
        self._numbers: Any = numbers
        self._storage = snapshot.storage
        self._plan: ReadPlan = replace(self._scan.plan, timezone=timezone)
        self._schema = schema
        self._columns = len(snapshot.schema.fields)

    def __getstate__(self) -> dict[str, Any]:
        return {n: v for n, v in self.__dict__.items() if n not in ("_scan", "_numbers")}

    def partitions(self) -> Sequence[InputPartition]:
        from delta_ds.kernel.files.scan.scan import DEFAULT_PARTITION_BYTES, pack

        slices = [piece for piece in self._scan.slices() if piece.path in self._numbers]
        tasks = pack(slices, DEFAULT_PARTITION_BYTES, 1)
        packed = [_Slices([(self._numbers[piece.path], piece) for piece in task]) for task in tasks]
        return packed or [_Slices(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Slices)
        wanted = schemas.to_arrow(self._schema)
        for number, piece in partition.slices:
            for batch in read_slices(self._storage, self._plan, [piece]):
                yield schemas.conform(self._with_places(batch, number), wanted, self._plan.table)

    def _with_places(self, batch: pa.RecordBatch, number: int) -> pa.RecordBatch:
        import pyarrow as pa

        (index,) = batch.column(self._columns).flatten()
        file = pa.repeat(pa.scalar(number, pa.int32()), len(batch))
        names = [*batch.schema.names[: self._columns], *(f.name for f in _PLACE)]
        return pa.RecordBatch.from_arrays([*batch.columns[: self._columns], file, index], names=names)
