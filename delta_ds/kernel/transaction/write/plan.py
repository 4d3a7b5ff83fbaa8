"""The plan of a write, made on the driver before any row is read.

The plan pins the version that the write starts from and holds all that tasks need: how rows become rows of the
table (`RowPlan`) and how they are laid into files (`WriteSpec`). What cannot be honoured is refused here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from delta_ds.conditions.catalog import NO_TABLE_AT_PATH
from delta_ds.conditions.options import (
    CLUSTERING_COLUMNS_MISMATCH,
    DATA_CHANGE_FALSE,
    DATA_CHANGE_FALSE_OF_NEW_TABLE,
    REPLACE_ON_OR_USING_NEEDS_SESSION,
)
from delta_ds.events.log import PROPERTY_PASSED_OVER
from delta_ds.kernel.files.rows.casts import can_store
from delta_ds.kernel.files.rows.checks import Condition
from delta_ds.kernel.files.rows.generated import plan_identities
from delta_ds.kernel.files.rows.plan import ColumnsOf, RowPlan, plan_rows
from delta_ds.kernel.files.write.write_spec import WriteSpec, write_spec
from delta_ds.kernel.format.actions import CLUSTERING_DOMAIN, clustering_paths
from delta_ds.kernel.format.expressions.tree import columns
from delta_ds.kernel.format.features import CLUSTERING, TYPE_WIDENING
from delta_ds.kernel.format.iceberg_compatibility import enabled_version, of_new_table
from delta_ds.kernel.format.options.settings import default_properties
from delta_ds.kernel.format.options.write import WriteOptions
from delta_ds.kernel.format.properties import (
    FEATURE_PREFIX,
    OPTIMIZE_WRITE,
    TARGET_FILE_SIZE,
    check_property,
    check_together,
)
from delta_ds.kernel.format.schema.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    schema_to_json,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.transaction.alter import clustering
from delta_ds.kernel.transaction.alter.create import check_replacement, new_table
from delta_ds.kernel.transaction.alter.properties import with_defaults
from delta_ds.kernel.transaction.alter.table_metadata import check_no_void, with_metadata
from delta_ds.kernel.transaction.validation import check_may_remove
from delta_ds.kernel.transaction.write.intent import WriteIntent, WriteTarget
from delta_ds.kernel.transaction.write.overwrite_scope import (
    JOINED,
    MATCHING,
    OverwriteScope,
    check_kept_files,
    plan_overwrite,
)
from delta_ds.kernel.transaction.write.schema_enforcement import (
    check_first_write,
    check_write,
    partition_columns_of,
)
from delta_ds.records import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A planned write. Can be pickled.

    Attributes
    ----------
    storage
        What the table lies on.
    state
        The effective protocol and metadata after the write, at the version that it starts from.
    intent
        What the write is asked to do.
    new_protocol, new_metadata
        Whether the write commits them.
    domains
        Metadata domains that the write sets.
    rows, files
        For the tasks: of structs both have the fields that the rows bring.
    overwrite_scope
        What an overwrite replaces.
    """

    storage: Storage
    state: TableState
    intent: WriteIntent
    new_protocol: bool
    new_metadata: bool
    rows: RowPlan
    files: WriteSpec
    overwrite_scope: OverwriteScope
    domains: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> WriteOptions:
        """Of the intent."""
        return self.intent.options

    @property
    def joins_small_files(self) -> bool:
        """Whether small files of one partition are joined before the commit, by the options or the table."""
        said = self.options.optimize_write
        return bool(OPTIMIZE_WRITE.of(self.state.properties) if said is None else said)

    @property
    def files_of_whole_rows(self) -> WriteSpec:
        """For files with rows that are in the table already, with all that these have."""
        return replace(self.files, schema=self.state.schema)

    @property
    def of_stored_rows(self) -> WritePlan:
        """The same for tasks that get rows in which all is computed and checked."""
        return replace(self, rows=replace(self.rows, defaults=(), generated=(), checks=()))

    @property
    def read_version(self) -> int:
        """The version that the write starts from; -1 for a table that it creates."""
        return self.state.version

    def in_time_zone(self, name: str) -> WritePlan:
        """The plan in the session time zone, which only tasks know."""
        if name == self.rows.timezone:
            return self
        overwrite_scope = plan_overwrite(self.intent, self.state, name, is_new=self.read_version < 0)
        return replace(
            self,
            rows=replace(self.rows, timezone=name),
            files=replace(self.files, timezone=name),
            overwrite_scope=overwrite_scope,
        )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The table after the write, the metadata domains to set, and the version that it comes from."""

    state: TableState
    domains: Mapping[str, str]
    before: Snapshot | None

    @property
    def new_protocol(self) -> bool:
        return self.before is None or self.state.protocol != self.before.protocol

    @property
    def new_metadata(self) -> bool:
        return self.before is None or self.state.metadata != self.before.metadata


def plan_write(
    target: WriteTarget,
    data: StructType,
    *,
    columns_of: ColumnsOf | None = None,
    joins: bool = False,
) -> WritePlan:
    """Plan a write of rows of a schema to a table, or to a new one.

    Parameters
    ----------
    target
        The table, and what the write is asked to do.
    data
        The schema of the rows.
    columns_of
        Given where another engine than `write_rows` evaluates the table's expressions, see `plan_rows`.
    joins
        Whoever asks finds the rows of the table that written ones take the place of, see `plan_replacement`.

    Raises
    ------
    SchemaError
        The rows do not fit the table.
    AppendOnlyError
        An overwrite of a table that only allows appends.
    InvalidOptionError
        An option or table property has a wrong value, or makes no sense for this table.
    UnsupportedFeatureError, PredicateError
        The table needs something of writers that is not supported, or holds an expression that cannot be
        evaluated here.
    InvariantViolationError
        A column that must have values has none.
    NotADeltaTableError
        Rows that match written ones are to be replaced, and there is no table.
    UnsupportedOperationError
        Rows that match written ones are to be replaced, and nobody finds them.
    """
    intent, snapshot, storage = target.intent, target.snapshot, target.storage
    options, streaming = intent.options, intent.streaming
    if streaming:
        check_no_void(data, storage.url)
    if snapshot is not None:
        snapshot.table_state.check_writable()
        if intent.overwrite and options.data_change and not options.replaces_everything:
            check_may_remove(snapshot, "overwrite")
    if snapshot is None and intent.replaces_matches:
        raise NO_TABLE_AT_PATH(path=storage.url)
    if snapshot is None or options.replace_table:
        outcome = _plan_new_table(storage, data, options, snapshot)
    else:
        outcome = _plan_existing_table(
            snapshot, _cast(data, snapshot, options) if streaming else data, intent
        )
        if intent.overwrite and not streaming:
            outcome = _without_clustering(outcome, options)
    zone = intent.time_zone
    state = outcome.state
    rows = plan_rows(data, state, timezone=zone, columns_of=columns_of, implicit=streaming)
    overwrite_scope = plan_overwrite(intent, state, zone, is_new=snapshot is None)
    if overwrite_scope.kind == JOINED and not joins:
        raise REPLACE_ON_OR_USING_NEEDS_SESSION(table=storage.url)
    if snapshot is not None and options.replace_table and overwrite_scope.kind == MATCHING:
        check_kept_files(snapshot, state)
    stored = state.schema
    # Readers of Iceberg want all fields in all files.
    if enabled_version(state) is None:
        stored = without_absent(state.schema, data, rows, overwrite_scope)
    if stored != state.schema:
        rows = plan_rows(data, state, timezone=zone, columns_of=columns_of, implicit=streaming, table=stored)
    if options.tasks is not None:
        rows = replace(rows, identities=tuple(replace(i, tasks=options.tasks) for i in rows.identities))
    files = write_spec(
        state,
        compression=options.compression,
        max_records_per_file=options.max_records_per_file,
        target_file_size=TARGET_FILE_SIZE.of(state.properties),
        timezone=zone,
        clustering_columns=_clustering_columns(outcome, options.replace_table),
    )
    return WritePlan(
        storage=storage,
        state=state,
        intent=intent,
        new_protocol=outcome.new_protocol,
        new_metadata=outcome.new_metadata,
        rows=overwrite_scope.guard(rows),
        files=replace(files, schema=stored),
        overwrite_scope=overwrite_scope,
        domains=outcome.domains,
    )


def _cast(data: StructType, snapshot: Snapshot, options: WriteOptions) -> StructType:
    """The schema of rows after the casts to the types of the table's columns."""
    # Where columns may become wider, values that are stored in the wider one are not cast.
    widens = options.merge_schema and snapshot.table_state.enabled(TYPE_WIDENING)

    def cast(field: StructField) -> StructField:
        column = snapshot.schema.find(field.name)
        if column is None or not can_store(field.type, column.type, implicit=True):
            return field
        return field if widens and can_store(field.type, column.type) else replace(field, type=column.type)

    return StructType(tuple(map(cast, data)))


def _plan_new_table(
    storage: Storage, data: StructType, options: WriteOptions, replacing: Snapshot | None
) -> _Outcome:
    if not options.data_change and replacing is None:
        raise DATA_CHANGE_FALSE_OF_NEW_TABLE(table=storage.url)
    partition_by = options.partition_by or ()
    said = options.definition
    given = {**options.properties, **(said.properties if said is not None else {})}
    defaults = default_properties(options.facts.settings)
    brought = of_new_table(with_defaults(given, defaults))
    schema = check_first_write(data, partition_by=partition_by, properties=brought, table_name=storage.url)
    table = new_table(
        schema,
        partition_columns_of(schema, partition_by, storage.url),
        given,
        defaults=defaults,
        rules=options.facts.property_rules,
        description=said.description if said is not None else None,
        cluster_by=options.cluster_by or (),
        table=storage.url,
        replacing=replacing,
    )
    return _Outcome(table.state, table.domains, replacing)


def _plan_existing_table(snapshot: Snapshot, data: StructType, intent: WriteIntent) -> _Outcome:
    """Protocol and metadata of an existing table after the write."""
    before = snapshot.metadata
    name = snapshot.storage.url
    options = intent.options
    _check_layout(snapshot, options)
    if intent.replaces_schema and not options.makes_table:
        # The columns of a table that stays, though the write ends them: delta-spark refuses these values too.
        given = {found.name for f in data if (found := snapshot.schema.find(f.name)) is not None}
        plan_identities(snapshot.schema, given, snapshot.table_state.protocol.supported, name)
    schema = check_write(
        snapshot.table_state,
        data,
        partition_by=options.partition_by or (),
        merge_schema=options.merge_schema,
        replaces_schema=intent.replaces_schema,
        overwrite=intent.overwrite,
    )
    partitioning = before.partition_columns
    if intent.replaces_schema:
        wanted = partition_columns_of(schema, options.partition_by or (), name)
        if (schema, wanted) == (snapshot.schema, partitioning):
            schema = snapshot.schema
        partitioning = wanted
        if options.definition is not None:
            check_replacement(snapshot, partitioning)
    if schema == snapshot.schema and partitioning == before.partition_columns:
        return _Outcome(snapshot.table_state, {}, snapshot)
    if not options.data_change:
        raise DATA_CHANGE_FALSE(table=name)
    wanted_metadata = replace(before, schema_string=schema_to_json(schema), partition_columns=partitioning)
    state = with_metadata(snapshot.table_state, wanted_metadata, keep_names=False)
    return _Outcome(state, {}, snapshot)


def _without_clustering(outcome: _Outcome, options: WriteOptions) -> _Outcome:
    """The table after a write whose clustering ends, as a whole overwrite names no clustering columns.

    Source: delta-spark, `ImplicitMetadataOperation.getNewDomainMetadata`.
    """
    before = outcome.before
    spares = options.replace_where is not None or options.replaces_matches
    if before is None or spares or options.cluster_by is not None:
        return outcome
    if not outcome.state.supports(CLUSTERING) or not before.clustering_columns:
        return outcome
    text = clustering.domain_text(outcome.state.schema, (), before.mapping_mode)
    return replace(outcome, domains={**outcome.domains, CLUSTERING_DOMAIN: text})


def _check_layout(snapshot: Snapshot, options: WriteOptions) -> None:
    """Properties are given to a new table, and passed over where there is one; its clustering must be as it is."""
    rules = options.facts.property_rules
    check_together(options.properties, rules)
    has = {name.lower(): text for name, text in snapshot.metadata.configuration.items()}
    for name, text in options.properties.items():
        if has.get(name.lower()) != text and not name.lower().startswith(FEATURE_PREFIX):
            check_property(name, text, rules)  # a mistyped name, or a wrong value, is told as such
            PROPERTY_PASSED_OVER.log(table=snapshot.storage.url, property=name, version=snapshot.version)
    if options.cluster_by is not None:
        columns = [".".join(path) for path in snapshot.clustering_columns]
        if [c.lower() for c in options.cluster_by] != [c.lower() for c in columns]:
            raise CLUSTERING_COLUMNS_MISMATCH(
                table=snapshot.storage.url, now=columns or "nothing", cluster_by=list(options.cluster_by)
            )


def _clustering_columns(outcome: _Outcome, is_new: bool) -> tuple[tuple[str, ...], ...]:
    """The physical paths of the clustering columns, which need statistics wherever they stand."""
    if not outcome.state.supports(CLUSTERING):
        return ()
    before = None if is_new or CLUSTERING_DOMAIN in outcome.domains else outcome.before
    return clustering_paths(outcome.domains if before is None else before.domains)


# --- fields of structs that the rows of a write do not have: data files leave them out, and readers take null for them
# As with delta-spark, whose files hold what the rows hold: nobody writes columns of nulls.
# Source: delta-spark, `TransactionalWrite.normalizeData`.


def without_absent(table: StructType, data: StructType, rows: RowPlan, scope: OverwriteScope) -> StructType:
    """The columns of a table with the fields that rows bring, and those that something asks for.

    Parameters
    ----------
    table
        The table's schema.
    data
        The schema of the rows, whose columns and fields are found ignoring case.
    rows, scope
        The plan of the same write for whole rows. Columns that its expressions read stay as they are.
    """
    read = _read_columns(rows, scope)
    fields = []
    for column in table:
        given = data.find(column.name)
        if given is not None and column.name.lower() not in read:
            column = replace(column, type=_narrowed(column.type, given.type))
        fields.append(column)
    return StructType(tuple(fields))


def _read_columns(rows: RowPlan, scope: OverwriteScope) -> Collection[str]:
    clauses = [check.clause for check in rows.checks if isinstance(check, Condition)]
    clauses += [generated.clause for generated in rows.generated]
    if scope.condition is not None:
        clauses.append(scope.condition.clause)
    return {column.path[0].lower() for clause in clauses for column in columns(clause.tree)}


def _narrowed(table: DataType, data: DataType) -> DataType:
    if isinstance(table, StructType) and isinstance(data, StructType):
        kept = []
        for column in table:
            given = data.find(column.name)
            if given is not None:
                kept.append(replace(column, type=_narrowed(column.type, given.type)))
            elif not column.nullable:
                kept.append(column)
        # A struct without fields cannot be written.
        return StructType(tuple(kept)) if kept else table
    if isinstance(table, ArrayType) and isinstance(data, ArrayType):
        return replace(table, element=_narrowed(table.element, data.element))
    if isinstance(table, MapType) and isinstance(data, MapType):
        key, value = _narrowed(table.key, data.key), _narrowed(table.value, data.value)
        return replace(table, key=key, value=value)
    return table
