"""Where a table may come to be: each call that makes one, at each kind of place, as delta-spark has it.

Recorded in `conformance/corpora/locations`: outcome, versions, the operation of the last one, rows, and whether the
name is known afterwards.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import DeltaError
from spark_tests.engines.conformance.corpora import corpus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

RECORDED: dict[str, dict[str, dict[str, Any]]] = json.loads(
    (corpus("locations") / "locations.json").read_text()
)

# Where this package is meant to differ: nothing lies in a folder that has but an empty log.
DIFFERS = {("emptylog", call) for call in RECORDED["emptylog"]}


def rows(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT CAST(7 AS INT) AS id")


def _missing(spark: SparkSession, place: Path) -> None:
    """Nothing is there."""


def _empty(spark: SparkSession, place: Path) -> None:
    place.mkdir(parents=True)


def _parquet(spark: SparkSession, place: Path) -> None:
    spark.range(3).write.parquet(str(place))


def _hidden(spark: SparkSession, place: Path) -> None:
    place.mkdir(parents=True)
    (place / "_SUCCESS").touch()
    (place / ".x").touch()


def _text(spark: SparkSession, place: Path) -> None:
    place.mkdir(parents=True)
    (place / "notes.txt").write_text("x")


def _same(spark: SparkSession, place: Path) -> None:
    table = spark.range(3).selectExpr("cast(id as int) id").write.format("delta")
    table.option("delta.appendOnly", "false").save(str(place))


def _other(spark: SparkSession, place: Path) -> None:
    spark.sql("SELECT 1 AS w, 'z' AS z").write.format("delta").save(str(place))


def _emptylog(spark: SparkSession, place: Path) -> None:
    (place / "_delta_log").mkdir(parents=True)


KINDS: dict[str, Callable[[SparkSession, Path], None]] = {
    "missing": _missing, "empty": _empty, "parquet": _parquet, "hidden": _hidden, "text": _text, "same": _same,
    "other": _other, "emptylog": _emptylog,
}  # fmt: skip

Call = Callable[["SparkSession", str, Path], Any]


def _stream(spark: SparkSession, name: str, place: Path) -> None:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    writer = source.selectExpr("cast(value as int) id").writeStream.format("delta").option("path", str(place))
    query = (
        writer.option("checkpointLocation", f"{place}_checkpoint").trigger(availableNow=True).toTable(name)
    )
    query.awaitTermination(180)


CALLS: dict[str, Call] = {
    "save": lambda s, t, p: rows(s).write.format("delta").save(str(p)),
    "save append": lambda s, t, p: rows(s).write.format("delta").mode("append").save(str(p)),
    "save overwrite": lambda s, t, p: rows(s).write.format("delta").mode("overwrite").save(str(p)),
    "CREATE": lambda s, t, p: s.sql(f"CREATE TABLE {t} (id INT) USING delta LOCATION '{p}'"),
    "CREATE no schema": lambda s, t, p: s.sql(f"CREATE TABLE {t} USING delta LOCATION '{p}'"),
    "CREATE IF NOT EXISTS": lambda s, t, p: s.sql(
        f"CREATE TABLE IF NOT EXISTS {t} (id INT) USING delta LOCATION '{p}'"
    ),
    "CREATE OR REPLACE": lambda s, t, p: s.sql(
        f"CREATE OR REPLACE TABLE {t} (id INT) USING delta LOCATION '{p}'"
    ),
    "CREATE OR REPLACE no schema": lambda s, t, p: s.sql(
        f"CREATE OR REPLACE TABLE {t} USING delta LOCATION '{p}'"
    ),
    "CTAS": lambda s, t, p: s.sql(
        f"CREATE TABLE {t} USING delta LOCATION '{p}' AS SELECT CAST(7 AS INT) AS id"
    ),
    "CRTAS": lambda s, t, p: s.sql(
        f"CREATE OR REPLACE TABLE {t} USING delta LOCATION '{p}' AS SELECT CAST(7 AS INT) AS id"
    ),
    "saveAsTable": lambda s, t, p: rows(s).write.format("delta").option("path", str(p)).saveAsTable(t),
    "saveAsTable append": lambda s, t, p: (
        rows(s).write.format("delta").mode("append").option("path", str(p)).saveAsTable(t)
    ),
    "saveAsTable overwrite": lambda s, t, p: (
        rows(s).write.format("delta").mode("overwrite").option("path", str(p)).saveAsTable(t)
    ),
    "writeTo create": lambda s, t, p: rows(s).writeTo(t).using("delta").option("path", str(p)).create(),
    "writeTo createOrReplace": lambda s, t, p: (
        rows(s).writeTo(t).using("delta").option("path", str(p)).createOrReplace()
    ),
    "builder create": lambda s, t, p: (
        DeltaTable.create(s).tableName(t).addColumn("id", "INT").location(str(p)).execute()
    ),
    "builder createIfNotExists": lambda s, t, p: (
        DeltaTable.createIfNotExists(s).tableName(t).addColumn("id", "INT").location(str(p)).execute()
    ),
    "builder createOrReplace": lambda s, t, p: (
        DeltaTable.createOrReplace(s).tableName(t).addColumn("id", "INT").location(str(p)).execute()
    ),
    "builder path create": lambda s, t, p: (
        DeltaTable.create(s).addColumn("id", "INT").location(str(p)).execute()
    ),
    "builder path createOrReplace": lambda s, t, p: (
        DeltaTable.createOrReplace(s).addColumn("id", "INT").location(str(p)).execute()
    ),
    "path CREATE": lambda s, t, p: s.sql(f"CREATE TABLE delta.`{p}` (id INT) USING delta"),
    "path CTAS": lambda s, t, p: s.sql(
        f"CREATE TABLE delta.`{p}` USING delta AS SELECT CAST(7 AS INT) AS id"
    ),
    "path CREATE OR REPLACE": lambda s, t, p: s.sql(
        f"CREATE OR REPLACE TABLE delta.`{p}` (id INT) USING delta"
    ),
    "path saveAsTable overwrite": lambda s, t, p: (
        rows(s).write.format("delta").mode("overwrite").saveAsTable(f"delta.`{p}`")
    ),
    "path writeTo create": lambda s, t, p: rows(s).writeTo(f"delta.`{p}`").using("delta").create(),
    "path writeTo createOrReplace": lambda s, t, p: (
        rows(s).writeTo(f"delta.`{p}`").using("delta").createOrReplace()
    ),
    "toTable": _stream,
}


def _outcome(call: Callable[[], Any]) -> str:
    from pyspark.errors import PySparkException

    try:
        call()
    except (DeltaError, PySparkException) as error:
        condition = getattr(error, "condition", None) or error.getCondition()  # type: ignore[union-attr]
        return str(condition)
    return "ok"


@pytest.mark.sampled
@pytest.mark.parametrize("call", CALLS)
def test_a_place_is_taken_or_refused_as_by_delta_spark(
    spark: SparkSession, schema: str, tmp_path: Path, call: str
) -> None:
    differences = []
    for kind, prepare in KINDS.items():
        name, place = f"t_{kind}", tmp_path / kind
        prepare(spark, place)
        found: dict[str, Any] = {"outcome": _outcome(lambda n=name, p=place: CALLS[call](spark, n, p))}  # type: ignore[misc]
        log = sorted(place.glob("_delta_log/*.json"))
        table = DeltaLog(place)
        found["versions"] = len(log)
        done = found["outcome"] == "ok"
        found["operation"] = table.history(1)[0]["operation"] if done else None
        has_rows = log and table.snapshot().schema.fields
        found["rows"] = sorted(map(tuple, _rows(table))) if has_rows else None
        found["named"] = spark.catalog.tableExists(name)
        wanted = dict(RECORDED[kind][call])
        wanted["rows"] = None if wanted["rows"] is None else sorted(ast.literal_eval(wanted["rows"]))
        if found != wanted and (kind, call) not in DIFFERS:
            differences.append(f"{kind}: {found}, delta-spark {wanted}")
        spark.sql(f"DROP TABLE IF EXISTS {name}")
    assert not differences, "\n".join(differences)


def _rows(table: DeltaLog) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.snapshot().scan().to_arrow().to_pylist()]


@pytest.mark.parametrize(
    "make",
    [
        lambda s, t, p: rows(s).write.format("delta").option("path", p).saveAsTable(t),
        lambda s, t, p: s.sql(f"CREATE TABLE {t} (id INT) USING delta LOCATION '{p}'"),
        lambda s, t, p: rows(s).writeTo(t).using("delta").option("path", p).create(),
        lambda s, t, p: DeltaTable.create(s).tableName(t).addColumn("id", "INT").location(p).execute(),
    ],
    ids=["saveAsTable", "CREATE", "writeTo", "builder"],
)
def test_a_relative_location_begins_at_the_folder_of_the_schema(
    spark: SparkSession, schema: str, folder: Path, make: Call, request: pytest.FixtureRequest
) -> None:
    place = f"some/{request.node.callspec.id}"
    make(spark, "relative_place", place)  # type: ignore[arg-type]
    assert (folder / place / "_delta_log").is_dir()
    assert spark.table("relative_place").columns == ["id"]
    spark.sql("INSERT INTO relative_place VALUES (9)")
    assert 9 in [row.id for row in spark.table("relative_place").collect()]
    spark.sql("DROP TABLE relative_place")
