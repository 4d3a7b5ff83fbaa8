"""Resolve the expressions of a command against its source and target.

UPDATE and DELETE see the table. In MERGE each kind of clause sees one side or both, and all are evaluated in one
join of the two; so a name is resolved where it was written, before the join can make it ambiguous.

Source: delta-spark, `ResolveDeltaMergeInto`, `PreprocessTableMerge`, `PreprocessTableUpdate`, `PreprocessTableDelete`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.dml import (
    AGGREGATION_NOT_SUPPORTED,
    CANNOT_RESOLVE_EXPRESSION,
    DATATYPE_MISMATCH_FILTER_NOT_BOOLEAN,
    INVALID_NON_DETERMINISTIC_EXPRESSIONS,
    INVALID_WHERE_CONDITION,
    JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE,
    MERGE_UNRESOLVED_EXPRESSION,
    MISSING_AGGREGATION,
    MISSING_GROUP_BY,
    NESTED_AGGREGATE_FUNCTION,
    NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED,
    UNSUPPORTED_EXPR_FOR_OPERATOR,
    UNSUPPORTED_GENERATOR,
)
from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import PredicateError, SchemaError, UnsupportedOperationError
from delta_ds.kernel.format.operations import MERGE
from delta_ds.kernel.format.schema.column_paths import HIDDEN
from delta_ds.kernel.format.schema.types import BOOLEAN, VOID
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.engines.seam.choice import engine_of
from delta_ds.spark.engines.seam.expressions import (
    Context,
    ResolutionCache,
    ResolutionScope,
    Resolved,
    source_text,
)

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import Column, DataFrame


SEARCH_CONDITION = "search condition"
_VALUE = f"{HIDDEN}value_"
_NOTHING = "Nothing was written"
# What Spark says of an aggregate in a projection, which the user did not write.
_AGGREGATE = frozenset(
    known.name
    for known in (
        MISSING_GROUP_BY,
        MISSING_AGGREGATION,
        NESTED_AGGREGATE_FUNCTION,
        INVALID_WHERE_CONDITION,
    )
)
_OF_MERGE_CONDITIONS = {
    UNSUPPORTED_EXPR_FOR_OPERATOR.name: AGGREGATION_NOT_SUPPORTED,
    INVALID_NON_DETERMINISTIC_EXPRESSIONS.name: NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED,
}


class Scope:
    """Resolves expressions against the columns of a frame.

    Parameters
    ----------
    frame
        The table, one side of a merge, or both sides joined. Columns whose names begin with `__pydelta_` are
        not seen.
    table
        For messages.
    what
        The command, in capitals: conditions of errors depend on it.
    joined
        The frame that the expressions will be evaluated in, where it is another one.
    context
        What expressions mean by the present, and by columns of frames of the table; None: whatever they mean to the
        query that evaluates them.
    label
        What tells the names of this scope's projections from those of others.
    cache
        Spark Connect only: what is known of this scope's expressions from others with the same label.
    """

    def __init__(
        self,
        frame: DataFrame,
        table: str,
        what: str,
        *,
        joined: DataFrame | None = None,
        context: Context | None = None,
        label: str = "",
        cache: ResolutionCache | None = None,
    ) -> None:
        self._whole = frame
        self._cache = cache or ResolutionCache()
        self.projections: dict[str, Column] = {}
        self._joined = joined
        self._context = context
        self._table, self._what, self._label = table, what, label
        self._expressions = engine_of(frame.sparkSession).expressions

    @cached_property
    def frame(self) -> DataFrame:
        """The columns that expressions see."""
        hidden = [name for name in self._whole.columns if name.startswith(HIDDEN)]
        return self._whole.drop(*hidden) if hidden else self._whole

    def resolve(self, expression: Any, clause: str) -> Resolved:
        """The resolved expression.

        Parameters
        ----------
        expression
            SQL text, a `Column`, or a value.
        clause
            Which part of the command it is, for messages: `SET clause`, `condition`, ...

        Raises
        ------
        SchemaError
            It names a column that is not there (with the nearest), or one that is there twice.
        PredicateError
            It cannot be parsed, calls an unknown function, or its types do not fit.
        UnsupportedOperationError
            It is not the same each time, or cannot be computed row by row.
        """
        return self.resolve_all([expression], clause)[0]

    def resolve_all(self, expressions: Sequence[Any], clause: str) -> list[Resolved]:
        """As `resolve`, for many at once."""
        if not expressions:
            return []
        return self._resolve(expressions, clause, predicate=False)

    def predicate(self, expression: Any, clause: str) -> Resolved:
        """The meaning of a condition: as `resolve`, and it has to be boolean and without subqueries.

        Raises
        ------
        PredicateError
            It is not boolean.
        """
        (found,) = self._resolve([expression], clause, predicate=True)
        if found.type not in (BOOLEAN, VOID):
            joins = clause == SEARCH_CONDITION
            mismatch = JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE if joins else DATATYPE_MISMATCH_FILTER_NOT_BOOLEAN
            raise mismatch(
                clause=clause,
                what=self._what,
                table=self._table,
                type=str(found.type),
                sqlExpr=found.text,
                filter=found.text,
            )
        return found

    # --- resolving

    def _resolve(self, expressions: Sequence[Any], clause: str, *, predicate: bool) -> list[Resolved]:
        from pyspark.errors import PySparkException

        try:
            columns = [self._column(e) for e in expressions]
            scope = self._engine_scope(clause, predicate)
            found = self._expressions.resolve(scope, columns, expressions, predicate=predicate)
        except PySparkException as error:
            if len(expressions) == 1:
                raise self._failure(error, expressions[0], clause, predicate) from error
            found = None
        if found is not None:
            return found
        if len(expressions) == 1:
            raise self._refusal(UNSUPPORTED_EXPR_FOR_OPERATOR, expressions[0], clause, predicate)
        # The one that fails tells what is wrong with it.
        return [r for e in expressions for r in self._resolve([e], clause, predicate=predicate)]

    def _engine_scope(self, clause: str, predicate: bool) -> ResolutionScope:
        return ResolutionScope(
            self.frame,
            self._joined,
            self._context,
            self._label,
            clause,
            self._cache,
            self.projections,
            lambda condition, source: self._refusal(condition, source, clause, predicate),
            takes_random=self._what == MERGE.name,
        )

    def _column(self, expression: Any) -> Column:
        from pyspark.sql import Column
        from pyspark.sql import functions as F

        if not isinstance(expression, Column):
            return F.expr(expression) if isinstance(expression, str) else F.lit(expression)
        return expression if self._context is None else self._context.columns(expression, self.frame)

    # --- errors

    def _failure(self, error: PySparkException, source: Any, clause: str, predicate: bool) -> Exception:
        condition = error.getCondition() or CANNOT_RESOLVE_EXPRESSION.name
        if condition in _AGGREGATE or condition.startswith(
            (UNSUPPORTED_EXPR_FOR_OPERATOR.name, UNSUPPORTED_GENERATOR.name)
        ):
            return self._refusal(UNSUPPORTED_EXPR_FOR_OPERATOR, source, clause, predicate)
        if condition == INVALID_NON_DETERMINISTIC_EXPRESSIONS.name:
            return self._refusal(INVALID_NON_DETERMINISTIC_EXPRESSIONS, source, clause, predicate)
        text = _first_paragraph(error)
        message = f"the {clause} of {self._what} on {self._table} cannot be resolved: {text}. {_NOTHING}"
        parameters: dict[str, Any] = {
            "expression": source_text(source),
            **(error.getMessageParameters() or {}),
        }
        parameters |= {"sqlExpr": parameters["expression"], "clause": clause, "cols": self.frame.columns[:50]}
        if condition.startswith(("UNRESOLVED_COLUMN", "MISSING_ATTRIBUTES")):
            if self._what == MERGE.name:
                condition = MERGE_UNRESOLVED_EXPRESSION.name
            return SchemaError(message + self._there(), condition=condition, parameters=parameters)
        if condition.startswith(("AMBIGUOUS", "FIELD_NOT_FOUND")):
            return SchemaError(message, condition=condition, parameters=parameters)
        return PredicateError(message, condition=condition, parameters=parameters)

    def _there(self) -> str:
        return f". Columns to be used here: {', '.join(map(quoted, self.frame.columns[:50]))}"

    def _refusal(
        self,
        condition: ErrorCondition[UnsupportedOperationError],
        source: Any,
        clause: str,
        predicate: bool,
    ) -> UnsupportedOperationError:
        if predicate and self._what == MERGE.name:
            condition = _OF_MERGE_CONDITIONS.get(condition.name, condition)
        return condition(clause=clause, what=self._what, table=self._table, expression=source_text(source))


def _first_paragraph(error: Exception) -> str:
    """Spark's message without its condition and the query plan below it."""
    text = str(error).split("\n\nJVM stacktrace")[0]
    for cut in (";\n", "\n\n== SQL", "\n== SQL", " SQLSTATE:"):
        text = text.split(cut)[0]
    return re.sub(r"^\[[A-Z0-9_.]+\] ", "", text.strip()).rstrip(".")
