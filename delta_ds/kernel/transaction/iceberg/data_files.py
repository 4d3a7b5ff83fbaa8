"""Whether data files comply with Iceberg compatibility: by the tag of who wrote them, else by their footers.

Source: PROTOCOL.md, "Writer Requirements for IcebergCompatV1", "Writer Requirements for IcebergCompatV2"; delta-spark,
`ParquetIcebergCompatV2Utils`, `DeltaUpgradeUniformOperation`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.format.iceberg_compatibility import FILE_TAG
from delta_ds.kernel.format.schema.column_mapping import nested_ids, physical_name
from delta_ds.kernel.format.schema.field_metadata import FIELD_ID
from delta_ds.kernel.format.schema.types import ArrayType, DataType, MapType, StructField, StructType
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

_FOOTERS_AT_ONCE = 16
_ID = b"PARQUET:field_id"
_COUNTED = re.compile(r'"numRecords"\s*:\s*\d')


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
