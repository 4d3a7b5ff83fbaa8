"""Whether a newer version can be read with the columns of an older one.

Source: delta-spark, `SchemaUtils.isReadCompatible`, and its answers to changes of a table under a DataFrame.
"""

from __future__ import annotations

from delta_ds.kernel.schema.field_metadata import COLLATIONS
from delta_ds.kernel.schema.types import ArrayType, DataType, MapType, StructField, StructType
from delta_ds.records import replace


def columns_as_before(before: StructType, now: StructType) -> StructType | list[str]:
    """The columns of the schema `before` as the schema `now` has them.

    Columns and nested fields go by their names, to the letter. New ones are left out, the order is that of `before`.

    Returns
    -------
    StructType or list of str
        Fields of `now` in the shape of `before`; or what has changed in a way that contradicts `before`.
    """
    problems: list[str] = []
    found = _struct(before, now, "", problems)
    return problems or found


def _struct(before: StructType, now: StructType, where: str, problems: list[str]) -> StructType:
    by_name = {f.name: f for f in now}
    fields = []
    for old in before:
        path = f"{where}{old.name}"
        new = by_name.get(old.name)
        if new is None:
            problems.append(f"column {path} is gone")
        else:
            fields.append(_field(old, new, path, problems))
    return StructType(tuple(fields))


def _field(old: StructField, new: StructField, path: str, problems: list[str]) -> StructField:
    if new.nullable and not old.nullable:
        problems.append(f"column {path} may hold nulls now")
    if old.metadata.get(COLLATIONS) != new.metadata.get(COLLATIONS):
        problems.append(f"the collation of column {path} is another one")
    return replace(new, type=_type(old.type, new.type, path, problems))


def _type(old: DataType, new: DataType, path: str, problems: list[str]) -> DataType:
    if isinstance(old, StructType) and isinstance(new, StructType):
        return _struct(old, new, f"{path}.", problems)
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        if new.contains_null and not old.contains_null:
            problems.append(f"elements of column {path} may be null now")
        return replace(new, element=_type(old.element, new.element, f"{path}.element", problems))
    if isinstance(old, MapType) and isinstance(new, MapType):
        if new.value_contains_null and not old.value_contains_null:
            problems.append(f"values of column {path} may be null now")
        key = _type(old.key, new.key, f"{path}.key", problems)
        return replace(new, key=key, value=_type(old.value, new.value, f"{path}.value", problems))
    if old != new:
        problems.append(f"column {path} is of type {new}, {old} before")
    return new
