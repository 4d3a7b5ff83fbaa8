"""CREATE and REPLACE TABLE: the protocol, metadata and domains of a new table.

Source: PROTOCOL.md, "Change Metadata"; protocol-checklist section 7, PRO-W-08, CLU-W-02; delta-spark,
`CreateDeltaTableCommand`.

Whether a table may come to be at a place: what else lies there would become its own, and VACUUM would delete it.

Source: delta-spark, `CreateDeltaTableCommand.assertPathEmpty`.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.commands import (
    CREATE_EXTERNAL_TABLE_WITHOUT_TXN_LOG,
    CREATE_TABLE_OVER_FILES,
)
from delta_ds.conditions.options import (
    CLUSTER_BY_WITH_PARTITIONED_BY,
    CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE,
)
from delta_ds.conditions.tables import (
    CANNOT_REPLACE_MISSING_TABLE,
    CREATE_TABLE_SCHEME_MISMATCH,
    CREATE_TABLE_WITH_DIFFERENT_CLUSTERING,
    CREATE_TABLE_WITH_DIFFERENT_PARTITIONING,
    CREATE_TABLE_WITH_DIFFERENT_PROPERTY,
    SCHEMA_NOT_PROVIDED,
)
from delta_ds.events.log import CREATE_OR_REPLACE_KEPT
from delta_ds.exceptions import TableExistsError
from delta_ds.kernel.format import features
from delta_ds.kernel.format import iceberg_compatibility as compatibility
from delta_ds.kernel.format.actions import CLUSTERING_DOMAIN, Metadata
from delta_ds.kernel.format.operations import CREATE_OR_REPLACE_TABLE, CREATE_TABLE, REPLACE_TABLE
from delta_ds.kernel.format.properties import (
    COLUMN_MAPPING_MAX_ID,
    COLUMN_MAPPING_MODE,
    CONSTRAINT_PREFIX,
    ENABLE_DELETION_VECTORS,
    ENABLE_ROW_TRACKING,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    STRICT,
    PropertyRules,
)
from delta_ds.kernel.format.schema.column_mapping import mapping_mode, strip, transform_fields
from delta_ds.kernel.format.schema.column_paths import parse_path, show
from delta_ds.kernel.format.schema.types import StructType, schema_to_json
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.filenames import LOG_DIRECTORY
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.transaction.alter import clustering
from delta_ds.kernel.transaction.alter.definitions import check_columns, check_constraint
from delta_ds.kernel.transaction.alter.properties import PropertyInputs, parse_properties
from delta_ds.kernel.transaction.alter.protocol import minimal_protocol, weakest_protocol
from delta_ds.kernel.transaction.alter.table_metadata import check_new_schema, finalize_metadata
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.transaction.table_log import TableLog
    from delta_ds.kernel.transaction.transaction import Transaction


def check_place_is_free(storage: Storage, *, has_columns: bool = True) -> None:
    """Refuse a place that holds anything, where there is no table.

    Parameters
    ----------
    storage
        Of the place; what a catalog has made ready is free.
    has_columns
        Whether the table is described; else it was expected to be there.

    Raises
    ------
    TableExistsError
        There is something, and no table.
    """
    if storage.managed:
        return
    first = _first_entry(storage)
    if first is None:
        return
    refusal = CREATE_TABLE_OVER_FILES if has_columns else CREATE_EXTERNAL_TABLE_WITHOUT_TXN_LOG
    raise refusal(tableId=storage.url, tableLocation=storage.url, file=first)


def _first_entry(storage: Storage) -> str | None:
    """The path of any file or folder, but for those of a log without versions; None where there is none."""
    for batch in storage.list_below("", lambda folder: False):
        for path in batch["path"].to_pylist():
            if path.split("/", 1)[0] != LOG_DIRECTORY:
                return str(path)
    return None


# A table that is replaced keeps it unless told otherwise, as with delta-spark.

CREATE, IF_NOT_EXISTS, REPLACE, CREATE_OR_REPLACE, ADOPT, REPLACE_OR_CREATE = (
    "create",
    "create_if_not_exists",
    "replace",
    "create_or_replace",
    "adopt",
    "replace_or_create",
)


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A checked new table: the protocol, metadata and domains of its first commit.

    Attributes
    ----------
    state
        Protocol, metadata, and the metadata domains to set; at the version that the table takes the place of.
    """

    state: TableState

    @property
    def domains(self) -> Mapping[str, str]:
        """The metadata domains to set, by name."""
        return self.state.domains or {}

    def parameters(self, *, managed: bool = False) -> dict[str, Any]:
        """The `operationParameters` of the commit, as delta-spark writes them."""
        return creation_parameters(self.state, managed=managed)

    def put_into(self, txn: Transaction) -> None:
        """Put protocol, metadata and domains into the transaction that creates or replaces the table."""
        snapshot = txn.base
        if snapshot is None or self.state.protocol != snapshot.protocol:
            txn.set_protocol(self.state.protocol)
        txn.set_metadata(self.state.metadata)
        set_domains(txn, self.domains, replaces_table=True)


def creation_parameters(
    state: TableState, *, managed: bool = False, cluster_by: Sequence[str] | None = None
) -> dict[str, Any]:
    """The `operationParameters` of a commit that makes a table, as delta-spark writes them.

    Parameters
    ----------
    managed
        Whether the table's folder belongs to a catalog.
    cluster_by
        The clustering columns that the call names; None: those of the table.
    """
    if cluster_by is None:
        cluster_by = [".".join(path) for path in state.clustering_columns]
    return {
        "partitionBy": list(state.partition_columns),
        "clusterBy": list(cluster_by),
        "description": state.metadata.description,
        "isManaged": str(managed).lower(),
        "properties": json.dumps(dict(state.properties), separators=(",", ":"), ensure_ascii=False),
    }


def set_domains(txn: Transaction, domains: Mapping[str, str], *, replaces_table: bool) -> None:
    """Set metadata domains; a table that takes the place of another is not clustered unless they say so."""
    replaced = txn.base if replaces_table else None
    if replaced is not None and CLUSTERING_DOMAIN not in domains and CLUSTERING_DOMAIN in replaced.domains:
        txn.remove_domain_metadata(CLUSTERING_DOMAIN)
    for domain, configuration in domains.items():
        txn.set_domain_metadata(domain, configuration)


def new_table(
    schema: StructType,
    partition_columns: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    cluster_by: Sequence[str] = (),
    table: str = "the table",
    replacing: Snapshot | None = None,
    without_columns: bool = False,
    defaults: Mapping[str, str] | None = None,
    rules: PropertyRules = STRICT,
) -> TableDefinition:
    """Check the description of a new table, and decide its protocol, ids and physical names.

    Parameters
    ----------
    schema
        Logical schema; generated, identity and default columns by the metadata of their fields.
    partition_columns
        Top-level names in any case.
    properties, defaults, rules
        See `parse_properties`.
    name, description
        Free text in the table's metadata.
    cluster_by
        Columns as written in Spark SQL, at most four.
    table
        The table's address, for messages.
    replacing
        The version it takes the place of: the table gets another id, so that streams tell the two apart, and its
        features stay supported.
    without_columns
        Whether it may have none, which it is given later.

    Returns
    -------
    TableDefinition
        For a transaction's first commit, or for one that also removes all files.

    Raises
    ------
    DeltaError
        Naming the column, property or feature in the way; nothing was written.
    """
    inputs = parse_properties(properties or {}, rules, defaults=defaults, creates=True)
    stored = compatibility.of_new_table(inputs.stored)
    description = stored.pop("comment", description)
    mode = COLUMN_MAPPING_MODE.of(stored)
    schema = strip(schema)
    if not without_columns:
        _check_has_columns(schema, table)
    check_new_schema(schema, partition_columns, mode, table)
    partitioning = tuple(found.name for c in partition_columns if (found := schema.find(c)))
    if replacing is not None:
        check_replacement(replacing, partitioning)
    _check_constraints(stored, schema, table)
    extra = set(inputs.features) | ({features.CLUSTERING.name} if cluster_by else set())
    metadata = Metadata(
        id=str(uuid.uuid4()),
        schema_string=schema_to_json(schema),
        partition_columns=partitioning,
        configuration=_with_kept_properties(stored, replacing),
        name=name if name is not None or replacing is None else replacing.metadata.name,
        description=description,
        created_time=time.time_ns() // 1_000_000,
    )
    protocol = minimal_protocol(metadata, extra, inputs.reader, inputs.writer)
    if replacing is not None:
        old = replacing.protocol
        protocol = weakest_protocol(protocol.supported | old.supported, old.reader_features or ())
    check_columns(schema, partitioning, protocol.supported, table)
    metadata = finalize_metadata(metadata, None, table, protocol.supported, keep_names=False)
    before = replacing.metadata if replacing is not None else None
    compatibility.check_description(metadata, protocol.supported, before, table)
    paths = _clustering(cluster_by, schema, metadata, table)
    version = -1 if replacing is None else replacing.version
    state = TableState(table, version, protocol, metadata, _domains(paths, metadata))
    state.check_writable()
    return TableDefinition(state)


def check_replacement(before: Snapshot, partition_columns: Sequence[str]) -> None:
    """Refuse partitions where clustering is supported, which a table that replaces another keeps."""
    changes = list(partition_columns) != before.partition_columns
    if partition_columns and changes and before.protocol.supports(features.CLUSTERING):
        raise CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE(
            table=before.storage.url, partition_columns=partition_columns
        )


def _check_has_columns(schema: StructType, table: str) -> None:
    if not schema.fields:
        raise SCHEMA_NOT_PROVIDED(table=table)


def _check_constraints(properties: Mapping[str, str], schema: StructType, table: str) -> None:
    for name, expression in properties.items():
        if name.startswith(CONSTRAINT_PREFIX):
            check_constraint(name[len(CONSTRAINT_PREFIX) :], expression, schema, table)


def _with_kept_properties(properties: Mapping[str, str], replacing: Snapshot | None) -> dict[str, str]:
    """The properties of a table with those that outlast its replacement: of deletion vectors, column and row ids."""
    if replacing is None:
        return dict(properties)
    before = replacing.metadata.configuration
    kept = [ENABLE_DELETION_VECTORS.name]
    if COLUMN_MAPPING_MODE.of(properties) != "none":
        kept.append(COLUMN_MAPPING_MAX_ID.name)
    if ENABLE_ROW_TRACKING.of(properties):
        kept += [ROW_ID_COLUMN.name, ROW_COMMIT_VERSION_COLUMN.name]
    return {**properties, **{k: before[k] for k in kept if k in before and k not in properties}}


def _clustering(
    columns: Sequence[str], schema: StructType, metadata: Metadata, table: str
) -> list[tuple[str, ...]]:
    if columns and metadata.partition_columns:
        raise CLUSTER_BY_WITH_PARTITIONED_BY(
            table=table, partition_columns=metadata.partition_columns, columns=columns
        )
    return clustering.resolve_columns(schema, columns, metadata.configuration, table)


def _domains(paths: Sequence[tuple[str, ...]], metadata: Metadata) -> dict[str, str]:
    if not paths:
        return {}
    mode = mapping_mode(metadata.configuration, supported=True)
    return {CLUSTERING_DOMAIN: clustering.domain_text(metadata.schema, paths, mode)}


def create_table(
    log: TableLog,
    schema: StructType,
    partition_columns: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    *,
    mode: str = CREATE,
    name: str | None = None,
    description: str | None = None,
    cluster_by: Sequence[str] = (),
    defaults: Mapping[str, str] | None = None,
    managed: bool = False,
    without_columns: bool = False,
    rules: PropertyRules = STRICT,
) -> int | None:
    """Create a table without rows, or replace one.

    Parameters
    ----------
    log
        Where it shall be.
    schema, partition_columns, properties, name, description, cluster_by
        What it shall be; see `new_table`.
    mode
        `create`, `create_if_not_exists`, `replace`, `create_or_replace`, `adopt` or `replace_or_create`.
        `create_or_replace` and `adopt` leave a table of the same columns and partitioning as it is and refuse any
        other, as delta-spark does for tables by path; `replace_or_create` replaces it, whatever it is.
    defaults
        Properties that the table has where `properties` do not name them.
    managed
        Whether the table's folder belongs to a catalog, which the history tells.
    without_columns, rules
        See `new_table`.

    Returns
    -------
    int or None
        The version committed; None where there was a table already and nothing was done.

    Raises
    ------
    TableExistsError
        `create`, and there is a table; `create_or_replace`, and it is another one; there are files at the place that
        belong to no table.
    NotADeltaTableError
        `replace`, and there is none.
    DeltaError
        As `new_table`.
    """
    table = log.storage.url
    if mode in (REPLACE, CREATE_OR_REPLACE, REPLACE_OR_CREATE) and not without_columns:
        _check_has_columns(schema, table)
    txn = log.start_transaction(create=True)
    if txn.base is None:
        if mode == REPLACE:
            raise CANNOT_REPLACE_MISSING_TABLE(tableName=table)
        check_place_is_free(log.storage, has_columns=bool(schema.fields))
        creates = mode in (CREATE, IF_NOT_EXISTS, ADOPT)
        operation = CREATE_TABLE if creates else CREATE_OR_REPLACE_TABLE
    elif mode == CREATE:
        raise TableExistsError(
            f"Table {table} already exists (version {txn.read_version}); use createIfNotExists, replace or "
            "createOrReplace. Nothing was written",
            parameters={"tableName": table},
        )
    elif mode == IF_NOT_EXISTS:
        return None
    elif mode in (CREATE_OR_REPLACE, ADOPT):
        if schema.fields:
            _check_same(txn.base, schema, partition_columns, cluster_by or ())
        inputs = parse_properties(properties or {}, rules)
        if mode == ADOPT:
            _check_same_properties(txn.base, inputs)
        CREATE_OR_REPLACE_KEPT.log(table=table, version=txn.read_version)
        return None
    else:
        operation = REPLACE_TABLE if mode == REPLACE else CREATE_OR_REPLACE_TABLE
    definition = new_table(
        schema, partition_columns, properties, name=name, description=description, cluster_by=cluster_by,
        table=table, replacing=txn.base, without_columns=without_columns, defaults=defaults, rules=rules,
    )  # fmt: skip
    if txn.base is not None:
        txn.read_whole_table()
        txn.remove_live(None)
    definition.put_into(txn)
    return txn.commit(operation, definition.parameters(managed=managed))


def _check_same(
    snapshot: Snapshot, schema: StructType, partition_columns: Sequence[str], cluster_by: Sequence[str]
) -> None:
    table = snapshot.storage.url
    wanted = [c.lower() for c in partition_columns]
    asked = [show(parse_path(column)).lower() for column in cluster_by]
    clustered = [show(tuple(path)) for path in snapshot.clustering_columns]
    for same, mismatch in (
        (_shape(schema) == _shape(snapshot.schema), CREATE_TABLE_SCHEME_MISMATCH),
        (wanted == [c.lower() for c in snapshot.partition_columns], CREATE_TABLE_WITH_DIFFERENT_PARTITIONING),
        (asked == [c.lower() for c in clustered], CREATE_TABLE_WITH_DIFFERENT_CLUSTERING),
    ):
        if not same:
            raise mismatch(
                path=table,
                version=snapshot.version,
                schema=snapshot.schema,
                partition_columns=snapshot.partition_columns,
                clustering_columns=clustered,
            )


def _check_same_properties(snapshot: Snapshot, wanted: PropertyInputs) -> None:
    """Refuse properties for a table that is there, unless they are the ones it has."""
    found = {name: text for name, text in snapshot.properties.items() if name != COLUMN_MAPPING_MAX_ID.name}
    if wanted.stored and dict(wanted.stored) != found:
        raise CREATE_TABLE_WITH_DIFFERENT_PROPERTY(
            path=snapshot.storage.url, version=snapshot.version, given=dict(wanted.stored), found=found
        )


def _shape(schema: StructType) -> StructType:
    """The columns as users see them: names, types, nullability, comments."""
    return transform_fields(
        schema, lambda field: replace(field, metadata={"comment": field.metadata.get("comment")})
    )
