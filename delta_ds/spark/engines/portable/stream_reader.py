"""The stream reader of `spark.readStream`, the same for all versions of Spark.

Spark keeps one process for a query, in which it asks for offsets and partitions. What tasks need travels in the
partitions, since the reader that they get is made in yet another process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from delta_ds.kernel.commands.streaming.offsets import StreamOffset
from delta_ds.kernel.files.read.file_columns import output_schema
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan, pack
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import replace
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.base.processes import same_version, task_time_zone
from delta_ds.spark.errors.translation import with_error_parameters

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType as SparkStructType

    from delta_ds.kernel.commands.changes.net import Net
    from delta_ds.kernel.commands.streaming.source import StreamSource


class StreamPartition(InputPartition):
    """What one task of a batch reads, with all that it needs for that.

    `netted`: the keys by which its rows are netted, and how; it then has all of the batch, in order.
    `session_zone`: the session's time zone when the stream was loaded; see `task_time_zone`.
    """

    def __init__(
        self,
        storage: Storage,
        plan: ReadPlan,
        slices: Sequence[FileSlice],
        netted: tuple[tuple[str, ...], Net] | None = None,
        session_zone: str | None = None,
    ) -> None:
        super().__init__(None)
        self.session_zone = session_zone
        self.netted = netted
        self.storage = storage
        self.plan = plan
        self.slices = tuple(slices)

    def __repr__(self) -> str:
        return f"StreamPartition({len(self.slices)} slices)"


@same_version
@with_error_parameters
class DeltaStreamReader(DataSourceStreamReader):
    """The stream reader, as far as it is the same in all versions of Spark.

    Parameters
    ----------
    open_source
        Gives the source. Called with the first question and not before: what the constructor of a reader raises
        reaches the user as another error.
    schema
        The columns that Spark expects.
    tasks
        How many tasks a batch is cut into at least, if it is large enough.
    """

    def __init__(
        self, open_source: Callable[[], StreamSource], schema: SparkStructType, tasks: int = 1
    ) -> None:
        self._open_source = open_source
        self._schema = schema
        self._tasks = tasks

    def __getstate__(self) -> dict[str, Any]:
        return {"_schema": self._schema}

    @cached_property
    def _source(self) -> StreamSource:
        return self._open_source()

    def _parse_offset(self, offset: dict[str, Any]) -> StreamOffset:
        return self._source.offset(offset)

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query begins."""
        return self._source.initial_offset().to_dict()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a batch; none where it is empty.

        Raises
        ------
        DeltaError
            As `StreamSource.tasks`.
        """
        source = self._source
        plan, slices = source.tasks(self._parse_offset(start), self._parse_offset(end))
        zone = source.options.facts.time_zone
        plan = replace(plan, timezone=source.options.time_zone)
        netted = source.netted()
        if netted is not None:
            # All changes of a key have to come together, and in order.
            return [StreamPartition(source.storage, plan, slices, netted, zone)] if slices else []
        tasks = pack(slices, source.options.max_partition_bytes, self._tasks)
        return [StreamPartition(source.storage, plan, task, session_zone=zone) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition as batches of exactly the schema that Spark asked for.

        Raises
        ------
        DataFileError
            A file is missing or damaged; the message names it, the table and the version.
        """
        if not isinstance(partition, StreamPartition) or not partition.slices:
            return
        wanted = schemas.to_arrow(self._schema)
        plan = partition.plan
        if plan.timezone is None:
            # That of the query, which has its own from its start on.
            plan = replace(plan, timezone=task_time_zone(partition.session_zone))
        for batch in _rows(partition, plan):
            # A schema that the user gave may write a name in another case.
            names = {name.lower(): name for name in batch.schema.names}
            found = batch.select([names[name.lower()] for name in wanted.names])
            yield schemas.conform(found, wanted, plan.table)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: all state is in Spark's checkpoint."""

    def stop(self) -> None:
        """Do nothing: no file is open."""


def _rows(partition: StreamPartition, plan: ReadPlan) -> Iterator[pa.RecordBatch]:
    rows = read_slices(partition.storage, plan, partition.slices)
    if partition.netted is None:
        return rows
    from delta_ds.kernel.commands.changes.net_memory import net_batches

    keys, net = partition.netted
    return net_batches(rows, output_schema(plan), keys, net, plan.table)


@with_error_parameters
class Spark41StreamReader(DeltaStreamReader):
    """Answers `latestOffset()` by the offsets it has been asked about."""

    _position: StreamOffset | None = None

    # Spark 4.2 gave it two parameters, and goes by their number.
    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        """The end of the next batch; the end of the log where it is not known what comes next."""
        if self._position is None:
            return self._source.all_available().to_dict()
        return self._source.latest_offset(self._position).to_dict()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        found = super().partitions(start, end)
        self._position = self._parse_offset(end)
        return found
