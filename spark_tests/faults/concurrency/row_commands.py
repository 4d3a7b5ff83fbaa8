"""DELETE, UPDATE, MERGE and OPTIMIZE on tiny tables by the kernel alone: what a session leaves to Spark, in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.base.arrow_buffers import integers
from delta_ds.kernel.commands.dml.candidates import candidate_files
from delta_ds.kernel.commands.dml.changed_rows import CLAUSE, DELETE, FILE, ROW, UPDATE
from delta_ds.kernel.commands.dml.commit import DmlCommand, RowScope, commit_dml, discard_folder
from delta_ds.kernel.commands.dml.file_rewrite import rewrite_changed_files
from delta_ds.kernel.commands.dml.plan import plan_dml, plan_file_rewrite
from delta_ds.kernel.commands.optimize.command import rewrite_all
from delta_ds.kernel.commands.optimize.commit import commit_optimize
from delta_ds.kernel.commands.optimize.planning import plan_optimize
from delta_ds.kernel.commands.optimize.request import COMPACT, OptimizeRequest
from delta_ds.kernel.commands.optimize.request import PURGE as PURGE_KIND
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.storage.staging import Staging
from delta_ds.kernel.transaction.write.task import write_rows
from spark_tests.faults.concurrency.row_model import (
    APPEND,
    FIRST_ROWS,
    MERGE,
    NAMES,
    OPTIMIZE,
    PURGE,
    Command,
    Row,
)

_ACTIONS = (UPDATE, DELETE)


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
    files = candidate_files(snapshot, predicate, "UTC")
    paths = dict(zip(files.numbers.to_pylist(), files.paths.to_pylist(), strict=True))
    found = _read(snapshot, [*paths.values()])
    inserted = [*command.inserted({row[0] for rows in found.values() for _, row in rows})]
    changed = [
        (number, place, command.after(row))
        for number, path in paths.items()
        for place, row in found.get(path, ())
        if command.touches(row)
    ]
    if not changed and not inserted:
        return None
    with Staging(snapshot.storage.url) as staged:
        staged.deleted_by(lambda: discard_folder(snapshot, plan.folder))
        rewrite = plan_file_rewrite(snapshot, plan, files, _ACTIONS)
        rewritten = rewrite_changed_files(rewrite, [_changes(changed)] if changed else [])
        written = write_rows(plan.inserts_beside(rewritten.rows), [batch(inserted)], 1, folder=plan.folder)
        change = DmlCommand(
            operation="MERGE" if command.kind == MERGE else command.kind.upper(),
            predicate=predicate,
            removed=[] if plan.uses_deletion_vectors else [paths[number] for number in rewritten.files],
            deleted={paths[number]: places for number, places in rewritten.positions.items()},
            results=[rewritten.result, written],
            parameters={"predicate": command.condition},
            plan=plan,
            user_metadata=said,
            rows=_scope(command),
        )
        with staged.publishing():
            return commit_dml(snapshot, change).version


def _changes(rows: Sequence[tuple[int, int, Row | None]]) -> pa.RecordBatch:
    """Changed rows by file and place: what they become, or None."""
    values = batch(after or (0, 0, 0) for _, _, after in rows)
    clauses = [_ACTIONS.index(DELETE if after is None else UPDATE) for _, _, after in rows]
    for name, column in ((FILE, [r[0] for r in rows]), (ROW, [r[1] for r in rows]), (CLAUSE, clauses)):
        values = values.append_column(name, integers(column))
    return values


def _scope(command: Command) -> RowScope | None:
    """The rows that the outcome hangs on; None where all of them count, as in a merge that sweeps."""
    if command.kind != MERGE:
        return RowScope(parse_predicate(command.condition))
    if command.modulus:
        return None
    ids = ", ".join(str(row[0]) for row in command.rows)
    return RowScope(parse_predicate(f"id IN ({ids}) AND {command.condition}"), misses_count=True)


def _read(snapshot: Snapshot, paths: list[str]) -> dict[str, list[tuple[int, Row]]]:
    """The rows of files, with their places in them."""
    scan = Scan(snapshot, metadata_columns=("row_index",))
    found: dict[str, list[tuple[int, Row]]] = {}
    for piece in scan.slices():
        if piece.path in paths:
            rows = found.setdefault(piece.path, [])
            for part in read_slices(snapshot.storage, scan.plan, [piece]):
                (places,) = part["_metadata"].flatten()
                rows += zip(places.to_pylist(), rows_of(part), strict=True)
    return found
