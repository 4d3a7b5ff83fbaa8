"""`char(n)` and `varchar(n)`: refuse strings longer than declared.

The schema has a plain string; the field's metadata has the declared type, of the whole column where it is
nested. Source: Spark, `CharVarcharUtils`; delta-spark, `CharVarcharConstraint`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.data import EXCEED_CHAR_VARCHAR_LIMIT
from delta_ds.kernel.arrow_buffers import field_of
from delta_ds.kernel.data.read import char_padding
from delta_ds.kernel.expressions.arrays import TRUE, scalar_of
from delta_ds.kernel.schema.field_metadata import CHAR_VARCHAR_TYPE
from delta_ds.kernel.schema.types import INTEGER, STRING, ArrayType, DataType, MapType, StructType
from delta_ds.records import dataclass

_LIMIT = re.compile(r"\s*(?:var)?char\(\s*(\d+)\s*\)\s*")
_Search = Callable[[pa.Array], "tuple[int, str] | None"]  # the first row with a text too long, and the text


@dataclass(frozen=True, slots=True)
class Length:
    """The check that texts of a column, and inside it, are not longer than declared."""

    column: str
    declared: str

    def finder(self, table: StructType, timezone: str) -> Callable[[pa.RecordBatch], int] | None:
        search = self._search(table)
        if search is None:
            return None

        def find(batch: pa.RecordBatch) -> int:
            found = search(batch.column(self.column))
            return -1 if found is None else found[0]

        return find

    def violation(self, batch: pa.RecordBatch, row: int, table: StructType, zone: str) -> Exception:
        search = self._search(table)
        found = search(batch.column(self.column).slice(row, 1)) if search is not None else None
        text = "" if found is None else found[1]
        limit = _LIMIT.fullmatch(self.declared)
        failed = f"(({self.column} IS NULL) OR (length({self.column}) <= {limit[1]}))" if limit else None
        return EXCEED_CHAR_VARCHAR_LIMIT(
            value=text,
            failed=failed or f"{self.column} is {self.declared}",
            column=self.column,
            declared=self.declared,
        )

    def _search(self, table: StructType) -> _Search | None:
        field = table.find(self.column)
        return None if field is None else _search_in(field.type, self.declared)


def lengths(table: StructType) -> Iterator[Length]:
    """The columns that were declared with a length."""
    for field in table:
        declared = field.metadata.get(CHAR_VARCHAR_TYPE)
        if isinstance(declared, str) and "char(" in declared:
            yield Length(field.name, declared)


def _search_in(kind: DataType, declared: str | None) -> _Search | None:
    if kind == STRING:
        match = _LIMIT.fullmatch(declared or "")
        return _longer(int(match[1])) if match else None
    if isinstance(kind, StructType):
        parts = char_padding.of_struct(declared, kind)
        inner = [
            (f.name, s) for f, p in zip(kind, parts, strict=True) if (s := _search_in(f.type, p)) is not None
        ]
        return _in_fields(inner) if inner else None
    if isinstance(kind, ArrayType):
        element = _search_in(kind.element, char_padding.of_element(declared))
        return None if element is None else _in_lists(element)
    if isinstance(kind, MapType):
        key, value = char_padding.of_map(declared)
        inner = [
            (name, s)
            for name, s in (("key", _search_in(kind.key, key)), ("value", _search_in(kind.value, value)))
            if s is not None
        ]
        return _in_maps(_in_fields(inner)) if inner else None
    return None


def _longer(limit: int) -> _Search:
    bound = scalar_of(limit, INTEGER)

    def search(texts: pa.Array) -> tuple[int, str] | None:
        too_long = pc.greater(pc.utf8_length(texts), bound)
        row = pc.index(too_long, TRUE).as_py()
        return None if row < 0 else (row, texts[row].as_py())

    return search


def _in_fields(fields: list[tuple[str, _Search]]) -> _Search:
    def search(structs: pa.Array) -> tuple[int, str] | None:
        found = (s(field_of(structs, name)) for name, s in fields)
        return min((f for f in found if f is not None), default=None)

    return search


def _in_lists(element: _Search) -> _Search:
    def search(lists: pa.Array) -> tuple[int, str] | None:
        found = element(pc.list_flatten(lists))
        return None if found is None else (pc.list_parent_indices(lists)[found[0]].as_py(), found[1])

    return search


def _in_maps(entries: _Search) -> _Search:
    in_lists = _in_lists(entries)

    def search(maps: pa.Array) -> tuple[int, str] | None:
        kind = pa.list_(maps.values.type)
        return in_lists(
            pa.Array.from_buffers(
                kind, len(maps), maps.buffers()[:2], maps.null_count, maps.offset, children=[maps.values]
            )
        )

    return search
