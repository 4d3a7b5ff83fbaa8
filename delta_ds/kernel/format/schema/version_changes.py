"""What changed between the schemas of two versions, and whether data of one is read with the schema of the other.

Columns are told by their names in the files, which column mapping keeps while a column is renamed.

Source: delta-spark, `SchemaUtils.isReadCompatible`, `DeltaColumnMapping.hasNoColumnMappingSchemaChanges`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from delta_ds.kernel.format.schema.column_mapping import mapping_mode
from delta_ds.kernel.format.schema.evolution import can_widen
from delta_ds.kernel.format.schema.field_metadata import COLLATIONS, PHYSICAL_NAME
from delta_ds.kernel.format.schema.types import VOID, ArrayType, DataType, MapType, StructField, StructType
from delta_ds.records import dataclass, replace


class Description(Protocol):
    """The part of a table's metadata that is looked at here."""

    @property
    def configuration(self) -> Mapping[str, str]: ...
    @property
    def partition_columns(self) -> Sequence[str]: ...
    @property
    def schema(self) -> StructType: ...


@dataclass(frozen=True, slots=True)
class MappedChanges:
    """The columns renamed, dropped and widened between two schemas, matched by physical names.

    Attributes
    ----------
    renamed
        (old, new) logical paths.
    dropped
        Logical paths.
    widened
        (logical path, old type, new type).
    """

    renamed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    widened: tuple[tuple[str, str, str], ...] = ()

    @property
    def name(self) -> str:
        """The operation, as delta-spark calls it."""
        kinds = [
            word
            for word, found in (
                ("RENAME", self.renamed),
                ("DROP", self.dropped),
                ("TYPE WIDENING", self.widened),
            )
            if found
        ]
        columns = " COLUMN" if kinds and kinds[-1] != "TYPE WIDENING" else ""
        *first, last = kinds or [""]
        return (f"{', '.join(first)} AND {last}" if first else last) + columns

    @property
    def text(self) -> str:
        parts = [f"{old} was renamed to {new}" for old, new in self.renamed]
        parts += [f"{name} was dropped" for name in self.dropped]
        parts += [f"{name} became {new} ({old} before)" for name, old, new in self.widened]
        return ", ".join(parts)

    def __bool__(self) -> bool:
        return bool(self.renamed or self.dropped or self.widened)


def incompatibility(
    data: StructType, read: StructType, *, widening: bool, missing: bool = False
) -> str | None:
    """Why data of one schema cannot be read with another; None if it can.

    Parameters
    ----------
    widening
        Whether the read schema may have wider types.
    missing
        Whether it may lack columns of the data.
    """
    for field in data:
        found = read.find(field.name)
        if found is None:
            if missing:
                continue
            return f"column {field.name} is not in the schema that is read with"
        if field.nullable and not found.nullable:
            return f"column {field.name} may be null, which the schema that is read with excludes"
        problem = _type_problem(field.type, found.type, widening, missing)
        if problem:
            return f"column {field.name}: {problem}"
    return None


def _type_problem(data: DataType, read: DataType, widening: bool, missing: bool) -> str | None:
    if isinstance(data, StructType) and isinstance(read, StructType):
        return incompatibility(data, read, widening=widening, missing=missing)
    if isinstance(data, ArrayType) and isinstance(read, ArrayType):
        if data.contains_null and not read.contains_null:
            return "elements may be null"
        return _type_problem(data.element, read.element, widening, missing)
    if isinstance(data, MapType) and isinstance(read, MapType):
        if data.value_contains_null and not read.value_contains_null:
            return "values may be null"
        return _type_problem(data.key, read.key, widening, missing) or _type_problem(
            data.value, read.value, widening, missing
        )
    if data in (read, VOID) or (widening and can_widen(data, read)):
        return None
    return f"its type is {data}, {read} in the schema that is read with"


def mapped_changes(
    old: Description, new: Description, *, repartitioned: bool = False
) -> MappedChanges | None:
    """Columns that were renamed or dropped under column mapping, or widened; None: the mapping itself changed.

    Where column mapping was switched on in between, the logical names of before are the physical ones.

    Parameters
    ----------
    repartitioned
        Whether the table may be partitioned by other columns; None as well where not.
    """
    before, after = (mapping_mode(m.configuration, supported=True) for m in (old, new))
    if after == "none":
        return None if before != "none" else MappedChanges()
    if before not in ("none", after):
        return None
    same = repartitioned or before == "none" or old.partition_columns == new.partition_columns
    if not same and not _only_renamed(old, new):
        return None
    return schema_changes(old.schema, new.schema)


def _only_renamed(old: Description, new: Description) -> bool:
    physical = [
        [f.metadata.get(PHYSICAL_NAME, name) for name in m.partition_columns if (f := m.schema.find(name))]
        for m in (old, new)
    ]
    return physical[0] == physical[1]


def schema_changes(old: StructType, new: StructType) -> MappedChanges:
    """The same for two schemas, by physical names where they have such."""
    before, after = dict(_paths(old, (), ())), dict(_paths(new, (), ()))
    renamed = [
        (".".join(before[path]), ".".join(after[path]))
        for path in before
        if path in after and before[path][-1] != after[path][-1]
    ]
    dropped = [".".join(before[path]) for path in before if path not in after]
    types_before, types_after = dict(_leaf_types(old, ())), dict(_leaf_types(new, ()))
    widened = [
        (".".join(after.get(path, path)), str(kind), str(types_after[path]))
        for path, kind in types_before.items()
        if path in types_after and can_widen(kind, types_after[path])
    ]
    return MappedChanges(tuple(renamed), tuple(dropped), tuple(widened))


def stored_otherwise(old: Description, new: Description) -> list[str]:
    """The columns of two schemas that have one name but other names in files, since column mapping came or went."""
    modes = [mapping_mode(one.configuration, supported=True) for one in (old, new)]
    if modes[0] == modes[1]:
        return []
    before, after = ({path: stored for stored, path in _paths(one.schema, (), ())} for one in (old, new))
    return [".".join(path) for path, stored in before.items() if after.get(path, stored) != stored]


def with_physical_names(schema: StructType) -> StructType:
    """The same schema, with fields named as in the files where column mapping gives them such names."""
    renamed = _with_physical_names(schema)
    assert isinstance(renamed, StructType)
    return renamed


def _with_physical_names(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return StructType(
            tuple(
                replace(
                    field,
                    name=str(field.metadata.get(PHYSICAL_NAME, field.name)),
                    type=_with_physical_names(field.type),
                )
                for field in kind
            )
        )
    if isinstance(kind, ArrayType):
        return replace(kind, element=_with_physical_names(kind.element))
    if isinstance(kind, MapType):
        return replace(kind, key=_with_physical_names(kind.key), value=_with_physical_names(kind.value))
    return kind


def _paths(
    kind: DataType, physical: tuple[str, ...], logical: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    if isinstance(kind, StructType):
        for field in kind:
            own = (*physical, str(field.metadata.get(PHYSICAL_NAME, field.name)))
            yield own, (*logical, field.name)
            yield from _paths(field.type, own, (*logical, field.name))
    for part, inner in _parts(kind):
        yield from _paths(inner, (*physical, part), (*logical, part))


def _leaf_types(kind: DataType, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], DataType]]:
    if isinstance(kind, StructType):
        for field in kind:
            yield from _leaf_types(field.type, (*path, str(field.metadata.get(PHYSICAL_NAME, field.name))))
        return
    inner = list(_parts(kind))
    for part, element in inner:
        yield from _leaf_types(element, (*path, part))
    if not inner:
        yield path, kind


def _parts(kind: DataType) -> Iterator[tuple[str, DataType]]:
    if isinstance(kind, ArrayType):
        yield "element", kind.element
    elif isinstance(kind, MapType):
        yield "key", kind.key
        yield "value", kind.value


# --- whether a newer version can be read with the columns of an older one
# Source: delta-spark, `SchemaUtils.isReadCompatible`, and its answers to changes of a table under a DataFrame.


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
