"""UPDATE: columns of the rows that match a condition get new values.

Source: delta-spark, `UpdateCommand`; conflict-matrix section 7.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.commands.row_changes.candidates import Files
from delta_ds.kernel.commands.row_changes.plan import generated_columns
from delta_ds.kernel.commands.row_changes.task import ACTION, COPY, ROW_ID, ROW_VERSION, UPDATE
from delta_ds.spark.commands.assignments import assign, assigned_names, with_defaults
from delta_ds.spark.commands.changing import Change, affected, by_path
from delta_ds.spark.commands.delete import matching
from delta_ds.spark.commands.positions import counts, positions
from delta_ds.spark.commands.predicates import predicate_of
from delta_ds.spark.commands.rows import before_columns
from delta_ds.spark.commands.scopes import Scope
from delta_ds.spark.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.spark.commands.handle import Handle

_OPERATION = "UPDATE"


def run_update(
    handle: Handle,
    condition: str | Column | None,
    assignments: Mapping[str, str | Column] | None,
) -> DataFrame:
    """Give columns new values in the rows that match a condition; None: in all.

    Parameters
    ----------
    assignments
        By column (`s.a` for a field of a struct) an expression over the row as it was.

    Returns
    -------
    DataFrame
        One row: `num_affected_rows` bigint.

    Raises
    ------
    DeltaError
        An expression does not fit the table, a row breaks a constraint, or another commit contradicts the update.
        Nothing was changed.
    """
    if not assignments:
        raise InvalidOptionError(
            f"update of {handle.where} needs assignments: set={{'column': 'expression'}}; nothing was changed"
        )
    with Change(handle, _OPERATION) as change:
        rows = 0 if change.done else _Update(change, condition, assignments).run()
    return affected(handle.spark, rows)


class _Update:
    def __init__(
        self,
        change: Change,
        condition: str | Column | None,
        assignments: Mapping[str, str | Column],
    ) -> None:
        self._change = change
        self._target = change.target
        self._condition = condition
        self._assignments = assignments
        self._assigned: set[str] = set()

    def run(self) -> int:
        change, target = self._change, self._target
        sample = target.frame(target.no_files)
        # Everything is resolved before any row is looked at.
        self._values(sample)
        given = {name.lower() for name in self._assigned}
        generated = target.ask(generated_columns)
        change.settle(computed=[name for name in generated if name.lower() not in given])
        predicate, text = None, None
        if self._condition is not None:
            resolved = matching(target, sample, self._condition, _OPERATION)
            predicate, text = predicate_of(target, resolved), resolved.text
        files = target.files(predicate)
        frame = target.frame(files)
        hits = frame if self._condition is None else frame.where(self._matches(frame))
        marked = positions(hits) if change.plan.marks_rows else {}
        found = counts(hits) if not change.plan.marks_rows else {n: len(p) for n, p in marked.items()}
        rows = sum(found.values())
        if not rows:
            return 0
        scanned = change.elapsed_ms()
        copied = self._rewrite(files.only(list(found))) - rows
        change.commit(
            predicate,
            removed=[] if change.plan.marks_rows else list(by_path(files, found)),
            deleted=by_path(files, marked),
            parameters={"predicate": json.dumps([text], ensure_ascii=False)} if text else {},
            metrics={
                "numUpdatedRows": rows,
                "numCopiedRows": copied,
                "scanTimeMs": scanned,
                "rewriteTimeMs": change.elapsed_ms() - scanned,
            },
        )
        return rows

    def _matches(self, frame: DataFrame) -> Column:
        from pyspark.sql import functions as F

        if self._condition is None:
            return F.lit(True)
        found = matching(self._target, frame, self._condition, _OPERATION).column
        return F.coalesce(found, F.lit(False))

    def _values(self, frame: DataFrame) -> dict[str, Column]:
        """The new values of the columns that get some."""
        target = self._target
        scope = Scope(frame, target.handle.where, _OPERATION)
        alias = target.handle.alias
        assignments = with_defaults(target.schema, self._assignments, alias=alias)
        values = scope.resolve_all(list(assignments.values()), "SET clause")
        columns = assign(
            target.schema,
            lambda name: frame[quoted(name)],
            list(zip(assignments, values, strict=True)),
            table=target.handle.where,
            operation=_OPERATION,
            alias=alias,
        )
        self._assigned = assigned_names(target.schema, assignments, alias=alias)
        named = zip(target.schema.names, columns, strict=True)
        return {name: column for name, column in named if name in self._assigned and column is not None}

    def _rewrite(self, files: Files) -> int:
        """Write the updated rows, and those that stay in files that are replaced; returns how many."""
        from pyspark.sql import functions as F

        change, target = self._change, self._target
        frame = target.frame(files)
        matches = self._matches(frame)
        if change.plan.marks_rows:
            # The other rows stay where they are.
            frame = frame.where(matches)
            matches = F.lit(True)
        values = self._values(frame)
        computed = {g.column for g in change.plan.write.rows.generated}
        columns = []
        for name in target.schema.names:
            if name in computed:
                continue
            column = frame[quoted(name)]
            if name in values:
                column = F.when(matches, values[name]).otherwise(column)
            columns.append(column.alias(name))
        action = F.when(matches, F.lit(UPDATE)).otherwise(F.lit(COPY)).cast("tinyint")
        columns.append(action.alias(ACTION))
        if change.plan.tracked:
            version = F.when(~matches, frame[ROW_VERSION])
            columns += [frame[ROW_ID], version.alias(ROW_VERSION)]
        if change.plan.records_changes:
            columns += before_columns(target, frame)
        return sum(result.rows for result in change.write(frame.select(*columns)))
