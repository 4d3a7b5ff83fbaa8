"""Every table feature as one record, and the checks whether a table can be read or written.

A feature is supported by a table when its protocol lists it, or implies it by a legacy version. What a
table's metadata asks for must be among them.

Source: PROTOCOL.md, "Table Features", "Appendix"; protocol-checklist sections 17 and 41.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

from delta_ds.kernel.format import properties
from delta_ds.kernel.format.properties import TableProperty
from delta_ds.kernel.format.schema import field_metadata
from delta_ds.kernel.format.schema.types import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from delta_ds.records import dataclass

READER_VERSIONS = (1, 2, 3)
WRITER_VERSIONS = (1, 2, 3, 4, 5, 6, 7)
FEATURE_READER_VERSION = 3  # from here on `readerFeatures` lists what a reader must know
FEATURE_WRITER_VERSION = 7  # and `writerFeatures` what a writer must know


@dataclass(frozen=True, slots=True)
class TableFeature:
    """One table feature.

    Attributes
    ----------
    name
        As in `readerFeatures` and `writerFeatures`; case-sensitive.
    kind
        `reader-writer` features are in both lists, `writer` features only in `writerFeatures`.
    legacy_reader, legacy_writer
        The protocol versions from which on the feature is implied without being listed; None: never.
    enabled_by
        The table property that asks for it.
    enabled_values
        Which values of it do, in lower case; empty: any value.
    enabled_by_prefix
        Any table property that begins so asks for it.
    column_type, column_metadata
        A type, or keys of a field's metadata, that ask for it when some column has them.
    depends_on
        Features that must be supported as well.
    stands_for
        The stable feature of which this one is a preview; a table needs one of the two.
    by_hand
        Whether an existing table gets it only when asked for by name, although its metadata needs it.
    by_catalog
        Whether a table has it from the catalog that manages it, and nobody can ask for it.
    read, write
        Whether this package can read, or write, tables with the feature.
    """

    name: str
    kind: Literal["reader-writer", "writer"]
    legacy_reader: int | None = None
    legacy_writer: int | None = None
    enabled_by: TableProperty[Any] | None = None
    enabled_values: tuple[str, ...] = ("true",)
    enabled_by_prefix: str | None = None
    column_type: str | None = None
    column_metadata: tuple[str, ...] = ()
    depends_on: tuple[TableFeature, ...] = ()
    stands_for: TableFeature | None = None
    by_hand: bool = False
    by_catalog: bool = False
    read: bool = True
    write: bool = True

    def __str__(self) -> str:
        return self.name

    @property
    def needs_reader(self) -> bool:
        return self.kind == "reader-writer"

    def is_asked_for(self, configuration: Mapping[str, str]) -> bool:
        """Whether a property asks for it: what its text says, also where the property does not take that text."""
        if self.enabled_by_prefix is not None:
            return any(key.startswith(self.enabled_by_prefix) for key in configuration)
        if self.enabled_by is None:
            return False
        value = configuration.get(self.enabled_by.name)
        return value is not None and (not self.enabled_values or value.lower() in self.enabled_values)

    def is_turned_on(self, configuration: Mapping[str, str]) -> bool:
        """Whether a table that supports it uses it: no property is needed, or the property has a value that says so.

        Raises
        ------
        InvalidOptionError
            The property has a text that it does not take.
        """
        if self.enabled_by is None:
            return self.enabled_by_prefix is None or self.is_asked_for(configuration)
        value = self.enabled_by.of(configuration)
        return value is not None and (not self.enabled_values or str(value).lower() in self.enabled_values)


def _writer(name: str, legacy: int | None = None, **rest: Any) -> TableFeature:
    return TableFeature(name, "writer", None, legacy, **rest)


def _both(name: str, **rest: Any) -> TableFeature:
    return TableFeature(name, "reader-writer", **rest)


# Implied by legacy versions
APPEND_ONLY = _writer("appendOnly", 2, enabled_by=properties.APPEND_ONLY)
INVARIANTS = _writer("invariants", 2, column_metadata=(field_metadata.INVARIANTS,))
CHECK_CONSTRAINTS = _writer("checkConstraints", 3, enabled_by_prefix=properties.CONSTRAINT_PREFIX)
CHANGE_DATA_FEED = _writer("changeDataFeed", 4, enabled_by=properties.ENABLE_CHANGE_DATA_FEED)
GENERATED_COLUMNS = _writer("generatedColumns", 4, column_metadata=(field_metadata.GENERATION_EXPRESSION,))
COLUMN_MAPPING = _both(
    "columnMapping",
    legacy_reader=2,
    legacy_writer=5,
    enabled_by=properties.COLUMN_MAPPING_MODE,
    enabled_values=("name", "id"),
)
IDENTITY_COLUMNS = _writer(
    "identityColumns", 6, column_metadata=(field_metadata.IDENTITY_START, field_metadata.IDENTITY_STEP)
)

# Rows, files and types
DELETION_VECTORS = _both("deletionVectors", enabled_by=properties.ENABLE_DELETION_VECTORS)
DOMAIN_METADATA = _writer("domainMetadata")
ROW_TRACKING = _writer(
    "rowTracking", enabled_by=properties.ENABLE_ROW_TRACKING, depends_on=(DOMAIN_METADATA,)
)
CLUSTERING = _writer("clustering", depends_on=(DOMAIN_METADATA,))
MATERIALIZE_PARTITION_COLUMNS = _writer(
    "materializePartitionColumns", enabled_by=properties.ENABLE_MATERIALIZE_PARTITION_COLUMNS
)
COLUMN_DEFAULTS = _writer("allowColumnDefaults")
ICEBERG_COMPAT_V1 = _writer(
    "icebergCompatV1", enabled_by=properties.ENABLE_ICEBERG_COMPAT_V1, depends_on=(COLUMN_MAPPING,)
)
ICEBERG_COMPAT_V2 = _writer(
    "icebergCompatV2", enabled_by=properties.ENABLE_ICEBERG_COMPAT_V2, depends_on=(COLUMN_MAPPING,)
)
TIMESTAMP_NTZ = _both("timestampNtz", column_type="timestamp_ntz", by_hand=True)
TYPE_WIDENING = _both("typeWidening", enabled_by=properties.ENABLE_TYPE_WIDENING)
TYPE_WIDENING_PREVIEW = _both("typeWidening-preview", stands_for=TYPE_WIDENING)
VARIANT_TYPE = _both("variantType", column_type="variant")
VARIANT_TYPE_PREVIEW = _both("variantType-preview", stands_for=VARIANT_TYPE)
VARIANT_SHREDDING = _both(
    "variantShredding", enabled_by=properties.ENABLE_VARIANT_SHREDDING, depends_on=(VARIANT_TYPE,)
)
# Other engines list it without variantType where no column is a variant.
VARIANT_SHREDDING_PREVIEW = _both("variantShredding-preview", stands_for=VARIANT_SHREDDING)

# The log
V2_CHECKPOINT = _both("v2Checkpoint", enabled_by=properties.CHECKPOINT_POLICY, enabled_values=("v2",))
CHECKPOINT_PROTECTION = _writer("checkpointProtection")
IN_COMMIT_TIMESTAMP = _writer("inCommitTimestamp", enabled_by=properties.ENABLE_IN_COMMIT_TIMESTAMPS)
VACUUM_PROTOCOL_CHECK = _both("vacuumProtocolCheck")

_COORDINATED = (IN_COMMIT_TIMESTAMP, VACUUM_PROTOCOL_CHECK)
CATALOG_MANAGED = _both("catalogManaged", depends_on=_COORDINATED, by_catalog=True)

# Not written, and some of them not read
CATALOG_OWNED_PREVIEW = _both("catalogOwned-preview", depends_on=_COORDINATED, read=False, write=False)
COORDINATED_COMMITS_PREVIEW = _writer(
    "coordinatedCommits-preview",
    enabled_by=properties.COMMIT_COORDINATOR,
    enabled_values=(),
    depends_on=_COORDINATED,
    write=False,
)
ICEBERG_COMPAT_V3 = _writer(
    "icebergCompatV3",
    enabled_by=properties.ENABLE_ICEBERG_COMPAT_V3,
    depends_on=(COLUMN_MAPPING, ROW_TRACKING),
    write=False,
)
ICEBERG_WRITER_COMPAT_V1 = _writer(
    "icebergWriterCompatV1",
    enabled_by=properties.ENABLE_ICEBERG_WRITER_COMPAT_V1,
    depends_on=(ICEBERG_COMPAT_V2,),
    write=False,
)
GEOSPATIAL = _both("geospatial", read=False, write=False)
GEOSPATIAL_DEV = _both("geospatial-dev", stands_for=GEOSPATIAL, read=False, write=False)
COLLATIONS = _writer("collations", depends_on=(DOMAIN_METADATA,), write=False)
COLUMN_MAPPING_USAGE_TRACKING = _writer(
    "columnMappingUsageTracking", depends_on=(COLUMN_MAPPING,), write=False
)
TIMESTAMP_NANOS = _both("timestampNanos", depends_on=(TIMESTAMP_NTZ,), read=False, write=False)
ADAPTIVE_METADATA_PREVIEW = _both("adaptiveMetadata-preview", read=False, write=False)
REDIRECT_READER_WRITER_PREVIEW = _both("redirectReaderWriter-preview", read=False, write=False)
REDIRECT_WRITER_ONLY_PREVIEW = _writer("redirectWriterOnly-preview", write=False)

FEATURES: dict[str, TableFeature] = {
    feature.name: feature for feature in tuple(globals().values()) if isinstance(feature, TableFeature)
}
PREVIEWS = tuple(feature for feature in FEATURES.values() if feature.stands_for is not None)
_BY_LOWER_NAME = {name.lower(): feature for name, feature in FEATURES.items()}


def feature_named(name: str) -> TableFeature | None:
    """The feature of that name in any case; None if there is none."""
    return _BY_LOWER_NAME.get(name.lower())


def supported_features(
    min_reader: int,
    min_writer: int,
    reader_features: Collection[str] | None,
    writer_features: Collection[str] | None,
) -> frozenset[str]:
    """The names of the features that a protocol lists or, by legacy versions, implies.

    Reader version 2 implies columnMapping for readers whatever the writer version is (PRO-RW-05).

    Source: PROTOCOL.md, "Table Features for New and Existing Tables"; protocol-checklist TF-R-01, TF-W-03.
    """
    names = {*(reader_features or ()), *(writer_features or ())}
    for feature in FEATURES.values():
        if feature.legacy_writer is None:
            continue
        reads = feature.legacy_reader is None or feature.legacy_reader <= min_reader < FEATURE_READER_VERSION
        writes = feature.legacy_writer <= min_writer < FEATURE_WRITER_VERSION
        by_reader_alone = feature.legacy_reader is not None and min_writer >= FEATURE_WRITER_VERSION
        if reads and (writes or by_reader_alone):
            names.add(feature.name)
    return frozenset(names)


def required_features(properties: Mapping[str, str], schema: StructType | None = None) -> frozenset[str]:
    """The names of the features that a table's metadata asks for, without their dependencies.

    Parameters
    ----------
    properties
        The table's `configuration`.
    schema
        Its schema, where known; without it only properties are looked at.
    """
    types, keys = _schema_traits(schema) if schema is not None else (frozenset(), frozenset())
    return frozenset(
        f.name
        for f in FEATURES.values()
        if f.is_asked_for(properties) or f.column_type in types or not keys.isdisjoint(f.column_metadata)
    )


def with_dependencies(names: Collection[str]) -> frozenset[str]:
    """The features and all that they depend on, directly or not. Unknown names stay."""
    closure: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in closure:
            closure.add(name)
            if name in FEATURES:
                todo.extend(needed.name for needed in FEATURES[name].depends_on)
    return frozenset(closure)


def missing_features(supported_names: Collection[str], needed_names: Collection[str]) -> frozenset[str]:
    """What must be added to a set of supported features so that the wanted ones are supported.

    Dependencies come along; the preview of a feature counts as the feature.

    Source: protocol-checklist TF-W-05.
    """
    has = frozenset(supported_names)
    has |= {feature.stands_for.name for n in has if (feature := FEATURES.get(n)) and feature.stands_for}
    supported = frozenset(supported_names)
    return with_dependencies((frozenset(needed_names) - has) | supported) - has


def _schema_traits(schema: StructType) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the primitive types and the metadata keys that occur anywhere in a schema."""
    types: set[str] = set()
    keys: set[str] = set()
    for part in _parts(schema):
        if isinstance(part, StructField):
            keys.update(part.metadata)
        elif isinstance(part, PrimitiveType):
            types.add(part.name)
    return frozenset(types), frozenset(keys)


def _parts(data_type: DataType) -> Iterator[DataType | StructField]:
    yield data_type
    if isinstance(data_type, StructType):
        for field in data_type:
            yield field
            yield from _parts(field.type)
    elif isinstance(data_type, ArrayType):
        yield from _parts(data_type.element)
    elif isinstance(data_type, MapType):
        yield from _parts(data_type.key)
        yield from _parts(data_type.value)
