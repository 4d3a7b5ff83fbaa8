"""Data files for readers of Iceberg: whether they comply, and as entries of Iceberg's manifests.

Files comply by the tag of who wrote them, else by their footers. Entries have partition values, counts and bounds from
what the log says of files. Bounds may be wider than the values, never narrower: the log cuts timestamps to milliseconds
and long strings.

Source: PROTOCOL.md, "Writer Requirements for IcebergCompatV1", "Writer Requirements for IcebergCompatV2", "Per-file
Statistics"; Iceberg Table Spec, "Data File Fields", "Appendix D: Single-value serialization"; delta-spark,
`ParquetIcebergCompatV2Utils`, `DeltaUpgradeUniformOperation`, `IcebergStatsConverter`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timezone
from decimal import Context, Decimal
from struct import error as StructError  # noqa: N812 - an exception, although its name is small
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.iceberg import UNIVERSAL_FORMAT_CONVERSION_FAILED
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.format.iceberg_compatibility import FILE_TAG
from delta_ds.kernel.format.schema.column_mapping import nested_ids, physical_name
from delta_ds.kernel.format.schema.field_metadata import FIELD_ID
from delta_ds.kernel.format.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.transaction.iceberg.description import file_location, partition_fields, primitive
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.manifest import DataFile

_FOOTERS_AT_ONCE = 16
_ID = b"PARQUET:field_id"
_COUNTED = re.compile(r'"numRecords"\s*:\s*\d')


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_ROOMY = Context(prec=80)
_BEYOND_MS = 999  # microseconds that the log cuts off


def is_counted(add: AddFile) -> bool:
    """Whether the statistics of a file say how many rows it has."""
    return _COUNTED.search(add.get("stats") or "") is not None


def is_tagged(add: AddFile, version: int) -> bool:
    """Whether a file was written by a version of the rules."""
    return (add.get("tags") or {}).get(FILE_TAG) == str(version)


@dataclass(frozen=True, slots=True)
class Complaint:
    """Why a data file does not comply: the file as the log spells it, and the reason in words."""

    path: str
    reason: str


def complaints(
    storage: Storage, state: TableState, version: int, adds: Sequence[AddFile]
) -> Iterator[Complaint]:
    """The files that do not comply with a version of the rules.

    Parameters
    ----------
    storage, state
        The table, as it is described where the files are part of it.
    version
        Of the rules.
    adds
        Of the files. Footers are read of those without the tag.

    Raises
    ------
    DataFileError, FileNotFoundError
        A file is damaged or missing.
    """
    wanted = _Wanted(state, version)

    def look(add: AddFile) -> Complaint | None:
        if not is_counted(add):
            return Complaint(add["path"], "its statistics do not say how many rows it has")
        if is_tagged(add, version):
            return None
        reason = wanted.reason_against(storage, add["path"])
        return None if reason is None else Complaint(add["path"], reason)

    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        yield from (found for found in pool.map(look, adds) if found is not None)


class _Wanted:
    """What a file must be."""

    def __init__(self, state: TableState, version: int) -> None:
        self._mode = state.mapping_mode
        self._schema = state.schema
        self._materialized = state.physical_partition_columns if version == 1 else ()

    def reason_against(self, storage: Storage, path: str) -> str | None:
        import pyarrow.parquet as pq

        with closing(storage.open(storage.resolve(path))) as source, pq.ParquetFile(source) as file:
            stored = file.schema
            if any(stored.column(at).physical_type == "INT96" for at in range(len(stored))):
                return "it holds timestamps as INT96"
            fields = list(file.schema_arrow)
        missing = [name for name in self._materialized if name not in {f.name for f in fields}]
        if missing:
            return f"it does not hold the partition columns ({', '.join(missing)})"
        return self._reason_by_ids(fields)

    def _reason_by_ids(self, fields: list[pa.Field]) -> str | None:
        """Readers of Iceberg find columns by ids; by names, only in files that have no ids at all."""
        found = list(self._ids(fields, self._schema))
        if self._mode == "name" and all(stored is None for _, stored, _ in found):
            unknown = [name for name, _, wanted in found if wanted is None]
            return f"its column {unknown[0]} is none of the table, and has no field id" if unknown else None
        wrong = [n for n, stored, wanted in found if stored is None or wanted not in (stored, None)]
        return f"its column {wrong[0]} has not the field id that the table gives it" if wrong else None

    def _ids(
        self, fields: Sequence[pa.Field], wanted: StructType
    ) -> Iterator[tuple[str, int | None, int | None]]:
        """Names, ids in the file, and ids that the table gives; None for a column that it does not have."""
        by_name = {physical_name(field, self._mode): field for field in wanted}
        by_id = {field.metadata.get(FIELD_ID): field for field in wanted}
        for stored in fields:
            number = _id(stored)
            field = by_name.get(stored.name) if self._mode == "name" else by_id.get(number)
            if field is None:
                yield stored.name, number, None
            else:
                yield field.name, number, field.metadata.get(FIELD_ID)
                yield from self._inside(stored, field.type, field, physical_name(field, self._mode))

    def _inside(
        self, stored: pa.Field, kind: DataType, field: StructField, key: str
    ) -> Iterator[tuple[str, int | None, int | None]]:
        import pyarrow as pa

        found = stored.type
        if isinstance(kind, StructType) and pa.types.is_struct(found):
            yield from self._ids(list(found), kind)
        elif isinstance(kind, ArrayType) and (pa.types.is_list(found) or pa.types.is_large_list(found)):
            yield from self._part(found.value_field, kind.element, field, f"{key}.element")
        elif isinstance(kind, MapType) and pa.types.is_map(found):
            yield from self._part(found.key_field, kind.key, field, f"{key}.key")
            yield from self._part(found.item_field, kind.value, field, f"{key}.value")

    def _part(
        self, stored: pa.Field, kind: DataType, field: StructField, key: str
    ) -> Iterator[tuple[str, int | None, int | None]]:
        yield f"{field.name}.{key.partition('.')[2]}", _id(stored), nested_ids(field).get(key)
        yield from self._inside(stored, kind, field, key)


def _id(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(_ID)
    return None if text is None else int(text)


class DataFiles:
    """Makes entries for the files of a table.

    Parameters
    ----------
    storage, state
        The table, as it is described at the version.
    location
        Of the table, see `description.location_of`.
    """

    def __init__(self, storage: Storage, state: TableState, location: str) -> None:
        self._storage = storage
        self._state = state
        self._location = location
        self._leaves = [(path, number, _encoder(kind)) for path, number, kind in _leaves(state.schema, ())]
        self._partitions = partition_fields(state)

    def of(self, adds: Sequence[AddFile]) -> list[DataFile]:
        """The entries of files, in their order.

        Raises
        ------
        UnsupportedOperationError
            One has a deletion vector, or nobody has counted its rows.
        """
        from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
        from pyiceberg.typedef import Record

        partitions = self._partition_values(adds)
        found = []
        for at, add in enumerate(adds):
            statistics = self._statistics(add)
            entry = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=file_location(self._storage, self._location, add["path"]),
                file_format=FileFormat.PARQUET,
                partition=Record(*(column[at] for column in partitions)),
                record_count=int(statistics["numRecords"]),
                file_size_in_bytes=int(add["size"]),
                **self._metrics(statistics),
            )
            entry.spec_id = 0
            found.append(entry)
        return found

    def _statistics(self, add: AddFile) -> Mapping[str, Any]:
        reason = None
        statistics: Mapping[str, Any] = {}
        if add.get("deletionVector") is not None:
            reason = "has a deletion vector, which Iceberg V2 cannot express; REORG TABLE ... APPLY (PURGE)"
        else:
            statistics = json.loads(add.get("stats") or "{}", parse_float=Decimal)
            if not isinstance(statistics.get("numRecords"), int):
                reason = "has no statistics that say how many rows it has"
        if reason is not None:
            raise UNIVERSAL_FORMAT_CONVERSION_FAILED(
                version=self._state.version,
                table=self._state.table,
                format="iceberg",
                message=f"file {add['path']} {reason}",
            )
        return statistics

    def _partition_values(self, adds: Sequence[AddFile]) -> list[list[Any]]:
        """The values of each partition column, dates and timestamps as numbers."""
        import pyarrow as pa

        from delta_ds.kernel.format.values.partition_values import comparable_values, parse

        columns = []
        for field in self._partitions:
            name = physical_name(field, self._state.mapping_mode)
            texts = [(add.get("partitionValues") or {}).get(name) for add in adds]
            columns.append(comparable_values(parse(pa.array(texts, pa.string()), field.type)))
        return columns

    def _metrics(self, statistics: Mapping[str, Any]) -> dict[str, Any]:
        nulls: dict[int, int] = {}
        counts: dict[int, int] = {}
        lower: dict[int, bytes] = {}
        upper: dict[int, bytes] = {}
        rows = statistics["numRecords"]
        for path, number, encode in self._leaves:
            missing = _at(statistics.get("nullCount"), path)
            if isinstance(missing, int):
                nulls[number], counts[number] = missing, rows
            if encode is None:
                continue
            for name, bounds, is_upper in (("minValues", lower, False), ("maxValues", upper, True)):
                value = _at(statistics.get(name), path)
                encoded = None if value is None else encode(value, is_upper)
                if encoded is not None:
                    bounds[number] = encoded
        return {
            "value_counts": counts or None,
            "null_value_counts": nulls or None,
            "lower_bounds": lower or None,
            "upper_bounds": upper or None,
        }


def _leaves(schema: StructType, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int, DataType]]:
    """The columns that have statistics: paths of physical names, ids and types; nothing in arrays and maps has."""
    for field in schema:
        path = (*above, physical_name(field, "name"))
        if isinstance(field.type, StructType):
            yield from _leaves(field.type, path)
        else:
            yield path, field.metadata[FIELD_ID], field.type


def _at(found: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


# --- bounds


_Encoder = Callable[[Any, bool], "bytes | None"]


def _encoder(kind: DataType) -> _Encoder | None:
    """The function that makes bytes of a bound in the log, a lower or an upper one; None for types without bounds.

    What it cannot read has no bound.
    """
    value_of = _VALUES.get(kind)
    if isinstance(kind, DecimalType):
        value_of = _decimal(kind)
    if value_of is None:
        return None
    from pyiceberg.conversions import to_bytes

    stored = primitive(kind)
    read = value_of

    def encode(value: Any, is_upper: bool) -> bytes | None:
        try:
            found = read(value, is_upper)
            return None if found is None else to_bytes(stored, found)
        except (ValueError, TypeError, OverflowError, ArithmeticError, StructError):
            return None

    return encode


def _integer(value: Any, is_upper: bool) -> int | None:
    return value if type(value) is int else None


def _floating(value: Any, is_upper: bool) -> float | None:
    number = float(value)
    if math.isnan(number):
        return None  # bounds of Iceberg leave NaN out
    if number == 0:
        return 0.0 if is_upper else -0.0
    return number


def _decimal(kind: DecimalType) -> Callable[[Any, bool], Decimal]:
    unit = Decimal(1).scaleb(-kind.scale)
    # Python's own context has 28 digits.
    return lambda value, is_upper: Decimal(value).quantize(unit, context=_ROOMY)


def _date(value: Any, is_upper: bool) -> int:
    return (datetime.fromisoformat(value).replace(tzinfo=timezone.utc) - _EPOCH).days


def _timestamp(value: Any, is_upper: bool) -> int:
    moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
    since = (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)) - _EPOCH
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return micros + _BEYOND_MS if is_upper else micros


def _text(value: Any, is_upper: bool) -> str | None:
    return value if isinstance(value, str) else None


_VALUES: dict[DataType, Callable[[Any, bool], Any]] = {
    **dict.fromkeys((BYTE, SHORT, INTEGER, LONG), _integer),
    **dict.fromkeys((FLOAT, DOUBLE), _floating),
    STRING: _text,
    DATE: _date,
    **dict.fromkeys((TIMESTAMP, TIMESTAMP_NTZ), _timestamp),
}
