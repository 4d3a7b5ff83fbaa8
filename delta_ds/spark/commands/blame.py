"""`blame`: the rows of a table, each with the commit that last wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from delta_ds.kernel.commands.blame import BLAME_FIELDS
from delta_ds.kernel.format.options.read import parse_read_options
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.transaction.table_log import TableLog
from delta_ds.records import dataclass
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.base import wire
from delta_ds.spark.base.kinds import sealed
from delta_ds.spark.base.kinds.sealed import Sealed, seal
from delta_ds.spark.base.kinds.session_facts import with_session_settings
from delta_ds.spark.base.processes import same_version
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.base.session_conf import time_zone
from delta_ds.spark.commands.delete import resolve_condition
from delta_ds.spark.commands.dml_target import DmlTarget
from delta_ds.spark.commands.expression_resolution import columns_of, predicate_of
from delta_ds.spark.engines.connect import log_calls
from delta_ds.spark.engines.connect.connect_bridge import ask
from delta_ds.spark.errors.translation import delta_errors, with_error_parameters

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType as SparkStructType

    from delta_ds.kernel.commands.blame import Blame
    from delta_ds.kernel.files.read.plan import FileSlice
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.spark.commands.handle import Handle
    from delta_ds.spark.engines.seam.expressions import Resolved

# --- a private data source: the rows of a version, each with the commit that last wrote it

FORMAT = "pydelta_blame"
ASKED = "asked"


@dataclass(frozen=True)
class Asked:
    """Which rows: the version, what of the condition the kernel understands, the columns, the session time zone."""

    version: int
    predicate: Expression | None
    columns: tuple[str, ...]
    timezone: str

    def packed(self) -> str:
        """As an option of the source."""
        return wire.encode(self)


def register_source(spark: SparkSession) -> None:
    """Make the source known to a session."""
    if not sealed.is_registered(spark, FORMAT):
        sealed.register_source(spark, BlameSource)


@with_error_parameters
class BlameSource(DataSource, Sealed):
    """Options: the table's, and `asked`, an `Asked`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(self.opened(options))
        self._asked: Asked = wire.decode(self.options[ASKED])

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def _blame(self) -> Blame:
        from delta_ds.kernel.commands.blame import Blame

        options = {name: text for name, text in self.options.items() if name != ASKED}
        parsed = parse_read_options(options)
        asked = self._asked
        log = TableLog(open_storage(parsed.path, parsed.storage_options))
        return Blame(log.open_snapshot(asked.version), asked.predicate, asked.columns, asked.timezone)

    def schema(self) -> SparkStructType:
        return schemas.to_spark(self._blame().schema)

    def reader(self, schema: SparkStructType) -> DataSourceReader:
        return _Reader(self._blame(), schema, self._asked.timezone)


class _Slices(InputPartition):
    def __init__(self, slices: Sequence[FileSlice]) -> None:
        super().__init__(None)
        self.slices = tuple(slices)

    def __repr__(self) -> str:
        return f"_Slices({len(self.slices)})"


@same_version
@with_error_parameters
class _Reader(DataSourceReader):
    """Pickled, it keeps only what `read` needs in a task."""

    def __init__(self, blame: Blame, schema: SparkStructType, timezone: str) -> None:
        self._scan: Any = blame.scan
        self._storage = blame.scan.snapshot.storage
        self._reader = blame.reader()
        self._timezone = timezone
        self._schema = schema
        self._table = blame.scan.snapshot.storage.url

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_scan"}

    def partitions(self) -> Sequence[InputPartition]:
        return [_Slices(task) for task in self._scan.tasks()] or [_Slices(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Slices)
        wanted = schemas.to_arrow(self._schema)
        for batch in self._reader.read(self._storage, partition.slices, self._timezone):
            yield schemas.conform(batch, wanted, self._table)


# --- `blame`: the rows of a table, each with the commit that last wrote it

_WHAT = "BLAME"


def run_blame(
    handle: Handle,
    condition: str | Column | None,
    columns: Sequence[str] | None,
    version: int | None,
    timestamp: str | datetime | None,
) -> DataFrame:
    """The rows that match a condition, with their commits; see `DeltaTable.blame`."""
    zone = time_zone(handle.spark)
    at, names = ask(handle.log, log_calls.blamed, columns, version, timestamp, zone)
    if condition is None:
        found = _frame(handle, Asked(at, None, tuple(names), zone))
        return found.alias(handle.alias) if handle.alias else found
    target = DmlTarget(handle, at)
    sample = target.frame(target.no_files)
    resolved = resolve_condition(target, sample, condition, _WHAT)
    read = _columns_read(target, resolved, names)
    found = _frame(handle, Asked(at, predicate_of(target, resolved), read, zone))
    found = target.engine.frames.with_ids_of(found, sample)
    rows = (found.alias(handle.alias) if handle.alias else found).where(resolved.column)
    if len(read) > len(names):
        rows = rows.select(*(quoted(name) for name in (*names, *BLAME_FIELDS.names)))
    return rows


def _columns_read(target: DmlTarget, condition: Resolved, names: Sequence[str]) -> tuple[str, ...]:
    """The columns to show and those that a condition reads; all of them where that is not known."""
    known = columns_of(target, condition)
    if known is None:
        return (*names, *(name for name in target.schema.names if name not in names))
    lower = {name.lower() for name in known}
    return (*names, *(n for n in target.schema.names if n not in names and n.lower() in lower))


def _frame(handle: Handle, asked: Asked) -> DataFrame:
    register_source(handle.spark)
    options = seal(handle.spark, with_session_settings(handle.spark, handle.options), FORMAT)
    with delta_errors():
        return handle.spark.read.format(FORMAT).options(**options, **{ASKED: asked.packed()}).load()
