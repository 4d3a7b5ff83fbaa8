"""REORG: choose files with deleted rows, with values of an older type, or all of a table that loses its column mapping.

Source: delta-spark, `DeltaReorgOperation`, `RemoveColumnMappingCommand`.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from delta_ds.kernel.commands.optimize import bins
from delta_ds.kernel.commands.optimize.request import PURGE, RETYPE, UPGRADE
from delta_ds.kernel.commands.optimize.zorder_curve import Numbers
from delta_ds.kernel.files.read.column_conversion import match_fields
from delta_ds.kernel.files.write.live_actions import add_bodies, live_adds
from delta_ds.kernel.format.actions import CLUSTERING_DOMAIN, Metadata
from delta_ds.kernel.format.iceberg_compatibility import enabled_version
from delta_ds.kernel.format.properties import COLUMN_MAPPING_MAX_ID, COLUMN_MAPPING_MODE
from delta_ds.kernel.format.schema.column_mapping import every_field, strip
from delta_ds.kernel.format.schema.evolution import can_widen
from delta_ds.kernel.format.schema.field_metadata import TYPE_CHANGES
from delta_ds.kernel.format.schema.from_arrow import primitive_from_arrow
from delta_ds.kernel.format.schema.types import ArrayType, DataType, MapType, StructType, schema_to_json
from delta_ds.kernel.transaction.alter import clustering
from delta_ds.kernel.transaction.alter.table_metadata import check_names_without_mapping
from delta_ds.kernel.transaction.iceberg.data_files import complaints, is_tagged
from delta_ds.records import dataclass, field, replace

if TYPE_CHECKING:
    from delta_ds.kernel.log.snapshot import Snapshot

_FOOTERS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Description:
    """The metadata and metadata domains that are committed with a rewriting."""

    metadata: Metadata
    domains: Mapping[str, str] = field(default_factory=dict)


def without_mapping(snapshot: Snapshot, mode: str | None) -> Description:
    """The metadata of a table without column mapping, for files with logical names.

    Parameters
    ----------
    mode
        What the property of the mode is then; None for nothing.

    Raises
    ------
    SchemaError
        A column has a name that only column mapping allows.
    """
    before = snapshot.metadata
    check_names_without_mapping(before.schema, snapshot.storage.url)
    schema = strip(before.schema)
    kept = {
        k: v
        for k, v in before.configuration.items()
        if k not in (COLUMN_MAPPING_MODE.name, COLUMN_MAPPING_MAX_ID.name)
    }
    if mode is not None:
        kept[COLUMN_MAPPING_MODE.name] = mode
    domains = {}
    if CLUSTERING_DOMAIN in snapshot.domains:
        paths = [tuple(path) for path in snapshot.clustering_columns]
        domains[CLUSTERING_DOMAIN] = clustering.domain_text(schema, paths, "none")
    return Description(replace(before, schema_string=schema_to_json(schema), configuration=kept), domains)


def to_rewrite(snapshot: Snapshot, kind: str, files: pa.Table) -> Numbers:
    """The files that a REORG rewrites, as row numbers.

    Parameters
    ----------
    kind
        One of `request.REORG`.
    files
        Live files, as the snapshot has them.

    Raises
    ------
    DataFileError
        A file is missing or damaged.
    """
    chosen: Any
    if kind == PURGE:
        chosen = bins.has_vector(files)
    elif kind == RETYPE:
        chosen = _narrower(snapshot, files)
    elif kind == UPGRADE:
        chosen = _without_compatibility(snapshot, files)
    else:
        chosen = np.full(files.num_rows, snapshot.mapping_mode != "none", np.bool_)
    return np.flatnonzero(chosen).astype(np.int64)


def _without_compatibility(snapshot: Snapshot, files: pa.Table) -> Any:
    """Which files have deleted rows, or were not written by the table's version of Iceberg compatibility.

    Tags are of version 2; by version 1 files comply that other engines have written without one.
    """
    version = enabled_version(snapshot.table_state)
    if version is None:
        return np.zeros(files.num_rows, np.bool_)
    adds = [add for table in live_adds(snapshot) for add in add_bodies(table)]
    if version == 1:
        found = complaints(snapshot.storage, snapshot.table_state, version, adds)
        stale = {complaint.path for complaint in found}
    else:
        stale = {add["path"] for add in adds if not is_tagged(add, version)}
    chosen = np.fromiter((path in stale for path in files["path"].to_pylist()), np.bool_, files.num_rows)
    return chosen | bins.has_vector(files)


def _narrower(snapshot: Snapshot, files: pa.Table) -> Any:
    """Which files hold a column in a narrower type than the table, by their footers."""
    widened = StructType(
        tuple(
            f
            for f in snapshot.schema
            if f.name not in snapshot.partition_columns
            and any(TYPE_CHANGES in inner.metadata for inner in every_field(StructType((f,))))
        )
    )
    if not widened.fields:
        return np.zeros(files.num_rows, np.bool_)
    storage, mode = snapshot.storage, snapshot.mapping_mode

    def is_narrower(path: str) -> bool:
        with closing(storage.open(storage.resolve(path))) as source, pq.ParquetFile(source) as file:
            return _any_narrower(list(file.schema_arrow), widened, mode)

    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        return np.fromiter(pool.map(is_narrower, files["path"].to_pylist()), np.bool_, files.num_rows)


def _any_narrower(fields: list[pa.Field], wanted: StructType, mode: str) -> bool:
    places = match_fields(fields, wanted, mode)
    return any(
        at is not None and _is_narrower(fields[at].type, f.type, mode)
        for at, f in zip(places, wanted, strict=True)
    )


def _is_narrower(stored: pa.DataType, wanted: DataType, mode: str) -> bool:
    if isinstance(wanted, StructType) and pa.types.is_struct(stored):
        return _any_narrower(list(stored), wanted, mode)
    if isinstance(wanted, ArrayType) and (pa.types.is_list(stored) or pa.types.is_large_list(stored)):
        return _is_narrower(stored.value_type, wanted.element, mode)
    if isinstance(wanted, MapType) and pa.types.is_map(stored):
        return _is_narrower(stored.key_type, wanted.key, mode) or _is_narrower(
            stored.item_type, wanted.value, mode
        )
    found = primitive_from_arrow(stored)
    return found is not None and found != wanted and can_widen(found, wanted)
