"""Expressions of a client: conditions in its queries, as those of the kernel; the frames whose columns they name."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from delta_ds.kernel.format.expressions.tree import Call, Column, Expression, Literal, fold
from delta_ds.spark.base.query_needs import usable_parts
from delta_ds.spark.engines import monkeypatch

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

_CALLS = {
    "==": "=", "=": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>", "in": "in", "not": "not", "!": "not",
    "isnull": "isnull", "isnotnull": "isnotnull", "or": "or", "and": "and",
}  # fmt: skip
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
# Conditions of more levels, as programs write them, count for nothing.
_MOST_LEVELS = 50
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def path_of_name(identifier: str) -> tuple[str, ...]:
    """The names in the name of a column or field, as a client sends it."""
    return tuple(quoted.replace("``", "`") or plain for quoted, plain in _PART.findall(identifier))


def conditions_in(expression: Any) -> list[Expression]:
    """The parts of a condition that are understood; the others count for nothing."""
    found: list[Expression] = []
    pending = [expression]
    while pending:
        part = pending.pop()
        function = part.unresolved_function
        if part.WhichOneof("expr_type") == "expression_string":
            trees = usable_parts(part.expression_string.expression)
            found += [tree for tree in trees if fold(tree, _levels) <= _MOST_LEVELS]
        elif function.function_name.lower() == "and" and not function.is_user_defined_function:
            pending += list(function.arguments)[::-1]
        else:
            tree = _tree(part, _MOST_LEVELS)
            found += [] if tree is None else [tree]
    return found


def _levels(node: Expression, below: Sequence[int]) -> int:
    return 1 + max(below, default=0)


def _tree(expression: Any, levels: int) -> Expression | None:
    """An expression of the kernel, of so many levels at most; None: it may be something else to Spark."""
    kind = expression.WhichOneof("expr_type")
    if kind == "unresolved_attribute":
        attribute = expression.unresolved_attribute
        path = path_of_name(attribute.unparsed_identifier)
        return None if attribute.is_metadata_column or not path else Column(path)
    if kind == "literal":
        return _literal(expression.literal)
    function = expression.unresolved_function
    if kind != "unresolved_function" or function.is_user_defined_function or not levels:
        return None
    name = _CALLS.get(function.function_name.lower())
    known: list[Expression] = []
    for argument in function.arguments if name is not None else ():
        part = _tree(argument, levels - 1)
        if part is None:
            return None
        known.append(part)
    return None if name is None or (name == "in" and len(known) < 2) else Call(name, tuple(known))


def _literal(literal: Any) -> Expression | None:
    kind = literal.WhichOneof("literal_type")
    try:
        value = _VALUES[kind](getattr(literal, kind))
    except (KeyError, ArithmeticError, ValueError):
        return None
    return Literal(value)


def _days(value: int) -> dt.date:
    return (_EPOCH + dt.timedelta(days=value)).date()


def _microseconds(value: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=value)


def _finite(value: float) -> float:
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(value)
    return value


_VALUES: Mapping[str, Any] = {
    "boolean": bool,
    "byte": int,
    "short": int,
    "integer": int,
    "long": int,
    "double": _finite,
    "string": str,
    "decimal": lambda value: Decimal(value.value),
    "date": _days,
    "timestamp": _microseconds,
    "timestamp_ntz": lambda value: _microseconds(value).replace(tzinfo=None),
}


# --- columns of frames


def plans_named(spark: SparkSession, expressions: Iterable[object]) -> set[int]:
    """The ids of the plans by which expressions of a client name frames, as `frame.column` does.

    Parameters
    ----------
    expressions
        What is no `Column` names none.
    """
    return {plan for _, plan in _names_in(spark, expressions)}


def plans_of_columns(spark: SparkSession, expressions: Iterable[object]) -> set[int] | None:
    """As `plans_named`; None where something names a frame that is no column: a query, or all of its columns."""
    named = list(_names_in(spark, expressions))
    return {plan for _, plan in named} if all(kind == _COLUMN for kind, _ in named) else None


def _names_in(spark: SparkSession, expressions: Iterable[object]) -> Iterator[tuple[str, int]]:
    from pyspark.sql import Column as SparkColumn

    for expression in expressions:
        if isinstance(expression, SparkColumn):
            tree = expression.to_plan(spark.client)  # type: ignore[operator]
            for message in _messages(tree):
                field = message.DESCRIPTOR.fields_by_name.get("plan_id")
                # That of a subquery is always there.
                if field is not None and (not field.has_presence or message.HasField("plan_id")):
                    yield message.DESCRIPTOR.name, message.plan_id


def renamed(columns: Iterable[SparkColumn], plans: Set[int], qualifier: str) -> list[SparkColumn]:
    """Expressions of a client in which columns of frames with some plans have a qualifier in place of the plan."""

    def rename(column: Any) -> None:
        if column.plan_id in plans:
            column.ClearField("plan_id")
            column.unparsed_identifier = f"{qualifier}.{column.unparsed_identifier}"

    return [_changed(column, rename) for column in columns]


def _changed(column: SparkColumn, change: Callable[[Any], None]) -> SparkColumn:
    """An expression of a client with a change of the columns in it that name plans."""
    from pyspark.sql.connect.column import Column as ConnectColumn

    return ConnectColumn(_changed_class()(column._expr, change))


@cache
def _changed_class() -> type:
    from pyspark.sql.connect.expressions import Expression as ConnectExpression

    class Changed(ConnectExpression):
        def __init__(self, expression: ConnectExpression, change: Callable[[Any], None]) -> None:
            super().__init__()
            self._expression, self._change = expression, change
            self._tree: Any = None

        def to_plan(self, session: Any) -> Any:
            # Made once: commands ask for it more than once.
            if self._tree is None:
                made = self._expression.to_plan(session)
                self._tree = type(made)()
                self._tree.CopyFrom(made)  # the other one may be kept, too
                for message in _messages(self._tree):
                    if message.DESCRIPTOR.name == _COLUMN and message.HasField("plan_id"):
                        self._change(message)
            return self._tree

        def __repr__(self) -> str:
            return repr(self._expression)

    return Changed


# --- frames that are made of the table's

# The plans of frames that columns were taken of, as long as there is such a column.
_plans: WeakValueDictionary[int, Any] = WeakValueDictionary()


def keep_plans_of_columns() -> None:
    """From now on let a column of a client's DataFrame hold the plan of it, of which Spark gives it the id alone."""
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    monkeypatch.apply(ConnectFrame, "_col", lambda frame, arguments: True, _column_with_plan)


def _column_with_plan(original: Callable[..., Any], frame: Any, arguments: dict[str, Any]) -> Any:
    column = original(frame, **arguments)
    column._expr.plan_of_frame = _plans[frame._plan._plan_id] = frame._plan
    return column


class FramesOfTable:
    """Columns of frames that are made of those of the table: they are the table's where Spark passes these on.

    See `Context`.

    Parameters
    ----------
    spark
        A session of Spark Connect.
    given
        Frames of the table that its user holds.
    """

    def __init__(self, spark: SparkSession, given: Iterable[DataFrame | str]) -> None:
        self._spark = spark
        self._given: list[Any] = [frame for frame in given if not isinstance(frame, str)]

    @cached_property
    def plans(self) -> set[int]:
        """The ids of the plans of the frames that were given."""
        return plans_of(self._given)

    def columns(self, expression: SparkColumn, frame: DataFrame | None) -> SparkColumn:
        named = plans_named(self._spark, [expression])
        given = {frame._plan._plan_id: frame for frame in self._given}
        made = {plan: of for plan in named - self.plans if (of := _plans.get(plan)) is not None}
        if not self._given or not (made or self.plans & named):
            return expression

        def trace(column: Any) -> None:
            if column.plan_id in made:
                self._trace(column, made[column.plan_id], frame)
            elif column.plan_id in given:
                name, _ = _beneath_alias(given[column.plan_id], column.unparsed_identifier, column.plan_id)
                column.unparsed_identifier = name

        return _changed(expression, trace)

    def _trace(self, column: Any, plan: Any, frame: DataFrame | None) -> None:
        """Name a column of a frame as the command finds it; as it is where it is not the table's."""
        from pyspark.sql.connect.column import Column as ConnectColumn
        from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
        from pyspark.sql.connect.expressions import ColumnReference

        own = ConnectColumn(ColumnReference(column.unparsed_identifier, column.plan_id))
        made: Any = ConnectFrame(plan, self._spark)  # type: ignore[arg-type]
        if _joins_by_names_of_the_right(made):
            return  # its columns of these names are those of the other side
        beneath = plans_of([made])
        for table in (given._plan._plan_id for given in self._given):
            if table not in beneath:
                continue
            name, aliases = _beneath_alias(made, column.unparsed_identifier, table)
            others = [ConnectColumn(ColumnReference(name, plan)) for plan in (*aliases, table)]
            if _is_there(made, own, *others):
                # What the source of a merge has of it is the source's.
                if frame is None or not _is_there(frame, own):
                    column.plan_id, column.unparsed_identifier = table, name
                return


def _is_there(frame: DataFrame, *columns: SparkColumn) -> bool:
    """Whether a frame has some columns, by the plans that they name."""
    from pyspark.errors import AnalysisException

    try:
        return len(frame.select(*columns).schema) == len(columns)
    except AnalysisException:
        return False


def _beneath_alias(frame: Any, name: str, table: int) -> tuple[str, list[int]]:
    """A column's name without the alias of a frame in front, which covers a table's plan; and the plan of the alias.

    The name as it is, and no plan, where there is no such alias. Of the columns that have its name an alias has one,
    whatever stands beside it in a join.
    """
    first, _, rest = name.partition(".")
    if not rest:
        return name, []
    alias = first.strip("`").lower()
    found = [
        message.common.plan_id
        for message in _messages(_tree_of(frame))
        if message.DESCRIPTOR.name == "Relation"
        and message.subquery_alias.alias.lower() == alias
        and table in _plans_in(message)
    ]
    # A column of that name may be meant, and a field of it.
    if len(found) != 1 or alias in map(str.lower, frame.columns):
        return name, []
    return rest, found


def _plans_in(tree: Any) -> set[int]:
    relations = (message for message in _messages(tree) if message.DESCRIPTOR.name == _PLAN)
    return {relation.plan_id for relation in relations if relation.HasField("plan_id")}


def plans_of(frames: Iterable[DataFrame | str]) -> set[int]:
    """The ids of the plans of frames of a client, and of those that they are made of."""
    return {plan for frame in frames if not isinstance(frame, str) for plan in _plans_in(_tree_of(frame))}


def _tree_of(frame: Any) -> Any:
    return frame._plan.plan(frame.sparkSession.client)


def alias_of(frame: DataFrame) -> str | None:
    """The alias of all columns of a frame; None where it has none of its own."""
    plan = frame._plan.plan(frame.sparkSession.client)  # type: ignore[operator]
    return str(plan.subquery_alias.alias) if plan.HasField("subquery_alias") else None


def _joins_by_names_of_the_right(frame: DataFrame) -> bool:
    """Whether a frame is made by a join that takes the columns it joins by from its right side, or from both."""
    return any(
        message.DESCRIPTOR.name == _JOIN
        and message.using_columns
        and message.JoinType.Name(message.join_type) in _OF_THE_RIGHT
        for message in _messages(_tree_of(frame))
    )


_COLUMN, _PLAN, _JOIN = "UnresolvedAttribute", "RelationCommon", "Join"
_OF_THE_RIGHT = ("JOIN_TYPE_RIGHT_OUTER", "JOIN_TYPE_FULL_OUTER")


def _messages(message: Any) -> Iterator[Any]:
    """A message and all that it holds."""
    pending = [message]
    while pending:
        found = pending.pop()
        yield found
        for field, value in found.ListFields():
            if field.message_type is not None:
                parts = [value] if hasattr(value, "ListFields") else value
                pending += [part for part in parts if hasattr(part, "ListFields")]
