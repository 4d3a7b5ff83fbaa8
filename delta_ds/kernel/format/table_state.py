"""`TableState`: the protocol and metadata of one version, every question that they answer together, and whether the
table may be read or written: its versions, its features, and what its metadata asks for.

Source: PROTOCOL.md, "Protocol Evolution", "Column Mapping", "Table Features", "Clustered Table"; protocol-checklist
sections 17 and 41.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from delta_ds.conditions.protocol import (
    FEATURES_PROTOCOL_METADATA_MISMATCH,
    GEOSPATIAL_NOT_SUPPORTED,
    INVALID_PROTOCOL_OF_TABLE,
    PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED,
    READ_FEATURE_PROTOCOL_OF_TABLE_REQUIRES_WRITE,
    UNSUPPORTED_FEATURES_FOR_WRITE,
    UPKEEP_PROPERTY_UNREADABLE,
)
from delta_ds.exceptions import InvalidOptionError, UnsupportedFeatureError, UnsupportedOperationError
from delta_ds.kernel.format import features
from delta_ds.kernel.format.actions import Metadata, Protocol, clustering_paths
from delta_ds.kernel.format.features import (
    CATALOG_MANAGED,
    COLUMN_MAPPING,
    FEATURE_READER_VERSION,
    FEATURE_WRITER_VERSION,
    FEATURES,
    GEOSPATIAL,
    GEOSPATIAL_DEV,
    READER_VERSIONS,
    ROW_TRACKING,
    TYPE_WIDENING,
    WRITER_VERSIONS,
    TableFeature,
    missing_features,
    required_features,
    supported_features,
)
from delta_ds.kernel.format.properties import (
    ENABLE_TYPE_WIDENING,
    OF_UPKEEP,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
)
from delta_ds.kernel.format.schema.column_mapping import mapping_mode, physical_name
from delta_ds.kernel.format.schema.field_metadata import PHYSICAL_NAME
from delta_ds.kernel.format.schema.types import DataType, StructType
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.store_options import uses_coordinator
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from delta_ds.kernel.format.schema.column_paths import Path


def check_readable(
    protocol: Protocol, properties: Mapping[str, str], table: str, schema: StructType | None = None
) -> None:
    """Refuse a table that this package cannot read rightly.

    Parameters
    ----------
    protocol
        The effective `protocol` action.
    properties
        The table's `configuration`.
    table
        Its address, for messages.
    schema
        Its schema, where already parsed: column types ask for features too.

    Raises
    ------
    UnsupportedFeatureError
        Naming the version or each feature that is in the way.

    Source: PROTOCOL.md, "Protocol Evolution"; protocol-checklist PRO-R-02, PRO-RW-04.
    """
    _check_versions(protocol, table)
    _check_known(protocol, table)
    _check_listed(protocol, properties, table, schema)


def check_managed(protocol: Protocol, storage: Storage) -> None:
    """Refuse a catalog-managed table that is opened without its coordinator, and the other way round.

    Parameters
    ----------
    protocol
        The `protocol` action that is or will be effective.
    storage
        The table's, as it was opened.

    Raises
    ------
    UnsupportedFeatureError
        Only the coordinator knows its commits, and none was named, or one that does not manage the table; or the
        coordinator manages it and the protocol does not say so.

    Source: PROTOCOL.md, "Table Discovery"; protocol-checklist CAT-R-01, CAT-RW-05.
    """
    listed = CATALOG_MANAGED.name in {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    if listed == storage.managed:
        return
    from delta_ds.conditions.coordination import FEATURE_WITHOUT_MANAGER, MANAGED_WITHOUT_FEATURE

    if listed:
        if uses_coordinator(storage.options):
            raise FEATURE_WITHOUT_MANAGER(table=storage.url)
        raise PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED(path=storage.url)
    raise MANAGED_WITHOUT_FEATURE(table=storage.url)


def check_writable(
    protocol: Protocol, properties: Mapping[str, str], table: str, schema: StructType | None = None
) -> None:
    """Refuse a table that this package could not write by all rules.

    Parameters
    ----------
    protocol
        The `protocol` action that is or will be effective.
    properties
        The table's `configuration`.
    table
        Its address, for messages.
    schema
        Its schema, where known.

    Raises
    ------
    UnsupportedFeatureError
        Naming the version or each feature that is in the way; nothing was written.

    Source: PROTOCOL.md, "Protocol Evolution"; protocol-checklist PRO-W-03, ICE-W-04.
    """
    check_readable(protocol, properties, table, schema)
    reader, writer = protocol.min_reader, protocol.min_writer
    if writer not in WRITER_VERSIONS:
        raise _invalid_protocol(
            f"table {table} requires reader version {reader} and writer version {writer}, but this version of "
            f"delta_ds supports writer versions {_listing(WRITER_VERSIONS)}: nothing was written. Upgrade "
            "delta_ds, or write with an engine that supports them",
            protocol,
            table,
        )
    names = supported_features(reader, writer, protocol.reader_features, protocol.writer_features)
    refused = sorted(n for n in names if n not in FEATURES or not FEATURES[n].write)
    if refused:
        from delta_ds._version import __version__

        raise UNSUPPORTED_FEATURES_FOR_WRITE(
            tableNameOrPath=table, unsupported=refused, deltaVersion=__version__
        )


def _check_versions(protocol: Protocol, table: str) -> None:
    reader, writer = protocol.min_reader, protocol.min_writer
    versions = f"reader version {reader} and writer version {writer}"
    if reader not in READER_VERSIONS:
        raise _invalid_protocol(
            f'table "{table}" requires {versions}, but this version of delta_ds supports reader versions '
            f"{_listing(READER_VERSIONS)} and writer versions {_listing(WRITER_VERSIONS)}. Upgrade delta_ds, "
            "or read the table with an engine that supports them",
            protocol,
            table,
        )
    if reader >= FEATURE_READER_VERSION and writer < FEATURE_WRITER_VERSION:
        raise READ_FEATURE_PROTOCOL_OF_TABLE_REQUIRES_WRITE(table=table, versions=versions)
    for key, version, first, listed in (
        ("readerFeatures", reader, FEATURE_READER_VERSION, protocol.reader_features),
        ("writerFeatures", writer, FEATURE_WRITER_VERSION, protocol.writer_features),
    ):
        if (version >= first) != (listed is not None):
            has = "lacks" if listed is None else "has"
            raise _invalid_protocol(
                f"the protocol action of table {table} {has} {key}, but {versions}; the list belongs to "
                f"version {first} and up",
                protocol,
                table,
            )


def _invalid_protocol(message: str, protocol: Protocol, table: str) -> UnsupportedFeatureError:
    return INVALID_PROTOCOL_OF_TABLE(
        message=message, table=table, reader=protocol.min_reader, writer=protocol.min_writer
    )


def _listing(items: Collection[object]) -> str:
    return ", ".join(str(item) for item in items)


def _check_known(protocol: Protocol, table: str) -> None:
    refused = {n for n in protocol.reader_features or () if n not in FEATURES or not FEATURES[n].read}
    known = {GEOSPATIAL.name, GEOSPATIAL_DEV.name}
    unknown = sorted(refused - known)
    if unknown:
        from delta_ds._version import __version__

        raise UnsupportedFeatureError(
            f'Unsupported Delta read feature: table "{table}" requires reader table feature(s) that are unsupported by '
            f'delta_ds "{__version__}": {_listing(unknown)}. Upgrade delta_ds, or read the table with an engine that '
            "supports them",
            parameters={"tableNameOrPath": table, "unsupported": unknown, "deltaVersion": __version__},
        )
    if refused:
        raise GEOSPATIAL_NOT_SUPPORTED(table=table)


def _check_listed(
    protocol: Protocol, properties: Mapping[str, str], table: str, schema: StructType | None
) -> None:
    """What the metadata asks for must be in the protocol, else a reader could miss it.

    Protocols without feature lists are exempt, as in delta-spark: there a property without the version that
    implies its feature has no effect.
    """
    if protocol.writer_features is None:
        return
    listed = {*protocol.writer_features}
    if protocol.min_reader < FEATURE_READER_VERSION:
        listed |= supported_features(protocol.min_reader, protocol.min_writer, None, None)
    missing = sorted(missing_features(listed, listed | required_features(properties, schema)))
    if missing:
        raise FEATURES_PROTOCOL_METADATA_MISMATCH(table=table, missing=missing)


@dataclass(frozen=True)
class TableState:
    """Protocol and metadata of a version. Can be pickled, and needs no look at the log.

    Attributes
    ----------
    table
        The table's address, for messages.
    version
        The version; -1 for a table that is about to be made.
    domains
        The configuration of each live metadata domain. None where only protocol and metadata were looked for:
        finding the domains takes a replay of the log.
    """

    table: str
    version: int
    protocol: Protocol
    metadata: Metadata
    domains: Mapping[str, str] | None = None

    @property
    def schema(self) -> StructType:
        """Logical names, with the metadata of the fields."""
        return self.metadata.schema

    @property
    def properties(self) -> Mapping[str, str]:
        """The table properties (`metaData.configuration`)."""
        return self.metadata.configuration

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The logical names of the partition columns, in order."""
        return self.metadata.partition_columns

    @cached_property
    def mapping_mode(self) -> str:
        """`none`, `name` or `id`: how columns are found in files.

        Raises
        ------
        UnsupportedFeatureError
            The table names another mode.
        """
        return mapping_mode(self.properties, self.protocol.supports(COLUMN_MAPPING))

    @cached_property
    def physical_partition_columns(self) -> tuple[str, ...]:
        """The keys of `partitionValues` in the log, in the order of `partition_columns`."""
        fields = ((name, self.schema.find(name)) for name in self.partition_columns)
        return tuple(
            name if field is None else physical_name(field, self.mapping_mode) for name, field in fields
        )

    @cached_property
    def clustering_paths(self) -> tuple[Path, ...]:
        """The physical path of each clustering column; empty for a table that is not clustered.

        Raises
        ------
        CorruptLogFileError
            The metadata domain does not name columns.
        """
        if self.domains is None:
            raise ValueError(f"the metadata domains of version {self.version} of {self.table} were not read")
        return clustering_paths(self.domains)

    @cached_property
    def clustering_columns(self) -> tuple[Path, ...]:
        """The logical path of each clustering column; errors as `clustering_paths`."""
        return tuple(_logical(self.schema, path) for path in self.clustering_paths)

    @property
    def row_tracking_columns(self) -> tuple[str, ...]:
        """The physical names of the columns that keep row ids and row commit versions where rows are written anew.

        None unless row tracking is enabled: otherwise nothing needs to be kept.

        Source: PROTOCOL.md, "Row Tracking"; delta-spark, `RowTracking.preserveRowTrackingColumns`.
        """
        names = (ROW_ID_COLUMN.of(self.properties), ROW_COMMIT_VERSION_COLUMN.of(self.properties))
        columns = tuple(name for name in names if name is not None)
        return columns if self.enabled(ROW_TRACKING) and len(columns) == len(names) else ()

    def supports(self, feature: TableFeature) -> bool:
        """Whether the protocol lists a feature or its preview, or implies it by a legacy version."""
        previews = (preview for preview in features.PREVIEWS if preview.stands_for == feature)
        return self.protocol.supports(feature) or any(map(self.protocol.supports, previews))

    def enabled(self, feature: TableFeature) -> bool:
        """Whether a feature is in use: supported by the protocol and, where a property turns it on, turned on.

        Either alone has no effect: a property that no feature in the protocol backs is not known to all
        writers, and a feature that no property turns on is only allowed.

        Raises
        ------
        InvalidOptionError
            The property has a text that it does not take.

        Source: PROTOCOL.md, "Supported Features", "Active Features".
        """
        return self.supports(feature) and feature.is_turned_on(self.properties)

    def after(self, version: int, protocol: Protocol | None, metadata: Metadata | None) -> TableState:
        """What holds after a commit; None: it does not change that."""
        return replace(
            self, version=version, protocol=protocol or self.protocol, metadata=metadata or self.metadata
        )

    @property
    def widens_types(self) -> bool:
        """Whether types of this table may be widened now.

        Raises
        ------
        UnsupportedOperationError
            The property is set and the protocol lacks the feature: the table is not consistent.
        """
        if ENABLE_TYPE_WIDENING.of(self.properties) and not self.supports(TYPE_WIDENING):
            raise UnsupportedOperationError(
                f"{self.table} has {ENABLE_TYPE_WIDENING}=true but its protocol does not list the feature "
                "typeWidening; add the feature or unset the property. Nothing was written"
            )
        return self.enabled(TYPE_WIDENING)

    def check_readable(self) -> None:
        """Refuse a version that this package cannot read rightly.

        Raises
        ------
        UnsupportedFeatureError
            See `check_readable`; also for an unknown mode of column mapping.
        """
        # Before the schema is parsed: a feature that is not supported may bring types that are unknown.
        check_readable(self.protocol, self.properties, self.table)
        _ = self.mapping_mode
        check_readable(self.protocol, self.properties, self.table, schema=self.schema)

    def check_writable(self) -> None:
        """Refuse a version that this package could not write by all rules.

        Raises
        ------
        UnsupportedFeatureError
            See `check_writable`.
        InvalidOptionError
            A property by which writers keep up the log holds a text that it does not take: the log would never be
            cleaned up, or have no checkpoint any more.
        """
        check_writable(self.protocol, self.properties, self.table, self.schema)
        for known in OF_UPKEEP:
            text = self.properties.get(known.name)
            try:
                known.of(self.properties)
            except InvalidOptionError as error:
                raise UPKEEP_PROPERTY_UNREADABLE(
                    version=self.version,
                    table=self.table,
                    property=known.name,
                    value=text,
                    reason=error.__cause__,
                ) from error


def _logical(schema: StructType, path: Sequence[str]) -> Path:
    """A physical path as users see it; names that are in no column stay."""
    level: DataType | None = schema
    logical = []
    for name in path:
        fields = level.fields if isinstance(level, StructType) else ()
        field = next((f for f in fields if str(f.metadata.get(PHYSICAL_NAME, f.name)) == name), None)
        logical.append(name if field is None else field.name)
        level = None if field is None else field.type
    return tuple(logical)
