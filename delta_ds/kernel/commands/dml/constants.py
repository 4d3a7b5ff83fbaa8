"""Values of Python as columns have them: how UPDATE is given constants.

A value is read as Arrow reads it where it stands alone, and stored by the rules for storing at any depth: names of
fields are the same in any case, a datetime without zone is meant in the session's, fields that are not given are null.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence, Set
from decimal import Decimal
from typing import Any

import pyarrow as pa

from delta_ds.kernel.files.read.column_conversion import struct_array
from delta_ds.kernel.files.rows.casts import Casting, compile_column
from delta_ds.kernel.format.expressions.coercion import FRACTIONAL
from delta_ds.kernel.format.schema.column_paths import nearest_name
from delta_ds.kernel.format.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    arrow_type,
)

_LONGS = range(-(1 << 63), 1 << 63)


def constant_array(value: Any, field: StructField, timezone: str, path: str) -> pa.Array:
    """A value of Python as an array of one, in the Arrow type of a column.

    Parameters
    ----------
    value
        Structs are mappings, or tuples with a value for each field; maps are mappings, or pairs.
    field
        The column.
    timezone
        The session time zone.
    path
        The column's name in messages.

    Raises
    ------
    ValueError, TypeError, OverflowError, ArrowException
        It is no value of such a type; the text says why.
    SchemaError, InvariantViolationError
        It does not fit into the column.
    """
    return _array([value], field.type, timezone, path)


def _array(values: Sequence[Any], kind: DataType, timezone: str, path: str) -> pa.Array:
    values = [value.as_py() if isinstance(value, pa.Scalar) else value for value in values]
    if isinstance(kind, StructType):
        return _structs(values, kind, timezone, path)
    if isinstance(kind, ArrayType):
        return _lists(values, kind, timezone, path)
    if isinstance(kind, MapType):
        return _maps(values, kind, timezone, path)
    alike = len({type(value) for value in values}) == 1 and not isinstance(values[0], datetime.datetime)
    parts = [values] if alike else [[value] for value in values]
    target = arrow_type(kind)
    return pa.concat_arrays([pa.nulls(0, target), *(_leaves(part, kind, timezone, path) for part in parts)])


def _leaves(values: Sequence[Any], kind: DataType, timezone: str, path: str) -> pa.Array:
    """Values that are no structs, arrays or maps; of datetimes one at a time, each with its zone."""
    if any(isinstance(value, int) and value not in _LONGS for value in values):
        values = [_beyond_longs(value, kind) for value in values]
    found = pa.array(values)
    casting = Casting(timezone, implicit=pa.types.is_string(found.type))
    convert = compile_column(found.type, StructField("value", kind), casting, path)
    return found if convert is None else convert(found)


def _beyond_longs(value: int, kind: DataType) -> Any:
    """A whole number of any size as what Arrow takes; it is refused where no column holds it."""
    if kind in FRACTIONAL:
        return float(value)
    return Decimal(value) if isinstance(kind, DecimalType) else value


def _structs(values: Sequence[Any], kind: StructType, timezone: str, path: str) -> pa.Array:
    rows = [None if value is None else _fields(value, kind, path) for value in values]
    children = [
        _array(
            [None if row is None else row.get(field.name) for row in rows],
            field.type,
            timezone,
            f"{path}.{field.name}",
        )
        for field in kind
    ]
    return struct_array(children, arrow_type(kind), pa.array([None if row is None else True for row in rows]))


def _fields(value: Any, kind: StructType, path: str) -> dict[str, Any]:
    """The fields of a struct by the names of the table."""
    if isinstance(value, tuple):
        if len(value) != len(kind.fields):
            raise ValueError(
                f"{path} has the fields {', '.join(kind.names)}, but {len(value)} values are given"
            )
        return dict(zip(kind.names, value, strict=True))
    if not isinstance(value, Mapping):
        raise TypeError(f"{path} is a struct, which is given as a mapping from field to value")
    found: dict[str, Any] = {}
    for name, inside in value.items():
        field = kind.find(name) if isinstance(name, str) else None
        if field is None:
            near = nearest_name(str(name), kind.names)
            hint = f"did you mean {near!r}?" if near else f"its fields are {', '.join(kind.names)}"
            raise ValueError(f"{path} has no field {name!r}; {hint}")
        if field.name in found:
            raise ValueError(
                f"the field {field.name!r} of {path} is given twice; names are the same in any case"
            )
        found[field.name] = inside
    return found


def _lists(values: Sequence[Any], kind: ArrayType, timezone: str, path: str) -> pa.Array:
    items = [
        None if value is None else _items(value, path, "an array, which is given as a list")
        for value in values
    ]
    elements = _array([e for some in items for e in some or ()], kind.element, timezone, f"{path}.element")
    return pa.ListArray.from_arrays(_offsets(items), elements, type=arrow_type(kind))


def _maps(values: Sequence[Any], kind: MapType, timezone: str, path: str) -> pa.Array:
    what = "a map, which is given as a mapping"
    pairs = [
        None if value is None else _items(value.items() if isinstance(value, Mapping) else value, path, what)
        for value in values
    ]
    every = [(key, value) for some in pairs for key, value in some or ()]
    keys = _array([key for key, _ in every], kind.key, timezone, f"{path}.key")
    inside = _array([value for _, value in every], kind.value, timezone, f"{path}.value")
    return pa.MapArray.from_arrays(_offsets(pairs), keys, inside, type=arrow_type(kind))


def _items(value: Any, path: str, what: str) -> list[Any]:
    as_list: Callable[[], list[Any]] | None = getattr(value, "tolist", None)  # as arrays of NumPy have it
    if as_list is not None:
        value = as_list()
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, (Sequence, Set)):
        raise TypeError(f"{path} is {what}")
    return list(value)


def _offsets(items: Sequence[Sequence[Any] | None]) -> pa.Array:
    """Where each begins; null for null."""
    found: list[int | None] = []
    end = 0
    for some in items:
        found.append(None if some is None else end)
        end += len(some or ())
    return pa.array([*found, end], pa.int32())
