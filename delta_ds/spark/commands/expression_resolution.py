"""Resolve the expressions of a command against its source and target, and give them in the kernel's terms.

UPDATE and DELETE see the table. In MERGE each kind of clause sees one side or both, and all are evaluated in one
join of the two; so a name is resolved where it was written, before the join can make it ambiguous. The kernel's terms
of them choose files, serve conflict checks, and find rows.

Source: delta-spark, `ResolveDeltaMergeInto`, `PreprocessTableMerge`, `PreprocessTableUpdate`, `PreprocessTableDelete`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
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
from delta_ds.kernel.commands.dml.candidates import all_evaluable
from delta_ds.kernel.commands.dml.new_values import NewValue, NewValues
from delta_ds.kernel.commands.dml.row_finder import RowFinder
from delta_ds.kernel.files.rows.expressions import RowExpression
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.evaluate import unevaluable
from delta_ds.kernel.format.operations import MERGE
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.column_paths import HIDDEN, Path, find, show
from delta_ds.kernel.format.schema.types import BOOLEAN, VOID, without_metadata
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.engines.classic.catalyst_values import OnlySpark, cast_alike
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

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.schema.types import DataType, StructField, StructType
    from delta_ds.spark.commands.dml_target import DmlTarget

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
                name = str(parameters.get("objectName", parameters["expression"])).replace("`", "")
                message = f"Cannot resolve {name} in {clause} given columns {self._columns()}: {message}"
            return SchemaError(message + self._there(), condition=condition, parameters=parameters)
        if condition.startswith(("AMBIGUOUS", "FIELD_NOT_FOUND")):
            return SchemaError(message, condition=condition, parameters=parameters)
        return PredicateError(message, condition=condition, parameters=parameters)

    def _there(self) -> str:
        return f". Columns to be used here: {self._columns()}"

    def _columns(self) -> str:
        return ", ".join(map(quoted, self.frame.columns[:50]))

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


def predicate_of(target: DmlTarget, condition: Resolved) -> Expression | None:
    """The part of a condition on the table that the kernel can express; None for no part. Not bound."""
    expressions = target.engine.expressions
    return target.understood(
        expressions.predicates(condition, target.schema, target.timezone, target.handle.alias)
    )


def evaluable(target: DmlTarget, value: Resolved) -> Expression:
    """What a user wrote over a table, as the kernel evaluates it row by row as Spark does. Not bound.

    Raises
    ------
    OnlySpark
        Spark has to evaluate it.
    """
    tree = target.engine.expressions.evaluable(value.column, target.schema, target.timezone)
    check_type(bound_alike(tree, target.schema, target.timezone), value.type)
    return tree


def bound_alike(value: Expression, schema: StructType, timezone: str) -> Expression:
    """A translated expression, bound.

    Raises
    ------
    OnlySpark
        It cannot be evaluated.
    """
    try:
        bound = bind(value, schema, timezone, predicate=False)
    except PredicateError as error:
        raise OnlySpark(error.text) from error
    unknown = unevaluable(bound)
    if unknown is not None:
        raise OnlySpark(f"the expression {unknown}")
    return bound


def check_type(bound: Expression, kind: DataType) -> None:
    """Refuse a translated expression whose values are not of the type that Spark gives them.

    Raises
    ------
    OnlySpark
        They are not.
    """
    bound_type = bound.type
    if (
        bound_type is not None
        and bound_type != VOID
        and without_metadata(bound_type) != without_metadata(kind)
    ):
        raise OnlySpark(f"a value of type {kind}, which would be {bound.type}")


def finder_of(target: DmlTarget, condition: Expression | None, values: NewValues | None = None) -> RowFinder:
    """Finds rows of the version that a command reads by Arrow; a condition of `evaluable`, None: all rows."""
    assert target.snapshot is not None  # Arrow reads where the log is
    bound = None if condition is None else bind(condition, target.schema, target.timezone)
    return RowFinder.of(target.snapshot, bound, target.timezone, values)


def new_value_of(target: DmlTarget, path: Path, value: Resolved, operation: str) -> NewValue:
    """A value of an UPDATE as the kernel computes it.

    Raises
    ------
    OnlySpark
        Spark has to compute it.
    """
    found = find(target.schema, path)
    assert found is not None  # assignments were resolved
    field = found[1]
    top = target.schema.find(path[0])
    if top is None or not compares_by_bytes(top):
        raise OnlySpark(f"a value for {show(path)}, whose texts have a form of their own")
    tree = evaluable(target, value)
    if without_metadata(value.type) != without_metadata(field.type):
        tree = cast_alike(tree, value.type, field.type)
    owner = f"SET {show(path)} of the {operation} of {target.handle.where}"
    clause = RowExpression(owner, value.text, tree, CANNOT_RESOLVE_EXPRESSION.name, "")
    return NewValue(found[0], field, clause, bound_alike(tree, target.schema, target.timezone))


def are_functions_of_rows(target: DmlTarget, sources: Iterable[object]) -> bool:
    """Whether expressions as they were given depend on nothing but the row; False where that is not known."""
    trees = target.engine.expressions.functions_of_rows(sources, target.handle.alias)
    if trees is None:
        return False
    return not trees or bool(target.ask(all_evaluable, list(trees), target.timezone))


def demands_on_target(target: DmlTarget, condition: Resolved, rows: DataFrame) -> list[Expression]:
    """The part of a MERGE condition on the table alone.

    Parameters
    ----------
    condition
        Of the join.
    rows
        The table's side of it.
    """
    expressions = target.engine.expressions
    return expressions.predicates_of_join(
        condition, rows, target.schema, target.timezone, target.handle.alias
    )


def keys_of(
    target: DmlTarget, condition: Resolved, rows: DataFrame, source: DataFrame
) -> list[tuple[StructField, Column]]:
    """The columns of the table that must equal a source expression, with that expression."""
    pairs = target.engine.expressions.equal_keys(condition, rows, source)
    fields = ((target.schema.find(name), value) for name, value in pairs)
    return [(field, value) for field, value in fields if field is not None]


def columns_of(target: DmlTarget, condition: Resolved) -> set[str] | None:
    """The names of the columns that a condition reads; None where that is not known."""
    return target.engine.expressions.columns_read(condition, target.handle.alias)


def reads_only(target: DmlTarget, condition: Resolved, names: Collection[str]) -> bool:
    """Whether a condition reads some columns, and no others than these; False where that is not known."""
    read = columns_of(target, condition)
    lower_names = {name.lower() for name in names}
    return bool(read) and {name.lower() for name in read or ()} <= lower_names
