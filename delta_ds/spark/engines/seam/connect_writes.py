"""Writes of a session of Spark Connect: casts by the public API, and the data source on the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import AtomicType, DataType, StringType

from delta_ds.conditions.data import CAST_OVERFLOW_IN_TABLE_INSERT
from delta_ds.conditions.expressions import CAST_INVALID_INPUT
from delta_ds.kernel.format.options.session_facts import ANSI_POLICY
from delta_ds.spark.engines.seam.writes import is_same
from delta_ds.spark.errors.row_errors import error_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.kernel.format.options.session_facts import SessionFacts
    from delta_ds.spark.engines.seam.writes import Matched, Pending


class ConnectWrites:
    """See `Writes`."""

    def cast(self, rows: DataFrame, columns: Sequence[Matched], facts: SessionFacts) -> DataFrame:
        from pyspark.sql import functions as F

        given = rows.schema.fields
        # By their places: names may be there more than once.
        places = rows.toDF(*[f"c{at}" for at in range(len(given))])
        selected: list[Column] = []
        for column in columns:
            if column.place is None:
                selected.append(column.null())
                continue
            field, value = given[column.place], F.col(f"c{column.place}")
            if not is_same(field.dataType, column.kind):
                if facts.store_assignment == ANSI_POLICY and not facts.ansi:
                    value = _ansi_cast(value, field.dataType, column)
                else:
                    value = value.cast(column.kind)
            selected.append(value.alias(column.name))
        return places.select(*selected)

    @contextmanager
    def overflow_of_inserts(self) -> Iterator[None]:
        from pyspark.errors import PySparkException

        try:
            yield
        except PySparkException as error:
            if _condition(error) != "CAST_OVERFLOW":
                raise
            told: dict[str, Any] = dict(error.getMessageParameters() or {})
            raise CAST_OVERFLOW_IN_TABLE_INSERT(
                sourceType=str(told.get("sourceType", "")).strip('"'),
                targetType=str(told.get("targetType", "")).strip('"'),
                columnName="of that type",
            ) from error

    def check_constants(self, rows: DataFrame) -> None:
        """The server has computed them when it planned the write."""

    def save(self, rows: DataFrame, options: Mapping[str, str], *, overwrite: bool) -> Pending | None:
        return rows, options

    def refresh(self, options: Mapping[str, str]) -> None:
        """What its server has cached a client cannot reach."""

    def reports(self) -> AbstractContextManager[str | None]:
        return nullcontext()  # the server has listeners of its own


def _ansi_cast(value: Column, source: DataType, column: Matched) -> Column:
    """A cast that fails on values which do not fit, in a session whose own casts make null of them."""
    from pyspark.sql import functions as F

    if not isinstance(column.kind, AtomicType):
        return value  # refused where it does not fit: null inside would be no error
    cast = value.try_cast(column.kind)
    refused = CAST_INVALID_INPUT if isinstance(source, StringType) else CAST_OVERFLOW_IN_TABLE_INSERT
    wrong = refused(
        sourceType=source.simpleString().upper(),
        targetType=column.kind.simpleString().upper(),
        columnName=column.name,
    )
    return F.when(value.isNull() | cast.isNotNull(), cast).otherwise(error_column(wrong))


def _condition(error: Any) -> str | None:
    found: str | None = error.getCondition()
    return found
