"""Checks of an OPTIMIZE: its predicate and the columns to order by.

Source: delta-spark, `OptimizeTableCommand.run` and `validateZorderByColumns`.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_ds.exceptions import PredicateError, SchemaError, UnsupportedOperationError
from delta_ds.kernel.commands.optimize.request import FULL, ZORDER, OptimizeRequest
from delta_ds.kernel.data.write.columns import file_columns
from delta_ds.kernel.data.write.statistics_columns import statistics_columns
from delta_ds.kernel.expressions import evaluate
from delta_ds.kernel.expressions.bind import bind
from delta_ds.kernel.expressions.sql import parse_predicate
from delta_ds.kernel.expressions.tree import Expression, columns, conjunction
from delta_ds.kernel.features import CLUSTERING
from delta_ds.kernel.schema import column_paths
from delta_ds.kernel.schema.column_mapping import physical_path
from delta_ds.kernel.schema.column_paths import Path, show
from delta_ds.kernel.schema.types import ArrayType, DataType, MapType, StructType

if TYPE_CHECKING:
    from delta_ds.kernel.data.write.write_spec import FilePlan
    from delta_ds.kernel.snapshot import Snapshot

_NO_ORDER = frozenset(["variant", "geometry", "geography", "interval"])


def check_kind(snapshot: Snapshot, request: OptimizeRequest) -> None:
    """Refuse what clustered tables, or tables that are not clustered, do not have.

    Raises
    ------
    UnsupportedOperationError
        Z-order or a predicate on a clustered table, FULL on another one.
    """
    table = snapshot.storage.url
    if request.kind == FULL and not snapshot.clustering_columns:
        raise UnsupportedOperationError(
            f"OPTIMIZE FULL is only supported for clustered tables with non-empty clustering columns, which {table} is "
            "not. Nothing was written; cluster it with DeltaTable.forPath(...).clusterBy(...)",
            condition="DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
            parameters={"table": table},
        )
    if not snapshot.protocol.supports(CLUSTERING):
        return
    if request.where:
        raise UnsupportedOperationError(
            f"OPTIMIZE of the clustered table {table} does not support partition predicates: clustered tables have no "
            f"partitions. Remove the predicates {', '.join(request.where)}. Nothing was written",
            condition="DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
            parameters={"predicates": " ".join(request.where)},
        )
    if request.kind == ZORDER:
        raise UnsupportedOperationError(
            f"OPTIMIZE of the clustered table {table} does not support Z-order: it is arranged by its clustering "
            f"columns. Remove {', '.join(request.columns)}, or change the columns with clusterBy. Nothing was written",
            condition="DELTA_CLUSTERING_WITH_ZORDER_BY",
            parameters={"zOrderBy": ", ".join(request.columns)},
        )


def partition_predicate(snapshot: Snapshot, texts: Sequence[str], timezone: str) -> Expression | None:
    """The predicates of a request as one, which partition values alone decide; None where there are none.

    Raises
    ------
    PredicateError
        One cannot be parsed, names another column than a partition column, or uses what only Spark can evaluate.
    """
    if not texts:
        return None
    trees = [_parsed(text) for text in texts]
    partitions = {name.lower() for name in snapshot.partition_columns}
    for column in (column for tree in trees for column in columns(tree)):
        if column.path[0].lower() not in partitions or len(column.path) > 1:
            raise PredicateError(
                f"Predicate references non-partition column {show(column.path)!r}. Only the partition columns of "
                f"{snapshot.storage.url} may be referenced: [{', '.join(snapshot.partition_columns)}]. Nothing was "
                "written",
                condition="DELTA_NON_PARTITION_COLUMN_REFERENCE",
                parameters={"columnName": show(column.path), "columnList": snapshot.partition_columns},
            )
    whole = conjunction(trees)
    assert whole is not None
    bound = bind(whole, snapshot.schema, timezone)
    outside = evaluate.unevaluable(bound)
    if outside is not None:
        raise PredicateError(
            f"the predicate {' AND '.join(texts)} on {snapshot.storage.url} uses {outside}, which only Spark can "
            "evaluate. Nothing was written; compare partition columns with constants",
            parameters={"predicate": list(texts)},
        )
    return whole


def _parsed(text: str) -> Expression:
    try:
        return parse_predicate(text)
    except PredicateError as error:
        raise PredicateError(
            f"Cannot recognize the predicate {text!r}: {error.text}",
            condition="DELTA_FAILED_RECOGNIZE_PREDICATE",
            parameters={"predicate": text},
        ) from error


def zorder_columns(snapshot: Snapshot, names: Sequence[str], files: FilePlan | None) -> tuple[Path, ...]:
    """The logical paths of the columns to order by, in the schema's case; one that is named twice counts once.

    Parameters
    ----------
    names
        As written in Spark SQL.
    files
        How files are written, which says what columns have statistics; None: they need not have any.

    Raises
    ------
    SchemaError
        A column does not exist, or is a partition column.
    UnsupportedOperationError
        A column has no order, or no statistics.
    """
    paths = [_zorder_column(snapshot, name) for name in names]
    if files is not None:
        _check_statistics(snapshot, paths, files)
    return tuple(dict.fromkeys(paths))


def _zorder_column(snapshot: Snapshot, name: str) -> Path:
    schema, table = snapshot.schema, snapshot.storage.url
    partitions = {column.lower() for column in snapshot.partition_columns}
    wanted = column_paths.parse_path(name)
    if len(wanted) == 1 and wanted[0].lower() in partitions:
        raise SchemaError(
            f"{name} is a partition column. Z-Ordering can only be performed on data columns of {table}; each "
            "partition has files of its own anyway. Nothing was written",
            condition="DELTA_ZORDERING_ON_PARTITION_COLUMN",
            parameters={"colName": name},
        )
    data = StructType(tuple(f for f in schema if f.name.lower() not in partitions))
    found = column_paths.find(data, wanted)
    if found is None:
        near = difflib.get_close_matches(name.lower(), [n.lower() for n in data.names], n=1, cutoff=0.5)
        nearest = next((n for n in data.names if near and n.lower() == near[0]), None)
        hint = f"did you mean {nearest!r}?" if nearest else f"there are: {', '.join(data.names[:20])}"
        raise SchemaError(
            f"Z-Ordering column {name} does not exist in data schema of {table}; {hint}. Nothing was written",
            condition="DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
            parameters={"columnName": name, "suggestion": nearest},
        )
    path, field = found
    if not has_order(field.type):
        raise UnsupportedOperationError(
            f"{table} cannot be Z-ordered by {show(path)}: values of type {field.type} have no order. Nothing was "
            "written",
            condition="DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
            parameters={"columnName": show(path), "dataType": str(field.type)},
        )
    return path


def has_order(data_type: DataType) -> bool:
    """Whether rows can be arranged by values of a type: not by collections, structs and variants."""
    if isinstance(data_type, (ArrayType, MapType, StructType)):
        return False
    return str(data_type).partition("(")[0].partition(" ")[0] not in _NO_ORDER


def _check_statistics(snapshot: Snapshot, paths: Sequence[Path], files: FilePlan) -> None:
    collected = {column.path for column in statistics_columns(files, file_columns(files))}
    mode = snapshot.mapping_mode
    lacking = [show(path) for path in paths if physical_path(snapshot.schema, path, mode) not in collected]
    if lacking:
        raise UnsupportedOperationError(
            f"Z-Ordering {snapshot.storage.url} on {', '.join(lacking)} will be ineffective, because statistics are "
            "not collected for them. Name them in delta.dataSkippingStatsColumns, or raise "
            "delta.dataSkippingNumIndexedCols; or set "
            "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled to false. Nothing was written",
            condition="DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
            parameters={"cols": lacking},
        )
