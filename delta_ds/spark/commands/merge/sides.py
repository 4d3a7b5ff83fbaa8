"""The two sides of a MERGE: their columns, told apart by id whatever their names, and the source, computed once."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.dml import AMBIGUOUS_REFERENCE, MERGE_UNRESOLVED_EXPRESSION
from delta_ds.kernel.format.expressions.coercion import INTEGRAL
from delta_ds.kernel.format.expressions.tree import Call, Expression, Literal
from delta_ds.kernel.format.expressions.tree import Column as KernelColumn
from delta_ds.kernel.format.schema.column_paths import HIDDEN, Path, parse_path
from delta_ds.kernel.format.schema.types import DATE, STRING, DataType, DecimalType, StructType
from delta_ds.kernel.transaction.write.schema_enforcement import data_schema
from delta_ds.records import dataclass
from delta_ds.spark.base.schema import from_spark
from delta_ds.spark.commands.by_arrow import materialize
from delta_ds.spark.engines.seam.choice import engine_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Side:
    """One side of a merge.

    Attributes
    ----------
    frame
        Its rows; columns whose names begin with `__pydelta_` are not seen.
    schema
        Its columns.
    """

    frame: DataFrame
    schema: StructType

    @classmethod
    def of(cls, frame: DataFrame) -> Side:
        """A side made of a frame alone, without a table behind it."""
        schema = from_spark(frame.schema)
        return cls(frame, data_schema(StructType(tuple(f for f in schema if not f.name.startswith(HIDDEN)))))

    @cached_property
    def columns(self) -> list[Column]:
        """The visible columns, in the order of the frame."""
        found = engine_of(self.frame.sparkSession).frames.columns(self.frame)
        return [c for name, c in zip(self.frame.columns, found, strict=True) if not name.startswith(HIDDEN)]

    def column(self, name: str) -> Column:
        """The column of that name."""
        names = [n.lower() for n in self.frame.columns if not n.startswith(HIDDEN)]
        return self.columns[names.index(name.lower())]

    def position(self, name: str, table: str, clause: str) -> int:
        """The position of a column whose name is unique.

        Raises
        ------
        SchemaError
            `DELTA_MERGE_UNRESOLVED_EXPRESSION` with the nearest name, or `AMBIGUOUS_REFERENCE`.
        """
        found = [i for i, n in enumerate(self.schema.names) if n.lower() == name.lower()]
        if len(found) == 1:
            return found[0]
        if found:
            raise AMBIGUOUS_REFERENCE(clause=clause, table=table, count=len(found), column=name)
        near = difflib.get_close_matches(
            name.lower(), [n.lower() for n in self.schema.names], n=1, cutoff=0.5
        )
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(self.schema.names[:20])}"
        action = clause.removesuffix(" *").rpartition(" ")[2]
        raise MERGE_UNRESOLVED_EXPRESSION(action=action, clause=clause, table=table, column=name, hint=hint)

    def find(self, name: str) -> Path | None:
        """The path of a column or field written as in Spark SQL, perhaps qualified; None without one."""
        from pyspark.errors import PySparkException

        path = parse_path(name)
        found = _inside(self.schema, path)
        if found is not None or len(path) == 1:
            return found
        below = _inside(self.schema, path[1:])
        if below is None:
            return None
        try:
            _ = self.frame.select(name).schema
        except PySparkException:
            return None
        return below


def _inside(schema: StructType, path: Path) -> Path | None:
    """A path in the case of the schema, through structs only."""
    exact: list[str] = []
    level = schema
    for at, name in enumerate(path):
        field = level.find(name)
        if field is None:
            return None
        exact.append(field.name)
        if isinstance(field.type, StructType):
            level = field.type
        elif at + 1 < len(path):
            return None
    return tuple(exact)


_EPOCH = datetime.date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class SourceStats:
    """The number of rows of the source, and the bounds of its keys.

    Attributes
    ----------
    rows
        How many.
    variable_bytes
        What those values take together whose types do not say how long they are.
    bounds
        For each key the smallest and the largest value, None without any; dates as days since 1970, text in UTF-8.
    """

    rows: int
    variable_bytes: int
    bounds: list[tuple[Any, Any]]


def materialize_source(source: DataFrame, *, replicated: bool = False) -> DataFrame:
    """The source's rows, the same each time they are read.

    A merge reads its source more than once. What is not a constant is evaluated once and kept, as delta-spark does.

    Parameters
    ----------
    replicated
        See `materialize`.
    """
    if engine_of(source.sparkSession).frames.is_constant(source):
        return source
    return materialize(source, replicated=replicated)


def source_stats(source: DataFrame, keys: Sequence[tuple[DataType, Column]]) -> SourceStats:
    """Count the rows and find the bounds of keys, in one pass."""
    from pyspark.sql import functions as F

    wanted = [as_python(kind, bound(key)) for kind, key in keys for bound in (F.min, F.max)]
    variable = engine_of(source.sparkSession).frames.variable_bytes(source)
    total = F.lit(0) if variable is None else F.sum(variable)
    rows, size, *found = source.agg(F.count(F.lit(1)), total, *wanted).collect()[0]
    return SourceStats(rows, size or 0, list(zip(found[::2], found[1::2], strict=True)))


def as_python(kind: DataType, bound: Column) -> Column:
    """A bound in a form that Python can hold for every value of Spark."""
    from pyspark.sql import functions as F

    if kind == DATE:
        return F.unix_date(bound)
    return bound.cast("binary") if kind == STRING else bound


def as_literal(kind: DataType, bound: Any) -> Any:
    """A bound as a literal of the kernel; None if there is none for it."""
    if kind == DATE:
        day = bound + _EPOCH
        return datetime.date.fromordinal(day) if 1 <= day <= datetime.date.max.toordinal() else None
    if kind == STRING:
        try:
            return bytes(bound).decode()
        except UnicodeDecodeError:
            return None
    return bound


def has_usable_bounds(kind: DataType) -> bool:
    """Whether the bounds of a key are the same to Spark, Python and the kernel."""
    return kind in INTEGRAL or kind in (STRING, DATE) or isinstance(kind, DecimalType)


def between(name: str, kind: DataType, low: Any, high: Any) -> list[Expression]:
    """The predicate that a column lies between bounds of `source_stats`; without bounds no row can match."""
    if low is None:
        return [Literal(False)]
    column = KernelColumn((name,))
    known = ((comparison, as_literal(kind, bound)) for comparison, bound in ((">=", low), ("<=", high)))
    return [
        Call(comparison, (column, Literal(bound, kind))) for comparison, bound in known if bound is not None
    ]
