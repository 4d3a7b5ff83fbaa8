"""Expressions of a session of Spark Connect: the server is asked for their types, and text is read by the kernel.

What the server makes of a `Column` is not shown, so nothing is known of one but its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.dml import UNSUPPORTED_SUBQUERY
from delta_ds.kernel.format.expressions.tree import (
    Expression,
    columns,
    without_qualifier,
)
from delta_ds.kernel.format.options.settings import ANSI
from delta_ds.kernel.format.schema.column_paths import HIDDEN
from delta_ds.kernel.format.schema.types import DataType, StructType
from delta_ds.spark.base.query_needs import means_one_thing, moves, parsed_text, usable_parts
from delta_ds.spark.base.schema import from_spark
from delta_ds.spark.engines.classic.catalyst.values import OnlySpark
from delta_ds.spark.engines.seam.expressions import ResolutionScope, Resolved, source_text

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType as SparkDataType


class ConnectExpressions:
    """See `Expressions`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    # --- resolving

    def context(self, frame: DataFrame, given: Iterable[DataFrame | str]) -> None:
        """None: what may differ is computed once, and kept."""

    def resolve(
        self,
        scope: ResolutionScope,
        columns: Sequence[SparkColumn],
        sources: Sequence[Any],
        *,
        predicate: bool,
    ) -> list[Resolved] | None:
        for source in sources:
            if predicate and _has_subquery(source):
                raise scope.refuse(UNSUPPORTED_SUBQUERY, source)
        spelled = tuple(source if isinstance(source, str) else id(source) for source in sources)
        found = scope.cache.find(
            (scope.label, scope.clause, predicate, spelled), partial(_asked, scope, columns, predicate)
        )
        return [
            _placed(scope, column, kind, source, clashes=clashes)
            for column, (kind, clashes), source in zip(columns, found, sources, strict=True)
        ]

    def cast_without_ansi(self, value: SparkColumn, kind: SparkDataType) -> SparkColumn:
        return value.cast(kind)

    def has_subqueries(self, columns: Iterable[SparkColumn]) -> bool:
        return False

    def are_one(self, columns: Sequence[SparkColumn]) -> bool:
        return False

    # --- in the kernel's terms

    def predicates(
        self, condition: Resolved, schema: StructType, timezone: str, alias: str | None
    ) -> Sequence[Expression]:
        return self._in_this_mode(usable_parts(condition.source, alias), schema)

    def _in_this_mode(self, parts: Iterable[Expression], schema: StructType) -> list[Expression]:
        """Those that mean in this session what they mean to the kernel, which knows the ANSI mode alone."""
        found = list(parts)
        if str(self._spark.conf.get(ANSI)).lower() == "true":
            return found
        return [part for part in found if means_one_thing(part, schema)]

    def column_ids(self, frame: DataFrame) -> Sequence[int]:
        return ()

    def evaluable(
        self, value: SparkColumn, schema: StructType, timezone: str, names: Mapping[int, str] | None = None
    ) -> Expression:
        raise OnlySpark("a client of Spark Connect does not see what Spark makes of expressions")

    def predicates_of_join(
        self, condition: Resolved, rows: DataFrame, schema: StructType, timezone: str, alias: str | None
    ) -> list[Expression]:
        if alias is None:
            return []
        of_table = (
            without_qualifier(part, alias)
            for part in usable_parts(condition.source)
            if all(len(c.path) > 1 and c.path[0].lower() == alias.lower() for c in columns(part))
        )
        return self._in_this_mode(of_table, schema)

    def equal_keys(
        self, condition: Resolved, rows: DataFrame, source: DataFrame
    ) -> Sequence[tuple[str, SparkColumn]]:
        return ()

    def columns_read(self, condition: Resolved, alias: str | None) -> set[str] | None:
        parts = parsed_text(condition.source, alias)
        return {column.path[0] for part in parts for column in columns(part)} if parts else None

    def functions_of_rows(self, sources: Iterable[object], alias: str | None) -> Sequence[Expression] | None:
        """Each has to be one of the kernel's through and through, or a constant of Python.

        A function of SQL, say, may hold a query.
        """
        from pyspark.sql import Column

        trees: list[Expression] = []
        for source in sources:
            if isinstance(source, Column):
                return None
            if isinstance(source, str):
                found = parsed_text(f"({source}) IS NULL", alias)
                if not found or any(map(moves, found)):
                    return None
                trees += found
        return trees


def _asked(
    scope: ResolutionScope, columns: Sequence[SparkColumn], predicate: bool
) -> list[tuple[DataType, bool]]:
    analysed = _analysed(scope.frame, columns, random=scope.takes_random and not predicate)
    kinds = [field.type for field in from_spark(analysed.schema)]
    return [(kind, _clashes(scope, column, kind)) for column, kind in zip(columns, kinds, strict=True)]


def _analysed(frame: DataFrame, columns: Sequence[SparkColumn], *, random: bool) -> DataFrame:
    """A projection analysed by Spark; its errors become those of the command.

    A filter does not take aggregates, and a join neither these nor what is not the same each time; a projection
    would.
    """
    condition = columns[0].isNull()
    for column in columns[1:]:
        condition = condition & column.isNull()
    if random:
        checked = frame.where(condition)
    else:
        checked = frame.join(frame.sparkSession.range(0).select(), condition, "left_semi")
    return checked.select(*(c.alias(f"{HIDDEN}value_{i}") for i, c in enumerate(columns)))


def _clashes(scope: ResolutionScope, column: SparkColumn, kind: DataType) -> bool:
    """Whether an unresolved column means something else, or nothing, in the joined frame."""
    from pyspark.errors import AnalysisException

    if scope.joined is None:
        return False
    try:
        seen = from_spark(scope.joined.select(column.alias("v")).schema).fields[0].type
    except AnalysisException:
        return True
    return seen != kind


def _placed(
    scope: ResolutionScope, column: SparkColumn, kind: DataType, source: Any, *, clashes: bool
) -> Resolved:
    """An unresolved column for the joined frame, computed before the join where names would clash there."""
    from pyspark.sql import functions as F

    if not clashes:
        return Resolved(column, kind, source_text(source), source)
    name = f"{HIDDEN}value_{scope.label}_{len(scope.projections)}"
    scope.projections[name] = column
    return Resolved(F.col(name), kind, source_text(source), source, name)


def _has_subquery(source: Any) -> bool:
    """Whether SQL text holds a query; what is no text, or no SQL that can be read here, is left to Spark."""
    import sqlglot
    from sqlglot import exp

    if not isinstance(source, str):
        return False
    try:
        return sqlglot.parse_one(source, read="spark").find(exp.Query) is not None
    except sqlglot.errors.SqlglotError:
        return False


# --- columns of frames


def plans_named(spark: SparkSession, expressions: Iterable[object]) -> set[int]:
    """The ids of the plans by which expressions of a client name frames, as `frame.column` does.

    Parameters
    ----------
    expressions
        What is no `Column` names none.
    """
    return {plan for _, plan in _names_in(spark, expressions)}


def names_frames_by_columns(spark: SparkSession, expressions: Iterable[object]) -> bool:
    """Whether nothing in expressions of a client names a frame but columns: no query, and not all of its columns."""
    return all(kind == _COLUMN for kind, _ in _names_in(spark, expressions))


def _names_in(spark: SparkSession, expressions: Iterable[object]) -> Iterator[tuple[str, int]]:
    from pyspark.sql import Column

    for expression in expressions:
        if isinstance(expression, Column):
            tree = expression.to_plan(spark.client)  # type: ignore[operator]
            for message in _messages(tree):
                field = message.DESCRIPTOR.fields_by_name.get("plan_id")
                # That of a subquery is always there.
                if field is not None and (not field.has_presence or message.HasField("plan_id")):
                    yield message.DESCRIPTOR.name, message.plan_id


def renamed(columns: Iterable[SparkColumn], plans: Set[int], qualifier: str) -> list[SparkColumn]:
    """Expressions of a client in which columns of frames with some plans have a qualifier in place of the plan."""
    from pyspark.sql.connect.column import Column as ConnectColumn

    kind = _renamed_class()
    return [ConnectColumn(kind(column._expr, plans, qualifier)) for column in columns]


@cache
def _renamed_class() -> type:
    from pyspark.sql.connect.expressions import Expression as ConnectExpression

    class Renamed(ConnectExpression):
        def __init__(self, expression: ConnectExpression, plans: Set[int], qualifier: str) -> None:
            super().__init__()
            self._expression, self._plans, self._qualifier = expression, plans, qualifier

        def to_plan(self, session: Any) -> Any:
            tree = self._expression.to_plan(session)
            for message in _messages(tree):
                named = message.DESCRIPTOR.name == _COLUMN and message.HasField("plan_id")
                if named and message.plan_id in self._plans:
                    message.ClearField("plan_id")
                    message.unparsed_identifier = f"{self._qualifier}.{message.unparsed_identifier}"
            return tree

        def __repr__(self) -> str:
            return repr(self._expression)

    return Renamed


def plans_of(frames: Iterable[DataFrame | str]) -> set[int]:
    """The ids of the plans of frames of a client, and of those that they are made of."""
    return {
        message.plan_id
        for frame in frames
        if not isinstance(frame, str)
        for message in _messages(frame._plan.plan(frame.sparkSession.client))  # type: ignore[operator]
        if message.DESCRIPTOR.name == _PLAN and message.HasField("plan_id")
    }


_COLUMN, _PLAN = "UnresolvedAttribute", "RelationCommon"


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


def standing_for(frame: DataFrame, plans: Iterable[int]) -> DataFrame:
    """A frame of a client in which columns of frames with other plans mean its columns of the same names."""
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    others = tuple(sorted(plans))
    if not others:
        return frame
    stands = _standing_class()(frame._plan, others)
    return ConnectFrame(stands, frame.sparkSession)  # type: ignore[arg-type]


@cache
def _standing_class() -> type:
    from pyspark.sql.connect import proto
    from pyspark.sql.connect.plan import LogicalPlan

    class Standing(LogicalPlan):
        def __init__(self, child: LogicalPlan, others: Sequence[int]) -> None:
            super().__init__(child)
            self._below, self._others = child, others

        def plan(self, session: Any) -> Any:
            relation = self._below.plan(session)
            # By its own id above them: nothing but what was written for them finds it by these.
            for plan in (*self._others, None):
                above = self._create_proto_relation()
                if plan is not None:
                    above = proto.Relation()
                    above.common.plan_id = plan
                above.project.input.CopyFrom(relation)
                above.project.expressions.add().unresolved_star.SetInParent()
                relation = above
            return relation

    return Standing
