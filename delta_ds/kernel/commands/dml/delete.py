"""DELETE in one process, without Spark: threads find the rows and rewrite or mark their files.

Source: delta-spark, `DeleteCommand`; conflict-matrix section 7.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from delta_ds.kernel.commands.dml.candidates import CandidateFiles, candidate_files, covered_files
from delta_ds.kernel.commands.dml.changed_rows import DELETE as ROW_GOES
from delta_ds.kernel.commands.dml.commit import RowScope
from delta_ds.kernel.commands.dml.in_process import CommandSettings, InProcessDml, run
from delta_ds.kernel.commands.dml.result import DeleteResult, counted
from delta_ds.kernel.commands.dml.row_finder import RowFinder, bound_condition
from delta_ds.kernel.files.rows.expressions import at_timestamp
from delta_ds.kernel.format import operations
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.records import replace

if TYPE_CHECKING:
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.transaction.table_log import TableLog


def delete(
    log: TableLog,
    predicate: str | Expression | None = None,
    *,
    timezone: str = "UTC",
    user_metadata: str | None = None,
    engine_info: str | None = None,
    txn: tuple[str, int] | None = None,
    retries: int = 0,
) -> DeleteResult:
    """Delete the rows for which a predicate is true, as one commit.

    Deletion vectors, change files, row ids and append-only tables are honoured as by `DeltaTable.delete`.

    Parameters
    ----------
    log
        The table.
    predicate
        In Spark SQL; None: all rows.
    timezone
        The session time zone in which the predicate is meant.
    user_metadata
        Free text for the history.
    engine_info
        Who deletes, for the history.
    txn
        Application and version that the command counts as: it is done once, however often it is tried.
    retries
        How often it is done again, on the newest version, after commits of others contradicted it.

    Raises
    ------
    PredicateError, SchemaError
        The predicate cannot be parsed, names no column, or uses what only Spark can evaluate.
    UnsupportedFeatureError
        The table needs something of writers that is not supported.
    AppendOnlyError
        Rows of the table must not be deleted.
    DeltaConcurrentModificationException
        Another commit contradicts the deletion. Nothing was deleted, nothing is left behind, as with all errors.

    >>> import tempfile, pyarrow as pa
    >>> from delta_ds import DeltaLog
    >>> log = DeltaLog(tempfile.mkdtemp())
    >>> log.write(pa.table({"id": [1, 2, 3]}))
    0
    >>> delete(log, "id > 1").rows
    2
    """
    tree = parse_predicate(predicate) if isinstance(predicate, str) else predicate
    settings = CommandSettings(timezone, user_metadata, engine_info, txn, retries)
    work = partial(_delete, tree=tree, text=None if predicate is None else str(predicate))
    return run(log, operations.DELETE.name, settings, work, DeleteResult(None, 0))


def _delete(change: InProcessDml, tree: Expression | None, text: str | None) -> DeleteResult:
    snapshot, timezone = change.snapshot, change.settings.timezone
    parameters = {"predicate": json.dumps([text or "true"], ensure_ascii=False)}
    change.plan_rows()
    if tree is None:
        return _remove(change, candidate_files(snapshot, None, timezone), None, parameters)
    tree = at_timestamp(tree, change.now)
    bound = bound_condition(
        tree,
        snapshot.schema,
        timezone,
        operation="a DELETE from",
        table=snapshot.storage.url,
        undone="Nothing was deleted",
    )
    files = candidate_files(snapshot, tree, timezone)
    whole = covered_files(snapshot, files, bound, timezone)
    if whole is not None:
        return _remove(change, whole, tree, parameters)
    marks = change.plan.uses_deletion_vectors
    if marks:
        # Readers of changes find the rows by the deletion vectors.
        change.plan = replace(change.plan, records_changes=False)
    finder = RowFinder.of(snapshot, bound, timezone)
    found = change.rewrite(finder.rewrite, files, [ROW_GOES])
    if not found.rows and not change.settings.txn:
        return DeleteResult(None, 0)
    committed = change.commit(
        tree,
        files=files,
        found=found,
        rows=RowScope(tree) if marks else None,
        parameters=parameters,
        metrics={"numDeletedRows": found.rows, "numCopiedRows": found.result.rows, **change.times()},
    )
    return counted(DeleteResult, committed, found.rows)


def _remove(
    change: InProcessDml, files: CandidateFiles, tree: Expression | None, parameters: Mapping[str, str]
) -> DeleteResult:
    """Remove whole files, without reading them."""
    if not len(files) and not change.settings.txn:
        return DeleteResult(None, 0)
    metrics = {"numDeletedRows": files.num_rows, "numCopiedRows": 0, "scanTimeMs": 0, "rewriteTimeMs": 0}
    committed = change.commit(tree, removed=files.paths.to_pylist(), parameters=parameters, metrics=metrics)
    return counted(DeleteResult, committed, files.num_rows)
