"""`convertToDelta`, with statistics collected on executors."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import DataType as SparkDataType
from pyspark.sql.types import StructType as SparkStructType

from delta_ds.conditions.schema import NOT_A_PARTITION_SCHEMA, PARTITION_SCHEMA_UNREADABLE
from delta_ds.conditions.session import CONVERT_NON_PARQUET_TABLE
from delta_ds.events.commands import CONVERT_BY_DRIVER
from delta_ds.kernel.actions import AddFile
from delta_ds.kernel.commands.convert_to_delta import Conversion, convert_to_delta
from delta_ds.kernel.delta_log import DeltaLog
from delta_ds.kernel.options.session_settings import default_properties
from delta_ds.kernel.options.settings import COLLECT_STATISTICS
from delta_ds.records import replace
from delta_ds.spark import settings
from delta_ds.spark.catalog.entries import Metastore
from delta_ds.spark.catalog.names import find_entry, name_parts
from delta_ds.spark.commands.handle import open_handle
from delta_ds.spark.connect_bridge import open_log, run
from delta_ds.spark.ddl_types import to_kernel
from delta_ds.spark.engine import is_connect
from delta_ds.spark.environment import tasks_problem
from delta_ds.spark.errors import delta_errors
from delta_ds.spark.frames import frame_of, map_in_arrow
from delta_ds.spark.native.jvm import Jvm
from delta_ds.spark.progress import progress_of
from delta_ds.spark.session_conf import has_catalog, is_set, time_zone
from delta_ds.spark.table_names import format_and_path, is_ours

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from delta_ds.kernel.data.write.paths import Written
    from delta_ds.kernel.schema.types import StructType
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.spark.catalog.entries import Metastore
from delta_ds.spark.commands.handle import Handle

# Fewer files than this are looked at in threads before a job would have started.
_WORTH_A_JOB = 64
_FILES_A_GROUP = 32


def run_convert(
    spark: SparkSession,
    identifier: str,
    partition_schema: str | SparkStructType | None,
    collect_statistics: bool | None = None,
) -> Handle:
    """Make a table of a folder; arguments as for `DeltaTable.convertToDelta`.

    Returns
    -------
    Handle
        On the table, which may have been one before.
    """
    source, path = format_and_path(identifier)
    from pyspark.errors import ParseException

    entry = None
    if not source and not is_connect(spark) and has_catalog(spark):
        try:
            found = find_entry(spark, name_parts(spark, identifier))
        except ParseException:
            found = None  # no name at all, such as a bare path
        if found is not None and found.provider is not None:
            source, path = "delta" if is_ours(found.provider) else found.provider, found.path
            entry = found
    if source not in ("parquet", "delta", "pydelta"):
        raise CONVERT_NON_PARQUET_TABLE(identifier=identifier)
    if source == "parquet":
        if entry is not None and partition_schema is None and entry.partition_columns:
            partition_schema = _of_names(spark.table(identifier).schema, entry.partition_columns)
        log = open_log(spark, path, {})
        how: dict[str, Any] = {
            "collect_statistics": is_set(spark, COLLECT_STATISTICS.full_name, True)
            if collect_statistics is None
            else collect_statistics,
            "timezone": time_zone(spark),
            "properties": default_properties(settings.session_settings(spark)),
        }
        if isinstance(log, DeltaLog):
            how["collect"] = _Job(spark, log.storage)
        with progress_of(spark):
            run(log, convert_to_delta, _columns(partition_schema), **how)
        if entry is not None:
            Metastore(Jvm.of(spark)).become_ours([entry.schema], entry.name)
    return open_handle(spark, path, {})


def _of_names(schema: SparkStructType, names: Sequence[str]) -> SparkStructType:
    return SparkStructType([schema[name] for name in names])


def _columns(schema: str | SparkStructType | None) -> StructType | None:
    """The partition columns, from text such as `year int, month int` too."""
    if schema is None:
        return None
    parsed: SparkDataType = schema if isinstance(schema, SparkStructType) else _parse_schema(schema)
    if not isinstance(parsed, SparkStructType):
        raise NOT_A_PARTITION_SCHEMA(schema=schema)
    return to_kernel(parsed.fields)


def _parse_schema(text: str) -> SparkDataType:
    from pyspark.errors import PySparkException

    try:
        return SparkDataType.fromDDL(text)
    except PySparkException as error:
        problem = str(error).strip().splitlines()[0]
        raise PARTITION_SCHEMA_UNREADABLE(schema=text, problem=problem) from error


class _Job:
    """Makes the `add` actions of many files in a Spark job."""

    def __init__(self, spark: SparkSession, storage: Storage) -> None:
        self._spark = spark
        self._storage = storage

    def __call__(self, conversion: Conversion, files: Sequence[Written]) -> list[AddFile]:
        if len(files) < _WORTH_A_JOB or not self._can_tasks():
            return conversion.adds(self._storage, files)
        groups = list(_groups(conversion, files))
        shared = replace(conversion, looks=())
        frame = frame_of(self._spark, [(group,) for group in groups], "files binary")
        with delta_errors():
            rows = map_in_arrow(frame, _adder(shared, self._storage), "adds string").collect()
        return [add for row in rows for add in json.loads(row[0])]

    def _can_tasks(self) -> bool:
        problem = tasks_problem(self._spark)
        if problem is not None:
            CONVERT_BY_DRIVER.log(table=self._storage.url, reason=problem)
        return problem is None


def _groups(conversion: Conversion, files: Sequence[Written]) -> Iterator[bytes]:
    """Some of the files, and what is known of them."""
    for start in range(0, len(files), _FILES_A_GROUP):
        end = start + _FILES_A_GROUP
        yield pickle.dumps((list(files[start:end]), conversion.looks[start:end]))


def _adder(
    conversion: Conversion, storage: Storage
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function of a task that turns groups of files into `add` actions."""

    def adds(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            texts = []
            for group in batch["files"].to_pylist():
                files, looks = pickle.loads(group)
                texts.append(json.dumps(replace(conversion, looks=looks).adds(storage, files)))
            yield pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], names=["adds"])

    return adds
