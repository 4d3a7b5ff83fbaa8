"""The checks whether a table may be read or written: its versions, its features, and what its metadata asks for.

Source: PROTOCOL.md, "Protocol Evolution", "Table Features"; protocol-checklist sections 17 and 41.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from delta_ds.conditions.protocol import (
    FEATURES_PROTOCOL_METADATA_MISMATCH,
    GEOSPATIAL_NOT_SUPPORTED,
    INVALID_PROTOCOL_OF_TABLE,
    PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED,
    READ_FEATURE_PROTOCOL_OF_TABLE_REQUIRES_WRITE,
    UNSUPPORTED_FEATURES_FOR_WRITE,
)
from delta_ds.exceptions import UnsupportedFeatureError
from delta_ds.kernel.format.features import (
    CATALOG_MANAGED,
    FEATURE_READER_VERSION,
    FEATURE_WRITER_VERSION,
    FEATURES,
    GEOSPATIAL,
    GEOSPATIAL_DEV,
    READER_VERSIONS,
    WRITER_VERSIONS,
    missing_features,
    required_features,
    supported_features,
)
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.store_options import uses_coordinator


class TableProtocol(Protocol):
    """What the checks look at: the `protocol` action of a table."""

    @property
    def min_reader(self) -> int: ...
    @property
    def min_writer(self) -> int: ...
    @property
    def reader_features(self) -> frozenset[str] | None: ...
    @property
    def writer_features(self) -> frozenset[str] | None: ...


def check_readable(
    protocol: TableProtocol, properties: Mapping[str, str], table: str, schema: StructType | None = None
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


def check_managed(protocol: TableProtocol, storage: Storage) -> None:
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
    protocol: TableProtocol, properties: Mapping[str, str], table: str, schema: StructType | None = None
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


def _check_versions(protocol: TableProtocol, table: str) -> None:
    reader, writer = protocol.min_reader, protocol.min_writer
    versions = f"reader version {reader} and writer version {writer}"
    if reader not in READER_VERSIONS:
        raise _invalid_protocol(
            f"table {table} requires {versions}, but this version of delta_ds supports reader versions "
            f"{_listing(READER_VERSIONS)} and writer versions {_listing(WRITER_VERSIONS)}. Upgrade delta_ds, "
            "or read the table with an engine that supports them",
            protocol,
            table,
        )
    if reader >= FEATURE_READER_VERSION and writer < FEATURE_WRITER_VERSION:
        raise READ_FEATURE_PROTOCOL_OF_TABLE_REQUIRES_WRITE(table=table, versions=versions)
    for key, version, first, features in (
        ("readerFeatures", reader, FEATURE_READER_VERSION, protocol.reader_features),
        ("writerFeatures", writer, FEATURE_WRITER_VERSION, protocol.writer_features),
    ):
        if (version >= first) != (features is not None):
            has = "lacks" if features is None else "has"
            raise _invalid_protocol(
                f"the protocol action of table {table} {has} {key}, but {versions}; the list belongs to "
                f"version {first} and up",
                protocol,
                table,
            )


def _invalid_protocol(message: str, protocol: TableProtocol, table: str) -> UnsupportedFeatureError:
    return INVALID_PROTOCOL_OF_TABLE(
        message=message, table=table, reader=protocol.min_reader, writer=protocol.min_writer
    )


def _listing(items: Collection[object]) -> str:
    return ", ".join(str(item) for item in items)


def _check_known(protocol: TableProtocol, table: str) -> None:
    refused = {n for n in protocol.reader_features or () if n not in FEATURES or not FEATURES[n].read}
    known = {GEOSPATIAL.name, GEOSPATIAL_DEV.name}
    unknown = sorted(refused - known)
    if unknown:
        from delta_ds._version import __version__

        raise UnsupportedFeatureError(
            f"table {table} requires reader table feature(s) that this version of delta_ds does not support: "
            f"{_listing(unknown)}. Upgrade delta_ds, or read the table with an engine that supports them",
            parameters={"tableNameOrPath": table, "unsupported": unknown, "deltaVersion": __version__},
        )
    if refused:
        raise GEOSPATIAL_NOT_SUPPORTED(table=table)


def _check_listed(
    protocol: TableProtocol, properties: Mapping[str, str], table: str, schema: StructType | None
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
