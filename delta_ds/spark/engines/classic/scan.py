"""A version of a table, or some of its files, as a DataFrame over Spark's own Parquet scan."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.format.values.statistics import load_statistics
from delta_ds.kernel.storage.store_options import is_hadoop_setting
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.engines.classic.columns import ScanColumns, scan_columns
from delta_ds.spark.engines.classic.file_index import DeltaFileIndex
from delta_ds.spark.engines.classic.hadoop import (
    BASE_ROW_ID,
    DELETED,
    FILE_NUMBER,
    ROW_VERSION,
    check_names,
    hadoop_root,
    local_root,
)
from delta_ds.spark.engines.classic.jvm import Jvm

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from delta_ds.kernel.format.schema.types import StructType
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.spark.base.kinds.java_object import JavaValue

# --- what Spark's optimizer and `explain` see of a table: name, version, bytes and rows

_COUNTS_ROWS = ("spark.sql.cbo.enabled", "spark.sql.cbo.planStats.enabled")
# Of the parameters of CatalogTable: identifier, type, storage, schema have no default; the 13th are the statistics.
_REQUIRED, _STATISTICS = 4, 13


def catalog_table(jvm: Jvm, index: DeltaFileIndex) -> JavaValue:
    """A `CatalogTable` that stands for the version in plans; no catalog knows it.

    Rows are counted only where the session lets the optimiser use them, as it takes the statistics of every file.
    """
    snapshot = index.snapshot
    identifier = jvm.TableIdentifier(f"{snapshot.storage.url}@v{snapshot.version}", jvm.some("pydelta"))
    arguments = [
        identifier,
        jvm.CatalogTableType.EXTERNAL(),
        jvm.CatalogStorageFormat.empty(),
        jvm.struct(index.columns.output),
    ]
    for number in range(_REQUIRED + 1, jvm.catalog_table_parameters + 1):
        if number == _STATISTICS:
            arguments.append(jvm.some(_statistics(jvm, index)))
        else:
            arguments.append(getattr(jvm.CatalogTableModule, f"apply$default${number}")())
    return jvm.CatalogTable(*arguments)


def _statistics(jvm: Jvm, index: DeltaFileIndex) -> JavaValue:
    rows = _row_count(jvm, index)
    # Made in the JVM: py4j would turn Scala's numbers into Python's.
    return jvm.listing.statistics(index.sizeInBytes(), -1 if rows is None else rows)


def _row_count(jvm: Jvm, index: DeltaFileIndex) -> int | None:
    """The rows of the version; None where nobody asks, or a file does not say."""
    conf = jvm.spark.conf
    if index.large or not any(str(conf.get(name, "false")).lower() == "true" for name in _COUNTS_ROWS):
        return None
    import pyarrow.compute as pc

    live = index.live
    rows = index.rows
    records = load_statistics(live, rows, []).num_records
    if records.null_count:
        return None
    vectors = live.table["deletionVector"].take(rows)
    deleted = pc.sum(pc.struct_field(vectors, "cardinality")).as_py() or 0
    return int(pc.sum(records).as_py() or 0) - int(deleted)


# --- a version of a table, or some of its files, as a DataFrame over Spark's own Parquet scan

# Options of a relation win over settings of the session in what its tasks are told.
_FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
_MISSING_IDS = "spark.sql.parquet.fieldId.read.ignoreMissing"
# Files say themselves which calendar they use; what says nothing is read as it stands, as the kernel does.
READER_OPTIONS = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
# Parquet's filters by dictionaries and Bloom filters compare bits: to them -0.0 is not 0.0, and they leave rows out.
_WITHOUT_FILTERS_BY_VALUE = {
    "parquet.filter.dictionary.enabled": "false",
    "parquet.filter.bloom.enabled": "false",
}
_FLOATS = re.compile(r'"(float|double)"')


def scan(
    spark: SparkSession,
    snapshot: Snapshot,
    *,
    root: str | None = None,
    hadoop_options: Mapping[str, str] | None = None,
    rows: pa.Array | None = None,
    numbered: bool = False,
    tracked: bool = False,
    columns: StructType | None = None,
    timezone: str | None = None,
) -> DataFrame:
    """The rows of a version, or of some of its files.

    Parameters
    ----------
    spark
        A classic session.
    snapshot
        The version.
    root
        The table's folder as Hadoop names it; None for a local table.
    hadoop_options
        Settings of Hadoop's file system for this read.
    rows
        int64 rows of `snapshot.live_files().table`: only these files; None for all.
    numbered
        Add the column `FILE_NUMBER`: the row of the file in `snapshot.live_files().table`.
    tracked
        Add four columns: what the file keeps as id of a row and version of its last commit, and what they begin with
        in the file where it keeps none. Nulls where the version has no row tracking.
    columns
        See `scan_columns`; None for all.
    timezone
        Zone of partition timestamps that name none; None for the session's.

    Raises
    ------
    NotNative
        The portable path has to read this table.
    """
    jvm = Jvm.of(spark)
    found = scan_columns(snapshot, columns)
    if root is None:
        root = local_root(snapshot)
        check_names(spark, snapshot)
    kept = snapshot.table_state.row_tracking_columns if tracked else ()
    index = DeltaFileIndex(
        jvm, root, snapshot, found, rows=rows, numbered=numbered, tracked=bool(kept), timezone=timezone
    )
    frame = _relation(jvm, index, found, {**READER_OPTIONS, **(hadoop_options or {})}, kept)
    if index.has_deletions:
        frame = frame.where(_is_live(jvm, frame))
    extra = [frame[FILE_NUMBER]] if numbered else []
    if tracked:
        extra += _row_tracking(frame, kept)
    return found.project(jvm, frame, extra)


def _row_tracking(frame: DataFrame, kept: Sequence[str]) -> list[Column]:
    from pyspark.sql import functions as F

    if not kept:
        return [F.lit(None).cast("bigint").alias(f"{BASE_ROW_ID}{number}") for number in range(4)]
    return [frame[quoted(name)] for name in (*kept, BASE_ROW_ID, ROW_VERSION)]


def _relation(
    jvm: Jvm, index: DeltaFileIndex, columns: ScanColumns, options: Mapping[str, str], kept: Sequence[str]
) -> DataFrame:
    """The relation by itself: physical names, hidden columns last, deleted rows included."""
    from pyspark.sql.types import LongType, StructField, StructType

    session = jvm.spark._jsparkSession
    beside = [StructField(name, LongType()) for name in kept]
    options = {**options, _FIELD_IDS: str(columns.by_id).lower(), _MISSING_IDS: "false"}
    if _FLOATS.search(columns.data.json()):
        options |= _WITHOUT_FILTERS_BY_VALUE
    refusal = insert_refusal(index.snapshot)
    relation = jvm.relations.of(
        index,
        index.partitionSchema(),
        jvm.struct(StructType([*columns.data.fields, *beside])),
        jvm.ParquetFileFormat(),
        jvm.map(options),
        session,
        # In the form that `as_delta_error` reads.
        f"delta_ds.exceptions.{type(refusal).__name__}: {refusal}",
        json.dumps(
            {"path": index.snapshot.storage.address.as_written, "versionAsOf": str(index.snapshot.version)}
        ),
    )
    hidden = [f for f in index.schema.fields if f.name in {h.name for h in index.hidden}]
    output = StructType([*columns.output.fields, *beside, *hidden])
    attributes = jvm.DataTypeUtils.toAttributes(jvm.struct(output))
    table = catalog_table(jvm, index)
    return jvm.data_frame(jvm.LogicalRelation.apply(relation, attributes, jvm.some(table), False, jvm.none))


def _is_live(jvm: Jvm, frame: DataFrame) -> Column:
    """Whether a row is not deleted; the bitmap ends with the last deleted row of the file."""
    from pyspark.sql import functions as F

    bitmap, row = frame[DELETED], row_index(frame)
    # CASE keeps the order: the bit is looked up only where the bitmap has one.
    deleted = F.when(row < F.octet_length(bitmap).cast("bigint") * 8, jvm.is_set(bitmap, row.cast("int")))
    return ~F.coalesce(deleted, F.lit(False))


def row_index(frame: DataFrame) -> Column:
    """The position of a row in its file (bigint), also where the table has a column called `_metadata`."""
    return frame.metadataColumn("_metadata").getField("row_index")


def insert_refusal(snapshot: Snapshot) -> UnsupportedOperationError:
    """The error for an insert into a view of one version."""
    return UnsupportedOperationError(
        f"the view shows version {snapshot.version} of {snapshot.storage.url}, and a version cannot be changed; "
        "insert into a view that was made without versionAsOf and timestampAsOf. Nothing was written"
    )


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
