"""Clustering columns: check them, record them in the `delta.clustering` domain, change them.

Source: PROTOCOL.md, "Clustered Table"; protocol-checklist CLU-W-01, CLU-W-02, CLU-W-04.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from delta_ds.conditions.schema import CLUSTERING_COLUMN_NOT_FOUND, DUPLICATE_CLUSTERING_COLUMNS
from delta_ds.conditions.tables import (
    ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED,
    CLUSTER_BY_INVALID_NUM_COLUMNS,
    CLUSTERING_COLUMN_MISSING_STATS,
    CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED,
)
from delta_ds.kernel.format import features
from delta_ds.kernel.format.actions import CLUSTERING_DOMAIN
from delta_ds.kernel.format.operations import CLUSTER_BY
from delta_ds.kernel.format.properties import DATA_SKIPPING_NUM_INDEXED_COLS, DATA_SKIPPING_STATS_COLUMNS
from delta_ds.kernel.format.schema import column_paths
from delta_ds.kernel.format.schema.column_mapping import physical_path
from delta_ds.kernel.format.schema.column_paths import Path, parse_path, show
from delta_ds.kernel.format.schema.types import (
    DataType,
    DecimalType,
    PrimitiveType,
    StructType,
    sql_name,
    walk,
)
from delta_ds.kernel.transaction.alter.protocol import upgrade_protocol
from delta_ds.records import replace

if TYPE_CHECKING:
    from delta_ds.kernel.transaction.table_log import TableLog

MOST_COLUMNS = 4
_ELIGIBLE = frozenset(
    ["byte", "short", "integer", "long", "float", "double", "string", "date", "timestamp", "timestamp_ntz"]
)


def resolve_columns(
    schema: StructType, columns: Sequence[str], properties: Mapping[str, str], table: str
) -> list[Path]:
    """The logical paths of clustering columns, in the schema's case.

    Parameters
    ----------
    schema
        The table's.
    columns
        As written in Spark SQL: `a`, `s.a`, `` `odd name` ``.
    properties
        The table's: they say which columns have statistics.
    table
        Its address, for messages.

    Raises
    ------
    SchemaError, UnsupportedOperationError
        More than four, one twice, one that does not exist, has no order, or has no statistics.
    """
    if len(columns) > MOST_COLUMNS:
        raise CLUSTER_BY_INVALID_NUM_COLUMNS(
            table=table, actualNumColumns=len(columns), numColumns=MOST_COLUMNS
        )
    paths: list[Path] = []
    for column in columns:
        found = column_paths.find(schema, parse_path(column))
        if found is None:
            raise CLUSTERING_COLUMN_NOT_FOUND(
                table=table, columnName=column, columns=schema.names, tableSchema=str(schema)
            )
        path, field = found
        _check_eligible(path, field.type, table)
        if path in paths:
            raise DUPLICATE_CLUSTERING_COLUMNS(table=table, duplicateCols=show(path))
        paths.append(path)
    _check_statistics(schema, paths, properties, table)
    return paths


def _check_eligible(path: Path, data_type: DataType, table: str) -> None:
    eligible = isinstance(data_type, DecimalType) or (
        isinstance(data_type, PrimitiveType) and data_type.name in _ELIGIBLE
    )
    if not eligible:
        raise CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED(
            table=table,
            column=show(path),
            data_type=data_type,
            columnsWithDataTypes=f"{show(path)} : {sql_name(data_type)}",
        )


def _check_statistics(
    schema: StructType, paths: Sequence[Path], properties: Mapping[str, str], table: str
) -> None:
    lacking = [show(path) for path in paths if not _has_statistics(schema, path, properties)]
    if lacking:
        raise CLUSTERING_COLUMN_MISSING_STATS(table=table, columns=lacking)


def _has_statistics(schema: StructType, path: Path, properties: Mapping[str, str]) -> bool:
    text = properties.get(DATA_SKIPPING_STATS_COLUMNS.name)
    if text:
        named = [p for n in column_paths.parse_path_list(text) if (p := column_paths.find(schema, n))]
        return any(path[: len(found)] == found for found, _ in named)
    first = DATA_SKIPPING_NUM_INDEXED_COLS.of(properties)
    if first < 0:
        return True
    leaves = [p for p, field in walk(schema) if not isinstance(field.type, StructType)]
    tops = {field.name: field.type for field in schema}
    counted = [p for p in leaves if _through_structs(tops[p[0]], p[1:])]
    return path in counted[:first]


def _through_structs(data_type: DataType, rest: Path) -> bool:
    for name in rest:
        if not isinstance(data_type, StructType) or (field := data_type.find(name)) is None:
            return False
        data_type = field.type
    return True


def domain_text(schema: StructType, paths: Sequence[Path], mode: str) -> str:
    """The configuration of the domain: physical paths, as delta-spark writes it.

    Parameters
    ----------
    schema
        The table's, with physical names where it has column mapping.
    paths
        Logical paths; none for a table that was clustered once.
    mode
        `none`, `name` or `id`.
    """
    physical = [list(found) for path in paths if (found := physical_path(schema, path, mode)) is not None]
    body = {"clusteringColumns": physical, "domainName": CLUSTERING_DOMAIN}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def cluster_by(log: TableLog, columns: Sequence[str]) -> int:
    """Change the clustering columns of a clustered table; rows already written stay where they are.

    Parameters
    ----------
    log
        The table.
    columns
        As written in Spark SQL, at most four; none: no clustering any more.

    Returns
    -------
    int
        The version committed.

    Raises
    ------
    UnsupportedOperationError
        The table is partitioned, or a column cannot be one to cluster by.
    SchemaError
        A column does not exist, or is named twice.
    """
    txn = log.start_transaction()
    snapshot, table = txn.base, log.storage.url
    assert snapshot is not None
    if txn.metadata.partition_columns:
        raise ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED(
            table=table, partition_columns=txn.metadata.partition_columns
        )
    properties = txn.metadata.configuration
    old = [show(tuple(path)) for path in snapshot.clustering_columns]
    paths = resolve_columns(txn.metadata.schema, list(columns), properties, table)
    before = txn.table_state
    protocol = upgrade_protocol(before.protocol, before.metadata, (features.CLUSTERING.name,))
    replace(before, protocol=protocol).check_writable()
    if protocol != txn.protocol:
        txn.set_protocol(protocol)
    txn.set_domain_metadata(CLUSTERING_DOMAIN, domain_text(txn.metadata.schema, paths, snapshot.mapping_mode))
    return txn.commit(
        CLUSTER_BY,
        {"oldClusteringColumns": ",".join(old), "newClusteringColumns": ",".join(map(show, paths))},
    )
