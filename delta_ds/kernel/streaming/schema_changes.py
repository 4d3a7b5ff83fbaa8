"""Whether a stream can continue after a schema change, and the error if not.

Source: delta-spark, `DeltaSource.checkReadIncompatibleSchemaChanges`, `SchemaUtils.isReadCompatible`,
`DeltaColumnMapping.hasNoColumnMappingSchemaChanges`.
"""

from __future__ import annotations

from collections.abc import Iterator

from delta_ds.conditions.streaming import (
    SCHEMA_CHANGED_IN_STREAM,
    SCHEMA_CHANGED_WITH_STARTING_OPTIONS,
    STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG,
)
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.actions import Metadata
from delta_ds.kernel.features import TYPE_WIDENING
from delta_ds.kernel.schema.column_mapping import mapping_mode
from delta_ds.kernel.schema.field_metadata import PHYSICAL_NAME
from delta_ds.kernel.schema.type_widening import can_widen
from delta_ds.kernel.schema.types import ArrayType, DataType, MapType, StructType
from delta_ds.kernel.streaming.offsets import different_table
from delta_ds.kernel.table_state import TableState
from delta_ds.records import dataclass, replace

# Physical path to logical path, of every field at any depth.


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


def check_schema(read_state: TableState, metadata: Metadata, version: int, *, has_start: bool) -> None:
    """Refuse the metadata of another version if its data cannot be read with the schema of the stream.

    Parameters
    ----------
    read_state
        What the stream reads with.
    metadata, version
        Of a commit on the way.
    has_start
        Whether the stream was told where to begin, for the advice.

    Raises
    ------
    SchemaError
        With the advice to restart where that helps: an added column is read after a restart.
    UnsupportedOperationError
        It is another table.
    """
    if metadata.id != read_state.metadata.id:
        raise different_table(read_state.table, metadata.id, read_state.metadata.id)
    backfilling = version < read_state.version
    old, new = (metadata, read_state.metadata) if backfilling else (read_state.metadata, metadata)
    changes = mapped_changes(old, new)
    if changes is None or changes.renamed or changes.dropped:
        raise _needs_schema_log(read_state, metadata, version, changes)
    problem = incompatibility(
        metadata.schema, read_state.schema, widening=backfilling and read_state.supports(TYPE_WIDENING)
    )
    if problem is None and metadata.partition_columns != read_state.metadata.partition_columns:
        problem = "the partition columns are others"
    if problem is not None:
        raise _changed_error(read_state, metadata, version, problem, has_start)


def readable_with(metadata: Metadata, later: TableState) -> bool:
    """Whether data of one version can be read with the schema of a later one."""
    changes = mapped_changes(metadata, later.metadata)
    if changes is None or changes.renamed or changes.dropped:
        return False
    return incompatibility(metadata.schema, later.schema, widening=later.supports(TYPE_WIDENING)) is None


def _needs_schema_log(
    read_state: TableState, metadata: Metadata, version: int, changes: MappedChanges | None
) -> SchemaError:
    what = changes.text if changes else "the column mapping or the partitioning changed"
    return STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG(
        version=version,
        stream_version=read_state.version,
        table=read_state.table,
        what=what,
        read_schema=read_state.schema,
        data_schema=metadata.schema,
    )


def _changed_error(
    read_state: TableState, metadata: Metadata, version: int, problem: str, has_start: bool
) -> SchemaError:
    advice = "Start the query again with a new readStream...load(), which takes the new schema"
    if version < read_state.version:
        advice = "The change cannot be read across: begin with a new checkpoint"
        if has_start:
            advice += f" and a startingVersion after {version}"
    changed = SCHEMA_CHANGED_WITH_STARTING_OPTIONS if has_start else SCHEMA_CHANGED_IN_STREAM
    return changed(
        version=version,
        table=read_state.table,
        problem=problem,
        advice=advice,
        read_schema=read_state.schema,
        data_schema=metadata.schema,
    )


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
            return f"column {field.name} is not in the schema of the stream"
        if field.nullable and not found.nullable:
            return f"column {field.name} may be null, which the schema of the stream excludes"
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
    if data == read or (widening and can_widen(data, read)):
        return None
    return f"its type is {data}, that of the stream {read}"


def mapped_changes(old: Metadata, new: Metadata) -> MappedChanges | None:
    """Columns that were renamed or dropped under column mapping, or widened; None: the mapping itself changed.

    None as well where the table is partitioned by other columns. Where column mapping was switched on in between, the
    logical names of before are the physical ones.
    """
    before, after = (mapping_mode(m.configuration, supported=True) for m in (old, new))
    if after == "none":
        return None if before != "none" else MappedChanges()
    if before not in ("none", after):
        return None
    if old.partition_columns != new.partition_columns and before != "none" and not _only_renamed(old, new):
        return None
    return schema_changes(old.schema, new.schema)


def _only_renamed(old: Metadata, new: Metadata) -> bool:
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
