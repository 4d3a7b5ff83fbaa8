"""Expressions of a session of Spark Connect: the server is asked for their types, and text is read by the kernel.

What the server makes of a `Column` is not shown, so nothing is known of one but its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.dml import UNSUPPORTED_SUBQUERY
from delta_ds.kernel.format.expressions.tree import Expression, columns, without_qualifier
from delta_ds.kernel.format.options.settings import ANSI
from delta_ds.kernel.format.schema.column_paths import HIDDEN
from delta_ds.kernel.format.schema.types import DataType, StructType
from delta_ds.spark.base.query_needs import means_one_thing, moves, parsed_text, usable_parts
from delta_ds.spark.base.schema import from_spark
from delta_ds.spark.engines.classic.catalyst_values import OnlySpark
from delta_ds.spark.engines.connect.expressions import FramesOfTable
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
