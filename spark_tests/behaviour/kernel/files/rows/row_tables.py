"""Small schemas, plans and batches for the tests of rows on their way into a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from delta_ds.kernel.files.rows.pipeline import RowPipeline
from delta_ds.kernel.files.rows.plan import RowPlan, plan_rows
from delta_ds.kernel.format.schema.types import DataType, StructField, StructType, arrow_schema
from spark_tests.behaviour.kernel.states import table_state

FEATURES = frozenset(["generatedColumns", "identityColumns", "allowColumnDefaults", "invariants"])


def schema(*fields: StructField, **types: DataType) -> StructType:
    """A schema of given fields, then of plain columns by name."""
    return StructType((*fields, *(StructField(name, kind) for name, kind in types.items())))


def generated(name: str, kind: DataType, expression: str) -> StructField:
    return StructField(name, kind, True, {"delta.generationExpression": expression})


def defaulted(name: str, kind: DataType, sql: str) -> StructField:
    return StructField(name, kind, True, {"CURRENT_DEFAULT": sql})


def batch(data: StructType, *rows: Mapping[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=arrow_schema(data))


def plan(
    data: StructType,
    table: StructType,
    *,
    constraints: Mapping[str, str] | None = None,
    features: frozenset[str] = FEATURES,
    timezone: str = "UTC",
) -> RowPlan:
    properties = {f"delta.constraints.{name}": sql for name, sql in (constraints or {}).items()}
    return plan_rows(
        data,
        table_state(table, properties=properties, features=features, table="/data/t"),
        timezone=timezone,
    )


def stored(
    data: StructType, table: StructType, *rows: Mapping[str, Any], task: int = 0, **options: Any
) -> list[dict[str, Any]]:
    """The rows as the table would store them, through a whole plan."""
    out = RowPipeline(plan(data, table, **options), task).process(batch(data, *rows))
    assert out.schema.equals(arrow_schema(table), check_metadata=True)
    out.validate(full=True)
    values: list[dict[str, Any]] = out.to_pylist()
    return values
