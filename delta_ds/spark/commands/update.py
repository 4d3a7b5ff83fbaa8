"""UPDATE: new values for columns of the rows that match a condition.

Source: delta-spark, `UpdateCommand`; conflict-matrix section 7.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.commands.dml.changed_rows import CLAUSE, FILE, ROW, UPDATE
from delta_ds.kernel.commands.dml.commit import RowScope
from delta_ds.kernel.commands.dml.new_values import NewValues
from delta_ds.kernel.commands.dml.plan import generated_columns
from delta_ds.kernel.format import operations
from delta_ds.kernel.format.options.settings import ANSI_POLICY
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.commands.assignments import assign, assigned_names, target_path, with_defaults
from delta_ds.spark.commands.delete import resolve_condition
from delta_ds.spark.commands.dml_command import DmlExecution, affected_rows
from delta_ds.spark.commands.expression_resolution import (
    Scope,
    are_functions_of_rows,
    evaluable,
    finder_of,
    new_value_of,
    predicate_of,
)
from delta_ds.spark.commands.row_commands import run_at_server, run_command
from delta_ds.spark.commands.store_casts import StoreCast
from delta_ds.spark.engines.classic.catalyst_values import OnlySpark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.kernel.commands.dml.candidates import CandidateFiles, Rewritten
    from delta_ds.spark.commands.by_arrow import ByArrow
    from delta_ds.spark.commands.handle import Handle
    from delta_ds.spark.engines.seam.expressions import Resolved


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
            f"'set' of update of {handle.where} cannot be None or empty: give columns and what they get, as in "
            "set={'column': 'expression'}. Nothing was changed"
        )

    def work(change: DmlExecution) -> int:
        return _Update(change, condition, assignments).run()

    counts = run_at_server(handle, operations.UPDATE.name, condition, assignments=assignments)
    if counts is not None:
        return affected_rows(handle.spark, counts[0])
    return affected_rows(handle.spark, run_command(handle, operations.UPDATE.name, work, 0))


class _Update:
    def __init__(
        self,
        change: DmlExecution,
        condition: str | Column | None,
        assignments: Mapping[str, str | Column],
    ) -> None:
        from pyspark.sql import functions as F

        self._change = change
        self._target = change.target
        self._condition = condition
        self._assignments = assignments
        self._assigned: set[str] = set()
        self._matches: Column = F.lit(True)
        self._values: dict[str, Column] = {}
        self._has_subquery = False
        self._resolved: list[tuple[str, Resolved]] = []

    def run(self) -> int:
        """How many rows were updated."""
        from pyspark.sql import functions as F

        change, target = self._change, self._target
        sample = target.frame(target.no_files)
        # Everything is resolved before any row is looked at, and once: what it means stays the same.
        self._values = self._resolved_values(sample)
        given = {name.lower() for name in self._assigned}
        generated = target.ask(generated_columns)
        change.plan_rows(computed=[name for name in generated if name.lower() not in given])
        predicate, text, condition = None, None, None
        if self._condition is not None:
            condition = resolve_condition(target, sample, self._condition, operations.UPDATE.name)
            self._matches = F.coalesce(condition.column, F.lit(False))
            predicate, text = predicate_of(target, condition), condition.text
        files = target.files(predicate)

        def rows(files: CandidateFiles) -> DataFrame:
            frame = target.frame(files)
            names = change.columns_of_new_rows(self._values)
            values = [self._values.get(name, frame[quoted(name)]).alias(name) for name in names]
            hits = frame.where(self._matches).select(frame[FILE], frame[ROW], F.lit(0).alias(CLAUSE), *values)
            return change.rows_to_update(hits, self._values, [0])

        found = change.by_arrow(partial(self._by_arrow, condition, files))
        if found is None:
            found = change.rewrite(rows, files, [UPDATE])
        if found.rows:
            change.commit(
                predicate,
                removed=change.plan.replaced_files(files, found),
                deleted=files.by_path(found.positions),
                rows=None if self._has_subquery else RowScope(predicate),
                parameters={"predicate": json.dumps([text] if text else [], ensure_ascii=False)},
                metrics={
                    "numUpdatedRows": found.rows,
                    "numCopiedRows": found.result.rows - found.rows,
                    "scanTimeMs": change.elapsed_ms() - found.milliseconds,
                    "rewriteTimeMs": found.milliseconds,
                },
            )
        return found.rows

    def _by_arrow(self, condition: Resolved | None, files: CandidateFiles, attempt: ByArrow) -> Rewritten:
        target, operation = self._target, operations.UPDATE.name
        if target.facts.command_assignment != ANSI_POLICY:
            raise OnlySpark(f"values are stored by the policy {target.facts.command_assignment}")
        values = []
        for name, value in self._resolved:
            path = target_path(target.schema, name, target.handle.where, operation, target.handle.alias)
            values.append(new_value_of(target, path, value, operation))
        place = {field.name: n for n, field in enumerate(target.schema)}
        new = NewValues(tuple(sorted(values, key=lambda value: place[value.path[0]])), target.timezone)
        wanted = None if condition is None else evaluable(target, condition)
        return attempt.rewrite(finder_of(target, wanted, new).rewrite, files, [UPDATE])

    def _resolved_values(self, frame: DataFrame) -> dict[str, Column]:
        """The new values of the columns that get some."""
        from pyspark.sql import functions as F

        target = self._target
        scope = Scope(frame, target.handle.where, operations.UPDATE.name, context=target.context)
        alias = target.handle.alias
        assignments = with_defaults(target.schema, self._assignments, alias=alias)
        values = scope.resolve_all(list(assignments.values()), "SET clause")
        self._has_subquery = any(value.subquery for value in values)
        self._resolved = list(zip(assignments, values, strict=True))
        self._change.is_function_of_rows = are_functions_of_rows(
            target, (self._condition, *assignments.values())
        )
        self._change.repeatable = self._change.is_function_of_rows and not self._has_subquery
        columns = assign(
            target.schema,
            lambda name: F.col(quoted(name)),
            self._resolved,
            cast=StoreCast.of(target),
            operation=operations.UPDATE.name,
            alias=alias,
        )
        self._assigned = assigned_names(target.schema, assignments, alias=alias)
        named = zip(target.schema.names, columns, strict=True)
        return {name: column for name, column in named if name in self._assigned and column is not None}
