"""What an engine made of a table, held against the rows that were written."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.format.schema.types import StructType
from delta_ds.records import dataclass
from spark_tests.engines.conformance.compare import _shape, difference

# From best to worst. An engine that refuses does no harm; one that takes its process along may.
SAME, TYPES, NOT_ASKED, REFUSED, CRASHED, WRONG = (
    "same rows", "same rows, other types", "not asked", "refused", "crashed", "wrong rows",
)  # fmt: skip
GRADES = (SAME, TYPES, NOT_ASKED, REFUSED, CRASHED, WRONG)
_VARIANT = {"value", "metadata"}  # engines hand variants over in either order


@dataclass(frozen=True, slots=True)
class Cell:
    """What one engine made of one table: a grade, and what is to be said of it."""

    grade: str
    detail: str = ""

    def is_worse_than(self, other: Cell) -> bool:
        return GRADES.index(self.grade) > GRADES.index(other.grade)


def judge(found: pa.Table, wanted: pa.Table) -> Cell:
    """Compare rows as bags, columns by name and position, types without how Arrow encodes them.

    Parameters
    ----------
    found
        What the engine read.
    wanted
        What was written, in the types of the table.
    """
    found, wanted = decoded(found), decoded(wanted)
    apart = difference(found, wanted)
    if apart is None:
        return Cell(SAME)
    if sorted(found.column_names) != sorted(wanted.column_names):
        return Cell(WRONG, apart)
    other = [
        f"`{name}` is {_shape(found.schema.field(name).type)} and not {_shape(wanted.schema.field(name).type)}"
        for name in wanted.column_names
        if _shape(found.schema.field(name).type) != _shape(wanted.schema.field(name).type)
    ]
    if found.column_names != wanted.column_names:
        other.append(f"columns come as {', '.join(found.column_names)}")
    try:
        cast = pa.table(
            {n: _cast(found[n].combine_chunks(), wanted.schema.field(n).type) for n in wanted.column_names}
        )
    except (pa.ArrowException, ValueError) as error:
        return Cell(WRONG, f"{'; '.join(other)}: {str(error).splitlines()[0]}")
    apart = difference(cast, wanted)
    return Cell(TYPES, "; ".join(other)) if apart is None else Cell(WRONG, apart)


def decoded(table: pa.Table) -> pa.Table:
    """The same values in Arrow's plain types: no dictionaries, views or large offsets, all nullable."""
    return (
        pa.table({f.name: _cast(_whole(table, i), _plain(f.type)) for i, f in enumerate(table.schema)})
        if table.num_columns
        else table
    )


def _whole(table: pa.Table, i: int) -> pa.Array:
    column = table.column(i).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def _plain(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.ExtensionType):
        return _plain(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        if {field.name for field in kind} == _VARIANT:
            return pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_list_view(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    return kind


def _cast(column: Any, kind: pa.DataType) -> pa.Array:
    """Values in another type, maps of lists of pairs too; an error where a value does not fit."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if column.type == kind:
        return column
    if pa.types.is_struct(kind) and pa.types.is_struct(column.type):
        names = [field.name for field in column.type]
        if sorted(names) != sorted(field.name for field in kind):
            raise ValueError(f"the struct has the fields {', '.join(names)}")
        parts = dict(zip(names, column.flatten(), strict=True))
        children = [_cast(parts[field.name], field.type) for field in kind]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=column.is_null())
    if _is_list(column.type) and pa.types.is_list(kind):
        plain = (
            column
            if not pa.types.is_large_list(column.type)
            else column.cast(pa.list_(column.type.value_type))
        )
        return _list(plain, _cast(plain.flatten(), kind.value_type), kind)
    if _is_pairs(column.type) and pa.types.is_map(kind):
        # Taken anew, its children begin where it begins.
        pairs = column.take(pa.array(range(len(column)), pa.int64()))
        if pa.types.is_map(pairs.type):
            keys, items, offsets = pairs.keys, pairs.items, pairs.offsets
        else:
            keys, items = pairs.values.flatten()
            offsets = pairs.offsets
        parts = (_cast(keys, kind.key_type), _cast(items, kind.item_type))
        return pa.MapArray.from_arrays(offsets.cast(pa.int32()), *parts, type=kind, mask=column.is_null())
    return pc.cast(column, kind)


def _list(old: pa.ListArray, values: pa.Array, kind: pa.DataType) -> pa.ListArray:
    lengths = pc.fill_null(pc.list_value_length(old), 0).to_pylist()
    offsets = [0]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=kind, mask=old.is_null())


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def _is_pairs(kind: pa.DataType) -> bool:
    return pa.types.is_map(kind) or (
        _is_list(kind) and pa.types.is_struct(kind.value_type) and kind.value_type.num_fields == 2
    )


def without_columns(wanted: pa.Table, schema: StructType, names: tuple[str, ...]) -> pa.Table:
    """What the files alone hold: partition values are told by their folders."""
    return wanted.select([field.name for field in schema if field.name not in names])
