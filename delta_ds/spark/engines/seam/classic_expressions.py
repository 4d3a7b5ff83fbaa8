"""Expressions of a classic session, by Catalyst's trees of them: resolved, and as expressions of the kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.dml import INVALID_NON_DETERMINISTIC_EXPRESSIONS, UNSUPPORTED_SUBQUERY
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.column_paths import HIDDEN
from delta_ds.spark.base.schema import from_spark
from delta_ds.spark.engines.classic import resolution
from delta_ds.spark.engines.classic.catalyst_filters import Paths, translate, translate_whole
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.engines.seam.expressions import ResolutionScope, Resolved

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType as SparkDataType

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.schema.types import StructType
    from delta_ds.spark.base.kinds.java_object import JavaObject


class ClassicExpressions:
    """See `Expressions`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def context(self, frame: DataFrame, given: Iterable[DataFrame | str]) -> resolution.ExpressionContext:
        return resolution.ExpressionContext(frame, given)

    def resolve(
        self, scope: ResolutionScope, columns: Sequence[Column], sources: Sequence[Any], *, predicate: bool
    ) -> list[Resolved] | None:
        selected = scope.frame.select(*(c.alias(f"{HIDDEN}value_{i}") for i, c in enumerate(columns)))
        assert scope.context is None or isinstance(scope.context, resolution.ExpressionContext)
        found = resolution.resolve(scope.frame, selected, scope.context)
        if found is None:
            return None
        types = [field.type for field in from_spark(selected.schema)]
        resolved = []
        for expression, kind, source in zip(found, types, sources, strict=True):
            if predicate and expression.subquery:
                raise scope.refuse(UNSUPPORTED_SUBQUERY, source)
            if not expression.deterministic and (predicate or not scope.takes_random):
                raise scope.refuse(INVALID_NON_DETERMINISTIC_EXPRESSIONS, source)
            resolved.append(
                Resolved(expression.column, kind, expression.text, source, subquery=expression.subquery)
            )
        return resolved

    def predicates(
        self, condition: Resolved, schema: StructType, timezone: str, alias: str | None
    ) -> Sequence[Expression]:
        return implied_predicates(self._spark, condition.column, _paths(schema), timezone)

    def column_ids(self, frame: DataFrame) -> Sequence[int]:
        return resolution.column_ids(frame)

    def evaluable(
        self, value: Column, schema: StructType, timezone: str, names: Mapping[int, str] | None = None
    ) -> Expression:
        return whole_expression(self._spark, value, _plain_paths(schema), timezone, names)

    def predicates_of_join(
        self, condition: Resolved, rows: DataFrame, schema: StructType, timezone: str, alias: str | None
    ) -> list[Expression]:
        return demands_of(condition.column, rows, _paths(schema), timezone)

    def equal_keys(
        self, condition: Resolved, rows: DataFrame, source: DataFrame
    ) -> Sequence[tuple[str, Column]]:
        return equal_keys(condition.column, rows, source)

    def columns_read(self, condition: Resolved, alias: str | None) -> set[str] | None:
        return referenced_columns(self._spark, condition.column)

    def functions_of_rows(self, sources: Iterable[object], alias: str | None) -> Sequence[Expression]:
        """What else they read is seen while they are evaluated: `Engine.pinned`."""
        return ()

    def cast_without_ansi(self, value: Column, kind: SparkDataType) -> Column:
        return Jvm.of(self._spark).cast_without_ansi(value, kind)

    def has_subqueries(self, columns: Iterable[Column]) -> bool:
        jvm = Jvm.of(self._spark)
        module = jvm.module("org.apache.spark.sql.catalyst.expressions.SubqueryExpression$")
        return any(module.hasSubquery(jvm.expression(column)) for column in columns)

    def are_one(self, columns: Sequence[Column]) -> bool:
        return resolution.same_column(self._spark, columns)


def _paths(schema: StructType) -> Callable[[tuple[str, ...]], tuple[str, ...] | None]:
    def path(names: tuple[str, ...]) -> tuple[str, ...] | None:
        return names if schema.find(names[0]) is not None else None

    return path


def _plain_paths(schema: StructType) -> Callable[[tuple[str, ...]], tuple[str, ...] | None]:
    """As `_paths`, without columns whose texts compare otherwise than by their bytes."""

    def path(names: tuple[str, ...]) -> tuple[str, ...] | None:
        field = schema.find(names[0])
        return names if field is not None and compares_by_bytes(field) else None

    return path


def implied_predicates(
    spark: SparkSession, condition: Column, paths: Paths, timezone: str
) -> list[Expression]:
    """Expressions that hold wherever a condition is true.

    Parameters
    ----------
    spark
        A classic session.
    condition
        Resolved.
    paths, timezone
        See `translate`.

    Returns
    -------
    list of Expression
        Not bound; none where the condition says nothing that the kernel knows.
    """
    jvm = Jvm.of(spark)
    return translate(jvm.seq([jvm.expression(condition)]), paths, timezone)


def whole_expression(
    spark: SparkSession,
    column: Column,
    paths: Paths,
    timezone: str,
    names: Mapping[int, str] | None = None,
) -> Expression:
    """The kernel's expression that has the values of a resolved one in all rows.

    Parameters as of `translate_whole`, and `spark` a classic session.

    Raises
    ------
    OnlySpark
        There is none.
    """
    return translate_whole(Jvm.of(spark).expression(column), paths, timezone, names)


def referenced_columns(spark: SparkSession, condition: Column) -> set[str]:
    """The names of the columns that a resolved condition reads."""
    references = Jvm.of(spark).expression(condition).references().toSeq()
    return {str(references.apply(i).name()) for i in range(references.size())}


def demands_of(condition: Column, side: DataFrame, paths: Paths, timezone: str) -> list[Expression]:
    """The conjuncts of a join condition on one side only, as the kernel can express them.

    Parameters
    ----------
    condition
        Resolved in the join.
    side
        The side.
    paths, timezone
        See `translate`.
    """
    jvm = Jvm.of(side.sparkSession)
    output = jvm.logical_plan(side).outputSet()
    own = [part for part in _conjuncts(jvm.expression(condition)) if _is_of(part, output)]
    return translate(jvm.seq(own), paths, timezone) if own else []


def equal_keys(condition: Column, side: DataFrame, other: DataFrame) -> list[tuple[str, Column]]:
    """The columns of one side that have to equal an expression over the other side.

    Returns
    -------
    list of tuple
        Name of the column and the expression, of the same type.
    """
    jvm = Jvm.of(side.sparkSession)
    mine, theirs = (jvm.logical_plan(frame).outputSet() for frame in (side, other))
    found = []
    for part in _conjuncts(jvm.expression(condition)):
        if part.nodeName() != "EqualTo":
            continue
        for column, value in ((part.left(), part.right()), (part.right(), part.left())):
            if column.nodeName() != "AttributeReference" or not _is_of(column, mine):
                continue
            if _is_of(value, theirs) and value.dataType().equals(column.dataType()):
                found.append((str(column.name()), jvm.column(value)))
    return found


def _conjuncts(expression: JavaObject) -> Iterator[JavaObject]:
    if expression.nodeName() == "And":
        yield from _conjuncts(expression.left())
        yield from _conjuncts(expression.right())
    else:
        yield expression


def _is_of(expression: JavaObject, output: JavaObject) -> bool:
    references = expression.references()
    return bool(references.nonEmpty()) and bool(references.subsetOf(output))
