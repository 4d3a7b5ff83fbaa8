"""DELETE, UPDATE, MERGE and OPTIMIZE on tiny tables by the kernel alone: what a session leaves to Spark, in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from delta_ds.kernel.arrow_buffers import integers
from delta_ds.kernel.commands.dml import task
from delta_ds.kernel.commands.dml.candidates import candidate_files
from delta_ds.kernel.commands.dml.commit import DmlCommand, commit_dml, discard_folder
from delta_ds.kernel.commands.dml.plan import plan_dml
from delta_ds.kernel.commands.dml.task import ACTION, write_changed_rows
from delta_ds.kernel.commands.optimize.command import rewrite_all
from delta_ds.kernel.commands.optimize.commit import commit_optimize
from delta_ds.kernel.commands.optimize.planning import plan_optimize
from delta_ds.kernel.commands.optimize.request import COMPACT, OptimizeRequest
from delta_ds.kernel.commands.optimize.request import PURGE as PURGE_KIND
from delta_ds.kernel.data.read.reader import read_slices
from delta_ds.kernel.delta_log import DeltaLog
from delta_ds.kernel.expressions.sql import parse_predicate
from delta_ds.kernel.snapshot import Snapshot
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

Placed = dict[str, list[tuple[int, Row]]]


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
    snapshot = log.start_transaction().snapshot
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
    there = {row[0] for rows in found.values() for _, row in rows}
    touched = {path: rows for path, rows in found.items() if any(command.touches(row) for _, row in rows)}
    deleted = {}
    written: list[tuple[Row, int]] = [(row, task.INSERT) for row in command.inserted(there)]
    for path, rows in touched.items():
        changed = [place for place, row in rows if command.touches(row)]
        if plan.uses_deletion_vectors:
            deleted[path] = np.array(changed, np.uint64)
        for place, row in rows:
            after = command.after(row)
            if after is not None and not (plan.uses_deletion_vectors and place not in changed):
                written.append((after, task.UPDATE if place in changed else task.COPY))
    if not touched and not written:
        return None
    with Staging(snapshot.storage.url) as staged:
        staged.deleted_by(lambda: discard_folder(snapshot, plan.folder))
        result = write_changed_rows(plan, [_with_actions(written)])
        change = DmlCommand(
            operation="MERGE" if command.kind == MERGE else command.kind.upper(),
            predicate=predicate,
            removed=[] if plan.uses_deletion_vectors else list(touched),
            deleted=deleted,
            results=[result],
            parameters={"predicate": command.condition},
            plan=plan,
            user_metadata=said,
        )
        with staged.publishing():
            return commit_dml(snapshot, change)


def _with_actions(rows: list[tuple[Row, int]]) -> pa.RecordBatch:
    actions = np.array([action for _, action in rows], np.int8)
    return batch(row for row, _ in rows).append_column(ACTION, pa.array(actions))


def _read(snapshot: Snapshot, paths: list[str]) -> Placed:
    """The rows of files, with their places in them."""
    scan = snapshot.scan(metadata_columns=("row_index",))
    found: Placed = {}
    for piece in scan.slices():
        if piece.path in paths:
            rows = found.setdefault(piece.path, [])
            for part in read_slices(snapshot.storage, scan.plan, [piece]):
                (places,) = part["_metadata"].flatten()
                rows += zip(places.to_pylist(), rows_of(part), strict=True)
    return found
