"""A value that raises, `raise_error(...)` of type void, fails whatever would store it; nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from delta_ds import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

_KEY = "(SELECT 1 AS k)"
_STATEMENTS = {
    "UPDATE": "UPDATE {t} SET {column} = raise_error('guard') WHERE id = 1",
    "UPDATE of all rows": "UPDATE {t} SET {column} = raise_error('guard')",
    "MERGE, update": f"MERGE INTO {{t}} t USING {_KEY} q ON t.id = q.k WHEN MATCHED THEN UPDATE SET {{column}} = "
    "raise_error('guard')",
    "MERGE, by source": f"MERGE INTO {{t}} t USING {_KEY} q ON t.id = q.k WHEN NOT MATCHED BY SOURCE THEN UPDATE SET "
    "{column} = raise_error('guard')",
    "DELETE": "DELETE FROM {t} WHERE raise_error('guard') IS NULL",
}
_WRITES: dict[str, Callable[[DataFrame, str], None]] = {
    "append": lambda df, path: df.write.format("delta").mode("append").save(path),
    "overwrite": lambda df, path: df.write.format("delta").mode("overwrite").save(path),
    "insertInto": lambda df, path: df.write.insertInto(f"delta.`{path}`"),
    "writeTo": lambda df, path: df.writeTo(f"delta.`{path}`").append(),
    "saveAsTable": lambda df, path: df.write.mode("append").format("delta").saveAsTable(f"delta.`{path}`"),
}


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    rows = spark.sql("SELECT id, 'a' AS s, named_struct('x', id) AS n FROM VALUES (1), (2) AS t(id)")
    rows.write.format("delta").save(str(tmp_path / "t"))
    return str(tmp_path / "t")


def _check_unchanged(spark: SparkSession, path: str) -> None:
    assert DeltaTable.forPath(spark, path).history(1).first()["version"] == 0
    assert spark.read.format("delta").load(path).where("s IS NULL OR n.x IS NULL").count() == 0


@pytest.mark.sampled
@pytest.mark.parametrize("column", ["s", "n.x"])
@pytest.mark.parametrize("statement", _STATEMENTS)
def test_a_statement_that_stores_it_fails(
    spark: SparkSession, path: str, statement: str, column: str
) -> None:
    with pytest.raises(Exception, match="guard"):
        spark.sql(_STATEMENTS[statement].format(t=f"delta.`{path}`", column=column)).collect()
    _check_unchanged(spark, path)


@pytest.mark.sampled
@pytest.mark.parametrize("native", ["true", "false"])
@pytest.mark.parametrize("way", _WRITES)
def test_a_write_that_stores_it_fails(spark: SparkSession, path: str, way: str, native: str) -> None:
    rows = spark.sql("SELECT 5 AS id, raise_error('guard') AS s, named_struct('x', 1) AS n")
    spark.conf.set("spark.pydelta.nativeWrite", native)
    try:
        with pytest.raises(Exception, match="guard"):
            _WRITES[way](rows, path)
    finally:
        spark.conf.unset("spark.pydelta.nativeWrite")
    _check_unchanged(spark, path)


def test_an_insert_that_a_merge_makes_of_it_fails(spark: SparkSession, path: str) -> None:
    source = spark.sql("SELECT 7 AS id")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("q"), "t.id = q.id")
    with pytest.raises(Exception, match="guard"):
        merge.whenNotMatchedInsert(values={"id": "q.id", "s": "raise_error('guard')"}).execute()
    _check_unchanged(spark, path)
