"""The plan of DELETE, UPDATE and MERGE, made before any row is read.

Source: delta-spark, `DeleteCommand`, `UpdateCommand`, `MergeIntoCommand`.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence

from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.commands.dml.candidates import CandidateFiles, Rewritten, files_rows
from delta_ds.kernel.files.read.file_columns import ROW_TRACKING_FIELDS
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan, file_slices
from delta_ds.kernel.files.rows.generated import generation_expression, is_identity
from delta_ds.kernel.files.rows.plan import ColumnsOf, plan_changed_rows
from delta_ds.kernel.files.write.write_spec import write_spec
from delta_ds.kernel.format.features import (
    CHANGE_DATA_FEED,
    COLUMN_DEFAULTS,
    DELETION_VECTORS,
)
from delta_ds.kernel.format.options.settings import SessionFacts
from delta_ds.kernel.format.properties import (
    TARGET_FILE_SIZE,
)
from delta_ds.kernel.format.schema.column_paths import HIDDEN
from delta_ds.kernel.format.schema.field_metadata import CURRENT_DEFAULT
from delta_ds.kernel.format.schema.types import LONG, StructField, StructType, schema_to_json
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.transaction.alter.table_metadata import with_metadata
from delta_ds.kernel.transaction.validation import check_may_remove
from delta_ds.kernel.transaction.write.intent import WriteIntent, WriteTarget, command_intent
from delta_ds.kernel.transaction.write.overwrite_scope import NOTHING, OverwriteScope
from delta_ds.kernel.transaction.write.plan import WritePlan, plan_write
from delta_ds.records import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class DmlPlan:
    """A planned change of rows. Can be pickled.

    Attributes
    ----------
    write
        How rows become rows of the table and are laid into files, and what the table is afterwards.
    records_changes
        Whether change files are written.
    tracked
        Whether rows keep their row ids: what is written brings them along.
    uses_deletion_vectors
        Whether rows are deleted by deletion vectors, and their files left as they are.
    folder
        Of its own, inside the table: where files are written, so that all can be deleted if the change fails.
    new_rows
        How new rows are written, where they are those of a write; None: as changed ones.
    """

    write: WritePlan
    records_changes: bool
    tracked: bool
    uses_deletion_vectors: bool
    folder: str = field(default_factory=lambda: str(uuid.uuid4()))
    new_rows: WritePlan | None = None

    def inserts_beside(self, changed_rows: int) -> WritePlan:
        """How new rows are written: nothing of theirs is to be kept, and ids follow from where they come to lie.

        Parameters
        ----------
        changed_rows
            How many rows of the table the command changes. Where it changes none, new files tell readers of the change
            feed all there is to tell, and no change files are written.
        """
        plan = self.new_rows
        if plan is None:
            plan = replace(self.write, files=replace(self.write.files, extra_columns=()))
        if changed_rows:
            return plan
        return replace(plan, overwrite_scope=replace(plan.overwrite_scope, records_changes=False))

    def replaced_files(self, files: CandidateFiles, rewritten: Rewritten) -> list[str]:
        """The paths of those files that were rewritten; none where rows are marked instead."""
        if self.uses_deletion_vectors:
            return []
        paths: list[str] = files.only(rewritten.files).paths.to_pylist()
        return paths


def plan_dml(
    snapshot: Snapshot,
    *,
    after: TableState | None = None,
    computed: Collection[str] = (),
    generates: Collection[str] = (),
    timezone: str = "UTC",
    columns_of: ColumnsOf | None = None,
    facts: SessionFacts | None = None,
) -> DmlPlan:
    """Plan a change of rows of a version.

    Parameters
    ----------
    snapshot
        The version.
    after
        The table after the change, where it evolves the schema; None: as it is.
    computed
        Generated columns that are computed from the changed row.
    generates
        Identity columns that are null in rows which shall get a value.
    timezone
        The session time zone.
    columns_of
        Given where another engine evaluates the table's expressions, see `plan_rows`.
    facts
        What the session says of the files that are written.

    Raises
    ------
    UnsupportedFeatureError, PredicateError
        The table needs something of writers that is not supported, or holds an expression that cannot be
        evaluated here.
    """
    name = snapshot.storage.url
    snapshot.table_state.check_writable()
    state = after or snapshot.table_state
    records_changes = state.enabled(CHANGE_DATA_FEED)
    rows = plan_changed_rows(
        state, computed=computed, generates=generates, timezone=timezone, columns_of=columns_of
    )
    session = facts or SessionFacts()
    intent = command_intent(name, session)
    files = write_spec(
        state,
        compression=session.codec,
        max_records_per_file=intent.options.max_records_per_file,
        target_file_size=TARGET_FILE_SIZE.of(state.properties),
        timezone=timezone,
        clustering_columns=snapshot.clustering_paths,
        extra_columns=tuple(StructField(name, LONG) for name in state.row_tracking_columns),
    )
    write = WritePlan(
        storage=snapshot.storage, state=state, intent=intent,
        new_protocol=state.protocol != snapshot.protocol, new_metadata=state.metadata != snapshot.metadata,
        rows=rows, files=files, overwrite_scope=OverwriteScope(NOTHING, records_changes=records_changes),
    )  # fmt: skip
    return DmlPlan(
        write=write,
        records_changes=records_changes,
        tracked=bool(state.row_tracking_columns),
        uses_deletion_vectors=state.enabled(DELETION_VECTORS),
    )


def plan_replacement(
    snapshot: Snapshot, intent: WriteIntent, data: StructType, *, columns_of: ColumnsOf | None = None
) -> DmlPlan:
    """Plan a write whose rows take the place of those rows of a version that match them.

    Parameters
    ----------
    snapshot
        The version.
    intent
        What the write is asked to do.
    data
        The schema of its rows.
    columns_of
        As of `plan_write`.

    Raises
    ------
    DeltaError
        As of `plan_write`.
    """
    target = WriteTarget(intent, snapshot.storage, snapshot)
    new_rows = plan_write(target, data, columns_of=columns_of, joins=True)
    state = new_rows.state
    tracking = tuple(StructField(name, LONG) for name in state.row_tracking_columns)
    return DmlPlan(
        write=replace(new_rows, files=replace(new_rows.files_of_whole_rows, extra_columns=tracking)),
        records_changes=new_rows.overwrite_scope.records_changes,
        tracked=bool(tracking),
        uses_deletion_vectors=state.enabled(DELETION_VECTORS),
        new_rows=new_rows,
    )


def check_changeable(snapshot: Snapshot, operation: str, removes: bool) -> None:
    """Refuse changes of rows that the table does not allow or that this package cannot make.

    Parameters
    ----------
    operation
        For the message.
    removes
        Whether rows are changed or removed.

    Raises
    ------
    UnsupportedFeatureError
        The table needs something of writers that is not supported.
    AppendOnlyError
        Rows of the table must not be changed.
    """
    snapshot.table_state.check_writable()
    if removes:
        check_may_remove(snapshot, operation)


def check_names(names: Iterable[str], of: str, table: str, operation: str) -> None:
    """Refuse columns with the names that a command gives to its hidden columns.

    Parameters
    ----------
    names
        Of the columns.
    of
        Whose they are, for the message: `table`, `source`.
    table, operation
        For the message.

    Raises
    ------
    UnsupportedOperationError
        Such a column would be taken for the command's own.
    """
    own = [name for name in names if name.lower().startswith(HIDDEN)]
    if own:
        raise UnsupportedOperationError(
            f"the {of} has a column {own[0]!r}, but in {operation} on {table} names that begin with {HIDDEN} are kept "
            f"for places of rows and the like. Rename the column. Nothing was written"
        )


def generated_columns(snapshot: Snapshot) -> list[str]:
    """The names of the columns that are computed from others."""
    return list(special_columns(snapshot).generated)


@dataclass(frozen=True, slots=True)
class SpecialColumns:
    """Columns whose values the table can supply: generated, identity and default columns. Can be pickled.

    Attributes
    ----------
    generated, defaults
        SQL by the name of the column.
    identities
        Names.
    """

    generated: dict[str, str]
    defaults: dict[str, str]
    identities: tuple[str, ...]


def special_columns(snapshot: Snapshot) -> SpecialColumns:
    """The columns of a version that incoming rows need not have."""
    supported = snapshot.protocol.supported
    generated = {f.name: generation_expression(f, supported) for f in snapshot.schema}
    defaults = {}
    if COLUMN_DEFAULTS.name in supported:
        defaults = {f.name: f.metadata.get(CURRENT_DEFAULT) for f in snapshot.schema}
    return SpecialColumns(
        {name: text for name, text in generated.items() if text is not None},
        {name: text for name, text in defaults.items() if isinstance(text, str)},
        tuple(f.name for f in snapshot.schema if is_identity(f, supported)),
    )


def evolve_table(snapshot: Snapshot, schema: StructType) -> TableState:
    """A version once it has another schema.

    Raises
    ------
    SchemaError
        The table cannot have the schema.
    """
    evolved = replace(snapshot.metadata, schema_string=schema_to_json(schema))
    return with_metadata(snapshot.table_state, evolved, keep_names=False)


# --- the plan of the files that are rewritten


@dataclass(frozen=True, slots=True)
class FileRewrite:
    """How files are rewritten in which rows change. Can be pickled.

    Attributes
    ----------
    change
        How changed rows become rows of the table, and how files are written.
    reading
        How the files are read: as the table is after the change.
    files
        By their numbers.
    rows
        How many rows that are not deleted a file has, by its number, where the log says it.
    actions
        By the number of a clause, what it does: `UPDATE` or `DELETE`.
    repeated
        Whether a row may be named several times; it is then changed once.
    """

    change: DmlPlan
    reading: ReadPlan
    files: Mapping[int, FileSlice]
    rows: Mapping[int, int]
    actions: tuple[int, ...]
    repeated: bool = False


def plan_file_rewrite(
    snapshot: Snapshot,
    change: DmlPlan,
    files: CandidateFiles,
    actions: Sequence[int],
    *,
    repeated: bool = False,
) -> FileRewrite:
    """Plan to rewrite files of a version in which rows may change; parameters as attributes of `FileRewrite`."""
    table = snapshot.live_files().table.take(files_rows(snapshot, files))
    numbers = files.numbers.to_pylist()
    slices = file_slices(table, snapshot.physical_partition_columns)
    known = zip(numbers, files.rows.to_pylist(), strict=True)
    state = change.write.state
    return FileRewrite(
        change=change,
        reading=ReadPlan.of(
            state,
            version=snapshot.version,
            timezone=change.write.rows.timezone,
            metadata_columns=("row_index", *(ROW_TRACKING_FIELDS if change.tracked else ())),
        ),
        files=dict(zip(numbers, slices, strict=True)),
        rows={number: rows for number, rows in known if rows is not None},
        actions=tuple(actions),
        repeated=repeated,
    )
