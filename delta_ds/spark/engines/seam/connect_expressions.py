"""Expressions of a session of Spark Connect: the server is asked for their types, and text is read by the kernel.

What the server makes of a `Column` is not shown, so nothing is known of one but its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from delta_ds.conditions.dml import UNSUPPORTED_SUBQUERY
from delta_ds.kernel.format.expressions.tree import Expression, columns, without_qualifier
from delta_ds.kernel.format.options.settings import ANSI
from delta_ds.kernel.format.schema.column_paths import HIDDEN
from delta_ds.kernel.format.schema.types import DataType, StructType
from delta_ds.spark.base.query_needs import means_one_thing, moves, parsed_text, usable_parts
from delta_ds.spark.base.schema import from_spark
from delta_ds.spark.engines import monkeypatch
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

    def context(self, frame: DataFrame, given: Iterable[DataFrame | str]) -> FramesOfTable:
        """What may differ is computed once, and kept."""
        return FramesOfTable(self._spark, given)

    def resolve(
        self,
        scope: ResolutionScope,
        columns: Sequence[SparkColumn],
        sources: Sequence[Any],
        *,
        predicate: bool,
    ) -> list[Resolved] | None:
        if predicate and (queries := [source for source in sources if _has_subquery(source)]):
            raise scope.refuse(UNSUPPORTED_SUBQUERY, queries[0])
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
    return Resolved(F.col(name), kind, source_text(source), source)


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


def plans_of_columns(spark: SparkSession, expressions: Iterable[object]) -> set[int] | None:
    """As `plans_named`; None where something names a frame that is no column: a query, or all of its columns."""
    named = list(_names_in(spark, expressions))
    return {plan for _, plan in named} if all(kind == _COLUMN for kind, _ in named) else None


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
