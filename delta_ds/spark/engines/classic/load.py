"""`spark.read` of a table where Spark's own Parquet reader can be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_ds.kernel.format.options.read import ReadOptions
from delta_ds.kernel.storage.store_options import is_hadoop_setting
from delta_ds.records import dataclass
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.base.kinds.session_facts import parse_options_of_read
from delta_ds.spark.base.table_names import check_path
from delta_ds.spark.engines.classic.hadoop import hadoop_root
from delta_ds.spark.engines.classic.jvm import Jvm, NotNative
from delta_ds.spark.engines.classic.latest_version import InsertRows, latest_relation
from delta_ds.spark.engines.classic.projection import ColumnAt, project
from delta_ds.spark.engines.classic.scan import scan
from delta_ds.spark.engines.portable.batch import Changes, Rows
from delta_ds.spark.engines.portable.source import open_read, select_read_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType as SparkStructType

_PORTABLE_OPTIONS = {"metadatacolumns": "metadataColumns", "maxpartitionbytes": "maxPartitionBytes"}


def load(
    spark: SparkSession,
    options: Mapping[str, str],
    schema: SparkStructType | None = None,
    *,
    insert: InsertRows,
) -> DataFrame:
    """The rows that read options ask for, of the newest version at each execution unless they name one.

    Parameters
    ----------
    spark
        A classic session.
    options
        As of `spark.read`, `path` among them.
    schema
        Columns to read, as given to `spark.read.schema(...)`; None for all, or for what `columns` says.
    insert
        Writes the rows of an `INSERT INTO` a view of the result.

    Raises
    ------
    NotNative
        The portable path has to read this.
    DeltaError
        No table there, a version or timestamp out of reach, a feature or option that is not known.
    """
    return frame_of(spark, open_reading(spark, options), options, schema, insert=insert)


@dataclass(frozen=True)
class Reading:
    """A table that is open to be read: what options ask for, and the version that they name.

    Attributes
    ----------
    parsed
        The options of the read.
    rows
        The version, or the changes.
    """

    parsed: ReadOptions
    rows: Rows | Changes


def open_reading(
    spark: SparkSession, options: Mapping[str, str], *, without_columns: bool = False
) -> Reading:
    """Open the table that read options name; see `load` and `open_read`."""
    check_path(options)
    # Hadoop has what the session says already, and looks it up each time.
    parsed = parse_options_of_read(spark, options)
    return Reading(parsed, open_read(parsed, None, without_columns=without_columns))


def frame_of(
    spark: SparkSession,
    opened: Reading,
    options: Mapping[str, str],
    schema: SparkStructType | None = None,
    *,
    insert: InsertRows,
) -> DataFrame:
    """The rows of a table that is open; arguments and errors as for `load`."""
    for name in options:
        if name.lower() in _PORTABLE_OPTIONS:
            raise NotNative(f"the option {_PORTABLE_OPTIONS[name.lower()]} is the portable reader's")
    jvm = Jvm.of(spark)
    parsed, reading = opened.parsed, opened.rows
    if isinstance(reading, Changes):
        raise NotNative("a change feed is read file by file")
    root = hadoop_root(jvm, options, parsed.path)
    hadoop_options = {k: v for k, v in options.items() if is_hadoop_setting(k)}
    zone, found = parsed.time_zone, reading.snapshot
    if reading.travels:
        frame = scan(spark, found, root=root, hadoop_options=hadoop_options, timezone=zone)
    else:
        frame = latest_relation(jvm, found, root, hadoop_options, zone, insert)
    if schema is not None:
        names = schemas.find_columns(schema, reading.schema, reading.table)
        shown = schema.names
    elif parsed.columns is not None:
        names = shown = select_read_schema(reading.schema, parsed, reading.table).names
    else:
        return frame
    positions = {name: at for at, name in enumerate(reading.schema.names)}
    # A schema that the user gave may write a name in another case, which then is that of the column.
    chosen = [
        ColumnAt(positions[name], None if name == other else other)
        for name, other in zip(names, shown, strict=True)
    ]
    return project(jvm, frame, chosen)
