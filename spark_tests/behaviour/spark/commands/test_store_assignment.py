"""`spark.sql.storeAssignmentPolicy` says how values become those of their columns, by every way in.

Source: delta-spark 4.4, `UpdateExpressionsSupport.cast`; asked of it with each policy.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from delta_ds import DeltaError, DeltaTable
from spark_tests.behaviour.spark.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

_ANSI, _POLICY = "spark.sql.ansi.enabled", "spark.sql.storeAssignmentPolicy"
_COLUMNS = {"k": "1", "i": "10", "b": "cast(1 AS TINYINT)", "d": "DATE'2020-01-01'"}


def _source(column: str, value: str, key: int) -> str:
    values = {**_COLUMNS, "k": str(key), column: value}
    return "SELECT " + ", ".join(f"{text} AS {name}" for name, text in values.items())


def _update(spark: SparkSession, path: str, column: str, value: str) -> None:
    DeltaTable.forPath(spark, path).update(set={column: value})


def _merged_update(spark: SparkSession, path: str, column: str, value: str) -> None:
    source = spark.sql(f"SELECT 1 AS k, {value} AS v").alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.k = s.k")
    merge.whenMatchedUpdate(set={column: "s.v"}).execute()


def _merged_insert(spark: SparkSession, path: str, column: str, value: str) -> None:
    source = spark.sql(f"SELECT 2 AS k, {value} AS v").alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.k = s.k")
    merge.whenNotMatchedInsert(values={"k": "s.k", column: "s.v"}).execute()


def _merged_star(spark: SparkSession, path: str, column: str, value: str) -> None:
    source = spark.sql(_source(column, value, 1)).alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.k = s.k")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def _insert_into(spark: SparkSession, path: str, column: str, value: str) -> None:
    spark.sql(_source(column, value, 2)).write.insertInto(f"pydelta.`{path}`")


WAYS: dict[str, Callable[[SparkSession, str, str, str], None]] = {
    "UPDATE": _update, "MERGE update": _merged_update, "MERGE insert": _merged_insert, "MERGE *": _merged_star,
    "insertInto": _insert_into,
}  # fmt: skip
REFUSED = "refused"
# Policy, column, value: what the column holds then.
CASES: list[tuple[str, str, str, Any]] = [
    ("ANSI", "i", "'7'", 7),
    ("ANSI", "i", "'abc'", REFUSED),
    ("ANSI", "b", "300", REFUSED),
    ("ANSI", "i", "1.9D", 1),
    ("LEGACY", "i", "'7'", 7),
    ("LEGACY", "i", "'abc'", None),
    ("LEGACY", "b", "300", 44),
    ("LEGACY", "i", "1.9D", 1),
    ("LEGACY", "d", "'xx'", None),
    ("STRICT", "i", "cast(7 AS SMALLINT)", 7),
    ("STRICT", "i", "'7'", REFUSED),
    ("STRICT", "b", "3", REFUSED),
    ("STRICT", "i", "1.9D", REFUSED),
]


def _session(spark: SparkSession, policy: str, ansi: bool) -> AbstractContextManager[None]:
    return session_settings(spark, {_POLICY: policy, _ANSI: str(ansi).lower()})


@pytest.mark.sampled
@pytest.mark.spark
@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_values_become_those_of_their_columns_as_the_policy_has_it(
    spark: SparkSession, tmp_path: Path, way: str, ansi: bool
) -> None:
    found = {}
    for number, (policy, column, value, _) in enumerate(CASES):
        path = str(tmp_path / str(number))
        spark.sql(_source("k", "1", 1)).write.format("pydelta").save(path)
        with _session(spark, policy, ansi):
            try:
                WAYS[way](spark, path, column, value)
            except (DeltaError, PySparkException):
                found[policy, column, value] = REFUSED
                continue
        row = DeltaTable.forPath(spark, path).toDF().orderBy("k").collect()[-1]
        found[policy, column, value] = row[column]
    assert found == {case[:3]: case[3] for case in CASES}


@pytest.mark.spark
@pytest.mark.parametrize("policy", ["LEGACY", "STRICT"])
def test_fields_of_structs_and_elements_follow_the_policy(
    spark: SparkSession, tmp_path: Path, policy: str
) -> None:
    path = str(tmp_path / "t")
    rows = spark.sql("SELECT named_struct('b', cast(1 AS TINYINT)) AS s, array(cast(1 AS TINYINT)) AS a")
    rows.write.format("pydelta").save(path)
    table = DeltaTable.forPath(spark, path)
    values = {"s": "named_struct('b', 300)", "a": "array(300, 2)"}
    with _session(spark, policy, True):
        if policy == "LEGACY":
            table.update(set=values)
        else:
            with pytest.raises(DeltaError, match="CANNOT_UP_CAST_DATATYPE"):
                table.update(set=values)
    (row,) = table.toDF().collect()
    assert (row.s.b, row.a) == ((44, [44, 2]) if policy == "LEGACY" else (1, [1]))


@pytest.mark.sampled
@pytest.mark.spark
@pytest.mark.parametrize("policy", ["ANSI", "LEGACY", "STRICT"])
@pytest.mark.parametrize("ansi", [True, False])
def test_commands_go_by_ansi_instead_where_the_session_says_so(
    spark: SparkSession, tmp_path: Path, ansi: bool, policy: str
) -> None:
    expected = {(of, column, value): found for of, column, value, found in CASES}
    found, wanted = {}, {}
    setting = "spark.databricks.delta.updateAndMergeCastingFollowsAnsiEnabledFlag"
    for number, (way, column, value) in enumerate(
        (way, column, value)
        for way in ("UPDATE", "MERGE *")
        for column, value in (("i", "'abc'"), ("b", "300"))
    ):
        path = str(tmp_path / str(number))
        spark.sql(_source("k", "1", 1)).write.format("pydelta").save(path)
        with _session(spark, policy, ansi):
            spark.conf.set(setting, "true")
            try:
                WAYS[way](spark, path, column, value)
            except (DeltaError, PySparkException):
                found[way, column] = REFUSED
            else:
                found[way, column] = DeltaTable.forPath(spark, path).toDF().collect()[0][column]
            finally:
                spark.conf.unset(setting)
        wanted[way, column] = expected["ANSI" if ansi else "LEGACY", column, value]
    assert found == wanted
