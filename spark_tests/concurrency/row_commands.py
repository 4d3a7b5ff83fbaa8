"""DELETE, UPDATE, MERGE and OPTIMIZE on tiny tables by the kernel alone: what a session leaves to Spark, in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.arrow_buffers import integers
from delta_ds.kernel.commands.dml import task
from delta_ds.kernel.commands.dml.candidates import candidate_files
from delta_ds.kernel.commands.dml.commit import DmlCommand, RowScope, commit_dml, discard_folder
from delta_ds.kernel.commands.dml.plan import DmlPlan, plan_dml
from delta_ds.kernel.commands.dml.task import ACTION, BEFORE, ROW_ID, ROW_VERSION, write_changed_rows
from delta_ds.kernel.commands.optimize.command import rewrite_all
from delta_ds.kernel.commands.optimize.commit import commit_optimize
from delta_ds.kernel.commands.optimize.planning import plan_optimize
from delta_ds.kernel.commands.optimize.request import COMPACT, OptimizeRequest
from delta_ds.kernel.commands.optimize.request import PURGE as PURGE_KIND
from delta_ds.kernel.data.read.reader import read_slices
from delta_ds.kernel.expressions.sql import parse_predicate
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.scan.scan import Scan
from delta_ds.kernel.storage.staging import Staging
from spark_tests.concurrency.row_model import (
    APPEND,
    FIRST_ROWS,
    MERGE,
    NAMES,
    OPTIMIZE,
    PURGE,
    Command,
    Row,
)


class _Placed(NamedTuple):
    """A row of the table, and where it is."""

    place: int
    row_id: int | None
    version: int | None
    row: Row


class _Written(NamedTuple):
    """A row before and after the command, and what that is to it."""

    before: _Placed | None
    after: Row | None
    action: int


def batch(rows: Iterable[Row]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.record_batch([integers(list(column)) for column in columns], names=list(NAMES))


def rows_of(table: pa.Table | pa.RecordBatch) -> list[Row]:
    return list(zip(*(table[name].to_pylist() for name in NAMES), strict=True))


def create(log: DeltaLog, properties: Mapping[str, str], *, partitioned: bool) -> None:
    """A table with the first rows, in one file a partition."""
    layout = {"partitionBy": "part"} if partitioned else {}
    assert log.write(batch(FIRST_ROWS), options={**layout, **properties}) == 0


def run(log: DeltaLog, command: Command, said: str) -> int | None:
    """Do a command as one commit.

    Parameters
    ----------
    said
        The commit's user metadata.

    Returns
    -------
    int or None
        The version; None where there was nothing to do.
    """
    if command.kind == APPEND:
        return log.write(batch(command.rows), "append", {"userMetadata": said})
    if command.kind in (OPTIMIZE, PURGE):
        return _optimize(log, command, said)
    snapshot = log.start_transaction().base
    assert snapshot is not None
    return _change(snapshot, command, said)


def _optimize(log: DeltaLog, command: Command, said: str) -> int | None:
    kind = PURGE_KIND if command.kind == PURGE else COMPACT
    partitioned = log.start_transaction().metadata.partition_columns
    where = (command.condition,) if partitioned and command.parts else ()
    plan = plan_optimize(log, OptimizeRequest(kind=kind, where=where))
    adds = rewrite_all(plan, 1) if plan.bins else []
    return commit_optimize(log, plan, adds, user_metadata=said)


def _change(snapshot: Snapshot, command: Command, said: str) -> int | None:
    plan = plan_dml(snapshot)
    predicate = parse_predicate(command.condition)
    found = _read(snapshot, candidate_files(snapshot, predicate, "UTC").paths.to_pylist())
    there = {placed.row[0] for rows in found.values() for placed in rows}
    touched = {path: rows for path, rows in found.items() if any(command.touches(p.row) for p in rows)}
    deleted = {}
    written = [_Written(None, row, task.INSERT) for row in command.inserted(there)]
    for path, rows in touched.items():
        changed = [placed.place for placed in rows if command.touches(placed.row)]
        if plan.uses_deletion_vectors:
            deleted[path] = np.array(changed, np.uint64)
        for placed in rows:
            after, changes = command.after(placed.row), placed.place in changed
            if after is None:
                written += [_Written(placed, None, task.DELETE)] if plan.records_changes else []
            elif changes or not plan.uses_deletion_vectors:
                written.append(_Written(placed, after, task.UPDATE if changes else task.COPY))
    if not touched and not written:
        return None
    with Staging(snapshot.storage.url) as staged:
        staged.deleted_by(lambda: discard_folder(snapshot, plan.folder))
        result = write_changed_rows(plan, [_with_actions(written, plan)])
        change = DmlCommand(
            operation="MERGE" if command.kind == MERGE else command.kind.upper(),
            predicate=predicate,
            removed=[] if plan.uses_deletion_vectors else list(touched),
            deleted=deleted,
            results=[result],
            parameters={"predicate": command.condition},
            plan=plan,
            user_metadata=said,
            rows=_scope(command),
        )
        with staged.publishing():
            return commit_dml(snapshot, change)


def _scope(command: Command) -> RowScope | None:
    """The rows that the outcome hangs on; None where all of them count, as in a merge that sweeps."""
    if command.kind != MERGE:
        return RowScope(parse_predicate(command.condition))
    if command.modulus:
        return None
    ids = ", ".join(str(row[0]) for row in command.rows)
    return RowScope(parse_predicate(f"id IN ({ids}) AND {command.condition}"), misses_count=True)


def _with_actions(rows: Sequence[_Written], plan: DmlPlan) -> pa.RecordBatch:
    found = batch(w.after or w.before.row for w in rows if w.after or w.before)
    found = found.append_column(ACTION, pa.array([w.action for w in rows], pa.int8()))
    if plan.tracked:
        kept = [w.before if w.before is not None else None for w in rows]
        versions = [w.before.version if w.before and w.action == task.COPY else None for w in rows]
        found = found.append_column(ROW_ID, pa.array([k and k.row_id for k in kept], pa.int64()))
        found = found.append_column(ROW_VERSION, pa.array(versions, pa.int64()))
    if plan.records_changes:
        for number in range(len(NAMES)):
            values = [w.before.row[number] if w.before else None for w in rows]
            found = found.append_column(f"{BEFORE}{number}", pa.array(values, pa.int64()))
    return found


def _read(snapshot: Snapshot, paths: list[str]) -> dict[str, list[_Placed]]:
    """The rows of files, with their places in them."""
    scan = Scan(snapshot, metadata_columns=("row_index", "row_id", "row_commit_version"))
    found: dict[str, list[_Placed]] = {}
    for piece in scan.slices():
        if piece.path in paths:
            rows = found.setdefault(piece.path, [])
            for part in read_slices(snapshot.storage, scan.plan, [piece]):
                known = [column.to_pylist() for column in part["_metadata"].flatten()]
                rows += [_Placed(*each) for each in zip(*known, rows_of(part), strict=True)]
    return found
