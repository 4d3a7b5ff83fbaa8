"""Scan some files of a version by Spark's own Parquet reader, with row positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_ds.kernel.storage.hadoop_options import is_hadoop_setting
from delta_ds.spark.native.file_index import FILE_NUMBER
from delta_ds.spark.native.jvm import Jvm
from delta_ds.spark.native.scan import hadoop_root, row_index, scan
from delta_ds.spark.schema import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.kernel.snapshot import Snapshot


def numbered_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    options: Mapping[str, str],
    rows: pa.Array,
    timezone: str,
    names: tuple[str, str],
) -> DataFrame:
    """The rows of some files.

    Parameters
    ----------
    spark
        A classic session.
    snapshot
        The version.
    options
        Read options of the table: `path` among them.
    rows
        int64 rows of `snapshot.live_files().table`.
    timezone
        Zone of partition timestamps that name none.
    names
        Of the two columns that come last: the row of the file in the live files (int), and the position of the row
        in the file (bigint).

    Raises
    ------
    NotNative
        The portable path has to read this table.
    """
    frame = scan(
        spark,
        snapshot,
        root=hadoop_root(Jvm.of(spark), options, options["path"]),
        hadoop_options={k: v for k, v in options.items() if is_hadoop_setting(k)},
        rows=rows,
        numbered=True,
        timezone=timezone,
    )
    own = [frame[quoted(name)] for name in snapshot.schema.names]
    place = (frame[FILE_NUMBER].alias(names[0]), row_index(frame).alias(names[1]))
    return frame.select(*own, *place)
