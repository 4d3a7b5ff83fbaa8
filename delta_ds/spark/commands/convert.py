"""`convertToDelta`, with statistics collected on executors."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import DataType as SparkDataType
from pyspark.sql.types import StructType as SparkStructType

from delta_ds.api.delta_log import DeltaLog
from delta_ds.conditions.catalog import NO_TABLE_TO_CONVERT
from delta_ds.conditions.schema import (
    NOT_A_PARTITION_SCHEMA,
    PARTITION_SCHEMA_UNREADABLE,
    UNEXPECTED_PARTITION_SCHEMA_FROM_USER,
)
from delta_ds.conditions.session import CONVERT_NON_PARQUET_TABLE, VIEW_CANNOT_BE_CONVERTED
from delta_ds.events.commands import CONVERT_BY_DRIVER
from delta_ds.kernel.commands.convert_to_delta import Conversion, convert_to_delta
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.format.options.settings import COLLECT_STATISTICS, default_properties
from delta_ds.kernel.format.properties import PropertyRules
from delta_ds.records import replace
from delta_ds.spark.base.kinds import session_facts
from delta_ds.spark.base.kinds.environment import tasks_problem
from delta_ds.spark.base.kinds.frames import frame_of, map_in_arrow, progress_of, tasks_counted
from delta_ds.spark.base.kinds.session_kind import knows_names
from delta_ds.spark.base.schema import quoted, to_kernel
from delta_ds.spark.base.session_conf import is_set, time_zone
from delta_ds.spark.base.table_names import format_and_path, is_ours
from delta_ds.spark.commands.handle import open_handle, open_name
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.engines.connect.connect_bridge import open_log, run
from delta_ds.spark.errors.translation import delta_errors
from delta_ds.spark.session.catalog.entries import Metastore
from delta_ds.spark.session.catalog.places import find_entry, name_parts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from delta_ds.kernel.base.work import Phase
    from delta_ds.kernel.files.write.write_spec import Written
    from delta_ds.kernel.format.schema.types import DataType, StructType
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.spark.commands.handle import Handle
    from delta_ds.spark.engines.connect.connect_bridge import Log
    from delta_ds.spark.session.catalog.entries import Entry

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
    source, path, entry = _source(spark, identifier)
    if source not in ("parquet", "delta", "pydelta"):
        raise CONVERT_NON_PARQUET_TABLE(identifier=identifier)
    if source == "parquet":
        columns = _columns(partition_schema)
        if entry is not None:
            columns = _of_entry(spark, identifier, entry, columns)
        _convert(spark, open_log(spark, path, {}), entry, columns, collect_statistics)
        if entry is not None:
            Metastore(Jvm.of(spark)).become_ours([entry.schema], entry.name)
    return open_handle(spark, path, {}) if entry is None else open_name(spark, identifier)


def _source(spark: SparkSession, identifier: str) -> tuple[str, str, Entry | None]:
    """The format and path that a name stands for, and its entry in the catalog where it has one."""
    from pyspark.errors import ParseException

    source, path = format_and_path(identifier)
    if source or not knows_names(spark):
        return source, path, None
    try:
        found = find_entry(spark, name_parts(spark, identifier))
    except ParseException:
        return source, path, None  # no name at all, such as a bare path
    if found is None:
        raise NO_TABLE_TO_CONVERT(relationName=identifier)
    if found.provider is None:
        raise VIEW_CANNOT_BE_CONVERTED(table=found.full_name)
    return "delta" if is_ours(found.provider) else found.provider, found.path, found


def _convert(
    spark: SparkSession,
    log: Log,
    entry: Entry | None,
    columns: StructType | None,
    collect_statistics: bool | None,
) -> None:
    how: dict[str, Any] = {
        "collect_statistics": is_set(spark, COLLECT_STATISTICS.full_name, True)
        if collect_statistics is None
        else collect_statistics,
        "timezone": time_zone(spark),
        "defaults": default_properties(session_facts.session_settings(spark)),
    }
    if entry is not None:
        own, comment = Metastore(Jvm.of(spark)).description([entry.schema], entry.name)
        # The table has them already, also those whose names nobody knows.
        rules = PropertyRules(unknown=True, retentions=False)
        how |= {"properties": own, "description": comment, "rules": rules}
        how["catalog_table"] = ".".join(map(quoted, ("spark_catalog", entry.schema, entry.name)))
    if isinstance(log, DeltaLog):
        how["collect"] = _Job(spark, log.storage)
    with progress_of(spark):
        run(log, convert_to_delta, columns, **how)


def _of_entry(spark: SparkSession, name: str, entry: Entry, given: StructType | None) -> StructType | None:
    """The partition columns of a table of the catalog.

    Raises
    ------
    SchemaError
        Other columns, or other types, were given.
    """
    schema = spark.table(name).schema
    own = to_kernel([schema[column] for column in entry.partition_columns])
    if given is not None and _shape(given) != _shape(own):
        raise UNEXPECTED_PARTITION_SCHEMA_FROM_USER(
            table=entry.full_name, catalogPartitionSchema=str(own), userPartitionSchema=str(given)
        )
    return own or None


def _shape(schema: StructType) -> list[tuple[str, DataType]]:
    return [(field.name.lower(), field.type) for field in schema]


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

    def __call__(self, conversion: Conversion, files: Sequence[Written], phase: Phase) -> list[AddFile]:
        if len(files) < _WORTH_A_JOB or not self._can_tasks():
            return conversion.adds(self._storage, files, phase=phase)
        groups = list(_groups(conversion, files))
        shared = replace(conversion, looks=())
        frame = frame_of(self._spark, [(group,) for group in groups], "files binary")
        with delta_errors(), tasks_counted(self._spark, phase, len(files)):
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
