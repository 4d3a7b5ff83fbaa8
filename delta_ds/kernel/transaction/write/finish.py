"""The commit of a write: its tasks' files become one version, or are deleted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from delta_ds.exceptions import DeltaConcurrentModificationException
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.files.write.writer import FileWriter
from delta_ds.kernel.format.actions import AddFile, Metadata
from delta_ds.kernel.format.operations import (
    CREATE_OR_REPLACE_TABLE_AS_SELECT,
    CREATE_TABLE_AS_SELECT,
    WRITE,
)
from delta_ds.kernel.format.options.write import ERROR, IGNORE, NewTableOptions
from delta_ds.kernel.format.schema.field_metadata import IDENTITY_HIGH_WATER_MARK
from delta_ds.kernel.format.schema.types import StructField, StructType, schema_to_json
from delta_ds.kernel.log.snapshot import Snapshot, open_snapshot
from delta_ds.kernel.storage.staging import StagedFiles, discard
from delta_ds.kernel.transaction import origin
from delta_ds.kernel.transaction.alter.create import creation_parameters, set_domains
from delta_ds.kernel.transaction.transaction import Transaction
from delta_ds.kernel.transaction.write.intent import keeps_existing_table
from delta_ds.kernel.transaction.write.overwrite import RemovedFiles, remove_replaced
from delta_ds.kernel.transaction.write.overwrite_scope import MATCHING
from delta_ds.kernel.transaction.write.plan import WritePlan
from delta_ds.kernel.transaction.write.task import TaskResult
from delta_ds.records import dataclass, replace
from delta_ds.reporting.listeners import leave_reports

# Spark's save modes, as delta-spark's history shows them.
_MODES = {None: "Append", ERROR: "ErrorIfExists", IGNORE: "Ignore"}
_IDENTITY_ONLY = {"delta.identity.schemaUpdate": "true"}


@dataclass(frozen=True, slots=True)
class OperationDetails:
    """The name, parameters and metrics in the history of a write that is no plain WRITE.

    Attributes
    ----------
    name, parameters
        As delta-spark has them.
    metrics
        From the metrics of a plain write to those of the operation.
    """

    name: str
    parameters: Mapping[str, Any]
    metrics: Callable[[Mapping[str, Any]], Mapping[str, Any]]


def finish_write(
    plan: WritePlan,
    results: Sequence[TaskResult],
    transaction: Transaction | None = None,
    *,
    engine_info: str | None = None,
    operation: OperationDetails | None = None,
    staged: StagedFiles | None = None,
) -> int | None:
    """Commit what the tasks of a write have written.

    Parameters
    ----------
    plan
        From `plan_write`.
    results
        Of every task.
    transaction
        On the version that the write was planned for, where one is open already.
    engine_info
        Who writes, for the history; the kernel's own name by default.
    operation
        What the history calls the write; WRITE by default.
    staged
        The owner of the files of `results`, where there is one already.

    Returns
    -------
    int or None
        The version; None where there was nothing to commit: no rows to add or to replace, or `ifExists` is `ignore`,
        and there is a table since the write was planned.

    Raises
    ------
    TableExistsError
        `ifExists` is `error`, and there is a table since the write was planned.
    DeltaConcurrentModificationException
        Another commit came first and contradicts the write. As with every other failure the files
        of the write are deleted, except where a version may name them (`UncertainWriteError`, interrupts).
    """
    with leave_reports(plan.options.report_folder), origin.carried(plan.options.facts.settings):
        return _finish(plan, results, transaction, engine_info, operation, staged)


def _finish(
    plan: WritePlan,
    results: Sequence[TaskResult],
    transaction: Transaction | None,
    engine_info: str | None,
    operation: OperationDetails | None,
    staged: StagedFiles | None,
) -> int | None:
    zone = next((r.timezone for r in results if r.timezone is not None), None)
    if zone is not None:
        plan = plan.in_time_zone(zone)
    with staged or staged_files(plan, results) as staged:
        try:
            adds = join_small_files(plan, [add for r in results for add in r.adds], staged)
            if transaction is None:
                transaction = Transaction(plan.storage, _read_snapshot(plan), engine_info=engine_info)
            if plan.options.read_version is not None:
                # The rows come from the table itself: whatever changes it in the meantime contradicts them.
                transaction.read_whole_table()
            removed = RemovedFiles()
            if plan.intent.overwrite:
                if transaction.base is None:
                    transaction.read_whole_table()
                else:
                    removed = remove_replaced(plan, transaction, transaction.base, adds, staged)
            if _changes_nothing(plan, adds, removed):
                return None
            return _commit(plan, transaction, results, adds, removed, operation, staged)
        except DeltaConcurrentModificationException as error:
            # Another one made the table since the write was planned.
            created = plan.read_version < 0
            if created and keeps_existing_table(plan.options, error.winning_version or 0, plan.storage.url):
                return None
            raise


def staged_files(plan: WritePlan, results: Sequence[TaskResult]) -> StagedFiles:
    """The owner of the files that tasks wrote."""
    return StagedFiles(plan.storage, [path for result in results for path in result.paths])


def _read_snapshot(plan: WritePlan) -> Snapshot | None:
    return open_snapshot(plan.storage, plan.read_version) if plan.read_version >= 0 else None


def _changes_nothing(plan: WritePlan, adds: Sequence[AddFile], removed: RemovedFiles) -> bool:
    """Whether a write makes no version, as in delta-spark: no files, no new metadata, protocol or `txn`."""
    described = plan.new_metadata or plan.new_protocol or plan.domains or plan.options.definition is not None
    brings = described or plan.options.txn_app_id is not None
    return not (adds or removed.files or brings)


def _commit(
    plan: WritePlan,
    transaction: Transaction,
    results: Sequence[TaskResult],
    adds: Sequence[AddFile],
    removed: RemovedFiles,
    operation: OperationDetails | None,
    staged: StagedFiles,
) -> int:
    options = plan.options
    tags = set_table(plan, transaction, results)
    if options.txn is not None:
        transaction.depend_on_app_id(options.txn[0])
        transaction.set_txn(*options.txn)
    for body in (*adds, *removed.adds):
        transaction.add(body if options.data_change else {**body, "dataChange": False})
    for change in (*(c for r in results for c in r.changes), *removed.changes):
        transaction.cdc(change)
    metrics = _metrics(plan, results, adds, removed)
    if operation is None and options.definition is not None:
        operation = _creation(plan, options.definition)
    return transaction.commit(
        WRITE if operation is None else operation.name,
        write_parameters(plan) if operation is None else operation.parameters,
        metrics if operation is None else operation.metrics(metrics),
        user_metadata=options.user_metadata,
        tags=tags,
        staged=staged,
    )


def _creation(plan: WritePlan, definition: NewTableOptions) -> OperationDetails | None:
    """What the history tells of a table that was made, or replaced, with its rows; None: that it was written to.

    Source: delta-spark, `DeltaOperations.CreateTable`, `ReplaceTable`, and `WriteIntoDelta` for `replaceWhere`.
    """
    replaces, options = definition.operation != CREATE_TABLE_AS_SELECT.name, plan.options
    spares = options.replace_where is not None or options.replaces_matches
    if definition.operation == CREATE_OR_REPLACE_TABLE_AS_SELECT.name and spares:
        return None
    parameters = creation_parameters(
        plan.state, managed=definition.managed, cluster_by=options.cluster_by or ()
    )
    if replaces:
        parameters |= _flags(plan)
        if options.replace_where is not None:
            parameters["predicate"] = options.replace_where
    if definition.is_save_as_table_overwrite:
        parameters["isV1SaveAsTableOverwrite"] = True
    return OperationDetails(definition.operation, parameters, lambda metrics: metrics)


def set_table(
    plan: WritePlan, transaction: Transaction, results: Sequence[TaskResult]
) -> Mapping[str, str] | None:
    """Put protocol, metadata and domains after a write into its transaction; returns tags for `commitInfo`."""
    if plan.new_protocol:
        transaction.set_protocol(plan.state.protocol)
    if plan.domains or plan.options.replace_table:
        set_domains(transaction, plan.domains, replaces_table=plan.options.replace_table)
    marks = _identity_marks(plan, results)
    if plan.new_metadata or marks:
        transaction.set_metadata(_with_identity_marks(plan.state.metadata, marks))
    return _IDENTITY_ONLY if marks and not plan.new_metadata else None


def _identity_marks(plan: WritePlan, results: Sequence[TaskResult]) -> dict[str, int]:
    """The value furthest along that any task generated, by identity column."""
    steps = {identity.column: identity.step for identity in plan.rows.identities}
    marks: dict[str, int] = {}
    for result in results:
        for column, value in result.identity_marks.items():
            furthest = max if steps[column] > 0 else min
            marks[column] = furthest(value, marks.get(column, value))
    return marks


def _with_identity_marks(metadata: Metadata, marks: Mapping[str, int]) -> Metadata:
    if not marks:
        return metadata

    def marked(field: StructField) -> StructField:
        if field.name not in marks:
            return field
        return replace(field, metadata={**field.metadata, IDENTITY_HIGH_WATER_MARK: marks[field.name]})

    schema = StructType(tuple(marked(field) for field in metadata.schema))
    return replace(metadata, schema_string=schema_to_json(schema))


def write_parameters(plan: WritePlan) -> dict[str, Any]:
    """The parameters of a WRITE in the history, as delta-spark writes them."""
    options = plan.options
    parameters: dict[str, Any] = {
        "mode": "Overwrite" if plan.intent.overwrite else _MODES[options.if_exists],
        "partitionBy": json.dumps(list(options.partition_by or ()), separators=(",", ":")),
    }
    if options.replace_where is not None:
        parameters["predicate"] = options.replace_where
    if options.replace_on is not None:
        parameters["replaceOnCond"] = options.replace_on
    if options.replace_using is not None:
        parameters["replaceUsingCols"] = f"({options.replace_using})"
    return {**parameters, **_flags(plan)}


def _flags(plan: WritePlan) -> dict[str, Any]:
    """What the write was allowed to do, whether it did so or not."""
    options = plan.options
    said = {
        "isDynamicPartitionOverwrite": options.is_dynamic,
        "canOverwriteSchema": options.overwrite_schema,
        "canMergeSchema": options.merge_schema,
    }
    return {name: True for name, holds in said.items() if holds}


def _metrics(
    plan: WritePlan, results: Sequence[TaskResult], adds: Sequence[AddFile], removed: RemovedFiles
) -> dict[str, Any]:
    """The metrics of delta-spark's WRITE; a predicate's deletions are counted with it."""
    new = [*adds, *removed.adds]
    changes = sum(len(r.changes) for r in results) + len(removed.changes)
    metrics: dict[str, Any] = {"numFiles": len(new)}
    if plan.intent.overwrite:
        metrics |= {"numRemovedFiles": removed.files, "numRemovedBytes": removed.size}
    if plan.options.replace_where is not None:
        metrics["numAddedChangeFiles"] = changes
    rows = sum(r.rows for r in results) + (removed.copied or 0)
    if plan.overwrite_scope.kind != MATCHING or new:
        metrics["numOutputRows"] = rows
        if removed.deleted is not None:
            metrics |= {"numCopiedRows": removed.copied or 0, "numDeletedRows": removed.deleted}
    metrics["numOutputBytes"] = sum(int(add["size"]) for add in new)
    return metrics


# --- optimized writes: join small files of one partition, written by different tasks, before the commit
# delta-spark shuffles the rows before it writes them; a data source cannot, as Spark has split them when it is
# asked. The outcome is the same: few files of good size.

_TARGET_BYTES = 128 << 20


def join_small_files(plan: WritePlan, adds: Sequence[AddFile], staged: StagedFiles) -> list[AddFile]:
    """The files of a write, joined where the write or the table asks for it.

    Parameters
    ----------
    plan
        The write.
    adds
        What its tasks wrote: the bodies of `add` actions. Files that are joined are deleted.
    staged
        Their owner, and that of the new ones.

    Returns
    -------
    list of dict
        The bodies of the files to commit.
    """
    if not plan.joins_small_files:
        return list(adds)
    out: list[AddFile] = []
    for group in _groups(adds, plan.files.target_file_size or _TARGET_BYTES):
        out += group if len(group) == 1 else _join(plan, group, staged)
    return out


def _groups(adds: Sequence[AddFile], target: int) -> Iterator[list[AddFile]]:
    """Files of one partition, so many at a time as fit into one file of the target size."""
    by_partition: dict[tuple[Any, ...], list[AddFile]] = {}
    for add in adds:
        by_partition.setdefault(tuple(sorted(add["partitionValues"].items())), []).append(add)
    for files in by_partition.values():
        group: list[AddFile] = []
        size = 0
        for add in sorted(files, key=lambda body: int(body["size"])):
            if group and size + add["size"] > target:
                yield group
                group, size = [], 0
            group.append(add)
            size += add["size"]
        yield group


def _join(plan: WritePlan, group: Sequence[AddFile], staged: StagedFiles) -> list[AddFile]:
    names = plan.state.physical_partition_columns
    reading = ReadPlan.of(plan.state, timezone=plan.files.timezone)
    slices = [
        FileSlice(add["path"], add["size"], partition_values=tuple(add["partitionValues"][n] for n in names))
        for add in group
    ]
    writer = FileWriter(plan.storage, plan.files_of_whole_rows)
    try:
        for batch in read_slices(plan.storage, reading, slices):
            writer.write(batch)
        joined = writer.close()
        staged.add(add["path"] for add in joined)
    except BaseException:
        writer.abort()
        raise
    discard(plan.storage, [add["path"] for add in group])
    return joined
