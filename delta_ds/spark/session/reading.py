"""Read a table by Spark's own Parquet reader where possible, else by the data source; or the partition of a folder.

Source: delta-spark, `DeltaDataSource.parsePathIdentifier` and `DeltaTableUtils.findDeltaTableRoot`.
Differs: the folders must be the last ones of the path, and nothing but such folders is looked above.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.catalog import NO_PARTITION_AT_PATH, NON_PARTITION_COLUMN_IN_PATH
from delta_ds.exceptions import NotADeltaTableError
from delta_ds.kernel.base.arrow_buffers import field_of
from delta_ds.kernel.commands.changes.net import check_net
from delta_ds.kernel.format.options.read import ReadOptions
from delta_ds.kernel.format.schema.types import TIMESTAMP, DataType
from delta_ds.kernel.format.values.partition_values import (
    comparable_values,
    parse,
    parse_partition_folders,
    partition_folder,
)
from delta_ds.records import dataclass
from delta_ds.spark.base.kinds.session_facts import parse_options_of_read
from delta_ds.spark.base.kinds.session_kind import server_holds_tables
from delta_ds.spark.base.schema import find_columns, from_spark, quoted, select_columns, to_spark
from delta_ds.spark.base.table_names import path_option
from delta_ds.spark.engines.classic.load import open_reading
from delta_ds.spark.engines.net_changes import net_of_table
from delta_ds.spark.engines.portable.batch import Changes
from delta_ds.spark.engines.portable.source import open_read
from delta_ds.spark.engines.seam.choice import engine_of
from delta_ds.spark.errors.translation import delta_errors
from delta_ds.spark.session.writes.write import insert_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from delta_ds.kernel.log.snapshot import Snapshot


def read(spark: SparkSession, options: Mapping[str, str], schema: StructType | None = None) -> DataFrame:
    """The rows that read options ask for.

    Works in every session, registered or not, classic or Connect.

    Parameters
    ----------
    spark
        The session.
    options
        As of `spark.read`, `path` among them.
    schema
        Columns to read, as given to `spark.read.schema(...)`; None for all, or for what `columns` says.

    Raises
    ------
    DeltaError
        No table there, a version or timestamp out of reach, a feature or option that is not known. On Connect
        this shows when the rows, or their schema, are asked for.
    """
    if any(name.lower() == "net" for name in options):
        return _net(spark, options, schema)
    return _rows(spark, options, schema)


def _net(spark: SparkSession, options: Mapping[str, str], schema: StructType | None) -> DataFrame:
    """Net changes: by the data source in one task where that reads no more than a task does, else by Spark."""
    parsed = parse_options_of_read(spark, options)
    net, keys = check_net(parsed.net, parsed.keys), parsed.keys or ()
    assert net is not None
    if not server_holds_tables(spark) and _bytes(parsed) <= parsed.max_partition_bytes:
        return _rows(spark, options, schema)
    # The others, which say what of the net changes is wanted.
    of_result = ("net", "keys", "columns")
    feed = _rows(spark, {n: text for n, text in options.items() if n.lower() not in of_result}, None)
    with delta_errors():
        rows = net_of_table(feed, keys, net, parsed.path)
        available, table = from_spark(feed.schema), f"the changes of {parsed.path}"
        if schema is not None:
            return rows.select(*map(quoted, find_columns(schema, available, table)))
        if parsed.columns is not None:
            names = select_columns(list(parsed.columns), available, table).names
            return rows.select(*map(quoted, names))
    return rows


def _bytes(parsed: ReadOptions) -> int:
    """How large the files of a change feed are."""
    with delta_errors():
        opened = open_read(parsed, None)
    assert isinstance(opened, Changes)
    return sum(piece.size for piece in opened.feed.slices())


def _rows(spark: SparkSession, options: Mapping[str, str], schema: StructType | None) -> DataFrame:
    engine = engine_of(spark)
    try:
        return engine.read(options, schema, insert_rows)
    except NotADeltaTableError:
        # Looked for now only: a path with a table is the path of that table.

        found = read_partition(spark, options, schema, lambda above: engine.read(above, None, insert_rows))
        if found is None:
            raise
        return found


@dataclass(frozen=True, slots=True)
class PartitionPath:
    """A path below a table.

    Attributes
    ----------
    path
        As it was given.
    table
        Where the table is.
    values
        Columns and their texts, in the order of the folders; None stands for null.
    """

    path: str
    table: str
    values: tuple[tuple[str, str | None], ...]

    @property
    def partition(self) -> str:
        return partition_folder(self.values)


def partition_path(path: str | None) -> PartitionPath | None:
    """A path whose last folders are named as those of partitions, `day=2024-01-01/country=DE`; None if they are not.

    Examples
    --------
    >>> partition_path("/data/orders/day=2024-01-01/country=a%2Fb/").values
    (('day', '2024-01-01'), ('country', 'a/b'))
    >>> partition_path("/data/orders") is None
    True
    """
    if path is None:
        return None
    parts = path.rstrip("/").split("/")
    last = len(parts)
    while last > 1 and parts[last - 1].find("=") > 0:
        last -= 1
    if last == len(parts) or not parts[last - 1]:
        return None
    return PartitionPath(path, "/".join(parts[:last]), tuple(parse_partition_folders(parts[last:])))


def read_partition(
    spark: SparkSession,
    options: Mapping[str, str],
    schema: StructType | None,
    read: Callable[[Mapping[str, str]], DataFrame],
) -> DataFrame | None:
    """The rows of a partition, where the path of a read is that of its folder.

    Parameters
    ----------
    options, schema
        Of the read.
    read
        Reads a table by options.

    Returns
    -------
    pyspark.sql.DataFrame or None
        None where the path is no such path, or there is no table above.

    Raises
    ------
    SchemaError
        A folder is named after what is no partition column.
    NotADeltaTableError
        There is no such partition.
    """
    wanted = partition_path(path_option(options))
    if wanted is None:
        return None
    inner = {name: text for name, text in options.items() if name.lower() not in ("path", "columns")}
    inner["path"] = wanted.table
    try:
        opened = open_reading(spark, inner)
    except NotADeltaTableError:
        return None
    if isinstance(opened.rows, Changes):
        return None
    snapshot = opened.rows.snapshot
    parsed = parse_options_of_read(spark, options)
    zone = parsed.known_zone or "UTC"
    _check(snapshot, wanted, zone)
    rows = read(inner).where(_condition(wanted, snapshot, zone))
    available, table = from_spark(rows.schema), opened.rows.table
    if schema is not None:
        return rows.select(*map(quoted, find_columns(schema, available, table)))
    if parsed.columns is not None:
        return rows.select(*map(quoted, select_columns(list(parsed.columns), available, table).names))
    return rows


def _check(snapshot: Snapshot, wanted: PartitionPath, timezone: str) -> None:
    """Refuse what is no partition of a version."""
    table, columns = snapshot.storage.url, snapshot.partition_columns
    others = [name for name, _ in wanted.values if name not in columns]
    if others:
        raise NON_PARTITION_COLUMN_IN_PATH(
            path=wanted.path,
            table=table,
            columnList=", ".join(others),
            partitionColumns=", ".join(columns) or "nothing",
        )
    if not _has_files(snapshot, wanted, timezone):
        version = f"version {snapshot.version}"
        raise NO_PARTITION_AT_PATH(table=table, partition=wanted.partition, version=version, path=wanted.path)


def _has_files(snapshot: Snapshot, wanted: PartitionPath, timezone: str) -> bool:
    """Whether a version has files in a partition, by values and not by how they are written."""
    files = snapshot.live_files().table
    physical = dict(zip(snapshot.partition_columns, snapshot.physical_partition_columns, strict=True))
    fits = pa.array([True] * files.num_rows)
    for name, text in wanted.values:
        field = snapshot.schema.find(name)
        assert field is not None  # a snapshot without its partition columns is refused
        stored = field_of(files["partitionValues"], physical[name]).combine_chunks().cast(pa.string())
        value = _value(text, field.type, timezone)
        if text is not None and value is None:
            return False
        found = comparable_values(parse(stored, field.type, timezone))
        fits = pc.and_(fits, pa.array([repr(other) == repr(value) for other in found], pa.bool_()))
    return bool(pc.any(fits).as_py())


def _value(text: str | None, kind: DataType, timezone: str) -> Any:
    """See `comparable_values`; None for null, and for a text that is no value."""
    (value,) = comparable_values(parse(pa.array([text], pa.string()), kind, timezone))
    return value


def _condition(wanted: PartitionPath, snapshot: Snapshot, timezone: str) -> Column:
    """That rows are of a partition; local times are of the zone in which those of the log are read."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import TimestampType

    kinds = {field.name: field.dataType for field in to_spark(snapshot.schema).fields}
    condition = F.lit(True)
    for name, text in wanted.values:
        column = F.col(quoted(name))
        if text is None:
            fits = column.isNull()
        elif isinstance(kinds[name], TimestampType):
            fits = column == F.timestamp_micros(F.lit(_value(text, TIMESTAMP, timezone)))
        else:
            fits = column == F.lit(text).cast(kinds[name])
        condition = condition & fits
    return condition
