"""CONVERT TO DELTA: make a folder of Parquet files a table, without moving the files.

Files and sizes come from a listing, columns and statistics from the footers, partition values from the names of
folders, read as the types that the user gives for them.

Source: PROTOCOL.md, "Add File and Remove File", "Partition Value Serialization"; protocol-checklist MPC-R-02;
conflict-matrix section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_ds.conditions.commands import (
    CONVERSION_UNSUPPORTED_COLUMN_MAPPING,
    EMPTY_DIRECTORY,
    FAILED_CAST_PARTITION_VALUE,
    FAILED_READ_FILE_FOOTER,
    FILE_NOT_FOUND,
    UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME,
    UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME,
)
from delta_ds.conditions.record import CONVERT_STREAM_OUTPUT_NOT_ALLOWED
from delta_ds.conditions.tables import CONVERSION_UNSUPPORTED_CONSTRAINT
from delta_ds.events.commands import CONVERT_COUNTS_ONLY, CONVERT_SKIPPED
from delta_ds.exceptions import DataFileError, DeltaError
from delta_ds.kernel.base.work import Phase, Work
from delta_ds.kernel.commands.parquet_schema import file_schema, merge_file_schemas, part_in, schema_key
from delta_ds.kernel.files.write import write_spec
from delta_ds.kernel.files.write.footer_statistics import FooterStatistics, read_footer
from delta_ds.kernel.files.write.write_spec import WriteSpec, Written, list_written_files
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.format.operations import CONVERT
from delta_ds.kernel.format.properties import (
    COLUMN_MAPPING_MODE,
    CONSTRAINT_PREFIX,
    DATA_SKIPPING_STATS_COLUMNS,
    STRICT,
    PropertyRules,
)
from delta_ds.kernel.format.schema.column_paths import show
from delta_ds.kernel.format.schema.types import StructField, StructType
from delta_ds.kernel.format.values.partition_values import parse_partition_folders, text_in_log
from delta_ds.kernel.transaction.alter.create import TableDefinition, new_table
from delta_ds.records import dataclass, field

if TYPE_CHECKING:
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.transaction.table_log import TableLog

_FILES_AT_ONCE = 16
_SINK_LOG = "_spark_metadata"
_INDEXED = 32


@dataclass(frozen=True, slots=True)
class ConvertResult:
    """What CONVERT did: the version it committed, and how many files the table has."""

    version: int
    num_converted_files: int


def convert_to_delta(
    log: TableLog,
    partition_schema: StructType | None = None,
    *,
    collect_statistics: bool = True,
    timezone: str = "UTC",
    collect: Collector | None = None,
    properties: Mapping[str, str] | None = None,
    description: str | None = None,
    defaults: Mapping[str, str] | None = None,
    rules: PropertyRules = STRICT,
    catalog_table: str | None = None,
) -> ConvertResult | None:
    """Make a table of the Parquet files in a folder.

    Parameters
    ----------
    log
        The folder.
    partition_schema
        The partition columns in the order of folders, with their types; None or empty for a folder without.
    collect_statistics
        Whether the log shall hold statistics of the files.
    timezone
        The session time zone: that of timestamps in the names of folders.
    collect
        Makes the `add` actions with statistics, in place of `Conversion.adds` in this process.
    properties
        Of the table; not column mapping, as files have names of their own, and no constraints, which no row was
        checked for.
    description
        Free text in the table's metadata.
    defaults
        Properties that the table has where `properties` do not name them.
    rules
        What the session says of properties.
    catalog_table
        By which a catalog knows the folder, quoted, for the history; None: by its path alone.

    Returns
    -------
    Converted or None
        None where there is a table already; then nothing was done.

    Raises
    ------
    DataFileError
        There is no such folder or no file in it; a file is no Parquet file, or damaged.
    SchemaError
        Files have columns that do not go together; folders are not those of the partition columns.
    UnsupportedFeatureError
        A column needs a feature that this package cannot write.
    ConcurrentWriteException, ProtocolChangedException
        Another commit came first.
    """
    txn = log.start_transaction(create=True)
    if txn.base is not None:
        CONVERT_SKIPPED.log(table=log.storage.url, version=txn.read_version)
        return None
    with Work(CONVERT.name, log.storage.url) as work:
        with work.phase("listing") as phase:
            files = source_files(log.storage)
            phase.advance(len(files))
        with work.phase("reading footers", total=len(files)) as phase:
            conversion = plan_conversion(
                log.storage,
                files,
                partition_schema,
                timezone,
                properties,
                phase,
                description=description,
                defaults=defaults,
                rules=rules,
            )
        with work.phase("collecting statistics", total=len(files)) as phase:
            if collect is not None and collect_statistics:
                adds = collect(conversion, files, phase)
            else:
                adds = conversion.adds(log.storage, files, collect_statistics=collect_statistics, phase=phase)
    txn.read_whole_table()
    conversion.definition.put_into(txn)
    txn.add_all(adds)
    parameters = {
        "numFiles": len(adds),
        "partitionedBy": list(conversion.definition.state.partition_columns),
        "collectStats": collect_statistics,
        "sourceFormat": "parquet",
    }
    if catalog_table is not None:
        parameters["catalogTable"] = catalog_table
    version = txn.commit(CONVERT, parameters, {"numConvertedFiles": len(adds)})
    return ConvertResult(version, len(adds))


def source_files(storage: Storage) -> list[Written]:
    """The files of a folder that a table would have: path relative to it, bytes, modification time in ms.

    Names that begin with `_` or `.` are hidden, but for partition folders such as `_p=1`.

    Raises
    ------
    DataFileError
        There is no such folder, or nothing in it.
    UnsupportedOperationError
        A stream wrote the folder: only its own log tells which files count.
    """
    if storage.exists(_SINK_LOG):
        raise CONVERT_STREAM_OUTPUT_NOT_ALLOWED(path=storage.url)
    files = list_written_files(storage, "")
    if files:
        return files
    if storage.exists(""):
        raise EMPTY_DIRECTORY(directory=storage.url)
    raise FILE_NOT_FOUND(path=storage.url)


def plan_conversion(
    storage: Storage,
    files: Sequence[Written],
    partition_schema: StructType | None,
    timezone: str = "UTC",
    properties: Mapping[str, str] | None = None,
    phase: Phase | None = None,
    *,
    description: str | None = None,
    defaults: Mapping[str, str] | None = None,
    rules: PropertyRules = STRICT,
) -> Conversion:
    """Decide the schema and protocol of the table; the footers of all files are read, in threads.

    Arguments are those of `convert_to_delta`.

    Raises
    ------
    DeltaError
        As `convert_to_delta`.
    """
    partitions = partition_schema or StructType()
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        looks = pool.map(lambda file: _look(storage, file), files)
        found = list(looks if phase is None else phase.each(looks))
    first: dict[str, tuple[str, StructType]] = {}
    for (path, _, _), (key, _, schema) in zip(files, found, strict=True):
        first.setdefault(key, (path, schema))
    merged = merge_file_schemas(storage.url, list(first.values()))
    schema = _with_partitions(merged, partitions)
    definition = new_table(
        schema,
        partitions.names,
        properties,
        table=storage.url,
        description=description,
        defaults=defaults,
        rules=rules,
    )
    _check_properties(definition, storage.url)
    schemas = {key: found for key, (_, found) in first.items()}
    counts = tuple((key, rows) for key, rows, _ in found)
    return Conversion(storage.url, definition, timezone, schemas, counts)


def _check_properties(definition: TableDefinition, table: str) -> None:
    properties = definition.state.properties
    for name in properties:
        if name.startswith(CONSTRAINT_PREFIX):
            raise CONVERSION_UNSUPPORTED_CONSTRAINT(table=table, property=name)
    mode = COLUMN_MAPPING_MODE.of(properties)
    if mode != "none":
        raise CONVERSION_UNSUPPORTED_COLUMN_MAPPING(table=table, mode=mode, config=COLUMN_MAPPING_MODE.name)


def _look(storage: Storage, file: Written) -> tuple[str, int, StructType]:
    path, size, _ = file
    try:
        footer = read_footer(storage, path, size)
    except (DataFileError, pa.ArrowException, OSError) as error:
        reason = error.text if isinstance(error, DataFileError) else str(error)
        raise FAILED_READ_FILE_FOOTER(currentFile=path, path=storage.url, reason=reason) from error
    try:
        return schema_key(footer), footer.num_rows, file_schema(footer)
    except DeltaError as error:
        raise type(error)(
            f"{storage.url} cannot be converted, file {path}: {error.text}. Nothing was written",
            condition=error.condition,
            parameters={**error.parameters, "file": path},
        ) from error


def _with_partitions(data: StructType, partitions: StructType) -> StructType:
    """The table's columns: partition columns that files hold too are in their place, others come last."""
    own = {f.name.lower(): f for f in partitions}
    kept = [own.get(f.name.lower(), f) for f in data]
    there = {f.name.lower() for f in data}
    return StructType((*kept, *(f for f in partitions if f.name.lower() not in there)))


@dataclass(frozen=True, slots=True)
class Conversion:
    """A table that is to be made of files. Can be pickled, so that tasks can make `adds` of some of them.

    Attributes
    ----------
    table
        Its address, for messages.
    definition
        Protocol and metadata.
    timezone
        That of timestamps in the names of folders.
    schemas
        The columns of files, by `schema_key`.
    looks
        Key and number of rows of each file, in the order of the files that were planned.
    """

    table: str
    definition: TableDefinition
    timezone: str
    schemas: dict[str, StructType] = field(repr=False)
    looks: tuple[tuple[str, int], ...] = field(repr=False)

    def adds(
        self,
        storage: Storage,
        files: Sequence[Written],
        *,
        collect_statistics: bool = True,
        first: int = 0,
        phase: Phase | None = None,
    ) -> list[AddFile]:
        """The bodies of the `add` actions of some files.

        Parameters
        ----------
        files
            Those that were planned, or a run of them.
        first
            The number of the first one among those that were planned.
        phase
            Counts the files whose statistics are there.

        Raises
        ------
        SchemaError
            A file lies in folders that are not those of the partition columns.
        DataFileError
            A file is damaged.
        """
        folders = _Folders(self)
        values = [folders.values(path) for path, _, _ in files]
        texts: list[str | None] = [None] * len(files)
        if collect_statistics:
            looks = self.looks[first : first + len(files)]
            collectors = {key: self._collector(storage, key) for key, _ in looks}
            with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
                found = pool.map(lambda file, look: collectors[look[0]](file, look[1]), files, looks)
                texts = list(found if phase is None else phase.each(found))
        return [
            _add(file, partition, text) for file, partition, text in zip(files, values, texts, strict=True)
        ]

    def _collector(self, storage: Storage, key: str) -> Callable[[Written, int], str]:
        """The function that makes statistics from a file's schema and rows."""
        metadata = self.definition.state.metadata
        part = part_in(self._stored_schema(self.schemas[key]), self.schemas[key])
        if part is None:
            CONVERT_COUNTS_ONLY.log(table=self.table, reason="columns_in_other_case")
            return lambda file, rows: f'{{"numRecords":{rows}}}'
        properties = dict(metadata.configuration)
        folded = {name.lower() for name in metadata.partition_columns}
        inside = [f.name for f in part if f.name.lower() not in folded]
        if len(inside) < len(part):
            # Files that hold partition columns: statistics are only of the others.
            properties[DATA_SKIPPING_STATS_COLUMNS.name] = ",".join(
                show((name,)) for name in inside[:_INDEXED]
            )
        plan = WriteSpec(
            table=self.table,
            version=-1,
            schema=part,
            properties=properties,
            features=self.definition.state.protocol.supported,
            timezone=self.timezone,
        )
        statistics = FooterStatistics(storage, plan)
        return lambda file, rows: self._text(statistics, file)

    def _stored_schema(self, file: StructType) -> StructType:
        """The table's schema, but partition columns that a file holds as the file has them."""
        folded = {name.lower() for name in self.definition.state.partition_columns}
        own = {f.name: f for f in file}
        fields = [own.get(f.name, f) if f.name.lower() in folded else f for f in self.definition.state.schema]
        return StructType(tuple(fields))

    def _text(self, statistics: FooterStatistics, file: Written) -> str:
        path, size, _ = file
        try:
            return statistics.of(path, size)[1]
        except DataFileError as error:
            cause = error.__cause__
            reason = cause.text if isinstance(cause, DeltaError) else str(cause or error.text)
            raise DataFileError(
                f"{self.table} cannot be converted, statistics of file {path}: {reason}. Nothing was written",
                condition=error.condition,
                parameters={**error.parameters, "path": path},
            ) from error


def _add(file: Written, partition: dict[str, str | None], text: str | None) -> AddFile:
    path, size, time_ms = file
    body: AddFile = {
        "path": write_spec.encode(path),
        "partitionValues": dict(partition),
        "size": size,
        "modificationTime": time_ms,
        "dataChange": True,
    }
    return body if text is None else {**body, "stats": text}


# Makes the adds of the files that were planned, all of them and in order, and counts them.
Collector = Callable[[Conversion, Sequence[Written], Phase], list[AddFile]]


# --- partitions


class _Folders:
    """Reads partition values from folder names, each folder once."""

    def __init__(self, conversion: Conversion) -> None:
        metadata = conversion.definition.state.metadata
        self._table = conversion.table
        self._timezone = conversion.timezone
        self._columns = [_found_field(metadata.schema.find(name)) for name in metadata.partition_columns]
        self._known: dict[str, dict[str, str | None]] = {}

    def values(self, path: str) -> dict[str, str | None]:
        """The partition values of a file as the log has them."""
        folder = path.rpartition("/")[0]
        if folder not in self._known:
            self._known[folder] = self._values(folder, path)
        return self._known[folder]

    def _values(self, folder: str, path: str) -> dict[str, str | None]:
        values = parse_partition_folders(part for part in folder.split("/") if "=" in part)
        names = [name for name, _ in values]
        wanted = [column.name for column in self._columns]
        if len(names) != len(wanted):
            raise UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME(
                table=self._table,
                path=path,
                expected=len(wanted),
                expectedCols=wanted,
                found=len(names),
                parsedCols=names,
            )
        for name, expected in zip(names, wanted, strict=True):
            if name.lower() != expected.lower():
                raise UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME(
                    table=self._table, path=path, expectedCol=expected, parsedCol=name
                )
        return {c.name: self._text(c, text, path) for c, (_, text) in zip(self._columns, values, strict=True)}

    def _text(self, column: StructField, text: str | None, path: str) -> str | None:
        refused = partial(
            FAILED_CAST_PARTITION_VALUE,
            table=self._table,
            path=path,
            value=text,
            dataType=str(column.type),
            column=column.name,
        )
        return text_in_log(text, column.type, refused, self._timezone)


def _found_field(found: StructField | None) -> StructField:
    assert found is not None, "a partition column was checked to be in the schema"
    return found
