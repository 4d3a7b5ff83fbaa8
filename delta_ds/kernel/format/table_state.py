"""`TableState`: the protocol and metadata of one version, and every question that they answer together.

Source: PROTOCOL.md, "Protocol Evolution", "Column Mapping", "Table Features", "Clustered Table".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.format import features, protocol_checks
from delta_ds.kernel.format.actions import Metadata, Protocol, clustering_paths
from delta_ds.kernel.format.features import COLUMN_MAPPING, ROW_TRACKING, TYPE_WIDENING, TableFeature
from delta_ds.kernel.format.properties import ENABLE_TYPE_WIDENING, ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN
from delta_ds.kernel.format.schema.column_mapping import mapping_mode, physical_name
from delta_ds.kernel.format.schema.field_metadata import PHYSICAL_NAME
from delta_ds.kernel.format.schema.types import DataType, StructType
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from delta_ds.kernel.format.schema.column_paths import Path


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
            See `protocol_checks.check_readable`; also for an unknown mode of column mapping.
        """
        # Before the schema is parsed: a feature that is not supported may bring types that are unknown.
        protocol_checks.check_readable(self.protocol, self.properties, self.table)
        _ = self.mapping_mode
        protocol_checks.check_readable(self.protocol, self.properties, self.table, schema=self.schema)

    def check_writable(self) -> None:
        """Refuse a version that this package could not write by all rules.

        Raises
        ------
        UnsupportedFeatureError
            See `protocol_checks.check_writable`.
        """
        protocol_checks.check_writable(self.protocol, self.properties, self.table, self.schema)


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
