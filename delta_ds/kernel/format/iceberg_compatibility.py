"""Iceberg compatibility V1 and V2: what a table's description may be, and what follows from turning it on.

Source: PROTOCOL.md, "Iceberg Compatibility V1", "Iceberg Compatibility V2"; protocol-checklist section 20; delta-spark,
`IcebergCompat`, `UniversalFormat`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from delta_ds.conditions.iceberg import (
    COMPAT_DELETION_VECTORS_SHOULD_BE_DISABLED,
    COMPAT_REPLACE_TABLE_CHANGE_PARTITION_NAMES,
    COMPAT_UNSUPPORTED_DATA_TYPE,
    COMPAT_UNSUPPORTED_PARTITION_DATA_TYPE,
    COMPAT_UNSUPPORTED_TYPE_WIDENING,
    COMPAT_VERSION_MUTUAL_EXCLUSIVE,
    COMPAT_WRONG_REQUIRED_TABLE_PROPERTY,
    MISSING_ICEBERG_CLASS,
    UNIVERSAL_FORMAT_COMPAT_REQUIRED,
)
from delta_ds.conditions.protocol import CANNOT_MODIFY_TABLE_PROPERTY
from delta_ds.kernel.format.actions import Metadata
from delta_ds.kernel.format.features import (
    DELETION_VECTORS,
    ICEBERG_COMPAT_V1,
    ICEBERG_COMPAT_V2,
    TYPE_WIDENING,
    TYPE_WIDENING_PREVIEW,
    TableFeature,
)
from delta_ds.kernel.format.properties import (
    COLUMN_MAPPING_MODE,
    ENABLE_DELETION_VECTORS,
    ENABLE_ICEBERG_COMPAT_V1,
    ENABLE_ICEBERG_COMPAT_V2,
    ICEBERG_ATOMIC_CONVERSION_SUPPORTED,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    UNIVERSAL_FORMAT_ENABLED_FORMATS,
    TableProperty,
)
from delta_ds.kernel.format.schema.field_metadata import TYPE_CHANGES
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
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
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.records import replace

ICEBERG = "iceberg"
_HUDI = "hudi"
# A file that was written with a version of the rules says so: `add.tags`.
FILE_TAG = "ICEBERG_COMPAT_VERSION"
# The field ids that Iceberg reserves for what these columns hold ("Reserved Field IDs").
RESERVED_IDS = ((ROW_ID_COLUMN, 2147483540), (ROW_COMMIT_VERSION_COLUMN, 2147483539))

_VERSIONS: Mapping[int, tuple[TableProperty[bool], TableFeature]] = {
    1: (ENABLE_ICEBERG_COMPAT_V1, ICEBERG_COMPAT_V1),
    2: (ENABLE_ICEBERG_COMPAT_V2, ICEBERG_COMPAT_V2),
}
_PRIMITIVES: frozenset[DataType] = frozenset(
    [BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, STRING, BINARY, BOOLEAN, TIMESTAMP, TIMESTAMP_NTZ, DATE]
)
_INTEGERS = ("byte", "short", "integer", "long")


def property_of(version: int) -> TableProperty[bool]:
    """The table property that turns a version on."""
    return _VERSIONS[version][0]


def asked_version(properties: Mapping[str, str]) -> int | None:
    """The version of the rules that table properties ask for; None for none."""
    return next((v for v, (enabling, _) in _VERSIONS.items() if enabling.of(properties)), None)


def enabled_version(state: TableState) -> int | None:
    """The version of the rules that a table goes by; None for none."""
    return next((v for v, (_, feature) in _VERSIONS.items() if state.enabled(feature)), None)


def writes_metadata(properties: Mapping[str, str]) -> bool:
    """Whether the metadata of Iceberg is written beside the log."""
    return ICEBERG in UNIVERSAL_FORMAT_ENABLED_FORMATS.of(properties)


# --- what follows from turning it on


def of_new_table(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a new table with those that Iceberg compatibility brings along, as in delta-spark."""
    completed = dict(properties)
    if asked_version(completed) is not None:
        completed.setdefault(COLUMN_MAPPING_MODE.name, "name")
        completed.setdefault(ICEBERG_ATOMIC_CONVERSION_SUPPORTED.name, "true")
    return completed


def settled(new: Metadata, old: Metadata | None, table: str) -> Metadata:
    """The metadata with what follows for `delta.universalFormat.enabledFormats`.

    Parameters
    ----------
    new
        What is wanted.
    old
        What holds now; None for a new table.
    table
        Its address, for messages.

    Raises
    ------
    UnsupportedOperationError
        The format needs Iceberg compatibility, or a package that is not there.
    InvalidOptionError
        A format that is not offered.
    """
    formats = UNIVERSAL_FORMAT_ENABLED_FORMATS.of(new.configuration)
    before = () if old is None else UNIVERSAL_FORMAT_ENABLED_FORMATS.of(old.configuration)
    if _HUDI in formats and _HUDI not in before:
        raise CANNOT_MODIFY_TABLE_PROPERTY(
            property=UNIVERSAL_FORMAT_ENABLED_FORMATS.name,
            reason="asks for hudi, which delta_ds does not offer",
        )
    if ICEBERG not in formats:
        return new
    if asked_version(new.configuration) is None:
        if old is None or asked_version(old.configuration) is None:
            raise UNIVERSAL_FORMAT_COMPAT_REQUIRED(table=table, format=ICEBERG)
        return _without_iceberg(new, formats)
    if ICEBERG not in before:
        check_installed(table)
    return new


def _without_iceberg(new: Metadata, formats: Collection[str]) -> Metadata:
    """Where Iceberg compatibility ends, so do new versions of the metadata."""
    rest = ",".join(name for name in formats if name != ICEBERG)
    name = UNIVERSAL_FORMAT_ENABLED_FORMATS.name
    configuration = {key: text for key, text in new.configuration.items() if key != name}
    return replace(new, configuration=configuration | ({name: rest} if rest else {}))


def check_installed(table: str) -> None:
    """Refuse to go on where pyiceberg is not there.

    Raises
    ------
    UnsupportedOperationError
        With the command that installs it.
    """
    try:
        import pyiceberg.manifest  # noqa: F401 - a broken installation shows only when it is used
    except ImportError as error:
        raise MISSING_ICEBERG_CLASS(table=table, reason=error) from error


# --- what a table's description may be


def check_description(
    new: Metadata, features: Collection[str], before: Metadata | None, table: str, *, upgrade: bool = False
) -> None:
    """Refuse a description of a table that its version of Iceberg compatibility does not allow.

    Parameters
    ----------
    new
        The metadata, with the properties that follow from each other.
    features
        What the table supports.
    before
        The metadata that holds now, also of a table that is replaced; None for a new one.
    table
        Its address, for messages.
    upgrade
        Whether REORG ... UPGRADE UNIFORM turns it on, which rewrites the files afterwards.

    Raises
    ------
    UnsupportedOperationError
        Naming the property, column or change in the way; nothing was written.
    """
    version = asked_version(new.configuration)
    if version is None:
        if not {ICEBERG_COMPAT_V1.name, ICEBERG_COMPAT_V2.name}.isdisjoint(features):
            _check_type_changes(new, before, 1 if ICEBERG_COMPAT_V1.name in features else 2, table)
        return
    if all(enabling.of(new.configuration) for enabling, _ in _VERSIONS.values()):
        raise COMPAT_VERSION_MUTUAL_EXCLUSIVE(table=table, version=version)
    mode = COLUMN_MAPPING_MODE.of(new.configuration)
    if mode == "none":
        raise COMPAT_WRONG_REQUIRED_TABLE_PROPERTY(
            table=table, version=version, key=COLUMN_MAPPING_MODE.name, requiredValue="name", actualValue=mode
        )
    _check_vectors(new, features, None if upgrade else before, version, table)
    _check_types(new, version, table)
    _check_partitions(new, before, version, table)
    if not {TYPE_WIDENING.name, TYPE_WIDENING_PREVIEW.name}.isdisjoint(features):
        _check_type_changes(new, None, version, table)


def _check_vectors(
    new: Metadata, features: Collection[str], before: Metadata | None, version: int, table: str
) -> None:
    """In the version before as well: a writer that goes by it may be at work."""
    written = (m for m in (new, before) if m is not None and ENABLE_DELETION_VECTORS.of(m.configuration))
    for metadata in written:
        if metadata is new or DELETION_VECTORS.name in features:
            raise COMPAT_DELETION_VECTORS_SHOULD_BE_DISABLED(table=table, version=version)


def _check_types(new: Metadata, version: int, table: str) -> None:
    allowed: Callable[[DataType], bool] = _is_plain if version == 1 else _is_known
    for path, data_type in _types(new.schema, ()):
        if not allowed(data_type):
            raise COMPAT_UNSUPPORTED_DATA_TYPE(
                table=table,
                version=version,
                column=".".join(path),
                dataType=_kind(data_type),
                schema=new.schema,
            )


def _is_known(data_type: DataType) -> bool:
    return isinstance(data_type, (StructType, ArrayType, MapType, DecimalType)) or data_type in _PRIMITIVES


def _is_plain(data_type: DataType) -> bool:
    # V1 names three types that must not be; what Iceberg V2 cannot hold at all is refused with them.
    return _is_known(data_type) and not isinstance(data_type, (ArrayType, MapType)) and data_type != VOID


def _kind(data_type: DataType) -> str:
    kinds = {ArrayType: "array", MapType: "map", StructType: "struct"}
    return next((name for kind, name in kinds.items() if isinstance(data_type, kind)), str(data_type))


def _types(data_type: DataType, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], DataType]]:
    yield path, data_type
    if isinstance(data_type, StructType):
        for field in data_type:
            yield from _types(field.type, (*path, field.name))
    elif isinstance(data_type, ArrayType):
        yield from _types(data_type.element, (*path, "element"))
    elif isinstance(data_type, MapType):
        yield from _types(data_type.key, (*path, "key"))
        yield from _types(data_type.value, (*path, "value"))


def _check_partitions(new: Metadata, before: Metadata | None, version: int, table: str) -> None:
    for name in new.partition_columns:
        field = new.schema.find(name)
        if field is not None and not (field.type in _PRIMITIVES or isinstance(field.type, DecimalType)):
            raise COMPAT_UNSUPPORTED_PARTITION_DATA_TYPE(
                table=table, version=version, column=name, dataType=_kind(field.type), schema=new.schema
            )
    if before is not None and before.partition_columns not in ((), new.partition_columns):
        raise COMPAT_REPLACE_TABLE_CHANGE_PARTITION_NAMES(
            table=table,
            version=version,
            prevPartitionSpec=before.partition_columns,
            newPartitionSpec=new.partition_columns,
        )


# --- type changes


def _check_type_changes(new: Metadata, before: Metadata | None, version: int, table: str) -> None:
    """All changes that are recorded; of those `before` has as well, none."""
    changes_before = [] if before is None else list(_changes(before.schema, ()))
    for path, change in _changes(new.schema, ()):
        old, wide = str(change.get("fromType")), str(change.get("toType"))
        if (path, change) not in changes_before and not is_change_of_iceberg(old, wide):
            raise COMPAT_UNSUPPORTED_TYPE_WIDENING(
                table=table, version=version, fieldPath=path, prevType=old, newType=wide
            )


def _changes(schema: StructType, above: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path, data_type in _types(schema, above):
        if isinstance(data_type, StructType):
            for field in data_type:
                for change in field.metadata.get(TYPE_CHANGES) or ():
                    inside = change.get("fieldPath")
                    yield ".".join((*path, field.name, *([inside] if inside else []))), change


def is_change_of_iceberg(old: str, new: str) -> bool:
    """Whether a change of type is one of Iceberg as well: int to long, float to double, decimals with more digits.

    Parameters
    ----------
    old, new
        Types as the log spells them.

    Source: Iceberg Table Spec, "Schema Evolution"; protocol-checklist TW-W-04.
    """
    if old in _INTEGERS and new in _INTEGERS:
        return _INTEGERS.index(old) < _INTEGERS.index(new)
    if old.startswith("decimal(") and new.startswith("decimal("):
        (p1, s1), (p2, s2) = (tuple(map(int, text[8:-1].split(","))) for text in (old, new))
        return s1 == s2 and p1 <= p2
    return (old, new) == ("float", "double")
