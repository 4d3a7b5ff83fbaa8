"""A version of a table as a DataFrame over Spark's own Parquet scan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.options.read import parse_read_options
from delta_ds.kernel.storage.hadoop_options import is_hadoop_setting
from delta_ds.kernel.storage.uri import has_scheme
from delta_ds.spark import schema as schemas
from delta_ds.spark.hadoop_settings import with_session_settings
from delta_ds.spark.native.columns import ScanColumns, scan_columns
from delta_ds.spark.native.file_index import DELETED, FILE_NUMBER, DeltaFileIndex
from delta_ds.spark.native.following import follow
from delta_ds.spark.native.insert import refusal
from delta_ds.spark.native.jvm import Jvm, NotNative
from delta_ds.spark.native.planner_statistics import catalog_table
from delta_ds.spark.native.projection import Kept, project

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType as SparkStructType

    from delta_ds.kernel.schema.types import StructType
    from delta_ds.kernel.snapshot import Snapshot

# Options of a relation win over settings of the session in what its tasks are told.
_FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
_MISSING_IDS = "spark.sql.parquet.fieldId.read.ignoreMissing"
# Files say themselves which calendar they use; what says nothing is read as it stands, as the kernel does.
READER_OPTIONS = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
_PORTABLE_OPTIONS = {"metadatacolumns": "metadataColumns", "maxpartitionbytes": "maxPartitionBytes"}
_TIME_TRAVEL = re.compile(r"@([vV][0-9]{1,19}|[0-9]{17})$")


def load(spark: SparkSession, options: Mapping[str, str], schema: SparkStructType | None = None) -> DataFrame:
    """The rows that read options ask for, of the newest version at each execution unless they name one.

    Parameters
    ----------
    spark
        A classic session.
    options
        As of `spark.read`, `path` among them.
    schema
        Columns to read, as given to `spark.read.schema(...)`; None for all, or for what `columns` says.

    Raises
    ------
    NotNative
        The portable path has to read this.
    DeltaError
        No table there, a version or moment out of reach, a feature or option that is not known.
    """
    from delta_ds.spark.batch import Changes
    from delta_ds.spark.source import check_path, chosen, open_reading

    session_zone = str(spark.conf.get("spark.sql.session.timeZone"))
    check_path(options)
    # Hadoop has what the session says already, and looks it up each time.
    parsed = parse_read_options(with_session_settings(spark, options), session_zone)
    for name in options:
        if name.lower() in _PORTABLE_OPTIONS:
            raise NotNative(f"the option {_PORTABLE_OPTIONS[name.lower()]} is the portable reader's")
    jvm = Jvm.of(spark)
    reading = open_reading(parsed, None, session_zone)
    if isinstance(reading, Changes):
        raise NotNative("a change feed is read file by file")
    root = hadoop_root(jvm, options, parsed.path)
    hadoop_options = {k: v for k, v in options.items() if is_hadoop_setting(k)}
    zone, found = parsed.time_zone, reading.snapshot
    if reading.travels:
        frame = scan(spark, found, root=root, hadoop_options=hadoop_options, timezone=zone)
    else:
        frame = follow(jvm, found, root, hadoop_options, zone)
    if schema is not None:
        names = schemas.find_columns(schema, reading.schema, reading.table)
    elif parsed.columns is not None:
        names = chosen(reading.schema, parsed, reading.table).names
    else:
        return frame
    positions = {name: at for at, name in enumerate(reading.schema.names)}
    return project(jvm, frame, [Kept(positions[name]) for name in names])


def scan(
    spark: SparkSession,
    snapshot: Snapshot,
    *,
    root: str | None = None,
    hadoop_options: Mapping[str, str] | None = None,
    rows: pa.Array | None = None,
    numbered: bool = False,
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
        check_names(snapshot)
    index = DeltaFileIndex(jvm, root, snapshot, found, rows=rows, numbered=numbered, timezone=timezone)
    frame = _relation(jvm, index, found, {**READER_OPTIONS, **(hadoop_options or {})})
    if index.has_deletions:
        frame = frame.where(_is_live(jvm, frame))
    extra = [frame[FILE_NUMBER]] if numbered else []
    return found.project(jvm, frame, extra)


def _relation(jvm: Jvm, index: DeltaFileIndex, columns: ScanColumns, options: Mapping[str, str]) -> DataFrame:
    """The relation by itself: physical names, hidden columns last, deleted rows included."""
    session = jvm.spark._jsparkSession
    options = {**options, _FIELD_IDS: str(columns.by_id).lower(), _MISSING_IDS: "false"}
    relation = jvm.relations.of(
        index,
        index.partitionSchema(),
        jvm.struct(columns.data),
        jvm.ParquetFileFormat(),
        jvm.map(options),
        session,
        refusal(index.snapshot),
    )
    hidden = [f for f in index.schema.fields if f.name in {h.name for h in index.hidden}]
    output = type(index.schema)([*columns.output.fields, *hidden])
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


def hadoop_root(jvm: Jvm, options: Mapping[str, str], path: str) -> str | None:
    """The table's folder as Hadoop opens it; None for a local one.

    Raises
    ------
    NotNative
        Spark's JVM cannot open the store: it lacks the file system's classes or the credentials.
    """
    if not has_scheme(path) or path.lower().startswith("file:"):
        return None
    given = [name for name in options if name.lower().startswith("storage.")]
    if given:
        raise NotNative(f"the option {given[0]} is meant for Python's file system, not for Hadoop's")
    return _opened(jvm, _TIME_TRAVEL.sub("", path).rstrip("/") + "/")


def _opened(jvm: Jvm, root: str) -> str:
    from py4j.protocol import Py4JError

    def problem(candidate: str) -> str | None:
        try:
            log = jvm.Path(f"{candidate}_delta_log")
            return None if file_system(jvm, log).exists(log) else "it sees no _delta_log there"
        except Py4JError as error:
            cause = getattr(error, "java_exception", None)
            return str(cause.toString() if cause is not None else error).splitlines()[0]

    found = None
    for candidate in (root, re.sub(r"^s3n?://", "s3a://", root)):
        found = problem(candidate)
        if found is None:
            return candidate
    raise NotNative(f"Hadoop cannot open {root}: {found}")


def file_system(jvm: Jvm, path: Any) -> Any:
    """Hadoop's file system of a path, as the session is configured."""
    return path.getFileSystem(jvm.spark._jsparkSession.sessionState().newHadoopConf())


def check_names(snapshot: Snapshot) -> None:
    """Hadoop looks for a checksum beside each local file, and takes a colon in its name for a URI's."""
    import pyarrow.compute as pc

    odd = pc.match_substring_regex(snapshot.live_files().table["path"], r"(:|%3[aA])[^/]*$")
    if pc.any(odd, min_count=0).as_py():
        raise NotNative("the names of data files hold colons, which Hadoop cannot open on a local disk")


def local_root(snapshot: Snapshot) -> str:
    if snapshot.storage.address.scheme != "file":
        raise NotNative(f"{snapshot.storage.url} is not known to Hadoop")
    return f"file:{snapshot.storage.url.rstrip('/')}/"
