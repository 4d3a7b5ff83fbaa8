"""The batch reader: planned once on the driver, read slice by slice in tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.format.options.read import ReadOptions
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass, replace
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.base.processes import same_version, task_time_zone
from delta_ds.spark.base.schema import METADATA, metadata_field
from delta_ds.spark.errors.translation import with_error_parameters

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType as SparkStructType

    from delta_ds.kernel.commands.changes import ChangeFeed
    from delta_ds.kernel.files.scan.scan import Scan
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.log.snapshot import Snapshot

    pass


@dataclass(frozen=True, slots=True)
class Pin:
    """The versions that `schema()` resolved, which all later steps of a read use.

    `first` is None but for a change feed, and so is `columns_of`, the version whose columns it has.
    """

    first: int | None
    last: int
    columns_of: int | None = None


class Rows:
    """The read of the rows of a snapshot.

    Attributes
    ----------
    schema
        All columns that can be asked for, `_metadata` included where the options ask for it.
    pin
        The version this is.
    travels
        Whether the options name the version or its timestamp.
    """

    def __init__(self, snapshot: Snapshot, pin: Pin, options: ReadOptions) -> None:
        self.snapshot = snapshot
        self.pin = pin
        self.storage: Storage = snapshot.storage
        self.table = f"version {snapshot.version} of {snapshot.storage.url}"
        self.table_schema = snapshot.schema
        self._metadata_columns = options.metadata_columns
        self._time_zone = options.time_zone
        self.travels = options.version is not None or options.timestamp is not None
        self.schema = StructType((*snapshot.schema.fields, *metadata_field(options.metadata_columns)))

    def plan(self, columns: Sequence[str], predicate: Expression | None) -> ReadPlan:
        """The read plan for some columns under a bound predicate; files are not listed."""
        return self._scan(columns, predicate).plan

    def tasks(
        self, columns: Sequence[str], predicate: Expression | None, max_bytes: int
    ) -> list[list[FileSlice]]:
        """The slices of files that may hold matching rows, packed into tasks."""
        return self._scan(columns, predicate).tasks(max_bytes)

    def _scan(self, columns: Sequence[str], predicate: Expression | None) -> Scan:
        from delta_ds.kernel.files.scan.scan import Scan

        chosen = [name for name in columns if name != METADATA]
        metadata = self._metadata_columns if METADATA in columns else ()
        # Unless an option says it, the session's time zone is not known while planning; tasks put it in. Files are
        # then skipped by partition timestamps in local form only with a day to spare.
        return Scan(self.snapshot, predicate, chosen, self._time_zone, metadata)


class Changes:
    """Reading the change data feed of a range of versions; attributes as for `Rows`.

    Net changes are made by one task, which reads all columns: where Spark can net, it is not asked for them
    (`session/reading.py`).
    """

    def __init__(self, feed: ChangeFeed, pin: Pin, metadata_columns: Sequence[str]) -> None:
        self.feed = feed
        self.pin = pin
        self.storage: Storage = feed.storage
        self.table = f"the changes from version {feed.start} to {feed.end} of {feed.storage.url}"
        self.schema: StructType = feed.schema
        self.table_schema: StructType | None = None
        if metadata_columns:
            raise InvalidOptionError("a change feed has no metadata columns: leave out 'metadataColumns'")

    def plan(self, columns: Sequence[str], predicate: Expression | None) -> ReadPlan:
        return replace(self.feed.plan_for(None if self.feed.net else columns), timezone=None)

    def tasks(
        self, columns: Sequence[str], predicate: Expression | None, max_bytes: int
    ) -> list[list[FileSlice]]:
        if self.feed.net is None:
            return self.feed.tasks(max_bytes)
        slices = self.feed.slices()
        return [slices] if slices else []


class SlicePartition(InputPartition):
    """The slices that one task reads."""

    def __init__(self, slices: Sequence[FileSlice]) -> None:
        super().__init__(None)
        self.slices = tuple(slices)

    def __repr__(self) -> str:
        return f"SlicePartition({len(self.slices)} slices)"


@same_version
@with_error_parameters
class DeltaReader(DataSourceReader):
    """Plans the read on the driver; pickled, it keeps only what `read` needs in a task."""

    def __init__(
        self, reading: Rows | Changes, schema: SparkStructType, columns: list[str], options: ReadOptions
    ) -> None:
        self._reading = reading
        self._predicate: Expression | None = None
        self._max_bytes = options.max_partition_bytes
        self._storage = reading.storage
        self._schema = schema
        self._columns = columns
        self._time_zone = options.time_zone
        self._session_zone = options.facts.time_zone
        self._table = reading.table
        self._plan = reading.plan(columns, None)
        self._netted = options.net if isinstance(reading, Changes) else None
        self._keys = reading.feed.keys if isinstance(reading, Changes) else ()

    def __getstate__(self) -> dict[str, Any]:
        names = (
            "_netted", "_keys", "_storage", "_schema", "_columns", "_time_zone", "_session_zone", "_table", "_plan",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}

    def accept_filters(self) -> None:
        """Accept pushed filters, where Spark pushes them (see query_needs.py)."""
        # On the instance: Spark takes a class that overrides it for one that cannot do without.
        self.pushFilters = self._push_filters  # type: ignore[method-assign]

    def skip_by(self, filters: Sequence[Expression]) -> None:
        """Skip files by conditions that all rows have to fulfil which count, not bound; Spark evaluates them."""
        from delta_ds.spark.base.query_needs import bound_filters

        schema = self._reading.table_schema
        if schema is not None:
            self._predicate = bound_filters(filters, schema)
            self._plan = self._reading.plan(self._columns, self._predicate)

    def _push_filters(self, filters: list[Filter]) -> list[Filter]:
        """Use filters to skip files; all go back to Spark, which evaluates them on every row."""
        schema = self._reading.table_schema
        if schema is not None:
            from delta_ds.kernel.format.expressions.bind import bind
            from delta_ds.kernel.format.expressions.tree import conjunction
            from delta_ds.spark.base.query_needs import to_expression

            pushed = to_expression(filters, schema, lambda part: bind(part, schema))
            known = [part for part in (self._predicate, pushed) if part is not None]
            self._predicate = conjunction(known)
            self._plan = self._reading.plan(self._columns, self._predicate)
        return filters

    def partitions(self) -> list[InputPartition]:
        """One partition a task; one without slices where there is nothing to read."""
        tasks = self._reading.tasks(self._columns, self._predicate, self._max_bytes)
        return [SlicePartition(task) for task in tasks] or [SlicePartition(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition as batches of exactly the schema that Spark asked for.

        Raises
        ------
        DataFileError
            A file is missing or damaged; the message names it, the table and the version.
        """
        from delta_ds.kernel.commands.changes.net import check_net
        from delta_ds.kernel.commands.changes.net_memory import net_batches
        from delta_ds.kernel.files.read.file_columns import output_schema
        from delta_ds.kernel.files.read.reader import read_slices  # which the processes that plan do not need

        slices = partition.slices if isinstance(partition, SlicePartition) else ()
        if not slices:
            return
        wanted = schemas.to_arrow(self._schema)
        plan = replace(self._plan, timezone=self._time_zone or task_time_zone(self._session_zone))
        rows: Iterator[pa.RecordBatch] = read_slices(self._storage, plan, slices)
        if (net := check_net(self._netted, self._keys or None)) is not None:
            rows = net_batches(rows, output_schema(plan), self._keys, net, plan.table)
        for batch in rows:
            yield schemas.conform(batch.select(self._columns), wanted, self._table)
