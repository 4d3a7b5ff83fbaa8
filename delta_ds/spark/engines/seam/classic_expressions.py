"""Expressions of a classic session, by Catalyst's trees of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.dml import INVALID_NON_DETERMINISTIC_EXPRESSIONS, UNSUPPORTED_SUBQUERY
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.column_paths import HIDDEN
from delta_ds.spark.base.schema import from_spark
from delta_ds.spark.engines.classic import resolution
from delta_ds.spark.engines.classic.catalyst import conditions
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.engines.seam.expressions import ResolutionScope, Resolved

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType as SparkDataType

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.schema.types import StructType


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
        return conditions.implied_predicates(self._spark, condition.column, _paths(schema), timezone)

    def column_ids(self, frame: DataFrame) -> Sequence[int]:
        return resolution.column_ids(frame)

    def evaluable(
        self, value: Column, schema: StructType, timezone: str, names: Mapping[int, str] | None = None
    ) -> Expression:
        return conditions.whole_expression(self._spark, value, _plain_paths(schema), timezone, names)

    def predicates_of_join(
        self, condition: Resolved, rows: DataFrame, schema: StructType, timezone: str, alias: str | None
    ) -> list[Expression]:
        return conditions.demands_of(condition.column, rows, _paths(schema), timezone)

    def equal_keys(
        self, condition: Resolved, rows: DataFrame, source: DataFrame
    ) -> Sequence[tuple[str, Column]]:
        return conditions.equal_keys(condition.column, rows, source)

    def columns_read(self, condition: Resolved, alias: str | None) -> set[str] | None:
        return conditions.referenced_columns(self._spark, condition.column)

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
