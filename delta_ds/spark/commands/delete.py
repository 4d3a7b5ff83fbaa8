"""DELETE: drop whole files, mark rows in deletion vectors, or rewrite files.

Source: delta-spark, `DeleteCommand`; conflict-matrix section 7.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from delta_ds.events.commands import ROWS_FOUND_BY_SPARK
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.commands.dml.candidates import CandidateFiles, covered_files
from delta_ds.kernel.commands.dml.changed_rows import CLAUSE, DELETE, FILE, ROW
from delta_ds.kernel.commands.dml.commit import RowScope
from delta_ds.kernel.format import operations
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.redaction import redacted
from delta_ds.spark.commands.by_arrow import positions
from delta_ds.spark.commands.dml_command import DmlExecution, affected_rows
from delta_ds.spark.commands.expression_resolution import (
    Scope,
    are_functions_of_rows,
    bound_alike,
    evaluable,
    finder_of,
    predicate_of,
    reads_only,
)
from delta_ds.spark.commands.row_commands import run_at_server, run_command
from delta_ds.spark.engines.classic.catalyst_values import OnlySpark
from delta_ds.spark.engines.seam.expressions import Resolved

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.kernel.commands.dml.candidates import Rewritten
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.spark.commands.by_arrow import ByArrow
    from delta_ds.spark.commands.dml_target import DmlTarget
    from delta_ds.spark.commands.handle import Handle


def run_delete(handle: Handle, condition: str | Column | None) -> DataFrame:
    """Delete the rows that match a condition; None: all.

    Returns
    -------
    DataFrame
        One row: `num_affected_rows` bigint, null where the log does not say how many rows files had.

    Raises
    ------
    DeltaError
        The condition does not fit the table, the table is append-only, or another commit contradicts the
        deletion. Nothing was deleted.
    """

    def work(change: DmlExecution) -> int | None:
        target = change.target
        change.is_function_of_rows = are_functions_of_rows(target, [condition])
        change.repeatable = change.is_function_of_rows  # a condition holds no subquery
        change.plan_rows()
        if condition is None:
            return _remove(change, change.target.all_files, None, "true")
        return _delete(change, condition)

    counts = run_at_server(handle, operations.DELETE.name, condition)
    if counts is not None:
        return affected_rows(handle.spark, counts[0])
    none: int | None = 0
    return affected_rows(handle.spark, run_command(handle, operations.DELETE.name, work, none))


def run_truncate(handle: Handle) -> None:
    """Remove all files of a table, as TRUNCATE TABLE.

    Raises
    ------
    DeltaError
        The table is append-only, or another commit contradicts the deletion. Nothing was deleted.
    """
    with DmlExecution(handle, operations.TRUNCATE.name) as change:
        if change.done:
            return
        files = change.target.all_files
        if len(files):
            change.plan_rows()
            change.commit(None, removed=files.paths.to_pylist(), parameters={}, metrics={})


def _delete(change: DmlExecution, condition: str | Column) -> int | None:
    target = change.target
    sample = target.frame(target.no_files)
    resolved = resolve_condition(target, sample, condition, operations.DELETE.name)
    predicate = predicate_of(target, resolved)
    # Partition values of char(n) need not have the blanks that Spark compares them with.
    fields = map(target.state.schema.find, target.state.partition_columns)
    plain = [field.name for field in fields if field is not None and compares_by_bytes(field)]
    if reads_only(target, resolved, plain):
        return _remove(change, _whole_files(target, resolved, predicate), predicate, resolved.text)
    files = target.files(predicate)
    if not len(files):
        return 0

    def by_arrow(attempt: ByArrow) -> Rewritten:
        finder = finder_of(target, evaluable(target, resolved))
        return attempt.rewrite(finder.rewrite, files, [DELETE])

    found = change.by_arrow(by_arrow, deletes=True)
    if found is not None:
        return _commit_found(change, files, found, predicate, resolved.text)
    if change.plan.uses_deletion_vectors:
        return _mark(change, files, target.frame(files).where(resolved.column), predicate, resolved.text)
    return _rewrite(change, files, resolved, predicate)


def _whole_files(target: DmlTarget, condition: Resolved, predicate: Expression | None) -> CandidateFiles:
    """The files whose partition values match a condition that reads nothing else; `predicate`: see `predicate_of`."""
    found: CandidateFiles | None = None
    try:
        known = bound_alike(evaluable(target, condition), target.schema, target.timezone)
        found = target.ask(covered_files, target.files(predicate), known, target.timezone)
    except (OnlySpark, PredicateError) as why:
        where, operation = target.handle.where, operations.DELETE.name
        ROWS_FOUND_BY_SPARK.log(table=where, operation=operation, reason=redacted(str(why)))
    return target.files_in_partitions(condition, predicate) if found is None else found


def resolve_condition(
    target: DmlTarget, frame: DataFrame, condition: str | Column, operation: str
) -> Resolved:
    """A condition on the rows of a frame of the target; it can be evaluated on all frames of it."""
    scope = Scope(frame, target.handle.where, operation, context=target.context)
    return scope.predicate(condition, "condition")


def _remove(
    change: DmlExecution, files: CandidateFiles, predicate: Expression | None, text: str
) -> int | None:
    """Remove whole files, without reading them."""
    if not len(files):
        return 0
    change.commit(
        predicate,
        removed=files.paths.to_pylist(),
        parameters=_parameters(text),
        metrics={
            "numDeletedRows": files.num_rows,
            "numCopiedRows": 0,
            "scanTimeMs": change.elapsed_ms(),
            "rewriteTimeMs": 0,
        },
    )
    return files.num_rows


def _commit_found(
    change: DmlExecution, files: CandidateFiles, found: Rewritten, predicate: Expression | None, text: str
) -> int:
    """Commit what tasks have found, and rewritten or marked."""
    if not found.rows:
        return 0
    rewriting = 0 if change.plan.uses_deletion_vectors else found.milliseconds
    change.commit(
        predicate,
        removed=change.plan.replaced_files(files, found),
        deleted=files.by_path(found.positions),
        rows=RowScope(predicate),
        parameters=_parameters(text),
        metrics={
            "numDeletedRows": found.rows,
            "numCopiedRows": found.result.rows,
            "scanTimeMs": change.elapsed_ms() - rewriting,
            "rewriteTimeMs": rewriting,
        },
    )
    return found.rows


def _mark(
    change: DmlExecution, files: CandidateFiles, hits: DataFrame, predicate: Expression | None, text: str
) -> int:
    found = positions(hits)
    rows = sum(map(len, found.values()))
    if found:
        change.commit(
            predicate,
            deleted=files.by_path(found),
            rows=RowScope(predicate),
            parameters=_parameters(text),
            metrics={
                "numDeletedRows": rows,
                "numCopiedRows": 0,
                "scanTimeMs": change.elapsed_ms(),
                "rewriteTimeMs": 0,
            },
        )
    return rows


def _rewrite(
    change: DmlExecution, files: CandidateFiles, condition: Resolved, predicate: Expression | None
) -> int:
    """Replace the files in which rows match: one query finds the rows and hands them to the tasks that write."""
    from pyspark.sql import functions as F

    def places(files: CandidateFiles) -> DataFrame:
        frame = change.target.frame(files)
        return frame.where(condition.column).select(frame[FILE], frame[ROW], F.lit(0).alias(CLAUSE))

    return _commit_found(change, files, change.rewrite(places, files, [DELETE]), predicate, condition.text)


def _parameters(text: str) -> dict[str, str]:
    return {"predicate": json.dumps([text], ensure_ascii=False)}
