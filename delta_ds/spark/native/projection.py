"""Projections of many columns, sent to the JVM in one call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from delta_ds.spark.native.jvm import Jvm

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


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


# A `Column` has a name.
Projected: TypeAlias = "ColumnAt | Column"


def project(jvm: Jvm, frame: DataFrame, columns: Sequence[Projected], session: Any = None) -> DataFrame:
    """Some columns of a frame, and columns made of them.

    Parameters
    ----------
    session
        The session of the JVM that resolves them; None for the user's.
    """
    from pyspark.sql import DataFrame

    others = [column for column in columns if not isinstance(column, ColumnAt)]
    entries = [
        (c.position, c.name, json.dumps(dict(c.metadata))) if isinstance(c, ColumnAt) else (-1, "", "")
        for c in columns
    ]
    made = jvm.projections.select(
        jvm.spark._jsparkSession if session is None else session,
        jvm.logical_plan(frame),
        json.dumps(entries),
        [column._jc for column in others],
    )
    return DataFrame(made, jvm.spark)
