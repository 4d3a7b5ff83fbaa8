"""Data files as entries of Iceberg's manifests: partition values, counts and bounds from what the log says of them.

Bounds may be wider than the values, never narrower: the log cuts timestamps to milliseconds and long strings.

Source: Iceberg Table Spec, "Data File Fields", "Appendix D: Single-value serialization"; PROTOCOL.md, "Per-file
Statistics"; delta-spark, `IcebergStatsConverter`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from decimal import Context, Decimal
from struct import error as StructError  # noqa: N812 - an exception, although its name is small
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.iceberg import UNIVERSAL_FORMAT_CONVERSION_FAILED
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.format.schema.column_mapping import physical_name
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
    DataType,
    DecimalType,
    StructType,
)
from delta_ds.kernel.transaction.iceberg.description import file_location, partition_fields, primitive

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile

    from delta_ds.kernel.format.table_state import TableState
    from delta_ds.kernel.storage.filesystem import Storage

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_ROOMY = Context(prec=80)
_BEYOND_MS = 999  # microseconds that the log cuts off


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
