"""Conditions as a client of Spark Connect writes them out; what a classic session does is in test_writer_v2."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("grpc", reason="Spark Connect needs grpcio: install delta-ds[connect]")
from pyspark.sql.connect.functions import builtin as F

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.evaluate import evaluate
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.spark.session.conditions import plain, sql_of_expression

DAY = datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 0, 123456, tzinfo=datetime.timezone.utc)
ROW = pa.table(
    {
        "i": pa.array([7], pa.int64()),
        "d": pa.array([2.5]),
        "m": pa.array([Decimal("1.50")]),
        "s": ["it's a \\ `b`"],
        "o": [True],
        "day": pa.array([DAY]),
        "at": pa.array([MOMENT], pa.timestamp("us", "UTC")),
        "n": pa.array([None], pa.string()),
        "odd, name": [1],
    }
)


def holds(condition: Any) -> object:
    """What the kernel makes of the text for the one row."""
    text = plain(sql_of_expression(condition._expr))
    bound = bind(parse_predicate(text), schema_from_arrow(ROW.schema), "UTC")
    (batch,) = ROW.to_batches()
    return evaluate(bound, batch)[0].as_py()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (F.col("i") == 7, True),
        ((F.col("i") > 7) | (F.col("i") <= 7), True),
        (~((F.col("i") < 7) & F.col("o")), True),
        (F.col("s") == "it's a \\ `b`", True),
        (F.col("d") == 2.5, True),
        (F.col("m") == Decimal("1.5"), True),
        (F.col("day") == DAY, True),
        (F.col("at") == MOMENT, True),
        (F.col("at") > MOMENT, False),
        (F.col("n").isNull() & F.col("i").isNotNull(), True),
        (F.col("n").eqNullSafe(None), True),
        (F.col("i").isin(1, 7), True),
        (F.col("i").between(1, 6), False),
        (F.col("s").startswith("it's"), True),
        (F.col("i").cast("string") == "7", True),
        (F.expr("i % 2 = 1"), True),
        (F.col("`odd, name`") == 1, True),
        (F.lit(True), True),
        (-F.col("i") == -7, True),
    ],
)
def test_condition_means_the_same_as_text(condition: Any, expected: bool) -> None:
    assert holds(condition) is expected


@pytest.mark.parametrize("condition", [F.when(F.col("i") == 1, True), F.col("s").alias("x"), F.col("o")["k"]])
def test_what_cannot_be_written_out_is_refused(condition: Any) -> None:
    with pytest.raises(PredicateError, match="replaceWhere"):
        sql_of_expression(condition._expr)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("(`id` = CAST(1 AS BIGINT))", "(id = 1L)"),
        ("(`p` <=> CAST('b' AS STRING))", "(p <=> 'b')"),
        ("(`a b` = 1)", "(`a b` = 1)"),
        ("(`true` = 1)", "(`true` = 1)"),
        ("true", "true"),
        ("(`d` = DATE '2020-01-01')", "(`d` = DATE '2020-01-01')"),
        ("(unknown OVER ())", "(unknown OVER ())"),
    ],
)
def test_the_history_shows_names_bare_and_constants_of_their_types(text: str, shown: str) -> None:
    assert plain(text) == shown
