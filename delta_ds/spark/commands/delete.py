"""DELETE: rows that match a condition are gone, by files, by deletion vectors, or by files written anew.

Source: delta-spark, `DeleteCommand`; conflict-matrix section 7.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from delta_ds.kernel.commands.row_changes.candidates import Files
from delta_ds.kernel.commands.row_changes.task import ACTION, COPY, DELETE
from delta_ds.spark.commands.changing import Change, affected, by_path
from delta_ds.spark.commands.positions import counts, positions
from delta_ds.spark.commands.predicates import predicate_of, reads_only
from delta_ds.spark.commands.rows import before_columns
from delta_ds.spark.commands.scopes import Resolved, Scope

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.kernel.expressions.tree import Expression
    from delta_ds.spark.commands.handle import Handle
    from delta_ds.spark.commands.target import Target

_OPERATION = "DELETE"


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
    with Change(handle, _OPERATION) as change:
        rows: int | None = 0
        if change.done:
            return affected(handle.spark, rows)
        if condition is None:
            rows = _remove(change, change.target.all_files, None, "true")
        else:
            rows = _delete(change, condition)
    return affected(handle.spark, rows)


def _delete(change: Change, condition: str | Column) -> int | None:
    target = change.target
    resolved = matching(target, target.frame(target.no_files), condition, _OPERATION)
    predicate = predicate_of(target, resolved)
    if reads_only(target, resolved, target.metadata.partition_columns):
        return _remove(change, target.files_in_partitions(condition), predicate, resolved.text)
    files = target.files(predicate)
    frame = target.frame(files)
    hits = frame.where(matching(target, frame, condition, _OPERATION).column)
    if change.plan.marks_rows:
        return _mark(change, files, hits, predicate, resolved.text)
    return _rewrite(change, files, hits, predicate, condition, resolved.text)


def matching(target: Target, frame: DataFrame, condition: str | Column, operation: str) -> Resolved:
    """A condition on the rows of a frame of the target."""
    return Scope(frame, target.handle.where, operation).predicate(condition, "condition")


def _remove(change: Change, files: Files, predicate: Expression | None, text: str) -> int | None:
    """Remove whole files, without reading them."""
    if not len(files):
        return 0
    change.commit(
        predicate,
        removed=files.paths.to_pylist(),
        parameters=_parameters(text),
        metrics={"numDeletedRows": files.num_rows},
    )
    return files.num_rows


def _mark(change: Change, files: Files, hits: DataFrame, predicate: Expression | None, text: str) -> int:
    found = positions(hits)
    rows = sum(map(len, found.values()))
    if found:
        change.commit(
            predicate,
            deleted=by_path(files, found),
            parameters=_parameters(text),
            metrics={"numDeletedRows": rows, "numCopiedRows": 0, "scanTimeMs": change.elapsed_ms()},
        )
    return rows


def _rewrite(
    change: Change,
    files: Files,
    hits: DataFrame,
    predicate: Expression | None,
    condition: str | Column,
    text: str,
) -> int:
    """Write the other rows of the files anew in which rows match."""
    from pyspark.sql import functions as F

    found = counts(hits)
    if not found:
        return 0
    scanned = change.elapsed_ms()
    sizes = dict(zip(files.numbers.to_pylist(), files.rows.to_pylist(), strict=True))
    partly = [number for number, count in found.items() if count != sizes[number]]
    copied = 0
    if partly:
        target = change.target
        # Readers of changes look at change files only, once there are any.
        records = change.plan.records_changes
        frame = target.frame(files.only(list(found) if records else partly))
        gone = F.coalesce(matching(target, frame, condition, _OPERATION).column, F.lit(False))
        if records:
            action = F.when(gone, F.lit(DELETE)).otherwise(F.lit(COPY)).cast("tinyint")
            frame = frame.select("*", *before_columns(target, frame), action.alias(ACTION))
        else:
            frame = frame.where(~gone)
        copied = sum(result.rows for result in change.write(frame))
    rows = sum(found.values())
    change.commit(
        predicate,
        removed=list(by_path(files, found)),
        parameters=_parameters(text),
        metrics={
            "numDeletedRows": rows,
            "numCopiedRows": copied,
            "scanTimeMs": scanned,
            "rewriteTimeMs": change.elapsed_ms() - scanned,
        },
    )
    return rows


def _parameters(text: str) -> dict[str, str]:
    return {"predicate": json.dumps([text], ensure_ascii=False)}
