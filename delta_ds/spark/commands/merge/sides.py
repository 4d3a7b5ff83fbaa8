"""Source and target of a MERGE with column names that cannot be confused."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from delta_ds.conditions.dml import AMBIGUOUS_REFERENCE, MERGE_UNRESOLVED_EXPRESSION
from delta_ds.kernel.schema.column_paths import Path, parse_path
from delta_ds.kernel.schema.types import StructType
from delta_ds.kernel.write.schema_enforcement import data_schema
from delta_ds.spark.commands.resolution.expression_resolution import HIDDEN
from delta_ds.spark.engine import is_connect
from delta_ds.spark.schema import from_spark, quoted

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
        from delta_ds.spark.native.resolution import attributes

        names = self.frame.columns
        if is_connect(self.frame.sparkSession):
            found = [self.frame[quoted(name)] for name in names]
        else:
            found = attributes(self.frame)
        return [c for name, c in zip(names, found, strict=True) if not name.startswith(HIDDEN)]

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
        raise MERGE_UNRESOLVED_EXPRESSION(clause=clause, table=table, column=name, hint=hint)

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


def check_join(joined: DataFrame, left: DataFrame, right: DataFrame) -> None:
    """Refuse a join in which Spark had to change column ids, as in a self-join.

    Raises
    ------
    ValueError
        Expressions that were resolved on one side could mean columns of the other.
    """
    if is_connect(joined.sparkSession):
        return
    from delta_ds.spark.native.resolution import joins

    if not joins(joined, left, right):
        raise ValueError("the two sides of a merge must be frames of their own, joined as they are")


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
