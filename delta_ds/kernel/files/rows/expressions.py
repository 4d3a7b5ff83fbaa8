"""SQL expressions of a table's metadata (constraints, generated columns, defaults), parsed once and bound per task.

A plan carries the parsed trees; the tasks bind them in the session time zone. What cannot be parsed, bound or
evaluated is refused while a write is planned, with its name, its text and the way out.
Source: protocol-checklist CON-W-05, GEN-W-01, DEF-W-01.
"""

from __future__ import annotations

import datetime

import pyarrow as pa

from delta_ds.conditions.data import ARITHMETIC_OVERFLOW, CAST_OVERFLOW
from delta_ds.exceptions import DeltaError, PredicateError, UnsupportedFeatureError
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.evaluate import evaluate, unevaluable
from delta_ds.kernel.format.expressions.functions_text import regex_of
from delta_ds.kernel.format.expressions.temporal import formatter
from delta_ds.kernel.format.expressions.tree import (
    Call,
    Cast,
    Expression,
    Literal,
    fold,
    postorder,
    with_parts,
)
from delta_ds.kernel.format.schema.types import DATE, TIMESTAMP, DataType, StructType
from delta_ds.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class RowExpression:
    """An expression out of the table's metadata.

    Attributes
    ----------
    owner
        What it belongs to, as messages name it: `CHECK constraint positive of /data/t`.
    text
        The SQL as it is stored.
    tree
        The parsed expression, not bound; the current time is already a constant in it.
    condition
        The error condition for an expression that cannot be evaluated.
    remedy
        What the user can do about one.
    """

    owner: str
    text: str
    tree: Expression
    condition: str
    remedy: str

    def bound(
        self, schema: StructType, timezone: str, *, predicate: bool = False, stored: bool = False
    ) -> Expression:
        """The expression bound to a schema, in a session time zone.

        Parameters
        ----------
        schema, timezone, predicate, stored
            See `bind`.

        Raises
        ------
        PredicateError
            It names an unknown column, or its types do not fit.
        UnsupportedFeatureError
            It holds something that cannot be evaluated, which is named.
        """
        try:
            bound = bind(self.tree, schema, timezone, predicate=predicate, stored=stored)
            _check_patterns(bound)
        except PredicateError as error:
            raise self.failure(error) from error
        unknown = unevaluable(bound)
        if unknown is not None:
            raise self.refusal(str(unknown))
        return bound

    def refusal(self, part: str) -> UnsupportedFeatureError:
        """The error for a part of the expression that cannot be evaluated."""
        return UnsupportedFeatureError(
            f"{self} holds {part}, which cannot be evaluated here. {self.remedy} Nothing was written.",
            condition=self.condition,
            parameters={"expression": self.text, "part": part},
        )

    def evaluated(self, bound: Expression, batch: pa.RecordBatch) -> pa.Array:
        """The values of the bound expression for every row.

        Raises
        ------
        PredicateError
            Spark would raise too, on a division by zero, an overflow, ...
        """
        try:
            return evaluate(bound, batch)
        except PredicateError as error:
            raise self.failure(error) from error

    def failure(self, error: DeltaError) -> PredicateError:
        """The error of an expression under the name of its owner."""
        message = f"{self} fails: {error.text}. Nothing was written."
        condition = error.condition
        if isinstance(error.__cause__, (pa.ArrowException, OverflowError)):
            condition = (CAST_OVERFLOW if "not in range" in error.text else ARITHMETIC_OVERFLOW).name
        return PredicateError(message, condition=condition, parameters=error.parameters)

    def cast_to(self, data_type: DataType) -> RowExpression:
        """The same expression as another type."""
        return replace(self, tree=Cast(self.tree, data_type))

    def __str__(self) -> str:
        return f"{self.owner} ({self.text})"


def read_row_expression(
    owner: str, text: object, now: datetime.datetime, condition: str, remedy: str
) -> RowExpression:
    """Parse an expression of the table's metadata.

    Parameters
    ----------
    owner, condition, remedy
        See `RowExpression`.
    text
        The SQL.
    now
        The timestamp that `current_timestamp()` and `current_date()` stand for in the whole write, aware.

    Raises
    ------
    UnsupportedFeatureError
        The text cannot be parsed.
    """
    from delta_ds.kernel.format.expressions.sql import parse_definition

    try:
        tree = parse_definition(text)  # type: ignore[arg-type]
    except PredicateError as error:
        raise UnsupportedFeatureError(
            f"{owner} ({text}) cannot be read: {error.text}. {remedy} Nothing was written.",
            condition=condition,
            parameters={"expression": text},
        ) from error
    return RowExpression(owner, str(text), at_timestamp(tree, now), condition, remedy)


def _check_patterns(bound: Expression) -> None:
    """Read the constant patterns of an expression, so that one that cannot be used shows before any row."""
    for node in postorder(bound):
        if not isinstance(node, Call) or len(node.args) < 2 or not isinstance(node.args[1], Literal):
            continue
        pattern = node.args[1].value
        if isinstance(pattern, str) and node.name in ("rlike", "regexp_replace", "regexp_extract"):
            regex_of(pattern)
        elif isinstance(pattern, str) and node.name == "date_format":
            formatter(pattern)


def at_timestamp(expression: Expression, now: datetime.datetime) -> Expression:
    """The tree with the current time as a constant, aware: the same in every task and time zone."""

    def combine(node: Expression, parts: list[Expression]) -> Expression:
        if isinstance(node, Call) and node.name in ("current_timestamp", "current_date") and not parts:
            timestamp = Literal(now, TIMESTAMP)
            return timestamp if node.name == "current_timestamp" else Cast(timestamp, DATE)
        return with_parts(node, parts)

    return fold(expression, combine)
