"""Shallow CLONE: a new table that refers to the data files of another one by their absolute paths.

The clone has the source's schema, partitioning, clustering, properties and constraints, but an id, a history
and row ids of its own; description and transactions of applications are not taken along.

Source: PROTOCOL.md, "Add File and Remove File", "Deletion Vectors"; protocol-checklist PTH-RW-01;
conflict-matrix section 2; docs of delta-spark and Databricks, "Clone".
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from delta_ds.conditions.commands import (
    CLONE_PARQUET_WITHOUT_VERSIONS,
    CREATE_TABLE_WITH_NON_EMPTY_LOCATION,
    UNSUPPORTED_NON_EMPTY_CLONE,
)
from delta_ds.conditions.tables import ADD_CONSTRAINTS_TO_CLONE
from delta_ds.exceptions import StorageError
from delta_ds.kernel.base.arrow_buffers import texts
from delta_ds.kernel.commands.clone_sources import SOURCE_ADDRESS_TAG
from delta_ds.kernel.commands.convert_to_delta import plan_conversion, source_files
from delta_ds.kernel.commands.restore import protocol_with_both, with_highest_marks
from delta_ds.kernel.files.read.plan import vector_descriptor
from delta_ds.kernel.files.write.live_actions import add_bodies, live_adds
from delta_ds.kernel.files.write.write_spec import encode, list_written_files
from delta_ds.kernel.format.actions import CLUSTERING_DOMAIN, AddFile, DeletionVector, Metadata
from delta_ds.kernel.format.operations import CLONE
from delta_ds.kernel.format.properties import (
    CHECKPOINT_PROTECTION_BEFORE_VERSION,
    COLUMN_MAPPING_MAX_ID,
    COLUMN_MAPPING_MODE,
    CONSTRAINT_PREFIX,
    ICT_ENABLEMENT_TIMESTAMP,
    ICT_ENABLEMENT_VERSION,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    STRICT,
    PropertyRules,
)
from delta_ds.kernel.format.schema.types import schema_to_json
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.storage.uri import Address, has_scheme, same_filesystem, without_login
from delta_ds.kernel.transaction.alter.properties import PropertyInputs, parse_properties
from delta_ds.kernel.transaction.alter.protocol import check_versions, implied_features, without_catalog
from delta_ds.kernel.transaction.alter.table_metadata import with_metadata
from delta_ds.kernel.transaction.commit_loop import as_text
from delta_ds.kernel.transaction.table_log import Timestamp, snapshot_at
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.format.schema.types import StructType
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.transaction.table_log import TableLog
    from delta_ds.kernel.transaction.transaction import Transaction


_COMMENT = "comment"
# What holds for the source's history and files only.
NOT_TAKEN = frozenset([
    ICT_ENABLEMENT_VERSION.name, ICT_ENABLEMENT_TIMESTAMP.name, ROW_ID_COLUMN.name,
    ROW_COMMIT_VERSION_COLUMN.name, CHECKPOINT_PROTECTION_BEFORE_VERSION.name,
])  # fmt: skip
_NO_ROW_IDS = frozenset(["baseRowId", "defaultRowCommitVersion"])
_LEAVES_FOLDER = r"(^|/|%2[fF])(\.|%2[eE]){2}($|/|%2[fF])"


@dataclass(frozen=True, slots=True)
class CloneResult:
    """What CLONE did: the columns of its result, in order, and the version it committed. Sizes in bytes."""

    source_table_size: int
    source_num_of_files: int
    num_removed_files: int
    num_copied_files: int
    removed_files_size: int
    copied_files_size: int
    version: int

    def row(self) -> dict[str, int]:
        """The result as delta-spark shows it; all columns are `bigint`."""
        return {name: getattr(self, name) for name in RESULT_COLUMNS}


RESULT_COLUMNS = (
    "source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files", "removed_files_size",
    "copied_files_size",
)  # fmt: skip


def shallow_clone(
    source: TableLog,
    target: TableLog,
    *,
    version: int | None = None,
    timestamp: Timestamp | None = None,
    timezone: str = "UTC",
    replace_existing: bool = False,
    properties: Mapping[str, str] | None = None,
    rules: PropertyRules = STRICT,
    source_name: str | None = None,
) -> CloneResult:
    """Make a table at another place over the files of a version of this one.

    Parameters
    ----------
    source, target
        The table, and where its clone shall be.
    version, timestamp, timezone
        Of the source, see `table_log.snapshot_at`; neither: its latest version.
    replace_existing
        Whether the clone may take the place of a table, which has to be without files.
    properties
        Table properties to set over those of the source.
    rules
        What the session says of them.
    source_name
        By which a catalog knows the source, for the history; None: its path stands there.

    Raises
    ------
    TableExistsError
        There is a table, or there are files, at the target and `replace_existing` is False.
    UnsupportedOperationError
        The table at the target has files; a property stands for what the files of the source do not hold.
    StorageError
        The target's storage may not open the source's files.
    InvalidOptionError, UnsupportedFeatureError
        A property is unknown, wrong or cannot be set.
    ConcurrentWriteException, ProtocolChangedException
        Another commit at the target came first.
    """
    inputs = parse_inputs(properties or {}, rules)
    snapshot = snapshot_at(source, version, timestamp, timezone)
    check_reachable(snapshot.storage.address, target.storage)
    txn = target.start_transaction(create=True)
    check_target(txn, replace_existing)
    state = description(snapshot, txn.base, inputs, target.storage.url)
    adds = list(_adds(snapshot))
    txn.read_whole_table()
    txn.set_metadata(state.metadata).set_protocol(state.protocol).add_all(adds)
    put_clustering(txn, snapshot)
    size = sum(add["size"] for add in adds)
    result = CloneResult(size, len(adds), 0, 0, 0, 0, -1)
    where = f"delta.`{address_text(snapshot.storage.address)}`"
    parameters = {"source": source_name or where, "sourceVersion": snapshot.version}
    tags = None if source_name is None else {SOURCE_ADDRESS_TAG: where}
    committed = txn.commit(CLONE, parameters, clone_metrics(result), tags=tags)
    return replace(result, version=committed)


def clone_metrics(result: CloneResult) -> dict[str, int]:
    return {
        "removedFilesSize": result.removed_files_size,
        "numRemovedFiles": result.num_removed_files,
        "sourceTableSize": result.source_table_size,
        "numCopiedFiles": result.num_copied_files,
        "copiedFilesSize": result.copied_files_size,
        "sourceNumOfFiles": result.source_num_of_files,
    }


# --- checks


def parse_inputs(properties: Mapping[str, str], rules: PropertyRules) -> PropertyInputs:
    inputs = parse_properties({str(name): as_text(value) for name, value in properties.items()}, rules)
    constraints = [name for name in inputs.given if name.startswith(CONSTRAINT_PREFIX)]
    if constraints:
        raise ADD_CONSTRAINTS_TO_CLONE(property=constraints[0])
    if inputs.reader is not None and inputs.writer is not None:
        check_versions(inputs.reader, inputs.writer)
    return inputs


def check_reachable(source: Address, target: Storage) -> None:
    if not same_filesystem(target.address, source):
        raise StorageError(
            f"a clone at {target.url} could not read the files of {source}: a table may only name files on the "
            "filesystem it lies on. Nothing was written; choose a target there",
            parameters={"table": target.url, "source": str(source)},
        )


def check_target(txn: Transaction, replace_existing: bool) -> None:
    table = txn.storage.url
    if not replace_existing and (txn.base is not None or list_written_files(txn.storage, "")):
        what = "a table" if txn.base is not None else "files that belong to no table"
        raise CREATE_TABLE_WITH_NON_EMPTY_LOCATION(tableId=table, what=what, tableLocation=table)
    if txn.base is not None and txn.base.live_files().num_rows:
        raise UNSUPPORTED_NON_EMPTY_CLONE(table=table)


# --- description


def description(
    source: Snapshot, replaced: Snapshot | None, inputs: PropertyInputs, table: str
) -> TableState:
    """The protocol and metadata of the clone."""
    old = replaced.metadata if replaced is not None else None
    stored = dict(inputs.stored)
    description = stored.pop(_COMMENT, old.description if old is not None else None)
    configuration = {k: v for k, v in source.metadata.configuration.items() if k not in NOT_TAKEN}
    schema = source.schema if old is None else with_highest_marks(source.schema, old.schema)
    wanted = replace(
        source.metadata,
        id=str(uuid.uuid4()),
        name=old.name if old is not None else None,
        description=description,
        configuration={**configuration, **stored},
        schema_string=source.metadata.schema_string if schema == source.schema else schema_to_json(schema),
    )
    asked = set(inputs.features)
    if inputs.reader is not None or inputs.writer is not None:
        versions = inputs.reader or source.protocol.min_reader, inputs.writer or source.protocol.min_writer
        asked |= implied_features(*versions)
    state = replace(source.table_state, table=table, protocol=without_catalog(source.protocol))
    after = with_metadata(state, wanted, asked)
    if replaced is not None:
        after = replace(
            after,
            protocol=protocol_with_both(after.protocol, replaced.protocol),
            metadata=_with_highest_id(after.metadata, replaced.metadata),
        )
        after.check_writable()
    return after


def _with_highest_id(metadata: Metadata, replaced: Metadata) -> Metadata:
    """Keep column ids unique over the replacement of a table, by its highest id so far."""
    if COLUMN_MAPPING_MODE.of(metadata.configuration) == "none":
        return metadata
    both = (metadata.configuration, replaced.configuration)
    highest = str(max(COLUMN_MAPPING_MAX_ID.of(c) for c in both))
    return replace(metadata, configuration={**metadata.configuration, COLUMN_MAPPING_MAX_ID.name: highest})


def put_clustering(txn: Transaction, source: Snapshot) -> None:
    clustering = source.domains.get(CLUSTERING_DOMAIN)
    if clustering is not None:
        txn.set_domain_metadata(CLUSTERING_DOMAIN, clustering)
    elif txn.base is not None and CLUSTERING_DOMAIN in txn.base.domains:
        txn.remove_domain_metadata(CLUSTERING_DOMAIN)


# --- files


def _adds(source: Snapshot) -> Iterator[AddFile]:
    """The source's files as `add` actions with absolute paths and fresh row ids."""
    root = address_uri(source.storage.address)
    for table in live_adds(source):
        table = table.drop_columns([name for name in table.column_names if name in _NO_ROW_IDS])
        column = table.column_names.index("path")
        table = table.set_column(column, "path", _full_paths(table["path"], source.storage, root))
        for body in add_bodies(table):
            vector = body.get("deletionVector")
            if vector is not None:
                body["deletionVector"] = _full_vector(vector, source.storage, root)
            yield body


def _full_paths(paths: pa.ChunkedArray, storage: Storage, root: str) -> pa.Array:
    """Paths of the source's log as absolute URIs, which mean the same in any log."""
    import pyarrow.compute as pc

    column = paths.combine_chunks()
    odd = pc.match_substring_regex(column, _LEAVES_FOLDER)
    for path in column.filter(odd).to_pylist():
        storage.resolve(path)  # refuses one that leaves the table
    relative = pc.binary_join_element_wise(texts([root])[0], column, texts(["/"])[0])
    own = pc.match_substring_regex(column, r"^([A-Za-z][A-Za-z0-9+.\-]*:)?/")
    if not pc.any(own, min_count=0).as_py():
        return relative
    there = texts([_full_path(p, storage, root) for p in column.filter(own).to_pylist()])
    return pc.replace_with_mask(relative, own, there)


def _full_path(path: str, storage: Storage, root: str) -> str:
    if has_scheme(path):
        return without_login(storage.address, path)
    if path.startswith("/"):
        return _authority(storage.address) + path
    storage.resolve(path)
    return f"{root}/{path}"


def _full_vector(vector: DeletionVector, storage: Storage, root: str) -> DeletionVector:
    """The descriptor of a deletion vector with the absolute path of its file."""
    descriptor = vector_descriptor(vector)
    if descriptor is None or descriptor.path is None:
        return vector
    return {**vector, "storageType": "p", "pathOrInlineDv": _full_path(descriptor.path, storage, root)}


def _authority(address: Address) -> str:
    if address.scheme == "file":
        return "file:"
    if address.scheme == "memory":
        return "memory:/"
    return f"{address.spelling or address.scheme}://{address.authority}"


def address_uri(address: Address) -> str:
    """An address as the root of URI-encoded paths."""
    return _authority(address) + encode(address.path)


def address_text(address: Address) -> str:
    return _authority(address) + address.path


# --- Shallow CLONE of a folder of Parquet files: a new table that refers to them by their absolute paths
# Source: as `clone`; delta-spark, `CloneParquetSource`.

_NO_VERSION = -1


def shallow_clone_parquet(
    source: TableLog,
    target: TableLog,
    partition_schema: StructType | None = None,
    *,
    version: object = None,
    timestamp: object = None,
    timezone: str = "UTC",
    replace_existing: bool = False,
    properties: Mapping[str, str] | None = None,
    rules: PropertyRules = STRICT,
) -> CloneResult:
    """Make a table at another place over the Parquet files of a folder.

    Parameters
    ----------
    source, target
        The folder, and where its clone shall be.
    partition_schema
        See `convert_to_delta`.
    version, timestamp
        Refused: a folder has no versions.
    timezone
        The session time zone: that of timestamps in the names of folders.
    replace_existing, properties, rules
        See `shallow_clone`.

    Raises
    ------
    UnsupportedOperationError
        A version is asked for, or the table at the target has files.
    DeltaError
        As `convert_to_delta` of the folder; see `shallow_clone` for the target.
    """
    if version is not None or timestamp is not None:
        raise CLONE_PARQUET_WITHOUT_VERSIONS(source=source.storage.url)
    check_reachable(source.storage.address, target.storage)
    txn = target.start_transaction(create=True)
    check_target(txn, replace_existing)
    files = source_files(source.storage)
    conversion = plan_conversion(source.storage, files, partition_schema, timezone, properties, rules=rules)
    root = address_uri(source.storage.address)
    adds: list[AddFile] = [
        {**add, "path": f"{root}/{add['path']}"} for add in conversion.adds(source.storage, files)
    ]
    txn.read_whole_table()
    conversion.definition.put_into(txn)
    txn.add_all(adds)
    result = CloneResult(sum(add["size"] for add in adds), len(adds), 0, 0, 0, 0, _NO_VERSION)
    where = address_text(source.storage.address)
    parameters = {"source": f"parquet.`{where}`", "sourceVersion": _NO_VERSION}
    txn.commit(CLONE, parameters, clone_metrics(result))
    return result
