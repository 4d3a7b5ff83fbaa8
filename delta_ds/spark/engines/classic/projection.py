"""Projections of many columns, sent to the JVM in one call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from delta_ds.records import dataclass, field
from delta_ds.spark.engines.classic.jvm import Jvm

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.spark.base.kinds.java_object import JavaObject


@dataclass(frozen=True, slots=True)
class ColumnAt:
    """A column as it is.

    Attributes
    ----------
    position
        Among the columns of the frame.
    name
        That it gets; None: name, metadata and identity are what they are.
    metadata
        Of the column, instead of what it has.
    """

    position: int
    name: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CastTo:
    """A resolved expression of Catalyst, cast.

    Attributes
    ----------
    expression
        The JVM's.
    kind
        The JSON of Spark's type.
    name
        Of the column.
    """

    expression: JavaObject
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Guarded:
    """A column as it is, of rows that break no check.

    Attributes
    ----------
    position
        Among the columns of the frame.
    checks
        Whether a row breaks it, and what raises an error then: SQL, or a `Column`.
    """

    position: int
    checks: Sequence[tuple[Column | str, Column | str]]


@dataclass(frozen=True, slots=True)
class InsertedAt:
    """A column, cast as INSERT casts it.

    Attributes
    ----------
    position
        Among the columns of the frame.
    name
        That it gets.
    kind
        The JSON of Spark's type.
    ansi
        Whether a value that does not fit is an error, in any session; else it becomes null, or its last bits.
    """

    position: int
    name: str
    kind: str
    ansi: bool


# A `Column` has a name.
Projected: TypeAlias = "ColumnAt | CastTo | Guarded | InsertedAt | Column"


def project(
    jvm: Jvm, frame: DataFrame, columns: Sequence[Projected], session: JavaObject | None = None
) -> DataFrame:
    """Some columns of a frame, and columns made of them.

    Parameters
    ----------
    session
        The session of the JVM that resolves them; None for the user's.
    """
    from pyspark.sql import DataFrame

    others: list[object] = []
    entries = [_entry(column, others) for column in columns]
    made = jvm.projections.select(
        jvm.spark._jsparkSession if session is None else session,
        jvm.logical_plan(frame),
        json.dumps(entries),
        others,
    )
    return DataFrame(made, jvm.spark)


def _entry(column: Projected, others: list[object]) -> Sequence[object]:
    """A column as `Projection.java` takes it; objects of the JVM go to `others`."""
    if isinstance(column, ColumnAt):
        return (column.position, column.name, json.dumps(dict(column.metadata)))
    if isinstance(column, CastTo):
        others.append(column.expression)
        return (-2, column.name, column.kind)
    if isinstance(column, InsertedAt):
        return (-4, column.position, [column.name, column.kind, column.ansi])
    if isinstance(column, Guarded):
        checks = [[part if isinstance(part, str) else None for part in check] for check in column.checks]
        others += [part._jc for check in column.checks for part in check if not isinstance(part, str)]
        return (-3, column.position, checks)
    others.append(column._jc)
    return (-1, "", "")
